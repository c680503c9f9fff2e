"""From a word on the command line to a model: a file of any supported format, or a bundled name."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from markovia.errors import InvalidArgument, ParseError, UnknownFormat, UnsupportedModel, did_you_mean

if TYPE_CHECKING:
    from markovia.factors.tables.variable import State
    from markovia.models.graphical.model import Model

STREAM = "-"
"""The word for standard input or output in place of a file; `./-` is a file of that name."""


class FileError(Exception):
    """A MODEL that is neither a file nor a bundled name, or a file that cannot be read or written."""


def save_picture(thing: Any, path: str) -> None:
    """Draw what has a method `plot` into a file."""
    import matplotlib

    matplotlib.use("agg")
    axes = thing.plot()
    try:
        with writing(path):
            axes.figure.figure.savefig(path, bbox_inches="tight", dpi=150)
    except ValueError as error:
        raise InvalidArgument(f"--plot writes .png, .svg or .pdf, not {path!r}") from error


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Say which file could not be written, and why, where the block around the writing fails."""
    try:
        yield
    except OSError as error:
        raise FileError(f"cannot write {path!r}: {(error.strerror or str(error)).lower()}") from error


def open_model(word: str, format: str | None = None) -> "Model":  # noqa: A002
    """Load the file, or build the bundled model, that a word names; a file wins over a bundled name.

    A file that holds only a directed acyclic graph becomes a network without tables.

    Parameters
    ----------
    word
        A path, a bundled name such as `asia` or `monty-hall`, or `-` for standard input.
    format
        How to read a file whose suffix does not say it.

    Raises
    ------
    FileError
        If there is neither; the message has the nearest bundled name.
    UnsupportedModel
        If the file holds a graph with other than directed edges.

    Examples
    --------
    >>> open_model("monty-hall").variables
    ['car', 'choice', 'opened']
    """
    from markovia.graphs.kinds.directed import DAG
    from markovia.graphs.kinds.mixed import MixedGraph
    from markovia.models.graphical.bayesian_network import BayesianNetwork
    from markovia.models.graphical.model import Model
    from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork

    found = open_anything(word, format)
    if isinstance(found, Model):
        return found
    if isinstance(found, MixedGraph) and len(found.directed_edges()) == found.n_edges:
        found = found.to_dag()
    if isinstance(found, DAG):
        return BayesianNetwork(found)
    if isinstance(found, DynamicBayesianNetwork):
        raise UnsupportedModel(
            f"{word!r} holds a DynamicBayesianNetwork; commands take what its unroll(steps) returns in Python"
        )
    raise UnsupportedModel(
        f"{word!r} holds a {type(found).__name__} with edges that are not directed; "
        "only `markovia convert` takes such graphs"
    )


def open_anything(word: str, format: str | None = None, option: str = "--format") -> Any:  # noqa: A002
    """Load what a word names, a model or a graph, as it is; `option` is where the user says the format."""
    if not word:
        raise FileError("the name of the model is empty; give a file or a bundled name such as asia")
    if word == STREAM:
        return _from_standard_input(format, option)
    path = Path(word)
    if format is not None or (path.exists() and not path.is_dir()):
        from markovia import io

        try:
            return io.load(path, format=format)
        except UnknownFormat as error:
            raise in_words_of_the_command_line(error, option) from error
    if path.suffix or len(path.parts) > 1:
        raise FileError(
            f"{word!r} is a directory, not a model"
            if path.is_dir()
            else f"there is no file {word!r}{did_you_mean(word, _neighbours(path))}"
        )
    from markovia.models.gallery.bundled import bundled_model

    try:
        return bundled_model(word)
    except UnknownFormat as error:
        if path.is_dir():
            raise FileError(f"{word!r} is a directory, not a model") from None
        raise FileError(str(error).replace("mk.examples.names()", "`markovia examples`")) from None


def require_tables(model: "Model", word: str) -> None:
    """Refuse a network without numbers before it is asked for numbers.

    Raises
    ------
    FileError
        If a variable has no table.
    """
    missing = without_table(model)
    if missing and len(missing) == len(model):
        raise FileError(
            f"{word!r}: this file holds only a structure, without tables; "
            "`markovia info`, `independent` and `convert` do without"
        )
    if missing:
        shown = ", ".join(map(repr, missing[:4])) + (", ..." if len(missing) > 4 else "")
        raise FileError(f"{word!r}: {len(missing)} of {len(model)} variables have no table: {shown}")


