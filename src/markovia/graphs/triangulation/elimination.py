"""Greedy elimination orders on integer-indexed graphs.

Eliminating a vertex connects its neighbours. The order decides the largest clique that appears, and with
it the cost of exact inference; finding the best order is NP-hard, so each step takes the vertex with the
smallest score: its degree (min-degree), the number of edges it would add (min-fill), the size of the
table it would create (min-weight), or the weighted count of added edges (weighted-min-fill).
Reference: Koller and Friedman (2009), section 9.4.3. Cost: near-linear for sparse graphs.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from math import exp, inf, log
from typing import Literal, TypeAlias, get_args

from markovia.errors import InvalidArgument, InvalidGraph
from markovia.graphs.kinds.named import NamedGraph

Heuristic: TypeAlias = Literal["min-degree", "min-fill", "min-weight", "weighted-min-fill"]


def greedy_order(
    adjacency: Sequence[set[int]],
    heuristic: Heuristic = "min-fill",
    weights: Sequence[float] | None = None,
    stages: Sequence[int] | None = None,
) -> list[int]:
    """Return a greedy elimination order.

    Parameters
    ----------
    adjacency
        Neighbours of every vertex (left untouched).
    heuristic
        The score to minimise at each step.
    weights
        A weight a vertex, for discrete variables the number of states; 2 where not given.
    stages
        Vertices of a smaller stage are all eliminated before those of a larger one (query variables last).

    Examples
    --------
    >>> greedy_order([{1}, {0, 2}, {1, 3}, {2}], "min-degree")
    [0, 1, 2, 3]
    """
    return [vertex for vertex, _ in eliminate(adjacency, heuristic, weights, stages)]


def eliminate(
    adjacency: Sequence[set[int]],
    heuristic: Heuristic = "min-fill",
    weights: Sequence[float] | None = None,
    stages: Sequence[int] | None = None,
    cap: float = inf,
    stop: float = inf,
) -> list[tuple[int, set[int]]]:
    """Return a greedy elimination order with the neighbours that each vertex has when its turn comes.

    Parameters
    ----------
    adjacency, heuristic, weights, stages
        As in `greedy_order`.
    cap
        Stages hold only as long as they lead to tables of at most this many entries (products of weights): a
        vertex whose table would be larger waits until all others, of whatever stage, would be as large.
    stop
        Entries of all tables together at which the search ends, with the order up to there.

    Examples
    --------
    >>> eliminate([{1}, {0, 2}, {1}], "min-degree")
    [(0, {1}), (1, {2}), (2, set())]
    """
    if isinstance(adjacency, NamedGraph):
        raise InvalidGraph("greedy_order works on numbered vertices; use triangulate(graph).order")
    check_heuristic(heuristic)
    graph = [set(neighbours) for neighbours in adjacency]
    n = len(graph)
    logs = [log(w) for w in weights] if weights is not None else [log(2.0)] * n
    stage = list(stages) if stages is not None else [0] * n
    highest = max(stage, default=0) + 1
    limit = log(cap) * (1 + 1e-12) if cap < inf else inf
    fills = [_fill(graph, v) for v in range(n)] if heuristic == "min-fill" else []

    def key(v: int) -> tuple[int, float, int]:
        late = limit < inf and sum([logs[u] for u in graph[v]]) + logs[v] > limit
        score = fills[v] if fills else _score(graph, v, logs, heuristic)
        return (stage[v] + highest if late else stage[v], score, v)

    current: list[tuple[int, float, int] | None] = [key(v) for v in range(n)]
    heap = [k for k in current if k is not None]
    heapify(heap)
    found: list[tuple[int, set[int]]] = []
    total = 0.0
    while heap:
        entry = heappop(heap)
        v = entry[2]
        if entry != current[v]:
            continue  # eliminated, or scored anew since
        current[v] = None
        around = graph[v]
        if stop < inf:
            total += exp(min(logs[v] + sum([logs[u] for u in around]), 700.0))
            if total > stop:
                break
        touched = (
            _connect_and_count(graph, around, fills)
            if fills
            else _connect(graph, around, second_ring=heuristic == "weighted-min-fill")
        )
        for u in around:
            near = graph[u]
            near.discard(v)
            if fills:
                fills[u] -= len(near) + 1 - len(around)
        graph[v] = set()
        found.append((v, around))
        touched |= around
        touched.discard(v)
        for u in touched:
            fresh = key(u)
            if fresh != current[u]:
                current[u] = fresh
                heappush(heap, fresh)
    return found


def follow(adjacency: Sequence[set[int]], order: Sequence[int]) -> list[tuple[int, set[int]]]:
    """Eliminate in the given order; return it with the neighbours that each vertex has when its turn comes.

    Examples
    --------
    >>> follow([{1}, {0, 2}, {1}], [1, 0, 2])
    [(1, {0, 2}), (0, {2}), (2, set())]
    """
    graph = [set(neighbours) for neighbours in adjacency]
    found: list[tuple[int, set[int]]] = []
    for v in order:
        around = graph[v]
        for u in around:
            graph[u] |= around
            graph[u] -= {u, v}
        found.append((v, around))
    return found


def check_heuristic(heuristic: str, others: Sequence[str] = ()) -> None:
    """Raise `InvalidArgument` unless this is the name of an order heuristic; `others` are allowed too."""
    known = [*get_args(Heuristic), *others]
    if heuristic not in known:
        raise InvalidArgument(f"unknown order heuristic {heuristic!r}; there are {', '.join(known)}")


def _connect(graph: list[set[int]], around: set[int], second_ring: bool) -> set[int]:
    """Join all vertices of a neighbourhood; return who sees a new edge where that is asked for."""
    touched: set[int] = set()
    for u in around:
        near = graph[u]
        missing = around - near
        missing.discard(u)
        if missing:
            if second_ring:
                for w in missing:
                    touched |= near & graph[w]
            near |= missing
    return touched


def _connect_and_count(graph: list[set[int]], around: set[int], fills: list[int]) -> set[int]:
    """Join all vertices of a neighbourhood, keep the counts of missing edges, and return who sees a new edge."""
    touched: set[int] = set()
    for u in around:
        near = graph[u]
        for w in around - near:
            if w == u:
                continue
            far = graph[w]
            common = near & far
            touched |= common
            for x in common:
                fills[x] -= 1
            fills[u] += len(near) - len(common)
            fills[w] += len(far) - len(common)
            near.add(w)
            far.add(u)
    return touched


def _fill(graph: list[set[int]], v: int) -> int:
    """Count the pairs of neighbours that are not joined."""
    around = graph[v]
    degree = len(around)
    if degree < 2:
        return 0
    if degree == 2:
        u, w = around
        return 0 if w in graph[u] else 1
    return (degree * (degree - 1) - sum([len(graph[u] & around) for u in around])) // 2


def _score(graph: list[set[int]], v: int, logs: list[float], heuristic: Heuristic) -> float:
    around = graph[v]
    if heuristic == "min-degree":
        return len(around)
    if heuristic == "min-weight":
        return sum([logs[u] for u in around]) + logs[v]
    total = 0.0
    for u in around:
        for w in around - graph[u]:
            if w != u:
                total += logs[u] + logs[w]
    return total / 2.0
