"""Where a score of points is highest: many points at random and near the best ones, the promising ones then climbed.

Numbers on scales climb by L-BFGS with the closed-form gradient, in their bounds; whole numbers and choices by trying their
neighbours; both in turn. A small finite space is looked through as a whole.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from markovia.learning.processes.acquisition import Acquisition
from markovia.models.bayesopt.space import Space
from markovia.optimise.minimise import minimise
from markovia.runtime.array_types import Array

ANYWHERE, NEAR, STARTS = 512, 64, 3
"""Points anywhere, points near each of the best ones, and starts of either kind that are climbed."""
BEST = 3
"""The best points whose neighbourhood is searched."""
ROUNDS = 4
"""Turns of climbing and of trying neighbours."""
SAME = 1e-9
"""Units closer than this are one point."""


def design(space: Space, kind: str, n: int, rng: np.random.Generator) -> Array:
    """Return units of n points: "sobol", "latin" (a Latin hypercube) or "random"."""
    from scipy.stats import qmc

    d = len(space.dimensions)
    if kind == "sobol":
        # powers of two, as Sobol points are made, and the first of them
        return space.snapped(qmc.Sobol(d, rng=rng).random_base2(max(int(np.ceil(np.log2(n))), 0))[:n])
    return space.snapped(qmc.LatinHypercube(d, rng=rng).random(n) if kind == "latin" else rng.random((n, d)))


def is_new(units: Array, taken: Array) -> Array:
    """Say which points are not among those taken."""
    if not len(taken):
        return np.ones(len(units), dtype=bool)
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(units, taken, "chebyshev").min(axis=1) > SAME)


def propose(
    space: Space,
    score: Acquisition | None,
    rng: np.random.Generator,
    *,
    taken: Array,
    best: Array,
    allowed: Callable[[dict[str, Any]], bool] | None = None,
) -> tuple[Array, float] | None:
    """Return the units of the point with the highest score and the score; None where all points are taken.

    Without a score it is a point at random. `taken` are left out; `best` are points to search near; `allowed` says of a
    point whether it may be tried.
    """

    def may(units: Array) -> Array:
        fits = is_new(units, taken)
        if allowed is not None:
            fits[fits] = [bool(allowed(space.point(u))) for u in units[fits]]
        return fits

    everything = space.listed
    near = np.zeros((0, len(space.dimensions)))
    if everything is not None:
        anywhere = rng.permutation(everything)  # ties go to any of them
    else:
        anywhere = design(space, "sobol", ANYWHERE, rng)
        near = np.repeat(best[:BEST], NEAR, axis=0)
        step = rng.standard_normal(near.shape) * 10.0 ** rng.uniform(-3.0, -0.7, (len(near), 1))
        near = space.snapped(np.clip(near + step, 0.0, 1.0))
    anywhere, near = anywhere[may(anywhere)], near[may(near)] if len(near) else near
    for _ in range(20):  # where few points are allowed, more are drawn
        if len(anywhere) + len(near) or everything is not None:
            break
        anywhere = design(space, "random", 4 * ANYWHERE, rng)
        anywhere = anywhere[may(anywhere)]
    both = np.concatenate([anywhere, near])
    if not len(both):
        return None
    if score is None:
        return both[0], np.nan
    scores = score(space.seen(both))
    top = int(np.argmax(scores))
    found, height = both[top], float(scores[top])
    if everything is None:
        n = len(anywhere)
        starts = [*np.argsort(-scores[:n])[:STARTS], *(n + np.argsort(-scores[n:])[:STARTS])]
        for i in starts:
            unit, value = _climbed(space, score, both[i], float(scores[i]))
            if value > height and may(unit[None])[0]:
                found, height = unit, value
    return found, height


def _climbed(space: Space, score: Acquisition, unit: Array, value: float) -> tuple[Array, float]:
    """Climb from a point: what can be moved by its gradient, and what has neighbours by trying them."""
    for _ in range(ROUNDS):
        before = value
        moving, columns = space.moving(unit)
        if moving:
            row = space.seen(unit[None])

            def fall(numbers: Array, row: Array = row, columns: list[int] = columns) -> tuple[float, Array]:
                row[0, columns] = numbers
                value, slope = score.with_gradient(row)
                return -float(value[0]), -slope[0, columns]

            there = minimise(fall, unit[moving], lower=0.0, upper=1.0, max_iter=60, tol=1e-5, flat=1e-9)
            if -there.value > value:
                unit, value = unit.copy(), -there.value
                unit[moving] = np.clip(there.point, 0.0, 1.0)
        others = space.neighbours(unit)
        if not len(others):
            break
        scores = score(space.seen(others))
        if scores.max() > value:
            unit, value = others[int(scores.argmax())], float(scores.max())
        if not value > before + 1e-9 * abs(before):
            break
    return unit, value
