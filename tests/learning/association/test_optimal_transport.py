"""Optimal transport against permutations, quantiles, and its own dual; Sinkhorn's plan against its optimality conditions."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

import markovia as mk
from markovia.errors import InvalidArgument, TooLarge
from markovia.learning import optimal_transport, wasserstein

P, Q = [0.5, 0.5, 0.0], [0.0, 0.25, 0.75]


def proven(found, p, q, cost):
    """The plan moves p to q, the prices break no constraint, and both say what is reported."""
    f, g = found.potentials
    top = cost.max()
    assert found.plan.min() >= 0
    assert found.plan.sum(axis=1) == pytest.approx(p, abs=1e-12)
    assert found.plan.sum(axis=0) == pytest.approx(q, abs=1e-12)
    assert (f[:, None] + g - cost).max() <= 1e-12 * top
    assert found.cost == pytest.approx((found.plan * cost).sum())
    assert found.bound == pytest.approx(max(p @ f + q @ g, 0.0), abs=1e-9 * top)
    assert found.bound <= found.cost


def test_the_worked_distance_its_plan_and_its_prices():
    found = optimal_transport(P, Q)
    assert found.distance == pytest.approx(1.25)
    assert found.exact
    cost = np.abs(np.subtract.outer(np.arange(3), np.arange(3))).astype(float)
    proven(found, np.array(P), np.array(Q), cost)
    f, g = found.potentials
    assert g == pytest.approx(-f)  # Kantorovich and Rubinstein: one function of slope at most one
    assert np.abs(np.diff(f)).max() <= 1 + 1e-12
    assert wasserstein(P, Q) == pytest.approx(1.25)


def test_programs_find_the_best_permutation_and_the_moves_of_quantiles():
    rng = np.random.default_rng(0)
    for order in (1.0, 2.0, 3.5):
        x, y = rng.normal(size=(5, 2)), rng.normal(size=(5, 2)) + 1
        cost = np.linalg.norm(x[:, None] - y, axis=2) ** order
        best = min(np.mean(cost[range(5), pi]) for pi in permutations(range(5)))
        found = optimal_transport(x, y, samples=True, order=order)
        assert found.cost == pytest.approx(best)
        assert found.exact
        proven(found, np.full(5, 0.2), np.full(5, 0.2), cost)
        assert wasserstein(x, y, samples=True, order=order) == pytest.approx(best ** (1 / order))
        # unequal numbers of points, and masses on a line
        assert wasserstein(x, y[:3], samples=True, order=order) == pytest.approx(
            optimal_transport(x, y[:3], samples=True, order=order).distance
        )
        p, q, at = rng.dirichlet(np.full(6, 0.5)), rng.dirichlet(np.full(6, 0.5)), rng.permutation(6) * 1.5
        line = wasserstein(p, q, at, order=order)
        assert line == pytest.approx(optimal_transport(p, q, at, order=order).distance, rel=1e-7)
    assert wasserstein(p, q, at) == pytest.approx(wasserstein_distance(at, at, p, q))
    many, more = rng.normal(size=10_000), rng.normal(size=7_001) + 2.0
    assert wasserstein(many, more, samples=True) == pytest.approx(wasserstein_distance(many, more), rel=1e-9)


def test_masses_that_only_rounding_tells_apart_are_not_moved():
    x = np.random.default_rng(4).normal(size=300)
    p = np.full(600, 1 / 600)  # every point twice, in halves, beside every point once
    twice = np.concatenate([p, np.zeros(300)])
    once = np.concatenate([np.zeros(600), np.full(300, 1 / 300)])
    assert wasserstein(twice, once, np.concatenate([x, x, x]), order=20) < 1e-12


def test_two_parallel_lines_are_as_far_apart_as_they_are():
    y = np.random.default_rng(1).random(40)
    for theta in (0.0, 0.3, 1.0):
        x, z = np.column_stack([0 * y, y]), np.column_stack([0 * y + theta, y[::-1]])
        assert wasserstein(x, z, samples=True) == pytest.approx(theta, abs=1e-12)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_distances_go_with_the_unit_and_rare_masses_count(unit):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(6, 2)), rng.normal(size=(4, 2))
    for method in ("linear-program", "sinkhorn"):
        plain = optimal_transport(x, y, samples=True, order=2, method=method)
        turned = optimal_transport(x * unit, y * unit, samples=True, order=2, method=method)
        assert turned.distance == pytest.approx(unit * plain.distance)
        assert turned.bound == pytest.approx(unit**2 * plain.bound)
    rare = optimal_transport([1 - 1e-12, 1e-12], [1.0, 0.0], [0.0, unit])
    assert rare.cost == pytest.approx(1e-12 * unit, rel=1e-4)
    assert optimal_transport([1.0], [1.0]).distance == 0.0
    assert optimal_transport([0.3, 0.7], [0.6, 0.4], [unit, unit]).cost == 0.0


def test_sinkhorn_scales_rows_and_columns_and_encloses_the_cost():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(7, 1)), rng.normal(size=(9, 1))
    cost = np.abs(x - y.T)
    true = optimal_transport(x, y, samples=True).cost
    p, q = np.full(7, 1 / 7), np.full(9, 1 / 9)
    for share in (0.003, 0.1, 100.0):
        found = optimal_transport(x, y, samples=True, method="sinkhorn", regularisation=share)
        proven(found, p, q, cost)
        assert found.converged
        assert found.bound - 1e-9 <= true <= found.cost + 1e-9
        # the only plan with these margins whose log is a sum of prices less the cost
        logs = np.log(found.plan) + cost / (share * cost.max())
        centred = logs - logs.mean(axis=1, keepdims=True) - logs.mean(axis=0) + logs.mean()
        assert (
            share < 0.1 or np.abs(centred).max() < 1e-4
        )  # below, entries are smaller than what rounding moves
        divergence = (found.plan * np.log(found.plan / np.outer(p, q))).sum()
        assert found.regularised_cost == pytest.approx(found.cost + share * cost.max() * divergence, rel=1e-6)
    assert found.cost == pytest.approx((np.outer(p, q) * cost).sum(), rel=1e-2)  # nearly independent
    near = optimal_transport(x, y, samples=True, method="sinkhorn", regularisation=0.003)
    assert near.cost == pytest.approx(true, rel=0.02)
    with pytest.warns(mk.errors.ConvergenceWarning, match="raise max_iter"):
        short = optimal_transport(x, y, samples=True, method="sinkhorn", regularisation=0.003, max_iter=2)
    assert not short.converged
    proven(short, p, q, cost)
    assert short.bound <= true <= short.cost


def test_tables_lie_where_their_states_say_and_names_need_a_place():
    dice = mk.Factor([mk.Variable("n", [10, 30, 20])], [1, 1, 2])
    other = mk.Factor([mk.Variable("n", [10, 30, 20])], [2, 1, 1])
    assert wasserstein(dice, other) == pytest.approx(2.5)
    grid, turned = np.zeros((2, 3)), np.zeros((2, 3))
    grid[0, 0] = turned[1, 2] = 1.0
    assert wasserstein(grid, turned, order=2) == pytest.approx(np.sqrt(5))
    lung = mk.examples.asia()
    a, b = lung.query("lung"), lung.query("lung", given={"smoke": "yes"})
    with pytest.raises(InvalidArgument, match="'lung' are names; say where they lie"):
        wasserstein(a, b)
    priced = optimal_transport(a, b, cost=[[0, 3], [1, 0]])
    assert priced.cost == pytest.approx(
        abs(a["yes"] - b["yes"]) * (3 if a["yes"] < b["yes"] and a.states[0] == "no" else 1)
    )
    with pytest.raises(InvalidArgument, match="2 x 2 matrix"):
        optimal_transport(a, b, cost=[[0, -3], [1, 0]])
    with pytest.raises(InvalidArgument, match="order= is a number from 1 to 100"):
        wasserstein(P, Q, order=0.5)
    big = np.zeros((600, 2))
    with pytest.raises(TooLarge, match="method='sinkhorn'"):
        optimal_transport(big, big, samples=True)
