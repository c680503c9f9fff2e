"""Counting the configurations of variables in data, wherever the data live.

Data in memory are counted by compiled code in one pass (`markovia.data.tables.table_counts`); files, data bases and
clusters group and count where the rows are, and only the counts come back. Tables whose dense form would be much larger
than the data are `SparseFactor`s of the configurations that occur.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any, overload

import numpy as np

from markovia.data.tables.reading import read_data
from markovia.data.tables.row_sources import RowSource
from markovia.errors import InvalidArgument
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.sparse import SparseFactor
from markovia.factors.tables.variable import State
from markovia.runtime.checks import check_choice

DENSE_CELLS = 2**20
"""Tables up to this size are always dense."""
CELLS_A_ROW = 4
"""Larger ones are dense while they have at most so many cells for each row, and at most 2**26."""


@overload
def counts(
    data: Any,
    variables: str,
    *,
    states: Mapping[str, int | Sequence[State]] | None = None,
    weights: Any = None,
    missing: str = "drop",
    names: Sequence[str] | None = None,
) -> Factor: ...


@overload
def counts(
    data: Any,
    variables: Sequence[str],
    *,
    states: Mapping[str, int | Sequence[State]] | None = None,
    weights: Any = None,
    missing: str = "drop",
    names: Sequence[str] | None = None,
) -> Factor: ...


@overload
def counts(
    data: Any,
    variables: Sequence[Sequence[str]],
    *,
    states: Mapping[str, int | Sequence[State]] | None = None,
    weights: Any = None,
    missing: str = "drop",
    names: Sequence[str] | None = None,
) -> list[Factor]: ...


def counts(
    data: Any,
    variables: Any,
    *,
    states: Mapping[str, int | Sequence[State]] | None = None,
    weights: Any = None,
    missing: str = "drop",
    names: Sequence[str] | None = None,
) -> Factor | list[Factor]:
    """Count how often each configuration of some variables occurs.

    Parameters
    ----------
    data
        A pandas, Polars, Dask or Spark frame, a PyArrow table, a DuckDB relation, a mapping of columns, a list of
        mappings, a structured array, a matrix (its columns are `x0, x1, ...`), or CSV and Parquet files of any size: a
        path, a pattern with `*`, or a list of them. Rows that are not in memory stay where they are.
    variables
        One name, or a list of names for one table; a list of lists for several tables in one pass.
    states
        The states of columns, in order. Otherwise they are read off the data: categories in their order, both booleans,
        everything else sorted.
    weights
        The name of a column; or, for data in memory, one number a row.
    missing
        "drop": a row that misses a cell of a table (None, NaN, null) is not counted in it. "error": it is an error.
    names
        The names of the columns of a matrix.

    Returns
    -------
    Factor or list of Factor
        The counts, one axis a variable. A `SparseFactor` where a dense table would be much larger than the data.

    Raises
    ------
    UnknownVariable
        For a column that the data lack.
    UnknownState
        For a cell that is none of the given states.
    InvalidArgument
        For numbers with fractions; see `Discretizer`.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = {"rain": ["no", "no", "yes", None], "wet": [False, True, True, True]}
    >>> mk.counts(rows, ["rain", "wet"])
    Factor('rain', 'wet')
    rain   wet     value
    no     False       1
    no     True        1
    yes    False       0
    yes    True        1
    >>> [f.total for f in mk.counts(rows, [["rain"], ["wet"]])]
    [3.0, 4.0]
    """
    check_choice("missing", missing, ("drop", "error"))
    listed = variables if isinstance(variables, str) else _listed(variables)
    single = isinstance(listed, str) or all(isinstance(v, str) for v in listed)
    scopes = [_scope(s) for s in ([listed] if single else listed)]
    wanted = list(dict.fromkeys(n for scope in scopes for n in scope))
    for name in states if isinstance(states, Mapping) else ():
        if name not in wanted:
            raise InvalidArgument(f"states= names {name!r}, which is not counted")
    source = read_data(_named(data, names), wanted, states=states, weights=weights, scopes=scopes)
    if missing == "error":
        gaps = source.missing()
        for name in wanted:
            if gaps[name]:
                raise InvalidArgument(
                    f"{gaps[name]:,} cells are missing in {name!r}; missing='drop' leaves such rows out"
                )
    found = _factors(source, scopes)
    return found[0] if single else found


def _factors(source: RowSource, scopes: Sequence[Sequence[str]]) -> list[Factor]:
    sizes = [prod(len(source.variables[n]) for n in scope) for scope in scopes]
    room = max(DENSE_CELLS, min(CELLS_A_ROW * source.n_rows, 2**26))
    dense = [t for t, scope in enumerate(scopes) if sizes[t] <= room and len(scope) <= 32]
    tables = dict(zip(dense, source.counts([scopes[t] for t in dense]) if dense else [], strict=True))
    factors: list[Factor] = []
    for t, scope in enumerate(scopes):
        axes = tuple(source.variables[n] for n in scope)
        if t in tables:
            factors.append(Factor.of(axes, tables[t]))
        else:
            codes, totals = source.distinct(scope)
            factors.append(SparseFactor.from_arrays(axes, codes, totals))
    return factors


def _scope(names: Any) -> list[str]:
    scope = [names] if isinstance(names, str) else _listed(names)
    for name in scope:
        if not isinstance(name, str):
            raise InvalidArgument(
                f"variables are names, lists of names, or lists of such lists, not {name!r}"
            )
    if len(set(scope)) < len(scope):
        raise InvalidArgument(f"a table names each variable once, not {scope}")
    return scope


def _listed(names: Any) -> list[Any]:
    if not isinstance(names, Iterable) or isinstance(names, Mapping):
        raise InvalidArgument(f"variables are names, lists of names, or lists of such lists, not {names!r}")
    return list(names)


def _named(data: Any, names: Sequence[str] | None) -> Any:
    """Give the columns of a matrix their names."""
    if names is None:
        return data
    if not isinstance(data, np.ndarray) or data.ndim != 2:
        raise InvalidArgument("names= is for matrices; the columns of other data have names")
    given = list(names)
    if len(given) != data.shape[1] or len(set(given)) < len(given):
        raise InvalidArgument(
            f"a matrix with {data.shape[1]} columns needs as many different names, not {given}"
        )
    return {name: data[:, i] for i, name in enumerate(given)}
