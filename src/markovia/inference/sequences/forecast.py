"""What comes after sequences: the law of each step ahead, as Gaussians, mixtures of them, or draws.

Whatever model made it, a `Forecast` has means, covariances, intervals and quantiles of the observations and of the states
behind them, a table and a picture.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from markovia.inference.sequences.padded import PerSequence, columns_by_number
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_level
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


class StepLaws(Protocol):
    """The laws of the steps after one sequence; arrays have a row a step, in mappings by name where numbers have names."""

    @property
    def mean(self) -> Any:
        """The mean of each number."""

    @property
    def cov(self) -> Any:
        """The covariance matrix of each step; variances where a step is one number."""

    def quantile(self, q: float) -> Any:
        """Return a quantile of each number."""


@dataclass(frozen=True)
class GaussianSteps:
    """Mixtures of Gaussians; a Gaussian is a mixture of one.

    Attributes
    ----------
    weights
        (steps, parts), rows sum to one.
    means, covs
        (steps, parts, numbers) and (steps, parts, numbers, numbers).
    """

    weights: Array
    means: Array
    covs: Array

    @classmethod
    def of(cls, mean: Array, cov: Array) -> "GaussianSteps":
        """Return single Gaussians, (steps, numbers) and (steps, numbers, numbers)."""
        return cls(np.ones((len(mean), 1)), mean[:, None], cov[:, None])

    @cached_property
    def mean(self) -> Array:
        """The mean of each number, (steps, numbers)."""
        return np.asarray(np.einsum("tk,tka->ta", self.weights, self.means))

    @cached_property
    def cov(self) -> Array:
        """The covariance of each step, (steps, numbers, numbers)."""
        away = self.means - self.mean[:, None]
        spread = np.einsum("tk,tka,tkb->tab", self.weights, away, away)
        return np.asarray(np.einsum("tk,tkab->tab", self.weights, self.covs) + spread)

    def quantile(self, q: float) -> Array:
        """Return a quantile of each number, by bisection between those of the parts."""
        from scipy.special import ndtr, ndtri

        sd = np.sqrt(np.einsum("tkii->tki", self.covs))
        ends = self.means + sd * float(ndtri(q))
        low, high = ends.min(axis=1), ends.max(axis=1)
        for _ in range(60 if self.weights.shape[1] > 1 else 0):
            middle = (low + high) / 2
            with np.errstate(divide="ignore", invalid="ignore"):
                below = np.einsum("tk,tka->ta", self.weights, ndtr((middle[:, None] - self.means) / sd)) < q
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray((low + high) / 2)


@dataclass(frozen=True)
class DrawnSteps:
    """Draws of steps, (draws, steps, ...), in a mapping where numbers have names."""

    draws: Any

    def _each(self, what: Callable[[Array], Any]) -> Any:
        if isinstance(self.draws, Mapping):
            return {name: what(np.asarray(x, dtype=np.float64)) for name, x in self.draws.items()}
        return what(np.asarray(self.draws, dtype=np.float64))

    @cached_property
    def mean(self) -> Any:
        """The mean of each number."""
        return self._each(lambda x: x.mean(axis=0))

    @cached_property
    def cov(self) -> Any:
        """Covariance matrices where a step is a vector, variances otherwise."""

        def spread(x: Array) -> Any:
            away = x - x.mean(axis=0)
            return np.einsum("nti,ntj->tij", away, away) / len(x) if x.ndim == 3 else (away**2).mean(axis=0)

        return self._each(spread)

    def quantile(self, q: float) -> Any:
        """Return a quantile of each number."""
        return self._each(lambda x: np.quantile(x, q, axis=0))


@dataclass(frozen=True, repr=False)
class Forecast(InNotebooks):
    """What comes after each sequence: lists with one array a sequence, which has one row a step ahead.

    An entry is a mapping of arrays where observations, or states, have names.

    Attributes
    ----------
    observed, states
        The laws of the observations and of the states, one a sequence.
    level
        The probability with which intervals hold each number.
    single
        Whether one sequence was given as it is, and not a list.
    regimes
        The probability of each regime, where the model has some.
    mean, cov, lower, upper
        Of the observations: `lower` and `upper` are the ends of intervals.
    state_mean, state_cov, state_lower, state_upper
        Of the states.
    draws
        Draws of the observations (draws, steps, ...), where the forecast is by draws; None otherwise.
    """

    observed: Sequence[StepLaws]
    states: Sequence[StepLaws]
    level: float
    single: bool = False
    regimes: PerSequence | None = None

    def _per_sequence(self, laws: Sequence[StepLaws], what: Callable[[Any], Any]) -> PerSequence:
        return PerSequence(map(what, laws), single=self.single)

    @cached_property
    def mean(self) -> PerSequence:
        """The means of the observations."""
        return self._per_sequence(self.observed, lambda law: law.mean)

    @cached_property
    def cov(self) -> PerSequence:
        """The covariances of the observations."""
        return self._per_sequence(self.observed, lambda law: law.cov)

    @cached_property
    def lower(self) -> PerSequence:
        """The lower ends of the observations' intervals."""
        return self.quantile(0.5 - self.level / 2)

    @cached_property
    def upper(self) -> PerSequence:
        """The upper ends of the observations' intervals."""
        return self.quantile(0.5 + self.level / 2)

    @cached_property
    def state_mean(self) -> PerSequence:
        """The means of the states."""
        return self._per_sequence(self.states, lambda law: law.mean)

    @cached_property
    def state_cov(self) -> PerSequence:
        """The covariances of the states."""
        return self._per_sequence(self.states, lambda law: law.cov)

    @cached_property
    def state_lower(self) -> PerSequence:
        """The lower ends of the states' intervals."""
        return self._per_sequence(self.states, lambda law: law.quantile(0.5 - self.level / 2))

    @cached_property
    def state_upper(self) -> PerSequence:
        """The upper ends of the states' intervals."""
        return self._per_sequence(self.states, lambda law: law.quantile(0.5 + self.level / 2))

    @property
    def draws(self) -> list[Any] | None:
        """Draws of the observations, if there are some."""
        found = [law.draws for law in self.observed if isinstance(law, DrawnSteps)]
        return found or None

    def quantile(self, q: float) -> PerSequence:
        """Return a quantile of each observed number.

        Examples
        --------
        >>> import markovia as mk
        >>> ahead = mk.LinearStateSpace(1, 1, 1, 1, initial_cov=1).forecast([0.0], 1)
        >>> ahead.quantile(0.5)[0].tolist() == ahead.mean[0].tolist()
        True
        """
        check_level("q", q)
        return self._per_sequence(self.observed, lambda law: law.quantile(q))

    def to_pandas(self) -> "pd.DataFrame":
        """Return a row for each sequence, step ahead (from 1) and observed number: its mean and its interval.

        Examples
        --------
        >>> import markovia as mk
        >>> mk.LinearStateSpace(1, 1, 1, 1, initial_cov=1).forecast([0.0, 1.0], 2).to_pandas()["step"].tolist()
        [1, 2]
        """
        import pandas as pd

        rows = []
        for i, parts in enumerate(zip(self.mean, self.lower, self.upper, strict=True)):
            columns = [columns_by_number(part) for part in parts]
            for name in columns[0]:
                for t, values in enumerate(zip(*(part[name] for part in columns), strict=True)):
                    rows.append((i, t + 1, name, *map(float, values)))
        return pd.DataFrame(rows, columns=["sequence", "step", "number", "mean", "lower", "upper"])

    def plot(
        self,
        observed: Any = None,
        parts: Sequence[int | str] | None = None,
        *,
        sequence: int = 0,
        last: int | None = None,
        ax: "Axes | None" = None,
        title: str | None = None,
    ) -> Any:
        """Draw the forecast with its intervals after what was observed; see `markovia.plotting.plot_forecast`."""
        return ports.call(
            "plot-forecast", self, observed, parts, sequence=sequence, last=last, ax=ax, title=title
        )

    def __repr__(self) -> str:
        return f"Forecast(sequences={len(self.observed)}, level={self.level:g})"
