"""Acyclic directed mixed graphs as bit masks: districts, pillows, ancestral sets and m-separation after surgery.

A set of nodes is one whole number, so that algorithms which look at many subgraphs (identification, adjustment) copy none:
every question takes `within=`, the nodes that are left, and m-separation also the nodes whose incoming (`into=`) or outgoing
(`out_of=`) edges are cut. Reference: Richardson, *Markov properties for acyclic directed mixed graphs* (2003); Evans and
Richardson, *Markovian acyclic directed mixed graphs for discrete data* (2014).
"""

from collections.abc import Iterable, Sequence

from markovia.errors import CycleError, InvalidGraph
from markovia.graphs.causal.text import causal_graph
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.linear_searches import topological_order
from markovia.graphs.kinds.masks import mask_of, members, turned, union_of
from markovia.graphs.kinds.mixed import Mark, MixedGraph
from markovia.graphs.kinds.named import Names


class Admg:
    """An acyclic directed mixed graph over numbered nodes.

    Attributes
    ----------
    names
        The names of the nodes 0, 1, ...
    parents, children, siblings
        For each node the mask of those with an edge into it, out of it, and bidirected to it.
    order
        The nodes, parents before children.
    everything
        The mask of all nodes.
    """

    __slots__ = ("children", "everything", "names", "number", "order", "parents", "siblings")

    def __init__(self, names: Sequence[str], parents: list[int], siblings: list[int]) -> None:
        self.names = list(names)
        self.number = {name: i for i, name in enumerate(self.names)}
        self.parents = parents
        self.siblings = siblings
        self.children = turned(parents)
        self.order, cycle = topological_order([members(mask) for mask in parents])
        if cycle:
            raise CycleError([self.names[i] for i in cycle])
        self.everything = (1 << len(self.names)) - 1

    @classmethod
    def of(cls, graph: DAG | MixedGraph) -> "Admg":
        """Read a graph whose edges are all directed or bidirected.

        Raises
        ------
        InvalidGraph
            If an edge is undirected or has a circle; as `CycleError` if directed edges form a cycle.
        """
        names = graph.nodes
        parents, siblings = [0] * len(names), [0] * len(names)
        if isinstance(graph, DAG):
            return cls(names, [mask_of(own) for own in graph._parents], siblings)
        for i, others in enumerate(graph._marks):
            for j, marks in others.items():
                for pair in marks:
                    if pair == (Mark.ARROW, Mark.TAIL):
                        parents[i] |= 1 << j
                    elif pair == (Mark.ARROW, Mark.ARROW):
                        siblings[i] |= 1 << j
                    elif pair != (Mark.TAIL, Mark.ARROW):
                        raise InvalidGraph(
                            f"the edge between {names[i]!r} and {names[j]!r} is neither directed nor bidirected; "
                            "an acyclic directed mixed graph is needed here"
                        )
        return cls(names, parents, siblings)

    def mask(self, names: Iterable[str]) -> int:
        """Return the mask of some names."""
        return mask_of(self.number[name] for name in names)

    def named(self, mask: int) -> tuple[str, ...]:
        """Return the names in a mask, in the graph's own order."""
        return tuple(self.names[i] for i in members(mask))

    def graph(self) -> MixedGraph:
        """Return the graph with names."""
        mixed = MixedGraph(nodes=self.names)
        for i, name in enumerate(self.names):
            mixed.add_edges((self.names[p], name, Mark.TAIL, Mark.ARROW) for p in members(self.parents[i]))
            higher = self.siblings[i] >> i + 1 << i + 1
            mixed.add_edges((name, self.names[s], Mark.ARROW, Mark.ARROW) for s in members(higher))
        return mixed

    def ordered(self, mask: int) -> list[int]:
        """Return the nodes of a mask, parents before children."""
        return [i for i in self.order if mask >> i & 1]

    def ancestors(self, mask: int, within: int = -1, into: int = 0) -> int:
        """Return a set and all above it, in the subgraph `within` without edges into the nodes of `into`."""
        return _closed(mask & within, self.parents, within, stop=into)

    def descendants(self, mask: int, within: int = -1, into: int = 0) -> int:
        """Return a set and all below it, in the subgraph `within` without edges into the nodes of `into`."""
        return _closed(mask & within, self.children, within & (~into | mask))

    def parents_of(self, mask: int) -> int:
        """Return the parents of a set, its own members among them if they are."""
        return union_of(mask, self.parents)

    def district(self, mask: int, within: int = -1) -> int:
        """Return a set and all that bidirected paths within a subgraph join to it."""
        return _closed(mask & within, self.siblings, within)

    def districts(self, within: int = -1) -> list[int]:
        """Return the parts of a subgraph that bidirected edges connect, in order of their first nodes."""
        left, parts = self.everything & within, []
        while left:
            part = self.district(left & -left, within)
            parts.append(part)
            left &= ~part
        return parts

    def pillow(self, mask: int, within: int = -1) -> int:
        """Return the parents of a set that are not in it."""
        return self.parents_of(mask) & ~mask & within

    def m_separated(
        self, x: int, y: int, given: int = 0, within: int = -1, into: int = 0, out_of: int = 0
    ) -> bool:
        """Say whether a set blocks every path between two others after surgery.

        Parameters
        ----------
        x, y, given
            Masks without common nodes.
        within
            The nodes that are left.
        into, out_of
            The nodes that lose their incoming edges (bidirected ones too), and their outgoing ones.
        """
        return not self.reached(x, given, within, into, out_of) & y

    def reached(self, x: int, given: int = 0, within: int = -1, into: int = 0, out_of: int = 0) -> int:
        """Return the nodes outside `given` that some open path joins to a set, as `m_separated` sees them."""
        within &= self.everything
        givers = within & ~out_of  # whose outgoing edges are left
        # nodes met against an arrow (at a tail, or as a start) and along one (at an arrowhead)
        at_tail, at_head = x & within & ~given, 0
        fresh_tail, fresh_head = at_tail, 0
        while fresh_tail or fresh_head:
            # on through an arrowhead: from a tail, or back from what is given; walking down to it opens a collider
            up = fresh_tail & ~given | fresh_head & given
            down = (fresh_tail | fresh_head) & ~given  # may go on through a tail at the node
            up &= ~into
            tails = union_of(up, self.parents) & givers
            heads = (union_of(up, self.siblings) | union_of(down & ~out_of, self.children)) & within & ~into
            fresh_tail, fresh_head = tails & ~at_tail, heads & ~at_head
            at_tail |= fresh_tail
            at_head |= fresh_head
        return (at_tail | at_head) & ~given

    def __repr__(self) -> str:
        return f"<Admg with {len(self.names)} nodes>"


