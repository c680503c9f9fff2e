"""Rows that were drawn: from a model parent by parent, as predictions of a posterior, and as the frames users get."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.factors.quantities.columns import Column, Length
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.variable import Variable
from markovia.inference.engine import TABLES
from markovia.inference.problem import Problem

if TYPE_CHECKING:
    from markovia.models.graphical.base import GraphicalModel

PREDICTED = 4000
"""Predictions from a posterior that is known without draws."""


def simulated(
    problem: Problem, known: Mapping[str, Any], n: int, rng: np.random.Generator, after: Any = None
) -> dict[str, Any]:
    """Return n draws of every node, parents first; some may be known.

    `after` is what functions are given: the program of a posterior and draws of all its latent nodes.
    """
    from markovia.inference.densities.program.program import program_of
    from markovia.inference.densities.program.simulation import predictive_draws

    if weight := next((p.names[-1] for p in problem.pieces if p.kind == "potential"), None):
        raise UnsupportedModel(
            f"{weight!r} weighs what nodes are drawn together, so they are not drawn one after the other; query(...), or "
            "sample(n, given={...}), draws all that is not given"
        )
    program = program_of(problem, only_drawn=True)
    return predictive_draws(program.density, program.nodes, known, n, int(rng.integers(2**31)), after)


def predictions(
    model: "GraphicalModel", post: Any, inputs: Mapping[str, Any] | None, n: int, rng: np.random.Generator
) -> Any:
    """Return predictive draws at the draws of a posterior, as rows."""
    problem, drawn = predicted(model, post, inputs, n, rng)
    return as_rows(problem, drawn, problem.variables, n)


def predicted(
    model: "GraphicalModel", post: Any, inputs: Mapping[str, Any] | None, n: int, rng: np.random.Generator
) -> tuple[Problem, dict[str, Any]]:
    """Return predictive draws of everything that was observed, at the draws of a posterior."""
    from markovia.inference.densities.program.program import program_of
    from markovia.inference.densities.program.simulation import kept_latents

    post = (
        post._all() if hasattr(post, "joint") else post
    )  # a function is told with all that it was drawn with
    program = post.program
    if program is None:  # it was loaded: the model and the data that it kept make its program again
        lengths, columns = post.plates()
        problem = model._problem({**lengths, **post.data("input"), **post.data("observed")})
        along = {n: Column(v, columns[n]) if n in columns else v for n, v in problem.inputs.items()}
        program = program_of(replace(problem, inputs=along))
    old = program.layout
    fresh = model._problem(inputs)
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
    problem = replace(fresh, inputs={**program.problem.inputs, **lengths, **changed})
    layout = program_of(problem, only_drawn=True).layout
    rows = post.sample(n, seed=rng)
    known = {k: rows[k] for k in kept_latents(old, layout) if k in rows}
    if (
        program.functions is not None and changed
    ):  # at other inputs a function has other values, however many there are
        known = {k: v for k, v in known.items() if not program.functions.below[k]}
    return problem, simulated(problem, known, n, rng, (program, rows))


def count(post: Any) -> int:
    """Return how many draws a posterior has, or is worth where it is known without draws."""
    post = post._all() if hasattr(post, "joint") else post
    return int(post._chains * post._length) if post._numbers or post._states else PREDICTED


def predicted_posterior(model: "GraphicalModel", post: Any, names: list[str]) -> Any:
    """Return the posterior of nodes of a model at the draws of a posterior, perhaps of another: after `do`, say."""
    from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior
    from markovia.inference.densities.program.state_draws import StateDraws

    n = count(post)
    _, drawn = predicted(model, post, None, n, np.random.default_rng(0))
    found: dict[str, Any] = {}
    for name in names:
        variable = model.variable(name)
        if name not in drawn:
            raise InvalidArgument(
                f"{name!r} has no values to predict; a function is asked for at inputs: post.at({name!r}, x)"
            )
        if isinstance(variable, Quantity) and not variable.labels:
            found[name] = drawn[name][None]
        else:
            plain = Variable(name, variable.labels if isinstance(variable, Quantity) else variable.states)
            codes = np.asarray(drawn[name], np.int64)[None]
            found[name] = StateDraws(plain, np.eye(len(plain.states))[codes], codes)
    info = replace(
        post.info,
        exact=False,
        note="; ".join(filter(None, [post.info.note, f"{n:,} predictions at its draws"])),
    )
    answer = DrawnPosterior(tuple(names), found, info)
    return answer[names[0]] if len(names) == 1 and isinstance(found[names[0]], StateDraws) else answer


def as_rows(problem: Problem, drawn: Mapping[str, Any], variables: Mapping[str, Variable], n: int) -> Any:
    """Return draws, and what evidence fixes, as a frame; where there are plates or vectors, as an xarray data set.

    Columns are those of `variables`, in their order: auxiliary ones are left out.
    """
    fixed = {k: f.value if f.code is None else f.code for k, f in problem.findings.items() if f.hard}
    whole = {**drawn, **{k: np.broadcast_to(v, (n, *np.shape(v))) for k, v in fixed.items()}}
    if problem.kinds <= TABLES:
        from markovia.data.tables.frames import decode

        return decode(whole, variables.values(), n)
    found = {name: np.asarray(whole[name]) for name in variables if name in whole}
    for name, values in found.items():
        variable = variables[name]
        states = variable.labels if isinstance(variable, Quantity) else variable.states
        if states:
            found[name] = np.array(states, dtype=object)[values.astype(np.int64)]
    if all(v.ndim == 1 for v in found.values()):
        import pandas as pd

        return pd.DataFrame({name: v.tolist() for name, v in found.items()}, index=range(n))
    import xarray as xr

    axes = {}
    for name, values in found.items():
        variable = variables[name]
        plates = variable.plates if isinstance(variable, Quantity) else ()
        rest = [f"{name}_{i}" for i in range(values.ndim - 1 - len(plates))]
        axes[name] = (["draw", *plates, *rest], values)
    labels = {
        p: n.labels for p, n in problem.inputs.items() if isinstance(n, Length) and n.labels is not None
    }
    used = {axis for dims, _ in axes.values() for axis in dims}
    return xr.Dataset(axes, coords={p: np.asarray(v) for p, v in labels.items() if p in used})
