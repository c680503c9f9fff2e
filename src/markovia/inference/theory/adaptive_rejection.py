"""Adaptive rejection sampling: exact draws from a density on a line whose logarithm is concave.

Lines through neighbouring points of a concave function lie above it outside their two points. The least of them makes an
envelope of exponentials, which are drawn from and kept with probability density / envelope, as in `rejection_sample`; points
that are not kept become points of the envelope, which is soon so tight that nearly every draw is kept. Chords lie below a
concave function, so a point over an envelope or under a chord shows that the density is not what it should be.
References: Gilks and Wild (1992); Gilks (1992) for lines without derivatives.
Cost: some hundred evaluations to find where the mass is, then about one a draw. Use it for full conditionals and truncated
densities; the engines of `markovia.engines` are for models.
"""

from typing import NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.theory.basic_sampling import Accepted, LogDensity
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count
from markovia.runtime.seeds import Seed, generator

POINTS = 60
"""Points that an envelope is made of at most."""
TIGHT = 0.9
"""The share kept from which draws are made many at a time."""
BATCH = 4096
GRID = 32
CLOSE = 1e-3
"""How many nats the envelope may be off without new points."""
DROP = 2.0
"""How far, in nats, the log density may fall between neighbouring points of the first envelope."""


def adaptive_rejection_sample(
    log_density: LogDensity,
    n: int,
    support: tuple[float, float] = (-np.inf, np.inf),
    seed: Seed = None,
    *,
    start: float | None = None,
    max_tries: int = 10_000_000,
) -> Accepted:
    """Draw exactly from a density on a line whose logarithm is concave.

    Parameters
    ----------
    log_density
        Takes an array of points, gives the log density of each up to a constant; minus infinity where there is none.
    n
        How many draws.
    support
        Between which two numbers the draws lie; the density need not vanish outside: it is truncated.
    seed
        A whole number or a NumPy generator.
    start
        A point that has a density, where none is found by looking at powers of ten.
    max_tries
        Stop with an error after this many proposals.

    Returns
    -------
    Accepted
        The draws, with the share of proposals that was kept and an estimate of the log of the density's mass.

    Raises
    ------
    InvalidArgument
        If the density is seen not to be log-concave, has no point, or no end.

    Examples
    --------
    A normal beyond two standard deviations, whose mean is 2.373:

    >>> found = adaptive_rejection_sample(lambda x: -(x**2) / 2, 20_000, support=(2.0, np.inf), seed=0)
    >>> round(float(found.draws.mean()), 2), bool(found.acceptance > 0.95)
    (2.37, True)
    """
    check_count("n", n, 1)
    check_count("max_tries", max_tries, 1)
    low, high = (float(end) for end in support)
    if not low < high:
        raise InvalidArgument(f"support= is two numbers, the smaller one first, not {support!r}")
    rng = generator(seed)
    nothing = _EnvelopePoints(np.empty(0), np.empty(0), low, high)
    known = nothing.seen(*_first_points(log_density, low, high, start))
    for k in (0, 1):  # each point against its neighbours on the whole grid
        others = known._replace(x=known.x[1 - k :: 2], h=known.h[1 - k :: 2])
        if len(others.x):
            _check_concave(others, known.x[k::2], known.h[k::2])
    known = _thinned(known)
    kept: list[Array] = []
    have, tries, last, mass, counted, tight = 0, 0, 0, -np.inf, 0, False
    while have < n:
        if tries >= max_tries:
            raise InvalidArgument(
                f"only {have:,} of {tries:,} proposals were kept; give the density's support="
            )
        hull = _envelope(known)
        size = BATCH if tight else 16
        x, above = _draw(hull, size, rng)
        h = _evaluated(log_density, x)
        _check_concave(known, x, h, above)
        with np.errstate(divide="ignore"):
            accept = np.log(rng.random(size)) < h - above
        used = np.flatnonzero(accept)[: n - have]
        kept.append(x[used])
        have += len(used)
        last = tries + (int(used[-1]) + 1 if have == n else size)
        tries += size
        if not tight:  # a loose envelope tells little of the mass
            mass, counted = -np.inf, 0
        mass = np.logaddexp(mass, np.logaddexp.reduce(h - above) + hull.log_mass)
        counted += size
        tight = bool(accept.mean() > TIGHT) or len(known.x) >= POINTS
        # where the envelope is farthest off it gets new points; nearer ones would give slopes of rounding
        worst = np.argsort(h - above)[:4]
        worst = worst[h[worst] < above[worst] - (CLOSE if len(known.x) < POINTS else np.inf)]
        known = known.seen(x[worst], h[worst])
    return Accepted(np.concatenate(kept), last, n / last, float(mass - np.log(counted)))


