"""The distribution of one number, or of each element of an array of numbers, whatever it is known as.

Three forms cover every posterior: values with weights (tables, draws), a SciPy distribution (closed forms), and components
that are Gaussian each (in `gaussian_posterior`). Each says its mean, variance, quantiles, distribution function and the
shortest interval that holds a probability; arrays of numbers answer with an array of their shape.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from markovia.runtime.array_types import Array

SCAN, REFINEMENTS = 64, 45
SLACK = 1e-12
"""What rounding may take off a probability that was added up."""


class NumberDistribution(Protocol):
    """What a distribution of numbers is asked."""

    def mean(self) -> Any:
        """Return the mean."""

    def variance(self) -> Any:
        """Return the variance."""

    def quantile(self, q: float) -> Any:
        """Return the smallest number with at least a share q of the probability up to it."""

    def cdf(self, x: Any) -> Any:
        """Return the probability of being at most x."""

    def shortest(self, prob: float) -> tuple[Any, Any]:
        """Return the ends of the shortest interval that holds a probability."""


@dataclass(frozen=True, eq=False)
class WeightedNumbers:
    """Values with weights along the first axis, the same or others for every element of the axes that follow.

    Attributes
    ----------
    values, weights
        Arrays that fit together; weights sum to one along the first axis.
    drawn
        Whether the values are draws that weigh alike: then quantiles lie between draws, and the variance is that of what
        they were drawn from.

    Examples
    --------
    >>> die = WeightedNumbers(np.arange(1.0, 7.0), np.full(6, 1 / 6))
    >>> die.quantile(0.5), die.cdf(2.5).round(4), die.shortest(0.5)
    (np.float64(3.0), np.float64(0.3333), (np.float64(1.0), np.float64(3.0)))
    """

    values: Array
    weights: Array
    drawn: bool = False

    @cached_property
    def _ascending(self) -> tuple[Array, Array]:
        """The values in ascending order, and the share of the probability up to each of them."""
        values, weights = np.broadcast_arrays(self.values, self.weights)
        order = np.argsort(values, axis=0, kind="stable")
        return np.take_along_axis(values, order, axis=0), np.cumsum(
            np.take_along_axis(weights, order, axis=0), axis=0
        )

    def mean(self) -> Any:
        """Return the mean."""
        return self.values.mean(axis=0) if self.drawn else (self.values * self.weights).sum(axis=0)

    def variance(self) -> Any:
        """Return the variance; of n draws the sum of squares over n - 1."""
        n = len(self.values)
        found = ((self.values - self.mean()) ** 2 * self.weights).sum(axis=0)
        return found * n / (n - 1) if self.drawn and n > 1 else found

    def quantile(self, q: float) -> Any:
        """Return the smallest value with at least a share q up to it; between draws, by interpolation."""
        if self.drawn:
            return np.quantile(self.values, q, axis=0)
        values, heights = self._ascending
        at = np.minimum((heights < q - SLACK).sum(axis=0), len(values) - 1)
        return np.take_along_axis(values, at[None], axis=0)[0]

    def cdf(self, x: Any) -> Any:
        """Return the probability of being at most x: for each x of one number, for each element of several."""
        point = np.asarray(x, dtype=np.float64)
        values, heights = self._ascending
        if values.ndim == 1:
            below = np.searchsorted(values, point, side="right")
            return np.concatenate([[0.0], heights])[below]
        return (np.less_equal(self.values, point) * self.weights).sum(axis=0)

    def shortest(self, prob: float) -> tuple[Any, Any]:
        """Return the ends of the shortest interval between two values; of several, the one that holds most."""
        values, heights = self._ascending
        shape = values.shape[1:]
        ends = np.empty((2, *shape))
        for at in np.ndindex(*shape):
            x, up_to = values[(slice(None), *at)], heights[(slice(None), *at)]
            before = np.concatenate([[0.0], up_to[:-1]])
            # from each value on, the first one at which the probability is reached
            last = np.searchsorted(up_to, before + (prob - SLACK), side="left")
            first = np.flatnonzero(last < len(x))
            last = last[first]
            width = x[last] - x[first]
            held = up_to[last] - before[first]
            best = np.lexsort((-held.round(12), width))[0]
            ends[(0, *at)], ends[(1, *at)] = x[first[best]], x[last[best]]
        return ends[0][()], ends[1][()]


@dataclass(frozen=True, eq=False)
class ContinuousNumbers:
    """A distribution as SciPy has it, frozen: `ppf`, `cdf`, `mean`, `var`; `at` is one element of an array of them.

    `certain` has the numbers that are no random ones, where some are; NaN for the others.
    """

    frozen: Any
    at: tuple[int, ...] = ()
    certain: Any = None

    def _element(self, found: Any, instead: Any = None) -> Any:
        if self.certain is not None:
            found = np.where(np.isnan(self.certain), found, self.certain if instead is None else instead)
        place: Any = (..., *self.at)
        return np.asarray(found)[place] if self.at else found

    def mean(self) -> Any:
        """Return the mean."""
        return self._element(self.frozen.mean())

    def variance(self) -> Any:
        """Return the variance."""
        return self._element(self.frozen.var(), 0.0)

    def quantile(self, q: Any) -> Any:
        """Return the number below which a share q lies: one share, or one for each element."""
        return self._element(self.frozen.ppf(q))

    def cdf(self, x: Any) -> Any:
        """Return the probability of being at most x."""
        if self.certain is None:
            return self._at_points(self.frozen.cdf, x)

        def cdf(points: Any) -> Any:
            return np.where(np.isnan(self.certain), self.frozen.cdf(points), points >= self.certain)

        return self._at_points(cdf, x)

    def log_prob(self, x: Any) -> Any:
        """Return the log density at x."""
        return self._at_points(self.frozen.logpdf, x)

    def _at_points(self, function: Any, x: Any) -> Any:
        if not self.at:
            return function(x)
        # points stand in front of the axes of the array, of which one element is wanted
        points = np.asarray(x, dtype=np.float64)
        return function(points.reshape(*points.shape, *(1,) * len(self.at)))[(..., *self.at)]

    def shortest(self, prob: float) -> tuple[Any, Any]:
        """Return the ends of the shortest interval."""
        return shortest_interval(self.quantile, prob)


def shortest_interval(quantile: Any, prob: float) -> tuple[Any, Any]:
    """Return the ends of the shortest interval that holds a probability, from the quantiles of continuous numbers.

    The probability below the interval is scanned, and the best place narrowed down by golden sections: right for one peak,
    and for several where the scan finds the best of them.

    Examples
    --------
    >>> from scipy import stats
    >>> [round(float(x), 6) for x in shortest_interval(stats.expon().ppf, 0.9)]  # begins at the mode
    [0.0, 2.302585]
    """
    grid = np.linspace(0.0, 1.0 - prob, SCAN + 1)

    def ends(below: Any) -> tuple[Any, Any]:
        return quantile(below), quantile(np.minimum(below + prob, 1.0))

    def width(below: Any) -> Any:
        low, high = ends(below)
        return high - low

    widths = np.array([width(p) for p in grid])
    best = np.argmin(widths, axis=0)
    low, high = grid[np.maximum(best - 1, 0)], grid[np.minimum(best + 1, SCAN)]
    golden = (np.sqrt(5.0) - 1.0) / 2.0
    for _ in range(REFINEMENTS):
        left, right = high - golden * (high - low), low + golden * (high - low)
        shrink = width(left) <= width(right)
        low, high = np.where(shrink, low, left)[()], np.where(shrink, right, high)[()]
    middle = (low + high) / 2.0
    # a density that only falls (or only rises) is highest at an end of the scan
    return ends(np.where(width(middle) < widths.min(axis=0), middle, grid[best])[()])
