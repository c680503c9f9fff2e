"""Pseudo-likelihood: its value and slope by definition, where it equals the likelihood, and what it recovers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.data.tables.row_sources import CodedTable
from markovia.factors.potentials.log_linear import Feature, LogLinear, general_pairwise_features
from markovia.factors.tables.variable import Variable
from markovia.kernels.compiled_code import preferred
from markovia.learning.fields import pseudo_likelihood as module
from markovia.learning.fields.field_layout import layout_of_features
from markovia.learning.fields.pseudo_likelihood import PseudoLikelihood


def random_case(seed, n_rows=30, most=5):
    """Return features over one to three variables, weights, and coded rows with row weights."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, most + 1))
    v = [Variable(f"x{i}", int(rng.integers(2, 4))) for i in range(n)]
    features = [Feature(x, rng.normal(size=len(x))) for x in v]
    for _ in range(int(rng.integers(1, 7))):
        some = [v[i] for i in rng.permutation(n)[: int(rng.integers(2, min(n, 3) + 1))]]
        features.append(Feature(some, rng.normal(size=[len(x) for x in some])))
    codes = np.array([rng.integers(0, len(x), size=n_rows) for x in v], dtype=np.int8)
    weights = rng.random(n_rows) * 2 if rng.random() < 0.5 else None
    return v, features, rng.normal(size=len(features)), CodedTable(v, codes, weights)


def by_definition(v, features, w, data):
    """Return the mean negative log of the product of full conditionals, from the joint table."""
    logs = LogLinear(features, w).joint().transpose([x.name for x in v]).log_values
    weights = np.ones(data.n_rows) if data.weights is None else data.weights
    total = 0.0
    for r in range(data.n_rows):
        x = tuple(int(c) for c in data.codes[:, r])
        for i in range(len(v)):
            line = logs[(*x[:i], slice(None), *x[i + 1 :])]
            total += weights[r] * (np.log(np.exp(line - line.max()).sum()) + line.max() - line[x[i]])
    return total / weights.sum()


@given(st.integers(0, 10**6), st.booleans())
@settings(max_examples=30, deadline=None)
def test_value_and_slope_are_those_of_the_definition_with_cases_and_without(seed, by_cases):
    v, features, w, data = random_case(seed, n_rows=30 if by_cases else 2)
    kept = module.FEW_STATES
    module.FEW_STATES = 1 << 20 if by_cases else 0
    try:
        loss = PseudoLikelihood(layout_of_features(features, v), data)
    finally:
        module.FEW_STATES = kept
    alone = np.diff(loss.layout.neighbours[0]) == 0
    assert len(loss._direct) == (0 if by_cases else np.count_nonzero(~alone))
    value, slope = loss(w)
    assert value == pytest.approx(by_definition(v, features, w, data), rel=1e-10)
    h = 1e-5
    numeric = [(loss(w + d)[0] - loss(w - d)[0]) / (2 * h) for d in h * np.eye(len(w))]
    np.testing.assert_allclose(slope, numeric, atol=1e-7)


def test_counting_by_cases_and_going_through_the_rows_give_the_same_numbers():
    v, features, w, data = random_case(11, n_rows=500, most=5)
    layout = layout_of_features(features, v)
    counted = PseudoLikelihood(layout, data)
    assert not len(counted._direct)
    direct = PseudoLikelihood.__new__(PseudoLikelihood)
    direct.__dict__.update(counted.__dict__)
    direct._direct = np.arange(len(v))
    direct._tasks = [(False, 0, len(v))]
    np.testing.assert_allclose(direct(w)[0], counted(w)[0], rtol=1e-12)
    np.testing.assert_allclose(direct(w)[1], counted(w)[1], atol=1e-12)


def test_variables_with_many_neighbours_are_not_counted_by_cases():
    rng = np.random.default_rng(0)
    v = [Variable(f"x{i}", 2) for i in range(12)]
    hub = [Feature([v[0], x], np.eye(2)) for x in v[1:]]
    layout = layout_of_features(hub, v)
    data = CodedTable(v, rng.integers(0, 2, size=(12, 50)).astype(np.int8))
    loss = PseudoLikelihood(layout, data)
    assert loss._direct.tolist() == [0]
    w = rng.normal(size=11)
    assert loss(w)[0] == pytest.approx(by_definition(v, hub, w, data), rel=1e-10)


def test_it_is_convex():
    v, features, _, data = random_case(4)
    loss = PseudoLikelihood(layout_of_features(features, v), data)
    rng = np.random.default_rng(1)
    h = 1e-5
    for _ in range(5):
        w = rng.normal(size=len(features))
        hessian = np.array([(loss(w + d)[1] - loss(w - d)[1]) / (2 * h) for d in h * np.eye(len(w))])
        assert np.linalg.eigvalsh((hessian + hessian.T) / 2).min() > -1e-6


