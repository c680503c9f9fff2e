"""Batches of rows that are in memory: which rows a step sees is a function of the seed and the number of the step.

An epoch is a permutation of the rows, cut into batches that differ by one row at most. All batches have one shape, as
compiled code needs it: the shorter ones are filled up with a row of weight 0.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.libraries import jax


class Batch(NamedTuple):
    """What a loss sees of the data at a step.

    Attributes
    ----------
    rows
        A tree of arrays, a row each along the first axis.
    weight
        1 for each row, 0 for those that only fill up the batch.
    """

    rows: Any
    weight: Any


class BatchStream(Protocol):
    """Batches that come one by one, the same ones whenever an epoch is asked for; `markovia.data.batches` makes them."""

    @property
    def digest(self) -> str:
        """What tells these batches from others."""

    def epoch(self, number: int) -> Iterator[Batch]:
        """Return the batches of an epoch."""


class RowBatches:
    """Batches of the rows of arrays.

    Parameters
    ----------
    data
        A tree of arrays with a row each along the first axis; None where only the numbers of rows are wanted.
    size
        Rows a batch at most; None for all.
    seed
        What the order is made from; None leaves the rows in their order.
    rows
        The numbers of the rows that there are; by default all of the data.

    Examples
    --------
    >>> batches = RowBatches(None, size=3, seed=None, rows=np.arange(5))
    >>> index, weight = batches.indices(0, 2)
    >>> index.tolist(), weight.tolist()
    ([[0, 1, 2], [3, 4, 0]], [[1.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    """

    def __init__(
        self, data: Any, size: int | None = None, seed: int | None = None, rows: Ints | None = None
    ) -> None:
        self.data = data
        self.seed = seed
        self.rows = np.arange(row_count(data)) if rows is None else rows
        if not len(self.rows):
            raise InvalidArgument("there are no rows to train on; give at least one")
        n = len(self.rows)
        self.steps = -(-n // min(size or n, n))
        self.width = -(-n // self.steps)
        self._order: tuple[int, tuple[NDArray[np.int32], Array]] | None = None

    def indices(self, first: int, count: int) -> tuple[NDArray[np.int32], Array]:
        """Return the rows of some steps and their weights, one step a row."""
        epochs = range(first // self.steps, (first + count - 1) // self.steps + 1)
        parts = [self._epoch(epoch) for epoch in epochs]
        at = first - epochs.start * self.steps
        index, weight = (np.concatenate([part[k] for part in parts])[at : at + count] for k in (0, 1))
        return index.astype(np.int32), weight

    def _epoch(self, number: int) -> tuple[NDArray[np.int32], Array]:
        if self._order is None or self._order[0] != number:
            rows = self.rows
            if self.seed is not None:
                rows = np.random.default_rng([self.seed, number]).permutation(rows)
            # the first `full` batches have a row more than the others, which are filled up without weight
            full = len(rows) - self.steps * (self.width - 1)
            longer, shorter = rows[: full * self.width], rows[full * self.width :]
            index = np.full((self.steps, self.width), rows[0], dtype=np.int32)
            index[:full] = longer.reshape(full, self.width)
            index[full:, :-1] = shorter.reshape(self.steps - full, self.width - 1)
            weight = np.ones(index.shape)
            weight[full:, -1] = 0.0
            self._order = number, (index, weight)
        return self._order[1]


def row_count(data: Any) -> int:
    """Return how many rows all arrays of a tree have."""
    counts = {np.shape(leaf)[0] if np.ndim(leaf) else -1 for leaf in jax.tree.leaves(data)}
    if len(counts) != 1 or -1 in counts:
        raise InvalidArgument(
            "data= are arrays with the same number of rows along their first axis; "
            f"these have {sorted(counts)}".replace("-1", "none")
        )
    return int(counts.pop())
