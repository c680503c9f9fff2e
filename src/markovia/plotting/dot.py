"""Graphviz text of a model or graph, for those who have Graphviz or a viewer of DOT files.

Reference: the DOT language, https://graphviz.org/doc/info/lang.html.
"""

from collections.abc import Iterable
from typing import Any

from markovia.errors import InvalidArgument, check_known
from markovia.graphs import DAG, BipartiteGraph, JunctionTree, Mark, MixedGraph, UndirectedGraph
from markovia.models.graphical.base import GraphicalModel
from markovia.plotting.diagram_scene import is_diagram
from markovia.plotting.style import LIGHT

_HEADS = {Mark.TAIL: "none", Mark.ARROW: "normal", Mark.CIRCLE: "odot"}
_BOX = f'shape=box, style="rounded,filled", fillcolor="{LIGHT.NODE_FILL}", color="{LIGHT.NODE_BORDER}"'
_ROUND = f'shape=ellipse, style=filled, fillcolor="{LIGHT.NODE_FILL}", color="{LIGHT.NODE_BORDER}"'
_SQUARE = f'shape=square, style=filled, fillcolor="{LIGHT.FACTOR_FILL}", fontcolor="#FFFFFF"'
_SEPARATOR = f'shape=box, style=filled, fillcolor="{LIGHT.SEPARATOR_FILL}"'
_DECISION = f'shape=box, fillcolor="{LIGHT.DECISION_FILL}", color="{LIGHT.DECISION_BORDER}"'
_UTILITY = f'shape=diamond, fillcolor="{LIGHT.UTILITY_FILL}", color="{LIGHT.UTILITY_BORDER}"'
_OBSERVED = f'fillcolor="{LIGHT.OBSERVED_FILL}", color="{LIGHT.OBSERVED_BORDER}", penwidth=2'


def to_dot(model: Any, *, given: str | Iterable[str] = ()) -> str:
    """Return the graph of a model, or a graph, as Graphviz text.

    Parameters
    ----------
    model
        A Bayesian network (decisions are boxes, utilities diamonds), Markov network, factor graph, `DAG`,
        `UndirectedGraph`, `MixedGraph`, `BipartiteGraph` or `JunctionTree`.
    given
        Observed variables (names, or evidence as in `query`), which are shaded.

    Returns
    -------
    str
        A `graph` or `digraph` in the DOT language.

    Raises
    ------
    UnknownVariable
        If an observed name is not in the graph.

    Examples
    --------
    >>> import markovia as mk
    >>> print(to_dot(mk.graphs.UndirectedGraph([("a", "b")])))
    graph {
      node [shape=ellipse, style=filled, fillcolor="#EAF3FA", color="#0072B2"];
      "a";
      "b";
      "a" -- "b";
    }
    """
    graph = model
    if isinstance(model, GraphicalModel):
        graph = getattr(model, "equivalence_class", None) or model.graph
    names = [given] if isinstance(given, str) else list(given)
    if isinstance(graph, DAG | UndirectedGraph | MixedGraph | BipartiteGraph):
        check_known(names, graph.nodes, "the graph")
    elif names:
        raise InvalidArgument("given= shades variables; the nodes of a junction tree are cliques")
    if isinstance(model, GraphicalModel) and isinstance(graph, DAG) and is_diagram(model):
        return _diagram(graph, model, names)
    if isinstance(graph, DAG | UndirectedGraph):
        kind, shape, sign = ("digraph", _BOX, "->") if isinstance(graph, DAG) else ("graph", _ROUND, "--")
        edges = [f"{_quote(a)} {sign} {_quote(b)}" for a, b in graph.edges]
        return _text(kind, shape, _names(graph.nodes, names), edges)
    if isinstance(graph, MixedGraph):
        edges = [
            f"{_quote(a)} -> {_quote(b)} [dir=both, arrowtail={_HEADS[at_a]}, arrowhead={_HEADS[at_b]}]"
            for a, b, at_a, at_b in graph.edges
        ]
        return _text("digraph", _BOX, _names(graph.nodes, names), edges)
    if isinstance(graph, BipartiteGraph):
        return _bipartite(graph, names)
    if isinstance(graph, JunctionTree):
        return _junction_tree(graph)
    raise InvalidArgument(f"expected a model or a graph, not {type(model).__name__}")


def _diagram(graph: DAG, model: Any, observed: list[str]) -> str:
    forms = {**dict.fromkeys(model.decisions, _DECISION), **dict.fromkeys(model.utilities, _UTILITY)}
    said = {
        n: ", ".join([forms.get(n, ""), _OBSERVED if n in observed else ""]).strip(", ") for n in graph.nodes
    }
    nodes = [f"{_quote(n)} [{form}]" if form else _quote(n) for n, form in said.items()]
    edges = [
        f"{_quote(a)} -> {_quote(b)}" + (" [style=dashed]" if forms.get(b) is _DECISION else "")
        for a, b in graph.edges
    ]
    return _text("digraph", _ROUND, nodes, edges)


def _bipartite(graph: BipartiteGraph, observed: list[str]) -> str:
    taken = set(graph.variables)
    ids: dict[str, str] = {}
    for factor in graph.factors:
        name = factor
        while name in taken:  # a factor may share its name with a variable, but DOT nodes may not
            name = "factor " + name
        taken.add(name)
        ids[factor] = name
    nodes = _names(graph.variables, observed)
    nodes += [f"{_quote(ids[f])} [label={_quote(f)}, {_SQUARE}]" for f in graph.factors]
    return _text("graph", _ROUND, nodes, [f"{_quote(ids[f])} -- {_quote(v)}" for f, v in graph.edges])


def _junction_tree(tree: JunctionTree) -> str:
    nodes = [f"c{k} [label={_quote(', '.join(clique))}]" for k, clique in enumerate(tree.cliques)]
    nodes += [f"s{k} [label={_quote(', '.join(s))}, {_SEPARATOR}]" for k, s in enumerate(tree.separators)]
    return _text("graph", _ROUND, nodes, [f"c{a} -- s{k} -- c{b}" for k, (a, b) in enumerate(tree.edges)])


def _names(names: Iterable[str], observed: list[str]) -> list[str]:
    return [f"{_quote(n)} [{_OBSERVED}]" if n in observed else _quote(n) for n in names]


def _text(kind: str, style_of_nodes: str, nodes: list[str], edges: list[str]) -> str:
    body = "".join(f"  {line};\n" for line in (f"node [{style_of_nodes}]", *nodes, *edges))
    return f"{kind} {{\n{body}}}"


def _quote(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
