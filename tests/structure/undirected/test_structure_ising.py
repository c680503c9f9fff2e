"""Undirected discrete graphs: Ising neighbourhoods and sparse pseudo-likelihood, and models fitted to them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from sklearn.linear_model import LogisticRegression

import markovia as mk
from markovia.data.tables.row_sources import CodedTable
from markovia.learning.fields.field_layout import layout_of_tables
from markovia.learning.fields.pseudo_likelihood import PseudoLikelihood
from markovia.structure.undirected.pairwise_field import PairwiseField
from markovia.structure.undirected.sparse_logistic import fit_spin

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
        assert found.details.kkt <= 1e-8
        assert np.allclose(found.weights, found.weights.T)


def test_couplings_tend_to_those_of_the_model_and_one_penalty_holds_for_all():
    rows = ising_rows(CHAIN, 40_000, 7, 2, coupling=0.4, field=0.1)
    found = mk.learn_structure(rows, method="ising", alpha=1e-4)
    assert found.weights[0, 1] == pytest.approx(0.4, abs=0.03)
    assert found.details.fields == pytest.approx(np.full(7, 0.1), abs=0.05)
    assert found.n_edges > 6
    none = mk.learn_structure(rows, method="ising", alpha=10.0)
    assert none.n_edges == 0
    assert none.details.fields == pytest.approx(
        [np.arctanh(2 * rows[f"x{i}"].mean() - 1) for i in range(7)], abs=1e-6
    )


def test_stars_takes_the_densest_graph_before_subsamples_disagree():
    pairs = [(0, 1), (1, 2), (3, 4)]  # sparse: ten columns, three edges
    rows = ising_rows(pairs, 2000, 10, 3)
    found = mk.learn_structure(rows, method="ising", choose="stars", seed=0, subsamples=10)
    assert named(pairs) <= set(found.edges)
    assert found.n_edges <= 8
    assert found.details.choice.shares[0, 1] > 0.9
    assert found.details.choice.subsamples == 10
    at = list(found.details.choice.penalties).index(found.details.alpha[0])
    so_far = np.maximum.accumulate(found.details.choice.criterion)
    assert so_far[at] <= 0.05 < so_far[at + 1]
    again = mk.learn_structure(rows, method="ising", choose="stars", seed=0, subsamples=10)
    assert np.array_equal(again.weights, found.weights)


@pytest.mark.parametrize("method", ["ising", "l1-pseudo-likelihood"])
def test_stability_selection_keeps_edges_that_halves_repeat(method):
    rows = ising_rows(CHAIN[:5], 1500, 6, 3, coupling=0.6)
    options = {
        "method": method,
        "choose": "stability",
        "seed": 0,
        "subsamples": 10,
        "pi": 0.95,
        "n_alphas": 10,
    }
    found = mk.learn_structure(rows, **options)
    assert set(found.edges) == named(CHAIN[:5])
    frequencies = found.details.choice.frequencies
    assert np.triu(frequencies >= 0.95).sum() == 5
    assert found.details.choice.false_edges_bound == pytest.approx(
        found.details.choice.selected**2 / (0.9 * 15)
    )
    strict = mk.learn_structure(rows, false_edges=0.1, **options)
    assert strict.details.choice.false_edges_bound <= 0.1
    assert set(strict.edges) <= named(CHAIN[:5])
    again = mk.learn_structure(rows, **options)
    assert np.array_equal(again.weights, found.weights)


def test_supports_that_separate_the_states_are_fitted_again_without_end():
    """A copy of a column predicts it without error: the likelihood tends to one, and the criterion stays finite."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 300)
    rows = {"a": a, "b": a, "c": rng.integers(0, 2, 300)}
    for method in ("ising", "l1-pseudo-likelihood"):
        found = mk.learn_structure(rows, method=method)
        assert found.edges == [("a", "b")]
        assert np.isfinite(found.weights).all()


@pytest.mark.parametrize("field", [0.0, 0.3])
def test_a_spins_conditional_is_logistic_in_both_codings(field):
    """In -1, +1: logistic(2 x_k (theta_k + theta x)); in 0, 1: logistic((2 x_k - 1)(theta_k + theta x))."""
    rng = np.random.default_rng(4)
    states = np.array(np.meshgrid(*[[-1, 1]] * 4, indexing="ij")).reshape(4, -1)
    couplings = np.triu(rng.normal(size=(4, 4)), 1)
    couplings = couplings + couplings.T
    own = field * rng.normal(size=4)

    def conditional(codes):
        energy = own @ codes + 0.5 * np.einsum("is,ij,js->s", codes, couplings, codes)
        p = np.exp(energy)
        joint = p.reshape(2, 2, 2, 2)
        return (joint / joint.sum(axis=1, keepdims=True)).ravel()  # of the second spin

    pull = own[1] + couplings[1] @ states
    assert np.allclose(conditional(states), 1 / (1 + np.exp(-2 * states[1] * pull)))
    zero_one = (states + 1) // 2
    pull = own[1] + couplings[1] @ zero_one
    assert np.allclose(conditional(zero_one), 1 / (1 + np.exp(-(2 * zero_one[1] - 1) * pull)))


