"""dagitty model strings (`.dagitty`): graphs for causal work, without numbers.

    dag {
      bb="0,0,1,1"
      smoke [exposure, pos="0.1,0.2"]
      cancer [outcome]
      {age sex} -> smoke -> tar -> cancer
      smoke <-> diet
    }

Edges are `->`, `<-`, `<->`, `--`, and with a circle `@->`, `<-@`, `@-@`, `@--`, `--@`; an edge may have whole
groups in braces at its ends, and edges chain. Semicolons and line ends separate statements. Reading and writing
are linear in the number of edges. Reference: Textor et al., *Robust causal inference using directed acyclic
graphs: the R package dagitty*, International Journal of Epidemiology 45 (2016).
"""

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from markovia.errors import CycleError, ParseError, UnsupportedModel
from markovia.graphs.directed import DAG
from markovia.graphs.mixed import Mark, MarkedEdge, MixedGraph
from markovia.graphs.undirected import UndirectedGraph
from markovia.io.scanner import quote, unquote
from markovia.io.source import Source, brief, shown
from markovia.models.graphical.base import GraphicalModel
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.factor_model import FactorModel

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
_TOKEN = re.compile(
    r"(?:\s++|//[^\n]*+|\#[^\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*+\*/)*+(?:"
    r'(?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+")'
    r"|(?P<edge><->|<-@|<-|@->|@-@|@--|--@|->|--)"
    r"|(?P<sign>[{}\[\];,=])"
    r"|(?P<word>(?:[^\s\"{}\[\];,=<>@/\-]|/(?![/*])|-(?![->@]))++)"
    r"|(?P<other>.))?",
    re.DOTALL,
)
_DEEPEST = 100
_MOST_TOKENS = 2**22
_WORD = re.compile(r"[A-Za-z0-9_.]+")


def read_dagitty(text: str, source: str | None = None) -> DAG | MixedGraph:
    """Read a dagitty model string.

    Parameters
    ----------
    text
        The model string.
    source
        The file's name, for errors.

    Returns
    -------
    DAG or MixedGraph
        A `DAG` if every edge is directed. Latent variables are ordinary nodes; `read_dagitty_roles` names them.

    Raises
    ------
    ParseError
        If the text is malformed, an edge joins a node to itself, or a graph of directed edges has a cycle.

    Examples
    --------
    >>> read_dagitty("dag { x -> y <- z }")
    DAG([('x', 'y'), ('z', 'y')])
    >>> read_dagitty("dag { x -> y ; x <-> y }")
    MixedGraph(['x --> y', 'x <-> y'])
    """
    parsed = _Parser(Source(text, source)).parse()
    return declared_graph(parsed.source, parsed.roles, parsed.edges, parsed.places)


def read_dagitty_roles(text: str, source: str | None = None) -> dict[str, set[str]]:
    """Return the roles of the nodes of a dagitty model string.

    Returns
    -------
    dict
        From each node to the roles it has: "exposure", "outcome", "latent", "adjusted", "selected".

    Raises
    ------
    ParseError
        If the text is malformed.

    Examples
    --------
    >>> read_dagitty_roles("dag { x [exposure] u [latent] x -> y <- u }")
    {'x': {'exposure'}, 'u': {'latent'}, 'y': set()}
    """
    return _Parser(Source(text, source)).parse().roles


def write_dagitty(model: object) -> str:
    """Write a graph, or the graph of a model, as a dagitty model string.

    The kind of graph is `dag` where the edges are directed or bidirected, `pdag` where they are directed or
    undirected, `mag` with all three, and `pag` with circles. An `UndirectedGraph` is read back as a
    `MixedGraph` of the same undirected edges.

    Raises
    ------
    UnsupportedModel
        If the object is neither a graph nor a model with one, or a name holds a NUL character.

    Warns
    -----
    UserWarning
        If a model has tables: they are not part of the format.

    Examples
    --------
    >>> print(write_dagitty(DAG([("x", "y")])))
    dag {
    x
    y
    x -> y
    }
    """
    graph = as_mixed(model, "dagitty")
    if (bad := next((name for name in graph.nodes if "\0" in name), None)) is not None:
        raise UnsupportedModel(
            f"dagitty is plain text, and the name {shown(bad)} holds a NUL character; save as .json"
        )
    marks = {mark for edge in graph.edges for mark in edge[2:]}
    undirected, bidirected = graph.undirected_edges(), graph.bidirected_edges()
    kind = "dag" if not undirected else "mag" if bidirected else "pdag"
    if Mark.CIRCLE in marks:
        kind = "pag"
    lines = [_shown(name) for name in graph.nodes]
    nodes = graph.nodes
    number = {name: i for i, name in enumerate(nodes)}
    edges = sorted((number[a], number[b], sign) for a, b, sign in map(_forward, graph.edges))
    lines += [f"{_shown(nodes[a])} {sign} {_shown(nodes[b])}" for a, b, sign in edges]
    return "\n".join([f"{kind} {{", *lines, "}"]) + "\n"


def as_mixed(model: object, format_name: str) -> MixedGraph:
    """Return the graph of a model, or a graph itself, with marks at its edges; warn of tables that are lost."""
    graph = getattr(model, "graph", None) if isinstance(model, GraphicalModel) else model
    if isinstance(graph, DAG | UndirectedGraph | MixedGraph) and _has_tables(model):
        warnings.warn(
            f"only the graph was written: tables, states and properties are not part of {format_name}",
            UserWarning,
            stacklevel=3,
        )
    if isinstance(graph, DAG):
        return MixedGraph.from_dag(graph)
    if isinstance(graph, UndirectedGraph):
        return MixedGraph.from_undirected(graph)
    if isinstance(graph, MixedGraph):
        if len(graph.directed_edges()) == graph.n_edges:  # read again it would be a DAG
            try:
                graph.to_dag()
            except CycleError as error:
                raise UnsupportedModel(f"{format_name} holds no directed cycle: {error}") from None
        return graph
    raise UnsupportedModel(
        f"{format_name} holds a directed, undirected or mixed graph, and {type(model).__name__} has none"
    )


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


def _has_tables(model: object) -> bool:
    if isinstance(model, BayesianNetwork):
        return any(map(model.has_table, model.variables))
    return isinstance(model, FactorModel) and bool(model.factors)


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
        self._advance()

    def parse(self) -> "_Parser":
        if self.kind != "word" or self.value.lower() not in _TYPES:
            raise self._expected(f"one of {', '.join(_TYPES)}")
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

    def _step(self, groups: list[_Group]) -> None:
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
        elif self.kind == "sign" and self.value in "};,":
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
            raise self._expected("a node, an edge or '}'")

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
