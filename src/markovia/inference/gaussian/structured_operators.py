"""Covariance matrices with a structure, noise included, as operators on blocks of columns: `matvec`, `solve`, `logdet`.

`Kronecker` (a product over the axes of a full grid) and `Toeplitz` (one axis, equal spacing) are exact; `weights(U)` are
the derivatives of (sum of u' A u over U's columns - log |A|) / 2 at A held in its parts, which is what gradients of
evidence need. `LagGrid` is any stationary covariance on a regular grid of several axes, multiplied by Fourier transforms
(circulant embedding). Whatever can be multiplied with columns is solved with by `conjugate_gradients`, whose steps
Lanczos quadrature makes log determinants of (`probed_solve`; Ubaru, Chen and Saad 2017, Gardner and others 2018), behind
a `Preconditioner`.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from markovia.runtime.array_types import Array

Product = Callable[[Array], Array]
NOTHING_LEFT = 1e-8
"""A share of the noise; a preconditioner that leaves less variance anywhere needs no further columns."""


class Kronecker:
    """scale * (F_1 x ... x F_d) + noise * I on the cells of a grid, by the eigenvectors of its factors.

    Examples
    --------
    >>> K = Kronecker([np.eye(2), np.array([[1.0, 0.5], [0.5, 1.0]])], 2.0, 0.1)
    >>> round(K.logdet, 6), K.solve(np.ones((4, 1))).ravel().round(6).tolist()
    (2.453425, [0.322581, 0.322581, 0.322581, 0.322581])
    """

    def __init__(self, factors: Sequence[Array], scale: float, noise: float) -> None:
        self.factors, self.scale, self.noise = factors, scale, noise
        found = [np.linalg.eigh(factor) for factor in factors]
        self._values, self._vectors = [np.maximum(v, 0.0) for v, _ in found], [Q for _, Q in found]
        self._signal = scale * reduce(np.multiply.outer, self._values)
        self._whole = self._signal + noise
        if not self._whole.min() > 0.0:
            raise np.linalg.LinAlgError("the covariance matrix of the grid is singular; add a White")
        self.logdet = float(np.log(self._whole).sum())

    def _modes(self, V: Array, matrices: Sequence[Array | None]) -> Array:
        """Multiply each axis of cells by its matrix; cells by columns."""
        T = V.reshape(*self._whole.shape, -1)
        for j, matrix in enumerate(matrices):
            if matrix is not None:
                T = np.moveaxis(np.tensordot(matrix, T, (1, j)), 0, j)
        return T

    def matvec(self, V: Array) -> Array:
        """Return the product with columns."""
        return self.scale * self._modes(V, self.factors).reshape(V.shape) + self.noise * V

    def solve(self, V: Array) -> Array:
        """Return the solutions for columns."""
        turned = self._modes(V, [Q.T for Q in self._vectors]) / self._whole[..., None]
        return self._modes(turned, self._vectors).reshape(V.shape)

    def weights(self, U: Array) -> tuple[list[Array], float, float]:
        """Return derivatives by the factors, the scale and the noise."""
        d, found = len(self.factors), []
        T = U.reshape(*self._whole.shape, -1)
        for j in range(d):
            others = [None if i == j else factor for i, factor in enumerate(self.factors)]
            beside = reduce(
                np.multiply.outer, [np.ones_like(v) if i == j else v for i, v in enumerate(self._values)]
            )
            rest = tuple(i for i in range(d) if i != j)
            own = (beside / self._whole).sum(axis=rest)
            pairs = np.tensordot(T, self._modes(U, others), ((*rest, d), (*rest, d)))
            Q = self._vectors[j]
            found.append(0.5 * self.scale * (pairs - (Q * own) @ Q.T))
        squares = float(np.vdot(U, U))
        by_noise = 0.5 * (squares - (1.0 / self._whole).sum())
        by_signal = 0.5 * (
            np.vdot(U, self.matvec(U)) - self.noise * squares - (self._signal / self._whole).sum()
        )
        return found, float(by_signal / self.scale), float(by_noise)


class Toeplitz:
    """The symmetric Toeplitz matrix with some first column, by Durbin's recursion, whose log determinant is exact.

    The inverse is held as its first column (Gohberg and Semencul): a solution takes a few Fourier transforms. Cost: n^2,
    once.

    Examples
    --------
    >>> T = Toeplitz(np.array([2.0, 0.5, 0.1]))
    >>> round(T.logdet, 6), T.solve(np.ones((3, 1))).ravel().round(6).tolist()
    (1.950187, [0.405405, 0.297297, 0.405405])
    """

    def __init__(self, column: Array) -> None:
        self.column, n = column, len(column)
        a, error = np.zeros(n), float(column[0])
        a[0], errors = 1.0, np.empty(n)
        for k in range(n):
            if k:
                a[k] = -(a[:k] @ column[k:0:-1]) / error
                a[1:k] += a[k] * a[k - 1 : 0 : -1]
                error *= 1.0 - a[k] ** 2
            if not error > 0.0:
                raise np.linalg.LinAlgError("the covariance matrix of the series is singular; add a White")
            errors[k] = error
        self.logdet = float(np.log(errors).sum())
        self._first, self._turned = a / error, np.concatenate([[0.0], a[:0:-1]]) / error
        self._size = 2 * n

    def _spectrum(self, V: Array) -> Any:
        return np.fft.rfft(V, self._size, axis=0)

    def _back(self, F: Any) -> Array:
        return np.fft.irfft(F, self._size, axis=0)[: len(self.column)]

    def matvec(self, V: Array) -> Array:
        """Return the product with columns."""
        ring = np.concatenate([self.column, [0.0], self.column[:0:-1]])
        return self._back(np.fft.rfft(ring)[:, None] * self._spectrum(V))

    def solve(self, V: Array) -> Array:
        """Return the solutions for columns."""
        total: Any = 0.0
        for x, sign in ((self._first, 1.0), (self._turned, -1.0)):
            F = self._spectrum(x[:, None])
            total = total + sign * self._back(F * self._spectrum(self._back(F.conj() * self._spectrum(V))))
        return np.asarray(total / self._first[0])

    def weights(self, U: Array) -> Array:
        """Return derivatives by the first column."""
        falling = np.arange(len(self.column), 0.0, -1.0)
        # sums along the diagonals of U U' and of the inverse
        found = self._lags(U, U)
        for x, sign in ((self._first, -1.0), (self._turned, 1.0)):
            found = found + sign * self._lags(x[:, None], (falling * x)[:, None]) / self._first[0]
        found[0] *= 0.5
        return np.asarray(found)

    def _lags(self, U: Array, V: Array) -> Array:
        return self._back((self._spectrum(U).conj() * self._spectrum(V)).sum(axis=1))


class LagGrid:
    """Rows of a regular grid by the lags between them: products with stationary covariances, and lagged products of columns.

    Parameters
    ----------
    counts
        The number of points of each axis.
    """

    def __init__(self, counts: Sequence[int]) -> None:
        from scipy.fft import next_fast_len

        self.counts = tuple(counts)
        self.size = tuple(next_fast_len(2 * g - 1, real=True) for g in counts)
        ahead = np.meshgrid(*(np.arange(1 - g, g) for g in counts), indexing="ij")
        self.lags = np.stack([a.ravel() for a in ahead], axis=1)
        """All lags in steps of the axes, one a row."""
        self._place = tuple(self.lags[:, j] % s for j, s in enumerate(self.size))

    def _spectrum(self, V: Array) -> Any:
        axes = range(len(self.counts))
        return np.fft.rfftn(V.reshape(*self.counts, -1), self.size, axes=axes)

    def ring(self, values: Array) -> Any:
        """Return the spectrum of a covariance from its values at `lags`."""
        whole = np.zeros(self.size)
        whole[self._place] = values
        return np.fft.rfftn(whole)[..., None]

    def eigenvalues(self, values: Array) -> Array:
        """Return the eigenvalues of the ring of a covariance from its values at `lags`."""
        whole = np.zeros(self.size)
        whole[self._place] = values
        return np.asarray(np.fft.fftn(whole).real)

    def by_values(self, slopes: Array) -> Array:
        """Return derivatives by the values at `lags` from those by the eigenvalues."""
        return np.asarray(np.fft.fftn(slopes).real[self._place])

    def matvec(self, ring: Any, V: Array) -> Array:
        """Return the product of the covariance of all points of the grid with columns."""
        back = np.fft.irfftn(ring * self._spectrum(V), self.size, axes=range(len(self.counts)))
        return back[tuple(slice(g) for g in self.counts)].reshape(V.shape)

    def weights(self, U: Array, V: Array) -> Array:
        """Return the sums of U_i V_j over pairs of points by their lag, summed over columns: derivatives by the values."""
        both = (self._spectrum(U).conj() * self._spectrum(V)).sum(axis=-1)
        return np.asarray(np.fft.irfftn(both, self.size, axes=range(len(self.size)))[self._place])


class Preconditioner:
    """L L' + rest I, with a partial Cholesky factor of few columns, pivoted at the largest variance that is left.

    The rest is the noise, and the mean of the variance that the columns leave.
    """

    def __init__(self, diagonal: Array, row: Callable[[int], Array], noise: float, rank: int) -> None:
        from scipy.linalg import solve_triangular

        left, n = np.array(diagonal), len(diagonal)
        self.L = np.zeros((n, 0))
        L = np.zeros((n, min(rank, n)), order="F")
        for k in range(L.shape[1]):
            at = int(left.argmax())
            if not left[at] > max(1e-12 * diagonal[at], NOTHING_LEFT * noise):
                break
            L[:, k] = (row(at) - L[:, :k] @ L[at, :k]) / np.sqrt(left[at])
            left = np.maximum(left - L[:, k] ** 2, 0.0)
            left[at] = 0.0
            self.L = L[:, : k + 1]
        self.rest = rest = noise + float(left.mean())
        inner = np.linalg.cholesky(rest * np.eye(self.L.shape[1]) + self.L.T @ self.L)
        self.logdet = float(2.0 * np.log(np.diag(inner)).sum() + (n - self.L.shape[1]) * np.log(rest))
        self.C = solve_triangular(inner, self.L.T, lower=True).T
        """The inverse is (1 - C C') / rest (Woodbury)."""

    def solve(self, V: Array) -> Array:
        """Return the solutions for columns."""
        return np.asarray((V - self.C @ (self.C.T @ V)) / self.rest)

    def probes(self, noise: Array) -> Array:
        """Return columns with this covariance from standard normal ones: (n + rank at least, columns)."""
        n, k = self.L.shape
        return np.asarray(np.sqrt(self.rest) * noise[:n] + self.L @ noise[n : n + k])


class Solved(NamedTuple):
    """Solutions, the largest relative residual, the steps made, and Lanczos coefficients by step and column."""

    solutions: Array
    residual: float
    steps: int
    alphas: Array
    betas: Array


def conjugate_gradients(matvec: Product, B: Array, precondition: Product, tol: float, most: int) -> Solved:
    """Solve A X = B for all columns at once, to a residual below tol times that of zero.

    Examples
    --------
    >>> A = np.array([[2.0, 0.5], [0.5, 1.0]])
    >>> conjugate_gradients(lambda V: A @ V, np.ones((2, 1)), lambda V: V, 1e-10, 10).solutions.ravel().round(6).tolist()
    [0.285714, 0.857143]
    """
    X, R = np.zeros_like(B), B.copy()
    size = np.where((start := np.linalg.norm(B, axis=0)) > 0.0, start, 1.0)
    Z = precondition(R)
    P, rz = Z.copy(), np.einsum("ij,ij->j", R, Z)
    alphas, betas = [], []
    going = start > 0.0
    for _ in range(most):
        if not going.any():
            break
        AP = matvec(P)
        alpha = np.where(going, rz / np.where(going, np.einsum("ij,ij->j", P, AP), 1.0), 0.0)
        X += alpha * P
        R -= alpha * AP
        Z = precondition(R)
        before, rz = rz, np.einsum("ij,ij->j", R, Z)
        beta = np.where(going, rz / np.where(going, before, 1.0), 0.0)
        P = Z + beta * P
        alphas.append(alpha)  # zero where a column was done before
        betas.append(beta)
        going = going & (np.linalg.norm(R, axis=0) > tol * size)
    residual = float((np.linalg.norm(R, axis=0) / size).max())
    return Solved(X, residual, len(alphas), np.array(alphas), np.array(betas))


def lanczos_logs(alphas: Array, betas: Array) -> Array:
    """Return e_1' log(T) e_1 for the tridiagonal matrix T that conjugate gradients left, a number a column."""
    from scipy.linalg import eigh_tridiagonal

    found = np.zeros(alphas.shape[1])
    for j in range(alphas.shape[1]):
        a = alphas[alphas[:, j] > 0.0, j]
        b = betas[: len(a) - 1, j]
        diagonal = 1.0 / a
        diagonal[1:] += b / a[:-1]
        values, vectors = eigh_tridiagonal(diagonal, np.sqrt(b) / a[:-1])
        found[j] = vectors[0] ** 2 @ np.log(np.maximum(values, np.finfo(float).tiny))
    return found


class Probed(NamedTuple):
    """Solutions for targets and for random probes z ~ N(0, P), and what they say of the log determinant.

    Attributes
    ----------
    alpha
        The solution for the targets.
    logdet, error
        The log determinant, and the standard error of its estimate.
    left, right
        Columns whose products with D between add up to about the trace of (A^-1 - P^-1) D: nothing is random where P is A.
    residual, steps
        The largest relative residual, and the steps that were made.
    """

    alpha: Array
    logdet: float
    error: float
    left: Array
    right: Array
    residual: float
    steps: int


def probed_solve(matvec: Product, P: Preconditioner, y: Array, noise: Array, tol: float, most: int) -> Probed:
    """Solve A x = y and estimate log|A| = log|P| + the mean of z' P^-1/2 log(P^-1/2 A P^-1/2) P^-1/2 z.

    Examples
    --------
    >>> A = np.array([[2.0, 0.5], [0.5, 1.0]])
    >>> P = Preconditioner(np.array([1.5, 0.5]), lambda i: A[i] - 0.5 * np.eye(2)[i], 0.5, 1)
    >>> found = probed_solve(lambda V: A @ V, P, np.ones(2), np.sqrt(3.0) * np.eye(3), 1e-10, 10)  # all there is to probe
    >>> found.alpha.round(6).tolist(), round(found.logdet, 6), round(float(np.log(1.75)), 6)
    ([0.285714, 0.857143], 0.559616, 0.559616)
    """
    Z = P.probes(noise)
    right = P.solve(Z)
    found = conjugate_gradients(matvec, np.concatenate([y[:, None], Z], axis=1), P.solve, tol, most)
    # means over probes in units of their lengths, which are known to add up to the number of rows
    lengths, logs = np.einsum("ij,ij->j", Z, right), lanczos_logs(found.alphas[:, 1:], found.betas[:, 1:])
    share = len(y) / lengths.sum()
    mean = float(share * (lengths @ logs))
    apart = lengths * (logs - mean / len(y))
    error = float(share * apart.std() * np.sqrt(len(logs)) * np.sqrt(len(logs) / max(1, len(logs) - 1)))
    X = found.solutions
    left = share * (X[:, 1:] - right)
    return Probed(X[:, 0], P.logdet + mean, error, left, right, found.residual, found.steps)


def lanczos_root(matvec: Product, start: Array, most: int) -> Array:
    """Return columns R with R R' <= A^-1, equal on the space that products of A with a start span: (n, most at most).

    Examples
    --------
    >>> A = np.array([[2.0, 0.5], [0.5, 1.0]])
    >>> R = lanczos_root(lambda V: A @ V, np.ones(2), 5)
    >>> bool(np.allclose(R @ R.T, np.linalg.inv(A)))
    True
    """
    Q = np.zeros((len(start), min(most, len(start))))
    Q[:, 0], a, b = start / np.linalg.norm(start), [], []
    for k in range(Q.shape[1]):
        v = matvec(Q[:, k : k + 1])[:, 0]
        a.append(Q[:, k] @ v)
        for _ in range(2):  # twice is enough
            v -= Q[:, : k + 1] @ (Q[:, : k + 1].T @ v)
        size = float(np.linalg.norm(v))
        if k + 1 == Q.shape[1] or not size > 1e-12 * a[0]:
            break
        b.append(size)
        Q[:, k + 1] = v / size
    values, vectors = np.linalg.eigh(np.diag(a) + np.diag(b, 1) + np.diag(b, -1))
    return np.asarray(Q[:, : len(a)] @ (vectors / np.sqrt(values)))
