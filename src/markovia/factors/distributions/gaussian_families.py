"""Gaussians of one number as exponential families, with unknown and with known variance, and the normal-gamma prior.

    Gaussian       eta = (m/v, -1/(2v))     T = (x, x^2)    A = m^2/(2v) + log(v)/2
    known variance eta = m/v                T = x           A = v eta^2 / 2

with h = (2 pi)^(-1/2) (times exp(-x^2/(2v)) / sqrt(v) for known variance). In natural parameters
A = -eta1^2 / (4 eta2) - log(-2 eta2) / 2. Log densities are computed from mean and variance, which loses no digits when the
mean is large.
"""

from math import lgamma, log, log1p, pi
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.factors.distributions.checked_numbers import as_numbers, draws, finite_numbers, number, positive
from markovia.factors.distributions.conjugate_priors import ConjugatePrior, StudentT
from markovia.factors.distributions.exponential_family import (
    ExponentialFamily,
    FittedFamily,
    average_statistics,
    only_known,
    weighted,
)
from markovia.runtime.array_types import Array
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks


class Gaussian(FittedFamily):
    """The Gaussian with a mean and a variance.

    Examples
    --------
    >>> g = Gaussian(mean=1.0, var=4.0)
    >>> g.natural().tolist(), g.moments().tolist()
    ([0.25, -0.125], [1.0, 5.0])
    >>> Gaussian.fit([1.0, 2.0, 3.0])
    Gaussian(mean=2, var=0.666667)
    >>> Gaussian(0, 9) + Gaussian(1, 16)
    Gaussian(mean=1, var=25)
    """

    _mean_space = "E[x^2] must be above E[x]^2"

    def __init__(self, mean: float = 0.0, var: float = 1.0) -> None:
        self._m = number(mean, "the mean")
        self._v = positive(var, "the variance of a Gaussian")

    @classmethod
    def conjugate_prior(
        cls, mean: float = 0.0, kappa: float = 1.0, shape: float = 1.0, rate: float = 1.0
    ) -> "NormalGamma":
        """Return the normal-gamma prior of mean and precision."""
        return NormalGamma(mean, kappa, shape, rate)

    def natural(self) -> Array:
        """Return (m / v, -1 / (2 v))."""
        return np.array([self._m / self._v, -0.5 / self._v])

    def with_natural(self, eta: ArrayLike) -> Self:
        """Return the member with the given natural parameters; the second is negative."""
        a, b = self._eta(eta).tolist()
        if not b < 0:
            raise InvalidArgument(f"the second natural parameter of a Gaussian is negative, not {b}")
        return type(self)(-0.5 * a / b, -0.5 / b)

    def with_moments(self, mu: ArrayLike) -> Self:
        """Return the member with E[x] and E[x^2]."""
        m = self._mu(mu)
        self.natural_from_moments(m)
        return type(self)(float(m[0]), float(m[1] - m[0] ** 2))

    def log_partition(self, eta: ArrayLike | None = None) -> float:
        """Return -eta1^2 / (4 eta2) - log(-2 eta2) / 2."""
        a, b = self._eta(eta).tolist()
        return -0.25 * a * a / b - 0.5 * log(-2.0 * b) if b < 0 else np.inf

    def moments(self, eta: ArrayLike | None = None) -> Array:
        """Return (E[x], E[x^2])."""
        m, v = self._mean_and_variance(eta)
        return np.array([m, m * m + v])

    def covariance(self, eta: ArrayLike | None = None) -> Array:
        """Return the covariance of (x, x^2)."""
        m, v = self._mean_and_variance(eta)
        return np.array([[v, 2.0 * m * v], [2.0 * m * v, 4.0 * m * m * v + 2.0 * v * v]])

    def sufficient_statistics(self, x: Any) -> Array:
        """Return (x, x^2)."""
        x = as_numbers(x, "a value")
        with np.errstate(over="ignore"):
            return np.stack([x, x * x], axis=-1)

    def log_base_measure(self, x: Any) -> Any:
        """Return -log(2 pi) / 2."""
        x = as_numbers(x, "a value")
        return np.where(np.isfinite(x), -0.5 * log(2.0 * pi), -np.inf)[()]

    def log_prob(self, x: Any) -> Any:
        """Return the log density."""
        x = as_numbers(x, "a value")
        return (-0.5 * (x - self._m) ** 2 / self._v - 0.5 * log(2.0 * pi * self._v))[()]

    def sample(self, n: int, seed: Seed = None) -> Array:
        """Draw n values."""
        return generator(seed).normal(self._m, self._v**0.5, draws(n))

    @property
    def mean(self) -> float:
        """The mean."""
        return self._m

    @property
    def variance(self) -> float:
        """The variance."""
        return self._v

    def entropy(self) -> float:
        """Return log(2 pi e v) / 2."""
        return 0.5 * (log(2.0 * pi * self._v) + 1.0)

    def kl(self, other: ExponentialFamily) -> float:
        """Return KL(self || other) from means and variances, which loses no digits when the means are large."""
        self._same_family(other)
        ratio = self._v / float(other.variance) - 1.0
        gap = (self._m - float(other.mean)) ** 2 / float(other.variance)
        return max(0.0, 0.5 * (gap + ratio - log1p(ratio)))

    def __add__(self, other: "Gaussian") -> "Gaussian":
        """Return the distribution of the sum of two independent Gaussians."""
        if not isinstance(other, Gaussian):
            return NotImplemented
        return Gaussian(self._m + other._m, self._v + other._v)

    def _mean_and_variance(self, eta: ArrayLike | None) -> tuple[float, float]:
        if eta is None:
            return self._m, self._v
        a, b = self._eta(eta).tolist()
        return -0.5 * a / b, -0.5 / b

    def _expected_log_base(self) -> float:
        return -0.5 * log(2.0 * pi)

    def _realisable(self, mu: Array) -> bool:
        return bool(mu[1] > mu[0] ** 2)

    def _prior_log_normaliser(self, chi: Array, nu: float) -> float:
        # a normal-gamma with kappa = nu and shape (nu + 3) / 2; the Jacobian is tau / 2
        shape, rate = 0.5 * (nu + 3.0), 0.5 * float(chi[1] - chi[0] ** 2 / nu)
        return 0.5 * log(2.0 * pi / nu) + lgamma(shape) - shape * log(rate) - log(2.0)

    def _to_natural(self, mu: Array) -> Array:
        v = mu[1] - mu[0] ** 2
        return np.array([mu[0] / v, -0.5 / v])

    @classmethod
    def fit(cls, x: ArrayLike, weights: ArrayLike | None = None, **structure: Any) -> Self:
        """Return the maximum-likelihood member: average and variance (divided by n), computed around the average."""
        data = as_numbers(x, "the data")
        centre = float(data.ravel()[0]) if data.size and np.isfinite(data.ravel()[0]) else 0.0
        only_known(cls, structure)
        average = average_statistics(cls(), data - centre, weights)
        if np.isfinite(average).all() and not average[1] > average[0] ** 2:
            raise InvalidArgument("the data do not vary, and a Gaussian needs a positive variance")
        moved = cls().with_moments(average)
        return cls(moved._m + centre, moved._v)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mean={self._m:g}, var={self._v:g})"


