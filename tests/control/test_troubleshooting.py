import contextlib
import io
import itertools
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.control.troubleshooting import troubleshoot
from markovia.errors import InvalidArgument, TooLarge, UnknownState, UnknownVariable


def device(p, tests=()):
    bn = mk.BayesianNetwork()
    bn.add("cause", p, states=[f"f{i}" for i in range(len(p))])
    for i, table in enumerate(tests):
        bn.add(f"t{i}", table, parents=["cause"])
    return bn


def test_repairs_go_by_probability_over_cost():
    plan = troubleshoot(device([0.1, 0.4, 0.3, 0.2]), "cause", {"f0": 5.0, "f1": 30.0, "f2": 10.0, "f3": 8.0})
    assert plan.cost == pytest.approx(30.1, abs=1e-12)
    assert plan.repairs == ["f2", "f3", "f0", "f1"]
    assert plan.exact
    assert plan.gap == 0.0


@given(st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_the_order_of_repairs_is_the_best_of_all(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    p, costs = rng.dirichlet(np.ones(n)), np.round(rng.uniform(0, 5, n), 1)
    bn = device(p)
    plan = troubleshoot(bn, "cause", {f"f{i}": c for i, c in enumerate(costs)})
    best = min(
        sum(costs[i] * p[list(o[k:])].sum() for k, i in enumerate(o))
        for o in itertools.permutations(range(n))
    )
    assert plan.cost == pytest.approx(best, rel=1e-9, abs=1e-12)


def best_of_all_plans(joint, costs, prices):
    """Return the least expected cost by trying each action in each state of knowledge, from the joint of cause and tests."""

    @cache
    def value(left, seen):
        where = tuple(slice(None) if s is None else s for s in seen)
        p = joint[(list(left), *where)].reshape(len(left), -1).sum() if left else 0.0
        if p <= 1e-15:
            return 0.0
        offers = [costs[i] * p + value(tuple(j for j in left if j != i), seen) for i in left]
        for t, s in enumerate(seen):
            if s is None:
                later = [value(left, (*seen[:t], x, *seen[t + 1 :])) for x in range(joint.shape[t + 1])]
                offers.append(prices[t] * p + sum(later))
        return min(offers)

    return value(tuple(range(len(costs))), (None,) * len(prices))


@given(st.integers(0, 10**6), st.sampled_from([1e-9, 1.0, 1e9]))
@settings(max_examples=25, deadline=None)
def test_plans_with_tests_cost_what_trying_everything_finds(seed, unit):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    p = rng.dirichlet(np.ones(n))
    tables = [rng.dirichlet(np.full(int(rng.integers(2, 4)), 0.5), size=n) for _ in range(m)]
    costs, prices = np.round(rng.uniform(0, 10, n), 1) * unit, np.round(rng.uniform(0, 2, m), 1) * unit
    bn = device(p, [t.tolist() for t in tables])
    joint = p
    for k, t in enumerate(tables):
        joint = joint[..., None] * t.reshape(n, *(1,) * k, -1)
    repairs = {f"f{i}": c for i, c in enumerate(costs)}
    tests = {f"t{i}": c for i, c in enumerate(prices)}
    plan = troubleshoot(bn, "cause", repairs, tests)
    best = best_of_all_plans(joint, costs, prices)
    assert plan.cost == pytest.approx(best, rel=1e-9, abs=1e-12 * unit)
    greedy = troubleshoot(bn, "cause", repairs, tests, method="greedy")
    assert greedy.bound - 1e-9 * unit <= best <= greedy.cost + 1e-9 * unit
    assert not greedy.exact or greedy.cost == pytest.approx(best, rel=1e-9)
    for one in (plan, greedy):
        assert one.cost == pytest.approx(
            cost_by_simulation(one.first, joint, costs, prices, bn), rel=1e-9, abs=1e-12 * unit
        )


def cost_by_simulation(first, joint, costs, prices, bn):
    """Return what a plan costs on average when it is followed for every fault and every result."""
    total = 0.0
    for cell in np.ndindex(joint.shape):
        step, spent = first, 0.0
        while step is not None:
            if step.kind == "repair":
                i = int(step.name[1:])
                spent += costs[i]
                step = None if i == cell[0] else step.after.get(False)
            else:
                k = int(step.name[1:])
                spent += prices[k]
                step = step.after.get(bn.variable(step.name).states[cell[k + 1]])
        total += joint[cell] * spent
    return total


def test_a_test_that_tells_all_is_made_where_it_is_cheap_and_not_where_it_is_dear():
    bn = device([0.5, 0.5], [[[1.0, 0.0], [0.0, 1.0]]])
    costs = {"f0": 10.0, "f1": 10.0}
    cheap = troubleshoot(bn, "cause", costs, {"t0": 1.0})
    assert cheap.cost == pytest.approx(11.0)
    assert (cheap.first.kind, cheap.first.name) == ("test", "t0")
    assert troubleshoot(bn, "cause", costs, {"t0": 5.0}).first.kind == "repair"  # 15 both ways: repairs first
    assert troubleshoot(bn, "cause", costs, {"t0": 6.0}).cost == pytest.approx(15.0)


def test_the_greedy_plan_compares_tests_with_repairs_in_their_best_order():
    bn = device([0.6, 0.4], [[[1.0, 0.0], [0.0, 1.0]]])
    costs = {"f0": 10.0, "f1": 1.0}  # f1 first costs 7, f0 first 10.4, and the test 6.4 and its price
    assert troubleshoot(bn, "cause", costs, {"t0": 1.0}, method="greedy").first.kind == "repair"
    assert troubleshoot(bn, "cause", costs, {"t0": 0.5}, method="greedy").first.kind == "test"


def test_what_is_given_counts_and_asking_for_the_next_step_follows_the_plan():
    bn = device([0.5, 0.3, 0.2], [[[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]]])
    costs = {"f0": 4.0, "f1": 5.0, "f2": 2.0}
    seen = troubleshoot(bn, "cause", costs, given={"t0": 1})
    p = np.array([0.05, 0.24, 0.1]) / 0.39
    assert seen.cost == pytest.approx(2 + (1 - p[2]) * 5 + p[0] * 4)
    assert seen.next().name == "f2"
    assert seen.next(repaired=["f2", "f1"]).name == "f0"
    assert seen.next(repaired=["f2", "f1", "f0"]) is None
    with pytest.raises(InvalidArgument, match="does not come to"):
        seen.next(repaired=["f0"])
    plan = troubleshoot(bn, "cause", costs, {"t0": 0.01})
    assert plan.next().kind == "test"
    assert plan.next(results={"t0": 0}).name in costs
    assert "reached" in str(plan)


def test_faults_that_cannot_be_need_no_repair_and_one_fault_is_one_step():
    plan = troubleshoot(device([0.0, 1.0]), "cause", {"f1": 3.0})
    assert (plan.repairs, plan.cost, plan.bound) == (["f1"], 3.0, 3.0)
    assert troubleshoot(device([0.0, 1.0]), "cause", {"f1": 3.0}, method="greedy").exact


def test_wrong_costs_states_tests_and_sizes_are_refused():
    bn = device([0.5, 0.5], [[[0.5, 0.5], [0.1, 0.9]]])
    with pytest.raises(InvalidArgument, match="no repair"):
        troubleshoot(bn, "cause", {"f0": 1.0})
    with pytest.raises(UnknownState, match="did you mean 'f1'"):
        troubleshoot(bn, "cause", {"f0": 1.0, "ff1": 1.0})
    for wrong in (float("nan"), -1.0, float("inf")):
        with pytest.raises(InvalidArgument, match="the cost of"):
            troubleshoot(bn, "cause", {"f0": 1.0, "f1": wrong})
    with pytest.raises(UnknownVariable, match="as a test"):
        troubleshoot(bn, "cause", {"f0": 1.0, "f1": 1.0}, {"t9": 1.0})
    with pytest.raises(InvalidArgument, match="needs no test"):
        troubleshoot(bn, "cause", {"f0": 1.0, "f1": 1.0}, {"t0": 1.0}, given={"t0": 0})
    many = device([1 / 60] * 60, [[[0.5, 0.5]] * 60])
    costs = {f"f{i}": 1.0 + i for i in range(60)}
    with pytest.raises(TooLarge, match="method='greedy'"):
        troubleshoot(many, "cause", costs, {"t0": 1.0})
    greedy = troubleshoot(many, "cause", costs, {"t0": 1.0}, method="greedy")
    assert greedy.repairs == [f"f{i}" for i in range(60)]  # the test tells nothing
    assert troubleshoot(many, "cause", costs).exact  # repairs alone need no table


@pytest.mark.slow
def test_a_second_process_makes_the_same_plan():
    code = (
        "import markovia as mk\n"
        "from markovia.control.troubleshooting import troubleshoot\n"
        "bn = mk.BayesianNetwork()\n"
        "bn.add('cause', [.25] * 4, states=['a', 'b', 'c', 'd'])\n"
        "bn.add('t', [[.9, .1], [.1, .9], [.5, .5], [.5, .5]], parents=['cause'])\n"
        "print(troubleshoot(bn, 'cause', dict.fromkeys('abcd', 2.0), {'t': .1}))"
    )
    here = io.StringIO()
    with contextlib.redirect_stdout(here):
        exec(code, {})
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert other == here.getvalue() != ""
