"""Additive-noise models: y = f(parents) + noise with independent noise (Hoyer et al. 2008; Peters et al. 2014).

Two columns: each is regressed on the other, and the direction is the one whose residual is independent of the
regressor (`pairwise_direction`). More columns: RESIT (regression with subsequent independence test). The variable
whose residual given all others depends least on them is the last effect; it is set aside, and so on. Then, along the
order found, a parent is dropped where without it the residual is still independent of everything before.

Regression is by Gaussian processes (`smooth_regression`), independence by HSIC with the gamma approximation
(`gamma_hsic`). RESIT makes O(p²) regressions and tests of O(n r²): seconds for ten variables and a thousand rows. Its
tests lose power with the number of variables; for more than ten or so prefer methods that score.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_level
from markovia.structure.ci_tests.gamma_hsic import HsicTest, centred_factor, factored_hsic
from markovia.structure.functional.checked_matrix import measured_columns
from markovia.structure.functional.linear_effects import known_before
from markovia.structure.functional.pairwise_direction import directed_pair
from markovia.structure.functional.smooth_regression import smooth_fit
from markovia.structure.task.acyclicity import directed_graph
from markovia.structure.task.result import FoundGraph, SearchStep
from markovia.structure.task.task import Task


@dataclass(frozen=True, eq=False)
class AdditiveNoiseDetails:
    """The names, causes first, and for each variable the p-value of its residual being independent of those before."""

    order: list[str]
    residual_p_values: Array


def anm(task: Task, *, alpha: float = 0.05, decide: str = "test") -> FoundGraph:
    """Learn a graph of additive-noise models.

    Parameters
    ----------
    task
        Two or more columns of numbers, and the rules.
    alpha
        The level of the tests of independence. With two columns there is an edge where they are dependent and one
        direction is rejected and the other not; with more, a parent is dropped where the residual without it passes
        for independent.
    decide
        For two columns: "test", or "compare": where they are dependent, the direction with the larger p-value.

    Returns
    -------
    Found
        A `DAG`. Two columns: `details.direction` is a `PairwiseDirection`, `details.p_values[i, j]` the p-value
        of i -> j. More: `details.order`, names, causes first, and `details.residual_p_values`, for each
        variable that of its residual being independent of the variables before it; small ones say that the model does
        not fit.

    Examples
    --------
    >>> import markovia as mk
    >>> rng = np.random.default_rng(0)
    >>> cause = rng.uniform(-2, 2, 500)
    >>> data = {"effect": cause + cause**3 / 3 + rng.normal(size=500), "cause": cause}
    >>> mk.learn_structure(data, method="anm").edges
    [('cause', 'effect')]
    """
    rows = measured_columns(task, "anm")
    check_level("alpha", alpha)
    if len(task.names) < 2:
        raise InvalidArgument("anm needs two columns or more")
    if len(task.names) == 2:
        return directed_pair(task, rows, "anm", alpha, decide)
    if decide != "test":
        raise InvalidArgument("decide= is for two columns")
    return _resit(task, (rows - rows.mean(axis=0)) / rows.std(axis=0), alpha)


class _Tried(NamedTuple):
    parents: list[int]
    test: HsicTest


def _resit(task: Task, rows: Array, alpha: float) -> FoundGraph:
    clock, rules = task.clock, task.rules
    made = 0
    path: list[SearchStep] = []

    def tried(child: int, parents: list[int], against: Array) -> _Tried:
        nonlocal made
        made += 1
        residuals = smooth_fit(rows[:, parents], rows[:, child]).residuals
        return _Tried(parents, factored_hsic(centred_factor(residuals), against))

    before, _ = known_before(rules)
    left = list(range(rows.shape[1]))
    last: list[int] = []
    while len(left) > 1 and not clock.over():
        sinks = [k for k in left if not before[k, left].any()]
        best, least = sinks[0], -math.inf
        if len(sinks) > 1:
            for k in sinks:
                if clock.over():
                    break
                others = [i for i in left if i != k]
                found = tried(k, [i for i in others if rules.allowed[i, k]], _factor(rows, others))
                if found.test.log_p > least:
                    best, least = k, found.test.log_p
        last.append(best)
        left.remove(best)
        path.append(
            SearchStep(f"last {task.names[best]}", least if math.isfinite(least) else 0.0, clock.seconds)
        )
        clock.advance(note=f"{len(last)} of {rows.shape[1]} ordered")
    while left:  # one variable; or, stopped early, all that were not reached
        sink = next(k for k in left if not before[k, left].any())
        last.append(sink)
        left.remove(sink)
    order = last[::-1]
    edges = rules.required.copy()
    p_values = np.ones(len(order))
    notes: list[str] = []
    skipped: list[str] = []
    for place, child in enumerate(order):
        if place == 0:
            continue
        if clock.over():
            skipped.append(task.names[child])
            continue
        against = _factor(rows, order[:place])
        now = tried(child, [i for i in order[:place] if rules.allowed[i, child]], against)
        for parent in list(now.parents):
            if rules.required[parent, child]:
                continue
            without = tried(child, [i for i in now.parents if i != parent], against)
            if without.test.p_value >= alpha:
                now = without
        while len(now.parents) > rules.max_parents:
            trials = {
                i: tried(child, [k for k in now.parents if k != i], against)
                for i in now.parents
                if not rules.required[i, child]
            }
            weakest = max(trials, key=lambda i: trials[i].test.log_p)
            notes.append(
                f"max_parents={rules.max_parents} drops {task.names[weakest]!r} -> {task.names[child]!r}, the parent whose "
                "loss hurts least"
            )
            now = trials[weakest]
        edges[now.parents, child] = True
        p_values[child] = now.test.p_value
        if now.test.p_value < alpha:
            notes.append(
                f"the residual of {task.names[child]!r} depends on the variables before it (p = {now.test.p_value:.2g}): "
                "a hidden cause, another kind of noise, or a wrong order"
            )
        clock.advance(note=f"{place + 1} of {len(order)} pruned")
    if skipped:
        notes.append(f"stopped before the parents of {', '.join(map(repr, skipped))} were looked for")
    return FoundGraph(
        directed_graph(edges, task.names),
        path=path,
        n_tests=made,
        notes=notes,
        details=AdditiveNoiseDetails([task.names[i] for i in order], p_values),
    )


def _factor(rows: Array, columns: list[int]) -> Array:
    return centred_factor(rows[:, columns], 200)
