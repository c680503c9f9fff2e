"""The conditional log likelihood of a pairwise random field with tied weights, and its gradient.

Node i with features x_i scores label a by `W[a] . x_i`; edge e with features z_e scores the labels (a, b) of its tail
and head by `sum_f z_ef V[f, a, b]`. With log Z from exact inference the objective is

    sum over instances of ( log Z(x) - score(x, y) )  +  ||W||^2 / C  +  ||v||^2 / C_edges  +  l1 (|W| + |v|),

convex in W and V; its gradient is expected minus observed features (Lafferty et al. 2001) plus `2 w / C`. With
approximate marginals log Z is the Bethe value, the tree-reweighted bound or the mean-field bound, of which the
gradient has the same form; with pseudo-likelihood it is the sum of the nodes' own normalisers, and every edge counts
from both ends. The penalty `||w||^2 / C` is scikit-learn's `||w||^2 / (2 C')` with `C' = C / 2`. Intercepts are not
penalised. Cost: one pass of inference and two products with the node features.
"""

from typing import Any, Literal

import numpy as np

from markovia.learning.conditional_fields.fields import Fields
from markovia.learning.conditional_fields.marginals import FieldSampler, Method, field_marginals
from markovia.learning.conditional_fields.tree_lanes import Lanes
from markovia.runtime.array_types import Array, Ints

EdgeWeights = Literal["full", "symmetric", "same"]


def edge_basis(kind: EdgeWeights, k: int) -> Array:
    """Return the tables that one edge feature's weights multiply, shape (weights, k * k).

    "full": one weight a pair of labels; "symmetric": one an unordered pair; "same": one weight, for equal labels.
    """
    if kind == "full":
        return np.eye(k * k)
    if kind == "same":
        return np.eye(k).reshape(1, k * k)
    rows = []
    for a in range(k):
        for b in range(a, k):
            table = np.zeros((k, k))
            table[a, b] = table[b, a] = 1.0
            rows.append(table.ravel())
    return np.array(rows)


def edge_tables(rows: Array, edge: Array) -> Array:
    """Return the log tables of rows of edge features, shape (rows, k, k).

    A few features are added up one by one: threaded linear algebra is slower on such thin matrices.
    """
    e, k, _ = edge.shape
    if e > 8:
        return np.asarray(rows @ edge.reshape(e, k * k)).reshape(-1, k, k)
    found = np.zeros((len(rows), k, k))
    for f in range(e):
        found += rows[:, f, None, None] * edge[f]
    return found


