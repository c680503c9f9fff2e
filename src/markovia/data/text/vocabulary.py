"""Words, features or symbols with their codes: the one table behind corpora, taggers and models of language.

A vocabulary that is learned grows by what it meets, one that is known has no code for other words. Cost: one look into a
table a word.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import repeat
from typing import Any, Self

import numpy as np

from markovia.errors import InvalidArgument, UnknownVariable
from markovia.runtime.array_types import Ints

OUTSIDE = -1
"""The code of a word that is not in the vocabulary."""


class Vocabulary(dict[Any, int]):
    """Codes 0, 1, ... by word, in the order of the codes.

    Examples
    --------
    >>> known = Vocabulary.of(["cat", "dog"])
    >>> known.codes(["dog", "bird"]).tolist(), known.words
    ([1, -1], ['cat', 'dog'])
    >>> known.codes(["dog", "bird"], grow=True).tolist(), known.words
    ([1, 2], ['cat', 'dog', 'bird'])
    """

    @classmethod
    def of(cls, words: Iterable[Any], whose: str = "the vocabulary") -> Self:
        """Return the vocabulary of words in their order; refuse one that is there twice."""
        listed = list(words)
        found = cls(zip(listed, range(len(listed)), strict=True))
        if len(found) < len(listed):
            twice = next(w for w, n in Counter(listed).items() if n > 1)
            raise InvalidArgument(f"{whose} has {twice!r} twice; a word is there once")
        return found

    @property
    def words(self) -> list[Any]:
        """The words, in the order of their codes."""
        return list(self)

    def position(self, word: Any) -> int:
        """Return the code of a word that has to be known."""
        if word not in self:
            raise UnknownVariable(word, self.words, "the vocabulary")
        return self[word]

    def code(self, word: Any, *, grow: bool = False) -> int:
        """Return the code of a word, -1 for one that is not known; `grow` makes it known."""
        return self.setdefault(word, len(self)) if grow else self.get(word, OUTSIDE)

    def codes(self, words: Iterable[Any], *, grow: bool = False) -> Ints:
        """Return the codes of words, one after the other."""
        if grow:
            return np.fromiter((self.setdefault(w, len(self)) for w in words), dtype=np.int64)
        return np.fromiter(map(self.get, words, repeat(OUTSIDE)), dtype=np.int64)

    def in_order(self) -> "tuple[Vocabulary, Ints]":
        """Return the words in order of the alphabet, and the new code of each old one."""
        found = Vocabulary.of(sorted(self))
        return found, np.fromiter(map(found.__getitem__, self), dtype=np.int64, count=len(self))
