"""A clique tree for rows of data on the GPU: some thousand rows at a time.

Method: a `RowProgram` is copied to the GPU once; rows go there as they come, in 8, 16 or 32 bits. A warp takes a row. Rows
whose tables outgrow its room are taken again, by a block each. What no room holds, and products that may leave the range of
doubles, are answered by the processor's kernel. Answers come back through page-locked memory, from which all threads copy
them to where they belong.
Reference: Lauritzen & Spiegelhalter (1988); the kernel is `kernels/cuda/evidence_rows.cu`.
Cost: two copies, of the rows and of the answers, which for small networks take longer than the messages.
Use it through `device="gpu"` of the engines that answer rows (`markovia.inference.choosing.evidence_rows`).
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.runtime.array_types import Array, Codes, Ints
from markovia.runtime.device_copies import bring
from markovia.runtime.devices import cuda_module, gpu, guarded
from markovia.runtime.libraries import cp

if TYPE_CHECKING:
    from markovia.inference.exact.row_programs import RowProgram

TURNS = ((32, 1 << 14), (256, 1 << 21))
"""The lanes that take a row together, and the entries of its room, one turn after the other; no table has more than 2^21."""
LANES, BLOCK = 1 << 18, 256
"""Lanes in flight at most, what a large GPU keeps at a time; and those of a block."""
SHARED = 48 * 1024
"""Bytes of a block's shared memory, for the books of its rows."""
SHARE = 0.25
"""The part of the free memory that rooms take at most, and that rows with their answers take."""
TOO_LARGE = 3


