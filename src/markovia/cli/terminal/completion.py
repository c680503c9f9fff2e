"""Completion in bash, which splits words where the command line does not.

Bash cuts words at the signs in `COMP_WORDBREAKS`, among them `=`, so that `smoke=y` reaches a program as the three
words `smoke`, `=` and `y`, and it replaces only the last of them by what the program answers. Here the words are
put together again before Typer sees them, and what already stands on the line is taken off the answers. Words that
arrive whole, because the user took `=` out of `COMP_WORDBREAKS` or opened a quote, stay as they are. The other
shells do not split at `=`.
"""

import io
import os
import re
import shlex
import sys
from collections.abc import Callable, MutableMapping, Sequence
from contextlib import redirect_stdout
from typing import Any

_BREAK = re.compile(r"[=:@]+")


def completing_bash(environment: MutableMapping[str, str]) -> bool:
    """Say whether bash asks for completions rather than for a command."""
    return (
        environment.get("_MARKOVIA_COMPLETE") == "complete_bash"
        and "COMP_WORDS" in environment
        and environment.get("COMP_CWORD", "").isdigit()
    )


def complete_whole_words(complete: Callable[[], Any]) -> None:
    """Run Typer's completion on whole words and print what bash has to put in place of its last piece."""
    words, before = whole_words(_words(os.environ["COMP_WORDS"]), int(os.environ["COMP_CWORD"]))
    os.environ["COMP_WORDS"] = "\n".join(words)
    os.environ["COMP_CWORD"] = str(len(words) - 1)
    answered = io.StringIO()
    try:
        with redirect_stdout(answered):
            complete()
    finally:
        for line in answered.getvalue().splitlines():
            print(_remainder(line, _unquoted(before)))
        sys.stdout.flush()


def whole_words(pieces: Sequence[str], current: int) -> tuple[list[str], str]:
    """Join the pieces that bash made of one word, up to the current one.

    Parameters
    ----------
    pieces
        The words as bash sees them, the program first.
    current
        The number of the piece the cursor is in.

    Returns
    -------
    words : list of str
        The words as the program would get them; the last one is to be completed.
    before : str
        The start of the last word that bash keeps on the line.

    Examples
    --------
    >>> whole_words(["markovia", "query", "asia", "-g", "smoke", "=", "y"], 6)
    (['markovia', 'query', 'asia', '-g', 'smoke=y'], 'smoke=')
    >>> whole_words(["markovia", "query", "asia", "-g", "smoke=y"], 4)
    (['markovia', 'query', 'asia', '-g', 'smoke=y'], '')
    """
    given = [*pieces[: current + 1], *[""] * (current + 1 - len(pieces))]
    words = given[:1]
    before = ""
    joined = False
    for k, piece in enumerate(given[1:], start=1):
        is_break = _BREAK.fullmatch(piece) is not None
        # an empty piece stands behind a space: a new word
        if k > 1 and piece and (is_break or joined):
            before = words[-1] + (piece if is_break else "")
            words[-1] += piece
        else:
            before = piece if is_break else ""
            words.append(piece)
        joined = is_break
    return words, before


def _remainder(answer: str, before: str) -> str:
    """Return what follows the part of an answer that is on the line; of `--given=x` Typer answers only to x."""
    value = before.partition("=")[2] if before.startswith("--") else before
    return answer.removeprefix(before) if answer.startswith(before) else answer.removeprefix(value)


def _unquoted(text: str) -> str:
    try:
        return " ".join(shlex.split(text))
    except ValueError:
        return text


def _words(text: str) -> list[str]:
    """Split what bash exports, one word a line; by hand people write spaces."""
    return text.split("\n") if "\n" in text else text.split(" ")
