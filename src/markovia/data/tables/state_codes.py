"""Columns of any library as state codes.

A column is first split into positions and values (`Coded`): categories and dictionaries already are, strings are by
Arrow, Polars or pandas, small integers by a subtraction, Python objects by their addresses where few objects are shared
by many cells. Only then are the few values looked up among the states, and the positions translated byte by byte.
Cost: linear in the rows, without a Python object a cell except where a column holds many different ones.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from markovia.data.tables.arrow_columns import split_arrow
from markovia.data.tables.coded_cells import (
    MISSING,
    Coded,
    array_cells,
    continuous,
    floats,
    integers,
    objects,
    translated,
)
from markovia.data.tables.polars_columns import split_polars
from markovia.errors import InvalidArgument
from markovia.factors.tables.variable import State, Variable
from markovia.runtime.array_types import Codes

FIRST_ROWS, RARE_VALUES = 4096, 32
"""Rows that are looked at first for the values that occur, and how many others are looked for one by one."""


def column_codes(
    name: str,
    column: Any,
    variable: Variable | None,
    states: int | Sequence[State] | None = None,
    unseen: str = "error",
) -> tuple[Variable, Codes]:
    """Return a column's variable (given, with given states, or inferred) and its cells as codes, -1 for missing.

    With `unseen="missing"` a cell that is no state is missing, too; a number with a fraction stays an error.

    Raises
    ------
    UnknownState
        For a cell that is no state.
    InvalidArgument
        For numbers with fractions, or a column without any value, where states are to be inferred.
    """
    if variable is None and states is not None:
        variable = Variable(name, states)
    coded = split(name, column, variable if unseen == "error" else None)
    if variable is None:
        variable = inferred(name, _occurring(coded), coded.categories)
    return variable, translated(coded, variable, unseen)


def split(name: str, column: Any, variable: Variable | None = None) -> Coded:
    """Split a column of any library into positions and values."""
    kind = type(column).__module__.partition(".")[0]
    if kind == "pandas":
        return _pandas(name, column, variable)
    if kind == "polars":
        return split_polars(name, column, variable)
    if kind == "pyarrow":
        return split_arrow(name, column, variable)
    return array_cells(name, np.asanyarray(column), variable)


def inferred(name: str, values: Iterable[Any], categories: bool = False) -> Variable:
    """Return a variable with these values as states: categories in their order, both booleans, others sorted."""
    found = [v.item() if isinstance(v, np.generic) else v for v in values]
    if not found:
        raise InvalidArgument(f"the column {name!r} has no value; give its states with states=")
    if any(isinstance(v, float) and not v.is_integer() for v in found):
        raise continuous(name)
    if categories:
        return Variable(name, found)
    if all(isinstance(v, bool) for v in found):
        return Variable(name, [False, True])
    if {bool, int} <= {type(v) for v in found}:
        raise InvalidArgument(
            f"the column {name!r} mixes booleans and integers, and True equals 1; give its states with states="
        )
    try:
        return Variable(name, sorted(found))
    except TypeError:
        found = list(Variable(name, found).states)  # says so if one of them can be no state at all
        return Variable(name, sorted(found, key=lambda v: (type(v).__name__, v)))


def _occurring(coded: Coded) -> list[Any]:
    """Return the values that some cell has; all of them for categories."""
    if coded.categories:
        return list(coded.values)
    positions = coded.positions
    first = set(positions[:FIRST_ROWS].tolist())  # the rare values are looked for in all rows
    if len(coded.values) - len(first) > RARE_VALUES:
        first = set(np.unique(positions).tolist())
        return [v for i, v in enumerate(coded.values) if i in first]
    return [v for i, v in enumerate(coded.values) if i in first or (positions == i).any()]


def _pandas(name: str, column: Any, variable: Variable | None) -> Coded:
    import pandas as pd

    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        cells = column.array
        return Coded(cells.codes, kind.categories.tolist(), True)
    if isinstance(kind, np.dtype):
        return array_cells(name, column.to_numpy(), variable)
    if hasattr(column.array, "__arrow_array__") and (
        isinstance(kind, pd.ArrowDtype) or getattr(kind, "storage", "") == "pyarrow"
    ):
        import pyarrow as pa

        return split_arrow(name, pa.chunked_array(pa.array(column.array)), variable)
    gaps = column.isna().to_numpy()
    if pd.api.types.is_bool_dtype(kind):
        return Coded(np.where(gaps, np.int8(MISSING), column.to_numpy(np.int8, na_value=0)), [False, True])
    if pd.api.types.is_integer_dtype(kind):
        return integers(column.to_numpy(np.int64, na_value=0), gaps)
    if pd.api.types.is_float_dtype(kind):
        return floats(name, column.to_numpy(np.float64, na_value=np.nan), variable)
    return objects(column.to_numpy(object, na_value=None), variable)
