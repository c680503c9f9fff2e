"""The mutual information of every pair of columns, plain or given a third column.

Discrete pairs are counted in one call for all of them (`RowSource.counts`), so the rows may be in a file or on a cluster.
Two continuous columns: -1/2 ln(1 - r^2), that of a Gaussian with their correlation. A discrete and a continuous column:
-1/2 ln(1 - e^2) with e^2 the share of the variance between the states, that of Gaussians with one variance (analysis of
variance). All are log-likelihood ratios for each row, so they can be compared.
Cost: rows times pairs; complete rows in memory that are many go through compiled code (`family_tables`).
"""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from markovia.data.tables.reading_mixed import MixedTable
from markovia.data.tables.row_sources import CodedTable, RowSource
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array
from markovia.structure.scores.family_tables import LIKELIHOOD, NO_CHILD, NOTHING, FamilyTables

CELLS_AT_ONCE = 1 << 24
"""Tables of pairs are counted in one pass unless together they have more cells."""
WORK_AT_ONCE = 1 << 27
"""Rows times pairs that are counted between two looks at the clock."""
COMPILED_WORK = 1 << 24
"""Rows times pairs from which compiled code pays."""


def table_information(
    table: RowSource,
    names: Sequence[str],
    given: str | None = None,
    over: Callable[[], bool] = lambda: False,
) -> Array:
    """Return the mutual information of every pair of discrete columns from counts, in nats; `given` another one.

    A row that misses a cell of a pair is left out of that pair. Once `over` says so, the pairs that are left stay at zero.
    """
    work = table.n_rows * len(names) ** 2 / 2
    if work >= COMPILED_WORK and isinstance(table, CodedTable) and not any(table.missing().values()):
        return _compiled(table, names, given, over)
    result = np.zeros((len(names), len(names)))
    sizes = [len(table.variables[n]) for n in names]
    classes = 1 if given is None else len(table.variables[given])
    batch: list[tuple[int, int]] = []
    cells = 0
    for i, j in combinations(range(len(names)), 2):
        batch.append((i, j))
        cells += classes * sizes[i] * sizes[j]
        if cells >= CELLS_AT_ONCE or table.n_rows * len(batch) >= WORK_AT_ONCE:
            if over():
                return result
            _fill(result, table, names, given, batch)
            batch, cells = [], 0
    if not over():
        _fill(result, table, names, given, batch)
    return result


def _compiled(table: CodedTable, names: Sequence[str], given: str | None, over: Callable[[], bool]) -> Array:
    """Return the same from sums of n log n over sets of columns."""
    n = len(names)
    result = np.zeros((n, n))
    tables = FamilyTables(table, [*names, *([given] if given is not None else [])])
    base = () if given is None else (n,)
    alone = np.array(
        [s[0] for s in tables.sums([(NO_CHILD, (*base, i), NOTHING) for i in range(n)], LIKELIHOOD)]
    )
    whole = float(tables.sums([(NO_CHILD, base, NOTHING)], LIKELIHOOD)[0][0])
    for i in range(n - 1):
        if over():
            break
        others = np.arange(i + 1, n)
        (both,) = tables.sums([(NO_CHILD, (*base, i), others)], LIKELIHOOD)
        found = np.maximum(0.0, both - alone[i] - alone[others] + whole) / table.total
        result[i, others] = result[others, i] = found
    return result


def _fill(
    result: Array, table: RowSource, names: Sequence[str], given: str | None, pairs: list[tuple[int, int]]
) -> None:
    if not pairs:
        return
    first = () if given is None else (given,)
    counts = table.counts([(*first, names[i], names[j]) for i, j in pairs])
    for (i, j), n in zip(pairs, counts, strict=True):
        if given is None:
            n = n[None]
        total = n.sum()
        if not total:
            continue
        expected = n.sum(axis=2, keepdims=True) * n.sum(axis=1, keepdims=True)
        some = n > 0
        ratio = (n * n.sum(axis=(1, 2), keepdims=True))[some] / expected[some]
        result[i, j] = result[j, i] = max(0.0, float((n[some] * np.log(ratio)).sum() / total))


def pair_information(data: MixedTable, over: Callable[[], bool] = lambda: False) -> tuple[Array, Array]:
    """Return the mutual information of every pair of columns of any kind, in nats, and the parameters each edge costs.

    Once `over` says so, the pairs of discrete columns that are left stay at zero.
    """
    n = len(data.names)
    if data.discrete:
        assert data.table is not None
        free = (data.cards - 1).astype(np.float64)
        return table_information(data.table, data.names, over=over), np.outer(free, free)
    known: Any = data.matrix
    weights = np.ones(len(known)) if data.weights is None else data.weights
    whole = weights.sum()
    spread = known - (weights @ known) / whole
    variance = weights @ spread**2 / whole
    measured = np.array([k for k, kind in enumerate(data.kinds) if kind == "continuous"], dtype=np.int64)
    for k, v in zip(measured.tolist(), variance.tolist(), strict=True):
        if v == 0:
            raise InvalidArgument(
                f"the column {data.names[k]!r} is constant, which tells nothing about others"
            )
    shares = np.zeros((n, n))
    cost = np.ones((n, n))
    inner = (spread * weights[:, None]).T @ spread / whole
    shares[np.ix_(measured, measured)] = inner**2 / np.outer(variance, variance)
    information = np.zeros((n, n))
    if data.table is not None:
        counted = np.array([k for k, kind in enumerate(data.kinds) if kind == "discrete"], dtype=np.int64)
        table = data.table.in_memory()
        names = [data.names[k] for k in counted]
        information[np.ix_(counted, counted)] = table_information(table, names, over=over)
        free = (data.cards - 1).astype(np.float64)
        cost[np.ix_(counted, counted)] = np.outer(free[counted], free[counted])
        for k, name in zip(counted.tolist(), names, strict=True):
            column = table.column(name)
            held = np.bincount(column, weights, minlength=int(data.cards[k]))
            for c, j in enumerate(measured.tolist()):
                means = np.bincount(column, weights * spread[:, c], minlength=len(held))
                between = (means**2 / np.where(held > 0, held, 1.0)).sum() / whole
                shares[k, j] = shares[j, k] = between / variance[c]
                cost[k, j] = cost[j, k] = free[k]
    mixed = np.array([[a == "continuous" or b == "continuous" for b in data.kinds] for a in data.kinds])
    np.fill_diagonal(shares, 0.0)
    with np.errstate(divide="ignore"):
        gaussian = -0.5 * np.log(np.clip(1.0 - shares, 1e-300, 1.0))
    return np.where(mixed, gaussian, information), cost
