"""Features of tokens by name, read as CRFsuite reads them.

A token is a mapping from names to numbers or truth values, to strings (`{"word": "the"}` is the attribute `word:the`), or to
mappings and lists of such (`{"next": {"word": "dog"}}` is `next:word:dog`); or it is a list of strings, each an attribute of
value 1; or a word, which is its own attribute, so that lists of words mean the same to taggers and corpora. An attribute
with its value is looked up once, so that reading costs one look into a table an attribute. Attributes that training never
saw have no weight.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from markovia.data.text.vocabulary import Vocabulary
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Ints


class _Unreadable(InvalidArgument):
    """An attribute that is none; where it was is said later."""


class _Nested(TypeError):
    """A value that holds attributes itself."""


class _KnownAttributes(dict[Any, int]):
    """Attributes with their values, each met once: its place in the lists of columns and numbers."""

    def __init__(self, vocabulary: Vocabulary, grow: bool) -> None:
        super().__init__()
        self.vocabulary, self.grow = vocabulary, grow
        self.columns: list[int] = []
        self.numbers: list[float] = []

    def __missing__(self, item: Any) -> int:
        key, number = self._read(item)
        place = self[item] = len(self.columns)
        self.columns.append(self.vocabulary.code(key, grow=self.grow))
        self.numbers.append(number)
        return place

    def _read(self, item: Any) -> tuple[str, float]:
        if isinstance(item, str):
            return item, 1.0
        if not isinstance(item, tuple) or len(item) != 2:
            raise _Unreadable(f"has {item!r} among its attributes, which is no string")
        name, value = item
        if isinstance(value, str):
            return f"{name}:{value}", 1.0
        if isinstance(value, tuple | frozenset):
            raise _Nested
        if isinstance(value, bytes):
            return f"{name}:{value.decode()}", 1.0
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise _Unreadable(
                f"has {value!r} for the attribute {name!r}, which is no number or text"
            ) from None
        if not np.isfinite(number):
            raise _Unreadable(f"has a missing or infinite value for the attribute {name!r}")
        return str(name), number


def _flat(token: Any, before: str = "") -> Iterator[Any]:
    """Yield the attributes of a token that holds others: names before those inside, with colons."""
    if isinstance(token, Mapping):
        for name, value in token.items():
            if isinstance(value, Mapping | list | tuple | set | frozenset):
                yield from _flat(value, f"{before}{name}:")
            else:
                yield f"{before}{name}", value
    else:
        for name in token:
            if not isinstance(name, str):
                raise _Unreadable(f"has {name!r} among its attributes, which is no string")
            yield f"{before}{name}"


Looked = tuple[_KnownAttributes, Ints, Ints, list[int]]


def look_up(given: list[Any], vocabulary: Vocabulary, grow: bool) -> Looked:
    """Return what is known, the place of each attribute in it, where tokens begin, and how many a sequence has."""
    return _at_once(given, vocabulary, grow) or _one_by_one(given, vocabulary, grow)


def _at_once(given: list[Any], vocabulary: Vocabulary, grow: bool) -> Looked | None:
    """Look all attributes up in one pass without a step of Python for each; None where tokens are not all of one kind."""
    if not set(map(type, given)) <= {list, tuple}:
        return None
    tokens = list(chain.from_iterable(given))
    kinds = set(map(type, tokens))
    items: Iterable[Any]
    if kinds == {dict}:
        items = chain.from_iterable(map(dict.items, tokens))
    elif kinds <= {list, tuple}:
        items = chain.from_iterable(tokens)
    else:
        return None
    known = _KnownAttributes(Vocabulary(vocabulary) if grow else vocabulary, grow)
    ptr = np.zeros(len(tokens) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, tokens), np.int64, len(tokens)), out=ptr[1:])
    try:
        at = np.fromiter(map(known.__getitem__, items), np.int64, int(ptr[-1]))
    except (TypeError, _Unreadable):  # a value that holds others, or none at all
        return None
    return known, at, ptr, list(map(len, given))


def _one_by_one(given: list[Any], vocabulary: Vocabulary, grow: bool) -> Looked:
    """Look attributes up token by token, so that a bad one is named."""
    known = _KnownAttributes(Vocabulary(vocabulary) if grow else vocabulary, grow)
    look = known.__getitem__
    places, ends, sizes = array("q"), array("q", [0]), []
    for i, sequence in enumerate(given):
        if isinstance(sequence, str | Mapping) or not isinstance(sequence, Iterable):
            raise InvalidArgument(
                f"sequence {i} is a {type(sequence).__name__}, not a list with one mapping a token"
            )
        t = -1
        for t, token in enumerate((one,) if isinstance(one, str) else one for one in sequence):
            before = len(places)
            try:
                try:
                    places.extend(map(look, token.items() if isinstance(token, Mapping) else token))
                except TypeError:  # a value that holds others has no place in a table
                    del places[before:]
                    if not isinstance(token, Mapping | list | tuple | set | frozenset):
                        raise _Unreadable(
                            f"has features of type {type(token).__name__}, not a mapping"
                        ) from None
                    places.extend(map(look, _flat(token)))
            except _Unreadable as error:
                raise InvalidArgument(f"step {t} of sequence {i} {error}") from None
            ends.append(len(places))
        sizes.append(t + 1)
    at = np.frombuffer(places, dtype=np.int64) if places else np.zeros(0, dtype=np.int64)
    return known, at, np.array(ends, dtype=np.int64), sizes
