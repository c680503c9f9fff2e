"""A text that is being read: turns an offset into a line and a column, and both into an error."""

import re
from collections.abc import Iterable
from itertools import islice

from markovia.errors import ParseError, did_you_mean

_ESCAPE = re.compile(r'\\(?:\r?\n[ \t]*|([nrt"\\]))')
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}
_UNESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


class Source:
    r"""The text of a file and its name.

    Parameters
    ----------
    text
        What is read.
    name
        The file's name for messages.

    Examples
    --------
    >>> source = Source("one\ntwo", "demo.bif")
    >>> source.position(4)
    (2, 1)
    >>> str(source.error(5, "expected a number"))
    'demo.bif:2:2: expected a number'
    """

    __slots__ = ("name", "text")

    def __init__(self, text: str, name: str | None = None) -> None:
        self.text = text
        self.name = name

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column (from 1) of an offset."""
        offset = min(offset, len(self.text))
        return self.text.count("\n", 0, offset) + 1, offset - self.text.rfind("\n", 0, offset)

    def error(self, offset: int, message: str) -> ParseError:
        """Return the error to raise for what stands at an offset."""
        line, column = self.position(offset)
        return ParseError(message, file=self.name, line=line, column=column)


def shown(token: str, limit: int = 40) -> str:
    """Quote a token for a message, cut to a readable length.

    Examples
    --------
    >>> shown("abc"), shown("x" * 99, limit=5)
    ("'abc'", "'xxxxx...'")
    """
    return repr(token if len(token) <= limit else token[:limit] + "...")


def brief(message: str, limit: int = 200) -> str:
    """Cut the middle out of another error's message that quotes a file at length.

    Examples
    --------
    >>> brief("unknown state " + "x" * 1000 + "; its states are no, yes", limit=40)
    'unknown state xxxxxx ... states are no, yes'
    """
    if len(message) <= limit:
        return message
    return f"{message[: limit // 2]} ... {message[-(limit // 2) :]}"


def hint(token: str, known: Iterable[object], limit: int = 60) -> str:
    """Suggest the nearest known name; silent for long tokens, where the search would take too long.

    Examples
    --------
    >>> hint("Rain", ["rain", "wet"])
    " (did you mean 'rain'?)"
    """
    return did_you_mean(token, islice(known, 2000)) if len(token) <= limit else ""


def quote(text: str) -> str:
    r"""Write a string in double quotes.

    Examples
    --------
    >>> print(quote('say "hi"'))
    "say \"hi\""
    """
    return f'"{text.translate(_UNESCAPES)}"'


def unquote(token: str) -> str:
    """Return the content of a quoted string; a backslash before any other character stays as it is."""
    inner = token[1:-1]
    if "\\" not in inner:
        return inner
    return _ESCAPE.sub(lambda m: _ESCAPES[m[1]] if m[1] else "", inner)
