"""Markov chains over directed graphs: add, remove and turn single edges.

Madigan and York, *Bayesian graphical models for discrete data* (1995), with the proposal of Giudici and Castelo (2003): an
ordered pair of variables is drawn; an edge that is there is removed or turned, one that is not is added, each with
probability 1/2. Each move and the one that undoes it are then equally probable, so a graph is accepted with the ratio of the
two scores (and priors); moves that make a cycle or break a rule are refused. The prior is uniform over all directed graphs
within the rules. Cost: two families a step. Chains that stay in different places show it in their R-hat.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp

import numpy as np
from numpy.typing import NDArray

from markovia.factors.factor import Array
from markovia.learning.structure.knowledge import Rules
from markovia.learning.structure.scores import LocalScore
from markovia.learning.structure.watch import Watch


@dataclass
class GraphChain:
    """The graphs one chain has visited.

    Attributes
    ----------
    graphs
        The kept graphs: for each variable the bits of its parents.
    scores
        The log score of each.
    accepted
        The share of accepted moves.
    whole
        Whether the chain came to its end.
    """

    graphs: list[tuple[int, ...]]
    scores: Array
    accepted: float
    whole: bool


def run_chain(
    score: LocalScore,
    rules: Rules,
    rng: np.random.Generator,
    watch: Watch,
    *,
    steps: int,
    warmup: int,
    thin: int,
) -> GraphChain:
    """Run one chain from a random graph; keep every `thin`-th graph after the warm-up."""
    n = score.n
    known: dict[tuple[int, int], float] = {}

    def local(child: int, mask: int) -> float:
        key = (child, mask)
        value = known.get(key)
        if value is None:
            value = known[key] = score.local(child, [p for p in range(n) if mask >> p & 1])
        return value

    parents = _start(rules, rng)
    now = [local(i, parents[i]) for i in range(n)]
    allowed, required, most = rules.allowed, rules.required, rules.max_parents
    graphs: list[tuple[int, ...]] = []
    scores: list[float] = []
    accepted, tried, block = 0, 0, 4096
    whole = True
    for first in range(0, warmup + steps, block):
        if watch.over():
            whole = False
            break
        many = min(block, warmup + steps - first)
        pairs = rng.integers(0, n * max(1, n - 1), many)
        coins, luck = rng.random(many), rng.random(many)
        for k in range(many):
            a, b = divmod(int(pairs[k]), max(1, n - 1))
            b += b >= a
            if n > 1 and coins[k] < 0.5:
                tried += 1
                accepted += _add_or_remove(parents, now, a, b, allowed, required, most, local, luck[k])
            elif n > 1:
                tried += 1
                accepted += _turn(parents, now, a, b, allowed, required, most, local, luck[k])
            at = first + k
            if at >= warmup and (at - warmup) % thin == 0:
                graphs.append(tuple(parents))
                scores.append(sum(now))
        watch.advance(many, note=f"{sum(now):.6g}")
    return GraphChain(graphs, np.array(scores), accepted / max(1, tried), whole)


def _add_or_remove(
    parents: list[int],
    now: list[float],
    a: int,
    b: int,
    allowed: NDArray[np.bool_],
    required: NDArray[np.bool_],
    most: int,
    local: Callable[[int, int], float],
    luck: float,
) -> bool:
    bit = 1 << a
    if parents[b] & bit:
        if required[a, b]:
            return False
    elif not allowed[a, b] or parents[b].bit_count() >= most or _reaches(parents, b, a):
        return False
    mask = parents[b] ^ bit
    after = local(b, mask)
    if after < now[b] and luck >= exp(after - now[b]):
        return False
    parents[b], now[b] = mask, after
    return True


def _turn(
    parents: list[int],
    now: list[float],
    a: int,
    b: int,
    allowed: NDArray[np.bool_],
    required: NDArray[np.bool_],
    most: int,
    local: Callable[[int, int], float],
    luck: float,
) -> bool:
    if not parents[b] >> a & 1 or required[a, b] or not allowed[b, a] or parents[a].bit_count() >= most:
        return False
    kept = parents[b]
    parents[b] = kept ^ (1 << a)
    if _reaches(parents, a, b):
        parents[b] = kept
        return False
    there, here = local(b, parents[b]), local(a, parents[a] | 1 << b)
    gain = there + here - now[a] - now[b]
    if gain < 0 and luck >= exp(gain):
        parents[b] = kept
        return False
    parents[a] |= 1 << b
    now[a], now[b] = here, there
    return True


def _reaches(parents: list[int], start: int, node: int) -> bool:
    """Say whether `start` is an ancestor of `node`."""
    seen = 0
    fresh = parents[node]
    goal = 1 << start
    while fresh:
        if fresh & goal:
            return True
        seen |= fresh
        after = 0
        while fresh:
            low = fresh & -fresh
            after |= parents[low.bit_length() - 1]
            fresh ^= low
        fresh = after & ~seen
    return False


def _start(rules: Rules, rng: np.random.Generator) -> list[int]:
    """Return a random sparse graph within the rules."""
    n = len(rules.allowed)
    parents = [sum(1 << int(p) for p in np.flatnonzero(rules.required[:, j])) for j in range(n)]
    for pair in rng.permutation(n * n)[: 2 * n]:
        a, b = divmod(int(pair), n)
        if (
            a != b
            and rules.allowed[a, b]
            and rng.random() < 0.5
            and parents[b].bit_count() < rules.max_parents
            and not _reaches(parents, b, a)
        ):
            parents[b] |= 1 << a
    return parents


def edge_shares(graphs: list[tuple[int, ...]], n: int) -> Array:
    """Return `[i, j]`: the share of graphs with i -> j."""
    masks = np.array([[m >> p & 1 for p in range(n)] for g in graphs for m in g], dtype=np.float64)
    by_child: Array = masks.reshape(len(graphs), n, n).mean(axis=0)
    return by_child.T
