"""What commands print: aligned tables and bars for people, one JSON document for scripts.

Rich draws on a terminal; into a pipe or a file goes plain text with neither colours nor padding, as wide as it
needs to be. Rich is loaded only by commands that print for people.
"""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from math import exp, isfinite
from typing import TYPE_CHECKING, Any

from markovia.factors.tables.evidence import Not
from markovia.factors.tables.variable import Variable
from markovia.inference.result import Info

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

PIPE_WIDTH = 100_000
"""A pipe has no edge; nothing printed into it is wrapped or cut."""


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document and nothing else; what is not a finite number becomes null.

    Examples
    --------
    >>> print_json({"p": float("-inf"), "given": {"rain": Not("no")}})
    {
      "p": null,
      "given": {
        "rain": {
          "not": [
            "no"
          ]
        }
      }
    }
    """
    print(json.dumps(_plain(document), indent=2, allow_nan=False))


def heading(word: str, model: Any) -> dict[str, str | None]:
    """Return how every JSON document about a model begins: the word that was asked for, and the model's own name."""
    return {"model": word, "name": getattr(model, "name", None) or None}


def say(*lines: "str | Text", style: str | None = None) -> None:
    """Print lines of text as they are: brackets and colons in names mean nothing special."""
    for line in lines:
        console().print(line, style=style, soft_wrap=not console().is_terminal)


def show_table(
    headers: Sequence[str],
    rows: Iterable[Sequence["str | Text"]],
    numbers: Sequence[int] = (),
    *,
    indent: int = 0,
) -> None:
    """Print rows in aligned columns under their headers; a column with nothing in it is left out.

    Parameters
    ----------
    headers
        One a column; all empty for a table without a head.
    rows
        The cells.
    numbers
        The columns to align to the right.
    indent
        Spaces to the left.
    """
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    body = list(rows)
    kept = [k for k, header in enumerate(headers) if header or any(row[k] for row in body)]
    table = Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=any(headers), header_style="bold"
    )
    for k in kept:
        table.add_column(Text(headers[k]), justify="right" if k in numbers else "left", overflow="fold")
    for row in body:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in (row[k] for k in kept)))
    padded = Padding(table, (0, 0, 0, indent), expand=False)
    if console().is_terminal:
        console().print(padded)
        return
    with console().capture() as captured:
        console().print(padded)
    for line in captured.get().removesuffix("\n").split("\n"):
        print(line.rstrip())


def bar(p: float, width: int = 24, style: str = "cyan") -> "Text":
    """Draw a probability as a bar of at most `width` signs."""
    from rich.text import Text

    if not _draws_blocks():
        return Text("#" * round(p * width), style=style)
    eighths = round(p * width * 8)
    partial = " ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else ""
    return Text("█" * (eighths // 8) + partial, style=style)


def number(p: float) -> str:
    """Write a probability with six significant digits.

    Examples
    --------
    >>> number(0.1), number(1 / 3)
    ('0.1', '0.333333')
    """
    return f"{p:.6g}"


def posterior_document(
    variable: Variable, values: Sequence[float]
) -> dict[str, float] | list[dict[str, Any]]:
    """Return a probability for each state: by its text, or as a list of pairs where two states print alike.

    Examples
    --------
    >>> posterior_document(Variable("a", ["no", "yes"]), [0.25, 0.75])
    {'no': 0.25, 'yes': 0.75}
    >>> posterior_document(Variable("b", [1, "1"]), [0.25, 0.75])
    [{'state': 1, 'p': 0.25}, {'state': '1', 'p': 0.75}]
    """
    texts = [str(state) for state in variable.states]
    if len(set(texts)) == len(texts):
        return dict(zip(texts, values, strict=True))
    return [{"state": state, "p": p} for state, p in zip(variable.states, values, strict=True)]


def provenance(info: Info, given: Mapping[str, Any]) -> str:
    """Return one line on how an answer was found, and how probable the evidence was."""
    line = str(info)
    if given and info.log_evidence is not None:
        line += f"; P(evidence) = {number(exp(info.log_evidence))}"
    return line


def info_document(info: Info) -> dict[str, Any]:
    """Return the provenance of an answer for JSON."""
    return {
        "engine": info.engine,
        "exact": info.exact,
        "converged": info.converged,
        "iterations": info.iterations,
        "error": info.error,
        "log_evidence": info.log_evidence,
        "seconds": info.seconds,
        "tried": list(info.tried),
        "details": {}
        if info.details is None
        else {k: v for k, v in asdict(info.details).items() if v is not None},
    }


def console() -> "Console":
    """Return the console on the present standard output."""
    return _console_on(sys.stdout)


@lru_cache(maxsize=1)
def _console_on(stream: Any) -> "Console":
    from rich.console import Console

    made = Console(file=stream, highlight=False, markup=False, emoji=False)
    return (
        made
        if made.is_terminal
        else Console(
            file=stream, highlight=False, markup=False, emoji=False, width=PIPE_WIDTH, color_system=None
        )
    )


def _draws_blocks() -> bool:
    encoding = getattr(sys.stdout, "encoding", None) or "ascii"
    try:
        "█▏".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return os.environ.get("TERM") != "dumb"


def _plain(value: Any) -> Any:
    """Turn arrays, NumPy numbers, tuples and `Not` into what JSON has."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Not):
        return {"not": _plain(value.states)}
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)
