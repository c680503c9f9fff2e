"""Cells of a column as positions into a few values: whole numbers, numbers kept as floats, Python objects, NumPy arrays."""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument, UnknownState
from markovia.factors.tables.variable import Variable
from markovia.runtime.array_types import Codes
from markovia.runtime.libraries import pd

MISSING = -1
UNKNOWN = -2
NEAR_VALUES = 2**16
"""Integers that span at most so much are positions once the smallest is taken away."""
SHARED_OBJECTS = 1024
"""Python objects are told apart by their addresses when a stretch of cells has at most so many."""


class Coded(NamedTuple):
    """A column as positions into a list of values; -1 is missing.

    `categories` says that all values are states, in their order; otherwise they have no order, and some may not occur.
    """

    positions: Codes
    values: Sequence[Any]
    categories: bool = False


def integers(cells: NDArray[Any], gaps: NDArray[np.bool_] | None) -> Coded:
    """Split whole numbers; where `gaps` is true a cell is missing."""
    present = cells if gaps is None else cells[~gaps]
    if not present.size:
        return Coded(np.full(len(cells), MISSING, dtype=np.int8), [])
    low, high = int(present.min()), int(present.max())
    positions: Codes
    values: Sequence[Any]
    if high - low < NEAR_VALUES:
        kind = np.int8 if high - low < 2**7 - 1 else np.int32
        # a number that is out of range because it fills a gap may wrap around; it is overwritten
        if low:
            cells = cells if cells.dtype.kind == "u" else cells.astype(np.int64, copy=False)
            cells = cells - cells.dtype.type(low)
        positions = cells.astype(kind)
        values = range(low, high + 1)
    else:
        known, inverse = np.unique(present, return_inverse=True)
        values = known.tolist()
        positions = np.full(len(cells), MISSING, dtype=np.int32)
        positions[slice(None) if gaps is None else ~gaps] = inverse
    if gaps is not None and gaps.any():
        positions[gaps] = MISSING
    return Coded(positions, values)


def floats(name: str, cells: NDArray[Any], variable: Variable | None) -> Coded:
    """Split whole numbers kept as floats; NaN is missing."""
    gaps = np.isnan(cells)
    whole = np.where(gaps, 0, cells).astype(np.float64, copy=False)
    odd = np.flatnonzero((whole != np.floor(whole)) | (np.abs(whole) >= 2.0**62))
    if odd.size:
        if variable is None:
            raise continuous(name)
        raise UnknownState(name, float(whole[odd[0]]), variable.states)
    return integers(whole.astype(np.int64), gaps if gaps.any() else None)


def objects(cells: NDArray[Any], variable: Variable | None) -> Coded:
    """Split Python objects; None, NaN and the like are missing."""
    shared = _by_address(cells)
    if shared is not None:
        return shared
    if variable is not None:
        return Coded(_looked_up(cells, variable), variable.states, True)
    try:
        positions, values = pd.factorize(cells)
    except TypeError:
        cell = next(c for c in cells if not pd.api.types.is_scalar(c))
        raise InvalidArgument(
            f"a cell holds {cell!r}, which is no state: a string, an integer or a boolean"
        ) from None
    return Coded(narrow(positions, len(values)), list(values))


def _by_address(cells: NDArray[Any]) -> Coded | None:
    """Split by the objects' addresses where few objects fill the column; None otherwise."""
    cells = np.ascontiguousarray(cells)
    # the same memory read as integers: the addresses of the objects that `cells` keeps alive
    addresses = np.asarray(_Pointers(cells))
    begin = 8 * SHARED_OBJECTS
    if len(pd.unique(addresses[:begin])) > SHARED_OBJECTS:
        return None
    places, known = pd.factorize(addresses)
    if len(known) > NEAR_VALUES:
        return None
    # addresses are numbered as they appear: mostly all of them among the first rows
    rows = places[:begin] if places[:begin].max(initial=-1) + 1 == len(known) else places
    first = np.empty(len(known), dtype=np.intp)
    first[rows[::-1]] = np.arange(len(rows))[::-1]
    values: list[Any] = []
    at: dict[Any, int] = {}
    lookup = np.empty(len(known), dtype=np.int32)
    for i, cell in enumerate(cells[first]):
        try:
            if cell is None or (pd.api.types.is_scalar(cell) and pd.isna(cell)):
                lookup[i] = MISSING
                continue
            lookup[i] = at.setdefault(cell, len(values))
        except TypeError:
            lookup[i] = len(values)
        if lookup[i] == len(values):
            values.append(cell)
    return Coded(narrow(lookup, len(values))[places], values)


