"""Triangulation: add edges until a graph is chordal, by eliminating its nodes one after the other.

Eliminating a node joins its remaining neighbours; the node and these neighbours are the clique over which
exact inference has to work, so the largest clique of an order decides the cost. The least possible size of
it, minus one, is the treewidth; finding it is NP-hard, and the greedy orders of `greedy_order` are what is
used in practice. Reference: Koller and Friedman (2009), section 9.4. Cost of `elimination_cliques`: the sum
of squared clique sizes.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markovia.errors import InvalidArgument
from markovia.graphs.kinds.named import as_names, need
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.graphs.triangulation.elimination import Heuristic, greedy_order


class Triangulation(NamedTuple):
    """An elimination order, the chordal graph it leads to, and the edges that were added."""

    order: list[str]
    graph: UndirectedGraph
    fill: list[tuple[str, str]]


def triangulate(
    graph: UndirectedGraph,
    heuristic: Heuristic = "min-fill",
    *,
    order: Sequence[str] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Triangulation:
    """Add the edges that eliminating the nodes in some order creates.

    Parameters
    ----------
    graph
        An undirected graph; it is left as it is.
    heuristic
        How to choose an order if none is given: `"min-degree"`, `"min-fill"`, `"min-weight"` (the smallest
        table) or `"weighted-min-fill"`.
    order
        An elimination order of all nodes.
    weights
        The number of states of each node, for the weighted heuristics; 2 where not given.

    Returns
    -------
    Triangulation
        The named tuple (order, graph, fill).

    Examples
    --------
    >>> square = UndirectedGraph([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    >>> triangulate(square).fill
    [('b', 'd')]
    """
    need(graph, UndirectedGraph)
    if order is None:
        sizes = None if weights is None else _sizes(graph, weights)
        numbers = greedy_order([set(n) for n in graph._neighbors], heuristic, sizes)
    else:
        numbers = _order_numbers(graph, order)
    chordal = graph.copy()
    fill: list[tuple[str, str]] = []
    for i, j in _eliminate(graph, numbers)[1]:
        chordal._link(i, j)
        fill.append((graph._names[i], graph._names[j]))
    return Triangulation(graph._named(numbers), chordal, fill)


def elimination_cliques(graph: UndirectedGraph, order: Sequence[str]) -> list[tuple[str, ...]]:
    """List the clique that forms when each node is eliminated: the node, then its remaining neighbours.

    Parameters
    ----------
    graph
        An undirected graph.
    order
        All nodes, the first to be eliminated first.

    Returns
    -------
    list of tuple of str
        One clique for each node of the order; later ones may be contained in earlier ones.

    Examples
    --------
    >>> elimination_cliques(UndirectedGraph([("a", "b"), ("b", "c")]), ["b", "a", "c"])
    [('b', 'a', 'c'), ('a', 'c'), ('c',)]
    """
    need(graph, UndirectedGraph)
    numbers = _order_numbers(graph, order)
    later, _ = _eliminate(graph, numbers)
    return [tuple(graph._named([node, *sorted(later[node])])) for node in numbers]


def treewidth_of_order(graph: UndirectedGraph, order: Sequence[str]) -> int:
    """Return the size of the largest elimination clique minus one; its least value is the treewidth.

    Parameters
    ----------
    graph, order
        As for `elimination_cliques`.

    Examples
    --------
    >>> chain = UndirectedGraph([("a", "b"), ("b", "c")])
    >>> treewidth_of_order(chain, ["a", "b", "c"]), treewidth_of_order(chain, ["b", "a", "c"])
    (1, 2)
    """
    return max(map(len, elimination_cliques(graph, order)), default=0) - 1


def _eliminate(graph: UndirectedGraph, order: list[int]) -> tuple[list[set[int]], list[tuple[int, int]]]:
    """Return the remaining neighbours of each node when its turn comes, and the edges that were added."""
    remaining = [set(n) for n in graph._neighbors]
    fill: list[tuple[int, int]] = []
    for node in order:
        around = remaining[node]
        for i in sorted(around):
            others = remaining[i]
            others.discard(node)
            for j in sorted(around - others):
                if i < j:
                    others.add(j)
                    remaining[j].add(i)
                    fill.append((i, j))
    return remaining, fill


def _order_numbers(graph: UndirectedGraph, order: Sequence[str]) -> list[int]:
    order = as_names(order)
    numbers = graph._numbers(order)
    if len(numbers) < len(graph) or len(order) > len(numbers):
        missing = [name for name in graph if name not in set(order)]
        reason = f"it lacks {', '.join(missing)}" if missing else "a node is repeated"
        raise InvalidArgument(f"an elimination order lists every node once; {reason}")
    return numbers


def _sizes(graph: UndirectedGraph, weights: Mapping[str, float]) -> list[float]:
    for name in weights:
        graph._number(name)
    sizes = [float(weights.get(name, 2)) for name in graph]
    if any(not size > 0 for size in sizes):
        raise InvalidArgument("weights are positive numbers, such as numbers of states")
    return sizes
