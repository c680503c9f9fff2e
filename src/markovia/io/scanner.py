"""One tokenizer for the brace languages: Hugin NET, Netica DNE and MSBN DSC.

Tokens are quoted strings, single signs and words; a word is any run of characters that is none of the others,
so numbers and unquoted names are words too. Blanks and comments separate tokens. The scanner holds one token
at a time and knows its offset, so every complaint says where it is and what was expected there.

Tables of numbers are taken in one piece (`numbers`): everything up to the closing semicolon is cleaned of
comments and brackets and converted at once, which costs about 0.3 s for a million entries. Nesting is counted,
never recursed into.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np
from numpy.typing import NDArray

from markovia.errors import ParseError
from markovia.io.numbers import is_number, number_list
from markovia.runtime.source_text import Source, quote, shown, unquote

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*"'
_BLOCK_COMMENT = r"/\*[^*]*+(?:\*(?!/)[^*]*+)*\*/"
_BRACKETS = str.maketrans("(),", "   ")
_NUMBER_CHARACTERS = re.compile(r"[-+.0-9eE(),\s]*+", re.ASCII)
_OPENING, _CLOSING = "({[", ")}]"
# far above any real file, and low enough that megabytes of nonsense end soon
_DEEPEST = 1000
MOST_ITEMS = 2**21


@dataclass(frozen=True)
class Numbers:
    """The numbers of a table, in file order."""

    values: NDArray[np.float64]
    at: int
    """Where the table begins."""
    locate: Callable[[int], int]
    """The offset of the k-th number."""


class Scanner:
    """A text, and the token that is next.

    Parameters
    ----------
    source
        The text and its name.
    percent
        Whether `%` starts a comment (Hugin NET). `//` and `/* */` always do.

    Examples
    --------
    >>> scan = Scanner(Source('node rain { states = ("no" "yes"); } // done'))
    >>> scan.word("a keyword"), scan.word("a name")
    ('node', 'rain')
    >>> scan.take("("), scan.value
    (False, '{')
    >>> scan.expect("(")
    Traceback (most recent call last):
    ...
    markovia.errors.ParseError: <string>:1:11: expected '(', found '{'
    """

    __slots__ = ("_body", "_end", "_token", "at", "kind", "source", "value")

    def __init__(self, source: Source, percent: bool = False) -> None:
        self.source = source
        self._token, self._body = _PATTERNS[percent]
        self._end = 0
        self.kind, self.value, self.at = "end", "", 0
        self.advance()

    def advance(self) -> None:
        """Move to the next token; after the last one the kind is "end"."""
        match = self._token.match(self.source.text, self._end)
        assert match is not None
        group = match.lastgroup
        self._end = match.end()
        if group is None:
            self.kind, self.value, self.at = "end", "", match.end()
            return
        self.kind, self.value, self.at = group, match[group], match.start(group)
        if group == "string":
            self.value = unquote(self.value)
        elif group == "broken":
            what = "string" if self.value == '"' else "comment"
            raise self.source.error(self.at, f"expected the end of this {what} before the end of the file")

    # -- asking --------------------------------------------------------------------------------------------

    def sees(self, value: str) -> bool:
        """Say whether the next token is this sign or (letter case aside) this unquoted word."""
        return self.kind in ("sign", "word") and self.value.lower() == value

    def take(self, value: str) -> bool:
        """Move past a sign or word if it is next."""
        if self.sees(value):
            self.advance()
            return True
        return False

    def expect(self, value: str) -> int:
        """Move past a sign or word that has to be next; return its offset."""
        if not self.sees(value):
            raise self.expected(repr(value))
        at = self.at
        self.advance()
        return at

    def word(self, what: str) -> str:
        """Return an unquoted word that has to be next."""
        if self.kind != "word":
            raise self.expected(what)
        value = self.value
        self.advance()
        return value

    def text(self, what: str) -> str:
        """Return a word or a quoted string that has to be next."""
        if self.kind not in ("word", "string"):
            raise self.expected(what)
        value = self.value
        self.advance()
        return value

    def expected(self, what: str) -> ParseError:
        """Return the error for a next token that is not what it should be."""
        found = "the end of the file" if self.kind == "end" else shown(self.value)
        return self.source.error(self.at, f"expected {what}, found {found}")

    # -- values --------------------------------------------------------------------------------------------

    def items(self, what: str, opening: str = "(", closing: str = ")") -> list[tuple[str, int]]:
        """Return a bracketed list of words and strings with their offsets; commas between them are optional."""
        self.expect(opening)
        found = []
        while not self.take(closing):
            at = self.at
            found.append((self.text(f"{what} or {closing!r}"), at))
            self.take(",")
            if len(found) > MOST_ITEMS:
                raise self.expected(repr(closing))
        return found

    def free_value(self) -> str:
        """Return whatever stands before the next semicolon as text: a string's content, else the tokens."""
        if self.kind == "string":
            value = self.value
            self.advance()
            if self.sees(";"):
                return value
            parts = [quote(value)]
        else:
            parts = []
        depth: list[str] = []
        while depth or not self.sees(";"):
            unexpected = self.kind == "end" or (not depth and self.kind == "sign" and self.value in _CLOSING)
            if unexpected or len(parts) > MOST_ITEMS or len(depth) > _DEEPEST:
                raise self.expected("a value" if not parts else "';'")
            if self.kind == "sign" and self.value in _OPENING:
                depth.append(_CLOSING[_OPENING.index(self.value)])
            elif depth and self.kind == "sign" and self.value in _CLOSING and self.value != depth.pop():
                raise self.expected("the bracket that closes the last one opened")
            parts.append(quote(self.value) if self.kind == "string" else self.value)
            self.advance()
        if not parts:
            raise self.expected("a value")
        return _tidy(parts)

    def skip_block(self) -> None:
        """Move past a block in braces, whatever it holds."""
        self.expect("{")
        depth = 1
        while depth:
            if self.kind == "end" or depth > _DEEPEST:
                raise self.expected("'}'")
            if self.kind == "sign" and self.value in "{}":
                depth += 1 if self.value == "{" else -1
            self.advance()

    def numbers(self, zero: str | None = None) -> Numbers:
        """Return all numbers up to the next semicolon, brackets and commas aside; a word may stand for zero."""
        start = self.at
        body = self._raw(start)
        if zero is not None:
            body = body.replace(zero, "0".ljust(len(zero)))
        if self.source.text[start + len(body) : start + len(body) + 1] != ";":
            self._end = start + len(body)
            self.advance()
            raise self.expected("';' after the numbers")
        self._check_brackets(body, start)
        self._end = start + len(body)
        self.advance()

        def fail(offset: int, message: str) -> ParseError:
            return self.source.error(start + offset, message)

        cleaned = body.translate(_BRACKETS)
        values = parse_numbers(cleaned, fail)
        return Numbers(values, start, lambda k: start + nth_word(cleaned, k))

    def plain_until(self, closing: str) -> str | None:
        """Return the text from the next token to the first `closing` sign, if it has no comments or strings."""
        end = self.source.text.find(closing, self.at)
        body = self.source.text[self.at : end] if end >= 0 else ""
        return None if end < 0 or "%" in body or "/" in body or '"' in body else body

    def jump(self, offset: int) -> None:
        """Continue with the token at an offset."""
        self._end = offset
        self.advance()

    def _raw(self, start: int) -> str:
        """Return the text from an offset to the next semicolon, with comments replaced by blanks."""
        match = self._body.match(self.source.text, start)
        assert match is not None
        body = match[0]
        if "%" in body or "/" in body:
            body = _COMMENTS[self._token is _PATTERNS[True][0]].sub(lambda m: " " * len(m[0]), body)
        return body

    def _check_brackets(self, body: str, start: int) -> None:
        legal = _NUMBER_CHARACTERS.match(body)
        assert legal is not None
        if legal.end() < len(body):
            word = _NOT_BLANK.search(body, _word_start(body, legal.end()))
            assert word is not None
            raise self.source.error(start + word.start(), f"expected a number, found {shown(word[0])}")
        codes = np.frombuffer(body.encode("ascii"), dtype=np.uint8)
        depth = np.cumsum((codes == ord("(")).astype(np.int64) - (codes == ord(")")))
        if depth.size and (depth.min() < 0 or depth[-1] != 0):
            bad = int(np.argmax(depth < 0)) if depth.min() < 0 else len(body)
            what = "expected ';' or a number, found ')'" if depth.min() < 0 else "expected ')' before ';'"
            raise self.source.error(start + bad, what)


