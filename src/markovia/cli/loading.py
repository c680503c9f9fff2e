"""From a word on the command line to a model: a file of any supported format, or a bundled name."""

from pathlib import Path
from typing import Any

import typer

from markovia.errors import UnsupportedModel, did_you_mean
from markovia.graphs.directed import DAG
from markovia.graphs.mixed import MixedGraph
from markovia.models.base import GraphicalModel
from markovia.models.bayesian_network import BayesianNetwork


class FileError(Exception):
    """A MODEL that is neither a file nor a bundled name, or a file that cannot be written."""

    @classmethod
    def writing(cls, path: str, error: OSError) -> "FileError":
        """Say which file could not be written, and why."""
        return cls(f"cannot write {path!r}: {(error.strerror or str(error)).lower()}")


def open_model(word: str, format: str | None = None) -> GraphicalModel:  # noqa: A002
    """Load the file, or build the bundled model, that a word names; a file wins over a bundled name.

    A file that holds only a directed acyclic graph becomes a network without tables.

    Parameters
    ----------
    word
        A path, or a bundled name such as `asia` or `monty-hall`.
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
    found = open_anything(word, format)
    if isinstance(found, GraphicalModel):
        return found
    if isinstance(found, MixedGraph) and len(found.directed_edges()) == found.n_edges:
        found = found.to_dag()
    if isinstance(found, DAG):
        return BayesianNetwork(found)
    raise UnsupportedModel(
        f"{word!r} holds a {type(found).__name__} with edges that are not directed; "
        "only `markovia convert` takes such graphs"
    )


def open_anything(word: str, format: str | None = None) -> Any:  # noqa: A002
    """Load what a word names, a model or a graph, as it is."""
    path = Path(word)
    if format is not None or (path.exists() and not path.is_dir()):
        from markovia import io

        return io.load(path, format=format)
    from markovia.models import examples

    if word.replace("-", "_").casefold() in examples.names():
        return examples.get(word)
    if path.is_dir():
        raise FileError(f"{word!r} is a directory, not a model")
    if path.suffix or len(path.parts) > 1:
        raise FileError(f"there is no file {word!r}{did_you_mean(word, _neighbours(path))}")
    raise FileError(
        f"{word!r} is neither a file nor a bundled model{did_you_mean(word, bundled_names())}; "
        "`markovia examples` lists the bundled ones"
    )


def bundled_names() -> list[str]:
    """Return the bundled names as the command line shows them, with dashes."""
    from markovia.models import examples

    return [name.replace("_", "-") for name in examples.names()]


def complete_model(incomplete: str) -> list[str]:
    """Complete a MODEL: bundled names, then files and folders."""
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
    pairs = (f"{name}={state}" for name in model.variables for state in model.states(name))
    return [pair for pair in pairs if pair.startswith(incomplete)]


def complete_format(incomplete: str) -> list[str]:
    """Complete the name of a file format."""
    from markovia import io

    return [name for name in io.formats() if name.startswith(incomplete)]


def complete_engine(incomplete: str) -> list[str]:
    """Complete the name of an engine."""
    from markovia.inference.engine import engine_names

    return [name for name in engine_names() if name.startswith(incomplete)]


def _model_on_the_line(context: typer.Context) -> GraphicalModel | None:
    # while an option still lacks its value the parser leaves every word unassigned, and the model comes first
    word = context.params.get("model") or next(iter(context.args), None)
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
