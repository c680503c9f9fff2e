"""Conditional effects by meta-learners: any regression turned into an estimate of the effect at given covariates.

S: one model of the outcome with the treatment among its inputs. T: one model an arm. X: T's models impute each row's
effect, which is regressed and mixed by the propensity (Kuenzel et al., 2019). R: a weighted regression of the ratio of
residuals (Nie & Wager, 2021). DR: a regression of doubly robust pseudo-outcomes (Kennedy, 2020), linear by default and then
with standard errors. Cost: two to five fits of the learner a fold.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.causal.estimation.adjustment.doubly_robust import nuisances
from markovia.learning.regression.nuisance import (
    CLIP,
    Glm,
    as_estimator,
    clipped,
    cross_fit,
    few_threads,
    fit_glm,
    fit_weighted,
    fitted,
    learner_for,
    make_folds,
    with_intercept,
)
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import check_choice

LEARNERS = ("dr", "s", "t", "x", "r")


@dataclass(frozen=True)
class ConditionalModel:
    """A fitted conditional effect: `values(x)`, and `errors(x)` where it is linear in the covariates ("dr").

    `probabilities` are those of the arms, shape (n, 2), by the treatment model where one was needed.
    """

    predict: Any
    line: Glm | None = None
    covariance: Array | None = None
    probabilities: Array | None = None

    def values(self, x: Array) -> Array:
        """Return the effect at each row of covariates."""
        return np.asarray(self.predict(x), dtype=float)

    def errors(self, x: Array) -> Array:
        """Return standard errors; NaN where the learner has none."""
        if self.covariance is None:
            return np.full(len(x), np.nan)
        rows = with_intercept(x)
        return np.asarray(np.sqrt(np.einsum("ij,jk,ik->i", rows, self.covariance, rows)))


def meta_learner(
    treatment: Ints,
    outcome: Array,
    covariates: Array,
    kind: str = "dr",
    *,
    family: str = "gaussian",
    learner: Any = None,
    folds: int = 5,
    seed: int = 0,
) -> ConditionalModel:
    """Fit the effect of a binary treatment (0, 1) as a function of the covariates.

    Parameters
    ----------
    treatment, outcome, covariates, family, learner
        See `aipw`.
    kind
        "s", "t", "x", "r" or "dr".
    """
    check_choice("kind", kind, LEARNERS)
    a, y, x, of_y = treatment.astype(float), outcome, covariates, learner_for(learner, "outcome")
    if kind == "s":
        # a linear learner needs the interactions to let effects differ
        model = fitted(of_y, np.column_stack([a, x, a[:, None] * x]), y, family, seed)
        return ConditionalModel(
            lambda rows: (
                model(np.column_stack([np.ones(len(rows)), rows, rows]))
                - model(np.column_stack([np.zeros(len(rows)), rows, 0 * rows]))
            )
        )
    if kind in ("t", "x"):
        arms = [fitted(of_y, x[treatment == k], y[treatment == k], family, seed) for k in (0, 1)]
        if kind == "t":
            return ConditionalModel(lambda rows: arms[1](rows) - arms[0](rows))
        gain = fitted(
            of_y, x[treatment == 1], y[treatment == 1] - arms[0](x[treatment == 1]), "gaussian", seed
        )
        loss = fitted(
            of_y, x[treatment == 0], arms[1](x[treatment == 0]) - y[treatment == 0], "gaussian", seed
        )
        share = fitted(learner_for(learner, "treatment"), x, a, "bernoulli", seed)
        chance = share(x)
        return ConditionalModel(
            lambda rows: share(rows) * loss(rows) + (1 - share(rows)) * gain(rows),
            probabilities=np.column_stack([1 - chance, chance]),
        )
    if kind == "r":
        fold = make_folds(treatment, folds, np.random.default_rng(seed))
        left_y = y - cross_fit(of_y, x, y, family, fold, seed=seed)
        chance = cross_fit(learner_for(learner, "treatment"), x, a, "bernoulli", fold, seed=seed)
        both = np.column_stack([1 - chance, chance])
        # both arms' probabilities stay away from 0, so that no residual of the treatment vanishes
        left_a = a - np.clip(chance, CLIP, 1 - CLIP)
        target, weights = left_y / left_a, left_a**2
        if of_y is None or of_y == "linear":
            return ConditionalModel(fit_glm(x, target, "gaussian", weights).predict, probabilities=both)
        model = as_estimator(of_y, False, seed)
        with few_threads(len(y)):
            fit_weighted(model, x, target, weights)
        return ConditionalModel(model.predict, probabilities=both)
    found = nuisances(treatment, y, x, family=family, learner=learner, folds=folds, seed=seed)
    corrected = found.means + np.eye(2)[treatment] / clipped(found.probabilities) * (y[:, None] - found.means)
    pseudo = corrected[:, 1] - corrected[:, 0]
    line = fit_glm(x, pseudo)
    influence = line.coef_influence(x, pseudo, np.ones(len(y)))
    covariance = influence.T @ influence / len(y) ** 2
    return ConditionalModel(line.predict, line, covariance, found.probabilities)
