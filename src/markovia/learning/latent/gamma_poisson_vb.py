"""Variational Bayes for counts that are sums of factors with a gamma-process prior; the model is `GammaPoissonGibbs`'s.

q(activities), q(rates) and q(scale) are gammas, q(profiles) Dirichlets, and the splits of counts multinomials; each step
raises the bound (Cemgil 2009; Gopalan, Hofman and Blei 2015). O(nonzero counts K) a step, in NumPy.
"""

from typing import NamedTuple

import numpy as np

from markovia.inference.collapsed.gamma_poisson_gibbs import GammaPoissonGibbs
from markovia.learning.latent.topic_variational import document_posteriors
from markovia.runtime.array_types import Array


class GammaPoissonFit(NamedTuple):
    """Shapes and inverse scales of the gammas, concentrations of the Dirichlets: what `step` improves."""

    activity: tuple[Array, Array]
    rate: tuple[Array, Array]
    scale: tuple[float, float]
    profile: Array

    @property
    def factors(self) -> tuple[Array, Array, Array]:
        """Expected activities (rows, K), rates (K,) and profiles (K, columns)."""
        profiles = self.profile / self.profile.sum(axis=1, keepdims=True)
        return self.activity[0] / self.activity[1], self.rate[0] / self.rate[1], profiles


def first_fit(start: GammaPoissonGibbs) -> GammaPoissonFit:
    """Return a fit around the state of a sampler."""
    n, k = start.activities.shape
    one = np.ones((n, k))
    return GammaPoissonFit(
        (start.activities.copy(), one),
        (start.rates.copy(), np.ones(k)),
        (1.0, 1.0),
        start.profiles * start.shape[1],
    )


def step(data: GammaPoissonGibbs, fit: GammaPoissonFit) -> tuple[GammaPoissonFit, float]:
    """Return a better fit, and the bound of the fit before."""
    from scipy.special import gammaln, psi

    a, eta, masses = data.activity_prior, data.profile_prior, data.masses
    (sa, ra), (sr, rr), (sc, rc) = fit.activity, fit.rate, fit.scale
    log_activity, log_rate = psi(sa) - np.log(ra), psi(sr) - np.log(rr)
    log_profile = psi(fit.profile) - psi(fit.profile.sum(axis=1, keepdims=True))
    log_scale, scale = psi(sc) - np.log(rc), sc / rc
    left, right = np.exp(log_activity + log_rate), np.exp(log_profile)
    mean = np.maximum((left[data.rows] * right[:, data.columns].T).sum(axis=1), 1e-300)
    ratio = data.counts / mean
    (n, wide), k = data.shape, masses.size
    of_rows, of_columns = np.empty((n, k)), np.empty((k, wide))
    for f in range(k):
        of_rows[:, f] = left[:, f] * np.bincount(data.rows, ratio * right[f, data.columns], n)
        of_columns[f] = right[f] * np.bincount(data.columns, ratio * left[data.rows, f], wide)
    activities, rates = sa / ra, sr / rr

    def gamma_gap(
        shape: Array, inverse: Array, logs: Array, prior: Array | float, rate: float, log_rate: float
    ) -> float:
        """Return E[log prior] - E[log q] of gammas."""
        means = shape / inverse
        said = prior * log_rate - gammaln(prior) + (prior - 1.0) * logs - rate * means
        return float(
            np.sum(said - (shape * np.log(inverse) - gammaln(shape) + (shape - 1.0) * logs - inverse * means))
        )

    bound = float((data.counts * np.log(mean) - gammaln(data.counts + 1.0)).sum())
    bound -= float((activities.sum(axis=0) * rates).sum())
    bound += gamma_gap(sa, ra, log_activity, a, a, np.log(a))
    bound += gamma_gap(sr, rr, log_rate, masses, scale, log_scale)
    bound += gamma_gap(np.array(sc), np.array(rc), np.array(log_scale), 1.0, 1.0, 0.0)
    alpha = fit.profile
    said = gammaln(wide * eta) - wide * gammaln(eta) + ((eta - alpha) * log_profile).sum(axis=1)
    bound += float((said - gammaln(alpha.sum(axis=1)) + gammaln(alpha).sum(axis=1)).sum())
    # one factor of q after the other, each given the newest of the others
    activity = a + of_rows, np.broadcast_to(a + rates, (n, k)).copy()
    rate = masses + of_rows.sum(axis=0), scale + (activity[0] / activity[1]).sum(axis=0)
    new_scale = 1.0 + float(masses.sum()), 1.0 + float((rate[0] / rate[1]).sum())
    return GammaPoissonFit(activity, rate, new_scale, eta + of_columns), bound


def expected_activities(data: GammaPoissonGibbs, rates: Array, profiles: Array) -> Array:
    """Return the expected activities of rows, (rows, K), given rates and profiles."""
    from scipy.sparse import csr_array

    a = data.activity_prior
    table = np.ascontiguousarray((rates / (a + rates))[:, None] * np.maximum(profiles, 1e-300)).T
    counts = csr_array((data.counts, (data.rows, data.columns)), shape=data.shape)
    found = document_posteriors(
        counts, np.ascontiguousarray(table), np.full(len(rates), a), most=200, tol=1e-7, keep=False
    )
    return np.asarray(found.state / (a + rates))
