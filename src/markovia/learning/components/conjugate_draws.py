"""Draws from conjugate laws: Dirichlet and inverse Wishart, and the weak prior of normal distributions.

What a normal-inverse-Wishart prior does not say follows Fraley and Raftery (2007): a hundredth of an observation at the
data's mean, and a covariance that divides the data's among the states.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from markovia.runtime.array_types import Array

WEAK = 0.01


def dirichlet_rows(concentrations: Array, rng: np.random.Generator) -> Array:
    """Return a draw for each row; entries whose concentration is 0 are 0.

    Examples
    --------
    >>> dirichlet_rows(np.array([[1.0, 0.0], [5.0, 5.0]]), np.random.default_rng(0))[0].tolist()
    [1.0, 0.0]
    """
    # the logarithm of a gamma draw of a small shape does not underflow: G(a) = G(a + 1) U^(1/a)
    there = concentrations > 0.0
    a = np.where(there, concentrations, 1.0)
    logs = np.log(rng.gamma(a + 1.0)) + np.log(rng.random(a.shape)) / a
    logs = np.where(there, logs, -np.inf)
    found = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


def normal_inverse_wishart(
    rows: Array, many: Array, k: int, prior: Mapping[str, Any]
) -> tuple[Array, float, Array, float]:
    """Return the mean, strength, scale and degrees of freedom of a prior; what it does not say is weak."""
    d = rows.shape[1]
    middle = np.average(rows, axis=0, weights=many)
    variance = np.average((rows - middle) ** 2, axis=0, weights=many)
    scale = np.asarray(prior.get("scale", np.diag(np.where(variance > 0, variance, 1.0)) / k ** (2.0 / d)))
    full = scale if scale.ndim == 2 else scale * np.eye(d)
    centre = np.broadcast_to(prior.get("mean", middle), (d,))
    return centre, float(prior.get("strength", WEAK)), full, float(prior.get("df", d + 2.0))


def inverse_wishart(df: Any, scale: Array, rng: np.random.Generator) -> Array:
    """Return a draw, or one for each of several degrees of freedom and scales, by Bartlett's decomposition."""
    d = scale.shape[-1]
    factor = np.linalg.cholesky(np.linalg.inv(scale))
    lower = np.tril(rng.standard_normal(scale.shape), -1)
    place = np.arange(d)
    lower[..., place, place] = np.sqrt(rng.chisquare(np.asarray(df)[..., None] - place))
    root = np.linalg.inv(factor @ lower)
    return np.asarray(root.swapaxes(-1, -2) @ root)
