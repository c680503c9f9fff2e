"""Rows of data and models of tables and linear Gaussians: log density, prediction, moments."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from markovia.data.tables.frames import as_frame
from markovia.data.tables.in_memory import eager_columns, wanted_columns
from markovia.data.tables.number_columns import NumberRows, column_numbers, number_rows
from markovia.data.tables.row_sources import row_weights
from markovia.errors import InvalidArgument, Unanswered, UnsupportedModel
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.evidence import Finding
from markovia.inference.engine import CLOSED, Engine, asking, counterpart, get_engine, without_cure
from markovia.inference.gaussian.evidence_rows import RowAnswers, row_answers
from markovia.inference.impossible_evidence import impossible as conflict
from markovia.inference.posterior import RowMarginals
from markovia.inference.problem import Problem
from markovia.models.graphical.arguments import Impossible
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice
from markovia.runtime.libraries import pd
from markovia.runtime.seeds import Seed, generator

if TYPE_CHECKING:
    from markovia.models.graphical.base import GraphicalModel


def answers_together(engine: Engine) -> bool:
    """Say whether an engine is the exact one of linear Gaussians, which answers all rows at once."""
    return engine.name in ("auto", "gaussian")


def log_prob(model: "GraphicalModel", frame: Any, engine: Engine) -> Array:
    """Return the log density of each row; missing cells and columns are integrated out."""
    data = number_rows(frame, model._variables)
    if not answers_together(engine):
        problem = _problem(model)
        chosen = counterpart(engine, problem)
        with asking(chosen, problem, "log_mass"):
            rows = [_row_problem(problem, data, row) for row in range(data.n_rows)]
            return np.array([float(chosen.log_mass(row)) for row in rows])
    return row_answers(_problem(model), data.columns, data.n_rows, ()).log_mass


def predict(
    model: "GraphicalModel", frame: Any, names: Sequence[str], impossible: Impossible
) -> "pd.DataFrame":
    """Return the mean of each number and the most probable state of each other target, one row a row."""
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
    model: "GraphicalModel",
    frame: Any,
    names: Sequence[str] | None,
    engine: Engine,
    impossible: Impossible,
) -> RowMarginals:
    """Return the posteriors for every row by name; by default of all variables that some row does not observe."""
    problem = _problem(model)
    if not answers_together(engine):
        with asking(counterpart(engine, problem), problem, "marginals"):
            raise without_cure(
                Unanswered, f"engine {engine.name!r} does not give marginals of many rows at once"
            )
    data = number_rows(frame, model._variables)
    if names is None:
        full = {
            n for n, c in data.columns.items() if not (np.isnan(c) if c.dtype.kind == "f" else c < 0).any()
        }
        names = [n for n in model.variables if n not in full]
    return RowMarginals(_frames(model, data, names, impossible))


def log_likelihood(
    model: "GraphicalModel", data: Any, by: str | None, weights: Any
) -> "float | Array | pd.Series[float]":
    """Return the log likelihood of rows: in total, by row, or by node for complete rows."""
    if by == "family":
        import pandas as pd

        rows, given = _weighted(model, data, weights)
        lacking = next(
            (n for n in model.variables if n not in rows.columns or _gaps(rows.columns[n]).any()), None
        )
        if lacking is not None:
            raise InvalidArgument(
                f"{lacking!r} misses cells, so the log likelihood is no sum over nodes; ask for the total or by='row'"
            )
        scores = {}
        for piece in model.pieces():
            assert isinstance(piece, Conditional)
            own = [rows.columns[q] for q in piece.parent_names]
            scores[piece.variable.name] = float(
                given @ piece.log_prob(rows.columns[piece.variable.name], own)
            )
        return pd.Series(scores, name="log_likelihood", dtype=np.float64)
    logs, given = weighted_logs(model, data, weights)
    return logs if by == "row" else float(given[given > 0] @ logs[given > 0])


def weighted_logs(model: "GraphicalModel", data: Any, weights: Any) -> tuple[Array, Array]:
    """Return the log density and the weight of every row."""
    rows, given = _weighted(model, data, weights)
    return row_answers(_problem(model), rows.columns, rows.n_rows, ()).log_mass, given


def _weighted(model: "GraphicalModel", data: Any, weights: Any) -> tuple[NumberRows, Array]:
    columns = eager_columns(data)
    _, weight_column = wanted_columns(columns.names, [], weights)
    if weight_column is not None:
        weights = column_numbers(columns.get(weight_column), weight_column)
    given = row_weights(weights, columns.n_rows)
    rows = number_rows({n: columns.get(n) for n in columns.names if n in model}, model._variables)
    return rows, np.ones(rows.n_rows) if given is None else given


def impute(model: "GraphicalModel", frame: Any, method: str, seed: Seed) -> "pd.DataFrame":
    """Return the rows with every missing cell filled in; see `BayesianNetwork.impute`."""
    filled = as_frame(frame).copy()
    data = number_rows({n: filled[n] for n in filled.columns if n in model}, model._variables)
    gaps = {
        n: _gaps(data.columns[n]) if n in data.columns else np.ones(data.n_rows, bool)
        for n in model.variables
    }
    names = [n for n, gone in gaps.items() if gone.any()]
    problem, engine, rng = _problem(model), get_engine("gaussian"), generator(seed)
    states = any(not isinstance(model.variable(n), Quantity) for n in names)
    if method == "mode" or (method == "map" and not states):
        found = predict_cells(model, data, names)
    else:
        found = {n: np.empty(data.n_rows, object) for n in names}
        alike: dict[tuple[Any, ...], list[int]] = {}
        for k in range(data.n_rows):
            cells = tuple(None if gaps[n][k] else c[k].item() for n, c in data.columns.items())
            alike.setdefault(cells, []).append(k)
        for rows in alike.values():  # equal rows together
            lost = [n for n in names if gaps[n][rows[0]]]
            here = _row_problem(problem, data, rows[0])
            drawn: Mapping[str, Any] = {}
            if lost and method == "map":
                drawn = {n: np.repeat(c, len(rows)) for n, c in engine.best(here, lost, 1)[0].codes.items()}
            elif lost:
                drawn = engine.sample(here, len(rows), rng)
            for n in lost:
                variable, values = model.variable(n), drawn[n]
                number = isinstance(variable, Quantity)
                found[n][rows] = values if number else np.array(variable.states, dtype=object)[values]
    for n in names:
        old = filled[n].to_numpy() if n in filled.columns else np.empty(data.n_rows, object)
        new = np.where(gaps[n], found[n], old)
        filled[n] = new.astype(np.float64) if isinstance(model.variable(n), Quantity) else new
    return filled


def predict_cells(model: "GraphicalModel", data: NumberRows, names: Sequence[str]) -> dict[str, Any]:
    """Return the mean of every number and the most probable state of every other cell, given the rest of its row."""
    answers = _answers(model, data, names, "raise")
    found: dict[str, Any] = {}
    for n in names:
        variable, values = model.variable(n), answers.targets[n]
        if isinstance(variable, Quantity):
            found[n] = values[:, 0]
        else:
            found[n] = np.array(variable.states, dtype=object)[np.nan_to_num(values).argmax(axis=1)]
    return found


def _gaps(column: Any) -> Any:
    return np.isnan(column) if column.dtype.kind == "f" else column < 0


def _frames(
    model: "GraphicalModel", data: NumberRows, names: Sequence[str], impossible: Impossible
) -> dict[str, "pd.DataFrame"]:
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
