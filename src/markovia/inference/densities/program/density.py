"""A model as the log density of an unconstrained vector: all that gradient-based engines see of it.

Constrained quantities (positive numbers, simplexes, ordered vectors) are images of free ones under bijections, whose
log Jacobians are part of the density. Data are an argument, so that new data of the same shape need no compilation.
"""

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from markovia.runtime.libraries import jax, jnp


@dataclass(frozen=True)
class DensityRows:
    """How a density's likelihood is a sum over rows of data, so that engines may look at a few rows at a time.

    Attributes
    ----------
    count
        How many rows there are.
    log_likelihood
        `(u, data, positions) -> number`: the log likelihood of the rows at some positions; traceable.
    """

    count: int
    log_likelihood: Callable[[Any, Any, Any], Any]


@dataclass(frozen=True)
class Slot:
    """Where a latent quantity sits in the unconstrained vector."""

    start: int
    size: int


@dataclass(frozen=True, eq=False)
class Density:
    """`log p(latents(u), data) + log |d latents / d u|` as pure functions that JAX can trace.

    Attributes
    ----------
    size
        The length of the vector u.
    log_prior
        `(u, data) -> number`: the log density of the latent quantities, with the Jacobian.
    log_likelihood
        `(u, data) -> number`: the log probability of the observations, discrete latent variables summed out.
    constrain
        `(u, data) -> {name: array}`: every continuous latent quantity and deterministic node.
    start
        `(key, data) -> u`: a random starting point.
    data
        Observations and inputs: a tree of NumPy arrays.
    key
        What compiled code may be kept under: equal keys and equal shapes of data mean the same functions. A string means
        the same in every process, and the code is then kept on disk too.
    log_jacobian
        `(u, data) -> number`: log |d latents / d u|, which is part of `log_prior`; most probable values leave it out.
    prior
        `(key, data) -> u`: an exact draw of the prior, where it can be drawn from; tempering starts there.
    rows
        `() -> Rows | None`: how the likelihood is a sum over rows, for engines that look at a few rows at a time; None
        where it is none.
    log_joint
        `(u, data) -> number`: the sum of both, where that is cheaper to compute at once.
    source
        The program that it comes from, for engines that look at its nodes.
    """

    size: int
    log_prior: Callable[[Any, Any], Any]
    log_likelihood: Callable[[Any, Any], Any]
    constrain: Callable[[Any, Any], Mapping[str, Any]]
    start: Callable[[Any, Any], Any]
    data: Any
    key: Hashable
    log_jacobian: Callable[[Any, Any], Any] | None = None
    prior: Callable[[Any, Any], Any] | None = None
    rows: Callable[[], DensityRows | None] = lambda: None
    log_joint: Callable[[Any, Any], Any] | None = None
    source: Any = None

    def log_prob(self, u: Any, data: Any) -> Any:
        """Return log prior plus log likelihood."""
        if self.log_joint is not None:
            return self.log_joint(u, data)
        return self.log_prior(u, data) + self.log_likelihood(u, data)


def standard_normal(size: int) -> Density:
    """Return the density of independent standard normal numbers `x`, to try engines on.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> round(float(standard_normal(1).log_prob(jnp.zeros(1), ())), 5)
    -0.91894
    """
    return Density(
        size,
        lambda u, data: -0.5 * jnp.sum(u**2) - 0.5 * size * math.log(2 * math.pi),
        lambda u, data: jnp.zeros(()),
        lambda u, data: {"x": u},
        lambda key, data: jax.random.uniform(key, (size,), minval=-2.0, maxval=2.0),
        (),
        f"standard normal {size}",
    )
