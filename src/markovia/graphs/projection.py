"""Latent projection: the mixed graph that is left when some nodes of a DAG are hidden; and whether that matters.

Reference: Verma and Pearl, *Equivalence and synthesis of causal models*, UAI (1990). Cost: O(nodes x
observed nodes).
"""

from itertools import combinations

from markovia.graphs.directed import DAG
from markovia.graphs.mixed import Mark, MixedGraph
from markovia.graphs.named import Names, need


def latent_projection(dag: DAG, latents: Names) -> MixedGraph:
    """Hide the latent nodes of a DAG and keep what they imply for the others.

    The result has a --> b for a directed path from a to b through latent nodes only, and a <-> b for a latent
    node with such paths to both. It has the same m-separations among the observed nodes.

    Parameters
    ----------
    dag
        A directed acyclic graph.
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
    """
    need(dag, DAG)
    order = dag.topological_order()
    hidden = set(dag._named(dag._numbers(latents)))
    below: dict[str, dict[str, None]] = {}  # the observed nodes under each node with only latents in between
    for name in reversed(order):
        below[name] = {}
        for child in dag.children(name):
            below[name].update(below[child] if child in hidden else {child: None})
    graph = MixedGraph(nodes=[name for name in dag.nodes if name not in hidden])
    for name in graph.nodes:
        graph.add_edges((name, child, Mark.TAIL, Mark.ARROW) for child in below[name])
    for name in order:
        if name in hidden:
            graph.add_edges((a, b, Mark.ARROW, Mark.ARROW) for a, b in combinations(below[name], 2))
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
