"""What watches the topics of a document, a number or a class: draws of coefficients given the shares of topics.

A number is normal around `shares @ coef`, with a normal-inverse-gamma prior, so that coefficients and variance are
drawn in one go. A class is softmax in `shares @ coef.T` with a normal prior; its coefficients move along an ellipse
around Newton's approximation and the slice under the true posterior (Murray, Adams and MacKay 2010; Nishihara, Murray
and Adams 2014), which leaves the posterior as it is. Cost: documents x (classes x topics)^2.

Reference: Blei and McAuliffe (2007), "Supervised topic models".
"""

from dataclasses import dataclass
from math import inf, lgamma, log, pi

import numpy as np

from markovia.runtime.array_types import Array


@dataclass(frozen=True)
class NumberResponse:
    """A number for each document, NaN where it is not known.

    `scale` is the prior deviation of coefficients in units of the noise. The variance has an inverse gamma
    prior of this `shape` and `rate`.
    """

    value: Array
    scale: float = 10.0
    shape: float = 1.0
    rate: float = 0.1

    def redraw(self, shares: Array, coef: Array | None, rng: np.random.Generator) -> tuple[Array, float]:
        """Draw coefficients, (1, topics), and the variance."""
        known = np.isfinite(self.value) & (shares.sum(axis=1) > 0.0)
        x, y = shares[known], self.value[known]
        precision = x.T @ x + np.eye(x.shape[1]) / self.scale**2
        mean = np.linalg.solve(precision, x.T @ y)
        rate = self.rate + 0.5 * float(y @ y - mean @ precision @ mean)
        variance = rate / rng.gamma(self.shape + 0.5 * len(y))
        noise = np.linalg.solve(np.linalg.cholesky(precision).T, rng.standard_normal(len(mean)))
        return (mean + np.sqrt(variance) * noise)[None], float(variance)

    def log_prob(self, shares: Array, coef: Array, variance: float) -> float:
        """Return log p of responses, coefficients and variance."""
        known = np.isfinite(self.value) & (shares.sum(axis=1) > 0.0)
        off = self.value[known] - shares[known] @ coef[0]
        square = float(off @ off) + float(coef[0] @ coef[0]) / self.scale**2
        found = -0.5 * square / variance - 0.5 * (len(off) + coef.size) * log(2.0 * pi * variance)
        found += self.shape * log(self.rate) - lgamma(self.shape) - self.rate / variance
        return found - coef.size * log(self.scale) - (self.shape + 1.0) * log(variance)


@dataclass(frozen=True)
class ClassResponse:
    """A class for each document, -1 where it is not known; `scale` is the prior deviation of coefficients."""

    value: Array
    n_classes: int
    scale: float = 10.0

    def redraw(self, shares: Array, coef: Array | None, rng: np.random.Generator) -> tuple[Array, float]:
        """Draw coefficients, (classes, topics), from where they are; the variance is 1 and means nothing."""
        known = (self.value >= 0.0) & (shares.sum(axis=1) > 0.0)
        x, y = shares[known], self.value[known].astype(np.int64)
        mode, root = self._approximation(x, y)
        size = (self.n_classes, shares.shape[1])
        if coef is None:
            coef = mode.reshape(size)

        def beyond(b: Array) -> float:  # the posterior over its approximation
            whitened = root.T @ (b - mode)
            return self._log_posterior(x, y, b.reshape(size)) + 0.5 * float(whitened @ whitened)

        here = coef.ravel() - mode
        aside = np.linalg.solve(root.T, rng.standard_normal(mode.size))
        level = beyond(coef.ravel()) + log(rng.random() or 1e-300)
        angle = rng.uniform(0.0, 2.0 * pi)
        low, high = angle - 2.0 * pi, angle
        while True:
            found = mode + here * np.cos(angle) + aside * np.sin(angle)
            if beyond(found) > level:
                return found.reshape(size), 1.0
            low, high = (angle, high) if angle < 0.0 else (low, angle)
            angle = rng.uniform(low, high)

    def log_prob(self, shares: Array, coef: Array, variance: float) -> float:
        """Return log p of responses and coefficients, up to a constant."""
        known = (self.value >= 0.0) & (shares.sum(axis=1) > 0.0)
        return self._log_posterior(shares[known], self.value[known].astype(np.int64), coef)

    def _log_posterior(self, x: Array, y: Array, coef: Array) -> float:
        scores = x @ coef.T
        seen = scores[np.arange(len(y)), y] - np.logaddexp.reduce(scores, axis=1)
        return float(seen.sum()) - 0.5 * float((coef**2).sum()) / self.scale**2

    def _approximation(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Return the mode and a root of the precision there, by Newton's steps from zero, halved where they overshoot."""
        c, k = self.n_classes, x.shape[1]
        coef, here = np.zeros((c, k)), -inf
        seen = np.eye(c)[y]
        for _ in range(50):
            scores = x @ coef.T
            p = np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
            gradient = (seen - p).T @ x - coef / self.scale**2
            curve = np.einsum("dc,de->dce", -p, p)
            curve[:, np.arange(c), np.arange(c)] += p
            precision = np.einsum("dce,dk,dl->ckel", curve, x, x, optimize=True).reshape(c * k, c * k)
            precision[np.diag_indices(c * k)] += 1.0 / self.scale**2
            now = self._log_posterior(x, y, coef)
            if now - here < 1e-6:
                break
            here = now
            step = np.linalg.solve(precision, gradient.ravel()).reshape(c, k)
            while self._log_posterior(x, y, coef + step) < here and np.abs(step).max() > 1e-10:
                step *= 0.5
            coef = coef + step
        return coef.ravel(), np.linalg.cholesky(precision)
