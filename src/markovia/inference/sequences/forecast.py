"""What comes after sequences: the law of each step ahead, as Gaussians, mixtures of them, draws, or states.

Whatever model made it, a `Forecast` has means, covariances, intervals, quantiles and sample paths of the observations, or
of the states behind them, dates where the data had some, a table and a picture.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.inference.sequences.padded import PerSequence, columns_by_number
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count, check_level
from markovia.runtime.seeds import Seed, generator
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


@dataclass(frozen=True)
class StateSteps:
    """One of finitely many states a step, as the numbers "is it this state", 1 or 0: their means are the probabilities.

    Attributes
    ----------
    mean
        The probability of each state, (steps, states).
    names
        What the states, or symbols, are called.
    """

    mean: Array
    names: Sequence[Any]

    @cached_property
    def cov(self) -> Array:
        """The covariance of each step, diag(p) - p p' (steps, states, states)."""
        own = np.einsum("ti,ij->tij", self.mean, np.eye(self.mean.shape[1]))
        return np.asarray(own - self.mean[:, :, None] * self.mean[:, None])

    def quantile(self, q: float) -> Array:
        """Return a quantile of each number: 0 for states that are improbable enough, 1 for others."""
        return np.asarray(1.0 - self.mean < q, dtype=np.float64)


