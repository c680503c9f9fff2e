"""CSV, TSV and Parquet files: which names they have, how DuckDB opens them, and which cells are missing.

The one place that knows. `markovia.data.tables.file_sources` counts in such files, `markovia.data.tables.file_blocks` brings
their rows, block by block. DuckDB works within `MEMORY_LIMIT`, spills to a folder that belongs to the process, and
never fetches an extension by itself.
"""

import glob
import os
from collections.abc import Iterable, Sequence
from errno import ENOENT
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Literal, NamedTuple

from markovia.errors import InvalidArgument
from markovia.runtime.threads import thread_count

Kind = Literal["csv", "tsv", "parquet"]
MEMORY_LIMIT = "1GB"
NULLS = ("", "NA", "N/A", "<NA>", "NaN", "nan", "null", "NULL")
"""Cells of CSV files that are missing, unless a variable has such a state. "None" is not among them."""
WHOLE_SNIFF = 2**27
"""CSV files up to this size are read once to find the types of their columns, larger ones only in part; see `open_rows`."""
NUMBERS = ("bigint", "integer", "double", "hugeint", "tinyint", "smallint", "float", "decimal")
"""DuckDB's types of columns that hold numbers."""
_TEXT: dict[str, Kind] = {".csv": "csv", ".tsv": "tsv", ".txt": "csv"}


class OpenRows(NamedTuple):
    """Files as DuckDB sees them: as one relation, which lives as long as its connection."""

    files: list[str]
    connection: Any
    relation: Any
    texts: list[str]
    """Columns of text in which values may be written that are no text."""


def open_rows(data: Any) -> OpenRows:
    """Open CSV or Parquet files, a path, a pattern or a list of them, as one relation: typed columns, rows in order."""
    return _opened(data, [], None)


def open_cells(data: Any, names: Iterable[str], states: Iterable[Any]) -> OpenRows:
    """Open files as one relation, rows in any order; the cells of CSV files are the text that is written there.

    So nothing is parsed to find the types of columns.

    Parameters
    ----------
    data
        The files.
    names
        Columns that are wanted.
    states
        All states that are known; what is one of them is not missing.
    """
    return _opened(data, names, states)


def _opened(data: Any, names: Iterable[str], states: Iterable[Any] | None) -> OpenRows:
    import duckdb

    files, kind = find_files(data)
    connection = connect(ordered=states is None)
    try:
        check_columns(connection, files, kind, list(names))
        if kind == "parquet":
            return OpenRows(files, connection, connection.sql(f"SELECT * FROM {scan(files, kind)}"), [])
        rows, texts = _csv_scan(connection, files, kind, states)
        return OpenRows(files, connection, connection.sql(rows), texts)
    except duckdb.Error as error:
        raise unreadable(repr(files[0]), error) from error


def find_files(data: Any) -> tuple[list[str], Kind]:
    """Return the files that a path, a pattern or a list of them names, and their kind.

    Raises
    ------
    FileNotFoundError
        If a file is not there, or none matches a pattern.
    InvalidArgument
        For a name with another ending, or files of different kinds.
    """
    files: list[str] = []
    for item in data if isinstance(data, list | tuple) else [data]:
        text = str(item) if "://" in str(item) else str(Path(item).expanduser())
        if glob.has_magic(text) and not Path(text).exists():
            found = sorted(glob.glob(text, recursive=True))
            if not found:
                raise FileNotFoundError(ENOENT, "no file matches", text)
            files += found
            continue
        if "://" not in text and Path(text).is_dir():
            raise InvalidArgument(
                f"{text!r} is a folder; name its files with a pattern such as {str(Path(text) / '*.parquet')!r}"
            )
        kind_of(text)  # a wrong suffix is said before a missing file
        if "://" not in text and not Path(text).is_file():
            raise FileNotFoundError(ENOENT, "no such file", text)
        files.append(text)
    kinds = {kind_of(file) for file in files}
    if len(kinds) > 1:
        raise InvalidArgument(f"the files are partly {' and partly '.join(sorted(kinds))}; give one kind")
    return files, kinds.pop()


def kind_of(file: str) -> Kind:
    """Return what a file holds, by its name.

    Examples
    --------
    >>> kind_of("rows.csv.gz"), kind_of("rows.PARQUET")
    ('csv', 'parquet')
    """
    name = Path(file).name.casefold()
    if name.endswith((".parquet", ".pq")):
        return "parquet"
    for packed in (".gz", ".zst"):
        name = name.removesuffix(packed)
    kind = _TEXT.get(Path(name).suffix)
    if kind is None:
        raise InvalidArgument(f"{file}: data files end in .csv, .csv.gz, .tsv and .parquet")
    return kind


def names_data(text: str) -> bool:
    """Say whether a text names a data file, by its ending.

    Examples
    --------
    >>> names_data("rows-*.csv"), names_data("smoke=yes")
    (True, False)
    """
    try:
        return bool(kind_of(text))
    except InvalidArgument:
        return False