class _Pointers:
    """Shows an array of objects as an array of their addresses."""

    def __init__(self, cells: NDArray[Any]) -> None:
        self.kept = cells
        self.__array_interface__ = {
            "shape": cells.shape,
            "typestr": np.dtype(np.intp).str,
            "data": (cells.ctypes.data, True),
            "version": 3,
        }


def _looked_up(cells: NDArray[Any], variable: Variable) -> Codes:
    """Look every cell up among the states of a variable; the codes themselves are returned."""
    known: dict[Any, int] = {None: MISSING, **variable.codes}
    kind = code_type([variable])
    try:
        codes = np.fromiter(map(known.get, cells, repeat(UNKNOWN)), dtype=kind, count=len(cells))
    except TypeError:
        cell = next(c for c in cells if not pd.api.types.is_scalar(c))
        raise UnknownState(variable.name, cell, variable.states) from None
    strange = np.flatnonzero(codes == UNKNOWN)
    if strange.size:
        codes[strange] = MISSING
        present = strange[~pd.isna(cells[strange])]
        positions, values = pd.factorize(cells[present])
        codes[present] = translated(Coded(positions, list(values)), variable)
    return codes


def array_cells(name: str, cells: NDArray[Any], variable: Variable | None) -> Coded:
    """Split a NumPy array of any type."""
    if cells.ndim != 1:
        raise InvalidArgument(f"the column {name!r} has {cells.ndim} axes; a column is a list of cells")
    if np.ma.isMaskedArray(cells):
        gaps, cells = np.ma.getmaskarray(cells), np.ma.getdata(cells).astype(object)
        cells[gaps] = None
    kind = cells.dtype.kind
    if kind == "b":
        return Coded(np.ascontiguousarray(cells).view(np.int8), [False, True])
    if kind in "iu":
        return integers(cells, None)
    if kind == "f":
        return floats(name, cells, variable)
    if kind == "O":
        return objects(cells, variable)
    if kind in "mM":
        raise InvalidArgument(
            f"the column {name!r} holds times; turn them into text, or into numbers and then bins (mk.Discretizer)"
        )
    positions, values = pd.factorize(cells.astype(object) if kind in "US" else cells)
    return Coded(narrow(positions, len(values)), [v.item() if hasattr(v, "item") else v for v in values])


def narrow(positions: NDArray[Any], n: int) -> Codes:
    """Return positions among n values in 8 bits where they fit, else in 32."""
    return positions.astype(np.int8 if n < 2**7 else np.int32, copy=False)


def translated(coded: Coded, variable: Variable, unseen: str = "error") -> Codes:
    """Return the codes of a column that was split; see `column_codes`."""
    positions, values = coded.positions, coded.values
    if coded.categories and tuple(values) == variable.states:
        return positions
    strange = MISSING if unseen == "missing" else UNKNOWN
    lookup = [strange if at is None else at for at in variable.positions(values)]
    if lookup == list(range(len(lookup))):
        return positions
    codes: Codes
    if len(values) < 2**7 and len(variable) < 2**7:
        table = np.full(256, MISSING, dtype=np.int8)
        table[: len(values)] = lookup
        # str.translate for bytes: one look into a table of 256 a cell
        codes = np.frombuffer(
            positions.astype(np.int8, copy=False).tobytes().translate(table.tobytes()), np.int8
        )
    else:
        codes = np.array([*lookup, MISSING], dtype=np.int32)[positions]
    if UNKNOWN in lookup:
        cells = np.flatnonzero(codes == UNKNOWN)
        if cells.size:
            cell = values[int(positions[cells[0]])]
            raise UnknownState(
                variable.name, cell.item() if isinstance(cell, np.generic) else cell, variable.states
            )
    return codes


def code_type(variables: Iterable[Variable]) -> type[np.signedinteger[Any]]:
    """Return the type that codes of these variables are kept in: 8 bits where they fit, else 32."""
    return np.int8 if all(len(v) < 2**7 for v in variables) else np.int32


def continuous(name: str) -> InvalidArgument:
    """Return the error for a column of numbers that are no integers."""
    return InvalidArgument(
        f"the column {name!r} holds numbers that are not integers; discretise it first (mk.Discretizer)"
    )
