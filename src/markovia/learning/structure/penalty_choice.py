"""Choosing a penalty by how stable its graph is, and the pieces that cross-validation shares.

StARS (Liu, Roeder and Wasserman 2010): fit many subsamples for each penalty; an edge that is in a share f of the graphs is
unstable by `2 f (1 - f)`. The smallest penalty whose mean instability is at most `beta` is taken: the densest graph that
repeats itself. Two departures from the paper: the instability is not made monotone, since a graph whose edges are about
equally strong passes through unstable penalties before it settles; and graphs that join more than half of all pairs are not
taken, since complete graphs are stable too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument
from markovia.factors.factor import Array
from markovia.learning.structure.knowledge import Flags
from markovia.learning.structure.watch import Watch


@dataclass(frozen=True, eq=False)
class Stability:
    """How stable the graphs of a path of penalties are.

    Attributes
    ----------
    chosen
        The place of the penalty that is taken.
    instability
        One number a penalty.
    shares
        For each penalty the share of subsamples in which each pair is joined.
    n_subsamples
        How many were fitted.
    """

    chosen: int
    instability: Array
    shares: Array
    n_subsamples: int


def need_penalty(value: Any, name: str) -> None:
    """Raise unless the value is a finite number, 0 or more."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not np.isfinite(value) or value < 0:
        raise InvalidArgument(f"{name}= is a finite number, 0 or more, not {value!r}")


def fold_numbers(n_rows: int, folds: Any, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return for each row the number of its fold; sizes differ by one at most."""
    if not isinstance(folds, int | np.integer) or not 2 <= folds <= n_rows:
        raise InvalidArgument(f"folds= is between 2 and the number of rows ({n_rows}), not {folds!r}")
    numbers: NDArray[np.int64] = rng.permutation(np.arange(n_rows) % int(folds))
    return numbers


def subsample_size(n_rows: int) -> int:
    """Return the subsample size of StARS: ten roots of the rows, at most four fifths of them."""
    return max(2, min(int(10 * np.sqrt(n_rows)), int(0.8 * n_rows)))


def stars(
    graphs: Callable[[NDArray[np.int64]], Flags],
    n_rows: int,
    n_levels: int,
    n_columns: int,
    rng: np.random.Generator,
    watch: Watch,
    *,
    subsamples: int = 20,
    beta: float = 0.1,
) -> Stability:
    """Choose a penalty by the stability of its graph.

    Parameters
    ----------
    graphs
        Given the numbers of some rows, the graphs for all penalties from the largest on: (penalties, columns, columns).
    subsamples, beta
        How many, and the largest instability.
    """
    if not isinstance(subsamples, int | np.integer) or subsamples < 2:
        raise InvalidArgument(f"subsamples= is a whole number, 2 or more, not {subsamples!r}")
    if not 0 < beta < 0.5:
        raise InvalidArgument(f"beta= is between 0 and 0.5, not {beta!r}")
    counts = np.zeros((n_levels, n_columns, n_columns))
    size, done = subsample_size(n_rows), 0
    for _ in range(int(subsamples)):
        if done >= 2 and watch.over():
            break
        counts += graphs(np.sort(rng.choice(n_rows, size, replace=False)))
        done += 1
        watch.advance(note="subsample")
    shares = counts / done
    above = np.triu_indices(n_columns, 1)
    spread = (2 * shares * (1 - shares))[:, above[0], above[1]].mean(axis=1)
    density = shares[:, above[0], above[1]].mean(axis=1)
    steady = np.flatnonzero((spread <= beta) & (density <= 0.5))
    return Stability(int(steady[-1]) if len(steady) else 0, spread, shares, done)
