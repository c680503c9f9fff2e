"""Where a drawing with plates puts its nodes: every plate is a rectangle with its own nodes inside and no others.

Nodes stand in layers below their parents. Nodes on the same plates share a column; columns are ordered so that each plate's
columns stand side by side and edges are short. Nodes without plates that have no plated node above them stand over their
children, those below everything else under their parents, and others in a column of their own.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, permutations
from typing import NamedTuple

import numpy as np

from markovia.runtime.array_types import Array

NODE_GAP, LAYER_GAP, COLUMN_GAP = 0.35, 0.62, 0.5
MOST_COLUMNS = 7
PAD, LABEL = 0.16, 0.2


class Plate(NamedTuple):
    """A plate: what is written in its corner, and its nodes by number."""

    label: str
    members: list[int]


def plate_layout(sizes: Array, edges: Sequence[tuple[int, int]], areas: Sequence[Plate]) -> Array:
    """Return the centres of the nodes.

    Parameters
    ----------
    sizes
        One row (width, height) a node, in inches.
    edges
        Pairs (from, to) of node numbers, without cycles.
    areas
        The plates with their nodes.

    Examples
    --------
    >>> centres = plate_layout(np.full((3, 2), 0.5), [(0, 1), (1, 2)], [Plate("a", [1, 2])])
    >>> bool(centres[0, 1] > centres[1, 1] > centres[2, 1])
    True
    """
    n = len(sizes)
    plates: dict[int, frozenset[str]] = {}
    for area in areas:
        for i in area.members:
            plates[i] = plates.get(i, frozenset()) | {area.label}
    layer = _layers(n, edges)
    inside = [layer[i] for i in plates]
    above = [i for i in range(n) if i not in plates and layer[i] < min(inside)]
    below = [i for i in range(n) if i not in plates and layer[i] > max(inside)]
    loose = {*above, *below}
    column = {i: plates.get(i, frozenset()) for i in range(n) if i not in loose}
    order = _column_order(sorted(set(column.values()), key=sorted), edges, column)
    x = np.zeros(n)
    left = 0.0
    for key in order:
        rows: dict[int, list[int]] = {}
        for i, own in column.items():
            if own == key:
                rows.setdefault(layer[i], []).append(i)
        widths = {k: sum(sizes[i][0] for i in row) + NODE_GAP * (len(row) - 1) for k, row in rows.items()}
        wide = max(widths.values())
        for k, row in rows.items():
            at = left + (wide - widths[k]) / 2
            for i in row:
                x[i] = at + sizes[i][0] / 2
                at += sizes[i][0] + NODE_GAP
        left += wide + COLUMN_GAP + 2 * PAD * max(map(len, plates.values()))
    for i in [*reversed(above), *below]:
        near = [b if a == i else a for a, b in edges if i in (a, b)]
        x[i] = np.mean([x[j] for j in near]) if near else left / 2
    for k in {layer[i] for i in loose}:
        _apart(x, sizes, [i for i in loose if layer[i] == k])
    heights = [max(sizes[i][1] for i in range(n) if layer[i] == k) for k in range(max(layer) + 1)]
    tops = np.concatenate([[0.0], -np.cumsum([h + LAYER_GAP for h in heights])])
    y = np.array([tops[layer[i]] - heights[layer[i]] / 2 for i in range(n)])
    centres = np.stack([x, y], axis=1)
    boxes = plate_boxes(centres, sizes, areas)
    roof, floor = max(high[1] for _, _, high in boxes), min(low[1] for _, low, _ in boxes)
    if above:
        centres[above, 1] += max(0.0, roof + PAD - min(centres[i, 1] - sizes[i][1] / 2 for i in above))
    if below:
        centres[below, 1] -= max(0.0, max(centres[i, 1] + sizes[i][1] / 2 for i in below) - floor + PAD)
    return centres


def plate_boxes(centres: Array, sizes: Array, plates: Sequence[Plate]) -> list[tuple[Plate, Array, Array]]:
    """Return the lower left and upper right corner of each plate; one that holds another is larger."""
    boxes = []
    for plate in sorted(plates, key=lambda p: len(p.members)):
        own = np.array(plate.members)
        depth = sum(set(other.members) <= set(plate.members) for other in plates) - 1
        pad = PAD + depth * PAD * 1.4
        low = (centres[own] - sizes[own] / 2).min(axis=0) - pad - np.array([0.0, LABEL * (1 + depth)])
        high = (centres[own] + sizes[own] / 2).max(axis=0) + pad
        boxes.append((plate, low, high))
    return boxes


def _layers(n: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    layer = [0] * n
    for _ in range(n):
        moved = False
        for a, b in edges:
            if layer[b] <= layer[a]:
                layer[b], moved = layer[a] + 1, True
        if not moved:
            break
    for i in {a for a, _ in edges} - {
        b for _, b in edges
    }:  # what has no parents stands close to its children
        layer[i] = min(layer[b] for a, b in edges if a == i) - 1
    return layer


def _column_order(
    keys: list[frozenset[str]], edges: Sequence[tuple[int, int]], column: Mapping[int, frozenset[str]]
) -> list[frozenset[str]]:
    """Return the columns in an order that keeps each plate's together, and then makes edges short."""
    if len(keys) > MOST_COLUMNS:
        return sorted(keys, key=lambda k: (sorted(k), len(k)))
    names = {p for key in keys for p in key}

    def cost(order: Iterable[frozenset[str]]) -> tuple[int, int]:
        order = list(order)
        place = {key: i for i, key in enumerate(order)}
        torn = 0
        for name in names:
            own = [i for i, key in enumerate(order) if name in key]
            torn += max(own) - min(own) + 1 - len(own)
        far = sum(abs(place[column[a]] - place[column[b]]) for a, b in edges if a in column and b in column)
        return torn, far

    return list(min(permutations(keys), key=cost))


def _apart(x: Array, sizes: Array, row: list[int]) -> None:
    """Move the nodes of a layer apart, around their common middle."""
    row.sort(key=lambda i: x[i])
    middle = np.mean([x[i] for i in row])
    for a, b in pairwise(row):
        least = x[a] + (sizes[a][0] + sizes[b][0]) / 2 + NODE_GAP
        x[b] = max(x[b], least)
    shift = middle - np.mean([x[i] for i in row])
    for i in row:
        x[i] += shift
