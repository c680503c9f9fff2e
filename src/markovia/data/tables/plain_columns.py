"""Columns of data as arrays: one reader for matrices, frames and mappings, codes for discrete columns."""

import math
from collections.abc import Hashable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markovia.data.tables.distant_rows import is_far
from markovia.data.tables.in_memory import eager_columns
from markovia.errors import InvalidArgument
from markovia.factors.tables.evidence import is_missing
from markovia.runtime import checks
from markovia.runtime.array_types import Array

Codes: TypeAlias = NDArray[np.intp]
Data: TypeAlias = ArrayLike | Mapping[str, ArrayLike]
"""A matrix of rows, a frame of any library, a mapping from names to columns, data files by a path, or one column."""


def read_columns(data: Data, prefix: str) -> tuple[tuple[str, ...], list[NDArray[Any]]]:
    """Split any two-dimensional data (or one column) into names and columns without missing values."""
    named: Any = data
    if isinstance(data, Mapping):
        labels: list[object] = list(data)
        raw = [data[label] for label in data]
    elif _is_elsewhere(data) or hasattr(data, "column_names"):
        brought = eager_columns(data)
        labels = list(brought.names)
        raw = [brought.get(name) for name in brought.names]
    elif hasattr(data, "columns"):
        labels = list(named.columns)
        raw = [named[label] for label in labels] if len(set(labels)) == len(labels) else []
    else:
        array = _as_array(data, prefix)
        if array.ndim == 1:
            labels, raw = [getattr(data, "name", None) or prefix], [array]
        elif array.ndim == 2:
            labels, raw = [f"{prefix}{i}" for i in range(array.shape[1])], list(array.T)
        else:
            raise InvalidArgument(f"data must have one or two dimensions, not {array.ndim}")
    names = tuple(str(label) for label in labels)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidArgument(f"two columns are named {twice!r}; rename one of them")
    columns = [_as_array(column, name) for name, column in zip(names, raw, strict=True)]
    if not columns:
        raise InvalidArgument("the data have no columns")
    for name, column in zip(names, columns, strict=True):
        if column.ndim != 1:
            raise InvalidArgument(
                f"column {name!r} has {column.ndim} dimensions; a column is a list of values"
            )
        if not len(column):
            raise InvalidArgument(f"column {name!r} has no rows")
        same_length(len(columns[0]), len(column), names[0], name)
        _refuse_missing(name, column)
    return names, columns


def _is_elsewhere(data: object) -> bool:
    """Say whether the rows are not in memory; a list of words is a column, not files."""
    return isinstance(data, str | Path) or (not isinstance(data, list | tuple) and is_far(data))


def numeric_matrix(data: Data, prefix: str) -> tuple[tuple[str, ...], Array]:
    """Read data whose columns are all numbers, as names and one float matrix with a column each."""
    names, columns = read_columns(data, prefix)
    for name, column in zip(names, columns, strict=True):
        if not is_numeric(column):
            raise InvalidArgument(
                f"column {name!r} does not hold numbers; encode it, or use mutual_information"
            )
    return names, np.column_stack([column.astype(np.float64) for column in columns])


def is_numeric(column: NDArray[Any]) -> bool:
    """Tell whether a column holds real numbers or booleans (also as Python objects)."""
    if column.dtype.kind == "O":
        return all(isinstance(value, int | float | np.number | np.bool_) for value in column)
    return column.dtype.kind in "biuf"


def discrete_codes(data: Data, prefix: str) -> Codes:
    """Replace each row of discrete data by the number of its distinct value; several columns count as one."""
    names, columns = read_columns(data, prefix)
    return reduce(paired_codes, (_column_codes(n, c) for n, c in zip(names, columns, strict=True)))


def is_continuous(column: NDArray[Any], whole: bool | None = None) -> bool:
    """Tell whether a column holds numbers with fractions; with `whole` whole numbers do as well, without it (False) none."""
    kind = column.dtype.kind
    if whole is not None:
        return whole and kind != "b" and is_numeric(column)
    reals = [v for v in column if isinstance(v, float | np.floating)] if kind == "O" else column
    return kind == "c" or (kind in "fO" and bool((np.asarray(reals, dtype=np.float64) % 1 != 0).any()))


def _column_codes(name: str, column: NDArray[Any]) -> Codes:
    kind = column.dtype.kind
    if is_continuous(column):
        raise InvalidArgument(
            f"column {name!r} is continuous; discretise it (numpy.digitize, pandas.qcut) or use hsic"
        )
    if kind != "O":
        return np.unique(column, return_inverse=True)[1].reshape(-1)
    # Objects of several types have no common order, so np.unique cannot sort them.
    numbers: dict[Hashable, int] = {}
    try:
        return np.array([numbers.setdefault(value, len(numbers)) for value in column], dtype=np.intp)
    except TypeError:
        raise InvalidArgument(f"column {name!r} holds values that cannot be states (not hashable)") from None


def paired_codes(a: Codes, b: Codes) -> Codes:
    """Return one code for each pair of codes."""
    # Renumbering after each pair keeps codes below the number of rows, so the product cannot overflow.
    return np.unique(a * (b.max() + 1) + b, return_inverse=True)[1].reshape(-1)


def _as_array(values: Any, name: str) -> NDArray[Any]:
    if np.ma.is_masked(values):
        raise InvalidArgument(f"column {name!r} has masked values; drop or fill those rows first")
    try:
        return np.asarray(values)
    except ValueError:
        raise InvalidArgument(
            f"column {name!r} has rows of different lengths; give one value a row"
        ) from None


def _refuse_missing(name: str, column: NDArray[Any]) -> None:
    if column.dtype.kind == "O":
        missing = np.array(
            [is_missing(v) or (isinstance(v, float | np.floating) and not math.isfinite(v)) for v in column]
        )
    elif column.dtype.kind in "fcmM":
        missing = ~np.isfinite(column)
    else:
        return
    if missing.any():
        row = int(missing.argmax())
        raise InvalidArgument(
            f"column {name!r} has a missing or infinite value at row {row}; drop or fill such rows first"
        )


def same_length(expected: int, found: int, first: str, second: str) -> None:
    """Refuse two columns of different lengths."""
    if expected != found:
        raise InvalidArgument(
            f"{first!r} has {expected} rows and {second!r} has {found}; they must be the same"
        )


def need_rows(n_rows: int, needed: int, what: str) -> None:
    """Refuse data with too few rows for what is asked."""
    if n_rows < needed:
        raise InvalidArgument(f"{what} needs at least {needed} rows; the data have {n_rows}")


def numbers(values: ArrayLike, name: str) -> Array:
    """Return values as an array of finite numbers."""
    array = checks.numbers(values, f"{name} is an array of numbers")
    if not np.isfinite(array).all():
        raise InvalidArgument(f"{name} has a missing or infinite number")
    return array
