"""Draws for ArviZ: its groups, and data drawn anew at draws of the posterior or before any data.

Groups are those of the InferenceData schema: posterior, sample_stats, observed_data, constant_data, log_likelihood,
posterior_predictive, prior and prior_predictive. Cost: log likelihoods and predictive draws are one number for each
observation and draw, and a compilation each.
"""

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import MarkoviaError, Unanswered
from markovia.inference.densities.program.program import Program, program_of
from markovia.inference.densities.program.simulation import kept_latents, predictive_draws
from markovia.inference.posterior_questions import arviz
from markovia.runtime.array_types import Array

if TYPE_CHECKING:
    from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior

STATS = {
    "lp": "log_density",
    "acceptance_rate": "acceptance",
    "diverging": "diverging",
    "energy": "energy",
    "n_steps": "steps",
    "tree_depth": "tree_depth",
    "step_size": "step_size",
}
"""What the schema calls the numbers that a sampler says of each draw."""


def inference_data(posterior: "DrawnPosterior") -> Any:
    """Return all that is known of a posterior as ArviZ's `InferenceData`."""
    draws = posterior.draws
    groups: dict[str, Any] = {
        "posterior": draws,
        "observed_data": posterior.data("observed"),
        "constant_data": posterior.data("input"),
    }
    if posterior.stats is not None:
        stats = {ours: getattr(posterior.stats, theirs) for ours, theirs in STATS.items()}
        groups["sample_stats"] = {k: posterior.resampled(v) for k, v in stats.items() if v is not None}
    with suppress(Unanswered):
        groups["log_likelihood"] = posterior.log_likelihood()
    if posterior.program is not None:
        chains, length = next(iter(draws.values())).shape[:2]
        fresh = unobserved(posterior.program)
        observed = groups["observed_data"]

        def as_chains(drawn: dict[str, Array], names: Any, lead: tuple[int, int]) -> dict[str, Array]:
            return {n: drawn[n].reshape(*lead, *drawn[n].shape[1:]) for n in names if n in drawn}

        rows = {n: v.reshape(-1, *v.shape[2:]) for n, v in draws.items()}
        anew = draws_at(posterior.program, fresh, rows, chains * length)
        groups["posterior_predictive"] = as_chains(anew, observed, (chains, length))
        with suppress(MarkoviaError):  # a prior that cannot be drawn from
            before = predictive_draws(fresh.density, fresh.nodes, {}, length, 1)
            groups["prior"] = as_chains(before, draws, (1, length))
            groups["prior_predictive"] = as_chains(before, observed, (1, length))
    return arviz().from_dict(**{name: group for name, group in groups.items() if group})


def predictive(posterior: "DrawnPosterior", n: int) -> dict[str, Array]:
    """Return n draws of every node anew, at draws of the posterior's latent quantities."""
    if posterior.program is None:
        raise Unanswered(
            "a posterior that was loaded knows its model no more; draw new data with model.sample(n, given=posterior)"
        )
    return draws_at(posterior.program, unobserved(posterior.program), posterior.sample(n, seed=0), n)


def unobserved(program: Program) -> Program:
    """Return the model of a program with its inputs and the lengths of its plates, nothing observed."""
    problem = program.problem
    inputs = {**problem.inputs, **program.layout.lengths}
    return program_of(replace(problem, findings={}, inputs=inputs), only_drawn=True)


def draws_at(program: Program, fresh: Program, rows: dict[str, Array], n: int) -> dict[str, Array]:
    """Return draws of all nodes, one at each of n draws of the latent ones."""
    known = {k: np.asarray(rows[k]) for k in kept_latents(program.layout, fresh.layout) if k in rows}
    return predictive_draws(fresh.density, fresh.nodes, known, n, 0, (program, rows))
