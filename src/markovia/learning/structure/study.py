"""The data of structure learning: discrete columns as a source of counts, continuous ones as numbers.

Discrete data stay where they are (`markovia.learning.data.RowSource`): a Parquet file or a Spark table is counted there.
Continuous columns are read into memory as one matrix.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument, UnknownVariable
from markovia.factors.factor import Array
from markovia.factors.variable import State, Variable
from markovia.learning.data import CodedTable, RowSource, read_data, row_weights
from markovia.learning.structure.far_rows import fetched, is_far, may_have_fractions

DISCRETE, CONTINUOUS = "discrete", "continuous"


class StructureData:
    """Rows over named columns, each discrete or continuous.

    Attributes
    ----------
    names
        The columns in their order; algorithms number them 0, 1, ... in it.
    kinds
        "discrete" or "continuous" for each.
    table
        The discrete columns, or None if there are none.
    matrix
        The continuous columns in their order, one row a data row (NaN is missing), or None.
    weights
        One number a row for continuous and mixed data, or None. Discrete data carry theirs in `table`.
    """

    def __init__(
        self,
        names: Sequence[str],
        kinds: Sequence[str],
        table: RowSource | None,
        matrix: Array | None,
        weights: Array | None = None,
    ) -> None:
        self.names = tuple(names)
        self.kinds = tuple(kinds)
        self.table = table
        self.matrix = matrix
        self.weights = weights

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        if self.table is not None:
            return self.table.n_rows
        assert self.matrix is not None
        return len(self.matrix)

    @property
    def total(self) -> float:
        """The sum of the rows' weights; the number of rows where they have none."""
        if self.table is not None and self.matrix is None:
            return self.table.total
        return float(self.n_rows) if self.weights is None else float(self.weights.sum())

    @property
    def discrete(self) -> bool:
        """Whether every column is discrete."""
        return self.matrix is None

    @property
    def continuous(self) -> bool:
        """Whether every column is continuous."""
        return self.table is None

    @cached_property
    def columns(self) -> NDArray[np.int64]:
        """For each column its place among the columns of its own kind."""
        seen = {DISCRETE: 0, CONTINUOUS: 0}
        places = np.empty(len(self.names), dtype=np.int64)
        for k, kind in enumerate(self.kinds):
            places[k] = seen[kind]
            seen[kind] += 1
        return places

    @cached_property
    def cards(self) -> NDArray[np.int64]:
        """The number of states of each column; 0 for continuous ones."""
        known: Mapping[str, Variable] = {} if self.table is None else self.table.variables
        return np.array([len(known[n]) if n in known else 0 for n in self.names], dtype=np.int64)

    def variable(self, number: int) -> Variable:
        """Return a discrete column's variable."""
        assert self.table is not None
        return self.table.variables[self.names[number]]

    def missing(self) -> dict[str, int]:
        """Return how many cells each column misses."""
        found = dict.fromkeys(self.names, 0)
        if self.table is not None:
            found.update(self.table.missing())
        if self.matrix is not None:
            gaps = np.isnan(self.matrix).sum(axis=0)
            own = [n for n, kind in zip(self.names, self.kinds, strict=True) if kind == CONTINUOUS]
            found.update(zip(own, gaps.tolist(), strict=True))
        return found

    def without_gaps(self) -> "StructureData":
        """Return only the rows that miss no cell."""
        if not any(self.missing().values()):
            return self
        if self.matrix is None:
            assert self.table is not None
            return StructureData(self.names, self.kinds, self.table.without_gaps(), None)
        whole = ~np.isnan(self.matrix).any(axis=1)
        if self.table is not None:
            whole &= (self.table.in_memory().codes >= 0).all(axis=0)
        return self.rows(np.flatnonzero(whole))

    def rows(self, chosen: NDArray[np.int64]) -> "StructureData":
        """Return some rows, with repetitions where a number is repeated; the rows are brought into memory."""
        table = None
        if self.table is not None:
            own = self.table.in_memory()
            weights = None if own.weights is None else own.weights[chosen]
            codes = np.ascontiguousarray(own.codes[:, chosen])
            table = CodedTable(tuple(own.variables.values()), codes, weights)
        matrix = None if self.matrix is None else self.matrix[chosen]
        return StructureData(
            self.names, self.kinds, table, matrix, None if self.weights is None else self.weights[chosen]
        )

    def resampled(self, rng: np.random.Generator) -> "StructureData":
        """Return a bootstrap sample: as many rows, drawn with replacement.

        Weighted rows are drawn by their weights, so that groups of equal rows stand for the rows they count.
        """
        if self.matrix is None:
            assert self.table is not None
            own = self.table.in_memory()
            n = round(own.total)
            share = None if own.weights is None else own.weights / own.weights.sum()
            if share is None:
                return self.rows(rng.integers(0, n, n))
            drawn = rng.multinomial(n, share).astype(np.float64)
            return StructureData(
                self.names, self.kinds, CodedTable(tuple(own.variables.values()), own.codes, drawn), None
            )
        if self.weights is not None:
            n = round(self.total)
            picked = rng.choice(self.n_rows, n, p=self.weights / self.weights.sum())
            plain = StructureData(self.names, self.kinds, self.table, self.matrix)
            return plain.rows(picked)
        return self.rows(rng.integers(0, self.n_rows, self.n_rows))

    def codes(self) -> CodedTable:
        """Return the discrete columns in memory."""
        assert self.table is not None
        return self.table.in_memory()

    def numbers(self, what: str) -> Array:
        """Return all columns as one matrix of numbers, one row a data row; an error unless all are continuous."""
        if self.table is not None:
            first = next(n for n, kind in zip(self.names, self.kinds, strict=True) if kind == DISCRETE)
            raise InvalidArgument(
                f"{what} needs numbers, and {first!r} is discrete; if its cells are measurements, "
                f"name it in continuous="
            )
        assert self.matrix is not None
        return self.matrix


