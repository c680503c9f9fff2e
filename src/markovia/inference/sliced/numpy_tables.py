"""Products of tables in NumPy: the reference for the other machines, and what answers before a compiler would be there.

A table is `numbers * 2**exponent`. Each input is multiplied by the power of two that makes its largest number about one, so
no product exceeds one; the exponents are added apart. A product of numbers that are not zero never becomes zero: where it
leaves the range of doubles it is rounded up to 2**-1030, so the zeros of a result are those of the model, and
an entry in which something was lost is one between zero and 2**-1000.

Memory beyond the tables is a few times `BLOCK` entries: the leading axes are gone through one position at a time. Cost: one
multiplication for each input and entry, the small inputs first, so that most run over few entries.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import frexp, ldexp, log, prod

import numpy as np

from markovia.inference.sliced.loop_plan import Axis, PlanCache, loops_of
from markovia.inference.sliced.product_layout import Operand, ProductLayout
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.memory_budget import default_budget

BLOCK = 1 << 17
"""Entries that are multiplied at a time."""
FLOOR = -1000
"""Numbers below two to this are taken to have lost digits."""
EASY, NEAR = -600, 300
"""Products whose smallest number is above two to the first need no care, and scales below the second can be joined."""
SMALLEST = 2.0**-1030
"""What products that are not zero are rounded up to."""


class HostTable:
    """A table in the memory of the processor.

    Attributes
    ----------
    numbers
        Flat, not negative.
    exponent
        The table is the numbers times two to this.
    top, low
        The largest number is in [1/2, 1) times two to `top`, the smallest that is not zero in [1/2, 1) times two to `low`;
        a table of zeros has the top None.
    """

    __slots__ = ("_address", "exponent", "low", "numbers", "top")

    def __init__(self, numbers: Array, exponent: int, low: float, most: float) -> None:
        self.numbers, self.exponent = numbers, exponent
        self.top = frexp(most)[1] if most > 0 else None
        self.low = frexp(low)[1] if most > 0 else 0
        self._address = 0

    @property
    def address(self) -> int:
        """Where the numbers lie."""
        if not self._address:
            self._address = self.numbers.ctypes.data
        return self._address


class NumpyTables:
    """Tables and their products in NumPy.

    Parameters
    ----------
    memory
        Bytes that tables may take; by default 80% of those that are free now.

    Examples
    --------
    A product of a table over (a, b) and one over b, with b summed out:

    >>> machine = NumpyTables()
    >>> ab, b = machine.put(np.array([[1.0, 2.0], [3.0, 4.0]])), machine.put(np.array([10.0, 1.0]))
    >>> layout = ProductLayout(kept=(2,), removed=(2,), strides=((2, 1), (0, 1)))
    >>> values, scale = machine.numbers(machine.product(layout, [Operand(ab), Operand(b)]))
    >>> (values * np.exp(scale)).round(9).tolist()
    [12.0, 34.0]
    """

    name = "numpy"

    def __init__(self, memory: float | None = None) -> None:
        self._budget = float(default_budget() if memory is None else memory)
        self._lost = False
        self._plans = PlanCache(_Blocks)

    @property
    def budget(self) -> float:
        """Bytes that tables may take."""
        return self._budget

    def put(self, values: Array) -> HostTable:
        """Take in a table of plain, non-negative numbers."""
        numbers = np.array(values, dtype=np.float64).ravel()
        shift = frexp(numbers.max(initial=0.0))[1]
        return self._finished(scaled(numbers, -shift), shift)

    def product(
        self,
        layout: ProductLayout,
        inputs: Sequence[Operand],
        maximise: bool = False,
        onto: HostTable | None = None,
    ) -> HostTable:
        """Multiply the inputs and sum (or maximise) the removed axes out; with `onto`, add to (maximise with) that table."""
        shifts, exponent, spread, moved = [], 0, 0, 0
        for table, _ in inputs:
            if table.top is None:
                return onto or HostTable(np.zeros(layout.size), 0, 0.0, 0.0)
            shift = table.top if table.top > FLOOR else FLOOR
            shifts.append(shift)
            exponent += table.exponent + shift
            spread += table.low - shift
            moved += abs(shift)
        # no product can leave the range of doubles, with the scales joined to one number
        easy = spread > EASY and moved < NEAR
        result, low, most = self._multiply(layout, inputs, shifts, easy, maximise)
        if onto is None or onto.top is None:
            return self._done(result, exponent, low, most)
        # both on the larger of the two scales
        total = max(onto.exponent + max(onto.top, FLOOR), exponent)
        joined = np.maximum if maximise else np.add
        result = joined(scaled(result, exponent - total), scaled(onto.numbers, onto.exponent - total))
        return self._finished(result, total)

    def _multiply(
        self,
        layout: ProductLayout,
        inputs: Sequence[Operand],
        shifts: Sequence[int],
        easy: bool,
        maximise: bool,
    ) -> tuple[Array, float, float]:
        """Return the products of the scaled inputs, their smallest that is not zero, and their largest."""
        result = self._plans(layout).run(inputs, shifts, easy, maximise)
        return result, *extremes(result)

    def rows(
        self, layout: ProductLayout, inputs: Sequence[Operand], starts: Sequence[Ints]
    ) -> tuple[Array, Array]:
        """Multiply rows: the k-th input of row r is read from `base + starts[k][r]` on; nothing is removed.

        Returns numbers whose maximum in each row is about one, and for each row the log of what they are multiplied by.
        """
        n = max((len(s) for s in starts), default=0)
        fraction, exponent = np.ones((n, layout.size)), np.zeros((n, layout.size), dtype=np.int32)
        places = self._plans(layout).places
        for (table, base), begin, along in zip(inputs, starts, places, strict=True):
            # a row may lie where all inputs are small: its exponents are added apart
            part, more = np.frexp(table.numbers[np.asarray(begin)[:, None] + (base + along)])
            fraction, shift = np.frexp(fraction * part)
            exponent += more + shift
        exponent[fraction == 0] = np.iinfo(np.int32).min // 2
        top = exponent.max(axis=1, keepdims=True)
        relative = np.ldexp(fraction, np.maximum(exponent - top, -3000))
        scale = sum(operand.table.exponent for operand in inputs)
        return _nonzero(relative, fraction > 0), (top[:, 0] + float(scale)) * log(2.0)

    def numbers(self, table: HostTable) -> tuple[Array, float]:
        """Return a table as plain numbers with maximum about one, and the log (base e) of what they are multiplied by."""
        shift = max(table.top or 0, FLOOR)
        return scaled(table.numbers, -shift), (table.exponent + shift) * log(2.0)

    def lost(self) -> bool:
        """Say whether a product that is not zero fell out of the range of the numbers since this was last asked."""
        found, self._lost = self._lost, False
        return found

    def _finished(self, numbers: Array, exponent: int) -> HostTable:
        return self._done(numbers, exponent, *extremes(numbers))

    def _done(self, numbers: Array, exponent: int, low: float, most: float) -> HostTable:
        self._lost = self._lost or 0.0 < low < ldexp(1.0, FLOOR)
        return HostTable(numbers, exponent, low, most)


def extremes(numbers: Array) -> tuple[float, float]:
    """Return the smallest number that is not zero, and the largest; zeros where all are zero."""
    most = float(numbers.max(initial=0.0))
    low = float(numbers.min(initial=most))
    return low or (float(numbers.min(initial=np.inf, where=numbers > 0)) if most else 0.0), most


def scaled(numbers: Array, shift: int) -> Array:
    """Multiply by a power of two; what is not zero never becomes zero."""
    if shift == 0:
        return numbers
    scaled = np.ldexp(numbers, max(shift, -3000))
    return _nonzero(scaled, numbers > 0) if shift < 0 else scaled


def _nonzero(result: Array, wanted: Flags) -> Array:
    return np.where((result < SMALLEST) & wanted, SMALLEST, result)


class _Blocks:
    """The views of a layout: what is multiplied at a time, and the positions of the axes outside it."""

    def __init__(self, layout: ProductLayout) -> None:
        loops = loops_of(layout)
        self.size, self._kept, self._along = layout.size, layout.kept, layout.strides
        # the block: the fastest kept axes that fit together with all removed ones, or as many of those as fit
        rest = prod(axis.length for axis in loops.removed)
        outer = _leading(loops.kept, BLOCK // min(rest, BLOCK))
        apart = _leading(loops.removed, BLOCK) if outer == len(loops.kept) else 0
        inner = loops.kept[outer:] + loops.removed[apart:]
        self._outer, self._apart = loops.kept[:outer], loops.removed[:apart]
        self._shape = tuple(axis.length for axis in inner)
        self._summed = tuple(range(len(loops.kept) - outer, len(inner)))
        self._width = prod(axis.length for axis in loops.kept[outer:])
        # an input has one position along the axes that it lacks
        self._shapes = [
            tuple(axis.length if axis.strides[i] else 1 for axis in inner) for i in range(len(layout.strides))
        ]
        self._strides = [tuple(8 * axis.strides[i] for axis in inner) for i in range(len(layout.strides))]
        self._order = sorted(range(len(self._shapes)), key=lambda i: prod(self._shapes[i]))

    @property
    def places(self) -> list[Ints]:
        """For each input where the entries of the result lie, nothing being removed."""
        found = []
        for strides in self._along:
            place = np.zeros(1, dtype=np.int64)
            for n, s in zip(self._kept, strides, strict=True):
                place = np.add.outer(place, s * np.arange(n)).ravel()
            found.append(place)
        return found

    def run(self, inputs: Sequence[Operand], shifts: Sequence[int], easy: bool, maximise: bool) -> Array:
        """Return the sums (or maxima) of the products of the scaled inputs."""
        result = np.zeros((self.size // self._width, self._width))
        bases = [operand.base for operand in inputs]
        for at, moved in enumerate(_positions(self._outer, bases)):
            for start in _positions(self._apart, moved):
                part = self._block(inputs, start, shifts, easy)
                if self._summed:
                    part = part.max(axis=self._summed) if maximise else part.sum(axis=self._summed)
                row = part.ravel()
                if not self._apart:
                    result[at] = row
                elif maximise:
                    np.maximum(result[at], row, out=result[at])
                else:
                    result[at] += row
        return result.ravel()

    def _block(
        self, inputs: Sequence[Operand], start: Sequence[int], shifts: Sequence[int], easy: bool
    ) -> Array:
        found: Array | None = None
        for i in self._order:
            view: Array = np.ndarray(
                self._shapes[i],
                np.float64,
                inputs[i].table.numbers,
                8 * start[i],
                self._strides[i],
            )
            if not easy:
                view = scaled(view, -shifts[i])
            if found is None:
                found = view * ldexp(1.0, -sum(shifts)) if easy else view
            elif easy:
                found = found * view
            else:
                found = _nonzero(found * view, (found > 0) & (view > 0))
        return np.broadcast_to(1.0 if found is None else found, self._shape)


def _leading(axes: Sequence[Axis], room: int) -> int:
    """Return how many leading axes are too many for the rest to have at most so many entries."""
    n = 1
    for k in range(len(axes), 0, -1):
        n *= axes[k - 1].length
        if n > room:
            return k
    return 0


def _positions(axes: Sequence[Axis], bases: Sequence[int]) -> Iterator[list[int]]:
    """Go through positions along some axes: for each, where the inputs are read from on."""
    for index in product(*(range(axis.length) for axis in axes)):
        yield [
            b + sum(p * axis.strides[i] for p, axis in zip(index, axes, strict=True))
            for i, b in enumerate(bases)
        ]