class _EnvelopePoints(NamedTuple):
    """Points with their log densities, in order, and between which ends all mass lies."""

    x: Array
    h: Array
    low: float
    high: float

    def seen(self, x: Array, h: Array) -> "_EnvelopePoints":
        """Return what is known after more points; a concave function that is minus infinity somewhere stays so beyond."""
        x, at = np.unique(np.concatenate([self.x, x]), return_index=True)
        h = np.concatenate([self.h, h])[at]
        inside = np.flatnonzero(h > -np.inf)
        if not len(inside):
            raise InvalidArgument("no point with a density was found; give one in start=, or the support=")
        first, end = int(inside[0]), int(inside[-1])
        if (h[first:end] == -np.inf).any():
            raise _not_concave(float(x[first + int(np.argmin(h[first:end]))]))
        low = max([self.low, *x[:first][-1:]])
        high = min([self.high, *x[end + 1 :][:1]])
        return _EnvelopePoints(x[first : end + 1], h[first : end + 1], float(low), float(high))


class _Envelope(NamedTuple):
    """Pieces of the envelope: where each is highest, how high, how steeply and how far it falls, which way, its log mass."""

    peak: Array
    height: Array
    rate: Array
    width: Array
    way: Array
    log_masses: Array
    log_mass: float


def _first_points(
    log_density: LogDensity, low: float, high: float, start: float | None
) -> tuple[Array, Array]:
    """Return points around the mode of a concave function: a grid over powers of ten, narrowed where it is highest."""
    powers = np.asarray(10.0 ** np.arange(-12, 13), dtype=np.float64)
    x: Array
    if np.isfinite(low) and np.isfinite(high):
        small = powers[powers < 0.1]
        x = low + (high - low) * np.concatenate([small, np.linspace(0.1, 0.9, 9), 1.0 - small])
    elif np.isfinite(low):
        x = low + powers
    elif np.isfinite(high):
        x = high - powers
    else:
        x = np.concatenate([-powers, [0.0], powers]) + (start or 0.0)
    x = np.unique(np.append(x, [] if start is None else float(start)))
    x = x[(x > low) & (x < high)]
    h = _evaluated(log_density, x)
    for _ in range(60):
        inside = np.flatnonzero(h > -np.inf)
        if not len(inside):
            break
        k = int(np.argmax(h[inside]))
        at, first = int(inside[k]), min(max(k - 1, 0), max(len(inside) - 3, 0))
        near = inside[first : first + 3]
        # three points are enough where they are near in height and the mode is not the last point of an open side
        open_ = (at == 0 and low == -np.inf) or (at == len(x) - 1 and high == np.inf)
        if not open_ and len(near) == 3 and h[near].min() > h[at] - DROP:
            break
        step = 2.0 * float(x[-1] - x[0])
        left = x[at - 1] if at else max(low, x[0] - step)
        right = x[at + 1] if at + 1 < len(x) else min(high, x[-1] + step)
        more = np.linspace(left, right, GRID)[1:-1]
        x, place = np.unique(np.concatenate([x, more]), return_index=True)
        h = np.concatenate([h, _evaluated(log_density, more)])[place]
    return x, h


def _thinned(known: "_EnvelopePoints") -> "_EnvelopePoints":
    """Return the points where the mass is, none so close to the next that rounding makes the slope between them."""
    x, h, low, high = known
    where = np.flatnonzero(h > h.max() - 5 * DROP)
    gap, mode = float(x[where[-1]] - x[where[0]]) / GRID, int(np.argmax(h))
    chosen = [mode]
    for side in (where[where > mode], where[where < mode][::-1]):
        before = mode
        for k in side.tolist():
            if abs(x[k] - x[before]) >= gap:
                chosen.append(k)
                before = k
    chosen.sort()
    return _EnvelopePoints(x[chosen], h[chosen], low, high)