def test_codes_do_not_matter_to_the_graph():
    rows = ising_rows(GRID, 2000, 6, 5)
    plain = mk.learn_structure(rows, method="ising")
    signs = mk.learn_structure({k: 2 * v - 1 for k, v in rows.items()}, method="ising")
    words = mk.learn_structure({k: np.where(v == 1, "yes", "no") for k, v in rows.items()}, method="ising")
    assert plain.edges == signs.edges == words.edges
    assert np.allclose(plain.weights, signs.weights)
    assert np.allclose(plain.weights, words.weights)


def test_a_large_penalty_gives_the_strongest_part_of_the_best_tree():
    """Rain on consecutive days: with falling penalties edges of the chain come in first, and the best tree is the chain."""
    rng = np.random.default_rng(6)
    days = np.zeros((1500, 7), dtype=int)
    days[:, 0] = rng.random(1500) < 0.4
    for d in range(1, 7):
        days[:, d] = rng.random(1500) < np.where(days[:, d - 1] == 1, 0.68, 0.25)
    rows = {f"x{d}": days[:, d] for d in range(7)}
    tree = mk.learn_structure(rows, method="chow-liu")
    assert {tuple(sorted(e)) for e in tree.edges} == named(CHAIN)
    first = mk.learn_structure(rows, method="l1-pseudo-likelihood", choose="ebic")
    top = first.details.choice.penalties[0]
    counts = []
    for share in (0.9, 0.5, 0.02):
        found = mk.learn_structure(rows, method="l1-pseudo-likelihood", alpha=share * top)
        counts.append(found.n_edges)
        if share >= 0.5:
            assert set(found.edges) <= named(CHAIN)
    assert counts == sorted(counts)
    assert counts[-1] > 6
    assert set(first.edges) == named(CHAIN)


def test_potts_lattices_have_edges_between_neighbouring_pixels():
    """Three states on a lattice, drawn by sweeps of Gibbs sampling: group L1 joins neighbours."""
    rng = np.random.default_rng(7)
    side, n = 3, 1500
    pixels = rng.integers(0, 3, (n, side, side))
    padded = np.full((n, side + 2, side + 2), -1)
    for _ in range(60):
        for i in range(side):
            for j in range(side):
                padded[:, 1:-1, 1:-1] = pixels
                near = [
                    padded[:, i, j + 1],
                    padded[:, i + 2, j + 1],
                    padded[:, i + 1, j],
                    padded[:, i + 1, j + 2],
                ]
                energy = 0.7 * sum((np.arange(3) == v[:, None]) for v in near)
                noise = rng.gumbel(size=(n, 3))
                pixels[:, i, j] = (energy + noise).argmax(axis=1)
    rows = {f"x{k}": pixels.reshape(n, -1)[:, k] for k in range(9)}
    found = mk.learn_structure(rows, method="l1-pseudo-likelihood")
    true = {(k, m) for k in range(9) for m in range(k + 1, 9) if (m - k == 1 and m % side) or m - k == side}
    assert set(found.edges) == named(true)
    assert found.details.kkt <= 1e-6


