"""The log likelihoods of families from sums over sets of columns, for rows in memory.

A family's log likelihood is the sum of n log n over the configurations of child and parents minus that of the parents, so
the sets of all variables' families are counted once. Sets are bit masks, with columns of much entropy at the high bits:
these split the rows first, and few rows are left for the others.
Cost: see `markovia.kernels.structure.set_partitions`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.row_sources import CodedTable
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.threads import in_parallel, thread_count

PART = 2048
"""Sets that a thread takes at a time."""
MOST_WHOLE = 1 << 24
"""Whole weights are added as such up to this sum."""
BLOCK = 1 << 16
"""Sets that are counted between two looks at the clock."""


MOST_CELLS = 1 << 26
"""The largest number of rows times states that the compiled code counts in; beyond, tables go the usual way."""


def fits(table: CodedTable, cards: Ints) -> bool:
    """Say whether there are rows, and few enough with as many states as the widest column has."""
    return table.total > 0 and (table.n_rows + 1) * int(cards.max(initial=1)) <= MOST_CELLS


class Stopped(Exception):
    """The clock ran out while sets were counted."""


class SetSums:
    """Sums of n log n over sets of columns of a table, remembered.

    Parameters
    ----------
    table
        Complete rows.
    names
        The columns in the order of their numbers; at most 62.
    occupied
        Count the configurations that occur instead; for rows without weights.
    """

    def __init__(self, table: CodedTable, names: tuple[str, ...], occupied: bool = False) -> None:
        cards = np.array([len(table.variables[n]) for n in names], dtype=np.int64)
        kind = np.uint8 if cards.max(initial=1) <= 256 else np.int32
        codes = np.stack([table.column(n) for n in names]).astype(kind)
        n_rows = codes.shape[1]
        self.weights: NDArray[Any] = (
            np.ones(n_rows, dtype=np.int32) if table.weights is None else table.weights
        )
        whole = table.weights is None or bool((table.weights == np.round(table.weights)).all())
        whole &= table.total < MOST_WHOLE
        if whole:
            self.weights = self.weights.astype(np.int32)
        spread = [_entropy(c, table.weights) for c in codes]
        order = np.argsort(spread, kind="stable")  # bit b is column order[b]
        self.codes, self.cards = np.ascontiguousarray(codes[order]), cards[order]
        self.bit = np.empty(len(names), dtype=np.int64)
        self.bit[order] = np.arange(len(names))
        self.lower = np.zeros((len(names), n_rows), dtype=np.int32)
        for b in range(len(names) - 1):
            pairs = self.lower[b] * self.cards[b] + self.codes[b]
            self.lower[b + 1] = np.unique(pairs, return_inverse=True)[1]
        sizes = np.arange(round(table.total) + 1 if whole else 0, dtype=np.float64)
        self.xlogx = np.minimum(sizes, 1.0) if occupied else sizes * np.log(np.maximum(sizes, 1.0))
        total = table.total
        none = min(total, 1.0) if occupied else total * np.log(total) if total > 0 else 0.0
        self._masks: dict[int, Ints] = {0: np.zeros(1, dtype=np.int64)}
        self._sums: dict[int, Array] = {0: np.array([none])}
        self.n_counted = 0

    def masks(self, parents: Ints) -> Ints:
        """Return the masks of sets of one size, one row a set."""
        found: Ints = (np.int64(1) << self.bit[parents]).sum(axis=1)
        return found

    def likelihoods(self, asked: dict[int, Ints], over: Callable[[], bool]) -> dict[int, Array]:
        """Return for each child the log likelihoods given sets of parents, as masks; all sets are of one size.

        Raises
        ------
        Stopped
            As soon as `over` says so.
        """
        size = max((int(m[:1].item()).bit_count() for m in asked.values() if len(m)), default=0)
        self._count(size, list(asked.values()), over)
        self._count(size + 1, [m | np.int64(1) << self.bit[x] for x, m in asked.items()], over)
        return {
            x: self._look(size + 1, m | np.int64(1) << self.bit[x]) - self._look(size, m)
            for x, m in asked.items()
        }

    def sums(self, sets: Ints) -> Array:
        """Return the sums of sets of one size, one row a set."""
        masks = self.masks(sets)
        self._count(sets.shape[1], [masks], lambda: False)
        return self._look(sets.shape[1], masks)

    def known(self, sets: Ints) -> Array:
        """Return the sums of sets of one size, one row a set; minus infinity where they are not known."""
        return self._look(sets.shape[1], self.masks(sets))

    def given_all(self, x: int, others: Ints) -> float:
        """Return the log likelihood of x given many columns."""
        above = np.sort(np.append(self.bit[others], self.bit[x]))[::-1]
        below = np.sort(self.bit[others])[::-1]
        return float(self._run(above[None])[0] - self._run(below[None])[0]) if len(others) else -np.inf

    def _look(self, size: int, masks: Ints) -> Array:
        known = self._masks.get(size)
        found = np.full(len(masks), -np.inf)
        if known is None or not len(known):
            return found
        at = np.minimum(np.searchsorted(known, masks), len(known) - 1)
        there = known[at] == masks
        found[there] = self._sums[size][at[there]]
        return found

    def _count(self, size: int, asked: list[Ints], over: Callable[[], bool]) -> None:
        fresh = np.unique(np.concatenate(asked))
        known = self._masks.get(size, np.empty(0, dtype=np.int64))
        if len(known):
            at = np.minimum(np.searchsorted(known, fresh), len(known) - 1)
            fresh = fresh[known[at] != fresh]
        if not len(fresh) or size == 0:
            return
        top = len(self.bit) - 1
        bits = (fresh[:, None] >> np.arange(top, -1, -1)) & 1
        members = (top - np.nonzero(bits)[1]).reshape(len(fresh), size)
        sums = np.empty(len(fresh))
        for low in range(0, len(fresh), BLOCK):
            if over():
                raise Stopped
            sums[low : low + BLOCK] = self._run(members[low : low + BLOCK])
        self.n_counted += len(fresh)
        together = np.concatenate([known, fresh])
        order = np.argsort(together, kind="stable")
        self._masks[size] = together[order]
        self._sums[size] = np.concatenate([self._sums.get(size, np.empty(0)), sums])[order]

    def _run(self, members: Ints) -> Array:
        from markovia.kernels.structure.set_partitions import room_for, set_sums

        out = np.empty(len(members))
        members = np.ascontiguousarray(members)
        part = PART if len(members) > 2 * PART else max(1, len(members))

        def stretch(low: int, room: Any) -> None:
            end = low + part
            set_sums(self.codes, self.lower, self.cards, members[low:end], self.xlogx, room, out[low:end])

        def room() -> Any:
            return room_for(self.codes, self.weights, self.cards, members.shape[1])

        in_parallel(stretch, range(0, len(members), part), room, thread_count())
        return out


def _entropy(column: NDArray[np.integer], weights: Array | None) -> float:
    counts = np.bincount(column, weights).astype(np.float64)
    share = counts[counts > 0] / counts.sum()
    return float(-(share * np.log(share)).sum())
