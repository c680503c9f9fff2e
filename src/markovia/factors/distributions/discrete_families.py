"""Exponential families of counts and labels: Bernoulli, categorical, multinomial, Poisson.

    Bernoulli    eta = log p/(1-p)           T = x                          A = log(1 + e^eta)         h = 1
    categorical  eta_k = log p_k/p_K         T = one-hot without the last   A = log(1 + sum e^eta_k)   h = 1
    multinomial  the same                    T = counts without the last    A = N log(1 + sum e^eta)   h = N!/prod x_k!
    Poisson      eta = log rate              T = x                          A = e^eta                  h = 1/x!

The categorical and the multinomial are written in their minimal form of K - 1 parameters. Probabilities of exactly 0 or 1
have infinite natural parameters and are refused; `markovia.distributions` has the plain distributions with those.
"""

from math import exp, log
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markovia.errors import InvalidArgument
from markovia.factors.distributions.conjugate_priors import ConjugatePrior
from markovia.factors.distributions.exponential_family import Fitted
from markovia.factors.distributions.standard import Array, as_numbers, draws, finite_numbers, vectors
from markovia.runtime.seeds import Seed, generator


def positive(value: object, what: str) -> float:
    """Return a finite positive number, or raise with the name of the parameter."""
    number = finite_numbers(value, what)  # type: ignore[arg-type]
    if number.ndim or not number > 0:
        raise InvalidArgument(f"{what} is a positive number, not {value!r}")
    return float(number)


