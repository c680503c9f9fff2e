"""Expected counts of cases with missing cells on the GPU.

Method: cases and clique trees, laid out by the processor (`markovia.learning.incomplete.incomplete_rows`), are copied to the
GPU when they are first needed; each expectation then copies the tables there and the counts back. A thread takes a case.
Cases are taken in turns by the room that their patterns need; those that need more than `LARGEST_ROOM` are left to the
processor. The sums are of whole numbers, so they are the same in every run.
Reference: Lauritzen (1995); the kernel is `kernels/cuda/expected_counts.cu`.
Cost: once the copy of the cases, and for each expectation that of the tables and counts.
"""

from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from markovia.kernels.incomplete.incomplete_records import GroupCases, PatternTrees
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.devices import DeviceFailure, cuda_module, gpu, guarded
from markovia.runtime.libraries import cp

ROOMS = (0, 1 << 5, 1 << 8, 1 << 11, 1 << 14)
"""Numbers of a thread's room: cases with about the same need run together."""
LARGEST_ROOM = ROOMS[-1]
BLOCK, THREADS = 128, 1 << 17
SHARE = 0.25
"""The part of the free memory that rooms take at most."""


class CaseSums(NamedTuple):
    """The expected counts of cases, their log mass, and the first impossible case or -1."""

    counts: Array
    log_mass: float
    impossible: int


class DeviceCounts:
    """The cases of rows with missing cells, ready for expectations on the GPU.

    Parameters
    ----------
    cases, trees
        As `IncompleteRows` lays them out.

    Examples
    --------
    >>> from markovia.learning.incomplete.device_counts import ROOMS, LARGEST_ROOM
    >>> ROOMS[-1] == LARGEST_ROOM
    True
    """

    def __init__(self, cases: GroupCases, trees: PatternTrees) -> None:
        self.cases, self.trees = cases, trees
        room = _rooms(trees)[cases.pattern]
        self.turns = [np.flatnonzero((room > low) & (room <= high)) for low, high in pairwise(ROOMS)]
        self.left = np.flatnonzero(room > LARGEST_ROOM)
        """Cases that the processor takes."""

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_there"}

    def expect(self, theta: Array, weight: Array) -> CaseSums:
        """Return what all cases say under the tables `theta`, with these weights; those `left` are not among them.

        Raises
        ------
        DeviceFailure
            If the GPU fails.
        """
        # the total weight takes 61 bits, so that no sum runs over
        scale = 2.0 ** (61 - max(0, int(np.ceil(np.log2(max(1.0, weight.sum()))))))
        with guarded():
            there, n = self._there, len(weight)
            tables, weights = cp.asarray(theta), cp.asarray(weight)
            sums, found = cp.zeros(2 * len(theta), dtype=np.uint64), cp.zeros(n)
            run = cuda_module("expected_counts").get_function("expect_cases")
            for listed, words in zip(there.turns, ROOMS[1:], strict=True):
                threads = _threads(len(listed), words)
                if threads:
                    arguments = (
                        listed, np.int32(len(listed)), there.pattern, weights, there.at, there.base, *there.trees,
                        tables, np.float64(scale), np.int32(words), cp.empty(words * threads), sums, found,
                    )  # fmt: skip
                    run((threads // BLOCK,), (BLOCK,), arguments)
            whole, rest = cp.asnumpy(sums).reshape(-1, 2).astype(np.float64).T
            logs = cp.asnumpy(found)
        bad = np.flatnonzero(np.isneginf(logs))
        if len(bad):
            return CaseSums(np.zeros(len(theta)), -np.inf, int(bad[0]))
        return CaseSums((whole + rest / 2.0**32) / scale, float(logs @ weight), -1)

    @cached_property
    def _there(self) -> "_There":
        cases, trees = self.cases, self.trees
        if max(len(cases.base), len(trees.maps), trees.clique.size, trees.slot.size) >= 2**31:
            raise DeviceFailure("the cases are more than 32 bits can number on the GPU")

        def short(numbers: Ints) -> Any:
            return cp.asarray(np.ascontiguousarray(numbers, dtype=np.int32))

        return _There(
            [cp.asarray(listed) for listed in self.turns],
            short(cases.pattern),
            cp.asarray(cases.at),
            short(cases.base),
            (short(trees.clique_at), short(trees.clique), short(trees.slot), cp.asarray(trees.maps)),
        )


class _There(NamedTuple):
    """Cases and trees in the GPU's memory."""

    turns: list[Any]
    pattern: Any
    at: Any
    base: Any
    trees: tuple[Any, Any, Any, Any]


def _rooms(trees: PatternTrees) -> Ints:
    """Return the room that each pattern needs: its tables and messages, and once more its largest separator."""
    clique, last = trees.clique, trees.clique_at[1:] - 1
    found: Ints = clique[last, 6] + clique[last, 0] + clique[last, 1]
    used = np.flatnonzero(np.diff(trees.clique_at))  # a pattern without a tree has no case
    if len(used):
        found[used] += np.maximum.reduceat(clique[:-1, 1], trees.clique_at[used])
    return found


def _threads(wanted: int, words: int) -> int:
    """Return how many threads run, whole blocks."""
    found = gpu()
    fitting = int(min(THREADS, SHARE * (found.free if found else 0) / (8 * words)))
    if wanted and fitting < BLOCK:
        raise DeviceFailure("the GPU has too little free memory for the rooms of its threads")
    return min(fitting // BLOCK, -(-wanted // BLOCK)) * BLOCK
