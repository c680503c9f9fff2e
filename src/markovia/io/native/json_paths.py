"""Parsed JSON that remembers where it came from, for error messages with a path, a line and a column.

Positions are not kept while parsing (that would cost more than the parsing): when something is wrong, the text
is read once more, token by token, up to the value in question.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn, TypeVar

from markovia.runtime.source_text import Source, hint, shown

T = TypeVar("T")
Path = tuple[str | int, ...]

_TOKEN = re.compile(r'\s*+("[^"\\]*+(?:\\.[^"\\]*+)*"|[{}\[\],:]|[^\s{}\[\],:"]++)', re.DOTALL)


class JsonNode:
    """A value inside a JSON document."""

    __slots__ = ("path", "source", "value")

    def __init__(self, value: Any, path: Path, source: Source) -> None:
        self.value = value
        self.path = path
        self.source = source

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def get(self, key: str) -> "JsonNode":
        """Return a field that has to be there."""
        fields: dict[str, Any] = self.need(dict, "an object")
        if key not in fields:
            self.fail(f"expected the key {key!r}")
        return JsonNode(fields[key], (*self.path, key), self.source)

    def at(self, index: int) -> "JsonNode":
        """Return an item of a list."""
        return JsonNode(self.value[index], (*self.path, index), self.source)

    def items(self) -> Iterator["JsonNode"]:
        """Yield the items of a list."""
        for index, value in enumerate(self.need(list, "a list")):
            yield JsonNode(value, (*self.path, index), self.source)

    def fields(self) -> Iterator[tuple[str, "JsonNode"]]:
        """Yield the keys and values of an object."""
        for key, value in self.need(dict, "an object").items():
            yield key, JsonNode(value, (*self.path, key), self.source)

    def need(self, kind: type[T], what: str) -> T:
        """Return the value if it is of a kind (a boolean is no integer here)."""
        if not isinstance(self.value, kind) or (kind is int and isinstance(self.value, bool)):
            self.fail(f"expected {what}")
        return self.value

    def text(self) -> str:
        """Return the value if it is a string."""
        return self.need(str, "a string")

    def only(self, *keys: str) -> None:
        """Complain about keys other than these."""
        for key, value in self.fields():
            if key not in keys:
                value.fail(f"expected no key {shown(key)} here{hint(key, keys)}")

    def position(self) -> tuple[int, int]:
        """Return line and column of the value."""
        return self.source.position(_offset(self.source.text, self.path))

    def fail(self, message: str) -> NoReturn:
        """Raise the error for this value."""
        steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step[:40]}" for step in self.path)
        raise self.source.error(_offset(self.source.text, self.path), f"${steps}: {message}")


def parse_json(text: str, name: str | None = None) -> JsonNode:
    """Parse strict JSON that is an object: no NaN or Infinity, no key twice.

    Raises
    ------
    ParseError
        If the text is not JSON, or nested too deeply.

    Examples
    --------
    >>> parse_json('{"a": [1, 2]}').get("a").at(1).path
    ('a', 1)
    """
    source = Source(text, name)
    opening = re.match(r"\s*+", text)
    if opening is None or text[opening.end() : opening.end() + 1] != "{":
        raise source.error(opening.end() if opening else 0, "expected a JSON object, which begins with '{'")
    try:
        value = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_distinct)
    except json.JSONDecodeError as error:
        raise source.error(error.pos, f"expected JSON: {error.msg[:1].lower()}{error.msg[1:]}") from None
    except RecursionError:
        raise source.error(0, "expected JSON that is not nested so deeply") from None
    except _RefusedError as error:
        raise source.error(max(text.find(error.args[1]), 0), error.args[0]) from None
    except ValueError:
        # Python refuses to convert integers of thousands of digits
        found = re.search(r"\d{4000}", text)
        raise source.error(found.start() if found else 0, "expected numbers of ordinary size") from None
    return JsonNode(value, (), source)


class _RefusedError(ValueError):
    """Something that Python's parser takes for JSON but that is not; with the text to look for."""


def _no_constant(word: str) -> NoReturn:
    raise _RefusedError(f"expected a number, found {word}", word)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        seen: set[str] = set()
        twice = next(k for k, _ in pairs if k in seen or seen.add(k))  # type: ignore[func-returns-value]
        raise _RefusedError(f"expected each key once, found {shown(twice)} twice", json.dumps(twice))
    return fields


def _offset(text: str, path: Path) -> int:
    """Return the offset of the value at a path in valid JSON text; a best effort, 0 if it is not found."""
    here: list[str | int] = []
    inside: list[str] = []
    expecting_key = False
    for match in _TOKEN.finditer(text):
        token = match[1]
        if expecting_key and token[0] == '"':
            here[-1] = json.loads(token)
            expecting_key = False
            continue
        if token == ":":
            continue
        if token == ",":
            expecting_key = inside[-1:] == ["{"]
            if inside[-1:] == ["["]:
                here[-1] = int(here[-1]) + 1
            continue
        if token in "}]":
            if inside:
                inside.pop()
                here.pop()
            expecting_key = False
            continue
        if len(here) == len(path) and tuple(here) == path:
            return match.start(1)
        if token in "{[":
            inside.append(token)
            expecting_key = token == "{"
            here.append("" if expecting_key else 0)
    return 0
