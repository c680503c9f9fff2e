"""The beta process: the chances behind the Indian buffet, endlessly many of them with a finite sum.

Chances are the points of a Poisson process with intensity mass c / p (1 - p)^(c-1) on (0, 1), c the concentration; each item
has feature k with chance p_k. For c = 1 the chances in decreasing order are broken off a stick whose rest is thrown away:
p_k = p_{k-1} mu_k, mu_k ~ Beta(mass, 1) (Teh, Gorur and Ghahramani 2007); for any c they are found from the tail of the
intensity. After N items, m_k of which have feature k: p_k ~ Beta(m_k, N - m_k + c), and the rest is a beta process with
concentration c + N and mass c mass / (c + N) (Hjort 1990; Thibaux and Jordan 2007).
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.factors.distributions.checked_numbers import as_numbers
from markovia.factors.processes.indian_buffet import IndianBuffet
from markovia.factors.processes.law import Law
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Positive, check_count
from markovia.runtime.seeds import Seed, generator

_TABLE, _STEPS, _LEAST = 2_000, 2, -40.0


@dataclass(frozen=True)
class BetaProcess(Law):
    """Random chances of features.

    Parameters
    ----------
    mass
        The expected sum of all chances: features an item has on average.
    concentration
        The larger, the more features with small chances.
    seen
        The buffet of items seen; `posterior` fills it.

    Examples
    --------
    >>> process = BetaProcess(mass=2.0)
    >>> process.sample(1, seed=0, atoms=4).round(3).tolist()
    [[0.712, 0.428, 0.423, 0.423]]
    >>> process.mean(3).round(4).tolist()
    [0.6667, 0.4444, 0.2963]
    >>> process.posterior([[1, 0], [1, 1]]).fixed_mean().round(4).tolist()
    [0.6667, 0.3333]
    """

    mass: Positive = 1.0
    concentration: Positive = 1.0
    seen: IndianBuffet | None = None

    @property
    def buffet(self) -> IndianBuffet:
        """The law of items' features, with the chances summed out."""
        return self.seen or IndianBuffet(self.mass, self.concentration)

    @property
    def rest(self) -> "BetaProcess":
        """The law of the chances of features that no item has had so far."""
        c = self.concentration + self.buffet.guests
        return BetaProcess(self.mass * self.concentration / c, c)

    def sample(self, n: int, seed: Seed = None, atoms: int = 50) -> Array:
        """Draw n times the chances of features seen, then the largest others, in decreasing order: (n, seen + atoms)."""
        check_count("n", n)
        check_count("atoms", atoms)
        rng = generator(seed)
        a, b = self._fixed()
        fixed = rng.beta(a, b, (n, a.size))
        arrivals = rng.exponential(size=(n, atoms)).cumsum(axis=1)
        return np.concatenate([fixed, self.rest.from_tail(arrivals)], axis=1)

    def log_prob(self, x: ArrayLike) -> Array:
        """Return the log density of chances as `sample` gives them: those of features seen, then the largest others."""
        from scipy.special import betaln, xlog1py, xlogy

        chances = as_numbers(x, "the chances")
        a, b = self._fixed()
        if not chances.ndim or chances.shape[-1] < a.size:
            raise InvalidArgument(f"chances are rows, the first {a.size} of features seen")
        fixed, free = chances[..., : a.size], chances[..., a.size :]
        rest = self.rest
        with np.errstate(divide="ignore", invalid="ignore"):
            found = (xlogy(a - 1.0, fixed) + xlog1py(b - 1.0, -fixed) - betaln(a, b)).sum(axis=-1)
            points = (
                np.log(rest.mass * rest.concentration)
                - np.log(free)
                + xlog1py(rest.concentration - 1.0, -free)
            )
            found = found + points.sum(axis=-1)
            if free.shape[-1]:
                found = found - rest.tail(free[..., -1])
        inside = ((chances > 0) & (chances < 1)).all(axis=-1) & (np.diff(free, axis=-1) < 0).all(axis=-1)
        return np.asarray(np.where(inside, found, -np.inf))[()]

    def tail(self, p: ArrayLike) -> Array:
        """Return the expected number of chances above p."""
        return self.mass * _unit_tail(self.concentration, np.asarray(p, dtype=np.float64))

    def mean(self, atoms: int) -> Array:
        """Return the expected largest chances when nothing was seen and the concentration is 1: (mass / (1 + mass))^k."""
        if self.buffet.guests or self.concentration != 1.0:
            raise InvalidArgument(
                "the means of ordered chances are known for concentration=1 and nothing seen"
            )
        check_count("atoms", atoms)
        return np.asarray((self.mass / (1.0 + self.mass)) ** np.arange(1, atoms + 1))

    def fixed_mean(self) -> Array:
        """Return the expected chances of the features seen."""
        a, b = self._fixed()
        return a / (a + b)

    def posterior(self, data: ArrayLike) -> "BetaProcess":
        """Return the law of the chances after items with these features, a row each."""
        return replace(self, seen=self.buffet.posterior(data))

    def _fixed(self) -> tuple[Array, Array]:
        taken = np.asarray(self.buffet.taken, dtype=np.float64)
        return taken, self.buffet.guests - taken + self.concentration

    def from_tail(self, arrivals: Array) -> Array:
        """Return the chances whose `tail` is given: exactly for concentration 1, else by a table and Newton steps."""
        from scipy.special import psi

        c, units = self.concentration, arrivals / self.mass
        if c == 1.0 or not arrivals.size:
            return np.exp(-units)
        logs, tails = _table(c)
        found = np.interp(-units, -tails, logs)
        for _ in range(_STEPS):
            p = np.exp(found)
            found = np.minimum(found + (_unit_tail(c, p) - units) / (c * (1.0 - p) ** (c - 1.0)), -1e-16)
        # below the table the tail is linear in log p
        return np.exp(np.where(units > tails[0], -units / c - psi(c) - np.euler_gamma, found))

    def features(self, n: int, seed: Seed = None, atoms: int = 200) -> Ints:
        """Draw one set of chances and n items from it; what is cut off is left out."""
        rng = generator(seed)
        chances = self.sample(1, rng, atoms)[0]
        return np.asarray(rng.random((n, chances.size)) < chances).astype(np.int64)


def _unit_tail(c: float, p: Array) -> Array:
    """Return c int_p^1 (1 - u)^(c-1) / u du: with t = -log(1 - u) an exponential integral and a smooth rest."""
    from scipy.special import exp1

    nodes, weights = _nodes(20 if c >= 1.0 else 90)
    with np.errstate(divide="ignore"):
        t = -np.log1p(-p)
    at = np.minimum(t, 700.0 / c)[..., None] + nodes / c
    smooth = 1.0 / -np.expm1(-at) - 1.0 / at
    return np.asarray(c * exp1(c * t) + np.exp(-c * t) * (smooth @ weights))


@lru_cache(maxsize=2)
def _nodes(n: int) -> tuple[Array, Array]:
    nodes, weights = np.polynomial.laguerre.laggauss(n)
    return nodes, weights


@lru_cache(maxsize=16)
def _table(c: float) -> tuple[Array, Array]:
    """Return increasing log chances and their tails, from far below up to 1."""
    near = np.exp(-np.linspace(0.5, 30.0, _TABLE // 2))  # 1 - p, near the upper end
    logs = np.concatenate([np.linspace(_LEAST, np.log1p(-near[0]), _TABLE), np.log1p(-near[1:])])
    return logs, _unit_tail(c, np.exp(logs))