def test_it_is_the_likelihood_where_variables_are_independent():
    rng = np.random.default_rng(2)
    rows = {f"x{i}": rng.integers(0, 3, size=200) for i in range(4)}
    mn = mk.MarkovNetwork(dict.fromkeys(rows, 3), [mk.Factor([n], np.ones(3)) for n in rows])
    exact, pseudo = mn.copy().fit(rows, method="exact"), mn.copy().fit(rows, method="pseudo-likelihood")
    assert pseudo.fit_.log_likelihood == pytest.approx(exact.fit_.log_likelihood, abs=1e-6)
    assert pseudo.fit_.details["pseudo_log_likelihood"] == pytest.approx(pseudo.fit_.log_likelihood, abs=1e-6)
    for n in rows:
        np.testing.assert_allclose(pseudo.query(n).values, np.bincount(rows[n]) / 200, atol=1e-5)


def test_it_is_consistent_on_a_small_ising_model():
    rng = np.random.default_rng(7)
    right = [(f"x{i}{j}", f"x{i}{j + 1}") for i in range(3) for j in range(2)]
    grid = right + [(f"x{i}{j}", f"x{i + 1}{j}") for i in range(2) for j in range(3)]
    couplings = {e: float(rng.normal(0, 0.4)) for e in grid}
    fields = {f"x{i}{j}": float(rng.normal(0, 0.3)) for i in range(3) for j in range(3)}
    mn = mk.MarkovNetwork.ising(couplings, fields)
    n = 40_000
    data = mn.sample(n, seed=1)
    features = [Feature(mn.variable(x), [-1.0, 1.0]) for x in fields]
    features += [Feature([mn.variable(a), mn.variable(b)], [[1.0, -1.0], [-1.0, 1.0]]) for a, b in couplings]
    truth = np.array([*fields.values(), *couplings.values()])
    found = mk.fit_log_linear(features, data, method="pseudo-likelihood")
    assert found.converged
    assert np.abs(found.weights - truth).max() < 6 / np.sqrt(n)
    exact = mk.fit_log_linear(features, data, method="exact")
    assert exact.log_likelihood >= found.log_likelihood
    assert exact.log_likelihood - found.log_likelihood < 20


@pytest.mark.slow
def test_stochastic_gradients_look_at_a_few_rows_a_step():
    v, features, w, data = random_case(21, n_rows=400)
    data = CodedTable(v, data.codes)
    loss = PseudoLikelihood(layout_of_features(features, v), data)
    rows = np.array([3, 17, 17, 200])
    value, slope = loss.of_rows(w, rows)
    some = PseudoLikelihood(loss.layout, CodedTable(v, np.ascontiguousarray(data.codes[:, rows])))
    assert value == pytest.approx(some(w)[0], rel=1e-12)
    np.testing.assert_allclose(slope, some(w)[1], atol=1e-12)
    best = mk.fit_log_linear(features, data, method="pseudo-likelihood", l2=5.0)
    found = mk.fit_log_linear(features, data, method="pseudo-likelihood", optimizer="sgd", seed=1, l2=5.0)
    assert np.abs(found.weights - best.weights).max() < 0.1


def test_the_weights_do_not_depend_on_the_number_of_threads(monkeypatch):
    rng = np.random.default_rng(0)
    grid = mk.generators.ising_grid(30, 30, coupling=0.2)
    data = {n: rng.choice([-1, 1], size=300) for n in grid.variables}
    found = []
    for threads in ("1", "2"):
        monkeypatch.setenv("MARKOVIA_THREADS", threads)
        with preferred():  # plain code adds up in another order
            fitted = grid.copy().fit(data, method="pseudo-likelihood", l2=1.0)
        found.append(fitted.fit_.details["fit"].weights)
    np.testing.assert_array_equal(found[0], found[1])


def test_entries_that_no_row_shows_become_zero():
    v = [Variable("a", 2), Variable("b", 2), Variable("c", 2)]
    rows = {"a": [0, 0, 1, 1, 1], "b": [0, 1, 1, 1, 1], "c": [0, 1, 1, 0, 1]}
    mn = mk.MarkovNetwork(v, [mk.Factor(["a", "b"], np.ones((2, 2))), mk.Factor(["b", "c"], np.ones((2, 2)))])
    mn.fit(rows, method="pseudo-likelihood")
    assert mn.fit_.converged
    assert mn.query(["a", "b"])[1, 0] == 0.0
    full = mk.MarkovNetwork.log_linear(
        LogLinear(general_pairwise_features(v, [("a", "b"), ("b", "c")]), np.zeros(14))
    )
    full.fit(rows, method="pseudo-likelihood", l2=0.5)
    assert full.query(["a", "b"])[1, 0] > 0.0
