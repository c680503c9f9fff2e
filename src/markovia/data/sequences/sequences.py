"""Sequences of observations in one flat array: lists of arrays, one array with lengths, frames with a column of ids.

Every model of sequences reads its data here, so all take the same forms, and complain in the same words with the sequence
named. Steps of all sequences lie one after the other, `offsets` say where each begins.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from markovia.data.tables.data_files import names_data
from markovia.data.tables.frames import as_frame
from markovia.errors import InvalidArgument, UnknownVariable
from markovia.runtime.array_types import Ints


@dataclass(frozen=True)
class Sequences:
    """Some sequences, their steps one after the other.

    Attributes
    ----------
    values
        One row a step; two-dimensional, numbers or objects.
    offsets
        Sequence i has the rows `offsets[i]` to `offsets[i + 1]`.
    names
        What each sequence is called: its place, or its id.
    columns
        The names of the columns, where the data had some.
    single
        Whether one sequence was given as it is, and not a list.
    """

    values: Any
    offsets: Ints
    names: tuple[Any, ...]
    columns: tuple[str, ...] = ()
    single: bool = False

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def lengths(self) -> Ints:
        """How many steps each sequence has."""
        return np.diff(self.offsets)

    def split(self, steps: Any) -> list[Any]:
        """Return an array with one entry a step as a list of arrays, one a sequence; views, not copies."""
        return [steps[a:b] for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)]

    def at(self, row: int) -> str:
        """Return where a row is, in words for a message."""
        i = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return f"step {row - int(self.offsets[i])} of sequence {self.names[i]!r}"

    def weights(self, given: Any) -> Any:
        """Return checked weights, one a sequence; all 1 for None."""
        if given is None:
            return np.ones(len(self))
        try:
            found = np.array(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidArgument(f"sample_weight= are numbers, one a sequence, not {given!r}") from None
        if found.shape != (len(self),):
            raise InvalidArgument(
                f"sample_weight= has one number for each of the {len(self):,} sequences, not shape {found.shape}"
            )
        wrong = ~(np.isfinite(found) & (found >= 0.0))
        if wrong.any():
            i = int(np.argmax(wrong))
            raise InvalidArgument(
                f"the weight of sequence {self.names[i]!r} is {found[i]:g}; weights are 0 or more"
            )
        if not found.any():
            raise InvalidArgument("sample_weight= are all 0, so there is nothing to learn from")
        return found

    def numbers(self, *, missing: bool = True) -> Any:
        """Return the values as float64; missing cells are NaN, where they are allowed.

        Raises
        ------
        InvalidArgument
            For a cell that is no number, that is infinite, or that is missing where none may be; it says where.
        """
        try:
            found = np.ascontiguousarray(self.values, dtype=np.float64)
        except (TypeError, ValueError):
            found = np.empty(self.values.shape)
            for (i, j), cell in np.ndenumerate(self.values):
                try:
                    found[i, j] = np.nan if cell is None else cell
                except (TypeError, ValueError):
                    raise InvalidArgument(f"{self.at(i)} has {cell!r}, which is no number") from None
        wrong = np.isinf(found) if missing else ~np.isfinite(found)
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            said = "a missing value" if np.isnan(found[i, j]) else "an infinite value"
            raise InvalidArgument(f"{self.at(int(i))} has {said}")
        return found


def read_sequences(
    data: Any,
    lengths: Iterable[int] | None = None,
    *,
    by: str | None = None,
    columns: Sequence[str] | None = None,
) -> Sequences:
    """Read sequences of any accepted form.

    Parameters
    ----------
    data
        A list of arrays or frames, one a sequence; one array, which is one sequence, or several after each other where
        `lengths` are given; a three-dimensional array of equally long ones; a frame (or files), with `by` where it holds
        several. A one-dimensional array has one number a step.
    lengths
        The lengths of sequences that lie after each other in one array or frame, as hmmlearn takes them.
    by
        The column that tells a frame's sequences apart; their steps keep the frame's order.
    columns
        The columns of frames to take, in this order; all but `by` by default.

    Examples
    --------
    >>> import numpy as np
    >>> found = read_sequences([np.zeros((3, 2)), np.ones((1, 2))])
    >>> len(found), found.lengths.tolist(), found.values.shape
    (2, [3, 1], (4, 2))
    >>> read_sequences([0, 1, 1, 0], lengths=[3, 1]).offsets.tolist()
    [0, 3, 4]
    >>> read_sequences({"who": ["a", "b", "a"], "x": [1, 2, 3]}, by="who").split(np.array([1, 3, 2]))
    [array([1, 3]), array([2])]
    """
    if _is_frame(data) or by is not None:
        return _from_frame(data, lengths, by, columns)
    if isinstance(data, list | tuple) and len(data) and not _is_cell(data[0]):
        if lengths is not None:
            raise InvalidArgument(
                "lengths= is for sequences after each other in one array; a list has one array a sequence"
            )
        return _from_list(data, columns)
    if not isinstance(data, np.ndarray | list | tuple) and hasattr(data, "__array__"):
        data = np.asarray(data)
    if not isinstance(data, np.ndarray | list | tuple):
        raise InvalidArgument(
            "sequences are a list of arrays, an array (with lengths= for several), or a frame (with by= for several), not "
            f"{type(data).__name__}"
        )
    array = _array(data)
    if array.ndim == 3:
        if lengths is not None:
            raise InvalidArgument(
                "lengths= is for a two-dimensional array; a three-dimensional one has equally long sequences"
            )
        n, t, d = array.shape
        return _made(array.reshape(n * t, d), np.full(n, t), range(n))
    if array.ndim > 3:
        raise InvalidArgument(
            f"a sequence has one row a step, so an array of {array.ndim} dimensions is none"
        )
    found = _made(_rows(array), [len(array)] if lengths is None else lengths)
    return found if lengths is not None else replace(found, single=True)


def _is_frame(data: Any) -> bool:
    return (
        hasattr(data, "columns")
        or isinstance(data, Mapping | PathLike)
        or (isinstance(data, str) and names_data(data))
    )


def _is_cell(first: Any) -> bool:
    return not _is_frame(first) and np.ndim(first) == 0


def _array(data: Any) -> Any:
    try:
        found = np.asarray(data)
    except ValueError:
        raise InvalidArgument("a sequence's steps have different numbers of entries") from None
    return found.astype(object) if found.dtype.kind in "US" else found


def _rows(array: Any) -> Any:
    return array[:, None] if array.ndim == 1 else array


def _from_list(data: Sequence[Any], columns: Sequence[str] | None) -> Sequences:
    parts: list[Any] = []
    names: tuple[str, ...] = ()
    for i, one in enumerate(data):
        if _is_frame(one):
            part = _from_frame(one, None, None, columns)
            rows, own = part.values, part.columns
        else:
            rows, own = _rows(_array(one)), ()
        if rows.ndim != 2:
            raise InvalidArgument(f"sequence {i} has {rows.ndim} dimensions; it has one row a step")
        if parts and (rows.shape[1] != parts[0].shape[1] or own != names):
            raise InvalidArgument(
                f"sequence {i} has {rows.shape[1]} columns where sequence 0 has {parts[0].shape[1]}"
                if rows.shape[1] != parts[0].shape[1]
                else f"sequence {i} has other columns than sequence 0: {', '.join(own)}"
            )
        parts.append(rows)
        names = own
    return _made(np.concatenate(parts), [len(p) for p in parts], range(len(parts)), names)


def _from_frame(
    data: Any, lengths: Iterable[int] | None, by: str | None, columns: Sequence[str] | None
) -> Sequences:
    frame = as_frame(data)
    for name in [*([] if by is None else [by]), *(columns or ())]:
        if name not in frame.columns:
            raise UnknownVariable(name, [str(c) for c in frame.columns], "the sequences")
    wanted = list(columns) if columns is not None else [c for c in frame.columns if c != by]
    values = frame[wanted].to_numpy()
    names = tuple(str(c) for c in wanted)
    if by is None:
        found = _made(values, [len(values)] if lengths is None else lengths, None, names)
        return found if lengths is not None else replace(found, single=True)
    if lengths is not None:
        raise InvalidArgument("give lengths= or by=, not both")
    if frame[by].isna().any():
        raise InvalidArgument(
            f"row {int(np.flatnonzero(frame[by].isna())[0])} has no {by!r}, which tells the sequences apart"
        )
    codes, ids = frame[by].factorize()
    return _made(values[np.argsort(codes, kind="stable")], np.bincount(codes), list(ids), names)


def _made(
    values: Any, lengths: Iterable[int], names: Iterable[Any] | None = None, columns: tuple[str, ...] = ()
) -> Sequences:
    counts = np.asarray(list(lengths))
    if counts.size and (counts.dtype.kind not in "iu" or counts.ndim != 1):
        raise InvalidArgument("lengths= are whole numbers, one a sequence")
    called = tuple(range(len(counts))) if names is None else tuple(names)
    if not len(counts):
        raise InvalidArgument("there are no sequences")
    if (counts < 1).any():
        raise InvalidArgument(f"sequence {called[int(np.argmin(counts))]!r} has no steps")
    if counts.sum() != len(values):
        raise InvalidArgument(f"lengths= add up to {counts.sum():,}, but there are {len(values):,} steps")
    if not values.shape[1]:
        raise InvalidArgument("the steps of the sequences have no entries")
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Sequences(values, offsets, called, columns)
