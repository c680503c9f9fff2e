"""What graphs with edges between two nodes share: copies, parts and removal of nodes."""

import pytest

from markovia.graphs import DAG, MixedGraph, UndirectedGraph

KINDS = [
    (DAG, [("a", "b"), ("b", "c")], ("a", "c")),
    (UndirectedGraph, [("a", "b"), ("b", "c")], ("a", "c")),
    (MixedGraph, ["a --> b", "b <-> c"], ("a", "c")),
]


@pytest.mark.parametrize(("kind", "edges", "new"), KINDS, ids=lambda v: getattr(v, "__name__", ""))
def test_a_copy_shares_neither_nodes_nor_edges_with_its_original(kind, edges, new):
    graph = kind(edges, nodes=["a", "b", "c", "alone"])
    twin = graph.copy()
    assert twin == graph
    twin.add_edge(*new)
    twin.add_node("later")
    assert graph == kind(edges, nodes=["a", "b", "c", "alone"])
    assert graph.neighbors("a") == ["b"]
    assert "later" not in graph
    assert sorted(twin.neighbors("a")) == ["b", "c"]


@pytest.mark.parametrize(("kind", "edges", "new"), KINDS, ids=lambda v: getattr(v, "__name__", ""))
def test_what_is_left_after_removing_nodes_is_the_subgraph_of_the_others(kind, edges, new):
    graph = kind(edges, nodes=["a", "b", "c", "alone"])
    part = graph.subgraph(["c", "b", "alone"])
    graph.remove_nodes(["a"])
    assert graph == part == kind(edges[1:], nodes=["alone"])
    assert graph.nodes == part.nodes == ["b", "c", "alone"]
    graph.add_edge("b", "alone")
    assert not part.neighbors("alone")
    assert repr(part).startswith(f"{kind.__name__}([")
    assert repr(part).endswith("nodes=['alone'])")
