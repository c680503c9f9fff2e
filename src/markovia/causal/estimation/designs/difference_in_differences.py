"""Difference in differences: the change among the treated less the change among the others.

Without covariates it is the interaction of group and period in least squares. With covariates and both periods of
every unit it is the doubly robust effect on the treated of the change (Sant'Anna & Zhao, 2020); with other
rows, least squares where the covariates' effects may change over time. Errors are clustered by unit where units are given.
Where treatment starts at different times, each group of one start is compared, in each period, with units that are not
treated by then (Callaway & Sant'Anna, 2021): units treated earlier, whose effects may still grow, are never controls.
"""

from typing import Any, NamedTuple

import numpy as np

from markovia.causal.estimation.adjustment.doubly_robust import aipw
from markovia.causal.estimation.adjustment.estimates import Estimate, contrast, estimate
from markovia.errors import InvalidArgument
from markovia.learning.regression.nuisance import fit_glm
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.shown import html_table


def difference_in_differences(
    outcome: Array, group: Ints, period: Ints, covariates: Array | None = None, *, clusters: Any = None
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


class GroupTime(NamedTuple):
    """The effect in one period on the units treated from one period on; both are positions, from 0."""

    group: int
    period: int
    estimate: Estimate


def group_time_effects(
    outcome: Array, start: Ints, covariates: Array, *, learner: Any = None, seed: int = 0, leads: bool = False
) -> list[GroupTime]:
    """Return the effect on each group in each period from its start on.

    All changes are since the period before the start.

    Parameters
    ----------
    outcome
        Shape (units, periods).
    start
        The first period in which each unit is treated; the number of periods for those that never are.
    covariates
        Shape (units, columns), of the time before any treatment.
    leads
        Whether to return the periods before the start instead, in which there should be no effect.

    Examples
    --------
    >>> y = np.array([[1.0, 2, 3], [2, 3, 4], [0, 4, 6], [1, 5, 7]])
    >>> found = group_time_effects(y, np.array([3, 3, 1, 1]), np.empty((4, 0)))
    >>> [(e.group, e.period, e.estimate.value) for e in found]
    [(1, 1, 3.0), (1, 2, 4.0)]
    """
    n, periods = outcome.shape
    found = []
    for g in (int(g) for g in np.unique(start) if 0 < g < periods):
        for t in range(g - 1) if leads else range(g, periods):
            # the others are untreated in all periods that are looked at: this one and the two around the start
            rows = np.flatnonzero((start == g) | (start > max(t, g)))
            group = (start[rows] == g).astype(np.int64)
            if min(group.sum(), len(group) - group.sum()) < 2:
                continue
            before, after = outcome[rows, g - 1], outcome[rows, t]
            part = panel_difference(before, after, group, covariates[rows], learner=learner, seed=seed)
            assert part.influence is not None
            influence = np.zeros(n)
            influence[rows] = part.influence * n / len(rows)
            found.append(GroupTime(g, t, estimate(part.value, influence)))
    return found


def averaged(parts: list[GroupTime], start: Ints) -> Estimate:
    """Return the average of effects, each weighted by its group's share of the units."""
    hot = np.stack([start == p.group for p in parts], axis=1).astype(float)
    total = hot.mean(axis=0).sum()
    values = np.array([p.estimate.value for p in parts])
    influences = np.stack([np.asarray(p.estimate.influence) for p in parts], axis=1)
    value = float(hot.mean(axis=0) @ values / total)
    # the shares are estimated, too
    return estimate(
        value, (influences @ hot.mean(axis=0) + (hot - hot.mean(axis=0)) @ (values - value)) / total
    )


class PreTrend(NamedTuple):
    """Wald's test that groups changed alike before anyone was treated: all leads are zero at once.

    Attributes
    ----------
    statistic, dof, p_value
        The statistic, which is chi-squared with so many degrees of freedom if they did.
    """

    statistic: float
    dof: int
    p_value: float

    def __str__(self) -> str:
        verdict = (
            "before the start groups changed differently, so the differences after it are in doubt"
            if self.p_value < 0.05
            else "nothing tells the changes before the start apart"
        )
        return (
            f"{verdict} (chi2 = {self.statistic:.1f}, {self.dof} degrees of freedom, p = {self.p_value:.3f})"
        )

    def _repr_html_(self) -> str:
        return html_table(self._fields, [self], note=str(self))


def pre_trend(leads: list[GroupTime]) -> PreTrend | None:
    """Test that all effects before the start are zero; None where there is none to test.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y, start = rng.normal(size=(60, 4)), np.repeat([2, 3, 4], 20)
    >>> y[start == 2, 0] += 5
    >>> pre_trend(group_time_effects(y, start, np.empty((60, 0)), leads=True)).p_value < 0.01
    True
    """
    from scipy.stats import chi2

    if not leads:
        return None
    values = np.array([part.estimate.value for part in leads])
    influences = np.stack([np.asarray(part.estimate.influence) for part in leads], axis=1)
    # in units of each standard error, so that scale and rank do not depend on the unit of the outcome
    errors = np.sqrt((influences**2).sum(axis=0)) / len(influences)
    known = errors > 0
    if not known.any():
        return None
    scaled = influences[:, known] / errors[known] / len(influences)
    roots, directions = np.linalg.eigh(scaled.T @ scaled)
    kept = roots > 1e-9 * roots[-1]
    seen = directions[:, kept].T @ (values[known] / errors[known])
    statistic, dof = float((seen**2 / roots[kept]).sum()), int(kept.sum())
    return PreTrend(statistic, dof, float(chi2.sf(statistic, dof)))
