"""I-equivalence: DAGs that state the same independencies, and the completed graph that stands for all.

Two DAGs are I-equivalent if and only if they have the same skeleton and the same v-structures (Verma and
Pearl, 1990). An edge is *compelled* if it has one direction in the whole class and *reversible* otherwise;
the completed partially directed graph (CPDAG) keeps compelled edges directed and shows reversible ones
undirected.

- `cpdag`: order and label the edges; Chickering, *A transformational characterization of equivalent
  Bayesian network structures*, UAI (1995). Near-linear for bounded degree.
- `extend`: Dor and Tarsi, *A simple algorithm to construct a consistent extension of a partially oriented
  graph* (1992).
- `meek`: the four orientation rules of Meek, *Causal inference and causal explanation with background
  knowledge*, UAI (1995).
"""

from collections.abc import Iterator

from markovia.errors import InvalidGraph
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.mixed import Mark, MixedGraph, edge_string
from markovia.graphs.kinds.named import need


def i_equivalent(a: DAG, b: DAG) -> bool:
    """Decide whether two DAGs state the same independencies.

    Parameters
    ----------
    a, b
        Two DAGs; over different nodes they are never equivalent.

    Examples
    --------
    >>> i_equivalent(DAG([("x", "y"), ("y", "z")]), DAG([("z", "y"), ("y", "x")]))
    True
    >>> i_equivalent(DAG([("x", "y"), ("y", "z")]), DAG([("x", "y"), ("z", "y")]))
    False
    """
    need(a, DAG)
    need(b, DAG)
    return a.skeleton() == b.skeleton() and a.v_structures() == b.v_structures()


def cpdag(dag: DAG) -> MixedGraph:
    """Return the completed partially directed graph of the I-equivalence class of a DAG.

    Parameters
    ----------
    dag
        Any member of the class.

    Returns
    -------
    MixedGraph
        Compelled edges are directed, reversible ones undirected.

    Examples
    --------
    >>> cpdag(DAG([("a", "b"), ("b", "d"), ("c", "d"), ("d", "e")]))
    MixedGraph(['a --- b', 'b --> d', 'd --> e', 'c --> d'])
    """
    need(dag, DAG)
    compelled = _compelled(dag)
    names = dag._names
    return MixedGraph(
        (
            (names[i], names[j], Mark.TAIL, Mark.ARROW if (i, j) in compelled else Mark.TAIL)
            for i, children in enumerate(dag._children)
            for j in children
        ),
        nodes=names,
    )


def is_cpdag(graph: MixedGraph) -> bool:
    """Tell whether a graph is the completed graph of some class of I-equivalent DAGs."""
    try:
        return cpdag(extend(graph)) == graph
    except InvalidGraph:
        return False


def compelled_edges(dag: DAG) -> set[tuple[str, str]]:
    """Collect the edges that have the same direction in every I-equivalent DAG.

    Examples
    --------
    >>> sorted(compelled_edges(DAG([("a", "b"), ("b", "d"), ("c", "d")])))
    [('b', 'd'), ('c', 'd')]
    """
    need(dag, DAG)
    return {(dag._names[i], dag._names[j]) for i, j in _compelled(dag)}


def reversible_edges(dag: DAG) -> set[tuple[str, str]]:
    """Collect the edges that some I-equivalent DAG turns round.

    Examples
    --------
    >>> reversible_edges(DAG([("a", "b"), ("b", "d"), ("c", "d")]))
    {('a', 'b')}
    """
    compelled = compelled_edges(dag)
    return {edge for edge in dag.edges if edge not in compelled}


def extend(graph: MixedGraph) -> DAG:
    """Direct the undirected edges of a partially directed graph without a new v-structure or a cycle.

    Parameters
    ----------
    graph
        A graph of directed and undirected edges, such as a CPDAG.

    Returns
    -------
    DAG
        With the same skeleton, the same v-structures and every directed edge of the graph.

    Raises
    ------
    InvalidGraph
        If no such DAG exists, or the graph has edges of another kind.

    Examples
    --------
    >>> extend(MixedGraph(["a --- b", "b --- c"])).v_structures()
    set()
    >>> extend(MixedGraph(["a --- b", "b --- c", "c --- d", "d --- a"]))
    Traceback (most recent call last):
        ...
    markovia.errors.InvalidGraph: no DAG extends the graph: ...
    """
    _require_partially_directed(graph)
    names = graph.nodes
    around = {name: set(graph.neighbors(name)) for name in names}
    children = {name: set(graph.children(name)) for name in names}
    undirected = {name: set(graph.undirected_neighbors(name)) for name in names}
    parents: dict[str, list[str]] = {name: [] for name in names}
    rank = {name: k for k, name in enumerate(names)}
    waiting = dict.fromkeys(reversed(names))
    while waiting:
        sink, _ = waiting.popitem()
        if sink not in around or children[sink]:
            continue
        if not all(around[sink] - {other} <= around[other] for other in undirected[sink]):
            continue
        parents[sink] = sorted(around[sink], key=rank.__getitem__)
        del around[sink]
        # in node order: the order in which nodes come up again decides which extension is found
        for other in parents[sink]:
            around[other].discard(sink)
            children[other].discard(sink)
            undirected[other].discard(sink)
            waiting[other] = None
    if around:
        left = ", ".join(name for name in names if name in around)
        raise InvalidGraph(
            f"no DAG extends the graph: every way to direct the edges among {left} "
            "makes a cycle or a new v-structure"
        )
    return DAG.from_parents(parents)


