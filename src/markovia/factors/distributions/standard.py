"""Closed-form distributions: densities, moments, draws, maximum likelihood and conjugate updates.

Argument names follow NumPyro's (`probs`, `loc`, `scale`, `concentration`). Every class is an immutable dataclass with
`log_prob(value)`, `sample(n, seed)`, `mean` and `variance`; `fit(data)` is the maximum-likelihood estimate. A value
outside the support has probability 0 (log minus infinity); a value of the wrong shape is an error.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import isfinite, lgamma, log, pi
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markovia.errors import InvalidArgument
from markovia.runtime.seeds import Seed, generator

Array = NDArray[np.float64]


class Distribution(ABC):
    """What all distributions here share."""

    @abstractmethod
    def log_prob(self, value: ArrayLike) -> Any:
        """Return the log density or log probability of a value (or of an array of values)."""

    def prob(self, value: ArrayLike) -> Any:
        """Return the density or probability of a value."""
        return np.exp(self.log_prob(value))


@dataclass(frozen=True)
class Bernoulli(Distribution):
    """One trial with success probability `probs`; values are 0 and 1.

    Examples
    --------
    >>> round(float(Bernoulli(0.3).prob(1)), 6), round(Bernoulli(0.3).variance, 6)
    (0.3, 0.21)
    """

    probs: float

    def __post_init__(self) -> None:
        _check_finite("Bernoulli", probs=self.probs)
        if not 0.0 <= self.probs <= 1.0:
            raise InvalidArgument(f"Bernoulli needs 0 <= probs <= 1, not {self.probs}")

    @property
    def mean(self) -> float:
        """The success probability."""
        return self.probs

    @property
    def variance(self) -> float:
        """`p (1 - p)`."""
        return self.probs * (1.0 - self.probs)

    def log_prob(self, value: ArrayLike) -> Any:
        """Return the log probability of 0 or 1; minus infinity for anything else."""
        x = as_numbers(value, "a value")
        with np.errstate(divide="ignore"):
            return np.where(x == 1, np.log(self.probs), np.where(x == 0, np.log1p(-self.probs), -np.inf))[()]

    def sample(self, n: int, seed: Seed = None) -> NDArray[np.int64]:
        """Draw n values."""
        return (generator(seed).random(draws(n)) < self.probs).astype(np.int64)

    @classmethod
    def fit(cls, data: ArrayLike) -> Self:
        """Return the maximum-likelihood estimate: the share of ones in a column of zeros and ones."""
        x = _column(data)
        if not np.isin(x, (0.0, 1.0)).all():
            raise InvalidArgument("a Bernoulli is fitted to a column of zeros and ones")
        return cls(float(x.mean()))


@dataclass(frozen=True, eq=False)
class Categorical(Distribution):
    """One draw from `K` categories with probabilities `probs`; values are `0 ... K-1`."""

    probs: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "probs", _simplex(self.probs, "Categorical"))

    @property
    def mean(self) -> Array:
        """The expected one-hot vector: the probabilities."""
        return self.probs

    @property
    def variance(self) -> Array:
        """The variance of each one-hot coordinate."""
        return self.probs * (1.0 - self.probs)

    def log_prob(self, value: ArrayLike) -> Any:
        """Return the log probability of category numbers; minus infinity for what is not one of `0 ... K-1`."""
        x = as_numbers(value, "a value")
        inside = (x == np.floor(x)) & (x >= 0) & (x < self.probs.size)
        with np.errstate(divide="ignore"):
            logs = np.log(self.probs)
        return np.where(inside, logs[np.where(inside, x, 0).astype(np.intp)], -np.inf)[()]

    def sample(self, n: int, seed: Seed = None) -> NDArray[np.int64]:
        """Draw n category numbers by inverting the cumulative probabilities."""
        edges = np.cumsum(self.probs)
        u = generator(seed).random(draws(n)) * edges[-1]
        return np.asarray(np.searchsorted(edges, u, side="right"), dtype=np.int64)

    @classmethod
    def fit(cls, data: ArrayLike, n_categories: int | None = None) -> Self:
        """Return the maximum-likelihood estimate: the relative frequencies.

        Without `n_categories` the categories end at the largest number in the data.
        """
        x = _column(data)
        if not np.all((x == np.floor(x)) & (x >= 0)):
            raise InvalidArgument("a Categorical is fitted to category numbers 0, 1, 2, ...")
        if n_categories is not None and (not _is_whole(n_categories) or n_categories <= x.max()):
            raise InvalidArgument(
                f"n_categories must be a whole number above the largest category {x.max():.0f}, not {n_categories!r}"
            )
        return cls(np.bincount(x.astype(np.intp), minlength=n_categories or 0) / x.size)


@dataclass(frozen=True, eq=False)
class Multinomial(Distribution):
    """Counts of `total_count` independent draws from `probs`.

    Examples
    --------
    >>> round(float(Multinomial(3, [0.5, 0.5]).prob([2, 1])), 6)
    0.375
    """

    total_count: int
    probs: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "probs", _simplex(self.probs, "Multinomial"))
        if not _is_whole(self.total_count):
            raise InvalidArgument(f"Multinomial needs a whole total_count >= 0, not {self.total_count!r}")

    @property
    def mean(self) -> Array:
        """`N p`."""
        return self.total_count * self.probs

    @property
    def variance(self) -> Array:
        """`N p (1 - p)` for each count."""
        return self.total_count * self.probs * (1.0 - self.probs)

    def log_prob(self, value: ArrayLike) -> Any:
        """Return the log probability of a vector of counts (or of rows of them).

        Counts that are negative, fractional or of another total have probability 0.
        """
        counts = vectors(value, self.probs.size, "counts")
        with np.errstate(invalid="ignore"):
            right_total = counts.sum(axis=-1) == self.total_count
        valid = right_total & ((counts == np.floor(counts)) & (counts >= 0)).all(axis=-1)
        counts = np.where(valid[..., None], counts, 0.0)
        coefficient = lgamma(self.total_count + 1) - _lgamma(counts + 1).sum(axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(counts > 0, counts * np.log(self.probs), 0.0).sum(axis=-1)
        return np.where(valid, coefficient + terms, -np.inf)[()]

    def sample(self, n: int, seed: Seed = None) -> NDArray[np.int64]:
        """Draw n rows of counts."""
        return generator(seed).multinomial(self.total_count, self.probs, size=draws(n))

    @classmethod
    def fit(cls, data: ArrayLike) -> Self:
        """Return the maximum-likelihood estimate from rows of counts that share one total: `m_k / N`.

        The constrained maximum of `sum_k m_k log p_k` with `sum_k p_k = 1` has multiplier `-N`.
        """
        counts = np.atleast_2d(finite_numbers(data, "the data"))
        if counts.ndim != 2 or counts.size == 0 or not np.all((counts == np.floor(counts)) & (counts >= 0)):
            raise InvalidArgument("a multinomial is fitted to rows of counts 0, 1, 2, ...")
        totals = counts.sum(axis=1)
        if not np.all(totals == totals[0]) or totals[0] == 0:
            raise InvalidArgument(
                "a multinomial is fitted to rows of counts that all have the same positive total"
            )
        return cls(int(totals[0]), counts.sum(axis=0) / counts.sum())


@dataclass(frozen=True)
class Uniform(Distribution):
    """Equal density between `low` and `high`."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        _check_finite("Uniform", low=self.low, high=self.high)
        if not self.low < self.high:
            raise InvalidArgument(f"Uniform needs low < high, not {self.low} and {self.high}")

    @property
    def mean(self) -> float:
        """The midpoint."""
        return (self.low + self.high) / 2.0

    @property
    def variance(self) -> float:
        """The squared width over 12."""
        return (self.high - self.low) ** 2 / 12.0

    def log_prob(self, value: ArrayLike) -> Any:
        """Return the log density; minus infinity outside."""
        x = as_numbers(value, "a value")
        return np.where((x >= self.low) & (x <= self.high), -log(self.high - self.low), -np.inf)[()]

    def sample(self, n: int, seed: Seed = None) -> Array:
        """Draw n values."""
        return generator(seed).uniform(self.low, self.high, draws(n))

    @classmethod
    def fit(cls, data: ArrayLike) -> Self:
        """Return the maximum-likelihood estimate: the range of the data."""
        x = _column(data)
        return cls(float(x.min()), float(x.max()))


