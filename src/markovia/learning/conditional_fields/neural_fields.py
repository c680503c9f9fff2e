"""Training potentials that come from a neural network, or any other JAX function, of a conditional random field.

The gradient of log Z by the scores is the marginals, so a step is: scores from the network (forward), exact or approximate
marginals of the labels in compiled code, then marginals minus observed labels through the network backwards. Nothing is
differentiated through inference. References: Peng, Bo and Xu (2009), conditional neural fields; Do and Artieres (2010).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.networks.recipes import ModuleRecipe
from markovia.learning.conditional_fields.fields import Fields
from markovia.learning.conditional_fields.marginals import FieldSampler, Method, field_marginals
from markovia.learning.conditional_fields.reading import FieldGraph, graph_edges
from markovia.optimise.players import Player
from markovia.optimise.row_batches import Batch, RowBatches
from markovia.optimise.training import Trained, Training, train
from markovia.runtime.array_types import Array, Ints

Potentials = Callable[[Any, Any], tuple[Any, Any]]
PASSES = 5
"""Passes in a row that have to bring less than the tolerance."""


@dataclass(frozen=True)
class NeuralFieldLoss:
    """The negative log likelihood of labels, as a function of a network's parameters.

    Attributes
    ----------
    network, inputs
        The potential function, and what it is applied to.
    fields, labels
        The graphs, and the observed labels of all nodes.
    method, damping, sampler
        How marginals are found; the sampler is for "gibbs".
    weight_decay
        The weight of the squared parameters, shared out over the instances.
    """

    network: "PotentialNetwork"
    inputs: list[Any]
    fields: Fields
    labels: Ints
    method: Method = "auto"
    damping: float = 0.0
    sampler: FieldSampler | None = None
    weight_decay: float = 0.0

    def fit(self, params: Any, training: Training, learning_rate: float, tol: float) -> Trained:
        """Train parameters by Adam, on batches of instances; call inside `x64()`."""
        import optax

        def settled(_: int, __: Any, curve: tuple[float, ...]) -> bool:
            falls = -np.diff(curve[-PASSES - 1 :])
            return bool(len(falls) == PASSES and np.all(falls < tol))

        return train(
            [Player(self._step, ("potentials",), traced=False)],
            {"potentials": params},
            RowBatches(None, training.batch, training.seed, np.arange(len(self.inputs))),
            training,
            optimiser=optax.adam(learning_rate),
            stop=settled if tol > 0 else None,
            lenient=self.method == "gibbs",  # which knows the gradient, but not the loss
        )

    def _step(self, parameters: dict[str, Any], memory: Any, key: Any, batch: Batch) -> Any:
        """Return the mean loss of some instances with its gradient: an untraced player of the training loop."""
        import jax

        params = parameters["potentials"]
        which = np.sort(batch.rows[batch.weight > 0]).astype(np.int64)
        some = [self.inputs[g] for g in which.tolist()]
        loss, slopes = self.by_scores(which, self.network.scores(params, some))
        decay = self.weight_decay / len(self.inputs)
        value = loss / len(which)
        gradient = jax.tree.map(
            lambda g, p: g / len(which) + 2 * decay * p, self.network.pull_back(params, some, slopes), params
        )
        if decay:
            value += decay * sum(float((p**2).sum()) for p in jax.tree.leaves(params))
        return value, memory, {"potentials": gradient}

    def by_scores(
        self, which: Ints, scored: list[tuple[Array, Array]]
    ) -> tuple[float, list[tuple[Array, Array]]]:
        """Return the negative log likelihood of some instances and its gradient by their scores."""
        fields, labels = self.fields, self.labels
        scores = np.zeros((int(fields.node_ptr[-1]), fields.k))
        tables = np.zeros((len(fields.tails), fields.k, fields.k))
        ends = [
            (slice(*fields.node_ptr[g : g + 2].tolist()), slice(*fields.edge_ptr[g : g + 2].tolist()))
            for g in which.tolist()
        ]
        for (nodes, edges), (node, edge) in zip(ends, scored, strict=True):
            scores[nodes], tables[edges] = node, edge
        found = field_marginals(
            fields,
            scores,
            tables,
            self.method,
            which,
            labels=labels,
            sampler=self.sampler,
            damping=self.damping,
        )
        loss = float(found.log_mass[which].sum())
        twice = 2.0 if self.method == "pseudo-likelihood" else 1.0
        slopes = []
        for (nodes, edges), (_, edge) in zip(ends, scored, strict=True):
            own = labels[nodes]
            place = np.arange(len(own))
            node_slope, pair_slope = found.beliefs[nodes].copy(), found.pairs[edges].copy()
            loss -= float(scores[nodes][place, own].sum())
            node_slope[place, own] -= 1.0
            at = (np.arange(len(pair_slope)), labels[fields.tails[edges]], labels[fields.heads[edges]])
            loss -= twice * float(tables[edges][at].sum())
            pair_slope[at] -= twice
            slopes.append((node_slope, pair_slope if edge.ndim == 3 else pair_slope.sum(axis=0)))
        return loss, slopes


def field_graphs(
    graph: Any, inputs: list[Any], scored: list[tuple[Array, Array]]
) -> tuple[Fields, FieldGraph | None]:
    """Return the graphs of inputs, whose sizes the shapes of their scores tell."""
    sizes, k = [len(node) for node, _ in scored], scored[0][0].shape[1]
    node_ptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    common = None if callable(graph) else FieldGraph.of(graph)
    own = [graph(x) if callable(graph) else None for x in inputs]
    tails, heads, edge_ptr = graph_edges(own, common, node_ptr)
    for g, (_, edge) in enumerate(scored):
        m = int(edge_ptr[g + 1] - edge_ptr[g])
        if edge.shape not in ((m, k, k), (k, k)):
            raise InvalidArgument(
                f"instance {g} has {m} edges and {k} labels, but edge scores of shape {edge.shape}; "
                f"({m}, {k}, {k}) or ({k}, {k}) is needed"
            )
    fields = Fields.of(k, node_ptr, edge_ptr, tails, heads, np.ones((len(tails), 1)), share=False)
    return fields, common


def split_module(
    potentials: Any, params: Any, inputs: list[Any], sees: str, seed: int
) -> tuple[Potentials, Any, Any]:
    """Return a function of arrays and an input, the arrays to start from, and what makes a module of trained ones.

    A module sees each "node" by itself, or a whole "input", and never what happens to fit: a layer from 64 numbers to 64
    takes 64 nodes with 64 features either way. Recipes are made into modules from a seed.
    """
    import jax

    if isinstance(potentials, ModuleRecipe):
        potentials = potentials.build(seed)

    numeric = all(np.asarray(leaf).dtype.kind in "fiub" for leaf in jax.tree.leaves(params))
    if params is not None and numeric:
        return potentials, params, None
    import equinox as eqx

    given = potentials if params is None else params
    arrays, rest = eqx.partition(given, eqx.is_inexact_array)
    if not jax.tree.leaves(arrays):
        raise InvalidArgument(
            "params= has no arrays to train; give a pytree of arrays, or an Equinox module as potentials="
        )
    if params is not None:
        return (
            lambda held, x: potentials(eqx.combine(held, rest), x),
            arrays,
            lambda held: (eqx.combine(held, rest), None),
        )
    if not inputs:
        raise InvalidArgument("there is no instance; give a list with at least one")
    first = jax.tree.map(np.asarray, inputs[0])

    def scores(held: Any, x: Any) -> Any:
        module = eqx.combine(held, rest)
        return module(x) if sees == "input" else jax.vmap(module)(x)

    shape = jax.eval_shape(scores, arrays, first)

    if isinstance(shape, tuple):
        return scores, arrays, lambda held: (eqx.combine(held, rest), None)
    start = {"module": arrays, "edges": np.zeros((shape.shape[-1],) * 2)}
    return (
        lambda held, x: (scores(held["module"], x), held["edges"]),
        start,
        lambda held: (eqx.combine(held["module"], rest), held["edges"]),
    )


class PotentialNetwork:
    """The potential function, applied to groups of inputs of equal shape at once, forwards and backwards."""

    def __init__(self, jax: Any, potentials: Potentials) -> None:
        self.jax = jax

        def forward(params: Any, stacked: Any) -> Any:
            return jax.vmap(lambda x: potentials(params, x))(stacked)

        def backward(params: Any, stacked: Any, slopes: Any) -> Any:
            _, pull = jax.vjp(lambda p: forward(p, stacked), params)
            return pull(slopes)[0]

        self.forward = jax.jit(forward)
        self.backward = jax.jit(backward)

    def scores(self, params: Any, inputs: list[Any]) -> list[tuple[Array, Array]]:
        """Return node and edge scores of every input."""
        if not inputs:
            raise InvalidArgument("there is no instance; give a list with at least one")
        found: list[Any] = [None] * len(inputs)
        for group in self._groups(inputs):
            answer = self.forward(params, self._stacked(inputs, group))
            if (
                not isinstance(answer, tuple)
                or len(answer) != 2
                or answer[0].ndim != 3
                or answer[1].ndim not in (3, 4)
            ):
                raise InvalidArgument(
                    "potentials= returns a pair: node scores (nodes, labels) and edge scores (edges, labels, labels) or "
                    "(labels, labels)"
                )
            node, edge = (np.asarray(part, dtype=np.float64) for part in answer)
            for at, g in enumerate(group):
                found[g] = (node[at], edge[at])
                if (
                    np.isnan(node[at]).any()
                    or np.isnan(edge[at]).any()
                    or np.inf in (node[at].max(initial=0.0), edge[at].max(initial=0.0))
                ):
                    raise InvalidArgument(
                        f"the scores of instance {g} are missing or infinite; look for such numbers in its input, or try a "
                        "smaller learning_rate="
                    )
        return found

    def pull_back(self, params: Any, inputs: list[Any], slopes: list[tuple[Array, Array]]) -> Any:
        """Return the gradient by the parameters, given that by the scores."""
        total: Any = None
        for group in self._groups(inputs):
            both = tuple(np.stack([slopes[g][part] for g in group]) for part in (0, 1))
            found = self.backward(params, self._stacked(inputs, group), both)
            total = found if total is None else self.jax.tree.map(lambda a, b: a + b, total, found)
        return total

    def _groups(self, inputs: list[Any]) -> list[list[int]]:
        groups: dict[Any, list[int]] = {}
        for g, x in enumerate(inputs):
            leaves, shape = self.jax.tree.flatten(x)
            groups.setdefault((shape, tuple(np.shape(leaf) for leaf in leaves)), []).append(g)
        return list(groups.values())

    def _stacked(self, inputs: list[Any], group: list[int]) -> Any:
        return self.jax.tree.map(
            lambda *leaves: np.stack([np.asarray(a) for a in leaves]), *[inputs[g] for g in group]
        )


@lru_cache(maxsize=32)
def potential_network(potentials: Potentials) -> PotentialNetwork:
    """Return the compiled network of a function; the last few are kept, so that asking again compiles nothing."""
    import jax

    return PotentialNetwork(jax, potentials)
