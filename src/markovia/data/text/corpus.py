"""A corpus: which words each document holds, in flat arrays, with the vocabulary beside them.

Texts, lists of words, tables of counts and files all become the same object. Documents without words stay documents; words
outside the vocabulary are counted. Cost: linear in the number of words.
"""

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.data.text.document_texts import WORD, Tokenizer, texts_at
from markovia.data.text.vocabulary import Vocabulary
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import check_count
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks

BATCH = 1_024
"""Documents of a piece of a stream."""


@dataclass(frozen=True, eq=False)
class Corpus(InNotebooks):
    """Documents as positions of words in a vocabulary.

    Attributes
    ----------
    words
        The words of all documents, one after the other, as positions in the vocabulary.
    offsets
        Where each document begins in `words`, and the end of the last.
    vocabulary
        The words that are known.
    names
        The names of the documents: of files, of a frame's rows, or numbers.
    unknown
        How many words of each document are outside the vocabulary.
    tokenizer
        How texts were cut into words; new texts are cut likewise.

    Examples
    --------
    >>> corpus = Corpus.read(["the cat sat", "the dog sat on the cat", ""], stop_words=["the", "on"])
    >>> corpus
    Corpus(3 documents, 5 words, 3 in the vocabulary, 1 document is empty)
    >>> corpus.document(1)
    ['dog', 'sat', 'cat']
    >>> corpus.counts().toarray().tolist()
    [[1, 0, 1], [1, 1, 1], [0, 0, 0]]
    """

    words: NDArray[np.int32]
    offsets: Ints
    vocabulary: list[str]
    names: list[str] = field(default_factory=list)
    unknown: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    tokenizer: Tokenizer = field(default_factory=Tokenizer)

    def __post_init__(self) -> None:
        if not self.names:
            object.__setattr__(self, "names", [str(i) for i in range(len(self))])
        if not len(self.unknown):
            object.__setattr__(self, "unknown", np.zeros(len(self), dtype=np.int64))

    @classmethod
    def read(
        cls,
        documents: Any,
        vocabulary: "Sequence[str] | Corpus | None" = None,
        *,
        tokenizer: Any = WORD,
        lowercase: bool = True,
        stop_words: str | Collection[str] | None = None,
        min_df: float = 1,
        max_df: float = 1.0,
        max_features: int | None = None,
        names: Sequence[str] | None = None,
    ) -> "Corpus":
        """Return the corpus of some documents.

        Parameters
        ----------
        documents
            Texts, lists of words, counts (dense, sparse or a frame with a column a word), a frame or series of texts, or the
            path of a folder of texts or of a file with a document a line.
        vocabulary
            The known words in their order, or a corpus that has them; by default what is found, in order of the alphabet.
            Columns of a frame are found by their names, of other tables by their order.
        tokenizer
            A regular expression of words, a function from a text to words, or a vectoriser of scikit-learn, fitted or not.
        lowercase, stop_words
            Whether capital letters are made small; words that are left out ("english" for a list of common ones).
        min_df, max_df, max_features
            Words in fewer or in more documents leave the vocabulary, as do all but the most frequent: whole numbers are
            documents, fractions shares. They count as `unknown`.
        names
            The names of the documents.

        Examples
        --------
        >>> Corpus.read([["a", "b", "a"], ["c"]], vocabulary=["a", "b"]).unknown.tolist()
        [0, 1]
        >>> Corpus.read([[2, 0], [0.5, 1]])
        Traceback (most recent call last):
            ...
        markovia.errors.InvalidArgument: row 1, column 0 holds 0.5; counts of words are whole numbers
        """
        known = _known(vocabulary)
        limits = _Limits(min_df, max_df, max_features)
        if isinstance(vocabulary, Corpus) and tokenizer == WORD and lowercase and stop_words is None:
            cut = vocabulary.tokenizer
        elif hasattr(tokenizer, "fit_transform"):
            return _vectorised(tokenizer, documents, known, names)
        else:
            cut = Tokenizer(tokenizer, lowercase, stop_words)
        if isinstance(documents, Corpus):
            found = documents
            if known is not None and known != documents.vocabulary:
                found = documents.in_words_of(known)
            return limits.kept(found) if limits.any and known is None else found
        table, columns, rows = _as_table(documents)
        if table is not None:
            found = from_counts(table, columns or known, names or rows)
            if known is not None and found.vocabulary != known:
                found = _by_name(found, known)
        else:
            found = _from_texts(documents, known, cut, names)
        return limits.kept(found) if limits.any and known is None else found

    @classmethod
    def stream(
        cls,
        documents: Any,
        vocabulary: "Sequence[str] | Corpus | None" = None,
        *,
        batch_size: int = BATCH,
        tokenizer: Any = WORD,
        lowercase: bool = True,
        stop_words: str | Collection[str] | None = None,
        min_df: float = 1,
        max_df: float = 1.0,
        max_features: int | None = None,
    ) -> "CorpusStream":
        """Return documents that are read again and again in pieces, never all at once; see `read` for the parameters.

        Without a vocabulary the words are counted in a first pass.

        Examples
        --------
        >>> pieces = Corpus.stream(["a cat", "two dogs", "two cats"], tokenizer=str.split, batch_size=2)
        >>> [len(piece) for piece in pieces], pieces.vocabulary
        ([2, 1], ['a', 'cat', 'cats', 'dogs', 'two'])
        """
        check_count("batch_size", batch_size, 1)
        known = _known(vocabulary)
        cut = (
            vocabulary.tokenizer
            if isinstance(vocabulary, Corpus)
            else Tokenizer(tokenizer, lowercase, stop_words)
        )
        if isinstance(documents, Iterator):
            raise InvalidArgument(
                "a stream is read several times; give a list, a path or an object that starts anew"
            )
        if known is None:
            total: Counter[str] = Counter()
            having: Counter[str] = Counter()
            n = 0
            for _, document in _named_texts(documents, None):
                words = cut.words(document)
                total.update(words)
                having.update(set(words))
                n += 1
            every = sorted(total)
            keep = _Limits(min_df, max_df, max_features).mask(
                np.array([having[w] for w in every]), np.array([total[w] for w in every]), n
            )
            known = [w for w, kept in zip(every, keep, strict=True) if kept]
        return CorpusStream(documents, known, cut, batch_size)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of documents and of words in the vocabulary."""
        return len(self), len(self.vocabulary)

    @property
    def lengths(self) -> Ints:
        """How many known words each document has."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Ints:
        """The document of each word."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def document(self, i: int) -> list[str]:
        """Return the known words of one document."""
        return [self.vocabulary[w] for w in self.words[self.offsets[i] : self.offsets[i + 1]]]

    def position(self, word: str) -> int:
        """Return where a word is in the vocabulary."""
        return Vocabulary.of(self.vocabulary).position(word)

    def counts(self) -> Any:
        """Return how often each document has each word, as a sparse matrix by rows."""
        from scipy.sparse import csr_array

        owners, v = self.owners, len(self.vocabulary)
        cells, n = np.unique(owners * v + self.words, return_counts=True)
        starts = np.searchsorted(cells, np.arange(len(self) + 1) * v)
        return csr_array((n, (cells % max(v, 1)).astype(np.int32), starts), shape=self.shape)

    def document_frequency(self) -> Ints:
        """Return in how many documents each word is."""
        found: Ints = np.bincount(self.counts().indices, minlength=len(self.vocabulary))
        return found

    def __getitem__(self, chosen: Any) -> "Corpus":
        """Return the corpus of some documents: a slice, positions or flags."""
        rows = np.arange(len(self))[chosen].reshape(-1)
        starts, lengths = self.offsets[rows], self.lengths[rows]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        places = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
        return replace(
            self, words=self.words[places], offsets=offsets, names=[self.names[i] for i in rows], unknown=self.unknown[rows]
        )  # fmt: skip

    def split(self, share: float = 0.2, seed: Seed = None) -> "tuple[Corpus, Corpus]":
        """Return two corpora: most documents, and a random share that is held out."""
        order = generator(seed).permutation(len(self))
        out = min(max(round(share * len(self)), 1), max(len(self) - 1, 0))
        return self[np.sort(order[out:])], self[np.sort(order[:out])]

    def halves(self, seed: Seed = None) -> "tuple[Corpus, Corpus]":
        """Return two corpora that share every document's words at random; an odd word goes to the first."""
        rng, owners = generator(seed), self.owners
        order = np.lexsort((rng.random(len(owners)), owners))
        rank = np.arange(len(owners)) - np.repeat(self.offsets[:-1], self.lengths)
        first = np.zeros(len(owners), dtype=bool)
        first[order] = rank % 2 == 0
        return self.where(first), self.where(~first)

    def where(self, chosen: NDArray[np.bool_]) -> "Corpus":
        """Return the documents with some of their words only, by a flag for each of `words`."""
        lengths = np.bincount(self.owners[chosen], minlength=len(self))
        return replace(self, words=self.words[chosen], offsets=np.concatenate([[0], np.cumsum(lengths)]))

    def restricted(self, kept: NDArray[np.bool_]) -> "Corpus":
        """Return the corpus in some words of the vocabulary only; the others count as unknown."""
        place = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
        return self._renamed(place, [w for w, k in zip(self.vocabulary, kept, strict=True) if k])

    def in_words_of(self, vocabulary: list[str]) -> "Corpus":
        """Return the corpus in another vocabulary; words that it does not have count as unknown."""
        place = Vocabulary.of(vocabulary).codes(self.vocabulary)
        return self._renamed(place.astype(np.int32), vocabulary)

    def _renamed(self, place: NDArray[np.int32], vocabulary: list[str]) -> "Corpus":
        words = place[self.words] if len(self.words) else self.words
        found = replace(self, words=words, vocabulary=vocabulary).where(words >= 0)
        return replace(found, unknown=self.unknown + self.lengths - found.lengths)

    def __repr__(self) -> str:
        empty, unknown = int((self.lengths == 0).sum()), int(self.unknown.sum())
        parts = [
            f"{len(self):,} document{'s' * (len(self) != 1)}",
            f"{len(self.words):,} words",
            f"{len(self.vocabulary):,} in the vocabulary",
        ]
        if unknown:
            parts.append(f"{unknown:,} outside it")
        if empty:
            parts.append(f"{empty:,} document{'s are' if empty != 1 else ' is'} empty")
        return f"Corpus({', '.join(parts)})"


