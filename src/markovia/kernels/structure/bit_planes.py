"""Columns of states as bits: one plane of words for each state but the first, so that rows are counted 64 at a time."""

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from markovia.kernels.structure.structure_records import PackedRows
from markovia.runtime.array_types import Array, Ints

MOST_PLANES = 64
"""Columns with more states have no planes: they would take more room than they save time."""
MOST_LOGS = 2**16
"""Logarithms of larger counts are not looked up."""


@intrinsic
def ones(typing_context, word):
    """Return the number of bits that are set."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


def packed_rows(codes: NDArray[Any], cards: Ints, weights: Array | None) -> PackedRows:
    """Return rows (columns, rows) of states as kernels read them; weighted rows are not counted by bits."""
    codes = np.ascontiguousarray(codes, dtype=np.uint16)
    if weights is not None:
        return PackedRows(
            codes, *bit_planes(codes[:, :0], cards), weights.astype(np.float64), cards, np.zeros(0)
        )
    whole = np.arange(min(codes.shape[1], MOST_LOGS) + 1, dtype=np.float64)
    return PackedRows(
        codes, *bit_planes(codes, cards), np.zeros(0), cards, whole * np.log(np.maximum(whole, 1.0))
    )


def bit_planes(codes: NDArray[Any], cards: Ints) -> tuple[NDArray[np.uint64], Ints]:
    """Return planes (planes, words), and for each column where its planes start, with the end of the last.

    The plane `starts[v] + k - 1` has the bits of the rows where column v has state k > 0.
    """
    n_rows = codes.shape[1]
    words = -(-n_rows // 64)
    starts = np.concatenate([[0], np.cumsum(np.where(cards <= MOST_PLANES, cards - 1, 0))]).astype(np.int64)
    planes = np.zeros((int(starts[-1]), words), dtype=np.uint64)
    bits = np.zeros(words * 64, dtype=bool)
    for v, column in enumerate(codes):
        for k in range(int(starts[v + 1] - starts[v])):
            np.equal(column, k + 1, out=bits[:n_rows])
            planes[starts[v] + k] = np.packbits(bits, bitorder="little").view("<u8")
    return planes, starts
