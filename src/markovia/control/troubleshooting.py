"""Troubleshooting: which part to repair or what to test next, so that a device works again at the least expected cost.

One variable says which single fault there is. A repair costs something, mends one fault, and one sees whether the
device works then; a test costs something, shows another variable of the network, and changes nothing.

Method: without tests, repairs in the order of probability over cost are the best (Heckerman, Breese and Rommelse 1995;
an exchange argument). With tests the least cost from there on, times the probability of being there, is a function of
the set R of faults that were mended in vain and of the results o of tests:

    W(R, o) = min( cost_a P(o, fault not in R) + W(R + a, o),    cost_t P(o, fault not in R) + sum_x W(R, o + {t = x}) )

with W = 0 where no fault is left; the probabilities are one query of the network. All sets of a size are done at once.
Where that table is too large, `method="greedy"` asks the network step by step: a test is made where it pays although
only repairs, in their order, would follow. Its plan is evaluated exactly. No plan costs less than mending at once what
is broken, which is the lower bound that is reported.

Cost: 2^faults times the product of one more than the states of each test; greedy: a query for each test at each step of
the plan.
"""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, prod
from typing import Any

import numpy as np

from markovia.control.repair_plan import PlanStep, RepairPlan
from markovia.errors import InvalidArgument, TooLarge, UnknownState, check_known
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import check_choice, check_number
from markovia.runtime.memory_budget import default_budget, readable

TIE = 1e-12
"""Relative difference of costs that counts as none; a repair goes before a test, and the earlier named before the
later."""
MOST_STEPS = 20_000
"""Steps of a plan that is made step by step."""
MOST_FAULTS = 400
"""Faults of such a plan: its steps hold one another."""


def troubleshoot(
    network: Any,
    fault: str,
    repairs: Mapping[Hashable, float],
    tests: Mapping[str, float] | None = None,
    given: Mapping[str, Any] | None = None,
    *,
    method: str = "exact",
) -> RepairPlan:
    """Return the plan of repairs and tests of the least expected cost.

    Parameters
    ----------
    network
        What is asked by `query`: a Bayesian network, or any model of states.
    fault
        The variable that says which fault there is, exactly one.
    repairs
        The cost of mending each fault, by the variable's states. Each state that is possible needs one.
    tests
        The cost of seeing other variables.
    given
        What is known already.
    method
        "exact", or "greedy" where there are too many faults and tests.

    Returns
    -------
    RepairPlan
        The plan, its expected cost, and a bound that no plan is below.

    Raises
    ------
    TooLarge
        If the exact plan does not fit into memory.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("cause", [0.1, 0.4, 0.3, 0.2], states=["cable", "board", "fan", "disk"])
    >>> bn.add("beep", [[0.9, 0.1], [0.2, 0.8], [0.9, 0.1], [0.9, 0.1]], states=["no", "yes"], parents=["cause"])
    >>> costs = {"cable": 5.0, "board": 30.0, "fan": 10.0, "disk": 8.0}
    >>> print(troubleshoot(bn, "cause", costs))
    least expected cost 30.1
    repair fan  (cost 10, reached 1)
    repair disk  (cost 8, reached 0.7)
    repair cable  (cost 5, reached 0.5)
    repair board  (cost 30, reached 0.4)
    >>> print(troubleshoot(bn, "cause", costs, tests={"beep": 1.0}))
    least expected cost 25.54
    test beep  (cost 1, reached 1)
      no: repair fan  (cost 10, reached 0.62)
      repair disk  (cost 8, reached 0.35)
      repair cable  (cost 5, reached 0.17)
      repair board  (cost 30, reached 0.08)
      yes: repair board  (cost 30, reached 0.38)
      repair fan  (cost 10, reached 0.06)
      repair disk  (cost 8, reached 0.03)
      repair cable  (cost 5, reached 0.01)
    """
    check_choice("method", method, ("exact", "greedy"))
    known, wanted = dict(given or {}), dict(tests or {})
    states = list(network.variable(fault).states)
    check_known(wanted, [v for v in network.variables if v != fault], "the network, as a test")
    for name in wanted:
        if name in known:
            raise InvalidArgument(
                f"{name!r} is given, so it needs no test; leave it out of tests= or of given="
            )
    for state in repairs:
        if state not in states:
            raise UnknownState(fault, state, states)
    for what, cost in [*repairs.items(), *wanted.items()]:
        check_number(f"the cost of {what!r}", cost)
    p = _table(network, [fault], known)
    for state, chance in zip(states, p, strict=True):
        if chance > 0 and state not in repairs:
            raise InvalidArgument(
                f"{fault}={state!r} has probability {chance:.4g} and no repair; add its cost to repairs=, or rule it out "
                "by given="
            )
    possible = [i for i, s in enumerate(states) if p[i] > 0]
    costs = np.array([float(repairs[states[i]]) for i in possible])
    problem = _BrokenDevice(network, fault, known, [states[i] for i in possible], possible, costs, wanted)
    first = _exact_plan(problem) if method == "exact" else _greedy_plan(problem)
    bound = float(p[possible] @ costs)
    total = 0.0 if first is None else first.expected_cost
    sure = method == "exact" or total <= bound * (1.0 + TIE)
    return RepairPlan(first, total, total if sure else bound, sure)