@dataclass(frozen=True, eq=False)
class CorpusStream:
    """Documents in pieces of `batch_size`, each a `Corpus` over one vocabulary; may be gone through again and again."""

    documents: Any
    vocabulary: list[str]
    tokenizer: Tokenizer
    batch_size: int = BATCH

    def __iter__(self) -> Iterator[Corpus]:
        rest = _named_texts(self.documents, None)
        while piece := list(islice(rest, self.batch_size)):
            names, texts = zip(*piece, strict=True)
            yield _from_texts(list(texts), self.vocabulary, self.tokenizer, list(names))


def from_counts(
    table: Any, vocabulary: Sequence[str] | None = None, names: Sequence[str] | None = None
) -> Corpus:
    """Return the corpus of a table of counts, dense or sparse, with a row a document and a column a word.

    Examples
    --------
    >>> from_counts(np.array([[2, 0], [1, 3]])).words.tolist()
    [0, 0, 0, 1, 1, 1]
    """
    from scipy.sparse import csr_array, issparse

    if not issparse(table):
        table = _numbers(table)
    sparse = csr_array(table)
    sparse.sum_duplicates()
    data = _numbers(sparse.data)
    wrong = ~(data >= 0) | (data != np.floor(data)) | np.isinf(data)
    if wrong.any():
        i = int(wrong.argmax())
        row = int(np.searchsorted(sparse.indptr, i, side="right")) - 1
        what = "counts of words are whole numbers"
        if not np.isfinite(data[i]):
            what = "counts are neither missing (NaN) nor infinite (inf)"
        if data[i] < 0:
            what = "counts of words are not negative (Negative values in data)"
        raise InvalidArgument(f"row {row}, column {int(sparse.indices[i])} holds {data[i]:g}; {what}")
    n_words = sparse.shape[1]
    if vocabulary is not None and len(vocabulary) != n_words:
        raise InvalidArgument(
            f"the table of counts has {n_words} columns, and the vocabulary {len(vocabulary)} words; the columns are the "
            f"words in their order"
        )
    counts = data.astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(counts)])[sparse.indptr].astype(np.int64)
    return Corpus(
        np.repeat(sparse.indices.astype(np.int32), counts),
        offsets,
        list(vocabulary) if vocabulary is not None else [f"x{j}" for j in range(n_words)],
        [str(n) for n in names] if names is not None else [],
    )


