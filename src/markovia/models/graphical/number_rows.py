"""Rows of data and models of tables and linear Gaussians: log density, prediction, moments."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from markovia.data.number_columns import NumberRows, number_rows
from markovia.errors import UnsupportedModel
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.evidence import Finding
from markovia.inference.engine import CLOSED, get_engine
from markovia.inference.gaussian.evidence_rows import RowAnswers, row_answers
from markovia.inference.impossible_evidence import impossible as conflict
from markovia.inference.posterior import RowMarginals
from markovia.inference.problem import Problem
from markovia.models.graphical.arguments import Impossible
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice

if TYPE_CHECKING:
    import pandas as pd

    from markovia.models.graphical.base import GraphicalModel


def log_prob(model: "GraphicalModel", frame: Any) -> Array:
    """Return the log density of each row; missing cells and columns are integrated out."""
    data = number_rows(frame, model._variables)
    return row_answers(_problem(model), data.columns, data.n_rows, ()).log_mass


def predict(
    model: "GraphicalModel", frame: Any, names: Sequence[str], impossible: Impossible
) -> "pd.DataFrame":
    """Return the mean of each number and the most probable state of each other target, one row a row."""
    import pandas as pd

    data = number_rows(frame, model._variables, names)
    found = _answers(model, data, names, impossible)
    columns: dict[str, Any] = {}
    for n in names:
        variable, values = model.variable(n), found.targets[n]
        if isinstance(variable, Quantity):
            columns[n] = values[:, 0]
        else:
            best = np.where(np.isnan(values[:, 0]), -1, np.nan_to_num(values).argmax(axis=1))
            columns[n] = np.array([*variable.states, None], dtype=object)[best]
    return pd.DataFrame(columns, index=data.index).infer_objects()


def tables(
    model: "GraphicalModel", frame: Any, names: Sequence[str], impossible: Impossible
) -> dict[str, "pd.DataFrame"]:
    """Return for each target a frame: one column a state, or mean and standard deviation of a number."""
    return _frames(model, number_rows(frame, model._variables, names), names, impossible)


def marginals(
    model: "GraphicalModel", frame: Any, names: Sequence[str] | None, impossible: Impossible
) -> RowMarginals:
    """Return the posteriors for every row by name; by default of all variables that some row does not observe."""
    data = number_rows(frame, model._variables)
    if names is None:
        full = {
            n for n, c in data.columns.items() if not (np.isnan(c) if c.dtype.kind == "f" else c < 0).any()
        }
        names = [n for n in model.variables if n not in full]
    return RowMarginals(_frames(model, data, names, impossible))


def _frames(
    model: "GraphicalModel", data: NumberRows, names: Sequence[str], impossible: Impossible
) -> dict[str, "pd.DataFrame"]:
    import pandas as pd

    found = _answers(model, data, names, impossible)
    frames = {}
    for n in names:
        variable, values = model.variable(n), found.targets[n]
        number = isinstance(variable, Quantity)
        columns = ["mean", "sd"] if number else list(variable.states)
        if number:
            values = np.column_stack([values[:, 0], np.sqrt(np.maximum(values[:, 1], 0.0))])
        elif n in data.columns:  # what a row says is certain there
            there = np.flatnonzero(data.columns[n] >= 0)
            values[there] = np.eye(len(variable))[data.columns[n][there]]
        if number and n in data.columns:
            there = ~np.isnan(data.columns[n])
            values[there] = np.column_stack([data.columns[n][there], np.zeros(int(there.sum()))])
        frames[n] = pd.DataFrame(values, index=data.index, columns=pd.Index(columns))
    return frames


def _answers(
    model: "GraphicalModel", data: NumberRows, names: Sequence[str], impossible: Impossible
) -> RowAnswers:
    check_choice("impossible", impossible, get_args(Impossible))
    problem = _problem(model)
    found = row_answers(problem, data.columns, data.n_rows, names)
    bad = np.flatnonzero(np.isneginf(found.log_mass))
    if len(bad) and impossible == "raise":
        first = int(bad[0])
        label = first if data.index is None else data.index[first : first + 1].tolist()[0]
        raise conflict(_row_problem(problem, data, first), get_engine("gaussian").log_mass, label)
    if len(bad) and impossible == "prior":
        prior = row_answers(problem, {}, 1, names)
        for n in names:
            found.targets[n][bad] = prior.targets[n][0]
    return found


def _row_problem(problem: Problem, data: NumberRows, row: int) -> Problem:
    findings = {}
    for n, column in data.columns.items():
        variable, cell = problem.variables[n], column[row].item()
        if column.dtype.kind == "f" and cell == cell:
            findings[n] = Finding(variable, cell, value=cell)
        elif column.dtype.kind != "f" and cell >= 0:
            findings[n] = Finding(variable, variable.states[cell], code=cell)
    return problem.with_findings(findings)


def _problem(model: "GraphicalModel") -> Problem:
    problem = Problem(model._variables, model.pieces(), {}, model.__dict__.setdefault("_memory", {}))
    if not problem.kinds <= CLOSED:
        raise UnsupportedModel(
            "rows of data are for models of tables and linear Gaussians; a model with functions of parents takes its data "
            "as evidence on plates: query(..., given={...})"
        )
    return problem
