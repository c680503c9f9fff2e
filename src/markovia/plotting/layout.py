"""Where a drawing puts its nodes: one method for each connected part, then parts side by side.

Lengths are inches at the full size of the letters. Layered drawings know the sizes of the boxes; spring
drawings and the user's own positions are points, spread just as far as the boxes need.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from markovia.errors import InvalidArgument, TooLarge, check_known, did_you_mean
from markovia.graphs.kinds.plot_options import Positions
from markovia.plotting.grid_layout import find_grid, grid_layout
from markovia.plotting.layered_layout import layered_layout
from markovia.plotting.stress_layout import stress_layout
from markovia.runtime.array_types import Array
from markovia.runtime.progress import Advance

Pair = tuple[int, int]

MAX_NODES = 1500
LAYOUTS = ("auto", "layered", "spring", "grid")
PART_GAP = 0.45
BOX_GAP = 0.18
EDGE_GAP = 0.42
PIXELS = 96.0
"""Pixels an inch, on screens."""


@dataclass(frozen=True)
class GraphLayout:
    """Centres of the nodes, one row (x, y) each, and Bézier routes of the edges that are not straight."""

    centres: Array
    routes: tuple[Array | None, ...]

    def box(self, sizes: Array) -> tuple[Array, Array]:
        """Return the lower left and the upper right corner of all boxes and routes."""
        return _box(self.centres, sizes, self.routes)


def arrange(
    names: Sequence[str],
    sizes: Array,
    edges: list[Pair],
    method: Positions,
    *,
    seed: int = 0,
    advance: Advance = lambda n=1: None,
    steps: int = 0,
    routed: bool = True,
) -> GraphLayout:
    """Place nodes of the given sizes so that no two of them overlap.

    Parameters
    ----------
    names
        What the user calls the nodes.
    sizes
        One row (width, height) a node, in inches.
    edges
        Pairs of node numbers; for "layered" they form no directed cycle.
    method
        "layered", "spring", "grid", or a position for every name (its proportions are kept); see `chosen`.
    seed
        Seed of the spring drawing.
    advance, steps
        Told how far the work is: so many steps in all.
    routed
        Whether edges of a layered drawing are led around boxes.

    Raises
    ------
    TooLarge
        If there are more nodes than a page can show.

    Examples
    --------
    >>> arrange(["a", "b"], np.ones((2, 2)), [(0, 1)], "layered").centres[:, 1].tolist()
    [-0.5, -2.0]
    """
    if len(names) > MAX_NODES:
        raise TooLarge(
            f"a drawing of {len(names):,} nodes is not legible (the limit is {MAX_NODES:,}); "
            "plot a subgraph, such as a node with its Markov blanket"
        )
    if not len(names):
        return GraphLayout(np.zeros((0, 2)), ())
    if not isinstance(method, str):
        points = _given_positions(names, method)
        return GraphLayout(spread(points, sizes, edges, rigid=True), (None,) * len(edges))
    if method == "grid":
        cells = find_grid(names, edges)
        if cells is None:
            raise InvalidArgument("layout='grid' needs a grid of at least 2 x 2; use layout='auto'")
        at, ways = grid_layout(sizes, cells, edges)
        return GraphLayout(at, tuple(ways))
    placed: list[tuple[list[int], list[int], GraphLayout]] = []
    parts = _parts(len(names), edges)
    for nodes in parts:
        told = steps if nodes is max(parts, key=len) else 0  # the largest part takes the time
        number = {a: i for i, a in enumerate(nodes)}
        inside = [e for e, (a, _) in enumerate(edges) if a in number]
        own = [(number[edges[e][0]], number[edges[e][1]]) for e in inside]
        if method == "layered":
            at, ways = layered_layout(sizes[nodes], own, advance, told, routed)
        else:
            points = stress_layout(len(nodes), own, seed=seed, advance=advance, told=told)
            at, ways = spread(points, sizes[nodes], own), [None] * len(own)
        placed.append((nodes, inside, GraphLayout(at, tuple(ways))))
    centres, routes = np.zeros((len(names), 2)), dict[int, Array]()
    shifts = _shelves([part.box(sizes[nodes]) for nodes, _, part in placed])
    for (nodes, inside, part), shift in zip(placed, shifts, strict=True):
        centres[nodes] = part.centres + shift
        routes.update({e: way + shift for e, way in zip(inside, part.routes, strict=True) if way is not None})
    return GraphLayout(centres, tuple(routes.get(e) for e in range(len(edges))))


def chosen(method: Positions, names: Sequence[str], edges: list[Pair], *, downwards: bool) -> Positions:
    """Return the layout to use: for "auto" a grid for grids, layers where edges can all point down, else springs.

    Raises
    ------
    InvalidArgument
        If it is neither a known name nor positions, or has layers without a direction.
    """
    if not isinstance(method, Mapping) and (not isinstance(method, str) or method not in LAYOUTS):
        raise InvalidArgument(
            f"layout= is one of {', '.join(map(repr, LAYOUTS))} or a mapping from names to (x, y), "
            f"not {method!r}{did_you_mean(method, LAYOUTS)}"
        )
    if method == "auto":
        if find_grid(names, edges, named=downwards) is not None:  # a diamond of arrows is no square
            return "grid"
        return "layered" if downwards else "spring"
    if method == "layered" and not downwards:
        raise InvalidArgument(
            "layout='layered' needs a direction, and these edges have none in common; use layout='spring'"
        )
    return method


def screen_positions(
    sizes: Sequence[tuple[float, float]], edges: list[tuple[int, int]], *, directed: bool
) -> list[tuple[float, float]]:
    """Return the centres of boxes of the given sizes so that no two overlap.

    Parameters
    ----------
    sizes
        Width and height of each box in pixels.
    edges
        Pairs of box numbers.
    directed
        Whether all edges point from the first to the second and form no cycle.

    Examples
    --------
    >>> (x, above), (same, below) = screen_positions([(150, 54), (150, 54)], [(0, 1)], directed=True)
    >>> x == same, above < below
    (True, True)
    """
    if not sizes:
        return []
    if len(sizes) > MAX_NODES:
        return _in_rows(sizes)
    inches = np.array(sizes, dtype=float) / PIXELS
    names = [str(k) for k in range(len(sizes))]
    method = chosen("auto", names, edges, downwards=directed)
    centres = arrange(names, inches, edges, method, routed=False).centres * PIXELS
    centres[:, 1] *= -1
    centres -= centres.min(axis=0)
    return [(round(float(x), 1), round(float(y), 1)) for x, y in centres]


def spread(points: Array, sizes: Array, edges: list[Pair], *, rigid: bool = False) -> Array:
    """Scale points up until boxes of the given sizes around them do not overlap and edges can be seen.

    A rigid drawing is only scaled, unless two of its points coincide; otherwise the scale serves the edges, and
    boxes that still overlap push each other apart, so that a few close pairs do not blow up the drawing.
    """
    if len(points) == 1:
        return points * 0.0
    points = points - points.mean(axis=0)
    if not rigid:
        points = points * np.array([np.clip(np.sqrt(sizes[:, 0].mean() / sizes[:, 1].mean()), 1.0, 1.6), 1.0])
    room = (sizes[:, None] + sizes[None]) / 2 + BOX_GAP
    joined = np.zeros(room.shape[:2], dtype=bool)
    for a, b in edges:
        joined[a, b] = joined[b, a] = True
    room[joined] += EDGE_GAP - BOX_GAP
    apart = np.abs(points[:, None] - points[None])
    needed = np.divide(room, apart, out=np.full_like(room, np.inf), where=apart > 1e-9).min(axis=2)
    counted = np.triu(np.isfinite(needed) & (joined if edges and not rigid else True), 1)
    scale = float(np.quantile(needed[counted], 1.0 if rigid else 0.9)) if counted.any() else 1.0
    return _pushed_apart(points * scale, sizes + BOX_GAP)


def _pushed_apart(points: Array, sizes: Array) -> Array:
    from scipy.spatial import KDTree

    points = points.copy()
    reach = sizes.max(axis=0)
    for step in range(400):
        # boxes that overlap are near, as seen by a box of the largest sides
        near = KDTree(points / reach).query_pairs(1.0, p=np.inf, output_type="ndarray")
        delta = points[near[:, 0]] - points[near[:, 1]]
        overlap = sizes[near].mean(axis=1) - np.abs(delta)
        hit = (overlap > 1e-9).all(axis=1)
        if not hit.any():
            break
        (a, b), delta, overlap = near[hit].T, delta[hit], overlap[hit]
        way = overlap.argmin(axis=1)[:, None]
        # nodes at one point part by their numbers
        push = np.where(np.take_along_axis(delta, way, 1) > 0, 0.5, -0.5) * np.take_along_axis(
            overlap, way, 1
        )
        shift = np.zeros_like(points)
        np.add.at(shift, (a, way[:, 0]), push[:, 0])
        np.add.at(shift, (b, way[:, 0]), -push[:, 0])
        points += shift / np.maximum(1, np.bincount(near[hit].ravel(), minlength=len(points)))[:, None]
        if step % 20 == 19:
            points *= 1.1
    return points


def _given_positions(names: Sequence[str], positions: Mapping[str, Sequence[float]]) -> Array:
    check_known(positions, names, "the graph")
    missing = [n for n in names if n not in positions]
    if missing:
        raise InvalidArgument(f"layout= gives no position for {missing[0]!r}; every node needs one")
    try:
        points = np.array([tuple(positions[n]) for n in names], dtype=np.float64)
    except (TypeError, ValueError):
        points = np.zeros((0, 0))
    if points.shape != (len(names), 2) or not np.isfinite(points).all():
        raise InvalidArgument("layout= gives each node a position (x, y) of two finite numbers")
    return points


def _parts(n: int, edges: list[Pair]) -> list[list[int]]:
    root = list(range(n))

    def find(a: int) -> int:
        while root[a] != a:
            root[a] = root[root[a]]
            a = root[a]
        return a

    for a, b in edges:
        root[find(a)] = find(b)
    parts: dict[int, list[int]] = {}
    for a in range(n):
        parts.setdefault(find(a), []).append(a)
    return list(parts.values())


def _box(centres: Array, sizes: Array, routes: Sequence[Array | None]) -> tuple[Array, Array]:
    drawn = [r for r in routes if r is not None]
    low = np.concatenate([centres - sizes / 2, *drawn]).min(axis=0)
    high = np.concatenate([centres + sizes / 2, *drawn]).max(axis=0)
    return low, high


def _shelves(boxes: list[tuple[Array, Array]]) -> list[Array]:
    """Put boxes on shelves from the top left, the high ones first; return how far each one moves."""
    extents = [high - low for low, high in boxes]
    area = sum(float((w + PART_GAP) * (h + PART_GAP)) for w, h in extents)
    width = max(max(float(w) for w, _ in extents), 1.5 * sqrt(area))
    shifts: list[Array] = [np.zeros(2) for _ in boxes]
    x = y = shelf = 0.0
    for k in sorted(range(len(boxes)), key=lambda k: (-round(float(extents[k][1]), 6), k)):
        w, h = (float(v) for v in extents[k])
        if x > 0 and x + w > width + 1e-9:
            x, y, shelf = 0.0, y - shelf - PART_GAP, 0.0
        low, high = boxes[k]
        shifts[k] = np.array([x - float(low[0]), y - float(high[1])])
        x, shelf = x + w + PART_GAP, max(shelf, h)
    return shifts


def _in_rows(sizes: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Put boxes of a graph that is too large to be laid out side by side, in order."""
    columns = ceil(sqrt(len(sizes)))
    wide, high = (max(s[axis] for s in sizes) + 40.0 for axis in (0, 1))
    return [(wide * (k % columns), high * (k // columns)) for k in range(len(sizes))]
