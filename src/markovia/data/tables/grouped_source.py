"""Rows that stay where they are: a data base, files or a cluster groups and counts, and only the groups come back.

The first pass groups by the columns of the tables that will be asked for, if they are known, else by each column alone.
The groups tell the states, the missing cells and the cells that are no state, and they are the counts: nothing is read
twice. Tables that are asked for later take a pass of their own, several small tables in one group where their union is
small. Where the groups of one pass would be too many or too wide, tables are counted in several passes.
Cost: one pass over the columns that are used, more for tables that are asked for later. Memory here: the groups.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from math import prod
from typing import Any

import numpy as np

from markovia.data.tables.coded_cells import MISSING, code_type, continuous
from markovia.data.tables.row_sources import CodedTable, count_shape
from markovia.data.tables.state_codes import inferred
from markovia.data.tables.table_counts import distinct_rows, merged
from markovia.errors import InvalidArgument, TooLarge, UnknownState, UnknownVariable
from markovia.factors.tables.variable import State, Variable
from markovia.runtime.array_types import Array, Ints

MERGED_CELLS = 4096
"""The largest union that several small tables are grouped in."""
MAX_VALUES = 2**20
"""A column with more different values than this is not taken as discrete."""
MAX_BYTES = 2**30
"""What the distinct rows may take when they are brought into memory."""

HELD_COLUMNS, HELD_GROUPS = 16, 2**20
"""A table with more columns or groups is not counted along with the states."""
BATCH_CELLS = 2**23
"""How many cells the groups of several tables that are counted in one pass may have together."""

Group = tuple[Any, ...]
"""One value a column, then the number of rows and their weight."""


class GroupedSource:
    """Rows over discrete variables that are grouped and counted elsewhere; see `markovia.data.tables.row_sources.RowSource`.

    A subclass knows where the rows are: `_groups`, and `_fractions` for columns of floats. Cells that are NaN are null when
    it groups.
    """

    variables: dict[str, Variable]
    n_rows: int
    total: float
    _weight: str | None
    _whole: bool = False
    _gaps: dict[str, int]
    _books: dict[str, dict[Any, int]]
    _held: "list[tuple[list[str], list[Group]]]"
    """Groups that came with the states: their columns, and themselves."""
    _most_columns = 60
    """How many columns may be grouped by in one pass; a bit each in a number of 64."""

    # -- what a subclass does --------------------------------------------------------------------------------------

    def _groups(self, sets: Sequence[Sequence[str]], most: int) -> list[list[Group]]:
        """Group by each set of columns; nulls are a group. With `_whole`, only rows without nulls are looked at.

        Where there are more than `most` groups in all, those after `most + 1` may be cut off.
        """
        raise NotImplementedError

    def _fractions(self, names: Sequence[str]) -> str | None:
        """Return the first of these columns that is found to hold floats which are not integers; not all need be found."""
        raise NotImplementedError

    def _meant(self, name: str, values: Sequence[Any], known: Variable | None) -> Sequence[Any]:
        """Return the values that cells stand for."""
        return values

    def _keep(self) -> None:
        """Prepare for several passes."""

    # -- opening ---------------------------------------------------------------------------------------------------

    def _open(
        self,
        names: Sequence[str],
        weight: str | None,
        variables: Mapping[str, Variable],
        states: Mapping[str, int | Sequence[State]],
        categories: Mapping[str, Sequence[Any]],
        scopes: Iterable[Sequence[str]],
    ) -> None:
        """Read off states and missing cells, and count `scopes` along with them.

        `categories` are those of columns that have them.
        """
        if not names:
            raise InvalidArgument("the data have no columns that are wanted")
        self._weight = weight
        known = {
            n: variables[n] if n in variables else Variable(n, states[n])
            for n in names
            if n in variables or n in states
        }
        odd = self._fractions([n for n in names if n not in known])
        if odd is not None:
            raise continuous(odd)
        self._held = self._first_pass(_planned(names, {n: len(v) for n, v in known.items()}, scopes))
        if not any(groups for _, groups in self._held) and any(n not in known for n in names):
            raise InvalidArgument(
                "the data have a header but no rows, so there are no states to read off them"
            )
        self.variables, self._books, self._gaps = {}, {}, {}
        for name in names:
            values, self._gaps[name] = self._found(name)
            meant = self._meant(name, values, known.get(name))
            if name in known:
                variable = known[name]
            elif name in categories:
                variable = inferred(name, categories[name], categories=True)
            else:
                variable = inferred(name, list(dict.fromkeys(meant)))
            book = {None: MISSING}
            for value, at, said in zip(values, variable.positions(meant), meant, strict=True):
                if at is None:
                    raise UnknownState(name, said, variable.states)
                book[value] = at
            self.variables[name] = variable
            self._books[name] = book
        self._take_totals(self._held[0][1])

    def _first_pass(self, sets: Sequence[Sequence[str]]) -> list[tuple[list[str], list[Group]]]:
        """Group by some sets of columns; one with too many groups is given up for its columns alone."""
        held: list[tuple[list[str], list[Group]]] = []
        covered: set[str] = set()
        for names, groups in zip(sets, self._gathered(sets, [HELD_GROUPS] * len(sets)), strict=True):
            if len(groups) <= HELD_GROUPS or len(names) == 1:
                held.append((list(names), groups))
                covered.update(names)
        rest = [[n] for n in dict.fromkeys(n for s in sets for n in s) if n not in covered]
        held += zip(rest, self._gathered(rest, [MAX_VALUES] * len(rest)), strict=True)
        for names, groups in held:
            if len(names) == 1 and len(groups) > MAX_VALUES:
                raise TooLarge(
                    f"the column {names[0]!r} has over {MAX_VALUES:,} different values; is it discrete?"
                )
        return held

    def _found(self, name: str) -> tuple[list[Any], int]:
        """Return the values of a column, and how many of its cells are missing."""
        names, groups = min((h for h in self._held if name in h[0]), key=lambda h: len(h[1]))
        k = names.index(name)
        nested = next((g[k] for g in groups if isinstance(g[k], list | dict)), None)
        if nested is not None:
            raise InvalidArgument(f"a state of {name!r} is a string, an integer or a boolean, not {nested!r}")
        values = list(dict.fromkeys(g[k] for g in groups if g[k] is not None))
        return values, sum(int(g[-2]) for g in groups if g[k] is None)

    def _take_totals(self, groups: Sequence[Group]) -> None:
        self.n_rows = sum(int(g[-2]) for g in groups)
        self.total = float(sum(g[-1] or 0.0 for g in groups))
        if self.total != self.total:
            raise InvalidArgument("a row's weight is a number that is finite and not negative")

    # -- what learning asks ----------------------------------------------------------------------------------------

    def missing(self) -> dict[str, int]:
        """Return how many cells each column misses."""
        return dict(self._gaps)

    def counts(self, scopes: Sequence[Sequence[str]]) -> list[Array]:
        """Return a table of counts for each scope; see `RowSource.counts`."""
        for scope in scopes:
            count_shape([self.variables[n] for n in self._checked(scope)])
        having: dict[str, list[int]] = {}
        for i, (held, _) in enumerate(self._held):
            for name in held:
                having.setdefault(name, []).append(i)
        served: dict[int, list[int]] = {}
        rest = []
        for place, scope in enumerate(scopes):
            near = having.get(scope[0], []) if scope else range(len(self._held))
            fits = [i for i in near if set(scope) <= set(self._held[i][0])]
            if fits:
                served.setdefault(min(fits, key=lambda i: len(self._held[i][1])), []).append(place)
            else:
                rest.append(place)
        results: list[Array] = [np.zeros(0)] * len(scopes)
        for i, places in served.items():
            self._tabulate(*self._held[i], places, scopes, results)
        names = list(self.variables)
        at = {n: i for i, n in enumerate(names)}
        # a cell may be written in several ways
        cards = [len(self._books[n]) for n in names]
        tables = merged([[at[n] for n in scopes[p]] for p in rest], cards, MERGED_CELLS)
        sets = [[names[c] for c in t.columns] for t in tables]
        found = self._gathered(sets, [t.size for t in tables], known=True)
        for table, own, groups in zip(tables, sets, found, strict=True):
            self._tabulate(own, groups, [rest[p] for p in table.holds], scopes, results)
        return results

    def _tabulate(
        self,
        names: Sequence[str],
        groups: Sequence[Group],
        places: Sequence[int],
        scopes: Sequence[Sequence[str]],
        results: list[Array],
    ) -> None:
        """Fill in the tables at some places from groups by columns that theirs are among."""
        codes, weights = self._coded(names, groups)
        for place in places:
            picked = codes[[names.index(n) for n in scopes[place]]]
            shape = tuple(len(self.variables[n]) for n in scopes[place])
            whole = (picked >= 0).all(axis=0)
            index = np.zeros(int(whole.sum()), dtype=np.intp)
            for row, card in zip(picked, shape, strict=True):
                index = index * card + row[whole]
            table_of = np.bincount(index, weights[whole], minlength=prod(shape)).astype(np.float64)
            results[place] = table_of.reshape(shape)

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
        rest._held = rest._first_pass([names for names, _ in self._held])
        rest._take_totals(rest._held[0][1])
        return rest

    # -- inside ----------------------------------------------------------------------------------------------------

    def _gathered(
        self, sets: Sequence[Sequence[str]], most: Sequence[int], known: bool = False
    ) -> list[list[Group]]:
        """Group by each set of columns in as few passes as keep the groups small; `known` if so many are to be expected."""
        batches: list[list[int]] = []
        columns: set[str] = set()
        expected = 0
        for i, names in enumerate(sets):
            together = columns | set(names)
            size = most[i] if known else 1
            wide = len(together) > self._most_columns or (expected + size) * len(together) > BATCH_CELLS
            if not batches or wide:
                batches.append([])
                together, expected = set(names), 0
            batches[-1].append(i)
            columns, expected = together, expected + size
        if len(batches) > 1:
            self._keep()
        return [g for b in batches for g in self._batch([sets[i] for i in b], [most[i] for i in b])]

    def _batch(self, sets: Sequence[Sequence[str]], most: Sequence[int]) -> list[list[Group]]:
        """Group by sets in one pass, or in two halves where the groups turn out to be many."""
        if len(sets) == 1:
            return self._groups(sets, most[0])
        limit = BATCH_CELLS // len({n for names in sets for n in names} or {""})
        found = self._groups(sets, limit)
        if sum(map(len, found)) <= limit:
            return found
        half = len(sets) // 2
        self._keep()
        return self._batch(sets[:half], most[:half]) + self._batch(sets[half:], most[half:])

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


def _planned(
    names: Sequence[str], cards: Mapping[str, int], scopes: Iterable[Sequence[str]]
) -> list[list[str]]:
    """Return by which sets of columns the first pass groups: what is in others is left out, what is in none is added.

    `cards` are the numbers of states that are known.
    """
    sets = {tuple(dict.fromkeys(s)) for s in scopes} - {()}
    wanted = [
        s
        for s in sorted(sets, key=len, reverse=True)
        if len(s) <= HELD_COLUMNS and prod(cards.get(n, 1) + 1 for n in s) <= HELD_GROUPS
    ]
    covered = {n for s in wanted for n in s}
    wanted += [(n,) for n in names if n not in covered]
    if all(n in cards for n in names):
        at = {n: i for i, n in enumerate(names)}
        tables = merged([[at[n] for n in s] for s in wanted], [cards[n] + 1 for n in names], MERGED_CELLS)
        return [[names[c] for c in t.columns] for t in tables]
    kept: list[tuple[str, ...]] = []
    having: dict[str, list[set[str]]] = {}
    for one in wanted:
        if not any(set(one) <= other for other in having.get(one[0], [])):
            kept.append(one)
            for name in one:
                having.setdefault(name, []).append(set(one))
    order = {n: i for i, n in enumerate(names)}
    return [list(s) for s in sorted(kept, key=lambda s: min(order[n] for n in s))]
