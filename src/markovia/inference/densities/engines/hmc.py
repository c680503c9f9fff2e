"""Hamiltonian Monte Carlo with trajectories of a fixed length.

References: Duane, Kennedy, Pendleton and Roweth (1987); Neal (2011). A momentum is drawn, the leapfrog integrator follows
the trajectory for a given time, and its end is accepted with the probability that corrects the integrator's error. Steps and
mass matrix adapt in the warm-up as in NUTS; the kernel is NumPyro's. Cost: length / step gradients a draw. NUTS chooses the
length itself and is the better default; use this where all posteriors are alike and a good length is known, or on a GPU,
where many chains of equal length run in step.
"""

from dataclasses import dataclass
from math import pi
from typing import Annotated, ClassVar

from markovia.inference.densities.engines.density_chains import ChainKernel
from markovia.inference.densities.engines.nuts import HamiltonianChains, hamiltonian_kernel
from markovia.inference.densities.program.density import Density
from markovia.runtime.checks import POSITIVE


@dataclass(frozen=True, kw_only=True)
class HMC(HamiltonianChains):
    """Draw with Hamiltonian Monte Carlo.

    Parameters
    ----------
    trajectory_length
        The time that a trajectory is followed; half a period of a standard normal distribution is pi.
    target_accept, dense_mass
        As in `NUTS`.
    draws, warmup, chains, thin, target_ess, chain_method, checkpoint, seed, time_limit, progress
        As in `NUTS`.

    Examples
    --------
    >>> from markovia.inference.densities.program.density import standard_normal
    >>> found = HMC(draws=200, warmup=200, chains=2).draw(standard_normal(3))
    >>> bool(abs(found.draws["x"].mean()) < 0.2)
    True
    """

    trajectory_length: Annotated[float, POSITIVE] = pi / 2

    name: ClassVar[str] = "hmc"

    def kernel(self, density: Density) -> ChainKernel:
        """Return the transition of one chain."""
        return hamiltonian_kernel(density, "HMC", self, trajectory_length=self.trajectory_length)
