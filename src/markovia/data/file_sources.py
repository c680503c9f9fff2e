"""CSV and Parquet files of any size, and DuckDB relations: DuckDB scans them, groups and counts.

All tables come out of one scan with GROUPING SETS. Measured against streaming the codes into compiled code, that is as
fast where the scan itself is what takes the time, and it moves nothing. How files are opened is in
`markovia.data.data_files`.
Reference: Raasveldt & Mühleisen, DuckDB: an embeddable analytical database (2019).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from markovia.data.data_files import open_rows, quoted_name, quoted_text, unreadable
from markovia.data.grouped_source import MAX_BYTES, Group, GroupedSource
from markovia.data.in_memory import wanted_columns
from markovia.data.row_sources import CodedTable
from markovia.data.state_codes import Coded, code_type, column_codes, translated
from markovia.data.table_counts import distinct_rows
from markovia.errors import InvalidArgument
from markovia.factors.tables.variable import State, Variable

ROWS = "markovia_rows"
VECTORS = 64
"""How many blocks of 2048 rows are fetched at a time when rows are brought into memory."""


def open_files(
    data: Any,
    names: Sequence[str] | None,
    variables: Mapping[str, Variable],
    states: Mapping[str, int | Sequence[State]],
    weights: Any,
) -> "DuckSource":
    """Open CSV or Parquet files: a path, a pattern, or a list of them."""
    import duckdb

    stated: dict[str, Sequence[Any]] = {n: v.states for n, v in variables.items()}
    stated.update({n: s for n, s in states.items() if not isinstance(s, int)})
    rows = open_rows(data, names or (), stated, ordered=False)
    try:
        return DuckSource(rows.relation, names, variables, states, weights, rows.connection, rows.texts)
    except duckdb.Error as error:
        raise unreadable(repr(rows.files[0]), error) from error


def open_relation(
    data: Any,
    names: Sequence[str] | None,
    variables: Mapping[str, Variable],
    states: Mapping[str, int | Sequence[State]],
    weights: Any,
) -> "DuckSource":
    """Open a DuckDB relation; it is grouped by the connection it belongs to."""
    import duckdb

    try:
        if not hasattr(data, "query") or not hasattr(data, "types"):
            raise InvalidArgument(f"rows are a DuckDB relation, not {type(data).__name__}")
        return DuckSource(data, names, variables, states, weights)
    except duckdb.Error as error:
        raise unreadable("the relation", error) from error


class DuckSource(GroupedSource):
    """Rows that DuckDB scans; see `markovia.data.grouped_source.GroupedSource`."""

    def __init__(
        self,
        relation: Any,
        names: Sequence[str] | None,
        variables: Mapping[str, Variable],
        states: Mapping[str, int | Sequence[State]],
        weights: Any,
        connection: Any = None,
        texts: Sequence[str] = (),
    ) -> None:
        if weights is not None and not isinstance(weights, str):
            raise InvalidArgument("the weights of rows in files and data bases are a column, given by name")
        chosen, weight = wanted_columns(relation.columns, names, weights)
        self._relation = relation
        self._connection = connection  # only of files: rows can be streamed from it
        kinds = dict(zip(relation.columns, relation.types, strict=True))
        self._kinds = {n: kinds[n].id for n in chosen}
        categories = {n: kinds[n].children[0][1] for n in chosen if kinds[n].id == "enum"}
        self._open(chosen, weight, variables, states, categories, texts)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.n_rows:,} rows over {len(self.variables)} variables>"

    def _ask(self, sql: str) -> list[tuple[Any, ...]]:
        import duckdb

        try:
            rows: list[tuple[Any, ...]] = self._relation.query(ROWS, sql).fetchall()
        except duckdb.ConversionException:  # of weights, or of a file that was looked at only in part
            raise
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
            parts.append(f"CAST({quoted_name(self._weight)} AS DOUBLE) AS w")
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
            f"GROUP BY GROUPING SETS ({grouped}) LIMIT {most * len(sets) + 1}"
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

    def _fractions(self, names: Sequence[str]) -> str | None:
        floats = [n for n in names if self._kinds[n] in ("float", "double", "decimal")]
        if not floats:
            return None
        tests = ", ".join(f"bool_or(({self._column(n)}) <> floor({self._column(n)}))" for n in floats)
        (found,) = self._ask(f"SELECT {tests} FROM {ROWS}")
        return next((n for n, odd in zip(floats, found, strict=True) if odd), None)

    def _weights_summary(self, column: str) -> tuple[float | None, float | None, int]:
        import duckdb

        w = f"CAST({quoted_name(column)} AS DOUBLE)"
        try:
            ((low, high, gaps),) = self._ask(
                f"SELECT min({w}), max({w}), count(*) - count({w}) + coalesce(sum(CAST(isnan({w}) AS INT)), 0) FROM {ROWS}"
            )
        except duckdb.ConversionException:
            raise InvalidArgument("weights are numbers, one a row") from None
        return low, high, int(gaps)

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


def _marks(used: set[int], n: int) -> tuple[int, ...]:
    """Return what `grouping` gives for a set: a bit for each column that is not in it, the first one highest."""
    return tuple(
        sum(1 << (len(stretch) - 1 - i) for i, c in enumerate(stretch) if c not in used)
        for stretch in (range(low, min(low + 32, n)) for low in range(0, n, 32))
    )