def connect(*, ordered: bool) -> Any:
    """Return a DuckDB connection of its own; `ordered` keeps rows in the order of the files."""
    import duckdb

    settings: dict[str, Any] = {
        "memory_limit": MEMORY_LIMIT,
        "threads": thread_count(),
        "preserve_insertion_order": ordered,
        "temp_directory": str(Path(gettempdir()) / f"markovia-duckdb-{os.getpid()}"),
        "autoinstall_known_extensions": False,
    }
    return duckdb.connect(":memory:", config=settings)


def scan(files: Sequence[str], kind: Kind, options: Iterable[str] = ()) -> str:
    """Return the files as a table in SQL; `options` are for CSV and TSV."""
    listed = "[" + ", ".join(quoted_text(_literal(file)) for file in files) + "]"
    if kind == "parquet":
        return f"read_parquet({listed}, union_by_name=true)"
    return f"read_csv({listed}, {', '.join(['header=true', 'union_by_name=true', *_fixed(kind), *options])})"


def check_columns(connection: Any, files: Sequence[str], kind: Kind, names: Sequence[str]) -> None:
    """Raise if columns of files cannot be told apart, or if CSV rows do not fit their header.

    `names` are columns that are wanted: a file whose only column is one of them is no torn table.
    """
    for file in files:
        path = quoted_text(_literal(file))
        if kind == "parquet":
            schema = f"SELECT name, num_children FROM parquet_schema({path})"
            _check_distinct(file, _top_level(connection.sql(schema).fetchall()))
            continue
        # threads that keep no order would race for the first line
        options = ", ".join(["header=false", "all_varchar=true", "parallel=false", *_fixed(kind)])
        first = f"SELECT * FROM read_csv({path}, {options}) LIMIT 1"
        header = [n for row in connection.sql(first).fetchall() for n in row]
        if not any(header):
            raise InvalidArgument(f"{file} is empty; data begin with a line of column names")
        _check_distinct(file, header)
        if len(header) == 1 and header[0] is not None and header[0] not in names:
            _check_separator(file, header[0])


def unreadable(what: str, error: Exception) -> InvalidArgument:
    """Return what DuckDB says of rows that it cannot read, as one sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines[:4] if not line.startswith(("Original Line", "Possible", "The search"))]
    return InvalidArgument(f"cannot read {what}: {'; '.join(told[:3])}")


def _fixed(kind: Kind) -> list[str]:
    """Return how CSV files are read: the separator is found, the rest is fixed so that no row is taken for another thing."""
    separator = ["delim='\\t'"] if kind == "tsv" else []
    return ["skip=0", "comment=''", "quote='\"'", "escape='\"'", *separator]


def _literal(file: str) -> str:
    """Return a path as a pattern that only matches itself."""
    if "://" in file:
        return file
    return "".join(f"[{c}]" if c in "*?[" else c for c in file)


def _check_distinct(file: str, names: Sequence[str | None]) -> None:
    known: dict[str, str] = {}
    for name in names:
        if name is None:
            continue
        if name.casefold() in known:
            first = known[name.casefold()]
            raise InvalidArgument(
                f"{file}: two columns are named {name!r}"
                if first == name
                else f"{file}: the columns {first!r} and {name!r} differ only in case, which DuckDB does not tell apart"
            )
        known[name.casefold()] = name


def _check_separator(file: str, header: str) -> None:
    """Raise if rows of different lengths left one column that holds whole lines."""
    if any(mark in header for mark in ",;|\t"):
        raise InvalidArgument(f"{file}: some rows have more or fewer cells than the header {header!r}")


def _top_level(schema: Sequence[tuple[str, int | None]]) -> list[str]:
    """Return the columns of a Parquet schema, which lists every level, the root first."""
    names, inside = [], 0
    for name, children in schema[1:]:
        if inside:
            inside -= 1
        else:
            names.append(name)
        inside += children or 0
    return names


def quoted_name(name: str) -> str:
    """Return a column's name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def quoted_text(text: str) -> str:
    """Return text as SQL."""
    return "'" + str(text).replace("'", "''") + "'"


def _csv_scan(
    connection: Any, files: Sequence[str], kind: Kind, states: Iterable[Any] | None
) -> tuple[str, list[str]]:
    """Return the scan of CSV files, typed or with these states as text, and the columns of `OpenRows.texts`."""
    taken = {s for s in states or () if isinstance(s, str)}
    options = [f"nullstr=[{', '.join(quoted_text(s) for s in NULLS if s not in taken)}]"]
    if states is None and sum(Path(f).stat().st_size for f in files if Path(f).exists()) <= WHOLE_SNIFF:
        options.append("sample_size=-1")
    sniffed = connection.sql(f"SELECT * FROM {scan(files, kind, options)}")
    kinds = {n: t.id for n, t in zip(sniffed.columns, sniffed.types, strict=True)}
    as_text = [n for n, found in kinds.items() if states is not None or found not in NUMBERS]
    if as_text:
        options.append("types={" + ", ".join(f"{quoted_text(n)}: 'VARCHAR'" for n in as_text) + "}")
    texts = [n for n in as_text if states is not None or kinds[n] == "boolean"]
    return f"SELECT * FROM {scan(files, kind, options)}", texts
