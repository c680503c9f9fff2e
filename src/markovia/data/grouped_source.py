"""Rows that stay where they are: a data base, files or a cluster groups and counts, and only the groups come back.

A first pass groups by each column alone; that gives the states, the missing cells and the cells that are no state. A
second one groups by the columns of the tables, several small tables in one group where their union is small.
Cost: two passes over the columns that are used. Memory here: the groups.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from math import prod
from typing import Any

import numpy as np

from markovia.data.row_sources import CodedTable, count_shape
from markovia.data.state_codes import MISSING, code_type, continuous, inferred
from markovia.data.table_counts import distinct_rows, merged
from markovia.errors import InvalidArgument, TooLarge, UnknownState, UnknownVariable
from markovia.factors.tables.variable import State, Variable
from markovia.runtime.array_types import Array, Ints

MERGED_CELLS = 4096
"""The largest union that several small tables are grouped in."""
MAX_VALUES = 2**20
"""A column with more different values than this is not taken as discrete."""
MAX_BYTES = 2**30
"""What the distinct rows may take when they are brought into memory."""

Group = tuple[Any, ...]
"""One value a column, then the number of rows and their weight."""


class GroupedSource:
    """Rows over discrete variables that are grouped and counted elsewhere; see `markovia.data.row_sources.RowSource`.

    A subclass knows where the rows are: `_groups` and `_weights_summary`, and `_fractions` for columns of floats. Cells
    that are NaN are null when it groups.
    """

    variables: dict[str, Variable]
    n_rows: int
    total: float
    _weight: str | None
    _whole: bool = False
    _gaps: dict[str, int]
    _books: dict[str, dict[Any, int]]

    # -- what a subclass does --------------------------------------------------------------------------------------

    def _groups(self, sets: Sequence[Sequence[str]], most: int) -> list[list[Group]]:
        """Group by each set of columns; nulls are a group. With `_whole`, only rows without nulls are looked at.

        A set with more than `most` groups may be cut off after `most + 1`.
        """
        raise NotImplementedError

    def _fractions(self, names: Sequence[str]) -> str | None:
        """Return the first of these columns that holds floats which are not integers."""
        raise NotImplementedError

    def _weights_summary(self, column: str) -> tuple[float | None, float | None, int]:
        """Return the smallest and the largest weight and how many are null or NaN."""
        raise NotImplementedError

    # -- opening ---------------------------------------------------------------------------------------------------

    def _open(
        self,
        names: Sequence[str],
        weight: str | None,
        variables: Mapping[str, Variable],
        states: Mapping[str, int | Sequence[State]],
        categories: Mapping[str, Sequence[Any]],
        texts: Sequence[str] = (),
    ) -> None:
        """Read off states and missing cells.

        `categories` are those of columns that have them; `texts` are columns of text in which numbers and booleans may be
        printed.
        """
        if not names:
            raise InvalidArgument("the data have no columns that are wanted")
        self._weight = weight
        if weight is not None:
            low, high, gaps = self._weights_summary(weight)
            if gaps or not ((low or 0.0) >= 0 and (high or 0.0) < float("inf")):
                raise InvalidArgument("a row's weight is a number that is finite and not negative")
        known = {
            n: variables[n] if n in variables else Variable(n, states[n])
            for n in names
            if n in variables or n in states
        }
        odd = self._fractions([n for n in names if n not in known])
        if odd is not None:
            raise continuous(odd)
        found = self._groups([[n] for n in names], MAX_VALUES)
        if not any(found) and any(n not in known for n in names):
            raise InvalidArgument(
                "the data have a header but no rows, so there are no states to read off them"
            )
        self.variables, self._books, self._gaps = {}, {}, {}
        for name, groups in zip(names, found, strict=True):
            if len(groups) > MAX_VALUES:
                raise TooLarge(
                    f"the column {name!r} has over {MAX_VALUES:,} different values; is it discrete?"
                )
            values = [g[0] for g in groups if g[0] is not None]
            nested = next((v for v in values if isinstance(v, list | dict)), None)
            if nested is not None:
                raise InvalidArgument(
                    f"a state of {name!r} is a string, an integer or a boolean, not {nested!r}"
                )
            if name in known:
                variable = known[name]
            elif name in categories:
                variable = inferred(name, categories[name], categories=True)
            else:
                variable = inferred(name, printed_truths(values) if name in texts else values)
            book = {None: MISSING}
            for value, at in zip(values, variable.positions(values), strict=True):
                if at is None:
                    raise UnknownState(name, value, variable.states)
                book[value] = at
            self.variables[name] = variable
            self._books[name] = book
            self._gaps[name] = sum(int(g[1]) for g in groups if g[0] is None)
        self._take_totals(found[0])

    def _take_totals(self, groups: Sequence[Group]) -> None:
        self.n_rows = sum(int(g[-2]) for g in groups)
        self.total = float(sum(g[-1] or 0.0 for g in groups))

    # -- what learning asks ----------------------------------------------------------------------------------------

    def missing(self) -> dict[str, int]:
        """Return how many cells each column misses."""
        return dict(self._gaps)

    def counts(self, scopes: Sequence[Sequence[str]]) -> list[Array]:
        """Return a table of counts for each scope; see `RowSource.counts`."""
        names = list(self.variables)
        at = {n: i for i, n in enumerate(names)}
        columns = []
        for scope in scopes:
            columns.append([at[n] for n in self._checked(scope)])
            count_shape([self.variables[n] for n in scope])
        cards = [len(v) for v in self.variables.values()]
        tables = merged(columns, cards, MERGED_CELLS)
        most = max((prod(c + 1 for c in t.shape) for t in tables), default=1)
        found = self._groups([[names[c] for c in t.columns] for t in tables], most)
        results: list[Array] = [np.zeros(0)] * len(scopes)
        for table, groups in zip(tables, found, strict=True):
            codes, weights = self._coded([names[c] for c in table.columns], groups)
            for place in table.holds:
                picked = codes[[table.columns.index(c) for c in columns[place]]]
                shape = tuple(cards[c] for c in columns[place])
                whole = (picked >= 0).all(axis=0)
                index = np.zeros(int(whole.sum()), dtype=np.intp)
                for row, card in zip(picked, shape, strict=True):
                    index = index * card + row[whole]
                table_of = np.bincount(index, weights[whole], minlength=prod(shape)).astype(np.float64)
                results[place] = table_of.reshape(shape)
        return results

    def distinct(self, scope: Sequence[str]) -> tuple[Ints, Array]:
        """Return the configurations of a scope that occur, and their weights; see `RowSource.distinct`."""
        names = self._checked(scope)
        most = MAX_BYTES // (8 * max(1, len(names)))
        groups = self._groups([names], most)[0]
        if len(groups) > most:
            raise self._too_many(len(names))
        codes, weights = self._coded(names, groups)
        return distinct_rows(codes, weights, [len(self.variables[n]) for n in names])

    def in_memory(self) -> CodedTable:
        """Return the distinct rows with their weights.

        Raises
        ------
        TooLarge
            If they would take more than 1 GiB.
        """
        names = list(self.variables)
        own = list(self.variables.values())
        most = MAX_BYTES // (8 * len(names))
        groups = self._groups([names], most)[0]
        if len(groups) > most:
            raise self._too_many(len(names))
        codes, weights = self._coded(names, groups)
        rows, totals = distinct_rows(codes, weights, [len(v) for v in own], keep_gaps=True)
        return CodedTable(own, np.ascontiguousarray(rows.T.astype(code_type(own))), totals)

    def without_gaps(self) -> "GroupedSource":
        """Return only the rows that miss no cell."""
        if not any(self._gaps.values()):
            return self
        rest = copy(self)
        rest._whole = True
        rest._gaps = dict.fromkeys(self._gaps, 0)
        rest._take_totals(rest._groups([[next(iter(self.variables))]], MAX_VALUES)[0])
        return rest

    # -- inside ----------------------------------------------------------------------------------------------------

    def _coded(self, names: Sequence[str], groups: Sequence[Group]) -> tuple[Ints, Array]:
        """Return groups as codes, one row a column, and their weights."""
        codes = np.empty((len(names), len(groups)), dtype=np.int64)
        for k, name in enumerate(names):
            book = self._books[name]
            codes[k] = [book[g[k]] for g in groups]
        return codes, np.array([g[-1] or 0.0 for g in groups], dtype=np.float64)

    def _checked(self, scope: Sequence[str]) -> list[str]:
        for name in scope:
            if name not in self.variables:
                raise UnknownVariable(name, self.variables, "the data")
        return list(scope)

    def _too_many(self, n_columns: int) -> TooLarge:
        return TooLarge(
            f"the distinct rows over {n_columns} columns take more than {MAX_BYTES / 2**30:g} GiB of memory; "
            "use fewer columns, or part of the rows"
        )


def printed_truths(values: Sequence[str]) -> Sequence[State]:
    """Return text as booleans where all of it writes them."""
    truths = {v.casefold() for v in values}
    return [v == "true" for v in truths] if truths <= {"true", "false"} else values
