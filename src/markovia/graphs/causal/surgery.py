"""Graphs made from causal graphs: after interventions, of two worlds at once, with selection nodes; and visible edges.

References: Pearl, *Causality* (2009), sections 1.3 and 7.1.4 (surgery, twin networks); Richardson and Robins, *Single world
intervention graphs* (2013); Bareinboim and Pearl, *Causal inference and the data-fusion problem* (2016); Zhang, *Causal
reasoning with ancestral graphs* (2008). All are linear in nodes plus edges, `visible_edges` for each directed edge.
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar, overload

from markovia.errors import DuplicateName
from markovia.graphs.causal.text import causal_graph
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.mixed import Mark, MarkedEdge, MixedGraph
from markovia.graphs.kinds.named import Names

Causal = TypeVar("Causal", DAG, MixedGraph)


@overload
def do_graph(graph: Causal, into: Names, *, out_of: Names = ()) -> Causal: ...
@overload
def do_graph(graph: object, into: Names, *, out_of: Names = ()) -> DAG | MixedGraph: ...
def do_graph(graph: object, into: Names, *, out_of: Names = ()) -> DAG | MixedGraph:
    """Return the graph after an intervention: without the edges into some nodes.

    Parameters
    ----------
    graph
        A DAG or a mixed graph, a text, or a model that holds one.
    into
        The nodes that are set: all edges with an arrowhead at them go.
    out_of
        Nodes whose outgoing edges go too, as the second rule of do-calculus needs.

    Examples
    --------
    >>> do_graph(MixedGraph(["x --> y", "x <-> y", "z --> x"]), "x")
    MixedGraph(['x --> y'], nodes=['z'])
    >>> do_graph("z -> x -> y", "x")
    DAG([('x', 'y')], nodes=['z'])
    """
    graph = causal_graph(graph)
    set_, silent = _chosen(graph, into), _chosen(graph, out_of)
    if isinstance(graph, DAG):
        return DAG(((a, b) for a, b in graph.edges if b not in set_ and a not in silent), nodes=graph.nodes)

    def stays(edge: MarkedEdge) -> bool:
        ends = ((edge[0], edge[2], edge[3]), (edge[1], edge[3], edge[2]))
        return not any(
            (here is Mark.ARROW and name in set_)
            or (here is Mark.TAIL and there is Mark.ARROW and name in silent)
            for name, here, there in ends
        )

    return MixedGraph((edge for edge in graph.edges if stays(edge)), nodes=graph.nodes)


def twin_network(graph: object, do: Names, *, mark: str = "*") -> DAG:
    """Return the graph of the world as it is beside the world as it would be, with shared noise.

    What `do` cannot change is the same in both worlds and stands once. Every other node stands twice, `y` and `y*`, with one
    noise node `U(y)` above both; a bidirected edge becomes a common noise `U(a,b)`. d-separation in the result answers
    questions about both worlds at once.

    Parameters
    ----------
    graph
        A DAG or an acyclic directed mixed graph, a text, or a model that holds one.
    do
        The nodes that are set in the other world.
    mark
        What is added to the names of the other world.

    Examples
    --------
    >>> twin_network(DAG([("x", "y"), ("z", "y")]), "x").edges
    [('x', 'y'), ('z', 'y'), ('z', 'y*'), ('x*', 'y*'), ('U(y)', 'y'), ('U(y)', 'y*')]
    """
    graph = causal_graph(graph)
    set_ = _chosen(graph, do)
    mixed = MixedGraph.from_dag(graph) if isinstance(graph, DAG) else graph
    order = DAG(mixed.directed_edges(), nodes=mixed.nodes)
    twice = order.descendants(do, include_self=True)
    other = {name: name + mark if name in twice else name for name in mixed.nodes}
    noise = [(f"U({a},{b})", end) for a, b in mixed.bidirected_edges() for end in (a, b)]
    noise += [(f"U({name})", name) for name in mixed.nodes if name in twice and name not in set_]
    _refuse_taken(mixed.nodes, [*(new for old, new in other.items() if new != old), *dict(noise)])
    edges = []
    for a, b in [*order.edges, *noise]:
        edges.append((a, b))
        if b in twice and b not in set_:
            edges.append((other.get(a, a), other[b]))
    return DAG(edges, nodes=[*mixed.nodes, *(other[name] for name in mixed.nodes if name in twice)])


@overload
def single_world_graph(graph: Causal, do: Names | Mapping[str, object]) -> Causal: ...
@overload
def single_world_graph(graph: object, do: Names | Mapping[str, object]) -> DAG | MixedGraph: ...
def single_world_graph(graph: object, do: Names | Mapping[str, object]) -> DAG | MixedGraph:
    """Return the single-world intervention graph: each node that is set is split into what it was and what it is set to.

    The random half keeps the name and the incoming edges; the fixed half, `do(x)` or `do(x=value)`, gets the outgoing ones.
    Nodes below a fixed half are renamed to what they become, `y(x)` or `y(x=value)`. Independencies of potential outcomes,
    such as `y(x) ⊥ x | z`, are separations in this graph (with the fixed halves among what is given).

    Examples
    --------
    >>> single_world_graph("z -> x -> y; z -> y", "x").edges
    [('z', 'x'), ('z', 'y(x)'), ('do(x)', 'y(x)')]
    """
    graph = causal_graph(graph)
    set_ = _chosen(graph, list(do) if isinstance(do, Mapping) else do)
    values = do if isinstance(do, Mapping) else {}
    said = {name: f"{name}={values[name]}" if name in values else name for name in set_}
    mixed = MixedGraph.from_dag(graph) if isinstance(graph, DAG) else graph
    cut = DAG(mixed.directed_edges(), nodes=mixed.nodes)
    by: dict[str, dict[str, None]] = {name: {} for name in mixed.nodes}
    for name in cut.topological_order():
        for parent in cut.parents(name):
            by[name].update({parent: None} if parent in set_ else by[parent])
    new: dict[str, str] = {
        name: f"{name}({','.join(said[x] for x in set_ if x in above)})" if above else name
        for name, above in by.items()
    }
    fixed: dict[str, str] = {name: f"do({text})" for name, text in said.items()}
    _refuse_taken(mixed.nodes, [*fixed.values(), *(label for name, label in new.items() if label != name)])

    def half(name: str, mark: Mark) -> str:
        return fixed[name] if mark is Mark.TAIL and name in fixed else new[name]

    nodes: list[str] = []
    for node in mixed.nodes:
        nodes += [new[node], fixed[node]] if node in fixed else [new[node]]
    split = MixedGraph(
        ((half(a, at_a), half(b, at_b), at_a, at_b) for a, b, at_a, at_b in mixed.edges), nodes=nodes
    )
    return split.to_dag() if isinstance(graph, DAG) else split


@overload
def selection_diagram(graph: Causal, differs: Names, *, prefix: str = "S_") -> Causal: ...
@overload
def selection_diagram(graph: object, differs: Names, *, prefix: str = "S_") -> DAG | MixedGraph: ...
def selection_diagram(graph: object, differs: Names, *, prefix: str = "S_") -> DAG | MixedGraph:
    """Return the graph with a selection node above each variable whose mechanism differs between two populations.

    Examples
    --------
    >>> selection_diagram("z -> y <- x", "z").edges
    [('z', 'y'), ('x', 'y'), ('S_z', 'z')]
    """
    graph = causal_graph(graph)
    chosen = _chosen(graph, differs)
    _refuse_taken(graph.nodes, [prefix + name for name in chosen])
    found = graph.copy()
    for name in chosen:
        found.add_edge(prefix + name, name)
    return found


def visible_edges(graph: object) -> list[tuple[str, str]]:
    """List the directed edges of a MAG or PAG that no hidden common cause can stand beside.

    An edge a --> b is visible if some node that is not adjacent to b has an edge into a, or a path into a whose inner nodes
    are all colliders and parents of b. Only then does setting a tell its effect on b from confounding.

    Examples
    --------
    >>> visible_edges(MixedGraph(["c o-> a", "a --> b"]))
    [('a', 'b')]
    >>> visible_edges(MixedGraph(["a --> b"]))
    []
    """
    read = causal_graph(graph)
    mixed = MixedGraph.from_dag(read) if isinstance(read, DAG) else read
    return [(a, b) for a, b in mixed.directed_edges() if _is_visible(mixed, a, b)]


def _is_visible(graph: MixedGraph, a: str, b: str) -> bool:
    parents = set(graph.parents(b))
    queue, seen = [a], {a}
    for node in queue:
        for other in graph.neighbors(node):
            into = [there for here, there in graph.marks(node, other) if here is Mark.ARROW]
            if into and other != b and not graph.adjacent(other, b):
                return True
            if Mark.ARROW in into and other in parents and other not in seen:
                seen.add(other)
                queue.append(other)
    return False


def _chosen(graph: DAG | MixedGraph, names: Names) -> dict[str, None]:
    return dict.fromkeys(graph._named(graph._numbers(names)))


def _refuse_taken(nodes: Iterable[str], new: Iterable[str]) -> None:
    known = set(nodes)
    for name in new:
        if name in known:
            raise DuplicateName(f"the graph has a node {name!r} already; rename it first")
        known.add(name)
