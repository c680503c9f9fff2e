"""Exponential families of counts and labels: Bernoulli, categorical, multinomial, Poisson.

    Bernoulli    eta = log p/(1-p)           T = x                          A = log(1 + e^eta)         h = 1
    categorical  eta_k = log p_k/p_K         T = one-hot without the last   A = log(1 + sum e^eta_k)   h = 1
    multinomial  the same                    T = counts without the last    A = N log(1 + sum e^eta)   h = N!/prod x_k!
    Poisson      eta = log rate              T = x                          A = e^eta                  h = 1/x!

The categorical and the multinomial are written in their minimal form of K - 1 parameters. Probabilities of exactly 0 or 1
are limits of the family: they have probabilities, moments, entropies and draws, but no finite natural parameters, and
`natural()` says so.
"""

from math import exp, log
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markovia.errors import InvalidArgument
from markovia.factors.distributions.checked_numbers import (
    as_numbers,
    concentrations,
    draws,
    finite_numbers,
    positive,
    vectors,
    whole,
)
from markovia.factors.distributions.conjugate_priors import ConjugatePrior
from markovia.factors.distributions.exponential_family import ExponentialFamily, FittedFamily
from markovia.factors.distributions.positive_families import Beta, Dirichlet, Gamma
from markovia.runtime.array_types import Array
from markovia.runtime.seeds import Seed, generator

_TINY = 1e-300
"""What a drawn probability that underflowed becomes: its log odds are finite in exact arithmetic."""


class Bernoulli(FittedFamily):
    """One trial with success probability `probs`; values are 0 and 1.

    Examples
    --------
    >>> coin = Bernoulli(0.25)
    >>> coin.natural().round(6).tolist(), coin.moments().tolist()
    ([-1.098612], [0.25])
    >>> Bernoulli.fit([1, 0, 0, 1])
    Bernoulli(probs=0.5)
    >>> post = Bernoulli.conjugate_prior(a=1, b=1).posterior([1, 1, 0])
    >>> post.parameters
    Beta(a=3, b=2)
    """

    _mean_space = "it must be strictly between 0 and 1"

    def __init__(self, probs: float = 0.5) -> None:
        p = finite_numbers(probs, "probs")
        if p.ndim or not 0.0 <= p <= 1.0:
            raise InvalidArgument(f"Bernoulli needs 0 <= probs <= 1, not {probs!r}")
        self.probs = float(p)
        with np.errstate(divide="ignore"):
            self._odds = np.atleast_1d(np.log(p) - np.log1p(-p))

    @classmethod
    def conjugate_prior(cls, a: float = 1.0, b: float = 1.0) -> ConjugatePrior:
        """Return the Beta(a, b) prior of the success probability."""
        a, b = positive(a, "a"), positive(b, "b")
        return ConjugatePrior(cls(), [a], a + b)

    @property
    def n_parameters(self) -> int:
        """One."""
        return 1

    def natural(self) -> Array:
        """Return the log odds."""
        return _finite(self, self._odds)

    def with_natural(self, eta: ArrayLike) -> Self:
        """Return the member with the given log odds."""
        made = object.__new__(type(self))
        made._odds = self._eta(eta)
        made.probs = float(_sigmoid(made._odds)[0])
        return made

    def with_moments(self, mu: ArrayLike) -> Self:
        """Return the member with the given success probability."""
        p = float(self._mu(mu)[0])
        return type(self)(p) if p in (0.0, 1.0) else super().with_moments(mu)

    def log_partition(self, eta: ArrayLike | None = None) -> float:
        """Return log(1 + e^eta)."""
        return float(np.logaddexp(0.0, self._at(eta)[0]))

    def moments(self, eta: ArrayLike | None = None) -> Array:
        """Return the success probability."""
        return _sigmoid(self._at(eta))

    def covariance(self, eta: ArrayLike | None = None) -> Array:
        """Return p (1 - p)."""
        at = self._at(eta)
        return np.asarray(_sigmoid(at) * _sigmoid(-at)).reshape(1, 1)

    def log_base_measure(self, x: Any) -> Any:
        """Return 0 for 0 and 1, minus infinity for anything else."""
        x = as_numbers(x, "a value")
        return np.where((x == 0) | (x == 1), 0.0, -np.inf)[()]

    def log_prob(self, x: Any) -> Any:
        """Return the log probability of 0 or 1; minus infinity for anything else."""
        x = as_numbers(x, "a value")
        zero, one = self._log_probs()
        return np.where(x == 1, one, np.where(x == 0, zero, -np.inf))[()]

    def sample(self, n: int, seed: Seed = None) -> NDArray[np.int64]:
        """Draw n zeros and ones."""
        return (generator(seed).random(draws(n)) < self.probs).astype(np.int64)

    @property
    def mean(self) -> float:
        """The success probability."""
        return self.probs

    @property
    def variance(self) -> float:
        """`p (1 - p)`."""
        return float(self.covariance()[0, 0])

    def kl(self, other: ExponentialFamily) -> float:
        """Return KL(self || other); infinite where the other excludes what is possible here."""
        self._same_family(other)
        assert isinstance(other, Bernoulli)
        return _divergence(self._log_probs(), other._log_probs())

    def conjugate_dual(self, mu: ArrayLike | None = None) -> float:
        """Return mu log mu + (1 - mu) log(1 - mu) on [0, 1], infinity elsewhere."""
        m = self.moments() if mu is None else self._mu(mu)
        return _negative_entropy(np.append(m, 1.0 - m))

    def _at(self, eta: ArrayLike | None) -> Array:
        return self._odds if eta is None else self._eta(eta)

    def _log_probs(self) -> Array:
        return np.asarray(-np.logaddexp(0.0, np.append(self._odds, -self._odds)))

    def _realisable(self, mu: Array) -> bool:
        return bool(0.0 < mu[0] < 1.0)

    def _to_natural(self, mu: Array) -> Array:
        return np.asarray(np.log(mu) - np.log1p(-mu))

    def _prior_parameters(self, chi: Array, nu: float) -> Beta:
        return Beta(float(chi[0]), float(nu - chi[0]))

    def _with_parameter(self, value: Any) -> Self:
        return self.with_natural([log(max(value, _TINY)) - log(max(1.0 - value, _TINY))])

    def __repr__(self) -> str:
        return f"Bernoulli(probs={self.probs:g})"


