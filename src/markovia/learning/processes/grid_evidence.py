"""Exact log evidence of rows that lie on a grid: Kronecker products of axes, and Toeplitz matrices of equal steps.

- `KroneckerEvidence`: rows are all cells of a grid, in any order, and the covariance is a product over columns (RBF, or
  covariances of one column each, multiplied; Saatci 2011). Cost: the cube of each axis, and rows times the sum of axes.
- `ToeplitzEvidence`: one input in equal steps and a stationary covariance (Durbin's recursion, and Fourier transforms).
  Cost:
  the square of rows in time, rows in memory.

Both are exact; a variance at a new input costs a solution, rows times little. Rows off a grid are for interpolation
(`interpolated_evidence.py`).
"""

# ruff: noqa: N803, N806 (letters of the literature)

from typing import Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.covariances.covariance import Covariance
from markovia.inference.gaussian.structured_operators import Kronecker, Toeplitz
from markovia.inference.result import Info
from markovia.learning.processes.evidence_method import (
    Gradient,
    density,
    function_and_noise,
    rows_and_targets,
    with_noise,
)
from markovia.learning.processes.methods import has_even_steps, is_grid
from markovia.learning.processes.solved_function import SolvedFunction
from markovia.runtime.array_types import Array


class KroneckerEvidence:
    """A process at all cells of a grid, whose covariance is a product over columns.

    Parameters
    ----------
    X, y
        Rows of inputs, each combination of the numbers of the columns once, and targets without their mean.

    Examples
    --------
    >>> import markovia as mk
    >>> X = np.array([[a, b] for a in range(30) for b in range(40)], dtype=float)
    >>> method = KroneckerEvidence(X, np.sin(X[:, 0]) * np.cos(X[:, 1]))
    >>> value, _ = method.evidence(mk.covariances.RBF([1.5, 1.5]) + mk.covariances.White(0.01))
    >>> round(value, 3)
    304.298
    """

    name: ClassVar[str] = "kronecker"
    exact: ClassVar[bool] = True

    def __init__(self, X: Any, y: Any) -> None:
        self.X, self.y = rows_and_targets(X, y)
        found = [np.unique(column, return_inverse=True) for column in self.X.T]
        self.axes = [axis[:, None] for axis, _ in found]
        shape = tuple(map(len, self.axes))
        if not is_grid(self.X):
            raise InvalidArgument(
                f"kronecker is for rows that are the cells of a grid, each once; columns have {' x '.join(map(str, shape))} "
                f"numbers, and there are {len(self.y)} rows; method='kiss' takes any rows of few columns"
            )
        order = np.argsort(np.ravel_multi_index([where.ravel() for _, where in found], shape))
        self.X, self.y = self.X[order], self.y[order]

    def evidence(self, covariance: Covariance) -> tuple[float, Gradient]:
        """Return the log evidence and its gradient by the free numbers of the covariance."""
        rest, noise, variance = function_and_noise(covariance, self.name)
        found = [part.forward(axis) for part, axis in zip(self._factors(rest), self.axes, strict=True)]
        A = Kronecker([K for K, _ in found], 1.0, variance)
        alpha = A.solve(self.y[:, None])
        value = density(self.y, alpha[:, 0], A.logdet)
        if not covariance.free():
            return value, {}
        by_factors, _, by_noise = A.weights(alpha)
        slopes: Gradient = {}
        for (_, pull), W in zip(found, by_factors, strict=True):
            for key, slope in pull(W).items():
                slopes[key] = slopes.get(key, 0.0) + slope
        return value, with_noise(slopes, noise, by_noise)

    def posterior(self, covariance: Covariance) -> SolvedFunction:
        """Return the posterior of the function without the noise."""
        rest, _, variance = function_and_noise(covariance, self.name)
        factors = [part.value(axis) for part, axis in zip(self._factors(rest), self.axes, strict=True)]
        return _solved(self, rest, variance, Kronecker(factors, 1.0, variance))

    def _factors(self, rest: Covariance) -> list[Any]:
        factors = rest.factors_over_columns(len(self.axes))
        if factors is None:
            raise InvalidArgument(
                f"{rest!r} is no product over the columns; RBF is one, and so are covariances of one column each, "
                "multiplied; method='kiss' takes any stationary covariance"
            )
        return factors


class ToeplitzEvidence:
    """A process at one input in equal steps, with a stationary covariance.

    Parameters
    ----------
    X, y
        Rows of one input, in any order, in equal steps; targets without their mean.

    Examples
    --------
    >>> import markovia as mk
    >>> method = ToeplitzEvidence([[0.0], [0.5], [1.0]], [1.0, 0.2, -0.7])
    >>> k = mk.covariances.Periodic(1.0, 2.0) + mk.covariances.White(0.1)
    >>> post = method.posterior(k).at([0.25])
    >>> round(method.evidence(k)[0], 4), post.mean().round(4).tolist()
    (-3.5552, [0.6692])
    """

    name: ClassVar[str] = "toeplitz"
    exact: ClassVar[bool] = True

    def __init__(self, X: Any, y: Any) -> None:
        self.X, self.y = rows_and_targets(X, y)
        order = np.argsort(self.X[:, 0], kind="stable")
        self.X, self.y = self.X[order], self.y[order]
        if self.X.shape[1] != 1 or (len(self.y) > 1 and not has_even_steps(self.X)):
            raise InvalidArgument(
                "toeplitz is for one input in equal steps, each once; method='state-space' takes any steps with a Markov "
                "covariance, and method='kiss' with any stationary one"
            )

    def evidence(self, covariance: Covariance) -> tuple[float, Gradient]:
        """Return the log evidence and its gradient by the free numbers of the covariance."""
        rest, noise, variance = self._read(covariance)
        column, pull = rest.forward(self.X, self.X[:1])
        A = self._matrix(column, variance)
        alpha = A.solve(self.y[:, None])
        value = density(self.y, alpha[:, 0], A.logdet)
        if not covariance.free():
            return value, {}
        weights = A.weights(alpha)
        return value, with_noise(pull(weights[:, None]), noise, float(weights[0]))

    def posterior(self, covariance: Covariance) -> SolvedFunction:
        """Return the posterior of the function without the noise."""
        rest, _, variance = self._read(covariance)
        return _solved(self, rest, variance, self._matrix(rest.value(self.X, self.X[:1]), variance))

    def _read(self, covariance: Covariance) -> Any:
        found = function_and_noise(covariance, self.name)
        if not found[0].stationary:
            raise InvalidArgument(
                f"toeplitz is for stationary covariances, and {found[0]!r} is none; method='exact' takes any"
            )
        return found

    def _matrix(self, column: Array, variance: float) -> Toeplitz:
        first = np.array(column[:, 0])
        first[0] += variance
        return Toeplitz(first)


def _solved(method: Any, rest: Covariance, variance: float, A: Kronecker | Toeplitz) -> SolvedFunction:
    alpha = A.solve(method.y[:, None])
    info = Info(method.name, exact=True, log_evidence=density(method.y, alpha[:, 0], A.logdet))
    return SolvedFunction(method.X, method.y, rest, variance, A.solve, info, alpha[:, 0])
