"""`markovia compile`: compile beforehand, so that no first use waits."""

from typing import Annotated

import typer

from markovia.cli import options
from markovia.cli.output import print_json, say


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("compile", epilog=options.examples("markovia compile", "markovia compile loopy-bp gibbs"))(
        compile_names
    )


def compile_names(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help="Engines and learners; everything by default.", show_default=False
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Processes; as many as processors by default.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Compile what engines and learners need, once an installation; for containers and the impatient."""
    from markovia.models import compiling

    seconds = compiling.compile(names or "all", jobs=jobs)
    if as_json:
        print_json({"seconds": seconds})
    else:
        say(
            f"compiled {', '.join(names) if names else 'everything'} in {seconds:.1f} s; later runs load it from disk"
        )
