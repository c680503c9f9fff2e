"""Choosing the penalty of the graphical lasso: cross-validation, extended BIC, StARS, stability selection.

A path of penalties is solved from the largest down, each started from the one before.
- "ebic": `-2 log likelihood + edges log(rows) + 4 gamma edges log(columns)` is least (Foygel and Drton 2010), with the
  likelihood of the graph: its edges are fitted again without a penalty. The path ends once it has grown a few times.
- "cv": the likelihood of rows left out is largest. It finds the best predictor, whose graph has too many edges.
- "stars": the densest graph that subsamples agree on (`markovia.structure.undirected.penalty_choice`).
- "stability": the edges that halves of the rows choose again and again, with a bound on the expected number of wrong ones
  (`markovia.structure.undirected.stability_selection`); the last fit is over these edges with the smallest penalty used.
Cost: a path for "ebic", one a fold for "cv", one a subsample for the others.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.moments import moments_of
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.checks import NOT_NEGATIVE, check, check_choice
from markovia.runtime.clock import Clock
from markovia.structure.undirected.lasso_path import penalty_path
from markovia.structure.undirected.penalty_choice import (
    PenaltyChoice,
    Subsampling,
    fold_numbers,
    repeated_rows,
    stars,
)
from markovia.structure.undirected.sparse_precision import SparsePrecision, scaled_penalty, solve
from markovia.structure.undirected.stability_selection import stable_edges

CHOICES = ("ebic", "cv", "stars", "stability")
PATIENCE = 6
"""How many penalties in a row may be worse than the best before the path ends."""
LOOSE = 1e-5
"""The tolerance on the way; the last fit is exact."""


class ChosenRho(NamedTuple):
    """A penalty, how it was chosen, and where known the edges themselves or a precision to start from."""

    rho: float
    choice: PenaltyChoice | None = None
    present: Flags | None = None
    start: Array | None = None


def chosen_rho(
    rows: Array,
    weights: Array,
    cov: Array,
    factors: Array,
    choose: str,
    rng: np.random.Generator,
    clock: Clock,
    *,
    n_rhos: int,
    smallest: float,
    folds: int,
    gamma: float,
    subsampling: Subsampling,
) -> ChosenRho:
    """Choose the penalty, or the edges.

    Parameters
    ----------
    rows, weights, cov
        Centred columns with weights, and their covariance.
    factors
        What each penalty is multiplied by.
    choose
        "ebic", "cv", "stars" or "stability"; the other settings are those of `graphical_lasso`.
    """
    check_choice("choose", choose, CHOICES)
    check("gamma", gamma, NOT_NEGATIVE)
    p = len(cov)
    off = np.isfinite(factors) & (factors > 0) & ~np.eye(p, dtype=bool)
    rhos = penalty_path(float(np.abs(cov[off]).max(initial=0.0)), n_rhos, smallest)
    fits: list[SparsePrecision] = []
    edges: list[int] = []
    if choose == "ebic":
        total = float(weights.sum())
        costs: list[float] = []
        for found in glasso_path(cov, factors, rhos, clock):
            n = _n_edges(found.precision)
            if fits and n == edges[-1] and np.array_equal(found.precision != 0, fits[-1].precision != 0):
                cost = costs[-1]
            else:
                fit = _refitted(cov, found.precision, total)
                if fit is None:
                    break
                cost = -total * fit + n * np.log(total) + 4 * gamma * n * np.log(p)
            fits.append(found)
            edges.append(n)
            costs.append(cost)
            clock.advance(note=f"rho {rhos[len(fits) - 1]:.3g}")
            if len(costs) - 1 - int(np.argmin(costs)) >= PATIENCE:
                break
        criterion = np.array(costs)
    elif choose == "cv":
        criterion = _cross_validated(rows, weights, factors, rhos, folds, rng, clock)
    else:
        whole = rows[repeated_rows(weights)]

        def graphs(chosen: NDArray[np.int64], most: float) -> Flags:
            part = moments_of(whole[chosen], np.ones(len(chosen))).covariance
            near = []
            for found in glasso_path(part, factors, rhos, None):
                near.append((found.precision != 0) & off)
                if _n_edges(found.precision) > most:
                    break
            return np.array(near)

        if choose == "stability":
            kept = stable_edges(graphs, len(whole), len(rhos), off, rng, clock, subsampling)
            return ChosenRho(float(rhos[kept.last]), kept.choice(rhos), present=kept.present)
        steady = stars(graphs, len(whole), len(rhos), p, rng, clock, subsampling)
        return ChosenRho(float(rhos[steady.chosen]), steady.choice(rhos))
    best = int(np.argmin(criterion))
    counts = np.array(edges) if fits else None
    choice = PenaltyChoice(choose, rhos[: len(criterion)], criterion, counts)
    return ChosenRho(float(rhos[best]), choice, start=fits[best].precision if fits else None)


def glasso_path(cov: Array, factors: Array, rhos: Array, clock: Clock | None) -> Iterator[SparsePrecision]:
    """Yield the solution for each penalty, from the largest on; ends early where the time is over."""
    start = None
    for k, rho in enumerate(rhos):
        if k and clock is not None and clock.over():
            return
        found = solve(cov, scaled_penalty(factors, float(rho)), start, LOOSE, 50)
        start = found.precision
        yield found


def _cross_validated(
    rows: Array,
    weights: Array,
    factors: Array,
    rhos: Array,
    folds: int,
    rng: np.random.Generator,
    clock: Clock,
) -> Array:
    number = fold_numbers(len(rows), folds, rng)
    cost = np.zeros(len(rhos))
    reached = len(rhos)
    for k in range(int(number.max()) + 1):
        inside = number == k
        train = moments_of(rows[~inside], weights[~inside])
        gap = rows[inside] - (rows[~inside] - train.rows)[0]
        share = weights[inside]
        test = (gap * share[:, None]).T @ gap
        if k and clock.over():
            break
        done = 0
        for found in glasso_path(train.covariance, factors, rhos, clock):
            fit = float((test * found.precision).sum()) - share.sum() * np.linalg.slogdet(found.precision)[1]
            cost[done] += fit
            done += 1
            clock.advance(note=f"fold {k + 1}")
        reached = min(reached, done)
    return cost[: max(reached, 1)]


def _refitted(cov: Array, precision: Array, total: float) -> float | None:
    """Return the mean log likelihood (less a constant) of the graph, its edges fitted without a penalty.

    None where it has no maximum, or so many edges that it has none for sure.
    """
    used = precision != 0
    if used.sum(axis=1).max() >= total:
        return None
    penalty = np.where(used, 0.0, np.inf)
    np.fill_diagonal(penalty, 0.0)
    if used.all():
        sign, log_det = np.linalg.slogdet(cov)
        return float(-log_det - len(cov)) if sign > 0 else None
    try:
        found = solve(cov, penalty, precision, LOOSE, 50)
    except InvalidArgument:
        return None
    log_det = np.linalg.slogdet(found.precision)[1]
    return float(log_det) - float((cov * found.precision).sum())


def _n_edges(precision: Array) -> int:
    return int(np.count_nonzero(np.triu(precision, 1)))
