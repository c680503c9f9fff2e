"""Tests of conditional independence by the thousand: kept in arrays, listed one by one only when somebody looks.

Among n variables there are n (n - 1) / 2 pairs; a record each would take hundreds of bytes.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from markovia.runtime.array_types import Array, Flags
from markovia.structure.task.result import TestMade

Small = NDArray[np.int32]
Row = tuple[int, int, tuple[int, ...], float]
"""Two variables, what is given, and the p-value."""


class PairTests(NamedTuple):
    """Tests of pairs given nothing: `asked[x, y]` for x < y, and for each x the p-values of its pairs in their order."""

    asked: Flags
    p_values: list[Array]

    def __iter__(self) -> Iterator[Row]:  # type: ignore[override]
        for x, own in enumerate(self.p_values):
            others = x + 1 + np.flatnonzero(self.asked[x, x + 1 :])
            yield from ((x, y, (), p) for y, p in zip(others.tolist(), own.tolist(), strict=True))

    @property
    def size(self) -> int:
        """The number of tests."""
        return sum(map(len, self.p_values))


class SetTests(NamedTuple):
    """Tests given sets of one size: `xs`, `ys` and `p_values` (tests), `given` (tests, size)."""

    xs: Small
    ys: Small
    given: Small
    p_values: Array

    def __iter__(self) -> Iterator[Row]:  # type: ignore[override]
        columns = (self.xs.tolist(), self.ys.tolist(), self.given.tolist(), self.p_values.tolist())
        return ((x, y, tuple(given), p) for x, y, given, p in zip(*columns, strict=True))

    @property
    def size(self) -> int:
        """The number of tests."""
        return len(self.xs)


class TestsMade(Sequence[TestMade]):
    """The tests of a search in their order, each made into a record when it is looked at.

    Parameters
    ----------
    rows
        Yields the tests.
    size
        How many there are.
    names, alpha
        The variables, and the level above which independence is accepted.
    """

    __test__ = False  # not a class of tests for pytest

    def __init__(
        self, rows: Callable[[], Iterator[Row]], size: int, names: Sequence[str], alpha: float
    ) -> None:
        self._rows, self._size, self._names, self._alpha = rows, size, names, alpha

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[TestMade]:
        names = self._names
        for x, y, given, p in islice(self._rows(), self._size):
            yield TestMade(names[x], names[y], tuple(names[z] for z in given), p, p > self._alpha)

    @overload
    def __getitem__(self, index: int) -> TestMade: ...
    @overload
    def __getitem__(self, index: slice) -> list[TestMade]: ...
    def __getitem__(self, index: int | slice) -> TestMade | list[TestMade]:
        if isinstance(index, slice):
            return list(self)[index]
        place = index + self._size if index < 0 else index
        if not 0 <= place < self._size:
            raise IndexError(f"there are {self._size:,} tests")
        return next(islice(iter(self), place, None))

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> Any:
        return list, (list(self),)
