"""Conditional random fields: P(y | x) as a Markov network whose potentials are functions of the input.

    P(y | x) = exp( sum_i W[y_i] . x_i + sum_(i,j) V[y_i, y_j] . x_ij ) / Z(x)

All nodes share W and all edges share V, so graphs may differ from instance to instance: chains of any length, trees,
grids, anything. Training is convex with exact inference (observed minus expected features, L-BFGS), on chains and
trees in compiled code on all cores, on narrow graphs through clique trees, and on wide ones through loopy belief
propagation, tree-reweighted bounds, mean field, Gibbs sampling or pseudo-likelihood. References: Lafferty, McCallum
and Pereira (2001); Sutton and McCallum (2012). Cost of one gradient on trees: nodes times (labels squared plus labels
times features). `GridCRF` is for images, `NeuralCRF` for potentials from a neural network, `FeatureCRF` for features
written as functions.
"""

from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markovia.data.text.vocabulary import Vocabulary
from markovia.errors import ConvergenceWarning, InvalidArgument, warn_user
from markovia.factors.distributions.checked_numbers import as_numbers, finite_numbers
from markovia.learning.conditional_fields.fields import Fields
from markovia.learning.conditional_fields.marginals import FieldSampler, Method
from markovia.learning.conditional_fields.objective import EdgeWeights, PairwiseObjective, edge_tables
from markovia.learning.conditional_fields.reading import (
    FieldGraph,
    Inputs,
    code_labels,
    read_inputs,
    read_labels,
)
from markovia.learning.conditional_fields.stochastic_training import descend
from markovia.models.crf.base import ConditionalField, Scored, sorted_labels
from markovia.optimise.minimise import Minimum, minimise
from markovia.runtime.array_types import Array
from markovia.runtime.checks import (
    Count,
    Damping,
    Penalty,
    PenaltyOrNone,
    Positive,
    Tolerance,
    check_options,
)
from markovia.runtime.clock import Clock
from markovia.runtime.seeds import generator


