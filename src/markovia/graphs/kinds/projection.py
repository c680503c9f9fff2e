"""Latent projection: the mixed graph that is left when some nodes of a graph are hidden; and whether that matters.

Reference: Verma and Pearl, *Equivalence and synthesis of causal models*, UAI (1990). Cost: O(nodes x
observed nodes).
"""

from itertools import combinations

from markovia.errors import InvalidGraph
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.mixed import Mark, MixedGraph, edge_string
from markovia.graphs.kinds.named import Names, need


def latent_projection(dag: DAG | MixedGraph, latents: Names) -> MixedGraph:
    """Hide the latent nodes of a graph and keep what they imply for the others.

    The result has a --> b for a directed path from a to b through latent nodes only, and a <-> b for a latent
    node, or a bidirected edge, with such paths to both. It has the same m-separations among the observed nodes.

    Parameters
    ----------
    dag
        A directed acyclic graph, or an acyclic directed mixed one.
    latents
        The nodes to hide.

    Returns
    -------
    MixedGraph
        An acyclic directed mixed graph over the other nodes.

    Examples
    --------
    >>> latent_projection(DAG([("u", "a"), ("u", "b"), ("a", "b")]), "u")
    MixedGraph(['a --> b', 'a <-> b'])
    >>> latent_projection(MixedGraph(["a <-> u", "u --> b"]), "u")
    MixedGraph(['a <-> b'])
    """
    need(dag, DAG, MixedGraph)
    hidden = set(dag._named(dag._numbers(latents)))
    joined: list[tuple[str, str]] = []
    if isinstance(dag, MixedGraph):
        joined = dag.bidirected_edges()
        others = [edge for edge in dag.edges if edge[3] is not Mark.ARROW or edge[2] is Mark.CIRCLE]
        if others:
            raise InvalidGraph(
                f"nodes can be hidden where all edges are directed or bidirected, and {edge_string(others[0])} is not"
            )
        dag = DAG(dag.directed_edges(), nodes=dag.nodes)
    order = dag.topological_order()
    below: dict[str, dict[str, None]] = {}  # the observed nodes under each node with only latents in between
    for name in reversed(order):
        below[name] = {}
        for child in dag.children(name):
            below[name].update(below[child] if child in hidden else {child: None})
    graph = MixedGraph(nodes=[name for name in dag.nodes if name not in hidden])
    graph.add_edges((name, child, Mark.TAIL, Mark.ARROW) for name in graph.nodes for child in below[name])
    pairs = [pair for name in order if name in hidden for pair in combinations(below[name], 2)]
    for left, right in joined:
        ends = [below[name] if name in hidden else (name,) for name in (left, right)]
        pairs += [(a, b) for a in ends[0] for b in ends[1] if a != b]
    graph.add_edges((a, b, Mark.ARROW, Mark.ARROW) for a, b in pairs)
    return graph


def is_causally_sufficient(dag: DAG, observed: Names) -> bool:
    """Say whether the observed nodes of a DAG have no hidden common cause.

    A set of variables is causally sufficient if it contains every common cause of two of its members, where a cause is
    direct or acts through hidden nodes only. PC and scores over directed graphs assume this; FCI does not.

    Parameters
    ----------
    dag
        A directed acyclic graph over all nodes, hidden ones too.
    observed
        The nodes that are seen.

    Examples
    --------
    >>> fork = DAG([("z", "x"), ("z", "y")])
    >>> is_causally_sufficient(fork, ["x", "y", "z"]), is_causally_sufficient(fork, ["x", "y"])
    (True, False)
    """
    need(dag, DAG)
    seen = set(dag._named(dag._numbers(observed)))
    return not latent_projection(dag, [name for name in dag.nodes if name not in seen]).bidirected_edges()
