"""Rows that commands write as CSV, block by block, to a file or to standard output.

The first block is made before the file is opened, so that bad input leaves no empty file behind; where a later block
fails, what was written so far is taken away.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markovia.cli.loading import STREAM, FileError
from markovia.errors import InvalidArgument, MarkoviaError

if TYPE_CHECKING:
    import pandas as pd


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
        with open(output, "w", encoding="utf-8", newline="") as file:
            return _write(file, blocks, first)
    except OSError as error:
        raise FileError.writing(output, error) from error
    except MarkoviaError:
        if Path(output).is_file():
            Path(output).unlink()
        raise


def records(blocks: "Iterator[pd.DataFrame]") -> list[dict[Any, Any]]:
    """Return all rows as mappings, for a JSON document."""
    return [row for block in blocks for row in block.to_dict("records")]


def _write(file: Any, blocks: "Iterator[pd.DataFrame]", block: "pd.DataFrame | None") -> int:
    n, header = 0, True
    while block is not None:
        block.to_csv(file, index=False, header=header, lineterminator="\n")
        n, header = n + len(block), False
        block = next(blocks, None)
    return n
