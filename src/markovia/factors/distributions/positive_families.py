"""Exponential families of positive numbers and of probabilities: exponential, gamma, beta, Dirichlet.

    exponential  eta = -rate                 T = x                   A = -log(-eta)
    gamma        eta = (shape - 1, -rate)    T = (log x, x)          A = log Gamma(shape) - shape log rate
    beta         eta = (a - 1, b - 1)        T = (log x, log(1-x))   A = log B(a, b)
    Dirichlet    eta = alpha - 1             T = log x               A = sum log Gamma(alpha_k) - log Gamma(sum alpha)

The base measure is 1 on the support (for the Dirichlet: Lebesgue measure on all coordinates but the last). Mean to natural
parameters is a Newton iteration for the last three; Minka (2000), Estimating a Dirichlet distribution.
"""

from math import log
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.factors.distributions.checked_numbers import (
    as_numbers,
    concentrations,
    draws,
    positive,
    vectors,
)
from markovia.factors.distributions.conjugate_priors import ConjugatePrior
from markovia.factors.distributions.exponential_family import (
    FittedFamily,
    newton_to_natural,
    total_statistics,
    weighted,
)
from markovia.runtime.array_types import Array
from markovia.runtime.seeds import Seed, generator

NARROW = 1e-8
"""Relative variance below which the fit by mean and variance is the likeliest one to eight digits."""


def _mean_and_variance(data: Array, weights: ArrayLike | None) -> tuple[float, float]:
    held = weighted(data.size, weights)
    mean = float(np.average(data, weights=held))
    return mean, float(np.average((data - mean) ** 2, weights=held))


def _refuse_equal(variance: float, mean: float, family: str) -> None:
    if variance <= (4e-16 * mean) ** 2:
        raise InvalidArgument(
            f"all values are equal, so the likeliest {family} is a point and has no density"
        )


class Exponential(FittedFamily):
    """Waiting times with mean `1 / rate`.

    Examples
    --------
    >>> wait = Exponential(rate=2.0)
    >>> wait.natural().tolist(), wait.moments().tolist(), wait.covariance().tolist()
    ([-2.0], [0.5], [[0.25]])
    """

    _mean_space = "the mean must be positive"

    def __init__(self, rate: float = 1.0) -> None:
        self.rate = positive(rate, "the rate of an Exponential")

    @classmethod
    def conjugate_prior(cls, shape: float = 1.0, rate: float = 1.0) -> ConjugatePrior:
        """Return the Gamma(shape, rate) prior of the rate."""
        return ConjugatePrior(cls(), [positive(rate, "rate")], positive(shape, "shape") - 1.0)

    def natural(self) -> Array:
        """Return minus the rate."""
        return np.array([-self.rate])

    def with_natural(self, eta: ArrayLike) -> Self:
        """Return the member with the given (negative) natural parameter."""
        at = float(self._eta(eta)[0])
        if not at < 0:
            raise InvalidArgument(f"the natural parameter of an Exponential is negative, not {at}")
        return type(self)(-at)

    def log_partition(self, eta: ArrayLike | None = None) -> float:
        """Return -log(-eta); infinite for eta >= 0."""
        at = float(self._eta(eta)[0])
        return -log(-at) if at < 0 else np.inf

    def moments(self, eta: ArrayLike | None = None) -> Array:
        """Return -1 / eta."""
        return -1.0 / self._eta(eta)

    def covariance(self, eta: ArrayLike | None = None) -> Array:
        """Return 1 / eta^2."""
        return np.asarray(self._eta(eta) ** -2.0).reshape(1, 1)

    def log_base_measure(self, x: Any) -> Any:
        """Return 0 for finite x >= 0, minus infinity elsewhere."""
        x = as_numbers(x, "a value")
        return np.where((x >= 0) & (x < np.inf), 0.0, -np.inf)[()]

    def sample(self, n: int, seed: Seed = None) -> Array:
        """Draw n times."""
        return generator(seed).exponential(1.0 / self.rate, draws(n))

    @property
    def mean(self) -> float:
        """`1 / rate`."""
        return 1.0 / self.rate

    @property
    def variance(self) -> float:
        """`1 / rate^2`."""
        return 1.0 / self.rate**2

    def _realisable(self, mu: Array) -> bool:
        return bool(mu[0] > 0)

    def _to_natural(self, mu: Array) -> Array:
        return -1.0 / mu

    def _proper(self, chi: Array, nu: float) -> bool:
        return nu > -1 and bool(chi[0] > 0)

    def _prior_parameters(self, chi: Array, nu: float) -> "Gamma":
        return Gamma(nu + 1.0, float(chi[0]))

    def __repr__(self) -> str:
        return f"Exponential(rate={self.rate:g})"


