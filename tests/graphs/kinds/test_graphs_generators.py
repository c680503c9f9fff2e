"""Generated graphs have the shape they promise."""

from collections import Counter

import networkx as nx
import pytest

from markovia.errors import InvalidArgument
from markovia.graphs import (
    UndirectedGraph,
    chain,
    complete,
    cycle,
    grid,
    is_chordal,
    random_dag,
    random_k_tree,
    random_tree,
    star,
    treewidth_of_order,
    triangulate,
)


def test_the_same_seed_gives_the_same_graph():
    for make in (
        lambda s: random_dag(30, max_parents=3, seed=s),
        lambda s: random_dag(30, edge_probability=0.2, seed=s),
        lambda s: random_dag(30, n_edges=50, seed=s),
        lambda s: random_tree(30, seed=s),
        lambda s: random_k_tree(30, 3, seed=s),
    ):
        assert make(4) == make(4)
        assert make(4) != make(5)


def test_random_dags_keep_their_limits():
    for seed in range(5):
        g = random_dag(40, max_parents=2, edge_probability=0.5, seed=seed)
        assert max(len(g.parents(n)) for n in g) == 2
        assert g.topological_order() == g.nodes == [f"x{i}" for i in range(40)]
        g = random_dag(40, max_parents=2, n_edges=60, seed=seed)
        assert g.n_edges == 60
        assert max(len(g.parents(n)) for n in g) <= 2
    assert random_dag(6, n_edges=15, seed=0).skeleton() == complete(6)
    assert random_dag(5, edge_probability=1.0).n_edges == 10
    assert random_dag(5, edge_probability=0.0).n_edges == 0
    assert len(random_dag(0)) == 0


def test_the_share_of_edges_follows_the_probability():
    g = random_dag(300, edge_probability=0.1, seed=1)
    assert g.n_edges / (300 * 299 / 2) == pytest.approx(0.1, abs=0.01)  # sd 0.0014


def test_labelled_trees_are_drawn_uniformly():
    counts = Counter(frozenset(map(frozenset, random_tree(4, seed=s).edges)) for s in range(3200))
    assert len(counts) == 16  # Cayley: 4 ** 2
    assert all(120 < c < 290 for c in counts.values())  # mean 200, sd 14


def test_directed_trees_point_away_from_the_first_node():
    for n in (1, 2, 3, 50):
        g = random_tree(n, seed=n, directed=True)
        assert g.is_tree()
        assert g.roots() == ["x0"]
        assert random_tree(n, seed=n).is_tree()


@pytest.mark.parametrize("k", [1, 2, 3])
def test_k_trees_are_chordal_of_width_k(k):
    g = random_k_tree(25, k, seed=k)
    assert is_chordal(g)
    assert {len(c) for c in g.maximal_cliques()} == {k + 1}
    assert g.n_edges == k * (k + 1) // 2 + k * (25 - k - 1)
    partial = random_k_tree(25, k, seed=k, keep=0.6)
    assert partial.n_edges == round(0.6 * g.n_edges)
    assert set(map(frozenset, partial.edges)) < set(map(frozenset, g.edges))
    assert treewidth_of_order(partial, triangulate(partial).order) <= k


def test_grids_agree_with_networkx():
    def named(graph):
        return UndirectedGraph.from_networkx(nx.relabel_nodes(graph, {n: f"x{n[0]}_{n[1]}" for n in graph}))

    assert grid(3, 5) == named(nx.grid_2d_graph(3, 5))
    assert grid(4, 5, torus=True) == named(nx.grid_2d_graph(4, 5, periodic=True))
    assert grid(3, 3, diagonal=True).degree("x1_1") == 8
    assert grid(3, 3, diagonal=True, torus=True) == UndirectedGraph.from_cliques([grid(3, 3).nodes])
    assert grid(2, 2, torus=True) == grid(2, 2)
    assert grid(1, 1, torus=True).n_edges == 0
    assert len(grid(0, 4)) == 0


def test_regular_graphs():
    assert chain(4).edges == chain(4, directed=True).edges == [("x0", "x1"), ("x1", "x2"), ("x2", "x3")]
    assert all(cycle(5).degree(n) == 2 for n in cycle(5))
    assert complete(5).is_complete()
    assert star(1).n_edges == 0
    assert star(5).is_tree()
    assert len(chain(0)) == len(complete(0)) == len(star(0)) == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: random_dag(-1),
        lambda: random_dag(3, edge_probability=0.1, n_edges=1),
        lambda: random_dag(3, edge_probability=1.5),
        lambda: random_dag(3, n_edges=4),
        lambda: random_dag(3, max_parents=-1),
        lambda: random_tree(-2),
        lambda: random_k_tree(3, 3),
        lambda: random_k_tree(3, 0),
        lambda: random_k_tree(9, 2, keep=2),
        lambda: grid(-1, 2),
        lambda: cycle(2),
        lambda: chain(-1),
    ],
)
def test_impossible_requests_are_refused(make):
    with pytest.raises(InvalidArgument):
        make()
