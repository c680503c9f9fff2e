"""Two ways to compute with what is probable and what it is worth, for the sweeps and trees of exact inference.

`WorthPairs`: a table holds probabilities p and weighted worths w = p u. Products are `(p1 p2, p1 w2 + w1 p2)`, sums go by
component, and the best choice is the largest w, as p does not depend on what is chosen. A utility is the pair (1, u), so
that utilities add.
`ExponentialWorths`: a table holds log(p exp(g u)); utilities multiply, and the best choice is the largest for g > 0, the
smallest for g < 0. Its value is the certainty equivalent log(E exp(g u)) / g.
References: Jensen, Jensen and Dittmer (1994); Lauritzen and Nilsson (2001), section 3; Howard and Matheson (1972) for
exponential utilities.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from markovia.inference.exact.arithmetic import Logarithmic, Scoped, TableArithmetic, aligned
from markovia.runtime.array_types import Array


class Pair(NamedTuple):
    """Probabilities and weighted worths; None stands for ones and for zeros."""

    p: Array | None
    w: Array | None


class DecisionArithmetic(TableArithmetic, Protocol):
    """An arithmetic that also knows what outcomes are worth."""

    def chance(self, values: Array) -> Array:
        """Return probabilities as a table."""

    def worth(self, amounts: Array) -> Array:
        """Return amounts as a table."""

    def rule(self, permitted: NDArray[np.bool_]) -> Array:
        """Return what may be chosen as a table."""

    def scores(self, table: Array) -> Array:
        """Return numbers that are the larger, the better a choice; minus infinity for what may not be chosen."""

    def mass(self, table: Array) -> Array:
        """Return how probable the entries are, up to a positive factor."""

    def value(self, log_scale: float) -> float:
        """Return the value after a sweep whose scales added up to this."""

    def fresh(self) -> "DecisionArithmetic":
        """Return the same arithmetic with nothing gathered."""


class WorthPairs:
    """Probabilities and weighted worths side by side; `total` gathers the worth of what a sweep has finished."""

    def __init__(self) -> None:
        self.total = 0.0
        self._restricted = False

    def chance(self, values: Array) -> Array:
        """Return probabilities, worth nothing."""
        return cast("Array", Pair(values, None))

    def worth(self, amounts: Array) -> Array:
        """Return amounts that are certain."""
        return cast("Array", Pair(None, amounts))

    def rule(self, permitted: NDArray[np.bool_]) -> Array:
        """Return a worth of minus infinity for what may not be chosen."""
        self._restricted = True
        return cast("Array", Pair(None, np.where(permitted, 0.0, -np.inf)))

    def of(self, values: Array) -> Array:
        """Keep the pair."""
        return values

    def multiply(
        self, tables: Sequence[Scoped], axes: Sequence[int], cards: Sequence[int]
    ) -> tuple[Array, float]:
        """Multiply pairs: w = sum over tables of its w times the p of all others."""
        full = tuple([cards[a] for a in axes])
        p, log_scale = self._product(
            [(s, t.p) for s, t in _pairs(tables) if t.p is not None], axes, cards, full
        )
        if log_scale == -np.inf:
            return cast("Array", Pair(p, None)), -np.inf
        # what a message is worth given its variables is w / p; where p is zero nothing is
        worths = [
            (scope, w if q is None else np.divide(w, q, out=np.zeros(w.shape), where=q > 0))
            for scope, (q, w) in _pairs(tables)
            if w is not None
        ]
        w = None
        if worths:
            first, *others = aligned(worths, axes, cards)
            w = self._times(p, sum(others, first))
        return cast("Array", Pair(p, w)), log_scale

    def _product(
        self, tables: list[Scoped], axes: Sequence[int], cards: Sequence[int], full: tuple[int, ...]
    ) -> tuple[Array, float]:
        if not tables:
            return np.ones(full), 0.0
        p, log_scale = None, 0.0
        for table in aligned(tables, axes, cards):
            p = table if p is None else p * table
        assert p is not None
        top = float(p.max())
        if top == 0.0:
            return np.zeros(full), -np.inf
        if not 1e-50 < top < 1e50:
            p, log_scale = p / top, float(np.log(top))
        return (p if p.shape == full else np.broadcast_to(p, full)), log_scale

    def _times(self, p: Array, worth: Array) -> Array:
        """Multiply a probability by a worth; minus infinity, which is not allowed, stays so where p is zero."""
        if not self._restricted:
            return np.asarray(p * worth)
        with np.errstate(invalid="ignore"):
            return np.where(np.isneginf(worth), -np.inf, p * worth)

    def sum_first(self, table: Array) -> Array:
        """Sum both over the first axis."""
        p, w = cast("Pair", table)
        return cast("Array", Pair(None if p is None else p.sum(axis=0), None if w is None else w.sum(axis=0)))

    def max_first(self, table: Array) -> Array:
        """Take the largest worth over the first axis; the probability is the same for all choices."""
        p, w = cast("Pair", table)
        return cast("Array", Pair(None if p is None else p.max(axis=0), None if w is None else w.max(axis=0)))

    def sum_onto(self, table: Array, axes: tuple[int, ...]) -> Array:
        """Sum both over the given axes."""
        p, w = cast("Pair", table)
        return cast(
            "Array", Pair(None if p is None else p.sum(axis=axes), None if w is None else w.sum(axis=axes))
        )

    def log(self, scalar: Array) -> float:
        """Return the log of the probability; the worth it comes with is added to the total."""
        p, w = cast("Pair", scalar)
        mass = 1.0 if p is None else float(p)
        if mass <= 0.0:
            return -np.inf
        self.total += 0.0 if w is None else float(w) / mass
        return float(np.log(mass))

    def scores(self, table: Array) -> Array:
        """Return the worths."""
        p, w = cast("Pair", table)
        return np.zeros(np.shape(cast("Array", p))) if w is None else w

    def mass(self, table: Array) -> Array:
        """Return the probabilities."""
        p, w = cast("Pair", table)
        return np.ones(np.shape(cast("Array", w))) if p is None else p

    def value(self, log_scale: float) -> float:
        """Return the total."""
        return self.total

    def fresh(self) -> "WorthPairs":
        """Return pairs with nothing gathered."""
        return WorthPairs()

    def absorb(self, table: Array, incoming: Array, sent: Array) -> tuple[Array, float]:
        """Refuse: trees of pairs pass messages without division."""
        raise NotImplementedError

    def weights(self, table: Array) -> Array:
        """Return the probabilities."""
        return self.mass(table)

    def logs(self, table: Array) -> Array:
        """Return the logs of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.mass(table)))

    def plain(self, table: Array) -> tuple[Array, float]:
        """Return the probabilities, and zero."""
        return self.mass(table), 0.0


