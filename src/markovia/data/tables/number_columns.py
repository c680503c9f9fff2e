"""Rows for models with numbers: codes for variables with states, floats for the others."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from markovia.data.tables.in_memory import Columns, coded_columns, eager_columns
from markovia.data.tables.reading import known_columns
from markovia.errors import InvalidArgument
from markovia.factors.tables.variable import Variable
from markovia.runtime.array_types import Array


class NumberRows(NamedTuple):
    """Columns by name, in the order of the rows: codes (-1 is missing) or floats (NaN is missing)."""

    columns: dict[str, Any]
    n_rows: int
    index: Any


def number_rows(data: Any, variables: Mapping[str, Variable], leave_out: Collection[str] = ()) -> NumberRows:
    """Return rows of any accepted form; other columns are left out with a warning."""
    if isinstance(data, NumberRows):
        return NumberRows({n: c for n, c in data.columns.items() if n not in leave_out}, *data[1:])
    columns = eager_columns(data)
    names = known_columns(columns.names, variables, leave_out, "note")
    counted = [n for n in names if variables[n].domain == "states"]
    table = coded_columns(Columns(counted, columns.get, columns.n_rows), counted, variables, {})
    found: dict[str, Any] = dict(zip(counted, table.codes.astype(np.int64), strict=True))
    found.update((n, column_numbers(columns.get(n), n)) for n in names if n not in found)
    return NumberRows({n: found[n] for n in names}, columns.n_rows, columns.index)


def column_numbers(column: Any, name: str) -> Array:
    """Return the cells of a column as floats; NaN where one is missing."""
    cells = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
    try:
        found = np.array(cells, dtype=np.float64)
    except (TypeError, ValueError):
        missing = np.array([c is None or c != c or str(c) == "<NA>" for c in cells])
        try:
            found = np.array([np.nan if gone else float(c) for c, gone in zip(cells, missing, strict=True)])
        except (TypeError, ValueError):
            raise InvalidArgument(f"the column {name!r} has cells that are not numbers") from None
    if np.isinf(found).any():
        raise InvalidArgument(f"the column {name!r} has an infinite cell")
    return found
