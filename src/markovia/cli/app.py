"""The Typer application: which commands there are, and how any of them ends."""

import os
import re
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from markovia import __version__
from markovia.cli.terminal.completion import complete_whole_words, completing_bash
from markovia.cli.terminal.loading import FileError
from markovia.cli.terminal.options import DECLARED, option
from markovia.errors import MarkoviaError, TooLarge

COMMANDS = (
    "info", "query", "explain", "sample", "independent", "identify", "effect", "learn", "fit", "hmm", "cluster", "topics",
    "gp", "decide", "score", "predict", "compare", "compiling", "convert", "listing", "demo", "studio", "report",
)  # fmt: skip
"""The modules of the commands, in the order of the help."""
_registered: set[str] = set()

# Typer carries its own copy of Click in some versions and imports Click in others
_UsageError: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


class Commands(TyperGroup):
    """The group of all commands; turns what goes wrong into an exit code and one sentence."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command to the last byte of its output; a reader that has gone away is no error."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # what is still buffered would fail again when the interpreter shuts down
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        return result

    def main(self, *args: Any, **options: Any) -> Any:
        """Run and exit: 0 fine, 2 bad input, 130 interrupted; anything else keeps its traceback."""
        options["standalone_mode"] = False
        _survive_closed_streams()
        _survive_narrow_encodings()
        if completing_bash(os.environ):
            complete_whole_words(lambda: super(Commands, self).main(*args, **options))
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            try:
                code = super().main(*args, **options)
            except _UsageError as error:
                _fail(error.format_message())
            except TooLarge as error:
                # the rest of the sentence is for those who build an engine in Python
                _fail(str(error).partition(", or raise ")[0])
            except (MarkoviaError, FileError) as error:
                _fail(_as_options(str(error)))
            except OSError as error:
                _fail(_about_file(error))
        sys.exit(code if isinstance(code, int) else 0)


_app = typer.Typer(
    cls=Commands,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@_app.callback(
    invoke_without_command=True,
    epilog="MODEL is a file of any supported format (`markovia formats`), a bundled name (`markovia examples`), "
    "or - for standard input."
    "\n\nEvery command that prints takes --json and then prints one JSON document."
    "\n\nStart with: markovia demo",
)
def markovia(
    context: typer.Context,
    version: Annotated[bool, option("--version -V", "Print the version and exit.")] = False,
) -> None:
    """Probabilistic graphical models on the command line: state the graph once, ask anything."""
    if version:
        typer.echo(f"markovia {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def register(names: Sequence[str] = COMMANDS) -> typer.Typer:
    """Add the commands of some modules, which are imported now, and return the application."""
    for name in names:
        if name not in _registered:
            module = import_module(f"markovia.cli.{name}")
            target = _app
            if hasattr(module, "GROUP"):  # commands under a word of their own
                target = typer.Typer(no_args_is_help=True, help=module.GROUP)
                _app.add_typer(target, name=name)
            for function, own_name, ending in DECLARED[module.__name__]:
                target.command(own_name, epilog=ending)(function)
            _registered.add(name)
    return _app


def __getattr__(name: str) -> Any:
    """Return `app`, complete."""
    if name == "app":
        return register()
    raise AttributeError(name)


def _fail(sentence: str) -> None:
    typer.echo(f"markovia: {' '.join(sentence.splitlines())}", err=True)
    sys.exit(2)


def _as_options(sentence: str) -> str:
    """Say advice in the words of the command line: `engine='gibbs'` is `--engine gibbs` there."""
    said = re.sub(r"\b(engine|missing|method|memory)='([\w-]+)'", r"--\1 \2", sentence).replace(
        "targets=[...]", "--targets"
    )
    said = said.replace(
        "say symbols=", "make the column all text or all numbers"
    )  # no option: the data say them
    said = re.sub(r"\bnames=(?=[ ,;]|$)", "--columns", said)
    said = re.sub(r"\b(score|test|alpha|missing|weights|continuous|format|device)=(?=[ ,;]|$)", r"--\1", said)
    return re.sub(r"\blatent=\['([^']+)'\]", r"--latent \1", said)


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.echo(f"markovia: warning: {' '.join(str(message).splitlines())}", err=True)


def _about_file(error: OSError) -> str:
    reason = (error.strerror or str(error) or type(error).__name__).lower()
    return f"{error.filename!r}: {reason}" if error.filename is not None else reason


def _survive_closed_streams() -> None:
    """Let a program whose caller closed its output (`>&-`) run to the end without a word."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 -- open as long as the program runs
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _survive_narrow_encodings() -> None:
    """Let a name that the terminal cannot show come out escaped instead of ending the program."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
