"""One positional XML reader for XMLBIF and XDSL, on the standard library's expat.

The document becomes a tree of `Element`s that know where their tags stand. Entity declarations are refused
before anything could expand (the "billion laughs"), external entities are never fetched, depth is bounded, and
whatever expat does not accept becomes a `ParseError`. Offsets are bytes of the UTF-8 text, as expat counts;
`XmlSource` turns them into lines and columns.
"""

import re
from collections.abc import Iterator
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from markovia.errors import ParseError
from markovia.io.scanner import nth_word, parse_numbers
from markovia.runtime.source_text import Source, shown

_DEEPEST = 100
_PIECE = 2**20
_LONGEST = 2**25  # bytes of one comment, tag or instruction
_MOST_ELEMENTS = 2**21
_START_TAG = re.compile(rb"<(?:[^\"'>]|\"[^\"]*+\"|'[^']*+')*>")
_NOT_BLANK = re.compile(rb"[^\s]")
_WORD = re.compile(r"\S++", re.ASCII)
_WINDOW = 2**23
_COMMENT = re.compile(rb"<!--.*?-->", re.DOTALL)


class XmlSource(Source):
    """A text whose offsets are bytes of its UTF-8 form."""

    __slots__ = ("data",)

    def __init__(self, text: str, name: str | None = None) -> None:
        super().__init__(text, name)
        self.data = text.encode("utf-8", "surrogatepass")

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column (from 1, in characters) of a byte offset."""
        before = self.data[:offset].decode("utf-8", "replace")
        return before.count("\n") + 1, len(before) - before.rfind("\n")


class Element:
    """A tag with its attributes, children, own text and place."""

    __slots__ = ("_texts", "at", "attributes", "children", "end", "tag")

    def __init__(self, tag: str, attributes: dict[str, str], at: int) -> None:
        self.tag = tag
        self.attributes = attributes
        self.children: list[Element] = []
        self.at = at
        self.end = at
        self._texts: list[str] = []

    @property
    def text(self) -> str:
        """The element's own text without its outer blanks."""
        return "".join(self._texts).strip()

    def all(self, *tags: str) -> Iterator["Element"]:
        """Yield the children with one of the tags (lower case), whatever their letter case."""
        return (child for child in self.children if child.tag.lower() in tags)

    def first(self, *tags: str) -> "Element | None":
        """Return the first child with one of the tags, or None."""
        return next(self.all(*tags), None)

    def __repr__(self) -> str:
        return f"<{self.tag} with {len(self.children)} children>"


def read_xml(source: XmlSource) -> Element:
    """Return the root element.

    Raises
    ------
    ParseError
        If the text is not well-formed XML, declares or uses entities of its own, or nests too deep.

    Examples
    --------
    >>> root = read_xml(XmlSource("<BIF VERSION='0.3'><NETWORK/></BIF>"))
    >>> root.tag, root.attributes, root.children
    ('BIF', {'VERSION': '0.3'}, [<NETWORK with 0 children>])
    """
    return _Builder(source).build()


def element_numbers(source: XmlSource, element: Element) -> NDArray[np.float64]:
    """Return the numbers in an element's text, or raise a `ParseError` at the first word that is none."""
    text = element.text

    def fail(offset: int, message: str) -> ParseError:
        return source.error(number_offset(source, element, len(_WORD.findall(text, 0, offset))), message)

    return parse_numbers(text, fail)


def number_offset(source: XmlSource, element: Element, k: int) -> int:
    """Return the offset of the k-th word of an element's text, for an error message."""
    tag = _START_TAG.match(source.data, element.at)
    start = tag.end() if tag else element.at
    raw = _COMMENT.sub(lambda m: b" " * len(m[0]), source.data[start : element.end])
    # latin-1 keeps one character a byte, so that offsets into it are offsets into the data
    return start + nth_word(raw.decode("latin-1"), k)


class _Builder:
    def __init__(self, source: XmlSource) -> None:
        self.source = source
        self.root: Element | None = None
        self.stack: list[Element] = []
        self.count = 0
        parser = self.parser = expat.ParserCreate("utf-8")
        parser.buffer_text = True
        parser.buffer_size = 2**20
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._finish
        parser.CharacterDataHandler = self._text
        parser.EntityDeclHandler = self._entity
        parser.SkippedEntityHandler = self._skipped
        parser.ExternalEntityRefHandler = self._skipped

    def build(self) -> Element:
        self.source.data = self.source.data.removeprefix(b"\xef\xbb\xbf")
        try:
            self._check_tokens(self.source.data)
            self._feed(memoryview(self.source.data))
        except expat.ExpatError as error:
            reason = expat.errors.messages.get(error.code, "malformed text")
            at = max(self.parser.ErrorByteIndex, 0)
            raise self.source.error(at, f"expected well-formed XML, found {reason}") from None
        finally:
            # the handlers refer to this object: without the cycle the parser's buffers go at once
            del self.parser
        assert self.root is not None
        return self.root

    def _feed(self, data: memoryview) -> None:
        """Parse piece by piece, so that markup without an end is refused before it fills the memory."""
        for start in range(0, len(data), _PIECE):
            self.parser.Parse(data[start : start + _PIECE], False)
            reached = max(self.parser.CurrentByteIndex, 0)
            if start + _PIECE - reached > _LONGEST:
                raise self.source.error(reached, "expected an end of the markup that begins here")
        self.parser.Parse(b"", True)

    def _check_tokens(self, data: bytes) -> None:
        """Refuse what makes expat read the same bytes again and again: text before or a tag without an end."""
        start = _NOT_BLANK.search(data)
        if start is not None and start[0] != b"<":
            raise self.source.error(start.start(), "expected '<' at the beginning of the XML")
        for end in range(_WINDOW, len(data), _WINDOW):
            if data.find(b">", end - _WINDOW, end) < 0:
                opened = data.rfind(b"<", 0, end)
                if opened > data.rfind(b">", 0, end):
                    raise self.source.error(opened, "expected '>' to end this tag")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        at = self.parser.CurrentByteIndex
        if len(self.stack) >= _DEEPEST:
            raise self.source.error(at, f"expected at most {_DEEPEST} levels of nesting")
        self.count += 1
        if self.count > _MOST_ELEMENTS:
            raise self.source.error(at, f"expected at most {_MOST_ELEMENTS:,} elements")
        element = Element(tag, attributes, at)
        if self.stack:
            self.stack[-1].children.append(element)
        else:
            self.root = element
        self.stack.append(element)

    def _finish(self, tag: str) -> None:
        self.stack.pop().end = self.parser.CurrentByteIndex

    def _text(self, text: str) -> None:
        self.stack[-1]._texts.append(text)

    def _entity(self, name: str, *_: object) -> None:
        raise self.source.error(
            self.parser.CurrentByteIndex, f"expected no entity declarations, found {shown(name)}"
        )

    def _skipped(self, name: str, *_: object) -> int:
        raise self.source.error(
            self.parser.CurrentByteIndex, f"expected no entities of its own, found {shown(str(name))}"
        )