@dataclass(frozen=True)
class Beta(Distribution):
    """The beta distribution, conjugate to Bernoulli trials."""

    concentration1: float
    concentration0: float

    def __post_init__(self) -> None:
        _check_finite("Beta", concentration1=self.concentration1, concentration0=self.concentration0)
        if min(self.concentration1, self.concentration0) <= 0:
            raise InvalidArgument("Beta needs positive concentrations")

    @property
    def mean(self) -> float:
        """`a / (a + b)`."""
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def variance(self) -> float:
        """`ab / ((a + b)^2 (a + b + 1))`."""
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1.0))

    def log_prob(self, value: ArrayLike) -> Any:
        """Return the log density on [0, 1]; minus infinity outside."""
        x = as_numbers(value, "a value")
        pair = np.stack([x, 1.0 - x], axis=-1)
        return Dirichlet(np.array([self.concentration1, self.concentration0])).log_prob(pair)

    def sample(self, n: int, seed: Seed = None) -> Array:
        """Draw n values."""
        return generator(seed).beta(self.concentration1, self.concentration0, draws(n))

    def posterior(self, successes: float, failures: float) -> "Beta":
        """Return the distribution after seeing Bernoulli outcomes."""
        _check_finite("the update of a Beta", successes=successes, failures=failures)
        if min(successes, failures) < 0:
            raise InvalidArgument(f"counts are not negative, got {successes!r} and {failures!r}")
        return Beta(self.concentration1 + successes, self.concentration0 + failures)


