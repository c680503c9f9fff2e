"""The names that `markovia.variational` hands out, each with its home."""

from markovia.inference.theory.black_box_vi import (
    GaussianFit as GaussianFit,
    black_box_vi as black_box_vi,
    gaussian_elbo as gaussian_elbo,
    gaussian_kl as gaussian_kl,
    reparameterised_gradients as reparameterised_gradients,
    score_gradients as score_gradients,
)
from markovia.inference.theory.marginal_polytope import (
    ConjugateDual as ConjugateDual,
    Membership as Membership,
    conjugate_dual as conjugate_dual,
    in_marginal_polytope as in_marginal_polytope,
)
from markovia.inference.theory.variational_theory import (
    Consistency as Consistency,
    bethe_entropy as bethe_entropy,
    bethe_free_energy as bethe_free_energy,
    elbo as elbo,
    factorised as factorised,
    gibbs_free_energy as gibbs_free_energy,
    kl as kl,
    locally_consistent as locally_consistent,
    mean_parameters as mean_parameters,
)
from markovia.inference.variational.log_z_bounds import (
    LogBounds as LogBounds,
    log_partition_bounds as log_partition_bounds,
)
