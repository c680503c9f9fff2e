"""The verbs for models with quantities: the same questions, with typed answers instead of tables.

A model of tables and linear Gaussians is answered exactly; one with functions of parents becomes a density for samplers
and optimisers, its discrete latent variables summed out. Here names are checked and problems made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, Unanswered
from markovia.factors.quantities.columns import Column, Length
from markovia.factors.quantities.quantity import Quantity
from markovia.inference.engine import CLOSED, Engine, asking, best_question, engine_for, get_engine
from markovia.inference.gaussian.strong_elimination import log_integral
from markovia.inference.posterior import Explanation, Marginals
from markovia.inference.problem import Problem
from markovia.inference.result import Info, LogMass, Record, provenance, warn_unconverged
from markovia.models.graphical.given_values import read_given
from markovia.runtime.clock import now
from markovia.runtime.seeds import generator

if TYPE_CHECKING:
    from markovia.inference.variational.log_z_bounds import LogBounds
    from markovia.models.graphical.base import GraphicalModel


def problem_of(model: "GraphicalModel", given: Mapping[str, Any] | None, missing: str = "refuse") -> Problem:
    """Return the problem that a model with quantities and its evidence are."""
    if missing not in ("refuse", "impute"):
        raise InvalidArgument(f"missing= is 'refuse' or 'impute', not {missing!r}")
    memory = model.__dict__.setdefault("_memory", {})
    pieces = {piece.names[-1]: piece for piece in model.pieces()}
    findings, inputs = read_given(model._variables, pieces, given, missing == "impute")  # type: ignore[arg-type]
    return Problem(
        model._variables, list(pieces.values()), findings, memory, inputs=inputs, impute=missing == "impute"
    )


def query(
    model: "GraphicalModel",
    names: Sequence[str],
    given: Mapping[str, Any] | None,
    engine: str | Engine,
    time_limit: float | None,
    missing: str,
) -> Any:
    """Return the posterior of the named nodes."""
    problem = problem_of(model, given, missing)
    _refuse_observed(problem, names)
    start = now()
    question = "joint" if len(names) > 1 else "marginals"
    chosen = engine_for(engine, problem, time_limit, question)
    with asking(chosen, problem, question):
        answer: Any = chosen.joint(problem, names)
    return answer.posterior(names, _info(chosen, problem, answer.log_mass, now() - start, answer.record))


def marginals(
    model: "GraphicalModel",
    targets: Sequence[str] | None,
    given: Mapping[str, Any] | None,
    engine: str | Engine,
    time_limit: float | None,
    missing: str,
) -> Marginals:
    """Return the posterior of every node that is not observed, or of the named ones."""
    problem = problem_of(model, given, missing)
    names = _latent(problem) if targets is None else list(targets)
    _refuse_observed(problem, names)
    start = now()
    chosen = engine_for(engine, problem, time_limit, "marginals")
    with asking(chosen, problem, "marginals"):
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
    names = _latent(problem) if targets is None else list(targets)
    _refuse_observed(problem, names)
    if m is not None and (not isinstance(m, int | np.integer) or m < 1):
        raise InvalidArgument(f"m= is the number of explanations, at least 1, not {m!r}")
    start = now()
    question = best_question(names, _latent(problem), 1 if m is None else int(m))
    chosen = engine_for(engine, problem, time_limit, question)
    with asking(chosen, problem, question):
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
            log_weight=a.log_weight + log_integral(problem),
        )
        for a in found
    ]
    return answers[0] if m is None else answers


def log_evidence(
    model: "GraphicalModel", given: Mapping[str, Any] | None, engine: str | Engine, time_limit: float | None
) -> float:
    """Return the log of the evidence's probability or density."""
    return float(_log_mass(problem_of(model, given), engine, time_limit))


def log_partition(
    model: "GraphicalModel",
    given: Mapping[str, Any] | None,
    engine: str | Engine,
    bounds: bool,
    time_limit: float | None,
) -> "float | LogBounds":
    """Return the log of the mass of the model's density, cut where numbers were found, before it is normalised.

    An exact mass is its own bounds; of a density without a closed form no bounds are known on both sides.
    """
    from markovia.inference.variational.log_z_bounds import LogBounds

    problem = problem_of(model, given)
    start = now()
    found = _log_mass(problem, engine, time_limit)
    total = float(found) + log_integral(problem)
    if not bounds:
        return total
    who = found.record.engine or engine_for(engine, problem, time_limit, "log_mass").name
    if not (get_engine(who).exact if found.record.exact is None else found.record.exact):
        raise Unanswered(
            f"engine {who!r} estimates the log partition function without bounds on both sides; leave bounds out, or give "
            "the model linear Gaussians, conjugate distributions or tables"
        )
    return LogBounds(total, total, total, True, who, who, who, now() - start, found.record, found.record)


def _log_mass(problem: Problem, engine: str | Engine, time_limit: float | None) -> LogMass:
    chosen = engine_for(engine, problem, time_limit, "log_mass")
    with asking(chosen, problem, "log_mass"):
        found = chosen.log_mass(problem)
    if not found.record.converged:
        warn_unconverged(replace(found.record, engine=found.record.engine or chosen.name))
    return found


