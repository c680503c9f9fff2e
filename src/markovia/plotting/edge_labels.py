"""Where numbers beside edges go: near the middle of the edge, on no box and on no other number."""

from collections.abc import Sequence

import numpy as np

from markovia.runtime.array_types import Array

SAMPLES = 41
ASIDE = (0.0, 0.12, -0.12, 0.24, -0.24)


def label_places(
    routes: Sequence[Array], sizes: Sequence[Array], low: Array, high: Array
) -> list[Array | None]:
    """Return the centre of each label; None where there is no free place along its edge.

    Parameters
    ----------
    routes
        Where each edge runs: two points, or Bézier curves (one point, then three a curve).
    sizes
        Width and height of each label.
    low, high
        The lower left and upper right corners of the boxes that must stay free.

    Examples
    --------
    >>> ways = [np.array([[0.0, 0.0], [4.0, 0.0]]), np.array([[2.0, -2.0], [2.0, 2.0]])]
    >>> first, second = label_places(ways, [np.array([0.4, 0.2])] * 2, np.zeros((0, 2)), np.zeros((0, 2)))
    >>> first.tolist(), [round(float(v), 6) for v in second]
    ([2.0, 0.0], [2.0, 0.2])
    """
    taken_low, taken_high = list(low), list(high)
    places: list[Array | None] = []
    for route, size in zip(routes, sizes, strict=True):
        spots = _along(route)
        clear = (
            np.array(taken_low).reshape(-1, 2) - size / 2,
            np.array(taken_high).reshape(-1, 2) + size / 2,
        )
        inside = (spots[:, None] > clear[0] + 1e-9) & (spots[:, None] < clear[1] - 1e-9)
        free = np.flatnonzero(~np.any(np.all(inside, axis=2), axis=1))
        if not len(free):
            places.append(None)
            continue
        spot = spots[free[0]]
        taken_low.append(spot - size / 2)
        taken_high.append(spot + size / 2)
        places.append(spot)
    return places


def points_along(route: Array) -> Array:
    """Return the two points of a straight edge, or points along Bézier curves."""
    if len(route) == 2:
        return route
    t = np.linspace(0.0, 1.0, SAMPLES)[:, None]
    return np.concatenate(
        [
            (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d
            for a, b, c, d in (route[k : k + 4] for k in range(0, len(route) - 1, 3))
        ]
    )


def _along(route: Array) -> Array:
    """Return points along a route, the middle first, then the same a little to its sides."""
    points = points_along(route)
    far = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    share = 0.5 + np.linspace(0.0, 0.5, SAMPLES)[1:-1] * np.tile([-1.0, 1.0], SAMPLES)[: SAMPLES - 2]
    at = np.concatenate([[0.5], share]) * far[-1]
    spots = np.stack([np.interp(at, far, points[:, k]) for k in (0, 1)], axis=1)
    across = points[-1] - points[0]
    side = np.array([-across[1], across[0]]) / max(float(np.linalg.norm(across)), 1e-9)
    return np.concatenate([spots + step * side for step in ASIDE])
