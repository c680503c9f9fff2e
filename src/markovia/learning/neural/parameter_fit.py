"""Learning a model's parameters by stochastic gradients: from a model and an objective to the shared loop and back."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.factors.functions.function_node import FunctionNode
from markovia.factors.functions.parameter import Parameter, constraint, is_fraction
from markovia.inference.densities.program.automatic_guides import LOCATIONS, LOG_SCALES, SharedQuantities
from markovia.inference.densities.program.function_digest import digest
from markovia.inference.densities.program.rowwise_model import RowwiseModel
from markovia.inference.problem import Problem
from markovia.learning.neural.objective import ObjectiveSetup, Values
from markovia.learning.tables.fit_record import Fit
from markovia.optimise.training import Trained, Training
from markovia.runtime.function_descriptions import described
from markovia.runtime.libraries import eqx, jax, jnp
from markovia.runtime.seeds import random_keys

SHOWN_DRAWS = 1000
"""Draws of latent quantities that all rows share, in the record of a fit."""


class LearnedParameters(NamedTuple):
    """What a fit found: parameters by name, and its record, whose `details` hold the training."""

    parameters: dict[str, Parameter]
    record: Fit


def built(parameters: Mapping[str, Parameter], seed: int | None, go_on: bool = False) -> dict[str, Parameter]:
    """Return parameters with modules made of the recipes, from a seed; with `go_on` only where there is none yet."""
    keys = random_keys(seed, len(parameters) + 1)[1:]
    return {
        name: p.with_value(p.recipe.build(key))
        if p.recipe is not None and p.prior is None and not (go_on and p.value is not None)
        else p
        for (name, p), key in zip(parameters.items(), keys, strict=True)
    }


def learn_parameters(
    problem: Problem,
    guides: Mapping[str, FunctionNode],
    parameters: Mapping[str, Parameter],
    objective: Any,
    training: Training,
) -> LearnedParameters:
    """Return parameters that make an objective of the data small.

    Compiled code is kept under what functions compute, and never under the numbers that they learn.

    Parameters
    ----------
    problem
        The model and all its data; parameters with values.
    guides
        The guides by node.
    parameters
        What is learned.
    objective
        What `setup(program, values, names)` of returns players (`learning/neural/objective.py`).
    training
        How to train.
    """
    if "potential" in problem.kinds and not getattr(objective, "unnormalised", False):
        raise InvalidArgument(
            f"the objective {objective.kind!r} takes a model that is normalised, and potentials leave log Z unknown; use "
            "method='pcd', 'score-matching' or 'nce'"
        )
    parameters = {n: p for n, p in parameters.items() if p.prior is None}
    compares = getattr(objective, "compares", False)
    if compares and training.validation is not None:
        raise InvalidArgument(
            f"validation= picks the epoch of the smallest loss, which says nothing of a {objective.kind} objective; compare "
            "samples by mk.learning.energy_distance or mmd"
        )
    program = RowwiseModel(problem, guides, compared=compares, shares=not compares)
    supports = {n: constraint(p.support) for n, p in parameters.items() if p.support is not None}
    start, static = {}, {}
    for name, parameter in parameters.items():
        arrays, static[name] = eqx.partition(parameter.value, is_fraction)
        start[name] = _free(supports[name], arrays) if name in supports else arrays

    def values(free: Mapping[str, Any]) -> dict[str, Any]:
        from numpyro.distributions.transforms import biject_to

        return {n: biject_to(supports[n])(v) if n in supports else v for n, v in free.items()}

    said = hashlib.sha256(digest(program.program.layout).encode())
    if program.guide is not None:
        said.update(digest(program.guide.layout).encode())
    said.update(repr((objective, sorted(supports), program.plate, sorted(program.around))).encode())
    said.update(described(program.constants))  # which are part of the code, as other data are not
    moving = tuple(n for n in start if not parameters[n].fixed)
    setup = objective.setup(program, values, moving)
    shared = program.shared
    if shared is not None:
        setup = _with_mean_field(setup, shared, values, program.n_rows, objective)
    said.update(repr({n: p.recipe or p.value for n, p in setup.extra.items()}).encode())
    other = (
        None if training.seed is None else training.seed + 2**64
    )  # not the numbers that the model begins with
    extra = built(setup.extra, other, go_on=True)
    begun = {**start, **{n: p.value for n, p in extra.items()}}
    trained = training.run(
        list(setup.players), begun, program.rows, memory=setup.memory, code=said.hexdigest()
    )
    learned = values({n: trained.parameters[n] for n in start})
    found = {
        n: p if p.fixed else p.with_value(_like(p.value, eqx.combine(learned[n], static[n])))
        for n, p in parameters.items()
    }
    extra = {n: p.with_value(_like(p.value, trained.parameters[n])) for n, p in extra.items()}
    trained = trained._replace(
        parameters={}
    )  # the model has them, and modules do not pickle without their recipes
    record = _record(objective, trained, program.n_rows, [learned[n] for n in moving])
    more: dict[str, Any] = {}
    if shared is not None:
        loc, log_scale = (jnp.asarray(extra.pop(n).value) for n in (LOCATIONS, LOG_SCALES))
        noise = jax.random.normal(jax.random.PRNGKey(0), (SHOWN_DRAWS, shared.size))
        held = {n: jax.tree.map(jnp.asarray, v) for n, v in learned.items()}
        drawn = jax.vmap(lambda e: shared.drawn(loc + jnp.exp(log_scale) * e, held)[0])(noise)
        more["latent"] = {n: np.asarray(v) for n, v in drawn.items()}
    more |= {"extra": extra} if extra else {}
    return LearnedParameters(found, replace(record, details={**record.details, **more}))


def _with_mean_field(
    setup: ObjectiveSetup, shared: SharedQuantities, values: Values, n_rows: int, objective: Any
) -> ObjectiveSetup:
    """Return the setup with a mean field of shared quantities, whose draw is what the objective takes them to be."""
    if not objective.is_bound:
        raise UnsupportedModel(
            f"{shared.names[0]!r} is latent and shared by all rows, which the objectives 'elbo' and 'iwae' infer; "
            "say mk.Parameter(...) for what fit is to learn, or ask for its posterior with query"
        )
    first, *others = setup.players
    size, unseen = shared.size, (LOCATIONS, LOG_SCALES)

    def loss(free: Any, memory: Any, key: Any, batch: Any) -> Any:
        rest = {n: v for n, v in free.items() if n not in unseen}
        noise = jax.random.normal(jax.random.fold_in(key, 4), (size,))
        drawn, log_prior = shared.drawn(free[LOCATIONS] + jnp.exp(free[LOG_SCALES]) * noise, values(rest))
        entropy = jnp.sum(free[LOG_SCALES]) + 0.5 * size * (1.0 + np.log(2.0 * np.pi))
        value, memory = first.loss({**rest, **drawn}, memory, key, batch)
        return value - (
            log_prior + entropy
        ) / n_rows, memory  # which counts once, and the loss is that of a row

    extra = {LOCATIONS: Parameter(np.zeros(size)), LOG_SCALES: Parameter(np.full(size, -2.0))}
    player = first._replace(loss=loss, names=(*first.names, *unseen))
    return replace(setup, players=[player, *others], extra={**setup.extra, **extra})


def _record(objective: Any, trained: Trained, n_rows: int, learned: Sequence[Any]) -> Fit:
    """Return the record of a fit; the log likelihood is the bound of the last epoch, where the objective is one."""
    history = tuple(-value for value in trained.curve)
    bound = n_rows * history[-1] if objective.is_bound and history else np.nan
    leaves = [leaf for leaf in jax.tree.leaves(learned) if is_fraction(leaf)]
    return Fit(
        objective.kind, n_rows, float(n_rows), bound, {}, sum(leaf.size for leaf in leaves),
        converged=not trained.failed, iterations=trained.steps, history=history,
        seconds=trained.seconds + trained.compile_seconds,
        details={"training": trained, "compile_seconds": trained.compile_seconds},
    )  # fmt: skip


def _free(support: Any, value: Any) -> Any:
    from numpyro.distributions.transforms import biject_to

    return np.asarray(biject_to(support).inv(jnp.asarray(value)))


def _like(old: Any, new: Any) -> Any:
    """Return learned numbers as NumPy arrays, or a module of such."""
    if isinstance(old, np.ndarray):
        return np.asarray(new, np.float64)
    return jax.tree.map(lambda leaf: np.asarray(leaf) if is_fraction(leaf) else leaf, new)
