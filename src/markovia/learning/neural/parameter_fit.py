"""Learning a model's parameters by stochastic gradients: from a model and an objective to the shared loop and back."""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from markovia.factors.functions.function_node import FunctionNode
from markovia.factors.functions.parameter import Parameter, constraint, is_fraction
from markovia.inference.densities.program.function_digest import digest
from markovia.inference.densities.program.rowwise_model import RowwiseModel
from markovia.inference.problem import Problem
from markovia.learning.tables.fit_record import Fit
from markovia.optimise.training import Trained, Training
from markovia.runtime.libraries import eqx, jax, jnp
from markovia.runtime.seeds import random_keys


class LearnedParameters(NamedTuple):
    """What a fit found: parameters by name, and its record, whose `details` hold the training."""

    parameters: dict[str, Parameter]
    record: Fit


def built(parameters: Mapping[str, Parameter], seed: int | None, go_on: bool = False) -> dict[str, Parameter]:
    """Return parameters with modules made of the recipes, from a seed; with `go_on` only where there is none yet."""
    keys = random_keys(seed, len(parameters) + 1)[1:]
    return {
        name: p if p.recipe is None or (go_on and p.value is not None) else p.with_value(p.recipe.build(key))
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
    program = RowwiseModel(problem, guides)
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
    setup = objective.setup(program, values, tuple(start))
    begun = {
        **start,
        **{n: p.recipe.build(0) if p.recipe is not None else p.value for n, p in setup.extra.items()},
    }
    trained = training.run(
        list(setup.players), begun, program.rows, memory=setup.memory, code=said.hexdigest()
    )
    learned = values({n: trained.parameters[n] for n in start})
    found = {
        n: p.with_value(_like(p.value, eqx.combine(learned[n], static[n]))) for n, p in parameters.items()
    }
    return LearnedParameters(found, _record(objective, trained, program.n_rows, learned))


def _record(objective: Any, trained: Trained, n_rows: int, learned: Mapping[str, Any]) -> Fit:
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
