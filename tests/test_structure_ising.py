"""Undirected discrete graphs: Ising neighbourhoods and sparse pseudo-likelihood, and models fitted to them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from sklearn.linear_model import LogisticRegression

import markovia as mk
from markovia.learning.feature_counts import layout_of_tables
from markovia.learning.pseudo_likelihood import PseudoLikelihood
from markovia.learning.structure.sparse_logistic import fit_spin
from markovia.learning.structure.sparse_pseudo_likelihood import PairwiseField

seeds = st.integers(0, 2**32 - 1)


def ising_rows(pairs, n, size, seed, coupling=0.5, field=0.0):
    """Rows of an Ising model in -1 and +1 by enumeration, with the codes 0 and 1."""
    rng = np.random.default_rng(seed)
    states = np.array(np.meshgrid(*[[-1, 1]] * size, indexing="ij")).reshape(size, -1)
    energy = field * states.sum(axis=0)
    for i, j in pairs:
        energy = energy + coupling * states[i] * states[j]
    p = np.exp(energy - energy.max())
    drawn = states[:, rng.choice(states.shape[1], n, p=p / p.sum())]
    return {f"x{i}": (drawn[i] + 1) // 2 for i in range(size)}


def named(pairs):
    return {(f"x{i}", f"x{j}") for i, j in pairs}


CHAIN = [(i, i + 1) for i in range(6)]
GRID = [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]


@given(seeds, st.sampled_from([0.005, 0.02, 0.1]))
@settings(max_examples=5, deadline=None)
def test_a_spin_given_the_others_is_a_logistic_regression_with_l1(seed, alpha):
    rng = np.random.default_rng(seed)
    n, p = 80, 5
    design = np.where(rng.random((p + 1, n)) < 0.5, 1.0, -1.0)
    design[1] = np.where(rng.random(n) < 0.8, design[0], design[1])
    design[-1] = 1.0
    weights = rng.integers(1, 4, n).astype(float)
    factor = np.ones(p + 1)
    factor[-1] = 0.0
    found = fit_spin(design, 0, weights / weights.sum(), factor, np.array([alpha]))
    assert found.errors[0] <= 1e-8
    # the same in the coding of a logistic regression: coefficients are twice the couplings
    model = LogisticRegression(
        C=2 / (alpha * weights.sum()), l1_ratio=1.0, solver="saga", tol=1e-8, max_iter=100_000
    )
    model.fit(design[1:p].T, design[0], sample_weight=weights)
    assert np.allclose(found.thetas[0][1:p], model.coef_[0] / 2, atol=2e-4)
    assert found.thetas[0][p] == pytest.approx(model.intercept_[0] / 2, abs=2e-4)


@pytest.mark.parametrize("rule", ["or", "and"])
@pytest.mark.parametrize("choose", ["ebic", "rate"])
def test_chains_and_grids_of_spins_are_found(rule, choose):
    for pairs, size in ((CHAIN, 7), (GRID, 6)):
        rows = ising_rows(pairs, 3000, size, 1, field=0.2)
        found = mk.learn_structure(rows, method="ising", rule=rule, choose=choose)
        assert set(found.edges) == named(pairs)
        assert found.details["kkt"] <= 1e-8
        assert np.allclose(found.weights, found.weights.T)


def test_couplings_tend_to_those_of_the_model_and_one_penalty_holds_for_all():
    rows = ising_rows(CHAIN, 40_000, 7, 2, coupling=0.4, field=0.1)
    found = mk.learn_structure(rows, method="ising", alpha=1e-4)
    assert found.weights[0, 1] == pytest.approx(0.4, abs=0.03)
    assert found.details["fields"] == pytest.approx(np.full(7, 0.1), abs=0.05)
    assert found.n_edges > 6
    none = mk.learn_structure(rows, method="ising", alpha=10.0)
    assert none.n_edges == 0
    assert none.details["fields"] == pytest.approx(
        [np.arctanh(2 * rows[f"x{i}"].mean() - 1) for i in range(7)], abs=1e-6
    )


def test_stability_chooses_a_graph_that_repeats_itself():
    rows = ising_rows(CHAIN[:4], 2000, 5, 3)
    found = mk.learn_structure(rows, method="ising", choose="stability", seed=0, subsamples=10)
    assert set(found.edges) == named(CHAIN[:4])
    assert found.details["shares"][0, 1] > 0.9
    assert found.details["subsamples"] == 10
    again = mk.learn_structure(rows, method="ising", choose="stability", seed=0, subsamples=10)
    assert np.array_equal(again.weights, found.weights)


@pytest.mark.parametrize(
    ("method", "options"),
    [("ising", {}), ("ising", {"choose": "stability"}), ("l1-pseudo-likelihood", {}),
     ("l1-pseudo-likelihood", {"alpha": 0.05})],
)  # fmt: skip
def test_weighted_rows_count_as_repeated_ones(method, options):
    rows = ising_rows(CHAIN[:3], 200, 4, 4)
    times = np.random.default_rng(0).integers(1, 4, 200)
    repeated = {k: np.repeat(v, times) for k, v in rows.items()}
    one = mk.learn_structure(rows, method=method, weights=times, seed=1, **options)
    other = mk.learn_structure(repeated, method=method, seed=1, **options)
    assert one.edges == other.edges
    assert np.allclose(one.weights, other.weights, atol=1e-4)


@pytest.mark.parametrize("method", ["ising", "l1-pseudo-likelihood"])
def test_what_is_known_is_obeyed(method):
    rows = ising_rows(CHAIN[:4], 800, 5, 5)
    found = mk.learn_structure(
        rows, method=method, required=[("x0", "x4")], forbidden=[("x1", "x2"), ("x2", "x1")]
    )
    assert ("x0", "x4") in found.edges
    assert ("x1", "x2") not in found.edges
    few = mk.learn_structure(rows, method=method, max_parents=1)
    assert max(few.graph.degree(n) for n in few.nodes) == 1
    early = mk.learn_structure(rows, method=method, time_limit=1e-9)
    assert early.stopped == "time limit"
    assert "stopped after" in early.notes[0]


def test_a_file_is_read_as_distinct_rows_with_weights(tmp_path):
    import pandas as pd

    rows = ising_rows(CHAIN[:3], 1000, 4, 6)
    pd.DataFrame(rows).to_parquet(tmp_path / "rows.parquet")
    for method in ("ising", "l1-pseudo-likelihood"):
        here = mk.learn_structure(rows, method=method)
        there = mk.learn_structure(tmp_path / "rows.parquet", method=method)
        assert here.edges == there.edges
        assert np.allclose(here.weights, there.weights, atol=1e-4)


# pseudo-likelihood with penalties


def pairwise(seed, cards=(2, 3, 2), n=30):
    rng = np.random.default_rng(seed)
    cards = np.array(cards)
    codes = np.array([rng.integers(0, c, n) for c in cards])
    weights = rng.uniform(0.5, 2, n)
    pairs = [(i, j) for i in range(len(cards)) for j in range(i + 1, len(cards))]
    return PairwiseField(codes, cards, weights / weights.sum(), pairs), codes, cards, weights, pairs, rng


def test_the_pairwise_loss_is_the_pseudo_likelihood_and_its_gradient_is_right():
    field, codes, cards, weights, pairs, rng = pairwise(0)
    point = rng.normal(size=field.n_weights)
    value, slope = field(point)
    assert np.allclose(slope, approx_fprime(point, lambda w: field(w)[0], 1e-7), atol=1e-5)
    variables = [mk.Variable(f"v{i}", int(c)) for i, c in enumerate(cards)]
    factors = [mk.Factor.of([v], np.ones(len(v))) for v in variables]
    factors += [mk.Factor.of([variables[i], variables[j]], np.ones((cards[i], cards[j]))) for i, j in pairs]
    layout = layout_of_tables(factors, variables)
    rows = mk.learning.data.CodedTable(variables, codes.astype(np.int32), weights)
    own = np.concatenate([point[: field.n_single], *[t.ravel() for t in field.tables(point)]])
    assert PseudoLikelihood(layout, rows)(own)[0] == pytest.approx(value)


def test_rows_of_three_states_have_their_edges_found_by_groups():
    rng = np.random.default_rng(1)
    a = rng.integers(0, 3, 1500)
    columns = {"a": a}
    last = a
    for name in "bcd":
        last = np.where(rng.random(1500) < 0.6, last, rng.integers(0, 3, 1500))
        columns[name] = last
    columns["e"] = rng.integers(0, 4, 1500)
    for penalty in ("group", "l1"):
        found = mk.learn_structure(columns, method="l1-pseudo-likelihood", penalty=penalty)
        assert set(found.edges) == {("a", "b"), ("b", "c"), ("c", "d")}
        assert found.details["edge_tables"]["a", "b"].shape == (3, 3)
        assert found.details["kkt"] < 1e-5


def test_the_largest_penalty_leaves_no_edge_and_groups_are_all_or_nothing():
    rows = ising_rows(CHAIN[:3], 500, 4, 7)
    found = mk.learn_structure(rows, method="l1-pseudo-likelihood", choose="ebic")
    top = found.details["alphas"][0]
    assert mk.learn_structure(rows, method="l1-pseudo-likelihood", alpha=1.01 * top).n_edges == 0
    less = mk.learn_structure(rows, method="l1-pseudo-likelihood", alpha=0.9 * top)
    assert less.n_edges >= 1
    for table in less.details["edge_tables"].values():
        assert (table != 0).all()
    steady = mk.learn_structure(rows, method="l1-pseudo-likelihood", choose="stability", seed=0, subsamples=6)
    assert named(CHAIN[:3]) == set(steady.edges)


def test_the_optimum_of_the_group_penalty_is_that_of_a_smooth_solver():
    """Away from zero the penalty is differentiable, so that L-BFGS from the solution finds nothing better."""
    from scipy.optimize import minimize

    rows = ising_rows([(0, 1), (1, 2), (0, 2)], 400, 3, 8)
    found = mk.learn_structure(rows, method="l1-pseudo-likelihood", alpha=0.02, tolerance=1e-8)
    codes = np.array([rows[f"x{i}"] for i in range(3)])
    pairs = [(0, 1), (0, 2), (1, 2)]
    field = PairwiseField(codes, np.array([2, 2, 2]), np.full(400, 1 / 400), pairs)

    def objective(w):
        return field(w)[0] + 0.02 * sum(np.linalg.norm(t) for t in field.tables(w))

    point = np.zeros(field.n_weights)
    point[:6] = np.concatenate([found.details["node_tables"][f"x{i}"] for i in range(3)])
    couplings = np.zeros((6, 6))
    for (a, b), table in found.details["edge_tables"].items():
        i, j = int(a[1]), int(b[1])
        couplings[2 * i : 2 * i + 2, 2 * j : 2 * j + 2] = table
    point[6:] = couplings[field.rows, field.columns]
    other = minimize(objective, point + 0.05, method="BFGS", options={"gtol": 1e-9})
    assert objective(point) == pytest.approx(other.fun, abs=1e-8)


# a model with the learned graph


def test_a_learned_undirected_graph_is_fitted_as_a_markov_network():
    rows = ising_rows(CHAIN[:3], 5000, 4, 9, coupling=0.5)
    found = mk.learn_structure(rows, method="ising")
    model = found.fit()
    assert isinstance(model, mk.MarkovNetwork)
    joint = model.query(["x0", "x1"]).values
    counts = np.zeros((2, 2))
    np.add.at(counts, (rows["x0"], rows["x1"]), 1)
    assert np.allclose(joint, counts / 5000, atol=1e-4)
    assert model.independent("x0", "x2", given=["x1"])
    other = found.fit(ising_rows(CHAIN[:3], 500, 4, 10), method="pseudo-likelihood")
    assert other.fit_.n_rows == 500


def test_cliques_can_be_fitted_in_place_of_pairs():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, 4000), rng.integers(0, 2, 4000)
    c = np.where(rng.random(4000) < 0.9, a ^ b, 1 - (a ^ b))
    known = [("a", "b"), ("b", "c"), ("a", "c")]
    found = mk.learn_structure({"a": a, "b": b, "c": c}, method="ising", required=known, alpha=0.5)
    pairs, whole = found.fit(), found.fit(pairwise=False)
    assert abs(pairs.query("c", given={"a": 1, "b": 1})[0] - 0.5) < 0.05  # no pair tells of an exclusive or
    assert whole.query("c", given={"a": 1, "b": 1})[0] == pytest.approx(0.9, abs=0.03)
    assert max(len(f.names) for f in whole.factors) == 3


def test_bad_input_is_named():
    rows = ising_rows(CHAIN[:2], 50, 3, 11)
    with pytest.raises(mk.InvalidArgument, match="two states, and 'z' has 3"):
        mk.learn_structure({**rows, "z": np.arange(50) % 3}, method="ising")
    with pytest.raises(mk.InvalidArgument, match="measurements"):
        mk.learn_structure({**rows, "z": np.linspace(0.1, 0.7, 50)}, method="ising")
    with pytest.raises(mk.InvalidArgument, match="measurements"):
        mk.learn_structure({**rows, "z": np.linspace(0.1, 0.7, 50)}, method="l1-pseudo-likelihood")
    with pytest.raises(mk.InvalidArgument, match="same state"):
        mk.learn_structure({**rows, "z": [0] * 50}, states={"z": 2}, method="ising")
    with pytest.raises(mk.InvalidArgument, match="whole numbers"):
        mk.learn_structure(rows, method="ising", choose="stability", weights=np.full(50, 0.3))
    with pytest.raises(mk.InvalidArgument, match="field="):
        mk.learn_structure(rows, method="ising", field="big")
    with pytest.raises(mk.InvalidArgument, match="penalty="):
        mk.learn_structure(rows, method="l1-pseudo-likelihood", penalty="l2")
    with pytest.raises(mk.InvalidArgument, match="not both"):
        mk.learn_structure(rows, method="ising", alpha=0.1, choose="ebic")
