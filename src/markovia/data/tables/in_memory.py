"""Data in memory as tables of codes, with states given or read off the cells.

Columns are read side by side in threads; the libraries that do the work let go of the interpreter lock.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from markovia.data.tables.coded_cells import code_type
from markovia.data.tables.distant_rows import near_rows
from markovia.data.tables.frames import as_frame
from markovia.data.tables.row_sources import CodedTable, row_weights
from markovia.data.tables.state_codes import column_codes
from markovia.errors import InvalidArgument, MarkoviaError, UnknownVariable
from markovia.factors.tables.variable import State, Variable
from markovia.runtime.array_types import Codes
from markovia.runtime.threads import in_parallel, thread_count

MANY_ROWS = 20_000
"""From so many rows on, columns are read in threads."""


class Columns(NamedTuple):
    """Named columns of some library, fetched when they are needed."""

    names: Sequence[str]
    get: Callable[[str], Any]
    n_rows: int
    index: Any = None
    """Of rows that have one, as in pandas."""


def eager_columns(data: Any) -> Columns:
    """Return the columns of data of any accepted form, in memory; rows that are elsewhere are fetched, in their order."""
    data = near_rows(data)
    if isinstance(data, np.ndarray):
        return _array_columns(data)
    library = type(data).__module__.partition(".")[0]
    if library == "pyarrow" and hasattr(data, "column_names"):
        return _unique(list(data.column_names), data.column, data.num_rows)
    if library == "polars" and hasattr(data, "get_column"):
        return Columns(data.columns, data.get_column, data.height)
    frame = as_frame(data)
    labels = {str(label): label for label in frame.columns}
    names = [str(label) for label in frame.columns]
    return _unique(names, lambda name: frame[labels[name]], len(frame), frame.index)


def cheap_columns(data: Any) -> list[str]:
    """Return the names of the columns where they are known without any reading; files, lazy frames, coded rows: none."""
    if isinstance(data, Mapping):
        return [str(name) for name in data]
    if type(data).__name__ == "LazyFrame":
        return []
    for attribute in ("column_names", "columns"):
        names = getattr(data, attribute, None)
        if names is not None and not callable(names):
            return [str(name) for name in names]
    return list(getattr(getattr(data, "dtype", None), "names", None) or [])


def _array_columns(data: Any) -> Columns:
    if data.dtype.names is not None:
        if data.ndim != 1:
            raise InvalidArgument(f"a structured array of rows has one axis, not {data.ndim}")
        return Columns(list(data.dtype.names), lambda name: data[name], len(data))
    if data.ndim != 2:
        raise InvalidArgument(f"an array of rows has two axes, not {data.ndim}")
    names = [f"x{i}" for i in range(data.shape[1])]
    at = {name: i for i, name in enumerate(names)}
    return Columns(names, lambda name: data[:, at[name]], len(data))


def _unique(names: Sequence[str], get: Callable[[str], Any], n_rows: int, index: Any = None) -> Columns:
    if len(set(names)) < len(names):
        twice = next(n for i, n in enumerate(names) if n in names[:i])
        raise InvalidArgument(f"the rows have two columns named {twice!r}")
    return Columns(names, get, n_rows, index)


def coded_columns(
    columns: Columns,
    names: Iterable[str] | None,
    variables: Mapping[str, Variable],
    states: Mapping[str, int | Sequence[State]],
    weights: Any = None,
) -> CodedTable:
    """Return columns in memory as codes; see `markovia.data.tables.reading.read_data`."""
    wanted, weight_column = wanted_columns(columns.names, names, weights)
    if weight_column is not None:
        weights = columns.get(weight_column)
        weights = weights.to_numpy() if hasattr(weights, "to_numpy") else weights
    cells = [columns.get(name) for name in wanted]
    n_rows = columns.n_rows

    def read(k: int, _: None) -> tuple[Variable, Codes] | MarkoviaError:
        name = wanted[k]
        try:
            return column_codes(name, cells[k], variables.get(name), states.get(name))
        except MarkoviaError as error:  # the first column's error is raised, whichever thread is faster
            return error

    threads = thread_count() if n_rows >= MANY_ROWS else 1
    found: list[tuple[Variable, Codes]] = []
    for result in in_parallel(read, range(len(wanted)), lambda: None, threads):
        if isinstance(result, MarkoviaError):
            raise result
        found.append(result)
    codes = np.empty((len(found), n_rows), dtype=code_type(v for v, _ in found))

    def put(k: int, _: None) -> None:
        codes[k] = found[k][1]

    in_parallel(put, range(len(found)), lambda: None, threads)
    return CodedTable([v for v, _ in found], codes, row_weights(weights, n_rows))


def wanted_columns(
    names: Sequence[str], wanted: Iterable[str] | None, weights: Any
) -> tuple[list[str], str | None]:
    """Return the columns to read and the one that holds the weights, if it is named; the data must have them all."""
    weight_column = weights if isinstance(weights, str) else None
    if weight_column is not None and weight_column not in names:
        raise UnknownVariable(weight_column, names, "the data")
    chosen = [n for n in names if n != weight_column] if wanted is None else list(wanted)
    known = set(names)
    for name in chosen:
        if name not in known:
            raise UnknownVariable(name, names, "the data")
    return chosen, weight_column
