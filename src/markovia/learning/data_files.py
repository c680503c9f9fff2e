"""CSV, TSV and Parquet files: which names they have, how DuckDB opens them, and which cells are missing.

The one place that knows. `markovia.learning.file_sources` counts in such files, `markovia.learning.file_blocks` brings
their rows, block by block. DuckDB works within `MEMORY_LIMIT`, spills to a folder that belongs to the process, and
never fetches an extension by itself.
"""

import glob
import os
from collections.abc import Iterable, Sequence
from errno import ENOENT
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Literal

from markovia.errors import InvalidArgument
from markovia.inference.threads import thread_count

Kind = Literal["csv", "tsv", "parquet"]
MEMORY_LIMIT = "1GB"
NULLS = ("", "NA", "N/A", "<NA>", "NaN", "nan", "null", "NULL")
"""Cells of CSV files that are missing, unless a variable has such a state. "None" is not among them."""
_TEXT: dict[str, Kind] = {".csv": "csv", ".tsv": "tsv", ".txt": "csv"}


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
        kind_of(text)
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
    listed = "[" + ", ".join(quoted_text(file) for file in files) + "]"
    if kind == "parquet":
        return f"read_parquet({listed}, union_by_name=true)"
    fixed = ["header=true", "union_by_name=true", *(["delim='\\t'"] if kind == "tsv" else [])]
    return f"read_csv({listed}, {', '.join([*fixed, *options])})"


def unreadable(files: Sequence[str], error: Exception) -> InvalidArgument:
    """Return our error for one of DuckDB's."""
    return InvalidArgument(f"cannot read {files[0]!r}: {str(error).splitlines()[0]}")


def quoted_name(name: str) -> str:
    """Return a column's name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def quoted_text(text: str) -> str:
    """Return text as SQL."""
    return "'" + str(text).replace("'", "''") + "'"
