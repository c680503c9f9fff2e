"""The Metropolis-adjusted Langevin algorithm: one gradient step with noise, accepted or rejected.

References: Besag (1994); Roberts and Tweedie (1996); Roberts and Rosenthal (1998) for accepting 0.574. It is Hamiltonian
Monte Carlo with one leapfrog step. Cost: one gradient a step; in d dimensions about d^(1/3) steps for a new draw, between
the random walk's d and HMC's d^(1/4). Use it where a gradient is dear and trajectories turn back soon.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from markovia.inference.densities.engines.adapted_kernels import Proposed, adapted_kernel
from markovia.inference.densities.engines.density_chains import ChainKernel, DensityChains
from markovia.inference.densities.program.density import Density
from markovia.runtime.checks import LEVEL, Count, FromZero
from markovia.runtime.libraries import jnp


@dataclass(frozen=True, kw_only=True)
class MALA(DensityChains):
    """Draw by Langevin steps with a Metropolis correction.

    Parameters
    ----------
    thin
        Steps from one recorded draw to the next.
    target_accept
        The share of proposals that should be accepted.
    dense
        Whether steps adapt to correlations; False, to variances only, is for many hundreds of numbers.
    draws, warmup, chains, target_ess, chain_method, checkpoint, seed, time_limit, progress
        As in `NUTS`.

    Examples
    --------
    >>> from markovia.inference.densities.program.density import standard_normal
    >>> found = MALA(draws=500, chains=2).draw(standard_normal(1))
    >>> bool(abs(found.draws["x"].mean()) < 0.2)
    True
    """

    warmup: FromZero = 2_000
    thin: Count = 4
    target_accept: Annotated[float, LEVEL] = 0.574
    dense: bool = True

    name: ClassVar[str] = "mala"
    advice: ClassVar[str] = "try more draws=, a larger thin=, or engine='nuts'"

    def kernel(self, density: Density) -> ChainKernel:
        """Return the transition of one chain."""
        return adapted_kernel(
            density,
            langevin_proposal,
            warmup=self.warmup,
            dense=self.dense,
            target=self.target_accept,
            step=1.0 / max(density.size, 1) ** (1 / 6),
        )


def langevin_proposal(climb: Any, state: Any, spread: Any, step: Any, noise: Any) -> Proposed:
    """Propose `x + step^2 / 2 C grad + step F noise` with C = F F'; the ratio has the densities of going there and back."""
    drift = 0.5 * step * spread.transposed(state.slope)
    there = state.point + step * spread.times(drift + noise)
    value, slope = climb(there)
    back = spread.inverse(state.point - there) / step - 0.5 * step * spread.transposed(slope)
    ratio = value - state.value - 0.5 * jnp.sum(back**2) + 0.5 * jnp.sum(noise**2)
    return Proposed(there, value, slope, ratio)