class Gamma(FittedFamily):
    """Positive numbers with `shape` and `rate`; the mean is `shape / rate`.

    Examples
    --------
    >>> g = Gamma(shape=3.0, rate=2.0)
    >>> g.mean, g.variance
    (1.5, 0.75)
    >>> back = Gamma().with_moments(g.moments())
    >>> round(back.shape, 9), round(back.rate, 9)
    (3.0, 2.0)
    """

    _mean_space = "E[x] must be positive and E[log x] below log E[x]"

    def __init__(self, shape: float = 1.0, rate: float = 1.0) -> None:
        self.shape = positive(shape, "the shape of a Gamma")
        self.rate = positive(rate, "the rate of a Gamma")

    def _narrow(self, data: Array, weights: ArrayLike | None) -> Self | None:
        mean, variance = _mean_and_variance(data, weights)
        if variance >= NARROW * mean**2:
            return None
        _refuse_equal(variance, mean, "Gamma")
        return type(self)(mean**2 / variance, mean / variance)

    @classmethod
    def conjugate_prior(cls, x: ArrayLike, weights: ArrayLike | None = None) -> ConjugatePrior:
        """Return the prior that counts pseudo-observations x; it has no closed normaliser.

        Examples
        --------
        >>> Gamma.conjugate_prior([1.0, 3.0]).posterior([2.0]).mode(), Gamma.fit([1.0, 3.0, 2.0])
        (Gamma(shape=5.37521, rate=2.6876), Gamma(shape=5.37521, rate=2.6876))
        """
        data = as_numbers(x, "the pseudo-observations")
        shape = cls._template(data)
        return ConjugatePrior(shape, *total_statistics(shape, data, weights))

    def natural(self) -> Array:
        """Return (shape - 1, -rate)."""
        return np.array([self.shape - 1.0, -self.rate])

    def with_natural(self, eta: ArrayLike) -> Self:
        """Return the member with natural parameters above -1 and below 0."""
        a, b = self._eta(eta).tolist()
        if not (a > -1 and b < 0):
            raise InvalidArgument(
                f"the natural parameters of a Gamma are above -1 and below 0, not {a} and {b}"
            )
        return type(self)(a + 1.0, -b)

    def log_partition(self, eta: ArrayLike | None = None) -> float:
        """Return log Gamma(shape) - shape log rate."""
        from scipy.special import gammaln

        a, b = self._usual(eta)
        return float(gammaln(a) - a * np.log(b)) if a > 0 and b > 0 else np.inf

    def moments(self, eta: ArrayLike | None = None) -> Array:
        """Return (digamma(shape) - log rate, shape / rate)."""
        from scipy.special import psi

        a, b = self._usual(eta)
        return np.array([psi(a) - np.log(b), a / b])

    def covariance(self, eta: ArrayLike | None = None) -> Array:
        """Return the covariance of (log x, x)."""
        from scipy.special import polygamma

        a, b = self._usual(eta)
        return np.array([[polygamma(1, a), 1.0 / b], [1.0 / b, a / b**2]])

    def _usual(self, eta: ArrayLike | None) -> tuple[float, float]:
        """Return shape and rate; a small shape is not taken through shape - 1, which would cost its digits."""
        if eta is None:
            return self.shape, self.rate
        a, b = self._eta(eta).tolist()
        return a + 1.0, -b

    def sufficient_statistics(self, x: Any) -> Array:
        """Return (log x, x)."""
        x = as_numbers(x, "a value")
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.stack([np.log(x), x], axis=-1)

    def log_base_measure(self, x: Any) -> Any:
        """Return 0 for finite x > 0, minus infinity elsewhere."""
        x = as_numbers(x, "a value")
        return np.where((x > 0) & (x < np.inf), 0.0, -np.inf)[()]

    def sample(self, n: int, seed: Seed = None) -> Array:
        """Draw n values."""
        return generator(seed).gamma(self.shape, 1.0 / self.rate, draws(n))

    @property
    def mean(self) -> float:
        """`shape / rate`."""
        return self.shape / self.rate

    @property
    def variance(self) -> float:
        """`shape / rate^2`."""
        return self.shape / self.rate**2

    def _realisable(self, mu: Array) -> bool:
        return bool(mu[1] > 0 and mu[0] < np.log(mu[1]))

    def _to_natural(self, mu: Array) -> Array:
        """Newton on 1/shape for log(shape) - digamma(shape) = log E[x] - E[log x] (Minka 2002)."""
        from scipy.special import polygamma, psi

        gap = float(np.log(mu[1]) - mu[0])
        shape = (3.0 - gap + np.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)
        for _ in range(100):
            change = (np.log(shape) - psi(shape) - gap) / (shape**2 * (1.0 / shape - polygamma(1, shape)))
            new = 1.0 / (1.0 / shape + change)
            new = new if new > 0 else shape / 2.0
            done = abs(new - shape) <= 1e-15 * shape
            shape = new
            if done:
                break
        return np.array([shape - 1.0, -shape / mu[1]])

    def __repr__(self) -> str:
        return f"Gamma(shape={self.shape:g}, rate={self.rate:g})"


