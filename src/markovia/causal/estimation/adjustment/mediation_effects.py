"""Natural direct and indirect effects by the efficient influence function, any learner, any kind of mediators.

theta(a, a') is the mean outcome under treatment a with the mediators as they would be under a'. The estimate is right when
the outcome model and either of the other two hold (Tchetgen Tchetgen & Shpitser, 2012); the mediators' density is avoided by
the odds of the treatment given mediators and covariates, and a regression of the outcome model on the covariates
among arm a' (Farbmacher et al., 2022). Direct: theta(1,0) - theta(0,0); indirect: theta(1,1) - theta(1,0).
"""

from typing import Any, NamedTuple

import numpy as np

from markovia.causal.estimation.adjustment.estimates import Estimate, estimate
from markovia.learning.regression.nuisance import CLIP, clipped, fitted, learner_for, make_folds
from markovia.runtime.array_types import Array, Ints


class NaturalEffectEstimates(NamedTuple):
    """The total effect and its two parts, which sum to it."""

    total: Estimate
    direct: Estimate
    indirect: Estimate


def natural_effects(
    treatment: Ints,
    outcome: Array,
    mediators: Array,
    covariates: Array,
    *,
    family: str = "gaussian",
    learner: Any = None,
    folds: int = 5,
    clip: float = CLIP,
    clusters: Any = None,
    seed: int = 0,
) -> NaturalEffectEstimates:
    """Return the natural effects of a binary treatment (0, 1); mediators and covariates have shape (n, columns)."""
    n = len(outcome)
    fold = make_folds(treatment, folds, np.random.default_rng(seed))
    both = np.column_stack([mediators, covariates])
    of_y, of_a = learner_for(learner, "outcome"), learner_for(learner, "treatment")
    theta = {pair: np.empty(n) for pair in ((0, 0), (1, 0), (1, 1))}
    for k in range(int(fold.max()) + 1):
        train, test = fold != k, fold == k
        chance = fitted(of_a, covariates[train], treatment[train].astype(float), "bernoulli", seed)(
            covariates[test]
        )
        later = fitted(of_a, both[train], treatment[train].astype(float), "bernoulli", seed)(both[test])
        before = clipped(np.column_stack([1 - chance, chance]), clip)
        after = clipped(np.column_stack([1 - later, later]), clip)
        arm, y = treatment[test], outcome[test]
        models = {
            a: fitted(of_y, both[train & (treatment == a)], outcome[train & (treatment == a)], family, seed)
            for a in (0, 1)
        }
        for (a, b), psi in theta.items():
            mean = models[a](both[test])
            inner = train & (treatment == b)
            # the nested regression is of predictions, whatever family the outcome has
            nested = fitted(of_y, covariates[inner], models[a](both[inner]), "gaussian", seed)(
                covariates[test]
            )
            odds = 1 / before[:, a] if a == b else after[:, b] / (after[:, a] * before[:, b])
            psi[test] = (arm == a) * odds * (y - mean) + (arm == b) / before[:, b] * (mean - nested) + nested

    def difference(one: Array, two: Array) -> Estimate:
        value = float((one - two).mean())
        return estimate(value, one - two - value, clusters=clusters)

    return NaturalEffectEstimates(
        difference(theta[1, 1], theta[0, 0]),
        difference(theta[1, 0], theta[0, 0]),
        difference(theta[1, 1], theta[1, 0]),
    )
