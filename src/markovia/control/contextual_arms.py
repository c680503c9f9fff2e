"""What is known of the arms of a contextual bandit: a fitted model for each, asked at the context.

    a Gaussian process (`mk.GaussianProcess`)     the posterior of its function; a dot product is Bayesian linear
                                                  regression
    a GLM (`mk.regression.GLM` and its kin)       the normal around its coefficients (Laplace), penalty as prior
    any other estimator with fit and predict      its predictions when fitted to rows drawn again (bootstrap), with two
                                                  rows more whose rewards are the least or the largest seen, as a prior

Numbers are compared on the scale of the linear predictor or of the function, of which mean rewards are increasing.
Models are fitted anew after an arm has `refit` new rows. References: Agrawal and Goyal (2013); Srinivas, Krause, Kakade
and Seeger (2010); Osband and Van Roy (2015). Cost of a step: a fit of the pulled arm's model, times the draws of a
bootstrap.
"""

from collections.abc import Callable, Hashable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from markovia.control.arms import CURE, Arms
from markovia.errors import InvalidArgument
from markovia.learning.regression.glm import GLM
from markovia.runtime.array_types import Array
from markovia.runtime.checks import numbers

BOOTSTRAPS = 20
"""Fits to rows drawn again, of a model that has no posterior."""
PRIOR_ROWS = 2
"""Rows with extreme rewards in each of them: else an arm whose first rewards are equal counts as known."""
FAMILIES = ("gaussian", "binomial", "bernoulli", "poisson", "gamma")
"""Families of a GLM with one number a reward."""


class FittedArms(Arms):
    """Arms whose mean rewards are functions of a context, learned by a model an arm."""

    contextual = True

    def __init__(
        self, model: Any, names: Sequence[Hashable], *, refit: int = 1, rng: np.random.Generator
    ) -> None:
        if not hasattr(model, "fit") or not hasattr(model, "predict"):
            raise InvalidArgument(f"{CURE}, not {model!r:.60}")
        if isinstance(model, GLM) and model.family not in FAMILIES:
            raise InvalidArgument(f"a reward is one number, which family={model.family!r} does not have")
        super().__init__(names)
        self.refit, self.width = refit, 0
        self._rows: list[list[Array]] = [[] for _ in names]
        self._rewards: list[list[float]] = [[] for _ in names]
        self._learned = [0] * len(names)
        kind = (
            _ProcessArm
            if hasattr(model, "function")
            else _GlmArm
            if isinstance(model, GLM)
            else _BootstrapArm
        )
        self._models = [kind(deepcopy(model), rng) for _ in names]

    @property
    def posteriors(self) -> list[Any]:
        """The fitted model of each arm; None before it has seen rows."""
        return [m.fitted for m in self._models]

    def row(self, context: Any) -> Array:
        """Return a context as a row of numbers, which all have one length."""
        rule = "context= is a list of finite numbers, as many in each step"
        found = numbers(context, rule)
        found = found.reshape(1) if found.ndim == 0 else found
        if found.ndim != 1 or not np.isfinite(found).all() or not found.size:
            raise InvalidArgument(f"{rule}, not {context!r:.60}")
        if not self.width:
            self.width = len(found)
            self.least_pulls = max(m.least_rows(self.width) for m in self._models)
        if len(found) != self.width:
            raise InvalidArgument(f"{rule}: {self.width} before, {len(found)} now")
        return found

    def observe(self, arm: int, reward: float, context: Any) -> None:
        """Keep the row; the arm's model is fitted when it is next asked."""
        self._rows[arm].append(self.row(context))
        self._rewards[arm].append(reward)
        self.pulls[arm] += 1

    def means(self, context: Any) -> Array:
        """Return the predicted rewards, on the scale of the linear predictor or function."""
        return self._asked(context, lambda model, row: model.moments(row)[0])

    def draw(self, context: Any, rng: np.random.Generator) -> Array:
        """Draw from what each model leaves open."""
        return self._asked(context, lambda model, row: model.draw(row, rng))

    def quantile(self, level: float, context: Any) -> Array:
        """Return quantiles of what each model leaves open."""
        return self._asked(context, lambda model, row: model.quantile(row, level))

    def upper_bound(self, log_time: float, context: Any) -> Array:
        """Return the mean plus sqrt(2 log f(t)) deviations."""

        def bound(model: "_ArmModel", row: Array) -> float:
            mean, deviation = model.moments(row)
            return mean + deviation * float(np.sqrt(2.0 * log_time))

        return self._asked(context, bound)

    def _asked(self, context: Any, question: Callable[["_ArmModel", Array], float]) -> Array:
        row = self.row(context)
        for arm, model in enumerate(self._models):
            n = len(self._rewards[arm])
            if n > self._learned[arm] and (model.fitted is None or n - self._learned[arm] >= self.refit):
                seen = [reward for one in self._rewards for reward in one]
                model.learn(np.array(self._rows[arm]), np.array(self._rewards[arm]), (min(seen), max(seen)))
                self._learned[arm] = n
        return np.array([question(model, row) for model in self._models])


