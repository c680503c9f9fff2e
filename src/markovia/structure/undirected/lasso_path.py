"""The lasso: linear regression with an L1 penalty, for one penalty or a path of them.

Minimises `||y - b0 - X b||^2 / (2 rows) + alpha ||b||_1` (Tibshirani 1996; the scale of scikit-learn).
Method: coordinate descent on the Gram matrix over the columns in use, each penalty started from the one before (Friedman,
Hastie and Tibshirani 2010). Cost: rows times columns squared for the Gram matrix once, then columns times columns in use a
sweep. `lasso_conditions` checks when the support is found (Wainwright 2009).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from markovia.data.tables.moments import moments_of
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_level

TOLERANCE = 1e-9
MAX_SWEEPS = 100_000


@dataclass(frozen=True, eq=False)
class LassoPath:
    """Coefficients along a path of penalties.

    Attributes
    ----------
    alphas
        The penalties, decreasing.
    coefficients
        One row a penalty.
    intercepts, losses
        One number a penalty; the loss is the mean squared residual.
    """

    alphas: Array
    coefficients: Array
    intercepts: Array
    losses: Array


class LassoConditions(NamedTuple):
    """What the lasso needs to find the right columns.

    Attributes
    ----------
    smallest_eigenvalue
        Of the covariance of the relevant columns: the dependency condition asks that it is not near 0.
    incoherence
        `max_j ||C_jS C_SS^-1||_1` over irrelevant columns j: the incoherence condition asks that it is below 1.
    """

    smallest_eigenvalue: float
    incoherence: float

    @property
    def hold(self) -> bool:
        """Whether both hold."""
        return self.smallest_eigenvalue > 0.0 and self.incoherence < 1.0


def lasso_path(
    x: ArrayLike,
    y: ArrayLike,
    alphas: ArrayLike | None = None,
    *,
    n_alphas: int = 50,
    smallest: float = 1e-3,
    weights: ArrayLike | None = None,
) -> LassoPath:
    """Fit the lasso for a path of penalties.

    Parameters
    ----------
    x, y
        The columns, one row a data row, and the response. They are centred, not scaled.
    alphas
        Penalties; by default `n_alphas` of them, from the least that leaves all coefficients zero down to `smallest` times
        it.
    weights
        One number a row.

    Examples
    --------
    With orthonormal columns (times the root of the rows) each coefficient is the least-squares one, moved towards 0 by
    alpha:

    >>> x = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    >>> lasso_path(x, 3 * x[:, 0] - 0.4 * x[:, 1], [0.5]).coefficients.round(6).tolist()
    [[2.5, 0.0]]
    """
    from markovia.kernels.structure import graphical_lasso as kernel

    columns, response = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if columns.ndim != 2 or response.shape != (len(columns),) or not len(columns):
        raise InvalidArgument(
            f"x is a matrix and y has one number a row of it; they have shapes {columns.shape} and {response.shape}"
        )
    if not (np.isfinite(columns).all() and np.isfinite(response).all()):
        raise InvalidArgument("x and y have cells that are missing or infinite")
    share = np.ones(len(columns)) if weights is None else np.asarray(weights, dtype=np.float64)
    if share.shape != (len(columns),) or (share < 0).any() or not share.sum() > 0:
        raise InvalidArgument("weights= has one number a row, none negative")
    known = moments_of(np.column_stack([columns, response]), share)
    gram, p = known.covariance, columns.shape[1]
    if alphas is None:
        levels = penalty_path(float(np.abs(gram[:p, p]).max(initial=0.0)), n_alphas, smallest)
    else:
        levels = np.sort(np.atleast_1d(np.asarray(alphas, dtype=np.float64)))[::-1].copy()
        if not len(levels) or not np.isfinite(levels).all() or levels[-1] < 0:
            raise InvalidArgument("alphas are finite and not negative")
    factor = np.ones(p + 1)
    coefs, losses = np.zeros((len(levels), p + 1)), np.zeros(len(levels))
    scale = float(np.sqrt(gram[p, p])) or 1.0
    kernel.lasso_path(gram, p, factor, levels, TOLERANCE * scale, MAX_SWEEPS, p, coefs, losses)
    means = share @ np.column_stack([columns, response]) / share.sum()
    found = coefs[:, :p]
    return LassoPath(levels, found, means[p] - found @ means[:p], losses)


def penalty_path(largest: float, n: int, smallest: float) -> Array:
    """Return penalties from the largest down to a share of it, evenly spaced in their logarithms."""
    if not isinstance(n, int | np.integer) or n < 1:
        raise InvalidArgument(f"the number of penalties is a whole number, 1 or more, not {n!r}")
    check_level("smallest", smallest)
    top = max(largest, np.finfo(np.float64).tiny)
    if n == 1:
        return np.array([top])
    return np.asarray(np.geomspace(top, top * smallest, n))


def lasso_conditions(covariance: ArrayLike, support: ArrayLike) -> LassoConditions:
    """Check the conditions under which the lasso finds the relevant columns.

    Parameters
    ----------
    covariance
        Of the columns (true or estimated).
    support
        The numbers of the relevant columns.

    Examples
    --------
    The third column is the sum of the two relevant ones, with a little noise, and so stands in for them:

    >>> c = np.array([[1.0, 0.0, 0.9], [0.0, 1.0, 0.9], [0.9, 0.9, 1.8]])
    >>> found = lasso_conditions(c, [0, 1])
    >>> round(found.incoherence, 6), found.hold
    (1.8, False)
    """
    matrix = np.asarray(covariance, dtype=np.float64)
    inside = np.asarray(support, dtype=np.int64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidArgument(f"a covariance is a square matrix, not of shape {matrix.shape}")
    if inside.ndim != 1 or not len(inside) or inside.min() < 0 or inside.max() >= len(matrix):
        raise InvalidArgument(f"support= has numbers of columns, 0 to {len(matrix) - 1}")
    outside = np.setdiff1d(np.arange(len(matrix)), inside)
    block = matrix[np.ix_(inside, inside)]
    least = float(np.linalg.eigvalsh(block)[0])
    if least <= 1e-12 * float(np.trace(block)):
        return LassoConditions(least, np.inf)
    shares = np.linalg.solve(block, matrix[np.ix_(inside, outside)])
    return LassoConditions(least, float(np.abs(shares).sum(axis=0).max(initial=0.0)))
