"""I-maps, minimal I-maps and perfect maps."""

from itertools import combinations, pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovia.errors import InvalidArgument
from markovia.graphs import (
    DAG,
    GraphOracle,
    Independence,
    MixedGraph,
    StatementOracle,
    UndirectedGraph,
    chain,
    cycle,
    i_equivalent,
    is_decomposable,
    is_imap,
    is_minimal_imap,
    is_perfect_map,
    minimal_imap,
    minimal_undirected_imap,
    to_directed,
)


class TableOracle:
    """Independence in a joint table over binary variables, by the definition."""

    def __init__(self, names, table):
        self.names, self.table = list(names), np.asarray(table, dtype=float).reshape([2] * len(names))

    def __call__(self, x, y, given):
        def marginal(kept):
            axes = tuple(i for i, n in enumerate(self.names) if n not in kept)
            return self.table.sum(axis=axes, keepdims=True)

        joint = marginal(x | y | given) * marginal(given)
        return np.allclose(joint, marginal(x | given) * marginal(y | given))


def every_dag(names):
    edges = list(combinations(names, 2))
    for choice in product((0, 1, 2), repeat=len(edges)):
        arcs = [(a, b) if c == 1 else (b, a) for (a, b), c in zip(edges, choice, strict=True) if c]
        for order in permutations(names):
            if all(order.index(a) < order.index(b) for a, b in arcs):
                yield DAG(arcs, nodes=names)
                break


def every_undirected(names):
    pairs = list(combinations(names, 2))
    for bits in range(2 ** len(pairs)):
        yield UndirectedGraph([p for k, p in enumerate(pairs) if bits >> k & 1], nodes=names)


@st.composite
def dags(draw: st.DrawFn, n: int = 4) -> DAG:
    pairs = list(combinations([f"n{i}" for i in range(n)], 2))
    bits = draw(st.integers(0, 2 ** len(pairs) - 1))
    return DAG([pair for k, pair in enumerate(pairs) if bits >> k & 1], nodes=[f"n{i}" for i in range(n)])


FIVE = [
    Independence("x1", "x2"),
    Independence("x3", "x2", "x1"),
    Independence("x4", ["x1", "x3"], "x2"),
    Independence("x5", ["x1", "x2"], ["x3", "x4"]),
]


def test_the_five_variable_example_with_its_log_of_questions():
    result = minimal_imap(StatementOracle(FIVE), ["x1", "x2", "x3", "x4", "x5"])
    assert {n: result.graph.parents(n) for n in result.graph} == {
        "x1": [],
        "x2": [],
        "x3": ["x1"],
        "x4": ["x2"],
        "x5": ["x3", "x4"],
    }
    answers = {}
    for question, answer in result.queries:
        newest = max(question.names)
        answers.setdefault(newest, []).append(answer)
    assert answers["x2"] == [True]
    assert answers["x3"] == [False, True]
    assert answers["x4"] == [False, False, True]
    assert answers["x5"] == [False] * 10 + [True]
    assert result.queries[:3] == [
        (Independence("x1", "x2"), True),
        (Independence("x3", ["x1", "x2"]), False),
        (Independence("x3", "x2", "x1"), True),
    ]
    assert is_minimal_imap(result.graph, FIVE)


def test_a_bad_order_gives_a_minimal_map_with_more_edges_than_the_best():
    truth = [Independence("x1", "x2")]
    bad = minimal_imap(StatementOracle(truth), ["x3", "x2", "x1"])
    assert bad.graph == DAG([("x3", "x2"), ("x2", "x1"), ("x3", "x1")])
    assert bad.queries == [
        (Independence("x2", "x3"), False),
        (Independence("x1", ["x2", "x3"]), False),
        (Independence("x1", "x2", "x3"), False),
        (Independence("x1", "x3", "x2"), False),
    ]
    good = minimal_imap(StatementOracle(truth), ["x1", "x2", "x3"])
    assert good.graph == DAG([("x1", "x3"), ("x2", "x3")])
    assert is_minimal_imap(bad.graph, truth)
    assert is_minimal_imap(good.graph, truth)


@settings(deadline=None)
@given(dags(), st.permutations([f"n{i}" for i in range(4)]))
def test_the_construction_is_minimal_for_any_order(g, order):
    result = minimal_imap(GraphOracle(g), order)
    assert is_minimal_imap(result.graph, GraphOracle(g))
    if order == g.topological_order():
        assert result.graph == g


def test_every_variable_is_listed_once():
    with pytest.raises(InvalidArgument, match="once"):
        minimal_imap(GraphOracle(DAG()), ["a", "a"])


@settings(deadline=None)
@given(dags())
def test_both_undirected_constructions_give_the_moral_graph(g):
    oracle = GraphOracle(g)
    pairwise = minimal_undirected_imap(oracle, g.nodes, "pairwise")
    assert pairwise == minimal_undirected_imap(oracle, g.nodes, "blanket") == g.moral_graph()
    assert is_minimal_imap(pairwise, oracle)


def test_unknown_constructions_are_refused():
    with pytest.raises(InvalidArgument, match="pairwise"):
        minimal_undirected_imap(GraphOracle(DAG()), [], "guess")


def test_marginal_tables_decide_which_graphs_are_maps():
    p1 = TableOracle("XY", [0.08, 0.32, 0.12, 0.48])
    p2 = TableOracle("XY", [0.4, 0.3, 0.2, 0.1])
    empty, forward, backward = DAG(nodes=["X", "Y"]), DAG([("X", "Y")]), DAG([("Y", "X")])
    assert [is_imap(g, p1) for g in (empty, forward, backward)] == [True, True, True]
    assert [is_imap(g, p2) for g in (empty, forward, backward)] == [False, True, True]
    assert is_perfect_map(empty, p1)
    assert not is_perfect_map(forward, p1)
    table = TableOracle("XY", [0.16, 0.04, 0.16, 0.64])
    assert not is_imap(UndirectedGraph(nodes=["X", "Y"]), table)


