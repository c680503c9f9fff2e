"""Draws from conjugate laws: Dirichlet and inverse Wishart."""

from typing import Any

import numpy as np

from markovia.runtime.array_types import Array


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


def inverse_wishart(df: Any, scale: Array, rng: np.random.Generator) -> Array:
    """Return a draw, or one for each of several degrees of freedom and scales, by Bartlett's decomposition."""
    d = scale.shape[-1]
    lower = np.tril(rng.standard_normal(scale.shape), -1)
    place = np.arange(d)
    lower[..., place, place] = np.sqrt(rng.chisquare(np.asarray(df)[..., None] - place))
    # the scale is factored and never inverted: columns may differ by many powers of ten
    root = np.linalg.solve(lower, np.linalg.cholesky(scale).swapaxes(-1, -2))
    return np.asarray(root.swapaxes(-1, -2) @ root)
