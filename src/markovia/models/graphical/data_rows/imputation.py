"""Filling the missing cells of rows: the most probable completion, each cell's own mode, or draws.

The most probable completion and draws come from the clique trees of `markovia.learning.incomplete.incomplete_rows`:
equal cases are maximised once, draws are made row by row. Where a tree would be too wide the engine "auto" is asked.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.data.tables.frames import as_frame, decode_column
from markovia.data.tables.row_sources import CodedTable
from markovia.data.tables.state_codes import column_codes
from markovia.errors import InvalidArgument
from markovia.inference.engine import TABLES, get_engine
from markovia.learning.incomplete.e_step import ExpectedCounter
from markovia.learning.tables.table_learner import NodeFamily
from markovia.models.graphical.data_rows import number_rows, rows
from markovia.runtime.checks import check_choice
from markovia.runtime.seeds import Seed, generator

if TYPE_CHECKING:
    import pandas as pd

    from markovia.models.graphical.base import GraphicalModel

METHODS = ("map", "mode", "sample")


def impute(model: "GraphicalModel", frame: Any, method: str, seed: Seed) -> "pd.DataFrame":
    """Return the rows with every missing cell filled in; variables without a column get one."""
    check_choice("method", method, METHODS)
    if not rows.kinds_of(model) <= TABLES:
        return number_rows.impute(model, frame, method, seed)
    data = as_frame(frame, {n: model.variable(n) for n in model.variables})
    if data.columns.has_duplicates:
        twice = data.columns[data.columns.duplicated()][0]
        raise InvalidArgument(f"the rows have two columns named {twice!r}")
    variables = [model.variable(n) for n in model.variables]
    codes = np.full((len(variables), len(data)), -1, dtype=np.int32)
    for i, v in enumerate(variables):
        if v.name in data.columns:
            codes[i] = column_codes(v.name, data[v.name], v)[1]
    known = [i for i, v in enumerate(variables) if (codes[i] < 0).any() or v.name not in data.columns]
    if method == "mode":
        full = _modes(model, data, codes, known)
    else:
        full = _completed(model, codes, generator(seed) if method == "sample" else None)
    out = data.copy()
    for i in known:
        out[variables[i].name] = _column(data, full[i], variables[i])
    return out


def _modes(model: "GraphicalModel", data: "pd.DataFrame", codes: Any, known: list[int]) -> Any:
    """Fill each cell with the mode of its own posterior."""
    names = [model.variables[i] for i in known]
    seen = data[[n for n in data.columns if n in set(model.variables)]]
    tables = rows.marginals(model, seen, names, get_engine("auto"), None)
    full = codes.copy()
    for i, name in zip(known, names, strict=True):
        full[i] = np.where(codes[i] < 0, tables[name].to_numpy().argmax(axis=1), codes[i])
    return full


def _completed(model: "GraphicalModel", codes: Any, rng: np.random.Generator | None) -> Any:
    """Fill the cells of each row together."""
    tables: list[Any] = list(model.pieces())
    families = [NodeFamily(t.variable, t.parents, t) for t in tables]
    names = [t.variable.name for t in tables]
    order = [model.variables.index(n) for n in names]
    counter = ExpectedCounter(families, CodedTable([t.variable for t in tables], codes[order]))
    theta = counter.rows.layout.flat(tables)
    bad = np.flatnonzero(np.isneginf(_observed(counter, theta)))
    if len(bad):
        raise counter.impossible(int(bad[0]))
    full, logs = counter.rows.filled(theta, rng)
    bad = np.flatnonzero(np.isneginf(logs))
    if len(bad):
        raise counter.impossible(int(counter.rows.groups.row[bad[0]]))
    if not counter.exact:
        from markovia.learning.incomplete.approximate_counts import WideCases

        WideCases(counter.rows, get_engine("auto")).fill(tables, full, rng)
    found = np.empty_like(full)
    found[order] = full
    return found


def _observed(counter: ExpectedCounter, theta: Any) -> Any:
    """Return for each row the log probability of the families that it observes whole."""
    layout = counter.rows.layout
    total = np.zeros(counter.rows.codes.shape[1])
    for f, table in enumerate(layout.split(theta)):
        cells = counter.rows.codes[layout.scopes[f]]
        whole = (cells >= 0).all(axis=0)
        with np.errstate(divide="ignore"):
            total[whole] += np.log(table[tuple(cells[:, whole].astype(np.int64))])
    return total


def _column(data: "pd.DataFrame", codes: Any, variable: Any) -> Any:
    """Return a filled column, of the kind that the frame had where that holds the states."""
    import pandas as pd

    if variable.name in data.columns:
        kind = data[variable.name].dtype
        cells = np.array(variable.states, dtype=object)[codes]
        if isinstance(kind, pd.CategoricalDtype) and set(variable.states) <= set(kind.categories):
            return pd.Categorical(cells, dtype=kind)
        if isinstance(kind, pd.StringDtype) or kind.kind == "O":
            return pd.Series(cells, index=data.index, dtype=kind)
    return decode_column(codes.astype(np.int64), variable.states)
