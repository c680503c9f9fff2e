"""Colours of edges: no node has one twice, and grids take four."""

import numpy as np
import pytest

import markovia as mk
from markovia.inference.flat_graphs.flat_graph import flat_graph
from markovia.kernels.flat_graphs.edge_colours import MOST_DEGREE, colour_edges


def colours_of(pairs):
    found = np.full(len(pairs), -1, dtype=np.int64)
    ends = np.ascontiguousarray(np.reshape(pairs, -1), dtype=np.int64)
    colour_edges(ends, np.zeros(ends.max() + 1, dtype=np.int64), found)
    assert (found >= 0).all()
    marks = np.concatenate([np.stack([end, found], axis=1) for end in np.reshape(pairs, (-1, 2)).T])
    assert len(np.unique(marks, axis=0)) == len(marks)
    return found


@pytest.mark.parametrize("shape", [(2, 2), (5, 8), (9, 7)])
def test_a_grid_takes_four_colours(shape):
    graph = flat_graph(mk.generators.ising_grid(*shape)._problem(None))
    assert colours_of(graph.scope.reshape(-1, 2)).max() < 4


def test_no_node_has_a_colour_twice_up_to_the_largest_degree():
    rng = np.random.default_rng(0)
    pairs = np.array([(i, j) for i in range(40) for j in range(i + 1, 40) if rng.random() < 0.5])
    degree = np.bincount(pairs.ravel()).max()
    assert degree <= MOST_DEGREE
    assert colours_of(pairs).max() < 2 * degree - 1
    star = [(0, i) for i in range(1, MOST_DEGREE + 1)]
    assert colours_of(star).max() == MOST_DEGREE - 1
