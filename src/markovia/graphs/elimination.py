"""Greedy elimination orders on integer-indexed graphs.

Eliminating a vertex connects its neighbours. The order decides the largest clique that appears, and with
it the cost of exact inference; finding the best order is NP-hard, so each step takes the vertex with the
smallest score: its degree (min-degree), the number of edges it would add (min-fill), the size of the
table it would create (min-weight), or the weighted count of added edges (weighted-min-fill).
Reference: Koller and Friedman (2009), section 9.4.3. Cost: near-linear for sparse graphs.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from math import log
from typing import Literal, TypeAlias, get_args

from markovia.errors import InvalidArgument, InvalidGraph
from markovia.graphs._named import NamedGraph

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
    if isinstance(adjacency, NamedGraph):
        raise InvalidGraph("greedy_order works on numbered vertices; use triangulate(graph).order")
    check_heuristic(heuristic)
    graph = [set(neighbours) for neighbours in adjacency]
    logs = [log(w) for w in weights] if weights is not None else [log(2.0)] * len(graph)
    stage = list(stages) if stages is not None else [0] * len(graph)

    def score(v: int) -> float:
        around = graph[v]
        if heuristic == "min-degree":
            return len(around)
        if heuristic == "min-weight":
            return sum(logs[u] for u in around) + logs[v]
        return _fill(graph, around, logs if heuristic == "weighted-min-fill" else None)

    reaches_second_ring = heuristic in ("min-fill", "weighted-min-fill")
    current = [score(v) for v in range(len(graph))]
    heap = [(stage[v], current[v], v) for v in range(len(graph))]
    heapify(heap)
    done = [False] * len(graph)
    order: list[int] = []
    while heap:
        _, s, v = heappop(heap)
        if done[v] or s != current[v]:
            continue
        done[v] = True
        order.append(v)
        around = graph[v]
        touched = set(around)
        for u in around:
            missing = around - graph[u]
            missing.discard(u)
            if missing and reaches_second_ring:
                for w in missing:
                    touched |= graph[u] & graph[w]
            graph[u] |= missing
            graph[u].discard(v)
        graph[v] = set()
        for u in touched:
            if not done[u]:
                fresh = score(u)
                if fresh != current[u]:
                    current[u] = fresh
                    heappush(heap, (stage[u], fresh, u))
    return order


def check_heuristic(heuristic: str) -> None:
    """Raise `InvalidArgument` unless this is the name of an order heuristic."""
    if heuristic not in get_args(Heuristic):
        raise InvalidArgument(
            f"unknown order heuristic {heuristic!r}; there are {', '.join(get_args(Heuristic))}"
        )


def _fill(graph: list[set[int]], around: set[int], logs: list[float] | None) -> float:
    total = 0.0
    if logs is None:
        for u in around:
            total += len(around) - 1 - len(graph[u] & around)
    else:
        for u in around:
            for w in around - graph[u]:
                if w != u:
                    total += logs[u] + logs[w]
    return total / 2.0
