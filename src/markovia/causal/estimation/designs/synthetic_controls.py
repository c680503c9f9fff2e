"""Synthetic control: the treated unit against the mixture of other units that followed it best before the treatment.

The weights are not negative and sum to one (Abadie, Diamond & Hainmueller, 2010). Inference is by placebo: each other unit
is treated in turn, and the p-value is the share of units whose error grew as much after the start as the treated one's.
"""

from dataclasses import dataclass

import numpy as np

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array


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
    """

    weights: Array
    gaps: Array
    placebo_gaps: Array
    start: int
    p_value: float

    @property
    def effect(self) -> float:
        """The average gap after the start."""
        return float(self.gaps[self.start :].mean())


def synthesise(treated: Array, donors: Array, start: int) -> Synthesis:
    """Return the synthetic control of one series.

    Parameters
    ----------
    treated, donors
        Shapes (periods,) and (donors, periods).
    start
        The position of the first treated period.
    """
    if not 2 <= start < len(treated):
        raise InvalidArgument(
            "a synthetic control needs two periods or more before the start and one after it"
        )
    if len(donors) < 2:
        raise InvalidArgument("a synthetic control needs two or more untreated units")
    weights = simplex_weights(donors[:, :start].T, treated[:start])
    gaps = treated - weights @ donors
    placebo = np.empty(donors.shape)
    for k in range(len(donors)):
        others = np.delete(donors, k, axis=0)
        placebo[k] = donors[k] - simplex_weights(others[:, :start].T, donors[k, :start]) @ others
    ratios = [_growth(g, start) for g in (gaps, *placebo)]
    return Synthesis(weights, gaps, placebo, start, float(np.mean(np.array(ratios) >= ratios[0])))


def _growth(gaps: Array, start: int) -> float:
    """Return the mean squared error after the start over that before it."""
    return float(np.mean(gaps[start:] ** 2) / max(float(np.mean(gaps[:start] ** 2)), 1e-12))


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