class Bernoulli(Fitted):
    """One trial with success probability `probs`; values are 0 and 1.

    Examples
    --------
    >>> coin = Bernoulli(0.25)
    >>> coin.natural().round(6).tolist(), coin.mean().tolist()
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
        if p.ndim or not 0.0 < p < 1.0:
            raise InvalidArgument(
                f"Bernoulli needs 0 < probs < 1 (0 and 1 have no natural parameter), not {probs!r}"
            )
        self.probs = float(p)
        self._natural = np.array([log(self.probs) - np.log1p(-self.probs)])

    @classmethod
    def conjugate_prior(cls, a: float = 1.0, b: float = 1.0) -> ConjugatePrior:
        """Return the Beta(a, b) prior of the success probability."""
        a, b = positive(a, "a"), positive(b, "b")
        return ConjugatePrior(cls(), [a], a + b)

    def natural(self) -> Array:
        """Return the log odds."""
        return self._natural

    def with_natural(self, eta: ArrayLike) -> Self:
        """Return the member with the given log odds."""
        at = self._eta(eta)
        made = object.__new__(type(self))
        made._natural, made.probs = at, float(_sigmoid(at)[0])
        return made

    def log_partition(self, eta: ArrayLike | None = None) -> float:
        """Return log(1 + e^eta)."""
        return float(np.logaddexp(0.0, self._eta(eta)[0]))

    def mean(self, eta: ArrayLike | None = None) -> Array:
        """Return the success probability."""
        return _sigmoid(self._eta(eta))

    def covariance(self, eta: ArrayLike | None = None) -> Array:
        """Return p (1 - p)."""
        at = self._eta(eta)
        return np.asarray(_sigmoid(at) * _sigmoid(-at)).reshape(1, 1)

    def sufficient_statistics(self, x: Any) -> Array:
        """Return x."""
        return as_numbers(x, "a value")[..., None]

    def log_base_measure(self, x: Any) -> Any:
        """Return 0 for 0 and 1, minus infinity for anything else."""
        x = as_numbers(x, "a value")
        return np.where((x == 0) | (x == 1), 0.0, -np.inf)[()]

    def sample(self, n: int, seed: Seed = None) -> NDArray[np.int64]:
        """Draw n zeros and ones."""
        return (generator(seed).random(draws(n)) < self.probs).astype(np.int64)

    @property
    def expectation(self) -> float:
        """The success probability."""
        return self.probs

    @property
    def variance(self) -> float:
        """`p (1 - p)`."""
        return float(self.covariance()[0, 0])

    def conjugate_dual(self, mu: ArrayLike | None = None) -> float:
        """Return mu log mu + (1 - mu) log(1 - mu) on [0, 1], infinity elsewhere."""
        m = self.mean() if mu is None else self._mu(mu)
        return _negative_entropy(np.append(m, 1.0 - m))

    def _realisable(self, mu: Array) -> bool:
        return bool(0.0 < mu[0] < 1.0)

    def _to_natural(self, mu: Array) -> Array:
        return np.asarray(np.log(mu) - np.log1p(-mu))

    @classmethod
    def _template(cls, data: Array, **structure: Any) -> Self:
        return cls(**structure)

    def __repr__(self) -> str:
        return f"Bernoulli(probs={self.probs:g})"


class Multinomial(Fitted):
    """Counts of `total_count` independent draws from K categories, in the minimal form of K - 1 log odds.

    Examples
    --------
    >>> dice = Multinomial(3, [0.5, 0.25, 0.25])
    >>> round(float(dice.prob([2, 1, 0])), 6), dice.n_parameters
    (0.1875, 2)
    >>> dice.mean().tolist()
    [1.5, 0.75]
    """

    _mean_space = "every category needs a positive probability"

    def __init__(self, total_count: int, probs: ArrayLike) -> None:
        self.total_count = _whole(total_count)
        p = finite_numbers(probs, "probs")
        if p.ndim != 1 or p.size < 1 or not np.all(p > 0) or abs(p.sum() - 1.0) > 1e-6:
            raise InvalidArgument(
                f"{type(self).__name__} needs probabilities above 0 that sum to one "
                "(a probability of 0 has no natural parameter)"
            )
        p = p / p.sum()
        self._set(np.log(p[:-1]) - np.log(p[-1]), p)

    def _set(self, natural: Array, probs: Array) -> None:
        probs.setflags(write=False)
        self.probs, self._natural = probs, natural

    @classmethod
    def conjugate_prior(cls, total_count: int, concentration: ArrayLike) -> ConjugatePrior:
        """Return the Dirichlet prior of the probabilities."""
        alpha = _concentration(concentration)
        family = cls(total_count, np.full(alpha.size, 1.0 / alpha.size))
        if not family.total_count:
            raise InvalidArgument("counts of no draws say nothing: a conjugate prior needs total_count >= 1")
        return ConjugatePrior(family, alpha[:-1], float(alpha.sum()) / family.total_count)

    def natural(self) -> Array:
        """Return the log odds of the first K - 1 categories against the last."""
        return self._natural

    def with_natural(self, eta: ArrayLike) -> Self:
        """Return the member with the given log odds."""
        at = self._eta(eta)
        made = object.__new__(type(self))
        made.total_count = self.total_count
        made._set(at, _softmax(at))
        return made

    def log_partition(self, eta: ArrayLike | None = None) -> float:
        """Return N log(1 + sum_k e^eta_k)."""
        return self.total_count * float(np.logaddexp.reduce(np.append(self._eta(eta), 0.0)))

    def mean(self, eta: ArrayLike | None = None) -> Array:
        """Return N p without the last category."""
        return self.total_count * _softmax(self._eta(eta))[:-1]

    def covariance(self, eta: ArrayLike | None = None) -> Array:
        """Return N (diag p - p p') without the last category."""
        p = _softmax(self._eta(eta))[:-1]
        return np.asarray(self.total_count * (np.diag(p) - np.outer(p, p)))

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

    def sample(self, n: int, seed: Seed = None) -> NDArray[np.int64]:
        """Draw n rows of counts."""
        return generator(seed).multinomial(self.total_count, self.probs, size=draws(n))

    @property
    def expectation(self) -> Array:
        """`N p`."""
        return self.total_count * self.probs

    @property
    def variance(self) -> Array:
        """The covariance matrix `N (diag p - p p')` of all K counts."""
        return np.asarray(self.total_count * (np.diag(self.probs) - np.outer(self.probs, self.probs)))

    def conjugate_dual(self, mu: ArrayLike | None = None) -> float:
        """Return N sum_k p_k log p_k for mean counts of some p, infinity elsewhere."""
        m = (self.mean() if mu is None else self._mu(mu)) / max(1, self.total_count)
        return self.total_count * _negative_entropy(np.append(m, 1.0 - m.sum()))

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
    `markovia.Softmax` or `markovia.exponential.MarkovField`.

    Examples
    --------
    >>> weather = Categorical([0.2, 0.3, 0.5])
    >>> weather.n_parameters, weather.sufficient_statistics([0, 2]).tolist()
    (2, [[1.0, 0.0], [0.0, 0.0]])
    >>> Categorical.fit([0, 1, 1, 2]).probs.tolist()
    [0.25, 0.5, 0.25]
    """

    _structures = ("n_categories",)

    def __init__(self, probs: ArrayLike) -> None:
        super().__init__(1, probs)

    @classmethod
    def conjugate_prior(cls, concentration: ArrayLike) -> ConjugatePrior:  # type: ignore[override]
        """Return the Dirichlet prior of the probabilities."""
        alpha = _concentration(concentration)
        return ConjugatePrior(cls(np.full(alpha.size, 1.0 / alpha.size)), alpha[:-1], float(alpha.sum()))

    def sufficient_statistics(self, x: Any) -> Array:
        """Return the one-hot vector without its last entry."""
        x = as_numbers(x, "a value")
        return np.asarray(x[..., None] == np.arange(self.probs.size - 1), dtype=np.float64)

    def log_base_measure(self, x: Any) -> Any:
        """Return 0 for 0 ... K-1, minus infinity for anything else."""
        x = as_numbers(x, "a value")
        return np.where((x == np.floor(x)) & (x >= 0) & (x < self.probs.size), 0.0, -np.inf)[()]

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
        k = int(top) + 1 if n_categories is None else max(_whole(n_categories), 1)
        return cls(np.full(k, 1.0 / k))

    def __repr__(self) -> str:
        return f"Categorical(probs={np.round(self.probs, 6).tolist()})"


class Poisson(Fitted):
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

    def mean(self, eta: ArrayLike | None = None) -> Array:
        """Return the rate."""
        return np.exp(self._eta(eta))

    def covariance(self, eta: ArrayLike | None = None) -> Array:
        """Return the rate."""
        return np.exp(self._eta(eta)).reshape(1, 1)

    def sufficient_statistics(self, x: Any) -> Array:
        """Return x."""
        return as_numbers(x, "a value")[..., None]

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
    def expectation(self) -> float:
        """The rate."""
        return self.rate

    @property
    def variance(self) -> float:
        """The rate."""
        return self.rate

    def conjugate_dual(self, mu: ArrayLike | None = None) -> float:
        """Return mu log mu - mu for mu >= 0, infinity elsewhere."""
        m = float((self.mean() if mu is None else self._mu(mu))[0])
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

    @classmethod
    def _template(cls, data: Array, **structure: Any) -> Self:
        return cls(**structure)

    def __repr__(self) -> str:
        return f"Poisson(rate={self.rate:g})"


def _sigmoid(eta: Array) -> Array:
    return np.exp(-np.logaddexp(0.0, -eta))


def _softmax(eta: Array) -> Array:
    full = np.append(eta, 0.0)
    weights = np.exp(full - full.max())
    return np.asarray(weights / weights.sum())


def _negative_entropy(p: Array) -> float:
    if not np.all(p >= 0):
        return np.inf
    held = p[p > 0]
    return float((held * np.log(held)).sum())


def _concentration(values: ArrayLike) -> Array:
    alpha = finite_numbers(values, "the concentration")
    if alpha.ndim != 1 or not alpha.size or not np.all(alpha > 0):
        raise InvalidArgument("a Dirichlet prior needs a vector of positive concentrations")
    return alpha


def _whole(n: object) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise InvalidArgument(f"a number of draws or categories is a whole number >= 0, not {n!r}")
    return int(n)
