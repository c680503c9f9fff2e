"""Reading the data of structure learning: which columns are discrete and which continuous, and what is fetched.

Discrete rows in files, data bases and on clusters are fetched once as small codes where they fit (`HELD_BYTES`), since a
search counts them many times; larger ones stay where they are and are counted there. Continuous columns are read into memory
as one matrix.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.distant_rows import far_rows, is_far
from markovia.data.tables.in_memory import Columns, coded_columns, eager_columns, wanted_columns
from markovia.data.tables.mixed_table import CONTINUOUS, DISCRETE, MixedTable
from markovia.data.tables.reading import read_data
from markovia.data.tables.row_sources import CodedTable, row_weights
from markovia.errors import InvalidArgument, UnknownVariable
from markovia.factors.tables.variable import State
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Flag, Kind, check, numbers

__all__ = ["CONTINUOUS", "DISCRETE", "HELD_BYTES", "MixedTable", "column_kind", "read_mixed"]

TEXTS = (
    "str",
    "large_string",
    "dictionary<values=string",
    "dictionary<values=large_string",
    "bool",
    "categorical",
)
"""How libraries begin the names of types that hold no numbers."""
HELD_BYTES = 2**30
"""Discrete rows in files, data bases and on clusters that take at most this as codes are fetched once."""


def read_mixed(
    data: Any,
    *,
    names: Sequence[str] | None = None,
    continuous: bool | Sequence[str] | None = None,
    states: Mapping[str, int | Sequence[State]] | None = None,
    weights: Any = None,
    in_memory: bool | None = None,
) -> MixedTable:
    """Open data for structure learning.

    Parameters
    ----------
    data
        What `markovia.data.tables.reading.read_data` takes; or `MixedTable`.
    names
        The columns that are wanted, in the order in which variables are numbered; all by default.
    continuous
        The columns that are measurements; True for all, False for none. By default those whose cells are numbers with
        fractions. Whole numbers, text, booleans and categories are discrete.
    states
        States of discrete columns, as for `mk.counts`.
    weights
        The name of a column; or one number a row.
    in_memory
        For discrete rows in files, data bases, lazy and distributed frames. False counts them where they are, again for each
        batch of counts; True fetches them once as codes, equal rows only once. None fetches those that take at most
        `HELD_BYTES`.
    """
    if isinstance(data, MixedTable):
        if weights is not None or states is not None:
            raise InvalidArgument("these data were read before; give states= and weights= when they are read")
        return data if names is None else data.only(_asked(names))
    wanted = None if names is None else _asked(names)
    check("in_memory", in_memory, Flag(none=True))
    chosen = _measured(continuous)
    if states is not None:
        _check_states(states, chosen)
    if isinstance(data, CodedTable) or (hasattr(data, "in_memory") and hasattr(data, "without_gaps")):
        source = read_data(data, wanted, weights=weights)
        order = list(source.variables)
        opened = MixedTable(order, [DISCRETE] * len(order), source, None)
        return _checked(opened if wanted is None else opened.only(wanted))
    if is_far(data):
        opened_far = _read_far(data, wanted, chosen, states, weights, in_memory)
        if isinstance(opened_far, MixedTable):
            return _checked(opened_far)
        data = opened_far
    return _checked(_read_near(data, wanted, chosen, states, weights))


def _read_far(
    data: Any,
    wanted: list[str] | None,
    continuous: bool | list[str] | None,
    states: Mapping[str, int | Sequence[State]] | None,
    weights: Any,
    in_memory: bool | None,
) -> Any:
    """Return discrete rows that are elsewhere as a table; rows with measurements as a frame in memory."""
    if weights is not None and not isinstance(weights, str):
        raise InvalidArgument(
            "the weights of rows in files, data bases and lazy frames are a column, given by name"
        )
    if continuous is not False:
        far = far_rows(data)
        order, weight_column = wanted_columns(far.names, wanted, weights)
        open_ones = [n for n in order if n not in (states or {})]
        measured = continuous if isinstance(continuous, list) else open_ones
        if far.with_fractions(open_ones) if continuous is None else measured:
            return far.fetched([*order, *([weight_column] if weight_column else [])])
    source = read_data(data, wanted, states=states, weights=weights)
    order = list(source.variables)
    return _held(MixedTable(order, [DISCRETE] * len(order), source, None), in_memory, weights is None)


def _held(mixed: MixedTable, in_memory: bool | None, unweighted: bool) -> MixedTable:
    """Fetch discrete rows that are elsewhere, where that is asked for or they are small; see `read_mixed`."""
    source = mixed.table
    assert source is not None
    if in_memory is False:
        return mixed
    size = source.n_rows * len(mixed.names) * (1 if mixed.cards.max(initial=0) <= 127 else 4)
    few = float(np.prod(mixed.cards + 1.0)) * len(mixed.names) <= HELD_BYTES / 64
    if in_memory is None and size > HELD_BYTES and not few:
        return mixed
    groups = source.in_memory()
    held = MixedTable(mixed.names, mixed.kinds, groups, None, repeats=unweighted)
    if unweighted and size <= HELD_BYTES and groups.n_rows * 2 > source.n_rows:
        return held.spread()
    return held


def _read_near(
    data: Any,
    wanted: list[str] | None,
    continuous: bool | list[str] | None,
    states: Mapping[str, int | Sequence[State]] | None,
    weights: Any,
) -> MixedTable:
    columns = eager_columns(data)
    order, weight_column = wanted_columns(columns.names, wanted, weights)
    if weight_column is not None:
        cells = columns.get(weight_column)
        weights = cells.to_numpy() if hasattr(cells, "to_numpy") else np.asarray(cells)
    for name in [*(continuous if isinstance(continuous, list) else ()), *(states or ())]:
        if name not in columns.names:
            raise UnknownVariable(name, columns.names, "the data")
    kinds = [column_kind(columns.get(n), n, continuous, states) for n in order]
    measured = [n for n, kind in zip(order, kinds, strict=True) if kind == CONTINUOUS]
    counted = [n for n, kind in zip(order, kinds, strict=True) if kind == DISCRETE]
    given = row_weights(weights, columns.n_rows)
    table = None
    if counted:
        asked = Columns(counted, columns.get, columns.n_rows)
        table = coded_columns(asked, counted, {}, dict(states or {}), given)
    matrix = None
    if measured:
        matrix = np.column_stack([_numbers(columns.get(n), n) for n in measured])
    return MixedTable(order, kinds, table, matrix, given if measured else None)


def _checked(mixed: MixedTable) -> MixedTable:
    if not mixed.names:
        raise InvalidArgument("the data have no columns")
    if not mixed.n_rows:
        raise InvalidArgument("the data have no rows")
    if not mixed.total > 0:
        raise InvalidArgument("the weights of all rows are zero")
    return mixed


def _asked(names: Any) -> list[str]:
    if isinstance(names, str):
        raise InvalidArgument(f"names= is a list of columns, not {names!r}; write [{names!r}]")
    listed = list(names)
    twice = next((n for i, n in enumerate(listed) if n in listed[:i]), None)
    if twice is not None:
        raise InvalidArgument(f"names= has {twice!r} twice")
    return listed


def _measured(continuous: Any) -> bool | list[str] | None:
    if continuous is None or isinstance(continuous, bool):
        return continuous
    return [continuous] if isinstance(continuous, str) else list(continuous)


def _check_states(states: Any, continuous: bool | list[str] | None) -> None:
    check("states", states, Kind((Mapping,), "a mapping from names to states"))
    both = next((n for n in states if isinstance(continuous, list) and n in continuous), None)
    if both is not None:
        raise InvalidArgument(f"{both!r} is in states= and in continuous=; it is one or the other")


def column_kind(
    column: Any,
    name: str,
    continuous: bool | list[str] | None = None,
    states: Mapping[str, int | Sequence[State]] | None = None,
) -> str:
    """Say whether a column is discrete or continuous; see `read_mixed`."""
    if states is not None and name in states:
        return DISCRETE
    if isinstance(continuous, bool):
        return CONTINUOUS if continuous else DISCRETE
    if continuous is not None:
        return CONTINUOUS if name in continuous else DISCRETE
    said = getattr(column, "dtype", getattr(column, "type", None))  # Arrow calls it type
    if str(said).lower().startswith(TEXTS):
        return DISCRETE
    categories = getattr(said, "categories", None)
    few = column if categories is None else categories  # what all cells are, without writing out each
    cells = np.asarray(few.to_numpy() if hasattr(few, "to_numpy") else few)
    if cells.dtype.kind == "O" and _has_fractions(cells):
        return CONTINUOUS
    if cells.dtype.kind != "f":
        return DISCRETE
    known = cells[~np.isnan(cells)]
    return CONTINUOUS if (known != np.floor(known)).any() or not np.isfinite(known).all() else DISCRETE


def _has_fractions(cells: NDArray[Any]) -> bool:
    """Say whether cells that are Python objects are numbers, some of them not whole."""
    found = False
    for cell in cells:
        if cell is None or cell != cell:
            continue
        if isinstance(cell, str | bool) or not isinstance(cell, Real | Decimal):
            return False
        value = float(cell)
        found = found or not isfinite(value) or value != int(value)
    return found


def _numbers(column: Any, name: str) -> Array:
    cells = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
    found = numbers(cells, f"the column {name!r} has cells that are not numbers, so it is not continuous")
    if np.isinf(found).any():
        raise InvalidArgument(f"the column {name!r} has an infinite cell")
    return found