def without_table(model: Any) -> list[str]:
    """List the variables of a network that have no table."""
    from markovia.models.graphical.bayesian_network import BayesianNetwork

    return (
        [name for name in model.variables if not model.has_table(name)]
        if isinstance(model, BayesianNetwork)
        else []
    )


def states_of(model: "Model", name: str) -> "list[State]":
    """Return the states of a variable, none for a number or a utility."""
    from markovia.factors.quantities.quantity import Quantity

    return [] if isinstance(model.variable(name), Quantity) else model.states(name)


def in_words_of_the_command_line(error: UnknownFormat, option: str) -> FileError:
    """Name the option of the command line where the library names its argument."""
    return FileError(str(error).replace("format=", option))


def complete_model(incomplete: str) -> list[str]:
    """Complete a MODEL: bundled names, then files and folders."""
    from markovia.models.gallery.bundled import bundled_names

    return [name for name in bundled_names() if name.startswith(incomplete)] + _paths(incomplete)


def complete_variable(context: typer.Context, incomplete: str) -> list[str]:
    """Complete a variable's name, once the model is on the line."""
    model = _model_on_the_line(context)
    return [] if model is None else [name for name in model.variables if name.startswith(incomplete)]


def complete_assignment(context: typer.Context, incomplete: str) -> list[str]:
    """Complete `variable=state`."""
    model = _model_on_the_line(context)
    if model is None:
        return []
    pairs = (f"{name}={state}" for name in model.variables for state in states_of(model, name))
    return [pair for pair in pairs if pair.startswith(incomplete)]


def complete_format(incomplete: str) -> list[str]:
    """Complete the name of a file format."""
    from markovia import io

    return [name for name in io.formats() if name.startswith(incomplete)]


def complete_engine(incomplete: str) -> list[str]:
    """Complete the name of an engine."""
    from markovia.inference.engine import engine_names

    return [name for name in engine_names() if name.startswith(incomplete)]


def _from_standard_input(format: str | None, option: str) -> Any:  # noqa: A002
    from markovia import io
    from markovia.io.registry import MAX_BYTES

    if format is not None and format.casefold().endswith(".gz"):
        raise FileError("standard input is read as plain text; put `gunzip |` before markovia")
    if sys.stdin is None:
        raise FileError("there is no standard input to read from")
    data = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ParseError(f"expected at most {MAX_BYTES:,} bytes of text", file="<stdin>")
    if format is None and not data.strip():
        raise FileError("standard input is empty; it should hold a model")
    if format is None and data.startswith(b"\x1f\x8b"):
        raise FileError("standard input is compressed; put `gunzip |` before markovia")
    try:
        return io.loads(data, format, "<stdin>")
    except UnknownFormat as error:
        raise in_words_of_the_command_line(error, option) from error


def _model_on_the_line(context: typer.Context) -> "Model | None":
    # while an option still lacks its value the parser leaves every word unassigned, and the model comes first
    word = context.params.get("model") or next(iter(context.args), None)
    if word == STREAM:
        return None
    try:
        return open_model(word) if isinstance(word, str) else None
    except Exception:
        # a shell that asks for completions must never see a traceback
        return None


def _paths(incomplete: str) -> list[str]:
    folder, _, stem = incomplete.rpartition("/")
    try:
        found = sorted(Path(f"{folder}/" if "/" in incomplete else ".").iterdir())
    except OSError:
        return []
    start = f"{folder}/" if "/" in incomplete else ""
    return [
        f"{start}{path.name}{'/' if path.is_dir() else ''}"
        for path in found
        if path.name.startswith(stem) and (stem.startswith(".") or not path.name.startswith("."))
    ]


def _neighbours(path: Path) -> list[str]:
    """List the files next to a path, written as the path was."""
    try:
        return [str(path.parent / other.name) for other in path.parent.iterdir() if other.is_file()]
    except OSError:
        return []
