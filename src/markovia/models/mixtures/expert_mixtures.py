"""Mixtures of regressions and of experts, as estimators of scikit-learn."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.learning.latent.expert_mixtures import Experts, Units, first_experts, learn_experts
from markovia.models.classifiers.feature_rows import check_room, numbers
from markovia.models.classifiers.input_checks import weights_of_rows
from markovia.optimise.ascent import Climb, best_climb
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, TimeLimit, Tolerance
from markovia.runtime.clock import Clock
from markovia.runtime.estimator import Estimator, fitting
from markovia.runtime.seeds import generator

CURE = "a regression needs every cell: fill them or drop the row"
STARTS, SHORT = 10, 10
"""Starts that are tried for each run, and the turns that each gets before the best goes on."""


def _classifies(model: "_ExpertMixture") -> bool:
    return model.expert == "logistic"


@dataclass(eq=False, repr=False)
class _ExpertSettings(RegressorMixin, Estimator):  # type: ignore[misc]
    """The settings that both have."""

    n_components: Count = 2
    _: KW_ONLY
    l2: Tolerance = 0.0
    n_init: Count = 1
    max_iter: Count = 1000
    tol: Tolerance = 1e-7
    random_state: Any = None
    time_limit: TimeLimit = None


class _ExpertMixture(_ExpertSettings):
    """What both have in common: `p(y | x) = sum_k g_k(x) p(y | x, k)`."""

    expert: str
    _gated: bool

    coef_: Array
    intercept_: Array
    variances_: Array | None
    n_iter_: int
    converged_: bool
    history_: list[float]
    classes_: Array
    n_features_in_: int

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # noqa: N803
        """Learn components from rows and their targets."""
        with fitting(self), Clock(self.time_limit, False):
            x = self._design(X, reset=True)
            check_room("n_components", self.n_components, x)
            target = self._targets(y, len(x), reset=True)
            self._learn(x, target, weights_of_rows(sample_weight, len(x)))
        return self

    def _learn(self, x: Array, y: Array, weights: Array) -> None:
        units = Units.of(x, y, weights, logistic=self.expert == "logistic")
        x, y = units.standard(x, y)
        rng, k = generator(self.random_state), int(self.n_components)
        settings: dict[str, Any] = {
            "logistic": self.expert == "logistic", "gated": self._gated, "l2": float(self.l2)
        }  # fmt: skip

        def short(i: int, progress: bool | None) -> Climb[Experts]:
            begin = first_experts(x, y, weights, k, rng, **settings, around=bool(i % 2))
            return learn_experts(begin, x, y, weights, max_iter=SHORT, tol=0.0)

        def run(_: int, progress: bool | None) -> Climb[Experts]:
            begin = best_climb(short, range(STARTS if k > 1 else 1)).state
            return learn_experts(begin, x, y, weights, max_iter=self.max_iter, tol=self.tol)

        best = best_climb(run, range(self.n_init))
        self._keep(units.restored(best.state))
        self.n_iter_, self.converged_ = len(best.history), best.converged
        self.history_ = [value - float(np.log(units.y_scale)) for value in best.history]
        best.warn(self.tol)

    def _keep(self, made: Experts) -> None:
        self.intercept_, self.coef_, self.variances_ = made.coefs[:, 0], made.coefs[:, 1:], made.variances

    def _gate(self) -> Array:
        """Return the scores of the gate, a column of intercepts first."""
        raise NotImplementedError

    def _experts(self) -> Experts:
        check_is_fitted(self, "coef_")
        coefs = np.column_stack([self.intercept_, self.coef_])
        return Experts(coefs, self.variances_, self._gate(), self._gated, float(self.l2))

    def _design(self, X: Any, *, reset: bool) -> Array:  # noqa: N803
        rows = numbers(self, X, reset=reset, gaps=CURE)
        return np.column_stack([np.ones(len(rows)), rows])

    def _targets(self, y: Any, n: int, *, reset: bool) -> Array:
        from sklearn.utils import column_or_1d

        if y is None:
            raise InvalidArgument(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y is None."
            )
        found = column_or_1d(y, warn=True)
        if len(found) != n:
            raise InvalidArgument(f"there are {n} rows, but y has {len(found)} entries; give one a row")
        if self.expert == "linear":
            try:
                numbers = found.astype(np.float64)
            except (TypeError, ValueError):
                raise InvalidArgument(
                    "linear experts need a y of numbers; expert='logistic' takes two classes"
                ) from None
            if not np.isfinite(numbers).all():
                raise InvalidArgument(f"y[{int(np.argmin(np.isfinite(numbers)))}] is NaN or inf; y is finite")
            return np.asarray(numbers)
        if reset:
            self.classes_ = np.unique(found)
            if len(self.classes_) != 2:
                raise InvalidArgument(
                    f"logistic experts need a y of two classes, not of {len(self.classes_)}"
                )
        elif strange := sorted(set(found.tolist()) - set(self.classes_.tolist()), key=str):
            raise InvalidArgument(
                f"y has {strange[0]!r}, which is none of the classes {self.classes_.tolist()}"
            )
        return np.asarray(found == self.classes_[1], dtype=np.float64)

    def predict_mean(self, X: Any) -> Array:  # noqa: N803
        """Return the mean of y given each row; with logistic experts, the probability of the second class."""
        made = self._experts()
        x = self._design(X, reset=False)
        return np.asarray((np.exp(made.log_gates(x)) * made.means(x)).sum(axis=1))

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Return the mean of y given each row; with logistic experts, the more probable class."""
        mean = self.predict_mean(X)
        return mean if self.expert == "linear" else np.asarray(self.classes_[(mean > 0.5).astype(int)])

    def predict_components(self, X: Any, y: Any = None) -> Array:  # noqa: N803
        """Return the probability of each component given each row, and its target where that is known."""
        made = self._experts()
        x = self._design(X, reset=False)
        if y is None:
            return np.asarray(np.exp(made.log_gates(x)))
        joint = made.log_joint(x, self._targets(y, len(x), reset=False))
        return np.asarray(np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None]))

    def predict_means(self, X: Any) -> Array:  # noqa: N803
        """Return the mean of y in each component, (rows, components)."""
        made = self._experts()
        return made.means(self._design(X, reset=False))

    def log_likelihoods(self, X: Any, y: Any) -> Array:  # noqa: N803
        """Return log p(y | x) of each row."""
        made = self._experts()
        x = self._design(X, reset=False)
        return np.asarray(
            np.logaddexp.reduce(made.log_joint(x, self._targets(y, len(x), reset=False)), axis=1)
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """Return R^2; with logistic experts, the share of classes that are right."""
        from sklearn.metrics import accuracy_score

        if self.expert == "linear":
            return float(super().score(X, y, sample_weight=sample_weight))
        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    def network(self) -> Any:
        """Refuse: p(y | x) says nothing of x, and a network would have to."""
        raise UnsupportedModel(
            f"a {type(self).__name__} says how y follows from x and nothing of x, so it is no network of the columns"
        )

    def bic(self, X: Any, y: Any) -> float:  # noqa: N803
        """Return the Bayesian information criterion; smaller is better."""
        logs = self.log_likelihoods(X, y)
        return float(self._experts().n_free * np.log(len(logs)) - 2.0 * logs.sum())

    def aic(self, X: Any, y: Any) -> float:  # noqa: N803
        """Return Akaike's information criterion; smaller is better."""
        return float(2.0 * self._experts().n_free - 2.0 * self.log_likelihoods(X, y).sum())


class RegressionMixture(_ExpertMixture):
    """Rows from several linear regressions, and which one a row follows is not seen.

    Parameters
    ----------
    n_components
        The number of regressions.
    l2
        The penalty l2 / 2 times the squared coefficients, for columns and y of variance 1.
    n_init
        Runs from different starts, of which the best counts.
    max_iter, tol
        The most turns, and the rise of the log likelihood a row below which they end.
    random_state
        The seed.
    time_limit
        Seconds after which the best so far is kept; so does Ctrl-C.

    Attributes
    ----------
    weights_ : array (n_components,)
        The share of each regression.
    coef_, intercept_, variances_
        The coefficients (n_components, n_features), the intercepts and the variances around the lines.
    n_iter_, converged_, history_
        Turns, whether the likelihood stopped to rise, and the log likelihood a row after each.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, up = rng.uniform(-1, 1, (400, 1)), rng.random(400) < 0.5
    >>> y = np.where(up, 2.0, -2.0) * x[:, 0] + 0.1 * rng.normal(size=400)
    >>> model = RegressionMixture(2, random_state=0).fit(x, y)
    >>> sorted(model.coef_.ravel().round(1).tolist())
    [-2.0, 2.0]
    """

    _gated = False
    expert = "linear"

    def _keep(self, made: Experts) -> None:
        super()._keep(made)
        self.weights_ = np.exp(made.log_gates(np.eye(1, made.gate.shape[1]))[0])

    def _gate(self) -> Array:
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(self.weights_, 1e-300))
        return np.column_stack([logs, np.zeros_like(self.coef_)])


