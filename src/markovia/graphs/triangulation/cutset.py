"""Cutsets: nodes whose observation leaves a graph without cycles, so that the rest is easy.

A feedback vertex set of an undirected graph meets every cycle; a loop cutset of a DAG blocks every loop
when observed, where a node does not block a loop on which it is a collider. Finding a smallest one is
NP-hard. Both functions are greedy: nodes on no cycle are peeled off, then the node of largest degree (for
its weight) is taken, and at the end members that are not needed are dropped. References: Pearl,
*Probabilistic Reasoning in Intelligent Systems* (1988), section 4.4.2; Becker and Geiger, *Approximation
algorithms for the loop cutset problem*, UAI (1994).
"""

from heapq import heapify, heappop, heappush

from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.named import Names, need
from markovia.graphs.kinds.undirected import UndirectedGraph


def feedback_vertex_set(graph: UndirectedGraph) -> list[str]:
    """Find nodes without which the graph is a forest; no member of the answer can be spared.

    Parameters
    ----------
    graph
        An undirected graph.

    Returns
    -------
    list of str
        The nodes, in node order; empty for a forest.

    Examples
    --------
    >>> feedback_vertex_set(UndirectedGraph([("a", "b"), ("b", "c"), ("c", "a"), ("b", "d"), ("d", "c")]))
    ['b']
    """
    need(graph, UndirectedGraph, instead={"DAG": "use loop_cutset"})
    chosen = _greedy(_adjacency(graph))
    keep = set(chosen)
    for node in reversed(chosen):
        rest = graph.subgraph(n for i, n in enumerate(graph.nodes) if i not in keep or i == node)
        if rest.is_forest():
            keep.discard(node)
    return graph._named(sorted(keep))


def loop_cutset(dag: DAG) -> list[str]:
    """Find nodes of a DAG that, once observed, leave a singly connected network.

    Observing a node cuts its outgoing edges, so a loop is open as long as every member of the cutset on it
    is a collider there.

    Parameters
    ----------
    dag
        A directed acyclic graph.

    Returns
    -------
    list of str
        The nodes, in node order; empty for a polytree.

    Examples
    --------
    >>> loop_cutset(DAG([("smoke", "lung"), ("smoke", "bronc"), ("lung", "dysp"), ("bronc", "dysp")]))
    ['smoke']
    """
    need(dag, DAG, instead={"UndirectedGraph": "use feedback_vertex_set"})
    # split each node into a part that receives edges and a part that sends them, joined by an edge:
    # cutting the sending part cuts every loop on which the node is not a collider
    n = len(dag)
    adjacency: list[set[int]] = [{n + i} for i in range(n)] + [{i} for i in range(n)]
    for j, parents in enumerate(dag._parents):
        for i in parents:
            adjacency[n + i].add(j)
            adjacency[j].add(n + i)
    chosen = [i - n for i in _greedy(adjacency, allowed=n)]
    keep = set(chosen)
    for node in reversed(chosen):
        if is_loop_cutset(dag, dag._named(keep - {node})):
            keep.discard(node)
    return dag._named(sorted(keep))


def is_loop_cutset(dag: DAG, names: Names) -> bool:
    """Decide whether observing some nodes leaves a singly connected network.

    Examples
    --------
    >>> diamond = DAG([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    >>> is_loop_cutset(diamond, ["a"]), is_loop_cutset(diamond, ["d"])
    (True, False)
    """
    need(dag, DAG)
    observed = set(dag._numbers(names))
    names_ = dag._names
    kept = ((names_[i], names_[j]) for j, ps in enumerate(dag._parents) for i in ps if i not in observed)
    return UndirectedGraph(kept, nodes=names_).is_forest()


def _adjacency(graph: UndirectedGraph) -> list[set[int]]:
    return [set(n) for n in graph._neighbors]


def _greedy(neighbors: list[set[int]], allowed: int = 0) -> list[int]:
    """Peel nodes on no cycle; when none is left take one numbered `allowed` or more, of largest degree."""
    heap = [(-len(near), i) for i, near in enumerate(neighbors) if i >= allowed]
    heapify(heap)
    gone = bytearray(len(neighbors))
    chosen: list[int] = []

    def remove(start: int) -> None:
        stack = [start]
        while stack:
            node = stack.pop()
            if gone[node]:
                continue
            gone[node] = 1
            for other in neighbors[node]:
                neighbors[other].discard(node)
                if len(neighbors[other]) <= 1:
                    stack.append(other)
                elif other >= allowed:
                    heappush(heap, (-len(neighbors[other]), other))
            neighbors[node] = set()

    for i, near in enumerate(neighbors):
        if len(near) <= 1:
            remove(i)
    while heap:
        degree, node = heappop(heap)
        if not gone[node] and len(neighbors[node]) == -degree:
            chosen.append(node)
            remove(node)
    return chosen
