"""The gamma process and the counts drawn from it (infinite gamma-Poisson; Titsias 2008).

Rates w_k are the points of a Poisson process with intensity mass / w exp(-rate w): their sum is Gamma(mass, rate), and
divided by it they are the weights of a Dirichlet process with concentration `mass`. Item n has count z_nk ~ Poisson(w_k) of
feature k. After N items the rates of features seen m_k times are Gamma(m_k, rate + N), and the rest is a gamma process with
rate + N. Up to the order of columns

    p([Z]) = (rate / (rate + N))^mass  prod_k mass Gamma(m_k) / ((rate + N)^m_k prod_n z_nk!)  / prod_h K_h!
"""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.factors.distributions.checked_numbers import as_numbers
from markovia.factors.processes.chinese_restaurant import ChineseRestaurant
from markovia.factors.processes.feature_matrices import log_multiplicity, log_orders, matrix_of, order_of_rows
from markovia.factors.processes.law import Law
from markovia.factors.processes.stick_breaking import GEM
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Positive, check_choice, check_count
from markovia.runtime.seeds import Seed, generator


@dataclass(frozen=True)
class GammaProcess(Law):
    """Random rates of features, endlessly many with a finite sum.

    Examples
    --------
    >>> process = GammaProcess(mass=3.0)
    >>> process.sample(1, seed=0, atoms=3).round(3).tolist()
    [[0.02, 0.661, 1.584, 0.612]]
    >>> seen = process.posterior([[2, 0], [1, 1]])
    >>> seen.fixed_mean().round(4).tolist(), seen.rest
    ([1.0, 0.3333], GammaProcess(mass=3.0, rate=3.0))
    """

    mass: Positive = 1.0
    rate: Positive = 1.0
    totals: tuple[int, ...] = field(default=(), repr=False)
    items: int = field(default=0, repr=False)

    @property
    def rest(self) -> "GammaProcess":
        """The law of the rates of features that no item has had so far."""
        return GammaProcess(self.mass, self.rate + self.items)

    def sample(self, n: int, seed: Seed = None, atoms: int = 50) -> Array:
        """Draw n times the rates of features seen, of so many others, and last the sum of all that are left."""
        check_count("n", n)
        rng = generator(seed)
        scale = 1.0 / (self.rate + self.items)
        fixed = rng.gamma(np.asarray(self.totals, dtype=np.float64), scale, (n, len(self.totals)))
        total = rng.gamma(self.mass, scale, (n, 1))
        weights = GEM(self.mass).sample(n, rng, atoms)
        left = np.maximum(1.0 - weights.sum(axis=1, keepdims=True), 0.0)
        return np.concatenate([fixed, total * weights, total * left], axis=1)

    def log_prob(self, x: ArrayLike) -> Array:
        """Return the log density of rates as `sample` gives them: features seen, others by sticks, and what is left."""
        from scipy.special import gammaln, xlogy

        rates, k = as_numbers(x, "the rates"), len(self.totals)
        if not rates.ndim or rates.shape[-1] < k + 2:
            raise InvalidArgument(
                f"rates are rows of {k} features seen, one or more others, and the sum of the rest"
            )
        m, b = np.asarray(self.totals, dtype=np.float64), self.rate + self.items
        fixed, free = rates[..., :k], rates[..., k:]
        total = free.sum(axis=-1)

        def gamma(w: Array, shape: Array | float) -> Array:
            return np.asarray(shape * np.log(b) - gammaln(shape) + xlogy(np.asarray(shape) - 1.0, w) - b * w)

        with np.errstate(divide="ignore", invalid="ignore"):
            found = gamma(fixed, m).sum(axis=-1) + gamma(total, self.mass)
            found = found + GEM(self.mass).log_prob(free[..., :-1] / total[..., None])
            found = found - (free.shape[-1] - 1) * np.log(total)
        return np.asarray(np.where((rates > 0).all(axis=-1), found, -np.inf))[()]

    def fixed_mean(self) -> Array:
        """Return the expected rates of the features seen."""
        return np.asarray(self.totals, dtype=np.float64) / (self.rate + self.items)

    def posterior(self, data: ArrayLike) -> "GammaProcess":
        """Return the law of the rates after items with these counts, a row each."""
        seen = InfiniteGammaPoisson(self.mass, self.rate, self.totals, self.items).posterior(data)
        return replace(self, totals=seen.totals, items=seen.items)


