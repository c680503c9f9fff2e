"""Expectation propagation: the normal factor of each row is such that mean and variance are those with its true density.

Method: all rows at once, damped (Minka 2001; parallel as in van Gerven and others 2009); log evidence and gradient at the
fixed point as in Seeger 2005, where factors count as constant. Cost: a Cholesky factor and an inverse a pass, some ten
passes. For classes it is the most accurate of the three by far.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from typing import Any, ClassVar

import numpy as np

from markovia.learning.processes.gaussian_sites import Extrapolation, GaussianSites, SiteEvidence, SiteFit
from markovia.runtime.array_types import Array

NEAR = 0.1
"""How small changes are, in standard deviations, from where on they are extrapolated."""


class ExpectationPropagation(SiteEvidence):
    """The log evidence by expectation propagation, for every likelihood of one function.

    Examples
    --------
    >>> import markovia as mk
    >>> from markovia.learning.processes.likelihoods import BernoulliLogit
    >>> method = ExpectationPropagation([[0.0], [0.5], [2.0]], [1.0, 0.0, 1.0])
    >>> round(method.evidence(mk.covariances.RBF(1.0) + BernoulliLogit())[0], 4)  # exact: -2.28398
    -2.284
    """

    name: ClassVar[str] = "ep"

    def fit_sites(self, Ks: list[Array], likelihood: Any) -> SiteFit:
        """Find factors that do not change any more."""
        K, y = Ks[0], self.y
        tau, nu = np.zeros((2, len(y))) if self._last is None else self._last
        share, before, steps = 0.9 if likelihood.concave else 0.5, np.inf, 0
        extrapolation: Extrapolation | None = Extrapolation()
        while True:
            try:
                sites = GaussianSites(K, tau)
            except np.linalg.LinAlgError:  # too far: half way back to no factors at all
                tau, nu, share, steps, extrapolation = 0.5 * tau, 0.5 * nu, 0.5 * share, steps + 1, None
                if steps > self.max_iter:
                    raise
                continue
            alpha = nu - sites.solve(K @ nu)
            v, mean = sites.variances, K @ alpha
            # the posterior of a row without its own factor
            rest = 1.0 / v - tau
            fine = (v > 0.0) & (rest > 0.0)
            cavity_v = 1.0 / np.where(fine, rest, 1.0)
            cavity_m = cavity_v * (mean / v - nu)
            log_z, d1, d2 = likelihood.tilted(y, cavity_m, cavity_v)
            scale = 1.0 + cavity_v * d2
            fine &= scale > 1e-12
            scale = np.where(fine, scale, 1.0)
            new_tau, new_nu = -d2 / scale, (d1 - cavity_m * d2) / scale
            # how far the mean and the variance of a row are from those with its true density, in its own unit
            wrong = np.abs(
                np.stack([d1 * cavity_v + cavity_m - mean, cavity_v * scale - v]) / np.stack([np.sqrt(v), v])
            )
            change = float(np.where(fine, wrong, 0.0).max(initial=0.0))
            if change < max(self.tol, 1e-8) or steps >= self.max_iter:
                break
            if change > 2.0 * before:  # astray: extrapolated no more
                extrapolation = None
            share *= 0.7 if change > before and (extrapolation is None or change >= NEAR) else 1.0
            before, steps = change, steps + 1
            point, move = (
                np.stack([tau, nu]),
                share * np.where(fine, np.stack([new_tau - tau, new_nu - nu]), 0.0),
            )
            if extrapolation is not None and change < NEAR:
                weight = np.stack([v, np.sqrt(v)])
                tau, nu = extrapolation.after(point.ravel(), move.ravel(), weight.ravel()).reshape(
                    point.shape
                )
            else:
                tau, nu = point + move
        self._last = tau, nu
        spread = 1.0 + tau * cavity_v
        each = (
            log_z
            + 0.5 * np.log(spread)
            - 0.5 * (cavity_v * nu**2 + 2.0 * nu * cavity_m - tau * cavity_m**2) / spread
        )
        value = float(each.sum() - 0.5 * sites.log_det + 0.5 * nu @ mean)
        by_K = 0.5 * np.outer(alpha, alpha) - 0.5 * sites.R
        by_hypers = likelihood.tilted_by_hypers(y, cavity_m, cavity_v)
        return SiteFit(value, alpha[None], {(0, 0): sites.R}, (by_K,), by_hypers, change < 1e-6, steps)
