"""Markov chains over directed graphs: add, remove and turn single edges.

Madigan and York, *Bayesian graphical models for discrete data* (1995), with the proposal of Giudici and Castelo (2003): an
ordered pair of variables is drawn; an edge that is there is removed or turned, one that is not is added, each with
probability 1/2. Each move and the one that undoes it are then equally probable, so a graph is accepted with the ratio of the
two scores (and priors); moves that make a cycle or break a rule are refused. The prior is uniform over all directed graphs
within the rules. Cost: two families a step. Chains that stay in different places show it in their R-hat.
"""

from dataclasses import dataclass
from math import exp

import numpy as np

from markovia.graphs.kinds.masks import is_above, mask_of, members
from markovia.runtime.array_types import Array
from markovia.runtime.clock import Clock
from markovia.structure.scores.local_score import LocalScore
from markovia.structure.task.knowledge import Rules


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
    clock: Clock,
    *,
    steps: int,
    warmup: int,
    thin: int,
) -> GraphChain:
    """Run one chain from a random graph; keep every `thin`-th graph after the warm-up."""
    n = score.n
    chain = _GraphChain(score, rules, _start(rules, rng))
    graphs: list[tuple[int, ...]] = []
    scores: list[float] = []
    accepted, tried, block = 0, 0, 4096
    whole = True
    for first in range(0, warmup + steps, block):
        if clock.over():
            whole = False
            break
        many = min(block, warmup + steps - first)
        pairs = rng.integers(0, n * max(1, n - 1), many)
        coins, luck = rng.random(many), rng.random(many)
        for k in range(many):
            a, b = divmod(int(pairs[k]), max(1, n - 1))
            b += b >= a
            if n > 1:
                tried += 1
                move = chain.add_or_remove if coins[k] < 0.5 else chain.turn
                accepted += move(a, b, luck[k])
            at = first + k
            if at >= warmup and (at - warmup) % thin == 0:
                graphs.append(tuple(chain.parents))
                scores.append(sum(chain.now))
        clock.advance(many, note=f"{sum(chain.now):.6g}")
    return GraphChain(graphs, np.array(scores), accepted / max(1, tried), whole)


class _GraphChain:
    """The graph a chain is at, as masks of parents, with the score of each family; moves say whether they were accepted."""

    def __init__(self, score: LocalScore, rules: Rules, parents: list[int]) -> None:
        self.score, self.rules = score, rules
        self.parents = parents
        self._known: dict[tuple[int, int], float] = {}
        self.now = [self._local(child, mask) for child, mask in enumerate(parents)]

    def add_or_remove(self, a: int, b: int, luck: float) -> bool:
        """Remove a -> b where it is there, add it where it is not."""
        parents, now, rules = self.parents, self.now, self.rules
        bit = 1 << a
        if parents[b] & bit:
            if rules.required[a, b]:
                return False
        elif (
            not rules.allowed[a, b]
            or parents[b].bit_count() >= rules.max_parents
            or is_above(parents, b, bit)
        ):
            return False
        mask = parents[b] ^ bit
        after = self._local(b, mask)
        if after < now[b] and luck >= exp(after - now[b]):
            return False
        parents[b], now[b] = mask, after
        return True

    def turn(self, a: int, b: int, luck: float) -> bool:
        """Make a -> b, where it is there, b -> a."""
        parents, now, rules = self.parents, self.now, self.rules
        kept = parents[b]
        if not kept >> a & 1 or rules.required[a, b] or not rules.allowed[b, a]:
            return False
        if parents[a].bit_count() >= rules.max_parents or is_above(parents, a, kept ^ 1 << a):
            return False
        there, here = self._local(b, kept ^ 1 << a), self._local(a, parents[a] | 1 << b)
        gain = there + here - now[a] - now[b]
        if gain < 0 and luck >= exp(gain):
            return False
        parents[a], parents[b] = parents[a] | 1 << b, kept ^ 1 << a
        now[a], now[b] = here, there
        return True

    def _local(self, child: int, mask: int) -> float:
        value = self._known.get((child, mask))
        if value is None:
            value = self._known[child, mask] = self.score.local(child, members(mask))
        return value


def _start(rules: Rules, rng: np.random.Generator) -> list[int]:
    """Return a random sparse graph within the rules."""
    n = len(rules.allowed)
    parents = [mask_of(np.flatnonzero(rules.required[:, j]).tolist()) for j in range(n)]
    for pair in rng.permutation(n * n)[: 2 * n]:
        a, b = divmod(int(pair), n)
        if (
            a != b
            and rules.allowed[a, b]
            and rng.random() < 0.5
            and parents[b].bit_count() < rules.max_parents
            and not is_above(parents, b, 1 << a)
        ):
            parents[b] |= 1 << a
    return parents


def edge_shares(graphs: list[tuple[int, ...]], n: int) -> Array:
    """Return `[i, j]`: the share of graphs with i -> j."""
    masks = np.array([[m >> p & 1 for p in range(n)] for g in graphs for m in g], dtype=np.float64)
    by_child: Array = masks.reshape(len(graphs), n, n).mean(axis=0)
    return by_child.T
