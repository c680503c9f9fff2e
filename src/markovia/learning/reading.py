"""Data frames in memory as tables of codes, with states given or read off the cells."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, UnknownVariable
from markovia.factors.variable import State, Variable
from markovia.learning.data import CodedTable, row_weights
from markovia.learning.frames import encode_column

if TYPE_CHECKING:
    import pandas as pd


def coded_frame(
    frame: "pd.DataFrame",
    names: Iterable[str] | None,
    variables: Mapping[str, Variable],
    states: Mapping[str, int | Sequence[State]],
    weights: Any = None,
) -> CodedTable:
    """Return a pandas frame as codes; see `markovia.learning.data.read_data`."""
    if isinstance(weights, str):
        if weights not in frame.columns:
            raise UnknownVariable(weights, frame.columns, "the data")
        skipped, weights = weights, frame[weights]
    else:
        skipped = None
    wanted = [str(n) for n in frame.columns if n != skipped] if names is None else list(names)
    for name in wanted:
        if name not in frame.columns:
            raise UnknownVariable(name, frame.columns, "the data")
    known = [
        variables[n] if n in variables else Variable(n, states[n]) if n in states else infer(frame[n])
        for n in wanted
    ]
    most = max(map(len, known), default=1)
    codes = np.empty((len(wanted), len(frame)), dtype=np.int8 if most < 2**7 else np.int32)
    for k, variable in enumerate(known):
        codes[k] = encode_column(frame[variable.name], variable)
    return CodedTable(known, codes, row_weights(weights, len(frame)))


def infer(column: "pd.Series[Any]") -> Variable:
    """Return a variable with the states that a column holds: categories in their order, other cells sorted."""
    import pandas as pd

    name = str(column.name)
    if isinstance(column.dtype, pd.CategoricalDtype):
        return Variable(name, column.cat.categories.tolist())
    found = [v.item() if isinstance(v, np.generic) else v for v in pd.unique(column.dropna())]
    if not found:
        raise InvalidArgument(f"the column {name!r} has no value; give its states with states=")
    if any(isinstance(v, float) and not v.is_integer() for v in found):
        raise InvalidArgument(
            f"the column {name!r} holds numbers with fractions; discretise it first (mk.Discretizer)"
        )
    try:
        return Variable(name, sorted(found))
    except TypeError:
        return Variable(name, sorted(found, key=lambda v: (type(v).__name__, v)))
