"""Inference of a fixed number of steps as a function that JAX differentiates: training the inference that will be used.

T steps of mean field or of loopy belief propagation are a computation graph like any other, from scores to beliefs. Training
maximises the log beliefs of the observed labels at its end, by gradients through all T steps, so the potentials become those
that suit T steps, whatever an exact answer would be. References: Domke (2013); Zheng et al. (2015), conditional random
fields as recurrent networks. On a tree as many steps of belief propagation as its longest path has edges are exact. Cost of
a gradient: T times (nodes + edges times labels squared), in time and, because every step is kept, in memory.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from markovia.errors import InvalidArgument
from markovia.learning.conditional_fields.neural_fields import NeuralFieldLoss
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import DAMPING, Whole, check, check_choice

Unrolled = Literal["unrolled-mean-field", "unrolled-bp"]
UNROLLED = ("unrolled-mean-field", "unrolled-bp")


def unrolled_marginals(
    node_scores: Any,
    edge_scores: Any,
    edges: Any = None,
    *,
    steps: int = 10,
    method: Unrolled = "unrolled-mean-field",
    damping: float = 0.0,
) -> Any:
    """Return the log beliefs of all nodes after a number of steps of inference, differentiable by JAX.

    Parameters
    ----------
    node_scores
        Log potentials of nodes, shape (nodes, k).
    edge_scores
        Log potentials of edges, shape (edges, k, k), first axis the tail; or one table (k, k) for all. All are finite.
    edges
        Pairs (tail, head) of node numbers, with cycles or without; None for the chain 0, 1, 2, ...
    steps
        How many; each updates all nodes, or all messages, at once.
    method
        "unrolled-mean-field" or "unrolled-bp".
    damping
        The share of the old logarithms that each step keeps, from 0 up to but not 1.

    Examples
    --------
    >>> import jax
    >>> scores, table = np.array([[0.0, 1.0], [0.0, 0.0], [0.5, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> with jax.enable_x64(True):
    ...     found = np.exp(unrolled_marginals(scores, table, steps=2, method="unrolled-bp"))
    ...     slope = jax.grad(lambda s: unrolled_marginals(s, table, steps=2, method="unrolled-bp")[1, 1])(scores)
    >>> found.round(4)[1].tolist()  # exact, because the ends are two edges apart
    [0.4486, 0.5514]
    >>> bool(np.asarray(slope)[0, 1] > 0.0 > np.asarray(slope)[2, 0])  # the ends pull the middle along
    True
    """
    import jax

    check("steps", steps, Whole(0))
    check("damping", damping, DAMPING)
    check_choice("method", method, UNROLLED)
    nodes, tables = jax.numpy.asarray(node_scores), jax.numpy.asarray(edge_scores)
    kind = jax.numpy.result_type(nodes.dtype, tables.dtype, float)
    n, k = nodes.shape
    given = [(i, i + 1) for i in range(n - 1)] if edges is None else edges
    pairs = np.asarray(given, dtype=np.int64).reshape(-1, 2)
    if len(pairs) and not (pairs.min() >= 0 and pairs.max() < n):
        raise InvalidArgument(f"edges= names node {pairs.max()}, but there are {n} rows of node_scores")
    tables = jax.numpy.broadcast_to(tables.astype(kind), (len(pairs), k, k))
    return _beliefs(nodes.astype(kind), tables, pairs[:, 0], pairs[:, 1], steps, method, damping)


def _beliefs(nodes: Any, tables: Any, tails: Any, heads: Any, steps: int, method: str, damping: float) -> Any:
    """Return log beliefs after some steps, from uniform ones or uniform messages."""
    import jax

    jnp, normalised = jax.numpy, jax.nn.log_softmax

    def mean_field(logs: Any) -> Any:
        q = jnp.exp(logs)
        into = jnp.zeros_like(nodes).at[tails].add(jnp.einsum("eab,eb->ea", tables, q[heads]))
        into = into.at[heads].add(jnp.einsum("eab,ea->eb", tables, q[tails]))
        return normalised(nodes + into)

    def gathered(messages: Any) -> Any:
        forward, backward = messages
        return nodes + jnp.zeros_like(nodes).at[heads].add(forward).at[tails].add(backward)

    def belief_propagation(messages: Any) -> Any:
        forward, backward = messages
        total = gathered(messages)
        # what a node says along an edge is all that it has heard, but for what came along that edge
        out, back = total[tails] - backward, total[heads] - forward
        ahead = jax.nn.logsumexp(tables + out[:, :, None], axis=1)
        return normalised(jnp.stack([ahead, jax.nn.logsumexp(tables + back[:, None, :], axis=2)]))

    step: Callable[[Any], Any]
    if method == "unrolled-mean-field":
        step, start = mean_field, normalised(jnp.zeros_like(nodes))
    else:
        step, start = belief_propagation, normalised(jnp.zeros((2, *tables.shape[:2]), nodes.dtype))
    last, _ = jax.lax.scan(
        lambda old, _: (normalised((1.0 - damping) * step(old) + damping * old), None), start, length=steps
    )
    return last if method == "unrolled-mean-field" else normalised(gathered(last))


@dataclass(frozen=True)
class UnrolledFieldLoss(NeuralFieldLoss):
    """Minus the log beliefs of observed labels after `steps` steps of inference, as a function of a network's parameters."""

    unrolled: Unrolled = "unrolled-mean-field"
    steps: int = 10

    def by_scores(
        self, which: Ints, scored: list[tuple[Array, Array]]
    ) -> tuple[float, list[tuple[Array, Array]]]:
        """Return the loss of some instances and its gradient by their scores, through all steps."""
        batch, ends = self._padded(which, scored)
        value, slopes = _compiled()[1](*batch, **self._how())
        by_node, by_edge = (np.split(np.asarray(s), at) for s, at in zip(slopes, ends, strict=True))
        return float(value), [
            (by_node[i], by_edge[i] if edge.ndim == 3 else by_edge[i].sum(axis=0))
            for i, (_, edge) in enumerate(scored)
        ]

    def beliefs(self, which: Ints, scored: list[tuple[Array, Array]]) -> Array:
        """Return the beliefs of some instances' nodes."""
        (*field, _, weight), _ = self._padded(which, scored)
        return np.asarray(np.exp(np.asarray(_compiled()[0](*field, **self._how())))[weight > 0])

    def _how(self) -> dict[str, Any]:
        return {"steps": self.steps, "method": self.unrolled, "damping": self.damping}

    def _padded(
        self, which: Ints, scored: list[tuple[Array, Array]]
    ) -> tuple[tuple[Any, ...], tuple[Ints, Ints]]:
        """Return instances as one graph of a size that is a power of two, so that few shapes are compiled.

        They are node scores, tables, tails, heads, labels, and weights, zero of nodes that are none; and where the nodes
        and the edges of each instance end.
        """
        fields, k = self.fields, self.fields.k
        ends = np.cumsum([len(node) for node, _ in scored]), np.cumsum(np.diff(fields.edge_ptr)[which])
        n, m = (1 << int(end[-1]).bit_length() for end in ends)
        nodes, tables = np.zeros((n, k)), np.zeros((m, k, k))
        tails, heads = np.full((2, m), n - 1)
        labels, weight = np.zeros(n, dtype=np.int64), np.zeros(n)
        at = [np.concatenate([[0], end]).tolist() for end in ends]
        for i, (g, (node, edge)) in enumerate(zip(which.tolist(), scored, strict=True)):
            own, links = slice(*at[0][i : i + 2]), slice(*at[1][i : i + 2])
            there, edges = slice(*fields.node_ptr[g : g + 2]), slice(*fields.edge_ptr[g : g + 2])
            nodes[own], tables[links] = node, edge
            tails[links] = fields.tails[edges] - there.start + own.start
            heads[links] = fields.heads[edges] - there.start + own.start
            labels[own], weight[own] = self.labels[there], 1.0
        if not (np.isfinite(nodes).all() and np.isfinite(tables).all()):
            raise InvalidArgument(
                "unrolled inference needs finite scores; forbid labels by scores such as -30 instead"
            )
        return (nodes, tables, tails, heads, labels, weight), ends


@lru_cache(maxsize=1)
def _compiled() -> tuple[Any, Any]:
    """Return inference, and the loss with its gradient by node scores and tables, compiled."""
    import jax

    def loss(nodes: Any, tables: Any, tails: Any, heads: Any, labels: Any, weight: Any, **how: Any) -> Any:
        logs = _beliefs(nodes, tables, tails, heads, **how)
        return -(weight * jax.numpy.take_along_axis(logs, labels[:, None], axis=1)[:, 0]).sum()

    fixed = ("steps", "method", "damping")
    return (
        jax.jit(_beliefs, static_argnames=fixed),
        jax.jit(jax.value_and_grad(loss, argnums=(0, 1)), static_argnames=fixed),
    )
