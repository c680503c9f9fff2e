"""Markov chains over the orders of variables.

Friedman and Koller, *Being Bayesian about network structure*, Machine Learning 50 (2003). Given an order, the parents of
each variable are independent of the others', so all graphs that agree with it are summed exactly; only orders are drawn. Two
variables trade places, near ones more often, and the new order is accepted with the ratio of the sums. The prior over graphs
is order-modular, as in the exact sums of `order_posterior.py`. Mixes far better than chains over graphs.
Cost: for each step the families of the variables between the two places; n sets of up to k parents are scored first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp

import numpy as np
from numpy.typing import NDArray

from markovia.runtime.array_types import Array
from markovia.runtime.clock import Clock
from markovia.structure.confidence.order_posterior import FamilyLists

REMEMBERED = 200_000
"""How many sums over families are remembered."""


@dataclass
class OrderChain:
    """What one chain found.

    Attributes
    ----------
    edges
        The mean over the kept orders of the probability of each edge given the order.
    graphs
        One graph drawn from each kept order: for each variable the bits of its parents.
    scores
        The log sum over the graphs of each kept order.
    accepted
        The share of accepted moves.
    whole
        Whether the chain came to its end.
    """

    edges: Array
    graphs: list[tuple[int, ...]]
    scores: Array
    accepted: float
    whole: bool


def run_order_chain(
    families: FamilyLists, rng: np.random.Generator, clock: Clock, *, steps: int, warmup: int, thin: int
) -> OrderChain:
    """Run one chain from a random order; keep every `thin`-th order after the warm-up."""
    n = len(families.masks)
    known: dict[tuple[int, int], float] = {}

    def inside(child: int, before: int) -> float:
        key = (child, before)
        value = known.get(key)
        if value is None:
            if len(known) > REMEMBERED:
                known.clear()
            logs = families.weights[child][(families.masks[child] & ~before) == 0]
            top = logs.max() if len(logs) else -np.inf
            value = known[key] = (
                float(top + np.log(np.exp(logs - top).sum())) if np.isfinite(top) else -np.inf
            )
        return value

    order = _start(families, rng)
    sums = _sums(order, inside, 0, n)
    edges = np.zeros((n, n))
    graphs: list[tuple[int, ...]] = []
    scores: list[float] = []
    accepted = tried = kept = 0
    whole = True
    for at in range(warmup + steps):
        if at % 64 == 0:
            if clock.over():
                whole = False
                break
            clock.advance(min(64, warmup + steps - at), note=f"{sum(sums):.6g}")
        if n > 1:
            tried += 1
            i = int(rng.integers(0, n - 1))
            j = i + 1 if rng.random() < 0.5 else int(rng.integers(0, n))
            low, high = min(i, j), max(i, j)
            if low != high:
                order[low], order[high] = order[high], order[low]
                fresh = _sums(order, inside, low, high + 1)
                gain = sum(fresh) - sum(sums[low : high + 1])
                if gain >= 0 or rng.random() < exp(gain):
                    sums[low : high + 1] = fresh
                    accepted += 1
                else:
                    order[low], order[high] = order[high], order[low]
        if at >= warmup and (at - warmup) % thin == 0:
            kept += 1
            scores.append(sum(sums))
            graphs.append(_given_order(families, order, edges, rng))
    return OrderChain(edges / max(1, kept), graphs, np.array(scores), accepted / max(1, tried), whole)


def _sums(order: list[int], inside: Callable[[int, int], float], low: int, high: int) -> list[float]:
    before = sum(1 << v for v in order[:low])
    found = []
    for v in order[low:high]:
        found.append(inside(v, before))
        before |= 1 << v
    return found


def _given_order(
    families: FamilyLists, order: list[int], edges: Array, rng: np.random.Generator
) -> tuple[int, ...]:
    """Add the edge probabilities given an order to the sums, and draw a graph that agrees with it."""
    n = len(order)
    before = 0
    graph = [0] * n
    for v in order:
        within = np.flatnonzero((families.masks[v] & ~before) == 0)
        masks: NDArray[np.int64] = families.masks[v][within]
        logs = families.weights[v][within]
        chance = np.exp(logs - logs.max())
        chance /= chance.sum()
        edges[:, v] += ((masks[None, :] >> np.arange(n)[:, None]) & 1) @ chance
        graph[v] = int(masks[int(np.searchsorted(np.cumsum(chance), rng.random()).clip(0, len(masks) - 1))])
        before |= 1 << v
    return tuple(graph)


def _start(families: FamilyLists, rng: np.random.Generator) -> list[int]:
    """Return a random order in which every variable has an allowed family: required parents come first."""
    left = [int(v) for v in rng.permutation(len(families.masks))]
    order: list[int] = []
    before = 0
    while left:
        ready = next(v for v in left if ((families.masks[v] & ~before) == 0).any())
        left.remove(ready)
        order.append(ready)
        before |= 1 << ready
    return order
