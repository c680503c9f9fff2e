"""lavaan model syntax (`.lavaan`): structural equation models, read and written as graphs.

    visual =~ x1 + x2 + x3      # measured by:   visual -> x1, x2, x3
    y ~ 0.5*visual + z          # regressed on:  visual -> y <- z
    x1 ~~ x2                    # covariance:    x1 <-> x2
    y ~~ y                      # a variance adds no edge
    index <~ a + b              # formed by:     a -> index <- b

Coefficients, labels and starting values in front of `*` are read and dropped, as are intercepts (`y ~ 1`),
thresholds, and lines that define or constrain parameters (`:=`, `==`, `<`, `>`): what is kept is the graph. A
statement goes on in the next line where a line ends or begins with an operator. Comments start with `#` or `!`.
Names that are no R names are written as safe ones, and comments `# markovia_name: safe = "true name"` restore
them. Reference: Rosseel, *lavaan: an R package for structural equation modeling*, Journal of Statistical
Software 48 (2012).
"""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from markovia.errors import ParseError, UnsupportedModel
from markovia.graphs.causal.text import declared_graph, most_edges
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.mixed import Mark, MarkedEdge, MixedGraph, edge_string
from markovia.io.dagitty import as_mixed
from markovia.io.identifiers import NAME, decode_text, safe_names
from markovia.runtime.source_text import Source, shown

_TOKEN = re.compile(
    r"[^\S\n]*+(?:"
    r"(?P<comment>[#!][^\n]*+)"
    r"|(?P<end>\n\s*+|;)"
    r"|(?P<relation>=~|~\*~|~~|<~|:=|==|~|<|>|\|)"
    r"|(?P<sign>[+*(),\-/^?])"
    r'|(?P<string>"[^"\n]*+"|\'[^\'\n]*+\')'
    r"|(?P<number>(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][-+]?[0-9]++)?(?![\w.]))"
    r"|(?P<name>(?:[\w.]|(?<=\w):(?=\w))+)"
    r"|(?P<other>.))?",
    re.DOTALL,
)
_MARK = re.compile(rf"#\s*{NAME}:\s*([A-Za-z][A-Za-z0-9_]*)\s*=\s*(\S.*?)\s*")
_IGNORED = (":=", "==", "<", ">", "|", "~*~")
_LONGEST = 2**19
_BLOCKS = ("group", "level", "block", "class")


def read_lavaan(text: str, source: str | None = None) -> DAG | MixedGraph:
    """Read lavaan model syntax.

    Parameters
    ----------
    text
        The model.
    source
        The file's name, for errors.

    Returns
    -------
    DAG or MixedGraph
        A `DAG` if there are no covariances; latent variables are ordinary nodes.

    Raises
    ------
    ParseError
        If the text is malformed or the edges of a graph without covariances form a cycle.

    Examples
    --------
    >>> read_lavaan("f =~ a + b ; y ~ 0.3*f")
    DAG([('f', 'a'), ('f', 'b'), ('f', 'y')])
    >>> read_lavaan("y ~ x ; x ~~ y")
    MixedGraph(['x --> y', 'y <-> x'])
    """
    reader = _LavaanReader(Source(text, source))
    reader.read()
    return declared_graph(reader.source, reader.nodes, reader.edges, reader.places)


def write_lavaan(model: object) -> str:
    """Write a graph, or the graph of a model, in lavaan syntax: regressions and covariances.

    Everything is listed in the order of the names, so that equal graphs are written as the same text.

    Raises
    ------
    UnsupportedModel
        If there is no graph, or an edge is undirected or has a circle.

    Warns
    -----
    UserWarning
        If a model has tables: they are not part of the format.

    Examples
    --------
    >>> print(write_lavaan(MixedGraph(["x --> y", "z --> y", "x <-> z"], nodes=["lonely"])))
    lonely ~~ lonely
    y ~ x + z
    x ~~ z
    """
    graph = as_mixed(model, "lavaan")
    for edge in graph.edges:
        if Mark.ARROW not in edge[2:] or Mark.CIRCLE in edge[2:]:
            raise UnsupportedModel(f"lavaan has directed and bidirected edges only, not {edge_string(edge)}")
    nodes = sorted(graph.nodes)
    names = dict(zip(nodes, safe_names(nodes, reserved=_BLOCKS), strict=True))
    lines = [f"# {NAME}: {new} = {json.dumps(old)}" for old, new in names.items() if new != old]
    lines += [f"{names[n]} ~~ {names[n]}" for n in nodes if not graph.neighbors(n)]
    for name in nodes:
        if parents := sorted(graph.parents(name)):
            lines.append(f"{names[name]} ~ {' + '.join(names[p] for p in parents)}")
    covariances = sorted(sorted(pair) for pair in graph.bidirected_edges())
    lines += [f"{names[a]} ~~ {names[b]}" for a, b in covariances]
    return "\n".join(lines) + "\n"


class _Token(NamedTuple):
    kind: str
    value: str
    at: int


