"""Texts as lists of words: where documents come from, and how each is cut into words.

A folder holds a document a file, a file a document a line; both are read piece by piece, so that neither has to fit into
memory.
"""

import gzip
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

from markovia.errors import InvalidArgument

WORD = r"\b\w\w+\b"
"""What a word is unless said otherwise: two or more letters, digits or underscores."""
SUFFIXES = (".txt", ".text", ".md", ".txt.gz")
"""Files of a folder that are documents."""


@dataclass(frozen=True)
class Tokenizer:
    """How a text becomes words.

    Attributes
    ----------
    pattern
        A regular expression of words, or a function from a text to its words.
    lowercase
        Whether capital letters are made small first.
    stop_words
        Words that are left out: "english" for scikit-learn's list, words, or None.
    """

    pattern: str | Callable[[str], Iterable[str]] = WORD
    lowercase: bool = True
    stop_words: str | Collection[str] | None = None

    @cached_property
    def stopped(self) -> frozenset[str]:
        """The words that are left out."""
        if self.stop_words is None:
            return frozenset()
        if self.stop_words == "english":
            from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

            return frozenset(ENGLISH_STOP_WORDS)
        if isinstance(self.stop_words, str):
            raise InvalidArgument(
                f"stop_words= is 'english', a list of words or None, not {self.stop_words!r}"
            )
        return frozenset(self.stop_words)

    @cached_property
    def _cut(self) -> Callable[[str], Iterable[str]]:
        if callable(self.pattern):
            return self.pattern
        try:
            return re.compile(self.pattern).findall
        except (re.error, TypeError) as error:
            raise InvalidArgument(
                f"tokenizer= is a function, a vectoriser or a regular expression, not {self.pattern!r}: {error}"
            ) from None

    def words(self, document: Any, where: str = "a document") -> list[str]:
        """Return the words of a text, or of a document that is a list of words, without those that are left out."""
        if isinstance(document, str):
            found = list(self._cut(document.lower() if self.lowercase else document))
        elif isinstance(document, Iterable) and not isinstance(document, bytes):
            found = list(document)
        else:
            raise InvalidArgument(
                f"{where} is {document!r}; a document is a text or a list of words, and a table of counts has a row a "
                f"document"
            )
        for word in found:
            if not isinstance(word, str):
                raise InvalidArgument(
                    f"{where} holds {word!r} among its words; words are text, counts come as a table with a row a document"
                )
        return [w for w in found if w not in self.stopped] if self.stopped else found


def texts_at(path: str | os.PathLike[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each document of a folder (a file each) or a file (a line each).

    Empty lines are documents too.
    """
    place = Path(path)
    if place.is_dir():
        files = sorted(p for p in place.rglob("*") if p.is_file() and p.name.lower().endswith(SUFFIXES))
        if not files:
            raise InvalidArgument(f"the folder {str(place)!r} has no {', '.join(SUFFIXES)} files")
        for file in files:
            with _opened(file) as text:
                yield str(file.relative_to(place)), _read(text, file)
        return
    if not place.is_file():
        raise InvalidArgument(
            f"there is no file or folder {str(place)!r}; documents= is a list of texts, counts, or the path of a folder "
            f"of texts or of a file with a document a line"
        )
    with _opened(place) as text:
        try:
            for i, line in enumerate(text):
                yield str(i + 1), line.rstrip("\n")
        except UnicodeDecodeError as error:
            raise InvalidArgument(f"{str(place)!r} is not text in UTF-8: {error}") from None


def _opened(file: Path) -> TextIO:
    if file.suffix == ".gz":
        return gzip.open(file, "rt", encoding="utf-8")
    return file.open(encoding="utf-8")


def _read(text: TextIO, file: Path) -> str:
    try:
        return text.read()
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{str(file)!r} is not text in UTF-8: {error}") from None
