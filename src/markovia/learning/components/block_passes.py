"""One pass over blocks of rows that fit the cache: log densities, then weighted sums of sufficient statistics.

A family that can be learned from sums says so with `Components.block_pass`. A pass works on blocks with one column a row, so
that everything runs along rows: `logs(block)` gives log densities, (components, rows), less what is the same for all
components (`Components.base`), and what `sums` needs again; `sums(kept, shares)` gives sums, (components, statistics), that
add up over blocks; `learned(size, sums, prior)` makes components of them. Most families are linear in their statistics:

    log p(x | k) = base(x) + constants[k] + coefficients[k] . features(x)

so that both halves of a step of EM are matrix products, and there is never an array of rows times components times columns.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np

from markovia.runtime.array_types import Array
from markovia.runtime.threads import thread_count

IN_CACHE = 1 << 15
"""Cells of a stretch of rows that are worked on at a time."""


class BlockPass(Protocol):
    """What a pass over blocks asks of a family."""

    @property
    def width(self) -> int:
        """The number of statistics."""

    def logs(self, block: Any) -> tuple[Array, Any]:
        """Return log densities, (components, rows), and what `sums` needs of the block."""

    def sums(self, kept: Any, shares: Array) -> Array:
        """Return sums of statistics, weighted by shares (components, rows)."""

    def learned(self, size: Array, sums: Array, prior: Mapping[str, Any]) -> Any:
        """Return components that make rows with these sums most probable, and the prior."""


@dataclass(frozen=True)
class LinearPass:
    """A pass over a family that is linear in its features; a coefficient of minus infinity forbids a feature."""

    features: Callable[[Any], Any]
    coefficients: Array
    constants: Array
    make: Callable[[Array, Array, Mapping[str, Any]], Any]

    @property
    def width(self) -> int:
        """The number of features."""
        return int(self.coefficients.shape[1])

    def logs(self, block: Any) -> tuple[Array, Any]:
        """Return log densities and the features."""
        seen = self.features(block)
        closed = np.isneginf(self.coefficients)
        if not closed.any():
            found = np.asarray(self.coefficients @ seen)
        else:
            found = np.asarray(np.where(closed, 0.0, self.coefficients) @ seen)
            found[np.asarray(closed.astype(np.float64) @ seen) > 0.0] = -np.inf
        found += self.constants[:, None]
        return found, seen

    def sums(self, kept: Any, shares: Array) -> Array:
        """Return sums of features."""
        return np.asarray(shares @ kept.T)

    def learned(self, size: Array, sums: Array, prior: Mapping[str, Any]) -> Any:
        """Return components with these sums."""
        return self.make(size, sums, prior)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Keep matrix products to one thread each, where several work on blocks."""
    return nullcontext() if thread_count() == 1 else _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> Any:
    import scipy.linalg.lapack  # its BLAS is not NumPy's, and only what is loaded is found  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def has_gaps(rows: Array) -> bool:
    """Say whether a finite table has NaN cells (the smallest of numbers is NaN if one of them is)."""
    return bool(rows.size) and bool(np.isnan(rows.min()))


def stretches(n: int, width: int) -> Iterator[tuple[int, int]]:
    """Cut rows into stretches whose cells stay in the cache."""
    step = max(256, IN_CACHE // max(1, width))
    for low in range(0, n, step):
        yield low, min(n, low + step)


def turned(block: Any) -> Any:
    """Return a block with one column a row."""
    return block.T
