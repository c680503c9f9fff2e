"""The best normal posterior of the function: a lower bound of the log evidence, with one factor a row.

Method: at the best bound (Opper and Archambeau 2009) the factor of a row is the mean second derivative of its log density,
so steps go to those of the present posterior (natural gradients; Khan and Lin 2017), halved until the bound rises. Two
functions, such as one and the log variance of its noise (Lazaro-Gredilla and Titsias 2011), have independent posteriors.
Cost: a Cholesky factor and an inverse a step.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from typing import Any, ClassVar

import numpy as np

from markovia.learning.processes.gaussian_sites import Extrapolation, GaussianSites, SiteEvidence, SiteFit
from markovia.learning.processes.likelihoods import SoftmaxClasses
from markovia.runtime.array_types import Array


class VariationalEvidence(SiteEvidence):
    """A lower bound of the log evidence, for every likelihood.

    Examples
    --------
    >>> import markovia as mk
    >>> from markovia.learning.processes.likelihoods import BernoulliLogit
    >>> method = VariationalEvidence([[0.0], [0.5], [2.0]], [1.0, 0.0, 1.0])
    >>> round(method.evidence(mk.covariances.RBF(1.0) + BernoulliLogit())[0], 4)  # below -2.28398
    -2.2841
    """

    name: ClassVar[str] = "variational"
    bound: ClassVar[Any] = "lower"

    def fit_sites(self, Ks: list[Array], likelihood: Any) -> SiteFit:
        """Find the normal posterior with the highest bound."""
        classes = isinstance(likelihood, SoftmaxClasses)
        Ks = Ks * likelihood.classes if classes else Ks
        # a likelihood of one function knows no axis of functions
        one: Any = (lambda a: a[0]) if len(Ks) == 1 else (lambda a: a)

        def at(W: Array, b: Array) -> tuple[Any, ...]:
            """Return the posteriors with factors exp(b f - W f^2 / 2), and the bound there."""
            sites = [GaussianSites(K, w) for K, w in zip(Ks, W, strict=True)]
            alpha = np.stack([c - s.solve(s.K @ c) for s, c in zip(sites, b, strict=True)])
            m = np.stack([K @ a for K, a in zip(Ks, alpha, strict=True)])
            v = np.stack([s.variances for s in sites])
            if (v <= 0.0).any():
                raise np.linalg.LinAlgError
            log, d1, d2 = likelihood.expected(self.y, one(m), one(v))
            d1, d2 = d1.reshape(m.shape), d2.reshape(m.shape)
            # tr(K^-1 S) - n = -tr(R K) = -sum of W v, row by row
            away = sum(
                0.5 * (s.log_det - w @ u + a @ f) for s, w, u, a, f in zip(sites, W, v, alpha, m, strict=True)
            )
            return float(log.sum() - away), sites, alpha, m, v, d1, d2

        zero = np.zeros((len(Ks), len(self.y)))
        W, b = (zero, zero) if self._last is None else self._last
        try:
            here = at(W, b)
        except np.linalg.LinAlgError:  # the last factors do not suit these covariances
            W, b = zero, zero
            here = at(W, b)
        steps, gain, extrapolation = 0, np.inf, Extrapolation()
        while steps < self.max_iter:
            steps += 1
            _, _, _, m, v, d1, d2 = here
            move = np.stack([-d2 - W, d1 - d2 * m - b])
            weight = np.stack([v, np.sqrt(v)])
            # how far the factors are from those of the posterior, each in its own unit
            wrong = float(np.abs(np.stack([move[0], move[1] - move[0] * m]) * weight).max())
            if wrong < max(self.tol**0.5, 1e-7):
                break
            flat = np.stack([W, b]).ravel()
            goal = extrapolation.after(flat, move.ravel(), weight.ravel()).reshape(move.shape)
            share = 1.0
            while share > 1e-6:
                try:
                    new = at(*goal)
                    if new[0] >= here[0] - 1e-12 * (1.0 + abs(here[0])):
                        break
                except np.linalg.LinAlgError:
                    pass
                extrapolation, share = Extrapolation(), 0.5 * share
                goal = np.stack([W, b]) + share * move
            else:
                break
            gain = new[0] - here[0]
            (W, b), here = goal, new
        self._last = W, b
        value, sites, alpha, m, v, _, _ = here
        own = likelihood.expected_by_hypers(self.y, one(m), one(v))
        by_K = tuple(0.5 * np.outer(a, a) - 0.5 * s.R for a, s in zip(alpha, sites, strict=True))
        blocks = {(i, i): s.R for i, s in enumerate(sites)}
        by_K = (sum(by_K),) if classes else by_K
        return SiteFit(value, alpha, blocks, by_K, own, wrong < 1e-5 or gain < 1e-9, steps)