def _numbers(table: Any) -> Array:
    try:
        return np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"a table of counts holds something that is no number: {error}") from None


def _by_name(corpus: Corpus, known: list[str]) -> Corpus:
    """Return a frame's counts in the words of a vocabulary."""
    if not set(known) & set(corpus.vocabulary):
        raise InvalidArgument(
            f"no column of the frame is in the vocabulary: columns are {corpus.vocabulary[0]!r}, ..., words {known[0]!r}, "
            f"...; frame.to_numpy() takes the columns in their order"
        )
    return corpus.in_words_of(known)


def _known(vocabulary: "Sequence[str] | Corpus | None", whose: str = "vocabulary=") -> list[str] | None:
    if vocabulary is None or isinstance(vocabulary, Corpus):
        return None if vocabulary is None else vocabulary.vocabulary
    if isinstance(vocabulary, str):
        raise InvalidArgument(f"vocabulary= is a list of words, not {vocabulary!r}")
    return Vocabulary.of((str(w) for w in vocabulary), whose).words


@dataclass(frozen=True)
class _Limits:
    """Which words stay in a vocabulary."""

    min_df: float
    max_df: float
    max_features: int | None

    def __post_init__(self) -> None:
        for name, value in (("min_df", self.min_df), ("max_df", self.max_df)):
            share = isinstance(value, float) and 0.0 <= value <= 1.0
            if not share and (
                not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 0
            ):
                raise InvalidArgument(
                    f"{name}= is a number of documents or a share between 0.0 and 1.0, not {value!r}"
                )
        check_count("max_features", self.max_features, 1, none=True)

    @property
    def any(self) -> bool:
        return self.min_df not in (0, 1) or self.max_df != 1.0 or self.max_features is not None

    def mask(self, having: Ints, total: Ints, n: int) -> NDArray[np.bool_]:
        least = self.min_df * n if isinstance(self.min_df, float) else self.min_df
        most = self.max_df * n if isinstance(self.max_df, float) else self.max_df
        keep = (having >= least) & (having <= most)
        if self.max_features is not None and keep.sum() > self.max_features:
            order = np.lexsort((np.arange(len(total)), -np.where(keep, total, -1)))
            keep = np.zeros(len(keep), dtype=bool)
            keep[order[: self.max_features]] = True
        if len(keep) and not keep.any():
            raise InvalidArgument(
                f"min_df={self.min_df!r} and max_df={self.max_df!r} leave no word of {len(keep):,}; be less strict"
            )
        return np.asarray(keep)

    def kept(self, corpus: Corpus) -> Corpus:
        total = np.bincount(corpus.words, minlength=len(corpus.vocabulary))
        return corpus.restricted(self.mask(corpus.document_frequency(), total, len(corpus)))


