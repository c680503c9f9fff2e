"""The DATA of a command: a file by its name, or standard input, which is kept in a file until the program ends."""

import atexit
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from markovia.cli.loading import STREAM, FileError

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
