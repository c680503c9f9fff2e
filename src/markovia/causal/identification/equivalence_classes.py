"""What a graph that stands for many says about effects: a CPDAG, a maximal or a partial ancestral graph.

An effect can be had by adjustment in all members of a class only if the class is *amenable*: every path that may be
causal starts with an edge that is directed and, where hidden variables are allowed, visible. What may lie on or below
such a path may not be adjusted for. Given both, blocking the other paths in one member blocks them in all, so that
one member and the possible causal paths are all that adjustment needs.

References: Perkovic, Textor, Kalisch and Maathuis, *Complete graphical characterization and construction of
adjustment sets in Markov equivalence classes of ancestral graphs*, JMLR 18 (2018); Zhang, *Causal reasoning with
ancestral graphs*, JMLR 9 (2008).
"""

from collections.abc import Iterator
from itertools import combinations, product
from math import prod
from typing import NamedTuple

from markovia.causal.problem import Family
from markovia.errors import CycleError, InvalidArgument, InvalidGraph
from markovia.graphs.causal.admg import Admg
from markovia.graphs.causal.surgery import visible_edges
from markovia.graphs.kinds.equivalence import extend
from markovia.graphs.kinds.masks import mask_of
from markovia.graphs.kinds.mixed import Mark, MixedGraph, edge_string


class GraphClass(NamedTuple):
    """One member of a class of graphs, and what may be or surely is causal in all of them.

    Attributes
    ----------
    family
        "admg" (DAGs too), "cpdag", "mag" or "pag".
    member
        A graph of directed and bidirected edges.
    possible
        For each node the mask of nodes that may be its children.
    settled
        For each node the mask of its children along edges whose causal effect nothing hidden can confound: in a DAG,
        an ADMG (where confounding is drawn) or a CPDAG all directed edges, in a MAG or PAG the visible ones.
    """

    family: str
    member: Admg
    possible: list[int]
    settled: list[int]


def graph_class(graph: MixedGraph, family: Family = "auto") -> GraphClass:
    """Read a graph as a member of a family.

    Parameters
    ----------
    graph
        A DAG or ADMG, CPDAG (background knowledge may direct more of its edges), MAG or PAG, without selection bias.
    family
        Needed for a MAG, or a PAG without circles: a directed edge there may hide a confounder, which "admg"
        excludes.

    Raises
    ------
    InvalidGraph
        If the edges are not those of the family.

    Examples
    --------
    >>> read = graph_class(MixedGraph(["x --> y"], nodes=["x", "y"]), "mag")
    >>> read.possible, read.settled
    ([2, 0], [0, 0])
    """
    kinds = {pair: edge for edge in graph.edges for pair in [edge[2:]]}
    if family == "auto":
        circles = any(Mark.CIRCLE in pair for pair in kinds)
        family = "pag" if circles else "cpdag" if (Mark.TAIL, Mark.TAIL) in kinds else "admg"
    for (at_a, at_b), edge in kinds.items():
        if not _fits(at_a, at_b, family):
            raise InvalidGraph(f"the edge {edge_string(edge)} has no place in a {_NAMES[family]}")
    number = graph._index
    possible = [
        mask_of(j for j, marks in others.items() if any(here is not Mark.ARROW for here, _ in marks))
        for others in graph._marks
    ]
    settled = [0] * len(graph)
    for a, b in visible_edges(graph) if family in ("mag", "pag") else graph.directed_edges():
        settled[number[a]] |= 1 << number[b]
    return GraphClass(family, _member(graph, family), possible, settled)


MOST_MEMBERS = 50_000


def ancestral_members(graph: MixedGraph) -> Iterator[MixedGraph]:
    """Yield the MAGs of a PAG without selection bias: the choices of its circles that keep all separations.

    Two ancestral graphs of one skeleton have the same separations if each has the pairwise ones of the other: what is
    above two nodes that are not adjacent separates them. Cost: the choices of marks, 2 or 3 an edge with circles.

    Raises
    ------
    InvalidArgument
        If there are more than 50,000 choices.

    Examples
    --------
    >>> [member.edges[0][2:] for member in ancestral_members(MixedGraph(["x o-> y"]))]
    [(<Mark.TAIL: '-'>, <Mark.ARROW: '>'>), (<Mark.ARROW: '>'>, <Mark.ARROW: '>'>)]
    """
    first = graph_class(graph, "pag").member
    edges = graph.edges
    kinds = ((Mark.TAIL, Mark.ARROW), (Mark.ARROW, Mark.TAIL), (Mark.ARROW, Mark.ARROW))
    choices = [
        [k for k in kinds if all(mark in (Mark.CIRCLE, own) for mark, own in zip(edge[2:], k, strict=True))]
        for edge in edges
    ]
    if prod(map(len, choices)) > MOST_MEMBERS:
        raise InvalidArgument(
            f"the circles of the graph leave more than {MOST_MEMBERS:,} choices of marks; direct some of its edges"
        )
    apart = [
        (i, j)
        for i, j in combinations(range(len(graph)), 2)
        if not graph.adjacent(graph.nodes[i], graph.nodes[j])
    ]
    pairwise = _separations(first, apart)
    for marks in product(*choices):
        member = MixedGraph(
            [(*edge[:2], *kind) for edge, kind in zip(edges, marks, strict=True)], nodes=graph.nodes
        )
        try:
            read = Admg.of(member)
        except CycleError:
            continue
        if any(read.siblings[i] & read.ancestors(1 << i) for i in range(len(graph))):
            continue
        if all(
            m.m_separated(*s)
            for m, sets in ((read, pairwise), (first, _separations(read, apart)))
            for s in sets
        ):
            yield member


def _separations(graph: Admg, apart: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    return [(1 << i, 1 << j, graph.ancestors(1 << i | 1 << j) & ~(1 << i | 1 << j)) for i, j in apart]


_NAMES = {
    "admg": "graph with hidden causes",
    "cpdag": "CPDAG",
    "mag": "MAG",
    "pag": "PAG without selection bias",
}


def _fits(at_a: Mark, at_b: Mark, family: str) -> bool:
    marks = {at_a, at_b}
    if marks == {Mark.TAIL, Mark.ARROW}:
        return True
    if marks == {Mark.TAIL}:
        return family == "cpdag"
    if marks == {Mark.ARROW}:
        return family != "cpdag"
    return family == "pag" and Mark.TAIL not in marks


def _member(graph: MixedGraph, family: str) -> Admg:
    """Direct the edges of a class: one DAG of a CPDAG, one MAG of a PAG (Zhang 2008, theorem 2)."""
    if family == "cpdag":
        return Admg.of(extend(graph))
    if family != "pag":
        return Admg.of(graph)
    loose = [(a, b) for a, b, at_a, at_b in graph.edges if at_a is at_b is Mark.CIRCLE]
    inner = extend(MixedGraph(((a, b, Mark.TAIL, Mark.TAIL) for a, b in loose), nodes=graph.nodes))
    directed = [(a, b, Mark.TAIL, Mark.ARROW) for a, b in inner.edges]
    tails = [
        (a, b, Mark.ARROW if at_a is Mark.ARROW else Mark.TAIL, Mark.ARROW)
        for a, b, at_a, at_b in graph.edges
        if at_b is Mark.ARROW
    ]
    return Admg.of(MixedGraph([*directed, *tails], nodes=graph.nodes))
