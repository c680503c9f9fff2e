"""Graphs of the wrong kind, seeds, hash order, and values outside the support: one clear answer each."""

import os
import subprocess
import sys

import numpy as np
import pytest

import markovia as mk
import markovia.exponential as ef
from markovia import graphs, learning
from markovia.errors import InvalidArgument, InvalidGraph, MarkoviaError
from markovia.graphs import DAG, BipartiteGraph, Independence, MixedGraph, UndirectedGraph
from markovia.runtime.seeds import generator

D = DAG([("a", "b"), ("b", "c")])
U = UndirectedGraph([("a", "b"), ("b", "c")])
M = MixedGraph(["a --> b", "b <-> c"])
B = BipartiteGraph([("a", "b"), ("b", "c")])

ANSWERS = """
from markovia import graphs as g
names = [f"node-{i}" for i in (7, 3, 11, 0, 9, 4, 2, 8, 5, 1, 10, 6)]
drawn = g.random_k_tree(12, 3, seed=1, keep=0.8)
und = drawn.copy(); und.rename(dict(zip(drawn.nodes, names)))
dag = g.random_dag(12, max_parents=3, seed=2); dag.rename(dict(zip(dag.nodes, names)))
tree = g.random_k_tree(12, 2, seed=0); tree.rename(dict(zip(tree.nodes, names)))
chordal = g.triangulate(und).graph
full = g.complete(6); full.rename(dict(zip(full.nodes, names)))
small = dag.subgraph(names[:5])
mixed = g.cpdag(dag)
found = [
    [g.extend(g.MixedGraph.from_undirected(x)).edges for x in (tree, chordal, full)],
    g.extend(mixed).edges,
    g.meek(mixed).edges, mixed.edges,
    [m.edges for m in g.equivalence_class(small)],
    sorted(g.compelled_edges(dag)), sorted(g.reversible_edges(dag)),
    g.greedy_colouring(und), g.feedback_vertex_set(und), g.loop_cutset(dag),
    und.maximal_cliques(), g.maximal_cliques_chordal(chordal), g.chordless_cycle(und),
    g.junction_tree(und), g.triangulate(und, "weighted-min-fill", weights={n: 3 for n in names[:4]}),
    g.perfect_elimination_order(chordal, method="simplicial"), g.to_directed(chordal).edges,
    [str(t) for t in g.trails(dag, names[0], names[-1], given={names[3], names[5]})],
    [t.explain() for t in g.open_trails(dag, names[0], names[-1], given={names[9], names[10]})],
    [sorted(s) for s in g.all_minimal_separators(und, names[0], names[-1])],
    sorted(g.minimal_separator(dag, names[0], names[-1]) or []),
    g.latent_projection(dag, {names[1], names[4]}).edges,
    g.local_independencies(dag), g.pairwise_independencies(und), g.all_independencies(small),
    g.minimal_imap(g.GraphOracle(small), small.nodes), g.independencies_of(g.GraphOracle(small), small.nodes),
    g.minimal_undirected_imap(g.GraphOracle(small), small.nodes, method="blanket").edges,
    dag.moral_graph().edges, dag.ancestral_graph({names[-1], names[-2]}).edges,
    dag.subgraph(set(names[:6])).edges, dag.topological_order(),
]
for answer in found:
    print(answer)
"""


def printed(hash_seed):
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", ANSWERS], env=environment, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_no_answer_about_graphs_depends_on_the_hash_seed():
    first, second, third = map(printed, (0, 1, 2))
    assert len(first) > 30
    assert first == second == third


@pytest.mark.parametrize("seed", ["zero", -1, 1.5, 2.0, True, np.float64(3), [1, 2], np.array(3.0), object()])
def test_a_seed_that_is_none_is_refused_everywhere(seed):
    column = np.arange(12.0)
    for draw in [
        generator,
        lambda s: graphs.random_dag(4, seed=s),
        lambda s: graphs.random_tree(4, seed=s),
        lambda s: graphs.random_k_tree(4, 1, seed=s),
        lambda s: ef.Gaussian().sample(2, seed=s),
        lambda s: ef.Bernoulli(0.5).sample(2, seed=s),
        lambda s: ef.Categorical([0.5, 0.5]).sample(2, seed=s),
        lambda s: ef.Multinomial(2, [0.5, 0.5]).sample(2, seed=s),
        lambda s: ef.Gamma().sample(2, seed=s),
        lambda s: ef.Beta(1, 1).sample(2, seed=s),
        lambda s: ef.Dirichlet([1, 1]).sample(2, seed=s),
        lambda s: ef.MultivariateGaussian([0], [[1]]).sample(2, seed=s),
        lambda s: learning.hsic_test(column, column, n_permutations=5, seed=s),
        lambda s: learning.mmd_test(column, column, n_permutations=5, seed=s),
        lambda s: learning.permutation_test(lambda x, y: float(x @ y), column, column, seed=s),
        lambda s: learning.dependency_graph({"a": [0, 1] * 9, "b": [1, 0] * 9}, n_permutations=20, seed=s),
    ]:
        with pytest.raises(InvalidArgument, match="seed must be a whole number"):
            draw(seed)