def _as_table(documents: Any) -> tuple[Any, list[str] | None, list[str] | None]:
    """Return a table of counts, the names of its columns and of its rows; None for texts."""
    if hasattr(documents, "tocsr"):
        return documents, None, None
    if type(documents).__module__.startswith("polars") or hasattr(documents, "to_pandas"):
        documents = documents.to_pandas()
    if hasattr(documents, "iloc") and hasattr(documents, "columns"):
        kinds = [dtype.kind for dtype in documents.dtypes]
        if len(kinds) == 1 and kinds[0] not in "biuf":
            return None, None, None
        if any(k not in "biuf" for k in kinds):
            j = next(j for j, k in enumerate(kinds) if k not in "biuf")
            raise InvalidArgument(
                f"the column {documents.columns[j]!r} holds no numbers; give a frame of counts (a column a word), or one "
                f"column of texts such as frame[{documents.columns[j]!r}]"
            )
        return (
            documents.to_numpy(),
            None
            if type(documents.columns).__name__ == "RangeIndex"
            else _known(documents.columns, "the frame"),
            [str(r) for r in documents.index],
        )
    if hasattr(documents, "__array__") and not hasattr(documents, "iloc"):
        documents = np.asarray(documents)
    if isinstance(documents, np.ndarray):
        if documents.ndim == 2 and documents.dtype.kind in "biufc":
            if documents.dtype.kind == "c":
                raise InvalidArgument("Complex data not supported: counts of words are whole numbers")
            return documents, None, None
        if documents.ndim == 2 and documents.dtype.kind in "OUS":
            return _numbers(documents), None, None
        if documents.ndim != 1 or documents.dtype.kind in "biufc":
            raise InvalidArgument(
                f"an array of {documents.ndim} dimensions and shape {documents.shape} is no table of counts: it has a row a "
                f"document and a column a word. Reshape your data"
            )
    elif isinstance(documents, list | tuple) and documents and all(_is_row(row) for row in documents):
        if len({len(row) for row in documents}) > 1:
            raise InvalidArgument("the rows of a table of counts are equally long; words come as texts")
        return np.array(documents), None, None
    return None, None, None


