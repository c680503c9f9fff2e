"""Mixed graphs: marks, families, m-separation and latent projection."""

from itertools import combinations, pairwise, product

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovia.errors import CycleError, InvalidArgument, InvalidGraph, MarkoviaError, UnknownVariable
from markovia.graphs import (
    DAG,
    Mark,
    MixedGraph,
    UndirectedGraph,
    d_separated,
    is_loop_cutset,
    latent_projection,
    loop_cutset,
    separated,
)

NAMES = ["a", "b", "c", "d", "e"]


@st.composite
def dags(draw: st.DrawFn, n: int = 5) -> DAG:
    names = [f"n{i}" for i in range(n)]
    pairs = list(combinations(names, 2))
    bits = draw(st.integers(0, 2 ** len(pairs) - 1))
    return DAG([p for k, p in enumerate(pairs) if bits >> k & 1], nodes=draw(st.permutations(names)))


@st.composite
def admgs(draw: st.DrawFn) -> MixedGraph:
    edges = []
    for a, b in combinations(NAMES, 2):
        kinds = draw(st.sampled_from([(), (), ("-->",), ("<->",), ("-->", "<->")]))
        edges += [f"{a} {kind} {b}" for kind in kinds]
    return MixedGraph(edges, nodes=NAMES)


@st.composite
def ancestral_candidates(draw: st.DrawFn) -> MixedGraph:
    pairs = list(combinations(NAMES[:4], 2))
    kinds = draw(
        st.lists(st.sampled_from(["", "-->", "<->", "---"]), min_size=len(pairs), max_size=len(pairs))
    )
    return MixedGraph((f"{a} {k} {b}" for (a, b), k in zip(pairs, kinds, strict=True) if k), nodes=NAMES[:4])


def open_path_exists(g: MixedGraph, x: str, y: str, z: set[str]) -> bool:
    """Walk every simple path and every choice of edges along it."""
    above = g.ancestors(z, include_self=True)
    for path in nx.all_simple_paths(g.skeleton().to_networkx(), x, y):
        for marks in product(*(g.marks(a, b) for a, b in pairwise(path))):
            if all(
                node in above if left[1] is Mark.ARROW and right[0] is Mark.ARROW else node not in z
                for node, left, right in zip(path[1:-1], marks, marks[1:], strict=False)
            ):
                return True
    return False


def test_edges_are_read_from_strings():
    g = MixedGraph(["a --> b", "c <-- b", "c <-> d", "d o-> e", "f <-o e", "f o-o g", "g --- h", "h o-- i"])
    assert g.directed_edges() == [("a", "b"), ("b", "c")]
    assert g.bidirected_edges() == [("c", "d")]
    assert g.undirected_edges() == [("g", "h")]
    assert g.marks("d", "e") == [(Mark.CIRCLE, Mark.ARROW)]
    assert g.marks("f", "e") == [(Mark.ARROW, Mark.CIRCLE)]
    assert g.marks("a", "i") == []
    assert g.parents("b") == ["a"]
    assert g.children("b") == ["c"]
    assert g.siblings("c") == g.spouses("c") == ["d"]
    assert g.undirected_neighbors("h") == ["g"]
    assert g.neighbors("c") == ["b", "d"]
    assert g.n_edges == 8
    assert eval(repr(g)) == g


def test_names_with_spaces_survive():
    g = MixedGraph(["blood pressure --> heart rate"])
    assert g.parents("heart rate") == ["blood pressure"]


def test_bad_edges_are_refused_and_change_nothing():
    g = MixedGraph(["a --> b"], nodes=["z"])
    before = g.copy()
    edits = [
        lambda: g.add_edge("a -> "),
        lambda: g.add_edge("a => b"),
        lambda: g.add_edge("a"),
        lambda: g.add_edges(["b --> c", "c --> c"]),
        lambda: g.add_edge("a", "c", "-", ">"),
        lambda: g.add_edge("a", 1, Mark.TAIL, Mark.ARROW),
        lambda: g.add_edges([("a", "b")]),
        lambda: g.remove_edge("a", "z"),
        lambda: g.remove_node("q"),
        lambda: g.set_marks("a", "z", Mark.TAIL, Mark.TAIL),
        lambda: g.set_marks("a", "b", "x", Mark.TAIL),
        lambda: g.rename({"a": "b"}),
    ]
    for edit in edits:
        with pytest.raises(MarkoviaError):
            edit()
        assert g == before
        assert g.nodes == before.nodes


def test_edits_do_what_they_say():
    g = MixedGraph(["a --> b", "a <-> b", "b --- c"])
    assert not g.is_simple()
    g.set_marks("b", "a", Mark.CIRCLE, Mark.ARROW)
    assert g.marks("a", "b") == [(Mark.ARROW, Mark.CIRCLE)]
    assert g.is_simple()
    g.remove_node("c")
    assert g == MixedGraph(["b o-> a"])
    g.remove_edge("a", "b")
    assert g == MixedGraph(nodes=["a", "b"])
    assert not g.adjacent("a", "b")


def test_graphs_convert_both_ways():
    dag = DAG([("a", "b"), ("c", "b")], nodes=["z"])
    assert MixedGraph.from_dag(dag).to_dag() == dag
    square = UndirectedGraph([("a", "b"), ("b", "c")])
    mixed = MixedGraph.from_undirected(square)
    assert mixed.skeleton() == square
    with pytest.raises(InvalidGraph, match="a --- b is not directed"):
        mixed.to_dag()
    with pytest.raises(CycleError):
        MixedGraph(["a --> b", "b --> a"]).to_dag()