def test_every_kind_of_seed_gives_its_stream():
    expected = np.random.default_rng(5).random(3)
    for seed in (5, np.int64(5), np.uint32(5), np.random.SeedSequence(5), np.random.default_rng(5)):
        np.testing.assert_array_equal(generator(seed).random(3), expected)
    assert generator(None).random() != generator(None).random()
    stream = generator(5)
    np.testing.assert_array_equal(np.append(stream.random(1), generator(stream).random(2)), expected)
    table = {"a": [0, 1] * 9, "b": [1, 0] * 9}
    graph = learning.dependency_graph(table, n_permutations=20, seed=np.random.default_rng(0))
    assert graph.edges == [("a", "b")]


ONLY_DAG = {
    "cpdag": graphs.cpdag,
    "compelled_edges": graphs.compelled_edges,
    "reversible_edges": graphs.reversible_edges,
    "equivalence_class": graphs.equivalence_class,
    "i_equivalent": lambda g: graphs.i_equivalent(D, g),
    "i_equivalent first": lambda g: graphs.i_equivalent(g, D),
    "d_separated": lambda g: graphs.d_separated(g, "a", "c"),
    "reachable": lambda g: graphs.reachable(g, "a"),
    "open_trails": lambda g: graphs.open_trails(g, "a", "c"),
    "trails": lambda g: graphs.trails(g, "a", "c"),
    "is_active": lambda g: graphs.is_active(g, ["a", "b", "c"]),
    "loop_cutset": graphs.loop_cutset,
    "is_loop_cutset": lambda g: graphs.is_loop_cutset(g, ["a"]),
    "latent_projection": lambda g: graphs.latent_projection(g, "a"),
    "from_dag": MixedGraph.from_dag,
}
ONLY_UNDIRECTED = {
    "triangulate": graphs.triangulate,
    "junction_tree": graphs.junction_tree,
    "elimination_cliques": lambda g: graphs.elimination_cliques(g, ["a", "b", "c"]),
    "treewidth_of_order": lambda g: graphs.treewidth_of_order(g, ["a", "b", "c"]),
    "is_chordal": graphs.is_chordal,
    "chordless_cycle": graphs.chordless_cycle,
    "simplicial_vertices": graphs.simplicial_vertices,
    "perfect_elimination_order": graphs.perfect_elimination_order,
    "maximal_cliques_chordal": graphs.maximal_cliques_chordal,
    "to_directed": graphs.to_directed,
    "greedy_colouring": graphs.greedy_colouring,
    "feedback_vertex_set": graphs.feedback_vertex_set,
    "separated": lambda g: graphs.separated(g, "a", "c"),
    "from_undirected": MixedGraph.from_undirected,
}
DAG_OR_UNDIRECTED = {
    "is_decomposable": graphs.is_decomposable,
    "local_independencies": graphs.local_independencies,
    "pairwise_independencies": graphs.pairwise_independencies,
    "all_independencies": graphs.all_independencies,
    "minimal_separator": lambda g: graphs.minimal_separator(g, "a", "c"),
    "all_minimal_separators": lambda g: graphs.all_minimal_separators(g, "a", "c"),
    "is_imap": lambda g: graphs.is_imap(g, [Independence("a", "c", "b")]),
    "is_minimal_imap": lambda g: graphs.is_minimal_imap(g, [Independence("a", "c", "b")]),
    "is_perfect_map": lambda g: graphs.is_perfect_map(g, [Independence("a", "c", "b")]),
}
ONLY_MIXED = {"extend": graphs.extend, "meek": graphs.meek}
WRONG = (
    [(f, g) for f in ONLY_DAG.items() for g in (U, M, B) if (f[0], g) != ("latent_projection", M)]
    + [(f, g) for f in ONLY_UNDIRECTED.items() for g in (D, M, B)]
    + [(f, g) for f in DAG_OR_UNDIRECTED.items() for g in (M, B)]
    + [(f, g) for f in ONLY_MIXED.items() for g in (D, U, B)]
)


