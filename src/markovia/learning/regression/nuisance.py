"""The models that estimators need on the way: outcome regressions and propensities, by GLM or any scikit-learn learner.

One helper predicts each row by a model that did not see it (cross-fitting; Chernozhukov et al., 2018), so that flexible
learners do not bias what is built on them. `learner=None` is a generalised linear model with main terms; "boosting" and
"forest" are scikit-learn's; an estimator object is cloned for each fold, and where the other kind is needed (a
classifier for a binary target) its sister is taken.
"""

import inspect
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.learning.regression.families import family_and_link, sigmoid
from markovia.learning.regression.iteratively_reweighted import fit_softmax, newton
from markovia.learning.regression.objectives import GlmObjective
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.threads import in_parallel, thread_count

FAMILIES = ("gaussian", "bernoulli", "poisson")
FEW = 20_000
SETTINGS: dict[str, dict[str, Any]] = {
    # small trees and an early stop: a propensity that is fitted too closely has weights without bound
    "boosting": {"max_leaf_nodes": 8, "learning_rate": 0.05, "min_samples_leaf": 40, "early_stopping": True},
    "forest": {"min_samples_leaf": 5, "n_estimators": 200},
}
CLIP = 0.01
"""Probabilities of treatment below this are raised to it before anything is divided by them."""


class Glm(NamedTuple):
    """A fitted generalised linear model with canonical link; the first coefficient is the intercept."""

    coef: Array
    family: str

    def predict(self, x: Array) -> Array:
        """Return the means."""
        return np.asarray(family_and_link(self.family, None)[1].inverse(with_intercept(x) @ self.coef))

    def slope(self, x: Array) -> Array:
        """Return the derivative of the mean by the linear predictor, one a row."""
        return np.asarray(family_and_link(self.family, None)[0].variance(self.predict(x)))

    def coef_influence(self, x: Array, y: Array, weights: Array) -> Array:
        """Return the influence of each row on the coefficients, shape (n, 1 + p); robust to a wrong variance."""
        rows = with_intercept(x)
        curvature = (rows * (weights * self.slope(x))[:, None]).T @ rows / len(rows)
        scores = rows * (weights * (y - self.predict(x)))[:, None]
        return np.asarray(scores @ np.linalg.pinv(curvature, hermitian=True))


def with_intercept(x: Array) -> Array:
    """Return columns with ones before them."""
    return np.column_stack([np.ones(len(x)), x])


def fit_glm(x: Array, y: Array, family: str = "gaussian", weights: Array | None = None) -> Glm:
    """Fit a generalised linear model by maximum likelihood.

    Examples
    --------
    >>> fit_glm(np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 5.0])).coef.round(6).tolist()
    [1.0, 2.0]
    """
    response, link = family_and_link(family, None)
    rows = with_intercept(x)
    weight = np.ones(len(rows)) if weights is None else weights
    if family == "gaussian":
        root = np.sqrt(weight)
        return Glm(
            np.asarray(np.linalg.lstsq(rows * root[:, None], y * root, rcond=None)[0], dtype=float), family
        )
    if family == "bernoulli" and (quick := _full_steps(rows, y, weight)) is not None:
        return Glm(quick, family)
    objective = GlmObjective(rows, y, weight, np.zeros(len(rows)), response, link, np.zeros(rows.shape[1]))
    return Glm(newton(objective, objective.start(), max_iter=60, tol=1e-12).coef, family)


def _full_steps(rows: Array, y: Array, weights: Array) -> Array | None:
    """Return logistic coefficients by Newton's full steps, or None where they do not settle (separated data)."""
    coef = np.zeros(rows.shape[1])
    for _ in range(12):
        mu = sigmoid(rows @ coef)
        try:
            step = np.linalg.solve(
                (rows * (weights * mu * (1 - mu))[:, None]).T @ rows, rows.T @ (weights * (y - mu))
            )
        except np.linalg.LinAlgError:
            return None
        coef += step
        largest = float(np.abs(step).max())
        if largest < 1e-10 * (1 + float(np.abs(coef).max())):
            return coef
        if not largest < 1e3:
            return None
    return None


