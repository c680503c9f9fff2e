"""What all conditional random fields answer, whatever their potentials are made of.

A subclass turns inputs into graphs with log scores of nodes and log tables of edges (`_scored`); here are the
questions: best labellings, marginals, likelihood, accuracy by node and by whole instance, and the Markov network of
one input.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markovia.data.text.vocabulary import Vocabulary
from markovia.errors import (
    ApproximateWarning,
    ConvergenceWarning,
    IncompleteModel,
    InvalidArgument,
    warn_user,
)
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.learning.conditional_fields.fields import Fields
from markovia.learning.conditional_fields.marginals import FieldMarginals, Method, field_marginals
from markovia.learning.conditional_fields.reading import FieldGraph, code_labels, read_labels
from markovia.models.graphical.markov_network import MarkovNetwork
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.estimator import Estimator

LARGEST_LOG = 600.0


@dataclass(frozen=True)
class Scored:
    """Graphs with the log scores of their nodes and their log tables, and the nodes' names if they have any."""

    fields: Fields
    scores: Array
    tables: Array
    graph: FieldGraph | None = None


class Labeller(Estimator):
    """A model of labels, which training shows."""

    classes_: NDArray[Any]
    _vocabulary: Vocabulary | None

    def _need_fit(self) -> None:
        if not hasattr(self, "classes_"):
            raise IncompleteModel(f"this {type(self).__name__} has no weights yet; call fit(X, Y) first")


class ConditionalField(Labeller):
    """A model of labellings of graphs given inputs."""

    inference: Method

    def _scored(self, inputs: Any, *, own: bool = False) -> Scored:
        """Return the potentials of inputs; with `own` every edge has a table of its own."""
        raise NotImplementedError

    def _shaped(self, inputs: Any, found: list[Any]) -> list[Any]:
        """Give one flat array an instance the shape that users know."""
        return found

    def _flat_labels(self, labels: Any) -> Any:
        """Give labellings one flat sequence an instance."""
        return labels

    # -- questions ---------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> list[Any]:  # noqa: N803
        """Return a most probable labelling of each instance.

        Exact by max-product on graphs without cycles; otherwise by the engine that `decoding` names.
        """
        scored = self._scored(X)
        codes = self._best(scored)
        return self._shaped(X, self._cut(self.classes_[codes], scored))

    def predict_proba(self, X: Any) -> list[Any]:  # noqa: N803
        """Return the marginal distribution of every node, one array (nodes, labels) an instance."""
        scored = self._scored(X)
        return self._shaped(X, self._cut(self._node_beliefs(scored), scored))

    predict_marginals = predict_proba

    def predict_edges(self, X: Any) -> list[Array]:  # noqa: N803
        """Return the joint distribution of the two ends of every edge, one array (edges, labels, labels) an instance."""
        scored = self._scored(X, own=True)
        found = self._marginals(scored).pairs
        ends = scored.fields.edge_ptr
        return [found[a:b] for a, b in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)]

    def predict_by_node(self, X: Any) -> list[Any]:  # noqa: N803
        """Return each node's most probable label, which makes the expected number of wrong nodes smallest."""
        scored = self._scored(X)
        codes = self._node_beliefs(scored).argmax(axis=1)
        return self._shaped(X, self._cut(self.classes_[codes], scored))

    def log_partition(self, X: Any) -> Array:  # noqa: N803
        """Return log Z(x) of each instance."""
        return self._marginals(self._scored(X)).log_mass

    def log_prob(self, X: Any, Y: Any) -> Array:  # noqa: N803
        """Return log P(y | x) of each instance."""
        scored = self._scored(X)
        fields = scored.fields
        codes = self._codes(Y, scored)
        node = scored.scores[np.arange(len(codes)), codes]
        edge = scored.tables[fields.row, codes[fields.tails], codes[fields.heads]]
        score = _sums(node, fields.node_ptr) + _sums(edge, fields.edge_ptr)
        found: Array = score - self._marginals(scored).log_mass
        return found

    def log_likelihood(self, X: Any, Y: Any) -> float:  # noqa: N803
        """Return the sum of log P(y | x) over all instances, without penalties."""
        return float(self.log_prob(X, Y).sum())

    def score(self, X: Any, Y: Any) -> float:  # noqa: N803
        """Return the share of nodes that `predict` labels right (one minus the Hamming loss)."""
        return float(np.mean(self._right(X, Y)[0]))

    def score_exact(self, X: Any, Y: Any) -> float:  # noqa: N803
        """Return the share of instances of which `predict` labels every node right (one minus the 0/1 loss)."""
        right, scored = self._right(X, Y)
        return float(np.mean(_sums((~right).astype(np.float64), scored.fields.node_ptr) == 0))

    def network(self, x: Any) -> MarkovNetwork:
        """Return the Markov network over the labels of one input, for any question and engine.

        Nodes without names are called `y0`, `y1`, ...; potentials with a logarithm above 600 or below -600 are divided by
        their largest entry, which changes `log_partition` but no probability.
        """
        return self._network(self._scored([x]), 0)

    # -- inside ------------------------------------------------------------------------------------------------

    def _evaluation(self) -> Method:
        named: Method = self.inference
        return named if named in ("loopy-bp", "tree-reweighted", "mean-field", "exact") else "auto"

    def _marginals(self, scored: Scored) -> FieldMarginals:
        method = self._evaluation()
        found = field_marginals(
            scored.fields, scored.scores, scored.tables, method, damping=getattr(self, "damping", 0.0)
        )
        if found.error > 1e-4:
            warn_user(
                f"message passing did not converge on some instances (last change {found.error:.1g}); try damping=0.5, or "
                "inference='tree-reweighted'",
                ConvergenceWarning,
            )
        elif method == "auto":
            self._warn_if_wide(scored.fields, "marginals")
        return found

    def _node_beliefs(self, scored: Scored) -> Array:
        """Return the distribution of every node's label."""
        return self._marginals(scored).beliefs

    def _node_states(self) -> list[Any]:
        """Return the names of what a node may be in its Markov network."""
        return list(self.classes_.tolist())

    def _warn_if_wide(self, fields: Fields, what: str) -> None:
        """Say that "auto" did not find exact marginals everywhere."""
        if any(fields.plan(int(g)) is None for g in np.flatnonzero(~fields.forest)):
            warn_user(
                f"some graphs are too wide for exact {what}; loopy belief propagation was used",
                ApproximateWarning,
            )

    def _best(self, scored: Scored) -> Ints:
        """Return the best label codes of all nodes."""
        fields = scored.fields
        codes, _ = fields.best(scored.scores, scored.tables, np.flatnonzero(fields.forest))
        for g in np.flatnonzero(~fields.forest).tolist():
            nodes = slice(int(fields.node_ptr[g]), int(fields.node_ptr[g + 1]))
            codes[nodes] = self._best_with_cycles(scored, g)
        return codes

    def _best_with_cycles(self, scored: Scored, g: int) -> Ints:
        largest = max(largest_range(scored.scores), largest_range(scored.tables))
        if (
            largest > LARGEST_LOG
        ):  # the best labelling is the same for smaller scores, and their exponentials exist
            share = LARGEST_LOG / largest
            scored = replace(scored, scores=scored.scores * share, tables=scored.tables * share)
        network = self._network(scored, g)
        found = network.map(engine=getattr(self, "decoding", "auto"))
        return np.array([network.variable(n).index(found[n]) for n in network.variables], dtype=np.int64)

    def _network(self, scored: Scored, g: int) -> MarkovNetwork:
        fields, graph = scored.fields, scored.graph
        first, last = int(fields.node_ptr[g]), int(fields.node_ptr[g + 1])
        names = graph.names if graph is not None else None
        listed = names if names is not None else [f"y{i}" for i in range(last - first)]
        states = Variable("y", self._node_states()).states
        variables = [Variable.of(n, states) for n in listed]
        edges = slice(int(fields.edge_ptr[g]), int(fields.edge_ptr[g + 1]))
        factors = Factor.many(zip(variables), list(exponentials(scored.scores[first:last])))
        ends = zip(
            (fields.tails[edges] - first).tolist(), (fields.heads[edges] - first).tolist(), strict=True
        )
        scopes = [(variables[a], variables[b]) for a, b in ends]
        factors += Factor.many(scopes, list(exponentials(scored.tables[fields.row[edges]])))
        return MarkovNetwork(variables, factors)

    def _codes(self, labels: Any, scored: Scored) -> Ints:
        return code_labels(self._read(labels, scored), self.classes_)

    def _right(self, inputs: Any, labels: Any) -> tuple[NDArray[np.bool_], Scored]:
        """Say for each node whether `predict` labels it right; a label that fitting never met is wrong."""
        scored = self._scored(inputs)
        return self.classes_[self._best(scored)] == self._read(labels, scored), scored

    def _read(self, labels: Any, scored: Scored) -> NDArray[Any]:
        return read_labels(self._flat_labels(labels), scored.fields.node_ptr, scored.graph)

    def _cut(self, flat: NDArray[Any], scored: Scored) -> list[Any]:
        ends: Sequence[int] = scored.fields.node_ptr.tolist()
        return [flat[a:b] for a, b in pairwise(ends)]


