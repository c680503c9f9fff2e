"""How commands are declared, and the arguments and options that several share, so that a word means the same in each."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar, cast, get_args

import typer

from markovia.cli.terminal.loading import (
    complete_assignment,
    complete_engine,
    complete_format,
    complete_model,
)
from markovia.errors import InvalidArgument, did_you_mean
from markovia.runtime import devices

_Function = TypeVar("_Function", bound=Callable[..., None])

DECLARED: dict[str, list[tuple[Callable[..., None], str | None, str]]] = {}
"""The commands of each module: the function, its name where that is another one, and what ends its help."""


def command(
    *examples: str, name: str | None = None, notes: Sequence[str] = ()
) -> Callable[[_Function], _Function]:
    """Declare a function as a command, with example lines and notes that end its help."""

    def declare(function: _Function) -> _Function:
        ending = "\n\n".join(["Examples:", *examples, *notes])
        DECLARED.setdefault(function.__module__, []).append((function, name, ending))
        return function

    return declare


def option(usage: str, help: str, complete: Callable[..., list[str]] | None = None, **settings: Any) -> Any:  # noqa: A002
    """Declare an option the way its help shows it: its names, then what stands for its value.

    Examples
    --------
    >>> option("--output -o FILE", "Where the rows go.").metavar
    'FILE'
    """
    words = usage.split()
    names = [word for word in words if word.startswith("-")]
    metavar = " ".join(words[len(names) :]) or None
    return typer.Option(*names, metavar=metavar, help=help, autocompletion=complete, **settings)


def argument(metavar: str | None, help: str, complete: Callable[..., list[str]] | None = None) -> Any:  # noqa: A002
    """Declare an argument by what stands for it in the help, or by its own name."""
    return typer.Argument(metavar=metavar, help=help, autocompletion=complete, show_default=False)


_MODEL = argument(
    "MODEL",
    "A model file, a bundled name such as asia, or - for standard input.",
    complete=complete_model,
)
Model = Annotated[str, _MODEL]
ModelOrNone = Annotated[str | None, _MODEL]
Format = Annotated[
    str | None,
    option(
        "--format -f FMT",
        "Read the file in this format, whatever its suffix; see `markovia formats`.",
        complete=complete_format,
    ),
]
Data = Annotated[
    str,
    argument(
        "DATA",
        "A data file: .csv, .tsv or .parquet, also .csv.gz, or - for standard input; columns are found by name.",
    ),
]
Rows = Annotated[
    str | None, option("--output -o FILE", "Write to a file instead of the screen; - is the screen.")
]
Json = Annotated[bool, option("--json", "Print one JSON document for scripts.")]
Given = Annotated[
    list[str] | None,
    option(
        "--given -g VAR=STATE",
        "Evidence: a variable was seen in a state. Repeat it, or separate several by commas.",
        complete=complete_assignment,
    ),
]
Soft = Annotated[
    list[str] | None,
    option(
        "--soft VAR=L1,L2,..", "Uncertain evidence: a likelihood for each state, in the order of the states."
    ),
]
RuledOut = Annotated[
    list[str] | None,
    option("--not VAR=STATE", "Evidence: a variable is not in a state.", complete=complete_assignment),
]
Do = Annotated[
    list[str] | None,
    option(
        "--do VAR=STATE",
        "Set a variable from outside, which cuts it off from its causes.",
        complete=complete_assignment,
    ),
]
Engine = Annotated[
    str, option("--engine -e NAME", "Who computes; see `markovia engines`.", complete=complete_engine)
]
TimeLimit = Annotated[
    float | None,
    option("--time-limit SECONDS", "How long an answer may take, about; for auto and approximate engines."),
]
Device = Annotated[
    str | None,
    option(
        "--device cpu|gpu",
        "Where it is computed: gpu asks for the GPU, cpu never takes it; by default the engine chooses.",
        complete=lambda incomplete: [d for d in get_args(devices.Device) if d.startswith(incomplete)],
    ),
]
Seed = Annotated[
    int | None, option("--seed -s INT", "The same seed draws the same rows.", min=0, show_default=False)
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


def device(name: str | None) -> devices.Device | None:
    """Return a device, or refuse a word that is none.

    Examples
    --------
    >>> device("gpu")
    'gpu'
    """
    known = get_args(devices.Device)
    if name is not None and name not in known:
        raise InvalidArgument(f"--device is cpu or gpu, not {name!r}{did_you_mean(name, known)}")
    return cast("devices.Device | None", name)