class Multinomial(FittedFamily):
    """Counts of `total_count` independent draws from K categories, in the minimal form of K - 1 log odds.

    Examples
    --------
    >>> dice = Multinomial(3, [0.5, 0.25, 0.25])
    >>> round(float(dice.prob([2, 1, 0])), 6), dice.n_parameters
    (0.1875, 2)
    >>> dice.moments().tolist(), dice.mean.tolist()
    ([1.5, 0.75], [1.5, 0.75, 0.75])
    """

    _mean_space = "every category needs a positive probability"

    def __init__(self, total_count: int, probs: ArrayLike) -> None:
        self.total_count = whole(total_count, "a number of draws")
        p = finite_numbers(probs, "probs")
        if p.ndim != 1 or p.size < 1 or not np.all(p >= 0) or abs(p.sum() - 1.0) > 1e-6:
            raise InvalidArgument(f"{type(self).__name__} needs a vector of probabilities that sum to one")
        with np.errstate(divide="ignore"):
            self._set(np.log(p) - log(p.sum()), p / p.sum())

    def _set(self, log_probs: Array, probs: Array) -> None:
        probs.setflags(write=False)
        self.probs, self._logs = probs, log_probs

    @classmethod
    def conjugate_prior(cls, total_count: int, concentration: ArrayLike) -> ConjugatePrior:
        """Return the Dirichlet prior of the probabilities."""
        alpha = concentrations(concentration, "a Dirichlet prior")
        family = cls(total_count, np.full(alpha.size, 1.0 / alpha.size))
        if not family.total_count:
            raise InvalidArgument("counts of no draws say nothing: a conjugate prior needs total_count >= 1")
        return ConjugatePrior(family, alpha[:-1], float(alpha.sum()) / family.total_count)

    @property
    def n_parameters(self) -> int:
        """`K - 1`."""
        return int(self.probs.size) - 1

    def natural(self) -> Array:
        """Return the log odds of the first K - 1 categories against the last."""
        with np.errstate(invalid="ignore"):
            return _finite(self, self._logs[:-1] - self._logs[-1])

    def with_natural(self, eta: ArrayLike) -> Self:
        """Return the member with the given log odds."""
        return self._made(_log_softmax(self._eta(eta)))

    def with_moments(self, mu: ArrayLike) -> Self:
        """Return the member with the given mean counts (without the last category's)."""
        mean = self._mu(mu)
        p = np.append(mean, self.total_count - mean.sum()) / max(self.total_count, 1)
        if abs(p[-1]) <= p.size * np.finfo(np.float64).eps:  # nothing but rounding is left for the last
            p[-1] = 0.0
        if np.all(p >= 0) and not np.all(p > 0):
            with np.errstate(divide="ignore"):
                return self._made(np.log(p / p.sum()))
        return super().with_moments(mu)

    def _made(self, log_probs: Array) -> Self:
        made = object.__new__(type(self))
        made.total_count = self.total_count
        made._set(log_probs, np.exp(log_probs))
        return made

    def log_partition(self, eta: ArrayLike | None = None) -> float:
        """Return N log(1 + sum_k e^eta_k)."""
        return -self.total_count * float(self._at(eta)[-1])

    def moments(self, eta: ArrayLike | None = None) -> Array:
        """Return N p without the last category."""
        return self.total_count * np.exp(self._at(eta))[:-1]

    def covariance(self, eta: ArrayLike | None = None) -> Array:
        """Return N (diag p - p p') without the last category."""
        return _counts_covariance(self.total_count, np.exp(self._at(eta))[:-1])

    def sufficient_statistics(self, x: Any) -> Array:
        """Return the counts without the last."""
        return vectors(x, self.probs.size, "counts")[..., :-1]

    def log_base_measure(self, x: Any) -> Any:
        """Return the log multinomial coefficient; minus infinity for what is not counts of this total."""
        from scipy.special import gammaln

        counts = vectors(x, self.probs.size, "counts")
        with np.errstate(invalid="ignore"):
            valid = (counts.sum(axis=-1) == self.total_count) & (
                (counts == np.floor(counts)) & (counts >= 0)
            ).all(axis=-1)
        counts = np.where(valid[..., None], counts, 0.0)
        logs = gammaln(self.total_count + 1.0) - gammaln(counts + 1.0).sum(axis=-1)
        return np.where(valid, logs, -np.inf)[()]

    def log_prob(self, x: Any) -> Any:
        """Return the log probability of counts; minus infinity where they are negative, fractional or of another total."""
        base = np.asarray(self.log_base_measure(x))
        counts = np.where(np.isneginf(base)[..., None], 0.0, vectors(x, self.probs.size, "counts"))
        with np.errstate(invalid="ignore"):
            return (base + np.where(counts > 0, counts * self._logs, 0.0).sum(axis=-1))[()]

    def sample(self, n: int, seed: Seed = None) -> NDArray[np.int64]:
        """Draw n rows of counts."""
        return generator(seed).multinomial(self.total_count, self.probs, size=draws(n))

    @property
    def mean(self) -> Array:
        """`N p`; for a categorical the expected indicators."""
        return self.total_count * self.probs

    @property
    def variance(self) -> Array:
        """`N p (1 - p)` for each count."""
        return self.total_count * self.probs * (1.0 - self.probs)

    @property
    def covariance_matrix(self) -> Array:
        """The covariance matrix `N (diag p - p p')` of all K counts."""
        return _counts_covariance(self.total_count, self.probs)

    def kl(self, other: ExponentialFamily) -> float:
        """Return KL(self || other); infinite where the other excludes what is possible here."""
        self._same_family(other)
        assert isinstance(other, Multinomial)
        return self.total_count * _divergence(self._logs, other._logs)

    def conjugate_dual(self, mu: ArrayLike | None = None) -> float:
        """Return N sum_k p_k log p_k for mean counts of some p, infinity elsewhere."""
        if mu is None:
            return self.total_count * _negative_entropy(self.probs)
        m = self._mu(mu) / max(1, self.total_count)
        return self.total_count * _negative_entropy(np.append(m, 1.0 - m.sum()))

    def _at(self, eta: ArrayLike | None) -> Array:
        """Return the log probabilities of all categories."""
        return self._logs if eta is None else _log_softmax(self._eta(eta))

    def _expected_log_base(self) -> float:
        from scipy.special import gammaln
        from scipy.stats import binom

        n = self.total_count
        counts = np.arange(n + 1.0)
        logs = gammaln(counts + 1.0)
        return float(gammaln(n + 1.0) - sum(float(binom.pmf(counts, n, p) @ logs) for p in self.probs))

    def _realisable(self, mu: Array) -> bool:
        return bool(np.all(mu > 0) and mu.sum() < self.total_count)

    def _to_natural(self, mu: Array) -> Array:
        return np.asarray(np.log(mu) - np.log(self.total_count - mu.sum()))

    def _prior_parameters(self, chi: Array, nu: float) -> Dirichlet:
        return Dirichlet(np.append(chi, self.total_count * nu - chi.sum()))

    def _with_parameter(self, value: Any) -> Self:
        logs = np.log(np.maximum(value, _TINY))
        return self.with_natural(logs[:-1] - logs[-1])

    def _structure(self) -> tuple[Any, ...]:
        return (self.total_count, self.probs.size)

    @classmethod
    def _template(cls, data: Array, **structure: Any) -> Self:
        rows = np.atleast_2d(data)
        totals = rows.sum(axis=-1)
        if rows.ndim != 2 or not rows.size or not np.all(totals == totals[0]) or not totals[0] > 0:
            raise InvalidArgument("a multinomial is fitted to rows of counts that share one positive total")
        return cls(int(totals[0]), np.full(rows.shape[1], 1.0 / rows.shape[1]), **structure)

    def __repr__(self) -> str:
        return f"Multinomial(total_count={self.total_count}, probs={np.round(self.probs, 6).tolist()})"


