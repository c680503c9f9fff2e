"""Greedy colouring: groups of nodes without edges inside, such as the variables a sampler can update at once.

Nodes are coloured in the reverse of a degeneracy order, each with the smallest free colour, which needs at
most degeneracy + 1 colours (Matula and Beck, 1983). O(nodes + edges).
"""

from markovia.graphs.kinds.named import need
from markovia.graphs.kinds.undirected import UndirectedGraph, degeneracy_order


def greedy_colouring(graph: UndirectedGraph) -> dict[str, int]:
    """Give each node a colour 0, 1, ... that none of its neighbours has.

    Parameters
    ----------
    graph
        An undirected graph.

    Returns
    -------
    dict of str to int
        The colour of each node, in node order.

    Examples
    --------
    >>> greedy_colouring(UndirectedGraph([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]))
    {'a': 0, 'b': 1, 'c': 0, 'd': 1}
    """
    need(graph, UndirectedGraph)
    neighbors = [set(n) for n in graph._neighbors]
    colour = [-1] * len(graph)
    for node in reversed(degeneracy_order(neighbors)):
        taken = {colour[other] for other in neighbors[node]}
        colour[node] = next(c for c in range(len(taken) + 1) if c not in taken)
    return dict(zip(graph.nodes, colour, strict=True))
