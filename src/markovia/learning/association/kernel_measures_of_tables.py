"""Kernel measures of distributions that are known as tables, without data.

With a kernel matrix for the states of each variable, the Hilbert-Schmidt independence criterion of a joint table
`P` with marginals `p` and `q` is `sum (K D L) * D` for `D = P - p q'`; it is zero exactly for independence when the
kernels are characteristic, as the default is (one for equal states, zero otherwise). The squared maximum mean
discrepancy of two distributions over the same states is `(p - q)' K (p - q)`. Reference: Gretton et al. (2005,
2012). Cost: cubic in the states.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markovia.errors import InvalidArgument


def hsic_of_table(
    table: ArrayLike, x_kernel: ArrayLike | None = None, y_kernel: ArrayLike | None = None
) -> float:
    """Return the Hilbert-Schmidt independence criterion of a joint table.

    Parameters
    ----------
    table
        A matrix of weights, rows the states of x, columns those of y; it is normalised.
    x_kernel, y_kernel
        Kernel matrices over the states; the identity by default.

    Examples
    --------
    >>> round(hsic_of_table([[0.5, 0.0], [0.0, 0.5]]), 6), round(abs(hsic_of_table([[0.08, 0.32], [0.12, 0.48]])), 6)
    (0.25, 0.0)
    """
    p = _weights(table, 2)
    gap = p - np.outer(p.sum(axis=1), p.sum(axis=0))
    return float((_kernel(x_kernel, p.shape[0]) @ gap @ _kernel(y_kernel, p.shape[1]) * gap).sum())


def mmd_of_tables(p: ArrayLike, q: ArrayLike, kernel: ArrayLike | None = None) -> float:
    """Return the maximum mean discrepancy of two distributions over the same states.

    Examples
    --------
    >>> round(mmd_of_tables([1, 0], [0, 1]) ** 2, 6)
    2.0
    """
    a, b = _weights(p, 1), _weights(q, 1)
    if a.shape != b.shape:
        raise InvalidArgument("the discrepancy needs two distributions over the same states")
    gap = a - b
    return math.sqrt(max(0.0, float(gap @ _kernel(kernel, len(gap)) @ gap)))


def _weights(table: ArrayLike, axes: int) -> NDArray[np.float64]:
    p = np.asarray(table, dtype=np.float64)
    if p.ndim != axes or not np.all(p >= 0) or not np.isfinite(p).all() or p.sum() <= 0:
        raise InvalidArgument(f"expected an array with {axes} axes of weights that are not negative")
    return np.asarray(p / p.sum(), dtype=np.float64)


def _kernel(kernel: ArrayLike | None, size: int) -> NDArray[np.float64]:
    if kernel is None:
        return np.eye(size)
    matrix = np.asarray(kernel, dtype=np.float64)
    if matrix.shape != (size, size) or not np.allclose(matrix, matrix.T):
        raise InvalidArgument(f"a kernel over {size} states is a symmetric {size} x {size} matrix")
    return matrix
