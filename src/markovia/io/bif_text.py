"""The lexical level of BIF: comments, quotes and a cursor over tokens.

Quotes and comments are dealt with once, in a copy of the text that has the same length: comments become blanks,
and inside quotes every character that means something to the grammar becomes a Unicode noncharacter
(U+FDD0 ... U+FDEF, which no text may use). After that a plain pattern can cut the text at braces and
semicolons, and an offset into the copy is an offset into the file.
"""

import re
from io import StringIO

from markovia.errors import ParseError
from markovia.runtime.source_text import Source, shown

_SPECIAL = '{}()[];,|="\t\n\v\f\r '
_MASK = {ord(c): chr(0xFDD0 + i) for i, c in enumerate(_SPECIAL)}
_UNMASK = {0xFDD0 + i: c for i, c in enumerate(_SPECIAL)}
_QUOTE = _MASK[ord('"')]
_NONCHARACTER = re.compile("[\ufdd0-\ufdef]")

# a quote opens a string only where a token can begin, so that 12" stays a word; the part behind it is missing
# when the string is never closed
_STRING = r'(?<![^\s{}()\[\],;|=:])"(?:[^"\\]*+(?:\\.[^"\\]*+)*")?'
_COMMENT = r"//[^\n]*+|/\*(?:[^*]*+(?:\*(?!/)[^*]*+)*\*/)?"
# the value of a property runs to its semicolon and may hold slashes (addresses of web pages)
_PROPERTY = rf'\bproperty\b(?:[^";]++|{_STRING}|")*;?'
_OPAQUE = re.compile(rf"{_STRING}|{_COMMENT}|{_PROPERTY}", re.ASCII | re.DOTALL)
_IN_PROPERTY = re.compile(_STRING, re.ASCII | re.DOTALL)
_NOT_NEWLINE = re.compile(r"[^\n]")
_TOKEN = re.compile(r"\s*+(?:([{}()\[\];,|])|([^\s{}()\[\];,|]++))", re.ASCII)
_BLANK = re.compile(r"\s*+", re.ASCII)
_STOP = re.compile(r"[{}()\[\];]")


def mask(source: Source) -> str:
    """Return the text with comments blanked and quoted strings made opaque, all at their old offsets.

    Raises
    ------
    ParseError
        If a quote or a comment is never closed.
    """
    text = source.text
    if not text.isascii() and (bad := _NONCHARACTER.search(text)):
        raise source.error(bad.start(), "expected text, found a code point that is not a character")
    if '"' not in text and "//" not in text and "/*" not in text:
        return text
    masked = StringIO(newline="")  # a list of pieces would take many times the memory of the text
    done = 0
    for found in _OPAQUE.finditer(text):
        token, start = found.group(), found.start()
        masked.write(text[done:start])
        done = found.end()
        if token[0] == '"':
            masked.write(_masked_string(source, start, token))
        elif token[0] == "/":
            masked.write(_blank(source, start, token))
        elif '"' in token:
            masked.write(_masked_property(source, start, token))
        else:
            masked.write(token)
    masked.write(text[done:])
    return masked.getvalue()


def plain(token: str) -> str:
    r"""Return what a token of masked text stands for: without quotes, escapes and masks.

    Examples
    --------
    >>> plain(mask(Source('"a \\"b\\", c"'))), plain(" word ")
    ('a "b", c', 'word')
    """
    token = token.strip()
    if not token or token.isascii():
        return token
    return token.translate(_UNMASK) if _QUOTE not in token else _unquoted(token)


def quoted(text: str) -> str:
    r"""Return the text between quotes, with backslashes before quotes and backslashes.

    Examples
    --------
    >>> print(quoted('5" or more'))
    "5\" or more"
    """
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Cursor:
    """A place in masked text; every complaint names it."""

    __slots__ = ("end", "pos", "source", "text")

    def __init__(self, source: Source, text: str, pos: int = 0, end: int | None = None) -> None:
        self.source = source
        self.text = text
        self.pos = pos
        self.end = len(text) if end is None else end

    def error(self, message: str, offset: int | None = None) -> ParseError:
        """Return the error for an offset, by default for the next token."""
        return self.source.error(self._next_start() if offset is None else offset, message)

    def peek(self) -> str:
        """Return the next token without moving; the empty string at the end."""
        found = _TOKEN.match(self.text, self.pos, self.end)
        return (found[1] or found[2]) if found else ""

    def take(self) -> tuple[int, str]:
        """Move past the next token; return its offset and the token, empty at the end."""
        found = _TOKEN.match(self.text, self.pos, self.end)
        if found is None:
            return self.end, ""
        self.pos = found.end()
        token = found[1] or found[2]
        return self.pos - len(token), token

    def expect(self, wanted: str) -> int:
        """Move past a token that has to come here; return its offset."""
        before = self.pos
        offset, token = self.take()
        if token != wanted:
            self.pos = before
            raise self.error(f"expected {wanted!r}, found {said(token)}")
        return offset

    def until(self, stop: str, what: str) -> tuple[int, str]:
        """Move to the next bracket or semicolon, which has to be `stop`; return offset and text before it."""
        start = self._next_start()
        found = _STOP.search(self.text, start, self.end)
        if found is None:
            raise self.error(f"expected {what} and then {stop!r}, found the end of the file", self.end)
        if found.group() != stop:
            raise self.error(f"expected {what} and then {stop!r}, found {found.group()!r}", found.start())
        self.pos = found.start()
        return start, self.text[start : self.pos]

    def rest_of_property(self) -> tuple[str, str]:
        """Move past a property whose first word has been read; return its key and value."""
        stop = self.text.find(";", self.pos, self.end)
        if stop < 0:
            raise self.error("expected ';' after this property")
        key, sign, value = self.text[self.pos : stop].partition("=")
        whole = plain(key)
        if not sign and _QUOTE in key:
            # the older habit puts key and value into one pair of quotes
            whole, _, value = whole.partition("=")
            whole = whole.strip()
        if not whole:
            raise self.error("expected the name of a property")
        self.pos = stop + 1
        return whole, plain(value)

    def _next_start(self) -> int:
        found = _BLANK.match(self.text, self.pos, self.end)
        return found.end() if found else self.pos


def said(token: str) -> str:
    """Return a token as a message shows it."""
    return shown(plain(token)) if token else "the end of the file"


def _masked_string(source: Source, start: int, token: str) -> str:
    if len(token) < 2:
        raise source.error(start, "expected a closing quote for the quote that opens here")
    return token.translate(_MASK)


def _masked_property(source: Source, start: int, token: str) -> str:
    def masked(found: re.Match[str]) -> str:
        return _masked_string(source, start + found.start(), found.group())

    return _IN_PROPERTY.sub(masked, token)


def _blank(source: Source, start: int, comment: str) -> str:
    if comment == "/*":
        raise source.error(start, "expected '*/' to close the comment that begins here")
    return _NOT_NEWLINE.sub(" ", comment) if "\n" in comment else " " * len(comment)


def _unquoted(token: str) -> str:
    whole = token[0] == _QUOTE and token[-1] == _QUOTE and len(token) > 1
    text = token.translate(_UNMASK)
    if not whole:
        return text
    return re.sub(r'\\([\\"])', r"\1", text[1:-1])