def learner_for(learner: Any, role: str) -> Any:
    """Return the learner of a role, "outcome" or "treatment", where a mapping gives one each."""
    if isinstance(learner, Mapping):
        unknown = set(learner) - {"outcome", "treatment"}
        if unknown:
            raise InvalidArgument(
                f"learner= maps 'outcome' and 'treatment' to learners, not {sorted(map(str, unknown))[0]!r}"
            )
        return learner.get(role)
    return learner


def fitted(learner: Any, x: Array, y: Array, family: str, seed: int) -> Any:
    """Return a function from covariates to predicted means (probabilities of 1 for a binary target)."""
    if learner is None or learner == "linear":
        return fit_glm(x, y, family).predict
    if not x.shape[1]:
        mean = float(y.mean())
        return lambda rows: np.full(len(rows), mean)
    model = as_estimator(learner, family == "bernoulli", seed)
    if family == "bernoulli" and y.min() == y.max():
        return lambda rows: np.full(len(rows), float(y[0]))
    with few_threads(len(y)):
        model.fit(x, y.astype(int) if family == "bernoulli" else y)
    if family == "bernoulli":
        return lambda rows: model.predict_proba(rows)[:, 1]
    return lambda rows: np.asarray(model.predict(rows), dtype=float).ravel()


def few_threads(rows: int) -> AbstractContextManager[Any]:
    """Fit to few rows with one thread: learners on shared memory wait for each other longer than they work."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, "openmp") if rows < FEW else nullcontext()


def as_estimator(learner: Any, classify: bool, seed: int) -> Any:
    """Return a fresh scikit-learn classifier or regressor for what `learner=` says."""
    from sklearn.base import clone, is_classifier

    if isinstance(learner, str):
        names = {"boosting": "HistGradientBoosting", "forest": "RandomForest"}
        if learner not in names:
            raise InvalidArgument(
                f"learner= is 'linear', 'boosting', 'forest' or a scikit-learn estimator, not {learner!r}"
            )
        kind = getattr(
            import_module("sklearn.ensemble"), names[learner] + ("Classifier" if classify else "Regressor")
        )
        settings: dict[str, Any] = SETTINGS[learner]
        return kind(random_state=seed, **settings)
    if not hasattr(learner, "fit") or isinstance(learner, type):
        raise InvalidArgument(
            f"learner= is a scikit-learn estimator such as RandomForestRegressor(), not {learner!r}"
        )
    fresh = clone(learner) if is_classifier(learner) == classify else _sister(learner, classify)
    if classify and not hasattr(fresh, "predict_proba"):
        raise InvalidArgument(
            f"{type(fresh).__name__} gives no probabilities of treatment or outcome; take a learner with predict_proba"
        )
    # the same seed gives the same answer: what draws without a seed of its own gets ours
    loose = {k: seed for k, v in fresh.get_params().items() if k.endswith("random_state") and v is None}
    return fresh.set_params(**loose)


def _sister(learner: Any, classify: bool) -> Any:
    """Return the classifier of a regressor's kind, or the other way round, with the settings that both have.

    What is made of other estimators (bagging, voting, stacking, pipelines, searches) is made of their sisters.
    """
    from sklearn.base import clone, is_classifier

    here, there = ("Regressor", "Classifier") if classify else ("Classifier", "Regressor")
    name = type(learner).__name__
    kind: Any = type(learner)
    settings = learner.get_params(deep=False)
    parts = {k for k, v in settings.items() if _members(v)}
    if name.endswith(here):
        kind = getattr(import_module(kind.__module__), name.replace(here, there), None)
    if kind is None or (kind is type(learner) and not parts):
        sort = "a binary" if classify else "a numeric"
        raise InvalidArgument(
            f"{name} cannot predict {sort} target; give learner={{'outcome': ..., 'treatment': ...}}"
        )

    def turned(part: Any) -> Any:
        if not hasattr(part, "predict"):  # a transformer, or a word such as "drop"
            return clone(part) if hasattr(part, "fit") else part
        return clone(part) if is_classifier(part) == classify else _sister(part, classify)

    known = inspect.signature(kind).parameters
    kept = {k: v for k, v in settings.items() if k in known and k not in ("loss", "criterion", "scoring")}
    for k in parts & set(kept):
        kept[k] = (
            [(label, turned(part)) for label, part in kept[k]]
            if isinstance(kept[k], list)
            else turned(kept[k])
        )
    if "voting" in known:
        kept["voting"] = "soft"  # majorities have no probabilities
    return kind(**kept)


def _members(value: Any) -> list[Any]:
    """Return the estimators in a setting: one, or those of a list of names and estimators."""
    if isinstance(value, list):
        pairs = [v[1] for v in value if isinstance(v, tuple) and len(v) == 2]
        return [part for part in pairs if hasattr(part, "fit")]
    return [value] if hasattr(value, "fit") else []


def fit_weighted(model: Any, x: Array, y: Array, weights: Array) -> None:
    """Fit a scikit-learn estimator to weighted rows, or say that it takes no weights."""
    from sklearn.utils.validation import has_fit_parameter

    if not has_fit_parameter(model, "sample_weight"):
        raise InvalidArgument(
            f"this method needs weighted rows, which {type(model).__name__} does not take; choose another learner"
        )
    model.fit(x, y, sample_weight=weights)


def make_folds(codes: Ints, folds: int, rng: np.random.Generator) -> Ints:
    """Return each row's fold, the levels of a treatment spread evenly over the folds."""
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    fold = np.empty(len(codes), dtype=np.int64)
    fold[order] = np.arange(len(codes)) % folds
    return fold


