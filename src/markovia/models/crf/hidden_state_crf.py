"""Conditional random fields with hidden states: what labels alone cannot say is carried by states that are summed out.

    P(y | x)  =  sum over the states h of the labels y of  exp( sum_i W[h_i] . x_i + sum_(i,j) V[h_i, h_j] . x_ij ) / Z(x)

Every label has a few states of its own. Their potentials are those of `CRF` (chains, any graphs) or of `GridCRF` (images),
and nobody ever sees them: a "noun" may be of two kinds that neighbours of different kinds like. With one label a node this
is the latent-dynamic field of Morency, Quattoni and Darrell (2007); with one label an instance (a gesture, a whole picture)
it is the hidden conditional field of Quattoni et al. (2007). Training climbs the likelihood of the labels from random
weights, so the best of some `restarts` is kept; labels may be missing. Cost of one gradient on trees: nodes times (the
states of all labels, squared).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markovia.errors import InvalidArgument
from markovia.learning.conditional_fields.fields import Fields
from markovia.learning.conditional_fields.hidden_state_objective import HiddenStateObjective, clamped_and_free
from markovia.learning.conditional_fields.marginals import Method
from markovia.learning.conditional_fields.objective import EdgeWeights
from markovia.learning.conditional_fields.reading import (
    FieldGraph,
    Inputs,
    code_labels,
    read_inputs,
    read_labels,
)
from markovia.models.crf.base import Scored, sorted_labels
from markovia.models.crf.crf import CRF
from markovia.models.crf.grid_crf import GridCRF
from markovia.optimise.ascent import Climb, best_climb, climb_in_slices
from markovia.optimise.checkpoint import Checkpoint, digest_of
from markovia.optimise.minimise import Minimum, minimise
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, TimeLimit
from markovia.runtime.clock import Clock
from markovia.runtime.seeds import generator

SPREAD = 0.3
"""The standard deviation of the weights that training starts from."""


class _Weights(NamedTuple):
    """How far training is: the weights, the largest entry of their gradient, and the steps made."""

    theta: Array
    error: float
    steps: int


@dataclass(eq=False, repr=False, kw_only=True)
class HiddenStateCRF(CRF):
    """A conditional random field whose labels have hidden states, on chains or any graph.

    Instances and labels are those of `CRF`; a label that is None is not known. With `labels="instances"` Y has one label
    an instance, and graphs are connected.

    Parameters
    ----------
    graph, edge_weights, attractive, C, edge_C, l1, fit_intercept, damping
        As in `CRF`, for states in place of labels.
    states
        Hidden states of each label; with 1 and a label for each node this is `CRF`.
    labels
        Whether "nodes" have labels, or whole "instances".
    inference
        "auto", "exact", "loopy-bp", "tree-reweighted" or "mean-field", for both sums.
    restarts, random_state
        Starts from different random weights, of which the best is kept, and what they are drawn from.
    max_iter, tol, time_limit, progress
        Steps at most; the gradient, a mean over instances, at which to stop; seconds after which the best so far is kept;
        whether to show a bar.
    checkpoint
        A file that keeps the state: training that was killed goes on from there.

    Attributes
    ----------
    classes_
        The labels in order.
    coef_, intercept_, edge_coef_
        Weights as in `CRF`, the states of the first label first.
    training_
        What the optimiser did.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rising = [np.sort(rng.normal(size=5)) for _ in range(20)]
    >>> X, Y = rising + [x[::-1] for x in rising], ["up"] * 20 + ["down"] * 20  # the same numbers, in another order
    >>> crf = HiddenStateCRF(labels="instances", restarts=2, random_state=0).fit(X, Y)
    >>> crf.predict([[-1.0, 0.2, 0.9], [0.8, 0.1, -0.4]]).tolist()
    ['up', 'down']
    """

    decoding: Any = field(default="auto", init=False)
    solver: Any = field(default="lbfgs", init=False)
    batch_size: Any = field(default=16, init=False)
    learning_rate: Any = field(default=0.2, init=False)
    states: Count = 2
    labels: Literal["nodes", "instances"] = "nodes"
    inference: Method = "auto"
    restarts: Count = 1
    time_limit: TimeLimit = None
    checkpoint: str | Path | None = None

    def fit(self, X: Any, Y: Any) -> Self:  # noqa: N803
        """Learn the weights from instances and their labels; see `CRF.fit` for what is refused.

        Parameters
        ----------
        X
            A list of instances.
        Y
            A list of labellings, one label a node, or one label an instance; None where it is not known.
        """
        self._check()
        inputs = self._read_only(X)
        codes, classes = self._coded_labels(Y, inputs)
        if len(classes) < 2:
            raise InvalidArgument("two different labels are needed; these data show fewer")
        k, fields = len(classes), self._fields(inputs, len(classes))
        objective = HiddenStateObjective(
            fields, self._columns(inputs), self._allowed(codes, k), bar=self._bar(k), **self._objective_settings()
        )  # fmt: skip
        found = self._train(objective, digest_of(codes, fields.node_ptr, fields.tails, fields.heads))
        return self._trained(objective, found, classes, inputs.vocabulary)

    @classmethod
    def from_weights(
        cls, classes: ArrayLike, coef: ArrayLike, edge_coef: ArrayLike, intercept: ArrayLike | None = None, **settings: Any
    ) -> Self:  # fmt: skip
        """Build a field from known weights, one row a state, those of the first label first.

        Parameters
        ----------
        classes
            The labels.
        coef, edge_coef, intercept
            As in `CRF.from_weights`, for labels times states.
        settings
            As in the class.

        Examples
        --------
        >>> crf = HiddenStateCRF.from_weights(["a", "b"], np.zeros((4, 1)), np.zeros((4, 4)), [0.0, 0.0, 0.0, 1.1])
        >>> crf.predict_proba([[[0.0]]])[0].round(3).tolist()
        [[0.333, 0.667]]
        """
        labels, order = sorted_labels(classes)
        states = cls(**settings).states
        made = super().from_weights(np.arange(len(labels) * states), coef, edge_coef, intercept, **settings)
        rows = (order[:, None] * states + np.arange(states)).ravel()
        made.classes_ = labels
        made.coef_, made.intercept_ = made.coef_[rows], made.intercept_[rows]
        made.edge_coef_ = made.edge_coef_[:, rows][:, :, rows]
        return made

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return the most probable label of every node (or of every instance), its states summed out."""
        if self.labels == "nodes":
            return super().predict(X)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """Return the distribution of every node's label, one array an instance; or of every instance's, in one array."""
        if self.labels == "nodes":
            return super().predict_proba(X)
        scored = self._scored(X)
        return self._node_beliefs(scored)[scored.fields.node_ptr[:-1]]

    def predict_states(self, X: Any) -> list[Any]:  # noqa: N803
        """Return the distribution of every node's state, one array (nodes, labels times states) an instance."""
        scored = self._scored(X)
        return self._shaped(X, self._cut(self._marginals(scored).beliefs, scored))

    def predict_edges(self, X: Any) -> list[Array]:  # noqa: N803
        """Return the joint distribution of the labels at the ends of every edge, one array an instance."""
        shape = (-1, len(self.classes_), self.states, len(self.classes_), self.states)
        return [pairs.reshape(shape).sum(axis=(2, 4)) for pairs in super().predict_edges(X)]

    def log_prob(self, X: Any, Y: Any) -> Array:  # noqa: N803
        """Return log P(y | x) of each instance; labels that are None are summed over."""
        scored = self._scored(X)
        codes, _ = self._coded_labels(Y, scored.fields, self.classes_)
        free, held = clamped_and_free(
            scored.fields, scored.scores, scored.tables, self._allowed(codes, len(self.classes_)),
            method=self._evaluation(), damping=self.damping,
        )  # fmt: skip
        return held.log_mass - free.log_mass

    def score(self, X: Any, Y: Any) -> float:  # noqa: N803
        """Return the share of nodes (or instances) that `predict` labels right."""
        if self.labels == "nodes":
            return super().score(X, Y)
        return float(np.mean(self.predict(X) == np.asarray(Y)))

    def score_exact(self, X: Any, Y: Any) -> float:  # noqa: N803
        """Return the share of instances that `predict` labels right throughout."""
        return super().score_exact(X, Y) if self.labels == "nodes" else self.score(X, Y)

    # -- inside ------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        super()._check()
        if self.inference in ("pseudo-likelihood", "gibbs"):
            raise InvalidArgument(
                f"hidden states are summed out by 'auto', 'exact', 'loopy-bp', 'tree-reweighted' or 'mean-field', not "
                f"{self.inference!r}"
            )
        if self.checkpoint is not None and (self.restarts > 1 or self.random_state is None):
            raise InvalidArgument(
                "checkpoint= keeps one run; give random_state= a number and leave restarts= at 1"
            )

    def _train(self, objective: HiddenStateObjective, data: str) -> Minimum:
        """Climb from every start, and keep the best."""
        n, lower = max(objective.n_instances, 1), self._lower_bounds(objective)
        rng = generator(self.random_state)
        starts = [rng.normal(scale=SPREAD, size=objective.size) for _ in range(self.restarts)]
        if lower is not None:
            starts = [np.where(objective.is_edge, np.abs(s), s) for s in starts]
        features = objective.features
        if not isinstance(features, np.ndarray):
            features = np.concatenate([features.data, features.indices, features.indptr])
        calls = 0

        def search(state: _Weights, most: int, clock: Clock) -> tuple[_Weights, float]:
            nonlocal calls
            found = minimise(
                objective, state.theta, height=n, lasso=objective.lasso, lower=lower, convex=self.l1 > 0, max_iter=most,
                tol=self.tol, clock=clock,
            )  # fmt: skip
            calls += found.evaluations
            return _Weights(found.point, found.error, state.steps + found.iterations), -found.value

        def run(start: Array, progress: bool | None) -> Climb[_Weights]:
            return climb_in_slices(
                search, _Weights(start, np.inf, 0), steps=self.max_iter, tol=self.tol, progress=progress, name="training",
                checkpoint=Checkpoint(self.checkpoint, digest_of(data, features, start, objective.decay)),
            )  # fmt: skip

        with Clock(self.time_limit, False):
            best = best_climb(run, starts, progress=self.progress)
        theta, error, steps = best.state
        settled = best.converged and error <= 10 * self.tol
        reason = "converged" if settled else "no lower point" if best.converged else best.reason
        history = tuple(-value for value in best.history)
        return Minimum(theta, -best.objective, error, settled, reason, steps, calls, history, 0.0)

    def _warn(self, found: Minimum, error: float) -> None:
        if found.reason != "time limit":
            super()._warn(found, error)

    def _read_only(self, inputs: Any) -> Inputs:
        """Read inputs without labels."""
        return read_inputs(inputs, FieldGraph.of(self.graph), grow=True)

    def _coded_labels(
        self, labels: Any, shape: Inputs | Fields, classes: NDArray[Any] | None = None
    ) -> tuple[Ints, NDArray[Any]]:
        """Return the label code of every node, -1 where it is not known, and the labels in order."""
        sizes = np.diff(shape.node_ptr).tolist()
        if self.labels == "instances":
            self._require_connected(shape)
            if len(labels) != len(sizes):
                raise InvalidArgument(f"there are {len(sizes)} instances but {len(labels)} labels")
            rows = [[y] * n for y, n in zip(labels, sizes, strict=True)]
        else:
            names = getattr(FieldGraph.of(self.graph), "names", None)
            flat = self._flat_labels(labels)
            single = [y for y in flat if isinstance(y, str) or not isinstance(y, Iterable)]
            if single:
                raise InvalidArgument(
                    f"an instance has the label {single[0]!r}, and not one for each node; for one label an instance say "
                    "labels='instances'"
                )
            rows = [[y.get(n) for n in names or ()] if isinstance(y, Mapping) else list(y) for y in flat]
        known = np.array([label is not None for row in rows for label in row])
        if not known.any():
            raise InvalidArgument("no node has a label; give some that are not None")
        # any label will do where there is none, so that the others are read and checked as everywhere
        some = next(label for row in rows for label in row if label is not None)
        filled = [[some if label is None else label for label in row] for row in rows]
        read = read_labels(filled, shape.node_ptr, None)
        found = np.unique(read[known]) if classes is None else classes
        codes = np.full(len(known), -1, dtype=np.int64)
        codes[known] = code_labels(read[known], found)
        return codes, found

    def _require_connected(self, shape: Inputs | Fields) -> None:
        from scipy.sparse import coo_matrix
        from scipy.sparse.csgraph import connected_components

        n = int(shape.node_ptr[-1])
        joined = coo_matrix((np.ones(len(shape.tails)), (shape.tails, shape.heads)), shape=(n, n))
        if connected_components(joined, directed=False)[0] != len(shape.node_ptr) - 1:
            raise InvalidArgument(
                "with labels='instances' every graph is connected and has a node; join its parts by edges"
            )

    def _allowed(self, codes: Ints, k: int) -> NDArray[np.bool_]:
        """Return which states each node may have."""
        own, labels = np.repeat(np.arange(k), self.states), codes[:, None]
        return np.asarray((labels == own) | (labels < 0))

    def _bar(self, k: int) -> Array | None:
        """Return what keeps the nodes of an instance with one label to it: states of different labels never meet."""
        if self.labels == "nodes":
            return None
        own = np.repeat(np.arange(k), self.states)
        return np.where(own[:, None] == own, 0.0, -np.inf)

    def _fields(self, inputs: Inputs, k: int, own: bool = False) -> Fields:
        return super()._fields(inputs, k * self.states, own)

    def _potentials(self, read: Inputs, graph: FieldGraph | None, own: bool) -> Scored:
        scored = super()._potentials(read, graph, own)
        bar = self._bar(len(self.classes_))
        return scored if bar is None else replace(scored, tables=scored.tables + bar)

    def _node_beliefs(self, scored: Scored) -> Array:
        beliefs = self._marginals(scored).beliefs
        return np.asarray(beliefs.reshape(len(beliefs), -1, self.states).sum(axis=2))

    def _best(self, scored: Scored) -> Ints:
        return np.asarray(self._node_beliefs(scored).argmax(axis=1))

    def _node_states(self) -> list[Any]:
        return [f"{label}, {s}" for label in self.classes_.tolist() for s in range(self.states)]


@dataclass(eq=False, repr=False, kw_only=True)
class HiddenStateGridCRF(HiddenStateCRF, GridCRF):
    """A conditional random field on images whose labels have hidden states.

    Images and label images are those of `GridCRF`, features of edges too; a pixel whose label is None is not known. With
    `labels="instances"` Y has one label an image. Everything else is as in `HiddenStateCRF`; small images are summed
    exactly, larger ones by loopy belief propagation, with a warning.

    Examples
    --------
    >>> row, column = np.indices((4, 4))
    >>> boards = [(row + column + s) % 2 + 0.0 for s in (0, 1)] * 4
    >>> stripes = [(column + s) % 2 + 0.0 for s in (0, 1)] * 4
    >>> crf = HiddenStateGridCRF(labels="instances", C=50.0, restarts=2, random_state=0)
    >>> crf.fit(boards + stripes, ["board"] * 8 + ["stripes"] * 8).predict([boards[0], stripes[1]]).tolist()
    ['board', 'stripes']
    """

    edge_weights: EdgeWeights = "full"
    attractive: bool = False
    inference: Method = "auto"

    def _read_only(self, inputs: Any) -> Inputs:
        return self._read_images(inputs)[0]