class PairwiseObjective:
    """The objective for given data; parameters are one flat vector, node weights first.

    Parameters
    ----------
    fields
        The graphs of all instances.
    features
        Node features, one row a node: an array, or a scipy sparse matrix in CSR form.
    labels
        The label codes of all nodes.
    edge_weights
        How edge tables are tied; see `edge_basis`.
    C, edge_C
        The penalties of node and edge weights; infinity for none.
    l1
        The weight of the sum of absolute values, which `crf_training.minimise` adds (it is not smooth).
    intercept
        Whether the last column of the features is an intercept, which is not penalised.
    method
        How marginals are found.
    sampler
        The chains, for "gibbs".
    damping
        For belief propagation.
    """

    def __init__(
        self,
        fields: Fields,
        features: Any,
        labels: Ints,
        *,
        edge_weights: EdgeWeights = "full",
        C: float = np.inf,  # noqa: N803
        edge_C: float = np.inf,  # noqa: N803
        l1: float = 0.0,
        intercept: bool = False,
        method: Method = "auto",
        sampler: FieldSampler | None = None,
        damping: float = 0.0,
    ) -> None:
        self.fields = fields
        self.features = features
        self.labels = labels
        self.basis = edge_basis(edge_weights, fields.k)
        self.method = method
        self.sampler = sampler
        self.damping = damping
        self.k = fields.k
        self.n_node_weights: int = self.k * int(features.shape[1])
        self.n_edge_features = fields.rows.shape[1]
        self.error = 0.0
        self._room: tuple[Array, Array] | None = None
        self._lanes: Lanes | None = None
        if isinstance(features, np.ndarray) and method in ("auto", "exact"):
            self._lanes = Lanes.of(fields, features)
        decay = np.full((self.k, features.shape[1]), 1.0 / C)
        lasso = np.full((self.k, features.shape[1]), l1)
        if intercept:
            decay[:, -1] = lasso[:, -1] = 0.0
        n_edge = self.n_edge_features * len(self.basis)
        self.decay = np.concatenate([decay.ravel(), np.full(n_edge, 1.0 / edge_C)])
        self.lasso = np.concatenate([lasso.ravel(), np.full(n_edge, l1)])
        self.is_edge = np.arange(self.size) >= self.n_node_weights
        self._observed = self._count(None)

    @property
    def size(self) -> int:
        """The number of parameters."""
        return int(self.n_node_weights + self.n_edge_features * len(self.basis))

    @property
    def n_instances(self) -> int:
        """The number of graphs."""
        return self.fields.n_graphs

    def unpack(self, theta: Array) -> tuple[Array, Array]:
        """Return node weights, shape (k, features), and edge tables, shape (edge features, k, k)."""
        node = theta[: self.n_node_weights].reshape(self.k, -1)
        edge = theta[self.n_node_weights :].reshape(self.n_edge_features, len(self.basis)) @ self.basis
        return node, edge.reshape(-1, self.k, self.k)

    def potentials(self, theta: Array) -> tuple[Array, Array]:
        """Return the log scores of all nodes and the log tables."""
        node, edge = self.unpack(theta)
        return self.features @ node.T, self._tables(edge)

    def observed(self, which: Ints | None = None) -> Array:
        """Return the observed features of all instances, or of some, as one vector."""
        if which is None:
            return self._observed
        return self._count(which)

    def __call__(self, theta: Array, which: Ints | None = None) -> tuple[float, Array]:
        """Return the smooth part of the objective (everything but l1) and its gradient.

        With `which` only these instances count, and the penalty in proportion.
        """
        node, edge = self.unpack(theta)
        tables = self._tables(edge)
        if which is None and self._lanes is not None:
            masses, sums, pairs = self._lanes.gradient(node, tables)
            mass, expected, self.error = float(masses.sum()), self._joined(sums, pairs), 0.0
            undone = np.flatnonzero(np.isnan(masses))
            if len(undone):
                part, rest = self._expected(node, tables, undone)
                mass, expected = float(np.nansum(masses)) + part, expected + rest
        else:
            mass, expected = self._expected(node, tables, which)
        observed = self.observed(which)
        share = 1.0 if which is None else len(which) / max(self.fields.n_graphs, 1)
        pull = share * self.decay * theta
        value = mass - float(observed @ theta) + float(pull @ theta)
        return value, expected - observed + 2.0 * pull

    def _expected(self, node: Array, tables: Array, which: Ints | None) -> tuple[float, Array]:
        """Return the log mass of all instances, or of some, and their expected features."""
        settings: dict[str, Any] = {"labels": self.labels, "sampler": self.sampler, "damping": self.damping}
        if isinstance(self.features, np.ndarray):
            if self._room is None:
                self._room = (np.empty((len(self.labels), self.k)), np.zeros((len(self.labels), self.k)))
            settings |= {"features": self.features, "room": self._room}
            found = field_marginals(self.fields, node, tables, self.method, which, **settings)
            expected = self._joined(found.sums, found.pairs)
        else:
            features, place = self._some(which)
            scores = np.zeros((len(self.labels), self.k))
            scores[slice(None) if place is None else place] = features @ node.T
            found = field_marginals(self.fields, scores, tables, self.method, which, **settings)
            expected = self._vector(
                features, found.beliefs if place is None else found.beliefs[place], found.pairs
            )
        self.error = found.error
        return float((found.log_mass if which is None else found.log_mass[which]).sum()), expected

    def _tables(self, edge: Array) -> Array:
        return edge_tables(self.fields.rows, edge)

    def _vector(self, features: Any, beliefs: Array, pairs: Array) -> Array:
        """Return feature sums under node distributions and pair tables, in the order of the parameters."""
        return self._joined(np.asarray(features.T @ beliefs).T, pairs)

    def _joined(self, node: Any, pairs: Array) -> Array:
        edge = self.fields.rows.T @ pairs.reshape(len(self.fields.rows), self.k * self.k) @ self.basis.T
        return np.concatenate([node.ravel(), edge.ravel()])

    def _some(self, which: Ints | None) -> tuple[Any, Ints | None]:
        if which is None:
            return self.features, None
        place = _ranges(self.fields.node_ptr, which)
        return self.features[place], place

    def _count(self, which: Ints | None) -> Array:
        features, place = self._some(which)
        labels = self.labels if place is None else self.labels[place]
        beliefs = np.zeros((len(labels), self.k))
        beliefs[np.arange(len(labels)), labels] = 1.0
        fields = self.fields
        edges = slice(None) if which is None else _ranges(fields.edge_ptr, which)
        cell = (fields.row[edges] * self.k + self.labels[fields.tails[edges]]) * self.k
        cell = cell + self.labels[fields.heads[edges]]
        counts = np.bincount(cell, minlength=len(fields.rows) * self.k * self.k).astype(np.float64)
        if self.method == "pseudo-likelihood":
            counts *= 2.0
        return self._vector(features, beliefs, counts)


def _ranges(ptr: Ints, which: Ints) -> Ints:
    """Return the numbers `ptr[g] ... ptr[g + 1] - 1` for all g, one after the other."""
    sizes = (ptr[1:] - ptr[:-1])[which]
    ends = np.cumsum(sizes)
    found: Ints = np.arange(int(sizes.sum())) + np.repeat(ptr[which] - (ends - sizes), sizes)
    return found
