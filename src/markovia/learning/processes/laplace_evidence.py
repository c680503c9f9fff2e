"""Laplace's approximation: the posterior of the function is normal around its mode, with the curvature there.

Method: Newton steps with backtracking in alpha, f = K alpha, so that K is never inverted (Williams and Barber 1998;
Rasmussen and Williams 2006, chapters 3 and 5). The gradient follows the mode: it moves with the hyper-parameters, and the
curvature with it. Heavy tails (Vanhatalo, Jylanki and Vehtari 2009): where Newton's matrix is not positive definite, steps
are those of EM. Cost: one Cholesky factor a step, one inverse a gradient; with C classes C + 1 of each.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from typing import Any, ClassVar

import numpy as np

from markovia.learning.processes.gaussian_sites import GaussianSites, SiteEvidence, SiteFit
from markovia.learning.processes.likelihoods import Likelihood, SoftmaxClasses
from markovia.runtime.array_types import Array


class LaplaceEvidence(SiteEvidence):
    """The log evidence by Laplace's approximation, for every likelihood of one function and for classes with one each.

    Examples
    --------
    >>> import markovia as mk
    >>> from markovia.learning.processes.likelihoods import BernoulliLogit
    >>> method = LaplaceEvidence([[0.0], [0.5], [2.0]], [1.0, 0.0, 1.0])
    >>> round(method.evidence(mk.covariances.RBF(1.0) + BernoulliLogit())[0], 6)
    -2.304423
    """

    name: ClassVar[str] = "laplace"

    def fit_sites(self, Ks: list[Array], likelihood: Any) -> SiteFit:
        """Find the mode of the function, and the curvature there."""
        if isinstance(likelihood, SoftmaxClasses):
            return self._softmax(Ks[0], likelihood.classes)
        K, y = Ks[0], self.y

        def step(f: Array, sites: Any) -> tuple[Array, Array, Any]:
            _, d1, d2, _ = likelihood.derivatives(y, f)
            sites = _sites(K, -d2, likelihood, y, f) if sites is None else sites
            b = sites.W * f + d1
            return b - sites.solve(K @ b), d1, sites

        alpha, f, value, converged, steps = self._ascend(
            np.zeros(len(y)), lambda f: likelihood.derivatives(y, f)[0].sum(), lambda a: K @ a, step
        )
        _, _, d2, d3 = likelihood.derivatives(y, f)
        sites = _sites(K, -d2, likelihood, y, f)
        # the mode moves with hyper-parameters, and the curvature with it
        moved = 0.5 * sites.variances * d3
        u = moved - sites.solve(K @ moved)
        by_K = _products(0.5 * alpha + u, alpha)
        by_K -= 0.5 * sites.R
        by_hypers = {
            name: (h0 + np.multiply(0.5 * sites.variances, h2.T).T + np.multiply(K @ u, h1.T).T).sum(axis=0)
            for name, (h0, h1, h2) in likelihood.by_hypers(y, f).items()
        }
        value -= 0.5 * sites.log_det
        return SiteFit(value, alpha[None], {(0, 0): sites.R}, (by_K,), by_hypers, converged, steps)

    def _ascend(
        self, zero: Array, log_density: Any, function: Any, step: Any
    ) -> tuple[Array, Array, float, bool, int]:
        """Return alpha and f at the mode, the log density with that of the prior there, and how the search ended."""

        def value(alpha: Array, f: Array) -> float:
            return float(log_density(f) - 0.5 * np.vdot(alpha, f))

        alpha, f = zero, zero
        here = value(alpha, f)
        if self._last is not None:  # the mode of the last hyper-parameters
            there = function(self._last)
            if (other := value(self._last, there)) > here:
                alpha, f, here = self._last, there, other
        steps, left, before, factor = 0, np.inf, np.inf, None
        while steps < self.max_iter and left > self.tol:
            steps += 1
            goal, d1, factor = step(f, factor)
            move = goal - alpha
            by_f = function(move)
            gain, length = float(np.vdot(by_f, d1 - alpha)), 1.0
            least = here - 1e-12 * (1.0 + abs(here))  # the last step is one, whatever rounding says
            while True:
                new = value(alpha + length * move, f + length * by_f)
                if new >= least + 1e-4 * length * gain:
                    break
                length *= 0.5
                if length < 1e-12:
                    raise np.linalg.LinAlgError("no step goes up")
            alpha, f, here = alpha + length * move, f + length * by_f, new
            # the curvature of an earlier step will do for as long as a step leaves less than a tenth to gain
            fall, before = gain / before if before < np.inf else 1.0, gain
            left, factor = gain * min(fall, 1.0), factor if fall < 0.1 or steps == 1 else None
        self._last = alpha
        return alpha, f, here, left <= max(self.tol, 1e-8 * (1.0 + abs(here))), steps

    def _softmax(self, K: Array, classes: int) -> SiteFit:
        """Find the mode of several functions; W = diag(p) - p p' a row couples them, and needs one more matrix."""
        from scipy.linalg import cho_solve, solve_triangular
        from scipy.special import logsumexp, softmax

        n, y = len(self.y), self.y.astype(int)
        hot = (np.arange(classes)[:, None] == y).astype(float)

        def coupled(f: Array) -> tuple[Array, list[GaussianSites], Array]:
            p = np.maximum(softmax(f, axis=0), 1e-300)
            each = [GaussianSites(K, row) for row in p]
            return p, each, np.asarray(np.linalg.cholesky(sum(site.R for site in each)))

        def step(f: Array, found: Any) -> tuple[Array, Array, Any]:
            p, each, L = found = coupled(f) if found is None else found
            d1 = hot - softmax(f, axis=0)
            b = d1 + p * (f - (p * f).sum(axis=0))
            c = np.stack([site.solve(K @ row) for site, row in zip(each, b, strict=True)])
            shared = cho_solve((L, True), c.sum(axis=0))
            return b - c + np.stack([site.R @ shared for site in each]), d1, found

        alpha, f, value, converged, steps = self._ascend(
            np.zeros((classes, n)),
            lambda f: f[y, np.arange(n)].sum() - logsumexp(f, axis=0).sum(),
            lambda a: a @ K,
            step,
        )
        p, each, L = coupled(f)
        half = [solve_triangular(L, site.R, lower=True) for site in each]
        blocks = {
            (i, j): (i == j) * each[i].R - half[i].T @ half[j] for i in range(classes) for j in range(classes)
        }
        # covariances of the functions of each row, and how the curvature moves with each of them
        V = np.empty((n, classes, classes))
        by_half = [h @ K for h in half]
        for i in range(classes):
            for j in range(classes):
                V[:, i, j] = np.einsum("ij,ij->j", by_half[i], by_half[j])
            V[:, i, i] += each[i].variances
        q = np.einsum("ncc->cn", V) - 2.0 * np.einsum("ncd,dn->cn", V, p)
        moved = -0.5 * p * (q - (q * p).sum(axis=0))
        by_move = moved @ K
        u = moved - np.stack([sum(blocks[i, j] @ by_move[j] for j in range(classes)) for i in range(classes)])
        by_K = _products(0.5 * alpha + u, alpha) - 0.5 * sum(blocks[i, i] for i in range(classes))
        value -= 0.5 * sum(site.log_det for site in each) + float(np.log(np.diag(L)).sum())
        return SiteFit(value, alpha, blocks, (by_K,), {}, converged, steps)


def _sites(K: Array, W: Array, likelihood: Likelihood, y: Array, f: Array) -> GaussianSites:
    """Return the factors of a curvature, or of one that is not negative where that has no maximum."""
    if likelihood.concave:
        return GaussianSites(K, W)
    try:
        return GaussianSites(K, W)
    except np.linalg.LinAlgError:
        return GaussianSites(K, likelihood.curvature(y, f))


def _products(a: Array, b: Array) -> Array:
    """Return the symmetric half of a' b; several rows are added up."""
    a, b = np.atleast_2d(a), np.atleast_2d(b)
    return np.asarray(np.concatenate([a, b]).T @ (0.5 * np.concatenate([b, a])))
