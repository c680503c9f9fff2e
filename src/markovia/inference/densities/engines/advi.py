"""Automatic differentiation variational inference: the nearest normal distribution, by stochastic gradients.

Reference: Kucukelbir, Tran, Ranganath, Gelman and Blei (2017). The family is normal in unconstrained coordinates, with
independent numbers (mean-field) or any covariance (full-rank); see `guided_fit` for how it is fitted. Cost: `steps` times
`samples` gradients (of `batch` rows, where given). The answer is a lower bound of the log evidence and draws that are too
narrow where the posterior has correlations that the family has not. Use it for many numbers or many data, to explore, and
look at the Pareto k; NUTS is right where it is fast enough.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from markovia.inference.densities.engines.guided_fit import Guide, GuidedEngine
from markovia.inference.densities.engines.whitened_density import Peak, independent
from markovia.runtime.libraries import jnp


@dataclass(frozen=True, kw_only=True)
class ADVI(GuidedEngine):
    """Draw from the normal distribution that is nearest to the posterior.

    Parameters
    ----------
    family
        "mean-field" (independent numbers) or "full-rank" (any covariance).
    draws, steps, step_size, samples, batch
        Draws of the fit, steps of the optimiser and the size of the first, points a gradient is averaged over, and rows of
        data a step (None for all).
    seed, time_limit, progress
        As in `NUTS`; the time limit keeps the fit there is.

    Examples
    --------
    >>> from markovia.inference.densities.program.density import standard_normal
    >>> found = ADVI(steps=500, draws=2000).draw(standard_normal(2))
    >>> bool(abs(found.log_mass) < 0.05), found.record.mass_bound
    (True, 'lower')
    """

    family: Literal["mean-field", "full-rank"] = "mean-field"

    name: ClassVar[str] = "advi"
    cure: ClassVar[str] = "try family='full-rank', engine='flow-vi' or engine='nuts'"

    def guide(self, size: int) -> Guide:
        """Return the family."""
        return mean_field(size) if self.family == "mean-field" else full_rank(size)

    def scales(self, found: Peak) -> Peak:
        """Return coordinates in which the family is the same."""
        return independent(found) if self.family == "mean-field" else found


def mean_field(size: int) -> Guide:
    """Return independent normal distributions."""

    def push(parameters: Any, noise: Any) -> Any:
        mean, log_sd = parameters
        return mean + jnp.exp(log_sd) * noise, jnp.sum(log_sd)

    return Guide(lambda key, point, sd: (point, jnp.full(size, jnp.log(sd))), push)


def full_rank(size: int) -> Guide:
    """Return normal distributions of any covariance, by a triangular factor with a positive diagonal."""

    def push(parameters: Any, noise: Any) -> Any:
        mean, log_sd, below = parameters
        return mean + jnp.exp(log_sd) * noise + jnp.tril(below, -1) @ noise, jnp.sum(log_sd)

    return Guide(lambda key, point, sd: (point, jnp.full(size, jnp.log(sd)), jnp.zeros((size, size))), push)
