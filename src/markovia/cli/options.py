"""The arguments and options that several commands share, so that a word means the same in each."""

from typing import Annotated

import typer

from markovia.cli.loading import complete_assignment, complete_engine, complete_format, complete_model
from markovia.errors import InvalidArgument

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A model file, a bundled name such as asia, or - for standard input.",
        autocompletion=complete_model,
        show_default=False,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FMT",
        help="Read the file in this format, whatever its suffix; see `markovia formats`.",
        autocompletion=complete_format,
        show_default=False,
    ),
]
Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A data file: .csv, .tsv or .parquet, also .csv.gz, or - for standard input; columns are found by name.",
        show_default=False,
    ),
]
Rows = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write to a file instead of the screen; - is the screen.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document for scripts.")]
Given = Annotated[
    list[str] | None,
    typer.Option(
        "--given",
        "-g",
        metavar="VAR=STATE",
        help="Evidence: a variable was seen in a state. Repeat it, or separate several by commas.",
        autocompletion=complete_assignment,
        show_default=False,
    ),
]
Soft = Annotated[
    list[str] | None,
    typer.Option(
        "--soft",
        metavar="VAR=L1,L2,..",
        help="Uncertain evidence: a likelihood for each state, in the order of the states.",
        show_default=False,
    ),
]
RuledOut = Annotated[
    list[str] | None,
    typer.Option(
        "--not",
        metavar="VAR=STATE",
        help="Evidence: a variable is not in a state.",
        autocompletion=complete_assignment,
        show_default=False,
    ),
]
Do = Annotated[
    list[str] | None,
    typer.Option(
        "--do",
        metavar="VAR=STATE",
        help="Set a variable from outside, which cuts it off from its causes.",
        autocompletion=complete_assignment,
        show_default=False,
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        "-e",
        metavar="NAME",
        help="Who computes; see `markovia engines`.",
        autocompletion=complete_engine,
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        metavar="SECONDS",
        help="How long an answer may take, about; for auto and approximate engines.",
        show_default=False,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", "-s", min=0, metavar="INT", help="The same seed draws the same rows.", show_default=False
    ),
]


def seconds(time_limit: float | None) -> float | None:
    """Return a time limit, or refuse one that is no positive number of seconds.

    Examples
    --------
    >>> seconds(2.5)
    2.5
    """
    if time_limit is not None and not time_limit > 0:
        raise InvalidArgument(f"--time-limit is a positive number of seconds, not {time_limit:g}")
    return time_limit


def examples(*lines: str) -> str:
    """Return example command lines as the text that ends a command's help."""
    return "\n\n".join(["Examples:", *lines])
