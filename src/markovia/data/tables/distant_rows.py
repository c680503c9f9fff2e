"""Rows that are not in memory: which there are, which of their columns hold measurements, and how they are fetched.

Counts are made where rows live. What needs rows one by one and in their order (predictions, log probabilities, filled
cells, measurements) fetches the columns it wants from files, data bases, lazy and distributed frames.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markovia.data.tables.data_files import open_rows, quoted_name, unreadable
from markovia.errors import InvalidArgument

FRACTIONS = ("DOUBLE", "FLOAT", "REAL", "DECIMAL")
"""DuckDB's types for numbers with fractions."""
NEAR = ("pandas", "polars", "pyarrow", "numpy", "builtins", "markovia")
"""Libraries whose tables are in memory, but for Polars' LazyFrame."""


def is_far(data: Any) -> bool:
    """Say whether the rows are not in memory: files, data bases, lazy and distributed frames."""
    library = _library(data)
    if is_files(data) or library == "duckdb" or type(data).__name__ == "LazyFrame":
        return True
    if library in NEAR:
        return False
    import narwhals as nw

    return isinstance(nw.from_native(data, pass_through=True), nw.LazyFrame)


def is_files(data: Any) -> bool:
    """Say whether the rows are named by paths."""
    if isinstance(data, list | tuple):
        return bool(data) and all(isinstance(item, str | Path) for item in data)
    return isinstance(data, str | Path)


def far_rows(data: Any) -> "DuckRows | LazyRows":
    """Open rows that are not in memory: paths, a DuckDB relation, a Polars LazyFrame, a Dask or a Spark frame."""
    if is_files(data):
        rows = open_rows(data)
        return DuckRows(rows.relation, rows.texts)
    if _library(data) == "duckdb":
        if not hasattr(data, "aggregate") or not hasattr(data, "types"):
            raise InvalidArgument(f"rows are a DuckDB relation, not {type(data).__name__}")
        return DuckRows(data)
    return LazyRows(data)


def near_rows(data: Any) -> Any:
    """Return rows that are elsewhere as a table in memory, in their order; rows in memory as they are."""
    return far_rows(data).fetched() if is_far(data) else data


def _library(data: Any) -> str:
    return type(data).__module__.partition(".")[0].removeprefix("_")


class DuckRows:
    """Rows of files and data bases, seen through DuckDB."""

    def __init__(self, relation: Any, words: Sequence[str] = ()) -> None:
        self._words = words  # columns of a text file in which booleans are printed
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

    def fetched(self, names: Sequence[str] | None = None) -> Any:
        """Bring some columns, by default all, into a table in memory, in the order of the rows."""
        import duckdb

        listed = ", ".join(quoted_name(n) for n in dict.fromkeys(self.names if names is None else names))
        try:
            table = self._relation.project(listed).to_arrow_table()
        except duckdb.Error as error:
            raise unreadable("the rows", error) from error
        for name in self._words:
            if name in table.column_names:
                table = _with_booleans(table, name)
        return table


def _with_booleans(table: Any, name: str) -> Any:
    """Return a table in which a column of the words true and false is one of booleans."""
    from pyarrow import compute

    column = table.column(name)
    words = {word.casefold() for word in compute.unique(column).to_pylist() if word is not None}
    if not words or not words <= {"true", "false"}:
        return table
    flags = compute.equal(compute.utf8_lower(column), "true")
    return table.set_column(table.column_names.index(name), name, flags)


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

    def fetched(self, names: Sequence[str] | None = None) -> Any:
        """Bring some columns, by default all, into a frame in memory."""
        wanted = dict.fromkeys(self.names if names is None else names)
        return self._frame.select(*wanted).collect(backend=self._backend).to_native()
