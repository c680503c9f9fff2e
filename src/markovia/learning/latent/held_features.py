"""Rows given latent features that are held: which of them new rows have, and how probable new rows are.

A row is x = (z * v) A + noise, feature k with chance `chances[k]` on its own. With few features all combinations are weighed
one by one (2^K of them). With more, or weights of rows with missing cells, features are drawn: expected ones by Gibbs
sweeps, log probabilities by annealed importance sampling from the prior of the features to their posterior (Neal 2001),
whose estimate of p(x) has no bias while its logarithm lies a little low.
"""

from dataclasses import dataclass

import numpy as np

from markovia.inference.collapsed.indian_buffet_gibbs import IndianBuffetGibbs
from markovia.runtime.array_types import Array

MOST_ENUMERATED = 12
"""Features up to which all of a row's combinations are weighed one by one."""
SWEEPS = 200
"""Sweeps over new rows where there are too many combinations, half of them to warm up."""
STEPS, CHAINS = 60, 8
"""Steps from the prior to the posterior of a row's features, and chains a row, where scores are estimated."""


@dataclass(frozen=True)
class HeldFeatures:
    """Features that were learned.

    Attributes
    ----------
    values
        (features, columns).
    chances
        Of each feature in a new row.
    noise_std
        Of every cell.
    weighted
        Whether rows have a standard normal weight on each of their features, instead of 1.
    """

    values: Array
    chances: Array
    noise_std: float
    weighted: bool

    def expected(self, x: Array) -> Array:
        """Return the expected features of rows, or their expected weights: (rows, features). NaN cells do not count."""
        if not self.weighted and len(self.values) <= MOST_ENUMERATED:
            kinds, logs = self._combinations(x)
            p = np.exp(logs - logs.max(axis=1, keepdims=True))
            return np.asarray(p @ kinds / p.sum(axis=1, keepdims=True))
        rng, total = np.random.default_rng(0), np.zeros((len(x), len(self.values)))
        seen = ~np.isnan(x)
        sampler = self._sampler(x)
        for sweep in range(SWEEPS if total.size else 0):
            if not seen.all():  # missing cells are drawn along
                noise = self.noise_std * rng.standard_normal(x.shape)
                sampler.x = np.where(seen, x, sampler.w @ self.values + noise)
            sampler.draw_rows(rng, self.chances, others=2)
            total += sampler.w / (SWEEPS // 2) if sweep >= SWEEPS // 2 else 0.0
        return total

    def log_probs(self, x: Array) -> Array:
        """Return log p(x) of each row; the same rows get the same estimates."""
        if len(self.values) > MOST_ENUMERATED or (self.weighted and np.isnan(x).any()):
            return self._annealed(x)
        logs = self._combinations(x)[1]
        top = logs.max(axis=1)
        return np.asarray(top + np.log(np.exp(logs - top[:, None]).sum(axis=1)))

    def _sampler(self, x: Array) -> IndianBuffetGibbs:
        """Return a sampler of rows that have no feature yet."""
        seen, none = ~np.isnan(x), np.zeros((len(x), len(self.values)))
        noise = self.noise_std**2
        sampler = IndianBuffetGibbs(np.where(seen, x, 0.0), "gibbs", self.weighted, ~seen, 1.0, noise, 1.0)
        sampler.z, sampler.w, sampler.a = none, none.copy(), self.values.copy()
        return sampler

    def _annealed(self, x: Array) -> Array:
        """Return estimates of log p(x): rows with the same missing cells run together, each `CHAINS` times."""
        rng, logs_of_rows = np.random.default_rng(0), np.empty(len(x))
        patterns, which = np.unique(np.isnan(x), axis=0, return_inverse=True)
        steps = np.linspace(0.0, 1.0, STEPS + 1)[1:] ** 3  # slow where the first features are chosen
        for p, gaps in enumerate(patterns):
            mine = which.ravel() == p
            rows = np.repeat(x[mine][:, ~gaps], CHAINS, axis=0)
            sampler = self._sampler(rows)
            sampler.a = np.ascontiguousarray(self.values[:, ~gaps])
            sampler.z = (rng.random(sampler.z.shape) < self.chances).astype(np.float64)
            sampler.w = sampler.z * (rng.standard_normal(sampler.z.shape) if self.weighted else 1.0)
            noise, weights, before = self.noise_std**2, np.zeros(len(rows)), 0.0
            for heat in steps:  # the likelihood to a power is a normal density with more noise
                square = ((rows - sampler.w @ sampler.a) ** 2).sum(axis=1)
                weights -= (
                    0.5 * (heat - before) * (square / noise + rows.shape[1] * np.log(2.0 * np.pi * noise))
                )
                sampler.hyper[1], before = noise / heat, heat
                sampler.draw_rows(rng, self.chances, others=2)
            logs = weights.reshape(-1, CHAINS)
            top = logs.max(axis=1)
            logs_of_rows[mine] = top + np.log(np.exp(logs - top[:, None]).mean(axis=1))
        return logs_of_rows

    def _combinations(self, x: Array) -> tuple[Array, Array]:
        """Return all combinations of features (2^K, K) and log p(x, combination) (rows, 2^K)."""
        k, noise = len(self.values), self.noise_std**2
        kinds = ((np.arange(2**k)[:, None] >> np.arange(k)) & 1).astype(np.float64)
        seen = ~np.isnan(x)
        known = np.where(seen, x, 0.0)
        prior = kinds @ np.log(self.chances) + (1.0 - kinds) @ np.log1p(-self.chances)
        logs = prior - 0.5 * np.log(2.0 * np.pi * noise) * seen.sum(axis=1, keepdims=True)
        if not self.weighted:
            means = kinds @ self.values
            square = (known**2).sum(axis=1, keepdims=True) - 2.0 * known @ means.T + seen @ (means**2).T
            return kinds, logs - 0.5 * square / noise
        square = (x**2).sum(axis=1)
        for i, kind in enumerate(kinds):  # x ~ N(0, noise I + A' A) for the features of this combination
            a = self.values[kind > 0]
            inner = np.eye(len(a)) + a @ a.T / noise
            across = x @ a.T / noise
            gain = (across * np.linalg.solve(inner, across.T).T).sum(axis=1)
            logs[:, i] += 0.5 * (gain - square / noise - np.linalg.slogdet(inner)[1])
        return kinds, logs
