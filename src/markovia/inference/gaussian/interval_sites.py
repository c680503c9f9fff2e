"""Numbers that are only known to lie in an interval: Gaussian sites by expectation propagation.

Method: each interval is replaced by a Gaussian factor that gives its number the mean and variance of the truncated one
(Minka 2001). With one interval the moments of all numbers and the probability of the evidence are exact; with several they
are approximate, because truncating one number changes the shape of the others.
Cost: some tens of sweeps over k intervals, k^3 each.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from markovia.runtime.array_types import Array

SWEEPS, TOLERANCE = 500, 1e-12


class Sites(NamedTuple):
    """Means and variances of the Gaussian factors, and the log probability of all intervals together."""

    mean: Array
    variance: Array
    log_mass: Array


def interval_sites(mean: Array, covariance: Array, intervals: Sequence[Any]) -> Sites:
    """Return the sites of intervals on Gaussian numbers, one row a configuration."""
    low = np.array([f.low for f in intervals])
    high = np.array([f.high for f in intervals])
    rows = [_sites(m, s, low, high) for m, s in zip(mean, covariance, strict=True)]
    return Sites(*(np.array(column) for column in zip(*rows, strict=True)))


def _sites(mean: Array, covariance: Array, low: Array, high: Array) -> tuple[Array, Array, float]:
    k = len(mean)
    if not np.isfinite(mean).all():
        return np.zeros(k), np.ones(k), -np.inf
    tau, nu, log_site = np.zeros(k), np.zeros(k), np.zeros(k)
    for _ in range(SWEEPS):
        before = tau.copy(), nu.copy()
        for i in range(k):
            after, center = _updated(mean, covariance, tau, nu)
            if after[i, i] <= 1e-14 * covariance[i, i] or after[i, i] <= 0.0:
                if covariance[i, i] <= 0.0 and not low[i] <= center[i] <= high[i]:
                    return np.zeros(k), np.ones(k), -np.inf
                continue
            wide = 1.0 / max(1.0 / after[i, i] - tau[i], 1e-300)
            middle = wide * (center[i] / after[i, i] - nu[i])
            log_z, m, v = truncated(middle, wide, low[i], high[i])
            if log_z == -np.inf:
                return np.zeros(k), np.ones(k), -np.inf
            tau[i] = max(1.0 / v - 1.0 / wide, 1e-12 / wide)
            nu[i] = m / v - middle / wide
            # the site integrates to the same as the interval against everything else
            both = 1.0 / wide + tau[i]
            log_site[i] = (
                log_z
                + 0.5 * np.log(wide * both)
                - 0.5 * ((middle / wide + nu[i]) ** 2 / both - middle**2 / wide)
            )
        if all(np.allclose(a, b, rtol=TOLERANCE, atol=0.0) for a, b in zip(before, (tau, nu), strict=True)):
            break
    used = tau > 0
    after, _ = _updated(mean, covariance, tau, nu)
    root = np.sqrt(tau)
    gap = nu - tau * mean
    log_mass = (
        float(log_site.sum() + nu @ mean - 0.5 * (tau * mean) @ mean + 0.5 * gap @ after @ gap)
        - 0.5 * np.linalg.slogdet(np.eye(k) + root[:, None] * covariance * root)[1]
    )
    tau = np.where(used, tau, 1e-300)
    return nu / tau, 1.0 / tau, float(log_mass)


def _updated(mean: Array, covariance: Array, tau: Array, nu: Array) -> tuple[Array, Array]:
    """Return covariance and mean after all sites, without inverting a covariance that may be singular."""
    root = np.sqrt(tau)
    middle = np.eye(len(tau)) + root[:, None] * covariance * root
    half = root[:, None] * covariance
    after = covariance - half.T @ np.linalg.solve(middle, half)
    return after, mean + after @ (nu - tau * mean)


def truncated(mean: float, variance: float, low: float, high: float) -> tuple[float, float, float]:
    """Return log probability, mean and variance of a Gaussian cut off outside an interval.

    Examples
    --------
    >>> log_p, m, v = truncated(0.0, 1.0, 0.0, float("inf"))
    >>> round(log_p, 4), round(m, 4), round(v, 4)
    (-0.6931, 0.7979, 0.3634)
    """
    from scipy.special import log_ndtr

    deviation = np.sqrt(variance)
    a, b = (low - mean) / deviation, (high - mean) / deviation
    flip = -1.0 if a > 0 else 1.0
    if a > 0:
        a, b = -b, -a
    top, bottom = float(log_ndtr(b)), float(log_ndtr(a))
    log_z = top + np.log1p(-np.exp(bottom - top)) if bottom > -np.inf else top
    if b - a < 1e-5:
        log_z = -0.5 * (0.5 * (a + b)) ** 2 - 0.5 * np.log(2 * np.pi) + np.log(b - a)
        m, v = 0.5 * (a + b) * (1 - (b - a) ** 2 / 12), (b - a) ** 2 / 12
        return float(log_z), float(mean + flip * deviation * m), float(variance * v)
    if not np.isfinite(log_z):
        return -np.inf, mean, variance
    at_a, at_b = (
        float(np.exp(-0.5 * x * x - 0.5 * np.log(2 * np.pi) - log_z)) if np.isfinite(x) else 0.0
        for x in (a, b)
    )
    m = at_a - at_b
    v = 1.0 + (a * at_a if at_a else 0.0) - (b * at_b if at_b else 0.0) - m * m
    return float(log_z), float(mean + flip * deviation * m), variance * float(max(v, 1e-14))