@dataclass(frozen=True)
class InfiniteGammaPoisson(Law):
    """Random matrices of counts with any number of columns.

    Examples
    --------
    >>> law = InfiniteGammaPoisson(mass=2.0)
    >>> law.sample(3, seed=2).tolist()
    [[1, 0, 0], [0, 0, 0], [0, 1, 1]]
    >>> shares, mean = law.posterior([[2, 0], [1, 3]]).predictive()
    >>> shares.tolist(), round(mean, 4)
    ([1.0, 1.0], 0.6667)
    """

    mass: Positive = 1.0
    rate: Positive = 1.0
    totals: tuple[int, ...] = field(default=(), repr=False)
    items: int = field(default=0, repr=False)

    def sample(self, n: int, seed: Seed = None) -> Ints:
        """Draw n rows: counts of features seen before, then of new ones in order of appearance."""
        check_count("n", n)
        rng = generator(seed)
        totals, rows = np.asarray(self.totals, dtype=np.int64), []
        for i in range(self.items, self.items + n):
            p = (self.rate + i) / (self.rate + i + 1.0)
            old = rng.negative_binomial(totals, p) if totals.size else totals
            shared = ChineseRestaurant(self.mass).sample(int(rng.negative_binomial(self.mass, p)), rng)
            new = rng.permutation(np.bincount(shared)) if shared.size else np.zeros(0, dtype=np.int64)
            rows.append(np.concatenate([old, new]))
            totals = np.append(totals, np.zeros(new.size, dtype=np.int64)) + rows[-1]
        found = order_of_rows(rows, n)
        return np.pad(found, ((0, 0), (0, max(len(self.totals) - found.shape[1], 0))))

    def log_prob(self, x: ArrayLike, form: Literal["class", "drawn"] = "class") -> float:
        """Return the log probability of a matrix up to the order of its new columns, or as drawn in order of appearance."""
        from scipy.special import gammaln

        check_choice("form", form, ["class", "drawn"])
        old, new = self._split(x)
        n, b = old.shape[0], self.rate + self.items
        seen, m, fresh = np.asarray(self.totals), old.sum(axis=0), new.sum(axis=0)
        repeated = gammaln(seen + m) - gammaln(seen) + seen * np.log(b) - (seen + m) * np.log(b + n)
        opened = np.log(self.mass) + gammaln(fresh) - fresh * np.log(b + n)
        none = self.mass * np.log(b / (b + n))
        inside = gammaln(old + 1.0).sum() + gammaln(new + 1.0).sum()
        orders = log_multiplicity(new) if form == "class" else log_orders(new)
        return -np.inf if orders == -np.inf else float(repeated.sum() + opened.sum() + none - inside - orders)

    def expected_columns(self, n: int) -> float:
        """Return the expected number of columns of n rows; it has a Poisson law."""
        check_count("n", n)
        b = self.rate + self.items
        return float(self.mass * np.log((b + n) / b)) + len(self.totals)

    def posterior(self, data: ArrayLike) -> "InfiniteGammaPoisson":
        """Return the law of the next rows, with the columns seen first."""
        old, new = self._split(data)
        totals = np.append(np.asarray(self.totals, dtype=np.int64) + old.sum(axis=0), new.sum(axis=0))
        return replace(self, totals=tuple(totals.tolist()), items=self.items + old.shape[0])

    def predictive(self) -> tuple[Array, float]:
        """Return the mean count of each feature seen, and of all new ones together, in the next row."""
        b = self.rate + self.items
        return np.asarray(self.totals) / b, self.mass / b

    def _split(self, matrix: ArrayLike) -> tuple[Ints, Ints]:
        z, k = np.asarray(matrix), len(self.totals)
        if z.ndim == 2 and z.shape[1] < k:
            raise InvalidArgument(
                f"{k} features were seen before; the matrix has a column for each, then new ones"
            )
        if not z.size:
            return np.zeros((len(z), k), dtype=np.int64), np.zeros((len(z), 0), dtype=np.int64)
        matrix_of(z, binary=False)
        return z[:, :k].astype(np.int64), matrix_of(z[:, k:], binary=False)