def parse_numbers(text: str, fail: Callable[[int, str], ParseError]) -> NDArray[np.float64]:
    """Convert numbers separated by blanks, or raise what `fail` returns for the first word that is none.

    Examples
    --------
    >>> parse_numbers("0.25 7.5e-1", lambda at, message: ParseError(message)).tolist()
    [0.25, 0.75]
    """
    if _NUMBER_CHARACTERS.fullmatch(text):
        values = number_list(text)
        if values is not None:
            return values
    for word in _WORD.finditer(text):
        if not is_number(word[0]):
            raise fail(word.start(), f"expected a number, found {shown(word[0])}")
    return np.array(list(map(float, _WORD.findall(text))), dtype=np.float64)


def nth_word(text: str, k: int) -> int:
    """Return the offset of the k-th word (from 0), or the end of the text."""
    match = next(islice(_WORD.finditer(text), k, None), None)
    return match.start() if match else len(text)


def is_bare(text: str) -> bool:
    """Say whether `free_value` reads this text back as it is when it is written without quotes.

    Examples
    --------
    >>> is_bare("(10, 20)"), is_bare("10 ;"), is_bare('"x"')
    (True, False, False)
    """
    if not text.isprintable():
        return False
    try:
        scan = Scanner(Source(text + ";"), percent=True)
        bare = scan.kind != "string" and scan.free_value() == text
        scan.expect(";")
    except ParseError:
        return False
    return bare and scan.kind == "end"


