"""Elimination orders for runs that take so long that seconds of search pay.

Method: a few simple passes give the first order; then parts of its tree are eliminated anew, again and again, under a
temperature that falls (`kernels.clique_trees.order_annealing`). Every thread anneals on its own, with other random numbers,
and the best order of all is returned. In pedigrees a tenth of a second of this finds totals that are hundreds of times
smaller than those of the greedy orders that a junction tree is content with; ten seconds find a tenth less than one.
Cost: as many steps as are asked for, some 10**8 a second in each thread; no clock is looked at but as a limit, so the same
seed and number of searches give the same order.
"""

from collections.abc import Sequence
from copy import deepcopy
from itertools import accumulate, chain
from math import ceil, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.graphs.triangulation.elimination import eliminate, follow
from markovia.kernels.clique_trees.annealing_records import BEST, BITS, DONE, OrderTree, PartRoom
from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.clock import Clock
from markovia.runtime.threads import in_parallel, thread_count

HOME = "markovia.kernels.clique_trees.order_annealing:anneal"
HOT, COLD = 0.2, 0.0005
"""The temperatures between which is annealed, as parts of the total."""
LARGEST = 80
"""Variables of the largest part that is eliminated anew."""
STRETCH = 1e7
"""Steps after which a thread looks at the clock."""
HOPELESS = 2.0**100
"""Entries of all buckets of a simple order that no search makes few enough to run: it is returned as it is."""
FAR = 2.0**10
"""Times the best total that other first orders may have."""
NEGLIGIBLE = 0.01
"""Part of what the buckets cost besides their entries that is not worth a search."""


class OrderCost(NamedTuple):
    """What eliminating a variable costs: the entries of its bucket, and what comes on top.

    Attributes
    ----------
    bucket
        What each bucket costs besides, in entries; where all entries together are a hundredth of that, the search ends.
    limit, over
        Entries of a message up to which it is held as a whole, and the part by which a bucket gets dearer each time that its
        message doubles beyond: it is run in slices.
    """

    bucket: float = 20_000.0
    limit: float = inf
    over: float = 0.25


USUAL = OrderCost()


class _Annealing(NamedTuple):
    """An order under way: the tree, room to work, random numbers, and steps, total and best total."""

    tree: OrderTree
    room: PartRoom
    random: NDArray[np.uint64]
    sums: Array
    longest: int

    def copy(self, seed: int, thread: int) -> "_Annealing":
        """Return the same with random numbers of its own."""
        random = np.random.SeedSequence([seed, thread]).generate_state(4, np.uint64).astype(np.uint64)
        return deepcopy(self)._replace(random=random)


def long_search(
    scopes: Sequence[tuple[int, ...]],
    cards: Sequence[int],
    steps: float = 1e9,
    cost: OrderCost = USUAL,
    last: Sequence[int] = (),
    seed: int = 0,
    time_limit: float | None = None,
    progress: bool | None = False,
    searches: int | None = None,
) -> list[int]:
    """Return an order of all variables to eliminate them in, whose buckets have few entries altogether.

    Parameters
    ----------
    scopes, cards
        The variables of each table, and the states of each variable.
    steps
        How long to search, in each thread: about 10**8 a second.
    cost
        What is made small.
    last
        Variables that come after all others.
    seed
        The same seed, steps and number of searches give the same order.
    time_limit
        Seconds after which the best order so far is returned.
    progress
        Whether to show a bar.
    searches
        How many searches run side by side, of which the best order is returned; by default one a thread.

    Examples
    --------
    >>> long_search([(0, 1), (1, 2), (2, 3)], [2, 9, 2, 2], steps=1e4, last=[1])
    [0, 3, 2, 1]
    """
    # variables that are in no table with others are eliminated at once
    stage = np.zeros(len(cards), np.int64)
    stage[list(last)] = 1
    joined = sorted({v for scope in scopes if len(scope) > 1 for v in scope})
    number = {v: i for i, v in enumerate(joined)}
    rest = [v for v in range(len(cards)) if v not in number]
    small = [tuple([number[v] for v in scope]) for scope in scopes if len(scope) > 1]
    card = np.array([cards[v] for v in joined], np.int64)
    searched = _search(small, card, stage[joined], steps, cost, seed, time_limit, progress, searches)
    found = [joined[i] for i in searched]
    order = [*rest, *found]
    return sorted(order, key=lambda v: stage[v]) if len(last) else order


