"""Choosing a penalty by how stable its graph is, and the pieces that cross-validation shares.

StARS (Liu, Roeder and Wasserman 2010): fit many subsamples of `10 sqrt(rows)` rows for each penalty; an edge that is in a
share f of the graphs is unstable by `2 f (1 - f)`. From the largest penalty down the mean instability over all pairs is made
monotone (its largest value so far), and the smallest penalty at which that is at most `beta` is taken: the densest graph
before subsamples disagree. It is meant for sparse graphs of many columns and leans to too many edges. In a small graph whose
edges are about equally strong they all come in together, and the instability on the way may be above `beta`: then it stops
too early, and "ebic" or "stability" (`markovia.structure.undirected.stability_selection`) serve better.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.checks import NumberRange, Whole, check, check_count
from markovia.runtime.clock import Clock
from markovia.runtime.threads import in_parallel
from markovia.structure.task.undirected_edges import joined


@dataclass(frozen=True, eq=False)
class PenaltyChoice:
    """How a penalty, or the edges themselves, were chosen; what a way of choosing does not have is None.

    Attributes
    ----------
    by
        "ebic", "cv", "stars", "stability", ...
    penalties, criterion, edges
        The penalties that were tried, for each what it was judged by (least is best; for "stars" the instability), and how
        many edges it gives.
    shares
        Of "stars": the share of subsamples that join each pair at the penalty chosen.
    frequencies, selected, false_edges_bound
        Of "stability": each pair's largest share of halves, the mean number of pairs that a half joins, and a bound on the
        expected number of wrong edges.
    subsamples
        How many were fitted.
    """

    by: str
    penalties: Array | None = None
    criterion: Array | None = None
    edges: Array | None = None
    shares: Array | None = None
    frequencies: Array | None = None
    selected: float | None = None
    false_edges_bound: float | None = None
    subsamples: int | None = None


@dataclass(frozen=True, eq=False)
class RegressionDetails:
    """The regression of each column on all others.

    Attributes
    ----------
    coefficients
        Row i is the regression of i.
    alpha
        The penalty of each column.
    choose, rule
        How penalties were chosen, and how two regressions became one edge.
    choice
        What subsamples said, where they chose.
    fields, kkt
        Of the Ising model: each spin's own preference, and how far the fits are from their optima.
    """

    coefficients: Array
    alpha: Array
    choose: str | None
    rule: str
    choice: PenaltyChoice | None = None
    fields: Array | None = None
    kkt: float | None = None


@dataclass(frozen=True, eq=False)
class Stability:
    """How stable the graphs of a path of penalties are.

    Attributes
    ----------
    chosen
        The place of the penalty that is taken.
    instability
        One number a penalty, not yet made monotone.
    shares
        For each penalty the share of subsamples in which each pair is joined.
    n_subsamples
        How many were fitted.
    """

    chosen: int
    instability: Array
    shares: Array
    n_subsamples: int

    def choice(self, levels: Array) -> PenaltyChoice:
        """Return what a result tells of it."""
        shares = self.shares[self.chosen]
        return PenaltyChoice("stars", levels, self.instability, shares=shares, subsamples=self.n_subsamples)


@dataclass(frozen=True)
class Subsampling:
    """How subsamples of the rows choose a penalty, or edges: what `choose="stars"` and `choose="stability"` take.

    Attributes
    ----------
    subsamples
        How many: 20 by default for "stars", 100 for "stability", where it is even if halves come in pairs.
    beta
        For "stars": the largest instability, below one half.
    pi
        For "stability": the least frequency of an edge, above one half.
    false_edges
        For "stability": the largest bound on the expected number of wrong edges; by default paths end at twice as many
        edges as columns.
    complementary
        For "stability": whether halves come in pairs without a common row.
    """

    subsamples: int | None = None
    beta: float = 0.05
    pi: float = 0.75
    false_edges: float | None = None
    complementary: bool = True

    def many(self, default: int) -> int:
        """Return the number of subsamples, or raise."""
        value = default if self.subsamples is None else self.subsamples
        check_count("subsamples", value, 2)
        return int(value)


SUBSAMPLING = Subsampling()


Graphs = Callable[[NDArray[np.int64], float], Flags]
"""Given the numbers of some rows and a number of edges: the graphs for the penalties from the largest on, one matrix each,
until one has more edges than that."""


def fold_numbers(n_rows: int, folds: Any, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return for each row the number of its fold; sizes differ by one at most."""
    if not Whole(2, n_rows).admits(folds):
        raise InvalidArgument(f"folds= is between 2 and the number of rows ({n_rows}), not {folds!r}")
    numbers: NDArray[np.int64] = rng.permutation(np.arange(n_rows) % int(folds))
    return numbers


def subsample_size(n_rows: int) -> int:
    """Return the subsample size of StARS: ten roots of the rows, or four fifths of them if they are few."""
    return max(2, min(int(10 * np.sqrt(n_rows)), int(0.8 * n_rows)))


def stars(
    graphs: Graphs,
    n_rows: int,
    n_levels: int,
    n_columns: int,
    rng: np.random.Generator,
    clock: Clock,
    settings: Subsampling = SUBSAMPLING,
) -> Stability:
    """Choose a penalty by the stability of its graph; `graphs` fits subsamples."""
    many, beta = settings.many(20), settings.beta
    check("beta", beta, NumberRange(0.0, 0.5, open="both"))
    counts = np.zeros((n_levels, n_columns, n_columns))
    size, done = subsample_size(n_rows), 0
    for _ in range(many):
        if done >= 2 and clock.over():
            break
        counts += graphs(np.sort(rng.choice(n_rows, size, replace=False)), np.inf)
        done += 1
        clock.advance(note="subsample")
    shares = counts / done
    above = np.triu_indices(n_columns, 1)
    spread = (2 * shares * (1 - shares))[:, above[0], above[1]].mean(axis=1)
    steady = np.flatnonzero(np.maximum.accumulate(spread) <= beta)
    return Stability(int(steady[-1]) if len(steady) else 0, spread, shares, done)


def regression_graphs(
    one: Callable[[int, Array, Array | None], Array], n: int, levels: Array, rule: str, most: float
) -> Flags:
    """Return the graphs of regressions of each column on the others for falling penalties, some penalties at a time.

    Parameters
    ----------
    one
        Given a column, penalties and a start, its parameters for each penalty; the first n are those of columns.
    most
        No more penalties are looked at once a graph has more edges than this.
    """
    starts: list[Array | None] = [None] * n
    graphs: list[Flags] = []
    step = len(levels) if np.isinf(most) else 4
    for low in range(0, len(levels), step):
        part = levels[low : low + step]

        def work(node: int, room: None, part: Array = part, starts: list[Array | None] = starts) -> Array:
            return one(node, part, starts[node])

        found = in_parallel(work, range(n), lambda: None)
        starts = [own[-1] for own in found]
        stack = np.array([own[:, :n] for own in found])  # (columns, penalties, columns)
        graphs.extend(joined(stack[:, k], rule) for k in range(len(part)))
        if any(np.triu(g, 1).sum() > most for g in graphs[low:]):
            break
    return np.array(graphs)


def repeated_rows(weights: Array) -> NDArray[np.int64]:
    """Return row numbers, each as often as it counts; weights that are no whole numbers cannot be subsampled."""
    whole = np.round(weights)
    if not np.allclose(weights, whole):
        raise InvalidArgument(
            "choose='stars' and choose='stability' draw subsamples of rows, so that weights must be whole numbers"
        )
    return np.repeat(np.arange(len(weights)), whole.astype(np.int64))
