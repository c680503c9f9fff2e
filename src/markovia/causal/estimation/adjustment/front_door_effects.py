"""Front-door: the effect through mediators that carry all of it, though treatment and outcome share hidden causes.

Discrete mediators: the plug-in formula sum_m P(m|a) sum_a' P(a') E[Y|a', m], with the efficient influence function
(Fulcher et al., 2020). Other mediators, or a continuous treatment: linear regressions, the sum over mediators of (effect of
the treatment on the mediator) times (effect of the mediator on the outcome given the treatment), errors by the chain rule.
"""

from typing import Any

import numpy as np

from markovia.causal.estimation.adjustment.estimates import ArmMeans, Estimate, arm_means, estimate
from markovia.errors import InvalidArgument
from markovia.learning.regression.nuisance import fit_glm
from markovia.runtime.array_types import Array, Ints


def front_door_table(
    treatment: Ints, outcome: Array, mediators: Array, *, arms: int = 2, clusters: Any = None
) -> ArmMeans:
    """Return the front-door means of all arms from discrete mediators of shape (n, columns)."""
    n = len(outcome)
    cell = np.unique(mediators, axis=0, return_inverse=True)[1].ravel()
    cells = int(cell.max()) + 1
    count = np.bincount(treatment * cells + cell, minlength=arms * cells).reshape(arms, cells)
    if (count == 0).any():
        arm, at = np.argwhere(count == 0)[0]
        raise InvalidArgument(
            f"no overlap: mediator values of {int(count[:, at].sum())} rows never occur in arm {arm}; "
            "the front-door formula needs every value of the mediators in every arm"
        )
    total = np.bincount(treatment * cells + cell, outcome, arms * cells).reshape(arms, cells)
    regression = total / count
    shares = count.sum(axis=1) / n
    given_arm = count / count.sum(axis=1, keepdims=True)
    standardised = shares @ regression
    values = given_arm @ standardised
    influence = np.empty((n, arms))
    for a in range(arms):
        residual = given_arm[a, cell] / given_arm[treatment, cell] * (outcome - regression[treatment, cell])
        through = (treatment == a) / shares[a] * (standardised[cell] - values[a])
        influence[:, a] = residual + through + (regression @ given_arm[a])[treatment] - values[a]
    return arm_means(values, influence, clusters=clusters)


def front_door_lines(treatment: Array, outcome: Array, mediators: Array, *, clusters: Any = None) -> Estimate:
    """Return the slope of the outcome by the treatment through the mediators, by linear regressions."""
    n = len(outcome)
    ones = np.ones(n)
    both = np.column_stack([mediators, treatment])
    last = fit_glm(both, outcome)
    onward = last.coef[1 : 1 + mediators.shape[1]]
    of_onward = last.coef_influence(both, outcome, ones)[:, 1 : 1 + mediators.shape[1]]
    value, influence = 0.0, np.zeros(n)
    for k in range(mediators.shape[1]):
        first = fit_glm(treatment[:, None], mediators[:, k])
        into = float(first.coef[1])
        value += into * float(onward[k])
        of_into = first.coef_influence(treatment[:, None], mediators[:, k], ones)[:, 1]
        influence += into * of_onward[:, k] + float(onward[k]) * of_into
    return estimate(value, influence, clusters=clusters)
