"""Products of tables on a GPU.

Tables and scales are those of `NumpyTables`; the scales stay on the device, in a slot for each table, so that a product is
one launch (two where few entries are sums of many) and the host never waits for it. `device_loops` divides a product and
`kernels/cuda/table_products.cu` computes it. What is worked out for a layout is kept while the layout lives: a product of a
layout that was seen before takes the host about ten microseconds.

With `precision="single"` tables are stored as floats, in half the memory and time; products and sums are still doubles, so
an entry is rounded once for each product that it goes through.
"""

from collections.abc import Sequence
from functools import partial
from math import frexp, ldexp, log
from typing import Any, Literal, NamedTuple

import numpy as np

from markovia.inference.sliced.device_loops import (
    KNOWN,
    THREADS,
    DeviceLoops,
    TileAxis,
    divide,
    joined_first,
    offsets,
)
from markovia.inference.sliced.loop_plan import PlanCache
from markovia.inference.sliced.numpy_tables import FLOOR, extremes, scaled
from markovia.inference.sliced.product_layout import Operand, ProductLayout
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.devices import DeviceFailure, cuda_module, gpu, guarded, why_not
from markovia.runtime.libraries import cp

SHARE = 0.9
"""How much of the free memory tables may take."""
SLOTS = 1 << 16
"""Slots that are made at a time."""
BIAS, SINGLE_FLOOR = 90, -216
"""Floats are stored times two to the first, and lose digits below two to the second, as in the kernel."""
BLOCKS, MORE, MANY = 4, 16, 96
"""Blocks for each multiprocessor, which take one unit of work after the other; and more, from so many units for each on."""

FAR = 1 << 32
"""Bytes from which on the offsets of lanes take eight bytes each."""
WORDS = {"d": "double", "f": "float", "I": "unsigned", "L": "u64", "Q": "u64"}
"""What the kernel calls kinds of numbers."""
HEAD, EACH = 20, 8
"""Words of a job, and of each of its inputs, as in the kernel."""
OUT, SLOT, OLD, INPUTS = 0, 1, 2, 4
"""The words of a job that change from call to call."""
INFINITE = 0x7FF00000
"""The upper half of infinity, from which a slot counts its smallest number down."""


class CudaTable:
    """A table in the memory of a GPU.

    Attributes
    ----------
    memory, at, size, kind
        The memory and the address of the numbers, how many they are, and how they are stored.
    slots, slot
        The memory in which the slot lies, and its address.
    """

    __slots__ = ("at", "kind", "memory", "size", "slot", "slots")

    def __init__(self, memory: Any, at: int, size: int, kind: np.dtype[Any], slots: Any, slot: int) -> None:
        self.memory, self.at, self.size, self.kind = memory, at, size, kind
        self.slots, self.slot = slots, slot


