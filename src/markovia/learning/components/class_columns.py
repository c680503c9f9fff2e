"""Columns that are independent of each other given a class that is known: the class-conditional laws of naive Bayes.

A block of columns keeps sufficient statistics (one pass over the rows, batches add up), turns them into parameters, and
scores rows. A missing cell is summed out, which for independent columns means that it is left out. Nothing is smoothed
unless asked, so probabilities of zero are legal: a row that a class excludes has log probability minus infinity there.
References: Chan, Golub & LeVeque (1979) for merging variances; Murphy (2012), section 3.5. Cost: rows x columns x classes.
"""

from math import pi
from typing import Any, Protocol

import numpy as np

from markovia.errors import InvalidArgument
from markovia.learning.components.block_passes import has_gaps, stretches
from markovia.learning.components.columns import CategoricalColumns
from markovia.learning.components.discrete import Bernoulli
from markovia.runtime.array_types import Array, Codes


class ClassColumns(Protocol):
    """A block of columns; cells come as its family needs them."""

    def update(self, cells: Any, members: Codes, weights: Array | None) -> None:
        """Add rows to the statistics; `members` are their classes as codes."""

    def estimate(self) -> None:
        """Turn the statistics into parameters."""

    def log_prob(self, cells: Any) -> Array:
        """Return `log p(cells | class)`, one row a data row and one column a class."""

    def log_likelihood(self) -> float:
        """Return the sum of `log p(cell | class)` over all cells that were added."""


class CountedColumns:
    """Columns of a family that counts: `component`, one a class, and the `sums` of what its classes showed.

    `alpha` pseudo-counts are added to every sum; where nothing is known a component stays as it was given, uniform.
    """

    def __init__(self, component: Bernoulli | CategoricalColumns, alpha: float) -> None:
        self.component, self.alpha = component, alpha
        self.sums: Any = 0.0

    def update(self, cells: Any, members: Codes, weights: Array | None) -> None:
        """Add rows; see `ClassColumns`."""
        self.sums = self.sums + self.component.class_sums(cells, members, weights)

    def estimate(self) -> None:
        """Set the component; pseudo-counts are added here, as tiny ones would be lost in a prior's 1 + alpha."""
        known = self.component.block_pass(gaps=True)
        self.component = known.learned(np.ones(len(self.sums)), self.sums + self.alpha, {})

    def log_prob(self, cells: Any) -> Array:
        """Return `log p(cells | class)`; see `ClassColumns`."""
        return self.component.log_densities(cells)

    def log_likelihood(self) -> float:
        """Return the sum of the log probabilities of all cells that were added."""
        logs: Any = self.component.block_pass(gaps=True)
        some = self.sums > 0.0
        return float((self.sums[some] * logs.coefficients[some]).sum())


class GaussianColumns:
    """Columns of numbers, each Gaussian in each class; NaN is a missing cell.

    `var_smoothing` times the largest variance of a column is added to all variances. A class that has no value of a
    column takes the column's overall mean and variance; a column without any value is left out, its
    mean and variance being NaN. A variance of zero is
    the limit of small ones: the value itself beats any density, other values are impossible.
    """

    def __init__(self, n_classes: int, n_columns: int, var_smoothing: float) -> None:
        self.var_smoothing = var_smoothing
        self.count = np.zeros((n_classes, n_columns))
        self.centre = np.zeros((n_classes, n_columns))
        self.squares = np.zeros((n_classes, n_columns))

    def update(self, cells: Array, members: Codes, weights: Array | None) -> None:
        """Add rows; see `ClassColumns`."""
        gaps = has_gaps(cells)
        for c in range(len(self.count)):
            chosen = np.flatnonzero(members == c)
            if not len(chosen):
                continue
            rows = cells[chosen]
            w = None if weights is None else weights[chosen]
            with np.errstate(over="ignore", invalid="ignore"):  # `estimate` looks at what came out
                if gaps or w is not None:
                    n, mean, squares = _weighted_moments(rows, w)
                else:
                    n = np.full(rows.shape[1], float(len(rows)))
                    mean = rows.mean(axis=0)
                    rows -= mean
                    squares = np.einsum("ij,ij->j", rows, rows)
                self._merge(c, n, mean, squares)

    def _merge(self, c: int, n: Array, mean: Array, squares: Array) -> None:
        total = self.count[c] + n
        share = np.divide(n, total, out=np.zeros_like(n), where=total > 0)
        step = mean - self.centre[c]
        self.squares[c] += squares + step * step * self.count[c] * share
        self.centre[c] += step * share
        self.count[c] = total

    def estimate(self) -> None:
        """Set `mean` and `variance`, one row a class."""
        n = self.count.sum(axis=0)
        some = n > 0
        safe = np.where(some, n, 1.0)
        centre = (self.count * self.centre).sum(axis=0) / safe
        with np.errstate(over="ignore", invalid="ignore"):
            spread = (self.squares + self.count * (self.centre - centre) ** 2).sum(axis=0) / safe
        if not np.isfinite(spread).all():
            raise InvalidArgument(
                f"the variance of column {int(np.argmin(np.isfinite(spread)))} leaves the range of doubles; scale it down"
            )
        self.epsilon = float(self.var_smoothing * spread.max(initial=0.0))
        own = self.count > 0
        self.mean = np.where(own, self.centre, centre)
        within = self.squares / np.where(own, self.count, 1.0)
        self.variance = np.maximum(np.where(own, within, spread) + self.epsilon, np.finfo(float).tiny)
        self.mean[:, ~some] = self.variance[:, ~some] = np.nan  # nothing is known of these columns
        self._used = some

    def log_prob(self, cells: Array) -> Array:
        """Return `log p(cells | class)`; see `ClassColumns`."""
        used = self._used
        whole = bool(used.all())
        mean, variance = (self.mean, self.variance) if whole else (self.mean[:, used], self.variance[:, used])
        cells = cells if whole else cells[:, used]
        log_scale = 0.5 * np.log(2.0 * pi * variance)
        constant, scale = log_scale.sum(axis=1), -0.5 / variance
        gaps = has_gaps(cells)
        result = np.empty((len(cells), len(mean)))
        with np.errstate(over="ignore"):
            for low, high in stretches(len(cells), cells.shape[1]):
                part = cells[low:high]
                seen = ~np.isnan(part) if gaps else None
                room = np.empty_like(part)
                for c in range(len(mean)):
                    np.subtract(part, mean[c], out=room)
                    np.multiply(room, room, out=room)
                    if seen is None:
                        result[low:high, c] = room @ scale[c] - constant[c]
                    else:
                        room[~seen] = 0.0
                        result[low:high, c] = room @ scale[c] - seen @ log_scale[c]
        return result

    def log_likelihood(self) -> float:
        """Return the sum of the log densities of all cells that were added."""
        logs = self.count * np.log(2.0 * pi * self.variance) + self.squares / self.variance
        return float(-0.5 * logs[self.count > 0].sum())


def _weighted_moments(rows: Array, weights: Array | None) -> tuple[Array, Array, Array]:
    """Return the weight, mean and sum of squared deviations of each column, missing cells left out."""
    seen = ~np.isnan(rows)
    w = seen.astype(float) if weights is None else seen * weights[:, None]
    n = w.sum(axis=0)
    filled = np.where(seen, rows, 0.0)
    mean = np.divide((w * filled).sum(axis=0), n, out=np.zeros_like(n), where=n > 0)
    filled -= mean
    squares: Array = (w * filled * filled).sum(axis=0)
    return n, mean, squares