@dataclass(frozen=True)
class _BrokenDevice:
    """What can be broken, what can be seen, and what each costs; `places` are the possible states of the fault."""

    network: Any
    fault: str
    given: dict[str, Any]
    faults: list[Hashable]
    places: list[int]
    costs: Array
    tests: dict[str, float]

    def results(self, test: str) -> list[Any]:
        return list(self.network.variable(test).states)

    def order(self, p: Array) -> Ints:
        """Return the possible faults by probability over cost, the most worthwhile first."""
        # p_i / c_i > p_j / c_j without dividing by a cost of zero
        with np.errstate(divide="ignore", invalid="ignore"):
            worth = np.where(self.costs > 0, p / np.where(self.costs > 0, self.costs, 1.0), inf)
        held = np.flatnonzero(p > 0)
        return np.asarray(held[np.argsort(-worth[held], kind="stable")])

    def cost_of_repairs(self, p: Array) -> float:
        """Return what repairs alone cost in their order, times the probability of being there."""
        order = self.order(p)
        left = p[order][::-1].cumsum()[::-1]
        return float(self.costs[order] @ left)


def _table(network: Any, names: list[str], given: dict[str, Any]) -> Array:
    """Return the joint probabilities of some variables, an axis each in the order of the names."""
    answer = network.query(names[0] if len(names) == 1 else names, given=given)
    if len(names) == 1:
        return np.asarray(answer.values, dtype=np.float64)
    factor = answer.factor()
    return np.asarray(
        np.transpose(factor.values, [list(factor.names).index(n) for n in names]), dtype=np.float64
    )


def _repair_chain(problem: _BrokenDevice, p: Array) -> PlanStep | None:
    """Return repairs alone, in their order; p are probabilities of being there with each fault."""
    step: PlanStep | None = None
    cost, left = 0.0, 0.0
    for i in problem.order(p)[::-1].tolist():
        left += float(p[i])
        cost += float(problem.costs[i]) * left
        after = {} if step is None else {False: step}
        step = PlanStep("repair", problem.faults[i], float(problem.costs[i]), left, cost / left, after)
    return step


# -- the exact plan ----------------------------------------------------------------------------------------------------


def _exact_plan(problem: _BrokenDevice) -> PlanStep | None:
    names, n = list(problem.tests), len(problem.faults)
    sizes = [len(problem.results(t)) for t in names]
    if not n:
        return None
    cells = float(prod(s + 1 for s in sizes)) * float(np.exp2(n))
    needed = 16.0 * cells + n * float(np.exp2(n))
    if names and not needed <= default_budget():
        raise TooLarge(
            f"all sets of {n} faults with the results of {len(names)} tests need {readable(needed)}; fewer tests, or "
            "method='greedy', which tells how far it may be from the best",
            bytes=needed,
            operations=cells * (n + len(names)),
        )
    joint = _table(problem.network, [problem.fault, *names], problem.given)[problem.places]
    if not names:
        return _repair_chain(problem, joint)
    return _SetProgram(problem, joint).plan()


