"""Models from the contents of files that anybody may have sent: unpacked up to a limit, and nothing in them is run."""

import json
from pathlib import Path
from typing import Any

from markovia.errors import UnsupportedModel
from markovia.runtime import ports
from markovia.studio.documents.endpoints import Refused, TooBig

MAX_UNPACKED = 2**28
"""Bytes that an upload may unpack to."""


def stem(name: str) -> str:
    """Return a file's name without its suffixes."""
    return Path(name).name.removesuffix(".gz").rsplit(".", 1)[0] or "model"


def readable_suffixes() -> tuple[str, ...]:
    """Return the suffixes of all formats."""
    return tuple(s for f in ports.call("formats").values() for s in f.suffixes)


def read_model(name: str, data: bytes) -> Any:
    """Read a model from the contents of a file, by the suffix of its name or by how it begins; nothing in it is run."""
    lower = name.casefold()
    if data[:2] == b"\x1f\x8b":
        data, lower = unpacked(data), lower.removesuffix(".gz")
    suffix = next((s for s in readable_suffixes() if lower.endswith(s)), None)
    format = None if suffix is None else suffix.removeprefix(".")  # noqa: A001
    if format == "json" or (format is None and data.lstrip()[:1] == b"{"):
        refuse_functions(data)
    try:
        return ports.call("loads", data, format, name)
    except RecursionError:
        raise Refused(f"{name!r} is nested too deeply to be a model") from None


def unpacked(data: bytes) -> bytes:
    """Unpack gzip, piece by piece, up to a limit."""
    import zlib

    out, reader = bytearray(), zlib.decompressobj(wbits=31)
    piece = data
    try:
        while piece:
            if reader.eof:  # one file behind another, as cat and bgzip make them
                reader = zlib.decompressobj(wbits=31)
            out += reader.decompress(piece, 2**20)
            if len(out) > MAX_UNPACKED:
                raise TooBig(f"the file unpacks to more than {MAX_UNPACKED:,} bytes")
            piece = reader.unused_data.lstrip(b"\0") if reader.eof else reader.unconsumed_tail
    except zlib.error:
        raise Refused("the file is not a complete gzip file") from None
    if not reader.eof:
        raise Refused("the file is not a complete gzip file")
    return bytes(out)


def refuse_functions(data: bytes) -> None:
    """Refuse JSON that names Python functions: reading those would import, and so run, code."""
    try:
        todo = [json.loads(data)]
    except (ValueError, RecursionError):
        return  # the reader says what is wrong
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            home = one.get("function")
            if isinstance(home, str) and ":" in home:
                raise UnsupportedModel(
                    f"the file names the Python function {home!r}; the studio runs no code from files, load it in Python"
                )
            todo.extend(one.values())
        elif isinstance(one, list):
            todo.extend(one)
