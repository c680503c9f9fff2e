"""Which weights of a log-linear model the data can tell apart, by linear algebra over its scopes.

Two weight vectors give the same distribution if and only if `(design @ (w - w'))` summed over the tables is a constant
function of the configuration. A sum of tables is written in one way only as a constant plus *interactions*: one number for
each set of variables and each choice of states other than the first (the canonical parametrisation of Hammersley and
Clifford; corner-point contrasts). So the weights that change nothing are the null space of a small sparse matrix with one
row an interaction, and no joint table is needed. Weights that own an interaction are peeled off first; the rest falls into
parts, whose rank and null space come from singular values.
Cost: the entries of the tables times two to the power of their variables; cubic in the weights of a part that is left.
"""

from dataclasses import dataclass, field
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.potentials.log_linear import Feature
from markovia.learning.fields.field_layout import FieldLayout, layout_of_features
from markovia.runtime.array_types import Array
from markovia.runtime.shown import InNotebooks

MOST = 4000
"""Weights of a connected part up to which singular values are taken."""


@dataclass(frozen=True)
class Identifiability(InNotebooks):
    """How many of the weights are free, and which directions change no probability.

    Attributes
    ----------
    n_weights, rank
        All weights, and the dimension of the family of distributions: free parameters.
    directions
        One row a direction that changes no probability; orthonormal.
    names
        The names of the weights.
    """

    n_weights: int
    rank: int
    directions: Array = field(repr=False)
    names: tuple[str, ...] = field(repr=False)

    @property
    def identifiable(self) -> bool:
        """Whether different weights are different distributions."""
        return self.rank == self.n_weights

    def direction(self, k: int, tolerance: float = 1e-9) -> dict[str, float]:
        """Return a direction by the names of its weights, entries of zero left out."""
        row = self.directions[k]
        return {self.names[i]: float(row[i]) for i in np.flatnonzero(np.abs(row) > tolerance)}

    def unsettled(self, tolerance: float = 1e-9) -> list[str]:
        """Return the names of the weights that some direction moves; the others are identified one by one."""
        moved = np.abs(self.directions).max(axis=0, initial=0.0) > tolerance
        return [self.names[i] for i in np.flatnonzero(moved)]

    def __str__(self) -> str:
        if self.identifiable:
            which = f"all {self.n_weights} weights are" if self.n_weights != 1 else "the one weight is"
            return f"{which} identified: different weights are different distributions"
        lost = self.n_weights - self.rank
        return (
            f"{self.n_weights} weights, {self.rank} free: {lost} direction{'s' if lost > 1 else ''} of the weights "
            f"change{'' if lost > 1 else 's'} no probability (a potential may be scaled, or an amount moved to another); "
            "a penalty makes the weights unique"
        )


def identifiability(features: list[Feature]) -> Identifiability:
    """Say which directions of the weights of features change no probability.

    Parameters
    ----------
    features
        The features of a log-linear model, tied or free.

    Examples
    --------
    >>> from markovia.factors.potentials.log_linear import general_pairwise_features, ising_features
    >>> from markovia.factors.tables.variable import Variable
    >>> ends = [Variable("x1", 2), Variable("x2", 2)]
    >>> found = identifiability(general_pairwise_features(ends, [("x1", "x2")]))
    >>> found.n_weights, found.rank
    (8, 3)
    >>> identifiability(ising_features(ends, [("x1", "x2")])).rank
    3
    >>> print(identifiability([Feature(ends, [[1.0, 0.0], [0.0, 1.0]], "same")]))
    the one weight is identified: different weights are different distributions
    """
    return identifiability_of(layout_of_features(list(features)))


