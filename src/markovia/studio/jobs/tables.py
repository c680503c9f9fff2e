"""Tables and texts that were uploaded to the studio: kept in a folder of the server, described for the page."""

import re
import threading
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from markovia.data.tables.data_files import names_data
from markovia.data.tables.frames import as_frame
from markovia.data.tables.mixed_table import CONTINUOUS
from markovia.data.tables.reading_mixed import read_mixed
from markovia.data.text.document_texts import SUFFIXES
from markovia.errors import InvalidArgument, MarkoviaError
from markovia.studio.documents.endpoints import NotFound
from markovia.studio.documents.model_files import unpacked

SHOWN = 8
"""Rows of the preview."""
CELLS = 50_000_000
"""The most cells of a table."""
KEPT = 20
"""How many tables are remembered."""
LONG = 24
"""Columns whose cells are longer than this on average are text."""
MANY = 20
"""Whole numbers with more values than this are taken for numbers; words with five times as many for text."""


class Column(msgspec.Struct):
    """A column: "states", "number" (measurements) or "text"; its states where they are few."""

    name: str
    kind: str
    distinct: int
    missing: int
    states: list[str] = []


class Table(msgspec.Struct):
    """What the page sees of a table."""

    id: str
    name: str
    rows: int
    columns: list[Column]
    preview: list[list[Any]]


class UploadedTables:
    """The uploaded tables of a server."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="markovia-tables-")
        self._all: dict[str, tuple[Table, Path]] = {}
        self._lock = threading.Lock()

    def add(self, name: str, body: bytes) -> Table:
        """Keep a file and say what is in it.

        Parameters
        ----------
        name
            What the file is called; its ending says what it is. Files ending in `.txt` and `.md` have a document a line.
        body
            The file; with `.gz` behind its ending it is unpacked, up to the limit that models have.
        """
        ending = _ending(name)
        if name.casefold().endswith(".gz"):
            body = unpacked(body)
        path = Path(self._folder.name) / f"{token_hex(8)}{ending}"
        path.write_bytes(body)
        try:
            table = _described(path, name, ending in SUFFIXES)
        except MarkoviaError as error:
            path.unlink()
            raise InvalidArgument(str(error).replace(str(path), name)) from None
        except BaseException:
            path.unlink()
            raise
        with self._lock:
            self._all[table.id] = (table, path)
            for old in list(self._all)[:-KEPT]:
                self._all.pop(old)[1].unlink(missing_ok=True)
        return table

    def get(self, name: str) -> Table:
        """Return the description of a table."""
        return self._found(name)[0]

    def path(self, name: str) -> Path:
        """Return where a table lies."""
        return self._found(name)[1]

    def close(self) -> None:
        """Remove all tables."""
        self._folder.cleanup()

    def _found(self, name: str) -> tuple[Table, Path]:
        with self._lock:
            if name not in self._all:
                raise NotFound(f"there is no table {name!r}; upload it again")
            return self._all[name]


def _ending(name: str) -> str:
    match = re.search(r"\.(csv|tsv|parquet|pq|txt|text|md)$", name.casefold().removesuffix(".gz"))
    if match is None:
        packed = names_data(name)
        cure = "unpack it first" if packed else "tables end in .csv, .tsv and .parquet, texts in .txt and .md"
        raise InvalidArgument(f"{name!r} cannot be read; {cure}")
    return match[0]


def _described(path: Path, name: str, texts: bool) -> Table:
    if texts:
        return _lines(path, name)
    _check_size(path, name)
    frame = as_frame(path)
    if not len(frame.columns) or not len(frame):
        raise InvalidArgument(f"{name} has no rows")
    kinds = read_mixed(frame).kinds
    columns = [_column(str(n), kind, frame[n]) for n, kind in zip(frame.columns, kinds, strict=True)]
    shown = frame.head(SHOWN).astype(object).where(frame.head(SHOWN).notna(), None)
    preview = [[_cell(x) for x in row] for row in shown.to_numpy().tolist()]
    return Table(path.stem, name, len(frame), columns, preview)


def _column(name: str, kind: str, cells: Any) -> Column:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    distinct, missing = int(cells.nunique()), int(cells.isna().sum())
    whole = is_numeric_dtype(cells) and not is_bool_dtype(cells)
    if kind == CONTINUOUS or (whole and distinct > MANY):
        return Column(name, "number", distinct, missing)
    written = cells.dropna().astype(str)
    long = len(written) and written.str.len().mean() > LONG and distinct > SHOWN
    if long or distinct > 5 * MANY:
        return Column(name, "text", distinct, missing)
    few = sorted(written.unique())[:SHOWN] if distinct <= SHOWN else []
    return Column(name, "states", distinct, missing, few)


def _cell(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _lines(path: Path, name: str) -> Table:
    try:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{name} is no text in UTF-8: byte {error.start} is no character") from None
    if not lines:
        raise InvalidArgument(f"{name} has no lines; it holds a document a line")
    column = Column("text", "text", len(set(lines)), 0)
    return Table(path.stem, name, len(lines), [column], [[line] for line in lines[:SHOWN]])


def _check_size(path: Path, name: str) -> None:
    """Refuse a Parquet file that is far larger unpacked than on disk, before it is."""
    if path.suffix not in (".parquet", ".pq"):
        return
    import duckdb

    from markovia.data.tables.data_files import open_rows, unreadable

    try:
        relation = open_rows(path).relation
        cells = relation.count("*").fetchall()[0][0] * len(relation.columns)
    except duckdb.Error as error:
        raise unreadable(repr(name), error) from error
    if cells > CELLS:
        raise InvalidArgument(f"{name} has {cells:,} cells; the studio takes up to {CELLS:,}")
