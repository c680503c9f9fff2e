"""Rows that commands read and write: DATA by its name or from standard input, and CSV to a file or to the screen.

Standard input is kept in a file until the program ends. Rows are written block by block; the first block is made
before the file is opened, so that bad input leaves no empty file behind, and where a later block fails, what was
written so far is taken away.
"""

import atexit
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from markovia.cli.terminal.loading import STREAM, FileError, writing
from markovia.cli.terminal.output import print_json, say
from markovia.errors import InvalidArgument, MarkoviaError

if TYPE_CHECKING:
    import pandas as pd

_SUFFIXES = {b"PAR1": ".parquet", b"\x1f\x8b": ".csv.gz"}
"""What files begin with that are no plain text."""


def data_file(word: str, model: str | None = None) -> Path:
    """Return the file that DATA names; `-` is standard input, unless the model comes from there."""
    if word != STREAM:
        return Path(word)
    if model == STREAM:
        raise FileError("standard input can be the model or the data, not both; name a file for one of them")
    if sys.stdin is None:
        raise FileError("there is no standard input to read from")
    folder = TemporaryDirectory(prefix="markovia-")
    atexit.register(folder.cleanup)
    kept = Path(folder.name) / "stdin"
    with open(kept, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    with open(kept, "rb") as file:
        begins = file.read(4)
    if not begins:
        raise FileError("standard input is empty; data begin with a line of column names")
    suffix = next((s for mark, s in _SUFFIXES.items() if begins.startswith(mark)), ".csv")
    return kept.rename(kept.with_suffix(suffix))


def refuse_two_outputs(output: str | None, as_json: bool) -> None:
    """Refuse a JSON document and rows that would both go to standard output."""
    if output == STREAM and as_json:
        raise InvalidArgument(
            "--json and the rows cannot both go to standard output; leave out -o, or name a file"
        )


def names_file(output: str | None) -> bool:
    """Say whether the rows go to a file."""
    return output not in (None, STREAM)


def write_csv(blocks: "Iterator[pd.DataFrame]", output: str | None) -> int:
    """Write blocks of rows to a file, or to standard output where none is named; return the number of rows."""
    if output is None or not names_file(output):
        return _write(sys.stdout, blocks, next(blocks, None))
    first = next(blocks, None)
    try:
        with writing(output), open(output, "w", encoding="utf-8", newline="") as file:
            return _write(file, blocks, first)
    except MarkoviaError:
        if Path(output).is_file():
            Path(output).unlink()
        raise


def records(blocks: "Iterator[pd.DataFrame]") -> list[dict[Any, Any]]:
    """Return all rows as mappings, for a JSON document."""
    return [row for block in blocks for row in block.to_dict("records")]


def write_rows(
    blocks: "Iterator[pd.DataFrame]", output: str | None, document: dict[str, Any] | None, key: str, what: str
) -> None:
    """Write rows as CSV to a file or the screen; with a JSON document, print that too, or with the rows under a key."""
    if not names_file(output):
        if document is None:
            write_csv(blocks, output)
        else:
            print_json({**document, key: records(blocks)})
        return
    n = write_csv(blocks, output)
    if document is None:
        say(f"wrote {n:,} {what} to {output}")
    else:
        print_json({**document, "output": output, "rows": n})


def _write(file: Any, blocks: "Iterator[pd.DataFrame]", block: "pd.DataFrame | None") -> int:
    n, header = 0, True
    while block is not None:
        block.to_csv(file, index=False, header=header, lineterminator="\n")
        n, header = n + len(block), False
        block = next(blocks, None)
    return n
