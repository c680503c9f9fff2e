"""Open paths of an undirected graph, shortest first: why separation fails.

A path is open if nothing on it is observed. There can be exponentially many, so they come one by one, each for
the price of one breadth-first search a node of the path before it (Yen 1971, "Finding the K shortest loopless
paths in a network"). To decide separation use `separated`, which is linear.
"""

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from markovia.graphs.kinds.undirected import UndirectedGraph


def open_paths(graph: UndirectedGraph, x: str, y: str, given: Sequence[str] = ()) -> Iterator[list[str]]:
    """Yield the paths from x to y that visit no node twice and avoid the observed ones, shortest first.

    Examples
    --------
    >>> square = UndirectedGraph([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    >>> list(open_paths(square, "a", "c"))
    [['a', 'b', 'c'], ['a', 'd', 'c']]
    >>> list(open_paths(square, "a", "c", given=["b"]))
    [['a', 'd', 'c']]
    """
    observed = set(given)
    first = _shortest_path(graph, x, y, observed, set())
    waiting = [(len(first), 0, first)] if first else []
    known = {tuple(first)}
    found: list[list[str]] = []
    while waiting:
        path = heappop(waiting)[-1]
        yield path
        found.append(path)
        for k in range(len(path) - 1):
            root = path[: k + 1]
            taken = {other[k + 1] for other in found if other[: k + 1] == root}
            detour = _shortest_path(graph, path[k], y, observed | set(root[:-1]), taken)
            branch = root[:-1] + detour
            if detour and tuple(branch) not in known:
                known.add(tuple(branch))
                # the number keeps paths of one length in the order they were found
                heappush(waiting, (len(branch), len(known), branch))


def reached(
    graph: UndirectedGraph, start: Sequence[str], blocked: set[str], not_first: set[str] | None = None
) -> dict[str, str | None]:
    """Return every node within reach of a start without passing a blocked one, with the node before it.

    The first step does not go to a node of `not_first`.
    """
    before: dict[str, str | None] = dict.fromkeys(start)
    queue = list(start)
    for k, node in enumerate(queue):
        closed = blocked if k >= len(start) or not not_first else blocked | not_first
        for other in graph.neighbors(node):
            if other not in before and other not in closed:
                before[other] = node
                queue.append(other)
    return before


def _shortest_path(
    graph: UndirectedGraph, x: str, y: str, blocked: set[str], not_first: set[str]
) -> list[str]:
    before = reached(graph, [x], blocked, not_first)
    if y not in before:
        return []
    path = [y]
    while (previous := before[path[-1]]) is not None:
        path.append(previous)
    return path[::-1]
