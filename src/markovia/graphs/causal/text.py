"""Graphs as text: dagitty model strings, and the same statements without a frame around them.

    dag {
      bb="0,0,1,1"
      smoke [exposure, pos="0.1,0.2"]
      cancer [outcome]
      {age sex} -> smoke -> tar -> cancer
      smoke <-> diet
    }

Edges are `->`, `<-`, `<->`, `--`, and with a circle `@->`, `<-@`, `@-@`, `@--`, `--@`; an edge may have whole
groups in braces at its ends, and edges chain. Semicolons and line ends separate statements. `"x -> y; x <-> y"` is the
short form. Reading and writing are linear in the number of edges. Reference: Textor et al., *Robust causal inference using
directed acyclic graphs: the R package dagitty*, International Journal of Epidemiology 45 (2016).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Self

from markovia.errors import CycleError, InvalidArgument, ParseError
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.mixed import Mark, MarkedEdge, MixedGraph
from markovia.graphs.kinds.named import NamedGraph, Names, as_names, need
from markovia.graphs.kinds.projection import latent_projection
from markovia.runtime.source_text import Source, brief, quote, shown, unquote

ROLES = ("exposure", "outcome", "latent", "adjusted", "selected")
_TYPES = ("dag", "pdag", "mag", "pag", "graph", "digraph")
_SHORT = {"e": "exposure", "o": "outcome", "l": "latent", "a": "adjusted", "s": "selected", "u": "latent"}
_EDGES = {
    "->": (Mark.TAIL, Mark.ARROW),
    "<-": (Mark.ARROW, Mark.TAIL),
    "<->": (Mark.ARROW, Mark.ARROW),
    "--": (Mark.TAIL, Mark.TAIL),
    "@->": (Mark.CIRCLE, Mark.ARROW),
    "<-@": (Mark.ARROW, Mark.CIRCLE),
    "@-@": (Mark.CIRCLE, Mark.CIRCLE),
    "@--": (Mark.CIRCLE, Mark.TAIL),
    "--@": (Mark.TAIL, Mark.CIRCLE),
}
_SIGNS = {marks: sign for sign, marks in _EDGES.items()}
_EDGES |= {"-->": _EDGES["->"], "<--": _EDGES["<-"]}  # as a MixedGraph prints them
_TOKEN = re.compile(
    r"(?:\s++|//[^\n]*+|\#[^\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*\*/)*(?:"
    r'(?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*")'
    r"|(?P<edge><->|<-@|<--|<-|@->|@-@|@--|--@|-->|->|--)"
    r"|(?P<sign>[{}\[\];,=])"
    r"|(?P<word>(?:[^\s\"{}\[\];,=<>@/\-]|/(?![/*])|-(?![->@]))+)"
    r"|(?P<other>.))?",
    re.DOTALL,
)
_FRAME = re.compile(
    r"(?:\s++|//[^\n]*+|\#[^\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*\*/)*"
    rf'(?:{"|".join(_TYPES)})\s*+(?:"[^"]*+"|[^\s"{{}}\[\];,=<>@-]++)?\s*+\{{',
    re.IGNORECASE,
)
_DEEPEST = 100
_MOST_TOKENS = 2**22
_WORD = re.compile(r"[A-Za-z0-9_.]+")


@dataclass(frozen=True)
class GraphText:
    """What a text says: the graph over all its nodes, their roles, and the word before the braces, such as "dag"."""

    graph: DAG | MixedGraph
    roles: Mapping[str, set[str]]
    kind: str = ""

    def named(self, role: str) -> tuple[str, ...]:
        """Return the nodes with a role, in order: "latent", "exposure", "outcome", "adjusted" or "selected"."""
        return tuple(name for name, roles in self.roles.items() if role in roles)


def parse_graph(text: str, source: str | None = None, *, framed: bool = False) -> GraphText:
    """Read a graph from dagitty text, or from its statements alone.

    Parameters
    ----------
    text
        The text, such as `"dag { u [latent] x -> y <- u }"` or `"x -> y; x <-> y"`.
    source
        A file's name, for errors.
    framed
        Whether the text has to be a whole model string, `dag { ... }`.

    Returns
    -------
    what was read
        With `graph`, a `DAG` if every edge is directed, and `roles` of its nodes. Latent variables are ordinary nodes.

    Raises
    ------
    ParseError
        If the text is malformed, an edge joins a node to itself, or a graph of directed edges has a cycle.

    Examples
    --------
    >>> parse_graph("x -> y <- z").graph
    DAG([('x', 'y'), ('z', 'y')])
    >>> read = parse_graph("dag { u [latent] x -> y <- u -> x }")
    >>> read.graph.nodes, read.named("latent")
    (['u', 'x', 'y'], ('u',))
    """
    parser = _Parser(Source(text, source)).parse(framed)
    graph = declared_graph(parser.source, parser.roles, parser.edges, parser.places)
    return GraphText(graph, parser.roles, parser.family)


def causal_graph(graph: object, latent: Names = ()) -> DAG | MixedGraph:
    """Return a causal graph, whatever it was written as; all functions on causal graphs read theirs here.

    Parameters
    ----------
    graph
        A `DAG` or `MixedGraph`, returned as it is; a text, whose latent variables are projected away; or a model or result
        that holds a graph, of a network with an `equivalence_class` that class.
    latent
        Further variables to project away.

    Raises
    ------
    InvalidArgument, InvalidGraph
        If it is no graph, or an undirected one.

    Examples
    --------
    >>> causal_graph("x -> y <- z")
    DAG([('x', 'y'), ('z', 'y')])
    >>> causal_graph("dag { u [latent] u -> {x y} }")
    MixedGraph(['x <-> y'])
    """
    hidden = as_names(latent)
    if isinstance(graph, str):
        text = parse_graph(graph)
        graph, hidden = text.graph, [*text.named("latent"), *hidden]
    elif isinstance(graph, NamedGraph) or type(graph).__module__.startswith("networkx"):
        need(graph, DAG, MixedGraph)
    else:
        if getattr(graph, "_potentials", None):
            raise InvalidArgument(
                "a model with potentials is no causal graph: they couple nodes without a direction; give its graph as text"
            )
        # a network that is one member of a learned class knows the class
        learned = getattr(graph, "equivalence_class", None)
        held = getattr(graph, "graph", None) if learned is None else learned
        graph = held() if callable(held) else held
    if not isinstance(graph, DAG | MixedGraph):
        raise InvalidArgument(
            "a causal graph is a DAG, a MixedGraph, a text such as 'x -> y; x <-> y' or a model with a directed graph"
        )
    return latent_projection(graph, hidden) if hidden else graph


def graph_text(graph: object, *, latent: Names = (), exposure: Names = (), outcome: Names = ()) -> str:
    """Write a graph as a dagitty model string, with the roles of its nodes; those that a text has stay.

    The kind of graph is `dag` where the edges are directed or bidirected, `pdag` where they are directed or undirected,
    `mag` with all three, and `pag` with circles.

    Examples
    --------
    >>> print(graph_text(DAG([("u", "x"), ("u", "y")]), latent="u"), end="")
    dag {
    u [latent]
    x
    y
    u -> x
    u -> y
    }
    """
    text = parse_graph(graph) if isinstance(graph, str) else None
    read = causal_graph(graph) if text is None else text.graph
    mixed = MixedGraph.from_dag(read) if isinstance(read, DAG) else read
    roles: dict[str, list[str]] = {name: [] for name in mixed.nodes}
    for role, names in (("exposure", exposure), ("outcome", outcome), ("latent", latent)):
        kept = () if text is None else text.named(role)
        for name in dict.fromkeys([*kept, *mixed._named(mixed._numbers(names))]):
            roles[name].append(role)
    kind = "dag" if not mixed.undirected_edges() else "mag" if mixed.bidirected_edges() else "pdag"
    if any(Mark.CIRCLE in edge[2:] for edge in mixed.edges):
        kind = "pag"
    nodes = mixed.nodes
    lines = [_shown(name) + (f" [{', '.join(said)}]" if said else "") for name, said in roles.items()]
    number = {name: i for i, name in enumerate(nodes)}
    edges = sorted((number[a], number[b], sign) for a, b, sign in map(_forward, mixed.edges))
    lines += [f"{_shown(nodes[a])} {sign} {_shown(nodes[b])}" for a, b, sign in edges]
    return "\n".join([f"{kind} {{", *lines, "}"]) + "\n"


def declared_graph(
    source: Source, nodes: Iterable[str], edges: Sequence[MarkedEdge], places: Sequence[int]
) -> DAG | MixedGraph:
    """Return the graph of edges read from a text: a `DAG` if all of them are directed.

    Raises
    ------
    ParseError
        If an edge joins a node to itself or directed edges form a cycle, at the place of that edge.
    """
    for (a, b, *_), at in zip(edges, places, strict=True):
        if a == b:
            raise source.error(at, f"expected an edge between two nodes, found one from {shown(a)} to itself")
    if any({at_a, at_b} != {Mark.TAIL, Mark.ARROW} for _, _, at_a, at_b in edges):
        return MixedGraph(edges, nodes=nodes)
    pairs = [(a, b) if at_b is Mark.ARROW else (b, a) for a, b, _, at_b in edges]
    try:
        return DAG(pairs, nodes=nodes)
    except CycleError as error:
        closing = set(pairwise(error.cycle))
        last = max(at for pair, at in zip(pairs, places, strict=True) if pair in closing)
        raise source.error(last, f"expected no directed cycle, but {brief(str(error))}") from None


def most_edges(source: Source) -> int:
    """Return how many edges a text may stand for: groups multiply, and a few lines could ask for billions."""
    return 2**20 + 64 * len(source.text)


def _forward(edge: MarkedEdge) -> tuple[str, str, str]:
    """Return an edge with its arrow to the right, so that equal graphs are written as the same text."""
    a, b, at_a, at_b = edge
    if at_a is Mark.ARROW and at_b is not Mark.ARROW:
        a, b, at_a, at_b = b, a, at_b, at_a
    return a, b, _SIGNS[at_a, at_b]


def _shown(name: str) -> str:
    return name if _WORD.fullmatch(name) else quote(name)


@dataclass
class _Group:
    """An open pair of braces: the nodes mentioned in it, and the left side of an edge that is not complete."""

    at: int
    """Where it begins, then where its last edge is."""
    nodes: dict[str, None] = field(default_factory=dict)
    left: list[str] | None = None
    edge: str | None = None


class _Parser:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.roles: dict[str, set[str]] = {}
        self.edges: list[MarkedEdge] = []
        self.places: list[int] = []
        self._end = 0
        self._tokens = 0
        self.family = ""
        self._advance()

    def parse(self, framed: bool) -> Self:
        if not framed and not _FRAME.match(self.source.text):
            groups = [_Group(self.at)]
            while self.kind != "end" or len(groups) > 1:
                self._step(groups, closable=len(groups) > 1)
            if groups[0].edge is not None:
                raise self._expected("a node at the other end of the edge")
            if not self.roles:
                raise self._expected("a graph such as 'x -> y; x <-> y'")
            return self
        if self.kind != "word" or self.value.lower() not in _TYPES:
            raise self._expected(f"one of {', '.join(_TYPES)}")
        self.family = self.value.lower()
        self._advance()
        if self.kind in ("word", "string"):
            self._advance()
        groups = [_Group(self.at)]
        self._sign("{")
        while groups:
            self._step(groups)
        while self.kind == "sign" and self.value == ";":
            self._advance()
        if self.kind != "end":
            raise self._expected("the end of the text")
        return self

    def _step(self, groups: list[_Group], closable: bool = True) -> None:
        group = groups[-1]
        if self.kind == "edge":
            if group.left is None or group.edge is not None:
                raise self._expected("a node")
            group.edge, group.at = self.value, self.at
            self._advance()
        elif self.kind in ("word", "string"):
            name, quoted, at = self.value, self.kind == "string", self.at
            self._advance()
            if not quoted and self.kind == "sign" and self.value == "=":
                self._advance()
                self._value()
                return
            if not name:
                raise self.source.error(at, "expected a name that is not empty")
            self.roles.setdefault(name, set())
            self._operand(group, [name])
        elif self.kind == "sign" and self.value == "{":
            if len(groups) > _DEEPEST:
                raise self._expected(f"at most {_DEEPEST} groups inside each other")
            groups.append(_Group(self.at))
            self._advance()
        elif self.kind == "sign" and self.value == "[":
            self._attributes(group)
        elif self.kind == "sign" and self.value in ("};," if closable else ";,"):
            if group.edge is not None:
                raise self._expected("a node at the other end of the edge")
            group.left = None
            closing = self.value == "}"
            self._advance()
            if closing:
                groups.pop()
                if groups:
                    self._operand(groups[-1], list(group.nodes))
        else:
            raise self._expected("a node, an edge or '}'" if closable else "a node or an edge")

    def _operand(self, group: _Group, names: list[str]) -> None:
        """Close the open edge with these nodes, or start a new statement with them."""
        if group.edge is not None and group.left is not None:
            marks = _EDGES[group.edge]
            if len(self.edges) + len(group.left) * len(names) > most_edges(self.source):
                raise self.source.error(group.at, "expected fewer edges between groups")
            self.edges += [(a, b, *marks) for a in group.left for b in names]
            self.places += [group.at] * (len(self.edges) - len(self.places))
            group.edge = None
        group.left = names
        group.nodes.update(dict.fromkeys(names))

    def _attributes(self, group: _Group) -> None:
        """Read `[exposure, pos="..."]`; a lone node before it gets the roles, an edge has none."""
        if group.left is None or group.edge is not None:
            raise self._expected("a node")
        roles: set[str] = set()
        self._advance()
        while not (self.kind == "sign" and self.value == "]"):
            if self.kind == "sign" and self.value in ",;":
                self._advance()
                continue
            key = self._value().lower()
            if self.kind == "sign" and self.value == "=":
                self._advance()
                self._value()
            elif _SHORT.get(key, key) in ROLES:
                roles.add(_SHORT.get(key, key))
        self._advance()
        if len(group.left) == 1:
            self.roles[group.left[0]] |= roles

    def _value(self) -> str:
        if self.kind not in ("word", "string"):
            raise self._expected("a value")
        value = self.value
        self._advance()
        return value

    def _sign(self, sign: str) -> None:
        if self.kind != "sign" or self.value != sign:
            raise self._expected(repr(sign))
        self._advance()

    def _advance(self) -> None:
        match = _TOKEN.match(self.source.text, self._end)
        assert match is not None
        self._end = match.end()
        self.kind = match.lastgroup or "end"
        self.at = match.end() if self.kind == "end" else match.start(self.kind)
        self.value = "" if self.kind == "end" else match[self.kind]
        self._tokens += 1
        if self._tokens > _MOST_TOKENS:
            raise self.source.error(self.at, f"expected at most {_MOST_TOKENS:,} words and signs")
        if self.kind == "string":
            self.value = unquote(self.value)

    def _expected(self, what: str) -> ParseError:
        found = "the end of the text" if self.kind == "end" else shown(self.value)
        return self.source.error(self.at, f"expected {what}, found {found}")
