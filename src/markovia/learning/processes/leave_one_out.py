"""Leave-one-out errors in closed form, which `maximise_evidence` climbs: of kernel ridge, and of kernel smoothers.

Ridge: with G = (K + penalty)^-1 and a = G y, the error at row i of a fit without it is a_i / G_ii (Wahba 1990). Smoothers:
row i has weight zero at itself. The objective is -n/2 times the log of the mean squared error, so that units change nothing;
its derivatives are weights that the covariance pulls back. Cost of a value: n^3 for ridge, n^2 (d + 1)^2 for smoothers.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from markovia.factors.covariances.covariance import Covariance, Pull
from markovia.inference.gaussian.function_values import FunctionPosterior
from markovia.learning.processes.evidence_method import Gradient
from markovia.learning.processes.exact_evidence import ExactEvidence
from markovia.runtime.array_types import Array, Ints

BLOCK = 2**21
"""Differences between rows that are held at once."""
LEAST = 1e-290
"""The weight below which a row has none: what is left of the digits of the others."""
FLAT = 1e-12
"""The local deviation of a column, in units of its whole one, below which it has no slope."""


class RidgeLeaveOneOut:
    """The leave-one-out error of kernel ridge regression; the penalty is the variance of a `White` that is added."""

    name: ClassVar[str] = "leave-one-out"
    exact: ClassVar[bool] = True

    def __init__(self, X: Array, y: Array) -> None:
        self.X, self.Y = X, y.reshape(len(X), -1)

    def solved(self, covariance: Covariance) -> tuple[Array, Array, Array, Pull]:
        """Return dual coefficients, errors at rows left out, the inverse matrix, and what pulls weights back."""
        from scipy.linalg import lapack

        K, pull = covariance.forward(self.X)
        factor, failed = lapack.dpotrf(K, lower=1)
        if failed:
            raise np.linalg.LinAlgError("not positive definite")
        G = np.tril(lapack.dpotri(factor, lower=1)[0])
        G = G + np.tril(G, -1).T
        a = G @ self.Y
        return a, a / np.diag(G)[:, None], G, pull

    def errors(self, covariance: Covariance) -> Array:
        """Return what rows are missed by when they are left out."""
        return self.solved(covariance)[1]

    def evidence(self, covariance: Covariance) -> tuple[float, Gradient]:
        """Return -n/2 log(mean squared error), and its gradient."""
        a, r, G, pull = self.solved(covariance)
        g = np.diag(G)[:, None]
        # dr = -(G dK a) / g + a diag(G dK G) / g^2
        W = 2.0 * (G * (r * r / g).sum(axis=1)) @ G - 2.0 * (G @ (r / g)) @ a.T
        return self._log_error(r, W, pull)

    def _log_error(self, error: Array, W: Array, pull: Pull) -> tuple[float, Gradient]:
        total = float((error * error).sum()) + 1e-28 * (float((self.Y * self.Y).sum()) or 1.0)
        half = -0.5 * error.size
        return half * float(np.log(total / error.size)), {key: half / total * v for key, v in pull(W).items()}

    def posterior(self, covariance: Covariance) -> FunctionPosterior:
        """Return the process whose mean the ridge regression is."""
        return ExactEvidence(self.X, self.Y[:, 0]).posterior(covariance)


class SmootherLeaveOneOut(RidgeLeaveOneOut):
    """The leave-one-out error of weighted averages, or with `lines` of weighted lines."""

    def __init__(self, X: Array, y: Array, lines: bool) -> None:
        super().__init__(X, y)
        self.lines = lines

    def errors(self, covariance: Covariance) -> Array:
        """Return what rows are missed by when they are left out."""
        return self._fitted(covariance, covariance.value(self.X))[0]

    def evidence(self, covariance: Covariance) -> tuple[float, Gradient]:
        """Return -n/2 log(mean squared error), and its gradient."""
        K, pull = covariance.forward(self.X)
        error, by_weight = self._fitted(covariance, K)
        return self._log_error(error, 2.0 * error * (by_weight - np.diag(np.diag(by_weight))), pull)

    def _fitted(self, covariance: Covariance, K: Array) -> tuple[Array, Array]:
        """Return errors, and the derivatives of predictions by weights."""
        found, by_weight = local_fits(
            K - np.diag(np.diag(K)), self.X, self.X, self.Y[:, 0], self.lines,
            lambda i: nearest(covariance, self.X[i], self.X, i),
        )  # fmt: skip
        return (found - self.Y[:, 0])[:, None], by_weight


def nearest(covariance: Covariance, at: Array, X: Array, left_out: Ints | None = None) -> Array:
    """Return ones for the rows of X that weigh most at each place once lengths are wide enough, and zeros for others."""
    found, todo = np.zeros((len(at), len(X))), np.arange(len(at))
    for _ in range(14):
        lengths = {name: 30.0 * h.value for name, h in covariance.hypers().items() if h.name == "length"}
        covariance = covariance.with_values(lengths, keep=True)
        found[todo] = covariance.value(at[todo], X)
        if left_out is not None:
            found[todo, left_out[todo]] = -1.0
        todo = todo[found[todo].max(axis=1) < LEAST]
        if not len(todo):
            break
    return np.asarray(found >= (1.0 - 1e-9) * found.max(axis=1, keepdims=True), dtype=np.float64)


def local_fits(
    W: Array, at: Array, X: Array, y: Array, lines: bool, instead: Callable[[Ints], Array]
) -> tuple[Array, Array]:
    """Return averages of targets, or heights of lines, with weights W (places by rows), and derivatives by weights.

    Where all weights vanish those of `instead` count, asked for places by number; slopes that rows leave open are 0.
    """
    unit = np.where(np.ptp(X, axis=0) > 0.0, X.std(axis=0), 1.0)
    found, by_weight = np.empty(len(at)), np.empty(W.shape)
    for block in np.array_split(np.arange(len(at)), min(len(at), 1 + W.size * X.shape[1] // BLOCK)):
        w, Z = W[block], (X - at[block, None]) / unit
        top = w.max(axis=1, keepdims=True)
        lost = top < LEAST
        if lost.any():
            w, top = w.copy(), np.where(lost, 1.0, top)
            w[lost[:, 0]] = instead(block[lost[:, 0]])
        w = w / top
        total = w.sum(axis=1, keepdims=True)
        height, lever = w @ y / total[:, 0], np.ones_like(w)
        error = y - height[:, None]
        if lines:
            centre = (w[:, None] @ Z)[:, 0] / total
            V = Z - centre[:, None]
            weighted = (V * w[:, :, None]).swapaxes(1, 2)
            moments = weighted @ V / total[:, :, None]
            own = np.sqrt(np.einsum("cii->ci", moments))
            own = np.where(own > FLAT, own, np.inf)
            own = own[:, :, None] * own[:, None]
            inverse = np.linalg.pinv(moments / own, rcond=FLAT, hermitian=True) / own
            slope = inverse @ (weighted @ error[:, :, None]) / total[:, :, None]
            height = height - (centre[:, None] @ slope)[:, 0, 0]
            error = error - (V @ slope)[:, :, 0]
            lever = 1.0 - (V @ (inverse @ centre[:, :, None]))[:, :, 0]
        found[block], by_weight[block] = height, np.where(lost, 0.0, lever * error / total / top)
    return found, by_weight
