"""Mixed graphs: edges with a tail, an arrowhead or a circle at each end.

One class holds the graphs of causal work: CPDAGs (directed and undirected edges), acyclic directed mixed
graphs (directed and bidirected edges, possibly both between two nodes), maximal ancestral graphs, and
partial ancestral graphs (circles where the mark is not known). Edges are written as in the literature:

    a --> b    a <-> b    a --- b    a o-> b    a o-o b

m-separation is decided by one search over (node, arrived at an arrowhead?) in O(nodes + edges). References:
Richardson and Spirtes, *Ancestral graph Markov models*, Annals of Statistics 30 (2002); Richardson, *Markov
properties for acyclic directed mixed graphs*, Scandinavian Journal of Statistics 30 (2003).
"""

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import combinations
from typing import Any, Self

from markovia.errors import InvalidArgument, InvalidGraph
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.edge_graph import EdgeGraph
from markovia.graphs.kinds.linear_searches import reach, topological_order
from markovia.graphs.kinds.named import Names, checked_name, listed, need, need_networkx
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.runtime import ports


class Mark(Enum):
    """What an edge shows at one of its ends."""

    TAIL = "-"
    ARROW = ">"
    CIRCLE = "o"


MarkedEdge = tuple[str, str, Mark, Mark]

_LEFT = {"-": Mark.TAIL, "<": Mark.ARROW, "o": Mark.CIRCLE}
_RIGHT = {"-": Mark.TAIL, ">": Mark.ARROW, "o": Mark.CIRCLE}
_SIGN = {Mark.TAIL: "-", Mark.ARROW: "<", Mark.CIRCLE: "o"}
_EDGE = re.compile(r"\s*(?P<a>.*?)\s+(?P<left>[-<o])-(?P<right>[->o])\s+(?P<b>.*?)\s*", re.DOTALL)


