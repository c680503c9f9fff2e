"""Undirected graphs and the graphs of factor graphs."""

from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovia.errors import DuplicateName, InvalidArgument, InvalidGraph, MarkoviaError, UnknownVariable
from markovia.graphs import (
    BipartiteGraph,
    UndirectedGraph,
    chain,
    cycle,
    feedback_vertex_set,
    greedy_colouring,
    grid,
    star,
)


@st.composite
def undirected_graphs(draw: st.DrawFn, largest: int = 7) -> UndirectedGraph:
    n = draw(st.integers(0, largest))
    names = draw(st.permutations([f"n{i}" for i in range(n)]))
    pairs = list(combinations(names, 2))
    bits = draw(st.integers(0, 2 ** len(pairs) - 1))
    return UndirectedGraph([pair for k, pair in enumerate(pairs) if bits >> k & 1], nodes=names)


def test_edges_are_listed_once_and_compare_without_order():
    g = UndirectedGraph([("b", "a"), ("a", "b"), ("b", "c")])
    assert g.edges == [("b", "a"), ("b", "c")]
    assert g.n_edges == 2
    assert g == UndirectedGraph([("c", "b"), ("a", "b")])
    assert g != UndirectedGraph([("c", "b"), ("a", "c")])
    assert eval(repr(g)) == g


def test_failed_edits_leave_the_graph_unchanged():
    g = UndirectedGraph([("a", "b"), ("b", "c")])
    before = g.copy()
    edits = [
        lambda: g.add_edge("d", "d"),
        lambda: g.add_edges([("c", "d"), ("d", "d")]),
        lambda: g.add_edges([("c", "d"), ("d", 1)]),
        lambda: g.add_nodes(["d", 1]),
        lambda: g.remove_edge("a", "c"),
        lambda: g.remove_edges([("a", "b"), ("a", "c")]),
        lambda: g.remove_node("q"),
        lambda: g.rename({"a": "b"}),
    ]
    for edit in edits:
        with pytest.raises(MarkoviaError):
            edit()
        assert g == before
        assert g.nodes == before.nodes


def test_edits_do_what_they_say():
    g = UndirectedGraph([("a", "b"), ("b", "c"), ("c", "a")], nodes=["z"])
    g.remove_edge("c", "b")
    g.rename({"a": "hub"})
    assert g.edges == [("hub", "b"), ("hub", "c")]
    g.remove_node("b")
    assert g == UndirectedGraph([("hub", "c")], nodes=["z"])
    with pytest.raises(UnknownVariable, match="did you mean 'hub'"):
        g.neighbors("hubs")
    with pytest.raises(InvalidArgument):
        g.add_node(1)


@settings(deadline=None)
@given(undirected_graphs())
def test_structure_agrees_with_networkx(g):
    reference = g.to_networkx()
    assert UndirectedGraph.from_networkx(reference) == g
    assert {frozenset(c) for c in g.connected_components()} == {
        frozenset(c) for c in nx.connected_components(reference)
    }
    assert g.is_forest() == (len(g) == 0 or nx.is_forest(reference))
    assert g.is_tree() == (len(g) > 0 and nx.is_tree(reference))
    assert g.complement() == UndirectedGraph.from_networkx(nx.complement(reference))
    assert g.adjacency_matrix().tolist() == nx.to_numpy_array(reference, nodelist=g.nodes).tolist()


@settings(deadline=None)
@given(undirected_graphs(9))
def test_maximal_cliques_agree_with_networkx(g):
    cliques = g.maximal_cliques()
    reference = {frozenset(c) for c in nx.find_cliques(g.to_networkx())} if len(g) else set()
    assert {frozenset(c) for c in cliques} == reference
    assert len(cliques) == len(reference)
    assert len(g.maximum_clique()) == max(map(len, reference), default=0)
    for clique in cliques:
        assert g.is_clique(clique, maximal=True)
        assert list(clique) == [n for n in g.nodes if n in clique]


def test_a_directed_networkx_graph_is_refused():
    with pytest.raises(InvalidGraph, match="directed"):
        UndirectedGraph.from_networkx(nx.DiGraph())


def test_two_triangles_have_two_maximal_cliques_and_five_edges():
    g = UndirectedGraph.from_cliques([("A", "B", "D"), ("B", "C", "D")])
    assert {frozenset(c) for c in g.maximal_cliques()} == {frozenset("ABD"), frozenset("BCD")}
    assert g.n_edges == 5


