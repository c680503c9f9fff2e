"""The penalised likelihoods that generalised linear models minimise, with gradients, curvatures and Newton directions.

`GlmObjective` is one linear predictor with any response family and link, `SoftmaxObjective` several classes. Gradient and
curvature are those of McCullagh & Nelder (1989); probabilities are kept as logarithms, so nothing is lost where they round
to 0 or 1. Cost: n p for a value or gradient, n p^2 for a curvature (times K^2 / 2 for softmax).
"""

from typing import Any, Protocol

import numpy as np

from markovia.learning.regression.families import Link, Response
from markovia.runtime.array_types import Array


class RegressionObjective(Protocol):
    """A smooth convex (or locally convex) function with curvature; `newton` minimises it."""

    def value(self, b: Array) -> float:
        """Return the objective; infinite outside its domain."""

    def gradient(self, b: Array) -> Array:
        """Return its gradient."""

    def hessian(self, b: Array, observed: bool = False) -> Array:
        """Return its expected or observed curvature."""

    def step(self, b: Array, observed: bool = False) -> Array:
        """Return the Newton direction."""


class GlmObjective:
    """Half the deviance of a GLM plus half the squared penalised coefficients.

    Parameters
    ----------
    x, y, weights, offset
        Rows of numbers, responses, weights and what is added to the linear predictor.
    response, link
        See `glm_families`.
    l2
        The L2 penalty of each coefficient.
    """

    def __init__(
        self, x: Array, y: Array, weights: Array, offset: Array, response: Response, link: Link, l2: Array
    ) -> None:
        self.x, self.y, self.weights, self.offset = x, y, weights, offset
        self.response, self.link, self.l2 = response, link, l2
        self._tails = link.tails if response.name in ("bernoulli", "binomial") else None
        self._saturated = self._entropy() if response.name == "binomial" else 0.0
        self._canonical = link.name == response.canonical and link.name != "inverse"
        self._last: tuple[Array, Array] | None = None

    def _predictor(self, b: Array) -> Array:
        """Return X b + offset, kept for the next call with the same array."""
        if self._last is None or self._last[0] is not b:
            self._last = (b, self.x @ b + self.offset)
        return self._last[1]

    def _entropy(self) -> float:
        from scipy.special import xlogy

        return float(self.weights @ (xlogy(self.y, self.y) + xlogy(1.0 - self.y, 1.0 - self.y)))

    def value(self, b: Array) -> float:
        """Return half the penalised deviance."""
        penalty = 0.5 * float(self.l2 @ b**2)
        eta = self._predictor(b)
        if not np.isfinite(eta).all():
            return np.inf
        if self._tails is not None:
            up, down, _ = self._tails(eta)
            return self._saturated - float(self.weights @ (down + self.y * (up - down))) + penalty
        if self.link.valid is not None and not self.link.valid(eta).all():
            return np.inf
        mu = self.link.inverse(eta)
        if not self.response.allowed(mu):
            return np.inf
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            half = 0.5 * float(self.weights @ self.response.unit_deviance(self.y, mu))
        return np.inf if np.isnan(half) else half + penalty

    def score(self, eta: Array, rows: Any = slice(None)) -> Array:
        """Return the derivative of the log likelihood by the linear predictor, for all or some rows."""
        y, weights = self.y[rows], self.weights[rows]
        mu = self.link.inverse(eta)
        if self._canonical:
            return np.asarray(weights * (y - mu))
        if self._tails is not None:
            up, down, slope = self._tails(eta)
            with np.errstate(over="ignore"):
                wins, losses = np.exp(slope - up), np.exp(slope - down)
            return np.asarray(weights * (y * wins - (1.0 - y) * losses))
        return np.asarray(weights * (y - mu) * self.link.slope(eta) / self.response.variance(mu))

    def row_score(self, b: Array, rows: Any) -> Array:
        """Return the gradient of the log likelihood of some rows."""
        x = self.x[rows]
        return np.asarray(x.T @ self.score(x @ b + self.offset[rows], rows))

    def curvature(self, eta: Array, observed: bool = False) -> Array:
        """Return the weights W of the least-squares problem: expected, or minus the second derivative."""
        if self._canonical:
            return np.asarray(self.weights * self.response.variance(self.link.inverse(eta)))
        if self._tails is not None:
            up, down, slope = self._tails(eta)
            expected = np.exp(2.0 * slope - up - down)
        else:
            mu = self.link.inverse(eta)
            expected = self.link.slope(eta) ** 2 / self.response.variance(mu)
        if observed and self.link.name != self.response.canonical:
            mu = self.link.inverse(eta)
            variance, slope_ = self.response.variance(mu), self.link.slope(eta)
            bent = self.link.bend(eta) * variance - slope_**2 * self.response.variance_slope(mu)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                observed_ = expected - (self.y - mu) * bent / variance**2
            expected = np.where(np.isfinite(observed_), observed_, expected)
        return np.asarray(self.weights * expected)

    def gradient(self, b: Array) -> Array:
        """Return -X's + P b; with the canonical link -X'(y - mu) + P b."""
        return np.asarray(-self.x.T @ self.score(self._predictor(b)) + self.l2 * b)

    def hessian(self, b: Array, observed: bool = False) -> Array:
        """Return X'WX + P."""
        w = self.curvature(self._predictor(b), observed)
        return _gram(self.x, w) + np.diag(self.l2)

    def step(self, b: Array, observed: bool = False) -> Array:
        """Return the direction (X'WX + P)^-1 (X's - P b)."""
        eta = self._predictor(b)
        s, w = self.score(eta), self.curvature(eta, observed)
        if np.any(w < 0):  # the observed curvature of another link need not be positive
            w = self.curvature(eta)
        gradient = self.x.T @ s - self.l2 * b
        found = _cholesky_solve(_gram(self.x, w) + np.diag(self.l2), gradient)
        if found is not None:
            return found
        root = np.sqrt(w)
        with np.errstate(divide="ignore", invalid="ignore"):
            target = np.where(root > 0, s / root, 0.0)
        rows = np.vstack([self.x * root[:, None], np.diag(np.sqrt(self.l2))])
        return _least_squares(rows, np.append(target, -np.sqrt(self.l2) * b))

    def start(self) -> Array:
        """Return the least-squares fit to the linked data, or a constant where that is not allowed."""
        with np.errstate(all="ignore"):
            eta = self.link.of(self.response.start(self.y))
            w = self.curvature(eta)
            mu = self.link.inverse(eta)
            z = eta - self.offset + (self.y - mu) / self.link.slope(eta)
        candidates = []
        ok = np.isfinite(z) & np.isfinite(w) & (w >= 0)
        if ok.any():
            root = np.sqrt(np.where(ok, w, 0.0))
            gram = _gram(self.x, root**2) + np.diag(self.l2)
            found = _cholesky_solve(gram, self.x.T @ (root**2 * np.where(ok, z, 0.0)))
            if found is None:
                rows = np.vstack([self.x * root[:, None], np.diag(np.sqrt(self.l2))])
                target = np.append(root * np.where(ok, z, 0.0), np.zeros(self.l2.size))
                found = _least_squares(rows, target)
            candidates.append(found)
        if candidates and np.isfinite(self.value(candidates[0])):
            return candidates[0]
        return self.level(np.ones(self.l2.size, dtype=bool))

    def level(self, columns: Any) -> Array:
        """Return a point near the average response that uses some columns only, or zero if that is not allowed."""
        average = float(self.weights @ self.y) / max(float(self.weights.sum()), 1e-300)
        b = np.zeros(self.l2.size)
        with np.errstate(all="ignore"):
            height = self.link.of(np.array([average]))
            if not np.isfinite(height).all():
                height = self.link.of(self.response.start(np.array([average])))
        if np.any(columns) and np.isfinite(height).all():
            b[columns] = _least_squares(self.x[:, columns], float(height[0]) - self.offset)
        return b if np.isfinite(self.value(b)) else np.zeros(self.l2.size)


