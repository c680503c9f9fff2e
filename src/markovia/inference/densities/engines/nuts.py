"""The No-U-Turn sampler: Hamiltonian Monte Carlo that chooses the length of its trajectories by itself.

References: Hoffman and Gelman (2014); Betancourt (2017) for multinomial sampling of the trajectory and the generalised
U-turn; Phan, Pradhan and Jankowiak (2019) for the iterative tree. Steps and mass matrix adapt in the warm-up by dual
averaging and Welford's variances in growing windows. The kernel is NumPyro's. Cost: some tens of gradients a draw, nearly
independent of the dimension's size for well-scaled posteriors. The engine to use for smooth posteriors of up to some
thousands of dimensions; divergences say that a region was too curved for the step (raise `target_accept`, or write the
hierarchy non-centred).
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from markovia.inference.densities.engines.density_chains import (
    ChainKernel,
    ChainStep,
    DensityChainDetails,
    DensityChains,
)
from markovia.inference.densities.program.density import Density
from markovia.runtime.checks import LEVEL, Whole
from markovia.runtime.libraries import jax, jnp


@dataclass(frozen=True, kw_only=True)
class HamiltonianChains(DensityChains):
    """Settings that NUTS and HMC share.

    Parameters
    ----------
    target_accept
        The mean probability of acceptance that the size of steps is adapted to.
    dense_mass
        Whether the mass matrix adapts to correlations (the whole covariance) or to variances only.
    draws, warmup, chains, thin, target_ess, chain_method, checkpoint, seed, time_limit, progress
        As in `DensityChains`.
    """

    target_accept: Annotated[float, LEVEL] = 0.8
    dense_mass: bool = False

    advice: ClassVar[str] = "try more warmup= and draws=, or dense_mass=True"

    def _cure(self, found: DensityChainDetails) -> str:
        if found.divergences:
            return f"try target_accept={0.95 if self.target_accept < 0.95 else 0.99:g}"
        return self.advice


def hamiltonian_kernel(
    density: Density, algorithm: str, engine: HamiltonianChains, **more: Any
) -> ChainKernel:
    """Return NumPyro's kernel on a density; call inside `x64()`."""
    from numpyro.infer.hmc import hmc
    from numpyro.infer.util import ParamInfo

    def potential(data: Any) -> Any:
        return lambda u: -density.log_prob(u, data)

    start, advance = hmc(potential_fn_gen=potential, algo=algorithm)

    def begin(key: Any, point: Any, value: Any, slope: Any, data: Any) -> Any:
        return start(
            ParamInfo(point, -value, -slope),
            engine.warmup,
            dense_mass=engine.dense_mass,
            target_accept_prob=engine.target_accept,
            model_args=(data,),
            rng_key=key,
            **more,
        )

    # NumPyro's step knows the settings only once its start was traced, which kept machine code does not do
    nothing = jnp.zeros(density.size)
    jax.eval_shape(lambda: begin(jax.random.PRNGKey(0), nothing, jnp.zeros(()), nothing, None))

    def step(state: Any, data: Any) -> Any:
        return advance(state, (data,))

    def record(state: Any) -> ChainStep:
        return ChainStep(
            state.z,
            -state.potential_energy,
            state.accept_prob,
            state.diverging,
            state.energy,
            state.num_steps.astype(float),
            state.adapt_state.step_size,
        )

    return ChainKernel(begin, step, record)


@dataclass(frozen=True, kw_only=True)
class NUTS(HamiltonianChains):
    """Draw with the No-U-Turn sampler.

    Parameters
    ----------
    max_tree_depth
        Trajectories take at most 2 to the power of this many steps.
    target_accept, dense_mass
        The acceptance that steps adapt to, and whether the mass matrix has correlations.
    draws, warmup, chains, thin, target_ess, chain_method, checkpoint, seed, time_limit, progress
        Draws and warm-up steps of each chain, chains, steps a draw, when to stop early, how chains
        run, a file to go on from, reproducibility, seconds, progress bar.

    Examples
    --------
    >>> from markovia.inference.densities.program.density import standard_normal
    >>> found = NUTS(draws=200, warmup=200, chains=2).draw(standard_normal(3))
    >>> found.draws["x"].shape, found.record.converged
    ((2, 200, 3), True)
    """

    max_tree_depth: Annotated[int, Whole(1, 20)] = 10

    name: ClassVar[str] = "nuts"

    def kernel(self, density: Density) -> ChainKernel:
        """Return the transition of one chain."""
        return hamiltonian_kernel(density, "NUTS", self, max_tree_depth=self.max_tree_depth)
