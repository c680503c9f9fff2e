"""Treatments that follow one another: g-computation, sequential doubly robust means, marginal structural models.

At each time covariates L_t may depend on earlier treatments and steer later ones, so neither adjusting for them nor leaving
them out is right. g-computation regresses the outcome backwards in time, each time setting the treatment to the
regime's (iterated expectations; Robins, 1986; Bang & Robins, 2005); the doubly robust form adds the weighted residuals
of every step, and has an influence function. A marginal structural model weights each row by the stabilised product of
P(A_t | past treatments) / P(A_t | past treatments and covariates) and regresses the outcome on the sum of treatments
(Robins, Hernan & Brumback, 2000).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from markovia.causal.estimation.adjustment.estimates import Estimate, estimate
from markovia.causal.estimation.adjustment.nuisance import CLIP, fit_glm, fitted, learner_for, with_intercept
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array, Ints


def regime_mean(
    treatments: Ints,
    outcome: Array,
    covariates: Sequence[Array],
    regime: Sequence[int],
    *,
    robust: bool = True,
    family: str = "gaussian",
    learner: Any = None,
    seed: int = 0,
) -> Estimate:
    """Return the mean outcome had everyone followed a regime.

    Parameters
    ----------
    treatments
        Shape (n, times), 0 or 1.
    outcome
        Measured after the last time.
    covariates
        One array (n, columns) a time, measured before that time's treatment.
    regime
        The treatment to give at each time.
    robust
        Whether the weighted residuals are added; without them it is plain g-computation, whose error is missing (NaN).
    """
    n, times = treatments.shape
    if len(regime) != times or len(covariates) != times:
        raise InvalidArgument(f"regime and covariates need one entry for each of the {times} times")
    at = learner_for(learner, "treatment")
    history = [np.column_stack([treatments[:, :t], *covariates[: t + 1]]) for t in range(times)]
    weight, weights = np.ones(n), []
    for t in range(times):
        chance = fitted(at, history[t], treatments[:, t].astype(float), "bernoulli", seed)(history[t])
        given = chance if regime[t] == 1 else 1 - chance
        weight = weight * (treatments[:, t] == regime[t]) / np.maximum(given, CLIP)
        weights.append(weight)
    following = np.stack([treatments[:, t] == regime[t] for t in range(times)])
    target, correction = outcome, np.zeros(n)
    for t in reversed(range(times)):
        inside = np.all(following[: t + 1], axis=0)
        if inside.sum() < 2:
            raise InvalidArgument(f"no row follows the regime {list(regime)!r} up to time {t + 1}")
        kind = family if t == times - 1 else "gaussian" if family == "bernoulli" else family
        predicted = fitted(learner_for(learner, "outcome"), history[t][inside], target[inside], kind, seed)(
            history[t]
        )
        correction += weights[t] * (target - predicted)
        target = predicted
    pseudo = target + correction if robust else target
    value = float(pseudo.mean())
    return estimate(value, pseudo - value if robust else np.full(n, np.nan))


def marginal_structural_model(
    treatments: Ints, outcome: Array, covariates: Sequence[Array], *, learner: Any = None, seed: int = 0
) -> Estimate:
    """Return the slope of the mean outcome by the number of treatments, from stabilised weights; errors are robust.

    The parameters are those of `regime_mean`.
    """
    n, times = treatments.shape
    weights, scores = np.ones(n), []
    at = learner_for(learner, "treatment")
    for t in range(times):
        past = treatments[:, :t].astype(float)
        full = np.column_stack([past, *covariates[: t + 1]])
        now = treatments[:, t].astype(float)
        top, bottom = (
            fitted(None, past, now, "bernoulli", seed)(past),
            fitted(at, full, now, "bernoulli", seed)(full),
        )
        weights *= np.where(
            now == 1, top / np.maximum(bottom, CLIP), (1 - top) / np.maximum(1 - bottom, CLIP)
        )
        if at is None or at == "linear":
            scores.append(with_intercept(full) * (now - bottom)[:, None])
    dose = treatments.sum(axis=1).astype(float)[:, None]
    model = fit_glm(dose, outcome, "gaussian", weights)
    rows = model.coef_influence(dose, outcome, weights)[:, 1]
    if scores:
        # weights that are fitted err less than known ones: what the treatment models explain is taken off
        known = np.column_stack(scores)
        rows = rows - known @ np.linalg.lstsq(known, rows, rcond=None)[0]
    return estimate(float(model.coef[1]), rows, weights=weights)
