"""Polars columns as positions and values; see `markovia.data.tables.state_codes`."""

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.arrow_columns import split_arrow
from markovia.data.tables.coded_cells import MISSING, Coded, floats, integers, objects
from markovia.data.tables.table_counts import kernel_for
from markovia.factors.tables.variable import Variable


def split_polars(name: str, column: Any, variable: Variable | None) -> Coded:
    """Split a Polars series: Enum by its categories in their order; Categorical, strings and the rest by value."""
    import polars as pl

    kind = column.dtype
    if kind == pl.Boolean:
        return Coded(_positions(column.cast(pl.Int8), 2), [False, True])
    if kind in (pl.Int128, pl.UInt128):  # NumPy has none
        return objects(np.array([*column.to_list(), None], dtype=object)[:-1], variable)
    if kind.is_integer():
        gaps = column.is_null().to_numpy() if column.null_count() else None
        return integers(column.fill_null(0).to_numpy() if gaps is not None else column.to_numpy(), gaps)
    if kind.is_float():
        return floats(name, column.cast(pl.Float64).to_numpy(), variable)
    if isinstance(kind, pl.Enum):
        values = kind.categories.to_list()
        return Coded(_positions(column.to_physical(), len(values)), values, True)
    if kind == pl.Categorical:
        known = column.drop_nulls().unique()
        numbers = known.to_physical().to_numpy()
        lookup = np.full(int(numbers.max(initial=0)) + 2, MISSING, dtype=np.int32)
        lookup[numbers] = np.arange(len(known))
        places = column.to_physical().cast(pl.Int64).fill_null(MISSING).to_numpy()
        return Coded(lookup[places], known.cast(pl.String).to_list())
    if kind == pl.String:
        few = _few_strings(name, column, variable)
        if few is not None:
            return few
        known = column.drop_nulls().unique().sort()
        return Coded(_positions(column.cast(pl.Enum(known)).to_physical(), len(known)), known.to_list())
    return objects(np.array([*column.to_list(), None], dtype=object)[:-1], variable)


def _few_strings(name: str, column: Any, variable: Variable | None) -> Coded | None:
    """Split strings as Arrow's where that library is there and the compiled code is loaded."""
    if find_spec("pyarrow") is None or kernel_for(8 * len(column)) is None:
        return None
    import pyarrow as pa

    return split_arrow(name, column.to_arrow().cast(pa.large_string()), variable)


def _positions(numbers: Any, n: int) -> NDArray[Any]:
    """Return physical integers as signed ones, -1 for nulls."""
    import polars as pl

    if n < 2**7 and numbers.dtype == pl.UInt8 and not numbers.null_count():
        seen: NDArray[Any] = numbers.to_numpy().view(np.int8)
        return seen
    signed = numbers.cast(pl.Int8 if n < 2**7 else pl.Int32)
    if signed.null_count():
        signed = signed.fill_null(MISSING)
    found: NDArray[Any] = signed.to_numpy()
    return found
