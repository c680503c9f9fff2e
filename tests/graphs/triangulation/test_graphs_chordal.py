"""Chordality, elimination, triangulation and junction trees, with the worked examples."""

from itertools import combinations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovia.errors import InvalidArgument, InvalidGraph, UnknownVariable
from markovia.graphs import (
    DAG,
    GraphOracle,
    UndirectedGraph,
    chain,
    chordless_cycle,
    complete,
    cycle,
    elimination_cliques,
    grid,
    is_chordal,
    is_decomposable,
    is_perfect_map,
    junction_tree,
    maximal_cliques_chordal,
    perfect_elimination_order,
    random_k_tree,
    random_tree,
    simplicial_vertices,
    star,
    to_directed,
    treewidth_of_order,
    triangulate,
)


def numbered(*edges: str) -> UndirectedGraph:
    """Build a graph from two-digit edges such as "12"."""
    names = sorted({n for e in edges for n in e})
    return UndirectedGraph((tuple(e) for e in edges), nodes=names)


def sets(cliques):
    return {frozenset(c) for c in cliques}


LOOP = numbered("12", "24", "23", "45", "35")  # Examples 54 and 64
CHORDAL = numbered("12", "23", "24", "34", "35", "45")  # Example 58
SIX = numbered("26", "56", "25", "13", "35", "14", "12", "45", "24")  # Example 68


@st.composite
def undirected_graphs(draw: st.DrawFn, largest: int = 8) -> UndirectedGraph:
    n = draw(st.integers(1, largest))
    names = [f"n{i}" for i in range(n)]
    pairs = list(combinations(names, 2))
    bits = draw(st.integers(0, 2 ** len(pairs) - 1))
    return UndirectedGraph(
        [p for k, p in enumerate(pairs) if bits >> k & 1], nodes=draw(st.permutations(names))
    )


def chordal_graphs():
    return undirected_graphs().map(lambda g: triangulate(g).graph)


@settings(deadline=None)
@given(undirected_graphs())
def test_chordality_agrees_with_networkx(g):
    chordal = nx.is_chordal(g.to_networkx())
    assert is_chordal(g) == is_decomposable(g) == chordal
    hole = chordless_cycle(g)
    assert (hole is None) == chordal
    if hole is not None:
        assert len(hole) >= 4
        ring = g.subgraph(hole)
        assert ring.n_edges == len(hole)
        assert all(g.has_edge(a, b) for a, b in zip(hole, [*hole[1:], hole[0]], strict=True))


@settings(deadline=None)
@given(chordal_graphs(), st.data())
def test_perfect_elimination_orders_add_no_edge(g, data):
    last = data.draw(st.none() | st.sampled_from(g.nodes))
    for method in ("mcs", "simplicial"):
        order = perfect_elimination_order(g, last=last, method=method)
        assert triangulate(g, order=order).fill == []
        assert last is None or order[-1] == last


@settings(deadline=None)
@given(chordal_graphs())
def test_maximal_cliques_of_chordal_graphs(g):
    cliques = maximal_cliques_chordal(g)
    assert cliques == g.maximal_cliques()
    # a chordal graph that is not complete has two simplicial vertices that are not adjacent
    simplicial = simplicial_vertices(g)
    if not g.is_complete():
        assert any(not g.has_edge(a, b) for a, b in combinations(simplicial, 2))


@settings(deadline=None)
@given(chordal_graphs())
def test_a_chordal_graph_has_an_equivalent_dag(g):
    dag = to_directed(g)
    assert dag.skeleton() == g
    assert not dag.v_structures()
    if len(g) <= 5:
        assert is_perfect_map(dag, GraphOracle(g))


def test_graphs_that_are_not_chordal_name_the_cycle():
    for function in (to_directed, maximal_cliques_chordal, perfect_elimination_order):
        with pytest.raises(InvalidGraph, match=r"cycle 2 - 4 - 5 - 3 - 2|cycle 2 - 3 - 5 - 4 - 2"):
            function(LOOP)
    with pytest.raises(InvalidGraph, match="no chord"):
        perfect_elimination_order(LOOP, method="simplicial")
    with pytest.raises(InvalidArgument, match="mcs"):
        perfect_elimination_order(CHORDAL, method="magic")
    with pytest.raises(UnknownVariable):
        perfect_elimination_order(CHORDAL, last="9")