def _is_row(row: Any) -> bool:
    return isinstance(row, list | tuple | np.ndarray) and len(row) > 0 and not isinstance(row[0], str | bytes)


def _named_texts(documents: Any, names: Sequence[str] | None) -> Iterator[tuple[str, Any]]:
    if isinstance(documents, str | os.PathLike):
        yield from texts_at(documents)
        return
    if hasattr(documents, "to_pandas"):
        documents = documents.to_pandas()
    if hasattr(documents, "iloc"):
        column = documents.iloc[:, 0] if hasattr(documents, "columns") else documents
        names, documents = names or [str(i) for i in column.index], column.tolist()
    if isinstance(documents, bytes | dict) or not isinstance(documents, Iterable):
        raise InvalidArgument(
            f"documents are texts, lists of words, a table of counts or a path, not {type(documents).__name__}"
        )
    for i, document in enumerate(documents):
        yield (str(names[i]) if names is not None else str(i)), document


def _from_texts(
    documents: Any, known: list[str] | None, cut: Tokenizer, names: Sequence[str] | None
) -> Corpus:
    if (
        names is not None
        and hasattr(documents, "__len__")
        and not isinstance(documents, str)
        and len(names) != len(documents)
    ):
        raise InvalidArgument(f"names= has {len(names)} names for {len(documents)} documents")
    vocabulary, found_names, pieces = Vocabulary.of(known or ()), [], []
    for name, document in _named_texts(documents, names):
        found_names.append(name)
        pieces.append(vocabulary.codes(cut.words(document, f"document {name!r}"), grow=known is None))
    lengths = np.array([len(p) for p in pieces], dtype=np.int64)
    words = np.concatenate([np.zeros(0, dtype=np.int64), *pieces])
    if known is None:
        vocabulary, place = vocabulary.in_order()
        words = place[words]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    listed = vocabulary.words if known is None else known
    corpus = Corpus(words.astype(np.int32), offsets, listed, found_names, tokenizer=cut)
    kept = corpus.where(words >= 0)
    return replace(kept, unknown=lengths - kept.lengths)


def _vectorised(
    vectoriser: Any, documents: Any, known: list[str] | None, names: Sequence[str] | None
) -> Corpus:
    if isinstance(documents, str | os.PathLike):
        names, documents = zip(*texts_at(documents), strict=True)
    table = (
        vectoriser.transform(documents)
        if hasattr(vectoriser, "vocabulary_")
        else vectoriser.fit_transform(documents)
    )
    corpus = from_counts(table, list(vectoriser.get_feature_names_out()), names)
    cut = Tokenizer(vectoriser.build_analyzer(), lowercase=False)
    found = replace(corpus, tokenizer=cut)
    return found if known is None else found.in_words_of(known)
