"""The exact posterior of a function under a Gaussian process with normal noise: moments, draws, more rows by one factor.

With K + N = L L' and alpha = (K + N)^-1 y, the mean at x is k(x) alpha and the variance k(x, x) - |L^-1 k(x)|^2 (Rasmussen
and Williams 2006, algorithm 2.1). Cost: n^3 / 3 for the factor, n^2 for each input that is asked for and each row that is
added. No jitter is added unless the factor fails; then 1e-9 of the mean variance, raised tenfold, and the answer says so.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, Unanswered
from markovia.factors.covariances.covariance import Covariance
from markovia.inference.gaussian.function_values import FunctionMoments, FunctionPosterior, as_rows, root
from markovia.inference.result import Info
from markovia.runtime.array_types import Array
from markovia.runtime.seeds import Seed, generator

JITTER, MOST_JITTER = 1e-9, 1e-3
"""The first share of the mean variance that is added where a factor fails, and where to give up."""
FEATURES = 2_000
"""Random frequencies with which functions are drawn whole."""
BLOCK = 2**22
"""Numbers of a block of covariances between inputs and rows."""


def cholesky_in_place(K: Array) -> float:
    """Put the lower Cholesky factor in place of a symmetric matrix in Fortran order; return the jitter that was needed.

    What is above the diagonal is left as it is.

    Examples
    --------
    >>> K = np.asfortranarray([[4.0, 2.0], [2.0, 5.0]])
    >>> cholesky_in_place(K), np.tril(K).tolist()
    (0.0, [[2.0, 0.0], [1.0, 2.0]])
    """
    from scipy.linalg.lapack import dpotrf

    diagonal = K.diagonal().copy()
    size, jitter = float(np.mean(diagonal)) if len(K) else 1.0, 0.0
    while True:
        _, failed = dpotrf(K, lower=1, overwrite_a=1, clean=0)
        if failed == 0 and np.isfinite(K[-1:, -1:]).all():
            return jitter
        jitter = 10.0 * jitter if jitter else JITTER * size
        if not 0.0 < size < np.inf or not jitter <= MOST_JITTER * size:
            raise np.linalg.LinAlgError("the covariance matrix is not positive definite")
        # the upper triangle still holds the matrix
        for j in range(len(K)):
            K[j:, j] = K[j, j:]
        np.fill_diagonal(K, diagonal + jitter)


class ExactFunction(FunctionPosterior):
    """A function given noisy values of it, exactly.

    Parameters
    ----------
    X, y
        Inputs and targets; of the targets the mean is taken away.
    covariance
        That of the function, its numbers known.
    noise
        The variance of the noise: a number, or one a row.
    factor, jitter
        The lower Cholesky factor of the covariance matrix of the targets in Fortran order, and what was added to its
        diagonal, where they are known.
    log_evidence
        Of the targets, where it is known.

    Examples
    --------
    >>> import markovia as mk
    >>> f = ExactFunction([[0.0], [0.5], [2.0]], [1.0, 0.2, -0.7], mk.covariances.RBF(1.0), 0.1)
    >>> f.at([1.0]).mean().round(6).tolist(), f.at([1.0]).sd().round(6).tolist()
    ([-0.216611], [0.404583])
    """

    def __init__(
        self, X: Any, y: Any, covariance: Covariance, noise: Any = 0.0, *, factor: Array | None = None, jitter: float = 0.0,
        note: str = "", log_evidence: float | None = None,
    ) -> None:  # fmt: skip
        from scipy.linalg.lapack import dpotrs

        self.X, self.y = as_rows(X), np.asarray(y, dtype=np.float64)
        self.covariance, self.noise = covariance, noise
        if factor is None:
            factor = np.array(covariance.value(self.X), dtype=np.float64, order="F")
            factor[np.diag_indices(len(factor))] += noise
            try:
                jitter = cholesky_in_place(factor)
            except np.linalg.LinAlgError:
                raise InvalidArgument(
                    f"{covariance!r} is not positive definite at these inputs, even with {MOST_JITTER:g} of its mean "
                    "variance on the diagonal: it is no covariance, or its numbers overflow"
                ) from None
        self.factor, self.jitter = factor, jitter
        self.alpha = dpotrs(factor, self.y, lower=1)[0] if len(self.X) else self.y
        if log_evidence is None:
            log_evidence = log_density(factor, self.y, self.alpha)
        said = (
            f"{jitter:.3g} was added to variances: inputs are too close for so little noise" if jitter else ""
        )
        self.info = Info(
            "exact", exact=True, note="; ".join(filter(None, [note, said])), log_evidence=log_evidence
        )

    def means(self, X: Array) -> Array:
        """Return the means at the rows of X, without variances."""
        rows = as_rows(X)
        step = max(1, BLOCK // max(len(self.X), 1))
        blocks = [
            self.covariance.value(rows[i : i + step], self.X) @ self.alpha for i in range(0, len(rows), step)
        ]
        return np.concatenate([np.zeros((0, *self.alpha.shape[1:])), *blocks])

    def moments(self, X: Array, *, joint: bool = False) -> FunctionMoments:
        """Return the means and variances at the rows of X; with `joint` their covariance matrix."""
        if joint:
            mean, cross = self._cross(X)
            return FunctionMoments(mean[None], (self.covariance.value(X) - cross.T @ cross)[None])
        step = max(1, BLOCK // max(len(self.X), 1))
        means, variances = (
            np.empty((len(X), *self.alpha.shape[1:])),
            np.array(self.covariance.diagonal(X), dtype=np.float64),
        )
        for i in range(0, len(X), step):
            here = slice(i, i + step)
            means[here], cross = self._cross(X[here])
            variances[here] -= np.einsum("ij,ij->j", cross, cross)
        return FunctionMoments(means[None], np.maximum(variances, 0.0)[None])

    def covariances(self, X: Array, Z: Array) -> Array:
        """Return the posterior covariances between the function at rows of X and at rows of Z."""
        return np.asarray(self.covariance.value(X, Z) - self._cross(X)[1].T @ self._cross(Z)[1])

    def _cross(self, X: Array) -> tuple[Array, Array]:
        """Return the means at inputs, and L^-1 k(rows, inputs)."""
        from scipy.linalg.lapack import dtrtrs

        if not len(self.X):
            return np.zeros((len(X), *self.alpha.shape[1:])), np.zeros((0, len(X)))
        K = self.covariance.value(X, self.X)
        mean = K @ self.alpha
        return mean, dtrtrs(self.factor, K.T, lower=1, overwrite_b=1)[0]

    def updated(self, X: Any, y: Any) -> "ExactFunction":
        """Return the posterior with more rows, by extending the factor: n^2 a row, not n^3.

        Examples
        --------
        >>> import markovia as mk
        >>> f = ExactFunction([[0.0], [0.5]], [1.0, 0.2], mk.covariances.RBF(1.0), 0.1).updated([[2.0]], [-0.7])
        >>> f.at([1.0]).mean().round(6).tolist()
        [-0.216611]
        """
        from scipy.linalg.lapack import dpotrf

        rows = as_rows(X)
        n, m = len(self.X), len(rows)
        if np.ndim(self.noise):
            raise Unanswered("noise of rows of their own is not known for more rows; fit them together")
        both = np.concatenate([self.X, rows]), np.concatenate([self.y, np.asarray(y, dtype=np.float64)])
        _, cross = self._cross(rows)
        corner = np.array(self.covariance.value(rows) - cross.T @ cross, order="F")
        corner[np.diag_indices(m)] += self.noise + self.jitter
        _, failed = dpotrf(corner, lower=1, overwrite_a=1)
        if failed:  # the new rows are too close to old ones: from the beginning, with the same jitter for all
            return ExactFunction(*both, self.covariance, self.noise)
        factor = np.zeros((n + m, n + m), order="F")
        factor[:n, :n], factor[n:, :n], factor[n:, n:] = self.factor, cross.T, np.tril(corner)
        return ExactFunction(*both, self.covariance, self.noise, factor=factor, jitter=self.jitter)

    def draws(self, n: int, seed: Seed = None) -> Callable[[Any], Array]:
        """Return n functions drawn together: called with inputs, it returns functions by inputs.

        Where the covariance has a spectrum they are drawn from the prior by random frequencies and moved to the data
        (Matheron's rule; Wilson et al. 2020), so that an input costs n rows; otherwise values are drawn exactly, each call
        given those before.
        """
        rng = generator(seed)
        try:
            frequencies = self.covariance.spectral_draws(FEATURES, self.X.shape[1], rng)
        except (Unanswered, InvalidArgument, NotImplementedError):
            return ConditionedDraws(self, n, rng)
        return PathwiseDraws(self, frequencies, n, rng)


def log_density(factor: Array, y: Array, alpha: Array) -> float:
    """Return the log density of targets (of all columns) from the factor of their covariance and alpha = (L L')^-1 y."""
    columns = y.size // len(y) if len(y) else 1
    logs = np.log(np.abs(factor.diagonal())).sum()
    return float(-0.5 * np.vdot(y, alpha) - columns * (logs + 0.5 * len(y) * np.log(2.0 * np.pi)))


class PathwiseDraws:
    """Functions drawn from the prior by random frequencies, moved to the data by what they miss them by."""

    def __init__(self, process: ExactFunction, frequencies: Any, n: int, rng: np.random.Generator) -> None:
        from scipy.linalg.lapack import dpotrs

        self.process, self.frequencies = process, frequencies
        omega, weights = np.asarray(frequencies.omega), np.asarray(frequencies.weights)
        self.omega, self.phases = omega, rng.uniform(0.0, 2.0 * np.pi, len(omega))
        self.weights = rng.standard_normal((n, len(omega))) * np.sqrt(2.0 * weights)
        sd = np.sqrt(process.noise + process.jitter)
        missed = process.y - self._prior(process.X) - sd * rng.standard_normal((n, len(process.X)))
        self.moved = dpotrs(process.factor, missed.T, lower=1)[0] if len(process.X) else missed.T

    def _prior(self, rows: Array) -> Array:
        return self.weights @ np.cos(self.omega @ rows.T + self.phases[:, None])

    def __call__(self, X: Any) -> Array:
        """Return the functions at inputs: functions by inputs."""
        rows = as_rows(X)
        return np.asarray(
            self._prior(rows) + (self.process.covariance.value(rows, self.process.X) @ self.moved).T
        )


class ConditionedDraws:
    """Values of functions drawn exactly, together with all that were asked for before."""

    def __init__(self, process: ExactFunction, n: int, rng: np.random.Generator) -> None:
        self.process, self.n, self.rng = process, n, rng
        self.places: dict[bytes, int] = {}
        self.rows, self.values, self.deviations = (
            np.zeros((0, process.X.shape[1])),
            np.zeros((n, 0)),
            np.zeros((0, n)),
        )

    def __call__(self, X: Any) -> Array:
        """Return the functions at inputs: functions by inputs."""
        rows = as_rows(X) + 0.0
        keys = [row.tobytes() for row in rows]
        fresh = {key: i for i, key in enumerate(keys) if key not in self.places}
        if fresh:
            self._draw(rows[list(fresh.values())])
            self.places.update({key: len(self.places) + j for j, key in enumerate(fresh)})
        return self.values[:, [self.places[key] for key in keys]]

    def _draw(self, rows: Array) -> None:
        mean, cov = (part[0] for part in self.process.moments(rows, joint=True))
        mean = np.broadcast_to(mean, (self.n, len(rows)))
        if len(self.rows):
            # given the values that are known: a pseudo-inverse, since places may all but determine each other
            known = self.process.moments(self.rows, joint=True)
            cross = self.process.covariances(rows, self.rows)
            gain = cross @ np.linalg.pinv(known.variances[0], rcond=1e-10, hermitian=True)
            mean = mean + (self.values - known.means[0]) @ gain.T
            cov = cov - gain @ cross.T
        drawn = mean + self.rng.standard_normal((self.n, len(rows))) @ root(cov).T
        self.rows, self.values = (
            np.concatenate([self.rows, rows]),
            np.concatenate([self.values, drawn], axis=1),
        )


class MovedFunction(FunctionPosterior):
    """A function in other units: a mean plus a scale times a function.

    Parameters
    ----------
    inner
        The function.
    scale, mean
        What it is multiplied by, and what is added: a number, or a function of rows.

    Examples
    --------
    >>> import markovia as mk
    >>> f = ExactFunction([[0.0]], [1.0], mk.covariances.RBF(1.0), 1.0)
    >>> MovedFunction(f, 10.0, 100.0).at([0.0]).mean().tolist()
    [105.0]
    """

    def __init__(
        self, inner: FunctionPosterior, scale: float, mean: float | Callable[[Array], Array] = 0.0
    ) -> None:
        self.inner, self.scale, self.mean, self.name = inner, scale, mean, inner.name
        evidence, n = inner.info.log_evidence, len(getattr(inner, "y", ()))
        self.info = (
            inner.info if evidence is None else replace(inner.info, log_evidence=evidence - n * np.log(scale))
        )

    @property
    def weights(self) -> Array:
        """Those of the function inside."""
        return self.inner.weights

    def added(self, X: Array) -> Any:
        """Return what is added at the rows of X."""
        return self.mean(X) if callable(self.mean) else self.mean

    def moments(self, X: Array, *, joint: bool = False) -> FunctionMoments:
        """Return the moments of the function inside in the other units."""
        found = self.inner.moments(X, joint=joint)
        return FunctionMoments(self.added(X) + self.scale * found.means, self.scale**2 * found.variances)

    def draws(self, n: int, seed: Seed = None) -> Callable[[Any], Array]:
        """Return n functions drawn together."""
        inner = self.inner.draws(n, seed)
        return lambda X: self.added(as_rows(X)) + self.scale * inner(X)
