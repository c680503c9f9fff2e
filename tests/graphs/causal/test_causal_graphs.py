"""Causal graphs: text, masks of mixed graphs, surgery, twin networks, single-world graphs, visible edges."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causal_worlds import admgs, random_admg
from markovia.errors import CycleError, DuplicateName, InvalidGraph, ParseError
from markovia.graphs import DAG, MixedGraph, d_separated, latent_projection
from markovia.graphs.causal.admg import Admg, districts, is_ancestral_set, markov_blanket, pillow
from markovia.graphs.causal.surgery import (
    do_graph,
    selection_diagram,
    single_world_graph,
    twin_network,
    visible_edges,
)
from markovia.graphs.causal.text import graph_text, parse_graph


def with_hidden_parents(graph):
    """Return the DAG with a node above each bidirected edge, and those nodes."""
    hidden = {f"u{a}{b}": (a, b) for a, b in graph.bidirected_edges()}
    edges = [(u, end) for u, ends in hidden.items() for end in ends]
    return DAG(graph.directed_edges() + edges, nodes=graph.nodes), list(hidden)


# -- text ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("x->y; x<->y", ["x --> y", "x <-> y"]),
        ("x -> y <- z", ["x --> y", "z --> y"]),
        ("x --> y\nz <-- y", ["x --> y", "y --> z"]),
        ("{a b} -> c; d", ["a --> c", "b --> c"]),
        ("graph -> dag", ["graph --> dag"]),
        ("u [latent]; u -> x", ["u --> x"]),
    ],
)
def test_statements_need_no_frame(text, edges):
    read = parse_graph(text).graph
    mixed = MixedGraph.from_dag(read) if isinstance(read, DAG) else read
    assert mixed == MixedGraph(edges, nodes=mixed.nodes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x -> ", "a node at the other end"),
        ("x -> y }", "a node or an edge"),
        ("{x -> y", "expected a node, an edge or '}', found the end of the text"),
        ("", "a graph such as"),
        ("x -> y -> x", "no directed cycle"),
        ("x ->-> y", "expected a node"),
    ],
)
def test_malformed_statements_are_answered_with_a_place_and_what_was_expected(text, words):
    with pytest.raises(ParseError, match=words):
        parse_graph(text)


@given(admgs(), st.data())
def test_text_with_roles_is_read_back_as_it_was_written(graph, data):
    latent = data.draw(st.lists(st.sampled_from(graph.nodes), unique=True))
    read = parse_graph(graph_text(graph, latent=latent, outcome=graph.nodes[0]))
    again = MixedGraph.from_dag(read.graph) if isinstance(read.graph, DAG) else read.graph
    assert again == graph
    assert set(read.named("latent")) == set(latent)
    assert read.named("outcome") == (graph.nodes[0],)


# -- masks ---------------------------------------------------------------------------------------------------------


@given(admgs(), st.data())
def test_m_separation_after_surgery_is_that_of_the_graph_cut_by_hand(graph, data):
    roles = [data.draw(st.sampled_from("xyzw")) for _ in graph.nodes]
    pick = {r: [n for n, own in zip(graph.nodes, roles, strict=True) if own == r] for r in "xyz"}
    into = data.draw(st.lists(st.sampled_from(graph.nodes), unique=True))
    out_of = data.draw(st.lists(st.sampled_from(graph.nodes), unique=True))
    kept = [n for n in graph.nodes if any(n in own for own in pick.values()) or data.draw(st.booleans())]
    masked = Admg.of(graph)
    found = masked.m_separated(
        *(masked.mask(pick[r]) for r in "xyz"),
        within=masked.mask(kept), into=masked.mask(into), out_of=masked.mask(out_of),
    )  # fmt: skip
    assert found == do_graph(graph.subgraph(kept), [n for n in into if n in kept], out_of=[
        n for n in out_of if n in kept
    ]).m_separated(pick["x"], pick["y"], pick["z"])  # fmt: skip


def test_m_separation_of_pairs_is_that_of_the_graph_for_every_set_in_between():
    rng = np.random.default_rng(0)
    verdicts = []
    for _ in range(60):
        graph = random_admg(rng, 5, arrows=0.35, joined=0.2)
        masked = Admg.of(graph)
        for a, b in combinations(graph.nodes, 2):
            rest = [n for n in graph.nodes if n not in (a, b)]
            for k in range(4):
                for z in combinations(rest, k):
                    found = masked.m_separated(*map(masked.mask, ([a], [b], z)))
                    assert found == graph.m_separated(a, b, z)
                    verdicts.append(found)
    assert 0.1 < np.mean(verdicts) < 0.9


@given(admgs())
def test_masks_keep_the_graph_and_its_districts_are_connected_by_bidirected_edges(graph):
    masked = Admg.of(graph)
    assert masked.graph() == graph
    joined = graph.subgraph(graph.nodes)
    for a, b in graph.directed_edges():
        marks = joined.marks(a, b)
        joined.remove_edge(a, b)
        if len(marks) == 2:
            joined.add_edge(f"{a} <-> {b}")
    expected = {frozenset(part) for part in joined.skeleton().connected_components()}
    assert {frozenset(part) for part in districts(graph)} == expected


@given(admgs(largest=5))
def test_the_markov_blanket_separates_and_no_smaller_part_of_it_does(graph):
    for name in graph.nodes:
        blanket = markov_blanket(graph, name)
        others = set(graph.nodes) - blanket - {name}
        assert graph.m_separated(name, others, blanket)
        for less in blanket:
            assert not graph.m_separated(name, others | {less}, blanket - {less})


def test_pillow_and_ancestral_sets_of_a_mixed_graph():
    graph = MixedGraph(["a --> b", "b <-> c", "d --> c", "c --> e"])
    assert pillow(graph, ["b", "c"]) == ["a", "d"]
    assert is_ancestral_set(graph, ["a", "b"])
    assert not is_ancestral_set(graph, ["e", "c"])


def test_masks_refuse_undirected_edges_and_cycles():
    with pytest.raises(InvalidGraph, match="neither directed nor bidirected"):
        Admg.of(MixedGraph(["a --- b"]))
    with pytest.raises(CycleError):
        Admg.of(MixedGraph(["a --> b", "b --> a"]))


# -- projection ----------------------------------------------------------------------------------------------------


@given(admgs(), st.data())
def test_projecting_a_mixed_graph_is_projecting_its_hidden_parents_at_once(graph, data):
    latent = data.draw(st.lists(st.sampled_from(graph.nodes), unique=True, max_size=len(graph) - 1))
    dag, hidden = with_hidden_parents(graph)
    assert latent_projection(graph, latent) == latent_projection(dag, [*latent, *hidden])


def test_projection_refuses_edges_without_direction():
    with pytest.raises(InvalidGraph, match="a --- b is not"):
        latent_projection(MixedGraph(["a --- b"]), "a")


# -- surgery -------------------------------------------------------------------------------------------------------


@given(admgs(largest=4), st.data())
@settings(max_examples=60)
def test_a_twin_network_has_the_independencies_of_both_worlds_and_shares_what_cannot_change(graph, data):
    dag, _ = with_hidden_parents(graph)
    x = data.draw(st.sampled_from(graph.nodes))
    twin = twin_network(graph, x)
    a, b = data.draw(st.lists(st.sampled_from(graph.nodes), unique=True, min_size=2, max_size=2))
    rest = data.draw(
        st.lists(st.sampled_from([n for n in graph.nodes if n not in (a, b)] or [""]), unique=True)
    )
    rest = [n for n in rest if n]
    assert d_separated(twin, a, b, rest) == d_separated(dag, a, b, rest)
    star = {n: n + "*" if n in dag.descendants(x, include_self=True) else n for n in graph.nodes}
    cut = do_graph(dag, x)
    assert d_separated(twin, star[a], star[b], [star[n] for n in rest]) == d_separated(cut, a, b, rest)


def test_a_twin_network_joins_the_worlds_through_noise():
    twin = twin_network(MixedGraph(["x --> y", "x <-> y"]), "x")
    assert not d_separated(twin, "y", "y*", given=["x", "x*"])
    assert not d_separated(twin, "x", "y*")
    assert d_separated(twin_network(DAG([("x", "y")]), "x"), "x", "y*")


def test_single_world_graphs_show_which_potential_outcomes_are_ignorable():
    confounded = single_world_graph(DAG([("z", "x"), ("z", "y"), ("x", "y")]), {"x": 1})
    assert confounded.nodes == ["z", "x", "do(x=1)", "y(x=1)"]
    assert d_separated(confounded, "y(x=1)", "x", given="z")
    assert not d_separated(confounded, "y(x=1)", "x")
    hidden = single_world_graph(MixedGraph(["x --> y", "x <-> y"]), "x")
    assert not hidden.m_separated("y(x)", "x")
    two = single_world_graph(DAG([("a", "l"), ("l", "b"), ("a", "y"), ("b", "y")]), ["a", "b"])
    assert {"y(a,b)", "l(a)", "b(a)"} <= set(two.nodes)
    assert ("do(b)", "y(a,b)") in two.edges


def test_names_that_are_taken_are_refused():
    with pytest.raises(DuplicateName, match=r"'y\*'"):
        twin_network(DAG([("x", "y"), ("y", "y*")]), "x")
    with pytest.raises(DuplicateName, match="'S_y'"):
        selection_diagram(DAG([("x", "y"), ("y", "S_y")]), "y")


def test_selection_nodes_point_at_what_differs():
    diagram = selection_diagram(MixedGraph(["x --> y", "z <-> y"]), ["z", "y"])
    assert diagram.parents("z") == ["S_z"]
    assert set(diagram.parents("y")) == {"x", "S_y"}


@given(admgs(largest=5))
def test_visible_edges_are_those_without_a_hidden_common_cause_in_any_graph_of_the_class(graph):
    """a --> b of an ancestral graph is visible exactly if a <-> b beside it changes some separation."""
    if not graph.is_mag():
        return
    visible = set(visible_edges(graph))
    for a, b in graph.directed_edges():
        hidden = graph.copy()
        hidden.add_edge(f"{a} <-> {b}")
        same = all(
            graph.m_separated(p, q, z) == hidden.m_separated(p, q, z)
            for p, q in combinations(graph.nodes, 2)
            for k in range(len(graph) - 1)
            for z in combinations([n for n in graph.nodes if n not in (p, q)], k)
        )
        assert same == ((a, b) not in visible)