class SoftmaxObjective:
    """The cross entropy of counts of K outcomes a row plus half the squared penalised coefficients.

    The parameters are a flat array of shape (free classes, columns); without `symmetric` the first class is the reference.
    """

    def __init__(self, x: Array, counts: Array, offset: Array, l2: Array, symmetric: bool) -> None:
        self.x, self.counts, self.offset, self.l2, self.symmetric = x, counts, offset, l2, symmetric
        self.totals = counts.sum(axis=1)
        self._last: tuple[Array, Array] | None = None
        self.first = 0 if symmetric else 1
        self.free = counts.shape[1] - self.first

    def full(self, b: Array) -> Array:
        """Return the coefficients of all classes, shape (K, columns)."""
        own = b.reshape(self.free, -1)
        return own if self.symmetric else np.vstack([np.zeros((1, own.shape[1])), own])

    def log_probabilities(self, b: Array, rows: Any = slice(None)) -> Array:
        """Return log P(class | row)."""
        whole = isinstance(rows, slice) and rows == slice(None)
        if whole and self._last is not None and self._last[0] is b:
            return self._last[1]
        scores = self.x[rows] @ self.full(b).T + self.offset[rows]
        top = scores.max(axis=1, keepdims=True)
        scores -= top
        scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
        if whole:
            self._last = (b, scores)
        return np.asarray(scores)

    def value(self, b: Array) -> float:
        """Return the penalised cross entropy."""
        if not np.isfinite(b).all():
            return np.inf
        logs = self.log_probabilities(b)
        own = b.reshape(self.free, -1)
        return -float((self.counts * logs).sum()) + 0.5 * float((own**2 @ self.l2).sum())

    def row_score(self, b: Array, rows: Any) -> Array:
        """Return the gradient of the log likelihood of some rows."""
        p = np.exp(self.log_probabilities(b, rows))
        residual = (self.counts[rows] - self.totals[rows, None] * p)[:, self.first :]
        return np.asarray(residual.T @ self.x[rows]).ravel()

    def gradient(self, b: Array) -> Array:
        """Return -X'(counts - totals p) + P b of the free classes."""
        return np.asarray((b.reshape(self.free, -1) * self.l2).ravel() - self.row_score(b, slice(None)))

    def hessian(self, b: Array, observed: bool = False) -> Array:
        """Return the curvature, blocks X' diag(totals (p_a [a = b] - p_a p_b)) X."""
        p = np.exp(self.log_probabilities(b))[:, self.first :]
        n, d = self.free, self.x.shape[1]
        found = np.zeros((n, d, n, d))
        for a in range(n):
            for c in range(a + 1, n):
                found[a, :, c, :] = found[c, :, a, :] = -_gram(self.x, self.totals * p[:, a] * p[:, c])
        for a in range(n):  # the blocks of a class add up to nothing where all classes have coefficients
            others = -found[a].sum(axis=1) if self.symmetric else None
            own = _gram(self.x, self.totals * p[:, a] * (1.0 - p[:, a])) if others is None else others
            found[a, :, a, :] = own + np.diag(self.l2)
        return found.reshape(n * d, n * d)

    def step(self, b: Array, observed: bool = False) -> Array:
        """Return the Newton direction; a shift of all classes alike, which changes nothing, is left out."""
        h = self.hessian(b)
        if self.symmetric:
            size = max(float(np.diag(h).mean()), 1e-300)
            d = self.x.shape[1]
            shift = np.kron(np.ones((self.free, self.free)), np.diag((self.l2 == 0).astype(np.float64)))
            h = h + size / (self.free * d) * shift
        gradient = -self.gradient(b)
        found = _cholesky_solve(h, gradient)
        return _least_squares(h, gradient) if found is None else found


