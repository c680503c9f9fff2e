"""Chordal graphs: where exact inference needs no fill-in and directed and undirected models say the same.

A graph is chordal if every cycle of four or more nodes has a chord; equivalently, if its nodes have a
perfect elimination order, in which the later neighbours of each node form a clique. Maximum cardinality
search finds such an order in O(nodes + edges); Tarjan and Yannakakis, *Simple linear-time algorithms to
test chordality of graphs*, SIAM Journal on Computing 13 (1984). An undirected model has an equivalent
directed one if and only if it is chordal.
"""

from itertools import combinations
from typing import Literal

from markovia.errors import InvalidArgument, InvalidGraph
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.linear_searches import reach, shortest_path
from markovia.graphs.kinds.named import need
from markovia.graphs.kinds.undirected import UndirectedGraph


def is_chordal(graph: UndirectedGraph) -> bool:
    """Decide whether every cycle of four or more nodes has a chord, in linear time.

    Parameters
    ----------
    graph
        An undirected graph.

    Examples
    --------
    >>> square = UndirectedGraph([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    >>> is_chordal(square)
    False
    >>> square.add_edge("a", "c")
    >>> is_chordal(square)
    True
    """
    need(graph, UndirectedGraph)
    return _violation(graph, _elimination_numbers(graph)) is None


def is_decomposable(graph: DAG | UndirectedGraph) -> bool:
    """Decide whether a directed and an undirected graph can both state exactly these independencies.

    Parameters
    ----------
    graph
        An undirected graph is decomposable if it is chordal, a DAG if it has no v-structure.

    Examples
    --------
    >>> is_decomposable(DAG([("a", "b"), ("b", "c")])), is_decomposable(DAG([("a", "b"), ("c", "b")]))
    (True, False)
    """
    need(graph, DAG, UndirectedGraph)
    return not graph.v_structures() if isinstance(graph, DAG) else is_chordal(graph)


def simplicial_vertices(graph: UndirectedGraph) -> list[str]:
    """List the nodes whose neighbours are all joined to each other.

    A chordal graph that is not complete has two of them that are not adjacent.

    Examples
    --------
    >>> simplicial_vertices(UndirectedGraph([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]))
    ['a', 'b', 'd']
    """
    need(graph, UndirectedGraph)
    neighbors = [set(n) for n in graph._neighbors]
    return [name for i, name in enumerate(graph.nodes) if _is_simplicial(neighbors, i)]


def perfect_elimination_order(
    graph: UndirectedGraph, last: str | None = None, method: Literal["mcs", "simplicial"] = "mcs"
) -> list[str]:
    """Order the nodes of a chordal graph so that eliminating them one by one adds no edge.

    Parameters
    ----------
    graph
        A chordal graph.
    last
        A node to keep to the end, such as the variable of a query.
    method
        `"mcs"`: maximum cardinality search, linear. `"simplicial"`: remove any simplicial vertex, again and
        again.

    Raises
    ------
    InvalidGraph
        If the graph is not chordal; the message shows a cycle without a chord.

    Examples
    --------
    >>> perfect_elimination_order(UndirectedGraph([("a", "b"), ("b", "c")]), last="c")
    ['a', 'b', 'c']
    """
    need(graph, UndirectedGraph)
    keep = None if last is None else graph._number(last)
    if method == "mcs":
        order = _elimination_numbers(graph, keep)
        if _violation(graph, order) is not None:
            raise _not_chordal(graph)
        return graph._named(order)
    if method == "simplicial":
        return graph._named(_simplicial_order(graph, keep))
    raise InvalidArgument(f"unknown method {method!r}; use 'mcs' or 'simplicial'")


def maximal_cliques_chordal(graph: UndirectedGraph) -> list[tuple[str, ...]]:
    """List the maximal cliques of a chordal graph in linear time.

    Along a perfect elimination order each node and its later neighbours form a clique; those contained in
    another one are left out.

    Raises
    ------
    InvalidGraph
        If the graph is not chordal.

    Examples
    --------
    >>> maximal_cliques_chordal(UndirectedGraph([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]))
    [('a', 'b', 'c'), ('c', 'd')]
    """
    need(graph, UndirectedGraph)
    order = graph._numbers(perfect_elimination_order(graph))
    later = later_neighbors(graph, order)
    maximal = bytearray([1]) * len(order)
    for node in order:
        if later[node]:
            first = later[node][0]
            if len(later[node]) == len(later[first]) + 1:
                maximal[first] = 0
    cliques = (sorted([node, *later[node]]) for node in order if maximal[node])
    return [tuple(graph._named(clique)) for clique in sorted(cliques)]


