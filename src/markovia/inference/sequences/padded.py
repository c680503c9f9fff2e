"""Sequences of different lengths as one array for compiled scans, and results with one array a sequence."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from markovia.runtime.array_types import Array, Ints


def padded_length(longest: int) -> int:
    """Return a length that many lengths share, so that a scan compiled for one serves the next: 16, 24, 32, 48, 64, ...

    Examples
    --------
    >>> [padded_length(n) for n in (3, 17, 25, 100, 129)]
    [16, 24, 32, 128, 192]
    """
    size = 16
    while size < longest:
        size = size * 3 // 2 if size & (size - 1) == 0 else size * 4 // 3
    return size


def padded(rows: Array, offsets: Ints, fill: float = np.nan) -> Array:
    """Return flat rows as (sequences, steps, ...), filled up at the ends."""
    longest = int(np.diff(offsets).max())
    found = np.full((len(offsets) - 1, padded_length(longest), *rows.shape[1:]), fill, dtype=rows.dtype)
    for one, (a, b) in zip(found, pairwise(offsets.tolist()), strict=True):
        one[: b - a] = rows[a:b]
    return found


class PerSequence(list[Any]):
    """One array a sequence; where one array was asked about and no list, NumPy takes it for that sequence's array.

    Examples
    --------
    >>> found = PerSequence([np.zeros((3, 2))], single=True)
    >>> found[0].shape, found[:, 0].shape, np.asarray(found).shape
    ((3, 2), (3,), (3, 2))
    >>> np.asarray(PerSequence([np.zeros((3, 2))])).shape
    (1, 3, 2)
    """

    def __init__(self, arrays: Any = (), *, single: bool = False) -> None:
        super().__init__(arrays)
        self.single = single

    @classmethod
    def of(cls, rows: Any, offsets: Ints, single: bool = False) -> "PerSequence":
        """Return flat rows as one array a sequence; views, not copies."""
        return cls([rows[a:b] for a, b in pairwise(offsets.tolist())], single=single)

    @classmethod
    def unpadded(cls, batch: Any, offsets: Ints, single: bool = False) -> "PerSequence":
        """Return what a scan over padded sequences found, each at its own length."""
        lengths = np.diff(offsets).tolist()
        return cls([one[:n] for one, n in zip(np.array(batch), lengths, strict=True)], single=single)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self[0] if self.single else list(self), dtype=dtype)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key] if isinstance(key, tuple) else super().__getitem__(key)

    def __reduce__(self) -> Any:
        return _made, (list(self), self.single)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape NumPy sees."""
        return tuple(np.shape(np.asarray(self)))


def _made(arrays: list[Any], single: bool) -> PerSequence:
    return PerSequence(arrays, single=single)


def columns_by_number(values: Any, name: str = "") -> dict[str, Array]:
    """Return the columns of an array (steps, numbers) or of a mapping of such, by name."""
    if isinstance(values, Mapping):
        parts = [columns_by_number(v, str(k)) for k, v in values.items()]
        return {k: v for part in parts for k, v in part.items()}
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim == 1:
        return {name or "number 0": rows}
    flat = rows.reshape(len(rows), -1)
    if flat.shape[1] == 1 and name:
        return {name: flat[:, 0]}
    return {f"{name or 'number '}{f'[{k}]' if name else k}": flat[:, k] for k in range(flat.shape[1])}
