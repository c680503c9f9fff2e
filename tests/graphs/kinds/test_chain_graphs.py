"""Chain graphs: their components, edits that are refused, and separation at the two ends of the kind."""

import pickle
from itertools import combinations

import numpy as np
import pytest

from markovia.errors import InvalidArgument, InvalidGraph, UnknownVariable
from markovia.graphs import (
    DAG,
    ChainGraph,
    GraphOracle,
    Mark,
    MixedGraph,
    UndirectedGraph,
    cpdag,
    d_separated,
    separated,
)


def questions(names):
    for a, b in combinations(names, 2):
        rest = [v for v in names if v not in (a, b)]
        for k in range(len(rest) + 1):
            for given in combinations(rest, k):
                yield a, b, given


def random_dag(rng, n=5):
    names = [str(v) for v in rng.permutation([f"v{i}" for i in range(n)])]
    return DAG([(a, b) for a, b in combinations(names, 2) if rng.random() < 0.4], nodes=names)


def test_without_lines_it_is_a_dag_and_without_arrows_an_undirected_graph():
    rng = np.random.default_rng(0)
    for _ in range(12):
        dag = random_dag(rng)
        skeleton = dag.skeleton()
        directed, undirected = ChainGraph.from_mixed(dag), ChainGraph.from_mixed(skeleton)
        assert directed.moral_graph() == dag.moral_graph()
        assert all(directed.markov_blanket(v) == dag.markov_blanket(v) for v in dag)
        for a, b, given in questions(dag.nodes):
            assert directed.lwf_separated(a, b, given) == d_separated(dag, a, b, given)
            assert undirected.lwf_separated(a, b, given) == separated(skeleton, a, b, given)


def test_the_completed_graph_of_a_class_is_a_chain_graph_with_the_separations_of_its_members():
    # Andersson, Madigan and Perlman (1997): essential graphs are chain graphs, Markov equivalent to their DAGs
    rng = np.random.default_rng(1)
    lines = 0
    for _ in range(12):
        dag = random_dag(rng)
        graph = ChainGraph.from_mixed(cpdag(dag))
        lines += len(graph.undirected_edges())
        oracle = GraphOracle(graph)
        for a, b, given in questions(dag.nodes):
            assert oracle(frozenset([a]), frozenset([b]), frozenset(given)) == d_separated(dag, a, b, given)
    assert lines > 5


def test_components_come_after_those_with_arrows_into_them():
    graph = ChainGraph(["c --- d", "d --- e", "b --> d", "a --> b", "e --> f", "a --- g"], nodes=["f"])
    parts = graph.chain_components()
    assert sorted(map(sorted, parts)) == [["a", "g"], ["b"], ["c", "d", "e"], ["f"]]
    assert [len(p) for p in parts].index(3) > parts.index(["b"]) > 0
    assert graph.boundary("d") == {"b", "c", "e"}
    assert graph.boundary(["c", "d", "e"]) == {"b"}
    assert graph.anterior("d") == {"a", "b", "c", "d", "e", "g"}


@pytest.mark.parametrize(
    ("edge", "words"),
    [
        ("d --> a", "lead round in a circle"),
        ("c --> d", "one edge at most"),
        ("a --- d", "lead round in a circle"),
        ("a <-> q", "neither"),
        ("a o-> q", "neither"),
    ],
)
def test_an_edit_that_would_leave_the_kind_is_refused_and_changes_nothing(edge, words):
    graph = ChainGraph(["a --> c", "c --- d", "d --> e"])
    before = graph.copy()
    with pytest.raises(InvalidGraph, match=words):
        graph.add_edges(["x --> a", edge])
    with pytest.raises(InvalidArgument, match="is not an edge"):
        graph.add_edges(["x --> a", "c == d"])
    assert graph == before
    assert graph.nodes == before.nodes
    with pytest.raises(InvalidGraph, match="neither"):
        graph.set_marks("a", "c", Mark.ARROW, Mark.ARROW)
    assert graph == before
    graph.set_marks("a", "c", Mark.TAIL, Mark.TAIL)
    assert graph.chain_components() == [["a", "c", "d"], ["e"]]


def test_an_arrow_inside_a_component_is_refused():
    with pytest.raises(InvalidGraph, match="circle, by way of a"):
        ChainGraph(["a --- b", "b --- c", "a --> c"])


def test_awkward_questions_have_the_answers_of_the_other_kinds():
    graph = ChainGraph(["a --> c", "c --- d", "b --> d"])
    assert not graph.lwf_separated("a", "a")
    assert graph.lwf_separated("a", "a", given="a")
    assert graph.lwf_separated([], "a")
    assert not graph.lwf_separated(["a", "c"], ["b", "d"])
    with pytest.raises(UnknownVariable):
        graph.lwf_separated("a", "q")
    with pytest.raises(InvalidGraph, match="lwf_separated"):
        MixedGraph(graph.edges).m_separated("a", "b")
    assert pickle.loads(pickle.dumps(graph)) == graph
    assert type(graph.subgraph(["c", "d"])) is ChainGraph
    assert ChainGraph.from_mixed(UndirectedGraph(nodes=["a"])).chain_components() == [["a"]]
