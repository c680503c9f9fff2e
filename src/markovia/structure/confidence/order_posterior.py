"""Exact edge probabilities by dynamic programming over sets of variables.

Koivisto and Sood, *Exact Bayesian structure discovery in Bayesian networks*, JMLR 5 (2004); all edges at once as in
Koivisto, *Advances in exact Bayesian structure discovery in Bayesian networks*, UAI (2006). The prior is order-modular: a
graph weighs as much as it has topological orders, times a factor for each parent set. For every set U of predecessors,
A_i(U) sums the families of i inside U (a subset-sum transform); L(S) sums over the orders of S as a beginning, R(S) as an
end; a superset-sum of L and R gives the weight of every family. All sums are of logarithms.
Cost: n^2 2^n time, n 2^n memory. Graphs can be drawn from it exactly.
"""

from dataclasses import dataclass
from itertools import combinations
from math import comb, lgamma

import numpy as np
from numpy.typing import NDArray

from markovia.errors import Unanswered
from markovia.runtime.array_types import Array
from markovia.runtime.clock import Clock
from markovia.structure.scores.local_score import Family, LocalScore
from markovia.structure.task.knowledge import Rules

BATCH = 20_000
"""How many families are scored at a time."""


@dataclass(frozen=True)
class FamilyLists:
    """The allowed families of each variable, with the log of their weight (score and prior).

    Attributes
    ----------
    masks
        For each variable its parent sets as bits.
    weights
        The logarithms that go with them.
    """

    masks: list[NDArray[np.int64]]
    weights: list[Array]


def family_lists(score: LocalScore, rules: Rules, most: int, clock: Clock, by_size: bool) -> FamilyLists:
    """Score every family that the rules allow with at most `most` parents.

    With `by_size` each number of parents has the same prior weight, shared by the sets of that size; else each set.
    """
    n = score.n
    masks, weights = [], []
    for child in range(n):
        needed = [int(p) for p in np.flatnonzero(rules.required[:, child])]
        free = [int(p) for p in np.flatnonzero(rules.allowed[:, child]) if p not in needed]
        families: list[Family] = []
        for size in range(max(0, min(most, rules.max_parents) - len(needed)) + 1):
            families += [(child, tuple(sorted((*needed, *more)))) for more in combinations(free, size)]
        found = np.empty(len(families))
        for low in range(0, len(families), BATCH):
            if clock.over():
                raise Unanswered(f"stopped ({clock.reason}) before all families were scored")
            found[low : low + BATCH] = score.many(families[low : low + BATCH])
        if by_size:
            found -= np.log([comb(n - 1, len(ps)) for _, ps in families])
        masks.append(np.array([sum(1 << p for p in ps) for _, ps in families], dtype=np.int64))
        weights.append(found)
        clock.advance(note="families")
    return FamilyLists(masks, weights)


class OrderPosterior:
    """The sums of the dynamic programme.

    Attributes
    ----------
    edges
        `edges[i, j]`: the probability of i -> j.
    log_evidence
        The log of the sum over orders (each with prior 1 / n!) and over parent sets inside them of the families' weights.
    """

    def __init__(self, families: FamilyLists, clock: Clock) -> None:
        self.families = families
        n = self.n = len(families.masks)
        # inside[i][U without bit i]: the families of i inside U
        self._inside = [self._subset_sums(i) for i in range(n)]
        self._step(clock)
        self._begin = self._orders(forward=True)
        self._step(clock)
        after = self._orders(forward=False)
        self.edges = np.zeros((n, n))
        whole = (1 << n) - 1
        sets = np.arange(1 << (n - 1), dtype=np.int64)
        self.log_total = float(self._begin[whole])
        for i in range(n):
            before = _widened(sets, i)
            around = self._begin[before] + after[whole ^ before ^ (1 << i)]
            above = _superset_sums(around, n - 1)
            masks = families.masks[i]
            chance = np.exp(families.weights[i] + above[_narrowed(masks, i)] - self.log_total)
            for u in range(n):
                self.edges[u, i] = chance[(masks >> u) & 1 == 1].sum()
            self._step(clock)
        np.clip(self.edges, 0.0, 1.0, out=self.edges)
        self.log_evidence = self.log_total - lgamma(n + 1)

    def _step(self, clock: Clock) -> None:
        clock.advance(note="orders")
        if clock.over():
            raise Unanswered(f"stopped ({clock.reason}) before the sums over orders were done")

    def _subset_sums(self, i: int) -> Array:
        n = self.n
        sums = np.full(1 << (n - 1), -np.inf)
        sums[_narrowed(self.families.masks[i], i)] = self.families.weights[i]
        for bit in range(n - 1):
            halves = sums.reshape(-1, 2, 1 << bit)
            np.logaddexp(halves[:, 1], halves[:, 0], out=halves[:, 1])
        return sums

    def _orders(self, forward: bool) -> Array:
        """Return for each set the sum over its orders as the beginning, or as the end, of an order of all."""
        n = self.n
        whole = (1 << n) - 1
        sums = np.full(1 << n, -np.inf)
        sums[0] = 0.0
        everything = np.arange(1 << n, dtype=np.int64)
        sizes = np.bitwise_count(everything)
        by_size = np.argsort(sizes, kind="stable")
        edges = np.searchsorted(sizes[by_size], np.arange(n + 2))
        for size in range(1, n + 1):
            layer = by_size[edges[size] : edges[size + 1]]
            best = np.full(len(layer), -np.inf)
            for i in range(n):
                held = np.flatnonzero((layer >> i) & 1)
                rest = layer[held] ^ (1 << i)
                before = rest if forward else whole ^ layer[held]
                term = self._inside[i][_narrowed(before, i)] + sums[rest]
                best[held] = np.logaddexp(best[held], term)
            sums[layer] = best
        return sums

    def draw(self, rng: np.random.Generator) -> list[tuple[int, ...]]:
        """Draw a graph: for each variable its parents."""
        n = self.n
        parents: list[tuple[int, ...]] = [()] * n
        left = (1 << n) - 1
        while left:
            members = [i for i in range(n) if left >> i & 1]
            logs = np.array(
                [
                    self._inside[i][int(_narrowed(np.int64(left ^ (1 << i)), i))]
                    + self._begin[left ^ (1 << i)]
                    for i in members
                ]
            )
            last = members[_picked(logs, rng)]
            left ^= 1 << last
            masks = self.families.masks[last]
            inside = np.flatnonzero((masks & ~left) == 0)
            mask = int(masks[inside[_picked(self.families.weights[last][inside], rng)]])
            parents[last] = tuple(p for p in range(n) if mask >> p & 1)
        return parents


def _picked(logs: Array, rng: np.random.Generator) -> int:
    weights = np.exp(logs - logs.max())
    return int(
        np.searchsorted(np.cumsum(weights), rng.random() * weights.sum(), side="right").clip(0, len(logs) - 1)
    )


def _narrowed(masks: NDArray[np.int64] | np.int64, i: int) -> NDArray[np.int64]:
    """Take the bit i, which is not set, out of sets."""
    low = (1 << i) - 1
    return np.asarray((masks & low) | ((masks >> 1) & ~low))


def _widened(masks: NDArray[np.int64], i: int) -> NDArray[np.int64]:
    """Put a bit i, not set, into sets."""
    low = (1 << i) - 1
    return (masks & low) | ((masks & ~low) << 1)


def _superset_sums(values: Array, bits: int) -> Array:
    sums = values.copy()
    for bit in range(bits):
        halves = sums.reshape(-1, 2, 1 << bit)
        np.logaddexp(halves[:, 0], halves[:, 1], out=halves[:, 0])
    return sums
