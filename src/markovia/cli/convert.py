"""`markovia convert`: from one file format to another."""

from pathlib import Path
from typing import Annotated

import typer

from markovia.cli import options
from markovia.cli.loading import FileError, complete_format, complete_model, open_anything
from markovia.cli.output import print_json, say


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command(
        epilog=options.examples(
            "markovia convert asia.bif asia.xdsl",
            "markovia convert asia asia.json.gz",
            "markovia convert network.txt network.uai --from bif",
        )
    )(convert)


def convert(
    source: Annotated[
        str,
        typer.Argument(
            metavar="IN", help="A model file, or a bundled name such as asia.", autocompletion=complete_model
        ),
    ],
    target: Annotated[str, typer.Argument(metavar="OUT", help="The file to write.")],
    read_as: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FMT",
            help="Read in this format, whatever the suffix.",
            autocompletion=complete_format,
            show_default=False,
        ),
    ] = None,
    write_as: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="FMT",
            help="Write in this format, whatever the suffix.",
            autocompletion=complete_format,
            show_default=False,
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Read a model in one format and write it in another; suffixes say which."""
    from markovia import io

    model = open_anything(source, read_as)
    try:
        io.save(model, target, format=write_as)
    except OSError as error:
        raise FileError.writing(target, error) from error
    size = Path(target).stat().st_size
    if as_json:
        print_json(
            {
                "input": source,
                "output": target,
                "kind": type(model).__name__,
                "name": getattr(model, "name", ""),
                "variables": len(model),
                "bytes": size,
            }
        )
    else:
        say(f"wrote {type(model).__name__} with {len(model):,} variables to {target} ({size:,} bytes)")