class GaussianKnownVariance(Gaussian):
    """The Gaussian whose variance is known: a family with one parameter, conjugate to a Gaussian prior of its mean.

    Examples
    --------
    >>> prior = GaussianKnownVariance.conjugate_prior(var=1.0, prior_mean=0.0, prior_var=1.0)
    >>> prior.posterior([2.0, 4.0]).parameters
    Gaussian(mean=2, var=0.333333)
    """

    _mean_space = "it must be a finite number"
    _structures = ("var",)

    @classmethod
    def conjugate_prior(  # type: ignore[override]
        cls, var: float, prior_mean: float = 0.0, prior_var: float = 1.0
    ) -> ConjugatePrior:
        """Return the Gaussian prior of the mean; `var` is the known variance of the data."""
        nu = positive(var, "the known variance") / positive(prior_var, "the prior variance")
        return ConjugatePrior(cls(0.0, var), [number(prior_mean, "the prior mean") * nu], nu)

    def natural(self) -> Array:
        """Return m / v."""
        return np.array([self._m / self._v])

    def with_natural(self, eta: ArrayLike) -> Self:
        """Return the member with the given natural parameter and the same variance."""
        return type(self)(float(self._eta(eta)[0]) * self._v, self._v)

    def with_moments(self, mu: ArrayLike) -> Self:
        """Return the member with the given mean and the same variance."""
        return type(self)(float(self._mu(mu)[0]), self._v)

    def log_partition(self, eta: ArrayLike | None = None) -> float:
        """Return v eta^2 / 2."""
        return 0.5 * self._v * float(self._eta(eta)[0]) ** 2

    def moments(self, eta: ArrayLike | None = None) -> Array:
        """Return the mean."""
        return self._v * self._eta(eta)

    def covariance(self, eta: ArrayLike | None = None) -> Array:
        """Return the variance."""
        return np.array([[self._v]])

    def sufficient_statistics(self, x: Any) -> Array:
        """Return x."""
        return FittedFamily.sufficient_statistics(self, x)

    def log_base_measure(self, x: Any) -> Any:
        """Return the log density of a Gaussian of mean 0."""
        x = as_numbers(x, "a value")
        with np.errstate(invalid="ignore", over="ignore"):
            logs = -0.5 * x * x / self._v - 0.5 * log(2.0 * pi * self._v)
        return np.where(np.isnan(x), -np.inf, logs)[()]

    def _expected_log_base(self) -> float:
        return -0.5 * (self._m**2 + self._v) / self._v - 0.5 * log(2.0 * pi * self._v)

    def _realisable(self, mu: Array) -> bool:
        return True

    def _prior_parameters(self, chi: Array, nu: float) -> Gaussian:
        return Gaussian(float(chi[0]) / nu, self._v / nu)

    def _prior_log_normaliser(self, chi: Array, nu: float) -> float:
        spread = nu * self._v
        return 0.5 * log(2.0 * pi / spread) + float(chi[0]) ** 2 / (2.0 * spread)

    def _with_parameter(self, value: Any) -> Self:
        return type(self)(float(value), self._v)

    def _to_natural(self, mu: Array) -> Array:
        return mu / self._v

    def _structure(self) -> tuple[Any, ...]:
        return (self._v,)

    @classmethod
    def fit(
        cls, x: ArrayLike, weights: ArrayLike | None = None, *, var: float = 1.0, **structure: Any
    ) -> Self:
        """Return the maximum-likelihood member for a known variance: the average."""
        only_known(cls, structure)
        shape = cls(0.0, var)
        return shape.with_moments(average_statistics(shape, as_numbers(x, "the data"), weights))