@pytest.mark.parametrize(
    ("function", "graph"), WRONG, ids=lambda x: x[0] if isinstance(x, tuple) else type(x).__name__
)
def test_a_graph_of_the_wrong_kind_is_named_as_such(function, graph):
    given = type(graph).__name__
    with pytest.raises(InvalidGraph, match=f"expected an? .*, not an? {given}"):
        function[1](graph)
    for other in ([("a", "b")], None, 3, mk.examples.sprinkler()):
        with pytest.raises(InvalidGraph, match=r"expected an? "):
            function[1](other)


@pytest.mark.parametrize(
    ("ask", "cure"),
    [
        (lambda: graphs.triangulate(D), r"expected an UndirectedGraph, not a DAG; use graph.moral_graph\(\)"),
        (lambda: graphs.separated(D, "a", "c"), "not a DAG; use d_separated"),
        (lambda: graphs.d_separated(U, "a", "c"), "expected a DAG, not an UndirectedGraph; use separated"),
        (lambda: graphs.d_separated(M, "a", "c"), "use its .m_separated"),
        (lambda: graphs.cpdag(U), "to_directed"),
        (lambda: graphs.cpdag(M), r"graph.to_dag\(\)"),
        (lambda: graphs.extend(D), r"no undirected edges; use cpdag\(graph\)"),
        (lambda: graphs.extend(U), r"MixedGraph.from_undirected\(graph\)"),
        (lambda: graphs.is_chordal(B), r"to_undirected\(\)"),
        (lambda: graphs.loop_cutset(U), "use feedback_vertex_set"),
        (lambda: graphs.feedback_vertex_set(D), "use loop_cutset"),
        (lambda: graphs.local_independencies(M), "expected a DAG or an UndirectedGraph, not a MixedGraph"),
        (lambda: graphs.cpdag(mk.examples.sprinkler()), "pass the model's .graph"),
        (lambda: graphs.cpdag(D.to_networkx()), r"DAG.from_networkx\(graph\)"),
        (lambda: graphs.cpdag([("a", "b")]), r"DAG\(edges\)"),
        (lambda: graphs.GraphOracle(B), "expected a DAG or an UndirectedGraph or a MixedGraph"),
        (lambda: graphs.greedy_order(U), r"triangulate\(graph\).order"),
        (lambda: DAG.from_networkx(U), "expected a networkx graph"),
        (lambda: UndirectedGraph.from_networkx([("a", "b")]), "expected a networkx graph"),
        (lambda: MixedGraph.from_networkx(M), "expected a networkx graph"),
        (lambda: BipartiteGraph.from_networkx(B), "expected a networkx graph"),
    ],
)
def test_the_error_about_a_wrong_graph_shows_the_cure(ask, cure):
    with pytest.raises(InvalidGraph, match=cure):
        ask()


@pytest.mark.parametrize("make", [DAG, UndirectedGraph, MixedGraph, BipartiteGraph])
def test_what_is_no_list_of_edges_or_nodes_is_refused(make):
    second = "variables" if make is BipartiteGraph else "nodes"
    for build in (lambda: make(3), lambda: make([3]), lambda: make(**{second: 3}), lambda: make(None)):
        with pytest.raises(InvalidArgument):
            build()


@pytest.mark.parametrize(
    "build",
    [
        lambda: DAG([{"a", "b"}]),
        lambda: DAG([{"a": 1, "b": 2}]),
        lambda: D.copy().remove_edges(3),
        lambda: U.copy().remove_edges(3),
        lambda: DAG.from_parents(3),
        lambda: DAG.from_parents([("a", "b")]),
        lambda: UndirectedGraph.from_cliques(3),
        lambda: graphs.chain("3"),
        lambda: graphs.chain(2.5),
        lambda: graphs.grid(2, None),
        lambda: graphs.cycle("4"),
        lambda: graphs.random_dag(5, max_parents=1.5),
        lambda: graphs.random_dag(5, n_edges="2"),
        lambda: graphs.random_dag(5, edge_probability="0.5"),
        lambda: graphs.random_k_tree(5, 1.0),
        lambda: graphs.random_k_tree(5, 1, keep=float("nan")),
    ],
)
def test_arguments_of_graphs_are_checked_before_they_are_used(build):
    with pytest.raises(InvalidArgument):
        build()


@pytest.mark.parametrize("index", ["ab", "a", ("a",), ("a", "b", "a"), ["a", "b"], 0])
def test_an_association_is_looked_up_by_two_names_and_not_by_letters(index):
    matrix = learning.pearson({"a": [1, 2, 4], "b": [2, 3, 3]})
    assert matrix["a", "b"] == pytest.approx(np.corrcoef([1, 2, 4], [2, 3, 3])[0, 1])
    with pytest.raises(InvalidArgument, match="two columns"):
        matrix[index]
    with pytest.raises(MarkoviaError, match="unknown variable 'z'"):
        matrix["a", "z"]