def sorted_labels(classes: ArrayLike) -> tuple[NDArray[Any], Ints]:
    """Return two or more different labels in order, and their places among those given."""
    labels = np.asarray(classes)
    if labels.ndim != 1 or len(labels) < 2 or len(np.unique(labels)) != len(labels):
        raise InvalidArgument(f"classes= is a list of two or more different labels, not {classes!r}")
    order = np.argsort(labels)
    return labels[order], order


def _sums(values: Array, ptr: Ints) -> Array:
    owner = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    found: Array = np.bincount(owner, weights=values, minlength=len(ptr) - 1).astype(np.float64)
    return found


def largest_range(logs: Array) -> float:
    """Return the largest difference between two entries of one table."""
    return float(np.ptp(logs.reshape(len(logs), -1), axis=1).max(initial=0.0)) if logs.size else 0.0


def exponentials(logs: Array) -> Array:
    """Return exponentials of log tables, read-only; tables with huge entries are lowered, those with tiny ones raised."""
    axes = tuple(range(1, logs.ndim))
    top = logs.max(axis=axes, keepdims=True) if logs.size else np.zeros((0,) + (1,) * len(axes))
    low = logs.min(axis=axes, keepdims=True, where=np.isfinite(logs), initial=0.0) if logs.size else top
    found = np.exp(logs - np.where((top > LARGEST_LOG) | (low < -LARGEST_LOG), top, 0.0))
    found.setflags(write=False)
    return found
