"""Possible-D-SEP: which nodes may be needed to separate two that no set of neighbours separates.

With hidden variables a separating set need not lie among the neighbours. It lies in Possible-D-SEP(x): the nodes at the
end of a path from x on which every inner node is a collider or the middle of a triangle (Spirtes, Glymour and Scheines,
*Causation, Prediction, and Search*, section 6.7). All sets are found before any edge goes, so that the order of the
variables does not matter (Colombo and Maathuis, JMLR 15, 2014), and only nodes on some path between x and y, those of
their biconnected part, are used (Colombo et al., Annals of Statistics 40, 2012). Cost: exponential in the size of the
sets.
"""

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from markovia.runtime.array_types import Flags
from markovia.runtime.clock import Clock
from markovia.structure.ci_tests.ci_tests import CITest, Query
from markovia.structure.constraint.ancestral_rules import ARROW, NONE, Ancestral, Marks
from markovia.structure.task.knowledge import Rules

MOST_AT_ONCE = 256


def possible_d_sep(marks: Marks, x: int, max_path_length: int | None = None) -> set[int]:
    """Return the nodes at the end of a path from x whose inner nodes are colliders or in triangles.

    Parameters
    ----------
    marks
        The marks, colliders oriented; see `ancestral_rules`.
    x
        The start.
    max_path_length
        The largest number of edges of such a path; None for no limit.

    Examples
    --------
    >>> from markovia.structure.constraint.ancestral_rules import CIRCLE
    >>> marks = np.zeros((4, 4), dtype=np.int8)
    >>> for i, j, at_i, at_j in [(0, 1, CIRCLE, ARROW), (1, 2, ARROW, ARROW), (2, 3, CIRCLE, CIRCLE)]:
    ...     marks[i, j], marks[j, i] = at_j, at_i
    >>> sorted(possible_d_sep(marks, 0))
    [1, 2]
    """
    adjacent = marks != NONE
    arrow = marks == ARROW
    found = set(np.flatnonzero(adjacent[x]).tolist())
    level = [(x, b) for b in sorted(found)]
    seen = set(level)
    length = 1
    while level and (max_path_length is None or length < max_path_length):
        further = []
        for a, b in level:
            onward = adjacent[b] & (adjacent[a] | (arrow[:, b] if arrow[a, b] else False))
            onward[a] = onward[x] = False
            for c in np.flatnonzero(onward).tolist():
                if (b, c) not in seen:
                    seen.add((b, c))
                    found.add(c)
                    further.append((b, c))
        level = further
        length += 1
    return found


def search_possible_d_sep(
    pag: Ancestral,
    test: CITest,
    rules: Rules,
    clock: Clock,
    *,
    depth: int | None = None,
    max_path_length: int | None = None,
) -> tuple[list[set[int]], list[tuple[int, int]]]:
    """Take away the edges whose ends some subset of their Possible-D-SEP separates; marks of other edges stay.

    Parameters
    ----------
    pag
        The graph with its colliders oriented.
    test, rules, clock
        The independence test, what is known, when to stop.
    depth
        The largest size of a conditioning set; None for no limit.
    max_path_length
        As in `possible_d_sep`.

    Returns
    -------
    sets, removed
        Possible-D-SEP of each node, and the edges that went.
    """
    frozen = pag.marks.copy()
    adjacent = frozen != NONE
    n = len(frozen)
    sets = [possible_d_sep(frozen, x, max_path_length) for x in range(n)]
    parts = _biconnected(adjacent)
    kept = rules.required_pairs
    removed = []
    for x, y in zip(*(k.tolist() for k in np.nonzero(np.triu(adjacent))), strict=True):
        if clock.over():
            break
        if kept[x, y]:
            continue
        around = parts[(x, y)]
        for batch in _batches(adjacent, sets, around, x, y, depth):
            independent = np.array(test.p_values_until(batch, clock)) > test.alpha
            if independent.any():
                pag.remove(x, y, batch[int(independent.argmax())][2])
                removed.append((x, y))
                break
            if clock.over():
                break
        clock.advance()
    return sets, removed


def _batches(
    adjacent: Flags, sets: list[set[int]], around: set[int], x: int, y: int, depth: int | None
) -> Iterator[list[Query]]:
    """Yield the sets that were not tried among the neighbours, small ones first, in growing batches."""
    near = [set(np.flatnonzero(adjacent[v]).tolist()) - {x, y} for v in (x, y)]
    pools = [sorted((sets[v] & around) - {x, y}) for v in (x, y)]
    largest = max(map(len, pools))
    size_of_batch = 8
    batch: list[Query] = []
    for size in range(1, (largest if depth is None else min(depth, largest)) + 1):
        for pool, tried in zip(pools, ([], [set(pools[0])]), strict=True):
            for given in combinations(pool, size):
                if any(known.issuperset(given) for known in (*near, *tried)):
                    continue
                batch.append((x, y, given))
                if len(batch) == size_of_batch:
                    yield batch
                    batch, size_of_batch = [], min(2 * size_of_batch, MOST_AT_ONCE)
    if batch:
        yield batch


def _biconnected(adjacent: Flags) -> dict[tuple[int, int], set[int]]:
    """Return, for each edge (smaller number first), the nodes of its biconnected part (Hopcroft and Tarjan 1973)."""
    n = len(adjacent)
    near = [np.flatnonzero(row).tolist() for row in adjacent]
    number, low = [-1] * n, [0] * n
    parts: dict[tuple[int, int], set[int]] = {}
    counter = 0
    for root in range(n):
        if number[root] >= 0:
            continue
        number[root] = low[root] = counter
        counter += 1
        edges: list[tuple[int, int]] = []
        stack = [(root, -1, iter(near[root]))]
        while stack:
            at, parent, rest = stack[-1]
            to = next(rest, None)
            if to is None:
                stack.pop()
                if parent < 0:
                    continue
                low[parent] = min(low[parent], low[at])
                if low[at] >= number[parent]:
                    own: list[tuple[int, int]] = []
                    while not own or own[-1] != (parent, at):
                        own.append(edges.pop())
                    nodes = {v for edge in own for v in edge}
                    parts.update({(min(e), max(e)): nodes for e in own})
            elif number[to] < 0:
                number[to] = low[to] = counter
                counter += 1
                edges.append((at, to))
                stack.append((to, at, iter(near[to])))
            elif to != parent and number[to] < number[at]:
                edges.append((at, to))
                low[at] = min(low[at], number[to])
    return parts
