"""Separation in directed graphs with cycles.

Where equations may feed back, d-separation (`MixedGraph.m_separated`) still says what is independent if they are linear.
In general only a weaker criterion holds: a given node blocks a path only where the path leaves its feedback loop.
Formally, a node that is no collider on the path, and is given, blocks it if an arrow out of it on the path leads to another
strongly connected component. Without cycles the two are one. References: Spirtes, *Directed cyclic graphical
representations of feedback models*, UAI (1995); Forré and Mooij, *Markov properties for graphical models with cycles and
latent variables* (2017). Cost: one search, O(nodes + edges).
"""

import numpy as np

from markovia.errors import InvalidGraph
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.linear_searches import reach
from markovia.graphs.kinds.mixed import Mark, MixedGraph
from markovia.graphs.kinds.named import Names, need


def sigma_separated(graph: DAG | MixedGraph, x: Names, y: Names, given: Names = ()) -> bool:
    """Decide whether x and y are independent given `given` in every solvable model of a graph that may have cycles.

    Parameters
    ----------
    graph
        Directed and bidirected edges; directed cycles are fine, also of two nodes (`"a --> b", "b --> a"`).
    x, y, given
        One name or several; overlapping sets as in `MixedGraph.m_separated`.

    Examples
    --------
    >>> loop = MixedGraph(["a --> x", "x --> y", "y --> x", "b --> y"])
    >>> loop.m_separated("a", "b", ["x", "y"]), sigma_separated(loop, "a", "b", ["x", "y"]), sigma_separated(loop, "a", "b")
    (True, False, True)
    """
    need(graph, DAG, MixedGraph)
    mixed = MixedGraph.from_dag(graph) if isinstance(graph, DAG) else graph
    if mixed._has_circle() or any(mixed._undirected_end(i) for i in range(len(mixed))):
        raise InvalidGraph("sigma-separation is defined for directed and bidirected edges; orient the others")
    observed = set(mixed._numbers(given))
    targets = set(mixed._numbers(y)) - observed
    parents = mixed._numbered(Mark.ARROW, Mark.TAIL)
    loop = _feedback_loops(parents)
    opened = set(reach(observed, parents))
    # how a walk came to a node: at an arrowhead?; and if it is a tail, does that arrow leave the node's loop?
    seen = {(i, False, False) for i in mixed._numbers(x) if i not in observed}
    queue = list(seen)
    for node, at_arrow, leaves in queue:
        if node in targets:
            return False
        for other, edges in mixed._marks[node].items():
            for here, there in edges:
                between = loop[node] != loop[other]
                if at_arrow and here is Mark.ARROW:
                    passes = node in opened
                else:
                    passes = node not in observed or not (leaves or (between and here is Mark.TAIL))
                state = (other, there is Mark.ARROW, there is Mark.TAIL and between)
                if passes and state not in seen:
                    seen.add(state)
                    queue.append(state)
    return True


def _feedback_loops(parents: list[list[int]]) -> list[int]:
    """Return a label for each node, the same for nodes that lead to each other."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    arrows = np.array([(i, j) for i, above in enumerate(parents) for j in above], dtype=int).reshape(-1, 2).T
    graph = csr_array((np.ones(arrows.shape[1]), tuple(arrows)), shape=(len(parents), len(parents)))
    labels: list[int] = connected_components(graph, connection="strong")[1].tolist()
    return labels