class CudaTables:
    """Tables and their products on a GPU.

    Parameters
    ----------
    precision
        Whether numbers are stored as doubles or as floats.
    memory
        Bytes that tables may take; by default 90% of those that are free now.

    Raises
    ------
    DeviceFailure
        Where there is no GPU, and by each method where the GPU, its driver or its memory fails.

    Examples
    --------
    >>> from markovia.runtime import devices
    >>> if devices.gpu():
    ...     machine = CudaTables()
    ...     machine.numbers(machine.put(np.array([1.0, 2.0])))[0].tolist()
    ... else:
    ...     [0.25, 0.5]
    [0.25, 0.5]
    """

    name = "cuda"

    def __init__(
        self, precision: Literal["double", "single"] = "double", memory: float | None = None
    ) -> None:
        found = gpu()
        if found is None:
            raise DeviceFailure(why_not())
        self._kind = np.dtype(np.float64 if precision == "double" else np.float32)
        self._budget = SHARE * found.free if memory is None else float(memory)
        with guarded():
            processors = int(cp.cuda.Device().attributes["MultiProcessorCount"])
            self._flag = cp.zeros(1, dtype=np.int32)
            self._launch, self._stream = cp.cuda.driver.launchKernel, cp.cuda.get_current_stream
        self._lost = False
        self._rows: Any = None
        self._slots: Any = None
        self._slots_at, self._next_slot = 0, SLOTS
        self._plans = PlanCache(partial(_plan, processors, self._flag.data.ptr, self._kind))
        self._places = PlanCache(_places)

    @property
    def budget(self) -> float:
        """Bytes that tables may take."""
        return self._budget

    def put(self, values: Array) -> CudaTable:
        """Take in a table of plain, non-negative numbers."""
        numbers = np.asarray(values, dtype=np.float64).ravel()
        shift = frexp(numbers.max(initial=0.0))[1]
        numbers = scaled(numbers, -shift)
        low, _ = extremes(numbers)
        bias, floor = (0, FLOOR) if self._kind.itemsize == 8 else (BIAS, SINGLE_FLOOR)
        self._lost = self._lost or 0.0 < low < ldexp(1.0, floor)
        # the slot and the numbers in one go
        words = np.zeros(2 + -(-numbers.size * self._kind.itemsize // 8), dtype=np.int64)
        stored = words[2:].view(self._kind)[: numbers.size]
        np.multiply(numbers, ldexp(1.0, bias), out=stored, casting="same_kind")
        if bias:
            stored[(stored == 0) & (numbers > 0)] = np.finfo(np.float32).smallest_subnormal
        words[0] = shift - bias
        if low:
            most, least = np.array([stored.max(), low * 2.0**bias]).view(np.int64) >> 32
            words[1:2].view(np.int32)[:] = most, INFINITE - least
        with guarded():
            memory, at = _uploaded(words)
        return CudaTable(memory, at + 16, numbers.size, self._kind, memory, at)

    def product(
        self,
        layout: ProductLayout,
        inputs: Sequence[Operand],
        maximise: bool = False,
        onto: CudaTable | None = None,
    ) -> CudaTable:
        """Multiply the inputs and sum (or maximise) the removed axes out; with `onto`, add to (maximise with) that table."""
        with guarded():
            plan = self._plans(layout)
            if isinstance(plan, _Split):
                part = self.product(plan.first, [inputs[i] for i in plan.group])
                return self.product(
                    plan.rest, [*(inputs[i] for i in plan.others), Operand(part)], maximise, onto
                )
            operands = [inputs[i] for i in plan.order]
            if plan.second is None:
                return self._start(plan, self._kind, operands, maximise, onto)
            # few entries: partial sums first
            part = self._start(plan, np.dtype(np.float64), operands, maximise, None)
            return self._start(plan.second, self._kind, [Operand(part)], maximise, onto)

    def rows(
        self, layout: ProductLayout, inputs: Sequence[Operand], starts: Sequence[Ints]
    ) -> tuple[Array, Array]:
        """Multiply rows: the k-th input of row r is read from `base + starts[k][r]` on; nothing is removed.

        Returns numbers whose maximum in each row is about one, and for each row the log of what they are multiplied by.
        """
        n, size, rows = len(inputs), layout.size, max((len(s) for s in starts), default=0)
        if rows == 0:
            return np.zeros((0, size)), np.zeros(0)
        with guarded():
            places = self._places(layout)
            words = np.empty(n * (4 + rows), dtype=np.int64)
            memory = _memory(words.nbytes)
            begins = words[4 * n :].reshape(n, rows)
            for k, (table, base) in enumerate(inputs):
                begin = memory.ptr + 8 * (4 * n + k * rows)
                words[4 * k : 4 * k + 4] = (
                    table.at + self._kind.itemsize * base,
                    table.slot,
                    places.data.ptr + 8 * size * k,
                    begin,
                )
                begins[k] = starts[k]
            memory.copy_from_host(words.ctypes.data, words.nbytes)
            threads = 1 << min(5, (size - 1).bit_length())
            found = np.empty(rows * (size + 1))
            result = _memory(found.nbytes)
            job = np.array([memory.ptr, n, rows, size, threads, result.ptr, result.ptr + 8 * rows * size])
            argument = np.array([job.ctypes.data])
            blocks = -(-rows // (THREADS // threads))
            if self._rows is None:
                self._rows = _kernel("multiply_rows", 0, self._kind, self._kind, "I", False).kernel
            place, stream = argument.ctypes.data, self._stream().ptr
            self._launch(self._rows.ptr, blocks, 1, 1, THREADS, 1, 1, 4 * THREADS, stream, place, 0)
            result.copy_to_host(found.ctypes.data, found.nbytes)
        return found[: rows * size].reshape(rows, size), found[rows * size :] * log(2.0)

    def numbers(self, table: CudaTable) -> tuple[Array, float]:
        """Return a table as plain numbers with maximum about one, and the log (base e) of what they are multiplied by."""
        slot, stored = np.empty(2, dtype=np.int64), np.empty(table.size, dtype=table.kind)
        with guarded():
            for here, there in ((slot, table.slot), (stored, table.at)):
                cp.cuda.runtime.memcpy(
                    here.ctypes.data, there, here.nbytes, cp.cuda.runtime.memcpyDeviceToHost
                )
        numbers = stored.astype(np.float64)
        shift = max(frexp(numbers.max(initial=0.0))[1], FLOOR)
        return scaled(numbers, -shift), (int(slot[0]) + shift) * log(2.0)

    def lost(self) -> bool:
        """Say whether a product that is not zero fell out of the range of the numbers since this was last asked."""
        with guarded():
            found = self._lost or bool(self._flag.get()[0])
            if found:
                self._flag.fill(0)
        self._lost = False
        return found

    def _start(
        self,
        plan: "_DevicePlan",
        kind: np.dtype[Any],
        operands: Sequence[Operand],
        maximise: bool,
        onto: CudaTable | None,
    ) -> CudaTable:
        """Launch a kernel, and return where its result will be."""
        if onto is None:
            memory = _memory(plan.size * kind.itemsize)
            at = memory.ptr
        else:
            memory, at = onto.memory, onto.at
        slots, slot = self._slot()
        words, k = plan.words, HEAD
        words[OUT], words[SLOT], words[OLD] = at, slot, 0 if onto is None else onto.slot
        for table, base in operands:
            words[k], words[k + 1] = table.at + table.kind.itemsize * base, table.slot
            k += EACH
        records = None
        if len(operands) > KNOWN:
            # they do not go with the launch
            records = _uploaded(words[HEAD:])
            words[INPUTS] = records[1]
        source = operands[0].table.kind if operands else self._kind
        kernel = plan.kernel(source, kind, maximise)
        self._launch(kernel, *plan.grid, *plan.block, plan.shared, self._stream().ptr, plan.arguments, 0)
        return CudaTable(memory, at, plan.size, kind, slots, slot)

    def _slot(self) -> tuple[Any, int]:
        """Return a slot that holds zeros: the array in which it lies, freed with the last table in it, and its address."""
        if self._next_slot == SLOTS:
            self._slots, self._next_slot = cp.zeros(2 * SLOTS, dtype=np.int64), 0
            self._slots_at = self._slots.data.ptr
        self._next_slot += 1
        return self._slots, self._slots_at + 16 * (self._next_slot - 1)


def _memory(size: int) -> Any:
    return cp.cuda.alloc(size)


def _uploaded(words: Ints) -> tuple[Any, int]:
    """Return memory of the device with these words, and its address."""
    memory = _memory(words.nbytes)
    memory.copy_from_host(words.ctypes.data, words.nbytes)
    return memory, memory.ptr


class _DevicePlan:
    """What is known of a layout: the words of a job, but for what changes from call to call.

    Attributes
    ----------
    order, size
        The inputs in the order of the job, and how many numbers are written.
    words, arguments
        The job, and the address of its address, as the argument of a launch.
    grid, block, shared
        How a kernel is started.
    second
        Where the removed positions are divided into chunks, the plan that adds them up.
    """

    def __init__(
        self, loops: DeviceLoops, size: int, words: Ints, low: str, memory: Any, processors: int
    ) -> None:
        n = len(loops.order)
        self.order, self.size = loops.order, size
        self.second: _DevicePlan | None = None
        self.words, self._memory, self._low = words, memory, low
        self._record = np.array([words.ctypes.data])
        self.arguments = self._record.ctypes.data
        blocks = MORE if loops.items >= MANY * processors else BLOCKS
        self.grid = (min(loops.items, blocks * processors), 1, 1)
        self.block = (loops.threads, 1, 1)
        self.shared = (8 * loops.lanes if loops.along > 1 else 0) + 16 * n
        self._name, self._inputs = (
            "multiply_wide" if loops.wide else "multiply_narrow",
            n if n <= KNOWN else 0,
        )
        self._kernels: dict[tuple[str, str, bool], Any] = {}

    def kernel(self, source: np.dtype[Any], kind: np.dtype[Any], maximise: bool) -> int:
        """Return the address of the kernel that reads and writes such numbers."""
        key = source.char, kind.char, maximise
        found = self._kernels.get(key)
        if found is None:
            found = _kernel(self._name, self._inputs, source, kind, self._low, maximise).kernel
            self._kernels[key] = found
        address: int = found.ptr
        return address


class _Split(NamedTuple):
    """Two products in place of one with many inputs: a group of them first, then the others with the result."""

    group: list[int]
    others: list[int]
    first: ProductLayout
    rest: ProductLayout


def _plan(processors: int, lost: int, kind: np.dtype[Any], layout: ProductLayout) -> _DevicePlan | _Split:
    found = joined_first(layout)
    if found is None:
        return _launches(processors, lost, kind, layout)
    group, first, rest = found
    return _Split(group, [i for i in range(len(layout.strides)) if i not in group], first, rest)


def _launches(
    processors: int, lost: int, kind: np.dtype[Any], layout: ProductLayout, in_chunks: bool = True
) -> _DevicePlan:
    """Work a layout out, for so many multiprocessors, a flag at an address, and inputs of such numbers."""
    loops = divide(layout, processors, in_chunks)
    n = len(loops.order)
    # the arrays of offsets in one piece of memory, those of lanes as short integers where the tables allow it
    lanes = np.concatenate([loops.entry, loops.place, kind.itemsize * loops.low[1:].ravel()])
    short = np.dtype(np.uint32 if lanes.max() < FAR else np.uint64)
    packed = np.zeros(-(-lanes.size * short.itemsize // 8), dtype=np.int64)
    packed.view(short)[: lanes.size] = lanes
    parts = loops.mid, loops.top, loops.outer, loops.far
    memory, low = _uploaded(np.concatenate([packed, *[part.ravel() for part in parts]]))
    # where they begin: a row for each table
    place = low + short.itemsize * loops.entry.size
    begin, columns = low + 8 * packed.size, list[range]()
    for part in parts:
        columns.append(range(begin, begin + 8 * part.size, 8 * part.shape[1]))
        begin += 8 * part.size
    rows = list(zip(*columns, strict=True))
    job = [0, 0, 0, lost, 0, n, low, rows[0][0], rows[0][1], place, loops.exchange, loops.lanes, loops.along]
    job += [part.shape[1] for part in parts[:2]]
    job += [loops.segments, loops.chunks, loops.far.shape[1], loops.run, layout.size]
    for i in range(n):
        own = place + short.itemsize * loops.lanes * (1 + i)
        job += [0, 0, own, *rows[i + 1], loops.step[i + 1]]
    # a record without inputs has room for one, as C++ knows no empty arrays
    words = np.array(job + [0] * EACH * (n == 0), dtype=np.int64)
    found = _DevicePlan(loops, layout.size * loops.chunks, words, short.char, memory, processors)
    if loops.chunks > 1:
        sums = ProductLayout((layout.size,), (loops.chunks,), ((1, layout.size),))
        found.second = _launches(processors, lost, np.dtype(np.float64), sums, in_chunks=False)
    return found


def _kernel(name: str, n: int, source: np.dtype[Any], kind: np.dtype[Any], low: str, maximise: bool) -> Any:
    """Return a kernel for so many inputs (zero: any), what is read and written, and the offsets of lanes."""
    defines = f"INPUTS={n}", f"IN={WORDS[source.char]}", f"OUT={WORDS[kind.char]}", f"LOW={WORDS[low]}"
    return cuda_module("table_products", (*defines, f"MAXIMISE={int(maximise)}")).get_function(name)


def _places(layout: ProductLayout) -> Any:
    """Return, on the device, where the numbers of a row lie in each input."""
    axes = [
        TileAxis(False, n, s) for n, s in zip(layout.kept, zip(*layout.strides, strict=True), strict=True)
    ]
    return cp.asarray(offsets(axes, len(layout.strides)))
