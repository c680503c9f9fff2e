"""Comparing graphs: Hamming distance, precision and recall, structural intervention distance."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.graphs import DAG, MixedGraph, UndirectedGraph, cpdag, equivalence_class, i_equivalent
from markovia.graphs.comparison.comparison import GraphComparison, compare_graphs, shd, sid
from markovia.graphs.comparison.intervention_distance import SIDBounds, intervention_distance, wrong_effects

few = settings(max_examples=60, deadline=None)
seeds = st.integers(0, 10**6)


def some_dag(seed, n=5, rate=None):
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    rate = rng.uniform(0.2, 0.7) if rate is None else rate
    names = [f"v{i}" for i in range(n)]
    edges = [(names[a], names[b]) for a, b in combinations(order, 2) if rng.random() < rate]
    return DAG(edges, nodes=names)


def some_mixed(seed, n=5):
    rng = np.random.default_rng(seed)
    names = [f"v{i}" for i in range(n)]
    kinds = ["-->", "<--", "<->", "o->", "o-o", "<-o", "---"]
    edges = [f"{a} {kinds[rng.integers(7)]} {b}" for a, b in combinations(names, 2) if rng.random() < 0.5]
    return MixedGraph(edges, nodes=names)


def wrong_by_paths(learned, truth):
    """Count wrong effects from the definition: adjustment for parents, judged on every path of the true graph."""
    total = 0
    for i in truth.nodes:
        given_ = set(learned.parents(i))
        for j in truth.nodes:
            if i == j:
                continue
            if j in given_:
                total += j in truth.descendants(i)
            else:
                total += not _valid(truth, i, j, given_)
    return total


def _valid(dag, i, j, given_):
    below = {n: {n, *dag.descendants(n)} for n in dag.nodes}
    for path in _paths(dag, i, j):
        if all(dag.has_edge(a, b) for a, b in pairwise(path)):
            if any(below[n] & given_ for n in path[1:]):
                return False
        elif not any(
            not (below[b] & given_) if dag.has_edge(a, b) and dag.has_edge(c, b) else b in given_
            for a, b, c in zip(path, path[1:], path[2:], strict=False)
        ):
            return False
    return True


def _paths(dag, i, j):
    stack = [[i]]
    while stack:
        path = stack.pop()
        for n in {*dag.parents(path[-1]), *dag.children(path[-1])}:
            if n == j:
                yield [*path, n]
            elif n not in path:
                stack.append([*path, n])


def wrong_by_regression(learned, truth, seed):
    """Count wrong effects in one random linear model: the regression given the parents against the total effect."""
    rng = np.random.default_rng(seed)
    names = truth.nodes
    number = {n: k for k, n in enumerate(names)}
    weights = np.zeros((len(names),) * 2)
    for a, b in truth.edges:
        weights[number[b], number[a]] = rng.uniform(0.5, 1.5) * rng.choice([-1, 1])
    mix = np.linalg.inv(np.eye(len(names)) - weights)
    cov = mix @ np.diag(rng.uniform(0.5, 1.5, len(names))) @ mix.T
    total = 0
    for i, j in ((i, j) for i in range(len(names)) for j in range(len(names)) if i != j):
        given_ = [number[p] for p in learned.parents(names[i])]
        if j in given_:
            claimed = 0.0
        else:
            use = [i, *given_]
            claimed = np.linalg.solve(cov[np.ix_(use, use)], cov[use, j])[0]
        total += not np.isclose(claimed, mix[j, i], atol=1e-8)
    return total


@few
@given(seeds, seeds, st.integers(2, 6))
def test_the_intervention_distance_is_that_of_the_definition_and_of_linear_models(a, b, n):
    learned, truth = some_dag(a, n), some_dag(b, n)
    found = intervention_distance(learned, truth)
    assert found == wrong_by_paths(learned, truth)
    assert found == wrong_by_regression(learned, truth, a)
    assert found == sum(map(len, wrong_effects(learned, truth).values())) == sid(learned, truth)


def test_the_intervention_distance_of_the_paper():
    # both differ from the truth in one edge; only the reversed one spoils effects
    arrows = [(x, y) for x in ("x1", "x2") for y in ("y1", "y2", "y3")]
    truth = DAG([("x1", "x2"), *arrows])
    more, turned = DAG([("x1", "x2"), *arrows, ("y1", "y2")]), DAG([("x2", "x1"), *arrows])
    assert shd(more, truth) == shd(turned, truth) == 1
    assert sid(more, truth) == 0
    assert sid(turned, truth) == 8
    # nothing learned: every effect of x1 is right, others are confounded
    assert sid(DAG(nodes=truth.nodes), truth) == wrong_by_paths(DAG(nodes=truth.nodes), truth)


@few
@given(seeds, seeds, st.integers(2, 5))
def test_the_bounds_of_a_class_are_its_smallest_and_largest_member(a, b, n):
    learned, truth = some_dag(a, n), some_dag(b, n)
    each = [intervention_distance(member, truth) for member in equivalence_class(learned)]
    assert sid(cpdag(learned), truth) == SIDBounds(min(each), max(each))


def test_bounds_respect_edges_that_are_directed_within_a_component():
    partly = MixedGraph(
        ["a --- b", "b --- c", "a --- c", "a --> d", "b --> d", "c --> d", "a --> e", "e --- b"]
    )
    partly.remove_edge("a", "c")
    partly.add_edge("a --> c")
    truth = DAG(
        [("a", "b"), ("b", "c"), ("a", "c"), ("a", "d"), ("b", "d"), ("c", "d"), ("a", "e"), ("b", "e")]
    )
    lower, upper = sid(partly, truth)
    members = []
    for one in ([("a", "b")], [("b", "a")]):
        for two in ([("b", "c")], [("c", "b")]):
            for three in ([("e", "b")], [("b", "e")]):
                edges = [*partly.directed_edges(), *one, *two, *three]
                try:
                    dag = DAG(edges, nodes=partly.nodes)
                except mk.errors.CycleError:
                    continue
                if {e[1] for e in dag.v_structures()} <= {"d"}:
                    members.append(intervention_distance(dag, truth))
    assert (lower, upper) == (min(members), max(members))


@few
@given(seeds)
def test_a_supergraph_in_the_right_order_gets_every_effect_right(seed):
    truth = some_dag(seed, 6)
    order = truth.topological_order()
    assert sid(DAG(combinations(order, 2), nodes=truth.nodes), truth) == 0


@few
@given(seeds, seeds, seeds)
def test_the_hamming_distance_is_a_metric(a, b, c):
    for graphs in (
        [some_dag(s) for s in (a, b, c)],
        [cpdag(some_dag(s)) for s in (a, b, c)],
        [some_mixed(s) for s in (a, b, c)],
        [some_dag(s).skeleton() for s in (a, b, c)],
    ):
        x, y, z = graphs
        assert shd(x, y) == shd(y, x)
        assert (shd(x, y) == 0) == (x == y)
        assert shd(x, z) <= shd(x, y) + shd(y, z)
        assert shd(x, x) == 0


@few
@given(seeds, seeds)
def test_classes_are_at_distance_zero_exactly_if_the_graphs_are_equivalent(a, b):
    x, y = some_dag(a, 4), some_dag(b, 4)
    found = compare_graphs(x, y)
    assert (found.cpdag_shd == 0) == i_equivalent(x, y)
    assert (
        found.cpdag_shd
        == shd(cpdag(x), y)
        == shd(x, cpdag(y))
        == compare_graphs(cpdag(x), cpdag(y)).cpdag_shd
    )


@few
@given(seeds, seeds)
def test_the_counts_add_up(a, b):
    for x, y in ((some_dag(a), some_dag(b)), (some_mixed(a), some_mixed(b))):
        found = compare_graphs(x, y)
        assert (
            found.shd
            == len(found.missing) + len(found.extra) + len(found.reoriented)
            == len(found.differences)
        )
        assert set(found.reversed) <= set(found.reoriented)
        assert x.n_edges == len(found.shared) + len(found.reoriented) + len(found.extra)
        assert y.n_edges == len(found.shared) + len(found.reoriented) + len(found.missing)
        mine, true = set(x.skeleton().edges), set(y.skeleton().edges)
        assert found.skeleton == (len(mine & true), len(mine - true), len(true - mine))
        assert found.shd <= found.mark_distance <= 2 * found.shd
        back = compare_graphs(y, x)
        assert back.mark_distance == found.mark_distance
        assert back.arrows.precision == found.arrows.recall
        assert {frozenset(e) for e in back.missing} == {frozenset(e) for e in found.extra}


@few
@given(seeds, seeds)
def test_arrows_of_directed_graphs_are_their_edges(a, b):
    x, y = some_dag(a), some_dag(b)
    found = compare_graphs(x, y)
    right = len(set(x.edges) & set(y.edges))
    assert found.arrows == (right, x.n_edges - right, y.n_edges - right)
    assert found.arrows.f1 == pytest.approx(
        2 * right / (x.n_edges + y.n_edges) if x.n_edges + y.n_edges else 1.0
    )
    assert set(found.reversed) == {e for e in y.edges if e[::-1] in x.edges}
    assert len(found.reversed) == len(set(found.reversed))


@pytest.mark.parametrize("seed", range(6))
def test_the_hamming_distance_is_that_of_causal_learn(seed):
    pytest.importorskip("causallearn")
    from causallearn.graph.Edge import Edge
    from causallearn.graph.Endpoint import Endpoint
    from causallearn.graph.GeneralGraph import GeneralGraph
    from causallearn.graph.GraphNode import GraphNode
    from causallearn.graph.SHD import SHD

    ends = {
        mk.graphs.Mark.TAIL: Endpoint.TAIL,
        mk.graphs.Mark.ARROW: Endpoint.ARROW,
        mk.graphs.Mark.CIRCLE: Endpoint.CIRCLE,
    }

    def theirs(graph):
        nodes = {n: GraphNode(n) for n in sorted(graph.nodes)}
        made = GeneralGraph(list(nodes.values()))
        for a, b, at_a, at_b in graph.edges:
            made.add_edge(Edge(nodes[a], nodes[b], ends[at_a], ends[at_b]))
        return made

    for make in (lambda s: MixedGraph.from_dag(some_dag(s)), lambda s: cpdag(some_dag(s))):
        x, y = make(seed), make(seed + 100)
        assert SHD(theirs(y), theirs(x)).get_shd() == shd(x, y)


def test_the_numbers_are_those_of_pyagrum():
    gum = pytest.importorskip("pyagrum")
    if not hasattr(gum, "StructuralMetrics"):
        pytest.skip("this pyAgrum has no StructuralMetrics")
    for seed in range(12):
        learned, truth = some_dag(seed, 7), some_dag(seed + 50, 7)
        theirs = []
        for dag in (learned, truth):
            net = gum.BayesNet()
            for name in dag.nodes:
                net.add(gum.LabelizedVariable(name, name, 2))
            for a, b in dag.edges:
                net.addArc(a, b)
            theirs.append(net)
        found = compare_graphs(learned, truth)
        judge = gum.StructuralMetrics()
        judge.compare(theirs[1].dag(), theirs[0].dag())
        assert judge.precision_skeleton() == pytest.approx(found.skeleton.precision)
        assert judge.recall_skeleton() == pytest.approx(found.skeleton.recall)
        assert judge.f_score_skeleton() == pytest.approx(found.skeleton.f1)
        assert judge.precision() == pytest.approx(found.arrows.precision)
        # its recall is another: a reversed arc is not missed there
        assert judge.shd() == found.shd
        assert judge.sid(theirs[1], theirs[0]) == found.sid
        judge.compare(theirs[1], theirs[0])
        assert judge.shd() == found.cpdag_shd


def test_a_reversed_edge_counts_one_and_a_mark_counts_in_the_mark_distance():
    truth = DAG([("a", "b"), ("b", "c"), ("c", "d")])
    found = compare_graphs(DAG([("b", "a"), ("b", "c"), ("a", "d")], nodes=list("abcd")), truth)
    assert (found.shd, found.missing, found.extra, found.reversed) == (
        3,
        [("c", "d")],
        [("a", "d")],
        [("a", "b")],
    )
    assert found.mark_distance == 2 + 2 + 2
    kinds = {(d.kind, d.learned, d.truth) for d in found.differences}
    assert ("reversed", "b --> a", "a --> b") in kinds
    assert ("missing", None, "c --> d") in kinds
    pags = compare_graphs(MixedGraph(["a o-> b", "b o-o c"]), MixedGraph(["a --> b", "b <-> c"]))
    assert (pags.level, pags.shd, pags.mark_distance) == ("pag", 2, 3)
    assert pags.reversed == []
    assert pags.arrows == (1, 0, 2)


def test_models_and_learned_structures_are_compared_by_their_graphs():
    model = mk.examples.sprinkler()
    found = mk.learn_structure(model.sample(3000, seed=1), method="hill-climb")
    judged = found.compare(model)
    assert isinstance(judged, GraphComparison)
    assert judged.shd == shd(found, model) == shd(found.graph, model.graph)
    assert compare_graphs(found.cpdag, model).level == "cpdag"
    pag = mk.learn_structure(method="fci", test=model)
    assert compare_graphs(pag, pag.graph).shd == 0


def test_two_edges_between_two_nodes_are_one_pair():
    both, one = MixedGraph(["a --> b", "a <-> b"]), MixedGraph(["a --> b"])
    found = compare_graphs(one, both)
    assert (found.shd, found.mark_distance) == (1, 2)
    assert found.differences[0].truth == "a --> b and a <-> b"
    assert found.level == "pag"


def test_undirected_graphs_have_no_arrows_to_tell():
    found = compare_graphs(
        UndirectedGraph([("a", "b")], nodes=list("abc")), UndirectedGraph([("a", "b"), ("b", "c")])
    )
    assert (found.level, found.shd, found.missing) == ("undirected", 1, [("b", "c")])
    assert "arrowheads" not in str(found)
    assert found.cpdag_shd is None


def test_what_cannot_be_compared_is_said():
    dag = DAG([("a", "b")])
    with pytest.raises(mk.errors.InvalidArgument, match="only the true graph has 'c'"):
        compare_graphs(dag, DAG([("a", "b"), ("b", "c")]))
    with pytest.raises(mk.errors.InvalidArgument, match="only the learned graph has 'c' and 1 more"):
        compare_graphs(DAG([("a", "b"), ("c", "d")]), dag)
    with pytest.raises(mk.errors.InvalidArgument, match="skeleton"):
        compare_graphs(dag.skeleton(), dag)
    with pytest.raises(mk.errors.InvalidArgument, match="method='fci'"):
        compare_graphs(MixedGraph(["a o-> b"]), dag)
    with pytest.raises(mk.errors.InvalidArgument, match="truth is a DAG, MixedGraph"):
        compare_graphs(dag, {"a": "b"})
    with pytest.raises(mk.errors.InvalidArgument, match="needs a DAG as the truth"):
        sid(dag, cpdag(dag))
    with pytest.raises(mk.errors.InvalidArgument, match="learned DAG or CPDAG"):
        sid(MixedGraph(["a <-> b"]), dag)
    square = MixedGraph(["a --- b", "b --- c", "c --- d", "d --- a"])
    with pytest.raises(mk.errors.InvalidArgument, match="stands for no directed graph"):
        sid(square, DAG([("a", "b"), ("b", "c"), ("c", "d")]))


def test_a_class_that_is_too_large_is_said_and_the_table_is_still_printed(monkeypatch):
    monkeypatch.setattr("markovia.graphs.comparison.intervention_distance.MOST_DIRECTED", 100)
    names = [f"v{i}" for i in range(6)]
    truth = DAG(combinations(names, 2))
    found = compare_graphs(cpdag(truth), truth)
    with pytest.raises(mk.errors.TooLarge, match="6 nodes can be directed"):
        found.sid  # noqa: B018
    assert "SID: the class is too large" in str(found)


def test_the_table_is_short_and_says_it_all():
    truth = some_dag(1, 30, 0.15)
    empty = DAG(nodes=truth.nodes)
    lines = str(compare_graphs(empty, truth)).splitlines()
    assert lines[0].endswith(f"0 edges learned, {truth.n_edges} true")
    assert f"SHD {truth.n_edges}" in "\n".join(lines)
    assert lines[-1].endswith(f"and {truth.n_edges - 6} more")
    assert "effects wrong" in "\n".join(lines)
