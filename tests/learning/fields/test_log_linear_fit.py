"""Maximum likelihood of log-linear models: gradients, penalties, worked numbers, errors."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.factors.potentials.log_linear import (
    Feature,
    LogLinear,
    general_pairwise_features,
    ising_features,
)
from markovia.factors.tables.variable import Variable
from markovia.learning.fields import exact_expectations as exact_module
from markovia.learning.fields.approximate_expectations import ApproximateExpectations
from markovia.learning.fields.exact_expectations import TreeExpectations, WrittenOut, exact_expectations
from markovia.learning.fields.field_layout import layout_of_features, layout_of_tables
from markovia.learning.fields.identifiability import identifiability_of
from markovia.learning.fields.log_linear_fit import likelihood
from markovia.learning.fields.penalties import read_penalty


def random_features(rng, most=5, tied=True):
    """Return features of one, two and three variables with two or three states, some of them tied."""
    n = int(rng.integers(2, most + 1))
    v = [Variable(f"x{i}", int(rng.integers(2, 4))) for i in range(n)]
    features = [Feature(x, rng.normal(size=len(x))) for x in v]
    for _ in range(int(rng.integers(1, 6))):
        some = [v[i] for i in rng.permutation(n)[: int(rng.integers(2, min(n, 3) + 1))]]
        features.append(Feature(some, rng.normal(size=[len(x) for x in some])))
    if tied:
        pairs = [(v[i], v[i + 1]) for i in range(n - 1)]
        features.append(Feature.tied([Feature([b, a], rng.normal(size=(len(b), len(a)))) for a, b in pairs]))
    return features


def on_tree(layout, indexed=exact_module.INDEXED):
    """Return expectations on a junction tree, however small the model is."""
    kept = exact_module.WRITTEN_OUT, exact_module.INDEXED
    exact_module.WRITTEN_OUT, exact_module.INDEXED = 0, indexed
    try:
        found = exact_expectations(layout)
    finally:
        exact_module.WRITTEN_OUT, exact_module.INDEXED = kept
    assert isinstance(found, TreeExpectations)
    return found


def chain_rows(n=4000, seed=0):
    """Return a small Ising chain, its features and rows drawn from it."""
    couplings = {("a", "b"): 0.6, ("b", "c"): -0.4, ("c", "d"): 0.8}
    mn = mk.MarkovNetwork.ising(couplings, {"a": 0.3, "d": -0.2})
    return mn, mn.sample(n, seed=seed)


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_log_z_and_expected_features_agree_with_the_joint_table_in_all_exact_ways(seed):
    rng = np.random.default_rng(seed)
    features = random_features(rng)
    layout = layout_of_features(features)
    w = rng.normal(size=len(features))
    model = LogLinear(features, w)
    joint = model.joint()
    for found in (WrittenOut(layout), on_tree(layout), on_tree(layout, 0)):
        log_z, marginals = found(layout.log_tables(w))
        assert log_z == pytest.approx(np.log(joint.total), abs=1e-9)
        np.testing.assert_allclose(layout.features(marginals), model.expected_features(joint), atol=1e-9)


def test_numbers_beyond_doubles_go_through_logarithms():
    v = [Variable(f"x{i}", 2) for i in range(4)]
    features = [Feature([a, b], np.eye(2)) for a, b in itertools.pairwise(v)] + [Feature(v[0], [0.0, 1.0])]
    layout = layout_of_features(features)
    w = np.array([900.0, 850.0, -800.0, -700.0])
    exact = WrittenOut(layout)(layout.log_tables(w))
    tree = on_tree(layout)
    found = tree(layout.log_tables(w))
    assert found[0] == pytest.approx(exact[0], rel=1e-12)
    np.testing.assert_allclose(found[1], exact[1], atol=1e-12)
    logs = tree._in_logs(layout.log_tables(w))
    assert logs[0] == pytest.approx(exact[0], rel=1e-12)
    np.testing.assert_allclose(logs[1], exact[1], atol=1e-12)


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_the_gradient_is_that_of_finite_differences_and_the_hessian_the_covariance_of_the_features(seed):
    rng = np.random.default_rng(seed)
    features = random_features(rng, most=4)
    layout = layout_of_features(features)
    written = WrittenOut(layout)
    weights = rng.dirichlet(np.ones(written.cells.shape[1]))
    observed = np.bincount(
        written.cells.ravel(), np.broadcast_to(weights, written.cells.shape).ravel(), minlength=layout.n_cells
    )
    loss = likelihood(layout, written, observed)
    w = rng.normal(size=len(features))
    _, slope = loss(w)
    h = 1e-5
    steps = h * np.eye(len(w))
    numeric = np.array([(loss(w + d)[0] - loss(w - d)[0]) / (2 * h) for d in steps])
    np.testing.assert_allclose(slope, numeric, atol=1e-7)
    hessian = np.array([(loss(w + d)[1] - loss(w - d)[1]) / (2 * h) for d in steps])
    p, _ = written.distribution(layout.log_tables(w))
    values = np.array([[0.0]]) + sum(
        layout.design.toarray()[row] for row in written.cells
    )  # F of every configuration
    mean = p @ values
    covariance = (values - mean).T @ ((values - mean) * p[:, None])
    np.testing.assert_allclose(hessian, covariance, atol=1e-6)
    assert np.linalg.eigvalsh(covariance).min() > -1e-9


def test_the_gradient_of_log_z_is_that_of_automatic_differentiation():
    jax = pytest.importorskip("jax")
    rng = np.random.default_rng(5)
    features = random_features(rng)
    layout = layout_of_features(features)
    cells, design, w = WrittenOut(layout).cells, layout.design.toarray(), rng.normal(size=len(features))
    with jax.enable_x64(True):
        import jax.numpy as jnp

        slope = jax.grad(lambda u: jax.scipy.special.logsumexp((jnp.asarray(design) @ u)[cells].sum(axis=0)))
        by_jax = np.asarray(slope(jnp.asarray(w)))
    _, marginals = on_tree(layout)(layout.log_tables(w))
    np.testing.assert_allclose(layout.features(marginals), by_jax, atol=1e-12)


@given(st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_at_the_maximum_the_expected_features_are_those_of_the_data(seed):
    rng = np.random.default_rng(seed)
    features = random_features(rng, most=4)
    names = {v.name: v for f in features for vs, _ in f.instances for v in vs}
    rows = {n: rng.integers(0, len(v), size=400) for n, v in names.items()}
    found = mk.fit_log_linear(features, rows, method="exact", tolerance=1e-7)
    assert found.converged
    np.testing.assert_allclose(found.expected, found.observed, atol=1e-5)
    mean = np.mean(
        [
            LogLinear(features, np.ones(len(features))).feature_vector(
                {n: int(c[r]) for n, c in rows.items()}
            )
            for r in range(400)
        ],
        axis=0,
    )
    np.testing.assert_allclose(found.observed, mean, atol=1e-12)
    joint = found.network.query(list(names)).values
    by_hand = sum(np.log(joint[tuple(int(rows[n][r]) for n in names)]) for r in range(400))
    assert found.log_likelihood == pytest.approx(by_hand, rel=1e-9)
    assert all(a >= b for a, b in zip(found.history, found.history[1:], strict=False))


def test_free_tables_of_a_saturated_model_become_the_empirical_joint_with_its_zeros():
    rows = {"a": [0, 0, 0, 1, 1, 1, 1], "b": [0, 0, 1, 1, 1, 2, 2]}
    for method in ("auto", "exact", "ipf"):
        mn = mk.MarkovNetwork({"a": 2, "b": 3}, [mk.Factor(["b", "a"], np.ones((3, 2)))])
        mn.fit(rows, method=method)
        expected = np.array([[2, 1, 0], [0, 2, 2]]) / 7
        np.testing.assert_allclose(mn.query(["a", "b"]).values, expected, atol=1e-6)
        assert mn.query(["a", "b"])[0, 2] == 0.0
        assert mn.fit_.log_likelihood == pytest.approx(
            2 * np.log(2 / 7) + np.log(1 / 7) + 4 * np.log(2 / 7), abs=1e-9
        )
        assert mn.fit_.n_parameters == 5


def test_zeros_of_the_factors_stay_and_rows_that_contradict_them_are_refused():
    factors = [mk.Factor(["a", "b"], [[1, 1], [0, 1]]), mk.Factor(["b", "c"], np.ones((2, 2)))]
    mn = mk.MarkovNetwork({"a": 2, "b": 2, "c": 2}, factors)
    rows = {"a": [0, 0, 1, 0], "b": [0, 1, 1, 0], "c": [0, 1, 0, 1]}
    mn.fit(rows, l2=0.1)
    assert mn.query(["a", "b"])[1, 0] == 0.0
    before = mn.factors
    with pytest.raises(mk.errors.InvalidArgument, match="fixed at zero"):
        mn.fit({"a": [1], "b": [0], "c": [0]})
    assert all(f is g for f, g in zip(before, mn.factors, strict=True))


def test_weighted_rows_count_as_often_as_their_weight():
    _, data = chain_rows(60)
    weights = np.arange(len(data)) % 3
    repeated = data.loc[data.index.repeat(weights)]
    mn, _ = chain_rows(1)
    one = mn.copy().fit(data, weights=weights, method="exact", l2=0.5)
    other = mn.copy().fit(repeated, method="exact", l2=0.5)
    assert one.fit_.log_likelihood == pytest.approx(other.fit_.log_likelihood, rel=1e-9)
    np.testing.assert_allclose(one.fit_.details["fit"].weights, other.fit_.details["fit"].weights, atol=1e-5)


def test_loopy_propagation_learns_the_maximum_likelihood_on_a_tree():
    mn, data = chain_rows()
    exact = mn.copy().fit(data, method="exact")
    for method in ("loopy-bp", "tree-reweighted", mk.engines.LoopyBP(damping=0.1)):
        found = mn.copy().fit(data, method=method)
        assert found.fit_.log_likelihood == pytest.approx(exact.fit_.log_likelihood, abs=1e-3)


@pytest.mark.parametrize("engine", ["loopy-bp", "mean-field", "tree-reweighted"])
def test_the_marginals_of_approximate_engines_are_the_derivatives_of_their_log_z(engine):
    rng = np.random.default_rng(3)
    features = random_features(rng, most=4)
    layout = layout_of_features(features)
    w = 0.5 * rng.normal(size=len(features))
    found = ApproximateExpectations(layout, engine)
    _, marginals = found(layout.log_tables(w))
    h = 1e-5
    numeric = [
        (found(layout.log_tables(w + d))[0] - found(layout.log_tables(w - d))[0]) / (2 * h)
        for d in h * np.eye(len(w))
    ]
    np.testing.assert_allclose(layout.features(marginals), numeric, atol=1e-5)


def test_reweighted_trees_give_a_lower_bound_and_mean_field_an_upper_bound_on_the_likelihood():
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"), ("a", "c")]
    mn = mk.MarkovNetwork.ising(dict.fromkeys(edges, 0.3), {"a": 0.2})
    data = mn.sample(2000, seed=2)
    low = mn.copy().fit(data, method="tree-reweighted")
    assert low.fit_.details["bound"] == "lower"
    assert low.fit_.converged
    assert low.fit_.details["surrogate_log_likelihood"] <= low.fit_.log_likelihood + 1e-6
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", mk.errors.ConvergenceWarning
        )  # its log Z has corners where its best product changes
        high = mn.copy().fit(data, method="mean-field", l2=50.0)
    assert high.fit_.details["bound"] == "upper"
    assert high.fit_.details["surrogate_log_likelihood"] >= high.fit_.log_likelihood - 1e-6
    best = mn.copy().fit(data, method="exact")
    assert best.fit_.log_likelihood >= max(low.fit_.log_likelihood, high.fit_.log_likelihood) - 1e-6


def test_stochastic_gradients_come_near_the_maximum():
    mn, data = chain_rows()
    exact = mn.copy().fit(data, method="exact")
    found = mn.copy().fit(data, method="exact", optimizer="sgd", seed=1, max_iterations=1500)
    assert exact.fit_.log_likelihood - found.fit_.log_likelihood < 4.0
    again = mn.copy().fit(data, method="exact", optimizer="sgd", seed=1, max_iterations=1500)
    np.testing.assert_array_equal(again.fit_.details["fit"].weights, found.fit_.details["fit"].weights)


def test_an_interrupted_fit_keeps_the_best_weights_so_far(monkeypatch):
    mn, data = chain_rows(500)
    calls = []
    run = WrittenOut.__call__

    def interrupted(self, log_tables):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return run(self, log_tables)

    monkeypatch.setattr(WrittenOut, "__call__", interrupted)
    with pytest.warns(mk.errors.ConvergenceWarning):
        found = mn.copy().fit(data, method="exact")
    assert not found.fit_.converged
    assert found.fit_.details["interrupted"]
    assert -found.fit_.history[-1] * 500 == pytest.approx(found.fit_.log_likelihood)
    assert found.fit_.history[-1] < found.fit_.history[0]


# -- penalties -------------------------------------------------------------------------------------------------------------


def test_l2_leaves_the_gradient_equal_to_its_pull_with_one_number_or_one_each():
    mn, data = chain_rows(500)
    v = [mn.variable(n) for n in mn.variables]
    features = ising_features(v, mn.edges)
    n = len(data)
    plain = mk.fit_log_linear(features, data, l2=3.0, tolerance=1e-8)
    np.testing.assert_allclose(plain.gradient + 3.0 / n * plain.weights, 0.0, atol=1e-7)
    own = np.linspace(0.5, 4.0, len(features))
    each = mk.fit_log_linear(features, data, l2=own, tolerance=1e-8)
    np.testing.assert_allclose(each.gradient + own / n * each.weights, 0.0, atol=1e-7)
    named = mk.fit_log_linear(features, data, l2={"nodes": 0.5, "edges": 200.0}, tolerance=1e-8)
    own = np.array([0.5] * 8 + [200.0] * 3)
    np.testing.assert_allclose(named.gradient + own / n * named.weights, 0.0, atol=1e-7)
    assert np.abs(named.weights[8:]).max() < np.abs(plain.weights[8:]).max()


def test_l1_satisfies_its_optimality_conditions_and_drops_absent_edges():
    mn, data = chain_rows()
    v = [mn.variable(n) for n in mn.variables]
    names = sorted(mn.variables)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    features = [Feature(x, [-1.0, 1.0]) for x in v]
    features += [Feature([mn.variable(a), mn.variable(b)], [[1.0, -1.0], [-1.0, 1.0]]) for a, b in pairs]
    found = mk.fit_log_linear(features, data, l1={"edges": 250.0}, tolerance=1e-7)
    assert found.converged
    rate = np.array([0.0] * 4 + [250.0] * 6) / len(data)
    zero = found.weights == 0
    assert np.all(np.abs(found.gradient[zero]) <= rate[zero] + 1e-6)
    np.testing.assert_allclose((found.gradient + rate * np.sign(found.weights))[~zero], 0.0, atol=1e-6)
    kept = {p for p, w in zip(pairs, found.weights[4:], strict=True) if w != 0}
    assert kept == {("a", "b"), ("b", "c"), ("c", "d")}
    assert found.fit.n_parameters == np.count_nonzero(found.weights)


@pytest.mark.parametrize("method", ["exact", "pseudo-likelihood"])
def test_group_l1_sets_all_parameters_of_absent_edges_to_zero_together(method):
    mn, data = chain_rows()
    v = [mn.variable(n) for n in mn.variables]
    names = sorted(mn.variables)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    features = general_pairwise_features(v, pairs)
    found = mk.fit_log_linear(features, data, group_l1=200.0, method=method, tolerance=1e-7)
    assert found.converged
    edges = found.weights[8:].reshape(6, 4)
    slopes = found.gradient[8:].reshape(6, 4)
    norms = np.linalg.norm(edges, axis=1)
    kept = {p for p, n in zip(pairs, norms, strict=True) if n > 0}
    assert kept == {("a", "b"), ("b", "c"), ("c", "d")}
    rate = 200.0 / len(data)
    for w, g, n in zip(edges, slopes, norms, strict=True):
        if n == 0:
            assert np.linalg.norm(g) <= rate + 1e-6
        else:
            np.testing.assert_allclose(g + rate * w / n, 0.0, atol=1e-5)
    np.testing.assert_allclose(found.gradient[:8], 0.0, atol=1e-6)


def test_groups_may_be_given_and_their_shrinkage_is_the_proximal_operator():
    from scipy.optimize import minimize

    features = [Feature(Variable(f"x{i}", 2), [0.0, 1.0]) for i in range(5)]
    penalty = read_penalty(
        layout_of_features(features), 1.0, 0.0, [0.3, 0, 0.1, 0, 0], 0.7, ["p", "p", "q", None, "q"]
    )
    rng = np.random.default_rng(0)
    for _ in range(5):
        w = rng.normal(size=5) * 2
        step = 0.6
        shrunk = penalty.shrunk(w, step)

        def objective(x, w=w, step=step):
            return step * penalty.rough(x) + 0.5 * np.sum((x - w) ** 2)

        fine = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 8000}
        found = minimize(objective, shrunk + 0.01 * rng.normal(size=5), method="Nelder-Mead", options=fine)
        assert objective(shrunk) <= found.fun + 1e-9
    assert penalty.shrunk(np.array([0.1, 0.1, 0.1, 0.1, 0.1]), 1.0).tolist() == [0.0, 0.0, 0.0, 0.1, 0.0]


# -- identifiability -------------------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_free_parameters_are_the_rank_over_all_configurations(seed):
    rng = np.random.default_rng(seed)
    features = random_features(rng, most=4)
    v = {x.name: x for f in features for vs, _ in f.instances for x in vs}
    names = list(v)
    features += general_pairwise_features(v.values(), [(names[0], names[1])])
    layout = layout_of_features(features)
    written = WrittenOut(layout)
    values = sum(layout.design.toarray()[row] for row in written.cells)
    found = identifiability_of(layout)
    assert found.rank == np.linalg.matrix_rank(values - values.mean(axis=0))
    assert len(found.directions) == len(features) - found.rank
    w = rng.normal(size=len(features))
    before, _ = written.distribution(layout.log_tables(w))
    for direction in found.directions:
        after, _ = written.distribution(layout.log_tables(w + 3.0 * direction))
        np.testing.assert_allclose(after, before, atol=1e-9)


def test_general_features_of_one_edge_have_eight_parameters_and_three_free_ones():
    v = [Variable("x1", [1, 2]), Variable("x2", [1, 2])]
    found = mk.learning.identifiability(general_pairwise_features(v, [("x1", "x2")]))
    assert (found.n_weights, found.rank, found.identifiable) == (8, 3, False)
    assert "8 weights, 3 free" in str(found)
    same = mk.learning.identifiability([Feature(v, np.eye(2), "same"), Feature(v[0], [0.0, 1.0], "up")])
    assert same.identifiable
    assert same.unsettled() == []
    constant = mk.learning.identifiability(
        [Feature(v, np.ones((2, 2)), "constant"), Feature(v[0], [0.0, 1.0], "up")]
    )
    assert constant.unsettled() == ["constant"]
    rows = {"x1": [1, 2, 2], "x2": [1, 1, 2]}
    fit = mk.MarkovNetwork(v, [mk.Factor(v, np.ones((2, 2)))]).fit(rows).fit_
    assert fit.details["identifiability"].rank == 3


def test_a_large_grid_is_looked_at_without_large_matrices():
    side = 20
    v = {(i, j): Variable(f"x{i}_{j}", 2) for i in range(side) for j in range(side)}
    edges = [(a.name, v[i, j + 1].name) for (i, j), a in v.items() if j + 1 < side]
    edges += [(a.name, v[i + 1, j].name) for (i, j), a in v.items() if i + 1 < side]
    found = mk.learning.identifiability(ising_features(v.values(), edges))
    assert found.rank == side * side + len(edges)


# -- worked examples -------------------------------------------------------------------------------------------------------


def test_a_six_variable_model_has_the_textbook_numbers():
    y = [Variable(f"y{i}", [-1, 1]) for i in range(1, 7)]
    features = [
        Feature.tied(
            [Feature([a, b], lambda s, t: float(s + t > 1)) for a, b in itertools.pairwise(y)], "f1"
        ),
        Feature([y[0], y[2]], lambda s, t: -2.0 * s * t),
        Feature([y[1], y[2]], lambda s, t: s * t),
        Feature([y[2], y[3]], lambda s, t: s * t),
        Feature([y[1], y[3]], lambda s, t: float(s * t < 0)),
        Feature([y[3], y[4]], lambda s, t: 2.0 * s * t),
        Feature([y[2], y[4]], lambda s, t: -1.0 * s * t),
        Feature([y[4], y[5]], lambda s, t: float(s + t > 0)),
    ]
    theta = np.array([1, 1, 1, 2, 2, 1, -1, 1], dtype=float)
    layout = layout_of_features(features)
    log_z, marginals = on_tree(layout)(layout.log_tables(theta))
    assert log_z == pytest.approx(13.5145042490, abs=1e-9)
    assert np.exp(log_z) == pytest.approx(740073.10365, abs=1e-4)
    expected = [3.5584155, 1.8450674, 0.4466550, 0.9950337, 0.2789764, 1.9968537, -0.9945081, 0.8535767]
    np.testing.assert_allclose(layout.features(marginals), expected, atol=1e-7)
    mn = mk.MarkovNetwork.log_linear(LogLinear(features, theta))
    best = mn.map()
    assert [best[f"y{i}"] for i in range(1, 7)] == [-1, 1, 1, 1, 1, 1]
    assert -mn.energy(dict(best)) == pytest.approx(13.0)
    ones = [mn.query(f"y{i}")[1] for i in range(1, 7)]
    np.testing.assert_allclose(
        ones, [0.0704556, 0.7356655, 0.9676177, 0.9687721, 0.9690957, 0.8690288], atol=1e-7
    )
    draws = mn.sample(20_000, seed=4)
    found = mk.fit_log_linear(features, draws, method="exact")
    spread = np.array([f.std() for f in _values(features, draws)]) / np.sqrt(len(draws))
    np.testing.assert_array_less(np.abs(found.expected - expected), 5 * spread + 1e-9)
    assert found.log_likelihood >= float(np.sum(mn.log_prob(draws))) - 1e-6


def _values(features, frame):
    """Return the value of each feature in every row."""
    found = []
    for f in features:
        total = np.zeros(len(frame))
        for scope, table in f.instances:
            codes = tuple([v.index(s) for s in frame[v.name]] for v in scope)
            total += table[codes]
        found.append(total)
    return found


def rain_features(days=28):
    """Return the days without rain and the neighbouring days that are alike, both tied over a month."""
    x = [Variable(f"day{j}", [0, 1]) for j in range(1, days + 1)]
    dry = Feature.tied([Feature(v, [1.0, 0.0]) for v in x], "days without rain")
    same = Feature.tied([Feature([a, b], np.eye(2)) for a, b in itertools.pairwise(x)], "days like the last")
    return [dry, same]


def test_the_rain_chain_has_its_printed_numbers_and_its_weights_are_found_again_from_draws():
    features = rain_features()
    layout = layout_of_features(features)
    w = np.array([0.16, 0.85])
    log_z, marginals = exact_expectations(layout)(layout.log_tables(w))
    expected = layout.features(marginals)
    assert log_z == pytest.approx(35.6924, abs=1e-4)
    np.testing.assert_allclose(expected, [16.4927, 19.1029], atol=1e-4)
    assert log_z - w @ expected == pytest.approx(16.8162, abs=1e-4)
    chain = mk.MarkovNetwork.log_linear(LogLinear(features, w))
    draws = chain.sample(1059, seed=3)
    found = mk.fit_log_linear(features, draws)
    values = np.array(_values(features, draws))
    error = np.sqrt(np.diag(np.linalg.inv(np.cov(values))) / len(draws))  # inverse Fisher information
    np.testing.assert_array_less(np.abs(found.weights - w), 4 * error)
    assert -found.log_likelihood / len(draws) == pytest.approx(16.8, abs=0.25)
    assert found.fit.n_parameters == 2


# -- what is refused -------------------------------------------------------------------------------------------------------


def test_missing_cells_are_an_error_unless_their_rows_are_dropped():
    mn, data = chain_rows(200)
    holes = data.astype(object)
    holes.iloc[3, 0] = None
    with pytest.raises(mk.errors.InvalidArgument, match="1 cells are missing"):
        mn.copy().fit(holes)
    dropped = mn.copy().fit(holes, missing="drop", method="exact")
    kept = mn.copy().fit(data.drop(index=data.index[3]), method="exact")
    assert dropped.fit_.n_rows == 199
    assert dropped.fit_.missing_cells == 1
    assert dropped.fit_.log_likelihood == pytest.approx(kept.fit_.log_likelihood)


def test_wrong_arguments_are_named():
    mn, data = chain_rows(50)
    a = mn.variable("a")
    cases = [
        ({"method": "exactly"}, "did you mean 'exact'"),
        ({"optimizer": "newton"}, "optimizer= is 'auto'"),
        ({"method": "ipf", "l2": 1.0}, "free tables"),
        ({"method": "exact", "l1": 1.0, "optimizer": "lbfgs"}, "corners"),
        ({"l2": -1.0}, "not negative"),
        ({"l2": [1.0, 2.0]}, "shape"),
        ({"max_iterations": 0}, "max_iterations="),
        ({"missing": "ignore"}, "missing="),
        ({"features": [lambda x: x]}, "mk.Feature"),
        ({"features": [Feature(a, [0.0, 1.0])], "groups": ["g", "g"], "group_l1": 1.0}, "one label a weight"),
    ]
    for arguments, said in cases:
        with pytest.raises(mk.errors.InvalidArgument, match=said):
            mn.fit(data, **arguments)
    with pytest.raises(mk.errors.UnknownVariable):
        mn.fit(data, features=[Feature(Variable("z", 2), [0.0, 1.0])])
    with pytest.raises(mk.errors.InvalidArgument, match="no rows"):
        mn.fit(data.iloc[:0])
    assert mn.fit_ is None


@pytest.mark.slow
def test_a_model_too_wide_for_exact_inference_says_so_and_auto_takes_the_pseudo_likelihood():
    rng = np.random.default_rng(0)
    side = 22
    grid = mk.generators.ising_grid(side, side, coupling=0.1)
    data = {n: rng.choice(list(grid.states(n)), size=40) for n in grid.variables}
    with pytest.warns(mk.errors.ApproximateWarning, match="too wide"):
        found = grid.copy().fit(data, l2=1.0)
    assert found.fit_.method == "pseudo-likelihood"
    assert np.isnan(found.fit_.log_likelihood)
    assert found.fit_.converged


def test_weights_that_grow_without_end_warn_and_the_likelihood_is_still_near_its_supremum():
    x = Variable("x", 2)
    feature = Feature(x, [0.0, 1.0])
    with pytest.warns(mk.errors.ConvergenceWarning, match="rises for ever"):
        found = mk.fit_log_linear([feature], {"x": [1, 1, 1, 1]})
    assert found.log_likelihood > -1e-4


def test_a_factor_graph_fits_too_and_a_tied_feature_may_name_a_scope_twice_in_other_orders():
    _, data = chain_rows(300)
    scopes = [["a", "b"], ["b"], ["d", "b", "a"]]
    factors = [mk.Factor(s, np.ones([2] * len(s))) for s in scopes]
    graph = mk.FactorGraph({n: [-1, 1] for n in "abcd"}, factors)
    graph.fit(data, method="exact")
    counts = data.value_counts(["d", "b", "a"], normalize=True)
    joint = graph.query(["d", "b", "a"])
    for states, share in counts.items():
        assert joint[states] == pytest.approx(share, abs=1e-5)
    np.testing.assert_allclose(graph.query("c").values, 0.5)
    again = layout_of_tables(graph.factors, [graph.variable(n) for n in "abcd"])
    assert again.n_tables == 1
    assert again.n_weights == 14
    a, b = graph.variable("a"), graph.variable("b")
    table = np.array([[0.3, -1.0], [2.0, 0.1]])
    one = layout_of_features([Feature.tied([Feature([a, b], table), Feature([b, a], table.T)])])
    np.testing.assert_allclose(one.design.toarray()[4:, 0], 2 * table.ravel())


def test_a_failed_fit_leaves_the_model_as_it_was():
    mn, data = chain_rows(20)
    mn.fit(data, method="exact", l2=1.0)
    before, record = mn.factors, mn.fit_
    with pytest.raises(mk.MarkoviaError):
        mn.fit(data.assign(a=7))
    assert mn.fit_ is record
    assert all(f is g for f, g in zip(before, mn.factors, strict=True))
