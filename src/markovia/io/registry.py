"""The formats markovia reads and writes, and the doors to them: `load`, `save`, `loads`, `dumps`.

The suffix of a file decides its format (`.bif`, `.xmlbif`, ..., each also with `.gz` behind it) unless `format=`
does. A format is one module with `read_<format>(text, source)` and `write_<format>(model)`; its line in `_TABLE`
below is all there is to registering it. The module is imported when the format is first used.

Loading either returns a complete model or raises and leaves nothing behind. Saving writes a temporary file in
the same folder and renames it, so a failed save leaves the old file as it was; a pipe or a device is written to
as it stands. `markovia.io.encoding` says how bytes become text. Files over `MAX_BYTES`, compressed or not, are
refused before they fill the memory.
"""

import gzip
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from markovia.errors import (
    InvalidArgument,
    MarkoviaError,
    ParseError,
    UnknownFormat,
    UnsupportedModel,
    did_you_mean,
    warn_user,
)
from markovia.io.content import format_of
from markovia.io.encoding import check_text, decoded
from markovia.models.gallery.bundled import bundled_model
from markovia.runtime.registry import resolve
from markovia.runtime.whole_files import write_whole

if TYPE_CHECKING:
    from markovia.models.graphical.model import Model

Kind = TypeVar("Kind")
MAX_BYTES = 2**30
_CHUNK = 2**20


@dataclass(frozen=True)
class Format:
    """A file format: its name, what it is, its suffixes, and where its reader and writer live."""

    name: str
    title: str
    suffixes: tuple[str, ...]
    reader: str
    writer: str
    xml: bool = False
    """Whether a file may declare its own encoding."""

    def read(self, text: str, source: str | None = None) -> Any:
        """Read a model from text."""
        try:
            return resolve(self.reader)(text, source)
        except MarkoviaError:
            raise
        except (MemoryError, RecursionError):
            raise ParseError("expected a model that fits into memory", file=source) from None

    def write(self, model: Any) -> str:
        """Write a model as text; warn where the format cannot say that the model is one member of a class of graphs."""
        if self.name not in KEEP_CLASSES and getattr(model, "equivalence_class", None) is not None:
            warn_user(
                f"{self.name} keeps only one graph of the class that was learned, with a direction for every edge; "
                "json keeps the class"
            )
        if self.name != "json" and getattr(model, "_potentials", None):
            raise UnsupportedModel(
                f"{self.name} files hold no potentials; save it as .json, which holds every model"
            )
        if self.name in NO_DECISIONS and hasattr(model, "utilities"):
            resolve("markovia.io.decision_nodes:refuse_decisions")(model, f"{self.name} files")
        if self.name in TABLES_ONLY and getattr(model, "has_quantities", False):
            # here, because it loads numpy, which a list of formats does without
            from markovia.factors.quantities.quantity import Quantity

            number = next(n for n in model.variables if isinstance(model.variable(n), Quantity))
            raise UnsupportedModel(
                f"{self.name} files hold tables of states, and {number!r} is a number; save it as .json, which "
                "holds every model"
            )
        if self.name in TABLES_ONLY and hasattr(model, "utilities"):
            resolve("markovia.io.decision_nodes:check_nodes")(model, self.name)
        text: str = resolve(self.writer)(model)
        return text


def _format(name: str, title: str, *suffixes: str, module: str | None = None, xml: bool = False) -> Format:
    home = f"markovia.io.{module or name}"
    return Format(name, title, suffixes, f"{home}:read_{name}", f"{home}:write_{name}", xml)


KEEP_CLASSES = ("json", "dagitty", "lavaan")
"""Formats that keep, or refuse, edges without a direction."""
NO_DECISIONS = ("bif", "uai", "dsc", "dagitty", "lavaan")
"""Formats that do not say what is chosen and what that is worth."""
TABLES_ONLY = ("bif", "xmlbif", "uai", "net", "xdsl", "dne", "dsc")
"""Formats that hold nothing but tables of states."""
_TABLE = (
    _format("bif", "Interchange Format for Bayesian Networks", ".bif"),
    _format("xmlbif", "Interchange Format in XML", ".xmlbif", ".bifxml", ".xml", xml=True),
    _format("uai", "UAI inference competition", ".uai"),
    _format("net", "Hugin", ".net", ".hugin"),
    _format("xdsl", "GeNIe", ".xdsl", xml=True),
    _format("dne", "Netica", ".dne"),
    _format("dsc", "Microsoft Belief Networks", ".dsc"),
    _format("dagitty", "dagitty graph", ".dagitty"),
    _format("lavaan", "lavaan model syntax", ".lavaan"),
    _format("pomdp", "partially observed decision process", ".pomdp", module="pomdp_file"),
    _format("json", "markovia's own, complete", ".json", module="native.native_json"),
)
MKZ = _format("mkz", "markovia's own, arrays beside the text", ".mkz", module="native.mkz")
"""The one format that is no text, so that `loads` and `dumps` do without it: a zip of the native format and arrays."""
_BY_NAME = {f.name: f for f in _TABLE}
_BY_SUFFIX = {suffix: f for f in _TABLE for suffix in f.suffixes}


