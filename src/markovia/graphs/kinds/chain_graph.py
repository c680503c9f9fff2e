"""Chain graphs: arrows between blocks, lines inside them, and no way round that follows an arrow.

Directed acyclic graphs and undirected graphs are the two ends of this kind. The *chain components* are what the lines
connect; arrows make a directed acyclic graph of them. A distribution over it is a product of fields, one a component,
each given the component's parents. What it promises is read off the moral graph of the smallest anterior set, as
Lauritzen, Wermuth and Frydenberg read it: the parents of a component are joined, whichever of its nodes they point at.
References: Frydenberg, *The chain graph Markov property*, Scandinavian Journal of Statistics 17 (1990); Lauritzen,
*Graphical models* (1996), section 3.2.3. Separation costs one moral graph.
"""

from collections.abc import Iterable
from itertools import combinations
from typing import Self

from markovia.errors import InvalidGraph
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.linear_searches import components, reach, topological_order
from markovia.graphs.kinds.mixed import Mark, MarkedEdge, MixedGraph, edge_string
from markovia.graphs.kinds.named import Names, as_names, need
from markovia.graphs.kinds.undirected import UndirectedGraph


class ChainGraph(MixedGraph):
    """A mixed graph of arrows and lines without a semi-directed cycle; an edit that would make one changes nothing.

    Parameters
    ----------
    edges
        Strings such as `"a --> b"` and `"b --- c"`, or tuples (a, b, mark at a, mark at b).
    nodes
        Nodes that come first, in this order, whether or not they have edges.

    Examples
    --------
    >>> g = ChainGraph(["a --> c", "c --- d", "b --> d"])
    >>> g.chain_components()
    [['a'], ['b'], ['c', 'd']]
    >>> g.lwf_separated("a", "b"), g.lwf_separated("a", "b", given=["c", "d"]), g.lwf_separated("a", "d", given=["b", "c"])
    (True, False, True)
    """

    @classmethod
    def from_mixed(cls, graph: DAG | UndirectedGraph | MixedGraph) -> Self:
        """Return a graph of any kind with arrows and lines, such as a CPDAG, as a chain graph."""
        need(graph, DAG, UndirectedGraph, MixedGraph)
        if isinstance(graph, DAG):
            return cls.from_dag(graph)
        return cls(graph.edges, graph.nodes) if isinstance(graph, MixedGraph) else cls.from_undirected(graph)

    def add_edges(self, edges: Iterable[str | MarkedEdge]) -> None:
        """Add many edges, or none of them if the graph would be no chain graph any more."""
        before = [{j: list(marks) for j, marks in others.items()} for others in self._marks]
        names = list(self._names)
        super().add_edges(edges)
        try:
            self._check_chain()
        except InvalidGraph:
            self._names, self._index = names, {name: i for i, name in enumerate(names)}
            self._marks = before
            raise

    def set_marks(self, a: str, b: str, mark_a: Mark, mark_b: Mark) -> None:
        """Replace the edge between two nodes, which must be there, by one with these marks."""
        twin = self.copy()
        super(ChainGraph, twin).set_marks(a, b, mark_a, mark_b)
        self._become(twin)

    def chain_components(self) -> list[list[str]]:
        """List the parts that lines connect, each after those with arrows into it."""
        return [self._named(part) for part in self._ordered_components()[0]]

    def boundary(self, names: Names) -> set[str]:
        """Collect the parents and undirected neighbours of one node or several, these not among them.

        A node is independent of what is neither below it nor in its boundary, given its boundary.
        """
        inside, steps = self._numbers(names), self._anterior()
        return set(self._named({j for i in inside for j in steps[i]}.difference(inside)))

    def anterior(self, names: Names) -> set[str]:
        """Collect the nodes from which arrows and lines lead to one of the names, these among them."""
        return set(self._named(reach(self._numbers(names), self._anterior())))

    def moral_graph(self) -> UndirectedGraph:
        """Join all parents of each chain component and drop the directions."""
        graph, parents = self.skeleton(), self._numbered(Mark.ARROW, Mark.TAIL)
        for part in self._ordered_components()[0]:
            above = sorted({j for i in part for j in parents[i]})
            graph.add_edges(combinations(self._named(above), 2))
        return graph

    def markov_blanket(self, name: str) -> set[str]:
        """Collect the nodes that make a node independent of all others: its neighbours in the moral graph."""
        return set(self.moral_graph().neighbors(name))

    def lwf_separated(self, x: Names, y: Names, given: Names = ()) -> bool:
        """Decide whether x and y are independent given `given` in every distribution of the chain graph.

        Overlapping sets as in `MixedGraph.m_separated`.
        """
        sets = [as_names(part) for part in (x, y, given)]
        moral = self.subgraph(self.anterior([name for part in sets for name in part])).moral_graph()
        sources, targets, observed = (moral._numbers(part) for part in sets)
        reached = reach(sources, moral._neighbors, blocked=observed)
        return set(targets).difference(observed).isdisjoint(reached)

    def _ordered_components(self) -> tuple[list[list[int]], list[int]]:
        """Return the chain components, parents first; and instead of an order a cycle of them, by their first nodes."""
        parts = components(self._numbered(Mark.TAIL, Mark.TAIL))
        label = {i: k for k, part in enumerate(parts) for i in part}
        parents = self._numbered(Mark.ARROW, Mark.TAIL)
        # an arrow inside a component is a cycle of one
        above = [list(dict.fromkeys(label[j] for i in part for j in parents[i])) for part in parts]
        order, cycle = topological_order(above)
        return [parts[k] for k in order], [parts[k][0] for k in cycle]

    def _check_chain(self) -> None:
        for edge in self.edges:  # an arrow from its tail on
            if edge[2] is not Mark.TAIL or edge[3] is Mark.CIRCLE:
                raise InvalidGraph(
                    f"a chain graph has arrows and lines alone, and {edge_string(edge)} is neither; use a MixedGraph"
                )
        if not self.is_simple():
            raise InvalidGraph("a chain graph has one edge at most between two nodes; use a MixedGraph")
        if cycle := self._ordered_components()[1]:
            way = ", ".join(self._named(dict.fromkeys(cycle)))
            raise InvalidGraph(
                f"arrows and lines lead round in a circle, by way of {way}; turn or drop an arrow"
            )
