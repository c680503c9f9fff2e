"""Independence statements of graphs, and what follows from statements."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovia.errors import InvalidArgument, TooLarge
from markovia.graphs import (
    DAG,
    Independence,
    UndirectedGraph,
    all_independencies,
    closure,
    cycle,
    d_separated,
    grid,
    implies,
    local_independencies,
    pairwise_independencies,
    random_dag,
    separated,
)


def all_triples(names: list[str]) -> set[Independence]:
    return set(all_independencies(UndirectedGraph(nodes=names)))


@st.composite
def dags(draw: st.DrawFn, n: int) -> DAG:
    pairs = list(combinations([f"n{i}" for i in range(n)], 2))
    bits = draw(st.integers(0, 2 ** len(pairs) - 1))
    return DAG([pair for k, pair in enumerate(pairs) if bits >> k & 1], nodes=[f"n{i}" for i in range(n)])


def test_statements_are_symmetric_and_hashable():
    one, two = Independence("a", ["b", "c"], "z"), Independence({"c", "b"}, "a", ["z"])
    assert one == two
    assert len({one, two}) == 1
    assert str(one) == "a ⊥ {b, c} | z"
    assert str(Independence("b", "a", ["y", "z"])) == "a ⊥ b | {y, z}"
    assert one.names == {"a", "b", "c", "z"}
    assert one != Independence("a", ["b", "c"])


def test_statements_are_about_disjoint_sets_that_are_not_empty():
    for arguments in [("a", "a"), ("a", "b", "a"), ("a", []), ([], "b")]:
        with pytest.raises(InvalidArgument):
            Independence(*arguments)
    with pytest.raises(InvalidArgument):
        Independence("a", 3)


def test_local_independencies_of_the_five_node_example():
    g = DAG([("B", "D"), ("D", "E"), ("C", "E")], nodes=["A", "B", "C", "D", "E"])
    assert local_independencies(g) == [
        Independence("A", ["B", "C", "D", "E"]),
        Independence("B", ["A", "C"]),
        Independence("C", ["A", "B", "D"]),
        Independence("D", ["A", "C"], "B"),
        Independence("E", ["A", "B"], ["C", "D"]),
    ]


def test_the_four_node_example_has_nine_independencies():
    g = DAG([("X1", "X3"), ("X2", "X3"), ("X1", "X4")])
    assert set(all_independencies(g)) == {
        Independence("X4", "X3", "X1"),
        Independence("X4", "X3", ["X1", "X2"]),
        Independence("X1", "X2"),
        Independence("X1", "X2", "X4"),
        Independence("X2", "X4"),
        Independence("X2", ["X1", "X4"]),
        Independence("X2", "X4", "X1"),
        Independence("X2", "X4", ["X1", "X3"]),
        Independence(["X2", "X3"], "X4", "X1"),
    }
    assert len(all_independencies(g)) == 9


def test_independencies_of_the_three_by_three_grid():
    g = grid(3, 3)
    y = dict(enumerate(g.nodes, start=1))
    rest = [y[k] for k in (3, 5, 6, 7, 8, 9)]
    assert Independence(y[1], rest, [y[2], y[4]]) in local_independencies(g)
    others = [y[k] for k in (2, 4, 5, 6, 7, 8, 9)]
    assert Independence(y[1], y[3], others) in pairwise_independencies(g)
    rows = Independence([y[1], y[2], y[3]], [y[7], y[8], y[9]], [y[4], y[5], y[6]])
    assert rows in all_independencies(g)


@settings(deadline=None)
@given(dags(4))
def test_enumeration_is_exactly_what_is_separated(g):
    u = g.skeleton()
    directed, undirected = all_independencies(g), all_independencies(u)
    assert len(set(directed)) == len(directed)
    assert set(directed) == {s for s in all_triples(g.nodes) if d_separated(g, s.x, s.y, s.given)}
    assert set(undirected) == {s for s in all_triples(g.nodes) if separated(u, s.x, s.y, s.given)}
    assert set(all_independencies(g, pairs_only=True)) == {s for s in directed if len(s.x) == len(s.y) == 1}


def test_the_number_of_statements_about_independent_nodes():
    # each node goes to x, y, the condition or nowhere; x and y are not empty and can be exchanged
    for n in range(6):
        expected = (4**n - 2 * 3**n + 2**n) // 2
        assert len(all_independencies(UndirectedGraph(nodes=[f"n{i}" for i in range(n)]))) == expected


@settings(deadline=None)
@given(dags(5))
def test_every_local_and_pairwise_statement_holds(g):
    for s in local_independencies(g) + pairwise_independencies(g):
        assert d_separated(g, s.x, s.y, s.given)
    u = g.skeleton()
    for s in local_independencies(u) + pairwise_independencies(u):
        assert separated(u, s.x, s.y, s.given)
    absent = len(g) * (len(g) - 1) // 2 - g.n_edges
    assert len(pairwise_independencies(g)) == len(pairwise_independencies(u)) == absent


def test_large_enumerations_are_refused():
    with pytest.raises(TooLarge, match="d_separated"):
        all_independencies(random_dag(30, max_parents=2, seed=0))
    with pytest.raises(TooLarge, match="limit of 12"):
        closure([Independence("a", [f"n{i}" for i in range(14)])])


def test_the_axioms():
    xy = Independence("x", ["y", "w"], "z")
    assert implies([xy], Independence("y", "x", "z"))  # decomposition
    assert implies([xy], Independence("x", "y", ["z", "w"]))  # weak union
    pair = [Independence("x", "y", "z"), Independence("x", "w", ["z", "y"])]
    assert implies(pair, xy)  # contraction
    assert not implies([pair[0]], xy)


def test_conditioning_on_more_can_create_dependence():
    assert not implies([Independence("x", "y")], Independence("x", "y", "z"))


def test_intersection_and_composition_are_options():
    meet = [Independence("x", "y", ["z", "w"]), Independence("x", "w", ["z", "y"])]
    joint = Independence("x", ["y", "w"], "z")
    assert not implies(meet, joint)
    assert implies(meet, joint, intersection=True)
    assert not implies(meet, joint, composition=True)
    both = [Independence("x", "y"), Independence("x", "w")]
    assert not implies(both, Independence("x", ["y", "w"]))
    assert implies(both, Independence("x", ["y", "w"]), composition=True)
    assert not implies(both, Independence("x", ["y", "w"]), intersection=True)


def test_pairwise_independence_does_not_make_three_variables_independent():
    xor = [Independence("x", "y"), Independence("y", "z"), Independence("x", "z")]
    assert closure(xor) == set(xor)


def test_an_empty_list_implies_nothing():
    assert closure([]) == set()


@settings(deadline=None)
@given(dags(4))
def test_the_closure_of_the_local_independencies_of_a_dag_is_d_separation(g):
    assert closure(local_independencies(g)) == set(all_independencies(g))


@settings(max_examples=25, deadline=None)
@given(dags(5))
def test_the_closure_theorem_holds_for_five_nodes_too(g):
    assert closure(local_independencies(g)) == set(all_independencies(g))


@settings(max_examples=30, deadline=None)
@given(dags(4))
def test_pairwise_statements_of_an_undirected_graph_imply_all_with_intersection(g):
    u = g.skeleton()
    assert closure(pairwise_independencies(u), intersection=True) == set(all_independencies(u))


def _close_by_definition(
    statements: set[Independence], intersection: bool, composition: bool
) -> set[Independence]:
    """Apply the axioms to all pairs of statements until nothing is new."""
    known = set(statements)
    while True:
        new = set()
        oriented = [(s.x, s.y, s.given) for s in known] + [(s.y, s.x, s.given) for s in known]
        for x, y, z in oriented:
            for k in range(1, len(y)):
                for part in map(frozenset, combinations(y, k)):
                    new |= {Independence(x, part, z), Independence(x, part, z | (y - part))}
            for x2, w, z2 in oriented:
                if x2 != x:
                    continue
                if z2 == z | y:
                    new.add(Independence(x, y | w, z))
                if intersection and w <= z and z2 == (z - w) | y:
                    new.add(Independence(x, y | w, z - w))
                if composition and z2 == z:
                    new.add(Independence(x, y | w, z))
        if new <= known:
            return known
        known |= new


@settings(max_examples=40, deadline=None)
@given(st.data(), st.booleans(), st.booleans())
def test_the_closure_agrees_with_the_axioms_applied_naively(data, intersection, composition):
    pool = sorted(all_triples(["a", "b", "c", "d"]), key=str)
    chosen = set(data.draw(st.lists(st.sampled_from(pool), max_size=4)))
    expected = _close_by_definition(chosen, intersection, composition)
    assert closure(chosen, intersection=intersection, composition=composition) == expected


def test_a_square_has_two_pairwise_independencies():
    assert [str(s) for s in pairwise_independencies(cycle(4))] == ["x0 ⊥ x2 | {x1, x3}", "x1 ⊥ x3 | {x0, x2}"]
