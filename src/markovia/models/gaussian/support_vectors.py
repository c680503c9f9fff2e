"""Support vector machines with any covariance (Cortes and Vapnik 1995), and how close a fit is to the optimum.

scikit-learn's solver (libsvm) finds multipliers from the matrix of all pairs; `optimality` computes both objectives and the
Karush-Kuhn-Tucker conditions from them. Classification: the least |w|^2 / 2 + C sum(slack) with
y (w . phi(x) + b) >= 1 - slack; regression: |y - f(x)| <= epsilon + slack. Cost: n^2 to n^3.
"""

from dataclasses import KW_ONLY, dataclass
from itertools import combinations
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from markovia.factors.covariances.algebra import Scaled
from markovia.models.gaussian.kernel_machine import Kernel, KernelMachine, classes_and_codes, targets
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Positive, Tolerance
from markovia.runtime.estimator import check_fitted, fitting


class OptimalityReport(NamedTuple):
    """How close multipliers are to the optimum, where `gap`, `infeasible` and `slackness` are zero."""

    alpha: Array
    """The multiplier of each row."""
    support: Ints
    """The rows where it is not zero."""
    w: Array | None
    """The weights of columns, where the function is linear in them."""
    b: float
    margin: float
    """The distance of the two borders, 2 / |w|, in the space of the covariance."""
    primal: float
    dual: float
    gap: float
    """The objectives, and their difference."""
    infeasible: float
    """The largest of: the sum of signed multipliers, and how far one is outside 0 to C."""
    slackness: float
    """The largest product of a multiplier and what is left of its constraint."""
    margin_errors: int
    """Rows with slack: inside the margin or on the wrong side, or outside the tube."""


@dataclass(eq=False, repr=False)
class _SupportVectors(KernelMachine):
    """What both machines have."""

    covariance: Kernel = None
    _: KW_ONLY
    C: Positive = 1.0
    tol: Positive = 1e-5

    def _solve(self, solver: Any, y: Any) -> None:
        self.covariance_, self._y = self._started(y), y
        self._gram = np.asarray(self.covariance_.value(self.X_fit_))
        self._solver = solver.set_params(kernel="precomputed", C=self.C, tol=self.tol).fit(self._gram, y)
        for name in ("support_", "dual_coef_", "intercept_"):
            setattr(self, name, getattr(self._solver, name))

    def _report(
        self, at: Ints, beta: Array, b: float, alpha: Array, linear: float, left: Array, slack: Array
    ) -> OptimalityReport:
        """Report on rows with signed multipliers `beta`, whose constraints have something `left`."""
        norm = float(beta @ self._gram[np.ix_(at, at)] @ beta)
        primal, dual = 0.5 * norm + self.C * float(slack.sum()), linear - 0.5 * norm
        w = None
        if not self.covariance_.stationary:
            # gradients at all rows; `Scaled` spreads them over columns that the covariance does not look at
            rows, each = self.X_fit_[at], np.tile(beta, (len(at), 1))
            slopes = Scaled(1.0, self.covariance_).input_gradient(rows, rows, each)
            w = slopes[0] if np.ptp(slopes, axis=0).max() <= 1e-9 * np.abs(slopes).max() else None
        infeasible = max(abs(float(beta.sum())), float((alpha - self.C).max()), float(-alpha.min()), 0.0)
        slackness = float(np.maximum(np.abs(alpha * left), np.abs((self.C - alpha) * slack)).max())
        margin, errors = 2.0 / norm**0.5 if norm > 0.0 else np.inf, int((slack > self.tol).sum())
        support = np.flatnonzero(alpha)
        return OptimalityReport(
            alpha, support, w, b, margin, primal, dual, primal - dual, infeasible, slackness, errors
        )


