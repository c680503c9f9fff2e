"""`markovia convert`: from one file format to another."""

import sys
from pathlib import Path
from typing import Annotated, Any

from markovia.cli.terminal import options
from markovia.cli.terminal.loading import (
    STREAM,
    FileError,
    complete_format,
    complete_model,
    in_words_of_the_command_line,
    open_anything,
    without_table,
    writing,
)
from markovia.cli.terminal.options import argument, command, option
from markovia.cli.terminal.output import heading, print_json, say
from markovia.errors import InvalidArgument, UnknownFormat, UnsupportedModel


@command(
    "markovia convert asia.bif asia.xdsl",
    "markovia convert asia asia.json.gz",
    "markovia convert network.txt network.uai --from bif",
    "curl -s example.org/asia.bif | markovia convert - - --from bif --to json | jq .",
)
def convert(
    source: Annotated[
        str,
        argument(
            "IN",
            "A model file, a bundled name such as asia, or - for standard input.",
            complete=complete_model,
        ),
    ],
    target: Annotated[str, argument("OUT", "The file to write, or - for standard output.")],
    read_as: Annotated[
        str | None,
        option("--from FMT", "Read in this format, whatever the suffix.", complete=complete_format),
    ] = None,
    write_as: Annotated[
        str | None, option("--to FMT", "Write in this format, whatever the suffix.", complete=complete_format)
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Read a model in one format and write it in another; suffixes say which."""
    if target == STREAM:
        _check_stream(write_as, as_json)
    model = open_anything(source, read_as, "--from")
    try:
        with writing(target):
            size = write_model(model, target, write_as)
    except UnknownFormat as error:
        raise in_words_of_the_command_line(error, "--to") from error
    except UnsupportedModel as error:
        if "table" in str(error) and without_table(model):
            raise FileError(
                f"{source!r}: this file holds only a structure, without tables, and the format of the output "
                "needs them; .json keeps a structure"
            ) from error
        raise
    if target == STREAM:
        return
    if as_json:
        print_json(
            {
                **heading(source, model),
                "output": target,
                "kind": type(model).__name__,
                "variables": len(getattr(model, "variables", model)),
                "bytes": size,
            }
        )
    else:
        say(written(model, target, size))


def _check_stream(write_as: str | None, as_json: bool) -> None:
    if as_json:
        raise InvalidArgument(
            "--json and the model cannot both go to standard output; name a file for the model"
        )
    if write_as is None:
        raise FileError("standard output has no suffix; say the format with --to, for example --to bif")
    if write_as.casefold().endswith(".gz"):
        raise FileError("standard output gets plain text; put `| gzip` behind markovia")


def written(model: Any, target: str, size: int) -> str:
    """Say what was written, for `convert`, `learn` and `fit` alike.

    Examples
    --------
    >>> from markovia.graphs.kinds.directed import DAG
    >>> written(DAG([("a", "b")]), "graph.dagitty", 25)
    'wrote DAG with 2 nodes to graph.dagitty (25 bytes)'
    """
    parts = "nodes" if hasattr(model, "nodes") else "variables"
    n = len(model.nodes if parts == "nodes" else model.variables)
    return f"wrote {type(model).__name__} with {n:,} {parts} to {target} ({size:,} bytes)"


def write_model(model: Any, target: str, write_as: str | None) -> int:
    """Write a model to a file, or to standard output in a given format, and return the number of bytes."""
    from markovia import io

    if target != STREAM:
        io.save(model, target, format=write_as)
        return Path(target).stat().st_size
    assert write_as is not None
    try:
        data = io.dumps(model, write_as).encode("utf-8")
    except UnicodeEncodeError:
        raise FileError(
            "a name or state holds half a character (a lone surrogate), which no file can"
        ) from None
    # bytes, because a file is UTF-8 whatever the terminal speaks
    sys.stdout.buffer.write(data)
    return len(data)