def cross_fit(
    learner: Any, x: Array, y: Array, family: str, fold: Ints, *, among: Any = None, seed: int = 0
) -> Array:
    """Predict each row by a model fitted on the other folds; `among` limits the rows that models are fitted to."""
    inside = np.ones(len(y), dtype=bool) if among is None else among
    predicted = np.empty(len(y))

    def one(k: int, room: None) -> None:
        train, test = inside & (fold != k), fold == k
        with few_threads(0) if threads > 1 else nullcontext():
            predicted[test] = fitted(learner, x[train], y[train], family, seed)(x[test])

    # whole folds side by side use the processors better than threads inside a learner do
    flexible = not (learner is None or learner == "linear")
    threads = thread_count() if flexible and len(y) >= FEW else 1
    in_parallel(one, range(int(fold.max()) + 1), lambda: None, threads)
    return predicted


class Propensity(NamedTuple):
    """Probabilities of the arms, shape (n, arms), and the scores of the model where it is a GLM fitted to all rows."""

    probabilities: Array
    scores: Array | None = None


def propensity(
    codes: Ints, x: Array, arms: int, *, learner: Any = None, fold: Ints | None = None, seed: int = 0
) -> Propensity:
    """Return the probability of each arm given the covariates: one model for all estimators.

    Without folds it is a (multinomial) logistic regression of all rows, with its scores; with folds each row's
    probabilities come from a model that did not see the row.
    """
    hot = np.eye(arms)[codes]
    if fold is None:
        rows = with_intercept(x)
        if arms == 2:
            p = fit_glm(x, hot[:, 1], "bernoulli").predict(x)
            probabilities = np.column_stack([1 - p, p])
        else:
            probabilities = softmax(rows @ fit_softmax(rows, hot, max_iter=60).coef.T)
        away = (hot - probabilities)[:, 1:]
        return Propensity(probabilities, (away[:, :, None] * rows[:, None, :]).reshape(len(rows), -1))
    if arms == 2:
        p = cross_fit(learner, x, hot[:, 1], "bernoulli", fold, seed=seed)
        return Propensity(np.column_stack([1 - p, p]))
    probabilities = np.empty(hot.shape)
    for k in range(int(fold.max()) + 1):
        train, test = fold != k, fold == k
        if learner is None or learner == "linear":
            rows = with_intercept(x)
            probabilities[test] = softmax(
                rows[test] @ fit_softmax(rows[train], hot[train], max_iter=60).coef.T
            )
        else:
            model = as_estimator(learner, True, seed).fit(x[train], codes[train])
            probabilities[test] = model.predict_proba(x[test])
    return Propensity(probabilities)


def softmax(scores: Array) -> Array:
    """Return probabilities from scores, one row at a time."""
    grown = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=1, keepdims=True))


def clipped(probabilities: Array, clip: float = CLIP) -> Array:
    """Return probabilities, none below `clip`."""
    return np.maximum(probabilities, clip)