@dataclass(frozen=True, eq=False)
class Dirichlet(Distribution):
    """The Dirichlet distribution over probability vectors, conjugate to categorical and multinomial counts.

    Examples
    --------
    >>> round(float(Dirichlet([2, 3, 4]).prob([0.2, 0.3, 0.5])), 6)
    7.56
    >>> Dirichlet([1, 1]).posterior([3, 1]).mean.tolist()
    [0.6666666666666666, 0.3333333333333333]
    """

    concentration: Array

    def __post_init__(self) -> None:
        alpha = finite_numbers(self.concentration, "the concentration")
        if alpha.ndim != 1 or alpha.size < 1 or not np.all(alpha > 0):
            raise InvalidArgument("Dirichlet needs a vector of positive concentrations")
        alpha.setflags(write=False)
        object.__setattr__(self, "concentration", alpha)

    @property
    def mean(self) -> Array:
        """The normalised concentrations."""
        mean: Array = self.concentration / self.concentration.sum()
        return mean

    @property
    def variance(self) -> Array:
        """The variance of each coordinate."""
        variance: Array = self.mean * (1.0 - self.mean) / (self.concentration.sum() + 1.0)
        return variance

    def log_prob(self, value: ArrayLike) -> Any:
        """Return the log density of a probability vector (or of rows of them).

        On the boundary it is the limit: minus infinity where a zero meets a concentration above 1, infinity where it
        meets one below 1. Where both happen at once there is no limit, and minus infinity is returned, by the
        convention that zero times infinity is zero.
        """
        p = vectors(value, self.concentration.size, "a point")
        norm = lgamma(float(self.concentration.sum())) - float(_lgamma(self.concentration).sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(self.concentration == 1.0, 0.0, (self.concentration - 1.0) * np.log(p)).sum(
                axis=-1
            )
            inside = (np.abs(p.sum(axis=-1) - 1.0) < 1e-9) & (p >= 0).all(axis=-1)
        vanishes = ((p == 0) & (self.concentration > 1.0)).any(axis=-1)
        return np.where(inside & ~vanishes, norm + terms, -np.inf)[()]

    def sample(self, n: int, seed: Seed = None) -> Array:
        """Draw n probability vectors."""
        return generator(seed).dirichlet(self.concentration, draws(n))

    def posterior(self, counts: ArrayLike) -> "Dirichlet":
        """Return the distribution after seeing counts: the concentrations plus the counts."""
        seen = finite_numbers(counts, "the counts")
        if seen.shape != self.concentration.shape or not np.all(seen >= 0):
            raise InvalidArgument(f"the update needs {self.concentration.size} counts that are not negative")
        return Dirichlet(self.concentration + seen)


@dataclass(frozen=True)
class Normal(Distribution):
    """The Gaussian distribution with mean `loc` and standard deviation `scale`.

    Examples
    --------
    >>> Normal(0, 3) + Normal(1, 4)
    Normal(loc=1, scale=5.0)
    """

    loc: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        _check_finite("Normal", loc=self.loc, scale=self.scale)
        if not self.scale > 0:
            raise InvalidArgument(f"Normal needs scale > 0, not {self.scale}")

    @property
    def mean(self) -> float:
        """The mean."""
        return self.loc

    @property
    def variance(self) -> float:
        """The squared scale."""
        return self.scale**2

    def log_prob(self, value: ArrayLike) -> Any:
        """Return the log density."""
        z = (as_numbers(value, "a value") - self.loc) / self.scale
        return -0.5 * z**2 - log(self.scale) - 0.5 * log(2.0 * pi)

    def sample(self, n: int, seed: Seed = None) -> Array:
        """Draw n values."""
        return generator(seed).normal(self.loc, self.scale, draws(n))

    def __add__(self, other: "Normal") -> "Normal":
        """Return the distribution of the sum of two independent Gaussians."""
        if not isinstance(other, Normal):
            return NotImplemented
        return Normal(self.loc + other.loc, (self.scale**2 + other.scale**2) ** 0.5)

    @classmethod
    def fit(cls, data: ArrayLike) -> Self:
        """Return the maximum-likelihood estimate (variance divided by n)."""
        x = _column(data)
        return cls(float(x.mean()), float(x.std()))


def as_numbers(values: ArrayLike, what: str) -> Array:
    """Return values as an array of floats; digits in a string are not a number."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "biufO":
            return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidArgument(f"{what} must be a number or an array of numbers, not {values!r}")


def finite_numbers(values: ArrayLike, what: str) -> Array:
    """Return values as an array of finite floats."""
    array = as_numbers(values, what)
    if not np.isfinite(array).all():
        raise InvalidArgument(f"{what} must hold finite numbers, not {values!r}")
    return array


def vectors(values: ArrayLike, size: int, what: str) -> Array:
    """Return a vector of a given length, or an array whose last axis has it."""
    array = as_numbers(values, what)
    if not array.ndim or array.shape[-1] != size:
        raise InvalidArgument(f"{what} must have {size} numbers along the last axis, not shape {array.shape}")
    return array


def draws(n: int) -> int:
    """Return a number of draws if it is one."""
    if not _is_whole(n):
        raise InvalidArgument(f"the number of draws must be a whole number >= 0, not {n!r}")
    return int(n)


def _is_whole(n: object) -> bool:
    return isinstance(n, Integral) and not isinstance(n, bool) and int(n) >= 0


def _check_finite(what: str, **parameters: float) -> None:
    for name, value in parameters.items():
        if not isinstance(value, Real) or not isfinite(value):
            raise InvalidArgument(f"{what} needs a finite number as {name}, not {value!r}")


def _simplex(probs: ArrayLike, what: str) -> Array:
    p = finite_numbers(probs, "probs")
    if p.ndim != 1 or p.size < 1 or not np.all(p >= 0) or abs(p.sum() - 1.0) > 1e-6:
        raise InvalidArgument(f"{what} needs a vector of probabilities that sum to one")
    p.setflags(write=False)
    return p


def _column(data: ArrayLike) -> Array:
    x = as_numbers(data, "the data")
    if x.ndim != 1 or x.size == 0 or not np.isfinite(x).all():
        raise InvalidArgument("a fit needs one column of finite numbers with at least one row")
    return x


def _lgamma(x: Array) -> Array:
    values: Array = np.vectorize(lgamma, otypes=[np.float64])(x)
    return values