class DeviceRows:
    """A row program in the memory of the GPU.

    Parameters
    ----------
    program
        The program; it stays as it is.

    Examples
    --------
    >>> from markovia.inference.exact.device_rows import TURNS, DeviceRows
    >>> TURNS[-1]
    (256, 2097152)
    """

    def __init__(self, program: "RowProgram") -> None:
        self.width, self.log_scale, self.room = program.width, program.log_scale, program.room
        tree, layout = _for_device(program.tree, program.low)
        self.book_bytes = int(layout[-1])
        with guarded():
            self.tree, self.values = cp.asarray(tree), cp.asarray(program.values)
        self.layout = layout.view([("layout", np.int32, (len(layout),))])

    def run(self, codes: Codes) -> tuple[Array, Array, NDArray[np.int8]]:
        """Return log masses, posteriors and statuses of rows of state codes; rows to be asked elsewhere have 2 or 3."""
        n = len(codes)
        out, log_mass, status = np.empty((n, self.width)), np.empty(n), np.empty(n, dtype=np.int8)
        bytes_a_row = codes.shape[1] * codes.itemsize + 8 * self.width + 32
        share = int(max(1, min(n, 2**30, SHARE * _free() / bytes_a_row)))
        for first in range(0, n, share):
            part = slice(first, min(n, first + share))
            with guarded():
                found = self.answer(DeviceTable.upload(codes[part]))
                status[part] = found.status
                bring(found.log_mass, log_mass[part])
                bring(found.posteriors, out[part])
        log_mass += self.log_scale
        return log_mass, out, status

    def answer(self, rows: "DeviceTable") -> "DeviceAnswers":
        """Answer rows that are on the GPU; what is found stays there, but for the statuses."""
        status = np.full(rows.n, TOO_LARGE, dtype=np.int8)
        found = DeviceAnswers(cp.zeros((rows.n, self.width)), cp.empty(rows.n), cp.asarray(status), status)
        left, listed = rows.n, np.uint64(0)  # no list: all rows
        for lanes, words in TURNS:
            words = min(words, self.room)
            blocks, threads, shared = self._grid(left, lanes, words)
            if blocks:
                teams = blocks * threads // lanes
                books = np.uint64(0) if shared else cp.empty(teams * self.book_bytes, dtype=np.int8)
                arguments = (
                    self.layout, self.tree, self.values, rows.codes, np.int64(rows.row_step), np.int64(rows.column_step),
                    listed, np.int32(left), cp.zeros(1, dtype=np.int32), np.int32(words), cp.empty(teams * words), books,
                    np.int32(self.width), found.posteriors, found.log_mass, found.on_device,
                )  # fmt: skip
                defines = (f"TEAM={lanes}", f"CODE_BYTES={rows.codes.dtype.itemsize}")
                run = cuda_module("evidence_rows", defines).get_function("answer_rows")
                run((blocks,), (threads,), arguments, shared_mem=shared)
            status = cp.asnumpy(found.on_device)
            again = np.flatnonzero(status == TOO_LARGE)
            if not len(again) or words == self.room:
                break
            left, listed = len(again), cp.asarray(again)
        return found._replace(status=status)

    def _grid(self, n: int, lanes: int, words: int) -> tuple[int, int, int]:
        """Return how many blocks run, the threads of each, and its shared memory, 0 where the books do not fit."""
        teams = max(1, min(BLOCK // lanes, SHARED // self.book_bytes))
        shared = teams * self.book_bytes
        fitting = int(min(LANES // lanes, SHARE * _free() / (8 * words + self.book_bytes)))
        return min(fitting // teams, -(-n // teams)), teams * lanes, shared if shared <= SHARED else 0


class DeviceTable(NamedTuple):
    """State codes on the GPU, and the steps from row to row and from column to column."""

    n: int
    codes: Any
    row_step: int
    column_step: int

    @classmethod
    def upload(cls, codes: Codes) -> "DeviceTable":
        """Copy rows to the GPU as they lie, by rows or by columns."""
        n, columns = codes.shape
        kind = codes.dtype if codes.dtype in (np.int8, np.int16, np.int32) else np.int32
        if columns and abs(codes.strides[0]) < abs(codes.strides[1]):  # a column's cells lie side by side
            return cls(n, cp.asarray(np.ascontiguousarray(codes.T, dtype=kind)), 1, n)
        return cls(n, cp.asarray(np.ascontiguousarray(codes, dtype=kind)), columns, 1)


class DeviceAnswers(NamedTuple):
    """Posteriors, log masses without the program's scale, and statuses, there and here."""

    posteriors: Any
    log_mass: Any
    on_device: Any
    status: NDArray[np.int8]


def _for_device(tree: Ints, low: Array) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return a program with two more sections, and the numbers that the kernel is told: `Layout` in its source."""
    from markovia.kernels.clique_trees.evidence_rows import NUMBERS, SECTIONS

    n, k = len(NUMBERS), len(SECTIONS)
    ends = [*tree[n : n + k].tolist(), len(tree)]
    sections = {name: tree[a:b] for name, a, b in zip(SECTIONS, ends[:-1], ends[1:], strict=True)}
    n_cliques, n_slots, n_factors, n_targets, _, axes, operands = tree[:n].tolist()
    clique, start = sections["clique"].tolist(), sections["clique_start"].tolist()
    place = np.zeros(n_targets, dtype=np.int64)
    for c in range(n_cliques):
        for t in range(*sections["target_start"][c : c + 2].tolist()):
            place[t] = clique.index(sections["target_slot"][t], start[c], start[c + 1]) - start[c]
    least = np.frexp(low)[1] - 1
    words = np.concatenate([tree, place, least])
    lists, terms = _most_terms(sections)
    lists = max(lists, operands)
    numbers = n_factors + max(2 * n_cliques, n_slots) + 4 * axes + 3 * lists + 8
    book_bytes = 8 * BLOCK // 32 + 8 * terms + 4 * numbers + 2 * (n_slots + n_cliques) + n_cliques
    ends = [len(tree), len(tree) + n_targets]
    layout = [*tree[: n + k].tolist(), *ends, lists, terms, -(-book_bytes // 16) * 16]
    return words.astype(np.int32), np.array(layout, dtype=np.int32)


def _most_terms(sections: dict[str, Ints]) -> tuple[int, int]:
    """Return how many lists and terms a clique needs at most.

    On the way up an axis of an operand may begin a term and end one; on the way down there are two lists for each child
    and target, with a term for each axis of the clique at most.
    """
    n = len(sections["parent"])
    own, width = np.diff(sections["axis_start"]), np.diff(sections["clique_start"])
    of_factors = np.concatenate([[0], np.cumsum(own)])[sections["factor_start"][: n + 1]]
    of_children = np.concatenate([[0], np.cumsum(sections["n_separator"][sections["children"]])])
    up = 2 * (np.diff(of_factors) + np.diff(of_children[sections["child_start"]]))
    down = np.diff(sections["child_start"]) + np.diff(sections["target_start"])
    return 2 * int(down.max(initial=1)), int(max(up.max(initial=1), (down * width).max(initial=1)))


def _free() -> int:
    found = gpu()
    return found.free if found else 0