class Categorical(Multinomial):
    """One draw from K categories; values are 0 ... K-1, parameters the K - 1 log odds against the last.

    The overcomplete form with K log weights (any constant may be added to all) is `probs` up to a softmax; use it through
    `markovia.local.Softmax` or `markovia.exponential.MarkovField`.

    Examples
    --------
    >>> weather = Categorical([0.2, 0.3, 0.5])
    >>> weather.n_parameters, weather.sufficient_statistics([0, 2]).tolist()
    (2, [[1.0, 0.0], [0.0, 0.0]])
    >>> Categorical.fit([0, 1, 1, 2]).probs.round(6).tolist()
    [0.25, 0.5, 0.25]
    """

    _structures = ("n_categories",)

    def __init__(self, probs: ArrayLike) -> None:
        super().__init__(1, probs)

    @classmethod
    def conjugate_prior(cls, concentration: ArrayLike) -> ConjugatePrior:  # type: ignore[override]
        """Return the Dirichlet prior of the probabilities."""
        alpha = concentrations(concentration, "a Dirichlet prior")
        return ConjugatePrior(cls(np.full(alpha.size, 1.0 / alpha.size)), alpha[:-1], float(alpha.sum()))

    def sufficient_statistics(self, x: Any) -> Array:
        """Return the one-hot vector without its last entry."""
        x = as_numbers(x, "a value")
        return np.asarray(x[..., None] == np.arange(self.probs.size - 1), dtype=np.float64)

    def log_base_measure(self, x: Any) -> Any:
        """Return 0 for 0 ... K-1, minus infinity for anything else."""
        x = as_numbers(x, "a value")
        return np.where((x == np.floor(x)) & (x >= 0) & (x < self.probs.size), 0.0, -np.inf)[()]

    def log_prob(self, x: Any) -> Any:
        """Return the log probability of category numbers; minus infinity for what is not one of 0 ... K-1."""
        inside = np.asarray(self.log_base_measure(x)) == 0.0
        at = np.where(inside, as_numbers(x, "a value"), 0.0).astype(np.intp)
        return np.where(inside, self._logs[at], -np.inf)[()]

    def sample(self, n: int, seed: Seed = None) -> NDArray[np.int64]:
        """Draw n category numbers."""
        edges = np.cumsum(self.probs)
        u = generator(seed).random(draws(n)) * edges[-1]
        return np.asarray(np.searchsorted(edges, u, side="right"), dtype=np.int64)

    def _expected_log_base(self) -> float:
        return 0.0

    @classmethod
    def _template(cls, data: Array, n_categories: int | None = None, **structure: Any) -> Self:
        if data.ndim != 1 or not data.size or not np.all((data >= 0) & (data == np.floor(data))):
            raise InvalidArgument("a categorical is fitted to a column of category numbers 0, 1, 2, ...")
        top = float(data.max())
        if n_categories is None and top >= data.size:  # some category below it has no row
            raise InvalidArgument(
                f"the largest category is {top:.15g}, but {data.size} rows cannot show all categories below it: number them "
                "0, 1, 2, ... without gaps"
            )
        k = int(top) + 1 if n_categories is None else max(whole(n_categories, "n_categories"), 1)
        return cls(np.full(k, 1.0 / k))

    def __repr__(self) -> str:
        return f"Categorical(probs={np.round(self.probs, 6).tolist()})"