@settings(deadline=None)
@given(admgs())
def test_mixed_graphs_travel_through_networkx(g):
    assert MixedGraph.from_networkx(g.to_networkx()) == g


def test_networkx_edges_without_marks_are_refused():
    with pytest.raises(InvalidGraph, match="marks"):
        MixedGraph.from_networkx(nx.MultiDiGraph([("a", "b")]))


def test_families():
    assert MixedGraph(["a --> b", "a <-> b"]).is_admg()
    assert not MixedGraph(["a --- b"]).is_admg()
    assert not MixedGraph(["a --> b", "b --> c", "c --> a"]).is_admg()
    assert not MixedGraph(["a o-> b"]).is_ancestral()
    assert MixedGraph(["a --> b", "b <-> c", "d --- a"]).is_ancestral()
    assert not MixedGraph(["a --- b", "c --> b"]).is_ancestral()
    assert not MixedGraph(["a --> b", "b --> c", "a <-> c"]).is_ancestral()
    # the inducing path a <-> b <-> c <-> d with b, c above the ends makes a and d inseparable
    assert not MixedGraph(["a <-> b", "b <-> c", "c <-> d", "b --> d", "c --> a"]).is_mag()
    assert MixedGraph(["a <-> b", "b <-> c"]).is_mag()


@settings(max_examples=200, deadline=None)
@given(ancestral_candidates())
def test_a_maximal_ancestral_graph_separates_all_pairs_that_are_not_adjacent(g):
    if not g.is_ancestral():
        assert not g.is_mag()
        return
    nodes = g.nodes
    expected = all(
        g.adjacent(a, b)
        or any(
            not open_path_exists(g, a, b, set(z))
            for k in range(len(nodes) - 1)
            for z in combinations([n for n in nodes if n not in (a, b)], k)
        )
        for a, b in combinations(nodes, 2)
    )
    assert g.is_mag() == expected


@settings(max_examples=200, deadline=None)
@given(admgs() | ancestral_candidates().filter(MixedGraph.is_ancestral), st.data())
def test_m_separation_agrees_with_all_paths(g, data):
    z = set(data.draw(st.lists(st.sampled_from(g.nodes[2:]), unique=True)))
    x, y = g.nodes[:2]
    assert g.m_separated(x, y, z) == (not open_path_exists(g, x, y, z))


@settings(deadline=None)
@given(dags(), st.data())
def test_m_separation_is_d_separation_in_dags_and_separation_in_undirected_graphs(g, data):
    roles = data.draw(st.lists(st.sampled_from("xyz-"), min_size=len(g), max_size=len(g)))
    x, y, z = ([n for n, r in zip(g.nodes, roles, strict=True) if r == role] for role in "xyz")
    assert MixedGraph.from_dag(g).m_separated(x, y, z) == d_separated(g, x, y, z)
    u = g.skeleton()
    assert MixedGraph.from_undirected(u).m_separated(x, y, z) == separated(u, x, y, z)


def test_m_separation_is_refused_where_it_is_not_defined():
    with pytest.raises(InvalidGraph, match="circle"):
        MixedGraph(["a o-> b"]).m_separated("a", "b")
    with pytest.raises(InvalidGraph, match="'b' has an undirected edge"):
        MixedGraph(["a --> b", "b --- c"]).m_separated("a", "c")
    with pytest.raises(UnknownVariable):
        MixedGraph(["a --> b"]).m_separated("a", "q")
    assert not MixedGraph(["a --> b"]).m_separated("a", "a")
    assert MixedGraph(["a --> b"]).m_separated("a", "a", given="a")


@settings(max_examples=150, deadline=None)
@given(dags(), st.data())
def test_latent_projection_keeps_the_separations_among_observed_nodes(g, data):
    hidden = data.draw(st.lists(st.sampled_from(g.nodes), unique=True, max_size=3))
    projected = g.latent_projection(hidden)
    observed = [n for n in g.nodes if n not in hidden]
    assert projected.nodes == observed
    assert projected.is_admg()
    for x, y in combinations(observed, 2):
        others = [n for n in observed if n not in (x, y)]
        for k in range(len(others) + 1):
            for z in combinations(others, k):
                assert projected.m_separated(x, y, z) == d_separated(g, x, y, z)


def test_latent_projection_of_a_confounded_chain():
    g = DAG([("u", "x"), ("u", "v"), ("v", "y"), ("x", "w"), ("w", "y")])
    assert latent_projection(g, ["u", "v", "w"]) == MixedGraph(["x --> y", "x <-> y"])
    assert latent_projection(g, []) == MixedGraph.from_dag(g)
    with pytest.raises(UnknownVariable):
        latent_projection(g, "q")
    with pytest.raises(InvalidArgument):
        latent_projection(g, 3)


@settings(deadline=None)
@given(dags(6))
def test_a_loop_cutset_leaves_a_polytree_and_is_minimal(g):
    chosen = loop_cutset(g)
    assert is_loop_cutset(g, chosen)
    assert (chosen == []) == g.is_polytree()
    for spared in chosen:
        assert not is_loop_cutset(g, [n for n in chosen if n != spared])


def test_observing_only_the_sink_of_a_loop_does_not_cut_it():
    g = DAG([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    assert not is_loop_cutset(g, ["d"])
    assert all(is_loop_cutset(g, [n]) for n in "abc")
