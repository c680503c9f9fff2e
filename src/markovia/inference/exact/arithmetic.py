"""Two ways to compute with tables: plain numbers, and logarithms for what plain numbers cannot hold.

Plain tables are fast and are rescaled when a product leaves the middle of the range, which is enough unless a single
product spans more than the 600 orders of magnitude of a double: then entries would silently become zero or infinite.
`in_range` computes with plain numbers while the processor watches for that, and starts again with logarithms if it
happens. NumPy keeps what to watch for in the context, so threads do not disturb each other.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Protocol, TypeVar

import numpy as np

from markovia.runtime.array_types import Array

T = TypeVar("T")
Scoped = tuple[tuple[int, ...], Array]

LARGE = 2**13
"""Entries from which on the way of summing a table matters more than the number of calls."""


class TableArithmetic(Protocol):
    """Operations on tables; a product comes with the log of a scale that was taken out of it."""

    def of(self, values: Array) -> Array:
        """Turn a table of plain numbers into this arithmetic."""

    def multiply(
        self, tables: Sequence[Scoped], axes: Sequence[int], cards: Sequence[int]
    ) -> tuple[Array, float]:
        """Multiply tables onto the given axes; the log scale is minus infinity if nothing is left."""

    def sum_first(self, table: Array) -> Array:
        """Sum over the first axis."""

    def max_first(self, table: Array) -> Array:
        """Take the best over the first axis."""

    def log(self, scalar: Array) -> float:
        """Return the natural logarithm of a table without axes."""

    def absorb(self, table: Array, incoming: Array, sent: Array) -> tuple[Array, float]:
        """Multiply a table by `incoming / sent` along all axes but the first, with 0/0 = 0; return the log scale."""

    def sum_onto(self, table: Array, axes: tuple[int, ...]) -> Array:
        """Sum over the given axes."""

    def weights(self, table: Array) -> Array:
        """Return plain numbers, each column over the first axis up to its own scale."""

    def logs(self, table: Array) -> Array:
        """Return logarithms of the entries."""

    def plain(self, table: Array) -> tuple[Array, float]:
        """Return the table as plain numbers that sum to one, and the log of the sum taken out."""


def in_range(work: Callable[[TableArithmetic], T]) -> T:
    """Run with plain numbers; if a number leaves their range, run again with logarithms."""
    return Ranged()(work)


class Ranged:
    """`in_range` for a series of computations on the same tables: what once needed logarithms keeps them."""

    def __init__(self) -> None:
        self._logarithms = False

    def __call__(self, work: Callable[[TableArithmetic], T]) -> T:
        """Run with plain numbers; if a number leaves their range, run again with logarithms, now and later."""
        if not self._logarithms:
            try:
                with np.errstate(under="raise", over="raise", invalid="raise"):
                    return work(Plain())
            except FloatingPointError:
                self._logarithms = True
        with np.errstate(under="ignore", divide="ignore"):  # whatever the user has set with np.seterr
            return work(Logarithmic())


class Plain:
    """Tables of plain numbers."""

    def of(self, values: Array) -> Array:
        """Keep the numbers."""
        return values

    def multiply(
        self, tables: Sequence[Scoped], axes: Sequence[int], cards: Sequence[int]
    ) -> tuple[Array, float]:
        """Multiply tables, smallest first, rescaling on the way."""
        full = tuple([cards[a] for a in axes])
        views = aligned(tables, axes, cards)
        if not views:
            return np.ones(full), 0.0
        log_scale = 0.0
        result = views[0]
        ours = False  # the first table belongs to the model and is not written to
        for k, table in enumerate(views[1:], start=1):
            if ours and result.shape == full:
                result *= table
            else:
                result = result * table
                ours = True
            if k % 4 == 0:
                result, log_scale = _rescaled(result, log_scale, ours)
        result, log_scale = _rescaled(result, log_scale, ours)
        if log_scale == -np.inf:
            return np.zeros(full), -np.inf
        return np.asarray(result) if result.shape == full else np.broadcast_to(result, full), log_scale

    def sum_first(self, table: Array) -> Array:
        """Sum over the first axis."""
        return np.asarray(table.sum(axis=0))

    def max_first(self, table: Array) -> Array:
        """Take the largest over the first axis."""
        return np.asarray(table.max(axis=0))

    def log(self, scalar: Array) -> float:
        """Return the logarithm; zero gives minus infinity."""
        return float(np.log(scalar)) if scalar > 0 else -np.inf

    def absorb(self, table: Array, incoming: Array, sent: Array) -> tuple[Array, float]:
        """Multiply by the ratio of messages and rescale."""
        ratio = np.divide(incoming, sent, out=np.zeros(sent.shape), where=sent > 0)
        return _rescaled(table * ratio, 0.0, True)

    def sum_onto(self, table: Array, axes: tuple[int, ...]) -> Array:
        """Sum over the given axes; in a large table from the front, neighbours together: NumPy then adds long rows."""
        if table.size < LARGE or not axes:
            return np.asarray(table.sum(axis=axes)) if axes else table
        lengths: list[int] = []
        summed: list[bool] = []
        for axis, length in enumerate(table.shape):
            if summed and summed[-1] is (axis in axes):
                lengths[-1] *= length
            else:
                lengths.append(length)
                summed.append(axis in axes)
        left = tuple([length for axis, length in enumerate(table.shape) if axis not in axes])
        table = table.reshape(lengths)
        for done, axis in enumerate([k for k, gone in enumerate(summed) if gone]):
            table = np.asarray(table.sum(axis=axis - done))
        return table.reshape(left)

    def weights(self, table: Array) -> Array:
        """Return the numbers themselves."""
        return table

    def logs(self, table: Array) -> Array:
        """Take logarithms; zero becomes minus infinity."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(table))

    def plain(self, table: Array) -> tuple[Array, float]:
        """Divide by the sum."""
        total = float(table.sum())
        return (table / total, float(np.log(total))) if total > 0 else (table, -np.inf)


