"""The variational picture of inference: mean parameters, consistency, the marginal polytope, free energies and duals.

Examples
--------
>>> import markovia as mk
>>> model = mk.MarkovNetwork.ising({("a", "b"): 0.5})
>>> mu = mk.variational.mean_parameters(model)
>>> bool(mk.variational.locally_consistent(mu)), bool(mk.variational.in_marginal_polytope(mu))
(True, True)
"""

from markovia.inference.theory.black_box_vi import (
    GaussianFit,
    black_box_vi,
    gaussian_elbo,
    gaussian_kl,
    reparameterised_gradients,
    score_gradients,
)
from markovia.inference.theory.marginal_polytope import (
    ConjugateDual,
    Membership,
    conjugate_dual,
    in_marginal_polytope,
)
from markovia.inference.theory.variational_theory import (
    Consistency,
    bethe_entropy,
    bethe_free_energy,
    elbo,
    factorised,
    gibbs_free_energy,
    kl,
    locally_consistent,
    mean_parameters,
)
from markovia.inference.variational.log_z_bounds import LogBounds, log_partition_bounds

__all__ = [
    "ConjugateDual",
    "Consistency",
    "GaussianFit",
    "LogBounds",
    "Membership",
    "bethe_entropy",
    "bethe_free_energy",
    "black_box_vi",
    "conjugate_dual",
    "elbo",
    "factorised",
    "gaussian_elbo",
    "gaussian_kl",
    "gibbs_free_energy",
    "in_marginal_polytope",
    "kl",
    "locally_consistent",
    "log_partition_bounds",
    "mean_parameters",
    "reparameterised_gradients",
    "score_gradients",
]
