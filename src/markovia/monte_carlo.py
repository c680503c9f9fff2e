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
from markovia.inference.weighted_draws.resampling import resample
from markovia.inference.weighted_draws.weight_diagnostics import pareto_k

__all__ = [
    "Accepted",
    "Estimate",
    "importance_estimate",
    "inverse_transform",
    "pareto_k",
    "rejection_sample",
    "resample",
]
