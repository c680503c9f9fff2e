"""Counts of a family: a dense table, or only the rows that occur.

A node with a local model (noisy-or, logistic, a gate) may have so many parents that its table cannot be written down.
Its sufficient statistic is then the list of distinct rows of parents and child with their weights. `family_counts` picks
the form by the size of the table. Cost: one pass for all dense tables together, one sort for each list of rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from markovia.data.tables.row_sources import CodedTable, RowSource
from markovia.factors.tables.conditional import Conditional
from markovia.runtime.array_types import Array, Codes

if TYPE_CHECKING:
    from markovia.learning.tables.table_learner import NodeFamily


@dataclass(frozen=True)
class RowCounts:
    """Distinct configurations of parents and child with the weight of each.

    Attributes
    ----------
    codes
        One row a variable (parents, then the child), one column a configuration.
    weights
        One non-negative number a configuration.
    """

    codes: Codes
    weights: Array

    @classmethod
    def of_table(cls, counts: Array) -> "RowCounts":
        """Return the cells of a dense table that are not zero."""
        cells = np.nonzero(counts)
        return cls(np.array(cells, dtype=np.int64).reshape(counts.ndim, -1), counts[cells])

    @classmethod
    def of_rows(cls, codes: Codes, weights: Array | None) -> "RowCounts":
        """Merge equal rows."""
        rows = np.ascontiguousarray(codes.T)
        if not rows.shape[0]:
            return cls(codes, np.zeros(0))
        keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        total = np.bincount(inverse.ravel(), weights=weights, minlength=len(first)).astype(np.float64)
        return cls(np.ascontiguousarray(codes[:, first]), total)

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return float(self.weights.sum())

    def log_likelihood(self, conditional: Conditional) -> float:
        """Return the weighted sum of log P(child | parents); rows of weight zero do not count."""
        some = self.weights > 0
        codes = self.codes[:, some]
        logs = conditional.log_prob(codes[-1], list(codes[:-1]))
        return float(np.dot(self.weights[some], logs))


Counts = Array | RowCounts


def family_counts(source: RowSource, families: Sequence["NodeFamily"]) -> list[Counts]:
    """Return the counts of every family, dense wherever its table is small."""
    dense = iter(source.counts([f.scope for f in families if not f.sparse]))
    table = source.in_memory() if any(f.sparse for f in families) else None
    return [_listed(cast("CodedTable", table), f.scope) if f.sparse else next(dense) for f in families]


def family_log_likelihood(counts: Counts, conditional: Conditional) -> float:
    """Return `sum N log p` of one family, with `0 log 0 = 0`."""
    if isinstance(counts, RowCounts):
        return counts.log_likelihood(conditional)
    some = counts > 0
    with np.errstate(divide="ignore"):
        return float((counts[some] * np.log(conditional.values[some])).sum())


def pooled(counts: Sequence[Counts]) -> Counts:
    """Add counts of families that share their parameters."""
    first = counts[0]
    if len(counts) == 1:
        return first
    if isinstance(first, RowCounts):
        parts = [c for c in counts if isinstance(c, RowCounts)]
        codes = np.concatenate([c.codes for c in parts], axis=1)
        return RowCounts.of_rows(codes, np.concatenate([c.weights for c in parts]))
    total: Array = sum((c for c in counts[1:] if not isinstance(c, RowCounts)), start=first)
    return total


def scaled(counts: Counts, factor: float) -> Counts:
    """Multiply all weights."""
    if isinstance(counts, RowCounts):
        return RowCounts(counts.codes, counts.weights * factor)
    return counts * factor


def _listed(table: CodedTable, scope: Sequence[str]) -> RowCounts:
    codes = np.ascontiguousarray(table.rows(scope).T)
    whole = (codes >= 0).all(axis=0)
    weights = table.weights
    if not whole.all():
        codes, weights = codes[:, whole], None if weights is None else weights[whole]
    return RowCounts.of_rows(codes, weights)
