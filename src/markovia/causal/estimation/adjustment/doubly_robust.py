"""Doubly robust estimators: augmented inverse-probability weighting and targeted maximum likelihood.

Both join an outcome model m_a(X) and a propensity e_a(X), cross-fitted, and are right when either is; with both converging
faster than n^(1/4) the error is the efficient one. AIPW averages m_a(X) + 1{A=a}/e_a (Y - m_a); TMLE moves m_a along
the one direction that makes the average of the correction zero, so its means stay in the outcome's range.
This is also the interactive model of double machine learning.

References: Robins, Rotnitzky & Zhao (1994); van der Laan & Rubin (2006); Chernozhukov et al. (2018).
Cost: `folds` times one propensity and one outcome regression an arm.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from markovia.causal.estimation.adjustment.estimates import ArmMeans, arm_means
from markovia.learning.regression.families import sigmoid
from markovia.learning.regression.nuisance import (
    CLIP,
    Propensity,
    clipped,
    cross_fit,
    learner_for,
    make_folds,
    propensity,
)
from markovia.runtime.array_types import Array, Ints


class Nuisances(NamedTuple):
    """Cross-fitted predictions: outcome means and probabilities of the arms, both (n, arms); the rows' folds."""

    means: Array
    probabilities: Array
    fold: Ints


def nuisances(
    treatment: Ints,
    outcome: Array,
    covariates: Array,
    *,
    arms: int = 2,
    family: str = "gaussian",
    learner: Any = None,
    folds: int = 5,
    seed: int = 0,
    score: Propensity | None = None,
) -> Nuisances:
    """Return what doubly robust estimators are built on, each row predicted by models that did not see it.

    A `score` that is known already takes the place of the treatment's model.
    """
    fold = make_folds(
        treatment, min(folds, int(np.bincount(treatment, minlength=arms).min())), np.random.default_rng(seed)
    )
    means = np.column_stack(
        [
            cross_fit(
                learner_for(learner, "outcome"),
                covariates,
                outcome,
                family,
                fold,
                among=treatment == a,
                seed=seed,
            )
            for a in range(arms)
        ]
    )
    found = score or propensity(
        treatment, covariates, arms, learner=learner_for(learner, "treatment"), fold=fold, seed=seed
    )
    return Nuisances(means, found.probabilities, fold)


def aipw(
    treatment: Ints,
    outcome: Array,
    covariates: Array,
    *,
    arms: int = 2,
    family: str = "gaussian",
    population: int | None = None,
    learner: Any = None,
    folds: int = 5,
    clip: float = CLIP,
    clusters: Any = None,
    seed: int = 0,
    score: Propensity | None = None,
    targeted: bool = False,
) -> ArmMeans:
    """Return the doubly robust means of all arms.

    Parameters
    ----------
    treatment, outcome, covariates, arms, family, population
        See `standardisation`.
    learner
        None for generalised linear models, "boosting", "forest", a scikit-learn estimator, or a mapping of "outcome" and
        "treatment" to such.
    folds
        Parts of the data for cross-fitting; fewer where an arm is smaller.
    clip
        Probabilities of treatment below this are raised to it.
    score
        Probabilities of the arms that are known already; they are cross-fitted if not given.
    targeted
        Whether the outcome model is moved (TMLE) instead of its residuals added (AIPW).
    """
    found = nuisances(
        treatment,
        outcome,
        covariates,
        arms=arms,
        family=family,
        learner=learner,
        folds=folds,
        seed=seed,
        score=score,
    )
    members, weights = _weights(treatment, clipped(found.probabilities, clip), population)
    share = members.mean()
    if targeted:
        values, influence = _targeted(outcome, found.means, members, weights)
    else:
        pseudo = members[:, None] * found.means + weights * (outcome[:, None] - found.means)
        values = pseudo.mean(axis=0) / share
        influence = pseudo - members[:, None] * values
    return arm_means(values, influence / share, weights.sum(axis=1), clusters, found.probabilities)


tmle = partial(aipw, targeted=True)


def _targeted(outcome: Array, means: Array, members: Array, weights: Array) -> tuple[Array, Array]:
    """Return targeted means and their influence, times the share of members.

    The outcome is scaled to [0, 1] and its model is moved on the logit scale by an intercept with the weights
    1{A=a} / e_a, so that no mean leaves the outcome's range.
    """
    low, width = float(outcome.min()), float(np.ptp(outcome)) or 1.0
    y = (outcome - low) / width
    start = np.clip((means - low) / width, 1e-4, 1 - 1e-4)
    offset = np.log(start / (1 - start))
    steps = [_fluctuation(o, y, w) for o, w in zip(offset.T, weights.T, strict=True)]
    moved = sigmoid(offset + steps)
    values = members @ moved / members.sum()
    influence = members[:, None] * (moved - values) + weights * (y[:, None] - moved)
    return low + width * values, width * influence


def _weights(treatment: Ints, p: Array, population: int | None) -> tuple[Array, Array]:
    """Return who is averaged over, and what each row weighs for each arm."""
    hot = np.eye(p.shape[1])[treatment]
    if population is None:
        return np.ones(len(p)), hot / p
    return hot[:, population], hot * (p[:, [population]] / p)


def _fluctuation(offset: Array, y: Array, weights: Array) -> float:
    """Return the intercept that solves sum w (y - sigmoid(offset + e)) = 0, by safeguarded Newton steps."""
    epsilon = 0.0
    for _ in range(50):
        mu = sigmoid(offset + epsilon)
        curvature = float(weights @ (mu * (1 - mu)))
        step = float(weights @ (y - mu)) / max(curvature, 1e-12)
        epsilon += float(np.clip(step, -2.0, 2.0))
        if abs(step) < 1e-12:
            break
    return epsilon
