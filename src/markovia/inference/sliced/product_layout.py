"""The shape of one product of tables: which axes the result has, which are removed, and how each input lies along them."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple, Protocol, TypeAlias

from markovia.runtime.array_types import Array, Ints

Table: TypeAlias = Any
"""A table in the memory of a machine, with its scale; it is freed when nobody holds it any more."""


class Operand(NamedTuple):
    """An input of a product: a table of the machine, and the entry that it is read from on."""

    table: Table
    base: int = 0


@dataclass(frozen=True)
class ProductLayout:
    """A product of tables over result axes and removed axes, the last axis of each being the fastest.

    Attributes
    ----------
    kept, removed
        The lengths of the axes of the result, and of those that are summed or maximised out.
    strides
        For each input its strides along the kept axes followed by those along the removed ones; zero along an axis that it
        does not have.
    """

    kept: tuple[int, ...]
    removed: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]

    @property
    def size(self) -> int:
        """The entries of the result."""
        return prod(self.kept)

    @property
    def entries(self) -> int:
        """The entries that are gone through."""
        return prod(self.kept) * prod(self.removed)


class TableMachine(Protocol):
    """Where tables lie and are multiplied: NumPy, compiled code, a GPU.

    A table is held as `numbers * 2**exponent` with numbers of at most about one, so that nothing leaves the range of
    doubles; where a product that is not zero becomes zero all the same, `lost` says so.
    """

    name: str

    def put(self, values: Array) -> Table:
        """Take in a table of plain, non-negative numbers."""

    def product(
        self,
        layout: ProductLayout,
        inputs: Sequence[Operand],
        maximise: bool = False,
        onto: Table | None = None,
    ) -> Table:
        """Multiply the inputs and sum (or maximise) the removed axes out; with `onto`, add to (maximise with) that table.

        `onto` is changed in place, or emptied, and what is returned takes its place.
        """

    def rows(
        self, layout: ProductLayout, inputs: Sequence[Operand], starts: Sequence[Ints]
    ) -> tuple[Array, Array]:
        """Multiply rows: the k-th input of row r is read from `base + starts[k][r]` on; nothing is removed.

        Returns plain numbers, shape (rows, size of the layout), each row with maximum one (zeros where it has no mass), and
        for each row the log (base e) of what it is to be multiplied by, so that rows of several calls can be compared.
        """

    def numbers(self, table: Table) -> tuple[Array, float]:
        """Return a table as plain numbers with maximum about one, and the log (base e) of what they are multiplied by."""

    def lost(self) -> bool:
        """Say whether a product that is not zero fell out of the range of the numbers since this was last asked."""

    @property
    def budget(self) -> float:
        """Bytes that tables may take."""
