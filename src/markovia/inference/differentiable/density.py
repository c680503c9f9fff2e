"""A model as the log density of an unconstrained vector: all that gradient-based engines see of it.

Constrained quantities (positive numbers, simplexes, ordered vectors) are images of free ones under bijections, whose
log Jacobians are part of the density. Data are an argument, so that new data of the same shape need no compilation.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any


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
        What compiled code may be kept under: equal keys and equal shapes of data mean the same functions.
    """

    size: int
    log_prior: Callable[[Any, Any], Any]
    log_likelihood: Callable[[Any, Any], Any]
    constrain: Callable[[Any, Any], Mapping[str, Any]]
    start: Callable[[Any, Any], Any]
    data: Any
    key: Hashable

    def log_prob(self, u: Any, data: Any) -> Any:
        """Return log prior plus log likelihood."""
        return self.log_prior(u, data) + self.log_likelihood(u, data)
