"""The verbs for models with quantities: the same questions, with typed answers instead of tables.

A model of tables and linear Gaussians is answered exactly; one with functions of parents becomes a density for samplers
and optimisers, its discrete latent variables summed out. Here names are checked and problems made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.quantities.quantity import Quantity
from markovia.inference.engine import Engine, asking, engine_for
from markovia.inference.posterior import Explanation, Marginals
from markovia.inference.problem import Problem
from markovia.inference.result import Info, Record, warn_unconverged
from markovia.models.graphical.given_values import read_given
from markovia.runtime.clock import now
from markovia.runtime.seeds import generator

if TYPE_CHECKING:
    import pandas as pd

    from markovia.models.graphical.base import GraphicalModel


def problem_of(model: "GraphicalModel", given: Mapping[str, Any] | None) -> Problem:
    """Return the problem that a model with quantities and its evidence are."""
    memory = model.__dict__.setdefault("_memory", {})
    pieces = {piece.names[-1]: piece for piece in model.pieces()}
    findings, inputs = read_given(model._variables, pieces, given)  # type: ignore[arg-type]
    return Problem(model._variables, list(pieces.values()), findings, memory, inputs=inputs)


def query(
    model: "GraphicalModel",
    names: Sequence[str],
    given: Mapping[str, Any] | None,
    engine: str | Engine,
    time_limit: float | None,
) -> Any:
    """Return the posterior of the named nodes."""
    problem = problem_of(model, given)
    _refuse_observed(problem, names)
    chosen = engine_for(engine, problem, time_limit)
    start = now()
    with asking(chosen, problem):
        answer: Any = chosen.joint(problem, names)
    return answer.posterior(names, _info(chosen, problem, answer.log_mass, now() - start, answer.record))


def marginals(
    model: "GraphicalModel",
    targets: Sequence[str] | None,
    given: Mapping[str, Any] | None,
    engine: str | Engine,
    time_limit: float | None,
) -> Marginals:
    """Return the posterior of every node that is not observed, or of the named ones."""
    problem = problem_of(model, given)
    inputs = {n for n, v in problem.variables.items() if isinstance(v, Quantity) and v.domain == "input"}
    names = [n for n in problem.asked if n not in inputs] if targets is None else list(targets)
    _refuse_observed(problem, names)
    chosen = engine_for(engine, problem, time_limit)
    start = now()
    with asking(chosen, problem):
        answer: Any = chosen.marginals(problem, names)
    info = _info(chosen, problem, answer.log_mass, now() - start, answer.record)
    return Marginals((n, answer.posterior([n], info)) for n in names)


def best(
    model: "GraphicalModel",
    targets: Sequence[str] | None,
    given: Mapping[str, Any] | None,
    m: int | None,
    engine: str | Engine,
    time_limit: float | None,
) -> Explanation | list[Explanation]:
    """Return the most probable values given the evidence."""
    problem = problem_of(model, given)
    inputs = {n for n, v in problem.variables.items() if isinstance(v, Quantity) and v.domain == "input"}
    names = [n for n in problem.asked if n not in inputs] if targets is None else list(targets)
    _refuse_observed(problem, names)
    if m is not None and (not isinstance(m, int | np.integer) or m < 1):
        raise InvalidArgument(f"m= is the number of explanations, at least 1, not {m!r}")
    chosen = engine_for(engine, problem, time_limit, best=True)
    start = now()
    with asking(chosen, problem):
        found = chosen.best(problem, names, 1 if m is None else int(m))
        log_mass = float(chosen.log_mass(problem)) if chosen.exact else np.nan
    info = _info(chosen, problem, log_mass, now() - start, found.record)
    answers = [
        Explanation(
            {n: _named(problem, n, a.codes[n]) for n in a.codes},
            log_prob=a.log_weight,
            log_posterior=a.log_weight - log_mass,
            bound=a.log_weight if found.record.bound is None else found.record.bound,
            info=info,
        )
        for a in found
    ]
    return answers[0] if m is None else answers


def log_evidence(
    model: "GraphicalModel", given: Mapping[str, Any] | None, engine: str | Engine, time_limit: float | None
) -> float:
    """Return the log of the evidence's probability or density."""
    problem = problem_of(model, given)
    chosen = engine_for(engine, problem, time_limit, log_mass=True)
    with asking(chosen, problem):
        found = chosen.log_mass(problem)
    if not found.record.converged:
        warn_unconverged(replace(found.record, engine=found.record.engine or chosen.name))
    return float(found)


def sample(
    model: "GraphicalModel", n: int, given: Mapping[str, Any] | None, seed: Any, engine: str | Engine
) -> "pd.DataFrame":
    """Draw n rows of a model without plates."""
    import pandas as pd

    problem = problem_of(model, given)
    chosen = engine_for(engine, problem)
    with asking(chosen, problem):
        drawn: Mapping[str, Any] = chosen.sample(problem, n, generator(seed))
    columns = {}
    for name in problem.variables:
        finding = problem.findings.get(name)
        if finding is not None and finding.hard:
            columns[name] = [problem.given[name]] * n
        elif name in drawn:
            variable = problem.variables[name]
            values = np.asarray(drawn[name])
            states = variable.labels if isinstance(variable, Quantity) else variable.states
            columns[name] = np.array(states, dtype=object)[values].tolist() if states else list(values)
    return pd.DataFrame(columns)


def _named(problem: Problem, name: str, value: Any) -> Any:
    """Return a state for a code, a number as it is."""
    variable = problem.variables[name]
    states = variable.labels if isinstance(variable, Quantity) else variable.states
    return states[int(value)] if states and np.ndim(value) == 0 else value


def _refuse_observed(problem: Problem, names: Sequence[str]) -> None:
    for name in names:
        if name in problem.findings and problem.findings[name].hard:
            raise InvalidArgument(f"{name!r} is observed, so there is nothing to ask about it")
        if name in problem.inputs:
            raise InvalidArgument(f"{name!r} is an input and has no distribution")


def _info(engine: Engine, problem: Problem, log_mass: float, seconds: float, record: Record) -> Info:
    info = Info(
        engine=record.engine or engine.name,
        exact=engine.exact if record.exact is None else record.exact,
        converged=record.converged,
        iterations=record.iterations,
        error=float(record.error),
        log_evidence=None if np.isnan(log_mass) else float(log_mass),
        seconds=seconds,
        tried=record.tried,
        advice=record.advice,
        mass_bound=record.mass_bound,
        diagnostics=record.diagnostics,
        details=record.details,
        given=problem.given,
        note=record.note,
    )
    if not info.converged:
        warn_unconverged(info)
    return info