@dataclass(eq=False, repr=False, kw_only=True)
class CRF(ConditionalField):
    """A conditional random field on any graph, with scikit-learn's habits.

    An instance x is an array of node features, one row a node; a list of one mapping a node from feature names to values;
    or a tuple `(features, edges)` or `(features, edges, edge_features)` with a graph of its own. Its labelling y has
    one label a node (by name where the graph has names). Without edge features every edge has the constant 1.

    Parameters
    ----------
    graph
        The graph of instances that bring none: "chain", a list of pairs of node numbers or names, an `UndirectedGraph`,
        or None if all bring their own.
    edge_weights
        "full": one weight for each pair of labels (tail, head) and edge feature; "symmetric": one for each unordered pair;
        "same": one for equal labels (Potts).
    attractive
        Keep edge weights at zero or more, so that neighbours never repel and graph cuts are exact for two labels; needs
        `edge_weights="same"` and edge features that are not negative.
    C, edge_C
        The penalty `||w||^2 / C` of node weights, and that of edge weights (None: the same); infinity for none. This is
        scikit-learn's `C` times two: `LogisticRegression(C=1)` is `CRF(C=2)` without edges.
    l1
        The weight of a penalty on absolute values, which makes weights zero.
    fit_intercept
        Whether every label has a weight of its own, which is not penalised.
    inference
        How marginals are found in training: "auto" (exact where narrow enough, else loopy belief propagation), "exact",
        "loopy-bp", "tree-reweighted", "mean-field", "pseudo-likelihood", or "gibbs" (persistent chains; needs
        `solver="sgd"`).
    decoding
        The engine for best labellings of graphs with cycles, as for `MarkovNetwork.map`.
    damping
        For belief propagation that does not settle, between 0 and 1.
    solver
        "lbfgs", or "sgd" for stochastic gradients.
    max_iter, tol
        Steps (passes over the data for "sgd") at most; the gradient, a mean over instances, at which to stop.
    batch_size, learning_rate
        For "sgd".
    random_state
        The seed for "sgd" and "gibbs".
    progress
        Whether to show a progress bar; None for long runs on a terminal.

    Attributes
    ----------
    classes_
        The labels in order.
    coef_, intercept_
        Node weights, shape (labels, features), and intercepts, shape (labels,).
    edge_coef_
        Edge tables, shape (edge features, labels, labels).
    feature_names_
        Names of the columns, for features by name.
    training_
        What the optimiser did: objective, history, steps, seconds, convergence.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> Y = [np.repeat(rng.permutation(["noun", "verb"]), 3) for _ in range(40)]
    >>> X = [(y == "verb")[:, None] + rng.normal(scale=0.8, size=(6, 1)) for y in Y]
    >>> crf = CRF().fit(X, Y)
    >>> crf.predict([[[1.4], [0.2], [1.1]]])[0].tolist()
    ['verb', 'verb', 'verb']
    >>> bool(crf.edge_coef_[0, 0, 0] > crf.edge_coef_[0, 0, 1])  # neighbours agree
    True
    """

    graph: Any = field(default="chain", kw_only=False)
    edge_weights: EdgeWeights = "full"
    attractive: bool = False
    C: Penalty = 2.0
    edge_C: PenaltyOrNone = None  # noqa: N815
    l1: Tolerance = 0.0
    fit_intercept: bool = True
    inference: Method = "auto"
    decoding: Any = "auto"
    damping: Damping = 0.0
    solver: Literal["lbfgs", "sgd"] = "lbfgs"
    max_iter: Count = 500
    tol: Positive = 1e-5
    batch_size: Count = 16
    learning_rate: Positive = 0.2
    random_state: Any = None
    progress: bool | None = None

    # -- training ----------------------------------------------------------------------------------------------

    def fit(self, X: Any, Y: Any) -> Self:  # noqa: N803
        """Learn the weights from instances and their labellings.

        Parameters
        ----------
        X
            A list of instances.
        Y
            A list of labellings, one label a node.

        Raises
        ------
        InvalidArgument, InvalidGraph
            For data that does not fit together; the message names the instance.
        TooLarge
            If `inference="exact"` and a graph is too wide.
        """
        self._check()
        inputs, labels, classes = self._read_training(X, Y)
        k = len(classes)
        if not k:
            raise InvalidArgument("no instance has a node")
        if k < 2:
            raise InvalidArgument(
                f"all nodes have the label {classes[0].item()!r}; two different ones are needed"
            )
        if self.attractive and inputs.edge_features.size and inputs.edge_features.min() < 0:
            raise InvalidArgument("attractive=True needs edge features that are not negative")
        fields = self._fields(inputs, k)
        rng = generator(self.random_state)
        objective = PairwiseObjective(
            fields,
            self._columns(inputs),
            code_labels(labels, classes),
            sampler=FieldSampler.of(fields, rng) if self.inference == "gibbs" else None,
            **self._objective_settings(),
        )
        lower = self._lower_bounds(objective)
        start = np.zeros(objective.size)
        if self.solver == "sgd":
            found = descend(
                objective,
                start,
                rng,
                batch_size=self.batch_size,
                learning_rate=self.learning_rate,
                lower=lower,
                max_iter=self.max_iter,
                tol=self.tol,
                progress=self.progress,
            )
        else:
            with Clock(None, self.progress, total=self.max_iter) as clock:
                found = minimise(
                    objective,
                    start,
                    height=max(fields.n_graphs, 1),
                    lasso=objective.lasso,
                    lower=lower,
                    convex=True,
                    max_iter=self.max_iter,
                    tol=self.tol,
                    flat=1e-14 if self.inference in ("exact", "auto", "pseudo-likelihood") else 1e-10,
                    clock=clock,
                    bar=True,
                )
        return self._trained(objective, found, classes, inputs.vocabulary)

    def _objective_settings(self) -> dict[str, Any]:
        return {
            "edge_weights": self.edge_weights,
            "C": self.C,
            "edge_C": self.C if self.edge_C is None else self.edge_C,
            "l1": self.l1,
            "intercept": self.fit_intercept,
            "method": self.inference,
            "damping": self.damping,
        }

    def _lower_bounds(self, objective: PairwiseObjective) -> Array | None:
        return np.where(objective.is_edge, 0.0, -np.inf) if self.attractive else None

    def _trained(
        self, objective: PairwiseObjective, found: Minimum, classes: NDArray[Any], vocabulary: Vocabulary | None
    ) -> Self:  # fmt: skip
        """Keep what training found, and warn where that is not what was asked for."""
        self._warn(found, objective.error)
        if self.inference == "auto":
            self._warn_if_wide(objective.fields, "training")
        node, edge = objective.unpack(found.point)
        self.classes_ = classes
        self._take_weights(node.copy(), edge.copy(), vocabulary)
        self.training_ = found
        self.n_iter_ = found.iterations
        return self

    @classmethod
    def from_weights(
        cls,
        classes: ArrayLike,
        coef: ArrayLike,
        edge_coef: ArrayLike,
        intercept: ArrayLike | None = None,
        **settings: Any,
    ) -> Self:
        """Build a field from known weights.

        Parameters
        ----------
        classes
            The labels.
        coef
            Node weights, shape (labels, features).
        edge_coef
            Edge tables, shape (labels, labels) or (edge features, labels, labels); minus infinity forbids a pair.
        intercept
            One weight a label; zero if left out.
        settings
            As in the class.

        Examples
        --------
        >>> crf = CRF.from_weights([0, 1], [[0.0], [3.0]], [[0.0, -2.0], [-2.0, 0.0]])
        >>> round(float(np.exp(crf.log_partition([[0.1, 0.7, 0.3]])[0])), 6)
        33.048679
        """
        made = cls(**settings)
        labels, order = sorted_labels(classes)
        k = len(labels)
        node, edge = finite_numbers(coef, "coef"), log_weights(edge_coef, "edge_coef")
        if edge.ndim == 2:
            edge = edge[None]
        if node.ndim != 2 or len(node) != k or edge.ndim != 3 or edge.shape[1:] != (k, k):
            raise InvalidArgument(
                f"with {k} labels coef has shape ({k}, features) and edge_coef (edge features, {k}, {k}), not {node.shape} "
                f"and {edge.shape}"
            )
        bias = np.zeros(k) if intercept is None else log_weights(intercept, "intercept")
        if bias.shape != (k,):
            raise InvalidArgument(f"intercept= has one weight a label, {k}, not shape {bias.shape}")
        made.classes_ = labels
        made.coef_, made.intercept_ = node[order], bias[order]
        made.edge_coef_ = edge[:, order][:, :, order]
        made.feature_names_ = None
        made._vocabulary = None
        return made

    # -- inside ------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        check_options(self)
        if self.attractive and self.edge_weights != "same":
            raise InvalidArgument("attractive=True needs edge_weights='same': one weight for equal labels")
        if self.inference == "gibbs" and self.solver != "sgd":
            raise InvalidArgument("inference='gibbs' has noisy gradients; use it with solver='sgd'")

    def _read_training(self, inputs: Any, labels: Any) -> tuple[Inputs, NDArray[Any], NDArray[Any]]:
        graph = FieldGraph.of(self.graph)
        read = read_inputs(inputs, graph, grow=True)
        flat = read_labels(self._flat_labels(labels), read.node_ptr, graph)
        return read, flat, np.unique(flat)

    def _fields(self, inputs: Inputs, k: int, own: bool = False) -> Fields:
        return Fields.of(
            k,
            inputs.node_ptr,
            inputs.edge_ptr,
            inputs.tails,
            inputs.heads,
            inputs.edge_features,
            share=not own,
        )

    def _extra(self, inputs: Inputs) -> Array | None:
        """Return further columns of node features that the model makes itself."""
        return None

    def _columns(self, inputs: Inputs) -> Any:
        """Return node features with the model's own columns and the intercept."""
        n = int(inputs.node_ptr[-1])
        parts = [inputs.features]
        extra = self._extra(inputs)
        if extra is not None:
            parts.append(extra)
        if self.fit_intercept:
            parts.append(np.ones((n, 1)))
        if isinstance(inputs.features, np.ndarray):
            return np.ascontiguousarray(np.hstack(parts))
        from scipy.sparse import hstack

        return hstack(parts, format="csr")

    def _take_weights(self, node: Array, edge: Array, vocabulary: Vocabulary | None) -> None:
        self.intercept_ = node[:, -1] if self.fit_intercept else np.zeros(len(node))
        self.coef_ = node[:, :-1] if self.fit_intercept else node
        self.edge_coef_ = edge
        self._vocabulary = vocabulary
        self.feature_names_ = None if vocabulary is None else list(vocabulary)

    def _node_weights(self) -> Array:
        return self.coef_

    def _scored(self, inputs: Any, *, own: bool = False) -> Scored:
        self._need_fit()
        graph = FieldGraph.of(self.graph)
        read = read_inputs(inputs, graph, self._vocabulary)
        return self._potentials(read, graph, own)

    def _potentials(self, read: Inputs, graph: FieldGraph | None, own: bool) -> Scored:
        weights = self._node_weights()
        extra = self._extra(read)
        width = read.features.shape[1] + (0 if extra is None else extra.shape[1])
        if width != weights.shape[1]:
            wanted = weights.shape[1] - (0 if extra is None else extra.shape[1])
            raise InvalidArgument(
                f"the model has {wanted} node features but the inputs have {read.features.shape[1]}"
            )
        if read.edge_features.shape[1] != len(self.edge_coef_):
            raise InvalidArgument(
                f"the model has {len(self.edge_coef_)} edge features but the inputs have {read.edge_features.shape[1]}"
            )
        split = read.features.shape[1]
        scores = np.asarray(read.features @ weights[:, :split].T) + self.intercept_
        if extra is not None:
            for column, weight in zip(extra.T, weights[:, split:].T, strict=True):
                on = column != 0  # elsewhere a weight of minus infinity says nothing
                scores[on] += column[on, None] * weight
        k = len(self.classes_)
        fields = self._fields(read, k, own)
        return Scored(fields, scores, edge_tables(fields.rows, self.edge_coef_), graph)

    def _warn(self, found: Minimum, error: float) -> None:
        if found.interrupted:
            message = (
                f"training was interrupted after {found.iterations} steps; the best weights so far are kept"
            )
        elif not found.converged and found.iterations < self.max_iter:
            message = (
                f"training stopped after {found.iterations} steps because no further step helped, as happens with "
                "approximate marginals that are not smooth in the weights; the best weights so far are kept"
            )
        elif not found.converged:
            message = f"training did not converge in {found.iterations} steps; raise max_iter= or tol="
        elif error > 1e-4:
            message = (
                f"message passing did not converge in training (last change {error:.1g}); try damping=0.5, or "
                "inference='tree-reweighted' or 'pseudo-likelihood'"
            )
        else:
            return
        warn_user(message, ConvergenceWarning)


def log_weights(values: ArrayLike, what: str) -> Array:
    """Return numbers that are finite, or minus infinity for what is forbidden."""
    found = as_numbers(values, what)
    if np.isnan(found).any() or found.max(initial=0.0) == np.inf:
        raise InvalidArgument(f"{what} must hold finite numbers or minus infinity, not {values!r}")
    return found
