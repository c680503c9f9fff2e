"""A Gaussian field as regressions of each number on later ones: the columns of a Cholesky factor.

With K = LL', number i given those eliminated after it is Gaussian with weights `-L_ji / L_ii` and variance `1 / L_ii^2`.
The order is chosen for few fill-in entries, which become edges of the directed network.
"""

from typing import Any

import numpy as np

from markovia.factors.gaussian.gaussian_field import GaussianField
from markovia.factors.gaussian.linear_gaussian import LinearGaussian
from markovia.inference.gaussian.linear_system import System
from markovia.inference.gaussian.solving import DENSE, solve


def regressions(field: GaussianField) -> dict[str, LinearGaussian]:
    """Return the regression of every number on those after it, first eliminated first."""
    n = len(field.names)
    none = np.zeros(0)
    system = System(
        n, np.zeros(1, np.int64), none.astype(np.int64), none, none, none, field.precision, field.information
    )
    mean = solve(system).mean
    columns = _dense_columns(field) if n <= DENSE else _sparse_columns(field)
    found = {}
    for i, others, column in columns:
        weights = {
            field.names[j]: -w / column[0] for j, w in zip(others, column[1:].tolist(), strict=True) if w
        }
        bias = mean[i] - sum(
            w * mean[j] for j, w in zip(others, (-column[1:] / column[0]).tolist(), strict=True)
        )
        found[field.names[i]] = LinearGaussian(float(bias), weights, float(column[0] ** -2))
    return found


def _dense_columns(field: GaussianField) -> Any:
    matrix = field.precision.toarray()
    near = [set(np.flatnonzero(row).tolist()) - {i} for i, row in enumerate(matrix)]
    left = set(range(len(near)))
    order = []
    while left:  # fewest neighbours first
        i = min(left, key=lambda v: (len(near[v]), v))
        order.append(i)
        left.remove(i)
        for j in near[i]:
            near[j] |= near[i]
            near[j] -= {i, j}
    factor = np.linalg.cholesky(matrix[np.ix_(order, order)])
    for k, i in enumerate(order):
        below = [r for r in range(k + 1, len(order)) if abs(factor[r, k]) > 1e-14 * abs(factor[k, k])]
        yield i, [order[r] for r in below], factor[[k, *below], k]


def _sparse_columns(field: GaussianField) -> Any:
    from markovia.inference.gaussian.sparse_cholesky import Pattern, SparseSolution

    matrix = field.precision
    pattern = Pattern(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64))
    panels = SparseSolution(pattern, matrix.data, field.information).panels
    for s in range(len(pattern.above)):
        rows = pattern.rows[pattern.rows_at[s] : pattern.rows_at[s + 1]]
        for c in range(int(pattern.first[s + 1] - pattern.first[s])):
            at = int(pattern.panels_at[s]) + c * len(rows)
            column = panels[at + c : at + len(rows)]
            kept = np.concatenate([[True], np.abs(column[1:]) > 1e-14 * abs(column[0])])
            names = pattern.order[rows[c:][kept]]
            yield int(names[0]), names[1:].tolist(), column[kept]
