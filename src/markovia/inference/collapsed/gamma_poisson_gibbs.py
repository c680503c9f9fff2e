"""Gibbs sampling for counts that are sums of factors with a gamma-process prior (Zhou and Carin 2015, truncated).

    x_nd ~ Poisson(sum_k rate_k activity_nk profile_kd),    profile_k ~ Dirichlet(profile_prior)
    activity_nk ~ Gamma(activity_prior, activity_prior),    rate_k ~ Gamma(mass_k, scale),    scale ~ Gamma(1, 1)

With mass_k = mass / K the rates tend to a gamma process as K grows, and factors without need get no counts. Each count is
split over the factors (a multinomial), then all else is conjugate. O(nonzero counts K) a sweep, in NumPy.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from markovia.runtime.array_types import Array, Ints

_BLOCK = 2_000_000
"""Splits that are held at a time."""
ALIKE = 0.9
"""Bhattacharyya coefficient from which on two profiles are joined at the start."""


@dataclass
class GammaPoissonGibbs:
    """The state of a sampler and its sweep; counts come as triples (row, column, count above 0)."""

    rows: Ints
    columns: Ints
    counts: Ints
    shape: tuple[int, int]
    masses: Array
    activity_prior: float
    profile_prior: float
    rng: np.random.Generator = field(repr=False)

    def __post_init__(self) -> None:
        (n, wide), k = self.shape, self.masses.size
        self.profiles = self.rng.dirichlet(np.full(wide, max(self.profile_prior, 1.0)), k)
        self.activities = self.rng.gamma(max(self.activity_prior, 1.0), 1.0, (n, k))
        falling = 0.7 ** np.arange(
            k
        )  # few factors take most at first, others split off: fewer copies than from an even start
        self.rates = max(self.counts.sum(), 1) / n * falling / falling.sum()
        self.scale = np.ones(1)
        self.of_rows, self.of_columns = np.zeros((n, k)), np.zeros((k, wide))

    def sweep(self, rng: np.random.Generator) -> None:
        """Split the counts, then draw profiles, activities, rates and their scale."""
        self.split(rng)
        gammas = rng.standard_gamma(self.profile_prior + self.of_columns) + 1e-300
        self.profiles = gammas / gammas.sum(axis=1, keepdims=True)
        a = self.activity_prior
        self.activities = rng.standard_gamma(a + self.of_rows) / (a + self.rates)
        total = self.of_rows.sum(axis=0)
        self.rates = (
            rng.standard_gamma(self.masses + total) / (self.scale + self.activities.sum(axis=0)) + 1e-300
        )
        self.scale = rng.gamma(1.0 + self.masses.sum(), 1.0 / (1.0 + self.rates.sum()), 1)

    def started(self, rng: np.random.Generator, sweeps: int) -> "GammaPoissonGibbs":
        """Sweep some times, joining factors that are alike now and then, which sweeps alone take long to do."""
        for i in range(sweeps):
            self.sweep(rng)
            if i % 10 == 9:
                self._join_alike()
        return self

    def _join_alike(self) -> None:
        """Give the larger of two factors with nearly the same profile what both make."""
        means = self.profile_prior + self.of_columns
        roots = np.sqrt(means / means.sum(axis=1, keepdims=True))
        order = np.argsort(-self.of_rows.sum(axis=0), kind="stable")
        alike = roots @ roots.T > ALIKE
        gone = np.zeros(order.size, dtype=bool)
        for place, k in enumerate(order):
            for other in order[place + 1 :]:
                if alike[k, other] and not gone[k] and not gone[other]:
                    self.activities[:, k] += self.activities[:, other] * self.rates[other] / self.rates[k]
                    self.rates[other], gone[other] = 1e-300, True

    def split(self, rng: np.random.Generator) -> None:
        """Draw how many of each count every factor made, and add up."""
        (n, wide), k = self.shape, self.masses.size
        self.of_rows, self.of_columns = np.zeros((n, k)), np.zeros((k, wide))
        step = max(_BLOCK // k, 1)
        for start in range(0, self.counts.size, step):
            at = slice(start, start + step)
            i, j = self.rows[at], self.columns[at]
            p = self.activities[i] * self.rates * self.profiles[:, j].T + 1e-300
            parts = rng.multinomial(self.counts[at], p / p.sum(axis=1, keepdims=True))
            for f in range(k):
                self.of_rows[:, f] += np.bincount(i, parts[:, f], n)
                self.of_columns[f] += np.bincount(j, parts[:, f], wide)

    def log_prob(self) -> float:
        """Return log p(counts | all else) and the priors, up to constants in the data."""
        from scipy.special import gammaln

        mean = ((self.activities * self.rates)[self.rows] * self.profiles[:, self.columns].T).sum(axis=1)
        likelihood = (self.counts * np.log(mean) - gammaln(self.counts + 1.0)).sum()
        a, c = self.activity_prior, float(self.scale[0])
        found = likelihood - (self.activities.sum(axis=0) * self.rates).sum()
        found += ((a - 1.0) * np.log(self.activities + 1e-300) - a * self.activities).sum()
        found += (
            (self.masses - 1.0) * np.log(self.rates) - c * self.rates + self.masses * np.log(c)
        ).sum() - c
        return float(found + (self.profile_prior - 1.0) * np.log(self.profiles).sum())

    def state(self) -> dict[str, Array]:
        """Return the state as arrays."""
        return {
            n: getattr(self, n) for n in ("profiles", "activities", "rates", "scale", "of_rows", "of_columns")
        }

    def restore(self, state: Mapping[str, Array]) -> None:
        """Take up a state."""
        for name, value in state.items():
            setattr(self, name, np.array(value, dtype=np.float64))
