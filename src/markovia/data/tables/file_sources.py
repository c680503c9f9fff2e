"""CSV and Parquet files of any size, and DuckDB relations: DuckDB scans them, groups and counts.

All tables come out of one scan with GROUPING SETS. Measured against streaming the codes into compiled code, that is as
fast where the scan itself is what takes the time, and it moves nothing. Cells of CSV files are grouped as the text that
is written there; what it means is found from the few values that occur. Text that will be looked at several times is
first copied to a table of DuckDB's. How files are opened is in `markovia.data.tables.data_files`.
Reference: Raasveldt & Mühleisen, DuckDB: an embeddable analytical database (2019).
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from markovia.data.tables.coded_cells import Coded, code_type, translated
from markovia.data.tables.data_files import OpenRows, open_cells, quoted_name, quoted_text, unreadable
from markovia.data.tables.grouped_source import MAX_BYTES, Group, GroupedSource
from markovia.data.tables.in_memory import wanted_columns
from markovia.data.tables.row_sources import CodedTable
from markovia.data.tables.state_codes import column_codes
from markovia.data.tables.table_counts import distinct_rows
from markovia.data.tables.written_values import fractions, written_numbers, written_truths
from markovia.errors import InvalidArgument
from markovia.factors.tables.variable import State, Variable

ROWS, KEPT = "markovia_rows", "markovia_kept"
FLOATS = ("float", "double", "decimal")
VECTORS = 64
"""How many blocks of 2048 rows are fetched at a time when rows are brought into memory."""
KEPT_BYTES = 2**28
"""Text files up to this size are copied to a table where several passes are likely."""
PACKED = 8
"""How much larger packed files are taken to be."""
FIRST_ROWS = 1000
"""How many rows are looked at for fractions and missing cells before the first pass."""


def open_files(
    data: Any,
    names: Sequence[str] | None,
    variables: Mapping[str, Variable],
    states: Mapping[str, int | Sequence[State]],
    weights: Any,
    scopes: Iterable[Sequence[str]] | None,
) -> "DuckSource":
    """Open CSV or Parquet files: a path, a pattern, or a list of them."""
    import duckdb

    stated: dict[str, Sequence[Any]] = {n: v.states for n, v in variables.items()}
    stated.update({n: s for n, s in states.items() if not isinstance(s, int)})
    rows = open_cells(data, [*(names or ()), *stated], [s for some in stated.values() for s in some])
    try:
        return DuckSource(rows.relation, names, variables, states, weights, scopes, rows)
    except duckdb.Error as error:
        raise unreadable(repr(rows.files[0]), error) from error


def open_relation(
    data: Any,
    names: Sequence[str] | None,
    variables: Mapping[str, Variable],
    states: Mapping[str, int | Sequence[State]],
    weights: Any,
    scopes: Iterable[Sequence[str]] | None,
) -> "DuckSource":
    """Open a DuckDB relation; it is grouped by the connection it belongs to."""
    import duckdb

    try:
        if not hasattr(data, "query") or not hasattr(data, "types"):
            raise InvalidArgument(f"rows are a DuckDB relation, not {type(data).__name__}")
        return DuckSource(data, names, variables, states, weights, scopes)
    except duckdb.Error as error:
        raise unreadable("the relation", error) from error


class DuckSource(GroupedSource):
    """Rows that DuckDB scans; see `markovia.data.tables.grouped_source.GroupedSource`."""

    def __init__(
        self,
        relation: Any,
        names: Sequence[str] | None,
        variables: Mapping[str, Variable],
        states: Mapping[str, int | Sequence[State]],
        weights: Any,
        scopes: Iterable[Sequence[str]] | None,
        files: OpenRows | None = None,
    ) -> None:
        if weights is not None and not isinstance(weights, str):
            raise InvalidArgument("the weights of rows in files and data bases are a column, given by name")
        chosen, weight = wanted_columns(relation.columns, names, weights)
        self._relation = relation
        self._connection = None if files is None else files.connection  # rows can be streamed from it
        self._texts = set() if files is None else {*files.texts}
        self._kept = False
        kinds = dict(zip(relation.columns, relation.types, strict=True))
        self._kinds = {n: kinds[n].id for n in chosen}
        categories = {n: kinds[n].children[0][1] for n in chosen if kinds[n].id == "enum"}
        self._columns = [*chosen, *([] if weight is None else [weight])]
        if len(chosen) > self._most_columns:
            self._keep()
        self._first = self._first_rows(chosen)
        # EM and rows without gaps take further passes
        again = scopes is None or any(None in row for row in self._first)
        if again and files is not None and _text_bytes(files.files) <= KEPT_BYTES:
            self._keep()
        self._open(chosen, weight, variables, states, categories, scopes or ())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.n_rows:,} rows over {len(self.variables)} variables>"

    def _ask(self, sql: str) -> list[tuple[Any, ...]]:
        import duckdb

        try:
            rows: list[tuple[Any, ...]] = self._relation.query(ROWS, sql).fetchall()
        except duckdb.Error as error:
            raise unreadable("the rows", error) from error
        return rows

    def _column(self, name: str) -> str:
        """Return a column as SQL: NaN is null, and numbers that are kept as decimals or floats are what they are."""
        quoted = quoted_name(name)
        kind = self._kinds[name]
        if kind in ("float", "double"):
            return f"CASE WHEN isnan({quoted}) THEN NULL ELSE {quoted} END"
        if kind == "decimal":
            return f"CAST({quoted} AS DOUBLE)"
        if kind.startswith(("date", "time", "uuid", "interval")):
            return f"CAST({quoted} AS VARCHAR)"
        return quoted

    def _select(self, names: Sequence[str]) -> str:
        """Return a query for some columns as c0, c1, ... and the weight w."""
        parts = [f"{self._column(n)} AS c{i}" for i, n in enumerate(names)]
        if self._weight is not None:
            w = f"TRY_CAST({quoted_name(self._weight)} AS DOUBLE)"
            # a bad weight makes the total NaN, so that no pass is needed to look for one
            parts.append(f"CASE WHEN {w} >= 0 AND {w} < 'inf'::DOUBLE THEN {w} ELSE 'nan'::DOUBLE END AS w")
        where = ""
        if self._whole:
            where = " WHERE " + " AND ".join(f"({self._column(n)}) IS NOT NULL" for n in self.variables)
        return f"SELECT {', '.join(parts)} FROM {ROWS}{where}"

    def _groups(self, sets: Sequence[Sequence[str]], most: int) -> list[list[Group]]:
        names = list(dict.fromkeys(n for one in sets for n in one))
        at = {n: i for i, n in enumerate(names)}
        weight = "count(*)" if self._weight is None else "sum(w)"
        if not names:  # tables without axes: the weight of all rows
            rows = self._ask(f"SELECT count(*), {weight} FROM ({self._select([])})")
            return [list(rows) for _ in sets]
        grouped = ", ".join("(" + ", ".join(f"c{at[n]}" for n in one) + ")" for one in sets)
        columns = [f"c{i}" for i in range(len(names))]
        # grouping() has 64 bits; what it says of each stretch of columns tells the sets apart
        marks = [f"grouping({', '.join(columns[i : i + 32])})" for i in range(0, len(columns), 32)]
        sql = (
            f"SELECT {', '.join(marks)}, {', '.join(columns)}, count(*), {weight} FROM ({self._select(names)}) "
            f"GROUP BY GROUPING SETS ({grouped}) LIMIT {most + 1}"
        )
        places: dict[tuple[int, ...], list[int]] = {}
        for place, one in enumerate(sets):
            places.setdefault(_marks({at[n] for n in one}, len(names)), []).append(place)
        results: list[list[Group]] = [[] for _ in sets]
        for row in self._ask(sql):
            place = places[row[: len(marks)]][0]
            values = row[len(marks) :]
            results[place].append((*(values[at[n]] for n in sets[place]), values[-2], values[-1]))
        for same in places.values():
            for place in same[1:]:
                results[place] = self._reordered(results[same[0]], sets[same[0]], sets[place])
        return results

    def _reordered(self, groups: list[Group], old: Sequence[str], new: Sequence[str]) -> list[Group]:
        order = [list(old).index(n) for n in new]
        return [(*(g[i] for i in order), g[-2], g[-1]) for g in groups]

    def _first_rows(self, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the first rows of files of text, or of columns with fractions, others being null."""
        looked = [n in self._texts or self._kinds[n] in FLOATS for n in names]
        if not any(looked):
            return []
        listed = [self._column(n) if some else "0" for n, some in zip(names, looked, strict=True)]
        return self._ask(f"SELECT {', '.join(listed)} FROM {ROWS} LIMIT {FIRST_ROWS}")

    def _fractions(self, names: Sequence[str]) -> str | None:
        columns = dict(zip(self._kinds, zip(*self._first, strict=True), strict=False))
        likely = []
        for name in names:
            values = {v for v in columns.get(name, ()) if v is not None}
            if fractions(written_numbers([*values]) if name in self._texts else values):
                likely.append(name)
        for name in likely:
            if name not in self._texts:
                return name
        if likely:  # text further down would make states of them
            tests = [f"count({quoted_name(n)}) = count(TRY_CAST({quoted_name(n)} AS DOUBLE))" for n in likely]
            (found,) = self._ask(f"SELECT {', '.join(tests)} FROM {ROWS}")
            return next((n for n, numbers in zip(likely, found, strict=True) if numbers), None)
        return None

    def _meant(self, name: str, values: Sequence[Any], known: Variable | None) -> Sequence[Any]:
        kinds = {type(s) for s in known.states} if known else set()
        if name not in self._texts or kinds == {str} or len(kinds) > 1:
            return values
        numbers = written_numbers(values)
        return numbers if known or numbers is not values else written_truths(values)

    def _keep(self) -> None:
        """Copy text to a table, which spills to the temporary folder if it is large."""
        if self._kept or not self._texts or self._connection is None:
            return
        import duckdb

        listed = ", ".join(quoted_name(n) for n in self._columns)
        query = f"SELECT {listed} FROM ({self._relation.sql_query()})"
        try:
            self._connection.execute(f"CREATE TEMP TABLE IF NOT EXISTS {KEPT} AS {query}")
        except duckdb.Error as error:
            raise unreadable("the rows", error) from error
        self._relation = self._connection.sql(f"SELECT * FROM {KEPT}")
        self._kept = True

    def in_memory(self) -> CodedTable:
        """Return the distinct rows with their weights; rows of files are streamed and made distinct on the way.

        Raises
        ------
        TooLarge
            If they would take more than 1 GiB.
        """
        if self._connection is None:
            return super().in_memory()
        own = list(self.variables.values())
        kind = code_type(own)
        query = self._connection.execute(self._stream())
        kept: list[tuple[Any, Any]] = []
        size, room = 0, MAX_BYTES // 4
        row_bytes = 8 + len(own) * np.dtype(kind).itemsize
        while len(chunk := query.fetch_df_chunk(VECTORS)):
            codes = np.empty((len(own), len(chunk)), dtype=kind)
            for k, variable in enumerate(own):
                codes[k] = self._chunk_codes(variable, chunk[f"c{k}"])
            weights = np.ones(len(chunk)) if self._weight is None else chunk["w"].to_numpy()
            kept.append((codes, weights))
            size += row_bytes * len(chunk)
            if size > room:
                kept, size = self._pressed(kept)
                room = max(MAX_BYTES // 4, 2 * size)  # so that rows are not pressed again and again
        if not kept:
            return CodedTable(own, np.zeros((len(own), 0), dtype=kind), np.zeros(0))
        kept, _ = self._pressed(kept)
        return CodedTable(own, *kept[0])

    def _pressed(self, kept: Sequence[tuple[Any, Any]]) -> tuple[list[tuple[Any, Any]], int]:
        """Return the distinct ones of some rows with their weights, and how many bytes they take."""
        own = list(self.variables.values())
        codes = np.concatenate([k[0] for k in kept], axis=1)
        weights = np.concatenate([k[1] for k in kept])
        rows, totals = distinct_rows(codes, weights, [len(v) for v in own], True, code_type(own))
        size = rows.nbytes + totals.nbytes
        if size > MAX_BYTES:
            raise self._too_many(len(own))
        return [(np.ascontiguousarray(rows.T), totals)], size

    def _stream(self) -> str:
        """Return a query for the rows themselves, text as numbers of an enumeration."""
        inner = self._select(list(self.variables)).replace(
            f"FROM {ROWS}", f"FROM ({self._relation.sql_query()})"
        )
        columns = []
        for k, name in enumerate(self.variables):
            values = [v for v in self._books[name] if v is not None]
            text = values and all(isinstance(v, str) for v in values) and self._kinds[name] != "enum"
            listed = ", ".join(quoted_text(v) for v in values) if text else ""
            columns.append(f"CAST(c{k} AS ENUM({listed})) AS c{k}" if text else f"c{k}")
        return f"SELECT {', '.join(columns)}{'' if self._weight is None else ', w'} FROM ({inner})"

    def _chunk_codes(self, variable: Variable, cells: Any) -> Any:
        book = self._books[variable.name]
        if hasattr(cells, "cat"):
            values = cells.cat.categories.tolist()
            states = [variable.states[book[v]] if v in book else v for v in values]
            return translated(Coded(cells.cat.codes.to_numpy(), states), variable)
        return column_codes(variable.name, cells, variable)[1]


def _text_bytes(files: Iterable[str]) -> int:
    """Return about how many bytes of text files hold; those that are elsewhere count as large."""
    total = 0
    for file in map(Path, files):
        if not file.exists():
            return 2**63
        total += file.stat().st_size * (PACKED if file.suffix.casefold() in (".gz", ".zst") else 1)
    return total


def _marks(used: set[int], n: int) -> tuple[int, ...]:
    """Return what `grouping` gives for a set: a bit for each column that is not in it, the first one highest."""
    return tuple(
        sum(1 << (len(stretch) - 1 - i) for i, c in enumerate(stretch) if c not in used)
        for stretch in (range(low, min(low + 32, n)) for low in range(0, n, 32))
    )
