"""A memory of transitions of a fixed size: the oldest make room, and any can be drawn again.

References: Lin (1992); Mnih et al. (2015). Cost: constant for each transition; a draw is one gather of rows.
"""

from dataclasses import fields
from typing import Any

import numpy as np

from markovia.errors import IncompleteModel, TooLarge
from markovia.learning.control.trajectories import Transitions
from markovia.runtime.checks import check_count

MOST_BYTES = 4 * 2**30
"""What a memory may take."""


class ReplayMemory:
    """The last transitions, from which batches are drawn with equal probabilities.

    Parameters
    ----------
    room
        How many there are at most.

    Examples
    --------
    >>> memory = ReplayMemory(2)
    >>> ends = [False] * 3
    >>> memory.add(Transitions([0, 1, 2], [0, 0, 0], [0.0, 1.0, 2.0], [1, 2, 3], ends, ends))
    >>> sorted(memory.rows().reward.tolist())
    [1.0, 2.0]
    """

    def __init__(self, room: int) -> None:
        check_count("memory", room, 1)
        self.room = room
        self._arrays: dict[str, Any] = {}
        self._added = 0

    def __len__(self) -> int:
        return min(self._added, self.room)

    def add(self, rows: Transitions) -> None:
        """Keep some transitions."""
        flat = rows.flat()
        columns = {f.name: getattr(flat, f.name) for f in fields(flat)}
        if not self._arrays:
            size = self.room * sum(c[:1].nbytes for c in columns.values())
            if size > MOST_BYTES:
                raise TooLarge(
                    f"a memory of {self.room:,} transitions takes about {size / 2**30:.1f} GiB; give a smaller memory=",
                    bytes=size,
                )
            self._arrays = {n: np.empty((self.room, *c.shape[1:]), c.dtype) for n, c in columns.items()}
        kept = min(len(flat), self.room)
        at = (self._added + len(flat) - kept + np.arange(kept)) % self.room
        for name, column in columns.items():
            self._arrays[name][at] = column[-kept:]
        self._added += len(flat)

    def rows(self, index: Any = None) -> Transitions:
        """Return the transitions at some places, or all that are there."""
        if not self._arrays:
            raise IncompleteModel("the memory is empty; add transitions first")
        at = slice(0, len(self)) if index is None else index
        return Transitions(**{name: array[at] for name, array in self._arrays.items()})

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Transitions:
        """Return transitions drawn with replacement, in an array of this shape."""
        return self.rows(rng.integers(len(self), size=shape))