@overload
def load(
    path: str | os.PathLike[str], format: str | None = None, *, parts: Mapping[str, Any] | None = None
) -> "Model": ...


@overload
def load(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    kind: type[Kind],
    parts: Mapping[str, Any] | None = None,
) -> Kind: ...


def load(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002
    *,
    kind: type[Any] | None = None,
    parts: Mapping[str, Any] | None = None,
) -> Any:
    """Read a model (or a graph, or a posterior) from a file, or build a bundled model.

    Parameters
    ----------
    path
        The file; `.gz` behind the suffix means it is compressed. A name such as `"asia"` or `"monty-hall"` that is no
        file is a bundled model (`mk.examples.names()`).
    format
        The format's name where the suffix does not say it; see `formats()`.
    kind
        What the file is to hold, such as `mk.BayesianNetwork` or `mk.graphs.DAG`: another kind is an error, and type
        checkers know what comes back.
    parts
        Modules by the names of their parameters, for those of a class of one's own: a file holds their numbers only.

    Returns
    -------
    model
        What the file holds: a `BayesianNetwork`, a `MarkovNetwork`, ..., or a graph.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    UnknownFormat
        If neither the suffix nor `format=` names a format, or a name is neither a file nor a bundled model.
    ParseError
        If the file is malformed; with file, line, column and what was expected.
    InvalidArgument
        If the file holds another kind of thing than `kind`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name) / "tiny.uai"
    >>> _ = file.write_text("MARKOV 1  2  1  1 0  2  3 5")
    >>> load(file)
    MarkovNetwork(1 variables, 1 factors)
    >>> folder.cleanup()
    >>> load("asia")
    BayesianNetwork('asia', 8 variables, 8 edges, 18 parameters)
    """
    if isinstance(path, str) and format is None and path == Path(path).stem and not _is_there(path):
        found: Any = bundled_model(path)
    else:
        path = _file_path(path)
        chosen, compressed = _chosen(path, format)
        if path.is_dir():
            raise InvalidArgument(f"{path} is a folder; name a file in it to load")
        found = _read(chosen, _bytes_of(path, compressed), str(path), parts)
    if kind is not None and not isinstance(found, kind):
        raise InvalidArgument(f"{path} holds a {type(found).__name__}, not a {kind.__name__}")
    return found


def _read(chosen: Format, contents: bytearray, source: str, parts: Mapping[str, Any] | None) -> Any:
    """Return what the bytes of a file hold."""

    def found() -> Any:
        if chosen is MKZ:
            return resolve(chosen.reader)(contents, source, MAX_BYTES)
        return chosen.read(decoded(contents, source, xml=chosen.xml), source)

    if not parts:
        return found()
    with resolve("markovia.io.native.native_parameters:with_parts")(parts):
        return found()


def _is_there(path: str) -> bool:
    return Path(path).exists() and not Path(path).is_dir()


def save(model: Any, path: str | os.PathLike[str], format: str | None = None) -> None:  # noqa: A002
    """Write a model (or a graph, or a posterior) to a file, all of it or nothing.

    Parameters
    ----------
    model
        What to write.
    path
        The file; an existing one is replaced, a pipe or a device is written to. With `.gz` behind the suffix
        the data is compressed.
    format
        The format's name where the suffix does not say it; see `formats()`.

    Raises
    ------
    UnknownFormat
        If neither the suffix nor `format=` names a format.
    UnsupportedModel
        If the format cannot say what the model is; the message tells which format can.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork("a->b", tables="uniform")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "model.json.gz"
    ...     save(bn, file)
    ...     load(file).allclose(bn)
    True
    """
    path = _file_path(path)
    chosen, compressed = _chosen(path, format)
    if path.is_dir():
        raise InvalidArgument(f"{path} is a folder; name the file in it to save to")
    try:
        data = resolve(chosen.writer)(model) if chosen is MKZ else chosen.write(model).encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidArgument(
            "a name or state holds half a character (a lone surrogate), which no file can"
        ) from None
    if compressed:
        data = gzip.compress(data, mtime=0)
    write_whole(path, data)