class MixedGraph(EdgeGraph):
    """A graph whose edges carry a mark at each end.

    Two nodes may be joined by several edges as long as their marks differ; most families of mixed graphs
    allow one edge (`is_simple`), acyclic directed mixed graphs also a directed and a bidirected one.

    Parameters
    ----------
    edges
        Strings such as `"a --> b"`, or tuples (a, b, mark at a, mark at b).
    nodes
        Nodes that come first, in this order, whether or not they have edges.

    Examples
    --------
    >>> g = MixedGraph(["a --> b", "b <-> c", "c o-o d"])
    >>> g.parents("b"), g.siblings("b"), g.adjacent("c", "d")
    (['a'], ['c'], True)
    >>> g
    MixedGraph(['a --> b', 'b <-> c', 'c o-o d'])
    """

    _by_node = (("_marks", dict),)
    _marks: list[dict[int, list[tuple[Mark, Mark]]]]
    """`_marks[i][j]` lists (mark at i, mark at j) for each edge between i and j, and mirrors `_marks[j][i]`."""

    def __init__(self, edges: Iterable[str | MarkedEdge] = (), nodes: Iterable[str] = ()) -> None:
        super().__init__()
        self.add_nodes(nodes)
        self.add_edges(edges)

    @classmethod
    def from_dag(cls, dag: DAG) -> Self:
        """Return the same graph with tails and arrowheads as marks."""
        need(dag, DAG)
        graph = cls(nodes=dag._names)
        for i, children in enumerate(dag._children):  # the edges of a DAG need no check
            for j in children:
                graph._marks[i][j] = [(Mark.TAIL, Mark.ARROW)]
                graph._marks[j][i] = [(Mark.ARROW, Mark.TAIL)]
        return graph

    @classmethod
    def from_undirected(cls, graph: UndirectedGraph) -> Self:
        """Return the same graph with a tail at every end."""
        need(graph, UndirectedGraph)
        return cls(((a, b, Mark.TAIL, Mark.TAIL) for a, b in graph.edges), nodes=graph.nodes)

    @classmethod
    def from_networkx(cls, graph: Any) -> Self:
        """Read a networkx multigraph whose edges have the attribute `marks`, as `to_networkx` writes them."""
        need_networkx(graph)
        edges: list[MarkedEdge] = []
        for a, b, attributes in graph.edges(data=True):
            marks = attributes.get("marks")
            if (
                not isinstance(marks, str)
                or len(marks) != 3
                or marks[0] not in _LEFT
                or marks[2] not in _RIGHT
            ):
                raise InvalidGraph(f"the edge {a!r}, {b!r} has no attribute marks such as '-->' or '<->'")
            edges.append((a, b, _LEFT[marks[0]], _RIGHT[marks[2]]))
        return cls(edges, nodes=graph.nodes)

    def to_networkx(self) -> Any:
        """Return a `networkx.MultiDiGraph` whose edges have `marks="-->"` and so on, from left to right."""
        import networkx as nx

        graph = nx.MultiDiGraph()
        graph.add_nodes_from(self._names)
        for a, b, mark_a, mark_b in self.edges:
            graph.add_edge(a, b, marks=f"{_SIGN[mark_a]}-{mark_b.value}")
        return graph

    def to_dag(self) -> DAG:
        """Return the graph as a `DAG` if every edge is directed.

        Raises
        ------
        InvalidGraph
            If an edge is not directed, or (as `CycleError`) if the edges form a cycle.
        """
        if other := next((e for e in self.edges if {e[2], e[3]} != {Mark.TAIL, Mark.ARROW}), None):
            raise InvalidGraph(f"the edge {edge_string(other)} is not directed")
        return DAG(self.directed_edges(), nodes=self._names)

    @property
    def edges(self) -> list[MarkedEdge]:
        """Each edge once, as (a, b, mark at a, mark at b) with directed edges from tail to arrowhead."""
        names = self._names
        found: list[MarkedEdge] = []
        for i, others in enumerate(self._marks):
            for j, marks in others.items():
                if i < j:
                    for at_i, at_j in marks:
                        forward = (names[i], names[j], at_i, at_j)
                        backward = (names[j], names[i], at_j, at_i)
                        found.append(backward if at_i is Mark.ARROW and at_j is not Mark.ARROW else forward)
        return found

    @property
    def n_edges(self) -> int:
        """The number of edges."""
        return sum(len(marks) for others in self._marks for marks in others.values()) // 2

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MixedGraph):
            return NotImplemented
        return self._index.keys() == other._index.keys() and self._edge_set() == other._edge_set()

    def _shown_edges(self) -> list[str]:
        return [edge_string(edge) for edge in self.edges]

    def copy(self) -> Self:
        """Return an independent copy."""
        return type(self)(self.edges, nodes=self._names)

    def add_edge(
        self, a: str, b: str | None = None, mark_a: Mark = Mark.TAIL, mark_b: Mark = Mark.ARROW
    ) -> None:
        """Add an edge, and its nodes where they are missing; an edge that is there already stays as it is.

        Parameters
        ----------
        a, b
            The two nodes; or only `a`, a string such as `"x o-> y"`.
        mark_a, mark_b
            The marks at the two ends; a directed edge from a to b if not given.

        Raises
        ------
        InvalidGraph
            If both ends are one node.
        InvalidArgument
            If the string is not an edge or a mark is not a `Mark`.

        Examples
        --------
        >>> g = MixedGraph()
        >>> g.add_edge("x o-> y")
        >>> g.add_edge("y", "z", Mark.ARROW, Mark.ARROW)
        >>> g
        MixedGraph(['x o-> y', 'y <-> z'])
        """
        self.add_edges([a if b is None else (a, b, mark_a, mark_b)])

    def add_edges(self, edges: Iterable[str | MarkedEdge]) -> None:
        """Add many edges, or none of them if one is not valid."""
        several = [edges] if isinstance(edges, str) else listed(edges, "edges such as 'a --> b'")
        checked = [_checked_edge(edge) for edge in several]
        for a, b, mark_a, mark_b in checked:
            i, j = self._ensure(a), self._ensure(b)
            if (mark_a, mark_b) not in self._marks[i].setdefault(j, []):
                self._marks[i][j].append((mark_a, mark_b))
                self._marks[j].setdefault(i, []).append((mark_b, mark_a))

    def remove_edge(self, a: str, b: str) -> None:
        """Remove every edge between two nodes.

        Raises
        ------
        InvalidGraph
            If there is none.
        """
        i, j = self._number(a), self._number(b)
        if j not in self._marks[i]:
            raise InvalidGraph(f"there is no edge between {a} and {b}")
        del self._marks[i][j], self._marks[j][i]

    def set_marks(self, a: str, b: str, mark_a: Mark, mark_b: Mark) -> None:
        """Replace the edge between two nodes, which must be there, by one with these marks."""
        edge = _checked_edge((a, b, mark_a, mark_b))
        self.remove_edge(a, b)
        self.add_edges([edge])

    def adjacent(self, a: str, b: str) -> bool:
        """Tell whether two nodes are joined by any edge."""
        return self._number(b) in self._marks[self._number(a)]

    def marks(self, a: str, b: str) -> list[tuple[Mark, Mark]]:
        """List (mark at a, mark at b) for each edge between two nodes."""
        return list(self._marks[self._number(a)].get(self._number(b), ()))

    def neighbors(self, name: str) -> list[str]:
        """List the nodes joined to a node by any edge."""
        return self._named(self._marks[self._number(name)])

    def parents(self, name: str) -> list[str]:
        """List the nodes with a directed edge into a node."""
        return self._along(name, Mark.ARROW, Mark.TAIL)

    def children(self, name: str) -> list[str]:
        """List the nodes with a directed edge from a node."""
        return self._along(name, Mark.TAIL, Mark.ARROW)

    def siblings(self, name: str) -> list[str]:
        """List the nodes with a bidirected edge to a node (its spouses in ancestral-graph terms)."""
        return self._along(name, Mark.ARROW, Mark.ARROW)

    def spouses(self, name: str) -> list[str]:
        """Return `siblings(name)` under the name used for ancestral graphs."""
        return self.siblings(name)

    def undirected_neighbors(self, name: str) -> list[str]:
        """List the nodes with an undirected edge to a node."""
        return self._along(name, Mark.TAIL, Mark.TAIL)

    def directed_edges(self) -> list[tuple[str, str]]:
        """List the edges a --> b as (a, b)."""
        return [(a, b) for a, b, *marks in self.edges if marks == [Mark.TAIL, Mark.ARROW]]

    def bidirected_edges(self) -> list[tuple[str, str]]:
        """List the edges a <-> b."""
        return [(a, b) for a, b, *marks in self.edges if marks == [Mark.ARROW, Mark.ARROW]]

    def undirected_edges(self) -> list[tuple[str, str]]:
        """List the edges a --- b."""
        return [(a, b) for a, b, *marks in self.edges if marks == [Mark.TAIL, Mark.TAIL]]

    def ancestors(self, names: Names, include_self: bool = False) -> set[str]:
        """Collect the nodes with a directed path to any of the names; `include_self` adds the names."""
        starts = self._numbers(names)
        parents = self._numbered(Mark.ARROW, Mark.TAIL)
        found = set(self._named(reach((j for i in starts for j in parents[i]), parents)))
        return found.union(self._named(starts)) if include_self else found

    def skeleton(self) -> UndirectedGraph:
        """Drop all marks."""
        return UndirectedGraph(((a, b) for a, b, *_ in self.edges), nodes=self._names)

    def is_simple(self) -> bool:
        """Tell whether no two nodes are joined by more than one edge, as in a CPDAG, MAG or PAG."""
        return all(len(marks) == 1 for others in self._marks for marks in others.values())

    def is_acyclic(self) -> bool:
        """Tell whether the directed edges form no directed cycle."""
        return not topological_order(self._numbered(Mark.ARROW, Mark.TAIL))[1]

    def is_admg(self) -> bool:
        """Tell whether all edges are directed or bidirected and no directed cycle exists."""
        directed = {Mark.TAIL, Mark.ARROW}
        return self.is_acyclic() and all({*m} in (directed, {Mark.ARROW}) for *_, m in self._pairs())

    def is_ancestral(self) -> bool:
        """Tell whether the graph is ancestral.

        That is: one edge at most between two nodes, no circles, no directed cycle, no bidirected edge
        between a node and its ancestor, and no arrowhead at a node that has an undirected edge.
        """
        if not self.is_simple() or not self.is_acyclic() or self._has_circle():
            return False
        if any(self._undirected_end(i) and self._arrow_end(i) for i in range(len(self))):
            return False
        parents = self._numbered(Mark.ARROW, Mark.TAIL)
        siblings = self._numbered(Mark.ARROW, Mark.ARROW)
        return not any(
            set(siblings[i]).intersection(reach([i], parents)) for i in range(len(self)) if siblings[i]
        )

    def is_mag(self) -> bool:
        """Tell whether the graph is ancestral and any two nodes that are not adjacent can be separated."""
        if not self.is_ancestral():
            return False
        anterior = [set(reach([i], self._anterior())) for i in range(len(self))]
        return all(
            j in self._marks[i]
            or self.m_separated(
                self._names[i], self._names[j], self._named((anterior[i] | anterior[j]) - {i, j})
            )
            for i, j in combinations(range(len(self)), 2)
        )

    def is_cpdag(self) -> bool:
        """Tell whether the graph is the completed graph of some class of I-equivalent DAGs."""
        completed: bool = ports.call("is-cpdag", self)
        return completed

    def m_separated(self, x: Names, y: Names, given: Names = ()) -> bool:
        """Decide whether every path between two sets of nodes is blocked.

        A path is open if each collider on it is in `given` or an ancestor of it, and no other inner node is
        in `given`. For a DAG this is d-separation, for an undirected graph ordinary separation.

        Parameters
        ----------
        x, y, given
            One name or several. Members of `x` and `y` that are in `given` count as separated from
            everything; a node outside `given` that is in both `x` and `y` makes the answer False.

        Raises
        ------
        InvalidGraph
            If the graph has circles, or an arrowhead at a node with an undirected edge: m-separation
            is not defined there.

        Examples
        --------
        >>> g = MixedGraph(["a --> b", "b <-> c", "d --> c"])
        >>> g.m_separated("a", "d"), g.m_separated("a", "c", "b"), g.m_separated("a", "d", ["b", "c"])
        (True, False, False)
        """
        self._check_m_separation()
        observed = set(self._numbers(given))
        sources, targets = set(self._numbers(x)) - observed, set(self._numbers(y)) - observed
        opened = set(reach(observed, self._numbered(Mark.ARROW, Mark.TAIL)))
        seen = {(i, False) for i in sources}
        queue = list(seen)
        for node, at_arrow in queue:
            if node in targets:
                return False
            for other, edges in self._marks[node].items():
                for here, there in edges:
                    collider = at_arrow and here is Mark.ARROW
                    state = (other, there is Mark.ARROW)
                    if (node in opened if collider else node not in observed) and state not in seen:
                        seen.add(state)
                        queue.append(state)
        return True

    def _check_m_separation(self) -> None:
        """Refuse a graph in which m-separation is not defined."""
        if self._has_circle():
            raise InvalidGraph("m-separation is not defined with circle marks; orient the edges first")
        if both := [i for i in range(len(self)) if self._undirected_end(i) and self._arrow_end(i)]:
            raise InvalidGraph(
                f"m-separation is not defined: {self._names[both[0]]!r} has an undirected edge and "
                "an arrowhead; ChainGraph.from_mixed(graph).lwf_separated reads arrows and lines"
            )

    def _pairs(self) -> Iterator[tuple[int, int, tuple[Mark, Mark]]]:
        for i, others in enumerate(self._marks):
            for j, marks in others.items():
                for pair in marks:
                    yield i, j, pair

    def _edge_set(self) -> set[tuple[str, str, Mark, Mark]]:
        return {(self._names[i], self._names[j], *pair) for i, j, pair in self._pairs()}

    def _along(self, name: str, here: Mark, there: Mark) -> list[str]:
        others = self._marks[self._number(name)]
        return self._named(j for j, marks in others.items() if (here, there) in marks)

    def _numbered(self, here: Mark, there: Mark) -> list[list[int]]:
        return [[j for j, marks in others.items() if (here, there) in marks] for others in self._marks]

    def _anterior(self) -> list[list[int]]:
        """List, for each node, its parents and undirected neighbours."""
        return [
            [j for j, marks in others.items() if any(there is Mark.TAIL for _, there in marks)]
            for others in self._marks
        ]

    def _has_circle(self) -> bool:
        return any(Mark.CIRCLE in pair for *_, pair in self._pairs())

    def _undirected_end(self, i: int) -> bool:
        return any((Mark.TAIL, Mark.TAIL) in marks for marks in self._marks[i].values())

    def _arrow_end(self, i: int) -> bool:
        return any(here is Mark.ARROW for marks in self._marks[i].values() for here, _ in marks)

    def _induced(self, kept: list[int]) -> Self:
        names = dict.fromkeys(self._named(kept))
        return type(self)((e for e in self.edges if e[0] in names and e[1] in names), nodes=names)


