"""The class-conditional distributions of naive Bayes: blocks of columns that are independent of each other given the class.

A block keeps sufficient statistics (one pass over the rows, batches add up), turns them into parameters, and scores rows.
A missing cell is summed out, which for independent columns means that it is left out. Nothing is smoothed unless asked,
so probabilities of zero are legal: a row that a class excludes has log probability minus infinity there, never NaN.
References: Chan, Golub & LeVeque (1979) for merging variances; Murphy (2012), section 3.5. Cost: rows x columns x classes.
"""

from collections.abc import Iterator, Sequence
from math import pi
from typing import Any, Protocol

import numpy as np

from markovia.errors import InvalidArgument
from markovia.learning.tables.table_learner import normalised_rows, weighted_log
from markovia.runtime.array_types import Array, Codes

IN_CACHE = 1 << 15
"""Cells of a stretch of rows that are worked on at a time."""


class ClassColumns(Protocol):
    """A block of columns; cells come as the block needs them (numbers, or codes with one row a column)."""

    def update(self, cells: Any, members: Codes, weights: Array | None) -> None:
        """Add rows to the statistics; `members` are their classes as codes."""

    def estimate(self) -> None:
        """Turn the statistics into parameters."""

    def log_prob(self, cells: Any) -> Array:
        """Return `log p(cells | class)`, one row a data row and one column a class."""

    def log_likelihood(self) -> float:
        """Return the sum of `log p(cell | class)` over all cells that were added."""


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


class BernoulliColumns:
    """Columns of zeros and ones, each with one probability a class; NaN is a missing cell. CSR tables have no gaps.

    `alpha` pseudo-counts are added to the ones and to the zeros.
    """

    def __init__(self, n_classes: int, n_columns: int, alpha: float) -> None:
        self.alpha = alpha
        self.ones = np.zeros((n_classes, n_columns))
        self.seen = np.zeros((n_classes, n_columns))

    def update(self, cells: Any, members: Codes, weights: Array | None) -> None:
        """Add rows; see `ClassColumns`."""
        rows = np.arange(len(members))
        if hasattr(cells, "tocsr"):
            from scipy.sparse import csr_array

            w = np.ones(len(members)) if weights is None else weights
            one_hot = csr_array((w, (members, rows)), (len(self.ones), len(members)))
            self.ones += (one_hot @ cells).toarray()
            self.seen += np.bincount(members, weights=w, minlength=len(self.ones))[:, None]
            return
        gaps = has_gaps(cells)
        for low, high in stretches(len(cells), cells.shape[1]):
            belongs = np.zeros((len(self.ones), high - low))
            belongs[members[low:high], rows[: high - low]] = 1.0 if weights is None else weights[low:high]
            part = cells[low:high]
            if gaps:
                known = ~np.isnan(part)
                self.ones += belongs @ np.where(known, part, 0.0)
                self.seen += belongs @ known
            else:
                self.ones += belongs @ part
                self.seen += belongs.sum(axis=1, keepdims=True)

    def estimate(self) -> None:
        """Set `p` and `q`, the probabilities of one and of zero; a half where nothing is known."""
        both = np.stack([self.seen - self.ones, self.ones], axis=-1) + self.alpha
        rows = normalised_rows(np.maximum(both, 0.0))
        self.q, self.p = rows[..., 0], rows[..., 1]

    def log_prob(self, cells: Any) -> Array:
        """Return `log p(cells | class)`; see `ClassColumns`."""
        never, always = self.p == 0.0, self.q == 0.0
        certain = bool(never.any() or always.any())
        log_p = np.log(np.where(never, 1.0, self.p)).T
        log_q = np.log(np.where(always, 1.0, self.q)).T
        base, slope = log_q.sum(axis=0), log_p - log_q
        if hasattr(cells, "tocsr"):
            logs: Array = cells @ slope + base
            if certain:
                excluded = cells @ (never.astype(float) - always).T + always.sum(axis=1)
                logs[excluded > 0.0] = -np.inf
            return logs
        gaps = has_gaps(cells)
        result = np.empty((len(cells), len(self.p)))
        for low, high in stretches(len(cells), cells.shape[1]):
            ones = cells[low:high]
            zeros: Any = None
            if gaps:
                known = ~np.isnan(ones)
                ones = np.where(known, ones, 0.0)
                zeros = known - ones
                result[low:high] = ones @ log_p + zeros @ log_q
            else:
                result[low:high] = ones @ slope + base
            if certain:
                zeros = 1.0 - ones if zeros is None else zeros
                excluded = ones @ never.T.astype(float) + zeros @ always.T.astype(float)
                result[low:high][excluded > 0.0] = -np.inf
        return result

    def log_likelihood(self) -> float:
        """Return the sum of the log probabilities of all cells that were added."""
        return weighted_log(self.ones, self.p) + weighted_log(self.seen - self.ones, self.q)


class CategoricalColumns:
    """Columns of codes (one row a column, -1 for a missing cell), each with a table of class x state.

    `alpha` pseudo-counts are added to every cell of the tables.
    """

    def __init__(self, n_classes: int, sizes: Sequence[int], alpha: float) -> None:
        self.alpha = alpha
        self.counts = [np.zeros((n_classes, k)) for k in sizes]

    def update(self, cells: Codes, members: Codes, weights: Array | None) -> None:
        """Add rows; see `ClassColumns`."""
        for table, codes in zip(self.counts, cells, strict=True):
            states = table.shape[1]
            flat = members * np.int64(states) + codes
            w = weights
            if codes.min(initial=0) < 0:
                seen = codes >= 0
                flat, w = flat[seen], None if weights is None else weights[seen]
            table += np.bincount(flat, weights=w, minlength=table.size).reshape(table.shape)

    def estimate(self) -> None:
        """Set `tables`, one a column; rows about which nothing is known are uniform."""
        self.tables = [normalised_rows(n + self.alpha) for n in self.counts]

    def log_prob(self, cells: Codes) -> Array:
        """Return `log p(cells | class)`; see `ClassColumns`."""
        n_classes = len(self.counts[0]) if self.counts else 0
        with np.errstate(divide="ignore"):
            # the row of zeros at the end is what the code -1 picks; take is several times faster than indexing
            logs = [np.concatenate([np.log(t).T, np.zeros((1, n_classes))]) for t in self.tables]
        result = np.zeros((cells.shape[1], n_classes))
        for low, high in stretches(len(result), max(1, n_classes)):
            part = result[low:high]
            for table, codes in zip(logs, cells, strict=True):
                part += table.take(codes[low:high], axis=0, mode="wrap")
        return result

    def log_likelihood(self) -> float:
        """Return the sum of the log probabilities of all cells that were added."""
        return sum(weighted_log(n, t) for n, t in zip(self.counts, self.tables, strict=True))


def has_gaps(cells: Array) -> bool:
    """Say whether a finite table has NaN cells (the smallest of numbers is NaN if one of them is)."""
    return bool(cells.size) and bool(np.isnan(cells.min()))


def stretches(n: int, width: int) -> Iterator[tuple[int, int]]:
    """Cut rows into stretches whose cells stay in the cache."""
    step = max(256, IN_CACHE // max(1, width))
    for low in range(0, n, step):
        yield low, min(n, low + step)


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
