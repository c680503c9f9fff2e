"""The ways of edges through a layered drawing: pulled taut between the boxes, with round corners."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from markovia.runtime.array_types import Array
from markovia.runtime.progress import Advance, paced

Pair = tuple[int, int]
Ints = NDArray[np.int64]

CLEARANCE = 0.06
ROUNDING = 0.35
STUB = 0.24


def taut_routes(
    sizes: Array,
    centres: Array,
    edges: Sequence[Pair],
    ways: Sequence[Array],
    layer: Ints,
    advance: Advance = lambda n=1: None,
    steps: int = 0,
) -> list[Array | None]:
    """Pull every edge taut: from each point it goes straight to the farthest one it can see on its way.

    Parameters
    ----------
    sizes, centres
        The boxes.
    edges, ways
        Pairs of nodes, and the points that each edge may go through, downwards from centre to centre.
    layer
        The layer of each node; an edge meets only boxes of the layers it passes.
    advance, steps
        Told how far the work is: so many steps in all.

    Returns
    -------
    list
        Vertices of Bézier curves, or None for a straight line.

    Examples
    --------
    >>> centres = np.array([[0.0, 0.0], [0.0, -1.0]])
    >>> taut_routes(np.full((2, 2), 0.5), centres, [(0, 1)], [centres], np.array([0, 1]))
    [None]
    """
    order = np.argsort(layer, kind="stable")
    starts = np.searchsorted(layer[order], np.arange(int(layer.max()) + 2))
    low, high = centres - sizes / 2 - CLEARANCE, centres + sizes / 2 + CLEARANCE
    routes: list[Array | None] = []
    for (a, b), way in paced(list(zip(edges, ways, strict=True)), steps, advance):
        met = order[starts[layer[a]] : starts[layer[b] + 1]]
        left, right = way[:, 0].min(), way[:, 0].max()
        met = met[(high[met, 0] >= left) & (low[met, 0] <= right) & (met != a) & (met != b)]
        taut = [0]
        while taut[-1] < len(way) - 1:
            here = taut[-1]
            clear = _clear(way[here], way[here + 2 :], low[met], high[met])
            taut.append(here + 2 + int(np.flatnonzero(clear)[-1]) if clear.any() else here + 1)
        routes.append(None if len(taut) == 2 else rounded([way[k] for k in taut]))
    return routes


def _clear(start: Array, ends: Array, low: Array, high: Array) -> NDArray[np.bool_]:
    """Say which of the straight lines down from a point to some others keep away from all boxes."""
    across, down = (ends - start).T[:, :, None]
    # the part of each line beside each box, as shares of its length
    enter, leave = (high[:, 1] - start[1]) / down, (low[:, 1] - start[1]) / down
    enter, leave = np.clip(enter, 0.0, 1.0), np.clip(leave, 0.0, 1.0)
    one, other = start[0] + across * enter, start[0] + across * leave
    beside = (high[:, 1] >= start[1] + down) & (low[:, 1] <= start[1])
    hit = beside & (np.minimum(one, other) <= high[:, 0]) & (np.maximum(one, other) >= low[:, 0])
    return ~np.asarray(hit.any(axis=1))


def rounded(points: Sequence[Array]) -> Array:
    """Return the polygon with its corners cut by curves that keep to the corner's triangle."""
    vertices = [points[0]]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        to, away = before - corner, after - corner
        cut = min(ROUNDING, 0.45 * float(np.linalg.norm(to)), 0.45 * float(np.linalg.norm(away)))
        enter = corner + to * cut / float(np.linalg.norm(to))
        leave = corner + away * cut / float(np.linalg.norm(away))
        vertices += _straight(vertices[-1], enter)
        vertices += [enter + (corner - enter) * 2 / 3, leave + (corner - leave) * 2 / 3, leave]
    return np.array([*vertices, *_straight(vertices[-1], points[-1])])


def _straight(a: Array, b: Array) -> list[Array]:
    return [a + (b - a) / 3, a + 2 * (b - a) / 3, b]