def read_study(
    data: Any,
    *,
    names: Sequence[str] | None = None,
    continuous: bool | Sequence[str] | None = None,
    states: Mapping[str, int | Sequence[State]] | None = None,
    weights: Any = None,
) -> StructureData:
    """Open data for structure learning.

    Parameters
    ----------
    data
        What `markovia.learning.data.read_data` takes; or `StructureData`.
    names
        The columns that are wanted; all by default.
    continuous
        The columns that are measurements; True for all, False for none. By default those whose cells are numbers with
        fractions. Whole numbers, text, booleans and categories are discrete.
    states
        States of discrete columns, as for `mk.counts`.
    weights
        The name of a column; or one number a row.
    """
    if isinstance(data, StructureData):
        return data
    if isinstance(data, CodedTable) or (hasattr(data, "in_memory") and hasattr(data, "without_gaps")):
        source = read_data(data, names, weights=weights)
        return StructureData(tuple(source.variables), [DISCRETE] * len(source.variables), source, None)
    far = is_far(data)
    if far and (continuous is False or (continuous is None and not may_have_fractions(data))):
        source = read_data(data, names, states=states, weights=weights)
        order = list(names) if names is not None else list(source.variables)
        return StructureData(order, [DISCRETE] * len(order), source, None)
    from markovia.learning.reading import Columns, coded_columns, eager_columns, wanted_columns

    columns = eager_columns(fetched(data) if far else data)
    order, weight_column = wanted_columns(columns.names, names, weights)
    if weight_column is not None:
        weights = np.asarray(columns.get(weight_column), dtype=np.float64)
    if isinstance(continuous, str):
        continuous = [continuous]
    if not isinstance(continuous, bool) and continuous is not None:
        for name in continuous:
            if name not in order:
                raise UnknownVariable(name, order, "the data")
    kinds = [_kind(columns.get(n), n, continuous, states) for n in order]
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
    return StructureData(order, kinds, table, matrix, given if measured else None)


def _kind(
    column: Any,
    name: str,
    continuous: bool | Sequence[str] | None,
    states: Mapping[str, int | Sequence[State]] | None,
) -> str:
    if states is not None and name in states:
        return DISCRETE
    if isinstance(continuous, bool):
        return CONTINUOUS if continuous else DISCRETE
    if continuous is not None:
        return CONTINUOUS if name in continuous else DISCRETE
    cells = np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
    if cells.dtype.kind != "f":
        return DISCRETE
    known = cells[~np.isnan(cells)]
    return CONTINUOUS if (known != np.floor(known)).any() or not np.isfinite(known).all() else DISCRETE


def _numbers(column: Any, name: str) -> Array:
    cells = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
    try:
        found = np.asarray(cells, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidArgument(f"the column {name!r} has cells that are not numbers") from None
    if np.isinf(found).any():
        raise InvalidArgument(f"the column {name!r} has an infinite cell")
    return found
