"""Rows that are not in memory: whether they hold measurements, and how to fetch them.

Counts are made where rows live; measurements are needed as numbers, so files, data bases, lazy and distributed frames with
continuous columns are read into memory.
"""

from pathlib import Path
from typing import Any

from markovia.errors import InvalidArgument
from markovia.learning.data_files import (
    NULLS,
    check_columns,
    connect,
    find_files,
    quoted_text,
    scan,
    unreadable,
)

_FRACTIONS = ("DOUBLE", "FLOAT", "REAL", "DECIMAL")


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


def may_have_fractions(data: Any) -> bool:
    """Say whether some column is of a type for numbers with fractions."""
    if is_files(data):
        return any(str(t).startswith(_FRACTIONS) for t in _relation(data).types)
    if hasattr(data, "types") and hasattr(data, "query"):
        return any(str(t).startswith(_FRACTIONS) for t in data.types)
    if hasattr(data, "collect_schema"):
        return any(t.is_float() or t.is_decimal() for t in data.collect_schema().values())
    kinds = data.dtypes
    listed = [k for _, k in kinds] if isinstance(kinds, list) else [str(k) for k in kinds]
    return any(k.startswith(("float", "double", "decimal")) for k in listed)


def fetched(data: Any) -> Any:
    """Bring the rows into a frame in memory."""
    if is_files(data):
        return _relation(data).to_arrow_table()
    for verb in ("to_arrow_table", "toPandas", "compute", "collect"):
        if hasattr(data, verb):
            return getattr(data, verb)()
    raise InvalidArgument(f"a {type(data).__name__} cannot be read into memory")


def _relation(data: Any) -> Any:
    import duckdb

    files, kind = find_files(data)
    connection = connect(ordered=True)
    nulls = "nullstr=[" + ", ".join(quoted_text(n) for n in NULLS) + "]"
    try:
        check_columns(connection, files, kind, [])
        rows = scan(files, kind) if kind == "parquet" else scan(files, kind, [nulls, "sample_size=-1"])
        return connection.sql(f"SELECT * FROM {rows}")
    except duckdb.Error as error:
        raise unreadable(repr(files[0]), error) from error
