"""Layered drawing of a directed acyclic graph: all edges point down, few of them cross.

The four steps of Sugiyama, Tagawa and Toda (1981): longest-path layering with a bound on the width of a layer;
a dummy node wherever an edge passes a layer; crossing reduction (`crossing_reduction`); coordinates by sweeps that
move each node to the mean of its neighbours as far as the order and the widths allow, which is an isotonic regression
for each layer. Last, edges are pulled taut (`edge_routes`).

Cost: a sweep is O(E log E), with the dummy nodes counted in E, and works on whole layers at once; a thousand nodes take
about a second.
"""

from heapq import heapify, heappop, heappush
from itertools import pairwise
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.plotting.crossing_reduction import near, uncrossed
from markovia.plotting.edge_routes import STUB, taut_routes
from markovia.runtime.array_types import Array
from markovia.runtime.progress import Advance, paced

Pair = tuple[int, int]
Ints = NDArray[np.int64]

NODE_GAP = 0.28
DUMMY_GAP, LEAST_DUMMY_GAP = 0.16, 0.04
LAYER_GAP = (0.5, 1.1)
MIN_CAPACITY = 13.0
SWEEPS = 60
STILL = 1e-3
"""Inches: where no node moves further than this in a sweep, the coordinates are found."""


def layered_layout(
    sizes: Array,
    edges: list[Pair],
    advance: Advance = lambda n=1: None,
    steps: int = 0,
    routed: bool = True,
) -> tuple[Array, list[Array | None]]:
    """Place the nodes of a connected acyclic graph in layers and route its edges around them.

    Parameters
    ----------
    sizes
        One row (width, height) a node, in inches.
    edges
        Pairs (from, to) of node numbers; they form no directed cycle.
    advance, steps
        Told how far the work is: so many steps in all.
    routed
        Whether to lead edges around boxes; otherwise all are straight.

    Returns
    -------
    centres, routes
        One row (x, y) a node with y upwards, and for each edge the vertices of a chain of cubic Bézier curves
        (one point, then three a curve) from centre to centre, or None where a straight line meets no other box.

    Examples
    --------
    >>> centres, routes = layered_layout(np.full((3, 2), 0.5), [(0, 1), (0, 2)])
    >>> bool(centres[0, 1] > centres[1, 1] == centres[2, 1]), routes
    (True, [None, None])
    """
    layer = _layers(sizes, edges)
    graph = _with_dummies(sizes, edges, layer)
    third = steps // 3
    rows = uncrossed(graph.rows, graph.upper, graph.lower, advance, third)
    x = _abscissae(graph, rows, len(sizes), advance, third)
    tops, bottoms = _bands(sizes, layer, np.abs(x[graph.upper] - x[graph.lower]), graph.level[graph.upper])
    centres = np.stack([x[: len(sizes)], (tops[layer] + bottoms[layer]) / 2], axis=1)
    if not routed:
        return centres, [None] * len(edges)
    ways = [
        _way(
            centres[a], centres[b], x[chain], tops[layer[a] : layer[b] + 1], bottoms[layer[a] : layer[b] + 1]
        )
        for (a, b), chain in zip(edges, graph.chains, strict=True)
    ]
    return centres, taut_routes(sizes, centres, edges, ways, layer, advance, steps - 2 * third)


