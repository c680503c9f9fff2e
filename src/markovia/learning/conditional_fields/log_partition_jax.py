"""The log partition function of a pairwise field as a JAX function, for losses of one's own and for checking gradients.

`log_partition` eliminates the leaves of a tree in log space, edge by edge; on a chain it is the forward algorithm as
one `lax.scan`. Its gradient by automatic differentiation is the backward pass: the derivative by a node's score is
that node's marginal, and by an entry of an edge's table that pair's marginal (Darwiche 2003; Eisner 2016). Cost:
nodes times k squared, forward and backward. Use it inside a JAX loss; `NeuralCRF` itself gets marginals from compiled
code.
"""

from typing import Any

import numpy as np

from markovia.errors import InvalidGraph
from markovia.learning.conditional_fields.fields import Fields
from markovia.runtime.array_types import Ints


def log_partition(node_scores: Any, edge_scores: Any, edges: Any = None) -> Any:
    """Return log Z of one tree as a differentiable JAX number.

    Parameters
    ----------
    node_scores
        Log potentials of nodes, shape (nodes, k).
    edge_scores
        Log potentials of edges, shape (edges, k, k), first axis the tail; or one table (k, k) for all.
    edges
        Pairs (tail, head) of node numbers without a cycle; None for the chain 0, 1, 2, ...

    Raises
    ------
    InvalidGraph
        If the edges have a cycle.

    Examples
    --------
    >>> import jax
    >>> with jax.enable_x64(True):
    ...     value = log_partition(np.log([[1.0, 2.0], [1.0, 1.0]]), np.zeros((2, 2)))
    >>> round(float(np.exp(value)), 6)
    6.0
    """
    import jax

    jnp, logsumexp = jax.numpy, jax.nn.logsumexp
    nodes = jnp.asarray(node_scores)
    n, k = nodes.shape
    tables = jnp.asarray(edge_scores)
    if edges is None:
        tables = jnp.broadcast_to(tables, (max(n - 1, 0), k, k))

        def step(forward: Any, here: Any) -> Any:
            score, table = here
            return score + logsumexp(forward[:, None] + table, axis=0), None

        last, _ = jax.lax.scan(step, nodes[0], (nodes[1:], tables))
        return logsumexp(last)
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    tables = jnp.broadcast_to(tables, (len(pairs), k, k))
    one = np.array([0, n], dtype=np.int64)
    graph = Fields.of(
        k, one, np.array([0, len(pairs)]), pairs[:, 0].copy(), pairs[:, 1].copy(), np.ones((len(pairs), 1))
    )
    if not graph.forest[0]:
        raise InvalidGraph("the edges have a cycle; log_partition in JAX is for trees")
    up: list[Any] = list(nodes)
    total: Any = 0.0
    order: Ints = graph.order
    for i in order[::-1].tolist():
        p, e = int(graph.parent[i]), int(graph.parent_edge[i])
        if p < 0:
            total = total + logsumexp(up[i])
            continue
        table = tables[e] if graph.heads[e] == i else tables[e].T
        up[p] = up[p] + logsumexp(table + up[i][None, :], axis=1)
    return total