class _ArmModel:
    """One arm's model: a normal law of its value at a row, by mean and deviation."""

    def __init__(self, model: Any, rng: np.random.Generator) -> None:
        self.model, self.rng = model, rng
        self.fitted: Any = None

    def least_rows(self, width: int) -> int:
        return 1

    def learn(self, rows: Array, rewards: Array, extremes: tuple[float, float]) -> None:
        self.fitted = self.model.fit(rows, rewards)

    def moments(self, row: Array) -> tuple[float, float]:
        raise NotImplementedError

    def draw(self, row: Array, rng: np.random.Generator) -> float:
        return float(rng.normal(*self.moments(row)))

    def quantile(self, row: Array, level: float) -> float:
        from scipy.special import ndtri

        mean, deviation = self.moments(row)
        return mean + deviation * float(ndtri(level))


class _ProcessArm(_ArmModel):
    """A Gaussian process; a mixture of several counts by its mean and variance."""

    def moments(self, row: Array) -> tuple[float, float]:
        posterior = self.fitted.function()
        means, variances = (np.asarray(part)[:, 0] for part in posterior.moments(row[None]))
        weights = posterior.weights
        mean = float(weights @ means)
        return mean, float(np.sqrt(max(weights @ (variances + (means - mean) ** 2), 0.0)))


class _GlmArm(_ArmModel):
    """A GLM: its linear predictor is normal around the estimate."""

    def least_rows(self, width: int) -> int:
        return width + 2  # so that a deviation can be estimated

    def moments(self, row: Array) -> tuple[float, float]:
        model = self.fitted
        design = np.append(1.0, row) if model.fit_intercept else row
        coefficients = np.ravel(model.coef_)
        if model.fit_intercept:
            coefficients = np.append(model.intercept_, coefficients)
        return float(design @ coefficients), float(np.sqrt(max(design @ model.covariance_ @ design, 0.0)))


class _BootstrapArm(_ArmModel):
    """Another estimator: fitted to several draws of its rows, each draw one opinion."""

    def least_rows(self, width: int) -> int:
        return 2

    def learn(self, rows: Array, rewards: Array, extremes: tuple[float, float]) -> None:
        self.fitted, n = [], len(rows)
        whole = bool(np.equal(rewards, np.round(rewards)).all()) and hasattr(self.model, "predict_proba")
        for _ in range(BOOTSTRAPS):
            drawn = self.rng.integers(n, size=n + PRIOR_ROWS)
            answers = np.append(rewards[drawn[:n]], self.rng.choice(extremes, PRIOR_ROWS))
            if (answers == answers[0]).all():
                self.fitted.append(float(answers[0]))
            else:
                told = answers.astype(np.int64) if whole else answers
                self.fitted.append(deepcopy(self.model).fit(rows[drawn], told))

    def opinions(self, row: Array) -> Array:
        return np.array([_prediction(model, row) for model in self.fitted])

    def moments(self, row: Array) -> tuple[float, float]:
        found = self.opinions(row)
        return float(found.mean()), float(found.std())

    def draw(self, row: Array, rng: np.random.Generator) -> float:
        return _prediction(self.fitted[int(rng.integers(len(self.fitted)))], row)

    def quantile(self, row: Array, level: float) -> float:
        return float(np.quantile(self.opinions(row), level))


def _prediction(model: Any, row: Array) -> float:
    """Return the expected reward that one fitted model, or a constant, predicts."""
    if isinstance(model, float):
        return model
    if hasattr(model, "predict_proba"):
        return float(model.predict_proba(row[None])[0] @ np.asarray(model.classes_, dtype=np.float64))
    return float(np.ravel(model.predict(row[None]))[0])