class NormalGamma(InNotebooks):
    """The prior of a Gaussian's mean and precision: tau ~ Gamma(shape, rate), mean ~ N(mean, 1 / (kappa tau)).

    Examples
    --------
    >>> post = NormalGamma(mean=0, kappa=1, shape=2, rate=2).posterior([1.0, 3.0])
    >>> post
    NormalGamma(mean=1.33333, kappa=3, shape=3, rate=4.33333)
    >>> post.predictive().dof
    6.0
    """

    def __init__(self, mean: float = 0.0, kappa: float = 1.0, shape: float = 1.0, rate: float = 1.0) -> None:
        self.location = number(mean, "the mean")
        self.kappa, self.shape, self.rate = (
            positive(v, n) for v, n in ((kappa, "kappa"), (shape, "shape"), (rate, "rate"))
        )

    def posterior(self, x: ArrayLike, weights: ArrayLike | None = None) -> "NormalGamma":
        """Return the distribution after seeing numbers."""
        data = np.atleast_1d(finite_numbers(x, "the data"))
        if data.ndim != 1:
            raise InvalidArgument(f"the data are one column of numbers, not shape {data.shape}")
        held = weighted(data.size, weights)
        n = float(held.sum())
        if not n:
            return self
        average = float(held @ data) / n
        scatter = float(held @ (data - average) ** 2)
        kappa = self.kappa + n
        shift = self.kappa * n * (average - self.location) ** 2 / (2.0 * kappa)
        return NormalGamma(
            (self.kappa * self.location + n * average) / kappa,
            kappa,
            self.shape + 0.5 * n,
            self.rate + 0.5 * scatter + shift,
        )

    def log_prob(self, mean: float, precision: float) -> float:
        """Return the log density of a mean and a precision."""
        if not precision > 0:
            return -np.inf
        gamma = (
            self.shape * log(self.rate)
            - lgamma(self.shape)
            + (self.shape - 1.0) * log(precision)
            - self.rate * precision
        )
        spread = self.kappa * precision
        return gamma + 0.5 * log(spread / (2.0 * pi)) - 0.5 * spread * (mean - self.location) ** 2

    def log_evidence(self, x: ArrayLike, weights: ArrayLike | None = None) -> float:
        """Return the log probability of the data with the parameters averaged out."""
        after = self.posterior(x, weights)
        n = 2.0 * (after.shape - self.shape)
        return after._log_normaliser() - self._log_normaliser() - 0.5 * n * log(2.0 * pi)

    def _log_normaliser(self) -> float:
        return lgamma(self.shape) - self.shape * log(self.rate) - 0.5 * log(self.kappa)

    def predictive(self) -> StudentT:
        """Return the distribution of the next observation: a Student t."""
        scale = self.rate * (self.kappa + 1.0) / (self.shape * self.kappa)
        return StudentT(2.0 * self.shape, [self.location], [[scale]])

    def sample(self, n: int, seed: Seed = None) -> list[Gaussian]:
        """Draw n Gaussians."""
        rng = generator(seed)
        precision = rng.gamma(self.shape, 1.0 / self.rate, draws(n))
        means = rng.normal(self.location, 1.0 / np.sqrt(self.kappa * precision))
        return [Gaussian(float(m), 1.0 / float(t)) for m, t in zip(means, precision, strict=True)]

    def __repr__(self) -> str:
        return f"NormalGamma(mean={self.location:g}, kappa={self.kappa:g}, shape={self.shape:g}, rate={self.rate:g})"