def test_decomposable_means_chain_yes_square_no_collider_no():
    assert is_decomposable(chain(5))
    assert is_decomposable(chain(5, directed=True))
    assert not is_decomposable(cycle(4))
    assert not is_decomposable(DAG([("x", "y"), ("z", "y")]))


def test_example_54_elimination_scopes_and_widths():
    cliques = elimination_cliques(LOOP, list("12345"))
    assert cliques == [("1", "2"), ("2", "3", "4"), ("3", "4", "5"), ("4", "5"), ("5",)]
    messages = [clique[1:] for clique in cliques]
    assert messages == [("2",), ("3", "4"), ("4", "5"), ("5",), ()]
    assert max(map(len, cliques)) == 3
    assert max(map(len, elimination_cliques(LOOP, list("21345")))) == 4
    assert triangulate(LOOP, order=list("12345")).fill == [("3", "4")]


def test_example_58_simplicial_vertices_step_by_step():
    g = CHORDAL.copy()
    assert simplicial_vertices(g) == ["1", "5"]
    g.remove_node("5")
    assert simplicial_vertices(g) == ["1", "3", "4"]
    g.remove_node("3")
    assert simplicial_vertices(g) == ["1", "4"]
    g.remove_node("1")
    assert simplicial_vertices(g) == ["2", "4"]
    for order in ("53142", "53124"):
        assert triangulate(CHORDAL, order=list(order)).fill == []


def test_example_61_junction_tree_of_a_triangle_with_a_tail():
    tree = junction_tree(numbered("12", "13", "23", "34", "45"))
    assert tree.cliques == (("1", "2", "3"), ("3", "4"), ("4", "5"))
    assert tree.edges == ((0, 1), (1, 2))
    assert tree.separators == (("3",), ("4",))


def test_example_64_a_loop_needs_one_more_edge():
    assert not is_chordal(LOOP)
    tree = junction_tree(LOOP, order=list("12345"))
    assert tree.cliques == (("1", "2"), ("2", "3", "4"), ("3", "4", "5"))
    assert tree.edges == ((0, 1), (1, 2))
    assert tree.separators == (("2",), ("3", "4"))
    homes = {scope: tree.home(list(scope)) for scope in ("12", "23", "24", "35", "45")}
    assert homes == {"12": 0, "23": 1, "24": 1, "35": 2, "45": 2}
    for heuristic in ("min-degree", "min-fill", "min-weight"):
        assert len(triangulate(LOOP, heuristic).fill) == 1


def test_example_68_min_degree_on_six_variables():
    result = triangulate(SIX, order=list("631254"))
    assert result.fill == [("1", "5")]
    tree = junction_tree(SIX, order=list("631254"))
    assert sets(tree.cliques) == {frozenset("135"), frozenset("256"), frozenset("1245")}
    position = {frozenset(c): k for k, c in enumerate(tree.cliques)}
    c1, c2, c3 = position[frozenset("135")], position[frozenset("256")], position[frozenset("1245")]
    assert set(map(frozenset, tree.edges)) == {frozenset((c1, c3)), frozenset((c2, c3))}
    assert sorted(map(len, tree.separators)) == [2, 2]
    for scope, home in [
        ("13", c1),
        ("35", c1),
        ("14", c3),
        ("12", c3),
        ("45", c3),
        ("24", c3),
        ("26", c2),
        ("56", c2),
    ]:
        assert tree.home(list(scope)) == home
    greedy = triangulate(SIX, "min-degree")
    assert len(greedy.fill) == 1
    assert treewidth_of_order(SIX, greedy.order) == 3


def test_treewidths():
    def width(g, heuristic="min-fill"):
        return treewidth_of_order(g, triangulate(g, heuristic).order)

    assert width(random_tree(40, seed=1)) == 1
    assert width(cycle(12)) == 2
    assert width(complete(7)) == 6
    assert width(random_k_tree(30, 4, seed=2)) == 4
    for rows, cols in [(2, 5), (3, 3), (3, 7), (4, 4)]:
        assert width(grid(rows, cols)) == min(rows, cols)
    assert width(UndirectedGraph(nodes=["a"])) == 0
    hidden_and_visible = UndirectedGraph(
        [e for t in range(8) for e in ((f"h{t}", f"h{t + 1}"), (f"v{t}", f"v{t + 1}"), (f"h{t}", f"v{t}"))]
    )
    assert width(hidden_and_visible) == 2