@pytest.mark.parametrize(
    ("method", "options"),
    [("ising", {}), ("ising", {"choose": "stars"}), ("l1-pseudo-likelihood", {}),
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


def pairwise(seed, cards=(2, 3, 2), n=30, basis="contrasts"):
    rng = np.random.default_rng(seed)
    cards = np.array(cards)
    codes = np.array([rng.integers(0, c, n) for c in cards])
    weights = rng.uniform(0.5, 2, n)
    pairs = [(i, j) for i in range(len(cards)) for j in range(i + 1, len(cards))]
    field = PairwiseField(codes, cards, weights / weights.sum(), pairs, basis)
    return field, codes, cards, weights, pairs, rng


@pytest.mark.parametrize("basis", ["contrasts", "entries"])
@pytest.mark.parametrize("cards", [(2, 2, 2), (2, 3, 4), (3, 3, 3)])
def test_the_pairwise_loss_is_the_pseudo_likelihood_and_its_derivatives_are_right(basis, cards):
    field, codes, cards, weights, pairs, rng = pairwise(0, cards, basis=basis)
    point = rng.normal(size=field.n_weights)
    value, slope = field(point)
    assert np.allclose(slope, approx_fprime(point, lambda w: field(w)[0], 1e-7), atol=1e-5)
    live = np.array([2, 0])
    kept = field.curvature(point, live).toarray()
    field.kept = None
    bend = field.curvature(point, live).toarray()
    assert np.allclose(kept, bend)
    places = [
        *range(field.n_single),
        *range(field.starts[2], field.starts[3]),
        *range(field.starts[0], field.starts[1]),
    ]
    steps = np.eye(field.n_weights) * 1e-5
    wanted = np.array([(field(point + d)[1] - field(point - d)[1]) / 2e-5 for d in steps])[
        np.ix_(places, places)
    ]
    assert np.allclose(bend, wanted, atol=1e-7)
    variables = [mk.Variable(f"v{i}", int(c)) for i, c in enumerate(cards)]
    factors = [mk.Factor.of([v], np.ones(len(v))) for v in variables]
    factors += [mk.Factor.of([variables[i], variables[j]], np.ones((cards[i], cards[j]))) for i, j in pairs]
    layout = layout_of_tables(factors, variables)
    rows = CodedTable(variables, codes.astype(np.int32), weights)
    columns = [field.column_table(point, i) for i in range(len(cards))]
    own = np.concatenate([*columns, *[field.table(point, k).ravel() for k in range(len(pairs))]])
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
        assert found.details.edge_tables["a", "b"].shape == (3, 3)
        assert found.details.kkt < 1e-5


def test_the_largest_penalty_leaves_no_edge_and_groups_are_all_or_nothing():
    rows = ising_rows(CHAIN[:3], 500, 4, 7)
    found = mk.learn_structure(rows, method="l1-pseudo-likelihood", choose="ebic")
    top = found.details.choice.penalties[0]
    assert mk.learn_structure(rows, method="l1-pseudo-likelihood", alpha=1.01 * top).n_edges == 0
    less = mk.learn_structure(rows, method="l1-pseudo-likelihood", alpha=0.9 * top)
    assert less.n_edges >= 1
    for table in less.details.edge_tables.values():
        assert (table != 0).all()
    steady = mk.learn_structure(
        rows, method="l1-pseudo-likelihood", choose="stars", beta=0.25, seed=0, subsamples=6
    )
    assert named(CHAIN[:3]) <= set(steady.edges)


def test_the_optimum_of_the_group_penalty_is_that_of_a_smooth_solver():
    """Away from zero the penalty is differentiable, so that L-BFGS from the solution finds nothing better."""
    from scipy.optimize import minimize

    rows = ising_rows([(0, 1), (1, 2), (0, 2)], 400, 3, 8)
    found = mk.learn_structure(rows, method="l1-pseudo-likelihood", alpha=0.02, tolerance=1e-8)
    codes = np.array([rows[f"x{i}"] for i in range(3)])
    pairs = [(0, 1), (0, 2), (1, 2)]
    field = PairwiseField(codes, np.array([2, 2, 2]), np.full(400, 1 / 400), pairs)

    def objective(w):
        return field(w)[0] + 0.02 * sum(np.linalg.norm(field.table(w, k)) for k in range(3))

    point = np.concatenate(
        [
            *[field.bases[i].T @ found.details.node_tables[f"x{i}"] for i in range(3)],
            *[
                (field.bases[i].T @ found.details.edge_tables[f"x{i}", f"x{j}"] @ field.bases[j]).ravel()
                for i, j in pairs
            ],
        ]
    )
    other = minimize(objective, point + 0.05, method="BFGS", options={"gtol": 1e-9})
    assert objective(point) == pytest.approx(other.fun, abs=1e-8)


def test_single_entries_and_whole_tables_of_two_states_are_the_same_penalty():
    """The least sum of sizes of a 2 x 2 table is twice its least norm."""
    rows = ising_rows(CHAIN[:3], 500, 4, 12)
    group = mk.learn_structure(rows, method="l1-pseudo-likelihood", alpha=0.04, tolerance=1e-8)
    single = mk.learn_structure(rows, method="l1-pseudo-likelihood", penalty="l1", alpha=0.02, tolerance=1e-8)
    assert group.edges == single.edges
    assert np.allclose(group.weights, single.weights, atol=1e-5)


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
    with pytest.raises(mk.errors.InvalidArgument, match="two states, and 'z' has 3"):
        mk.learn_structure({**rows, "z": np.arange(50) % 3}, method="ising")
    with pytest.raises(mk.errors.InvalidArgument, match="measurements"):
        mk.learn_structure({**rows, "z": np.linspace(0.1, 0.7, 50)}, method="ising")
    with pytest.raises(mk.errors.InvalidArgument, match="measurements"):
        mk.learn_structure({**rows, "z": np.linspace(0.1, 0.7, 50)}, method="l1-pseudo-likelihood")
    with pytest.raises(mk.errors.InvalidArgument, match="same state"):
        mk.learn_structure({**rows, "z": [0] * 50}, states={"z": 2}, method="ising")
    with pytest.raises(mk.errors.InvalidArgument, match="whole numbers"):
        mk.learn_structure(rows, method="ising", choose="stability", weights=np.full(50, 0.3))
    with pytest.raises(mk.errors.InvalidArgument, match="field="):
        mk.learn_structure(rows, method="ising", field="big")
    with pytest.raises(mk.errors.InvalidArgument, match="penalty="):
        mk.learn_structure(rows, method="l1-pseudo-likelihood", penalty="l2")
    with pytest.raises(mk.errors.InvalidArgument, match="not both"):
        mk.learn_structure(rows, method="ising", alpha=0.1, choose="ebic")