class _SetProgram:
    """Dynamic programming over sets of faults that were mended in vain, for each result of the tests."""

    def __init__(self, problem: _BrokenDevice, joint: Array) -> None:
        self.problem, self.joint = problem, joint
        self.names, n = list(problem.tests), len(problem.faults)
        sets = np.arange(2**n)
        self.absent = (sets[:, None] >> np.arange(n)) & 1 == 0  # which faults may still be there
        sizes = self.absent.sum(axis=1)
        self.levels = [np.flatnonzero(sizes == k) for k in range(n + 1)]
        self.worth: dict[tuple[int, ...], Array] = {}
        self.choice: dict[tuple[int, ...], Ints] = {}
        shape = joint.shape[1:]
        seen: Iterator[tuple[int, ...]] = iter(np.ndindex(*(s + 1 for s in shape)))
        # the last place of an axis stands for "not seen yet": all that follows a test comes before it
        for spots in seen:
            self._solve(tuple(-1 if at == s else at for at, s in zip(spots, shape, strict=True)))

    def chances(self, results: tuple[int, ...]) -> Array:
        """Return P(results, fault) of each fault; tests that are not seen are summed out."""
        found: Any = self.joint
        for axis in range(len(results) - 1, -1, -1):
            found = (
                found.sum(axis=axis + 1) if results[axis] < 0 else found.take(results[axis], axis=axis + 1)
            )
        return np.asarray(found)

    def _solve(self, results: tuple[int, ...]) -> None:
        p, costs, n = self.chances(results), self.problem.costs, len(self.problem.faults)
        left = self.absent @ p
        value, chosen = np.zeros(len(left)), np.full(len(left), -1)
        tested = [
            (n + t, self.problem.tests[name] * left + sum(self.worth[r] for r in self._after(results, t)))
            for t, name in enumerate(self.names)
            if results[t] < 0
        ]
        for level in self.levels[1:]:
            best, what = np.full(len(level), inf), np.full(len(level), -1)
            for i in range(n):
                held = self.absent[level, i]
                offer = costs[i] * left[level] + value[level | (1 << i)]
                # a fault that the results exclude is not repaired
                better = held & (offer < best * (1.0 - TIE)) & (p[i] > 0)
                best, what = np.where(better, offer, best), np.where(better, i, what)
            for number, offers in tested:
                better = offers[level] < best * (1.0 - TIE)
                best, what = np.where(better, offers[level], best), np.where(better, number, what)
            # where nothing can be left, whatever is still in the set costs nothing
            done = left[level] <= 0
            value[level], chosen[level] = np.where(done, 0.0, best), np.where(done, -1, what)
        self.worth[results], self.choice[results] = value, chosen

    def _after(self, results: tuple[int, ...], test: int) -> list[tuple[int, ...]]:
        return [(*results[:test], x, *results[test + 1 :]) for x in range(self.joint.shape[test + 1])]

    def plan(self) -> PlanStep | None:
        """Return the steps that the tables say, from the beginning on."""
        return self._step(0, (-1,) * len(self.names))

    def _step(self, mended: int, results: tuple[int, ...]) -> PlanStep | None:
        number, problem, n = int(self.choice[results][mended]), self.problem, len(self.problem.faults)
        if number < 0:
            return None
        reached = float(self.absent[mended] @ self.chances(results))
        expected = float(self.worth[results][mended]) / reached
        if number < n:
            after = {False: self._step(mended | (1 << number), results)}
            kind, name, cost = "repair", problem.faults[number], float(problem.costs[number])
        else:
            test = number - n
            kind, name, cost = "test", self.names[test], problem.tests[self.names[test]]
            steps = [self._step(mended, r) for r in self._after(results, test)]
            after = dict(zip(problem.results(self.names[test]), steps, strict=True))
        return PlanStep(
            kind, name, cost, reached, expected, {k: s for k, s in after.items() if s is not None}
        )


# -- the greedy plan ---------------------------------------------------------------------------------------------------


def _greedy_plan(problem: _BrokenDevice) -> PlanStep | None:
    if not problem.faults:
        return None
    if len(problem.faults) > MOST_FAULTS:
        raise TooLarge(f"a plan step by step takes up to {MOST_FAULTS} faults; leave tests= out for more")
    budget = [MOST_STEPS]
    return _greedy_step(problem, np.ones(len(problem.faults)), {}, 1.0, budget)


def _greedy_step(
    problem: _BrokenDevice, open_faults: Array, results: dict[str, Any], chance: float, budget: list[int]
) -> PlanStep | None:
    """Return the step that is best if only repairs followed; `chance` is the probability of the results."""
    given = problem.given | results
    p = _table(problem.network, [problem.fault], given)[problem.places] * open_faults * chance
    left = float(p.sum())
    if not left > 0:
        return None
    budget[0] -= 1
    if budget[0] < 0:
        raise TooLarge(
            f"the plan has more than {MOST_STEPS:,} steps; give fewer tests", operations=float(MOST_STEPS)
        )
    best, chosen = problem.cost_of_repairs(p), None
    for name, cost in problem.tests.items():
        if name in results:
            continue
        both = (
            _table(problem.network, [problem.fault, name], given)[problem.places]
            * open_faults[:, None]
            * chance
        )
        offer = cost * left + sum(problem.cost_of_repairs(column) for column in both.T)
        if offer < best * (1.0 - TIE):
            best, chosen = offer, (name, both)
    if chosen is None:
        i = int(problem.order(p)[0])
        still = open_faults.copy()
        still[i] = 0.0
        # the same results: what follows may test then
        following = _greedy_step(problem, still, results, chance, budget)
        cost = float(problem.costs[i])
        after = {} if following is None else {False: following}
        return _joined("repair", problem.faults[i], cost, left, after)
    name, both = chosen
    chances = _table(problem.network, [name], given) * chance
    later = {
        x: _greedy_step(problem, open_faults, {**results, name: x}, float(chances[k]), budget)
        for k, x in enumerate(problem.results(name))
        if both[:, k].sum() > 0
    }
    return _joined("test", name, problem.tests[name], left, {x: s for x, s in later.items() if s is not None})


def _joined(
    kind: str, name: Hashable, cost: float, reached: float, after: Mapping[Any, PlanStep]
) -> PlanStep:
    """Return a step with the expected cost of what follows added up."""
    expected = cost + sum(s.probability * s.expected_cost for s in after.values()) / reached
    return PlanStep(kind, name, cost, reached, expected, after)
