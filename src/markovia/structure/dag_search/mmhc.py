"""MMHC: tests say which edges are worth a look, a score decides among them.

Method: Tsamardinos, Brown and Aliferis, *The max-min hill-climbing Bayesian network structure learning algorithm*,
Machine Learning 65 (2006). For each variable MMPC collects candidates: the one joins next whose smallest association,
over all subsets of the candidates so far, is largest; what some subset makes independent is out for good. Then every
candidate is checked once more against subsets of the others, and a pair stays only if each is among the other's
candidates. Hill climbing (`hill_climbing.py`) then searches among directed graphs with edges between such pairs only.

Association is compared by p-values, and by the statistic for a degree of freedom where p-values are equal.
Cost: tests grow exponentially with the number of candidates unless `depth` bounds the subsets; the climb scores few
families. Use it for many variables with sparse graphs.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import combinations

import numpy as np

from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.runtime.array_types import Flags
from markovia.runtime.checks import check_count
from markovia.runtime.clock import Clock
from markovia.structure.ci_tests.ci_tests import CITest, Query, ci_test_for
from markovia.structure.dag_search.hill_climbing import hill_climb
from markovia.structure.task.knowledge import Rules
from markovia.structure.task.result import FoundGraph
from markovia.structure.task.task import Task

TESTING = 0.7
"""The share of a time limit that the tests may take; the rest is for the climb."""


def mmhc(task: Task, *, depth: int | None = 3, keep_tests: bool | int = True) -> FoundGraph:
    """Learn a directed graph by max-min hill climbing.

    Parameters
    ----------
    task
        Data, what is known, and the score and test that are asked for.
    depth
        The largest conditioning set of the tests; None for all subsets of the candidates.
    keep_tests
        Whether the tests are in the result; a number keeps the first so many.

    Returns
    -------
    Found
        The directed graph; `details.candidates` is the undirected graph of the pairs that were allowed.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.sprinkler().sample(2000, seed=1)
    >>> found = mk.learn_structure(rows, method="mmhc", test="g2", score="bic")
    >>> sorted(found.details.candidates.edges) == sorted(found.skeleton.edges)
    True
    """
    test: CITest = ci_test_for(task)
    left = task.clock.left
    with Clock(TESTING * left if np.isfinite(left) and left > 0 else None, progress=False) as testing:
        pairs = max_min_candidates(test, task.rules, testing, depth=depth, advance=task.clock.advance)
    narrow = Rules(
        task.rules.allowed & (pairs | task.rules.required), task.rules.required, task.rules.max_parents
    )
    inner = replace(task, rules=narrow)
    found = hill_climb(inner)
    if testing.reason is not None:
        found.notes.append("stopped before all candidates were tested: the climb was free in the other pairs")
        task.clock.reason = task.clock.reason or testing.reason
    task.score_name = inner.score_name
    names = task.names
    found.tests = test.kept(keep_tests)
    found.n_tests = test.n_made
    edges = [(names[i], names[j]) for i, j in np.argwhere(np.triu(pairs))]
    found.details = replace(found.details, candidates=UndirectedGraph(edges, nodes=names))
    return found


def max_min_candidates(
    test: CITest,
    rules: Rules,
    clock: Clock,
    *,
    depth: int | None = None,
    advance: Callable[..., None] | None = None,
) -> Flags:
    """Return the pairs that are in each other's max-min sets, a symmetric matrix; required pairs are always.

    When time is over before all sets are found, variables without a set allow every pair the rules allow.
    """
    check_count("depth", depth, none=True)
    chosen = rules.pairs.copy()
    for target in range(test.n):
        if clock.over():
            break
        own = _candidates(test, rules, clock, target, depth)
        if clock.over():  # perhaps in the middle of this set
            break
        chosen[target] = False
        chosen[target, own] = True
        (advance or clock.advance)(note=f"candidates of {test.names[target]}")
    both: Flags = (chosen & chosen.T) | rules.required_pairs
    return both


def _candidates(test: CITest, rules: Rules, clock: Clock, target: int, depth: int | None) -> list[int]:
    kept = np.flatnonzero(rules.required_pairs[target]).tolist()
    waiting = [v for v in np.flatnonzero(rules.pairs[target]).tolist() if v not in kept]
    chosen: list[int] = []
    least: dict[int, tuple[float, float]] = {}  # the smallest association so far: (minus p-value, strength)
    fresh: list[tuple[int, ...]] = [()]  # subsets of the chosen that were not tried yet
    joining = list(kept)
    while True:
        waiting = _lowered(test, clock, target, waiting, fresh, least)
        if clock.over():
            return [*chosen, *joining, *waiting]  # who was not taken out
        if joining:
            best = joining.pop(0)
        elif waiting:
            best = max(waiting, key=lambda v: (*least[v], -v))
            waiting.remove(best)
        else:
            break
        fresh = [(*given, best) for given in _subsets(chosen, None if depth is None else depth - 1)]
        chosen.append(best)
    for v in list(chosen):
        if v in kept:
            continue
        others = [c for c in chosen if c != v]
        if _separated(test, clock, target, v, _subsets(others, depth)):
            chosen.remove(v)
    return chosen


def _lowered(
    test: CITest,
    clock: Clock,
    target: int,
    waiting: list[int],
    fresh: Iterable[tuple[int, ...]],
    least: dict[int, tuple[float, float]],
) -> list[int]:
    """Lower each association by the new subsets, one batch a subset; return who still depends."""
    for given in fresh:
        if not waiting or clock.over():
            break
        queries: list[Query] = [(target, v, given) for v in waiting]
        found = test.p_values_until(queries, clock)
        left = waiting[len(found) :]  # unasked: the clock ended it
        for (_, v, _), p in zip(queries, found, strict=False):
            if p > test.alpha:
                continue
            statistic, free = test.statistic(target, v, given)
            strength = abs(statistic) / (free if free > 0 else 1.0)
            now = (-p, strength if strength == strength else 0.0)
            least[v] = min(least.get(v, now), now)
            left.append(v)
        waiting = left
    return waiting


def _separated(
    test: CITest, clock: Clock, target: int, other: int, subsets: Iterable[tuple[int, ...]]
) -> bool:
    waiting = list(subsets)
    for first in range(0, len(waiting), max(1, test.batch)):
        if clock.over():
            break
        some = waiting[first : first + max(1, test.batch)]
        if (test.p_values([(target, other, given) for given in some]) > test.alpha).any():
            return True
    return False


def _subsets(members: list[int], most: int | None) -> Iterable[tuple[int, ...]]:
    """Yield the subsets by size; none where `most` is negative."""
    for size in range((len(members) if most is None else min(most, len(members))) + 1):
        yield from combinations(members, size)
