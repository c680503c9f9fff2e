"""Difference in differences: the change among the treated less the change among the others.

Without covariates it is the interaction of group and period in least squares. With covariates and both periods of
every unit it is the doubly robust effect on the treated of the change (Sant'Anna & Zhao, 2020); with other
rows, least squares where the covariates' effects may change over time. Errors are clustered by unit where units are given.
"""

from typing import Any

import numpy as np

from markovia.causal.estimation.doubly_robust import aipw
from markovia.causal.estimation.estimates import Estimate, contrast, estimate
from markovia.causal.estimation.nuisance import fit_glm
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array, Ints


def difference_in_differences(
    outcome: Array,
    group: Ints,
    period: Ints,
    covariates: Array | None = None,
    *,
    clusters: Any = None,
) -> Estimate:
    """Return the effect on the treated from rows of two groups and two periods, both coded 0 and 1.

    Examples
    --------
    >>> y = np.array([1.0, 2.0, 3.0, 7.0])
    >>> difference_in_differences(y, np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])).value
    3.0
    """
    if len(np.unique(group * 2 + period)) < 4:
        raise InvalidArgument("difference in differences needs rows of both groups in both periods")
    both = group * period
    columns = [both, group, period]
    if covariates is not None and covariates.shape[1]:
        columns += [*covariates.T, *(covariates * period[:, None]).T]
    x = np.column_stack(columns).astype(float)
    model = fit_glm(x, outcome)
    rows = model.coef_influence(x, outcome, np.ones(len(outcome)))[:, 1]
    return estimate(float(np.round(model.coef[1], 14)), rows, clusters=clusters)


def panel_difference(
    before: Array,
    after: Array,
    group: Ints,
    covariates: Array,
    *,
    learner: Any = None,
    folds: int = 5,
    seed: int = 0,
) -> Estimate:
    """Return the effect on the treated from the change of every unit, doubly robust in its covariates."""
    means = aipw(group, after - before, covariates, population=1, learner=learner, folds=folds, seed=seed)
    return contrast(means, 1, 0)
