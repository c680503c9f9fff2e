"""Models that are far too wide for a junction tree are told quickly, and only those."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.inference.exact.hopeless_width import HOPELESS, adjacency, hopeless


def least_degree_widths(graph):
    """Return the largest clique of every least-degree elimination's first choice, by plain sets."""
    left = {v: set(graph[v]) for v in graph}
    largest = 0
    while left:
        v = min(left, key=lambda u: len(left[u]))
        largest = max(largest, len(left[v]) + 1)
        around = left.pop(v)
        for u in around:
            left[u] |= around - {u}
            left[u].discard(v)
    return largest


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 30), st.floats(0.0, 0.6), st.integers(0, 10_000))
def test_the_widest_clique_lies_between_the_treewidth_and_the_number_of_nodes(n, density, seed):
    from markovia.kernels.clique_trees.width_check import widest_clique

    graph = nx.gnp_random_graph(n, density, seed=seed)
    scopes = [(str(a), str(b)) for a, b in graph.edges]
    pointers, others = adjacency(n, scopes, {str(v): v for v in range(n)})
    for v in graph:
        assert others[pointers[v] : pointers[v + 1]].tolist() == sorted(graph[v])
    found = widest_clique(pointers, others, np.ones(n), 1e9)
    clique = max((len(c) for c in nx.find_cliques(graph)), default=1)
    assert clique <= found <= n
    assert abs(found - least_degree_widths(graph)) <= 0.3 * n  # ties are broken differently


def test_on_a_tree_the_widest_clique_is_an_edge():
    from markovia.kernels.clique_trees.width_check import widest_clique

    tree = nx.random_labeled_tree(500, seed=3)
    pointers, others = adjacency(500, [(str(a), str(b)) for a, b in tree.edges], {str(v): v for v in tree})
    assert widest_clique(pointers, others, np.ones(500), 1e9) == 2.0


def problem(model, given=None):
    return model._problem(given)


def test_a_wide_grid_is_hopeless_and_a_long_strip_is_not():
    assert hopeless(problem(mk.generators.ising_grid(60, 60, coupling=0.1)), None)
    assert not hopeless(problem(mk.generators.ising_grid(8, 400, coupling=0.1)), None)


def test_evidence_that_cuts_a_grid_into_strips_makes_it_feasible():
    grid = mk.generators.ising_grid(60, 60, coupling=0.1)
    state = grid.states("x0_0")[0]
    given = {f"x{i}_{j}": state for i in range(5, 60, 6) for j in range(60)}
    assert not hopeless(problem(grid, given), None)


@pytest.mark.parametrize("states", [2, 8])
def test_states_count_as_bits(states):
    grid = mk.generators.potts_grid(20, 20, states, coupling=0.1)
    assert hopeless(problem(grid), None) == (states == 8)
    assert HOPELESS > 40
