"""Regression and standardisation (the g-formula): model the outcome in each arm, average over everyone's covariates.

The mean of Y(a) is the average of m_a(X), with m_a a generalised linear model fitted to arm a, so effects may differ
between people. Errors account for the fitted coefficients (M-estimation): the influence of a row is
m_a(X) - mu_a plus the average gradient times the row's influence on the coefficients; they hold with unequal variances.
A continuous treatment has one slope: least squares on A, X and A (X - mean X), so that the coefficient of A is the average
slope. With a learner of scikit-learn the same average has no known influence function: use errors="bootstrap".

References: Robins (1986); Stefanski & Boos (2002); Lin (2013). Cost: one regression an arm.
"""

from typing import Any

import numpy as np

from markovia.causal.estimation.adjustment.estimates import ArmMeans, Estimate, arm_means, estimate
from markovia.learning.regression.nuisance import fit_glm, fitted, learner_for, with_intercept
from markovia.runtime.array_types import Array, Ints


def standardisation(
    treatment: Ints,
    outcome: Array,
    covariates: Array,
    *,
    arms: int = 2,
    family: str = "gaussian",
    population: int | None = None,
    learner: Any = None,
    clusters: Any = None,
    seed: int = 0,
) -> ArmMeans:
    """Return the standardised means of all arms.

    Parameters
    ----------
    treatment, outcome, covariates
        Codes of the arms 0, 1, ...; numbers; shape (n, columns).
    family
        The outcome's: "gaussian", "bernoulli" or "poisson".
    population
        The arm whose members are averaged over; everyone where None.
    learner
        None for the generalised linear model, else scikit-learn's; then the errors are missing (NaN).
    """
    n = len(outcome)
    members = np.ones(n) if population is None else (treatment == population).astype(float)
    share, of_y = members.mean(), learner_for(learner, "outcome")
    values, influence = np.empty(arms), np.empty((n, arms))
    for a in range(arms):
        inside = (treatment == a).astype(float)
        if of_y is not None and of_y != "linear":
            rows = treatment == a
            predict = fitted(of_y, covariates[rows], outcome[rows], family, seed)
            values[a], influence[:, a] = members @ predict(covariates) / members.sum(), np.nan
            continue
        model = fit_glm(covariates, outcome, family, inside)
        predicted = model.predict(covariates)
        values[a] = members @ predicted / members.sum()
        gradient = (members * model.slope(covariates)) @ with_intercept(covariates) / n
        own = members * (predicted - values[a])
        influence[:, a] = (own + model.coef_influence(covariates, outcome, inside) @ gradient) / share
    return arm_means(values, influence, clusters=clusters)


def slope(treatment: Array, outcome: Array, covariates: Array, *, clusters: Any = None) -> Estimate:
    """Return the average slope of the outcome by a continuous treatment, by least squares with interactions.

    Examples
    --------
    >>> a = np.arange(6.0)
    >>> round(slope(a, 1 + 2 * a, np.empty((6, 0))).value, 6)
    2.0
    """
    centred = covariates - covariates.mean(axis=0)
    columns = np.column_stack([treatment, centred, treatment[:, None] * centred])
    model = fit_glm(columns, outcome)
    rows = model.coef_influence(columns, outcome, np.ones(len(outcome)))[:, 1]
    # the centre is estimated too: its influence enters through the coefficients of the interactions
    rows = rows + centred @ model.coef[1 + 1 + centred.shape[1] :]
    return estimate(float(model.coef[1]), rows, clusters=clusters)
