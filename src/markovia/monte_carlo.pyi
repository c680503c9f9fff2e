"""The names that `markovia.monte_carlo` hands out, each with its home."""

from markovia.inference.theory.adaptive_rejection import (
    adaptive_rejection_sample as adaptive_rejection_sample,
)
from markovia.inference.theory.basic_sampling import (
    Accepted as Accepted,
    Estimate as Estimate,
    importance_estimate as importance_estimate,
    inverse_transform as inverse_transform,
    rejection_sample as rejection_sample,
)
from markovia.inference.theory.integrators import (
    euler as euler,
    gradient_of as gradient_of,
    leapfrog as leapfrog,
    total_energy as total_energy,
)
from markovia.inference.theory.one_step_kernels import (
    Move as Move,
    SteppedChain as SteppedChain,
    hmc_step as hmc_step,
    independence_step as independence_step,
    langevin_step as langevin_step,
    mala_step as mala_step,
    random_walk_step as random_walk_step,
    run_chain as run_chain,
    slice_step as slice_step,
    variational_mcmc as variational_mcmc,
)
from markovia.inference.weighted_draws.resampling import resample as resample
from markovia.inference.weighted_draws.weight_diagnostics import pareto_k as pareto_k
