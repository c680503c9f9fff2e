"""The penalty of a pairwise model that is fitted at once: given, by a criterion along a path, or by subsamples of rows."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from markovia.runtime.array_types import Array, Flags, Ints
from markovia.structure.task.knowledge import Rules
from markovia.structure.task.task import Task
from markovia.structure.undirected.pairwise_newton import PairwiseFit
from markovia.structure.undirected.penalty_choice import Graphs, PenaltyChoice, Subsampling, repeated_rows
from markovia.structure.undirected.stability_selection import settled_by_subsamples

CHOICES = ("ebic", "stars", "stability")
PATIENCE = 5
"""How many penalties in a row may be worse than the best before no more are looked at."""


class PathEnd(NamedTuple):
    """The last fit, its penalty, how that was chosen, the edges that are kept (None: as the fit has them), and notes."""

    last: PairwiseFit
    alpha: float
    choice: PenaltyChoice | None
    stable: Flags | None
    notes: list[str]


def fitted_path(
    fit: Callable[[float, Flags | None, Array, float], PairwiseFit],
    start: Array,
    levels: Array,
    tolerances: tuple[float, float],
    *,
    how: str,
    cost: Callable[[list[PairwiseFit], list[float]], float],
    subsampled: Callable[[Ints], Graphs],
    counts: Array,
    rules: Rules,
    task: Task,
    subsampling: Subsampling,
) -> PathEnd:
    """Fit penalties from the largest on, and once more exactly the one that is chosen.

    Parameters
    ----------
    fit
        Given a penalty, the pairs that may be joined (None: all), a start and a tolerance.
    start, levels, tolerances
        The first start; penalties; the tolerance on the way, and that of the last fit.
    how, cost
        "fixed" takes the last penalty, "ebic" the one of the least cost, given the fits and costs so far.
    subsampled, counts
        For "stars" and "stability": given row numbers, what fits some of them; and how often each row counts.
    """
    choice: PenaltyChoice | None = None
    stable: Flags | None = None
    notes: list[str] = []
    if how in ("stars", "stability"):
        rows = repeated_rows(counts)
        settled = settled_by_subsamples(how, subsampled(rows), len(rows), levels, rules, task, subsampling)
        levels, stable, choice = levels[: settled.last + 1], settled.present, settled.choice
    fits: list[PairwiseFit] = []
    costs: list[float] = []
    for level in levels:
        if fits and task.clock.over():
            notes.append(f"stopped after {len(fits)} of {len(levels)} penalties")
            break
        fits.append(fit(float(level), stable, fits[-1].point if fits else start, tolerances[0]))
        task.clock.advance(note=f"alpha {level:.3g}")
        if how == "ebic":
            costs.append(cost(fits, costs))
            if len(costs) - 1 - int(np.argmin(costs)) >= PATIENCE:
                break
    best = int(np.argmin(costs)) if costs else len(fits) - 1
    if costs:
        choice = PenaltyChoice("ebic", levels[: len(costs)], np.array(costs))
    last = fit(float(levels[best]), stable, fits[best].point, tolerances[1])
    if last.error > tolerances[1]:
        notes.append(f"the optimality conditions are violated by {last.error:.2g}")
    return PathEnd(last, float(levels[best]), choice, stable, notes)
