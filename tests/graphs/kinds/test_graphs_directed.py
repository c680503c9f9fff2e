"""Directed acyclic graphs: building, editing, looking around, and the worked examples about them."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovia.errors import (
    CycleError,
    DuplicateName,
    InvalidArgument,
    InvalidGraph,
    MarkoviaError,
    TooLarge,
    UnknownVariable,
)
from markovia.graphs import DAG, UndirectedGraph

EIGHT = DAG(
    [
        ("x1", "x3"),
        ("x2", "x4"),
        ("x2", "x5"),
        ("x3", "x6"),
        ("x4", "x6"),
        ("x6", "x7"),
        ("x5", "x8"),
        ("x6", "x8"),
    ]
)


@st.composite
def dags(draw: st.DrawFn, largest: int = 7) -> DAG:
    n = draw(st.integers(0, largest))
    names = draw(st.permutations([f"n{i}" for i in range(n)]))
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    bits = draw(st.integers(0, 2 ** len(pairs) - 1))
    nodes = draw(st.permutations(names))
    return DAG([pair for k, pair in enumerate(pairs) if bits >> k & 1], nodes=nodes)


def test_nodes_come_first_and_then_edges_in_order_of_appearance():
    g = DAG([("c", "a"), ("d", "c")], nodes=["b", "a"])
    assert g.nodes == ["b", "a", "c", "d"]
    assert list(g) == g.nodes
    assert len(g) == 4
    assert "d" in g
    assert "e" not in g
    assert 3 not in g


def test_adding_what_is_there_changes_nothing():
    g = DAG([("a", "b")])
    g.add_node("a")
    g.add_edge("a", "b")
    g.add_edges([("a", "b"), ("a", "b")])
    assert g.edges == [("a", "b")]
    assert g.nodes == ["a", "b"]


def test_equality_ignores_the_order_of_nodes_and_edges():
    assert DAG([("a", "b"), ("c", "b")]) == DAG([("c", "b"), ("a", "b")], nodes=["b"])
    assert DAG([("a", "b")]) != DAG([("b", "a")])
    assert DAG([("a", "b")]) != DAG([("a", "b")], nodes=["c"])
    assert DAG() != UndirectedGraph()


def test_repr_rebuilds_a_small_graph():
    g = DAG([("a", "b"), ("b", "c")], nodes=["z"])
    assert eval(repr(g)) == g
    assert "200 nodes" in repr(DAG(nodes=[f"n{i}" for i in range(200)]))


def test_copies_are_independent():
    g = DAG([("a", "b")])
    copy = g.copy()
    copy.add_edge("b", "c")
    copy.rename({"a": "z"})
    assert g == DAG([("a", "b")])


@pytest.mark.parametrize(
    ("edges", "cycle"),
    [
        ([("a", "a")], ("a", "a")),
        ([("a", "b"), ("b", "a")], ("a", "b", "a")),
        ([("s", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("c", "t")], ("a", "b", "c", "a")),
    ],
)
def test_a_cycle_is_reported_with_its_nodes(edges, cycle):
    with pytest.raises(CycleError) as caught:
        DAG(edges)
    found = caught.value.cycle
    assert found[0] == found[-1]
    assert set(found) == set(cycle)
    assert set(itertools.pairwise(found)) <= set(edges)
    assert " -> ".join(found) in str(caught.value)


@settings(deadline=None)
@given(dags(), st.data())
def test_a_reported_cycle_consists_of_edges(g, data):
    if len(g) < 2:
        return
    extra = data.draw(st.lists(st.tuples(st.sampled_from(g.nodes), st.sampled_from(g.nodes)), min_size=1))
    before = g.copy()
    reference = g.to_networkx()
    reference.add_edges_from(extra)
    if nx.is_directed_acyclic_graph(reference):
        g.add_edges(extra)
        assert set(g.edges) == set(reference.edges)
        return
    with pytest.raises(CycleError) as caught:
        g.add_edges(extra)
    walk = caught.value.cycle
    assert all(reference.has_edge(a, b) for a, b in itertools.pairwise(walk))
    assert walk[0] == walk[-1]
    assert g == before
    assert g.nodes == before.nodes


@settings(deadline=None)
@given(dags(), st.data())
def test_adding_edges_one_by_one_agrees_with_adding_them_together(g, data):
    one_by_one = DAG(nodes=g.nodes)
    for a, b in data.draw(st.permutations(g.edges)):
        one_by_one.add_edge(a, b)
        with pytest.raises(CycleError) as caught:
            one_by_one.add_edge(b, a)
        assert caught.value.cycle[:2] == (b, a)
    assert one_by_one == g


def test_failed_edits_leave_the_graph_unchanged():
    g = DAG([("a", "b"), ("b", "c")])
    before = g.copy()
    edits = [
        lambda: g.add_edge("c", "a"),
        lambda: g.add_edge("new", "new"),
        lambda: g.add_edges([("c", "d"), ("d", "e"), ("e", "b")]),
        lambda: g.add_edges([("c", "d"), ("d", 5)]),
        lambda: g.add_edges([("c", "d"), "ab"]),
        lambda: g.add_nodes(["d", 4]),
        lambda: g.add_node(None),
        lambda: g.remove_edge("b", "a"),
        lambda: g.remove_edges([("a", "b"), ("a", "c")]),
        lambda: g.remove_node("q"),
        lambda: g.remove_nodes(["a", "q"]),
        lambda: g.rename({"a": "b"}),
        lambda: g.rename({"a": "x", "b": "x"}),
        lambda: g.rename({"a": "x", "q": "y"}),
        lambda: g.rename({"a": 3}),
    ]
    for edit in edits:
        with pytest.raises(MarkoviaError):
            edit()
        assert g == before
        assert g.nodes == before.nodes
        assert g.edges == before.edges


def test_unknown_names_come_with_the_nearest_one():
    g = DAG([("smoke", "lung")])
    for call in (g.parents, g.children, g.ancestors, g.markov_blanket, g.remove_node, g.spouses):
        with pytest.raises(UnknownVariable, match=r"did you mean 'smoke'"):
            call("smokes")
    with pytest.raises(KeyError):
        g.subgraph(["lung", "smok"])


def test_names_are_strings_and_edges_are_pairs():
    with pytest.raises(InvalidArgument, match="use '1'"):
        DAG(nodes=[1])
    with pytest.raises(InvalidArgument, match="pair of node names"):
        DAG(["ab"])
    with pytest.raises(InvalidArgument, match="pair"):
        DAG([("a", "b", "c")])
    with pytest.raises(InvalidArgument):
        DAG([("a", "b")]).ancestors(7)


def test_any_string_is_a_name():
    odd = ["", " ", "a b", "x⊥y", "->", "\n"]
    g = DAG(itertools.pairwise(odd))
    assert g.topological_order() == odd


def test_removing_nodes_removes_their_edges():
    g = DAG([("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")])
    g.remove_node("b")
    assert g.nodes == ["a", "c", "d"]
    assert g.edges == [("a", "c"), ("c", "d")]
    g.remove_nodes(["a", "d"])
    assert g == DAG(nodes=["c"])


def test_removing_an_edge_that_points_the_other_way_says_so():
    with pytest.raises(InvalidGraph, match="other way"):
        DAG([("a", "b")]).remove_edge("b", "a")


def test_names_can_be_swapped():
    g = DAG([("a", "b"), ("b", "c")])
    g.rename({"a": "c", "c": "a"})
    assert g.edges == [("c", "b"), ("b", "a")]
    with pytest.raises(DuplicateName, match="two nodes the name 'b'"):
        g.rename({"a": "b"})


def test_parents_keep_the_order_they_were_given_in():
    g = DAG.from_parents({"c": ["b", "a"], "a": [], "b": ["a"]})
    assert g.nodes == ["c", "a", "b"]
    assert g.parents("c") == ["b", "a"]
    assert DAG.from_parents({"b": "alarm"}).parents("b") == ["alarm"]


def test_from_parents_checks_its_input():
    with pytest.raises(CycleError):
        DAG.from_parents({"a": ["b"], "b": ["a"]})
    with pytest.raises(DuplicateName, match="twice for 'b'"):
        DAG.from_parents({"a": [], "b": ["a", "a"]})
    with pytest.raises(InvalidArgument):
        DAG.from_parents({"a": [1]})


@settings(deadline=None)
@given(dags())
def test_topological_order_is_insertion_order_where_that_is_one(g):
    order = g.topological_order()
    rank = {name: k for k, name in enumerate(order)}
    assert sorted(order) == sorted(g.nodes)
    assert all(rank[a] < rank[b] for a, b in g.edges)
    assert DAG(g.edges, nodes=order).topological_order() == order


@settings(deadline=None)
@given(dags())
def test_relatives_agree_with_networkx(g):
    reference = g.to_networkx()
    for name in g:
        assert g.ancestors(name) == nx.ancestors(reference, name)
        assert g.descendants(name) == nx.descendants(reference, name)
        assert set(g.parents(name)) == set(reference.predecessors(name))
        assert set(g.children(name)) == set(reference.successors(name))
        assert set(g.neighbors(name)) == set(nx.all_neighbors(reference, name))
        assert g.markov_blanket(name) == set(g.moral_graph().neighbors(name))
    assert {frozenset(c) for c in g.connected_components()} == {
        frozenset(c) for c in nx.weakly_connected_components(reference)
    }
    assert g.is_polytree() == (len(g) == 0 or nx.is_forest(reference.to_undirected()))
    assert g.is_forest() == (len(g) == 0 or nx.is_branching(reference))
    assert g.is_tree() == (len(g) > 0 and nx.is_arborescence(reference))


@settings(deadline=None)
@given(dags())
def test_moral_graph_agrees_with_networkx(g):
    assert g.moral_graph() == UndirectedGraph.from_networkx(nx.moral_graph(g.to_networkx()))


@settings(deadline=None)
@given(dags())
def test_v_structures_are_the_married_pairs(g):
    reference = {(min(a, b), c, max(a, b)) for a, c, b in nx.dag.v_structures(g.to_networkx())}
    assert g.v_structures() == reference
    assert g.immoralities() == reference
    married = {frozenset(e) for e in g.moral_graph().edges} - {frozenset(e) for e in g.edges}
    assert married == {frozenset((a, b)) for a, _, b in reference}


@settings(deadline=None)
@given(dags())
def test_round_trips_through_networkx_and_matrices(g):
    assert DAG.from_networkx(g.to_networkx()) == g
    assert DAG.from_adjacency(g.adjacency_matrix(), g.nodes) == g


def test_matrices_and_foreign_graphs_are_checked():
    with pytest.raises(InvalidArgument, match="square"):
        DAG.from_adjacency(np.zeros((2, 3)))
    with pytest.raises(InvalidArgument, match="2 rows"):
        DAG.from_adjacency(np.zeros((2, 2)), ["a"])
    with pytest.raises(CycleError):
        DAG.from_adjacency(np.ones((2, 2)))
    with pytest.raises(InvalidGraph, match="undirected"):
        DAG.from_networkx(nx.path_graph(3))
    with pytest.raises(InvalidArgument, match="strings"):
        DAG.from_networkx(nx.DiGraph([(0, 1)]))
    with pytest.raises(TooLarge):
        DAG(nodes=[f"n{i}" for i in range(10_001)]).adjacency_matrix()


def test_ancestors_of_several_nodes_leave_the_nodes_out_unless_one_is_above_another():
    g = DAG([("a", "b"), ("b", "c"), ("d", "c")])
    assert g.ancestors(["b", "c"]) == {"a", "b", "d"}
    assert g.ancestors("a") == set()
    assert g.ancestors("a", include_self=True) == {"a"}
    assert g.descendants(["a"], include_self=True) == {"a", "b", "c"}


def test_roots_and_leaves():
    assert EIGHT.roots() == ["x1", "x2"]
    assert EIGHT.leaves() == ["x7", "x8"]
    assert EIGHT.has_edge("x1", "x3")
    assert not EIGHT.has_edge("x3", "x1")


def test_moralising_the_eight_node_example_marries_two_pairs():
    married = {frozenset(e) for e in EIGHT.moral_graph().edges} - {frozenset(e) for e in EIGHT.edges}
    assert married == {frozenset(("x3", "x4")), frozenset(("x5", "x6"))}


def test_markov_blanket_is_parents_children_and_spouses():
    g = DAG([("x4", "x2"), ("x2", "x1"), ("x3", "x1")])
    assert g.markov_blanket("x2") == {"x4", "x1", "x3"}
    assert g.spouses("x2") == {"x3"}


def test_the_ancestral_graph_drops_what_is_below():
    g = DAG([("a", "b"), ("b", "c"), ("d", "b"), ("c", "e")])
    assert g.ancestral_graph("b") == DAG([("a", "b"), ("d", "b")])
    assert g.subgraph(["c", "a", "e"]).edges == [("c", "e")]


@settings(max_examples=50, deadline=None)
@given(dags(), st.data())
def test_subgraphs_keep_exactly_the_inner_edges(g, data):
    kept = data.draw(st.lists(st.sampled_from(g.nodes), unique=True)) if len(g) else []
    part = g.subgraph(kept)
    assert part.nodes == [n for n in g.nodes if n in kept]
    assert set(part.edges) == {(a, b) for a, b in g.edges if a in kept and b in kept}
