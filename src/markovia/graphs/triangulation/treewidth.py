"""The treewidth of a small graph, proved.

Method: decide for growing k whether some elimination order has width at most k. A depth-first search eliminates
vertices and remembers which sets it has eliminated (what is left depends on the set, not on its order). Vertices
whose neighbours form a clique, or do so but for one vertex, are eliminated without branching where that is safe; a
branch is given up if a minor of what is left has minimum degree above k. Components are taken one by one.
References: Gogate and Dechter, *A complete anytime algorithm for treewidth*, 2004; Bodlaender et al., *On exact
algorithms for treewidth*, 2012.
Cost: exponential in the number of vertices that the safe rules leave; 25 are usually fine.
"""

from collections.abc import Iterator

from markovia.errors import TooLarge
from markovia.graphs.kinds.named import need
from markovia.graphs.kinds.undirected import UndirectedGraph

Masks = dict[int, int]
"""The neighbours of each vertex that is left, as bits."""


def exact_treewidth(
    graph: UndirectedGraph, *, at_most: int | None = None, max_steps: int = 10_000_000
) -> int:
    """Return the treewidth: the least width of any elimination order.

    Parameters
    ----------
    graph
        An undirected graph.
    at_most
        The width of an order that is known, which spares part of the search.
    max_steps
        How long to search: the pairs of vertices left, over all sets looked at (about a million a second).

    Raises
    ------
    TooLarge
        If the steps run out first; the message has the bounds found so far.

    Examples
    --------
    >>> from markovia.graphs import cycle, grid
    >>> exact_treewidth(cycle(6)), exact_treewidth(grid(3, 3))
    (2, 3)
    """
    need(graph, UndirectedGraph)
    if not len(graph):
        return 0
    number = {name: i for i, name in enumerate(graph)}
    masks = {i: _bits(number[u] for u in graph.neighbors(n)) for n, i in number.items()}
    high = len(graph) - 1 if at_most is None else at_most
    low = min(high, _minor_bound(masks))
    steps = [max_steps]
    for part in _components(masks):
        while low < high and not _has_width(part, low, steps):
            low += 1
            if steps[0] <= 0:
                raise TooLarge(
                    f"the treewidth is between {low - 1} and {high}; proving it takes more than {max_steps:,} steps. "
                    "treewidth() without exact=True gives the upper bound"
                )
    return low


def _bits(numbers: Iterator[int]) -> int:
    return sum([1 << i for i in set(numbers)])


def _members(mask: int) -> Iterator[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _components(masks: Masks) -> list[Masks]:
    left = set(masks)
    parts: list[Masks] = []
    while left:
        queue = [left.pop()]
        for v in queue:
            near = [u for u in _members(masks[v]) if u in left]
            left.difference_update(near)
            queue += near
        parts.append({v: masks[v] for v in queue})
    return parts


def _has_width(start: Masks, k: int, steps: list[int]) -> bool:
    """Say whether some order of a connected graph has width at most k; false also where the steps run out."""
    stack = [start]
    seen: set[int] = set()
    while stack and steps[0] > 0:
        masks = dict(stack.pop())
        if not _reduce(masks, k):
            continue
        if len(masks) <= k + 1:
            return True
        key = _bits(iter(masks))
        if key in seen:
            continue
        seen.add(key)
        steps[0] -= len(masks) ** 2
        if _minor_bound(masks) > k:
            continue
        ranked = sorted((v for v in masks if masks[v].bit_count() <= k), key=lambda v: _missing(masks, v))
        for v in reversed(ranked):
            branch = dict(masks)
            _eliminate(branch, v)
            stack.append(branch)
    return False


def _reduce(masks: Masks, k: int) -> bool:
    """Eliminate what is safe for width k, in place; false if a vertex shows that k is too small."""
    waiting = set(masks)
    while waiting:
        v = waiting.pop()
        if v not in masks:
            continue
        around = masks[v]
        degree = around.bit_count()
        odd = [u for u in _members(around) if around & ~masks[u] & ~(1 << u)]
        if not odd and degree > k:
            return False
        if not odd or (degree <= k and _all_but_one(masks, around, odd)):
            _eliminate(masks, v)
            for u in _members(around):
                waiting.add(u)
                waiting.update(_members(masks[u]))
    return True


def _all_but_one(masks: Masks, around: int, odd: list[int]) -> bool:
    """Say whether the neighbours form a clique once one of them is left out."""
    for special in odd:
        rest = around & ~(1 << special)
        if all(not rest & ~masks[u] & ~(1 << u) for u in odd if u != special):
            return True
    return False


def _eliminate(masks: Masks, v: int) -> None:
    around = masks.pop(v)
    for u in _members(around):
        masks[u] = (masks[u] | around) & ~(1 << u) & ~(1 << v)


def _missing(masks: Masks, v: int) -> int:
    around = masks[v]
    return sum([(around & ~masks[u]).bit_count() - 1 for u in _members(around)])


def _minor_bound(masks: Masks) -> int:
    """Return the largest minimum degree met while contracting edges at the vertex of least degree."""
    left = dict(masks)
    bound = 0
    while left:
        v = min(left, key=lambda u: left[u].bit_count())
        around = left.pop(v)
        bound = max(bound, around.bit_count())
        if not around:
            continue
        to = min(_members(around), key=lambda u: (left[u] & around).bit_count())
        for u in _members(around):
            left[u] &= ~(1 << v)
            if u != to:
                left[u] |= 1 << to
        left[to] = (left[to] | around) & ~(1 << to) & ~(1 << v)
    return bound
