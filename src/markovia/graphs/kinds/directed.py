"""Directed acyclic graphs: the structure of a Bayesian network.

Nodes are names outside and integers inside; parents and children are plain lists of integers. Construction
from all edges, topological order, ancestors, moralisation and connected components are linear in nodes plus
edges (plus the married pairs for moralisation). A single `add_edge` searches from both its ends for a cycle
and stops when either search runs dry.

A graph is a set of nodes and a set of edges: adding what is already there changes nothing, and an edge
brings its nodes along. Reference: Koller and Friedman, *Probabilistic Graphical Models* (2009), chapters 2
and 3.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markovia.errors import CycleError, DuplicateName, InvalidArgument, InvalidGraph
from markovia.graphs.kinds.edge_graph import EdgeGraph
from markovia.graphs.kinds.linear_searches import (
    components,
    leads_to,
    reach,
    shortest_path,
    topological_order,
)
from markovia.graphs.kinds.named import (
    Names,
    as_names,
    checked_name,
    checked_pair,
    listed,
    need_networkx,
)
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.runtime import ports
from markovia.runtime.libraries import nx

if TYPE_CHECKING:
    from markovia.graphs.kinds.mixed import MixedGraph


class DAG(EdgeGraph):
    """A directed acyclic graph over named nodes.

    Parameters
    ----------
    edges
        Pairs (parent, child); their nodes are added in order of appearance.
    nodes
        Nodes that come first, in this order, whether or not they have edges.

    Raises
    ------
    CycleError
        If the edges close a directed cycle; the message shows it. A self loop is a cycle.
    InvalidArgument
        If a name is not a string or an edge is not a pair.

    Examples
    --------
    >>> g = DAG([("smoke", "lung"), ("smoke", "bronc"), ("lung", "dysp"), ("bronc", "dysp")])
    >>> g.parents("dysp"), g.children("smoke")
    (['lung', 'bronc'], ['lung', 'bronc'])
    >>> g.topological_order()
    ['smoke', 'lung', 'bronc', 'dysp']
    >>> sorted(g.markov_blanket("lung"))
    ['bronc', 'dysp', 'smoke']
    >>> g.add_edge("dysp", "smoke")
    Traceback (most recent call last):
        ...
    markovia.errors.CycleError: the edges form a directed cycle: dysp -> smoke -> lung -> dysp
    """

    _by_node = (("_parents", list), ("_children", list))
    _parents: list[list[int]]
    _children: list[list[int]]

    def __init__(self, edges: Iterable[tuple[str, str]] = (), nodes: Iterable[str] = ()) -> None:
        super().__init__()
        self.add_nodes(nodes)
        self.add_edges(edges)

    @classmethod
    def from_parents(cls, parents: Mapping[str, Sequence[str]]) -> Self:
        """Build a graph from the parents of each node, with one linear check for cycles.

        Parameters
        ----------
        parents
            From each node to its parents, whose order is kept. Parents that are not keys become roots.

        Raises
        ------
        CycleError
            If the edges close a directed cycle.
        DuplicateName
            If a parent is listed twice for one node.

        Examples
        --------
        >>> DAG.from_parents({"a": [], "b": [], "c": ["b", "a"]}).parents("c")
        ['b', 'a']
        """
        if not isinstance(parents, Mapping):
            raise InvalidArgument(f"expected a mapping from each node to its parents, got {parents!r}")
        graph = cls(nodes=parents)
        for child, names in parents.items():
            numbers = [graph._ensure(checked_name(name)) for name in as_names(names)]
            if len(set(numbers)) < len(numbers):
                raise DuplicateName(f"a parent is listed twice for {child!r}: {', '.join(as_names(names))}")
            graph._parents[graph._index[child]] = numbers
        for j, numbers in enumerate(graph._parents):
            for i in numbers:
                graph._children[i].append(j)
        graph._require_acyclic()
        return graph

    @classmethod
    def from_adjacency(cls, matrix: ArrayLike, names: Iterable[str] | None = None) -> Self:
        """Build a graph from a square matrix whose entry [i, j] is nonzero for the edge i -> j.

        Parameters
        ----------
        matrix
            A square array.
        names
            The node names; `x0`, `x1`, ... if not given.

        Examples
        --------
        >>> DAG.from_adjacency([[0, 1], [0, 0]], ["rain", "wet"]).edges
        [('rain', 'wet')]
        """
        array = np.asarray(matrix)
        if array.ndim != 2 or array.shape[0] != array.shape[1]:
            raise InvalidArgument(f"an adjacency matrix is square, got shape {array.shape}")
        labels = [f"x{i}" for i in range(len(array))] if names is None else as_names(names)
        if len(set(labels)) != len(array):
            raise InvalidArgument(f"the matrix has {len(array)} rows and needs as many different names")
        return cls(((labels[i], labels[j]) for i, j in np.argwhere(array != 0)), nodes=labels)

    @classmethod
    def from_networkx(cls, graph: Any) -> Self:
        """Build a graph from a networkx directed graph whose nodes are strings."""
        need_networkx(graph)
        if not graph.is_directed():
            raise InvalidGraph("the networkx graph is undirected; use UndirectedGraph.from_networkx")
        return cls(((a, b) for a, b, *_ in graph.edges), nodes=graph.nodes)

    def to_networkx(self) -> Any:
        """Return the graph as a `networkx.DiGraph`."""
        return self._into_networkx(nx.DiGraph())

    def adjacency_matrix(self) -> NDArray[np.int_]:
        """Return the 0/1 matrix with entry [i, j] = 1 for the edge from node i to node j.

        Raises
        ------
        TooLarge
            For graphs of more than 10,000 nodes.
        """
        matrix = self._zero_matrix()
        for j, parents in enumerate(self._parents):
            matrix[parents, j] = 1
        return matrix

    @property
    def edges(self) -> list[tuple[str, str]]:
        """The edges as (parent, child), grouped by parent in node order."""
        names = self._names
        return [(names[i], names[j]) for i, children in enumerate(self._children) for j in children]

    @property
    def n_edges(self) -> int:
        """The number of edges."""
        return sum(map(len, self._parents))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DAG):
            return NotImplemented
        return self._index.keys() == other._index.keys() and all(
            set(self._named(parents)) == set(other._named(other._parents[other._index[name]]))
            for name, parents in zip(self._names, self._parents, strict=True)
        )

    def add_edge(self, parent: str, child: str) -> None:
        """Add an edge, and its nodes where they are missing.

        Raises
        ------
        CycleError
            If the edge closes a cycle. The graph is then left as it was.
        """
        parent, child = checked_name(parent), checked_name(child)
        i, j = self._index.get(parent), self._index.get(child)
        if i is not None and j is not None and leads_to(j, i, self._children, self._parents):
            cycle = shortest_path(j, i, self._children)
            raise CycleError([parent, *self._named(cycle)])
        if parent == child:
            raise CycleError([parent, child])
        self._link(self._ensure(parent), self._ensure(child))

    def add_edges(self, edges: Iterable[tuple[str, str]]) -> None:
        """Add many edges with one linear check for cycles; on failure none of them is added.

        Raises
        ------
        CycleError
            If the edges close a cycle. The graph is then left as it was.
        """
        pairs = [checked_pair(edge) for edge in listed(edges, "pairs of node names")]
        if not pairs:
            return
        size = len(self)
        numbers = [(self._ensure(a), self._ensure(b)) for a, b in pairs]
        added = [pair for pair in numbers if self._link(*pair)]
        try:
            self._require_acyclic()
        except CycleError:
            for i, j in reversed(added):
                self._children[i].pop()
                self._parents[j].pop()
            for name in self._names[size:]:
                del self._index[name]
            del self._names[size:], self._parents[size:], self._children[size:]
            raise

    def remove_edge(self, parent: str, child: str) -> None:
        """Remove an edge.

        Raises
        ------
        InvalidGraph
            If there is no such edge.
        """
        i, j = self._number(parent), self._number(child)
        if i not in self._parents[j]:
            reverse = "; the edge goes the other way" if j in self._parents[i] else ""
            raise InvalidGraph(f"there is no edge {parent} -> {child}{reverse}")
        self._parents[j].remove(i)
        self._children[i].remove(j)

    def remove_edges(self, edges: Iterable[tuple[str, str]]) -> None:
        """Remove many edges, or none if one of them is not there."""
        pairs = [checked_pair(edge) for edge in listed(edges, "pairs of node names")]
        trial = self.copy()
        for parent, child in pairs:
            trial.remove_edge(parent, child)
        self._become(trial)

    def parents(self, name: str) -> list[str]:
        """List the parents of a node, in the order in which their edges were added."""
        return self._named(self._parents[self._number(name)])

    def children(self, name: str) -> list[str]:
        """List the children of a node."""
        return self._named(self._children[self._number(name)])

    def neighbors(self, name: str) -> list[str]:
        """List parents, then children."""
        i = self._number(name)
        return self._named(self._parents[i]) + self._named(self._children[i])

    def has_edge(self, parent: str, child: str) -> bool:
        """Tell whether the edge parent -> child is in the graph."""
        return self._linked(self._number(parent), self._number(child))

    def roots(self) -> list[str]:
        """List the nodes without parents."""
        return [name for name, parents in zip(self._names, self._parents, strict=True) if not parents]

    def leaves(self) -> list[str]:
        """List the nodes without children."""
        return [name for name, children in zip(self._names, self._children, strict=True) if not children]

    def topological_order(self) -> list[str]:
        """List the nodes, parents before children; insertion order itself where that is such an order."""
        return self._named(topological_order(self._parents)[0])

    def ancestors(self, names: Names, include_self: bool = False) -> set[str]:
        """Collect the ancestors of any of the names.

        Parameters
        ----------
        names
            One name or several.
        include_self
            Whether the names themselves belong to the answer. Without it a name is in the answer
            only if it is an ancestor of another one.

        Examples
        --------
        >>> sorted(DAG([("a", "b"), ("b", "c")]).ancestors("c"))
        ['a', 'b']
        """
        return self._closure(names, self._parents, include_self)

    def descendants(self, names: Names, include_self: bool = False) -> set[str]:
        """Collect the descendants of any of the names; `include_self` as in `ancestors`."""
        return self._closure(names, self._children, include_self)

    def spouses(self, name: str) -> set[str]:
        """Collect the other parents of a node's children."""
        i = self._number(name)
        return set(self._named(k for j in self._children[i] for k in self._parents[j] if k != i))

    def markov_blanket(self, name: str) -> set[str]:
        """Collect parents, children and spouses: given these the node is independent of all others."""
        return set(self.neighbors(name)) | self.spouses(name)

    def moral_graph(self) -> UndirectedGraph:
        """Marry the parents of each node and drop the directions."""
        graph = self.skeleton()
        for parents in self._parents:
            for i, j in combinations(parents, 2):
                graph._link(i, j)
        return graph

    def skeleton(self) -> UndirectedGraph:
        """Drop the directions of the edges."""
        graph = UndirectedGraph(nodes=self._names)
        for j, parents in enumerate(self._parents):
            for i in parents:
                graph._link(i, j)
        return graph

    def ancestral_graph(self, names: Names) -> Self:
        """Return the graph induced on some nodes and all their ancestors."""
        return self._induced(sorted(reach(self._numbers(names), self._parents)))

    def v_structures(self) -> set[tuple[str, str, str]]:
        """Collect the triples (a, collider, b) with a -> collider <- b, a and b not adjacent, and a < b.

        Examples
        --------
        >>> DAG([("quake", "alarm"), ("burglar", "alarm")]).v_structures()
        {('burglar', 'alarm', 'quake')}
        """
        names = self._names
        return {
            (min(names[i], names[k]), names[j], max(names[i], names[k]))
            for j, parents in enumerate(self._parents)
            for i, k in combinations(parents, 2)
            if not self._linked(i, k) and not self._linked(k, i)
        }

    def immoralities(self) -> set[tuple[str, str, str]]:
        """Return `v_structures()` under its other name."""
        return self.v_structures()

    def connected_components(self) -> list[list[str]]:
        """Split the nodes into parts without any edge between them."""
        adjacency = [p + c for p, c in zip(self._parents, self._children, strict=True)]
        return [self._named(part) for part in components(adjacency)]

    def is_forest(self) -> bool:
        """Tell whether no node has more than one parent."""
        return all(len(parents) <= 1 for parents in self._parents)

    def is_tree(self) -> bool:
        """Tell whether one node has no parent and every other node has exactly one."""
        return self.is_forest() and len(self.roots()) == 1

    def is_polytree(self) -> bool:
        """Tell whether the graph is singly connected: its skeleton has no cycle."""
        return self.skeleton().is_forest()

    def latent_projection(self, latents: Names) -> "MixedGraph":
        """Hide some nodes: the acyclic directed mixed graph over the others; see `latent_projection`."""
        projected: MixedGraph = ports.call("latent-projection", self, latents)
        return projected

    def _linked(self, i: int, j: int) -> bool:
        children, parents = self._children[i], self._parents[j]
        return j in children if len(children) < len(parents) else i in parents

    def _link(self, i: int, j: int) -> bool:
        if self._linked(i, j):
            return False
        self._children[i].append(j)
        self._parents[j].append(i)
        return True

    def _require_acyclic(self) -> None:
        _, cycle = topological_order(self._parents)
        if cycle:
            raise CycleError(self._named(cycle))

    def _closure(self, names: Names, adjacency: list[list[int]], include_self: bool) -> set[str]:
        starts = self._numbers(names)
        found = set(self._named(reach((j for i in starts for j in adjacency[i]), adjacency)))
        return found.union(self._named(starts)) if include_self else found

    def _induced(self, kept: list[int]) -> Self:
        graph = type(self)(nodes=self._named(kept))
        new = {old: i for i, old in enumerate(kept)}
        for i, old in enumerate(kept):
            graph._parents[i] = [new[p] for p in self._parents[old] if p in new]
            graph._children[i] = [new[c] for c in self._children[old] if c in new]
        return graph
