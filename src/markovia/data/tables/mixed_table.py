"""Rows over columns that are discrete or continuous: what every structure-learning method reads.

Discrete columns are a source of counts (`markovia.data.tables.row_sources.RowSource`), in memory or elsewhere;
continuous ones are one matrix in memory. `reading_mixed.read_mixed` makes them.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.row_sources import CodedTable, RowSource
from markovia.data.tables.table_counts import distinct_rows
from markovia.errors import InvalidArgument, UnknownVariable
from markovia.factors.tables.variable import Variable
from markovia.runtime.array_types import Array

DISCRETE, CONTINUOUS = "discrete", "continuous"


class MixedTable:
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
    repeats
        Whether the weights of `table` only say how often a row occurs, equal rows being held once.
    """

    def __init__(
        self,
        names: Sequence[str],
        kinds: Sequence[str],
        table: RowSource | None,
        matrix: Array | None,
        weights: Array | None = None,
        repeats: bool = False,
    ) -> None:
        self.names = tuple(names)
        self.kinds = tuple(kinds)
        self.table = table
        self.matrix = matrix
        self.weights = weights
        self.repeats = repeats

    @property
    def n_rows(self) -> int:
        """The number of rows that are held; `total` counts repeated ones."""
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
        if self.table is not None and self.repeats:
            own = self.table.in_memory()
            weights = np.ones(own.n_rows) if own.weights is None else own.weights
            lost: Array = (own.codes < 0) @ weights
            found.update(zip(own.variables, lost.astype(int).tolist(), strict=True))
        elif self.table is not None:
            found.update(self.table.missing())
        if self.matrix is not None:
            gaps = np.isnan(self.matrix).sum(axis=0)
            measured = [n for n, kind in zip(self.names, self.kinds, strict=True) if kind == CONTINUOUS]
            found.update(zip(measured, gaps.tolist(), strict=True))
        return found

    def without_gaps(self) -> "MixedTable":
        """Return only the rows that miss no cell."""
        if not any(self.missing().values()):
            return self
        if self.matrix is None:
            assert self.table is not None
            return MixedTable(self.names, self.kinds, self.table.without_gaps(), None, repeats=self.repeats)
        whole = ~np.isnan(self.matrix).any(axis=1)
        if self.table is not None:
            whole &= (self.table.in_memory().codes >= 0).all(axis=0)
        return self.rows(np.flatnonzero(whole))

    def only(self, names: Sequence[str]) -> "MixedTable":
        """Return some columns, in the order of their names."""
        number = {n: i for i, n in enumerate(self.names)}
        for name in names:
            if name not in number:
                raise UnknownVariable(name, self.names, "the data")
        if tuple(names) == self.names:
            return self
        kinds = [self.kinds[number[n]] for n in names]
        counted = [n for n, kind in zip(names, kinds, strict=True) if kind == DISCRETE]
        table = None
        if counted:
            assert self.table is not None
            own = self.table.in_memory()
            codes = np.ascontiguousarray(own.rows(counted).T)
            table = CodedTable([own.variables[n] for n in counted], codes, own.weights)
        places = [int(self.columns[number[n]]) for n, k in zip(names, kinds, strict=True) if k == CONTINUOUS]
        matrix = None if self.matrix is None or not places else self.matrix[:, places]
        weights = self.weights if places else None
        return MixedTable(names, kinds, table, matrix, weights, self.repeats)

    def rows(self, chosen: NDArray[np.int64]) -> "MixedTable":
        """Return some rows, with repetitions where a number is repeated; the rows are brought into memory."""
        table = None
        if self.table is not None:
            own = self.table.in_memory()
            weights = None if own.weights is None else own.weights[chosen]
            codes = np.ascontiguousarray(own.codes[:, chosen])
            table = CodedTable(tuple(own.variables.values()), codes, weights)
        matrix = None if self.matrix is None else self.matrix[chosen]
        weights = None if self.weights is None else self.weights[chosen]
        return MixedTable(self.names, self.kinds, table, matrix, weights)

    def grouped(self) -> "MixedTable":
        """Return the distinct rows of discrete data, weighted by how often they occur; other data as they are."""
        if self.matrix is not None or self.repeats:
            return self
        assert self.table is not None
        own = self.table.in_memory()
        variables = list(own.variables.values())
        kind = own.codes.dtype.type
        rows, totals = distinct_rows(own.codes, own.weights, [len(v) for v in variables], True, kind)
        table = CodedTable(variables, np.ascontiguousarray(rows.T), totals)
        return MixedTable(self.names, self.kinds, table, None, repeats=own.weights is None)

    def spread(self) -> "MixedTable":
        """Return one row for each that was counted, where equal rows are held once with how often they occur."""
        if not self.repeats:
            return self
        assert self.table is not None
        own = self.table.in_memory()
        assert own.weights is not None
        times = own.weights.astype(np.int64)
        codes = np.ascontiguousarray(np.repeat(own.codes, times, axis=1))
        return MixedTable(self.names, self.kinds, CodedTable(tuple(own.variables.values()), codes), None)

    def resampled(self, rng: np.random.Generator) -> "MixedTable":
        """Return a bootstrap sample: as many rows, drawn with replacement.

        Weighted rows are drawn by their weights, so that groups of equal rows stand for the rows they count; discrete ones
        keep their codes and get new weights.
        """
        if self.matrix is None:
            assert self.table is not None
            own = self.table.in_memory()
            if own.weights is None:
                return self.rows(rng.integers(0, own.n_rows, own.n_rows))
            drawn = rng.multinomial(round(own.total), own.weights / own.total).astype(np.float64)
            seen = drawn > 0
            codes = np.ascontiguousarray(own.codes[:, seen])
            table = CodedTable(tuple(own.variables.values()), codes, drawn[seen])
            return MixedTable(self.names, self.kinds, table, None, repeats=self.repeats)
        if self.weights is not None:
            n = round(self.total)
            picked = rng.choice(self.n_rows, n, p=self.weights / self.weights.sum())
            plain = MixedTable(self.names, self.kinds, self._unweighted(), self.matrix)
            return plain.rows(picked)
        return self.rows(rng.integers(0, self.n_rows, self.n_rows))

    def _unweighted(self) -> RowSource | None:
        if self.table is None:
            return None
        own = self.table.in_memory()
        return CodedTable(tuple(own.variables.values()), own.codes)

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

    def __repr__(self) -> str:
        kind = "discrete" if self.discrete else "continuous" if self.continuous else "mixed"
        return f"<MixedTable: {self.total:,.10g} rows over {len(self.names)} {kind} columns>"
