"""`markovia compile`: compile beforehand, so that no first use waits."""

from typing import Annotated

from markovia.cli.terminal import options
from markovia.cli.terminal.options import argument, command, option
from markovia.cli.terminal.output import print_json, say


@command("markovia compile", "markovia compile loopy-bp gibbs", name="compile")
def compile_names(
    names: Annotated[
        list[str] | None, argument("[NAME]...", "Engines and learners; everything by default.")
    ] = None,
    jobs: Annotated[
        int | None, option("--jobs -j", "Processes; as many as processors by default.", min=1)
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
