"""Relevance vector machines (Tipping 2001): a few weighted bumps at rows, with precisions of weights by evidence.

f(x) = w_0 + sum_j w_j k(x, x_j), where most weights are zero; numbers of the covariance that are not said are those of the
data's scale. Cost: n^2 for each vector that is kept, and n^2 numbers.
"""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from markovia.factors.gaussian.linear_gaussian import LinearGaussian
from markovia.learning.processes.relevance import RelevantWeights, relevant_weights
from markovia.models.gaussian.kernel_machine import Kernel, KernelMachine, classes_and_codes, targets
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.optimise.ascent import Climb
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, Tolerance
from markovia.runtime.estimator import check_fitted, fitting


@dataclass(eq=False, repr=False)
class _RelevanceVectors(KernelMachine):
    """What both machines have."""

    covariance: Kernel = None
    _: KW_ONLY
    max_iter: Count = 1000
    tol: Tolerance = 1e-6

    def _weigh(self, y: Array, binary: bool) -> Climb[RelevantWeights]:
        self.covariance_ = self._started(y)
        design = self._asked(self.X_fit_, _design)
        found = relevant_weights(design, y, binary=binary, max_iter=self.max_iter, tol=self.tol)
        found.warn(self.tol)
        return found

    def _moments(self, X: Any, weights: RelevantWeights) -> tuple[Array, Array]:  # noqa: N803
        """Return mean and variance of the function at rows."""
        phi = self._asked(X, _design)[:, weights.kept]
        return phi @ weights.mean, np.einsum("ij,jk,ik->i", phi, weights.cov, phi)


def _design(_: Any, gram: Array) -> Array:
    """Return the columns that weights multiply: a constant, and a bump at each row."""
    return np.column_stack([np.ones(len(gram)), gram])


class RelevanceVectorRegressor(RegressorMixin, _RelevanceVectors):  # type: ignore[misc]
    """A sparse regression on bumps at rows, with fitted precisions of weights and fitted noise.

    Parameters
    ----------
    covariance
        The bump; an RBF by default. Numbers that are not said are those of the data's scale, kept in `covariance_`.
    max_iter, tol
        Steps at most, each of one vector, and the gain of evidence a row below which they end.

    Attributes
    ----------
    weights_, log_evidence_, relevance_
        `kept`, `precisions`, `noise`, `mean` and `cov` of weights (number 0 is the constant, number j row j - 1); the log
        evidence; and the rows that are kept.

    Examples
    --------
    >>> import markovia as mk
    >>> X = np.linspace(-5.0, 5.0, 60)[:, None]
    >>> y = np.sinc(X[:, 0]) + 0.05 * np.random.default_rng(1).normal(size=60)
    >>> model = RelevanceVectorRegressor(mk.covariances.RBF(1.0)).fit(X, y)
    >>> len(model.relevance_) < 12, round(model.weights_.noise**0.5, 2)
    (True, 0.05)
    """

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Find the vectors that are needed, their precisions, and the noise."""
        with fitting(self):
            rows = self._learned_rows(X, 3)
            found = self._weigh(targets(self, y, rows), binary=False)
            self.weights_, self.log_evidence_, self.n_iter_ = found.state, found.objective, len(found.history)
            self.relevance_ = self.weights_.kept[self.weights_.kept > 0] - 1
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:  # noqa: N803
        """Return the mean at each row; with `return_std` also the deviation of a new target."""
        check_fitted(self, "covariance_")
        mean, variance = self._moments(X, self.weights_)
        return (mean, np.sqrt(variance + self.weights_.noise)) if return_std else mean

    def network(self, X: Any = None) -> BayesianNetwork:  # noqa: N803
        """Return the network: a node `w0`, `w3`, ... for each weight, and `y0`, `y1`, ... linear in them for rows of X.

        Without X the rows are those learned from; given their targets the weights are as in `weights_`.
        """
        check_fitted(self, "covariance_")
        design, kept = self._asked(self.X_fit_ if X is None else X, _design), self.weights_
        network, names = BayesianNetwork(), [f"w{j}" for j in kept.kept]
        for name, precision in zip(names, kept.precisions, strict=True):
            network.add(name, LinearGaussian(0.0, {}, 1.0 / float(precision)))
        for i, row in enumerate(design[:, kept.kept]):
            network.add(f"y{i}", LinearGaussian(0.0, dict(zip(names, row.tolist(), strict=True)), kept.noise))
        return network


class RelevanceVectorClassifier(ClassifierMixin, _RelevanceVectors):  # type: ignore[misc]
    """A sparse logistic regression on bumps at rows; several classes are each told from the rest.

    Parameters are those of `RelevanceVectorRegressor`; `weights_` has one entry a class, one in all for two classes.

    Examples
    --------
    >>> import markovia as mk
    >>> model = RelevanceVectorClassifier(mk.covariances.RBF(1.0)).fit([[0.0], [1.0], [4.0], [5.0]], ["a", "a", "b", "b"])
    >>> model.predict([[0.5], [4.5]]).tolist()
    ['a', 'b']
    """

    classes_: Array

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Find the vectors that are needed, and the precisions of their weights."""
        with fitting(self):
            rows = self._learned_rows(X, 3)
            self.classes_, codes = classes_and_codes(self, y, rows)
            ones = range(1 if len(self.classes_) == 2 else 0, len(self.classes_))
            found = [self._weigh((codes == one).astype(np.float64), binary=True) for one in ones]
            self.weights_, self.log_evidence_ = [one.state for one in found], [one.objective for one in found]
            self.n_iter_ = max(len(one.history) for one in found)
            kept = np.unique(np.concatenate([one.kept for one in self.weights_]))
            self.relevance_ = kept[kept > 0] - 1
        return self

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Return probabilities of classes, averaged over the weights (MacKay 1992)."""
        check_fitted(self, "covariance_")
        columns = []
        for weights in self.weights_:
            mean, variance = self._moments(X, weights)
            columns.append(1.0 / (1.0 + np.exp(-mean / np.sqrt(1.0 + np.pi / 8.0 * variance))))
        found = np.column_stack([1.0 - columns[0], *columns] if len(columns) == 1 else columns)
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Return the most probable class of each row."""
        codes = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[codes])
