"""The doors for rows of any form: for counting, and one by one in their order.

`read_data` opens rows over discrete variables as a `RowSource`, which counts them where they live. `ordered_rows` brings
them into memory as codes, for whatever answers row by row. `markovia.data.tables.reading_mixed` is the door for
columns of which some are measurements.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from markovia.data.tables.distant_rows import far_rows, is_far, is_files
from markovia.data.tables.file_blocks import file_blocks, file_columns
from markovia.data.tables.file_sources import open_files, open_relation
from markovia.data.tables.frame_sources import open_lazy
from markovia.data.tables.in_memory import coded_columns, eager_columns
from markovia.data.tables.row_sources import CodedTable, RowSource
from markovia.errors import IgnoredColumnWarning, InvalidArgument, UnknownVariable, did_you_mean, warn_user
from markovia.factors.tables.variable import State, Variable
from markovia.runtime.array_types import Codes
from markovia.runtime.checks import Kind, check


class OrderedRows(NamedTuple):
    """Rows of evidence in their order."""

    names: list[str]
    codes: Codes
    """One row a data row, one column a name; -1 for missing cells."""
    index: Any
    """The index of rows that have one, as in pandas; else None."""


def read_data(
    data: Any,
    names: Iterable[str] | None = None,
    *,
    variables: Mapping[str, Variable] | None = None,
    states: Mapping[str, int | Sequence[State]] | None = None,
    weights: Any = None,
    scopes: Iterable[Sequence[str]] | None = None,
) -> RowSource:
    """Open data of any accepted form.

    Parameters
    ----------
    data
        A pandas, Polars, Dask or Spark frame, a PyArrow table, a DuckDB relation, a mapping of columns, a list of
        mappings, a structured array, a matrix (its columns are `x0, x1, ...`), or CSV and Parquet files: a path, a
        pattern with `*`, or a list of them. Or a `RowSource`.
    names
        The columns that are wanted; all by default. Others are not looked at.
    variables
        Variables whose states are known; a cell that is none of them is an error.
    states
        States of other columns; those of columns in neither are read off the data: categories in their order, both
        booleans, everything else sorted.
    weights
        The name of a column; or, for data in memory, one number a row.
    scopes
        Tables that will be asked for: rows that are not in memory are counted in the pass that finds the states.

    Raises
    ------
    UnknownVariable
        For a wanted column that the data lack.
    UnknownState
        For a cell that is no state of its column.
    """
    check("states", states, Kind((Mapping,), "a mapping from names to states", none=True))
    known, stated = dict(variables or {}), dict(states or {})
    wanted = None if names is None else list(names)
    if isinstance(data, CodedTable) or (hasattr(data, "in_memory") and hasattr(data, "without_gaps")):
        return _already_read(data, wanted, known, weights)
    if is_files(data):
        return open_files(data, wanted, known, stated, weights, scopes)
    if hasattr(data, "sql_query"):  # a DuckDB relation
        return open_relation(data, wanted, known, stated, weights, scopes)
    if is_far(data):
        return open_lazy(data, wanted, known, stated, weights, scopes)
    return coded_columns(eager_columns(data), wanted, known, stated, weights)


def ordered_rows(
    data: Any,
    variables: Mapping[str, Variable],
    *,
    leave_out: Collection[str] = (),
    others: Literal["note", "ignore"] = "note",
) -> OrderedRows:
    """Return rows of any accepted form as codes, in their order.

    Parameters
    ----------
    data
        What `read_data` takes. Rows that are not in memory are fetched; of files only the codes. `OrderedRows` are
        returned as they are.
    variables
        The variables that columns may be, by name.
    leave_out
        Columns that are not looked at.
    others
        Whether a column that is no variable is left out with a warning or in silence.

    Raises
    ------
    UnknownVariable
        If there are columns and none is a variable.
    UnknownState
        For a cell that is no state of its column's variable.
    """
    if isinstance(data, OrderedRows):
        return data
    if isinstance(data, CodedTable):
        names = known_columns(list(data.variables), variables, leave_out, others)
        return OrderedRows(names, _narrow(data.rows(names), variables, names), None)
    if is_files(data):
        return _from_files(data, variables, leave_out, others)
    columns = eager_columns(data)
    names = known_columns(columns.names, variables, leave_out, others)
    table = coded_columns(columns, names, variables, {})
    return OrderedRows(names, _narrow(table.codes.T, variables, names), columns.index)


def column_names(data: Any) -> list[str]:
    """Return the names of the columns of data of any accepted form; rows that are not in memory stay where they are."""
    if is_files(data):
        return file_columns(data)
    return list(far_rows(data).names if is_far(data) else eager_columns(data).names)


def _from_files(
    data: Any, variables: Mapping[str, Variable], leave_out: Collection[str], others: str
) -> OrderedRows:
    names = known_columns(file_columns(data), variables, leave_out, others)
    wanted = {n: variables[n] for n in names}
    if not names:
        return OrderedRows([], np.empty((eager_columns(data).n_rows, 0), dtype=np.int8), None)
    blocks = [np.column_stack([rows[n].cat.codes for n in names]) for rows, _ in file_blocks(data, wanted)]
    codes = np.concatenate(blocks) if blocks else np.empty((0, len(names)), dtype=np.int8)
    return OrderedRows(names, _narrow(codes, variables, names), None)


def known_columns(
    names: Iterable[str], variables: Mapping[str, Variable], leave_out: Collection[str], others: str
) -> list[str]:
    """Return the columns that are looked at."""
    wanted = [n for n in names if n not in leave_out]
    found = [n for n in wanted if n in variables]
    strange = [n for n in wanted if n not in variables]
    if others == "note" and strange:
        if not found:
            raise UnknownVariable(strange[0], variables)
        absent = [n for n in variables if n not in found]
        meant = next((said for n in strange if (said := did_you_mean(n, absent))), "")
        listed = ", ".join(map(repr, strange[:5])) + (
            f" and {len(strange) - 5} more" if len(strange) > 5 else ""
        )
        warn_user(f"not looked at, being no variables of the model: {listed}{meant}", IgnoredColumnWarning)
    return found


def _narrow(codes: Codes, variables: Mapping[str, Variable], names: Sequence[str]) -> Codes:
    """Return codes column by column, in as few bytes as they need."""
    most = max((len(variables[n]) for n in names), default=1)
    kind = np.int8 if most < 2**7 else np.int16 if most < 2**15 else np.int32
    return np.asfortranarray(codes, dtype=kind)


def _already_read(
    data: Any, wanted: Sequence[str] | None, known: Mapping[str, Variable], weights: Any
) -> RowSource:
    source = cast(RowSource, data)
    if weights is not None:
        raise InvalidArgument("these data were read before; give the weights when they are read")
    for name in wanted or ():
        if name not in source.variables:
            raise UnknownVariable(name, source.variables, "the data")
        if name in known and known[name].states != source.variables[name].states:
            raise InvalidArgument(
                f"the data were read with the states {list(source.variables[name].states)} for {name!r}, "
                f"which should be {list(known[name].states)}"
            )
    return source
