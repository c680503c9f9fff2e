"""Models that are far too wide for a junction tree are told quickly, and only those."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.inference.exact import hopeless_width
from markovia.inference.exact.hopeless_width import HOPELESS, hopeless
from markovia.inference.exact.tree_plan import TreeStructure
from markovia.kernels.clique_trees.elimination import wider_than


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 30), st.floats(0.0, 0.6), st.integers(0, 10_000))
def test_the_width_told_lies_between_the_largest_clique_and_the_number_of_nodes(n, density, seed):
    graph = nx.gnp_random_graph(n, density, seed=seed)
    flat = np.array(graph.edges, dtype=np.int64).ravel()
    starts = np.arange(0, len(flat) + 1, 2)
    card = np.full(n, 2, dtype=np.int64)
    clique = max((len(c) for c in nx.find_cliques(graph)), default=1)
    assert wider_than(starts, flat, card, clique - 1e-9)
    assert not wider_than(starts, flat, card, n + 1)  # tables of at most 2, 4, ... 2**n entries


def test_a_tree_has_an_edge_for_every_table():
    tree = nx.random_labeled_tree(500, seed=3)
    flat = np.array(tree.edges, dtype=np.int64).ravel()
    card = np.full(500, 2, dtype=np.int64)
    entries = 499 * 4 + 2
    assert wider_than(np.arange(0, 999, 2), flat, card, np.log2(entries - 1))
    assert not wider_than(np.arange(0, 999, 2), flat, card, np.log2(entries + 0.5))


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 60), st.floats(0.5, 12.0), st.floats(2.0, 12.0), st.integers(0, 10_000))
def test_width_is_told_alike_with_and_without_compiled_code(n, degree, bits, seed):
    graph = nx.gnp_random_graph(n, min(degree / n, 1.0), seed=seed)
    structure = TreeStructure([2] * n, [list(e) for e in graph.edges])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hopeless_width, "HOPELESS", bits)
        told = []
        for compiled in (True, False):
            patch.setattr(hopeless_width, "worth_loading", lambda *given, compiled=compiled: compiled)
            told.append(hopeless_width._wide(structure))
        # the two break ties differently, so a width near the limit may be told either way
        patch.setattr(hopeless_width, "HOPELESS", bits + 2.0)
        above = hopeless_width._wide(structure)
        patch.setattr(hopeless_width, "HOPELESS", bits - 2.0)
        below = hopeless_width._wide(structure)
    assert told[0] == told[1] or (below and not above)


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
