"""Columns of any library as state codes.

A column is first split into positions and values (`Coded`): categories and dictionaries already are, strings are by
Arrow, Polars or pandas, small integers by a subtraction, Python objects by their addresses where few objects are shared
by many cells. Only then are the few values looked up among the states, and the positions translated byte by byte.
Cost: linear in the rows, without a Python object a cell except where a column holds many different ones.
"""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.table_counts import kernel_for
from markovia.errors import InvalidArgument, UnknownState
from markovia.factors.tables.variable import State, Variable
from markovia.runtime.array_types import Codes

MISSING = -1
UNKNOWN = -2
NEAR_VALUES = 2**16
"""Integers that span at most so much are positions once the smallest is taken away."""
SHARED_OBJECTS = 1024
"""Python objects are told apart by their addresses when a stretch of cells has at most so many."""


FEW_STRINGS = 120
"""Strings with at most so many different values are told apart by compiled code."""


class Coded(NamedTuple):
    """A column as positions into a list of values; -1 is missing.

    `categories` says that all values are states, in their order; otherwise they have no order, and some may not occur.
    """

    positions: Codes
    values: Sequence[Any]
    categories: bool = False


def column_codes(
    name: str,
    column: Any,
    variable: Variable | None,
    states: int | Sequence[State] | None = None,
    unseen: str = "error",
) -> tuple[Variable, Codes]:
    """Return a column's variable (given, with given states, or inferred) and its cells as codes, -1 for missing.

    With `unseen="missing"` a cell that is no state is missing, too; a number with a fraction stays an error.

    Raises
    ------
    UnknownState
        For a cell that is no state.
    InvalidArgument
        For numbers with fractions, or a column without any value, where states are to be inferred.
    """
    if variable is None and states is not None:
        variable = Variable(name, states)
    coded = split(name, column, variable if unseen == "error" else None)
    if variable is None:
        variable = inferred(name, _occurring(coded), coded.categories)
    return variable, translated(coded, variable, unseen)


def split(name: str, column: Any, variable: Variable | None = None) -> Coded:
    """Split a column of any library into positions and values."""
    kind = type(column).__module__.partition(".")[0]
    if kind == "pandas":
        return _pandas(name, column, variable)
    if kind == "polars":
        from markovia.data.tables.polars_columns import split_polars

        return split_polars(name, column, variable)
    if kind == "pyarrow":
        return _arrow(name, column, variable)
    return _numpy(name, np.asanyarray(column), variable)


def inferred(name: str, values: Iterable[Any], categories: bool = False) -> Variable:
    """Return a variable with these values as states: categories in their order, both booleans, others sorted."""
    found = [v.item() if isinstance(v, np.generic) else v for v in values]
    if not found:
        raise InvalidArgument(f"the column {name!r} has no value; give its states with states=")
    if any(isinstance(v, float) and not v.is_integer() for v in found):
        raise continuous(name)
    if categories:
        return Variable(name, found)
    if all(isinstance(v, bool) for v in found):
        return Variable(name, [False, True])
    if {bool, int} <= {type(v) for v in found}:
        raise InvalidArgument(
            f"the column {name!r} mixes booleans and integers, and True equals 1; give its states with states="
        )
    try:
        return Variable(name, sorted(found))
    except TypeError:
        found = list(Variable(name, found).states)  # says so if one of them can be no state at all
        return Variable(name, sorted(found, key=lambda v: (type(v).__name__, v)))


def continuous(name: str) -> InvalidArgument:
    """Return the error for a column of numbers that are no integers."""
    return InvalidArgument(
        f"the column {name!r} holds numbers that are not integers; discretise it first (mk.Discretizer)"
    )


def code_type(variables: Iterable[Variable]) -> type[np.signedinteger[Any]]:
    """Return the type that codes of these variables are kept in: 8 bits where they fit, else 32."""
    return np.int8 if all(len(v) < 2**7 for v in variables) else np.int32


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


def _occurring(coded: Coded) -> list[Any]:
    """Return the values that some cell has; all of them for categories."""
    if coded.categories:
        return list(coded.values)
    seen = np.bincount(coded.positions[coded.positions >= 0], minlength=len(coded.values))
    return [v for v, n in zip(coded.values, seen.tolist(), strict=True) if n]


# -- libraries -------------------------------------------------------------------------------------------------------


def _pandas(name: str, column: Any, variable: Variable | None) -> Coded:
    import pandas as pd

    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        cells = column.array
        return Coded(cells.codes, kind.categories.tolist(), True)
    if isinstance(kind, np.dtype):
        return _numpy(name, column.to_numpy(), variable)
    if hasattr(column.array, "__arrow_array__") and (
        isinstance(kind, pd.ArrowDtype) or getattr(kind, "storage", "") == "pyarrow"
    ):
        import pyarrow as pa

        return _arrow(name, pa.chunked_array(pa.array(column.array)), variable)
    gaps = column.isna().to_numpy()
    if pd.api.types.is_bool_dtype(kind):
        return Coded(np.where(gaps, np.int8(MISSING), column.to_numpy(np.int8, na_value=0)), [False, True])
    if pd.api.types.is_integer_dtype(kind):
        return integers(column.to_numpy(np.int64, na_value=0), gaps)
    if pd.api.types.is_float_dtype(kind):
        return floats(name, column.to_numpy(np.float64, na_value=np.nan), variable)
    return objects(column.to_numpy(object, na_value=None), variable)