def _layers(sizes: Array, edges: list[Pair]) -> Ints:
    """Give each node a layer below its parents; a full layer sends further nodes down."""
    n = len(sizes)
    parents: list[list[int]] = [[] for _ in range(n)]
    children: list[list[int]] = [[] for _ in range(n)]
    for a, b in edges:
        parents[b].append(a)
        children[a].append(b)
    order = _topological(parents, children)
    height = [0] * n
    for a in reversed(order):
        height[a] = max((height[b] + 1 for b in children[a]), default=0)
    area = float(((sizes[:, 0] + NODE_GAP) * (sizes[:, 1] + LAYER_GAP[0])).sum())
    capacity = max(MIN_CAPACITY, 1.7 * sqrt(area))
    used: dict[int, float] = {}
    layer = np.zeros(n, dtype=np.int64)

    def width(a: int) -> float:
        return float(sizes[a, 0]) + NODE_GAP

    waiting = [len(p) for p in parents]
    ready = [(-height[a], a) for a in range(n) if not waiting[a]]
    heapify(ready)
    while ready:  # the node with the longest way to go first, so that it does not stretch the drawing
        _, a = heappop(ready)
        at = max((int(layer[p]) + 1 for p in parents[a]), default=0)
        while used.get(at, 0.0) > 0.0 and used[at] + width(a) > capacity:
            at += 1
        layer[a] = at
        used[at] = used.get(at, 0.0) + width(a)
        for b in children[a]:
            waiting[b] -= 1
            if not waiting[b]:
                heappush(ready, (-height[b], b))
    for a in reversed(order):  # a node with more edges below than above sinks towards its children
        if len(children[a]) > len(parents[a]):
            for at in range(min(int(layer[b]) for b in children[a]) - 1, int(layer[a]), -1):
                if used.get(at, 0.0) + width(a) <= capacity:
                    used[int(layer[a])] -= width(a)
                    used[at] = used.get(at, 0.0) + width(a)
                    layer[a] = at
                    break
    result: Ints = np.unique(layer, return_inverse=True)[1].astype(np.int64)
    return result


def _topological(parents: list[list[int]], children: list[list[int]]) -> list[int]:
    waiting = [len(p) for p in parents]
    order = [a for a, k in enumerate(waiting) if not k]
    for a in order:
        for b in children[a]:
            waiting[b] -= 1
            if not waiting[b]:
                order.append(b)
    return order


class _LayerGraph(NamedTuple):
    """Nodes, then dummy nodes; edges from one layer to the next; and the dummies of each edge of the graph."""

    widths: Array
    level: Ints
    rows: list[Ints]
    upper: Ints
    lower: Ints
    chains: list[list[int]]


def _with_dummies(sizes: Array, edges: list[Pair], layer: Ints) -> _LayerGraph:
    """Cut every edge at the layers it passes."""
    level = layer.tolist()
    below: list[list[int]] = [[] for _ in level]
    joined: list[Pair] = []
    chains: list[list[int]] = []
    for a, b in edges:
        chain = list(range(len(level), len(level) + level[b] - level[a] - 1))
        level += range(level[a] + 1, level[b])
        below += [[] for _ in chain]
        for p, q in pairwise([a, *chain, b]):
            below[p].append(q)
            joined.append((p, q))
        chains.append(chain)
    rows: list[list[int]] = [[] for _ in range(max(level) + 1)]
    for a in _depth_first(below, {q for _, q in joined}):
        rows[level[a]].append(a)
    upper, lower = np.array(joined, dtype=np.int64).reshape(-1, 2).T
    widths = np.concatenate([sizes[:, 0], np.zeros(len(level) - len(sizes))])
    return _LayerGraph(
        widths, np.array(level), [np.array(row, dtype=np.int64) for row in rows], upper, lower, chains
    )


def _depth_first(below: list[list[int]], hanging: set[int]) -> list[int]:
    """List all nodes so that what hangs together stands together."""
    seen: dict[int, None] = {}
    for root in (a for a in range(len(below)) if a not in hanging):
        stack = [root]
        while stack:
            a = stack.pop()
            if a not in seen:
                seen[a] = None
                stack.extend(reversed(below[a]))
    return list(seen)


