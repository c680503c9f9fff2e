"""Models with large arrays in one file: a zip of `model.json`, the native format, and a `.npy` file for each array.

In the text `{"npy member": "arrays/3.npy"}` stands for an array. Nothing is pickled. Members of other names, members that
would fill the memory, and arrays whose headers promise other sizes than they have, are refused before they are read.
"""

import io
import re
import zipfile
import zlib
from math import prod
from typing import Any, NoReturn

import numpy as np

from markovia.errors import ParseError
from markovia.io.encoding import decoded
from markovia.io.native.json_paths import JsonNode, parse_json
from markovia.io.native.native_estimators import Nested
from markovia.io.native.native_json import native_root, read_root, text_of
from markovia.runtime.source_text import shown

MEMBER = "npy member"
_NAME = re.compile(r"arrays/\d{1,9}\.npy")
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
"""The time of all members: the same model is the same bytes."""


def write_mkz(model: Any) -> bytes:
    """Return a model as the bytes of a zip file."""
    arrays: list[Any] = []

    def apart(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            arrays.append(value)
            return {MEMBER: f"arrays/{len(arrays) - 1}.npy"}
        if isinstance(value, Nested):
            return apart(value.root)
        if isinstance(value, dict):
            return {k: apart(v) for k, v in value.items()}
        return [apart(v) for v in value] if isinstance(value, list | tuple) else value

    text = text_of(apart(native_root(model)))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr(zipfile.ZipInfo("model.json", _LONG_AGO), text, zipfile.ZIP_DEFLATED)
        for k, array in enumerate(arrays):
            member = io.BytesIO()
            np.lib.format.write_array(
                member, np.ascontiguousarray(array).reshape(array.shape), allow_pickle=False
            )
            file.writestr(zipfile.ZipInfo(f"arrays/{k}.npy", _LONG_AGO), member.getvalue())
    return packed.getvalue()


def read_mkz(data: bytes | bytearray, source: str | None, most: int) -> Any:
    """Return the model of a zip file, whose members together have at most so many bytes."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            members = file.infolist()
            names = [m.filename for m in members]
            for name in names:
                if (name != "model.json" and _NAME.fullmatch(name) is None) or names.count(name) > 1:
                    _fail(
                        f"expected model.json and arrays/0.npy and so on, each once, found {shown(name)}",
                        source,
                    )
            if "model.json" not in names:
                _fail("expected a member model.json", source)
            if sum(m.file_size for m in members) > most:
                _fail(f"expected at most {most:,} bytes when unpacked", source)
            contents = {name: file.read(name) for name in names}
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        OSError,
        ValueError,
    ) as error:
        if isinstance(error, ParseError):
            raise
        _fail(f"expected a complete zip file: {error}", source)
    root = parse_json(decoded(contents.pop("model.json"), source), source)

    def whole(node: JsonNode) -> Any:
        if isinstance(node.value, list):
            return [whole(v) for v in node.items()] if _holds_objects(node.value) else node.value
        if not isinstance(node.value, dict):
            return node.value
        if node.value.keys() == {MEMBER}:
            name = node.get(MEMBER).text()
            if name not in contents:
                node.fail(f"expected a member of the zip file, and there is no {shown(name)}")
            return _array(contents[name], name, source)
        return {k: whole(v) for k, v in node.fields()}

    return read_root(JsonNode(whole(root), (), root.source))


def _holds_objects(values: list[Any]) -> bool:
    return bool(values) and any(isinstance(v, list | dict) for v in values)


def _array(data: bytes, name: str, source: str | None) -> Any:
    """Return the array of a member, whose header is looked at first."""
    stream = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(stream)
        reader = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, _, kind = reader(stream)
        if kind.kind not in "biuf" or prod(shape) * kind.itemsize != len(data) - stream.tell():
            _fail(f"expected {name} to hold as many numbers as its header says", source)
        stream.seek(0)
        return np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, EOFError, TypeError, SyntaxError) as error:
        if isinstance(error, ParseError):
            raise
        _fail(f"expected {name} to be an array of NumPy: {error}", source)


def _fail(message: str, source: str | None) -> NoReturn:
    raise ParseError(message, file=source)
