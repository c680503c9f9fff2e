"""What a graph that stands for many says about effects: a CPDAG, a maximal or a partial ancestral graph.

An effect can be had by adjustment in all members of a class only if the class is *amenable*: every path that may be
causal starts with an edge that is directed and, where hidden variables are allowed, visible. What may lie on or below
such a path may not be adjusted for. Given both, blocking the other paths in one member blocks them in all, so that
one member and the possible causal paths are all that adjustment needs.

References: Perkovic, Textor, Kalisch and Maathuis, *Complete graphical characterization and construction of
adjustment sets in Markov equivalence classes of ancestral graphs*, JMLR 18 (2018); Zhang, *Causal reasoning with
ancestral graphs*, JMLR 9 (2008).
"""

from typing import Literal, NamedTuple

from markovia.errors import InvalidArgument, InvalidGraph
from markovia.graphs.causal.admg import Admg
from markovia.graphs.causal.surgery import visible_edges
from markovia.graphs.equivalence import extend
from markovia.graphs.masks import mask_of
from markovia.graphs.mixed import Mark, MixedGraph, edge_string

Family = Literal["auto", "admg", "cpdag", "mag", "pag"]
"""What the edges of a graph mean: "auto" sees circles (PAG) and undirected edges (CPDAG), and takes others as an ADMG."""


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
    if family not in ("auto", "admg", "cpdag", "mag", "pag"):
        raise InvalidArgument(f"family is 'auto', 'admg', 'cpdag', 'mag' or 'pag', got {family!r}")
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
