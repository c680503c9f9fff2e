"""Rows that are not in memory: which columns hold measurements, and how to fetch them.

Counts are made where rows live; measurements are needed as numbers, so the wanted columns of files, data bases, lazy and
distributed frames are read into memory where some are continuous.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markovia.data.data_files import (
    NULLS,
    check_columns,
    connect,
    find_files,
    quoted_name,
    quoted_text,
    scan,
    unreadable,
)
from markovia.errors import InvalidArgument

FRACTIONS = ("DOUBLE", "FLOAT", "REAL", "DECIMAL")
"""DuckDB's types for numbers with fractions."""
CELLS = "auto_type_candidates=['BIGINT', 'DOUBLE', 'VARCHAR']"
"""What a text file's cells may be: `yes` and `2020-01-01` are words, as they are where such files are counted."""


def is_far(data: Any) -> bool:
    """Say whether the rows are not in memory: files, data bases, lazy and distributed frames."""
    if is_files(data):
        return True
    library = type(data).__module__.partition(".")[0]
    return (
        library in ("duckdb", "_duckdb", "dask", "dask_expr", "pyspark") or type(data).__name__ == "LazyFrame"
    )


def is_files(data: Any) -> bool:
    """Say whether the rows are named by paths."""
    if isinstance(data, list | tuple):
        return bool(data) and all(isinstance(item, str | Path) for item in data)
    return isinstance(data, str | Path)


def far_rows(data: Any) -> "DuckRows | LazyRows":
    """Open rows that are not in memory: paths, a DuckDB relation, a Polars LazyFrame, a Dask or a Spark frame."""
    if is_files(data):
        return DuckRows(_relation(data), words=True)
    if type(data).__module__.partition(".")[0] in ("duckdb", "_duckdb"):
        if not hasattr(data, "aggregate") or not hasattr(data, "types"):
            raise InvalidArgument(f"rows are a DuckDB relation, not {type(data).__name__}")
        return DuckRows(data)
    return LazyRows(data)


class DuckRows:
    """Rows of files and data bases, seen through DuckDB."""

    def __init__(self, relation: Any, *, words: bool = False) -> None:
        self._words = words  # of a text file, where booleans are words
        self._relation = relation
        self.names: list[str] = list(relation.columns)

    def with_fractions(self, names: Sequence[str]) -> list[str]:
        """Return those of the columns that hold numbers which are not whole; one pass where some are of such a type."""
        import duckdb

        kinds = {n: str(t) for n, t in zip(self.names, self._relation.types, strict=True)}
        typed = [n for n in names if kinds[n].startswith(FRACTIONS)]
        if not typed:
            return []
        tests = []
        for name in typed:
            cell = f"CAST({quoted_name(name)} AS DOUBLE)"
            tests.append(f"bool_or(NOT isnan({cell}) AND (isinf({cell}) OR {cell} <> floor({cell})))")
        try:
            (found,) = self._relation.aggregate(", ".join(tests)).fetchall()
        except duckdb.Error as error:
            raise unreadable("the rows", error) from error
        return [n for n, odd in zip(typed, found, strict=True) if odd]

    def fetched(self, names: Sequence[str]) -> Any:
        """Bring some columns into a table in memory, in the order of the rows."""
        table = self._relation.project(
            ", ".join(quoted_name(n) for n in dict.fromkeys(names))
        ).to_arrow_table()
        return _with_booleans(table) if self._words else table


def _with_booleans(table: Any) -> Any:
    """Return a table whose columns of the words true and false are booleans."""
    import pyarrow as pa
    from pyarrow import compute

    for place, field in enumerate(table.schema):
        if not pa.types.is_string(field.type):
            continue
        words = {word for word in compute.unique(table.column(place)).to_pylist() if word is not None}
        if words and {word.casefold() for word in words} <= {"true", "false"}:
            flags = compute.equal(compute.utf8_lower(table.column(place)), "true")
            table = table.set_column(place, field.name, flags)
    return table


class LazyRows:
    """Rows of lazy and distributed frames, seen through Narwhals."""

    def __init__(self, data: Any) -> None:
        import narwhals as nw

        frame = nw.from_native(data, pass_through=True)
        if not isinstance(frame, nw.LazyFrame):
            raise InvalidArgument(f"the rows of a {type(data).__name__} cannot be read")
        self._frame = frame
        self._schema = frame.collect_schema()
        self._backend: Any = "pandas" if frame.implementation.is_dask() else "pyarrow"
        self.names: list[str] = list(self._schema)

    def with_fractions(self, names: Sequence[str]) -> list[str]:
        """Return those of the columns that hold numbers which are not whole; one pass where some are of such a type."""
        import narwhals as nw

        typed = [n for n in names if self._schema[n].is_float() or self._schema[n].is_decimal()]
        if not typed:
            return []
        tests = []
        for name in typed:
            cells = nw.col(name).cast(nw.Float64)
            known = nw.when(~cells.is_nan()).then(cells).otherwise(None)
            rest = known % 1
            odd = (rest > 0) | (rest < 0) | ~known.is_finite()
            tests.append(odd.cast(nw.Int64).max().alias(name))
        found = self._frame.select(*tests).collect(backend=self._backend)
        return [n for n in typed if (found[n].to_list() or [0])[0] == 1]

    def fetched(self, names: Sequence[str]) -> Any:
        """Bring some columns into a frame in memory."""
        return self._frame.select(*dict.fromkeys(names)).collect(backend=self._backend).to_native()


def _relation(data: Any) -> Any:
    import duckdb

    files, kind = find_files(data)
    connection = connect(ordered=True)
    nulls = "nullstr=[" + ", ".join(quoted_text(n) for n in NULLS) + "]"
    try:
        check_columns(connection, files, kind, [])
        rows = scan(files, kind) if kind == "parquet" else scan(files, kind, [nulls, "sample_size=-1", CELLS])
        return connection.sql(f"SELECT * FROM {rows}")
    except duckdb.Error as error:
        raise unreadable(repr(files[0]), error) from error
