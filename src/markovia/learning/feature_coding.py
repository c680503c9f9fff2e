"""Columns of features as state codes: what discrete classifiers read, at fitting and at prediction.

Small whole numbers are coded by looking them up in an array, everything else by pandas. Cost: one pass over the cells.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument, UnknownState, UnknownVariable
from markovia.factors.variable import State, Variable
from markovia.learning.coding import MISSING, UNKNOWN

Codes = NDArray[np.signedinteger[Any]]
WIDEST = 1 << 16
"""Whole numbers that span less are looked up in an array."""


def feature_variables(
    columns: Sequence[Any],
    names: Sequence[str],
    states: Mapping[str, int | Sequence[State]] | None = None,
    known: Mapping[str, Variable] | None = None,
) -> list[Variable]:
    """Return a variable for each column: the known one, one with given states, or one with those the column holds.

    Parameters
    ----------
    columns
        Arrays or pandas Series, one a feature.
    names
        Their names.
    states
        States of some of them.
    known
        Variables that have their states already.

    Raises
    ------
    UnknownVariable
        For states of a column that is not there.

    Examples
    --------
    >>> feature_variables([np.array([3, 1, 3])], ["x"])
    [Variable('x', [1, 3])]
    """
    known = known or {}
    for name in states or {}:
        if name in known:
            raise InvalidArgument(f"the states of {name!r} are already known: {list(known[name].states)}")
        if name not in names:
            raise UnknownVariable(name, names, "the discrete features; states= names some of them")
    given = {n: Variable(n, s) for n, s in (states or {}).items()} | dict(known)
    return [
        given[name] if name in given else Variable(name, _states(column, name))
        for column, name in zip(columns, names, strict=True)
    ]


def feature_codes(columns: Sequence[Any], variables: Sequence[Variable], unseen: str = "error") -> Codes:
    """Return codes, one row a column, -1 for missing cells.

    Parameters
    ----------
    columns, variables
        Equally many.
    unseen
        What a cell is that is no state of its variable: "error", or "missing".

    Raises
    ------
    UnknownState
        For an unseen cell, unless it counts as missing.
    """
    if unseen not in ("error", "missing"):
        raise InvalidArgument(f"unseen= is 'error' or 'missing', not {unseen!r}")
    most = max(map(len, variables), default=1)
    n_rows = len(columns[0]) if len(columns) else 0
    codes = np.empty((len(variables), n_rows), dtype=np.int8 if most < 2**7 else np.int32)
    for k, (column, variable) in enumerate(zip(columns, variables, strict=True)):
        positions, uniques = _numbers(column, variable.name) or _distinct(column, variable.name)
        lookup = np.empty(len(uniques) + 1, dtype=codes.dtype)
        lookup[-1] = MISSING
        for i, value in enumerate(uniques):
            lookup[i] = variable.codes.get(value, UNKNOWN)
        if UNKNOWN in lookup:
            strange = np.flatnonzero(lookup[positions] == UNKNOWN)
            if strange.size and unseen == "error":
                cell = uniques[positions[strange[0]]]
                raise UnknownState(variable.name, cell, variable.states)
            lookup[lookup == UNKNOWN] = MISSING
        lookup.take(positions, mode="wrap", out=codes[k])
    return codes


def _states(column: Any, name: str) -> list[Any]:
    """Return the states that a column holds: categories in their order, other cells sorted."""
    dtype = getattr(column, "dtype", None)
    if hasattr(dtype, "categories"):
        return list(column.cat.categories)
    positions, uniques = _numbers(column, name) or _distinct(column, name)
    present = np.bincount(positions[positions >= 0], minlength=len(uniques)) > 0
    found = [value for value, here in zip(uniques, present, strict=True) if here]
    if not found:
        raise InvalidArgument(f"the column {name!r} has no value; give its states with states=")
    try:
        return sorted(found)
    except TypeError:
        return sorted(found, key=lambda v: (type(v).__name__, v))


def _numbers(column: Any, name: str) -> tuple[Codes, Sequence[Any]] | None:
    """Return positions in a range of whole numbers (-1 for NaN) and the range; None where that is not how to do it."""
    dtype = getattr(column, "dtype", None)
    if not isinstance(dtype, np.dtype) or dtype.kind not in "iufb":
        return None
    values = np.asarray(column)
    if dtype.kind == "b":
        return values.astype(np.int8), [False, True]
    missing = np.isnan(values) if dtype.kind == "f" and np.isnan(values.min(initial=0)) else None
    seen = values if missing is None else values[~missing]
    if not len(seen):
        return np.full(len(values), -1), []
    low, high = seen.min(), seen.max()
    if not np.isfinite(low) or not np.isfinite(high):
        raise InvalidArgument(f"the column {name!r} holds an infinite number")
    if dtype.kind == "f" and (seen != np.floor(seen)).any():
        raise InvalidArgument(
            f"the column {name!r} holds numbers with fractions; discretise it first (mk.Discretizer)"
        )
    if int(high) - int(low) >= WIDEST:
        return None
    if missing is None:
        wide = values.astype(np.int64) if dtype.kind == "i" else values  # a narrow type could overflow
        return (wide - wide.dtype.type(low)).astype(np.int64), range(int(low), int(high) + 1)
    positions = np.full(len(values), -1)
    positions[~missing] = seen - low
    return positions, range(int(low), int(high) + 1)


def _distinct(column: Any, name: str) -> tuple[Codes, Sequence[Any]]:
    """Return the position of each cell among the distinct cells, and these as plain values."""
    import pandas as pd

    if isinstance(getattr(column, "dtype", None), pd.CategoricalDtype):
        return column.cat.codes.to_numpy(), column.cat.categories.tolist()
    try:
        positions, uniques = pd.factorize(column if isinstance(column, pd.Series) else np.asarray(column))
    except TypeError:
        raise InvalidArgument(
            f"a cell of the column {name!r} is no string, whole number or truth value"
        ) from None
    plain = [u.item() if isinstance(u, np.generic) else u for u in uniques]
    if any(isinstance(u, float) and not u.is_integer() for u in plain):
        raise InvalidArgument(
            f"the column {name!r} holds numbers with fractions; discretise it first (mk.Discretizer)"
        )
    return positions, plain