def _tidy(parts: list[str]) -> str:
    """Join tokens with one blank where a reader expects one."""
    tight_after, tight_before = ("(", "{", "["), (")", "}", "]", ",", ";")
    pieces = parts[:1]
    for last, part in pairwise(parts):
        pieces.append(part if last in tight_after or part in tight_before else " " + part)
    return "".join(pieces)


def _word_start(text: str, at: int) -> int:
    while at > 0 and text[at - 1] not in "(), \t\n\r\f\v":
        at -= 1
    return at


# in tables only ASCII blanks separate: a no-break space between two digits is a slip that nobody sees
_NOT_BLANK = re.compile(r"[^\s(),]+", re.ASCII)
_WORD = re.compile(r"\S++", re.ASCII)


def _patterns(comment: str, stop: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    token = re.compile(
        rf"(?:[\s\ufeff]++|{comment})*(?:"
        rf"(?P<string>{_STRING})"
        r"|(?P<broken>\"|/\*)"
        r"|(?P<sign>[(){}\[\]=;|,:])"
        rf"|(?P<word>(?:[^\s\ufeff\"(){{}}\[\]=;|,:/{stop}]|/(?![/*]))+))?",
        re.DOTALL,
    )
    body = re.compile(rf"(?:[^;\"/{stop}{{}}]++|{comment}|/(?![/*]))*", re.DOTALL)
    return token, body


_LINE = r"//[^\n]*+"
_SLASHES = rf"{_LINE}|{_BLOCK_COMMENT}"
_PERCENT = rf"%[^\n]*+|{_SLASHES}"
_PATTERNS = {False: _patterns(_SLASHES, ""), True: _patterns(_PERCENT, "%")}
_COMMENTS = {False: re.compile(_SLASHES, re.DOTALL), True: re.compile(_PERCENT, re.DOTALL)}
