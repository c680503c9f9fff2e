"""Gaussians as exponential families: one number, one number of known variance, and vectors.

    Gaussian       eta = (m/v, -1/(2v))                 T = (x, x^2)        A = m^2/(2v) + log(v)/2
    known variance eta = m/v                            T = x               A = v eta^2 / 2
    multivariate   eta = (S^-1 m, -vec(S^-1)/2)         T = (x, vec(x x'))  A = m'S^-1 m/2 + log|S|/2

with h = (2 pi)^(-k/2) (times exp(-x^2/(2v)) / sqrt(v) for known variance). In natural parameters
A = -eta1' eta2^-1 eta1 / 4 - log|-2 eta2| / 2. The multivariate form has k + k^2 numbers for k + k (k + 1) / 2 free ones:
vec(x x') names every product twice, so it is overcomplete, and the matrix part of eta must be symmetric.
Log densities are computed from mean and variance, which loses no digits when the mean is large.
"""

from math import log, log1p, pi
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.factors.distributions.conjugate_priors import ConjugatePrior, NormalGamma, NormalInverseWishart
from markovia.factors.distributions.discrete_families import positive
from markovia.factors.distributions.exponential_family import (
    ExponentialFamily,
    Fitted,
    average_statistics,
    only_known,
)
from markovia.factors.distributions.standard import Array, as_numbers, draws, finite_numbers, vectors
from markovia.runtime.seeds import Seed, generator


class Gaussian(Fitted):
    """The Gaussian with a mean and a variance.

    Examples
    --------
    >>> g = Gaussian(mean=1.0, var=4.0)
    >>> g.natural().tolist(), g.mean().tolist()
    ([0.25, -0.125], [1.0, 5.0])
    >>> Gaussian.fit([1.0, 2.0, 3.0])
    Gaussian(mean=2, var=0.666667)
    """

    _mean_space = "E[x^2] must be above E[x]^2"

    def __init__(self, mean: float = 0.0, var: float = 1.0) -> None:
        self._m = _number(mean, "the mean")
        self._v = positive(var, "the variance of a Gaussian")

    @classmethod
    def conjugate_prior(
        cls, mean: float = 0.0, kappa: float = 1.0, shape: float = 1.0, rate: float = 1.0
    ) -> NormalGamma:
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

    def with_mean(self, mu: ArrayLike) -> Self:
        """Return the member with E[x] and E[x^2]."""
        m = self._mu(mu)
        self.natural_from_mean(m)
        return type(self)(float(m[0]), float(m[1] - m[0] ** 2))

    def log_partition(self, eta: ArrayLike | None = None) -> float:
        """Return -eta1^2 / (4 eta2) - log(-2 eta2) / 2."""
        a, b = self._eta(eta).tolist()
        return -0.25 * a * a / b - 0.5 * log(-2.0 * b) if b < 0 else np.inf

    def mean(self, eta: ArrayLike | None = None) -> Array:
        """Return (E[x], E[x^2])."""
        m, v = self._moments(eta)
        return np.array([m, m * m + v])

    def covariance(self, eta: ArrayLike | None = None) -> Array:
        """Return the covariance of (x, x^2)."""
        m, v = self._moments(eta)
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
    def expectation(self) -> float:
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
        gap = (self._m - float(other.expectation)) ** 2 / float(other.variance)
        return max(0.0, 0.5 * (gap + ratio - log1p(ratio)))

    def _moments(self, eta: ArrayLike | None) -> tuple[float, float]:
        if eta is None:
            return self._m, self._v
        a, b = self._eta(eta).tolist()
        return -0.5 * a / b, -0.5 / b

    def _expected_log_base(self) -> float:
        return -0.5 * log(2.0 * pi)

    def _realisable(self, mu: Array) -> bool:
        return bool(mu[1] > mu[0] ** 2)

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
        moved = cls().with_mean(average)
        return cls(moved._m + centre, moved._v)

    @classmethod
    def _template(cls, data: Array, **structure: Any) -> Self:
        return cls(**structure)

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
        return ConjugatePrior(cls(0.0, var), [_number(prior_mean, "the prior mean") * nu], nu)

    def natural(self) -> Array:
        """Return m / v."""
        return np.array([self._m / self._v])

    def with_natural(self, eta: ArrayLike) -> Self:
        """Return the member with the given natural parameter and the same variance."""
        return type(self)(float(self._eta(eta)[0]) * self._v, self._v)

    def with_mean(self, mu: ArrayLike) -> Self:
        """Return the member with the given mean and the same variance."""
        return type(self)(float(self._mu(mu)[0]), self._v)

    def log_partition(self, eta: ArrayLike | None = None) -> float:
        """Return v eta^2 / 2."""
        return 0.5 * self._v * float(self._eta(eta)[0]) ** 2

    def mean(self, eta: ArrayLike | None = None) -> Array:
        """Return the mean."""
        return self._v * self._eta(eta)

    def covariance(self, eta: ArrayLike | None = None) -> Array:
        """Return the variance."""
        return np.array([[self._v]])

    def sufficient_statistics(self, x: Any) -> Array:
        """Return x."""
        return as_numbers(x, "a value")[..., None]

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
        return shape.with_mean(average_statistics(shape, as_numbers(x, "the data"), weights))