class SupportVectorClassifier(ClassifierMixin, _SupportVectors):  # type: ignore[misc]
    """A classifier with the widest margin; several classes decide pair by pair.

    Parameters
    ----------
    covariance
        How alike rows are. Numbers that are not said are those of the data's scale, kept in `covariance_`.
    C, tol
        The price of a unit of slack; the largest violation of the conditions at which the solver ends.

    Attributes
    ----------
    support_, dual_coef_, intercept_, classes_
        As scikit-learn's `SVC` has them.

    Examples
    --------
    >>> import markovia as mk
    >>> model = SupportVectorClassifier(mk.covariances.RBF(1.0)).fit([[0], [1], [4], [5]], ["a", "a", "b", "b"])
    >>> model.predict([[0.5], [4.5]]).tolist(), bool(model.optimality()["a", "b"].gap < 1e-4)
    (['a', 'b'], True)
    """

    classes_: Array

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Find the multipliers of rows."""
        from sklearn.svm import SVC

        with fitting(self):
            rows = self._learned_rows(X, 2)
            self.classes_, codes = classes_and_codes(self, y, rows)
            self._solve(SVC(), codes)
        return self

    def decision_function(self, X: Any) -> Array:  # noqa: N803
        """Return how far on the side of the second class rows are; with several classes one column a class."""
        return self._asked(X, lambda _, gram: self._solver.decision_function(gram))

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Return the class of each row."""
        codes = self._asked(X, lambda _, gram: self._solver.predict(gram))
        return np.asarray(self.classes_[codes])

    def optimality(self) -> dict[tuple[Any, Any], OptimalityReport]:
        """Return the conditions of the optimum for each pair of classes, of which the second has y = 1."""
        check_fitted(self, "covariance_")
        found, several, codes = {}, len(self.classes_) > 2, self._y[self.support_]
        sign = -1.0 if several else 1.0  # of several classes the solver has the first of a pair at y = 1
        for number, (i, j) in enumerate(combinations(range(len(self.classes_)), 2)):
            beta = np.zeros(len(self._y))
            # a multiplier of class i against j stands in row j - 1, and the other way round in row i
            for one, row in ((i, j - 1), (j, i)):
                beta[self.support_[codes == one]] = sign * self.dual_coef_[row * several][codes == one]
            at, b = np.flatnonzero(np.isin(self._y, (i, j))), sign * float(self.intercept_[number])
            y, beta = np.where(self._y[at] == j, 1.0, -1.0), beta[at]
            ahead = y * (self._gram[np.ix_(at, at)] @ beta + b) - 1.0
            slack, alpha = np.maximum(-ahead, 0.0), beta * y
            report = self._report(at, beta, b, alpha, float(alpha.sum()), ahead + slack, slack)
            found[self.classes_[i], self.classes_[j]] = report
        return found


@dataclass(eq=False, repr=False)
class SupportVectorRegressor(RegressorMixin, _SupportVectors):  # type: ignore[misc]
    """A regression that leaves errors up to epsilon alone; C and epsilon are in the unit of the targets.

    Parameters
    ----------
    covariance, C, tol
        As in `SupportVectorClassifier`.
    epsilon
        The half width of the tube in which errors count nothing.

    Examples
    --------
    >>> import markovia as mk
    >>> model = SupportVectorRegressor(mk.covariances.RBF(1.0), C=10.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    >>> model.predict([[1.0]]).round(2).tolist(), model.optimality().gap < 1e-3
    ([0.9], True)
    """

    epsilon: Tolerance = 0.1

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Find the multipliers of rows."""
        from sklearn.svm import SVR

        with fitting(self):
            rows = self._learned_rows(X, 2)
            self._solve(SVR(epsilon=self.epsilon), targets(self, y, rows))
        return self

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Return the prediction for each row."""
        return self._asked(X, lambda _, gram: self._solver.predict(gram))

    def optimality(self) -> OptimalityReport:
        """Return the conditions of the optimum."""
        check_fitted(self, "covariance_")
        beta, b = np.zeros(len(self._y)), float(self.intercept_[0])
        beta[self.support_] = self.dual_coef_[0]
        error = self._y - self._gram @ beta - b
        slack, alpha = np.maximum(np.abs(error) - self.epsilon, 0.0), np.abs(beta)
        linear = float(self._y @ beta) - self.epsilon * float(alpha.sum())
        left = self.epsilon + slack - np.sign(beta) * error
        return self._report(np.arange(len(beta)), beta, b, alpha, linear, left, slack)
