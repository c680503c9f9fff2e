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
    place = np.argsort(order)
    starts = np.searchsorted(layer[order], np.arange(int(layer.max()) + 2))
    boxes = np.concatenate([centres - sizes / 2 - CLEARANCE, centres + sizes / 2 + CLEARANCE], axis=1)[
        order
    ].T
    routes: list[Array | None] = []
    for (a, b), way in paced(list(zip(edges, ways, strict=True)), steps, advance):
        first, last = starts[layer[a]], starts[layer[b] + 1]
        met = boxes[:, first:last]
        keep = (met[2] >= way[:, 0].min()) & (met[0] <= way[:, 0].max())
        keep[[place[a] - first, place[b] - first]] = False
        met = met[:, keep]
        taut = [0]
        while taut[-1] < len(way) - 1:
            here = taut[-1]
            met = met[:, met[1] <= way[here, 1]]  # boxes above are behind
            clear = _clear(way[here], way[here + 2 :], met)
            taut.append(here + 2 + int(np.flatnonzero(clear)[-1]) if clear.any() else here + 1)
        routes.append(None if len(taut) == 2 else rounded([way[k] for k in taut]))
    return routes


def _clear(start: Array, ends: Array, boxes: Array) -> NDArray[np.bool_]:
    """Say which of the straight lines down from a point to some others keep away from all boxes."""
    left, bottom, right, top = boxes
    across, down = (ends - start).T[:, :, None]
    # the part of each line beside each box, as shares of its length
    enter, leave = np.maximum((top - start[1]) / down, 0.0), np.minimum((bottom - start[1]) / down, 1.0)
    one, other = start[0] + across * enter, start[0] + across * leave
    hit = (enter <= leave) & (np.minimum(one, other) <= right) & (np.maximum(one, other) >= left)
    return ~np.asarray(hit.any(axis=1))


def rounded(points: Sequence[Array]) -> Array:
    """Return the polygon with its corners cut by curves that keep to the corner's triangle."""
    way = np.asarray(points)
    corner = way[1:-1]
    to, away = way[:-2] - corner, way[2:] - corner
    long, longer = np.hypot(*to.T), np.hypot(*away.T)
    cut = np.minimum(ROUNDING, 0.45 * np.minimum(long, longer))
    enter, leave = corner + to * (cut / long)[:, None], corner + away * (cut / longer)[:, None]
    start, end = np.concatenate([way[:1], leave]), np.concatenate([enter, way[-1:]])
    curves = np.empty((2 * len(corner) + 1, 3, 2))  # straight lines, and the corners between them
    curves[::2] = np.stack([start + (end - start) / 3, start + 2 * (end - start) / 3, end], axis=1)
    curves[1::2] = np.stack(
        [enter + (corner - enter) * 2 / 3, leave + (corner - leave) * 2 / 3, leave], axis=1
    )
    return np.concatenate([way[:1], curves.reshape(-1, 2)])