def sample(
    model: "GraphicalModel",
    n: int,
    given: Any,
    seed: Any,
    engine: str | Engine,
    inputs: Mapping[str, Any] | None = None,
) -> Any:
    """Draw n times from the model: its prior, a posterior's predictions, or its posterior given evidence.

    Returns
    -------
    DataFrame or xarray.Dataset
        A row a draw; where nodes are on plates, arrays by name with an axis "draw" in front.
    """
    rng = generator(seed)
    if hasattr(given, "program"):
        problem, drawn = predicted(model, given, inputs, n, rng)
    else:
        problem = problem_of(model, {**(given or {}), **(inputs or {})})
        hard = {name for name, f in problem.findings.items() if f.hard}
        if problem.kinds <= CLOSED or hard:
            chosen = engine_for(engine, problem, question="sample")
            with asking(chosen, problem, "sample"):
                drawn = dict(chosen.sample(problem, n, rng))
            drawn.update({name: _repeated(problem, name, n) for name in hard})
        else:
            drawn = _simulated(problem, {}, n, rng)
    return _table(problem, drawn, n)


def _simulated(
    problem: Problem, known: Mapping[str, Any], n: int, rng: np.random.Generator
) -> dict[str, Any]:
    from markovia.inference.densities.program.program import program_of
    from markovia.inference.densities.program.simulation import predictive_draws

    program = program_of(problem, only_drawn=True)
    return predictive_draws(program.density, program.nodes, known, n, int(rng.integers(2**31)))


def predicted(
    model: "GraphicalModel", post: Any, inputs: Mapping[str, Any] | None, n: int, rng: np.random.Generator
) -> tuple[Problem, dict[str, Any]]:
    """Return predictive draws of everything that was observed, at the draws of a posterior."""
    from markovia.inference.densities.program.program import program_of
    from markovia.inference.densities.program.simulation import kept_latents

    old = post.program.layout
    fresh = problem_of(model, inputs)
    if fresh.findings:
        raise InvalidArgument(
            f"inputs= of predictions are constants, and {next(iter(fresh.findings))!r} is a node; leave it out (query(..., "
            "given=...) asks about elements that are partly observed)"
        )
    changed = dict(fresh.inputs)
    lengths = dict(old.lengths)
    for name, value in fresh.inputs.items():
        before = old.data.get(name)
        if before is None or isinstance(value, Column) or not np.ndim(value):
            continue
        if name in old.column_plates:
            changed[name] = Column(value, old.column_plates[name][0])
        if len(value) != len(before):
            users = [s for s in old.sites.values() if name in s.sources]
            lengths.update({p: len(value) for s in users for p in s.plates if old.lengths[p] == len(before)})
    problem = replace(fresh, inputs={**post.program.problem.inputs, **lengths, **changed})
    layout = program_of(problem, only_drawn=True).layout
    rows = post.sample(n, seed=rng)
    known = {k: rows[k] for k in kept_latents(old, layout) if k in rows}
    return problem, _simulated(problem, known, n, rng)


def _repeated(problem: Problem, name: str, n: int) -> Any:
    finding = problem.findings[name]
    value = np.asarray(finding.code if finding.code is not None else finding.value)
    return np.broadcast_to(value, (n, *value.shape))


def _table(problem: Problem, drawn: Mapping[str, Any], n: int) -> Any:
    """Return draws as a frame, or where there are plates or vectors, as an xarray data set."""
    found = {name: np.asarray(drawn[name]) for name in problem.variables if name in drawn}
    for name, values in found.items():
        variable = problem.variables[name]
        states = variable.labels if isinstance(variable, Quantity) else variable.states
        if states:
            found[name] = np.array(states, dtype=object)[values.astype(np.int64)]
    if all(v.ndim == 1 for v in found.values()):
        import pandas as pd

        return pd.DataFrame({name: v.tolist() for name, v in found.items()}, index=range(n))
    import xarray as xr

    axes = {}
    for name, values in found.items():
        variable = problem.variables[name]
        plates = variable.plates if isinstance(variable, Quantity) else ()
        rest = [f"{name}_{i}" for i in range(values.ndim - 1 - len(plates))]
        axes[name] = (["draw", *plates, *rest], values)
    labels = {
        p: n.labels for p, n in problem.inputs.items() if isinstance(n, Length) and n.labels is not None
    }
    used = {axis for dims, _ in axes.values() for axis in dims}
    return xr.Dataset(axes, coords={p: np.asarray(v) for p, v in labels.items() if p in used})


def _latent(problem: Problem) -> list[str]:
    """Return the nodes that have a distribution and are not observed."""
    inputs = {n for n, v in problem.variables.items() if isinstance(v, Quantity) and v.domain == "input"}
    return [n for n in problem.asked if n not in inputs]


def _named(problem: Problem, name: str, value: Any) -> Any:
    """Return a state for a code, a number as it is."""
    variable = problem.variables[name]
    states = variable.labels if isinstance(variable, Quantity) else variable.states
    return states[int(value)] if states and np.ndim(value) == 0 else value


def _refuse_observed(problem: Problem, names: Sequence[str]) -> None:
    for name in names:
        finding = problem.findings.get(name)
        if finding is not None and finding.hard:
            if not (problem.impute and finding.code is None and np.isnan(finding.value).any()):
                raise InvalidArgument(f"{name!r} is observed, so there is nothing to ask about it")
            if not any(name in _uses(piece) for piece in problem.pieces):
                raise InvalidArgument(
                    f"the missing entries of {name!r} have no children that tell about them, so they are not drawn with the "
                    "rest; sample(n, given=posterior) predicts them"
                )
        if name in problem.inputs:
            raise InvalidArgument(f"{name!r} is an input and has no distribution")


def _uses(piece: Any) -> set[str]:
    """Return the nodes that a piece depends on, earlier elements of its own among them."""
    return {*piece.names[:-1], *(lag.node for lag in getattr(piece, "previous", {}).values())}


def _info(engine: Engine, problem: Problem, log_mass: float, seconds: float, record: Record) -> Info:
    return provenance(
        record,
        engine=engine.name,
        exact=engine.exact,
        log_evidence=log_mass,
        seconds=seconds,
        given=problem.given,
    )