class Logarithmic:
    """Tables of logarithms; minus infinity stands for zero."""

    def of(self, values: Array) -> Array:
        """Take logarithms."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(values))

    def multiply(
        self, tables: Sequence[Scoped], axes: Sequence[int], cards: Sequence[int]
    ) -> tuple[Array, float]:
        """Add logarithms and move the maximum to zero."""
        total: Array = np.zeros([cards[a] for a in axes])
        for view in aligned(tables, axes, cards):
            total += view
        top = float(total.max())
        if not np.isfinite(top):
            return total, -np.inf
        total -= top
        return total, top

    def sum_first(self, table: Array) -> Array:
        """Sum over the first axis without leaving the logarithms and without another table."""
        return np.asarray(np.logaddexp.reduce(table, axis=0))

    def max_first(self, table: Array) -> Array:
        """Take the largest over the first axis."""
        return np.asarray(table.max(axis=0))

    def log(self, scalar: Array) -> float:
        """Return the number itself."""
        return float(scalar)

    def absorb(self, table: Array, incoming: Array, sent: Array) -> tuple[Array, float]:
        """Add the difference of messages; where nothing was sent nothing is left."""
        possible = np.isfinite(sent)
        change = np.where(possible, incoming - np.where(possible, sent, 0.0), -np.inf)
        total = table + change
        top = float(total.max())
        if not np.isfinite(top):
            return total, -np.inf
        total -= top
        return total, top

    def sum_onto(self, table: Array, axes: tuple[int, ...]) -> Array:
        """Sum over the given axes, each sum relative to its largest term."""
        if not axes:
            return table
        top = np.asarray(table.max(axis=axes, keepdims=True))
        top[np.isneginf(top)] = 0.0
        terms = np.asarray(table - top)
        sums = np.asarray(np.exp(terms, out=terms).sum(axis=axes, keepdims=True))
        del terms
        with np.errstate(divide="ignore"):
            np.log(sums, out=sums)
        sums += top
        return sums.squeeze(axis=axes)

    def weights(self, table: Array) -> Array:
        """Exponentiate each column relative to its largest entry."""
        top = table.max(axis=0, keepdims=True)
        terms = np.asarray(table - np.where(np.isfinite(top), top, 0.0))
        return np.exp(terms, out=terms)

    def logs(self, table: Array) -> Array:
        """Return the table as it is."""
        return table

    def plain(self, table: Array) -> tuple[Array, float]:
        """Exponentiate relative to the sum."""
        log_total = float(self.sum_onto(table, tuple(range(table.ndim))))
        return (np.exp(table - log_total), log_total) if np.isfinite(log_total) else (np.exp(table), -np.inf)


def _rescaled(table: Array, log_scale: float, ours: bool) -> tuple[Array, float]:
    """Bring the maximum to one if it is far from it; minus infinity says that all entries are zero."""
    top = float(table.max())
    if 1e-50 < top < 1e50:
        return table, log_scale
    if top == 0.0:
        return table, -np.inf
    if ours:
        table /= top
    else:
        table = table / top
    return table, log_scale + float(np.log(top))


def aligned(tables: Sequence[Scoped], axes: Sequence[int], cards: Sequence[int]) -> list[Array]:
    """View tables with the given axes, length one where a table lacks an axis; smallest first."""
    if len(tables) > 1:
        tables = sorted(tables, key=_size)
    width = len(axes)
    views = []
    for scope, table in tables:
        if scope == axes:
            views.append(table)
            continue
        place = [axes.index(i) for i in scope]
        if any(a > b for a, b in pairwise(place)):
            table = table.transpose(sorted(range(len(place)), key=place.__getitem__))
        if len(scope) != width:
            inside = set(scope)
            table = table.reshape([cards[a] if a in inside else 1 for a in axes])
        views.append(table)
    return views


def _size(scoped: Scoped) -> int:
    return scoped[1].size
