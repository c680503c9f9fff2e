"""Stratification: differences of means within strata of the propensity score, or of discrete covariates, averaged.

Five strata of the propensity remove about nine tenths of the bias due to the covariates (Cochran, 1968; Rosenbaum &
Rubin, 1984); a linear regression in each arm (`adjusted`) removes the rest where it holds.
With discrete covariates (`strata="cells"`) each combination is one stratum and the
answer is exact adjustment, the back-door formula on the table of counts.
"""

from typing import Any

import numpy as np

from markovia.causal.estimation.adjustment.estimates import ArmMeans, arm_means
from markovia.errors import InvalidArgument
from markovia.learning.regression.nuisance import Propensity, fit_glm, propensity
from markovia.runtime.array_types import Array, Ints


def stratification(
    treatment: Ints,
    outcome: Array,
    covariates: Array,
    *,
    arms: int = 2,
    population: int | None = None,
    strata: int | str = 5,
    adjusted: bool = True,
    clusters: Any = None,
    score: Propensity | None = None,
) -> ArmMeans:
    """Return the stratified means of all arms.

    Parameters
    ----------
    treatment, outcome, covariates, arms, population
        See `standardisation`.
    strata
        How many quantiles of the propensity (two arms only), or "cells" for every combination of covariate values.
    adjusted
        Whether a linear regression in each arm takes what the strata leave.
    score
        Probabilities of the arms that are known already; a logistic regression is fitted if not given.
    """
    found = None
    if score is not None and (strata == "cells" or arms > 2):
        raise InvalidArgument(
            "strata of cells, or of more than two arms, use no propensity; leave propensity= out"
        )
    if not covariates.shape[1]:
        stratum = np.zeros(len(outcome), dtype=np.int64)
    elif strata == "cells" or arms > 2:
        stratum = np.unique(covariates, axis=0, return_inverse=True)[1].ravel()
    else:
        found = (score or propensity(treatment, covariates, arms)).probabilities
        stratum = score_strata(found[:, 1], int(strata))
    blocks = int(stratum.max()) + 1
    size = np.bincount(stratum * arms + treatment, minlength=blocks * arms).reshape(blocks, arms)
    needed = np.ones(blocks, dtype=bool) if population is None else size[:, population] > 0
    short = needed[:, None] & (size == 0)
    if short.any():
        block, arm = np.argwhere(short)[0]
        what = (
            "a combination of covariate values"
            if strata == "cells"
            else f"stratum {block + 1} of the propensity"
        )
        raise InvalidArgument(
            f"no overlap: {what} with {size[block].sum()} rows has none in arm {arm}; "
            f"use fewer strata or a method that models the outcome, such as 'aipw'"
        )
    smooth = np.zeros((len(outcome), arms))
    if adjusted and blocks > 1 and strata != "cells":
        inside = [treatment == a for a in range(arms)]
        smooth = np.column_stack([fit_glm(covariates[i], outcome[i]).predict(covariates) for i in inside])
    residual = outcome - smooth[np.arange(len(outcome)), treatment]
    total = np.bincount(stratum * arms + treatment, residual, blocks * arms).reshape(blocks, arms)
    means = smooth + (total / np.maximum(size, 1))[stratum]
    members = np.ones(len(outcome)) if population is None else (treatment == population).astype(float)
    values = members @ means / members.sum()
    mass = size.sum(axis=1) if population is None else size[:, population]
    hot = np.eye(arms)[treatment]
    weights = hot * (mass[:, None] / np.maximum(size, 1))[stratum]
    influence = members[:, None] * (means - values) + weights * (outcome[:, None] - means)
    return arm_means(values, influence / members.mean(), weights.sum(axis=1), clusters, found)


def score_strata(score: Array, strata: int) -> Ints:
    """Return each row's stratum between quantiles of a score, numbered from 0 without gaps."""
    # rows with the same covariates belong into one stratum, whatever the rounding of their scores
    p = score.round(12)
    edges = np.quantile(p, np.linspace(0, 1, strata + 1)[1:-1])
    return np.asarray(np.unique(np.searchsorted(edges, p), return_inverse=True)[1])
