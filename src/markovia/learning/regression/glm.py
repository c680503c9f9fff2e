"""Generalised linear models as scikit-learn estimators: linear, logistic, softmax, Poisson, gamma regression.

The objective is a sum over rows, never an average:

    sum_i w_i loss_i + l2 / 2 ||coef||^2 + l1 ||coef||_1

where the loss is half the unit deviance (the negative log likelihood at dispersion 1) and the intercept is not penalised.
So l2 = 1 / C of scikit-learn's LogisticRegression, l2 = alpha of Ridge, l2 = n alpha of PoissonRegressor and GammaRegressor,
l1 = n alpha of Lasso. A row's weight counts it: weight 2 is the row twice.

Solvers: "irls" (Fisher scoring, the default), "newton" (observed curvature; the same with a canonical link), "lbfgs", and
the row-by-row "lms" and "sgd" with `partial_fit`. L1 penalties go with "irls" and "newton", by proximal Newton steps.
References: McCullagh & Nelder (1989). Cost: n p^2 an iteration (IRLS); see `iteratively_reweighted`.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from markovia.errors import ConvergenceWarning, InvalidArgument, warn_user
from markovia.learning.regression.checked_design import (
    CLASSIFIERS,
    link_name,
    problem_of,
    read_rows,
    row_offset,
    settings_of,
    weight_names,
    weights_of,
)
from markovia.learning.regression.families import family_and_link
from markovia.learning.regression.likelihood import GlmLikelihood, likelihood_at
from markovia.learning.regression.nodes import node_of
from markovia.learning.regression.solving import solve
from markovia.learning.regression.summary import GlmSummary, coefficient_table
from markovia.runtime.array_types import Array
from markovia.runtime.checks import POSITIVE, Count, PositiveOrNone, Tolerance, check, check_level
from markovia.runtime.estimator import Estimator, fitting


def _online(model: "GLM") -> bool:
    return model.solver in ("lms", "sgd")


def _classifies(model: "GLM") -> bool:
    return model.family in CLASSIFIERS


class LearnedGlm(Estimator):
    """What a fit sets; see `GLM`."""

    classes_: Any
    dispersion_: float
    deviance_: float
    log_likelihood_: float
    covariance_: Array
    n_rows_: int
    df_resid_: float


@dataclass(eq=False, repr=False)
class GLM(LearnedGlm):
    """A generalised linear model.

    Parameters
    ----------
    family
        "gaussian", "bernoulli" (two classes), "binomial" (shares, or two columns of successes and failures), "poisson",
        "gamma" or "categorical" (several classes, softmax).
    link
        None for the canonical link, or "identity", "logit", "probit", "cloglog", "log", "inverse", "sqrt".
    solver
        "irls", "newton", "lbfgs", "lms" or "sgd".
    l2, l1
        Penalties of the coefficients, in the sum convention of the module; the intercept has none.
    fit_intercept
        Whether there is a constant.
    max_iter
        The most iterations; passes over the data for "lms" and "sgd".
    tol
        Relative improvement at which to stop; by default 1e-14, 1e-10 for "lbfgs" and 1e-6 for "lms" and "sgd".
    learning_rate
        The step of "lms" and the first step of "sgd"; by default from the size of the rows.
    batch_size
        Rows a step of "sgd".
    random_state
        For the order of the rows in "sgd".

    Attributes
    ----------
    coef_, intercept_
        The estimate; shapes (p,) and a number, (1, p) and (1,) for two classes, (K, p) and (K,) for "categorical" (without a
        penalty its first class is the reference and has zeros).
    covariance_, standard_errors_
        Of the intercept, if any, and the coefficients: the inverse Fisher information times the dispersion. With an L2
        penalty the inverse of the penalised information (the approximate posterior under a Gaussian prior); NaN with an L1
        penalty. For "categorical" the free classes follow each other.
    dispersion_
        Pearson's estimate for "gaussian" and "gamma", else 1.
    deviance_, null_deviance_, log_likelihood_
        Of the data the model was fitted to.
    n_iter_, converged_
        How the solver ended.
    path_
        The objective after each iteration.
    classes_
        The classes of a classifier.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1, 2, 5, 11]
    >>> model = GLM(family="poisson").fit(X, y)
    >>> model.coef_.round(4).tolist(), round(float(model.intercept_), 4)
    ([0.8188], -0.055)
    >>> model.predict([[4.0]]).round(2).tolist()
    [25.04]
    """

    family: str = "gaussian"
    link: str | None = None
    _: KW_ONLY
    solver: Literal["irls", "newton", "lbfgs", "lms", "sgd"] = "irls"
    l2: Tolerance = 0.0
    l1: Tolerance = 0.0
    fit_intercept: bool = True
    max_iter: Count = 100
    tol: PositiveOrNone = None
    learning_rate: PositiveOrNone = None
    batch_size: Count = 32
    random_state: Any = None

    # -- learning --------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X
            Rows of numbers.
        y
            The responses.
        sample_weight
            How often each row counts; for "binomial" its number of trials.
        offset
            Added to the linear predictor of each row.
        exposure
            How much each row was exposed, with a log link: its logarithm is an offset.

        Returns
        -------
        GLM
            The model itself.

        Raises
        ------
        InvalidArgument
            If a parameter or a response is outside what the family allows.

        Warns
        -----
        ConvergenceWarning
            If the iterations did not converge, the classes are separated, or columns depend on each other.
        """
        with fitting(self):
            settings = settings_of(self)
            rows, targets = read_rows(self, X, y, reset=True)
            try:
                solved = solve(problem_of(self, rows, targets, sample_weight, offset, exposure), settings)
            except np.linalg.LinAlgError:
                raise InvalidArgument(
                    f"the iterations came to means that the family {self.family!r} does not have under the link "
                    f"{link_name(self)!r}; try another link, scaled columns, or l2"
                ) from None
        self._take(solved)
        for message in solved.messages:
            warn_user(message, ConvergenceWarning)
        return self

    @available_if(_online)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Self:
        """Go once through more rows with the online rule theta += rho (y - mu) x; for the solvers "lms" and "sgd".

        Parameters
        ----------
        X, y, sample_weight, offset, exposure
            As in `fit`.
        classes
            All classes that will ever be seen; needed at the first call of a classifier.
        """
        with fitting(self):
            settings = settings_of(self)
            first = not hasattr(self, "coef_")
            rows, targets = read_rows(self, X, y, reset=first, classes=classes, keep=not first)
            problem = problem_of(self, rows, targets, sample_weight, offset, exposure)
            state = None if first else (self._flat_, self._clock_)
            solved = solve(problem, settings, passes=1, state=state)
        self._take(solved)
        return self

    # -- answering -------------------------------------------------------------------------------------------------

    @available_if(_classifies)  # type: ignore[untyped-decorator]
    def decision_function(
        self,
        X: Any,  # noqa: N803
        *,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Array:
        """Return the linear predictor of a classifier; for two classes one number a row, positive for the second."""
        eta = self.linear_predictor(X, offset=offset, exposure=exposure)
        return np.asarray(eta[:, 1] - eta[:, 0]) if eta.ndim == 2 and eta.shape[1] == 2 else eta

    def linear_predictor(
        self,
        X: Any,  # noqa: N803
        *,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Array:
        """Return the linear predictor: one number a row, or one a class."""
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=np.float64)
        if self.family == "categorical":
            if offset is not None or exposure is not None:
                raise InvalidArgument("a categorical model takes no offset or exposure")
            return np.asarray(rows @ self.coef_.T + self.intercept_)
        moved = row_offset(self, offset, exposure, len(rows))
        return np.asarray(rows @ np.ravel(self.coef_) + float(np.ravel(self.intercept_)[0]) + moved)

    def predict_mean(
        self,
        X: Any,  # noqa: N803
        *,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Array:
        """Return E[y] of each row; for "categorical" the probabilities of the classes."""
        eta = self.linear_predictor(X, offset=offset, exposure=exposure)
        if self.family == "categorical":
            weights = np.exp(eta - eta.max(axis=1, keepdims=True))
            return np.asarray(weights / weights.sum(axis=1, keepdims=True))
        return family_and_link(self.family, self.link)[1].inverse(eta)

    def predict(
        self,
        X: Any,  # noqa: N803
        *,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Any:
        """Return the mean of each row, or the most probable class of a classifier."""
        if self.family not in CLASSIFIERS:
            return self.predict_mean(X, offset=offset, exposure=exposure)
        found = self._probabilities(X, offset, exposure)
        return self.classes_[found.argmax(axis=1)]

    @available_if(_classifies)  # type: ignore[untyped-decorator]
    def predict_proba(
        self,
        X: Any,  # noqa: N803
        *,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
    ) -> Array:
        """Return the probability of each class, in the order of `classes_`."""
        return self._probabilities(X, offset, exposure)

    @available_if(_classifies)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:  # noqa: N803
        """Return the log probability of each class; with logit, probit and softmax also where it is beyond doubles."""
        eta = self.linear_predictor(X)
        if self.family == "categorical":
            top = eta - eta.max(axis=1, keepdims=True)
            return np.asarray(top - np.log(np.exp(top).sum(axis=1, keepdims=True)))
        link = family_and_link(self.family, self.link)[1]
        if link.tails is not None:
            up, down, _ = link.tails(eta)
            return np.column_stack([down, up])
        with np.errstate(divide="ignore"):
            return np.log(self._probabilities(X, None, None))

    def _probabilities(self, X: Any, offset: Any, exposure: Any) -> Array:  # noqa: N803
        if self.family == "categorical":
            return self.predict_mean(X, offset=offset, exposure=exposure)
        eta = self.linear_predictor(X, offset=offset, exposure=exposure)
        link = family_and_link(self.family, self.link)[1]
        if link.tails is not None:
            up, down, _ = link.tails(eta)
            return np.exp(np.column_stack([down, up]))
        mu = link.inverse(eta)
        return np.column_stack([1.0 - mu, mu])

    def score(
        self,
        X: Any,  # noqa: N803
        y: Any,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the share of right classes, or the share of deviance explained (R^2 for a Gaussian)."""
        check_is_fitted(self)
        if self.family in CLASSIFIERS:
            from sklearn.metrics import accuracy_score

            return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))
        response, _ = family_and_link(self.family, self.link)
        rows, targets = read_rows(self, X, y, reset=False)
        problem = problem_of(self, rows, targets, sample_weight, None, None)
        w, observed = problem.weights, problem.y
        average = np.full(len(observed), float(w @ observed) / float(w.sum()))
        null = float(w @ response.unit_deviance(observed, average))
        left = float(w @ response.unit_deviance(observed, self.predict_mean(X)))
        return 1.0 - left / null if null > 0 else float(left == 0)

    def likelihood(
        self,
        X: Any,  # noqa: N803
        y: Any,
        coef: ArrayLike | None = None,
        intercept: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        dispersion: float | None = None,
    ) -> GlmLikelihood:
        """Return the log likelihood of rows, its gradient and its Hessian, at the fitted weights or at any others.

        Parameters
        ----------
        X, y, sample_weight, offset, exposure
            Rows as in `fit`; held-out ones give the log probability of what the model has not seen.
        coef, intercept
            Weights in the shapes of `coef_` and `intercept_`. With `coef` the model need not be fitted; an intercept that is
            left out is then zero. Without it they are the fitted ones.
        dispersion
            For "gaussian" (the variance) and "gamma"; by default the fitted one, and 1 with `coef`.

        Returns
        -------
        GlmLikelihood
            `log_likelihood`, `gradient` and `hessian`, the intercept first; penalties are left out.

        Examples
        --------
        >>> found = GLM(family="bernoulli").likelihood([[0.0], [1.0], [2.0]], [0, 1, 1], coef=[0.0])
        >>> round(found.log_likelihood, 6), found.gradient.tolist()  # 3 log 1/2 and X'(y - mu)
        (-2.079442, [0.5, 1.5])
        >>> found.hessian.tolist()
        [[-0.75, -0.75], [-0.75, -1.25]]
        """
        if dispersion is not None:
            check("dispersion", dispersion, POSITIVE)
        if coef is None:
            check_is_fitted(self)
            if intercept is not None:
                raise InvalidArgument("intercept= comes with coef=; leave both out for the fitted weights")
        fitted = hasattr(self, "coef_")
        model = self if fitted else copy(self)  # reading rows says what the columns and classes are
        rows, targets = read_rows(model, X, y, reset=not fitted)
        problem = problem_of(model, rows, targets, sample_weight, offset, exposure)
        spread = 1.0
        if problem.response is not None and problem.response.dispersed:
            estimated = self.dispersion_ if coef is None and np.isfinite(self.dispersion_) else 1.0
            spread = float(estimated if dispersion is None else dispersion)
        elif dispersion is not None:
            raise InvalidArgument(f"the family {self.family!r} has no dispersion; leave dispersion= out")
        classes = len(model.classes_) if self.family == "categorical" else 1
        flat = weights_of(model, coef, intercept, classes, rows.shape[1])
        return likelihood_at(problem, flat, spread, weight_names(model, getattr(model, "classes_", ())))

    # -- looking ---------------------------------------------------------------------------------------------------

    def summary(self, level: float = 0.95) -> GlmSummary:
        """Return a table of coefficients with standard errors, tests and intervals.

        Parameters
        ----------
        level
            The probability of the intervals.

        Examples
        --------
        >>> model = GLM().fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 3.1, 4.9, 7.0])
        >>> print(model.summary())
        family gaussian, link identity, rows 4, deviance 0.018, log likelihood 5.1316, converged True
                         coef          se           t           p   lower 95%   upper 95%
        intercept        1.03    0.079373      12.977    0.005886     0.68849      1.3715
        x0               1.98    0.042426      46.669  0.00045882      1.7975      2.1625
        """
        check_is_fitted(self)
        check_level("level", level)
        note = ""
        if self.l1:
            note = "No standard errors: an L1 penalty has none in closed form."
        elif self.l2:
            note = "Standard errors from the penalised information; coefficients are shrunk towards zero."
        header = {
            "family": self.family,
            "link": link_name(self),
            "rows": self.n_rows_,
            "deviance": self.deviance_,
            "log likelihood": self.log_likelihood_,
            "converged": self.converged_,
        }
        dispersed = self.family in ("gaussian", "gamma")
        dof = self.df_resid_ if dispersed else None
        return coefficient_table(self._names(), self._flat_, self.covariance_, dof, level, header, note)

    def as_conditional(
        self, columns: Mapping[str, Any] | Sequence[Any] | None = None, *, max_count: int | None = None
    ) -> Any:
        """Return the fitted model as the conditional distribution of a node with discrete parents.

        Parameters
        ----------
        columns
            For each column of X what it is: the name of a parent whose states are numbers (or just two, coded 0 and 1), or a
            pair (parent, state) for a dummy column that is 1 in that state. A mapping by the columns' names, where what it
            leaves out keeps its name, or a list. By default the names of the columns.
        max_count
            For "poisson": counts from this one on become one last state.

        Returns
        -------
        a local model
            For `bn.add(name, ...)`; its probabilities are those of `predict_proba`.

        Raises
        ------
        UnsupportedModel
            For a family without finitely many outcomes.

        Examples
        --------
        >>> import markovia as mk
        >>> import pandas as pd
        >>> data = pd.DataFrame({"dose": [0, 0, 1, 1, 2, 2], "cured": ["no", "no", "no", "yes", "no", "yes"]})
        >>> model = mk.regression.LogisticRegression().fit(data[["dose"]], data["cured"])
        >>> bn = mk.BayesianNetwork()
        >>> bn.add("dose", states=[0, 1, 2], p=[0.5, 0.3, 0.2])
        >>> bn.add("cured", model.as_conditional())
        >>> round(bn.query("cured", given={"dose": 2})["yes"], 6)
        0.602833
        """
        check_is_fitted(self)
        return node_of(self, columns, max_count)

    def _names(self) -> tuple[str, ...]:
        classes = self.classes_ if self.family == "categorical" else ()
        return weight_names(self, classes if getattr(self, "_symmetric_", False) else classes[1:])

    # -- inside ----------------------------------------------------------------------------------------------------

    def _take(self, solved: Any) -> None:
        """Set the learned attributes."""
        for name, value in solved.statistics.items():
            setattr(self, name, value)
        full = solved.coef
        first = 1 if self.fit_intercept else 0
        if self.family == "categorical":
            self.coef_ = full[:, first:]
            self.intercept_ = full[:, 0] if first else np.zeros(len(full))
        elif self.family == "bernoulli":
            self.coef_ = full[None, first:]
            self.intercept_ = full[:1] if first else np.zeros(1)
        else:
            self.coef_ = full[first:]
            self.intercept_ = float(full[0]) if first else 0.0
        self._flat_, self._clock_, self._symmetric_ = solved.flat, solved.clock, solved.symmetric
        self.n_iter_, self.converged_, self.path_ = solved.n_iter, solved.converged, solved.path

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        from sklearn.utils import ClassifierTags, RegressorTags

        tags.target_tags.required = True
        if self.family in CLASSIFIERS:
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(multi_class=self.family == "categorical")
        else:
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags()
            tags.target_tags.positive_only = self.family in ("poisson", "gamma", "binomial")
        return tags