def test_pairwise_and_three_way_scopes_give_one_graph_but_two_factor_graphs():
    pairs, triple = [("1", "2"), ("1", "3"), ("2", "3")], [("1", "2", "3")]
    assert UndirectedGraph.from_cliques(pairs) == UndirectedGraph.from_cliques(triple)
    assert len(BipartiteGraph(pairs).factors) == 3
    assert len(BipartiteGraph(triple).factors) == 1
    assert BipartiteGraph(pairs).to_undirected() == BipartiteGraph(triple).to_undirected()
    assert BipartiteGraph(triple).is_tree()
    assert not BipartiteGraph(pairs).is_forest()


def test_cliques_and_completeness():
    g = UndirectedGraph([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")])
    assert g.is_complete(["a", "b", "c"])
    assert not g.is_complete()
    assert not g.is_clique([])
    assert not g.is_clique(n for n in "ad")
    assert g.is_clique((n for n in "ab"), maximal=False)
    assert g.degree("c") == 3
    assert g.markov_blanket("d") == {"c"}


def test_conditioning_on_hubs_leaves_a_forest():
    assert feedback_vertex_set(star(6)) == []
    hub = star(6)
    hub.add_edges([("x1", "x2"), ("x3", "x4")])
    assert feedback_vertex_set(hub) == ["x0"]


@settings(deadline=None)
@given(undirected_graphs())
def test_a_feedback_vertex_set_is_minimal(g):
    chosen = feedback_vertex_set(g)
    assert g.subgraph(n for n in g if n not in chosen).is_forest()
    for spared in chosen:
        assert not g.subgraph(n for n in g if n not in chosen or n == spared).is_forest()


@settings(deadline=None)
@given(undirected_graphs())
def test_neighbours_get_different_colours(g):
    colours = greedy_colouring(g)
    assert list(colours) == g.nodes
    assert all(colours[a] != colours[b] for a, b in g.edges)


def test_trees_and_even_cycles_need_two_colours_and_odd_ones_three():
    assert max(greedy_colouring(chain(9)).values()) == 1
    assert max(greedy_colouring(cycle(8)).values()) == 1
    assert max(greedy_colouring(cycle(9)).values()) == 2
    assert max(greedy_colouring(grid(5, 6)).values()) <= 2


def test_factor_graph_edits():
    g = BipartiteGraph({"f": ["a", "b"], "g": ["b", "c"]}, variables=["z"])
    assert g.variables == ["z", "a", "b", "c"]
    assert g.edges == [("f", "a"), ("f", "b"), ("g", "b"), ("g", "c")]
    assert g.markov_blanket("b") == {"a", "c"}
    assert g.connected_components() == [["z"], ["a", "b", "c"]]
    before = g.copy()
    for edit, error in [
        (lambda: g.add_factor("f", ["c"]), DuplicateName),
        (lambda: g.add_factor("h", ["c", "c"]), DuplicateName),
        (lambda: g.add_factor("h", ["q", 1]), InvalidArgument),
        (lambda: g.remove_factor("k"), UnknownVariable),
        (lambda: g.remove_variable("b"), InvalidGraph),
        (lambda: g.scope("ff"), UnknownVariable),
    ]:
        with pytest.raises(error):
            edit()
        assert g == before
    g.remove_factor("g")
    g.remove_variable("c")
    assert g == BipartiteGraph({"f": ["b", "a"]}, variables=["z"])
    assert eval(repr(g)) == g


def test_factor_graphs_travel_through_networkx():
    g = BipartiteGraph({"f": ["a", "b"], "a": ["b"]}, variables=["z"])
    reference = g.to_networkx()
    assert nx.is_bipartite(reference)
    assert BipartiteGraph.from_networkx(reference) == g
    with pytest.raises(InvalidGraph):
        BipartiteGraph.from_networkx(nx.path_graph(2))


@settings(deadline=None)
@given(st.lists(st.sets(st.sampled_from("abcde"), max_size=3), max_size=5))
def test_factor_graph_forests_agree_with_networkx(scopes):
    g = BipartiteGraph(scopes)
    reference = g.to_networkx()
    if len(reference):
        assert g.is_forest() == nx.is_forest(reference)
        assert g.is_tree() == nx.is_tree(reference)
