"""A model on rows of data: log probability, prediction, posterior tables.

Rows that say the same are answered once. Complete rows are scored by indexing the tables, all at once.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from markovia.factors.evidence import Finding
from markovia.factors.factor import Factor
from markovia.inference.conflict import impossible
from markovia.inference.engine import Engine, get_engine
from markovia.inference.problem import Problem
from markovia.models.frames import MISSING, as_frame, encode

if TYPE_CHECKING:
    import pandas as pd

    from markovia.models.base import GraphicalModel

Codes = NDArray[np.int64]


def log_prob(model: "GraphicalModel", frame: Any) -> NDArray[np.float64]:
    """Return the log probability of each row; missing cells and columns are summed out."""
    data = as_frame(frame)
    table = _code_table(model, data)
    engine = get_engine("auto")
    log_z = 0.0 if model.normalised else model._log_z(engine)
    complete = (table != MISSING).all(axis=1)
    result = np.empty(len(data))
    if complete.any():
        columns = dict(zip(model.variables, table[complete].T, strict=True))
        result[complete] = _log_weight(model, columns, int(complete.sum())) - log_z
    if not complete.all():
        result[~complete] = _once_a_pattern(
            table[~complete], lambda row: np.array(engine.log_mass(_problem(model, row)) - log_z)
        )
    return result


def predict(model: "GraphicalModel", frame: Any, names: Sequence[str], engine: Engine) -> "pd.DataFrame":
    """Return the mode of each target's posterior for every row, one column a target."""
    import pandas as pd

    data, tables = posteriors(model, frame, names, engine)
    modes = {n: np.array(model.variable(n).states, dtype=object)[tables[n].argmax(axis=1)] for n in names}
    return pd.DataFrame(modes, index=data.index).infer_objects()


def predict_proba(
    model: "GraphicalModel", frame: Any, names: Sequence[str], engine: Engine
) -> "pd.DataFrame":
    """Return the posterior of each target for every row, columns (target, state)."""
    import pandas as pd

    data, tables = posteriors(model, frame, names, engine)
    parts = {
        n: pd.DataFrame(tables[n], index=data.index, columns=pd.Index(model.variable(n).states))
        for n in names
    }
    return pd.concat(parts, axis=1, names=["target", "state"])


def posteriors(
    model: "GraphicalModel", frame: Any, names: Sequence[str], engine: Engine
) -> tuple["pd.DataFrame", dict[str, NDArray[np.float64]]]:
    """Return, for each target, an array of posteriors with one row a data row."""
    data = as_frame(frame)
    cards = [len(model.variable(n)) for n in names]
    table = _code_table(model, data.drop(columns=[n for n in names if n in data.columns]))

    def ask(row: Codes) -> NDArray[np.float64]:
        problem = _problem(model, row)
        answer = engine.marginals(problem, names)
        if np.isneginf(answer.log_mass):
            raise impossible(problem, engine.log_mass)
        return np.concatenate([t.values for t in answer.tables])

    flat = _once_a_pattern(table, ask) if len(table) else np.empty((0, sum(cards)))
    return data, dict(zip(names, np.split(flat, np.cumsum(cards)[:-1], axis=1), strict=True))


def _code_table(model: "GraphicalModel", data: "pd.DataFrame") -> Codes:
    codes = encode(data, _variables(model))
    table = np.full((len(data), len(model)), MISSING, dtype=np.int64)
    for k, name in enumerate(model.variables):
        if name in codes:
            table[:, k] = codes[name]
    return table


def _variables(model: "GraphicalModel") -> dict[str, Any]:
    return {n: model.variable(n) for n in model.variables}


def _problem(model: "GraphicalModel", row: Codes) -> Problem:
    variables = _variables(model)
    findings = {
        name: Finding(variable, variable.states[code], code=int(code))
        for (name, variable), code in zip(variables.items(), row, strict=True)
        if code != MISSING
    }
    return Problem(variables, model.pieces(), findings, model.__dict__.setdefault("_memory", {}))


def _once_a_pattern(table: Codes, answer: Callable[[Codes], NDArray[np.float64]]) -> NDArray[np.float64]:
    distinct, where = np.unique(table, axis=0, return_inverse=True)
    return np.array([answer(row) for row in distinct])[where.reshape(-1)]


def _log_weight(model: "GraphicalModel", codes: Mapping[str, Codes], n: int) -> NDArray[np.float64]:
    """Return the log of the product of the pieces for complete rows."""
    total = np.zeros(n)
    for piece in model.pieces():
        if isinstance(piece, Factor):
            with np.errstate(divide="ignore"):
                total += np.log(piece.values[tuple(codes[n] for n in piece.names)])
        else:
            total += piece.log_prob(codes[piece.variable.name], [codes[p] for p in piece.parent_names])
    return total