def test_independence_without_separation_is_possible():
    oracle = TableOracle("AB", [0.3 * 0.4, 0.3 * 0.6, 0.7 * 0.4, 0.7 * 0.6])
    edge = DAG([("A", "B")])
    assert oracle(frozenset("A"), frozenset("B"), frozenset())
    assert not GraphOracle(edge)(frozenset("A"), frozenset("B"), frozenset())
    assert is_imap(edge, oracle)
    assert not is_minimal_imap(edge, oracle)


def test_exclusive_or_has_no_perfect_map():
    table = np.zeros((2, 2, 2))
    for x, y in product((0, 1), repeat=2):
        table[x, y, x ^ y] = 0.25
    oracle = TableOracle("xyz", table)
    assert oracle(frozenset("x"), frozenset("y"), frozenset())
    assert not oracle(frozenset("x"), frozenset("yz"), frozenset())
    graphs = list(every_dag(list("xyz")))
    assert len(graphs) == 25
    assert not any(is_perfect_map(g, oracle) for g in graphs)
    assert not any(is_perfect_map(g, oracle) for g in every_undirected(list("xyz")))
    statements = [Independence("x", "y"), Independence("y", "z"), Independence("x", "z")]
    assert not any(is_perfect_map(g, statements) for g in graphs)


def test_a_collider_has_no_undirected_and_a_square_no_directed_perfect_map():
    collider = GraphOracle(DAG([("a", "c"), ("b", "c")]))
    assert not any(is_perfect_map(g, collider) for g in every_undirected(list("abc")))
    assert sum(is_perfect_map(g, collider) for g in every_dag(list("abc"))) == 1
    square = GraphOracle(cycle(4))
    assert not any(is_perfect_map(g, square) for g in every_dag(cycle(4).nodes))
    assert is_perfect_map(cycle(4), square)


def test_chains_have_both_kinds_of_perfect_map():
    assert is_perfect_map(chain(4), GraphOracle(chain(4, directed=True)))
    assert is_perfect_map(chain(4, directed=True), GraphOracle(chain(4)))


@settings(max_examples=60, deadline=None)
@given(dags())
def test_moralising_is_perfect_exactly_without_immoralities(g):
    assert is_perfect_map(g.moral_graph(), GraphOracle(g)) == (not g.v_structures())
    u = g.skeleton()
    if is_decomposable(u):
        assert is_perfect_map(to_directed(u), GraphOracle(u))


def test_equivalent_graphs_are_perfect_maps_of_each_other():
    graphs = list(every_dag(list("abc")))
    for a, b in product(graphs, repeat=2):
        assert is_perfect_map(a, GraphOracle(b)) == i_equivalent(a, b)


def test_a_map_over_other_variables_is_not_perfect():
    assert not is_perfect_map(DAG(nodes=["a", "b"]), [Independence("a", "b")], names=["a", "b", "c"])
    assert is_perfect_map(DAG(nodes=["a", "b"]), [Independence("a", "b")], names=["b", "a"])


def test_local_statements_do_not_make_an_undirected_graph_a_map_without_positivity():
    # x1 = x2, x4 = x5 and x3 = x2 and x4 on the chain x1 - ... - x5
    names = [f"x{i}" for i in range(1, 6)]
    table = np.zeros([2] * 5)
    for x2, x4 in product((0, 1), repeat=2):
        table[x2, x2, x2 & x4, x4, x4] = 0.25
    oracle = TableOracle(names, table)
    path = UndirectedGraph(pairwise(names))
    for name in names:
        near = frozenset(path.neighbors(name))
        assert oracle(frozenset([name]), frozenset(names) - near - {name}, near)
    assert not oracle(frozenset(["x2"]), frozenset(["x4"]), frozenset(["x3"]))
    assert not is_imap(path, oracle)


def test_pairwise_statements_do_not_imply_local_ones_without_positivity():
    table = np.zeros((2, 2, 2))
    table[0, 0, 0] = table[1, 1, 1] = 0.5
    oracle = TableOracle(["x1", "x2", "x3"], table)
    g = UndirectedGraph([("x1", "x2")], nodes=["x3"])
    assert oracle(frozenset(["x1"]), frozenset(["x3"]), frozenset(["x2"]))
    assert oracle(frozenset(["x2"]), frozenset(["x3"]), frozenset(["x1"]))
    assert not is_imap(g, oracle)


def test_global_statements_do_not_imply_factorisation_without_positivity():
    support = ["0000", "1000", "1100", "1110", "1111", "0111", "0011", "0001"]
    table = np.zeros([2] * 4)
    for row in support:
        table[tuple(map(int, row))] = 1 / 8
    oracle = TableOracle(cycle(4).nodes, table)
    assert is_imap(cycle(4), oracle)
    assert all(table.sum(axis=axes).all() for axes in ((2, 3), (0, 3), (0, 1), (1, 2)))
    assert table[0, 1, 0, 1] == 0


def test_mixed_graphs_answer_too():
    oracle = GraphOracle(MixedGraph(["a --> b", "b <-> c"]))
    assert oracle(frozenset("a"), frozenset("c"), frozenset())
    assert not oracle(frozenset("a"), frozenset("c"), frozenset("b"))