def loads(
    text: str | bytes | bytearray,
    format: str | None = None,  # noqa: A002
    source: str | None = None,
) -> Any:
    """Read a model from text.

    Parameters
    ----------
    text
        The contents of a file, as text or as bytes.
    format
        The format's name; see `formats()`. By default the one that the text begins like.
    source
        A name for messages.

    Raises
    ------
    UnknownFormat
        If there is no such format, or the text begins like none.
    ParseError
        If the text is malformed.

    Examples
    --------
    >>> loads("MARKOV 1  2  1  1 0  2  3 5", "uai")
    MarkovNetwork(1 variables, 1 factors)
    >>> loads("network n { } variable a { type discrete [ 1 ] { a0 }; } probability ( a ) { table 1; }").states("a")
    ['a0']
    """
    if not isinstance(text, str | bytes | bytearray):
        raise InvalidArgument(
            f"a model is read from text or bytes, not from {type(text).__name__}; use load() for files"
        )
    if format is None:
        begins = text[:_CHUNK].decode("utf-8", "ignore") if isinstance(text, bytes | bytearray) else text
        format = format_of(begins.removeprefix("\ufeff"))  # noqa: A001
        if format is None:
            raise UnknownFormat(f"{source or 'the text'} begins like no format; say it with format=")
    chosen = _named(format)
    if isinstance(text, bytes | bytearray):
        text = decoded(text, source, xml=chosen.xml)
    else:
        check_text(text, source)
        text = text.removeprefix("\ufeff")
    return chosen.read(text, source)


def dumps(model: Any, format: str) -> str:  # noqa: A002
    """Write a model as text.

    Raises
    ------
    UnknownFormat
        If there is no such format.
    UnsupportedModel
        If the format cannot say what the model is.

    Examples
    --------
    >>> import markovia as mk
    >>> dumps(mk.MarkovNetwork({"a": 2}, [mk.Factor(["a"], [3, 5])]), "uai").split()
    ['MARKOV', '1', '2', '1', '1', '0', '2', '3.0', '5.0']
    """
    return _named(format).write(model)


def formats() -> dict[str, Format]:
    """Return all formats by name.

    Examples
    --------
    >>> formats()["bif"].suffixes
    ('.bif',)
    >>> sorted(formats())
    ['bif', 'dagitty', 'dne', 'dsc', 'json', 'lavaan', 'net', 'pomdp', 'uai', 'xdsl', 'xmlbif']
    """
    return dict(_BY_NAME)


def _file_path(path: object) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise InvalidArgument(f"a file is named by a path, not by {type(path).__name__}")
    return Path(path)


def _named(name: object) -> Format:
    """Return a format by its name, in any case and with or without the dot of a suffix."""
    if isinstance(name, str):
        key = name.casefold().removesuffix(".gz")
        if key.removeprefix(".") == "mkz":
            raise UnknownFormat("mkz is a zip file and no text; save() writes it and load() reads it")
        found = _BY_NAME.get(key) or _BY_SUFFIX.get(key if key.startswith(".") else f".{key}")
        if found:
            return found
    raise UnknownFormat(
        f"unknown format {name!r}{did_you_mean(name, _BY_NAME)}; there are {', '.join(_BY_NAME)}"
    )


def _chosen(path: Path, name: str | None) -> tuple[Format, bool]:
    """Return the format of a file and whether it is compressed."""
    suffixes = [s.casefold() for s in path.suffixes]
    compressed = bool(suffixes) and suffixes[-1] == ".gz"
    if (name or "".join(suffixes[-1:])).casefold().removeprefix(".") == "mkz":
        return MKZ, False
    if name is not None:
        return _named(name), compressed or name.casefold().endswith(".gz")
    suffix = next(iter(suffixes[-2:-1] if compressed else suffixes[-1:]), "")
    if suffix not in _BY_SUFFIX:
        near = did_you_mean(suffix, _BY_SUFFIX) if suffix else ""
        raise UnknownFormat(
            f"{path.name!r}: the suffix {suffix!r} names no format{near}; the suffixes are {', '.join(_BY_SUFFIX)} "
            "(each also with .gz) and .mkz, or say format="
        )
    return _BY_SUFFIX[suffix], compressed


def _bytes_of(path: Path, compressed: bool) -> bytearray:
    """Return the contents of a file, decompressed, in pieces so that a small file cannot fill the memory."""
    contents = bytearray()
    try:
        with gzip.open(path, "rb") if compressed else open(path, "rb") as file:
            while piece := file.read(_CHUNK):
                contents += piece
                if len(contents) > MAX_BYTES:
                    raise ParseError(f"expected at most {MAX_BYTES:,} bytes of text", file=path)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ParseError(f"expected a complete gzip file: {error}", file=path) from None
    return contents