class ExponentialWorths(Logarithmic):
    """Logarithms of p exp(gamma u): the certainty equivalent under a constant attitude to risk.

    Parameters
    ----------
    gamma
        Above zero for an agent that seeks risk, below for one that avoids it.
    """

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    def chance(self, values: Array) -> Array:
        """Take logarithms."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(values))

    def worth(self, amounts: Array) -> Array:
        """Weigh amounts by gamma."""
        return np.asarray(self.gamma * amounts)

    def rule(self, permitted: NDArray[np.bool_]) -> Array:
        """Return the worst there is for what may not be chosen."""
        return np.where(permitted, 0.0, -np.inf if self.gamma > 0 else np.inf)

    def of(self, values: Array) -> Array:
        """Keep the logarithms."""
        return values

    def multiply(
        self, tables: Sequence[Scoped], axes: Sequence[int], cards: Sequence[int]
    ) -> tuple[Array, float]:
        """Add logarithms and move the largest finite one to zero."""
        total: Array = np.zeros([cards[a] for a in axes])
        with np.errstate(invalid="ignore"):
            for view in aligned(tables, axes, cards):
                total += view
        forbidden = np.inf if self.gamma < 0 else -np.inf
        total[np.isnan(total)] = forbidden  # impossible, and not allowed
        finite = total[np.isfinite(total)]
        top = float(finite.max()) if finite.size else -np.inf
        if top > -np.inf:
            total -= top
        return total, top

    def sum_first(self, table: Array) -> Array:
        """Sum without leaving the logarithms, relative to the largest term: many times as fast as pairwise sums."""
        return self.sum_onto(table, (0,))

    def max_first(self, table: Array) -> Array:
        """Take the best over the first axis."""
        return np.asarray(table.max(axis=0) if self.gamma > 0 else table.min(axis=0))

    def scores(self, table: Array) -> Array:
        """Return the logarithms, turned round where the smallest is best."""
        return table if self.gamma > 0 else -table

    def mass(self, table: Array) -> Array:
        """Return one for what is possible and allowed, zero for the rest: weights may be too small for a double."""
        return np.isfinite(table).astype(np.float64)

    def value(self, log_scale: float) -> float:
        """Return the certainty equivalent; the log of the evidence is taken out by the caller."""
        return log_scale / self.gamma

    def fresh(self) -> "ExponentialWorths":
        """Return itself: nothing is gathered here."""
        return self


def _pairs(tables: Sequence[Scoped]) -> list[tuple[tuple[int, ...], Pair]]:
    return cast("list[tuple[tuple[int, ...], Pair]]", tables)
