"""Maximum likelihood for state-space models whose matrices are a function of a few parameters, with standard errors.

L-BFGS on unbounded versions of the parameters with central differences, in units of the parameters' own sizes and a number
observed, so that the unit of the data changes nothing; standard errors from the observed information, the second differences
of the log likelihood in the parameters themselves. Cost: two filters a parameter and iteration.
"""

# ruff: noqa: N806 (letters of the literature)

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from markovia.errors import InvalidArgument, MarkoviaError
from markovia.optimise.minimise import minimise
from markovia.runtime.array_types import Array, Flags, Ints

Domain: TypeAlias = Literal["real", "positive", "covariance", "interval", "stationary", "invertible"]
"""Any number; a variance; a covariance's lower triangle, row by row; between two bounds; all coefficients of a stationary
autoregression or invertible average."""

UNTOLD = 1e-5
"""The share of a parameter's information below which differences cannot tell it from none."""
PASSES = 10
"""How often a search goes on from where it ended, in the units of where it ended, while it is no optimum."""
FLAT = 1e-6
"""A slope a number observed that is none, to differences."""
EDGE, BUMP = 1e-7, 1e-3
"""The share of the largest variance that counts as zero, and the one that is tried in its place."""


@dataclass(frozen=True)
class LikelihoodParameter:
    """Some parameters of one kind: their names, where they start, and where they may be.

    `sizes` say how large they are about, in the unit of the data, where their start does not: numbers that start at zero.
    """

    names: tuple[str, ...]
    start: tuple[float, ...]
    domain: Domain = "real"
    low: float = 0.0
    high: float = 1.0
    sizes: tuple[float, ...] = ()

    def sized(self, values: Array, before: Array | None = None) -> Array:
        """Return the sizes of values, those of `before` for values that are next to nothing."""
        if self.domain == "positive":
            other = np.full(len(values), values.max() or 1.0) if before is None else before
            return np.where(values > (0.0 if before is None else EDGE * before), values, other)
        if self.domain == "covariance":
            i, j = _triangle(len(values))
            spread = np.sqrt(
                LikelihoodParameter((), (), "positive").sized(
                    values[i == j], None if before is None else before[i == j]
                )
            )
            return np.asarray(spread[i] * spread[j])
        return np.array(self.sizes) if self.sizes else np.ones(len(values))

    def outside(self, values: Array) -> str:
        """Say in what way values are none that these parameters may have; nothing for values that are fine."""
        said = ", ".join(f"{name}={v:g}" for name, v in zip(self.names, values, strict=True))
        if self.domain == "positive" and (values < 0).any():
            return f"{said}: variances are 0 or more"
        if self.domain == "interval" and ((values < self.low) | (values > self.high)).any():
            return f"{said}, outside {self.low:g} to {self.high:g}"
        if self.domain == "stationary" and np.abs(np.roots(np.r_[1.0, -values])).max(initial=0.0) >= 1:
            return f"{said}, which is not stationary; take smaller coefficients, or differences of the series"
        return ""

    def unbounded(self, values: Array) -> Array:
        """Return values as numbers that may be anything."""
        if self.domain == "positive":
            return np.sqrt(np.maximum(values, 0.0))
        if self.domain == "covariance":
            at = _triangle(len(values))
            cov = np.zeros((at[0][-1] + 1,) * 2)
            cov[at] = cov[at[::-1]] = values
            return np.asarray(np.linalg.cholesky(cov + 1e-12 * np.diag(np.diag(cov)))[at])
        if self.domain == "interval":
            share = np.clip((values - self.low) / (self.high - self.low), 1e-9, 1 - 1e-9)
            return np.log(share / (1 - share))
        if self.domain in ("stationary", "invertible"):
            partial = _partial_autocorrelations(values if self.domain == "stationary" else -values)
            return partial / np.sqrt(np.maximum(1 - partial**2, 1e-12))
        return values

    def bounded(self, free: Array) -> Array:
        """Return the values of unbounded numbers."""
        if self.domain == "positive":
            return free**2
        if self.domain == "covariance":
            at = _triangle(len(free))
            root = np.zeros((at[0][-1] + 1,) * 2)
            root[at] = free
            return np.asarray((root @ root.T)[at])
        if self.domain == "interval":
            return self.low + (self.high - self.low) / (1 + np.exp(-free))
        if self.domain in ("stationary", "invertible"):
            found = _autoregression(free / np.sqrt(1 + free**2))
            return found if self.domain == "stationary" else -found
        return free