class Poisson(FittedFamily):
    """Counts with mean `rate`.

    Examples
    --------
    >>> calls = Poisson(2.0)
    >>> round(float(calls.prob(0)), 6), calls.natural().round(6).tolist()
    (0.135335, [0.693147])
    >>> Poisson.conjugate_prior(shape=2, rate=1).posterior([3, 5]).parameters
    Gamma(shape=10, rate=3)
    """

    _mean_space = "the mean count must be positive"

    def __init__(self, rate: float = 1.0) -> None:
        self.rate = positive(rate, "the rate of a Poisson")

    @classmethod
    def conjugate_prior(cls, shape: float = 1.0, rate: float = 1.0) -> ConjugatePrior:
        """Return the Gamma(shape, rate) prior of the rate."""
        return ConjugatePrior(cls(), [positive(shape, "shape")], positive(rate, "rate"))

    def natural(self) -> Array:
        """Return the log rate."""
        return np.array([log(self.rate)])

    def with_natural(self, eta: ArrayLike) -> Self:
        """Return the member with the given log rate."""
        at = float(self._eta(eta)[0])
        if not abs(at) < 700.0:
            raise InvalidArgument(f"exp({at:g}) is no rate of a Poisson: it leaves the range of doubles")
        return type(self)(exp(at))

    def log_partition(self, eta: ArrayLike | None = None) -> float:
        """Return e^eta."""
        with np.errstate(over="ignore"):
            return float(np.exp(self._eta(eta)[0]))

    def moments(self, eta: ArrayLike | None = None) -> Array:
        """Return the rate."""
        return np.exp(self._eta(eta))

    def covariance(self, eta: ArrayLike | None = None) -> Array:
        """Return the rate."""
        return np.exp(self._eta(eta)).reshape(1, 1)

    def log_base_measure(self, x: Any) -> Any:
        """Return -log x!; minus infinity for what is no count."""
        from scipy.special import gammaln

        x = as_numbers(x, "a value")
        valid = (x >= 0) & (x == np.floor(x)) & np.isfinite(x)
        return np.where(valid, -gammaln(np.where(valid, x, 0.0) + 1.0), -np.inf)[()]

    def sample(self, n: int, seed: Seed = None) -> NDArray[np.int64]:
        """Draw n counts."""
        return generator(seed).poisson(self.rate, draws(n))

    @property
    def mean(self) -> float:
        """The rate."""
        return self.rate

    @property
    def variance(self) -> float:
        """The rate."""
        return self.rate

    def conjugate_dual(self, mu: ArrayLike | None = None) -> float:
        """Return mu log mu - mu for mu >= 0, infinity elsewhere."""
        m = float((self.moments() if mu is None else self._mu(mu))[0])
        return np.inf if m < 0 else m * log(m) - m if m else 0.0

    def entropy(self) -> float:
        """Return the entropy: the sum over all counts that matter, or its expansion in 1 / rate for large rates."""
        rate = self.rate
        if rate >= 1e4:
            return 0.5 * (log(2.0 * np.pi * rate) + 1.0) - 1.0 / (12.0 * rate) - 1.0 / (24.0 * rate**2)
        logs = self.log_prob(np.arange(np.ceil(rate + 40.0 * rate**0.5 + 40.0)))
        return -float(np.exp(logs) @ logs)

    def _realisable(self, mu: Array) -> bool:
        return bool(mu[0] > 0)

    def _to_natural(self, mu: Array) -> Array:
        return np.log(mu)

    def _prior_parameters(self, chi: Array, nu: float) -> Gamma:
        return Gamma(float(chi[0]), nu)

    def __repr__(self) -> str:
        return f"Poisson(rate={self.rate:g})"


def _finite(family: ExponentialFamily, eta: Array) -> Array:
    if not np.isfinite(eta).all():
        raise InvalidArgument(f"{family!r} is a limit of its family and has no finite natural parameters")
    return eta


def _sigmoid(eta: Array) -> Array:
    return np.exp(-np.logaddexp(0.0, -eta))


def _log_softmax(eta: Array) -> Array:
    full = np.append(eta, 0.0)
    return np.asarray(full - np.logaddexp.reduce(full))


def _counts_covariance(n: int, p: Array) -> Array:
    return np.asarray(n * (np.diag(p) - np.outer(p, p)))


def _negative_entropy(p: Array) -> float:
    if not np.all(p >= 0):
        return np.inf
    held = p[p > 0]
    return float((held * np.log(held)).sum())


def _divergence(ours: Array, theirs: Array) -> float:
    """Return sum_k p_k log(p_k / q_k) from the logarithms."""
    held = ~np.isneginf(ours)
    return max(0.0, float(np.exp(ours[held]) @ (ours[held] - theirs[held])))
