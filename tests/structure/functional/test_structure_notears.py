"""NOTEARS, linear and with perceptrons; the measure of acyclicity and the way from weights to graphs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

import markovia as mk
from markovia.runtime.clock import Clock
from markovia.structure.functional.augmented_lagrangian import minimise_acyclic
from markovia.structure.functional.notears import logistic, squares
from markovia.structure.functional.notears_mlp import perceptrons
from markovia.structure.task.acyclicity import (
    acyclic_edges,
    acyclicity,
    is_acyclic,
    varsortability,
)
from markovia.structure.task.knowledge import Knowledge


def random_dag(rng, d, edges_a_node=1.0):
    below = np.tril(rng.random((d, d)) < 2 * edges_a_node / (d - 1), -1)
    order = rng.permutation(d)
    return below[np.ix_(order, order)]


def linear_rows(edges, rng, n):
    d = len(edges)
    weights = edges * rng.uniform(0.5, 2.0, (d, d)) * rng.choice([-1, 1], (d, d))
    return weights, rng.normal(size=(n, d)) @ np.linalg.inv(np.eye(d) - weights)


def edges_of(found):
    place = {name: i for i, name in enumerate(found.nodes)}
    edges = np.zeros((len(place), len(place)), dtype=bool)
    for a, b in found.edges:
        edges[place[a], place[b]] = True
    return edges


def shd(a, b):
    """Count the pairs that differ."""
    differ = (a != b) | (a != b).T
    return int(np.triu(differ).sum())


def slopes(function, theta, step=1e-6):
    return np.array(
        [(function(theta + h) - function(theta - h)) / (2 * step) for h in step * np.eye(len(theta))]
    )


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_h_is_zero_exactly_for_acyclic_graphs_and_its_gradient_is_right(seed):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(4, 4)) * (rng.random((4, 4)) < 0.4)
    np.fill_diagonal(weights, 0)
    h, gradient = acyclicity(weights)
    assert h == pytest.approx(np.trace(expm(weights * weights)) - 4)
    assert (h < 1e-9) == is_acyclic(weights != 0)
    numeric = slopes(lambda w: acyclicity(w.reshape(4, 4))[0], weights.ravel())
    np.testing.assert_allclose(gradient.ravel(), numeric, rtol=1e-4, atol=1e-5)


@given(st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_gradients_of_the_objectives_are_those_of_finite_differences(seed):
    rng = np.random.default_rng(seed)
    d, n, hidden = 3, 20, 2
    rows = rng.normal(size=(n, d))
    penalty = rng.random((d, d))
    for objective, size in (
        (squares(rows.T @ rows / n, penalty), 2 * d * d),
        (logistic((rows > 0).astype(float), penalty), 2 * d * d + d),
        (
            perceptrons(rows, hidden, rng.random((d, hidden, d)), 0.03),
            2 * d * hidden * d + 2 * d * hidden + d,
        ),
    ):
        theta = rng.random(size)
        _, slope, _, turn = objective(theta)
        np.testing.assert_allclose(slope, slopes(lambda t, f=objective: f(t)[0], theta), atol=1e-6)
        np.testing.assert_allclose(turn, slopes(lambda t, f=objective: f(t)[2], theta), rtol=1e-4, atol=1e-4)


def test_objectives_are_what_they_say():
    rng = np.random.default_rng(0)
    rows, weights = rng.normal(size=(30, 3)), np.triu(rng.normal(size=(3, 3)), 1)
    theta = np.concatenate([np.maximum(weights, 0).ravel(), np.maximum(-weights, 0).ravel()])
    expected = 0.5 / 30 * ((rows - rows @ weights) ** 2).sum() + 0.1 * np.abs(weights).sum()
    assert squares(rows.T @ rows / 30, np.full((3, 3), 0.1))(theta)[0] == pytest.approx(expected)
    layer, out = rng.normal(size=(3, 4, 3)), rng.normal(size=(3, 4))
    shift, constants = rng.normal(size=(3, 4)), rng.normal(size=3)
    theta = np.concatenate(
        [np.maximum(layer, 0).ravel(), np.maximum(-layer, 0).ravel(), shift.ravel(), out.ravel(), constants]
    )
    fitted = np.column_stack(
        [
            (out[j] / (1 + np.exp(-(rows @ layer[j].T + shift[j])))).sum(axis=1) + constants[j]
            for j in range(3)
        ]
    )
    expected = 0.5 / 30 * ((rows - fitted) ** 2).sum() + 0.02 * np.abs(layer).sum()
    expected += 0.5 * 0.03 * ((layer**2).sum() + (out**2).sum())
    found = perceptrons(rows, 4, np.full((3, 4, 3), 0.02), 0.03)(theta)
    assert found[0] == pytest.approx(expected)
    assert found[2] == pytest.approx(np.trace(expm((layer**2).sum(axis=1).T)) - 3)


def test_linear_models_are_recovered_but_for_one_edge_in_three_graphs():
    wrong = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        edges = random_dag(rng, 8)
        weights, rows = linear_rows(edges, rng, 1000)
        found = mk.learn_structure(rows, "notears", lambda1=0.05)
        wrong += shd(edges_of(found), edges)
        shared = edges_of(found) & edges
        np.testing.assert_array_equal(np.sign(found.weights[shared]), np.sign(weights[shared]))
        assert found.details.h <= 1e-8
        assert found.path[-1].score == pytest.approx(found.score)
        assert any("varsortability" in note for note in found.notes)
    assert wrong <= 1


@pytest.mark.slow
def test_nonlinear_models_are_recovered_far_better_than_by_lines():
    edges = np.zeros((4, 4), dtype=bool)
    edges[2, 0] = edges[2, 1] = edges[3, 1] = True
    mlp = line = 0
    for seed in range(3):
        rows = np.random.default_rng(seed).normal(size=(400, 4))
        for child in (0, 1):
            for parent in np.flatnonzero(edges[:, child]):
                rows[:, child] += 2 * np.cos(rows[:, parent] + 0.3)
        found = mk.learn_structure(
            rows, "notears-mlp", hidden=8, seed=0, h_tolerance=1e-6, inner_iterations=200
        )
        assert (found.weights >= 0).all()
        assert found.details.h <= 1e-6
        assert not (edges & ~edges_of(found)).any()
        mlp += shd(edges_of(found), edges)
        line += shd(edges_of(mk.learn_structure(rows, "notears")), edges)
    assert mlp <= 3
    assert line >= 9


def test_restarts_keep_the_lowest_objective():
    rng = np.random.default_rng(0)
    _, rows = linear_rows(random_dag(rng, 4), rng, 100)
    short = {"hidden": 2, "h_tolerance": 1e-3, "inner_iterations": 60}
    one = mk.learn_structure(rows, "notears-mlp", seed=3, **short)
    more = mk.learn_structure(rows, "notears-mlp", seed=3, restarts=2, **short)
    assert more.details.objectives[0] == pytest.approx(one.details.objectives[0])
    assert len(more.details.objectives) == 3
    assert -more.score == pytest.approx(min(more.details.objectives))


def test_binary_cells_are_fitted_by_logistic_regressions():
    rng = np.random.default_rng(0)
    n = 4000
    a = rng.random(n) < 0.3
    b = rng.random(n) < 1 / (1 + np.exp(-(3.0 * a - 1)))
    c = rng.random(n) < 0.6
    rows = np.column_stack([a, b, c]).astype(float)
    found = mk.learn_structure(rows, "notears", loss="logistic", lambda1=0.02)
    assert found.skeleton.edges == [("x0", "x1")]
    free = mk.learn_structure(rows, "notears", loss="logistic", lambda1=0.0, tiers=[["x0"], ["x1"], ["x2"]])
    odds = np.log(b[a].mean() / (1 - b[a].mean())) - np.log(b[~a].mean() / (1 - b[~a].mean()))
    assert free.details.W[0, 1] == pytest.approx(odds, abs=0.01)
    assert free.details.constants[0] == pytest.approx(np.log(a.mean() / (1 - a.mean())), abs=0.01)


def test_with_a_known_order_and_no_penalty_it_is_least_squares():
    rng = np.random.default_rng(0)
    _, rows = linear_rows(random_dag(rng, 4, 1.5), rng, 300)
    found = mk.learn_structure(
        rows, "notears", lambda1=0.0, threshold=0.0, tiers=[["x2"], ["x0"], ["x3"], ["x1"]]
    )
    centred = rows - rows.mean(axis=0)
    for child, before in ((0, [2]), (3, [2, 0]), (1, [2, 0, 3])):
        expected = np.linalg.lstsq(centred[:, before], centred[:, child], rcond=None)[0]
        np.testing.assert_allclose(found.weights[before, child], expected, atol=1e-4)


@pytest.mark.parametrize(
    ("method", "options"),
    [("notears", {}), ("notears-mlp", {"hidden": 2, "h_tolerance": 1e-3, "inner_iterations": 60})],
)
def test_rules_are_obeyed(method, options):
    rng = np.random.default_rng(1)
    edges = np.zeros((4, 4), dtype=bool)
    edges[0, 1] = edges[1, 2] = edges[0, 2] = edges[1, 3] = edges[2, 3] = True
    _, rows = linear_rows(edges, rng, 300)
    known = {"required": [("x3", "x0")], "forbidden": [("x1", "x2"), ("x2", "x1")], "max_parents": 1}
    found = mk.learn_structure(rows, method, seed=0, **known, **options)
    assert ("x3", "x0") in found.edges
    assert not found.skeleton.has_edge("x1", "x2")
    assert max(len(found.dag.parents(n)) for n in found.nodes) <= 1
    assert found.details.W[1, 2] == found.details.W[2, 1] == found.details.W[0, 3] == 0
    high = mk.learn_structure(rows, method, seed=0, required=[("x0", "x1")], threshold=1e6, **options)
    assert high.edges == [("x0", "x1")]


def test_standardising_takes_the_scale_away():
    rng = np.random.default_rng(0)
    _, rows = linear_rows(random_dag(rng, 6), rng, 500)
    scaled = rows * np.array([1, 10, 0.1, 5, 3, 0.01])
    a = mk.learn_structure(rows, "notears", standardise=True, threshold=0.1)
    b = mk.learn_structure(scaled, "notears", standardise=True, threshold=0.1)
    np.testing.assert_allclose(a.weights, b.weights, atol=1e-3)
    assert not any("varsortability" in note for note in a.notes)


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_thresholds_rise_just_until_no_cycle_is_left(seed):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(5, 5))
    np.fill_diagonal(weights, 0)
    rules = Knowledge(required=[("a", "b"), ("b", "c")], max_parents=int(rng.integers(2, 5))).rules("abcde")
    found = acyclic_edges(weights, rules, 0.2, "abcde")
    assert is_acyclic(found.edges)
    assert found.edges[0, 1]
    assert found.edges[1, 2]
    assert found.edges.sum(axis=0).max() <= rules.max_parents
    sizes = np.abs(weights)
    free = ~rules.required & rules.allowed
    free[1, 0] = free[2, 1] = free[2, 0] = False
    levels = [0.2, *np.sort(sizes[free & (sizes >= 0.2)])]
    least = next(t for t in [*levels, np.inf] if is_acyclic((free & (sizes >= t)) | rules.required))
    if np.isfinite(least):
        assert found.threshold == pytest.approx(least)
    kept = free & (sizes >= least)
    assert (found.edges & ~rules.required & ~kept).sum() == 0
    if rules.max_parents == 4:
        assert (found.edges == (kept | rules.required)).all()


def test_varsortability_is_one_where_variance_grows_and_half_where_it_is_the_same():
    edges = np.triu(np.ones((4, 4), dtype=bool), 1)
    assert varsortability(edges, np.array([1.0, 2, 3, 4])) == 1
    assert varsortability(edges, np.array([4.0, 3, 2, 1])) == 0
    assert varsortability(edges, np.ones(4)) == 0.5
    assert np.isnan(varsortability(np.zeros((4, 4), dtype=bool), np.ones(4)))


def test_the_series_of_problems_solves_a_problem_with_a_known_answer():
    def objective(theta):  # nearest point to (1.2, 1) with xy = 0, h = (xy)²
        x, y = theta
        slope = np.array([x - 1.2, y - 1.0])
        return 0.5 * float(slope @ slope), slope, (x * y) ** 2, 2 * x * y * np.array([y, x])

    bounds = np.array([[0.0, np.inf], [0.0, np.inf]])
    with Clock(progress=False) as clock:
        end = minimise_acyclic(
            objective,
            np.array([1.2, 1.0]),
            bounds,
            clock,
            max_iterations=100,
            h_tolerance=1e-10,
            rho_max=1e16,
            inner_iterations=500,
        )
    assert end.converged
    np.testing.assert_allclose(end.theta, [1.2, 0.0], atol=1e-3)


@pytest.mark.parametrize("method", ["notears", "notears-mlp"])
def test_a_time_limit_still_gives_an_acyclic_graph(method):
    rng = np.random.default_rng(0)
    _, rows = linear_rows(random_dag(rng, 8), rng, 300)
    found = mk.learn_structure(rows, method, time_limit=0.05, seed=0)
    assert found.stopped == "time limit"
    assert is_acyclic(edges_of(found))


def test_wrong_data_and_options_are_refused():
    rows = np.random.default_rng(0).normal(size=(30, 2))
    for options, message in (
        ({"loss": "x"}, "loss="),
        ({"loss": "logistic"}, "cells 0 and 1"),
        ({"lambda1": -1}, "lambda1="),
        ({"threshold": "a"}, "threshold="),
        ({"weights": np.ones(30)}, "weights"),
    ):
        with pytest.raises(mk.errors.InvalidArgument, match=message):
            mk.learn_structure(rows, "notears", **options)
    with pytest.raises(mk.errors.InvalidArgument, match="standardise="):
        mk.learn_structure((rows > 0).astype(float), "notears", loss="logistic", standardise=True)
    with pytest.raises(mk.errors.InvalidArgument, match="hidden="):
        mk.learn_structure(rows, "notears-mlp", hidden=0)