def identifiability_of(layout: FieldLayout) -> Identifiability:
    """Say which directions of the weights of a layout change no probability (its zeros left aside)."""
    matrix = (_interactions(layout) @ layout.design).tocsr()
    matrix.data[np.abs(matrix.data) < 1e-12] = 0.0
    matrix.eliminate_zeros()
    alive = np.ones(layout.n_weights, dtype=bool)
    rank = 0
    while True:  # a row with one weight left settles that weight
        left = np.flatnonzero(alive)
        part = matrix[:, left]
        alone = np.flatnonzero(np.diff(part.indptr) == 1)
        if not len(alone):
            break
        settled = np.unique(part.indices[part.indptr[alone]])
        rank += len(settled)
        alive[left[settled]] = False
    directions = []
    for columns in _parts(part):
        block = part[:, columns]
        rows = np.flatnonzero(np.diff(block.indptr))
        if len(columns) > MOST:
            raise InvalidArgument(
                f"{len(columns):,} weights depend on each other in one part; at most {MOST:,} are looked at"
            )
        dense = block[rows].toarray()
        _, singular, right = np.linalg.svd(dense, full_matrices=True)
        least = max(dense.shape) * np.finfo(float).eps * (singular[0] if len(singular) else 1.0)
        own = int((singular > least).sum())
        rank += own
        for row in right[own:]:
            direction = np.zeros(layout.n_weights)
            direction[left[columns]] = row
            directions.append(direction)
    found = np.array(directions).reshape(-1, layout.n_weights)
    return Identifiability(layout.n_weights, rank, found, tuple(layout.names))


def most_free(layout: FieldLayout) -> int:
    """Return a bound on the number of free parameters: the interactions inside the tables; exact for free tables."""
    free: list[int] = (layout.arrays.cards - 1).tolist()
    weighed = np.diff(layout.design.indptr[layout.arrays.starts]) > 0
    weighed[layout.arrays.scope] = True
    inside: dict[tuple[int, ...], int] = {}
    for scope in layout.scopes:
        for size in range(2, len(scope) + 1):
            for some in combinations(sorted(scope), size):
                inside[some] = prod([free[i] for i in some])
    return min(layout.n_weights, sum(inside.values()) + int((layout.arrays.cards - 1)[weighed].sum()))


def _interactions(layout: FieldLayout) -> Any:
    """Return the sparse matrix that takes cells to interactions, the constant left out."""
    from scipy.sparse import coo_matrix

    rows: list[Any] = []
    columns: list[Any] = []
    values: list[Array] = []
    n = layout.n_single
    number: dict[tuple[int, ...], int] = {}
    height = n
    first = np.repeat(layout.arrays.starts[:-1], layout.arrays.cards)
    inner = np.flatnonzero(np.arange(n) != first)
    rows += [inner, inner]
    columns += [inner, first[inner]]
    values += [np.ones(len(inner)), -np.ones(len(inner))]
    contrast: dict[tuple[int, ...], Any] = {}
    for f, scope in enumerate(layout.scopes):
        shape = tuple(layout.arrays.cards[list(scope)].tolist())
        if shape not in contrast:
            contrast[shape] = _contrast(shape)
        state, cell, value = contrast[shape]
        where = np.full(int(np.prod(shape)), -1, dtype=np.int64)
        places = np.arange(len(where)).reshape(shape)
        for size in range(1, len(scope) + 1):
            for axes in combinations(range(len(scope)), size):
                at = places[tuple(slice(1, None) if a in axes else 0 for a in range(len(scope)))]
                if size == 1:
                    i = scope[axes[0]]
                    where[at.ravel()] = layout.arrays.starts[i] + np.arange(1, shape[axes[0]])
                    continue
                order = sorted(range(size), key=lambda a: scope[axes[a]])
                key = tuple(scope[axes[a]] for a in order)
                if key not in number:
                    number[key] = height
                    height += at.size
                where[at.transpose(order).ravel()] = number[key] + np.arange(at.size)
        kept = where[state] >= 0
        rows.append(where[state[kept]])
        columns.append(n + layout.arrays.table_ptr[f] + cell[kept])
        values.append(value[kept])
    whole = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return coo_matrix(whole, shape=(height, layout.n_cells)).tocsr()


def _contrast(shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Return the non-zero entries of the contrasts of a table against its first states: row, cell, value."""
    whole: Array = np.ones((1, 1))
    for k in shape:
        one = np.eye(k)
        one[1:, 0] -= 1.0
        whole = np.asarray(np.kron(whole, one), dtype=np.float64)
    state, cell = np.nonzero(whole)
    return state, cell, whole[state, cell]


def _parts(matrix: Any) -> list[Any]:
    """Return the columns of each connected part of a sparse matrix; a column of zeros is a part of its own."""
    from scipy.sparse import bmat
    from scipy.sparse.csgraph import connected_components

    n, m = matrix.shape
    if not m:
        return []
    pattern = matrix != 0
    _, label = connected_components(bmat([[None, pattern], [pattern.T, None]]), directed=False)
    own = label[n : n + m]
    order = np.argsort(own, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(own[order])) + 1)