def meek(graph: MixedGraph) -> MixedGraph:
    """Direct every undirected edge whose direction follows from the directed ones, by Meek's rules 1 to 4.

    Parameters
    ----------
    graph
        A graph of directed and undirected edges: v-structures and perhaps background knowledge.

    Returns
    -------
    MixedGraph
        The same graph with more edges directed; for the v-structures of a DAG this is its CPDAG.

    Raises
    ------
    InvalidGraph
        If the graph has edges of another kind.

    Examples
    --------
    >>> meek(MixedGraph(["a --> b", "b --- c"]))
    MixedGraph(['a --> b', 'b --> c'])
    """
    _require_partially_directed(graph)
    result = graph.copy()
    waiting = dict.fromkeys(pair for a, b in result.undirected_edges() for pair in ((b, a), (a, b)))
    while waiting:
        (a, b), _ = waiting.popitem()
        if (Mark.TAIL, Mark.TAIL) in result.marks(a, b) and _must_point(result, a, b):
            result.set_marks(a, b, Mark.TAIL, Mark.ARROW)
            # a new arrow can only settle edges that touch it or a neighbour common to both ends
            near = {a, b, *result.neighbors(a), *result.neighbors(b)}
            for c in sorted(near):
                for d in result.undirected_neighbors(c):
                    waiting[c, d] = None
                    waiting[d, c] = None
    return result


def equivalence_class(dag: DAG) -> list[DAG]:
    """List every DAG that is I-equivalent to a DAG.

    Parameters
    ----------
    dag
        A DAG whose class is small; a complete graph over n nodes has n! members.

    Examples
    --------
    >>> [member.edges for member in equivalence_class(DAG([("a", "b"), ("b", "c")]))]
    [[('a', 'b'), ('b', 'c')], [('b', 'a'), ('b', 'c')], [('b', 'a'), ('c', 'b')]]
    """
    return list(_members(cpdag(dag)))


def _members(graph: MixedGraph) -> Iterator[DAG]:
    stack = [graph]
    while stack:
        current = stack.pop()
        open_edges = current.undirected_edges()
        if not open_edges:
            yield current.to_dag()
            continue
        a, b = open_edges[0]
        for tail, head in ((b, a), (a, b)):
            choice = current.copy()
            choice.set_marks(tail, head, Mark.TAIL, Mark.ARROW)
            stack.append(meek(choice))


def _must_point(graph: MixedGraph, a: str, b: str) -> bool:
    """Decide whether a --- b has to become a --> b."""
    into_b = set(graph.parents(b))
    joined = set(graph.undirected_neighbors(a))
    if any(not graph.adjacent(c, b) for c in graph.parents(a) if c != b):
        return True  # rule 1: otherwise c --> a <-- b would be a new v-structure
    if into_b.intersection(graph.children(a)):
        return True  # rule 2: otherwise a --> c --> b --> a would be a cycle
    candidates = sorted(joined & into_b)
    if any(not graph.adjacent(c, d) for k, c in enumerate(candidates) for d in candidates[k + 1 :]):
        return True  # rule 3: a --- c --> b and a --- d --> b with c, d not adjacent
    # rule 4: a --- d --> c --> b with d, b not adjacent and a adjacent to c
    return any(
        d in joined and not graph.adjacent(d, b)
        for c in into_b
        if graph.adjacent(a, c)
        for d in graph.parents(c)
        if d != a
    )


def _compelled(dag: DAG) -> set[tuple[int, int]]:
    """Label the edges in Chickering's order: heads in topological order, for one head the last tail first.

    His procedure settles every edge into a head y while it looks at the first one, x --> y: all are
    compelled if a compelled edge into x, or another parent of y, comes from a node that is not adjacent to
    the other end; otherwise exactly those are compelled whose tail also has a compelled edge into x.
    """
    position = {dag._index[name]: k for k, name in enumerate(dag.topological_order())}
    parents = [set(p) for p in dag._parents]
    compelled: list[set[int]] = [set() for _ in parents]  # the tails of the compelled edges into each node
    for y in position:
        if parents[y]:
            x = max(parents[y], key=position.__getitem__)
            forced = not compelled[x] <= parents[y] or not parents[y] - {x} <= parents[x]
            compelled[y] = parents[y] if forced else compelled[x]
    return {(x, y) for y, tails in enumerate(compelled) for x in tails}


def _require_partially_directed(graph: MixedGraph) -> None:
    need(graph, MixedGraph, instead={"DAG": "a DAG has no undirected edges; use cpdag(graph)"})
    for edge in graph.edges:
        if edge[2] is not Mark.TAIL or edge[3] is Mark.CIRCLE:
            raise InvalidGraph(f"the edge {edge_string(edge)} is neither directed nor undirected")
    if not graph.is_simple():
        raise InvalidGraph("two nodes are joined by more than one edge")