class Dirichlet(FittedFamily):
    """Probability vectors with concentrations alpha.

    Examples
    --------
    >>> d = Dirichlet([2, 3, 4])
    >>> round(float(d.prob([0.2, 0.3, 0.5])), 6)
    7.56
    >>> Dirichlet([1, 1, 1]).with_moments(d.moments()).concentration.round(9).tolist()
    [2.0, 3.0, 4.0]
    """

    _mean_space = "the exponentials of the mean logarithms must sum to less than one"

    def __init__(self, concentration: ArrayLike) -> None:
        self.concentration = concentrations(concentration, type(self).__name__)

    @classmethod
    def conjugate_prior(cls, x: ArrayLike, weights: ArrayLike | None = None) -> ConjugatePrior:
        """Return the prior that counts pseudo-observations x; it has no closed normaliser.

        Examples
        --------
        >>> Beta.conjugate_prior([0.2, 0.7], weights=[0.5, 0.5]).nu
        1.0
        """
        data = as_numbers(x, "the pseudo-observations")
        shape = cls._template(data)
        return ConjugatePrior(shape, *total_statistics(shape, data, weights))

    def natural(self) -> Array:
        """Return alpha - 1."""
        return self.concentration - 1.0

    def with_natural(self, eta: ArrayLike) -> Self:
        """Return the member with natural parameters above -1."""
        at = self._eta(eta)
        if not np.all(at > -1):
            raise InvalidArgument(
                f"the natural parameters of a {type(self).__name__} are above -1, not {at.tolist()}"
            )
        return self._made(at + 1.0)

    def _made(self, alpha: Array) -> Self:
        return type(self)(alpha)

    def _usual(self, eta: ArrayLike | None) -> Array:
        """Return the concentrations; small ones are not taken through alpha - 1, which would cost their digits."""
        return self.concentration if eta is None else self._eta(eta) + 1.0

    def log_partition(self, eta: ArrayLike | None = None) -> float:
        """Return sum log Gamma(alpha_k) - log Gamma(sum alpha)."""
        from scipy.special import gammaln

        alpha = self._usual(eta)
        return float(gammaln(alpha).sum() - gammaln(alpha.sum())) if np.all(alpha > 0) else np.inf

    def moments(self, eta: ArrayLike | None = None) -> Array:
        """Return E[log x_k] = digamma(alpha_k) - digamma(sum alpha)."""
        from scipy.special import psi

        alpha = self._usual(eta)
        return np.asarray(psi(alpha) - psi(alpha.sum()))

    def covariance(self, eta: ArrayLike | None = None) -> Array:
        """Return the covariance of log x."""
        from scipy.special import polygamma

        alpha = self._usual(eta)
        return np.asarray(np.diag(polygamma(1, alpha)) - polygamma(1, alpha.sum()))

    def sufficient_statistics(self, x: Any) -> Array:
        """Return log x."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(vectors(x, self.concentration.size, "a point"))

    def log_base_measure(self, x: Any) -> Any:
        """Return 0 inside the simplex, minus infinity elsewhere and on its boundary."""
        p = vectors(x, self.concentration.size, "a point")
        return np.where((p > 0).all(axis=-1) & (np.abs(p.sum(axis=-1) - 1.0) < 1e-9), 0.0, -np.inf)[()]

    def log_prob(self, x: Any) -> Any:
        """Return the log density of a probability vector, or of each row.

        On the boundary it is the limit: minus infinity where a zero meets a concentration above 1, infinity where it
        meets one below 1. Where both happen at once there is no limit, and minus infinity is returned, by the
        convention that zero times infinity is zero.
        """
        p = vectors(x, self.concentration.size, "a point")
        with np.errstate(invalid="ignore"):
            inside = (np.abs(p.sum(axis=-1) - 1.0) < 1e-9) & (p >= 0).all(axis=-1)
        return self._log_density(p, self.sufficient_statistics(x), inside)

    def _log_density(self, p: Array, logs: Array, inside: Any) -> Any:
        alpha = self.concentration
        vanishes = ((p == 0) & (alpha > 1.0)).any(axis=-1)
        kept = np.where((inside & ~vanishes)[..., None] & (alpha != 1.0), logs, 0.0)
        with np.errstate(over="ignore"):
            found = ((alpha - 1.0) * kept).sum(axis=-1) - self.log_partition()
        return np.where(inside & ~vanishes, found, -np.inf)[()]

    def sample(self, n: int, seed: Seed = None) -> Array:
        """Draw n probability vectors."""
        return generator(seed).dirichlet(self.concentration, draws(n))

    @property
    def mean(self) -> Any:
        """The normalised concentrations."""
        return np.asarray(self.concentration / self.concentration.sum())

    @property
    def variance(self) -> Any:
        """The variance of each coordinate."""
        return np.diag(self.covariance_matrix)

    @property
    def covariance_matrix(self) -> Array:
        """The covariance matrix of the coordinates."""
        m = self.concentration / self.concentration.sum()
        return np.asarray((np.diag(m) - np.outer(m, m)) / (self.concentration.sum() + 1.0))

    def _realisable(self, mu: Array) -> bool:
        return bool(np.all(mu < 0.0) and np.exp(mu).sum() < 1.0)

    def _start(self, mu: Array) -> Array:
        """Match the large-concentration expansion: sum exp(mu_k) is about 1 - (K - 1) / (2 sum alpha)."""
        g = np.exp(mu)
        share = np.maximum(g / g.sum(), 1e-8)
        total = max((mu.size - 1) / (2.0 * (1.0 - g.sum())), 1e-3)
        return np.asarray(total * share / share.sum() - 1.0)

    def _to_natural(self, mu: Array) -> Array:
        """Take a few fixed-point sweeps digamma(alpha_k) = mu_k + digamma(sum alpha), then Newton's method."""
        from scipy.special import psi

        alpha = self._start(mu) + 1.0
        for _ in range(10):
            alpha = _inverse_digamma(mu + psi(alpha.sum()))
        return newton_to_natural(self, mu, alpha - 1.0)

    @classmethod
    def _template(cls, data: Array, **structure: Any) -> Self:
        rows = np.atleast_2d(data)
        if rows.ndim != 2 or not rows.size:
            raise InvalidArgument("a Dirichlet is fitted to rows of probabilities")
        return cls(np.ones(rows.shape[1]), **structure)

    def __repr__(self) -> str:
        return f"Dirichlet(concentration={np.round(self.concentration, 6).tolist()})"


