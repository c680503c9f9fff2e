"""Lexicons: lists of words and phrases, whose places in a sentence are features of its tokens.

Method: for each kind the longest phrase from the left, then on behind it, along a tree of words. Reference: Cohen and
Sarawagi (2004) on dictionaries in taggers. Cost: words times the longest phrase.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markovia.errors import InvalidArgument
from markovia.runtime.shown import InNotebooks


class Lexicon(InNotebooks):
    """Phrases of several kinds, to be found in sentences.

    Parameters
    ----------
    entries
        A mapping from kinds to phrases: strings, cut at blanks, or sequences of words.
    ignore_case
        Whether capitals make no difference.

    Examples
    --------
    >>> lexicon = Lexicon({"place": ["New York", "York", "Rome"], "name": [("Ben", "Stone")]})
    >>> lexicon
    Lexicon(place: 3, name: 1)
    >>> words = "Ben Stone left new york".split()
    >>> lexicon.find(words)
    [('place', 3, 5), ('name', 0, 2)]
    >>> lexicon.mark(words)
    [{'name': 'B'}, {'name': 'E'}, {}, {'place': 'B'}, {'place': 'E'}]
    """

    def __init__(
        self, entries: Mapping[str, Iterable[str | Sequence[str]]], *, ignore_case: bool = True
    ) -> None:
        if not isinstance(entries, Mapping) or any(isinstance(phrases, str) for phrases in entries.values()):
            raise InvalidArgument(
                "a lexicon is a mapping from kinds to lists of phrases, such as {'place': ['New York']}"
            )
        self.ignore_case = ignore_case
        self._trees: dict[str, dict[Any, Any]] = {}
        self._counts: dict[str, int] = {}
        for kind, phrases in entries.items():
            tree: dict[Any, Any] = {}
            listed = {tuple(map(self._plain, p.split() if isinstance(p, str) else p)) for p in phrases}
            if () in listed:
                raise InvalidArgument(f"the lexicon has a phrase of {kind!r} without any word")
            for phrase in listed:
                node = tree
                for word in phrase:
                    node = node.setdefault(word, {})
                node[None] = True  # a phrase may end here
            self._trees[kind], self._counts[kind] = tree, len(listed)

    def _plain(self, word: str) -> str:
        return word.casefold() if self.ignore_case else word

    def find(self, words: Sequence[str]) -> list[tuple[str, int, int]]:
        """Return the kind, the first word and the one behind the last of all phrases found; those of one kind are apart."""
        plain, found = [self._plain(word) for word in words], []
        for kind, tree in self._trees.items():
            at = 0
            while at < len(plain):
                node, end, longest = tree, at, at
                while end < len(plain) and plain[end] in node:
                    node, end = node[plain[end]], end + 1
                    longest = end if None in node else longest
                if longest > at:
                    found.append((kind, at, longest))
                at = max(longest, at + 1)
        return found

    def mark(self, words: Sequence[str]) -> list[dict[str, str]]:
        """Return for each word the kinds of phrases it is in, as first (B), last (E), inside (I) or alone (S)."""
        marks: list[dict[str, str]] = [{} for _ in words]
        for kind, start, end in self.find(words):
            for at in range(start, end):
                first, last = at == start, at == end - 1
                marks[at][kind] = "S" if first and last else "B" if first else "E" if last else "I"
        return marks

    def __repr__(self) -> str:
        return f"Lexicon({', '.join(f'{kind}: {count:,}' for kind, count in self._counts.items())})"