@dataclass(frozen=True, repr=False)
class Forecast(InNotebooks):
    """What comes after each sequence: lists with one array a sequence, which has one row a step ahead.

    An entry is a mapping of arrays where observations, or states, have names. Where arrays are expected, a forecast is its
    means: `forecast[0]` are those after the first sequence, the probabilities of states where states are forecast.

    Attributes
    ----------
    observed, states
        The laws of the observations and of the states, one a sequence; one of the two is empty where the model forecasts
        the other alone.
    level
        The probability with which intervals hold each number.
    single
        Whether one sequence was given as it is, and not a list.
    regimes
        The probability of each regime, where the model has some.
    dates
        The dates of the steps, one array a sequence, where the data had dates at equal distances.
    names
        What the observed numbers are called, where the data had columns with names.
    paths
        A function of a number and a source of random numbers that draws whole paths, for `sample`.
    mean, sd, cov, median, lower, upper
        Of the observations, or of the states where they alone are forecast: `lower` and `upper` are the ends of intervals.
    state_mean, state_cov, state_lower, state_upper
        Of the states.
    draws
        Draws of the observations (draws, steps, ...), where the forecast is by draws; None otherwise.
    """

    observed: Sequence[StepLaws]
    states: Sequence[StepLaws] = ()
    level: float = 0.95
    single: bool = False
    regimes: PerSequence | None = None
    dates: Sequence[Any] | None = None
    names: Sequence[str] = ()
    paths: Callable[[int, np.random.Generator], Sequence[Any]] | None = None

    @classmethod
    def of_states(
        cls, probabilities: Array, names: Sequence[Any], rows: Any, *, hidden: bool = False, paths: Any = None
    ) -> "Forecast":
        """Return a forecast of states, probabilities (sequences, steps, states), after sequences that were read."""
        laws = [StateSteps(p, names) for p in probabilities]
        found = cls([] if hidden else laws, laws if hidden else [], single=rows.single, paths=paths)
        return found.after(rows, probabilities.shape[1], named=False)

    def after(self, rows: Any, steps: int, *, named: bool = True) -> "Forecast":
        """Return the same after sequences that were read: with the dates of its steps, and the names of their columns."""
        return replace(self, dates=rows.dates_ahead(steps), names=rows.columns if named else ())

    @property
    def _laws(self) -> Sequence[StepLaws]:
        return self.observed or self.states

    def __len__(self) -> int:
        return len(self._laws)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.mean)

    def __getitem__(self, key: Any) -> Any:
        return self.mean[key]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.mean.__array__(dtype, copy)

    def _per_sequence(self, laws: Sequence[StepLaws], what: Callable[[Any], Any]) -> PerSequence:
        return PerSequence(map(what, laws), single=self.single)

    @cached_property
    def mean(self) -> PerSequence:
        """The means of the observations."""
        return self._per_sequence(self._laws, lambda law: law.mean)

    @cached_property
    def cov(self) -> PerSequence:
        """The covariances of the observations."""
        return self._per_sequence(self._laws, lambda law: law.cov)

    @cached_property
    def sd(self) -> PerSequence:
        """The standard deviations of the observations."""
        return self._per_sequence(self._laws, lambda law: _deviations(law.mean, law.cov))

    @cached_property
    def median(self) -> PerSequence:
        """The medians of the observations."""
        return self.quantile(0.5)

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
        return self._per_sequence(self._laws, lambda law: law.quantile(q))

    def interval(self, level: float | None = None) -> tuple[PerSequence, PerSequence]:
        """Return the ends of intervals that hold each number with a probability; `level` of the forecast by default."""
        level = self.level if level is None else level
        check_level("level", level)
        return self.quantile(0.5 - level / 2), self.quantile(0.5 + level / 2)

    def sample(self, n: int = 1_000, *, seed: Seed = None) -> PerSequence:
        """Draw whole paths of the steps ahead: an array (n, steps, numbers) a sequence, or a mapping of such by name.

        Steps of a path belong together: their sums, largest values and first passages are those of the model.

        Examples
        --------
        >>> import markovia as mk
        >>> ahead = mk.LinearStateSpace(1, 1, 1, 1, initial_cov=1).forecast([0.0], 3)
        >>> ahead.sample(100, seed=0)[0].shape
        (100, 3, 1)
        """
        check_count("n", n, 1)
        rng = generator(seed)
        if self.paths is not None:
            return PerSequence(self.paths(n, rng), single=self.single)
        drawn = self.draws
        if drawn is None:
            raise UnsupportedModel(
                "this forecast has the law of each step by itself, and no paths over steps to draw"
            )
        return PerSequence((_chosen(one, rng, n) for one in drawn), single=self.single)

    def to_pandas(self, quantiles: Sequence[float] = ()) -> "pd.DataFrame":
        """Return a row for each sequence, step ahead (from 1) and observed number, or state: its mean and its interval.

        Rows are indexed by the dates of their steps, where the data had dates. `quantiles` get a column each: "q0.1".

        Examples
        --------
        >>> import markovia as mk
        >>> mk.LinearStateSpace(1, 1, 1, 1, initial_cov=1).forecast([0.0, 1.0], 2).to_pandas()["step"].tolist()
        [1, 2]
        """
        import pandas as pd

        rows, dates = [], []
        more = [self.quantile(q) for q in quantiles]
        for i, parts in enumerate(zip(self.mean, self.lower, self.upper, *more, strict=True)):
            columns = [columns_by_number(part) for part in parts]
            named = getattr(self._laws[i], "names", columns[0])
            if len(self.names) == len(named) and not isinstance(parts[0], Mapping):
                named = self.names
            for name, number in zip(named, columns[0], strict=True):
                for t, values in enumerate(zip(*(part[number] for part in columns), strict=True)):
                    rows.append((i, t + 1, name, *map(float, values)))
                    dates += [] if self.dates is None else [self.dates[i][t]]
        index = pd.DatetimeIndex(dates, name="date") if dates else None
        asked = [f"q{q:g}" for q in quantiles]
        return pd.DataFrame(rows, index, ["sequence", "step", "number", "mean", "lower", "upper", *asked])

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
        return f"Forecast(sequences={len(self)}, level={self.level:g})"

    def __str__(self) -> str:
        return f"{self!r}\n{self.to_pandas().to_string(max_rows=SHOWN)}"


SHOWN = 20
"""Rows of a forecast that are printed."""


def _deviations(mean: Any, cov: Any) -> Any:
    """Return standard deviations from covariance matrices, or from variances of the shape of the means."""
    if isinstance(mean, Mapping):
        return {name: _deviations(mean[name], cov[name]) for name in mean}
    spread = cov if np.shape(cov) == np.shape(mean) else np.einsum("tii->ti", cov)
    return np.sqrt(np.maximum(spread, 0.0))


def _chosen(draws: Any, rng: np.random.Generator, n: int) -> Any:
    """Return n of some draws (draws, ...), each as probable as the others; in a mapping the same ones for all names."""
    count = len(next(iter(draws.values()))) if isinstance(draws, Mapping) else len(draws)
    which = rng.integers(count, size=n)
    return {k: np.asarray(v)[which] for k, v in draws.items()} if isinstance(draws, Mapping) else draws[which]
