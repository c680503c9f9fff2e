"""Crossings of layered drawings: counted exactly, and never more than before."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from markovia.plotting.crossing_reduction import uncrossed


def layered(seed):
    """Return random layers, and edges between neighbouring ones without any twice."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, rng.integers(2, 6))
    numbers = rng.permutation(sizes.sum())
    rows = np.split(numbers, np.cumsum(sizes)[:-1])
    edges = {
        (int(rng.choice(a)), int(rng.choice(b)))
        for a, b in pairwise(rows)
        for _ in range(int(rng.integers(0, 2 * (len(a) + len(b)))))
    }
    upper, lower = np.array(sorted(edges), dtype=np.int64).reshape(-1, 2).T
    return rows, upper, lower


def crossings(rows, upper, lower):
    at = {int(a): (k, i) for k, row in enumerate(rows) for i, a in enumerate(row)}
    edges = [(at[int(a)], at[int(b)]) for a, b in zip(upper, lower, strict=True)]
    return sum(
        a[0] == c[0] and (a[1] - c[1]) * (b[1] - d[1]) < 0 for (a, b), (c, d) in combinations(edges, 2)
    )


@pytest.mark.parametrize("seed", range(20))
def test_layers_keep_their_nodes_and_cross_no_more_than_before(seed):
    rows, upper, lower = layered(seed)
    found = uncrossed(rows, upper, lower)
    assert [sorted(row) for row in found] == [sorted(row) for row in rows]
    before, after = crossings(rows, upper, lower), crossings(found, upper, lower)
    assert after <= before
    # no two neighbours are left whose swap would help: the last round looked at all of them
    for k, row in enumerate(found):
        for i in range(len(row) - 1):
            swapped = row.copy()
            swapped[[i, i + 1]] = row[[i + 1, i]]
            assert crossings([*found[:k], swapped, *found[k + 1 :]], upper, lower) >= after


def test_a_drawing_without_crossings_is_found_where_there_is_one():
    rng = np.random.default_rng(0)
    rows = [np.arange(0, 1), np.arange(1, 5), np.arange(5, 21)]
    upper = np.concatenate([np.zeros(4, dtype=np.int64), np.repeat(np.arange(1, 5), 4)])
    lower = np.concatenate([np.arange(1, 5), np.arange(5, 21)])
    mixed = [rng.permutation(row) for row in rows]
    assert crossings(mixed, upper, lower) > 20
    assert crossings(uncrossed(mixed, upper, lower), upper, lower) == 0
