"""The names that `markovia.diagnostics` hands out, each with its home."""

from markovia.inference.markov_chains.diagnostics import inflation_factor as inflation_factor
from markovia.inference.markov_chains.own_draws import (
    autocorrelation as autocorrelation,
    burn_in as burn_in,
    ess as ess,
    geweke as geweke,
    mcse as mcse,
    rhat as rhat,
    summary as summary,
)
from markovia.inference.weighted_draws.weight_diagnostics import pareto_k as pareto_k