def _abscissae(graph: _LayerGraph, rows: list[Ints], n: int, advance: Advance, steps: int) -> Array:
    """Move nodes towards their neighbours, layer by layer, without changing the order in a layer."""
    order = np.concatenate(rows)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    # from here on nodes are numbered by their places, so that a layer is a slice
    above = near(place[graph.lower], place[graph.upper], len(order))
    below = near(place[graph.upper], place[graph.lower], len(order))
    both = near(np.concatenate([above.node, below.node]), np.concatenate([above.of, below.of]), len(order))
    real = order < n
    # dummy nodes are kept at their places most, so that long edges run straight
    weights = np.where(real, 1.0 + both.degree, 8.0)
    gaps = np.select(
        [real[1:] & real[:-1], real[1:] | real[:-1]], [NODE_GAP, DUMMY_GAP], _dummy_gap(graph.widths, rows, n)
    )
    reach = np.concatenate(
        [[0.0], np.cumsum((graph.widths[order][1:] + graph.widths[order][:-1]) / 2 + gaps)]
    )
    stops = np.cumsum([len(row) for row in rows])
    layers = [slice(int(stop) - len(row), int(stop)) for row, stop in zip(rows, stops, strict=True)]
    x = np.zeros(len(order))
    for row in layers:
        reach[row] -= reach[row.start]
        x[row] = reach[row] - reach[row].mean()
    for sweep in paced(range(SWEEPS), steps, advance):
        up, side = sweep % 2 == 1, (above, below)[sweep % 2]
        if sweep >= SWEEPS // 2:
            up, side = False, both
        before = x.copy()
        for row in reversed(layers) if up else layers:
            edges = slice(side.first[row.start], side.first[row.stop])
            degree = side.degree[row]
            total = np.bincount(
                side.node[edges] - row.start, weights=x[side.of[edges]], minlength=row.stop - row.start
            )
            wanted = np.where(degree > 0, total / np.maximum(degree, 1), x[row])
            x[row] = isotonic(wanted - reach[row], weights[row]) + reach[row]
        if side is both and np.abs(x - before).max() < STILL:
            break
    return np.asarray(x[place])


def isotonic(values: Array, weights: Array) -> Array:
    """Return the numbers in ascending order that are nearest to the given ones by weighted squares.

    Neighbours that would descend are pooled into their mean. SciPy has this too, but takes a second to import.

    Examples
    --------
    >>> isotonic(np.array([1.0, 3.0, 2.0, 0.0, 5.0]), np.array([1.0, 1.0, 1.0, 2.0, 1.0])).tolist()
    [1.0, 1.25, 1.25, 1.25, 5.0]
    """
    means: list[float] = []
    masses: list[float] = []
    counts: list[int] = []
    for mean, mass in zip(values.tolist(), weights.tolist(), strict=True):
        count = 1
        while means and means[-1] >= mean:
            before = masses.pop()
            mean = (mean * mass + means.pop() * before) / (mass + before)
            mass += before
            count += counts.pop()
        means.append(mean)
        masses.append(mass)
        counts.append(count)
    return np.repeat(means, counts)


def _dummy_gap(widths: Array, rows: list[Ints], n: int) -> float:
    """Return how far edges run apart: closer where many pass a layer, so that they take no more room than boxes."""
    boxes = max(float((widths[row] + NODE_GAP * (row < n)).sum()) for row in rows)
    passing = max(int((row >= n).sum()) for row in rows)
    return float(np.clip(boxes / max(passing, 1), LEAST_DUMMY_GAP, DUMMY_GAP))


def _bands(sizes: Array, layer: Ints, swings: Array, level: Ints) -> tuple[Array, Array]:
    """Return the top and the bottom of every layer; wide swings of edges get more room between layers."""
    heights, swing = np.zeros(int(layer.max()) + 1), np.zeros(int(layer.max()) + 1)
    np.maximum.at(heights, layer, sizes[:, 1])
    np.maximum.at(swing, level, swings)
    steps = heights + np.clip(0.16 * swing, *LAYER_GAP)
    tops = -np.concatenate([[0.0], np.cumsum(steps)[:-1]])
    return tops, tops - heights


def _way(start: Array, end: Array, x: Array, tops: Array, bottoms: Array) -> Array:
    """Return the points an edge may go through: beside the boxes of each layer it passes."""
    # both ends keep a short straight piece outside the boxes, so that an arrowhead has a direction
    first, last = [start[0], bottoms[0] - STUB / 2], [end[0], tops[-1] + STUB]
    passed = np.stack([np.repeat(x, 2), np.stack([tops[1:-1], bottoms[1:-1]], axis=1).ravel()], axis=1)
    return np.concatenate([[start, first], passed, [last, end]])
