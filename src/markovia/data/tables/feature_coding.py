"""Columns of features as state codes: what discrete classifiers read, at fitting and at prediction.

The columns are split and coded as all data are (`markovia.data.tables.state_codes`); here they are told apart by
their places, because the features of an estimator need not have names. Cost: one pass over the cells.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from markovia.data.tables.coded_cells import code_type
from markovia.data.tables.state_codes import column_codes
from markovia.errors import InvalidArgument, UnknownVariable
from markovia.factors.tables.variable import State, Variable
from markovia.runtime.array_types import Codes
from markovia.runtime.checks import check_choice


def coded_features(
    columns: Sequence[Any],
    names: Sequence[str],
    *,
    states: Mapping[str, int | Sequence[State]] | None = None,
    known: Mapping[str, Variable] | None = None,
    unseen: str = "error",
) -> tuple[list[Variable], Codes]:
    """Return a variable for each column (known, with given states, or with those it holds) and the cells as codes.

    Parameters
    ----------
    columns
        Arrays or Series, one a feature.
    names
        Their names.
    states
        States of some of them.
    known
        Variables that have their states already.
    unseen
        What a cell is that is no state of its variable: "error", or "missing".

    Returns
    -------
    tuple
        The variables, and their codes with one row a column, -1 for missing cells.

    Raises
    ------
    UnknownVariable
        For states of a column that is not there.
    UnknownState
        For an unseen cell, unless it counts as missing.

    Examples
    --------
    >>> coded_features([np.array([3, 1, 3])], ["x"])
    ([Variable('x', [1, 3])], array([[1, 0, 1]], dtype=int8))
    """
    check_choice("unseen", unseen, ("error", "missing"))
    known, states = known or {}, states or {}
    for name in states:
        if name in known:
            raise InvalidArgument(f"the states of {name!r} are already known: {list(known[name].states)}")
        if name not in names:
            raise UnknownVariable(name, names, "the discrete features; states= names some of them")
    found = [
        column_codes(name, column, known.get(name), states.get(name), unseen)
        for column, name in zip(columns, names, strict=True)
    ]
    codes = np.empty((len(found), len(columns[0]) if found else 0), dtype=code_type(v for v, _ in found))
    for k, (_, own) in enumerate(found):
        codes[k] = own
    return [v for v, _ in found], codes
