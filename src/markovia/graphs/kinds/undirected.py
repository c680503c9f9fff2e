"""Undirected graphs: the structure of a Markov network.

Nodes are names outside and integers inside; the neighbours of a node are an ordered set of integers.
Building a graph, its connected components and the tests for trees and forests are linear. Maximal cliques
are listed by the algorithm of Bron and Kerbosch with pivoting in degeneracy order (Eppstein, Löffler and
Strash, 2010): O(d n 3^(d/3)) for degeneracy d, so fast on sparse graphs of any size.

A graph is a set of nodes and a set of edges: adding what is already there changes nothing, and an edge
brings its nodes along.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidGraph
from markovia.graphs.kinds.edge_graph import EdgeGraph
from markovia.graphs.kinds.linear_searches import components
from markovia.graphs.kinds.named import (
    Names,
    as_names,
    checked_name,
    checked_pair,
    listed,
    need_networkx,
)
from markovia.runtime.libraries import nx


class UndirectedGraph(EdgeGraph):
    """An undirected graph over named nodes, without self loops.

    Parameters
    ----------
    edges
        Pairs of nodes; their nodes are added in order of appearance.
    nodes
        Nodes that come first, in this order, whether or not they have edges.

    Raises
    ------
    InvalidGraph
        If an edge joins a node to itself.
    InvalidArgument
        If a name is not a string or an edge is not a pair.

    Examples
    --------
    >>> g = UndirectedGraph([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    >>> g.neighbors("c")
    ['b', 'a', 'd']
    >>> g.maximal_cliques()
    [('a', 'b', 'c'), ('c', 'd')]
    """

    _by_node = (("_neighbors", dict),)
    _neighbors: list[dict[int, None]]

    def __init__(self, edges: Iterable[tuple[str, str]] = (), nodes: Iterable[str] = ()) -> None:
        super().__init__()
        self.add_nodes(nodes)
        self.add_edges(edges)

    @classmethod
    def from_cliques(cls, scopes: Iterable[Iterable[str]], nodes: Iterable[str] = ()) -> Self:
        """Join two nodes if and only if they occur together in a scope.

        Parameters
        ----------
        scopes
            Sets of nodes, such as the scopes of factors.
        nodes
            Nodes that come first, whether or not a scope mentions them.

        Examples
        --------
        >>> triangle = UndirectedGraph.from_cliques([("a", "b"), ("a", "c"), ("b", "c")])
        >>> triangle == UndirectedGraph.from_cliques([("a", "b", "c")])
        True
        """
        graph = cls(nodes=nodes)
        for scope in listed(scopes, "scopes, each of several node names"):
            numbers = dict.fromkeys(graph._ensure(checked_name(name)) for name in as_names(scope))
            for i, j in combinations(numbers, 2):
                graph._link(i, j)
        return graph

    @classmethod
    def from_networkx(cls, graph: Any) -> Self:
        """Build a graph from a networkx undirected graph whose nodes are strings."""
        need_networkx(graph)
        if graph.is_directed():
            raise InvalidGraph("the networkx graph is directed; use DAG.from_networkx")
        return cls(((a, b) for a, b, *_ in graph.edges), nodes=graph.nodes)

    def to_networkx(self) -> Any:
        """Return the graph as a `networkx.Graph`."""
        return self._into_networkx(nx.Graph())

    def adjacency_matrix(self) -> NDArray[np.int_]:
        """Return the symmetric 0/1 matrix of the graph.

        Raises
        ------
        TooLarge
            For graphs of more than 10,000 nodes.
        """
        matrix = self._zero_matrix()
        for i, neighbors in enumerate(self._neighbors):
            matrix[i, list(neighbors)] = 1
        return matrix

    @property
    def edges(self) -> list[tuple[str, str]]:
        """Each edge once, the node that was added first coming first."""
        names = self._names
        return [
            (names[i], names[j]) for i, neighbors in enumerate(self._neighbors) for j in neighbors if i < j
        ]

    @property
    def n_edges(self) -> int:
        """The number of edges."""
        return sum(map(len, self._neighbors)) // 2

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UndirectedGraph):
            return NotImplemented
        return self._index.keys() == other._index.keys() and all(
            set(self._named(neighbors)) == set(other._named(other._neighbors[other._index[name]]))
            for name, neighbors in zip(self._names, self._neighbors, strict=True)
        )

    def add_edge(self, a: str, b: str) -> None:
        """Add an edge, and its nodes where they are missing.

        Raises
        ------
        InvalidGraph
            If both ends are one node.
        """
        self.add_edges([(a, b)])

    def add_edges(self, edges: Iterable[tuple[str, str]]) -> None:
        """Add many edges, or none of them if one is not valid."""
        pairs = [checked_pair(edge) for edge in listed(edges, "pairs of node names")]
        for a, b in pairs:
            if a == b:
                raise InvalidGraph(f"{a!r} cannot be joined to itself")
        for a, b in pairs:
            self._link(self._ensure(a), self._ensure(b))

    def remove_edge(self, a: str, b: str) -> None:
        """Remove an edge.

        Raises
        ------
        InvalidGraph
            If there is no such edge.
        """
        self.remove_edges([(a, b)])

    def remove_edges(self, edges: Iterable[tuple[str, str]]) -> None:
        """Remove many edges, or none of them if one is not there."""
        pairs = [
            (self._number(a), self._number(b))
            for a, b in map(checked_pair, listed(edges, "pairs of node names"))
        ]
        for i, j in pairs:
            if j not in self._neighbors[i]:
                raise InvalidGraph(f"there is no edge between {self._names[i]} and {self._names[j]}")
        for i, j in pairs:
            self._neighbors[i].pop(j, None)
            self._neighbors[j].pop(i, None)

    def neighbors(self, name: str) -> list[str]:
        """List the nodes joined to a node."""
        return self._named(self._neighbors[self._number(name)])

    def degree(self, name: str) -> int:
        """Count the neighbours of a node."""
        return len(self._neighbors[self._number(name)])

    def markov_blanket(self, name: str) -> set[str]:
        """Collect the neighbours: given these the node is independent of all others."""
        return set(self.neighbors(name))

    def has_edge(self, a: str, b: str) -> bool:
        """Tell whether two nodes are joined."""
        return self._number(b) in self._neighbors[self._number(a)]

    def complement(self) -> Self:
        """Return the graph that joins exactly the nodes which this one does not join."""
        graph = type(self)(nodes=self._names)
        for i, j in combinations(range(len(self)), 2):
            if j not in self._neighbors[i]:
                graph._link(i, j)
        return graph

    def connected_components(self) -> list[list[str]]:
        """Split the nodes into parts without any edge between them."""
        return [self._named(part) for part in components(self._neighbors)]

    def is_forest(self) -> bool:
        """Tell whether the graph has no cycle."""
        return self.n_edges == len(self) - len(components(self._neighbors))

    def is_tree(self) -> bool:
        """Tell whether the graph is connected and has no cycle."""
        return self.n_edges == len(self) - 1 and len(components(self._neighbors)) == 1

    def is_complete(self, names: Names | None = None) -> bool:
        """Tell whether some nodes, or all of them, are joined to each other."""
        numbers = range(len(self)) if names is None else self._numbers(names)
        return all(j in self._neighbors[i] for i, j in combinations(numbers, 2))

    def is_clique(self, names: Names, maximal: bool = False) -> bool:
        """Tell whether the nodes are joined to each other; if `maximal`, also that no further node joins all.

        Examples
        --------
        >>> g = UndirectedGraph([("a", "b"), ("b", "c"), ("c", "a")])
        >>> g.is_clique(["a", "b"]), g.is_clique(["a", "b"], maximal=True)
        (True, False)
        """
        numbers = self._numbers(names)
        if not numbers or not all(j in self._neighbors[i] for i, j in combinations(numbers, 2)):
            return False
        return not (maximal and set.intersection(*(set(self._neighbors[i]) for i in numbers)))

    def maximal_cliques(self) -> list[tuple[str, ...]]:
        """List the cliques that no further node can join, each in node order."""
        return [tuple(self._named(clique)) for clique in sorted(map(sorted, self._bron_kerbosch()))]

    def maximum_clique(self) -> tuple[str, ...]:
        """Return a largest clique, the first one in node order; finding it is NP-hard."""
        return max(self.maximal_cliques(), key=len, default=())

    def _bron_kerbosch(self) -> Iterator[list[int]]:
        neighbors = [set(n) for n in self._neighbors]
        position = {node: k for k, node in enumerate(degeneracy_order(neighbors))}
        for root in position:
            candidates = {j for j in neighbors[root] if position[j] > position[root]}
            stack = [([root], candidates, neighbors[root] - candidates)]
            while stack:
                clique, candidates, excluded = stack.pop()
                if not candidates:
                    if not excluded:
                        yield clique
                    continue
                pivot = max(candidates | excluded, key=lambda v: len(candidates & neighbors[v]))
                for node in candidates - neighbors[pivot]:
                    near = neighbors[node]
                    stack.append(([*clique, node], candidates & near, excluded & near))
                    candidates = candidates - {node}
                    excluded = excluded | {node}

    def _link(self, i: int, j: int) -> None:
        self._neighbors[i][j] = None
        self._neighbors[j][i] = None

    def _induced(self, kept: list[int]) -> Self:
        graph = type(self)(nodes=self._named(kept))
        new = {old: i for i, old in enumerate(kept)}
        for i, old in enumerate(kept):
            graph._neighbors[i] = {new[j]: None for j in self._neighbors[old] if j in new}
        return graph


def degeneracy_order(neighbors: list[set[int]]) -> list[int]:
    """Repeatedly take a node of smallest remaining degree, with one bucket for each degree."""
    degree = [len(n) for n in neighbors]
    buckets: list[list[int]] = [[] for _ in range(max(degree, default=0) + 1)]
    for node, d in enumerate(degree):
        buckets[d].append(node)
    order: list[int] = []
    taken = bytearray(len(neighbors))
    lowest = 0
    while len(order) < len(neighbors):
        while not buckets[lowest]:
            lowest += 1
        node = buckets[lowest].pop()
        if taken[node] or degree[node] != lowest:
            continue  # a stale entry: the node moved to a lower bucket since
        taken[node] = 1
        order.append(node)
        for other in neighbors[node]:
            if not taken[other]:
                degree[other] -= 1
                buckets[degree[other]].append(other)
        lowest = max(lowest - 1, 0)
    return order