def chordless_cycle(graph: UndirectedGraph) -> list[str] | None:
    """Find a cycle of four or more nodes without a chord, or None if the graph is chordal.

    Returns
    -------
    list of str or None
        The nodes of the cycle, each once. O(nodes x edges) at worst.

    Examples
    --------
    >>> chordless_cycle(UndirectedGraph([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]))
    ['a', 'b', 'c', 'd']
    """
    if is_chordal(graph):
        return None
    neighbors = graph._neighbors
    for node in range(len(graph)):
        near = neighbors[node]
        label: dict[int, int] = {}  # part of the graph without the node and its neighbours
        for start in range(len(graph)):
            if start != node and start not in near and start not in label:
                for i in reach([start], neighbors, blocked=[node, *near]):
                    label[i] = start
        touches = {i: {label[j] for j in neighbors[i] if j in label} for i in near}
        for i, j in combinations(near, 2):
            if j not in neighbors[i] and touches[i] & touches[j]:
                path = shortest_path(i, j, neighbors, blocked=[node, *(k for k in near if k not in (i, j))])
                return graph._named([node, *path])
    raise AssertionError("a graph that is not chordal has a chordless cycle")


def to_directed(graph: UndirectedGraph) -> DAG:
    """Direct a chordal graph so that the DAG states the same independencies.

    Parameters
    ----------
    graph
        A chordal graph; edges are directed against a perfect elimination order, so no v-structure appears.

    Raises
    ------
    InvalidGraph
        If the graph is not chordal: then no DAG states the same; the message shows a cycle without a chord.

    Examples
    --------
    >>> to_directed(UndirectedGraph([("a", "b"), ("b", "c")])).edges
    [('a', 'b'), ('b', 'c')]
    """
    order = perfect_elimination_order(graph)
    rank = {name: k for k, name in enumerate(reversed(order))}
    edges = (edge if rank[edge[0]] < rank[edge[1]] else edge[::-1] for edge in graph.edges)
    return DAG(edges, nodes=graph.nodes)


def later_neighbors(graph: UndirectedGraph, order: list[int]) -> list[list[int]]:
    """List, for each node number, its neighbours that come later in an order, the earliest first.

    Examples
    --------
    >>> later_neighbors(UndirectedGraph([("a", "b"), ("b", "c")]), [0, 2, 1])
    [[1], [], [1]]
    """
    later: list[list[int]] = [[] for _ in order]
    seen = bytearray(len(order))
    for node in order:
        seen[node] = 1
        for other in graph._neighbors[node]:
            if seen[other]:
                later[other].append(node)
    return later


def _elimination_numbers(graph: UndirectedGraph, last: int | None = None) -> list[int]:
    """Run a maximum cardinality search and return the visited nodes backwards."""
    neighbors = graph._neighbors
    weight = [0] * len(graph)
    visited = bytearray(len(graph))
    buckets: list[list[int]] = [list(range(len(graph) - 1, -1, -1))]
    if last is not None:
        buckets[0].append(last)
    order: list[int] = []
    top = 0
    while len(order) < len(graph):
        while not buckets[top]:
            top -= 1
        node = buckets[top].pop()
        if visited[node] or weight[node] != top:
            continue  # a stale entry: the node was visited or moved to a higher bucket since
        visited[node] = 1
        order.append(node)
        for other in neighbors[node]:
            if not visited[other]:
                weight[other] += 1
                if weight[other] == len(buckets):
                    buckets.append([])
                buckets[weight[other]].append(other)
        top = min(top + 1, len(buckets) - 1)
    return order[::-1]


def _violation(graph: UndirectedGraph, order: list[int]) -> int | None:
    """Find a node whose later neighbours are not a clique, or None for a perfect elimination order."""
    later = later_neighbors(graph, order)
    for node in order:
        if len(later[node]) > 1:
            first, *rest = later[node]
            if any(other not in graph._neighbors[first] for other in rest):
                return node
    return None


def _simplicial_order(graph: UndirectedGraph, keep: int | None) -> list[int]:
    neighbors = [set(n) for n in graph._neighbors]
    removed = bytearray(len(graph))
    order: list[int] = []
    waiting = dict.fromkeys(range(len(graph) - 1, -1, -1))
    while waiting:
        node, _ = waiting.popitem()
        if removed[node] or node == keep or not _is_simplicial(neighbors, node):
            continue
        removed[node] = 1
        order.append(node)
        for other in neighbors[node]:
            neighbors[other].discard(node)
            waiting[other] = None
    if keep is not None:
        order.append(keep)
    if len(order) < len(graph):
        raise _not_chordal(graph)
    return order


def _is_simplicial(neighbors: list[set[int]], node: int) -> bool:
    return all(neighbors[node] - {other} <= neighbors[other] for other in neighbors[node])


def _not_chordal(graph: UndirectedGraph) -> InvalidGraph:
    cycle = chordless_cycle(graph) or []
    return InvalidGraph(
        f"the graph is not chordal: the cycle {' - '.join([*cycle, *cycle[:1]])} has no chord; "
        "triangulate it first"
    )
