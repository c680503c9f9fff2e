"""Junction trees: the maximal cliques of a chordal graph, each variable on a connected part of the tree.

The tree is read off an elimination order in time linear in the size of the cliques: each node, in reverse
order, either enlarges the clique of its first later neighbour or starts a new clique next to it (Blair and
Peyton, *An introduction to chordal graphs and clique trees*, 1993). The result is a maximum-weight spanning
tree of the cliques, weighted by the sizes of their intersections, which characterises junction trees
(Jensen and Jensen, 1994).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

from markovia.errors import InvalidArgument
from markovia.graphs.kinds.drawn import Drawn
from markovia.graphs.kinds.linear_searches import components
from markovia.graphs.kinds.named import Names, as_names, need
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.graphs.triangulation.chordal import is_chordal, later_neighbors, perfect_elimination_order
from markovia.graphs.triangulation.elimination import Heuristic
from markovia.graphs.triangulation.triangulation import triangulate


@dataclass(frozen=True)
class JunctionTree(Drawn):
    """Cliques, the edges between them as pairs of positions, and the separator on each edge.

    `states` holds the number of states of every variable where the tree was made from a model.

    Examples
    --------
    >>> tree = junction_tree(UndirectedGraph([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]))
    >>> tree.cliques, tree.edges, tree.separators
    ((('a', 'b', 'c'), ('c', 'd')), ((0, 1),), (('c',),))
    >>> tree.width, tree.home(["d"])
    (2, 1)
    """

    cliques: tuple[tuple[str, ...], ...]
    edges: tuple[tuple[int, int], ...]
    separators: tuple[tuple[str, ...], ...]
    states: Mapping[str, int] | None = field(default=None, repr=False, compare=False)
    _containing: dict[str, list[int]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        containing: dict[str, list[int]] = {}
        for k, clique in enumerate(self.cliques):
            for name in clique:
                containing.setdefault(name, []).append(k)
        object.__setattr__(self, "_containing", containing)

    @property
    def width(self) -> int:
        """The size of the largest clique minus one."""
        return max(map(len, self.cliques), default=0) - 1

    def total_entries(self, states: Mapping[str, int] | None = None) -> int:
        """Return the entries of all clique tables together: what one pass of exact inference works through.

        Parameters
        ----------
        states
            The number of states of every variable; a tree made from a model knows them.

        Examples
        --------
        >>> tree = junction_tree(UndirectedGraph([("a", "b"), ("b", "c")]))
        >>> tree.total_entries({"a": 2, "b": 3, "c": 4})
        18
        """
        sizes = self.states if states is None else states
        if sizes is None:
            raise InvalidArgument(
                "a tree made from a graph alone needs the number of states of every variable"
            )
        for name in self._containing:
            if name not in sizes:
                raise InvalidArgument(f"states= lacks the number of states of {name!r}")
        return sum(prod([int(sizes[name]) for name in clique]) for clique in self.cliques)

    def __len__(self) -> int:
        return len(self.cliques)

    def neighbors(self, clique: int) -> list[int]:
        """List the positions of the cliques joined to a clique."""
        return list(self._around[clique])

    @cached_property
    def _around(self) -> list[list[int]]:
        """The neighbours of each clique."""
        around: list[list[int]] = [[] for _ in self.cliques]
        for a, b in self.edges:
            around[a].append(b)
            around[b].append(a)
        return around

    def home(self, names: Names) -> int:
        """Return the position of the smallest clique that contains all names, such as the scope of a factor.

        Raises
        ------
        InvalidArgument
            If no clique contains them.
        """
        scope = as_names(names)
        if not scope and self.cliques:
            return min(range(len(self.cliques)), key=lambda k: len(self.cliques[k]))
        rarest = min(scope, key=lambda name: len(self._containing.get(name, ())), default=None)
        fitting = [k for k in self._containing.get(rarest or "", ()) if set(scope) <= set(self.cliques[k])]
        if not fitting:
            raise InvalidArgument(f"no clique contains {', '.join(scope)} together")
        return min(fitting, key=lambda k: len(self.cliques[k]))

    def has_running_intersection(self) -> bool:
        """Check that the edges form a tree on which every variable occupies a connected part."""
        shared: dict[str, int] = {}
        for (a, b), separator in zip(self.edges, self.separators, strict=True):
            if set(separator) != set(self.cliques[a]) & set(self.cliques[b]):
                return False
            for name in separator:
                shared[name] = shared.get(name, 0) + 1
        is_tree = len(components(self._around)) <= 1 and len(self.edges) == max(len(self.cliques) - 1, 0)
        # on a tree, a variable's k cliques are connected exactly if k - 1 edges carry it
        return is_tree and all(shared.get(n, 0) == len(where) - 1 for n, where in self._containing.items())

    def to_networkx(self) -> Any:
        """Return a `networkx.Graph` over the cliques whose edges have the attribute `separator`."""
        import networkx as nx

        graph = nx.Graph()
        graph.add_nodes_from(self.cliques)
        for (a, b), separator in zip(self.edges, self.separators, strict=True):
            graph.add_edge(self.cliques[a], self.cliques[b], separator=separator)
        return graph


def junction_tree(
    graph: UndirectedGraph,
    heuristic: Heuristic = "min-fill",
    *,
    order: Sequence[str] | None = None,
    weights: Mapping[str, float] | None = None,
    states: Mapping[str, int] | None = None,
) -> JunctionTree:
    """Build a junction tree of a graph, which is triangulated first where it is not chordal.

    Parameters
    ----------
    graph
        An undirected graph, such as the moral graph of a DAG.
    heuristic, order, weights
        How to triangulate, as for `triangulate`. A chordal graph is taken as it is if no order is given.
    states
        The number of states of every node, for `JunctionTree.total_entries`.

    Returns
    -------
    JunctionTree
        Always one tree: unconnected parts are joined by empty separators.

    Examples
    --------
    >>> junction_tree(UndirectedGraph([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])).cliques
    (('a', 'b', 'd'), ('b', 'c', 'd'))
    """
    need(graph, UndirectedGraph)
    if order is None and is_chordal(graph):
        chordal, elimination = graph, perfect_elimination_order(graph)
    else:
        elimination, chordal, _ = triangulate(graph, heuristic, order=order, weights=weights)
    numbers = graph._numbers(elimination)
    later = later_neighbors(chordal, numbers)
    cliques: list[list[int]] = []
    clique_of = [-1] * len(graph)  # the clique in which each node first appears
    links: list[tuple[int, int, list[int]]] = []
    for node in reversed(numbers):
        near = clique_of[later[node][0]] if later[node] else 0
        if later[node] and len(later[node]) == len(cliques[near]):
            cliques[near].append(node)  # the later neighbours are this clique's nodes, all of them
            clique_of[node] = near
            continue
        if cliques:
            links.append((near, len(cliques), later[node]))
        clique_of[node] = len(cliques)
        cliques.append([node, *later[node]])
    rank = sorted(range(len(cliques)), key=lambda k: sorted(cliques[k]))
    position = {old: new for new, old in enumerate(rank)}
    edges = sorted(
        (min(position[a], position[b]), max(position[a], position[b]), sorted(shared))
        for a, b, shared in links
    )
    return JunctionTree(
        tuple(tuple(graph._named(sorted(cliques[k]))) for k in rank),
        tuple((a, b) for a, b, _ in edges),
        tuple(tuple(graph._named(s)) for *_, s in edges),
        states,
    )