def _search(
    scopes: Sequence[tuple[int, ...]],
    card: Ints,
    stage: Ints,
    steps: float,
    cost: OrderCost,
    seed: int,
    time_limit: float | None,
    progress: bool | None,
    searches: int | None,
) -> list[int]:
    """Search an order of variables that are all in tables with others."""
    if not len(card):
        return []
    adjacency: list[set[int]] = [set() for _ in card]
    for scope in scopes:
        for v in scope:
            adjacency[v].update(scope)
    for v, near in enumerate(adjacency):
        near.discard(v)
    several = thread_count() if searches is None else searches
    starts = _first_orders(scopes, adjacency, card, stage)
    if steps <= 0 or starts[0][1] >= HOPELESS:
        first: list[int] = starts[0][0].tolist()
        return first
    laid_out = [_annealing(adjacency, card, stage, order, cost) for order, _ in starts[:several]]
    annealings = [laid_out[k % len(starts)].copy(seed, k) for k in range(several)]
    with Clock(time_limit, progress, total=int(steps), unit="step", scale=True, name="order search") as clock:

        def work(one: _Annealing, room: None) -> None:
            largest = min(float(LARGEST), max(4.0, len(card)))
            while (
                one.sums[DONE] < steps
                and one.sums[BEST] > NEGLIGIBLE * cost.bucket * len(card)
                and not clock.over()
            ):
                done = float(one.sums[DONE])
                end = min(steps, done + STRETCH)
                run = either(HOME, 7.0 * (steps - done))
                given = one.longest, end, steps, HOT, COLD, largest, cost.limit, cost.over
                run(one.tree, one.room, one.random, one.sums, *given)
                if one is annealings[0]:
                    best = float(one.sums[BEST])
                    clock.advance(int(one.sums[DONE] - done), f"2**{np.log2(best):.2f}", best)

        in_parallel(work, annealings, lambda: None)
    order: list[int] = min(annealings, key=lambda one: float(one.sums[BEST])).tree.best.tolist()
    return order


def _first_orders(
    scopes: Sequence[tuple[int, ...]], adjacency: list[set[int]], card: Ints, stage: Ints
) -> list[tuple[Ints, float]]:
    """Return up to four simple orders with their totals, the best one first: three greedy ones, and one by levels.

    Levels suit wide grids, where greedy orders are thousands of times worse.
    """
    from markovia.kernels.clique_trees.elimination import find_order

    start = np.array([0, *accumulate(map(len, scopes))], np.int64)
    flat = np.array(list(chain.from_iterable(scopes)), np.int64)
    found: list[tuple[Ints, float]] = []
    limit = HOPELESS
    for kind in range(3):
        order, total, _ = find_order(start, flat, card, stage, 0.0, 0.0, kind, limit)
        if total < limit:
            found.append((order, total))
            limit = min(limit, FAR * total)
    levels = np.array(_by_levels(adjacency), np.int64)
    levels = levels[np.argsort(stage[levels], kind="stable")]
    weights = card.astype(float)
    steps = eliminate(adjacency, "min-degree", weights.tolist(), np.argsort(levels).tolist(), stop=limit)
    if len(steps) == len(card):
        found.append((levels, sum(float(weights[[v, *ring]].prod()) for v, ring in steps)))
    return sorted(found, key=lambda one: one[1]) or [(levels, HOPELESS)]


def _by_levels(adjacency: list[set[int]]) -> list[int]:
    """Return the vertices by their distance from one at the rim, component after component (Cuthill and McKee 1969)."""
    order: list[int] = []
    reached: set[int] = set()
    for start in range(len(adjacency)):
        if start not in reached:
            # the last vertex that a search reaches lies at the rim, the one it reaches from there at the opposite one
            for _ in range(3):
                queue, seen = [start], {start}
                for v in queue:
                    more = sorted(adjacency[v] - seen)
                    queue += more
                    seen.update(more)
                start = queue[-1]
            order += queue
            reached |= seen
    return order


def _annealing(
    adjacency: list[set[int]], card: Ints, stage: Ints, order: Ints, cost: OrderCost
) -> _Annealing:
    """Lay an order out as a tree with room to work on it; `copy` gives it random numbers."""
    n = len(card)
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    rings = dict(follow(adjacency, order.tolist()))
    size = np.array([len(rings[v]) for v in range(n)], np.int64)
    longest = int(min(n, 2 * size.max() + 8))
    ring = np.zeros((n, longest), np.int64)
    parent, first, after, before = (np.full(n, -1, np.int64) for _ in range(4))
    message = np.ones(n)
    for v in range(n):
        listed = np.array(sorted(rings[v]), np.int64)
        ring[v, : len(listed)] = listed
        message[v] = card[listed].prod(dtype=float)
        if len(listed):
            p = parent[v] = listed[rank[listed].argmin()]
            after[v] = first[p]
            if first[p] >= 0:
                before[first[p]] = v
            first[p] = v
    beyond = np.log2(np.maximum(message / cost.limit, 1.0))
    costs = card * message * (1.0 + cost.over * beyond)
    degrees = [len(near) for near in adjacency]
    near = np.array([u for around in adjacency for u in sorted(around)], np.int64)
    tree = OrderTree(
        np.array([0, *accumulate(degrees)], np.int64),
        near,
        card.astype(float),
        np.log2(np.maximum(card, 1.001)),
        stage,
        parent,
        first,
        after,
        before,
        size,
        ring,
        costs,
        order.copy(),
    )
    # a part is at most so many vertices and the ring of its root
    room = min(n, LARGEST + longest)
    words = ceil(room / BITS)
    lengths = n, room, n, *[room * words] * 3, room, room, n, words
    total = float(costs.sum())
    return _Annealing(
        tree,
        PartRoom(*[np.full(k, -1, np.int64) for k in lengths], *[np.zeros(room) for _ in range(4)]),  # type: ignore[arg-type]
        np.empty(0, np.uint64),
        np.array([0.0, total, total]),
        longest,
    )
