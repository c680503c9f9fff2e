"""Layered drawing of a directed acyclic graph: all edges point down, few of them cross.

The four steps of Sugiyama, Tagawa and Toda (1981): longest-path layering with a bound on the width of a layer;
a dummy node wherever an edge passes a layer; crossing reduction by sweeps that sort each layer by the
barycentres of its neighbours; coordinates by sweeps that move each node to the mean of its neighbours as far as
the order and the widths allow, which is an isotonic regression for each layer.

Cost: a sweep is O(E log E), with the dummy nodes counted in E. Good up to a few hundred nodes.
"""

from bisect import bisect_right, insort
from heapq import heapify, heappop, heappush
from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from markovia.runtime.array_types import Array

Pair = tuple[int, int]

NODE_GAP = 0.28
DUMMY_GAP = 0.16
LAYER_GAP = (0.5, 1.1)
MIN_CAPACITY = 13.0
SWEEPS = 24
CLEARANCE = 0.06
ROUNDING = 0.35
STUB = 0.24


def layered_layout(sizes: Array, edges: list[Pair]) -> tuple[Array, list[Array | None]]:
    """Place the nodes of a connected acyclic graph in layers and route its edges around them.

    Parameters
    ----------
    sizes
        One row (width, height) a node, in inches.
    edges
        Pairs (from, to) of node numbers; they form no directed cycle.

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
    widths, below, above, layers, chains = _with_dummies(sizes, edges, layer)
    layers = _uncrossed(layers, below, above)
    x = _abscissae(layers, widths, below, above, len(sizes))
    tops, bottoms = _bands(sizes, layers, x, below, len(sizes))
    centres = np.stack([x[: len(sizes)], (tops[layer] + bottoms[layer]) / 2], axis=1)
    routes = _routes(sizes, centres, edges, chains, x, tops, bottoms, layer)
    return centres, routes


def _layers(sizes: Array, edges: list[Pair]) -> NDArray[np.int64]:
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
    result: NDArray[np.int64] = np.unique(layer, return_inverse=True)[1].astype(np.int64)
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


def _with_dummies(
    sizes: Array, edges: list[Pair], layer: NDArray[np.int64]
) -> tuple[list[float], list[list[int]], list[list[int]], list[list[int]], list[list[int]]]:
    """Cut every edge at the layers it passes: widths, neighbours below and above, layers, dummies of each edge."""
    widths = [float(w) for w in sizes[:, 0]]
    below: list[list[int]] = [[] for _ in widths]
    above: list[list[int]] = [[] for _ in widths]
    layers: list[list[int]] = [[] for _ in range(int(layer.max()) + 1)]
    chains: list[list[int]] = []
    for a, b in edges:
        chain = []
        last = a
        for _ in range(int(layer[a]) + 1, int(layer[b])):
            dummy = len(widths)
            widths.append(0.0)
            below.append([])
            above.append([])
            below[last].append(dummy)
            above[dummy].append(last)
            chain.append(dummy)
            last = dummy
        below[last].append(b)
        above[b].append(last)
        chains.append(chain)
    level = {a: int(k) for a, k in enumerate(layer)}
    for (a, _), chain in zip(edges, chains, strict=True):
        level.update({dummy: int(layer[a]) + 1 + k for k, dummy in enumerate(chain)})
    for a in _depth_first(below, above):
        layers[level[a]].append(a)
    return widths, below, above, layers, chains


def _depth_first(below: list[list[int]], above: list[list[int]]) -> list[int]:
    """List all nodes so that what hangs together stands together."""
    seen: dict[int, None] = {}
    for root in (a for a, up in enumerate(above) if not up):
        stack = [root]
        while stack:
            a = stack.pop()
            if a not in seen:
                seen[a] = None
                stack.extend(reversed(below[a]))
    return list(seen)


def _uncrossed(layers: list[list[int]], below: list[list[int]], above: list[list[int]]) -> list[list[int]]:
    best, fewest = [list(row) for row in layers], _all_crossings(layers, below)
    idle = 0
    for sweep in range(SWEEPS):
        if not fewest or idle > 6:
            break
        down = sweep % 2 == 0
        rows = range(1, len(layers)) if down else range(len(layers) - 2, -1, -1)
        near = above if down else below
        for k in rows:
            fixed = layers[k - 1] if down else layers[k + 1]
            place = {a: float(i) for i, a in enumerate(fixed)}
            centre = {
                a: sum(place[b] for b in near[a]) / len(near[a]) if near[a] else float(i)
                for i, a in enumerate(layers[k])
            }
            layers[k] = sorted(layers[k], key=centre.__getitem__)
        _transpose(layers, below, above)
        crossings = _all_crossings(layers, below)
        idle += 1
        if crossings < fewest:
            best, fewest, idle = [list(row) for row in layers], crossings, 0
    return best


def _transpose(layers: list[list[int]], below: list[list[int]], above: list[list[int]]) -> None:
    """Swap neighbours of a layer wherever that removes crossings, a few rounds."""
    place = {a: i for row in layers for i, a in enumerate(row)}

    def gain(a: int, b: int) -> int:
        total = 0
        for near in (above, below):
            ends_a, ends_b = sorted(place[c] for c in near[a]), sorted(place[c] for c in near[b])
            for p in ends_a:
                total += bisect_right(ends_b, p - 1) - (len(ends_b) - bisect_right(ends_b, p))
        return total

    for _ in range(4):
        improved = False
        for row in layers:
            for i in range(len(row) - 1):
                a, b = row[i], row[i + 1]
                if gain(a, b) > 0:
                    row[i], row[i + 1] = b, a
                    place[a], place[b] = i + 1, i
                    improved = True
        if not improved:
            break


def _all_crossings(layers: list[list[int]], below: list[list[int]]) -> int:
    total = 0
    for upper, lower in pairwise(layers):
        place = {a: i for i, a in enumerate(lower)}
        seen: list[int] = []
        for a in upper:
            ends = sorted(place[b] for b in below[a])
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _abscissae(
    layers: list[list[int]], widths: list[float], below: list[list[int]], above: list[list[int]], n: int
) -> Array:
    """Move nodes towards their neighbours, layer by layer, without changing the order in a layer."""
    x = np.zeros(len(widths))
    offsets = []
    for row in layers:
        steps = [
            (widths[a] + widths[b]) / 2 + (NODE_GAP if a < n and b < n else DUMMY_GAP)
            for a, b in pairwise(row)
        ]
        offset = np.concatenate([[0.0], np.cumsum(steps)])
        offsets.append(offset)
        x[row] = offset - offset.mean()
    weights = [np.array([_pull(a, below, above, n) for a in row]) for row in layers]
    for sweep in range(60):
        mode = sweep % 2 if sweep < 30 else 2
        rows = range(len(layers)) if mode != 1 else range(len(layers) - 1, -1, -1)
        for k in rows:
            wanted = []
            for a in layers[k]:
                near = above[a] if mode == 0 else below[a] if mode == 1 else above[a] + below[a]
                wanted.append(x[near].mean() if near else x[a])
            x[layers[k]] = _monotone(np.array(wanted) - offsets[k], weights[k]) + offsets[k]
    return x


def _pull(a: int, below: list[list[int]], above: list[list[int]], n: int) -> float:
    """Return how strongly a node is kept at its place: dummy nodes most, so that long edges run straight."""
    return 1.0 + len(below[a]) + len(above[a]) if a < n else 8.0


def _monotone(values: Array, weights: Array) -> Array:
    """Return the non-decreasing sequence nearest to the values in weighted least squares (pool adjacent)."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        mean, mass, count = float(value), float(weight), 1
        while blocks and blocks[-1][0] > mean:
            other, other_mass, other_count = blocks.pop()
            mean = (mean * mass + other * other_mass) / (mass + other_mass)
            mass, count = mass + other_mass, count + other_count
        blocks.append((mean, mass, count))
    return np.concatenate([np.full(count, mean) for mean, _, count in blocks])


