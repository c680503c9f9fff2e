"""What learning is given: rows over discrete variables, wherever they live.

Everything that learns from discrete data asks for two things: the variables with their states, and tables of counts
(`RowSource.counts`). A `CodedTable` has its rows in memory as small integers; other sources leave the rows where they
are and only bring counts back. `markovia.data.tables.reading` opens whatever a user passes.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.device_counting import DeviceCodes
from markovia.data.tables.table_counts import count_codes, distinct_rows
from markovia.errors import InvalidArgument, TooLarge, UnknownVariable
from markovia.factors.tables.variable import Variable
from markovia.runtime.array_types import Array, Codes
from markovia.runtime.checks import numbers
from markovia.runtime.devices import Device, on_device, usable_gpu

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

        A row that misses a cell of a scope is not counted in its table. One pass over the rows for all scopes where the
        rows are in memory or in files.
        """

    def distinct(self, scope: Sequence[str]) -> tuple[NDArray[np.int64], Array]:
        """Return the configurations of a scope that occur, one row of codes each, in order, and their weights."""

    def in_memory(self) -> "CodedTable":
        """Return the rows in memory; sources that are large give distinct rows with weights."""

    def without_gaps(self) -> "RowSource":
        """Return only the rows that miss no cell."""


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
        found = np.zeros(len(self.codes), dtype=np.int64)
        if self.codes.size:
            for k in np.flatnonzero(self.codes.min(axis=1) < 0):
                found[k] = np.count_nonzero(self.codes[k] < 0)
        return found

    def missing(self) -> dict[str, int]:
        """Return how many cells each column misses."""
        return dict(zip(self.variables, self._gaps.tolist(), strict=True))

    @property
    def complete(self) -> bool:
        """Whether no cell is missing."""
        return not self._gaps.any()

    def column(self, name: str) -> Codes:
        """Return a variable's cells as codes."""
        row: Codes = self.codes[self._place(name)]
        return row

    def rows(self, names: Sequence[str]) -> Codes:
        """Return the codes of some variables, one row a data row (a copy)."""
        return np.ascontiguousarray(self.codes[[self._place(n) for n in names]].T)

    def in_memory(self) -> "CodedTable":
        """Return itself."""
        return self

    def without_gaps(self) -> "CodedTable":
        """Return only the rows that miss no cell."""
        if self.complete:
            return self
        whole = (self.codes >= 0).all(axis=0)
        weights = None if self.weights is None else self.weights[whole]
        return CodedTable(tuple(self.variables.values()), np.ascontiguousarray(self.codes[:, whole]), weights)

    def counts(self, scopes: Sequence[Sequence[str]], device: Device = "cpu") -> list[Array]:
        """Return a table of counts for each scope; see `RowSource.counts`.

        On a GPU the rows stay there for the next call; rows with weights are counted by the processor.
        """
        columns = [[self._place(n) for n in scope] for scope in scopes]
        own = list(self.variables.values())
        for scope in columns:
            count_shape([own[c] for c in scope])
        if device == "gpu" and self.weights is None and usable_gpu():
            found: list[Array] | None = on_device(partial(self._there.counts, columns), lambda: None)
            if found is not None:
                return found
        # the compiled code knows 8 and 32 bits
        codes = self.codes if self.codes.dtype in (np.int8, np.int32) else self.codes.astype(np.int32)
        codes = np.ascontiguousarray(codes)
        return count_codes(codes, self.weights, [len(v) for v in own], (self._gaps > 0).tolist(), columns)

    @cached_property
    def _there(self) -> DeviceCodes:
        return DeviceCodes(self.codes, [len(v) for v in self.variables.values()])

    def distinct(self, scope: Sequence[str]) -> tuple[NDArray[np.int64], Array]:
        """Return the configurations of a scope that occur, and their weights; see `RowSource.distinct`."""
        places = [self._place(n) for n in scope]
        return distinct_rows(self.codes[places], self.weights, [len(self.variables[n]) for n in scope])

    def _place(self, name: str) -> int:
        try:
            return self._at[name]
        except KeyError:
            raise UnknownVariable(name, self.variables, "the data") from None


def count_shape(variables: Sequence[Variable]) -> tuple[int, ...]:
    """Return the shape of a dense table of counts, or raise `TooLarge` before anything is allocated."""
    shape = tuple(len(v) for v in variables)
    if len(shape) > 64 or prod(shape) > MAX_CELLS:
        raise TooLarge(
            f"a table of counts over {', '.join(repr(v.name) for v in variables[:6])}"
            f"{', ...' if len(variables) > 6 else ''} would have {prod(shape):,} cells"
        )
    return shape


def row_weights(weights: Any, n_rows: int) -> Array | None:
    """Return one weight a row as numbers, or say what is wrong with them."""
    if weights is None:
        return None
    found = np.ascontiguousarray(numbers(weights, "weights are numbers, one a row"))
    if found.shape != (n_rows,):
        raise InvalidArgument(f"there are {n_rows} rows, but the weights have shape {found.shape}")
    if not np.isfinite(found).all() or (found < 0).any():
        raise InvalidArgument("a row's weight is a number that is finite and not negative")
    return found
