"""What learning is given: rows over discrete variables, wherever they live.

Everything that learns from discrete data asks for two things: the variables with their states, and tables of counts
(`RowSource.counts`). A `CodedTable` has its rows in memory as small integers; other sources leave the rows where they
are and only bring counts back. `read_data` opens whatever a user passes.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument, TooLarge, UnknownVariable
from markovia.factors.factor import Array
from markovia.factors.variable import State, Variable

Codes = NDArray[np.signedinteger[Any]]
MISSING = -1
MAX_CELLS = 2**28
"""The largest dense table of counts."""


class RowSource(Protocol):
    """Rows over discrete variables: in memory, in a file, in a data base or on a cluster."""

    @property
    def variables(self) -> Mapping[str, Variable]:
        """The columns by name, with their states."""

    @property
    def n_rows(self) -> int:
        """The number of rows."""

    @property
    def total(self) -> float:
        """The sum of the rows' weights; the number of rows where they have none."""

    def missing(self) -> Mapping[str, int]:
        """Return how many cells each column misses."""

    def counts(self, scopes: Sequence[Sequence[str]]) -> list[Array]:
        """Return for each scope a table with one axis a name: the weight of the rows in each configuration.

        A row that misses a cell of a scope is not counted in its table. One pass over the rows for all scopes.
        """

    def in_memory(self) -> "CodedTable":
        """Return the rows in memory; sources that are large give distinct rows with weights."""


class CodedTable:
    """Rows in memory as state codes, -1 for missing cells.

    Parameters
    ----------
    variables
        The columns in order, with their states.
    codes
        One row a variable, one column a data row (so that a variable's cells lie side by side).
    weights
        One non-negative number a data row, or None.
    """

    def __init__(self, variables: Sequence[Variable], codes: Codes, weights: Array | None = None) -> None:
        self.variables: dict[str, Variable] = {v.name: v for v in variables}
        self.codes = codes
        self.weights = weights
        self._at = {v.name: i for i, v in enumerate(variables)}

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.codes.shape[1])

    @cached_property
    def total(self) -> float:
        """The sum of the rows' weights; the number of rows where they have none."""
        return float(self.n_rows) if self.weights is None else float(self.weights.sum())

    @cached_property
    def _gaps(self) -> NDArray[np.int64]:
        return np.count_nonzero(self.codes < 0, axis=1) if self.codes.size else np.zeros(len(self.codes), int)

    def missing(self) -> dict[str, int]:
        """Return how many cells each column misses."""
        return dict(zip(self.variables, self._gaps.tolist(), strict=True))

    @property
    def complete(self) -> bool:
        """Whether no cell is missing."""
        return not self._gaps.any()

    def column(self, name: str) -> Codes:
        """Return a variable's cells as codes."""
        try:
            row: Codes = self.codes[self._at[name]]
        except KeyError:
            raise UnknownVariable(name, self.variables, "the data") from None
        return row

    def rows(self, names: Sequence[str]) -> Codes:
        """Return the codes of some variables, one row a data row (a copy)."""
        return np.ascontiguousarray(self.codes[[self._at[n] for n in names]].T)

    def in_memory(self) -> "CodedTable":
        """Return itself."""
        return self

    def without_gaps(self) -> "CodedTable":
        """Return only the rows that miss no cell."""
        whole = (self.codes >= 0).all(axis=0)
        weights = None if self.weights is None else self.weights[whole]
        return CodedTable(tuple(self.variables.values()), np.ascontiguousarray(self.codes[:, whole]), weights)

    def counts(self, scopes: Sequence[Sequence[str]]) -> list[Array]:
        """Return a table of counts for each scope; see `RowSource.counts`."""
        from markovia.kernels.counting import count_tables, weigh_tables

        shapes = [count_shape([self.variables[n] for n in scope]) for scope in scopes]
        sizes = [prod(shape) for shape in shapes]
        starts = np.cumsum([0, *sizes]).astype(np.int64)
        scope_start = np.cumsum([0, *map(len, scopes)]).astype(np.int64)
        columns = np.array([self._at[n] for scope in scopes for n in scope], dtype=np.int64)
        strides = np.array(
            [prod(shape[k + 1 :]) for shape in shapes for k in range(len(shape))], dtype=np.int64
        )
        gaps = np.array([any(self._gaps[self._at[n]] for n in scope) for scope in scopes], dtype=np.bool_)
        layout = (scope_start, columns, strides)

        def part(first: int, last: int) -> Array:
            out = np.zeros(starts[-1])
            if self.weights is None:
                count_tables(self.codes, first, last, *layout, gaps, starts[:-1], out)
            else:
                weigh_tables(self.codes, self.weights, first, last, *layout, starts[:-1], out)
            return out

        flat = part(0, self.n_rows)
        return [
            flat[low:high].reshape(shape)
            for low, high, shape in zip(starts[:-1], starts[1:], shapes, strict=True)
        ]


def count_shape(variables: Sequence[Variable]) -> tuple[int, ...]:
    """Return the shape of a dense table of counts, or raise `TooLarge` before anything is allocated."""
    shape = tuple(len(v) for v in variables)
    if len(shape) > 64 or prod(shape) > MAX_CELLS:
        raise TooLarge(
            f"a table of counts over {', '.join(repr(v.name) for v in variables[:6])}"
            f"{', ...' if len(variables) > 6 else ''} would have {prod(shape):,} cells"
        )
    return shape


def read_data(
    data: Any,
    names: Iterable[str] | None = None,
    *,
    variables: Mapping[str, Variable] | None = None,
    states: Mapping[str, int | Sequence[State]] | None = None,
    weights: Any = None,
) -> RowSource:
    """Open data of any accepted form.

    Parameters
    ----------
    data
        A `RowSource`, or a DataFrame, a mapping of columns, a list of mappings.
    names
        The columns that are wanted; all by default. Others are not looked at.
    variables
        Variables whose states are known; a cell that is none of them is an error.
    states
        States of other columns; those of columns in neither are read off the data: categories in their order, everything
        else sorted.
    weights
        The name of a column, or one number a row.

    Raises
    ------
    UnknownVariable
        For a wanted column that the data lack.
    UnknownState
        For a cell that is no state of its column.
    """
    if isinstance(data, CodedTable) or hasattr(data, "in_memory"):
        source: RowSource = data
        return source
    from markovia.learning.frames import as_frame
    from markovia.learning.reading import coded_frame

    return coded_frame(as_frame(data), names, dict(variables or {}), dict(states or {}), weights)


def row_weights(weights: Any, n_rows: int) -> Array | None:
    """Return one weight a row as numbers, or say what is wrong with them."""
    if weights is None:
        return None
    try:
        found = np.ascontiguousarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument("weights are numbers, one a row") from None
    if found.shape != (n_rows,):
        raise InvalidArgument(f"there are {n_rows} rows, but the weights have shape {found.shape}")
    if not np.isfinite(found).all() or (found < 0).any():
        raise InvalidArgument("a row's weight is a number that is finite and not negative")
    return found
