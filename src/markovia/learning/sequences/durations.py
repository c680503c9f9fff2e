"""Distributions of how long a visit of a state lasts: 1, 2, ..., up to a longest length, over which they add up to 1.

Poisson and negative binomial count the steps after the first one. Learning is maximum likelihood from expected counts, with
visits that were cut off by the end of a sequence counted as at least so long.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.sequences.segments import at_least
from markovia.learning.components.families import NOTHING, parameter, probabilities
from markovia.optimise.minimise import minimise
from markovia.runtime.array_types import Array


@dataclass(frozen=True)
class Durations(ABC):
    """Distributions of lengths, one a state, up to `longest`."""

    longest: int
    names: ClassVar[tuple[str, ...]]

    @classmethod
    @abstractmethod
    def of(cls, k: int, longest: int, params: Mapping[str, Any]) -> Self:
        """Return checked distributions from parameters."""

    @classmethod
    @abstractmethod
    def started(cls, k: int, longest: int, rng: np.random.Generator) -> Self:
        """Return distributions to begin with."""

    @property
    @abstractmethod
    def logs(self) -> Array:
        """The log probabilities of lengths, (states, longest)."""

    @abstractmethod
    def learned(self, counts: Array, cut: Array) -> Self:
        """Return what makes counts of lengths, and of lengths that were cut off, more probable than before."""

    @property
    def params(self) -> dict[str, Array]:
        """The parameters by name."""
        return {name: getattr(self, name) for name in self.names}

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        return sum(value.size for value in self.params.values())

    @property
    def means(self) -> Array:
        """The mean length of each state."""
        return np.asarray(np.exp(self.logs) @ np.arange(1, self.longest + 1))


@dataclass(frozen=True)
class CategoricalDurations(Durations):
    """Any distribution; `probs (states, longest)`."""

    probs: Array
    names: ClassVar = ("probs",)

    @classmethod
    def of(cls, k: int, longest: int, params: Mapping[str, Any]) -> Self:
        """Return checked distributions from parameters."""
        return cls(longest, probabilities(params["probs"], "duration_params['probs']", (k, longest)))

    @classmethod
    def started(cls, k: int, longest: int, rng: np.random.Generator) -> Self:
        """Return nearly even distributions."""
        return cls(longest, rng.dirichlet(np.full(longest, 20.0), k))

    @property
    def logs(self) -> Array:
        """The log probabilities of lengths."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.probs))

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        return int((self.probs > 0.0).sum() - len(self.probs))

    def learned(self, counts: Array, cut: Array) -> Self:
        """Return shares of counts; a length that was cut off counts as the longer ones do by the present values."""
        tails = np.exp(at_least(self.logs))
        each = np.divide(cut, tails, out=np.zeros_like(cut), where=tails > 0.0)
        whole = counts + self.probs * np.cumsum(each, axis=1)
        size = whole.sum(axis=1, keepdims=True)
        return replace(self, probs=np.where(size > NOTHING, whole / np.maximum(size, NOTHING), self.probs))


@dataclass(frozen=True)
class _Smooth(Durations):
    """Distributions with a few parameters, learned by their logarithms."""

    @abstractmethod
    def _scores(self, logs: Array) -> Array:
        """Return unnormalised log probabilities of lengths from the logarithms of a state's parameters."""

    @property
    def _theta(self) -> Array:
        return np.log(np.column_stack(list(self.params.values())))

    def _lengths(self, theta: Array) -> Array:
        found = self._scores(theta)
        return np.asarray(found - np.logaddexp.reduce(found))

    @property
    def logs(self) -> Array:
        """The log probabilities of lengths."""
        return np.array([self._lengths(theta) for theta in self._theta])

    def learned(self, counts: Array, cut: Array) -> Self:
        """Return the most probable parameters, found by quasi-Newton steps from the present ones."""
        theta = self._theta
        for j, (whole, part) in enumerate(zip(counts, cut, strict=True)):
            size = whole.sum() + part.sum()
            if size <= NOTHING:
                continue

            def loss(
                values: Array, whole: Array = whole, part: Array = part, size: float = float(size)
            ) -> float:
                logs = self._lengths(values)
                return -float(whole @ logs + part @ at_least(logs)) / size

            found = minimise(loss, theta[j], lower=-12.0, upper=8.0, differences=True, flat=2e-9)
            if found.value < loss(theta[j]):
                theta[j] = found.point
        return replace(self, **dict(zip(self.names, np.exp(theta).T, strict=True)))

    @classmethod
    def of(cls, k: int, longest: int, params: Mapping[str, Any]) -> Self:
        """Return checked distributions from parameters."""
        found = {name: parameter(params[name], f"duration_params[{name!r}]", (k,)) for name in cls.names}
        for name, values in found.items():
            if (values <= 0.0).any():
                raise InvalidArgument(f"duration_params[{name!r}] are above 0")
        return cls(longest, **found)

    @classmethod
    def started(cls, k: int, longest: int, rng: np.random.Generator) -> Self:
        """Return distributions of moderate lengths."""
        rates = np.maximum(min(longest / 3.0, 10.0) * rng.uniform(0.5, 1.5, k), 0.5)
        return cls(longest, **{name: rates if name == "rates" else np.ones(k) for name in cls.names})


@dataclass(frozen=True)
class PoissonDurations(_Smooth):
    """One step and a Poisson number of others; `rates (states,)`."""

    rates: Array
    names: ClassVar = ("rates",)

    def _scores(self, logs: Array) -> Array:
        from scipy.special import gammaln

        more = np.arange(self.longest)
        return np.asarray(more * logs[0] - gammaln(more + 1.0))


@dataclass(frozen=True)
class NegativeBinomialDurations(_Smooth):
    """One step and others with mean `rates (states,)` and size `sizes`; the smaller the size, the wider the spread."""

    rates: Array
    sizes: Array
    names: ClassVar = ("rates", "sizes")

    def _scores(self, logs: Array) -> Array:
        from scipy.special import gammaln

        more, size = np.arange(self.longest), np.exp(logs[1])
        share = logs[0] - np.logaddexp(logs[0], logs[1])
        return np.asarray(gammaln(more + size) - gammaln(size) - gammaln(more + 1.0) + more * share)


@dataclass(frozen=True)
class GeometricDurations(_Smooth):
    """The lengths of a Markov chain's visits, with mean 1 + `rates (states,)` where the longest length is far away."""

    rates: Array
    names: ClassVar = ("rates",)

    def _scores(self, logs: Array) -> Array:
        return np.asarray(np.arange(self.longest) * (logs[0] - np.logaddexp(logs[0], 0.0)))


DURATIONS: dict[str, type[Durations]] = {
    "categorical": CategoricalDurations,
    "poisson": PoissonDurations,
    "negative-binomial": NegativeBinomialDurations,
    "geometric": GeometricDurations,
}