def _arrow(name: str, column: Any, variable: Variable | None) -> Coded:
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    kind = column.type
    if pa.types.is_null(kind):
        return Coded(np.full(len(column), MISSING, dtype=np.int8), [])
    if pa.types.is_boolean(kind):
        return Coded(_filled(pc.cast(column, pa.int8())), [False, True])
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        if not column.null_count:
            return _numpy(name, column.to_numpy(), variable)
        gaps = column.is_null().to_numpy()
        if pa.types.is_integer(kind):
            return integers(column.fill_null(0).to_numpy(), gaps)
        return floats(name, np.where(gaps, np.nan, column.fill_null(0.0).to_numpy()), variable)
    categories = pa.types.is_dictionary(kind)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        short = _few_strings(column)
        if short is not None:
            return short
    if not categories:
        try:
            column = column.dictionary_encode()
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            return objects(np.array([*column.to_pylist(), None], dtype=object)[:-1], variable)
    if column.num_chunks == 0:
        return Coded(np.zeros(0, dtype=np.int8), [])
    column = column.unify_dictionaries()
    values = column.chunk(0).dictionary.to_pylist()
    indices = pa.chunked_array([chunk.indices for chunk in column.chunks])
    positions = _narrow(_filled(indices), len(values))
    if None in values:
        at = values.index(None)
        positions = np.where(positions == at, MISSING, positions - (positions > at)).astype(positions.dtype)
        values = values[:at] + values[at + 1 :]
    return Coded(positions, values, categories)


def _few_strings(column: Any) -> Coded | None:
    """Split Arrow strings by compiled code where it is loaded; None where it is not, or there are many values."""
    import pyarrow as pa

    kernel = kernel_for(8 * len(column))
    if kernel is None or not len(column):
        return None
    array = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
    _, offsets, text = array.buffers()
    width = np.int64 if pa.types.is_large_string(array.type) else np.int32
    ends = np.frombuffer(offsets, width)[array.offset : array.offset + len(array) + 1].astype(
        np.int64, copy=False
    )
    letters = np.zeros(1, dtype=np.uint8) if text is None or not text.size else np.frombuffer(text, np.uint8)
    positions = np.empty(len(array), dtype=np.int8)
    first_row = np.empty(FEW_STRINGS, dtype=np.int64)
    held = kernel.split_text(ends, letters, np.full(512, -1), first_row, positions)
    if held < 0:
        return None
    if array.null_count:
        positions[array.is_null().to_numpy(zero_copy_only=False)] = MISSING
    values = [bytes(letters[ends[i] : ends[i + 1]]).decode() for i in first_row[:held]]
    return Coded(positions, values)


def _filled(indices: Any) -> Codes:
    """Return Arrow integers as an array with -1 for nulls."""
    import pyarrow as pa

    if pa.types.is_unsigned_integer(indices.type):
        indices = indices.cast(pa.int64())
    filled: Codes = (indices.fill_null(MISSING) if indices.null_count else indices).to_numpy()
    return filled


def _numpy(name: str, cells: NDArray[Any], variable: Variable | None) -> Coded:
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
    import pandas as pd

    positions, values = pd.factorize(cells.astype(object) if kind in "US" else cells)
    return Coded(_narrow(positions, len(values)), [v.item() if hasattr(v, "item") else v for v in values])


# -- kinds of cells --------------------------------------------------------------------------------------------------


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
    import pandas as pd

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
    return Coded(_narrow(positions, len(values)), list(values))


def _by_address(cells: NDArray[Any]) -> Coded | None:
    """Split by the objects' addresses where few objects fill the column; None otherwise."""
    import pandas as pd

    cells = np.ascontiguousarray(cells)
    # the same memory read as integers: the addresses of the objects that `cells` keeps alive
    addresses = np.asarray(_Pointers(cells))
    if len(set(addresses[: 8 * SHARED_OBJECTS].tolist())) > SHARED_OBJECTS:
        return None
    places, known = pd.factorize(addresses)
    if len(known) > NEAR_VALUES:
        return None
    first = np.empty(len(known), dtype=np.intp)
    first[places[::-1]] = np.arange(len(places))[::-1]
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
    return Coded(_narrow(lookup, len(values))[places], values)


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
    import pandas as pd

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


def _narrow(positions: NDArray[Any], n: int) -> Codes:
    return positions.astype(np.int8 if n < 2**7 else np.int32, copy=False)
