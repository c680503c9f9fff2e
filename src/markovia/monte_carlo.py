"""Monte Carlo on any target, by hand: `mk.monte_carlo.rejection_sample(...)`.

Engines that sample a model are in `markovia.engines`.

Examples
--------
>>> import markovia as mk
>>> mk.monte_carlo.inverse_transform(lambda u: u**2, 3, seed=0).shape
(3,)
"""

from markovia.inference.theory.basic_sampling import (
    Accepted,
    Estimate,
    importance_estimate,
    inverse_transform,
    rejection_sample,
)
from markovia.inference.theory.integrators import euler, gradient_of, leapfrog, total_energy
from markovia.inference.theory.one_step_kernels import (
    Move,
    SteppedChain,
    hmc_step,
    independence_step,
    langevin_step,
    mala_step,
    random_walk_step,
    run_chain,
    slice_step,
    variational_mcmc,
)
from markovia.inference.weighted_draws.resampling import resample
from markovia.inference.weighted_draws.weight_diagnostics import pareto_k

__all__ = [
    "Accepted",
    "Estimate",
    "Move",
    "SteppedChain",
    "euler",
    "gradient_of",
    "hmc_step",
    "importance_estimate",
    "independence_step",
    "inverse_transform",
    "langevin_step",
    "leapfrog",
    "mala_step",
    "pareto_k",
    "random_walk_step",
    "rejection_sample",
    "resample",
    "run_chain",
    "slice_step",
    "total_energy",
    "variational_mcmc",
]
