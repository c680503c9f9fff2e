"""Small Gaussian systems, many at once: orthogonal triangularisation of the equations.

Method: divide every equation by its noise's deviation, append the constants, and take the triangular factor of all of it
(QR). Its corner is a root of the posterior precision, its last column gives the mean, and its last entry the residual that
the evidence leaves. Nothing is squared, so variances of very different size do no harm (Bierman 1977).
Cost: `rows * n^2` a system; the systems of all configurations of discrete parents go through LAPACK in one call.
"""

from typing import NamedTuple

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.runtime.array_types import Array

LOG_2PI = float(np.log(2 * np.pi))


class Solutions(NamedTuple):
    """One solution a system: mean, log mass, triangular root of the precision."""

    mean: Array
    log_mass: Array
    root: Array


def solve_dense(matrix: Array, constant: Array, variance: Array) -> Solutions:
    """Solve systems `matrix[d] x = constant[d] + e`, e ~ N(0, variance[d]), all variances positive."""
    count, rows, n = matrix.shape
    scale = 1.0 / np.sqrt(variance)
    whole = np.zeros((count, max(rows, n + 1), n + 1))
    whole[:, :rows, :n] = matrix * scale[..., None]
    whole[:, :rows, n] = constant * scale
    triangle: Array = np.linalg.qr(whole, mode="r")  # type: ignore[assignment]
    root, inside, residual = triangle[:, :n, :n], triangle[:, :n, n:], triangle[:, n, n]
    size = np.abs(np.diagonal(root, axis1=1, axis2=2))
    if size.size and not size.min() > 0.0:
        raise UnsupportedModel("some variable has no distribution: its precision is zero")
    mean: Array = np.linalg.solve(root, inside)[..., 0].astype(np.float64) if n else np.zeros((count, 0))
    log_mass = -0.5 * ((rows - n) * LOG_2PI + np.log(variance).sum(axis=1) + residual**2) - np.log(size).sum(
        axis=1
    )
    return Solutions(mean, log_mass, root)
