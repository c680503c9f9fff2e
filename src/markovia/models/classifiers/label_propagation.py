"""Semi-supervised classification by label propagation on a graph of similar rows, as a scikit-learn estimator.

The labels of all rows are a Gaussian Markov random field (`markovia.learning.prediction.label_propagation`). Given
labels are held fixed (Zhu, Ghahramani & Lafferty, 2003), or pulled towards what was given with a finite weight, so that
wrong labels can be overruled. Cost: the graph (quadratic in the rows for "rbf", k nearest neighbours for "knn") and one
linear system. Unlabelled rows help only if their distribution has to do with the labels; use it where classes form
clusters.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from markovia.errors import InvalidArgument
from markovia.learning.prediction.label_propagation import propagate_labels, unreached
from markovia.models.classifiers.input_checks import class_codes, labels
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, PositiveOrNone
from markovia.runtime.estimator import Estimator, fitting


@dataclass(eq=False, repr=False, kw_only=True)
class LabelPropagation(ClassifierMixin, Estimator):  # type: ignore[misc]
    """Spread known labels to similar rows.

    Parameters
    ----------
    graph
        "rbf" (weights `exp(-gamma |x - x'|^2)` between all rows), "knn" (weight one to the nearest neighbours, either
        way), or "precomputed": X is the symmetric matrix of weights, dense or sparse.
    gamma
        Of the "rbf" graph; None for one over the number of features times their variance.
    n_neighbors
        Of the "knn" graph.
    clamping
        None to hold the given labels fixed; a positive number to tie each labelled row to its given label with that
        weight, so that it can change.
    unlabelled
        The label that means "unknown".
    unreachable
        What rows are that no path connects to a label: "error", or "uniform" (all classes equally probable).
    solver
        "direct", "cg", or "auto"; see `markovia.learning.propagate_labels`.

    Attributes
    ----------
    classes_
        The labels, without the unknown one.
    label_distributions_
        The probability of each class for every training row.
    transduction_
        The most probable label of every training row.

    Examples
    --------
    >>> X = [[0.0], [0.2], [0.4], [3.0], [3.2], [3.4]]
    >>> model = LabelPropagation(gamma=2.0).fit(X, [0, -1, -1, -1, -1, 1])
    >>> model.transduction_.tolist(), model.predict([[0.3], [3.1]]).tolist()
    ([0, 0, 0, 1, 1, 1], [0, 1])
    """

    graph: Literal["rbf", "knn", "precomputed"] = "rbf"
    gamma: PositiveOrNone = None
    n_neighbors: Count = 7
    clamping: PositiveOrNone = None
    unlabelled: Any = -1
    unreachable: Literal["error", "uniform"] = "error"
    solver: Literal["auto", "direct", "cg"] = "auto"

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Spread the labels, and return the estimator.

        Parameters
        ----------
        X
            One row a case, labelled or not; or the matrix of weights.
        y
            The labels; `unlabelled` where unknown.
        """
        with fitting(self):
            return self._fit(X, y)

    def _fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        from scipy import sparse

        table = validate_data(
            self, X, dtype=np.float64, accept_sparse="csr" if self.graph == "precomputed" else False
        )
        known, target = self._labelled(table, y)
        self.classes_ = np.unique(target)
        self._rows = table
        self.gamma_ = self._width(table)
        weights = self._graph(table)
        given = np.zeros((len(known), len(self.classes_)))
        given[np.arange(len(known)), class_codes(target, self.classes_)] = 1.0
        n = table.shape[0]
        if self.clamping is None:
            free = np.setdiff1d(np.arange(n), known)
            reach, inner = weights[known][:, free], weights[free][:, free]
        else:
            free = np.arange(n)
            places = (np.arange(len(known)), known)
            reach = sparse.csr_matrix((np.full(len(known), float(self.clamping)), places), (len(known), n))
            inner = weights
        spread = np.full((n, len(self.classes_)), 1.0 / len(self.classes_))
        if self.clamping is None:
            spread[known] = given
        if len(free):
            lost = unreached(reach, inner)
            if lost.any() and self.unreachable == "error":
                raise InvalidArgument(
                    f"{int(lost.sum())} rows are connected to no labelled one (the first is row {free[lost][0]}); more "
                    f"neighbours or a smaller gamma connect them, unreachable='uniform' leaves them open"
                )
            kept = np.flatnonzero(~lost)
            # the columns sum to one, so the last one needs no solving
            found = propagate_labels(
                given[:, :-1], reach[:, kept], inner[kept][:, kept], solver=self._solver(table)
            ).values
            spread[free[kept]] = np.column_stack([found, 1.0 - found.sum(axis=1)])
        # rows sum to one and lie between zero and one, but for rounding
        spread = np.clip(spread, 0.0, None)
        self.label_distributions_ = spread / spread.sum(axis=1, keepdims=True)
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
        return self

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Return the probabilities of the classes for new rows: averages over training rows, weighted by the graph.

        With a precomputed graph X holds the weights of new rows to the training rows.
        """
        check_is_fitted(self)
        sparse_too = "csr" if self.graph == "precomputed" else False
        table = validate_data(self, X, reset=False, dtype=np.float64, accept_sparse=sparse_too)
        spread = self.label_distributions_
        if self.graph == "knn":
            near = NearestNeighbors(n_neighbors=min(self.n_neighbors, len(self._rows))).fit(self._rows)
            mixed = spread[near.kneighbors(table, return_distance=False)].sum(axis=1)
        else:
            weights = rbf_kernel(table, self._rows, gamma=self.gamma_) if self.graph == "rbf" else table
            mixed = np.asarray(weights @ spread)
        total = mixed.sum(axis=1, keepdims=True)
        far = total[:, 0] <= 0
        if far.any():
            if self.unreachable == "error":
                raise InvalidArgument(
                    f"row {int(far.argmax())} has weight zero to every training row; a smaller gamma connects it, "
                    f"unreachable='uniform' leaves it open"
                )
            mixed[far], total[far] = 1.0 / len(self.classes_), 1.0
        return np.asarray(mixed / total)

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Return the most probable class of new rows."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _labelled(self, table: Any, y: Any) -> tuple[Any, Array]:
        """Return which rows have a label, and their labels."""
        if y is None:
            labels(self, y, table)
        check_consistent_length(table, y)
        # objects, so that a list of names and -1 does not become names only
        mixed = np.asarray(column_or_1d(np.asarray(y, dtype=object), warn=True))
        blank = mixed == self.unlabelled
        known = np.flatnonzero(~np.asarray(blank, dtype=bool))
        if not len(known):
            raise InvalidArgument(f"no row has a label: all are {self.unlabelled!r}")
        return known, labels(self, np.array(mixed[known].tolist()), known)

    def _width(self, table: Any) -> float:
        if self.graph != "rbf" or self.gamma is not None:
            return float(self.gamma or 1.0)
        spread = float(table.var())
        return 1.0 / (table.shape[1] * spread) if spread > 0 else 1.0

    def _solver(self, table: Any) -> str:
        """Neighbours in up to three dimensions make almost planar graphs, which are factorised with little fill."""
        planar = self.solver == "auto" and self.graph == "knn" and table.shape[1] <= 3
        return "direct" if planar else self.solver

    def _graph(self, table: Any) -> Any:
        """Return the symmetric weights between training rows, without loops."""
        from scipy import sparse

        if self.graph == "precomputed":
            if table.shape[0] != table.shape[1]:
                raise InvalidArgument(f"a graph's weights are a square matrix, not of shape {table.shape}")
            weights = table.copy()
            if weights.min() < 0:
                raise InvalidArgument("a graph's weights are not negative, but X has a negative entry")
        elif self.graph == "rbf":
            weights = rbf_kernel(table, gamma=self.gamma_)
        else:
            k = min(self.n_neighbors, len(table) - 1)
            near = NearestNeighbors(n_neighbors=max(1, k)).fit(table)
            one_way = near.kneighbors_graph(mode="connectivity") if k else sparse.csr_matrix((1, 1))
            return one_way.maximum(one_way.T).tocsr()
        if sparse.issparse(weights):
            return (weights - sparse.diags_array(weights.diagonal())).tocsr()
        np.fill_diagonal(weights, 0.0)
        return weights

    @property
    def _input_tags(self) -> Mapping[str, bool]:
        matrix = self.graph == "precomputed"
        return {"pairwise": matrix, "sparse": matrix}
