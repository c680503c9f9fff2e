"""Solving linear equations with Gaussian noise (`linear_system`) of any size.

Small systems are solved by orthogonal transformations of `V^-1/2 A` (least_squares), which never squares the condition
number; large ones by a sparse Cholesky factor (sparse_cholesky). Equations without noise are solved for one of their numbers
first (noiseless).
"""

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.inference.gaussian.least_squares import LOG_2PI, solve_dense
from markovia.inference.gaussian.linear_system import Solution, System
from markovia.inference.gaussian.noiseless import solve_noiseless
from markovia.runtime.array_types import Array, Ints

DENSE = 300
"""Unknown numbers up to which a system is solved by dense matrices, without waiting for compiled code."""


def solve(system: System) -> Solution:
    """Solve a system of any size."""
    if system.variance.size and system.variance.min() == 0.0:
        return solve_noiseless(system, solve)
    if system.n > DENSE:
        from markovia.inference.gaussian.sparse_cholesky import solve_sparse

        return solve_sparse(system)
    matrix, constant, variance, log_constant = (
        system.dense(),
        system.constant,
        system.variance,
        system.log_constant,
    )
    if system.precision is not None and system.n:
        root, offset = _field_rows(system)
        matrix = np.concatenate([matrix, root])
        constant = np.concatenate([constant, offset])
        variance = np.concatenate([variance, np.ones(system.n)])
        # the rows of a field come without the constants of a density
        log_constant += 0.5 * float(offset @ offset) + 0.5 * system.n * LOG_2PI
    found = solve_dense(matrix[None], constant[None], variance[None])
    return OneOfMany(found.mean[0], float(found.log_mass[0]) + log_constant, found.root[0])


def _field_rows(system: System) -> tuple[Array, Array]:
    """Return a field as equations with unit noise."""
    assert system.information is not None
    try:
        root: Array = np.linalg.cholesky(np.asarray(system.precision.todense()))
    except np.linalg.LinAlgError:
        raise UnsupportedModel(
            "the precision matrix is not positive definite, so there is no such Gaussian; make its diagonal larger"
        ) from None
    return root.T, np.asarray(np.linalg.solve(root, system.information), np.float64)


class OneOfMany:
    """The solution of a small system: its mean and a triangular root R of its precision R'R."""

    def __init__(self, mean: Array, log_mass: float, root: Array) -> None:
        self.mean, self.log_mass, self.root = mean, log_mass, root

    def variances(self) -> Array:
        """Return all marginal variances."""
        inverse = np.linalg.inv(self.root) if len(self.root) else self.root
        return np.asarray((inverse**2).sum(axis=1))

    def covariance(self, at: Ints) -> Array:
        """Return the covariance matrix of some of the numbers."""
        half = np.linalg.solve(self.root.T, np.eye(len(self.root))[:, at])
        return np.asarray(half.T @ half)

    def log_peak(self) -> float:
        """Return the log density at the mean."""
        return float(np.log(np.abs(np.diag(self.root))).sum()) - 0.5 * len(self.root) * LOG_2PI

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Return n joint draws, one a row."""
        noise = rng.standard_normal((len(self.root), n))
        return np.asarray(self.mean + np.linalg.solve(self.root, noise).T)