BLOCK = 2**15
"""Numbers in a stretch of rows."""


def _gram(x: Array, w: Array) -> Array:
    """Return X' diag(w) X, a stretch of rows at a time that stays in the nearest cache."""
    found = np.zeros((x.shape[1], x.shape[1]))
    rows = max(64, BLOCK // max(1, x.shape[1]))
    root = np.sqrt(w) if np.all(w >= 0) else None
    for low in range(0, len(x), rows):
        part = x[low : low + rows]
        if root is None:
            found += (part * w[low : low + rows, None]).T @ part
        else:
            half = part * root[low : low + rows, None]
            found += half.T @ half  # half the work: the library sees that it is symmetric
    return found


def _cholesky_solve(matrix: Array, right: Array) -> Array | None:
    """Solve after scaling to a unit diagonal; None where the matrix is not safely positive definite."""
    diagonal = np.diag(matrix)
    if not np.isfinite(matrix).all() or not np.all(diagonal > 0):
        return None
    scale = 1.0 / np.sqrt(diagonal)
    try:
        factor = np.linalg.cholesky(matrix * np.outer(scale, scale))
    except np.linalg.LinAlgError:
        return None
    if float(np.diag(factor).min()) < 1e-4:
        return None
    from scipy.linalg import cho_solve

    return np.asarray(scale * cho_solve((factor, True), scale * right))


def _least_squares(rows: Array, target: Array) -> Array:
    """Return the least-squares solution of least norm, columns scaled alike first."""
    size = np.sqrt((rows**2).sum(axis=0))
    size = np.where(size > 0, size, 1.0)
    return np.asarray(np.linalg.lstsq(rows / size, target, rcond=None)[0] / size)
