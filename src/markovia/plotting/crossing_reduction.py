"""Few crossings in a layered drawing: sweeps that sort each layer by barycentres, then swaps of neighbours.

All swaps of every second pair in every second layer are judged at once (odd-even transposition), and crossings are
counted as inversions bit by bit, so that a sweep is a few dozen array operations whatever the size.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.runtime.progress import Advance, paced

Ints = NDArray[np.int64]

SWEEPS = 24
IDLE = 6
ROUNDS = 8


class Near(NamedTuple):
    """Neighbours on one side, by node: those of node a are `of[first[a] : first[a + 1]]`."""

    first: Ints
    node: Ints
    of: Ints

    @property
    def degree(self) -> Ints:
        """How many neighbours each node has."""
        return np.diff(self.first)


def near(nodes: Ints, others: Ints, n: int) -> Near:
    """Return who is joined to each of n nodes.

    Examples
    --------
    >>> near(np.array([2, 0, 2]), np.array([5, 6, 7]), 3).of.tolist()
    [6, 5, 7]
    """
    order = np.argsort(nodes, kind="stable")
    first = np.concatenate([[0], np.cumsum(np.bincount(nodes, minlength=n))]).astype(np.int64)
    return Near(first, nodes[order], others[order])


def uncrossed(
    rows: Sequence[Ints], upper: Ints, lower: Ints, advance: Advance = lambda n=1: None, steps: int = 0
) -> list[Ints]:
    """Return the layers in an order with few crossings.

    Parameters
    ----------
    rows
        The nodes of each layer; all together they are 0, 1, ...
    upper, lower
        The ends of each edge, which goes from one layer to the next.
    advance, steps
        Told how far the work is: so many steps in all.

    Examples
    --------
    >>> rows = [np.array([0, 1]), np.array([2, 3])]
    >>> [row.tolist() for row in uncrossed(rows, np.array([0, 1]), np.array([3, 2]))]
    [[0, 1], [3, 2]]
    """
    listed = np.concatenate(rows)
    n, starts = len(listed), np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    place = np.empty(n, dtype=np.int64)
    place[listed] = np.arange(n)
    upper, lower = place[upper], place[lower]  # from here on nodes are numbered layer by layer
    above, below = near(lower, upper, n), near(upper, lower, n)
    order, place = np.arange(n), np.arange(n)
    classes = _every_second_pair(starts)
    best, fewest, idle = order.copy(), _crossings(place, upper, lower), 0
    for sweep in paced(range(SWEEPS), steps, advance):
        if not fewest or idle > IDLE:
            break
        down = sweep % 2 == 0
        for k in range(1, len(rows)) if down else range(len(rows) - 2, -1, -1):
            _sort_layer(k, starts, order, place, above if down else below)
        _transpose(order, place, classes, (above, below))
        crossings = _crossings(place, upper, lower)
        idle += 1
        if crossings < fewest:
            best, fewest, idle = order.copy(), crossings, 0
    return [listed[row] for row in np.split(best, starts[1:-1])]


def _sort_layer(k: int, starts: Ints, order: Ints, place: Ints, fixed: Near) -> None:
    """Sort a layer by the mean places of its neighbours; a node without any keeps its own."""
    start, stop = int(starts[k]), int(starts[k + 1])
    edges = slice(fixed.first[start], fixed.first[stop])
    degree = fixed.degree[start:stop]
    if not degree.any():
        return
    others = fixed.of[edges]
    base = int(starts[np.searchsorted(starts, others[0], side="right") - 1])
    total = np.bincount(fixed.node[edges] - start, weights=place[others] - base, minlength=stop - start)
    centre = np.where(degree > 0, total / np.maximum(degree, 1), place[start:stop] - start)
    row = order[start:stop]
    row = row[np.argsort(centre[row - start], kind="stable")]
    order[start:stop] = row
    place[row] = np.arange(start, stop)


def _every_second_pair(starts: Ints) -> list[Ints]:
    """Return the places whose swap with the next one can be judged together: every second one, in every second layer."""
    classes = []
    for odd_layer in (0, 1):
        for odd in (0, 1):
            pairs = [
                np.arange(starts[k] + odd, starts[k + 1] - 1, 2) for k in range(odd_layer, len(starts) - 1, 2)
            ]
            if pairs:
                classes.append(np.concatenate(pairs).astype(np.int64))
    return classes


def _transpose(order: Ints, place: Ints, classes: list[Ints], sides: tuple[Near, Near]) -> None:
    """Swap neighbours of a layer wherever that removes crossings, a few rounds."""
    for _ in range(ROUNDS):
        improved = False
        for at in classes:
            better = at[_gain(order[at], order[at + 1], place, sides) > 0]
            if len(better):
                order[better], order[better + 1] = order[better + 1], order[better]
                place[order[better]], place[order[better + 1]] = better, better + 1
                improved = True
        if not improved:
            break


def _gain(a: Ints, b: Ints, place: Ints, sides: tuple[Near, Near]) -> NDArray[np.float64]:
    """Return how many crossings fewer there are if each a changes places with the b to its right."""
    gain = np.zeros(len(a))
    for side in sides:
        # every neighbour of a with every neighbour of b
        of_a, of_b = side.degree[a], side.degree[b]
        count = of_a * of_b
        pair = np.repeat(np.arange(len(a)), count)
        within = np.arange(len(pair)) - np.repeat(np.cumsum(count) - count, count)
        i, j = np.divmod(within, of_b[pair])
        to_a, to_b = side.of[side.first[a[pair]] + i], side.of[side.first[b[pair]] + j]
        gain += np.bincount(pair, weights=np.sign(place[to_a] - place[to_b]), minlength=len(a))
    return gain


def _crossings(place: Ints, upper: Ints, lower: Ints) -> int:
    """Count the crossings of all layers: inversions of the lower ends once edges are sorted by the upper ones."""
    if not len(upper):
        return 0
    values = place[lower][np.lexsort((place[lower], place[upper]))]
    total = 0
    for bit in range(int(values.max()).bit_length() - 1, -1, -1):
        # values that agree in all higher bits stand together; among them a one before a zero is an inversion
        group, one = values >> (bit + 1), (values >> bit) & 1
        before = np.cumsum(one) - one
        total += int(((before - before[np.searchsorted(group, group)]) * (1 - one)).sum())
        values = values[np.argsort(values >> bit, kind="stable")]
    return total
