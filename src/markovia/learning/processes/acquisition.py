"""How much a trial at some place promises, from what a process knows of the function there; and where it promises most.

All are scores to be maximised in the search of a minimum. Of the mean m, the standard deviation s and the best value so far,
`log-ei` is the log of the expected improvement, in the form of Ament and others (2023), which is exact where the improvement
itself underflows; `pi` the log probability of an improvement; `lcb` is kappa s - m; `thompson` is less a function drawn from
the process (pathwise, Wilson and others 2020); `kg`, the knowledge gradient, is by how much the lowest mean of a set is
expected to fall (Frazier, Powell and Dayanik 2009). Black-box constraints multiply by the probability that they hold.
Gradients are closed forms; nothing is compiled.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from collections.abc import Callable, Sequence
from math import log, pi, sqrt
from typing import Any

import numpy as np

from markovia.learning.processes.surrogate import Surrogate
from markovia.runtime.array_types import Array

ACQUISITIONS = ("log-ei", "lcb", "pi", "thompson", "kg")
"""What `acquisition=` may be."""
HALF_LOG_2PI = 0.5 * log(2.0 * pi)
LEAST_SD = 1e-9
"""Standard deviations below this count as this, so that scores of places that were tried are finite."""


def log_improvement(z: Any) -> tuple[Array, Array, Array]:
    """Return log(phi(z) + z Phi(z)), and Phi(z) and phi(z) as parts of that sum; exact far below zero.

    Examples
    --------
    >>> value, slope, _ = log_improvement(np.array([0.0, -40.0, -1e8]))
    >>> value.round(4).tolist()
    [-0.9189, -808.2986, -5000000000000038.0]
    """
    from scipy.special import ndtr

    z = np.asarray(z, dtype=np.float64)
    near = z > -1.0
    safe = np.where(near, z, 0.0)
    density, below = np.exp(-0.5 * safe**2 - HALF_LOG_2PI), ndtr(safe)
    height = density + safe * below
    # phi(z) (1 + z m), m = Phi(z) / phi(z): a difference of nearly equal numbers, beyond 30 by its series
    mills = mills_ratio(np.where(near, -1.0, z))
    q = 1.0 / np.square(np.minimum(z, -30.0))
    series = np.log(q) + np.log1p(
        -3.0 * q * (1.0 - 5.0 * q * (1.0 - 7.0 * q * (1.0 - 9.0 * q * (1.0 - 11.0 * q))))
    )
    rest = np.where(z > -30.0, np.log1p(np.clip(z, -30.0, -1.0) * mills), series)
    return (
        np.where(near, np.log(height), -0.5 * z**2 - HALF_LOG_2PI + rest),
        np.where(near, below / height, mills * np.exp(-rest)),
        np.where(near, density / height, np.exp(-rest)),
    )


def mills_ratio(z: Any) -> Array:
    """Return Phi(z) / phi(z); infinite far above zero.

    Examples
    --------
    >>> mills_ratio(np.array([0.0, -1e6])).round(9).tolist()
    [1.253314137, 1e-06]
    """
    from scipy.special import erfcx

    with np.errstate(over="ignore"):
        return np.asarray(sqrt(0.5 * pi) * erfcx(-np.asarray(z) / sqrt(2.0)))


def improvement_score(
    kind: str, best: float, kappa: float, mean: Array, sd: Array
) -> tuple[Array, Array, Array]:
    """Return a score of means and standard deviations, and its derivatives by both."""
    from scipy.special import log_ndtr

    if kind == "lcb":
        return kappa * sd - mean, -np.ones_like(mean), np.full_like(sd, kappa)
    z = (best - mean) / sd
    if kind == "pi":
        by_z = 1.0 / mills_ratio(z)
        return log_ndtr(z), -by_z / sd, -by_z * z / sd
    value, below, density = log_improvement(z)
    return np.log(sd) + value, -below / sd, density / sd


class Acquisition:
    """A score of places: that of one of `ACQUISITIONS`, plus the log probability that all constraints hold.

    Parameters
    ----------
    kind
        One of `ACQUISITIONS`.
    process
        What is known of the values.
    best
        The lowest value so far in standard units, of places where constraints hold; None where there is none, and the score
        is the probability that they hold.
    kappa
        Weight of the standard deviation in "lcb".
    constraints
        What is known of quantities that must not be above zero.
    choices
        Places whose lowest mean "kg" is about.
    rng
        Draws the function of "thompson".
    """

    def __init__(
        self,
        kind: str,
        process: Surrogate,
        best: float | None,
        *,
        kappa: float = 2.0,
        constraints: Sequence[Surrogate] = (),
        choices: Array | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        self.kind, self.process, self.best, self.kappa, self.constraints = (
            kind,
            process,
            best,
            kappa,
            constraints,
        )
        self.choices = process.X if choices is None else choices
        self._drawn = process.draw(rng or np.random.default_rng()) if kind == "thompson" else None

    def __call__(self, X: Array) -> Array:
        """Return the scores of places."""
        return self._scored(X, slopes=False)[0]

    def with_gradient(self, X: Array) -> tuple[Array, Array]:
        """Return the scores of places and their derivatives by the numbers of each."""
        return self._scored(X, slopes=True)

    def _scored(self, X: Array, *, slopes: bool) -> tuple[Array, Array]:
        X = np.asarray(X, dtype=np.float64)
        total, slope = np.zeros(len(X)), np.zeros_like(X)
        parts: list[tuple[Surrogate, Callable[..., Any]]] = [
            # the log probability that a constraint is not above zero
            (c, lambda m, s, c=c: improvement_score("pi", c.scaled(0.0), 0.0, m, s))
            for c in self.constraints
        ]
        if self.best is not None or not self.constraints:
            if self._drawn is not None:
                value, by = self._drawn(X)
                total, slope = total - value, slope - by
            elif self.kind == "kg":
                value, by = self._knowledge_gradient(X, slopes)
                total, slope = total + value, slope + by
            else:
                best = np.inf if self.best is None else self.best
                parts.append(
                    (self.process, lambda m, s: improvement_score(self.kind, best, self.kappa, m, s))
                )
        for process, score in parts:
            mean, sd, pull = process.moments_with_pull(X)
            value, by_mean, by_sd = score(mean, np.maximum(sd, LEAST_SD))
            total = total + value
            if slopes:
                slope += pull(by_mean, np.where(sd > LEAST_SD, 0.5 * by_sd / np.maximum(sd, LEAST_SD), 0.0))
        return total, slope

    def _knowledge_gradient(self, X: Array, slopes: bool) -> tuple[Array, Array]:
        """Return the log of the expected fall of the lowest mean of the choices by a trial at each place."""
        process = self.process
        values, by = np.empty(len(X)), np.zeros_like(X)
        known = process.moments(self.choices)[0]
        means, sd, _ = process.moments_with_pull(X)
        variances = np.maximum(sd, LEAST_SD) ** 2
        spreads = np.sqrt(variances + process.noise)
        covariances = np.vstack([process.covariance_between(self.choices, X), variances])
        for i, mean in enumerate(means):
            step = covariances[:, i] / spreads[i]
            fall, share, moment = expected_fall(np.append(known, mean), step)
            # a place of a lower mean is a fall by itself
            values[i] = np.logaddexp(fall, log(known.min() - mean)) if mean < known.min() else fall
            gain = float(np.exp(values[i]))
            if slopes and gain > 0.0:
                # steps are covariances / spread: by each covariance, and by the variance of the place through the spread
                x = X[i : i + 1]
                by_cov = -moment / spreads[i]
                by_variance = by_cov[-1] + 0.5 * float(moment @ step) / (variances[i] + process.noise)
                by[i] = process.pulled_covariance(x, self.choices, by_cov[None, :-1])[0]
                by[i] += process.moments_with_pull(x)[2](-share[-1:], np.array([by_variance]))[0]
                by[i] /= gain
        return values, by


def expected_fall(a: Array, b: Array) -> tuple[float, Array, Array]:
    """Return log(min a - E min_i(a_i + b_i Z)) of a standard normal Z, how often each is the lowest, and E Z where it is.

    The last two are the derivatives of E min by a and b. Of the lines only those on the lower envelope matter, and the fall
    is a sum over their crossings, each an expected improvement (Frazier, Powell and Dayanik 2009).

    Examples
    --------
    >>> value, share, _ = expected_fall(np.array([0.0, 0.0]), np.array([1.0, -1.0]))
    >>> round(float(np.exp(value)), 6), share.tolist()  # E|Z|
    (0.797885, [0.5, 0.5])
    """
    from scipy.special import ndtr

    # from minus infinity on: the steepest line is the lowest first; of equally steep ones the lower
    hull: list[int] = []
    cuts: list[float] = []
    last = (0.0, 0.0)
    order = np.lexsort((a, -b)).tolist()
    for i, height, slope in zip(order, a[order].tolist(), b[order].tolist(), strict=True):
        if hull and slope == last[1]:
            continue
        while hull:
            cut = (height - last[0]) / (last[1] - slope)
            if not cuts or cut > cuts[-1]:
                cuts.append(cut)
                break
            hull.pop()
            cuts.pop()
            last = (float(a[hull[-1]]), float(b[hull[-1]]))
        hull.append(i)
        last = (height, slope)
    share, moment = np.zeros_like(a), np.zeros_like(b)
    low, high = np.array([-np.inf, *cuts]), np.array([*cuts, np.inf])
    above = low > 0.0  # differences of the smaller tail
    share[hull] = np.where(above, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))
    density = np.exp(-0.5 * np.array([-np.inf, *cuts, np.inf]) ** 2 - HALF_LOG_2PI)
    moment[hull] = density[:-1] - density[1:]
    if not cuts:
        return -np.inf, share, moment
    falls = np.log(-np.diff(b[hull])) + log_improvement(-np.abs(cuts))[0]
    return float(np.logaddexp.reduce(falls)), share, moment