def _bands(
    sizes: Array, layers: list[list[int]], x: Array, below: list[list[int]], n: int
) -> tuple[Array, Array]:
    """Return the top and the bottom of every layer; wide swings of edges get more room between layers."""
    tops, bottoms = np.zeros(len(layers)), np.zeros(len(layers))
    y = 0.0
    for k, row in enumerate(layers):
        tops[k] = y
        y -= max((float(sizes[a, 1]) for a in row if a < n), default=0.0)
        bottoms[k] = y
        swing = max((abs(float(x[a] - x[b])) for a in row for b in below[a]), default=0.0)
        y -= min(max(0.16 * swing, LAYER_GAP[0]), LAYER_GAP[1])
    return tops, bottoms


def _routes(
    sizes: Array,
    centres: Array,
    edges: list[Pair],
    chains: list[list[int]],
    x: Array,
    tops: Array,
    bottoms: Array,
    layer: NDArray[np.int64],
) -> list[Array | None]:
    """Pull every edge taut: from each point it goes straight to the farthest one it can see on its way."""
    routes: list[Array | None] = []
    for (a, b), chain in zip(edges, chains, strict=True):
        # both ends keep a short straight piece outside the boxes, so that an arrowhead has a direction
        way = [centres[a], np.array([x[a], bottoms[layer[a]] - STUB / 2])]
        for k, dummy in enumerate(chain, start=int(layer[a]) + 1):
            way += [np.array([x[dummy], tops[k]]), np.array([x[dummy], bottoms[k]])]
        way += [np.array([x[b], tops[layer[b]] + STUB]), centres[b]]
        others = np.array([i for i in range(len(sizes)) if i not in (a, b)], dtype=np.int64)
        low, high = centres[others] - sizes[others] / 2, centres[others] + sizes[others] / 2
        taut = [0]
        while taut[-1] < len(way) - 1:
            here = taut[-1]
            ahead = range(len(way) - 1, here + 1, -1)
            taut.append(next((j for j in ahead if _clear(way[here], way[j], low, high)), here + 1))
        routes.append(None if len(taut) == 2 else rounded([way[k] for k in taut]))
    return routes


def _clear(start: Array, end: Array, low: Array, high: Array) -> bool:
    """Say whether the straight line between two points keeps away from all boxes."""
    low, high = low - CLEARANCE, high + CLEARANCE
    step = end - start
    with np.errstate(divide="ignore", invalid="ignore"):
        # slab method: the parameters at which the line enters and leaves each box, axis by axis
        near, far = (low - start) / step, (high - start) / step
    inside = (low <= start) & (start <= high)
    flat = np.broadcast_to(step == 0, near.shape)
    near, far = np.where(flat, np.where(inside, -np.inf, np.inf), near), np.where(flat, np.inf, far)
    enter, leave = np.minimum(near, far).max(axis=1), np.maximum(near, far).min(axis=1)
    return not bool(np.any((enter <= leave) & (leave >= 0) & (enter <= 1)))


def rounded(points: list[Array]) -> Array:
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