@dataclass(eq=False, repr=False)
class MixtureOfExperts(_ExpertMixture):
    """Regressions that each know a part of the space, and a gate that says which to trust where.

    Parameters
    ----------
    n_components
        The number of experts.
    expert
        "linear", or "logistic" for a y of two classes.
    l2
        The penalty l2 / 2 times the squared coefficients of experts and gate, for columns and y of variance 1; without one
        the gate of parts that do not overlap has no largest likelihood.
    n_init, max_iter, tol, random_state, time_limit
        As in `RegressionMixture`.

    Attributes
    ----------
    gate_coef_, gate_intercept_
        The scores of the gate, (n_components, n_features) and (n_components,).
    coef_, intercept_, variances_
        As in `RegressionMixture`; logistic experts have no variances.
    n_iter_, converged_, history_
        Turns, whether the objective stopped to rise, and the penalised log likelihood a row after each.

    Examples
    --------
    >>> x = np.random.default_rng(0).uniform(-3, 3, (500, 1))
    >>> model = MixtureOfExperts(2, random_state=0).fit(x, np.abs(x[:, 0]))
    >>> model.predict([[-2.0], [2.0]]).round(1).tolist()
    [2.0, 2.0]
    """

    _gated = True

    _: KW_ONLY
    expert: Literal["linear", "logistic"] = "linear"
    l2: Tolerance = 0.01

    def _keep(self, made: Experts) -> None:
        super()._keep(made)
        self.gate_intercept_, self.gate_coef_ = made.gate[:, 0], made.gate[:, 1:]

    def _gate(self) -> Array:
        return np.column_stack([self.gate_intercept_, self.gate_coef_])

    @available_if(_classifies)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Return the probability of each class, with logistic experts."""
        mean = self.predict_mean(X)
        return np.column_stack([1.0 - mean, mean])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if _classifies(self):
            from sklearn.utils import ClassifierTags

            tags.estimator_type, tags.regressor_tags = "classifier", None
            tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags
