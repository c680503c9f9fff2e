"""The posterior of a function where a solver takes the place of a factor: grids, conjugate gradients, factors in blocks.

With A = K + noise the mean at x is k(x) A^-1 y and the variance k(x, x) - k(x) A^-1 k(x)': a mean costs one row of
covariances, a variance one solution besides, whatever that costs. Inputs are gone through in blocks.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from collections.abc import Callable
from typing import Any

import numpy as np

from markovia.factors.covariances.covariance import Covariance
from markovia.inference.gaussian.function_values import FunctionMoments, FunctionPosterior, as_rows
from markovia.inference.result import Info
from markovia.learning.processes.feature_expansions import prior_draws
from markovia.runtime.array_types import Array
from markovia.runtime.seeds import Seed, generator

CELLS = 2**22
"""Covariances between inputs and rows that are held at once."""
LEAST = 16
"""Inputs whose covariances are solved for together at least."""


class SolvedFunction(FunctionPosterior):
    """A function given noisy values of it at rows, by something that solves with their covariance matrix.

    Parameters
    ----------
    X, y
        Rows and targets.
    covariance, noise
        That of the function, and the variance of the noise.
    solve
        From columns to their solutions.
    info
        How it was obtained.
    alpha
        The solution for the targets, where it is known.
    """

    def __init__(
        self, X: Array, y: Array, covariance: Covariance, noise: float, solve: Callable[[Array], Array], info: Info,
        alpha: Array | None = None,
    ) -> None:  # fmt: skip
        self.X, self.y, self.covariance, self.noise, self.info = X, y, covariance, noise, info
        self._solve = solve
        self.alpha = solve(y[:, None])[:, 0] if alpha is None else alpha

    def moments(self, X: Array, *, joint: bool = False) -> FunctionMoments:
        """Return the mean and variances, or the covariance matrix, at the rows of X."""
        if joint:
            K = self.covariance.value(self.X, X)
            return FunctionMoments(
                (self.alpha @ K)[None], (self.covariance.value(X, X) - K.T @ self._solve(K))[None]
            )
        means, variances = np.empty(len(X)), np.array(self.covariance.diagonal(X), dtype=np.float64)
        for here in self._blocks(len(X)):
            K = self.covariance.value(self.X, X[here])
            means[here] = self.alpha @ K
            variances[here] -= np.einsum("ij,ij->j", K, self._solve(K))
        return FunctionMoments(means[None], np.maximum(variances, 0.0)[None])

    def weighted(self, X: Array, V: Array) -> Array:
        """Return the sums of covariances between inputs and rows, weighted by columns: inputs by columns."""
        found = [self.covariance.value(X[here], self.X) @ V for here in self._blocks(len(X))]
        return np.concatenate([np.zeros((0, V.shape[1])), *found])

    def means(self, X: Any) -> Array:
        """Return the means at inputs, without variances."""
        return self.weighted(as_rows(X), self.alpha[:, None])[:, 0]

    def mean_function(self) -> Callable[[Any], Array]:
        """Return the mean as a function of inputs; no variances are solved for."""
        return self.means

    def draws(self, n: int, seed: Seed = None) -> Callable[[Any], Array]:
        """Return n functions: drawn from the prior by random features, and moved to the data (Matheron's rule)."""
        rng = generator(seed)
        prior = prior_draws(self.covariance, n, rng)
        missed = self.y - prior(self.X) - np.sqrt(self.noise) * rng.standard_normal((n, len(self.y)))
        moved = self._solve(missed.T)

        def function(X: Any) -> Array:
            rows = as_rows(X)
            return np.asarray(prior(rows) + self.weighted(rows, moved).T)

        return function

    def _blocks(self, n: int) -> list[slice]:
        step = max(LEAST, CELLS // len(self.y))
        return [slice(low, low + step) for low in range(0, n, step)]
