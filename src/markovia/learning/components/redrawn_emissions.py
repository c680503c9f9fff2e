"""Draws of a hidden Markov model's emissions given its states, by the conjugate families of their components.

What a normal prior does not say follows Fraley and Raftery (2007); see `normal_inverse_wishart`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.learning.components.conjugate import (
    BernoulliFamily,
    ConjugateFamily,
    DirichletFamily,
    PoissonFamily,
)
from markovia.learning.components.conjugate_draws import inverse_wishart, normal_inverse_wishart
from markovia.learning.components.discrete import Bernoulli, Categorical, Multinomial, Poisson
from markovia.learning.components.gaussian import Gaussian
from markovia.learning.components.tied import Tied
from markovia.runtime.array_types import Array


def redrawn(
    emission: Any, rows: Any, weights: Array, prior: Mapping[str, Any], rng: np.random.Generator
) -> Any:
    """Return emissions drawn given rows and how often each belongs to each state, `weights (rows, states)`.

    Where a prior is not said it is weak: uniform for probabilities, exponential with the data's mean for rates.
    """
    family: ConjugateFamily
    match emission:
        case Tied():
            sums = np.zeros((len(weights), emission.inner.n_states))
            np.add.at(sums.T, emission.groups, weights.T)
            return replace(emission, inner=redrawn(emission.inner, rows, sums, prior, rng))
        case Gaussian():
            return _normal_redrawn(emission, rows, weights, prior, rng)
        case Bernoulli():
            family = BernoulliFamily(np.asarray(prior.get("a", 1.0)), np.asarray(prior.get("b", 1.0)))
        case Poisson():
            many = weights.sum(axis=1)
            mean = np.maximum(many @ rows / max(many.sum(), 1.0), 1e-10)
            family = PoissonFamily(np.asarray(prior.get("shape", 1.0)), prior.get("rate", 1.0 / mean))
        case Categorical():
            family = DirichletFamily(np.asarray(prior.get("concentration", 1.0)), (len(emission.symbols),))
        case Multinomial():
            family = DirichletFamily(np.asarray(prior.get("concentration", 1.0)))
        case _:
            raise UnsupportedModel(
                "a posterior by Gibbs sampling is for categorical, multinomial, bernoulli, poisson and gaussian emissions, "
                f"not for {type(emission).__name__}"
            )
    return replace(emission, **family.drawn(rows, weights, rng))


def _normal_redrawn(e: Gaussian, rows: Any, weights: Array, prior: Any, rng: Any) -> Gaussian:
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
