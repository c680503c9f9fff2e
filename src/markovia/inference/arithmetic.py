"""Two ways to compute with tables: plain numbers, and logarithms for what plain numbers cannot hold.

Plain tables are fast and are rescaled after every product, which is enough unless a single product spans more than the
600 orders of magnitude of a double: then entries would silently become zero or infinite. `in_range` computes with plain
numbers while the processor watches for that, and starts again with logarithms if it happens.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np

from markovia.factors.factor import Array

T = TypeVar("T")
Scoped = tuple[tuple[int, ...], Array]


class Arithmetic(Protocol):
    """Operations on tables; a product comes scaled to maximum one (or log zero) with the log of its scale."""

    def of(self, values: Array) -> Array:
        """Turn a table of plain numbers into this arithmetic."""

    def multiply(
        self, tables: Sequence[Scoped], axes: Sequence[int], cards: Sequence[int]
    ) -> tuple[Array, float]:
        """Multiply tables onto the given axes; the log scale is minus infinity if nothing is left."""

    def sum_last(self, table: Array) -> Array:
        """Sum over the last axis."""

    def log(self, scalar: Array) -> float:
        """Return the natural logarithm of a table without axes."""

    def absorb(self, table: Array, incoming: Array, sent: Array) -> Array:
        """Multiply a table by `incoming / sent` along its leading axes, with 0/0 = 0, up to scale."""

    def sum_onto(self, table: Array, axes: tuple[int, ...]) -> Array:
        """Sum over the given axes."""

    def weights(self, table: Array) -> Array:
        """Return plain numbers, each row over the last axis up to its own scale."""

    def logs(self, table: Array) -> Array:
        """Return logarithms of the entries."""

    def plain(self, table: Array) -> tuple[Array, float]:
        """Return the table as plain numbers that sum to one, and the log of the sum taken out."""


def in_range(work: Callable[[Arithmetic], T]) -> T:
    """Run with plain numbers; if a number leaves their range, run again with logarithms."""
    try:
        with np.errstate(under="raise", over="raise", invalid="raise"):
            return work(Plain())
    except FloatingPointError:
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
        log_scale = 0.0
        result: Array | None = None
        for aligned in _aligned(tables, axes, cards):
            result = aligned if result is None else result * aligned
            top = float(result.max())
            if top == 0.0:
                return np.zeros([cards[a] for a in axes]), -np.inf
            if not 1e-50 < top < 1e50:
                result = result / top
                log_scale += float(np.log(top))
        full = [cards[a] for a in axes]
        if result is None:
            return np.ones(full), 0.0
        top = float(result.max())
        return np.broadcast_to(result / top, full), log_scale + float(np.log(top))

    def sum_last(self, table: Array) -> Array:
        """Sum over the last axis."""
        return np.asarray(table.sum(axis=-1))

    def log(self, scalar: Array) -> float:
        """Return the logarithm; zero gives minus infinity."""
        return float(np.log(scalar)) if scalar > 0 else -np.inf

    def absorb(self, table: Array, incoming: Array, sent: Array) -> Array:
        """Multiply by the ratio of messages and rescale."""
        ratio = np.divide(incoming, sent, out=np.zeros(sent.shape), where=sent > 0)
        product = table * ratio[..., None]
        return np.asarray(product / product.max())

    def sum_onto(self, table: Array, axes: tuple[int, ...]) -> Array:
        """Sum over the given axes."""
        return np.asarray(table.sum(axis=axes))

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
        full = [cards[a] for a in axes]
        total: Array = np.zeros(full)
        for aligned in _aligned(tables, axes, cards):
            total = total + aligned
        top = float(total.max())
        return (total - top, top) if np.isfinite(top) else (total, -np.inf)

    def sum_last(self, table: Array) -> Array:
        """Sum over the last axis without leaving the logarithms."""
        return self.sum_onto(table, (table.ndim - 1,))

    def log(self, scalar: Array) -> float:
        """Return the number itself."""
        return float(scalar)

    def absorb(self, table: Array, incoming: Array, sent: Array) -> Array:
        """Add the difference of messages; where nothing was sent nothing is left."""
        possible = np.isfinite(sent)
        change = np.where(possible, incoming - np.where(possible, sent, 0.0), -np.inf)
        total = table + change[..., None]
        return np.asarray(total - total.max())

    def sum_onto(self, table: Array, axes: tuple[int, ...]) -> Array:
        """Sum over the given axes, each sum relative to its largest term."""
        if not axes:
            return table
        top = table.max(axis=axes, keepdims=True)
        base = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore"):
            sums = np.log(np.exp(table - base).sum(axis=axes, keepdims=True)) + base
        return np.asarray(sums.squeeze(axis=axes))

    def weights(self, table: Array) -> Array:
        """Exponentiate each row relative to its largest entry."""
        top = table.max(axis=-1, keepdims=True)
        return np.asarray(np.exp(table - np.where(np.isfinite(top), top, 0.0)))

    def logs(self, table: Array) -> Array:
        """Return the table as it is."""
        return table

    def plain(self, table: Array) -> tuple[Array, float]:
        """Exponentiate relative to the sum."""
        log_total = float(self.sum_onto(table, tuple(range(table.ndim))))
        return (np.exp(table - log_total), log_total) if np.isfinite(log_total) else (np.exp(table), -np.inf)


def _aligned(tables: Sequence[Scoped], axes: Sequence[int], cards: Sequence[int]) -> list[Array]:
    """View tables with the given axes, length one where a table lacks an axis; smallest first."""
    place = {a: k for k, a in enumerate(axes)}
    views = []
    for scope, table in sorted(tables, key=lambda t: t[1].size):
        order = sorted(range(len(scope)), key=lambda i: place[scope[i]])
        shape = [1] * len(axes)
        for i in scope:
            shape[place[i]] = cards[i]
        views.append(table.transpose(order).reshape(shape))
    return views
