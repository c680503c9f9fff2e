"""Random-walk Metropolis on a density: the plainest sampler, which needs no gradient.

References: Metropolis et al. (1953); Haario, Saksman and Tamminen (2001) for adapting the covariance; Roberts, Gelman and
Gilks (1997) for accepting about a quarter. Cost: one log density a step, and a number of steps that grows with the
dimension; a draw is `thin` steps. Use it to compare, for a handful of numbers, or where gradients are wrong or unbounded.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from markovia.inference.densities.engines.adapted_kernels import Proposed, adapted_kernel
from markovia.inference.densities.engines.density_chains import ChainKernel, DensityChains
from markovia.inference.densities.program.density import Density
from markovia.runtime.checks import LEVEL, Count, FromZero


@dataclass(frozen=True, kw_only=True)
class RandomWalkMetropolis(DensityChains):
    """Draw by a random walk whose proposals adapt in the warm-up.

    Parameters
    ----------
    thin
        Steps from one recorded draw to the next.
    target_accept
        The share of proposals that should be accepted.
    dense
        Whether proposals adapt to correlations, or to variances only.
    draws, warmup, chains, target_ess, chain_method, checkpoint, seed, time_limit, progress
        As in `NUTS`; steps of warm-up are cheap here.

    Examples
    --------
    >>> from markovia.inference.densities.program.density import standard_normal
    >>> found = RandomWalkMetropolis(draws=500, chains=2).draw(standard_normal(1))
    >>> bool(abs(found.draws["x"].mean()) < 0.2)
    True
    """

    warmup: FromZero = 10_000
    thin: Count = 10
    target_accept: Annotated[float, LEVEL] = 0.3
    dense: bool = True

    name: ClassVar[str] = "metropolis"
    advice: ClassVar[str] = "try more draws=, a larger thin=, or engine='nuts'"

    def kernel(self, density: Density) -> ChainKernel:
        """Return the transition of one chain."""
        return adapted_kernel(
            density,
            walk_proposal,
            warmup=self.warmup,
            dense=self.dense,
            target=self.target_accept,
            step=2.38 / max(density.size, 1) ** 0.5,
        )


def walk_proposal(climb: Any, state: Any, spread: Any, step: Any, noise: Any) -> Proposed:
    """Propose a normal step; going there and back is equally probable."""
    there = state.point + step * spread.times(noise)
    value = climb(there)[0]  # the gradient is not used, so the compiled code does not have it
    return Proposed(there, value, state.slope, value - state.value)