def edge_string(edge: MarkedEdge) -> str:
    """Write a marked edge as `"a o-> b"`.

    Examples
    --------
    >>> edge_string(("a", "b", Mark.CIRCLE, Mark.ARROW))
    'a o-> b'
    """
    a, b, mark_a, mark_b = edge
    return f"{a} {_SIGN[mark_a]}-{mark_b.value} {b}"


def _checked_edge(edge: str | MarkedEdge) -> MarkedEdge:
    if isinstance(edge, str):
        match = _EDGE.fullmatch(edge)
        if match is None or not match["a"] or not match["b"]:
            raise InvalidArgument(
                f"{edge!r} is not an edge; write 'a --> b', 'a <-> b', 'a --- b', 'a o-> b' or so"
            )
        edge = (match["a"], match["b"], _LEFT[match["left"]], _RIGHT[match["right"]])
    if (
        not isinstance(edge, tuple | list)
        or len(edge) != 4
        or not isinstance(edge[2], Mark)
        or not isinstance(edge[3], Mark)
    ):
        raise InvalidArgument(f"a marked edge is (a, b, Mark, Mark), got {edge!r}")
    a, b = checked_name(edge[0]), checked_name(edge[1])
    if a == b:
        raise InvalidGraph(f"{a!r} cannot be joined to itself")
    return a, b, edge[2], edge[3]