class _LavaanReader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.nodes: dict[str, None] = {}
        self.edges: list[MarkedEdge] = []
        self.places: list[int] = []
        self.names: dict[str, str] = {}

    def read(self) -> None:
        statement: list[_Token] = []
        ended = False
        for token in self._tokens():
            if token.kind == "end" and token.value != ";":
                ended = True
                continue
            # a line end closes the statement unless the operator before or after it wants more
            goes_on = statement and (
                _continues(statement[-1]) or (token.kind == "sign" and token.value in "+*")
            )
            if statement and (token.kind == "end" or (ended and not goes_on)):
                self._statement(statement)
                statement = []
            ended = False
            if token.kind != "end":
                statement.append(token)
            if len(statement) > _LONGEST:
                raise self.source.error(token.at, f"expected at most {_LONGEST:,} tokens in a statement")
        if statement:
            self._statement(statement)
        if self.names:
            true = list(self.names.values())
            if len({self.names.get(n, n) for n in self.nodes}) != len(self.nodes) or len(set(true)) != len(
                true
            ):
                raise ParseError(f"expected distinct names in {NAME}", file=self.source.name)
            self.nodes = {self.names.get(n, n): None for n in self.nodes}
            self.edges = [(self.names.get(a, a), self.names.get(b, b), x, y) for a, b, x, y in self.edges]

    def _tokens(self) -> Iterator[_Token]:
        at, text = 0, self.source.text
        while at < len(text):
            match = _TOKEN.match(text, at)
            assert match is not None
            at, kind = match.end(), match.lastgroup
            if kind is None:
                return
            token = _Token(kind, match[kind], match.start(kind))
            if kind == "comment":
                self._comment(token)
            elif kind == "other":
                raise self.source.error(
                    token.at, f"expected a name or an operator, found {shown(token.value)}"
                )
            else:
                yield token

    def _comment(self, token: _Token) -> None:
        match = _MARK.fullmatch(token.value)
        if match:
            try:
                self.names[match[1]] = decode_text(match[2])
            except (ValueError, RecursionError):
                raise self.source.error(token.at, f"expected a JSON string in {NAME}") from None
            if not self.names[match[1]]:
                raise self.source.error(token.at, "expected a name that is not empty")

    def _statement(self, tokens: list[_Token]) -> None:
        places = [i for i, token in enumerate(tokens) if token.kind == "relation"]
        if not places:
            word = tokens[0]
            raise self.source.error(
                word.at, f"expected a relation such as '~' or '=~' after {shown(word.value)}"
            )
        relation = tokens[places[0]]
        if relation.value in _IGNORED:
            return
        if len(places) > 1:
            extra = tokens[places[1]]
            raise self.source.error(
                extra.at, f"expected one relation a statement, found {shown(extra.value)}"
            )
        left = self._terms(tokens[: places[0]], relation)
        right = self._terms(tokens[places[0] + 1 :], relation)
        if not left:
            raise self.source.error(relation.at, f"expected a name before {relation.value!r}")
        for name in (*left, *right):
            self.nodes.setdefault(name)
        if len(self.edges) + len(left) * len(right) > most_edges(self.source):
            raise self.source.error(relation.at, "expected fewer edges")
        for a in left:
            for b in right:
                self._edge(a, b, relation)
        self.places += [relation.at] * (len(self.edges) - len(self.places))

    def _edge(self, left: str, right: str, relation: _Token) -> None:
        if relation.value == "~~":
            if left != right:
                self.edges.append((left, right, Mark.ARROW, Mark.ARROW))
            return
        parent, child = (left, right) if relation.value == "=~" else (right, left)
        self.edges.append((parent, child, Mark.TAIL, Mark.ARROW))

    def _terms(self, tokens: list[_Token], relation: _Token) -> list[str]:
        """Return the variables of a sum of terms such as `0.5*x`; a lone number is an intercept."""
        terms: list[list[_Token]] = [[]]
        depth = 0
        for token in tokens:
            if token.kind == "sign" and token.value in "()":
                depth += 1 if token.value == "(" else -1
                if depth < 0:
                    raise self.source.error(token.at, "expected '(' before ')'")
            if token.kind == "sign" and token.value == "+" and depth == 0:
                terms.append([])
            else:
                terms[-1].append(token)
        if depth:
            raise self.source.error(tokens[-1].at, "expected ')'")
        return [name for term in terms for name in self._variable(term, relation)]

    def _variable(self, term: list[_Token], relation: _Token) -> list[str]:
        if not term:
            raise self.source.error(
                relation.at, f"expected a variable on each side of {relation.value!r} and '+'"
            )
        last = term[-1]
        before = term[:-1]
        if before and (before[-1].value != "*" or before[-1].kind != "sign" or len(before) < 2):
            raise self.source.error(last.at, f"expected '*' or '+' before {shown(last.value)}")
        if last.kind == "number":
            return []
        if last.kind != "name":
            raise self.source.error(last.at, f"expected a variable, found {shown(last.value)}")
        return [last.value]


def _continues(token: _Token) -> bool:
    """Say whether a statement cannot end with this token."""
    return token.kind == "relation" or (token.kind == "sign" and token.value in "+*,(")
