"""Linear equations with Gaussian noise, which is what a linear-Gaussian network is once its evidence is put in.

Every node says `a.x = c + e` with e ~ N(0, v) of its own, x the numbers that are not known; a Gaussian field adds
`h.x - x'Kx / 2`. The logarithm of the joint density is the sum, so the posterior is a least-squares problem: its
precision is `A' V^-1 A + K`.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from markovia.runtime.array_types import Array, Ints


class Solution(Protocol):
    """A Gaussian posterior over the numbers of a system, by position."""

    mean: Array
    log_mass: float
    """log of the integral of the joint density; minus infinity where the equations contradict each other."""

    def variances(self) -> Array:
        """Return all marginal variances."""

    def covariance(self, at: Ints) -> Array:
        """Return the covariance matrix of some of the numbers."""

    def log_peak(self) -> float:
        """Return the log density of all numbers at their mean; of the independent ones where some are determined."""

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """Return n joint draws, one a row."""


@dataclass
class System:
    """Equations `a.x = c + e` over n numbers, in compressed rows, and the quadratic part of Gaussian fields."""

    n: int
    start: Ints
    column: Ints
    coefficient: Array
    constant: Array
    variance: Array
    precision: Any = None
    """A sparse symmetric matrix, or None."""
    information: Array | None = None
    log_constant: float = 0.0
    memory: dict[Any, Any] | None = field(default=None, repr=False)
    """Where the pattern of a factor is kept for systems of the same pattern."""

    def with_rows(
        self,
        columns: Collection[Any],
        coefficients: Collection[Any],
        constants: ArrayLike,
        variances: ArrayLike,
    ) -> "System":
        """Return the system with further equations: for each its columns and coefficients, a constant and a variance."""
        ends = self.start[-1] + np.cumsum([np.size(c) for c in columns], dtype=np.int64)
        return replace(
            self,
            start=np.concatenate([self.start, ends]),
            column=np.concatenate([self.column, *map(np.asarray, columns)]),
            coefficient=np.concatenate([self.coefficient, *map(np.asarray, coefficients)]),
            constant=np.append(self.constant, constants),
            variance=np.append(self.variance, variances),
        )

    def matrix(self) -> Any:
        """Return A as a sparse matrix."""
        from scipy.sparse import csr_matrix

        return csr_matrix((self.coefficient, self.column, self.start), shape=(len(self.constant), self.n))

    def dense(self) -> Array:
        """Return A as an array."""
        rows = np.repeat(np.arange(len(self.constant)), np.diff(self.start))
        matrix = np.zeros((len(self.constant), self.n))
        np.add.at(matrix, (rows, self.column), self.coefficient)
        return matrix
