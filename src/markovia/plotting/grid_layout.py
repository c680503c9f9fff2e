"""Drawing of a grid: row by row, straight, one cell a node.

A grid is known by its names, such as `x0_0, x0_1, ...` (row and column, starting anywhere), or by its graph: four corners,
and the place of every node follows from its distances to two of them. Edges that close the rows or columns of a
periodic grid run around the outside and between the rows or columns.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from markovia.plotting.edge_routes import rounded
from markovia.plotting.stress_layout import graph_distances
from markovia.runtime.array_types import Array

Pair = tuple[int, int]
Cells = NDArray[np.int64]

GAP = 0.42
_CELL = re.compile(r"(.*?)(\d+)(?:_|,|, )(\d+)(\D*)")


def find_grid(names: Sequence[str], edges: list[Pair], *, named: bool = False) -> Cells | None:
    """Return the row and the column of every node, or None where the graph is no grid of at least 2 x 2.

    Parameters
    ----------
    names
        What the user calls the nodes.
    edges
        Pairs of node numbers.
    named
        Whether only names count.

    Examples
    --------
    >>> find_grid("abcd", [(0, 1), (2, 3), (0, 2), (1, 3)]).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> find_grid("abc", [(0, 1), (1, 2)]) is None
    True
    """
    if len(names) < 4 or len(edges) < len(names):
        return None
    cells = _from_names(names)
    if cells is not None and _joins_neighbours(cells, edges):
        return cells
    return None if named else _from_corners(len(names), edges)


def grid_layout(sizes: Array, cells: Cells, edges: list[Pair]) -> tuple[Array, list[Array | None]]:
    """Place nodes in their cells, and route the edges that join opposite sides.

    Returns
    -------
    centres, routes
        As `layered_layout` does.

    Examples
    --------
    >>> cells = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> grid_layout(np.ones((4, 2)), cells, [(0, 1), (0, 2)])[0].round(2).tolist()
    [[0.0, 1.42], [1.42, 1.42], [0.0, 0.0], [1.42, 0.0]]
    """
    pitch = sizes.max(axis=0) + GAP
    centres = np.stack([cells[:, 1], cells[:, 0].max() - cells[:, 0]], axis=1) * pitch
    routes: list[Array | None] = []
    for a, b in edges:
        step = cells[b] - cells[a]
        if np.abs(step).max() <= 1:
            routes.append(None)
            continue
        # out of the grid by half a cell, along the corridor beside the row or column, and in again
        out = np.sign(step[::-1]) * np.array([1.0, -1.0])
        beside = np.where(out == 0, 1.0, 0.0)
        ends = centres[a] + (beside - out) * pitch / 2, centres[b] + (beside + out) * pitch / 2
        routes.append(rounded([centres[a], *ends, centres[b]]))
    return centres, routes


def _from_names(names: Sequence[str]) -> Cells | None:
    found = [_CELL.fullmatch(name) for name in names]
    matches = [m for m in found if m is not None]
    if len(matches) < len(names) or len({(m[1], m[4]) for m in matches}) > 1:
        return None
    cells = np.array([(int(m[2]), int(m[3])) for m in matches], dtype=np.int64)
    first: Cells = cells.min(axis=0)
    return np.subtract(cells, first)


def _joins_neighbours(cells: Cells, edges: list[Pair]) -> bool:
    """Say whether cells fill a rectangle once and each edge goes one step, or around from one side to the other."""
    rows, columns = (int(k) for k in cells.max(axis=0) + 1)
    if min(rows, columns) < 2 or len({(int(r), int(c)) for r, c in cells}) != rows * columns:
        return False
    a, b = np.array(edges).T
    steps = np.abs(cells[a] - cells[b])
    one = steps.sum(axis=1) == 1
    around = (steps == [rows - 1, 0]).all(axis=1) | (steps == [0, columns - 1]).all(axis=1)
    least = rows * (columns - 1) + columns * (rows - 1)
    return (
        bool((one | around).all()) and len({frozenset(e) for e in zip(a[one], b[one], strict=True)}) == least
    )


def _from_corners(n: int, edges: list[Pair]) -> Cells | None:
    degree = np.bincount(np.array(edges).ravel(), minlength=n)
    corners = np.flatnonzero(degree == 2)
    if len(corners) != 4 or degree.max() > 4:
        return None
    first, *others = (graph_distances(n, edges, [int(c)])[0] for c in corners)
    for corner, other in zip(corners[1:], others, strict=True):
        width = first[corner]
        twice = np.stack([first + other - width, first - other + width], axis=1)
        cells = (twice // 2).astype(np.int64)
        if not (twice % 2).any() and _joins_neighbours(cells, edges):
            return cells
    return None