def test_the_centre_of_a_star_is_best_eliminated_late():
    g = star(9)
    leaves = g.nodes[1:]
    assert treewidth_of_order(g, [*leaves, "x0"]) == 1
    assert treewidth_of_order(g, ["x0", *leaves]) == 8
    assert triangulate(g, "min-degree").fill == []


def test_a_bad_order_on_a_chain_makes_larger_messages():
    g = chain(5)
    good = max(len(c) - 1 for c in elimination_cliques(g, g.nodes))
    bad = max(len(c) - 1 for c in elimination_cliques(g, ["x1", "x0", "x2", "x3", "x4"]))
    assert (good, bad) == (1, 2)


@settings(max_examples=60, deadline=None)
@given(undirected_graphs(), st.sampled_from(["min-degree", "min-fill", "min-weight", "weighted-min-fill"]))
def test_triangulations_are_chordal_and_contain_the_graph(g, heuristic):
    weights = {name: 2 + k % 3 for k, name in enumerate(g)}
    before = g.copy()
    order, chordal, fill = triangulate(g, heuristic, weights=weights)
    assert g == before
    assert sorted(order) == sorted(g.nodes)
    assert nx.is_chordal(chordal.to_networkx())
    assert set(map(frozenset, chordal.edges)) == set(map(frozenset, g.edges)) | set(map(frozenset, fill))
    assert len(fill) == chordal.n_edges - g.n_edges
    largest = {frozenset(c) for c in elimination_cliques(g, order)}
    assert {c for c in largest if not any(c < d for d in largest)} == sets(chordal.maximal_cliques())


@settings(max_examples=100, deadline=None)
@given(undirected_graphs())
def test_junction_trees_are_maximum_weight_spanning_trees_with_running_intersection(g):
    tree = junction_tree(g)
    chordal = triangulate(g).graph
    assert list(tree.cliques) == chordal.maximal_cliques()
    assert tree.has_running_intersection()
    weights = nx.Graph()
    weights.add_nodes_from(range(len(tree.cliques)))
    for a, b in combinations(range(len(tree.cliques)), 2):
        weights.add_edge(a, b, weight=len(set(tree.cliques[a]) & set(tree.cliques[b])))
    best = nx.maximum_spanning_tree(weights).size(weight="weight")
    assert sum(map(len, tree.separators)) == best
    assert tree.width == max(map(len, tree.cliques)) - 1
    assert nx.is_tree(tree.to_networkx())
    for a, b in g.edges:
        assert {a, b} <= set(tree.cliques[tree.home([a, b])])


def test_running_intersection_can_fail():
    from markovia.graphs import JunctionTree

    broken = JunctionTree((("a", "b"), ("b", "c"), ("a", "c")), ((0, 1), (1, 2)), (("b",), ("c",)))
    assert not broken.has_running_intersection()
    wrong_separator = JunctionTree((("a", "b"), ("b", "c")), ((0, 1),), ((),))
    assert not wrong_separator.has_running_intersection()
    assert junction_tree(UndirectedGraph()).has_running_intersection()


def test_homes_are_checked():
    tree = junction_tree(LOOP)
    with pytest.raises(InvalidArgument, match="no clique contains 1, 5"):
        tree.home(["1", "5"])
    assert len(tree.cliques[tree.home([])]) == 2
    assert tree.neighbors(0) == [1]


def test_elimination_orders_are_checked():
    with pytest.raises(InvalidArgument, match="lacks 5"):
        elimination_cliques(LOOP, list("1234"))
    with pytest.raises(InvalidArgument, match="repeated"):
        elimination_cliques(LOOP, list("123455"))
    with pytest.raises(UnknownVariable):
        triangulate(LOOP, order=list("12346"))
    with pytest.raises(InvalidArgument, match="min-fill"):
        triangulate(LOOP, "best")
    with pytest.raises(InvalidArgument, match="positive"):
        triangulate(LOOP, "min-weight", weights={"1": 0})
    with pytest.raises(UnknownVariable):
        triangulate(LOOP, "min-weight", weights={"7": 2})
