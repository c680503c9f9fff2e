"""Between data frames and arrays of state codes.

Rows come as a pandas DataFrame, a mapping of columns, or a list of mappings; a missing cell is None or NaN.
Inside, a column is an array of state codes with -1 for missing.
"""

from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from markovia.data.state_codes import MISSING, column_codes
from markovia.errors import InvalidArgument, UnknownVariable
from markovia.factors.tables.variable import Variable
from markovia.runtime.array_types import Codes

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MISSING", "Codes", "as_frame", "decode", "decode_column", "encode", "encode_column"]


def as_frame(rows: Any) -> "pd.DataFrame":
    """Return rows of any accepted form as a DataFrame."""
    import pandas as pd

    if isinstance(rows, pd.DataFrame):
        return rows
    if isinstance(rows, Mapping):
        return _from_columns(rows)
    if isinstance(rows, list | tuple) and all(isinstance(r, Mapping) for r in rows):
        return pd.DataFrame([dict(r) for r in rows])
    if hasattr(rows, "to_pandas"):
        converted = rows.to_pandas()
        if isinstance(converted, pd.DataFrame):
            return converted
    raise InvalidArgument(
        "rows are a data frame (pandas, or one with to_pandas, as Polars and PyArrow have), a mapping of columns or a list "
        f"of mappings, not {type(rows).__name__}"
    )


def encode(frame: "pd.DataFrame", variables: Mapping[str, Variable]) -> tuple[list[str], Codes]:
    """Return the names of the columns, and a table of state codes, one row a data row, in as few bytes as they need.

    Raises
    ------
    UnknownVariable
        For a column that is no variable.
    UnknownState
        For a cell that is no state of its column's variable.
    """
    if frame.columns.has_duplicates:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise InvalidArgument(f"the rows have two columns named {twice!r}")
    for name in frame.columns:
        if name not in variables:
            raise UnknownVariable(name, variables)
    names = list(frame.columns)
    most = max((len(variables[n]) for n in names), default=1)
    kind = np.int8 if most < 2**7 else np.int16 if most < 2**15 else np.int32
    table = np.empty((len(frame), len(names)), dtype=kind, order="F")
    for k, name in enumerate(names):
        table[:, k] = encode_column(frame[name], variables[name])
    return names, table


def encode_column(column: "pd.Series[Any]", variable: Variable) -> Codes:
    """Return the state codes of one column, -1 for missing cells."""
    return column_codes(variable.name, column, variable)[1]


def decode(codes: Mapping[str, NDArray[np.int64]], variables: Iterable[Variable], n: int) -> "pd.DataFrame":
    """Return n rows of states: numbers and booleans as such, anything else as a categorical column."""
    import pandas as pd

    columns = {v.name: decode_column(codes[v.name], v.states) for v in variables}
    return pd.DataFrame(columns, index=pd.RangeIndex(n))


def decode_column(codes: NDArray[np.int64], states: Sequence[Any]) -> Any:
    """Return one column of states from its codes."""
    import pandas as pd

    kinds = {type(s) for s in states}
    if kinds == {int} or kinds == {bool}:
        return np.array(states)[codes]
    return pd.Categorical.from_codes(codes, categories=pd.Index(states, dtype=object))


def _from_columns(columns: Mapping[Any, Any]) -> "pd.DataFrame":
    """Return a frame of columns, or of one row if every value is a single cell; cells among columns are repeated."""
    import pandas as pd

    lengths = {}
    ready = {}
    for name, column in columns.items():
        if isinstance(column, set | frozenset):
            raise InvalidArgument(f"the column {name!r} is a set, which has no order; give a list")
        axes = getattr(column, "ndim", 1)
        if isinstance(column, str | bytes) or not isinstance(column, Iterable) or axes == 0:
            ready[name] = column.item() if isinstance(column, np.ndarray) else column
            continue
        if axes > 1:
            raise InvalidArgument(f"the column {name!r} has {axes} axes; a column is a list of cells")
        ready[name] = column if isinstance(column, Sized) else list(column)
        lengths[name] = len(ready[name])
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
        raise InvalidArgument(f"the columns are not equally long: {shown}")
    return pd.DataFrame(ready) if lengths or not ready else pd.DataFrame([ready])
