"""Maximum likelihood of linear equations x = B x + e that may feed back, given which entries of B are free.

Method: the negative log likelihood a row is sum_i log(w_i) / 2 - log |det(I - B)|, w_i being the variance that equation i
leaves in the data; without cycles the determinant is one and the answer is each variable's regression on its parents. It is
minimised by L-BFGS from no effects and from those regressions, in units of standard deviations; the better end counts.
Reference: Bollen, *Structural equations with latent variables* (1989), chapter 4. Cost: cubic in the variables a step.
"""

from typing import Any, NamedTuple

import numpy as np

from markovia.optimise.minimise import Minimum, minimise
from markovia.runtime.array_types import Array

RANK = 1e-6
"""A least singular value of the Jacobian, its rows of length one, below this counts as zero."""


class FeedbackFit(NamedTuple):
    """The matrix B and the variances of the noises, how the search ended, and whether the covariance determines them."""

    weights: Array
    noise: Array
    end: Minimum
    identified: bool


def fit_feedback_equations(correlation: Array, row: Any, column: Any) -> FeedbackFit:
    """Fit the entries B[row, column] to a correlation matrix.

    Examples
    --------
    >>> found = fit_feedback_equations(np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([1]), np.array([0]))
    >>> found.weights.round(6).tolist(), found.noise.round(6).tolist(), found.identified
    ([[0.0, 0.0], [0.5, 0.0]], [1.0, 0.75], True)
    """
    n = len(correlation)

    def left_side(entries: Array) -> tuple[Array, Array]:
        left = np.eye(n)
        left[row, column] -= entries
        return left, ((left @ correlation) * left).sum(axis=1)

    def loss(entries: Array) -> tuple[float, Array]:
        left, noise = left_side(entries)
        sign, size = np.linalg.slogdet(left)
        if sign == 0 or not (noise > 0).all():
            return np.inf, np.zeros(len(entries))
        slope = np.linalg.inv(left).T - (left @ correlation) / noise[:, None]
        return float(0.5 * np.log(noise).sum() - size), slope[row, column]

    regressed = np.zeros(len(row))
    for i in np.unique(row):
        own = column[row == i]
        solved = np.linalg.lstsq(correlation[np.ix_(own, own)], correlation[own, i], rcond=None)
        regressed[row == i] = solved[0]
    ends = [minimise(loss, start, max_iter=1000, tol=1e-9) for start in (np.zeros(len(row)), regressed)]
    end = min(ends, key=lambda found: found.value)
    left, noise = left_side(end.point)
    return FeedbackFit(np.eye(n) - left, noise, end, _identified(left, noise, row, column))


def _identified(left: Array, noise: Array, row: Any, column: Any) -> bool:
    """Say whether the covariance determines weights and variances near a point: its Jacobian has full rank there."""
    solution = np.linalg.inv(left)
    covariance = (solution * noise) @ solution.T
    inside = np.triu_indices(len(noise))
    # d covariance / d B_ij = s_i c_j' + c_j s_i' and d covariance / d w_i = s_i s_i', s_i a column of the solution
    by_weight = [np.outer(solution[:, i], covariance[j]) for i, j in zip(row, column, strict=True)]
    by_noise = [np.outer(s, s) * w / 2 for s, w in zip(solution.T, noise, strict=True)]
    slopes = np.array([(m + m.T)[inside] for m in (*by_weight, *by_noise)]).reshape(-1, len(inside[0]))
    slopes /= np.linalg.norm(slopes, axis=1, keepdims=True)
    # the least singular value by its square: far fewer parameters than entries of the covariance
    return bool(np.linalg.eigvalsh(slopes @ slopes.T).min(initial=1.0) > RANK**2)
