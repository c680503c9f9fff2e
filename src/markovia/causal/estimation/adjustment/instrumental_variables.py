"""Instruments: two-stage least squares, Wald's ratio, and the local average effect with covariates.

An instrument moves the treatment and nothing else that matters. Two-stage least squares regresses the outcome on the
treatment's prediction from instruments and covariates; Wald's ratio is its form for one binary instrument. With effects that
differ between people and an instrument that never pushes anyone the other way, both estimate the effect on those
whom it moves (the compliers; Imbens & Angrist, 1994). `late` adjusts for covariates by doubly robust means of outcome and
treatment in the two arms of the instrument (Tan, 2006; Froelich, 2007). Errors are robust to unequal variances.
"""

from typing import Any, NamedTuple

import numpy as np

from markovia.causal.estimation.adjustment.doubly_robust import aipw
from markovia.causal.estimation.adjustment.estimates import Estimate, contrast, estimate
from markovia.errors import InvalidArgument
from markovia.learning.regression.nuisance import with_intercept
from markovia.runtime.array_types import Array, Ints


def two_stage_least_squares(
    treatment: Array, outcome: Array, covariates: Array, instruments: Array, *, clusters: Any = None
) -> Estimate:
    """Return the slope of the outcome by the treatment.

    Parameters
    ----------
    treatment, outcome
        Numbers, one a row.
    covariates, instruments
        Shapes (n, columns); the covariates stand in both stages.
    """
    exogenous = with_intercept(covariates)
    first = np.column_stack([exogenous, instruments])
    predicted = first @ np.linalg.lstsq(first, treatment, rcond=None)[0]
    second = np.column_stack([predicted, exogenous])
    left = predicted - exogenous @ np.linalg.lstsq(exogenous, predicted, rcond=None)[0]
    if float(left @ left) < 1e-12 * max(float(predicted @ predicted), 1e-300):
        raise InvalidArgument(
            "the instrument does not move the treatment beyond the covariates; its effect cannot be learned"
        )
    coef = np.linalg.lstsq(second, outcome, rcond=None)[0]
    residual = outcome - np.column_stack([treatment, exogenous]) @ coef
    return estimate(
        float(coef[0]), left * residual / (float(left @ treatment) / len(outcome)), clusters=clusters
    )


def wald(treatment: Array, outcome: Array, instrument: Ints, *, clusters: Any = None) -> Estimate:
    """Return Wald's ratio of differences between the two arms of an instrument.

    Examples
    --------
    >>> z = np.array([0, 0, 1, 1])
    >>> round(wald(np.array([0.0, 0.0, 0.0, 1.0]), np.array([1.0, 1.0, 1.0, 4.0]), z).value, 6)
    3.0
    """
    return two_stage_least_squares(
        treatment, outcome, np.empty((len(outcome), 0)), instrument[:, None].astype(float), clusters=clusters
    )


def late(
    treatment: Array,
    outcome: Array,
    covariates: Array,
    instrument: Ints,
    *,
    family: str = "gaussian",
    learner: Any = None,
    folds: int = 5,
    clusters: Any = None,
    seed: int = 0,
) -> Estimate:
    """Return the effect on those whom a binary instrument moves, adjusted for covariates; the treatment is 0 or 1."""
    shared: dict[str, Any] = {"learner": learner, "folds": folds, "seed": seed}
    of_y = contrast(aipw(instrument, outcome, covariates, family=family, **shared), 1, 0)
    of_a = contrast(aipw(instrument, treatment, covariates, family="bernoulli", **shared), 1, 0)
    if abs(of_a.value) < 1e-12:
        raise InvalidArgument("the instrument does not move the treatment; its effect cannot be learned")
    assert of_y.influence is not None
    assert of_a.influence is not None
    value = of_y.value / of_a.value
    return estimate(value, (of_y.influence - value * of_a.influence) / of_a.value, clusters=clusters)


class FirstStage(NamedTuple):
    """How strongly instruments move the treatment: the F statistic of the first stage, and how many they are."""

    f: float
    instruments: int

    @property
    def weak(self) -> bool:
        """Whether F is below 10, where two-stage least squares leans towards the biased regression."""
        return self.f < 10


def first_stage(treatment: Array, covariates: Array, instruments: Array) -> FirstStage:
    """Return the F statistic of the instruments in the regression of the treatment on them and the covariates."""
    exogenous = with_intercept(covariates)
    full = np.column_stack([exogenous, instruments])
    restricted = treatment - exogenous @ np.linalg.lstsq(exogenous, treatment, rcond=None)[0]
    residual = treatment - full @ np.linalg.lstsq(full, treatment, rcond=None)[0]
    q, dof = instruments.shape[1], max(len(treatment) - full.shape[1], 1)
    left = max(float(residual @ residual) / dof, 1e-300)
    return FirstStage(float(restricted @ restricted - residual @ residual) / q / left, q)