def _triangle(entries: int) -> tuple[Ints, Ints]:
    return np.tril_indices(int((2 * entries) ** 0.5))


def _autoregression(partial: Array) -> Array:
    """Return the coefficients that have these partial autocorrelations (Durbin and Levinson)."""
    found = np.empty(0)
    for r in partial:
        found = np.append(found - r * found[::-1], r)
    return found


def _partial_autocorrelations(coefficients: Array) -> Array:
    found = np.array(coefficients, dtype=np.float64)
    for k in range(len(found) - 1, 0, -1):
        r = np.clip(found[k], -0.999999, 0.999999)
        found[:k] = (found[:k] + r * found[:k][::-1]) / (1 - r * r)
    return np.clip(found, -0.999999, 0.999999)


@dataclass(frozen=True)
class LikelihoodFit:
    """The parameters of greatest likelihood, in the order of their names, with standard errors and their covariance."""

    params: Array
    standard_errors: Array
    covariance: Array
    log_likelihood: float
    converged: bool
    iterations: int


def fit_likelihood(
    log_likelihood: Callable[[Array], float],
    parameters: Sequence[LikelihoodParameter],
    start: Array,
    *,
    count: int = 1,
    max_iter: int = 500,
    tol: float = 1e-9,
) -> LikelihoodFit:
    """Find the parameters of greatest log likelihood, of `count` numbers; where that raises an error, it is minus infinity.

    A search that ends where the likelihood still has a slope, or where a variance at zero had better be above, goes on from
    there; one that ends there all the same has not converged.

    Raises
    ------
    InvalidArgument
        If the log likelihood is not finite at the start.

    Examples
    --------
    >>> data = np.array([1.0, 2.0, 4.0, 5.0])
    >>> def log_likelihood(p):
    ...     return float(-0.5 * np.sum(np.log(2 * np.pi * p[1]) + (data - p[0]) ** 2 / p[1]))
    >>> mean, variance = LikelihoodParameter(("mean",), (0.0,)), LikelihoodParameter(("variance",), (1.0,), "positive")
    >>> found = fit_likelihood(log_likelihood, [mean, variance], np.array([0.0, 1.0]), count=4)
    >>> found.params.round(4).tolist(), found.standard_errors.round(3).tolist()
    ([3.0, 2.5], [0.791, 1.768])
    """
    cuts = np.cumsum([len(p.names) for p in parameters])[:-1]

    def of_each(method: str, values: Array, *more: Array) -> Array:
        """Return a method of all parameters, applied to their part of the values."""
        parts = zip(parameters, *(np.split(v, cuts) for v in (values, *more)), strict=True)
        return np.concatenate([getattr(p, method)(*own) for p, *own in parts])

    def tried(params: Array) -> float:
        try:
            return log_likelihood(params)
        except (MarkoviaError, np.linalg.LinAlgError):
            return -np.inf

    def cost(free: Array) -> float:
        """Return by how much parameters, in units of `sizes`, are less likely than the start, a number observed."""
        found = (base - tried(sizes * of_each("bounded", free))) / count
        return found if np.isfinite(found) else 1e300

    def slope(free: Array) -> Array:
        step = 6e-6 * np.maximum(1.0, np.abs(free))
        moves = np.diag(step)
        return np.array(
            [(cost(free + m) - cost(free - m)) / (2 * s) for m, s in zip(moves, step, strict=True)]
        )

    base = tried(start)
    if not np.isfinite(base):
        raise InvalidArgument("the log likelihood is not finite where the parameters start")
    positive = np.concatenate([np.full(len(p.names), p.domain == "positive") for p in parameters])

    def at_zero(params: Array) -> Flags:
        share = params / unit
        return np.asarray(positive & (share <= max(1e-10, EDGE * share[positive].max(initial=0.0))))

    params, iterations, converged = start, 0, False
    unit = sizes = of_each("sized", start)
    for _ in range(PASSES):
        found = minimise(
            lambda free: (cost(free), slope(free)),
            of_each("unbounded", params / sizes),
            max_iter=max(1, max_iter - iterations),
            tol=tol,
            flat=tol * 1e-3,
        )
        params, iterations = sizes * of_each("bounded", found.point), iterations + found.iterations
        sizes = of_each("sized", params, sizes)
        better = _off_zero(
            tried, params, at_zero(params), unit * np.where(positive, params / unit, 0.0).max()
        )
        converged = better is None and bool(
            np.abs(slope(of_each("unbounded", params / sizes))).max() <= 10 * max(tol, FLAT)
        )
        if converged or iterations >= max_iter:
            break
        params = params if better is None else better
    # a variance at zero has no quadratic around it: the others' errors are those with it there
    inside = np.flatnonzero(~at_zero(params))

    def of_inside(some: Array) -> float:
        whole = params / unit
        whole[inside] = some
        return tried(unit * whole)

    covariance = np.full((len(params), len(params)), np.nan)
    covariance[np.ix_(inside, inside)] = information_inverse(of_inside, params[inside] / unit[inside])
    covariance *= unit[:, None] * unit
    with np.errstate(invalid="ignore"):
        errors = np.sqrt(np.diag(covariance))
    return LikelihoodFit(params, errors, covariance, tried(params), converged, iterations)


