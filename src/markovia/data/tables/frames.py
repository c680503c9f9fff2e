"""Rows as pandas frames: of any form on the way in, of states on the way out."""

from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.distant_rows import is_files, near_rows
from markovia.data.tables.file_blocks import file_blocks, file_columns
from markovia.errors import InvalidArgument
from markovia.factors.tables.variable import Variable
from markovia.runtime.libraries import pd


def as_frame(rows: Any, variables: Mapping[str, Variable] | None = None) -> "pd.DataFrame":
    """Return rows of any accepted form as a DataFrame; those that are not in memory are fetched.

    Where `variables` are known, cells of text files are read as their states.
    """
    if is_files(rows):
        return _from_files(rows, variables or {})
    rows = near_rows(rows)
    if isinstance(rows, pd.DataFrame):
        return rows
    if isinstance(rows, Mapping):
        return _from_columns(rows)
    if isinstance(rows, list | tuple) and all(isinstance(r, Mapping) for r in rows):
        return pd.DataFrame([dict(r) for r in rows])
    if isinstance(rows, np.ndarray):
        return _from_array(rows)
    if hasattr(rows, "to_pandas"):
        converted = rows.to_pandas()
        if isinstance(converted, pd.DataFrame):
            return converted
    raise InvalidArgument(
        "rows are a data frame (pandas, Polars, PyArrow, Dask, Spark), a DuckDB relation, a mapping of columns, a list "
        f"of mappings, an array, or CSV and Parquet files by their paths, not {type(rows).__name__}"
    )


def _from_files(files: Any, variables: Mapping[str, Variable]) -> "pd.DataFrame":
    frame: pd.DataFrame = near_rows(files).to_pandas()
    stated = {n: variables[n] for n in file_columns(files) if n in variables}
    if stated:
        blocks = [block for block, _ in file_blocks(files, stated)]
        for name in stated if blocks else ():
            frame[name] = pd.concat([block[name] for block in blocks], ignore_index=True)
    return frame


def _from_array(rows: NDArray[Any]) -> "pd.DataFrame":
    if rows.dtype.names is not None and rows.ndim == 1:
        return pd.DataFrame({n: rows[n] for n in rows.dtype.names})
    if rows.dtype.names is None and rows.ndim == 2:
        return pd.DataFrame(rows, columns=[f"x{i}" for i in range(rows.shape[1])])
    raise InvalidArgument(f"an array of rows has two axes, a structured one has one axis, not {rows.ndim}")


def decode(codes: Mapping[str, NDArray[np.int64]], variables: Iterable[Variable], n: int) -> "pd.DataFrame":
    """Return n rows of states: numbers and booleans as such, anything else as a categorical column."""
    columns = {v.name: decode_column(codes[v.name], v.states) for v in variables}
    return pd.DataFrame(columns, index=pd.RangeIndex(n))


def decode_column(codes: NDArray[np.int64], states: Sequence[Any]) -> Any:
    """Return one column of states from its codes."""
    kinds = {type(s) for s in states}
    if kinds == {int} or kinds == {bool}:
        return np.array(states)[codes]
    return pd.Categorical.from_codes(codes, categories=pd.Index(states, dtype=object))


def _from_columns(columns: Mapping[Any, Any]) -> "pd.DataFrame":
    """Return a frame of columns, or of one row if every value is a single cell; cells among columns are repeated."""
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
