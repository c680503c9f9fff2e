"""Steps of filters and smoothers that carry a mean and a covariance: what all approximate filters are made of.

They take arrays of JAX, or of NumPy where `library` says so, with any axes in front.

A rule gives the moments of a function of a Gaussian: `linearised` by its derivative, `through_points` by its values at sigma
points. Reference: Sarkka, Bayesian Filtering and Smoothing (2013).
"""

# ruff: noqa: N803, N806 (letters of the literature)

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from markovia.runtime.libraries import jax, jnp

LOG_2PI = math.log(2.0 * math.pi)


class StateMoments(NamedTuple):
    """Mean and covariance of a function's value, and the covariance of its argument with it."""

    mean: Any
    cov: Any
    cross: Any


def symmetric(P: Any) -> Any:
    """Return a matrix without what rounding made of its symmetry."""
    return (P + P.swapaxes(-1, -2)) / 2


def condition(
    mean: Any, cov: Any, seen_as: StateMoments, noise: Any, y: Any, library: Any = None
) -> tuple[Any, Any, Any]:
    """Return mean, covariance and the observation's log density; numbers that are NaN were not seen."""
    xp = _library(library)
    gain: Any
    z: Any
    seen = ~xp.isnan(y)
    both = seen[..., :, None] & seen[..., None, :]
    alone = xp.where(seen, 0.0, 1.0)[..., None] * xp.eye(y.shape[-1])
    L = xp.linalg.cholesky(symmetric(xp.where(both, seen_as.cov + noise, 0.0) + alone))
    away = xp.where(seen, y - seen_as.mean, 0.0)
    cross = xp.where(seen[..., None, :], seen_as.cross, 0.0).swapaxes(-1, -2)
    if library is np:
        gain, z = np.linalg.solve(L, cross), np.linalg.solve(L, away[..., None])
    else:
        from jax.scipy.linalg import solve_triangular

        gain, z = (solve_triangular(L, part, lower=True) for part in (cross, away[..., None]))
    turned = gain.swapaxes(-1, -2)
    half = xp.log(xp.diagonal(L, axis1=-2, axis2=-1)).sum(axis=-1)
    log_density = -0.5 * ((z**2).sum(axis=(-2, -1)) + seen.sum(axis=-1) * LOG_2PI) - half
    return mean + (turned @ z)[..., 0], symmetric(cov - turned @ gain), log_density


def smoothing_gain(predicted_cov: Any, cross: Any, library: Any = None) -> Any:
    """Return the weight of a next state's correction in this state's: cross times the inverse, which may be singular."""
    xp = _library(library)
    values, vectors = xp.linalg.eigh(symmetric(predicted_cov))
    kept = values > 1e-13 * xp.maximum(values[..., -1:], 1e-300)
    inverse = xp.where(kept, 1.0 / xp.where(kept, values, 1.0), 0.0)
    return (cross @ (vectors * inverse[..., None, :])) @ vectors.swapaxes(-1, -2)


def _library(library: Any) -> Any:
    if library is not None:
        return library
    return jnp


def root(P: Any) -> Any:
    """Return a lower triangle with L L' = P, for P that may be singular."""
    values, vectors = jnp.linalg.eigh(symmetric(P))
    R = jnp.linalg.qr((vectors * jnp.sqrt(jnp.maximum(values, 0.0))).T, mode="r")
    signs = jnp.where(jnp.diag(R) < 0, -1.0, 1.0)
    return (signs[:, None] * R).T


def linearised(function: Callable[[Any], Any], mean: Any, cov: Any) -> StateMoments:
    """Return moments by the derivative at the mean."""
    J = jax.jacfwd(function)(mean)
    return StateMoments(function(mean), J @ cov @ J.T, cov @ J.T)


class SigmaPoints(NamedTuple):
    """Sigma points of the standard normal law, with weights of means and of covariances."""

    at: Any
    mean: Any
    cov: Any


def sigma_points(n: int, alpha: float, beta: float, kappa: float) -> SigmaPoints:
    """Return the scaled points of the unscented transform (Julier and Uhlmann 1997, van der Merwe 2004).

    Examples
    --------
    >>> points = sigma_points(2, 1.0, 0.0, 1.0)
    >>> points.at.shape, (points.mean @ points.at**2).round(12).tolist(), (points.mean @ points.at**4).round(12).tolist()
    ((5, 2), [1.0, 1.0], [3.0, 3.0])
    """
    spread = alpha**2 * (n + kappa)
    at = math.sqrt(spread) * np.vstack([np.zeros((1, n)), np.eye(n), -np.eye(n)])
    mean = np.full(2 * n + 1, 0.5 / spread)
    mean[0] = 1.0 - n / spread
    cov = mean.copy()
    cov[0] += 1.0 - alpha**2 + beta
    return SigmaPoints(at, mean, cov)


def cubature_points(n: int) -> SigmaPoints:
    """Return the 2n points of the spherical cubature rule (Arasaratnam and Haykin 2009)."""
    at = math.sqrt(n) * np.vstack([np.eye(n), -np.eye(n)])
    weights = np.full(2 * n, 0.5 / n)
    return SigmaPoints(at, weights, weights)


def through_points(points: SigmaPoints, function: Callable[[Any], Any], mean: Any, cov: Any) -> StateMoments:
    """Return moments by the function's values at sigma points."""
    away = points.at @ root(cov).T
    values = jax.vmap(function)(mean + away)
    expected = points.mean @ values
    left = values - expected
    weighted = points.cov[:, None] * left
    return StateMoments(expected, left.T @ weighted, away.T @ weighted)
