"""Arrow columns as positions and values; see `markovia.data.tables.state_codes`."""

from typing import Any

import numpy as np

from markovia.data.tables.coded_cells import MISSING, Coded, array_cells, floats, integers, narrow, objects
from markovia.data.tables.table_counts import kernel_for
from markovia.factors.tables.variable import Variable
from markovia.runtime.array_types import Codes

FEW_STRINGS = 120
"""Strings with at most so many different values are told apart by compiled code."""


def split_arrow(name: str, column: Any, variable: Variable | None) -> Coded:
    """Split an Arrow array: dictionaries by their values, strings and the rest by value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    kind = column.type
    if pa.types.is_null(kind):
        return Coded(np.full(len(column), MISSING, dtype=np.int8), [])
    if pa.types.is_boolean(kind):
        return Coded(_filled(pc.cast(column, pa.int8())), [False, True])
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        if not column.null_count:
            return array_cells(name, column.to_numpy(), variable)
        gaps = column.is_null().to_numpy()
        if pa.types.is_integer(kind):
            return integers(column.fill_null(0).to_numpy(), gaps)
        return floats(name, np.where(gaps, np.nan, column.fill_null(0.0).to_numpy()), variable)
    categories = pa.types.is_dictionary(kind)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        short = _few_strings(column)
        if short is not None:
            return short
    if not categories:
        try:
            column = column.dictionary_encode()
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            return objects(np.array([*column.to_pylist(), None], dtype=object)[:-1], variable)
    if column.num_chunks == 0:
        return Coded(np.zeros(0, dtype=np.int8), [])
    column = column.unify_dictionaries()
    values = column.chunk(0).dictionary.to_pylist()
    indices = pa.chunked_array([chunk.indices for chunk in column.chunks])
    positions = narrow(_filled(indices), len(values))
    if None in values:
        at = values.index(None)
        positions = np.where(positions == at, MISSING, positions - (positions > at)).astype(positions.dtype)
        values = values[:at] + values[at + 1 :]
    return Coded(positions, values, categories)


def _few_strings(column: Any) -> Coded | None:
    """Split Arrow strings by compiled code where it is loaded; None where it is not, or there are many values."""
    import pyarrow as pa

    kernel = kernel_for(8 * len(column))
    if kernel is None or not len(column):
        return None
    array = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
    _, offsets, text = array.buffers()
    width = np.int64 if pa.types.is_large_string(array.type) else np.int32
    ends = np.frombuffer(offsets, width)[array.offset : array.offset + len(array) + 1].astype(
        np.int64, copy=False
    )
    letters = np.zeros(1, dtype=np.uint8) if text is None or not text.size else np.frombuffer(text, np.uint8)
    positions = np.empty(len(array), dtype=np.int8)
    first_row = np.empty(FEW_STRINGS, dtype=np.int64)
    held = kernel.split_text(ends, letters, np.full(512, -1), first_row, positions)
    if held < 0:
        return None
    if array.null_count:
        positions[array.is_null().to_numpy(zero_copy_only=False)] = MISSING
    values = [bytes(letters[ends[i] : ends[i + 1]]).decode() for i in first_row[:held]]
    return Coded(positions, values)


def _filled(indices: Any) -> Codes:
    """Return Arrow integers as an array with -1 for nulls."""
    import pyarrow as pa

    if pa.types.is_unsigned_integer(indices.type):
        indices = indices.cast(pa.int64())
    filled: Codes = (indices.fill_null(MISSING) if indices.null_count else indices).to_numpy()
    return filled
