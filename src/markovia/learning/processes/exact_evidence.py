"""The exact log evidence of a Gaussian process with normal noise and its gradient, by LAPACK, without a compiler.

log N(y; 0, K) = -y' K^-1 y / 2 - log|K| / 2 - n log(2 pi) / 2, whose derivative by K is W = (alpha alpha' - K^-1) / 2 with
alpha = K^-1 y. The covariance pulls W back to its numbers (`Covariance.forward`), so the gradient costs one inverse
(2 n^3 / 3 in place, after n^3 / 3 for the factor) and passes over the matrix, however many numbers there are.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from typing import Any, ClassVar

import numpy as np

from markovia.errors import TooLarge
from markovia.factors.covariances.algebra import Constant, split_white
from markovia.factors.covariances.covariance import Covariance
from markovia.inference.gaussian.exact_function import ExactFunction, cholesky_in_place, log_density
from markovia.learning.processes.evidence_method import Gradient
from markovia.learning.processes.methods import exact_bytes
from markovia.runtime.array_types import Array
from markovia.runtime.memory_budget import default_budget, readable

TILE = 256
"""Side of the blocks in which a triangle is mirrored."""


class ExactEvidence:
    """Exact values: all pairs of rows, and a Cholesky factor.

    Parameters
    ----------
    X, y
        Rows, and targets with the mean taken away; several columns of targets are independent with the same covariance.
    errors
        Known standard deviations of the measurements of targets, one a row.
    memory
        Bytes that may be taken; by default most of what is free.

    Raises
    ------
    TooLarge
        Where all pairs of rows take more memory than there may be.

    Examples
    --------
    >>> import markovia as mk
    >>> method = ExactEvidence([[0.0], [0.5], [2.0]], [1.0, 0.2, -0.7])
    >>> value, slopes = method.evidence(mk.covariances.RBF(1.0) + mk.covariances.White(mk.Parameter(0.1)))
    >>> round(value, 10), [round(float(slope), 6) for slope in slopes.values()]
    (-3.3602643363, [-0.403378])
    """

    name: ClassVar[str] = "exact"
    exact: ClassVar[bool] = True

    def __init__(self, X: Any, y: Any, *, errors: Any = None, memory: float | None = None) -> None:
        self.X, self.y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        n = len(self.X)
        needed, budget = exact_bytes(n), default_budget() if memory is None else memory
        if needed > budget:
            raise TooLarge(
                f"an exact process of {n:,} rows takes about {readable(needed)}, and {readable(budget)} are free; take "
                "method='sgpr' (inducing points), 'state-space' for a Markov covariance of one input, or fewer rows",
                bytes=needed,
            )
        self._extra = None if errors is None else np.square(np.asarray(errors, dtype=np.float64))
        self._buffer: Array | None = None

    def evidence(self, covariance: Covariance) -> tuple[float, Gradient]:
        """Return the log evidence and its gradient by the free numbers of the covariance."""
        from scipy.linalg.blas import dsyrk
        from scipy.linalg.lapack import dpotri, dpotrs

        function, noises = split_white(covariance)
        K, pull = (function or Constant(0.0)).forward(self.X)
        A = self._filled(K, noises)
        del K
        cholesky_in_place(A)
        alpha = dpotrs(A, self.y, lower=1)[0]
        value = log_density(A, self.y, alpha)
        if not covariance.free():
            return value, {}
        # W takes the place of the factor: its lower triangle by LAPACK, the rest mirrored
        columns = alpha.reshape(len(alpha), -1)
        dpotri(A, lower=1, overwrite_c=1)
        dsyrk(0.5, columns, beta=-0.5 * columns.shape[1], c=A, lower=1, overwrite_c=1)
        mirror(A)
        slopes = pull(A.T)
        for noise in noises:
            if noise.is_free("variance"):
                slopes[id(noise), "variance"] = slopes.get((id(noise), "variance"), 0.0) + np.trace(A)
        return value, slopes

    def _filled(self, K: Array, noises: Any) -> Array:
        """Return the covariance matrix of the targets in a buffer of its own, in Fortran order."""
        if self._buffer is None:
            self._buffer = np.empty(K.shape, order="F")
        np.copyto(self._buffer.T, K)  # symmetric: rows are columns
        self._buffer[np.diag_indices(len(K))] += self._noise(noises)
        return self._buffer

    def posterior(self, covariance: Covariance) -> ExactFunction:
        """Return the posterior of the function without the noise."""
        self._buffer = None  # not held on to once fitted
        function, noises = split_white(covariance)
        return ExactFunction(self.X, self.y, function or Constant(0.0), self._noise(noises))

    def _noise(self, noises: Any) -> Any:
        """Return the variance of the noise: a number, or one a row."""
        white = sum(float(noise.number("variance")) for noise in noises)
        return white if self._extra is None else white + self._extra


def mirror(A: Array) -> None:
    """Put the lower triangle of a matrix in place of the upper one.

    Examples
    --------
    >>> A = np.array([[1.0, 9.0], [2.0, 3.0]])
    >>> mirror(A)
    >>> A.tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    for i in range(0, len(A), TILE):
        end = i + TILE
        corner = A[i:end, i:end]
        corner[...] = np.tril(corner) + np.tril(corner, -1).T
        A[i:end, end:] = A[end:, i:end].T
