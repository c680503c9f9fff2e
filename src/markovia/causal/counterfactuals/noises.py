"""Exogenous noises of structural equations: drawn, weighed, and inverted on their quantiles."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.distributions.finite_distributions import (
    finite_values,
    is_distribution,
    is_finite,
    probabilities,
)
from markovia.runtime.array_types import Array
from markovia.runtime.double_precision import x64

GRID = 256
"""Quantiles of a noise between which an equation is searched for roots."""
TAIL = 1e-12


class Noise(ABC):
    """A distribution of numbers that nothing in the model influences."""

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n values."""

    @abstractmethod
    def log_prob(self, values: Array) -> Array:
        """Return the log density, or log probability where it is finite."""

    @abstractmethod
    def quantiles(self, shares: Array) -> Array:
        """Return the values below which the given shares lie."""

    def finite(self) -> tuple[Any, Array] | None:
        """Return its values and their probabilities where they are finitely many."""
        return None

    def gaussian(self) -> tuple[float, float] | None:
        """Return mean and standard deviation where it is Gaussian."""
        return None

    def grid(self) -> Array:
        """Return increasing values that span the support, a little beyond its outer quantiles."""
        shares = np.concatenate(
            [[TAIL, 1e-9, 1e-6], np.linspace(1e-4, 1 - 1e-4, GRID), [1 - 1e-6, 1 - 1e-9, 1 - TAIL]]
        )
        found = self.quantiles(shares)
        found = np.unique(found[np.isfinite(found)])
        span = max(float(found[-1] - found[0]), 1e-9)
        steps = span * 2.0 ** np.arange(0, 12)
        return np.concatenate([found[0] - steps[::-1], found, found[-1] + steps])


class GaussianNoise(Noise):
    """A normal noise, without loading anything."""

    def __init__(self, mean: float = 0.0, sd: float = 1.0) -> None:
        self.mean, self.sd = float(mean), float(sd)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n values."""
        return rng.normal(self.mean, self.sd, size=n)

    def log_prob(self, values: Array) -> Array:
        """Return the log density."""
        z = (np.asarray(values) - self.mean) / self.sd
        return np.asarray(-0.5 * z**2 - np.log(self.sd * np.sqrt(2 * np.pi)))

    def quantiles(self, shares: Array) -> Array:
        """Return the values below which the given shares lie."""
        from scipy.special import ndtri

        return np.asarray(self.mean + self.sd * ndtri(shares))

    def gaussian(self) -> tuple[float, float]:
        """Return mean and standard deviation."""
        return self.mean, self.sd


class Distributed(Noise):
    """A distribution of `markovia.distributions`."""

    def __init__(self, distribution: Any) -> None:
        if distribution.batch_shape or distribution.event_shape:
            raise InvalidArgument("a noise is one number a unit; its distribution has no axes")
        self.distribution = distribution

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n values."""
        import jax

        with x64():
            drawn = self.distribution.sample(jax.random.PRNGKey(int(rng.integers(2**31))), (n,))
            return np.asarray(drawn, dtype=np.float64)

    def log_prob(self, values: Array) -> Array:
        """Return the log density, minus infinity outside of the support."""
        with x64():
            logs = np.asarray(self.distribution.log_prob(np.asarray(values)), dtype=np.float64)
            inside = np.asarray(self.distribution.support(np.asarray(values)))
        return np.where(inside, logs, -np.inf)

    def quantiles(self, shares: Array) -> Array:
        """Return the values below which the given shares lie; of draws where there is no closed form."""
        try:
            with x64():
                return np.asarray(self.distribution.icdf(np.asarray(shares)), dtype=np.float64)
        except NotImplementedError:
            drawn = self.sample(20_000, np.random.default_rng(0))
            return np.quantile(drawn, shares)

    def finite(self) -> tuple[Any, Array] | None:
        """Return its values and their probabilities where they are finitely many."""
        if not is_finite(self.distribution):
            return None
        return np.array(finite_values(self.distribution)), probabilities(self.distribution)


class Weighted(Noise):
    """Finitely many whole numbers with probabilities."""

    def __init__(self, p: Any) -> None:
        self.p = np.asarray(p, dtype=np.float64)
        if self.p.ndim != 1 or (self.p < 0).any() or abs(self.p.sum() - 1.0) > 1e-6:
            raise InvalidArgument(
                f"the probabilities of a noise are positive numbers that sum to one, not {p!r}"
            )

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n values."""
        return rng.choice(len(self.p), size=n, p=self.p / self.p.sum()).astype(np.int64)

    def log_prob(self, values: Array) -> Array:
        """Return the log probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.p[np.asarray(values, dtype=np.int64)])

    def quantiles(self, shares: Array) -> Array:
        """Return the values below which the given shares lie."""
        return np.searchsorted(np.cumsum(self.p), shares).clip(0, len(self.p) - 1).astype(np.float64)

    def finite(self) -> tuple[Any, Array]:
        """Return its values and their probabilities."""
        return np.arange(len(self.p)), self.p


class Empirical(Noise):
    """The residuals of a fitted equation, drawn with replacement; their density is a Gaussian kernel estimate."""

    def __init__(self, values: Array) -> None:
        self.values = np.sort(np.asarray(values, dtype=np.float64))
        spread = min(
            float(self.values.std()), float(np.subtract(*np.quantile(self.values, [0.75, 0.25]))) / 1.34
        )
        self.width = max(0.9 * spread * len(self.values) ** -0.2, 1e-12)

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n values."""
        return rng.choice(self.values, size=n)

    def log_prob(self, values: Array) -> Array:
        """Return the log of the kernel estimate, interpolated on a grid of 2,048 points."""
        low, high = self.values[0] - 4 * self.width, self.values[-1] + 4 * self.width
        at = np.linspace(low, high, 2048)
        counts, edges = np.histogram(self.values, bins=at)
        centres = (edges[1:] + edges[:-1]) / 2
        reach = np.arange(-len(centres) + 1, len(centres)) * (at[1] - at[0]) / self.width
        density = np.convolve(counts, np.exp(-0.5 * reach**2))[len(centres) - 1 : 2 * len(centres) - 1]
        density = density / (len(self.values) * self.width * np.sqrt(2 * np.pi))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.interp(values, centres, density, left=0.0, right=0.0)))

    def quantiles(self, shares: Array) -> Array:
        """Return the values below which the given shares lie."""
        return np.quantile(self.values, shares)


def as_noise(form: Any, what: str) -> Noise:
    """Return the noise that a user wrote: a distribution, a list of probabilities, or a noise."""
    if isinstance(form, Noise):
        return form
    if is_distribution(form):
        import numpyro.distributions as theirs

        if type(form) is theirs.Normal and not form.batch_shape:
            return GaussianNoise(float(form.loc), float(form.scale))
        return Distributed(form)
    if isinstance(form, list | tuple | np.ndarray):
        return Weighted(form)
    raise InvalidArgument(
        f"the noise of {what} is a distribution such as dist.Normal(0, 1) or a list of probabilities, not {form!r}"
    )