def districts(graph: object) -> list[list[str]]:
    """List the districts (c-components): the parts that bidirected edges connect.

    Examples
    --------
    >>> districts("x -> z -> y; x <-> y")
    [['x', 'y'], ['z']]
    """
    masked = Admg.of(causal_graph(graph))
    return [list(masked.named(part)) for part in masked.districts()]


def pillow(graph: object, names: Names) -> list[str]:
    """List the parents of a set of nodes that are not in it; for a district, all that it depends on.

    Examples
    --------
    >>> pillow(MixedGraph(["x --> z", "z --> y", "x <-> y"]), ["x", "y"])
    ['z']
    """
    read = causal_graph(graph)
    masked = Admg.of(read)
    return list(masked.named(masked.pillow(mask_of(read._numbers(names)))))


def markov_blanket(graph: object, name: str) -> set[str]:
    """Return what separates a node from all others: the districts of the node and of its children, and their parents.

    In a DAG these are parents, children and the children's other parents.

    Examples
    --------
    >>> sorted(markov_blanket(MixedGraph(["a --> b", "b <-> c", "d --> c", "c --> e"]), "b"))
    ['a', 'c', 'd']
    """
    read = causal_graph(graph)
    masked = Admg.of(read)
    own = mask_of(read._numbers(name))
    inside = masked.district(own | union_of(own, masked.children))
    return set(masked.named((inside | masked.parents_of(inside)) & ~own))


def is_ancestral_set(graph: object, names: Names) -> bool:
    """Say whether a set of nodes holds all their ancestors, so that the others can be dropped from the graph.

    Examples
    --------
    >>> chain = DAG([("a", "b"), ("b", "c")])
    >>> is_ancestral_set(chain, ["a", "b"]), is_ancestral_set(chain, ["b"])
    (True, False)
    """
    read = causal_graph(graph)
    masked = Admg.of(read)
    asked = mask_of(read._numbers(names))
    return masked.ancestors(asked) == asked


def _closed(mask: int, step: Sequence[int], within: int, stop: int = 0) -> int:
    """Return what steps from a set reach within another; from nodes of `stop` no step is made."""
    found, fresh = mask, mask
    while fresh:
        fresh = union_of(fresh & ~stop, step) & within & ~found
        found |= fresh
    return found
