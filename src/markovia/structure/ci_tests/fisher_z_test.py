"""Fisher's z test: partial correlations of continuous data.

Method: the partial correlation r of x and y given S comes from the correlation matrix; z = sqrt(n - |S| - 3) artanh(r)
is standard normal under independence (Fisher, *The distribution of the partial correlation coefficient*, 1924). It asks
for jointly Gaussian data, or nearly so: it sees only linear dependence.

Where x or y is an exact linear function of the given set nothing of it is left to depend on, and with |S| + 3 rows or
fewer the data say nothing: the p-value is 1. Weights of rows are read as how many rows each stands for.
Cost: one pass over the data for the correlation matrix, then |S|^3 for each test, many at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from markovia.data.tables.reading_mixed import MixedTable
from markovia.data.tables.unit_scaling import check_spread, unit_scaled
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array
from markovia.structure.ci_tests.ci_tests import CITest, Measured, Query

EXACT = 1e-10
"""A share of the variance below which nothing is left."""


@dataclass(frozen=True)
class FisherZ:
    """Fisher's z test of partial correlations, for continuous data.

    Parameters
    ----------
    alpha
        Independence is accepted where the p-value is larger.

    Examples
    --------
    >>> import numpy as np
    >>> import markovia as mk
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=500)
    >>> b = a + rng.normal(size=500)
    >>> c = b + rng.normal(size=500)
    >>> found = mk.learn_structure({"a": a, "b": b, "c": c}, method="pc", test=mk.ci_tests.FisherZ(alpha=0.01))
    >>> found.graph
    MixedGraph(['a --- b', 'b --- c'])
    """

    alpha: float = 0.05

    def bind(self, data: MixedTable) -> CITest:
        """Return the test for these data."""
        matrix = data.numbers("Fisher's z test")
        if np.isnan(matrix).any():
            raise InvalidArgument("Fisher's z test needs complete rows; missing='drop' leaves the others out")
        return FisherZTest(data.names, self.alpha, *correlations(matrix, data.weights, data.names))


def correlations(matrix: Array, weights: Array | None, names: Sequence[str]) -> tuple[Array, float]:
    """Return the correlation matrix and the number of rows that it counts as."""
    rows = float(len(matrix)) if weights is None else float(weights.sum())
    if rows < 2:
        raise InvalidArgument("correlations need two rows at least")
    share = np.full(len(matrix), 1.0 / rows) if weights is None else weights / rows
    matrix = unit_scaled(matrix)
    centred = matrix - share @ matrix
    covariance = centred.T @ (centred * share[:, None])
    scale = np.sqrt(np.diag(covariance))
    check_spread(matrix, scale, names)
    found = covariance / np.outer(scale, scale)
    np.fill_diagonal(found, 1.0)
    return found, rows


class FisherZTest(CITest):
    """Fisher's z test bound to a correlation matrix."""

    name = "fisher-z"
    batch = 128

    def __init__(self, names: Sequence[str], alpha: float, correlation: Array, rows: float) -> None:
        super().__init__(names, alpha)
        self.correlation = correlation
        self.rows = rows

    def _compute(self, queries: Sequence[Query]) -> Array:
        return self._measure(queries).p_value

    def _measure(self, queries: Sequence[Query]) -> Measured:
        from scipy.special import ndtr

        partial = partial_correlations(self.correlation, queries)
        spare = self.rows - np.array([len(q[2]) for q in queries]) - 3.0
        close = np.clip(partial, -1 + 1e-16, 1 - 1e-16)
        z = np.sqrt(np.maximum(spare, 0.0)) * np.arctanh(close)
        return Measured(2.0 * ndtr(-np.abs(z)), z, np.full(len(queries), np.nan))


def partial_correlations(correlation: Array, queries: Sequence[Query]) -> Array:
    """Return the partial correlation of each query; 0 where x or y is an exact linear function of the given set."""
    found = np.empty(len(queries))
    sizes = np.array([len(q[2]) for q in queries])
    for size in np.unique(sizes):
        places = np.flatnonzero(sizes == size).tolist()
        pairs = np.array([queries[k][:2] for k in places])
        if size == 0:
            found[places] = correlation[pairs[:, 0], pairs[:, 1]]
            continue
        given = np.array([queries[k][2] for k in places])
        inner = correlation[given[:, :, None], given[:, None, :]]
        cross = correlation[given[:, :, None], pairs[:, None, :]]
        own = correlation[pairs[:, :, None], pairs[:, None, :]]
        left = own - cross.transpose(0, 2, 1) @ _solved(inner, cross)
        scale = np.sqrt(np.maximum(left[:, 0, 0], 0.0) * np.maximum(left[:, 1, 1], 0.0))
        none = (left[:, 0, 0] < EXACT) | (left[:, 1, 1] < EXACT)
        found[places] = np.where(none, 0.0, left[:, 0, 1] / np.where(none, 1.0, scale))
    return found


def _solved(inner: Array, cross: Array) -> Array:
    """Solve many systems; where the given variables determine each other, by least squares."""
    try:
        found = np.linalg.solve(inner, cross)
        if np.abs(found).max(initial=0.0) < 1e6:
            return np.asarray(found, dtype=np.float64)
    except np.linalg.LinAlgError:
        pass
    return np.asarray(np.linalg.pinv(inner, rcond=1e-10, hermitian=True) @ cross)
