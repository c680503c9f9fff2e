"""Mutual information of numbers from the distances of nearest neighbours, without bins and without a density.

Number and number: around each row a square reaches to its k-th neighbour in both columns together; the more rows lie as
near in one column alone, the less that column says of the other (Kraskov, Stoegbauer and Grassberger 2004, algorithm 1)

    I = psi(k) + psi(n) - mean(psi(n_x + 1) + psi(n_y + 1)).

Number and state: an interval reaches to the k-th neighbour of the same state, and m rows of any state lie in it (Ross 2014)

    I = psi(n) - mean(psi(n_state)) + mean(psi(k)) - mean(psi(m)).

Number and number given numbers: the same square, in all columns together (Frenzel and Pompe 2007)

    I = psi(k) - mean(psi(n_xz + 1) + psi(n_yz + 1) - psi(n_z + 1)).

Columns are first divided by their spread, so the unit says nothing. Rows that share a value would make distances zero: noise
of 1e-10 of the spread, the same each time, tells them apart. The bias is small and of either sign: some (k / n) for k
neighbours; fewer neighbours vary more. Cost: ``O(rows log rows)`` for a few columns.
"""

from typing import Any

import numpy as np

from markovia.data.tables.plain_columns import Codes, need_rows
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array, Ints

NOISE = 1e-10
"""How far, in units of a column's spread, rows with one value are moved apart."""


def information_of_numbers(x: Array, y: Array, neighbours: int, given: Array | None = None) -> float:
    """Return the information between numbers, also given others, (rows, columns) each; constants say nothing."""
    from scipy.special import psi

    n = len(x)
    need_rows(n, neighbours + 1, f"mutual information by {neighbours} neighbours")
    x, y, z = _scaled(x, 0), _scaled(y, 1), np.empty((n, 0)) if given is None else _scaled(given, 2)
    if not x.shape[1] or not y.shape[1]:
        return 0.0
    xz, yz = np.hstack([x, z]), np.hstack([y, z])
    reach = _reach(np.hstack([x, yz]), neighbours)
    alone = np.mean(psi(_nearer(z, reach))) if z.shape[1] else psi(n)
    return float(psi(neighbours) + alone - np.mean(psi(_nearer(xz, reach)) + psi(_nearer(yz, reach))))


def information_of_numbers_and_states(x: Array, states: Codes, neighbours: int) -> float:
    """Return the information between numbers, (rows, columns), and states; rows alone in their state are left out."""
    from scipy.special import psi

    x = _scaled(x, 0)
    counts = np.bincount(states)[states]
    several = counts > 1
    if not several.any():
        raise InvalidArgument(
            "every state occurs in one row only, so that no row has a neighbour in its state; group the states, or, if they "
            "are measurements, say continuous=True"
        )
    x, states, counts = x[several], states[several], counts[several]
    if not x.shape[1]:
        return 0.0
    reach, used = np.empty(len(x)), np.minimum(neighbours, counts - 1)
    for state in np.unique(states):
        own = states == state
        reach[own] = _reach(x[own], int(used[own][0]))
    near = _nearer(x, reach)
    return float(psi(len(x)) + np.mean(psi(used) - psi(counts) - psi(near)))


def _scaled(columns: Array, stream: int) -> Array:
    """Return columns in units of their spread, values that occur twice moved apart; constant columns are left out."""
    centred = columns - columns.mean(axis=0)
    largest = np.abs(centred).max(axis=0)
    # a constant that is no binary fraction has a mean a rounding away from it
    varies = largest > 1e-14 * np.abs(columns).max(axis=0)
    centred = centred[:, varies] / largest[varies]  # squares of tiny and huge numbers stay in range
    found = centred / centred.std(axis=0)
    tied = [j for j in range(found.shape[1]) if len(np.unique(columns[:, varies][:, j])) < len(found)]
    # each side its own noise, which must not depend on the other's
    rng = np.random.default_rng([stream, 2004])
    found[:, tied] += NOISE * rng.standard_normal((len(found), len(tied)))
    return np.asarray(found)


def _reach(points: Array, neighbours: int) -> Array:
    """Return a distance just short of the k-th neighbour's, in the largest difference of a column.

    Just short is some roundings: a sum such as point + distance must not reach the neighbour that the distance is to.
    """
    from scipy.spatial import KDTree

    # the first neighbour is the point itself
    found: Any = KDTree(points).query(points, k=[neighbours + 1], p=np.inf)[0]
    return np.asarray(np.maximum(found[:, 0] - 4.0 * np.spacing(np.abs(points).max()), 0.0))


def _nearer(points: Array, reach: Array) -> Ints:
    """Return how many points lie within reach of each, itself among them."""
    if points.shape[1] == 1:
        line = np.sort(points[:, 0])
        upper = np.searchsorted(line, points[:, 0] + reach, side="right")
        return np.asarray(upper - np.searchsorted(line, points[:, 0] - reach, side="left"))
    from scipy.spatial import KDTree

    return np.asarray(KDTree(points).query_ball_point(points, reach, p=np.inf, return_length=True))
