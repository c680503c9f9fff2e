"""Tables of counts from rows in the memory of a GPU.

Method: the state codes are copied to the GPU when they are first counted and stay there; each call then copies a layout of
the tables there and the counts back. Tables are counted together in shared memory as far as they fit.
Cost: the copy of the rows, once: where the rows are counted a single time it takes as long as counting on the processor's
threads. After that rows times tables, some milliseconds for a million rows of a few hundred tables.
Use it through `CodedTable.counts(scopes, device="gpu")`.
"""

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from markovia.runtime.array_types import Array, Codes, Ints
from markovia.runtime.devices import cuda_module, guarded
from markovia.runtime.libraries import cp

NEAR = 12_288
"""Cells of a share of tables in shared memory: 48 KB."""
BLOCK = 512
ROWS_A_BLOCK, MOST_BLOCKS = 8192, 512


class DeviceCodes:
    """Rows of state codes, ready to be counted on the GPU.

    Parameters
    ----------
    codes
        One row a column of data, -1 for missing cells.
    cards
        The number of states of each column.

    Examples
    --------
    >>> DeviceCodes(np.zeros((2, 5), dtype=np.int8), [2, 3]).cards
    (2, 3)
    """

    def __init__(self, codes: Codes, cards: Sequence[int]) -> None:
        self.codes, self.cards = codes, tuple(cards)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_there"}

    def counts(self, scopes: Sequence[Sequence[int]]) -> list[Array]:
        """Return a dense table of counts for each scope (column numbers); rows that miss a cell of it do not count.

        Raises
        ------
        DeviceFailure
            If the GPU fails.
        """
        n_rows = self.codes.shape[1]
        shapes = [tuple(self.cards[c] for c in scope) for scope in scopes]
        at = np.cumsum([0, *map(prod, shapes)], dtype=np.int64)
        if not scopes or not n_rows:
            return [np.zeros(shape) for shape in shapes]
        starts = np.cumsum([0, *map(len, scopes)])
        strides = [prod(shape[k + 1 :]) for shape in shapes for k in range(len(shape))]
        shares = _shares(at)
        near = min(NEAR, int(np.diff(at[shares]).max()))
        with guarded():
            codes, out = self._there, cp.zeros(int(at[-1]), dtype=np.uint32)
            arguments = (
                codes, np.int64(n_rows), _short(starts), _short([c for scope in scopes for c in scope]), _short(strides),
                cp.asarray(at), _short(shares), np.int32(near), out,
            )  # fmt: skip
            run = cuda_module("counting", (f"CODE_BYTES={codes.dtype.itemsize}",)).get_function(
                "count_tables"
            )
            blocks = min(MOST_BLOCKS, -(-n_rows // ROWS_A_BLOCK))
            run((len(shares) - 1, blocks), (BLOCK,), arguments, shared_mem=4 * near)
            found = cp.asnumpy(out).astype(np.float64)
        return [
            found[a:b].reshape(shape)
            for a, b, shape in zip(at[:-1].tolist(), at[1:].tolist(), shapes, strict=True)
        ]

    @cached_property
    def _there(self) -> Any:
        kind = np.int8 if self.codes.dtype == np.int8 else np.int32
        return cp.asarray(np.ascontiguousarray(self.codes, dtype=kind))


def _shares(at: Ints) -> list[int]:
    """Return where shares of tables begin: as many tables together as fit into shared memory."""
    found = [0]
    for t in range(1, len(at) - 1):
        if at[t + 1] - at[found[-1]] > NEAR:
            found.append(t)
    return [*found, len(at) - 1]


def _short(numbers: Any) -> Any:
    return cp.asarray(np.array(numbers, dtype=np.int32))
