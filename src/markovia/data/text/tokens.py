"""Reading what taggers are given: tokens with features by name (`token_attributes`), in arrays or matrices, and labels."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.data.sequences.sequences import Lengths, Segmented, offsets_of, read_sequences
from markovia.data.text.token_attributes import look_up
from markovia.data.text.vocabulary import Vocabulary
from markovia.errors import InvalidArgument
from markovia.kernels.compiled_code import preferred
from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.threads import in_parallel

KERNELS = "markovia.kernels.fields.token_features"
PARTS = 8
"""In how many parts tokens are worked on; whatever the number of threads, so that sums are the same."""
SMALL = 20_000
ALONE = 200_000
"""Multiplications up to which libraries of linear algebra start no threads, which wait for each other on a busy machine."""
NO_VALUES = np.zeros(0)


@dataclass(frozen=True)
class Tokens(Segmented):
    """The tokens of all sequences, one after the other, with their features.

    Attributes
    ----------
    offsets
        Sequence i has the tokens `offsets[i]` to `offsets[i + 1]`; it may have none.
    names
        What each sequence is called.
    width
        The number of columns.
    dense
        One row of features a token; None where they are sparse, and then
    ptr, columns, values
        token i has `columns[ptr[i] : ptr[i + 1]]`, with such values; no values where all are 1.
    vocabulary
        The columns of features by name.
    """

    offsets: Ints
    names: tuple[Any, ...]
    width: int
    dense: Array | None
    ptr: Ints
    columns: Any
    values: Array
    vocabulary: Vocabulary | None

    def __len__(self) -> int:
        return int(self.offsets[-1])

    @cached_property
    def full(self) -> NDArray[np.bool_]:
        """Which sequences have tokens."""
        return np.diff(self.offsets) > 0

    @cached_property
    def chains(self) -> Ints:
        """The offsets of the sequences that have tokens."""
        return np.concatenate([self.offsets[:-1][self.full], self.offsets[-1:]])

    @property
    def entries(self) -> tuple[Ints, Any, Array]:
        """Pointers, columns and values of all features, also where they are dense."""
        if self.dense is None:
            return self.ptr, self.columns, self.values
        n, d = self.dense.shape
        return np.arange(n + 1) * d, np.tile(np.arange(d, dtype=np.int32), n), self.dense.ravel()

    def often(self, k: int) -> AbstractContextManager[None]:
        """Return a context for work that asks many times with k labels: compiled code pays there from few tokens on."""
        return preferred() if max(len(self.columns), len(self)) * k > SMALL else nullcontext()

    def scores(self, weights: "Array | FewWeights") -> Array:
        """Return features times weights, one row a token; weights have one row a column."""
        k = weights.k if isinstance(weights, FewWeights) else weights.shape[1]
        found = np.zeros((len(self), k))
        if self.dense is not None:
            rows, all_weights = self.dense, weights.dense if isinstance(weights, FewWeights) else weights

            def multiply(part: list[tuple[int, int]], _: None) -> None:
                for a, b in part:
                    np.matmul(rows[a:b], all_weights, out=found[a:b])

            in_parallel(multiply, self._blocks(k), lambda: None)
            return found
        given: tuple[Any, ...]
        if isinstance(weights, FewWeights):
            name, given = "add_few_scores", (weights.starts, weights.labels, weights.values)
        else:
            name, given = "add_scores", (np.ascontiguousarray(weights),)
        self._share(name, k, lambda i: (*given, found), PARTS)
        return found

    def sums(self, beliefs: Array, few: "FewWeights | None" = None) -> Array:
        """Return the sum of features times beliefs, one row a column; for the weights of `few` alone where it is given."""
        k = beliefs.shape[1]
        if self.dense is not None:
            rows = self.dense

            def add(part: list[tuple[int, int]], _: None) -> Array:
                found = np.zeros((self.width, k))
                for a, b in part:
                    found += rows[a:b].T @ beliefs[a:b]
                return found

            return np.asarray(sum(in_parallel(add, self._blocks(k), lambda: None)))
        parts = int(np.clip(len(self.columns) // (8 * self.width + 1), 1, PARTS))
        if few is not None:
            apart = np.zeros((parts, len(few.values)))
            self._share("add_few_sums", k, lambda i: (few.starts, few.labels, beliefs, apart[i]), parts)
        else:
            apart = np.zeros((parts, self.width, k))
            self._share("add_sums", k, lambda i: (beliefs, apart[i]), parts)
        total: Array = apart[0] if parts == 1 else apart.sum(axis=0)
        return total

    def _blocks(self, k: int) -> list[list[tuple[int, int]]]:
        """Return the ranges of tokens, in parts for threads, whose dense products no library shares out among its own."""
        n, most = len(self), ALONE // max(self.width * k, 1)
        if most < PARTS or n <= most:
            return [[(0, n)]]
        blocks = [(a, min(a + most, n)) for a in range(0, n, most)]
        ends = np.linspace(0, len(blocks), min(PARTS, len(blocks)) + 1).astype(int).tolist()
        return [blocks[a:b] for a, b in pairwise(ends)]

    def _share(self, name: str, k: int, arguments: Any, parts: int) -> None:
        steps = len(self.columns) * k
        work = either(f"{KERNELS}:{name}", 6 * steps)
        ends = np.searchsorted(self.ptr, np.linspace(0, len(self.columns), parts + 1)[1:-1])
        bounds = [0, *ends.tolist(), len(self)] if steps > SMALL else [0, len(self)]
        fixed = (self.ptr, self.columns, self.values)
        in_parallel(
            lambda i, _: work(bounds[i], bounds[i + 1], *fixed, *arguments(i)),
            range(len(bounds) - 1),
            lambda: None,
        )

    def some(self, which: Ints) -> "tuple[Tokens, Ints]":
        """Return some of the sequences, and the places of their tokens."""
        lengths = np.diff(self.offsets)[which]
        ends = np.cumsum(lengths)
        place = np.arange(int(lengths.sum())) + np.repeat(self.offsets[which] - (ends - lengths), lengths)
        offsets = np.concatenate([[0], ends])
        names = tuple(self.names[i] for i in which.tolist())
        if self.dense is not None:
            return replace(self, offsets=offsets, names=names, dense=self.dense[place]), place
        counts = np.diff(self.ptr)[place]
        stops = np.cumsum(counts)
        taken = np.arange(int(counts.sum())) + np.repeat(self.ptr[place] - (stops - counts), counts)
        values = self.values[taken] if len(self.values) else self.values
        ptr = np.concatenate([[0], stops])
        found = replace(
            self, offsets=offsets, names=names, ptr=ptr, columns=self.columns[taken], values=values
        )
        return found, place


@dataclass(frozen=True)
class FewWeights:
    """Weights of columns for some labels alone: column a has `starts[a] : starts[a + 1]`."""

    k: int
    starts: Ints
    labels: Ints
    values: Array

    @property
    def dense(self) -> Array:
        """All weights, one row a column; zero where there is none."""
        found = np.zeros((len(self.starts) - 1, self.k))
        found[np.repeat(np.arange(len(found)), np.diff(self.starts)), self.labels] = self.values
        return found


def read_tokens(
    data: Any,
    lengths: Lengths = None,
    *,
    by: str | None = None,
    vocabulary: Vocabulary | None = None,
    grow: bool = False,
) -> Tokens:
    """Read sequences of tokens.

    Parameters
    ----------
    data
        A list of sequences, each a list of tokens with features by name, an array (or a scipy sparse matrix) with one row a
        token, or a frame; or all of it in one, with `lengths` or `by`.
    lengths, by
        As in `markovia.data.sequences.sequences.read_sequences`.
    vocabulary
        The columns of features by name, from training.
    grow
        Whether to make a vocabulary from this data.

    Examples
    --------
    >>> read = read_tokens([[{"word": "the"}, {"word": "dog", "long": False}], [["word:the", "end"]]], grow=True)
    >>> read.vocabulary, read.columns.tolist(), read.values.tolist()
    ({'word:the': 0, 'word:dog': 1, 'long': 2, 'end': 3}, [0, 1, 2, 0, 3], [1.0, 1.0, 0.0, 1.0, 1.0])
    """
    if isinstance(data, Tokens):
        return data
    if isinstance(data, str) or not isinstance(data, Iterable):
        raise InvalidArgument(
            f"sequences are a list with one sequence of tokens each, not {type(data).__name__}"
        )
    if by is not None or hasattr(data, "columns") or isinstance(data, Mapping):
        read = read_sequences(data, lengths, by=by)
        return _dense(read.numbers(missing=False), read.offsets, read.names, vocabulary, grow)
    if hasattr(data, "tocsr"):
        given = _cut(data.tocsr(), _length(data), lengths)
    elif lengths is not None:
        held = data if isinstance(data, np.ndarray) else list(data)
        given = _cut(held, len(held), lengths)
    else:
        given = list(data)
    if not given:
        raise InvalidArgument("there are no sequences; give a list with at least one")
    first = next((s for s in given if _length(s)), None)
    if first is not None and hasattr(first, "tocsr"):
        return _sparse(given, vocabulary, grow)
    named = vocabulary is not None and not grow if first is None else _by_name(first)
    if named:
        return _named(given, Vocabulary() if grow or vocabulary is None else vocabulary, grow)
    blocks = [_block(s, i) for i, s in enumerate(given)]
    kept = [b for b in blocks if len(b)] or blocks[:1]
    for i, b in enumerate(blocks):
        if len(b) and b.shape[1] != kept[0].shape[1]:
            raise InvalidArgument(
                f"sequence {i} has {b.shape[1]} node features but sequence 0 has {kept[0].shape[1]}"
            )
    offsets = np.concatenate([[0], np.cumsum([len(b) for b in blocks])]).astype(np.int64)
    return _dense(np.concatenate(kept), offsets, tuple(range(len(blocks))), vocabulary, grow)


def _length(sequence: Any) -> int:
    shape = getattr(sequence, "shape", None)
    return int(shape[0]) if shape else len(sequence)


def _by_name(sequence: Any) -> bool:
    if isinstance(sequence, np.ndarray):
        return False
    token = sequence[0] if isinstance(sequence, Sequence) else next(iter(sequence))
    return (
        isinstance(token, Mapping | str | set | frozenset)
        or (isinstance(token, list | tuple) and len(token) > 0 and isinstance(token[0], str))
        or (isinstance(token, list | tuple) and len(token) == 0)
    )


def _cut(held: Any, n: int, lengths: Lengths) -> list[Any]:
    ends = offsets_of([n] if lengths is None else lengths, n, empty=True).tolist()
    return [held[a:b] for a, b in pairwise(ends)]


def _dense(
    values: Array, offsets: Ints, names: tuple[Any, ...], vocabulary: Vocabulary | None, grow: bool
) -> Tokens:
    if vocabulary is not None and not grow:
        raise InvalidArgument("the model was trained on features by name; give one mapping a token")
    none = np.zeros(0, dtype=np.int64)
    return Tokens(offsets, names, values.shape[1], np.ascontiguousarray(values), none, none, NO_VALUES, None)


def _block(sequence: Any, i: int) -> Array:
    try:
        rows = np.asarray(sequence, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidArgument(f"the node features of sequence {i} are no array of numbers") from error
    if rows.ndim == 1:
        rows = rows[:, None]
    if rows.ndim != 2:
        raise InvalidArgument(
            f"the node features of sequence {i} have shape {rows.shape}; one row a token is needed"
        )
    if not np.isfinite(rows).all():
        t = int(np.argmin(np.isfinite(rows).all(axis=1)))
        raise InvalidArgument(f"step {t} of sequence {i} has a missing or infinite node feature")
    return rows


def _sparse(given: list[Any], vocabulary: Vocabulary | None, grow: bool) -> Tokens:
    from scipy.sparse import vstack

    if vocabulary is not None and not grow:
        raise InvalidArgument("the model was trained on features by name; give one mapping a token")
    for i, one in enumerate(given):
        if not hasattr(one, "tocsr"):
            raise InvalidArgument(f"sequence {i} is no sparse matrix where others are")
        if one.shape[1] != given[0].shape[1]:
            raise InvalidArgument(
                f"sequence {i} has {one.shape[1]} node features but sequence 0 has {given[0].shape[1]}"
            )
    matrix = vstack(given, format="csr").astype(np.float64)
    offsets = np.concatenate([[0], np.cumsum([m.shape[0] for m in given])]).astype(np.int64)
    names = tuple(range(len(given)))
    values = matrix.data
    found = Tokens(
        offsets, names, matrix.shape[1], None, matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32),
        NO_VALUES if (values == 1.0).all() else values, None,
    )  # fmt: skip
    if not np.isfinite(values).all():
        row = int(np.searchsorted(found.ptr, np.argmin(np.isfinite(values)), side="right")) - 1
        raise InvalidArgument(f"{found.at(row)} has a missing or infinite node feature")
    return found


def _named(given: list[Any], vocabulary: Vocabulary, grow: bool) -> Tokens:
    known, at, ptr, sizes = look_up(given, vocabulary, grow)
    columns = np.array(known.columns, dtype=np.int32)[at]
    numbers = np.array(known.numbers, dtype=np.float64)
    values = NO_VALUES if (numbers == 1.0).all() else numbers[at]
    if -1 in known.columns:
        there = columns >= 0
        ptr = np.concatenate([[0], np.cumsum(there)])[ptr]
        columns, values = columns[there], values[there] if len(values) else values
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    names = tuple(range(len(sizes)))
    return Tokens(offsets, names, len(known.vocabulary), None, ptr, columns, values, known.vocabulary)


MISSING, UNKNOWN = -1, -2


def read_tags(
    labels: Any,
    tokens: Tokens,
    *,
    cut: bool = False,
    classes: NDArray[Any] | None = None,
    strict: bool = True,
) -> tuple[Ints, NDArray[Any]]:
    """Return the label code of each token, -1 where it has none (None or NaN), and the labels in order.

    Parameters
    ----------
    labels
        One list of labels a sequence; with `cut` one list for all.
    tokens
        The tokens they belong to.
    classes
        The labels there are, from training; those in the data otherwise.
    strict
        Whether a label that is none of them is an error; its code is -2 otherwise.
    """
    if isinstance(labels, Mapping | str) or not isinstance(labels, Iterable):
        raise InvalidArgument(f"labels are a list with one labelling a sequence, not {type(labels).__name__}")
    listed = [labels] if cut else list(labels)
    sizes = [len(tokens)] if cut else np.diff(tokens.offsets).tolist()
    if len(listed) != len(sizes):
        raise InvalidArgument(f"there are {len(sizes)} sequences but {len(listed)} labellings")
    rows = []
    for i, (y, n) in enumerate(zip(listed, sizes, strict=True)):
        row = y.tolist() if hasattr(y, "tolist") else y if isinstance(y, list) else list(y)
        if len(row) != n or isinstance(y, str):
            raise InvalidArgument(f"sequence {tokens.names[i]!r} has {n} tokens but {len(row)} labels")
        rows.append(row)
    flat = list(chain.from_iterable(rows))
    try:
        found = set(flat)
    except TypeError:
        row = next(r for r, v in enumerate(flat) if not isinstance(v, str | int | float | np.generic | None))
        raise InvalidArgument(
            f"{tokens.at(row)} has the label {flat[row]!r}; labels are strings or whole numbers"
        ) from None
    gone = [v for v in found if v is None or v != v]
    kept = [v for v in found if v is not None and v == v]
    for v in kept:
        whole = isinstance(v, int | np.integer | np.bool_) or (isinstance(v, float) and v == round(v))
        if not isinstance(v, str) and not whole:
            raise InvalidArgument(
                f"{tokens.at(flat.index(v))} has the label {v!r}; labels are categories (strings, whole numbers or truth "
                "values), not real numbers"
            )
    if len({isinstance(v, str) for v in kept}) > 1:
        strange = next(v for v in kept if not isinstance(v, str))
        raise InvalidArgument(
            f"{tokens.at(flat.index(strange))} has the label {strange!r}, so labels are not all strings or all numbers"
        )
    if classes is None:
        if any(isinstance(v, float) for v in kept):
            classes = np.array(sorted(int(v) for v in kept))
        else:
            classes = np.array(sorted(kept)) if kept else np.zeros(0, dtype=np.int64)
    codes = Vocabulary.of(classes.tolist())
    for v in kept:
        if v not in codes and strict:
            shown = ", ".join(repr(c) for c in classes.tolist()[:12])
            raise InvalidArgument(
                f"{tokens.at(flat.index(v))} has the unknown label {v!r}; the labels are {shown}"
            )
    table = {v: codes.get(v, UNKNOWN) for v in kept} | dict.fromkeys(gone, MISSING)
    return np.fromiter(map(table.__getitem__, flat), dtype=np.int64, count=len(flat)), classes