def _envelope(known: _EnvelopePoints) -> _Envelope:
    """Return the envelope of a concave function from the lines through neighbouring points."""
    x, h, low, high = known
    if len(x) < 3:
        raise InvalidArgument(
            "the density is too narrow to find; give a point near its mode in start=, or its support="
        )
    slope = np.diff(h) / np.diff(x)
    if (low == -np.inf and not slope[0] > 0) or (high == np.inf and not slope[-1] < 0):
        raise InvalidArgument("the log density does not fall towards both ends; give its support=")
    # between two points the line from the left and the line from the right meet
    left, right, gap = slope[:-2], slope[2:], np.diff(x)[1:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        meet = x[1:-2] + (h[2:-1] - h[1:-2] - right * gap) / (left - right)
    meet = np.clip(np.where(np.isfinite(meet), meet, x[2:-1]), x[1:-2], x[2:-1])
    bounds = np.concatenate([[low, x[0]], np.column_stack([x[1:-2], meet]).ravel(), [x[-2], x[-1], high]])
    begin, end = bounds[:-1], bounds[1:]
    # pieces in order go through points 0, 1, 1, 2, 2, ..., by turns on the line before the point and on the one after it
    anchor = np.repeat(np.arange(len(x)), 2)[1:-1]
    tilt = slope[np.clip(anchor - 1 + np.arange(len(anchor)) % 2, 0, len(slope) - 1)]
    way = np.where(tilt > 0, -1.0, 1.0)  # a piece falls away from its peak
    peak = np.where(tilt > 0, end, begin)
    rate, width = np.abs(tilt), end - begin
    height = h[anchor] + tilt * (peak - x[anchor])
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        fall = rate * width
        log_masses = height + np.log(np.where(fall > 1e-8, -np.expm1(-fall) / rate, width))
    return _Envelope(peak, height, rate, width, way, log_masses, float(np.logaddexp.reduce(log_masses)))


def _draw(hull: _Envelope, size: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return draws from an envelope and its log height at each."""
    shares = np.exp(hull.log_masses - hull.log_mass)
    piece = rng.choice(len(shares), size=size, p=shares / shares.sum())
    u, rate, width = rng.random(size), hull.rate[piece], hull.width[piece]
    with np.errstate(divide="ignore", invalid="ignore"):
        fall = rate * width
        gone = np.where(fall > 1e-8, -np.log1p(u * np.expm1(-fall)) / rate, u * width)
    return hull.peak[piece] + hull.way[piece] * gone, hull.height[piece] - rate * gone


def _evaluated(log_density: LogDensity, x: Array) -> Array:
    with np.errstate(all="ignore"):
        h = np.asarray(log_density(x), dtype=np.float64)
    if h.shape != x.shape:
        raise InvalidArgument(f"log_density gives one number for each point, {x.shape}, not shape {h.shape}")
    wrong = np.isnan(h) | (h == np.inf)
    if wrong.any():
        where = float(x[wrong][0])
        raise InvalidArgument(
            f"log_density is no number below infinity at {where:.6g}; give the support= it has"
        )
    return h


def _check_concave(known: _EnvelopePoints, x: Array, h: Array, above: Array | float = np.inf) -> None:
    """Refuse points over the envelope, or under the chord of their neighbours; rounding of large numbers is none."""
    below = np.interp(x, known.x, known.h, left=-np.inf, right=-np.inf)
    wrong = (h > above + _slack(h)) | (h < below - _slack(below))
    if wrong.any():
        raise _not_concave(float(x[int(np.argmax(wrong))]))


def _slack(h: Array) -> Array:
    return np.where(np.isfinite(h), 1e-9 + 1e-12 * np.abs(h), 0.0)


def _not_concave(where: float) -> InvalidArgument:
    return InvalidArgument(
        f"the density is not log-concave near {where:.6g}; use rejection_sample, or monte_carlo.slice_step"
    )
