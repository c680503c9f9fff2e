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
from markovia.errors import InvalidArgument
from markovia.learning.control.trajectory_weights import cumulative_weights
from markovia.learning.regression.nuisance import CLIP, fit_glm, fitted, learner_for, with_intercept
from markovia.runtime.array_types import Array, Ints


def regime_mean(
    treatments: Ints,
    outcome: Array,
    covariates: Sequence[Array],
    regime: Sequence[int | Array],
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
        The treatment to give at each time: 0 or 1, or for each row the probability of 1.
    robust
        Whether the weighted residuals are added; without them it is plain g-computation, whose error is missing (NaN).
    """
    n, times = treatments.shape
    if len(regime) != times or len(covariates) != times:
        raise InvalidArgument(f"regime and covariates need one entry for each of the {times} times")
    at = learner_for(learner, "treatment")
    history = [np.column_stack([treatments[:, :t], *covariates[: t + 1]]) for t in range(times)]
    asked = [np.broadcast_to(np.asarray(g, dtype=np.float64), n) for g in regime]
    asked_of_both = [np.column_stack([1 - g, g]) for g in asked]
    taken = [np.take_along_axis(g, treatments[:, [t]], axis=1)[:, 0] for t, g in enumerate(asked_of_both)]
    logged = []
    for t in range(times):
        now = treatments[:, t].astype(float)
        chance = fitted(at, history[t], now, "bernoulli", seed)(history[t])
        logged.append(np.where(now == 1, chance, 1 - chance))
    weights = cumulative_weights(taken, logged, CLIP)
    before = np.cumprod([np.ones(n), *(np.asarray(g > 0, dtype=float) for g in taken)], axis=0) > 0
    target, correction = outcome, np.zeros(n)
    for t in reversed(range(times)):
        kind = family if t == times - 1 else "gaussian" if family == "bernoulli" else family
        means = np.zeros((n, 2))
        for a in (0, 1):
            if not (wanted := before[t] & (asked_of_both[t][:, a] > 0)).any():
                continue
            inside = wanted & (treatments[:, t] == a)
            if inside.sum() < 2:
                raise InvalidArgument(f"no row follows the {_said_of(regime)} up to time {t + 1}")
            predict = fitted(learner_for(learner, "outcome"), history[t][inside], target[inside], kind, seed)
            means[:, a] = predict(history[t])
        correction += weights[t] * (target - means[np.arange(n), treatments[:, t]])
        target = (asked_of_both[t] * means).sum(axis=1)
    pseudo = target + correction if robust else target
    value = float(pseudo.mean())
    return estimate(value, pseudo - value if robust else np.full(n, np.nan))


def _said_of(regime: Sequence[int | Array]) -> str:
    return f"regime {list(regime)!r}" if all(np.ndim(g) == 0 for g in regime) else "policy"


def marginal_structural_model(
    treatments: Ints, outcome: Array, covariates: Sequence[Array], *, learner: Any = None, seed: int = 0
) -> Estimate:
    """Return the slope of the mean outcome by the number of treatments, from stabilised weights; errors are robust.

    The parameters are those of `regime_mean`.
    """
    times = treatments.shape[1]
    scores, asked, logged = [], [], []
    at = learner_for(learner, "treatment")
    for t in range(times):
        past = treatments[:, :t].astype(float)
        full = np.column_stack([past, *covariates[: t + 1]])
        now = treatments[:, t].astype(float)
        top, bottom = (
            fitted(None, past, now, "bernoulli", seed)(past),
            fitted(at, full, now, "bernoulli", seed)(full),
        )
        asked.append(np.where(now == 1, top, 1 - top))
        logged.append(np.where(now == 1, bottom, 1 - bottom))
        if at is None or at == "linear":
            scores.append(with_intercept(full) * (now - bottom)[:, None])
    weights = cumulative_weights(asked, logged, CLIP)[-1]
    dose = treatments.sum(axis=1).astype(float)[:, None]
    model = fit_glm(dose, outcome, "gaussian", weights)
    rows = model.coef_influence(dose, outcome, weights)[:, 1]
    if scores:
        # weights that are fitted err less than known ones: what the treatment models explain is taken off
        known = np.column_stack(scores)
        rows = rows - known @ np.linalg.lstsq(known, rows, rcond=None)[0]
    return estimate(float(model.coef[1]), rows, weights=weights)