class MultivariateGaussian(Fitted):
    """The Gaussian of vectors with a mean vector and a covariance matrix.

    Examples
    --------
    >>> g = MultivariateGaussian([0.0, 1.0], [[2.0, 1.0], [1.0, 2.0]])
    >>> g.n_parameters, g.n_free
    (6, 5)
    >>> back = g.with_natural(g.natural())
    >>> back.expectation.round(9).tolist(), back.variance.round(9).tolist()
    ([0.0, 1.0], [[2.0, 1.0], [1.0, 2.0]])
    """

    minimal: ClassVar[bool] = False
    _mean_space = "E[x x'] - E[x] E[x]' must be symmetric and positive definite"

    def __init__(self, mean: ArrayLike, cov: ArrayLike) -> None:
        m, s = finite_numbers(mean, "the mean"), finite_numbers(cov, "the covariance")
        if m.ndim != 1 or not m.size or s.shape != (m.size, m.size) or not np.allclose(s, s.T):
            raise InvalidArgument(
                "the covariance is a symmetric matrix with one row for each entry of the mean"
            )
        try:
            self._factor = np.linalg.cholesky(s)
        except np.linalg.LinAlgError:
            raise InvalidArgument("the covariance matrix is not positive definite") from None
        self._m, self._s = m, (s + s.T) / 2.0
        self._m.setflags(write=False)
        self._s.setflags(write=False)

    @classmethod
    def conjugate_prior(
        cls,
        mean: ArrayLike,
        kappa: float = 1.0,
        dof: float | None = None,
        scale: ArrayLike | None = None,
    ) -> NormalInverseWishart:
        """Return the normal-inverse-Wishart prior of mean and covariance; by default k + 2 and the identity."""
        m = np.atleast_1d(finite_numbers(mean, "the mean"))
        return NormalInverseWishart(
            m, kappa, m.size + 2.0 if dof is None else dof, np.eye(m.size) if scale is None else scale
        )

    @property
    def n_free(self) -> int:
        """`k + k (k + 1) / 2`."""
        return self._m.size + self._m.size * (self._m.size + 1) // 2

    @property
    def n_parameters(self) -> int:
        """`k + k^2`."""
        return int(self._m.size + self._m.size**2)

    def natural(self) -> Array:
        """Return S^-1 m followed by -vec(S^-1) / 2."""
        precision = np.linalg.inv(self._s)
        precision = (precision + precision.T) / 2.0
        return np.concatenate([precision @ self._m, -0.5 * precision.ravel()])

    def with_natural(self, eta: ArrayLike) -> Self:
        """Return the member with the given natural parameters."""
        moments = self._moments(eta)
        if moments is None:
            raise InvalidArgument(
                "the matrix part of the natural parameters must be negative definite: -S^-1 / 2"
            )
        return type(self)(*moments)

    def with_mean(self, mu: ArrayLike) -> Self:
        """Return the member with E[x] and E[x x']."""
        m, second = self._split(self._mu(mu))
        self.natural_from_mean(mu)
        return type(self)(m, second - np.outer(m, m))

    def log_partition(self, eta: ArrayLike | None = None) -> float:
        """Return m' S^-1 m / 2 + log|S| / 2."""
        moments = self._moments(eta)
        if moments is None:
            return np.inf
        m, s = moments
        return 0.5 * float(m @ np.linalg.solve(s, m)) + 0.5 * float(np.linalg.slogdet(s)[1])

    def mean(self, eta: ArrayLike | None = None) -> Array:
        """Return E[x] followed by vec E[x x']."""
        m, s = self._inside(eta)
        return np.concatenate([m, (s + np.outer(m, m)).ravel()])

    def covariance(self, eta: ArrayLike | None = None) -> Array:
        """Return the covariance of (x, vec x x'), by Isserlis' theorem."""
        m, s = self._inside(eta)
        k = m.size
        third = np.einsum("ai,j->aij", s, m) + np.einsum("aj,i->aij", s, m)
        fourth = (
            np.einsum("ik,jl->ijkl", s, s)
            + np.einsum("il,jk->ijkl", s, s)
            + np.einsum("ik,j,l->ijkl", s, m, m)
            + np.einsum("il,j,k->ijkl", s, m, m)
            + np.einsum("jk,i,l->ijkl", s, m, m)
            + np.einsum("jl,i,k->ijkl", s, m, m)
        )
        cross = third.reshape(k, k * k)
        return np.block([[s, cross], [cross.T, fourth.reshape(k * k, k * k)]])

    def sufficient_statistics(self, x: Any) -> Array:
        """Return x followed by vec(x x')."""
        x = vectors(x, self._m.size, "a point")
        with np.errstate(over="ignore", invalid="ignore"):
            outer = x[..., :, None] * x[..., None, :]
        return np.concatenate([x, outer.reshape(*x.shape[:-1], -1)], axis=-1)

    def log_base_measure(self, x: Any) -> Any:
        """Return -k log(2 pi) / 2."""
        x = vectors(x, self._m.size, "a point")
        return np.where(np.isfinite(x).all(axis=-1), -0.5 * self._m.size * log(2.0 * pi), -np.inf)[()]

    def log_prob(self, x: Any) -> Any:
        """Return the log density of a vector, or of each row."""
        centred = vectors(x, self._m.size, "a point") - self._m
        far = np.asarray(np.isinf(centred).any(axis=-1) & ~np.isnan(centred).any(axis=-1))
        centred = np.where(far[..., None], 0.0, centred)
        rows = np.linalg.solve(self._factor, centred.reshape(-1, self._m.size).T)
        squares = (rows**2).sum(axis=0).reshape(centred.shape[:-1])
        log_det = 2.0 * np.log(np.diag(self._factor)).sum()
        logs = -0.5 * (squares + log_det + self._m.size * log(2.0 * pi))
        return np.where(far, -np.inf, logs)[()]

    def sample(self, n: int, seed: Seed = None) -> Array:
        """Draw n rows."""
        noise = generator(seed).standard_normal((draws(n), self._m.size))
        return np.asarray(self._m + noise @ self._factor.T)

    @property
    def expectation(self) -> Array:
        """The mean vector."""
        return self._m

    @property
    def variance(self) -> Array:
        """The covariance matrix."""
        return self._s

    def entropy(self) -> float:
        """Return (k log(2 pi e) + log|S|) / 2."""
        log_det = 2.0 * float(np.log(np.diag(self._factor)).sum())
        return 0.5 * (self._m.size * (log(2.0 * pi) + 1.0) + log_det)

    def kl(self, other: ExponentialFamily) -> float:
        """Return KL(self || other) from means and covariances, which loses no digits when the means are large."""
        self._same_family(other)
        factor = np.linalg.cholesky(other.variance)
        gap = np.linalg.solve(factor, self._m - other.expectation)
        spread = np.linalg.solve(factor, self._factor)
        log_det = 2.0 * float(np.log(np.diag(factor)).sum() - np.log(np.diag(self._factor)).sum())
        return max(0.0, 0.5 * (float(gap @ gap) + float((spread**2).sum()) - self._m.size + log_det))

    def _split(self, vector: Array) -> tuple[Array, Array]:
        k = self._m.size
        matrix = vector[k:].reshape(k, k)
        if not np.allclose(matrix, matrix.T):
            raise InvalidArgument("the matrix part of the parameters must be symmetric")
        return vector[:k], (matrix + matrix.T) / 2.0

    def _moments(self, eta: ArrayLike | None) -> tuple[Array, Array] | None:
        """Return mean and covariance at eta; None outside the domain."""
        if eta is None:
            return self._m, self._s
        first, second = self._split(self._eta(eta))
        if np.linalg.eigvalsh(second)[-1] >= 0:
            return None
        s = np.linalg.inv(-2.0 * second)
        return s @ first, (s + s.T) / 2.0

    def _inside(self, eta: ArrayLike | None) -> tuple[Array, Array]:
        moments = self._moments(eta)
        if moments is None:
            raise InvalidArgument("the matrix part of the natural parameters must be negative definite")
        return moments

    def _expected_log_base(self) -> float:
        return -0.5 * self._m.size * log(2.0 * pi)

    def _realisable(self, mu: Array) -> bool:
        m, second = self._split(mu)
        sizes = np.linalg.eigvalsh(second - np.outer(m, m))
        return bool(sizes[0] > 1e-14 * sizes[-1])

    def _to_natural(self, mu: Array) -> Array:
        m, second = self._split(mu)
        return type(self)(m, second - np.outer(m, m)).natural()

    @classmethod
    def fit(cls, x: ArrayLike, weights: ArrayLike | None = None, **structure: Any) -> Self:
        """Return the maximum-likelihood member, computed around the first row."""
        data = np.atleast_2d(as_numbers(x, "the data"))
        centre = np.where(np.isfinite(data[0]), data[0], 0.0) if data.size else np.zeros(data.shape[-1])
        only_known(cls, structure)
        moved = cls._template(data - centre)
        average = average_statistics(moved, data - centre, weights)
        if np.isfinite(average).all() and not moved._realisable(average):
            raise InvalidArgument(
                "the rows vary in fewer directions than they have columns, and a MultivariateGaussian needs a positive "
                "definite covariance: give more rows, or leave out columns that are constant or depend on others"
            )
        moved = moved.with_mean(average)
        return cls(moved._m + centre, moved._s)

    @classmethod
    def _template(cls, data: Array, **structure: Any) -> Self:
        if data.ndim != 2 or not data.size:
            raise InvalidArgument(
                f"a multivariate Gaussian is fitted to rows of numbers, not shape {data.shape}"
            )
        return cls(np.zeros(data.shape[1]), np.eye(data.shape[1]), **structure)

    def __repr__(self) -> str:
        return (
            f"MultivariateGaussian(mean={np.round(self._m, 6).tolist()}, cov={np.round(self._s, 6).tolist()})"
        )


def _number(value: object, what: str) -> float:
    number = finite_numbers(value, what)  # type: ignore[arg-type]
    if number.ndim:
        raise InvalidArgument(f"{what} is one number, not {value!r}")
    return float(number)