def _off_zero(
    log_likelihood: Callable[[Array], float], params: Array, zero: Flags, largest: Array
) -> Array | None:
    """Return parameters with variances above zero that are more likely, if there are any: zero is where slopes end."""
    here, found = log_likelihood(params), None
    for i in np.flatnonzero(zero):
        moved = params.copy()
        moved[i] = BUMP * largest[i]
        if (there := log_likelihood(moved)) > here + 1e-6:
            here, found = there, moved
    return found


def information_inverse(log_likelihood: Callable[[Array], float], params: Array) -> Array:
    """Return the inverse of the observed information, by second differences; NaN for what the data do not tell."""
    k, here = len(params), log_likelihood(params)

    def curvature(move: Array) -> float:
        return log_likelihood(params + move) - 2 * here + log_likelihood(params - move)

    moves = np.diag(1e-4 * np.maximum(1e-2, np.abs(params)))
    for i in range(k):  # as far as changes the likelihood by more than rounding and less than its shape
        size = abs(curvature(moves[i])) / moves[i, i] ** 2
        if 0 < size < np.inf and np.isfinite(
            curvature(wider := moves[i] / moves[i, i] * (2e-4 / size) ** 0.5)
        ):
            moves[i] = wider
    step = np.diag(moves)
    H = np.empty((k, k))
    for i in range(k):
        H[i, i] = curvature(moves[i]) / step[i] ** 2
        for j in range(i):
            a, b = moves[i] + moves[j], moves[i] - moves[j]
            four = (
                log_likelihood(params + a)
                - log_likelihood(params + b)
                - log_likelihood(params - b)
                + log_likelihood(params - a)
            )
            H[i, j] = H[j, i] = four / (4 * step[i] * step[j])
    if not np.isfinite(H).all():
        return np.full((k, k), np.nan)
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(H)), 1e-300))
    sizes, axes = np.linalg.eigh(-H * scale[:, None] * scale)
    told = sizes > UNTOLD
    found = (axes[:, told] / sizes[told]) @ axes[:, told].T * scale[:, None] * scale
    blind = (axes[:, ~told] ** 2).sum(axis=1) > 1e-4
    found[blind] = found[:, blind] = np.nan
    return np.asarray(found)
