"""Synthetic control: the treated unit against the mixture of other units that followed it best before the treatment.

The weights are not negative and sum to one (Abadie, Diamond & Hainmueller, 2010). Inference is by placebo: each other unit
is treated in turn, and the p-value is the share of units whose error grew as much after the start as the treated one's.
With predictors (covariates and averages of the outcome before the start) the mixture is the one that is nearest in these,
and their importance is chosen so that it follows the outcome before the start best; mixtures that are equally near are told
apart by the outcome itself.
"""

from dataclasses import dataclass

import numpy as np

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array

TIE = 1e-4
"""How much the outcome counts beside the predictors: only where mixtures are equally near in those."""


@dataclass(frozen=True)
class Synthesis:
    """A synthetic control: weights of the donors, gaps (observed less synthetic) at each time, and the placebos'.

    Attributes
    ----------
    weights
        One a donor, summing to one.
    gaps, placebo_gaps
        Shapes (periods,) and (donors, periods).
    start
        The first treated period's position.
    p_value
        The share of units, the treated one among them, whose ratio of errors after and before is as large.
    importance
        One a predictor, summing to one; None without predictors.
    """

    weights: Array
    gaps: Array
    placebo_gaps: Array
    start: int
    p_value: float
    importance: Array | None = None

    @property
    def effect(self) -> float:
        """The average gap after the start."""
        return float(self.gaps[self.start :].mean())


def synthesise(
    treated: Array, donors: Array, start: int, predictors: tuple[Array, Array] | None = None
) -> Synthesis:
    """Return the synthetic control of one series.

    Parameters
    ----------
    treated, donors
        Shapes (periods,) and (donors, periods).
    start
        The position of the first treated period.
    predictors
        Of the treated series and of the donors, shapes (predictors,) and (donors, predictors).
    """
    if not 2 <= start < len(treated):
        raise InvalidArgument(
            "a synthetic control needs two periods or more before the start and one after it"
        )
    if len(donors) < 2:
        raise InvalidArgument("a synthetic control needs two or more untreated units")
    alike = np.vstack(predictors) if predictors is not None else None
    weights, importance = _mixture(treated, donors, start, alike)
    gaps = treated - weights @ donors
    placebo = np.empty(donors.shape)
    for k in range(len(donors)):
        others = np.delete(donors, k, axis=0)
        # the treated unit is no donor of a placebo
        own = None if alike is None else np.vstack([alike[k + 1], np.delete(alike[1:], k, axis=0)])
        placebo[k] = donors[k] - _mixture(donors[k], others, start, own)[0] @ others
    unit = float(np.ptp(np.vstack([treated, donors])))
    ratios = [_growth(g, start, unit) for g in (gaps, *placebo)]
    p_value = float(np.mean(np.array(ratios) >= ratios[0]))
    return Synthesis(weights, gaps, placebo, start, p_value, importance)


def _mixture(treated: Array, donors: Array, start: int, alike: Array | None) -> tuple[Array, Array | None]:
    """Return the weights of the donors, and the importance of the predictors (the first row is the treated unit's)."""
    before, target = donors[:, :start].T, treated[:start]
    if alike is None:
        return simplex_weights(before, target), None
    from scipy.optimize import minimize

    # in units of their spread, so that neither a predictor's unit nor the outcome's has a say
    spread = np.ptp(alike, axis=0)
    scaled = alike / np.where(spread > 0, spread, 1.0)
    rows, own = scaled[1:].T, scaled[0]
    unit = float(np.ptp(np.column_stack([before, target]))) or 1.0

    def mixed(logits: Array) -> tuple[Array, Array]:
        shares = np.exp(logits - logits.max())
        shares /= shares.sum()
        # rows of predictors by the root of their importance; below them, faint, the outcome itself, which breaks ties
        root = np.sqrt(shares)[:, None]
        columns = np.vstack([root * rows, TIE / unit * before])
        return simplex_weights(columns, np.append(root[:, 0] * own, TIE / unit * target)), shares

    def misfit(logits: Array) -> float:
        return float(np.mean(((before @ mixed(logits)[0] - target) / unit) ** 2))

    flat = np.zeros(alike.shape[1])
    axes = np.eye(len(flat))
    best = min([flat, *(2.0 * axes), *(5.0 * axes)], key=misfit)
    # the misfit has plateaus, on which a simplex has to be large to see anything
    options = {"maxiter": 60 * len(flat), "initial_simplex": np.vstack([best, best + 1.5 * axes])}
    return mixed(minimize(misfit, best, method="Nelder-Mead", options=options).x)


def _growth(gaps: Array, start: int, unit: float) -> float:
    """Return the mean squared error after the start over that before it, at least that of a millionth of the unit."""
    least = (1e-6 * unit) ** 2 or 1.0
    return float(np.mean(gaps[start:] ** 2) / max(float(np.mean(gaps[:start] ** 2)), least))


def simplex_weights(columns: Array, target: Array) -> Array:
    """Return the weights w >= 0 with sum 1 that minimise |columns w - target|^2.

    Non-negative least squares on differences: with the target taken off every column, sum w = 1 turns the problem
    into a cone, which scaling solves exactly (the smallest point of the convex hull).

    Examples
    --------
    >>> simplex_weights(np.array([[0.0, 2.0], [1.0, 1.0]]), np.array([1.5, 1.0])).round(6).tolist()
    [0.25, 0.75]
    """
    from scipy.optimize import nnls

    apart = columns - target[:, None]
    scale = float(np.abs(apart).max()) or 1.0
    system = np.vstack([apart / scale, np.ones(columns.shape[1])])
    found, _ = nnls(system, np.append(np.zeros(len(target)), 1.0))
    return np.asarray(found / found.sum())
