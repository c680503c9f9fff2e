"""Sequences of observations in one flat array: lists of arrays, one array with lengths, frames with ids and dates.

Every model of sequences reads its data here, so all take the same forms, and complain in the same words with the sequence
named. Steps of all sequences lie one after the other, `offsets` say where each begins.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from os import PathLike
from typing import Any, TypeAlias

import numpy as np

from markovia.data.tables.data_files import names_data
from markovia.data.tables.frames import as_frame
from markovia.errors import InvalidArgument, check_known
from markovia.runtime.array_types import Ints
from markovia.runtime.checks import numbers

Lengths: TypeAlias = Iterable[int] | None
"""How long sequences are that lie after each other."""


class Segmented:
    """Sequences whose steps lie one after the other: sequence i has those from `offsets[i]` to `offsets[i + 1]`."""

    offsets: Ints
    names: tuple[Any, ...]

    @cached_property
    def lengths(self) -> Ints:
        """How many steps each sequence has."""
        return np.diff(self.offsets)

    def split(self, steps: Any) -> list[Any]:
        """Return an array with one entry a step as a list of arrays, one a sequence; views, not copies."""
        return [steps[a:b] for a, b in pairwise(self.offsets.tolist())]

    def at(self, row: int) -> str:
        """Return where a row is, in words for a message."""
        i = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return f"step {row - int(self.offsets[i])} of sequence {self.names[i]!r}"


@dataclass(frozen=True)
class Sequences(Segmented):
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
    dates
        The date of each step, where the data had a column of them.
    first
        The number of the first step, where steps come in one by one; None for whole sequences.
    """

    values: Any
    offsets: Ints
    names: tuple[Any, ...]
    columns: tuple[str, ...] = ()
    single: bool = False
    dates: Any = None
    first: int | None = None

    def at(self, row: int) -> str:
        """Return where a row is, in words for a message; of a stream, by the number of its step."""
        return super().at(row) if self.first is None else f"step {self.first + row}"

    def __len__(self) -> int:
        return len(self.names)

    def weights(self, given: Any) -> Any:
        """Return checked weights, one a sequence; all 1 for None."""
        if given is None:
            return np.ones(len(self))
        found = numbers(given, "sample_weight= are numbers, one a sequence")
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

    def dates_ahead(self, steps: int) -> list[Any] | None:
        """Return the dates of the steps after each sequence; None where the data had none, or none at equal distances.

        Months and years count as equal, as do days of business: what pandas finds in the dates before goes on.

        Examples
        --------
        >>> import pandas as pd
        >>> sales = {"month": pd.date_range("2024-11-01", periods=3, freq="MS"), "sold": [3, 1, 2]}
        >>> read_sequences(sales).dates_ahead(2)[0].astype(str).tolist()
        ['2025-02-01', '2025-03-01']
        """
        import pandas as pd

        found = []
        for dates in [] if self.dates is None else self.split(self.dates):
            own = pd.DatetimeIndex(dates, freq="infer")
            between = own[1] - own[0] if len(own) == 2 else own.freq
            if between is None:
                return None
            found.append(pd.date_range(own[-1], periods=steps + 1, freq=between)[1:])
        return found or None

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
    lengths: Lengths = None,
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
        several; or `Sequences` that were read before. A one-dimensional array has one number a step. Dates are a column of
        a frame, or the index of a frame or series.
    lengths
        The lengths of sequences that lie after each other in one array or frame, as hmmlearn takes them.
    by
        The column that tells a frame's sequences apart; their steps keep the frame's order, or that of its column of
        dates, where it has one.
    columns
        The columns of frames to take, in this order; all but `by` and dates by default.

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
    if isinstance(data, Sequences):
        if lengths is not None or by is not None:
            raise InvalidArgument(
                "these sequences were read before; lengths= and by= are for data that were not"
            )
        return data
    if _is_frame(data) or by is not None:
        return _from_frame(data, lengths, by, columns)
    if isinstance(data, list | tuple) and len(data) and not _is_cell(data[0]):
        if lengths is not None:
            raise InvalidArgument(
                "lengths= is for sequences after each other in one array; a list has one array a sequence"
            )
        return _from_list(data, columns)
    if hasattr(data, "to_frame") and hasattr(data, "index"):  # a series of pandas, whose index may hold dates
        return replace(_from_frame(data.to_frame(), lengths, None, None), columns=())
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
    dates: list[Any] = []
    names: tuple[str, ...] = ()
    for i, one in enumerate(data):
        if _is_frame(one):
            part = _from_frame(one, None, None, columns)
            rows, own = part.values, part.columns
            dates += [] if part.dates is None else [part.dates]
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
    found = _made(np.concatenate(parts), [len(p) for p in parts], range(len(parts)), names)
    return replace(found, dates=np.concatenate(dates)) if len(dates) == len(parts) else found


