"""Products of tables in compiled code on all processors.

Tables and scales are those of `NumpyTables`, which also multiplies while the compiled code is not there and the products
asked for so far would not have been worth waiting for it. A product is divided into stretches of about a million entries,
between which Ctrl-C is heard; where the result is short, they are stretches of what is summed, added up at the end in
order, so that the result does not depend on the number of threads.

`kernels/clique_trees/table_products` has the loops. Cost: one to two nanoseconds for each entry and processor while tables
fit the cache, two to three where they come from memory.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import ldexp, prod
from time import perf_counter
from typing import NamedTuple

import numpy as np

from markovia.inference.sliced.loop_plan import Axis, Loops, PlanCache, loops_of
from markovia.inference.sliced.numpy_tables import NumpyTables, extremes
from markovia.inference.sliced.product_layout import Operand, ProductLayout
from markovia.kernels.compiled_code import loaded, worth_loading
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.threads import in_parallel

HOME = "markovia.kernels.clique_trees.table_products:multiply_rows"
LOAD, COMPILE = 0.4, 2.0
"""Seconds until the compiled code is there, from disk and from its source, Numba included."""
CALL, ENTRY = 3e-5, 2e-9
"""Seconds that NumPy takes for a product, and for each entry and input."""
STRETCH = 1 << 20
SLOTS = 8
"""How many gathered stretches of an input are kept, as in the kernel."""
SHORT, LONG = 48, 1024
"""Rows along one axis are at least as long as the first, rows along several at least twice that, and none should be longer
than the second, so that a few fit the cache."""
FEW, PARTIAL = 64, 1 << 16
"""Rows, and numbers in them, up to which it is the removed positions that are divided; each stretch has its own result."""


class CompiledTables(NumpyTables):
    """Tables and their products in compiled code.

    Parameters
    ----------
    memory
        Bytes that tables may take; by default 80% of those that are free now.

    Examples
    --------
    >>> machine = CompiledTables()
    >>> table = machine.put(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> sums = machine.product(ProductLayout((2,), (2,), ((2, 1),)), [Operand(table)])
    >>> values, scale = machine.numbers(sums)
    >>> (values * np.exp(scale)).round(9).tolist()
    [3.0, 7.0]
    """

    name = "compiled"

    def __init__(self, memory: float | None = None) -> None:
        super().__init__(memory)
        self._programs = PlanCache(_program)
        self._plain = 0.0

    def _multiply(
        self,
        layout: ProductLayout,
        inputs: Sequence[Operand],
        shifts: Sequence[int],
        easy: bool,
        maximise: bool,
    ) -> tuple[Array, float, float]:
        if not loaded(HOME):
            plain = CALL + ENTRY * layout.entries * len(inputs)
            if not worth_loading(HOME, self._plain + plain, LOAD, COMPILE):
                start = perf_counter()
                found = super()._multiply(layout, inputs, shifts, easy, maximise)
                self._plain += perf_counter() - start
                return found
        return self._programs(layout).run(inputs, shifts, easy, maximise)


class _Program(NamedTuple):
    """A layout for the kernel.

    Attributes
    ----------
    code, low
        The kernel's program, and where the numbers of gathered stretches lie.
    order
        The inputs in the order of the program.
    spans
        Stretches of the work, each with the number of a partial result and of its first number in that.
    shares, size
        How many partial results there are, and of how many numbers.
    room, counts
        Numbers and integers that a thread needs.
    """

    code: Ints
    low: "np.ndarray[tuple[int], np.dtype[np.int32]]"
    order: list[int]
    spans: list[tuple[int, int, Ints]]
    shares: int
    size: int
    room: int
    counts: int

    def run(
        self, inputs: Sequence[Operand], shifts: Sequence[int], easy: bool, maximise: bool
    ) -> tuple[Array, float, float]:
        """Return the products, the smallest that is not zero, and the largest."""
        from markovia.kernels.clique_trees.table_products import multiply_rows

        # addresses, and the joint scale followed by each one's: what changes from call to call, in one go
        operands = [inputs[i] for i in self.order]
        addresses = np.array([table.address + 8 * base for table, base in operands], np.int64)
        scales = np.array(
            [ldexp(1.0, -sum(shifts)) if easy else 0.0, *[ldexp(1.0, -shifts[i]) for i in self.order]]
        )
        result, limits = np.empty((self.shares, self.size)), np.empty((len(self.spans), 2))
        limits[:] = np.inf, 0.0

        def work(task: int, space: tuple[Array, Ints]) -> None:
            share, begin, span = self.spans[task]
            multiply_rows(
                span,
                maximise,
                not easy,
                scales,
                self.code,
                self.low,
                addresses,
                *space,
                result[share, begin:],
                limits[task],
            )

        in_parallel(
            work, range(len(self.spans)), lambda: (np.empty(self.room), np.empty(self.counts, np.int64))
        )
        if self.shares > 1:
            joined: Array = result.max(axis=0) if maximise else result.sum(axis=0)
            return joined, *extremes(joined)
        most = float(limits[:, 1].max())
        return result[0], float(limits[:, 0].min()) if most else 0.0, most


def _spans(rows: int, width: int, positions: int, entries: int) -> list[tuple[int, int, Ints]]:
    """Divide rows, or the positions along the removed axes outside them, into stretches."""
    stretches = max(1, entries // STRETCH)
    if rows < FEW and rows * width <= PARTIAL:
        n = min(stretches, positions)
        edges = [positions * k // n for k in range(n + 1)]
        return [(k, 0, np.array([0, rows, *edge])) for k, edge in enumerate(pairwise(edges))]
    edges = [*range(0, rows, max(1, rows // stretches)), rows]
    return [(0, width * edge[0], np.array([*edge, 0, positions])) for edge in pairwise(edges)]


def _program(layout: ProductLayout) -> _Program:
    """Choose the rows of a layout, and write its program."""
    loops = loops_of(layout)
    summed, inside, kept, removed = _rows(loops)
    n = len(layout.strides)
    steps = [_places(inside, i) for i in range(n)]
    length = len(steps[0]) if n else prod(axis.length for axis in inside)
    line = np.arange(length)
    constant = [i for i in range(n) if not steps[i].any()]
    contiguous = [i for i in range(n) if i not in constant and np.array_equal(steps[i], line)]
    gathered = [i for i in range(n) if i not in constant and i not in contiguous]
    order = [*constant, *contiguous, *gathered]
    low = [steps[i] for i in gathered]
    axes = [*kept, *removed]
    code = [n, length, summed, len(constant), len(gathered), len(kept), len(removed)]
    code += [axis.length for axis in axes]
    code += [axis.strides[i] for axis in axes for i in order]
    rows, width = prod(axis.length for axis in kept), 1 if summed else length
    spans = _spans(rows, width, prod(axis.length for axis in removed), layout.entries)
    return _Program(
        np.array(code, dtype=np.int64),
        np.concatenate(low).astype(np.int32) if low else np.zeros(1, dtype=np.int32),
        order,
        spans,
        spans[-1][0] + 1,
        rows * width,
        (1 + SLOTS * len(gathered)) * length,
        (SLOTS + 2) * n + len(axes) + 1,
    )


def _rows(loops: Loops) -> tuple[bool, list[Axis], list[Axis], list[Axis]]:
    """Return whether rows are summed, the axes inside a row, and those outside, kept and removed."""
    kept, across = _row(loops.kept)
    removed, along = _row(loops.removed)
    wide, deep = (prod(axis.length for axis in axes) for axes in (across, along))
    # rows of the result where those are long, else whatever is longer
    if wide < SHORT and deep > wide:
        return True, along, loops.kept, removed
    return False, across, kept, loops.removed


def _row(axes: Sequence[Axis]) -> tuple[list[Axis], list[Axis]]:
    """Return the axes outside and inside a row: the last one, or a part of it; where that is short, more before it."""
    outside, inside, length = list(axes), list[Axis](), 1
    while outside and length < (SHORT if len(inside) < 2 else 2 * SHORT):
        n, strides = outside.pop()
        # as long a part as fits, which has to divide the axis
        part = next((d for d in range(min(n, LONG // length), 1, -1) if n % d == 0), 1)
        if part == 1 and inside:
            outside.append(Axis(n, strides))
            break
        part = part if part > 1 else n
        if part < n:
            outside.append(Axis(n // part, tuple(s * part for s in strides)))
        inside.insert(0, Axis(part, strides))
        length *= part
    return outside, inside


def _places(axes: Sequence[Axis], i: int) -> Ints:
    """Return where the numbers of an input lie along some axes."""
    place = np.zeros(1, dtype=np.int64)
    for axis in axes:
        place = np.add.outer(place, axis.strides[i] * np.arange(axis.length)).ravel()
    return place
