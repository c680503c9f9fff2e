"""Inverse-probability weighting: each arm's rows weighted by one over the probability of being in that arm.

Stabilised weights (Hajek) divide by their sum, which also keeps means inside the outcome's range; Horvitz-Thompson's
divide by n. Rows whose probability of some arm is below `trim` are left out, which changes the population to those
with overlap (Crump et al., 2009). A logistic propensity fitted by maximum likelihood makes the errors smaller than known
weights would; the errors account for it (Hirano, Imbens & Ridder, 2003).
"""

from typing import Any

import numpy as np

from markovia.causal.estimation.adjustment.estimates import ArmMeans, arm_means
from markovia.errors import InvalidArgument
from markovia.learning.regression.nuisance import (
    CLIP,
    Propensity,
    clipped,
    learner_for,
    make_folds,
    propensity,
    with_intercept,
)
from markovia.runtime.array_types import Array, Ints


def ipw(
    treatment: Ints,
    outcome: Array,
    covariates: Array,
    *,
    arms: int = 2,
    population: int | None = None,
    learner: Any = None,
    stabilised: bool = True,
    trim: float = 0.0,
    clip: float = CLIP,
    folds: int = 5,
    clusters: Any = None,
    seed: int = 0,
    score: Propensity | None = None,
) -> ArmMeans:
    """Return the weighted means of all arms.

    Parameters
    ----------
    treatment, outcome, covariates, arms, population
        See `standardisation`.
    stabilised
        Whether weights are divided by their sum.
    trim
        Leave out rows with a probability of an arm below this.
    clip
        Raise smaller probabilities to this.
    score
        Probabilities of the arms that are known already; they are fitted if not given.
    """
    n, at = len(outcome), learner_for(learner, "treatment")
    flexible = at is not None and at != "linear"
    fold = make_folds(treatment, folds, np.random.default_rng(seed)) if flexible else None
    found = score or propensity(treatment, covariates, arms, learner=at, fold=fold, seed=seed)
    p, hot = clipped(found.probabilities, clip), np.eye(arms)[treatment]
    kept = (found.probabilities.min(axis=1) >= trim).astype(float)
    if not (hot * kept[:, None]).any(axis=0).all():
        raise InvalidArgument(f"trim={trim:g} leaves an arm without rows; trim less")
    tilt = kept if population is None else kept * p[:, population]
    members = kept if population is None else kept * hot[:, population]
    weights = hot * (tilt[:, None] / p)
    size = weights.sum(axis=0) if stabilised else np.full(arms, members.sum())
    values = outcome @ weights / size
    if stabilised:
        influence = weights * (outcome[:, None] - values) / (size / n)
    else:
        influence = (weights * outcome[:, None] - members[:, None] * values) / (size / n)
    if found.scores is not None:
        weighted = weights * (outcome[:, None] - values * stabilised) / (size / n)
        influence = influence + _of_the_fit(weighted, p, found.scores, covariates, population)
    return arm_means(values, influence, weights.sum(axis=1), clusters, found.probabilities)


def _of_the_fit(weighted: Array, p: Array, scores: Array, covariates: Array, population: int | None) -> Array:
    """Return what each row adds to the influence by way of the coefficients of the multinomial logistic propensity.

    The derivative of the weight of arm a by the coefficients of arm j is the weight times x times p_j - 1{j=a}, or
    times 1{j=population} - 1{j=a} where the members of one arm are averaged over.
    """
    n, arms = p.shape
    rows, eye = with_intercept(covariates), np.eye(arms)
    towards = p if population is None else np.broadcast_to(eye[population], p.shape)
    jacobian = np.stack(
        [
            ((towards - eye[a])[:, 1:, None] * (weighted[:, [a]] * rows)[:, None, :]).mean(axis=0).ravel()
            for a in range(arms)
        ]
    )
    information = scores.T @ scores / n
    return np.asarray(scores @ np.linalg.pinv(information, hermitian=True) @ jacobian.T)
