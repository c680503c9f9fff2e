"""Draws of a hidden Markov model's parameters given its states: Dirichlet, beta, gamma, normal-inverse-Wishart.

Where a prior is not said it is weak: uniform for probabilities, exponential with the data's mean for rates, and for normal
distributions that of Fraley and Raftery (2007): a hundredth of an observation at the data's mean, and a covariance that
divides the data's among the states.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.learning.components.discrete import Bernoulli, Categorical, Multinomial, Poisson
from markovia.learning.components.gaussian import Gaussian
from markovia.learning.components.tied import Tied
from markovia.runtime.array_types import Array

WEAK = 0.01


def redrawn(
    emission: Any, rows: Any, weights: Array, prior: Mapping[str, Any], rng: np.random.Generator
) -> Any:
    """Return emissions drawn given rows and how often each belongs to each state, `weights (rows, states)`."""
    if isinstance(emission, Tied):
        sums = np.zeros((len(weights), emission.inner.n_states))
        np.add.at(sums.T, emission.groups, weights.T)
        return replace(emission, inner=redrawn(emission.inner, rows, sums, prior, rng))
    draw = _DRAWS.get(type(emission))
    if draw is None:
        raise UnsupportedModel(
            "a posterior by Gibbs sampling is for categorical, multinomial, bernoulli, poisson and gaussian emissions, not "
            f"for {type(emission).__name__}"
        )
    return draw(emission, rows, weights, prior, rng)


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


def _categorical(e: Categorical, rows: Any, weights: Array, prior: Any, rng: Any) -> Categorical:
    counts = np.zeros_like(e.probs)
    np.add.at(counts.T, rows[:, 0].astype(np.int64), weights)
    return replace(e, probs=dirichlet_rows(counts + prior.get("concentration", 1.0), rng))


def _multinomial(e: Multinomial, rows: Any, weights: Array, prior: Any, rng: Any) -> Multinomial:
    return replace(e, probs=dirichlet_rows(weights.T @ rows + prior.get("concentration", 1.0), rng))


def _bernoulli(e: Bernoulli, rows: Any, weights: Array, prior: Any, rng: Any) -> Bernoulli:
    ones, size = weights.T @ rows, weights.sum(axis=0)[:, None]
    return replace(e, probs=rng.beta(ones + prior.get("a", 1.0), size - ones + prior.get("b", 1.0)))


def _poisson(e: Poisson, rows: Any, weights: Array, prior: Any, rng: Any) -> Poisson:
    many = weights.sum(axis=1)
    mean = np.maximum(many @ rows / max(many.sum(), 1.0), 1e-10)
    rate = prior.get("rate", 1.0 / mean) + weights.sum(axis=0)[:, None]
    return replace(e, rates=rng.gamma(prior.get("shape", 1.0) + weights.T @ rows) / rate)


def _gaussian(e: Gaussian, rows: Any, weights: Array, prior: Any, rng: Any) -> Gaussian:
    k, d = e.means.shape
    centre, kappa, spread, df = normal_inverse_wishart(rows, weights.sum(axis=1), k, prior)
    size = weights.sum(axis=0)
    total = size + kappa
    middles = (weights.T @ rows + kappa * centre) / total[:, None]
    scatter = np.array(
        [(rows - m).T @ ((rows - m) * w[:, None]) for m, w in zip(middles, weights.T, strict=True)]
    )
    apart = middles - centre
    scatter += kappa * apart[:, :, None] * apart[:, None, :]
    if e.kind == "tied":
        one = inverse_wishart(df + size.sum(), spread + scatter.sum(axis=0), rng)
        covariances = np.repeat(one[None], k, axis=0)
    elif e.kind == "full":
        covariances = np.array(
            [inverse_wishart(df + n, spread + s, rng) for n, s in zip(size, scatter, strict=True)]
        )
    else:
        sums = np.diagonal(spread + scatter, axis1=1, axis2=2)
        if e.kind == "diag":
            shape, scale = np.repeat((df + d - 1.0 + size)[:, None] / 2.0, d, axis=1), sums / 2.0
        else:
            shape, scale = (
                (d * (df + d + 1.0 + size) / 2.0 - 1.0)[:, None],
                sums.sum(axis=1, keepdims=True) / 2.0,
            )
        variances = np.broadcast_to(scale / rng.gamma(shape), (k, d))
        covariances = variances[:, :, None] * np.eye(d)
    factors = np.linalg.cholesky(covariances)
    white = rng.standard_normal((k, d)) / np.sqrt(total)[:, None]
    return replace(e, means=middles + np.einsum("kij,kj->ki", factors, white), covariances=covariances)


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


_DRAWS: dict[type, Callable[..., Any]] = {
    Categorical: _categorical,
    Multinomial: _multinomial,
    Bernoulli: _bernoulli,
    Poisson: _poisson,
    Gaussian: _gaussian,
}