class Beta(Dirichlet):
    """Numbers between 0 and 1 with parameters a and b: a Dirichlet of two, on its first coordinate.

    Examples
    --------
    >>> b = Beta(2.0, 3.0)
    >>> b.mean, b.variance
    (0.4, 0.04)
    >>> round(float(b.prob(0.5)), 6)
    1.5
    """

    _mean_space = "exp E[log x] + exp E[log(1 - x)] must be below one"

    def __init__(self, a: float = 1.0, b: float = 1.0) -> None:
        self.a, self.b = positive(a, "a"), positive(b, "b")
        super().__init__(np.array([self.a, self.b]))

    def _narrow(self, data: Array, weights: ArrayLike | None) -> Self | None:
        mean, variance = _mean_and_variance(data, weights)
        if variance >= NARROW * mean * (1.0 - mean):
            return None
        _refuse_equal(variance, mean, "Beta")
        size = mean * (1.0 - mean) / variance - 1.0
        return type(self)(mean * size, (1.0 - mean) * size)

    def _made(self, alpha: Array) -> Self:
        return type(self)(float(alpha[0]), float(alpha[1]))

    def sufficient_statistics(self, x: Any) -> Array:
        """Return (log x, log(1 - x))."""
        x = as_numbers(x, "a value")
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.stack([np.log(x), np.log1p(-x)], axis=-1)

    def log_base_measure(self, x: Any) -> Any:
        """Return 0 strictly between 0 and 1, minus infinity elsewhere."""
        x = as_numbers(x, "a value")
        return np.where((x > 0) & (x < 1), 0.0, -np.inf)[()]

    def log_prob(self, x: Any) -> Any:
        """Return the log density on [0, 1], on its ends the limit; minus infinity outside."""
        x = as_numbers(x, "a value")
        return self._log_density(
            np.stack([x, 1.0 - x], axis=-1), self.sufficient_statistics(x), (x >= 0) & (x <= 1)
        )

    def sample(self, n: int, seed: Seed = None) -> Array:
        """Draw n values."""
        return generator(seed).beta(self.a, self.b, draws(n))

    @property
    def mean(self) -> float:
        """`a / (a + b)`."""
        return self.a / (self.a + self.b)

    @property
    def variance(self) -> float:
        """`a b / ((a + b)^2 (a + b + 1))`."""
        total = self.a + self.b
        return self.a * self.b / (total**2 * (total + 1.0))

    @classmethod
    def _template(cls, data: Array, **structure: Any) -> Self:
        return cls(**structure)

    def __repr__(self) -> str:
        return f"Beta(a={self.a:g}, b={self.b:g})"


def _inverse_digamma(y: Array) -> Array:
    """Solve digamma(x) = y by Newton's method from Minka's start."""
    from scipy.special import polygamma, psi

    x = np.where(y >= -2.22, np.exp(np.minimum(y, 700.0)) + 0.5, -1.0 / (y + np.euler_gamma))
    for _ in range(6):
        x = np.maximum(x - (psi(x) - y) / polygamma(1, x), x / 4.0)
    return np.asarray(x)