def _from_frame(data: Any, lengths: Lengths, by: str | None, columns: Sequence[str] | None) -> Sequences:
    frame = as_frame(data)
    check_known([*([] if by is None else [by]), *(columns or ())], frame.columns, "the sequences")
    dated = zip(frame.columns, (kind.kind == "M" for kind in frame.dtypes), strict=True)
    dates = [c for c, holds in dated if holds and c != by and columns is None]
    wanted = list(columns) if columns is not None else [c for c in frame.columns if c not in (by, *dates)]
    values = frame[wanted].to_numpy()
    names = tuple(str(c) for c in wanted)
    if by is not None and lengths is not None:
        raise InvalidArgument("give lengths= or by=, not both")
    if by is not None and frame[by].isna().any():
        raise InvalidArgument(
            f"row {int(np.flatnonzero(frame[by].isna())[0])} has no {by!r}, which tells the sequences apart"
        )
    if by is not None:
        codes, ids = frame[by].factorize()
        counts, called = np.bincount(codes), list(ids)
    else:
        counts, called = np.asarray([len(values)] if lengths is None else list(lengths)), None
        whole = counts.dtype.kind in "iu" and counts.sum() == len(values) and (counts > 0).all()
        codes = np.repeat(np.arange(len(counts)), counts) if whole else np.zeros(len(values), dtype=np.int64)
    order, times = _in_order(frame, dates, codes)
    if not dates:
        times = _dates_of_index(frame.index, order, codes)
    found = _made(values[order], counts, called, names)
    return replace(found, single=by is None and lengths is None, dates=times)


def _dates_of_index(index: Any, order: Ints, codes: Ints) -> Any:
    """Return the dates that an index holds, if each step of a sequence is later than the one before; None otherwise."""
    times = index.to_timestamp() if hasattr(index, "to_timestamp") else index
    if getattr(times, "dtype", np.dtype(object)).kind != "M":
        return None
    found = times.to_numpy(dtype="datetime64[ns]")[order]
    later = (found[1:] > found[:-1]) | (codes[order][1:] != codes[order][:-1])
    return found if later.all() else None


def _in_order(frame: Any, dates: list[Any], codes: Ints) -> tuple[Ints, Any]:
    """Return the rows of sequences one after the other, each in the order of its dates if it has some, and the dates."""
    if not dates:
        return np.argsort(codes, kind="stable"), None
    if len(dates) > 1:
        raise InvalidArgument(
            f"{dates[0]!r} and {dates[1]!r} both hold dates; steps have one, so leave the others out"
        )
    times = frame[dates[0]].to_numpy(dtype="datetime64[ns]")
    if np.isnat(times).any():
        raise InvalidArgument(f"row {int(np.flatnonzero(np.isnat(times))[0])} has no date in {dates[0]!r}")
    order = np.lexsort((times, codes))
    same = (times[order][1:] == times[order][:-1]) & (codes[order][1:] == codes[order][:-1])
    if same.any():
        row = int(order[1:][same][0])
        raise InvalidArgument(
            f"row {row} has the date {times[row]!s} of another step of its sequence; say by= which column tells "
            "sequences apart, or give each step a date of its own"
        )
    return order, times[order]


def read_inputs(inputs: Any, rows: Sequences, *, by: str | None = None) -> Any:
    """Return the known inputs of sequences, a row a step: in the sequences' own form, or in one array after each other.

    Raises
    ------
    InvalidArgument
        For other numbers of steps than the sequences have, and for inputs that are missing or no numbers.
    """
    several = isinstance(inputs, list | tuple) and len(inputs) == len(rows) and np.ndim(inputs[0]) > 0
    found = read_sequences(inputs, by=by if _is_frame(inputs) and not several else None)
    if not found.single and not np.array_equal(found.offsets, rows.offsets):
        wrong = [n for n, a, b in zip(rows.names, found.lengths, rows.lengths, strict=False) if a != b]
        which = f"; those of sequence {wrong[0]!r} do not" if wrong else ""
        raise InvalidArgument(f"inputs= have a row for each step of each sequence{which}")
    if len(found.values) != len(rows.values):
        raise InvalidArgument(
            f"inputs= has {len(found.values):,} steps, but the sequences have {len(rows.values):,}"
        )
    return found.numbers(missing=False)


def _made(
    values: Any, lengths: Iterable[int], names: Iterable[Any] | None = None, columns: tuple[str, ...] = ()
) -> Sequences:
    called = None if names is None else tuple(names)
    offsets = offsets_of(lengths, len(values), called)
    if not values.shape[1]:
        raise InvalidArgument("the steps of the sequences have no entries")
    return Sequences(values, offsets, tuple(range(len(offsets) - 1)) if called is None else called, columns)


def offsets_of(
    lengths: Iterable[int], steps: int, names: Sequence[Any] | None = None, *, empty: bool = False
) -> Ints:
    """Return where each of some sequences begins among all their steps, and the end; `empty` ones may be allowed.

    Raises
    ------
    InvalidArgument
        For lengths that are no whole numbers, or do not add up to the steps.
    """
    counts = np.asarray(list(lengths))
    if counts.ndim != 1 or (counts.size and counts.dtype.kind not in "iu") or (empty and (counts < 0).any()):
        raise InvalidArgument("lengths= are whole numbers, one a sequence")
    if not len(counts):
        raise InvalidArgument("there are no sequences")
    if (counts < 1).any() and not empty:
        i = int(np.argmin(counts))
        raise InvalidArgument(f"sequence {(i if names is None else names[i])!r} has no steps")
    if counts.sum() != steps:
        raise InvalidArgument(f"lengths= add up to {int(counts.sum()):,}, but there are {steps:,} steps")
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
