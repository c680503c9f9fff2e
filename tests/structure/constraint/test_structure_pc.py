"""PC: exact with an oracle, knowledge obeyed, contradictions reported, the same skeleton as causal-learn from data."""

import warnings
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.ci_tests import G2, CITest, Oracle
from markovia.graphs.kinds.mixed import Mark
from markovia.runtime.clock import Clock
from markovia.structure.constraint.adjacency_search import adjacency_search
from markovia.structure.task.knowledge import Knowledge
from places import BENCHMARKS

BIF = BENCHMARKS / "bif"
NAMES = list("abcdefg")


@st.composite
def dags(draw, most=7):
    n = draw(st.integers(1, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = draw(st.sampled_from([0.2, 0.4, 0.7]))
    order = [str(v) for v in rng.permutation(NAMES[:n])]
    edges = [(a, b) for a, b in combinations(order, 2) if rng.random() < density]
    return mk.graphs.DAG(edges, nodes=NAMES[:n])


@settings(max_examples=60)
@given(dag=dags(), stable=st.booleans(), rule=st.sampled_from(["standard", "conservative", "majority"]))
def test_an_oracle_gives_exactly_the_completed_graph(dag, stable, rule):
    found = mk.learn_structure(method="pc", test=dag, stable=stable, orientation=rule)
    assert found.graph == mk.graphs.cpdag(dag)
    assert not found.notes
    assert mk.graphs.i_equivalent(found.dag, dag)
    for (x, y), separator in found.separating_sets.items():
        assert mk.graphs.d_separated(dag, x, y, separator)
        assert found.separating_sets[y, x] == separator
    apart = {frozenset(p) for p in combinations(dag.nodes, 2)} - {frozenset(e) for e in dag.edges}
    assert {frozenset(p) for p in found.separating_sets} == apart


@settings(max_examples=40)
@given(dag=dags(), seed=st.integers(0, 1000))
def test_with_an_oracle_true_knowledge_only_adds_directions(dag, seed):
    rng = np.random.default_rng(seed)
    required = [e for e in dag.edges if rng.random() < 0.4]
    absent = [(a, b) for a in dag.nodes for b in dag.nodes if a != b and (a, b) not in dag.edges]
    forbidden = [e for e in absent if rng.random() < 0.3]
    found = mk.learn_structure(method="pc", test=dag, required=required, forbidden=forbidden)
    assert found.skeleton == dag.skeleton()
    directed = set(found.graph.directed_edges())
    assert directed <= set(dag.edges)
    assert directed >= set(required)
    assert directed >= set(mk.graphs.cpdag(dag).directed_edges())
    assert not directed & set(forbidden)
    known = {(a, b) for a, b in dag.edges if (a, b) in required or (b, a) in forbidden}
    start = mk.graphs.cpdag(dag)
    for a, b in known:
        start.set_marks(a, b, Mark.TAIL, Mark.ARROW)
    assert found.graph == mk.graphs.meek(start)


def test_tiers_direct_edges_and_forbid_others():
    dag = mk.graphs.DAG([("a", "b"), ("b", "c")])
    assert mk.learn_structure(method="pc", test=dag).graph == mk.graphs.MixedGraph(["a --- b", "b --- c"])
    found = mk.learn_structure(method="pc", test=dag, tiers=[["a"], ["b", "c"]])
    assert found.graph == mk.graphs.MixedGraph(["a --> b", "b --> c"])


def test_a_required_edge_stays_and_a_forbidden_pair_goes_whatever_the_tests_say():
    dag = mk.graphs.DAG([("a", "b"), ("b", "c")], nodes=list("abcd"))
    found = mk.learn_structure(
        method="pc", test=dag, required=[("d", "a")], forbidden=[("b", "c"), ("c", "b")]
    )
    assert ("d", "a") in found.graph.directed_edges()
    assert not found.graph.adjacent("b", "c")
    # nothing separates b and c, so nothing is concluded about triples they end
    assert ("b", "c") not in found.separating_sets


def test_the_largest_number_of_parents_is_obeyed():
    dag = mk.graphs.DAG([("a", "d"), ("b", "d"), ("c", "d")])
    found = mk.learn_structure(method="pc", test=dag, max_parents=2)
    assert len(found.graph.parents("d")) <= 2
    assert found.details.conflicts
    assert any("more than 2 parents" in note for note in found.notes)
    assert mk.learn_structure(method="pc", test=dag, max_parents=0).n_edges == 0
    both = mk.learn_structure(method="pc", test=dag, max_parents=2, conflicts="bidirected")
    assert len(both.graph.parents("d")) <= 2


def test_a_hidden_common_cause_shows_as_a_contradiction():
    dag = mk.graphs.DAG([("x1", "x2"), ("l", "x2"), ("l", "x4"), ("x3", "x4")])
    oracle = Oracle(dag, latent="l")
    found = mk.learn_structure(method="pc", test=oracle)
    assert found.skeleton == mk.graphs.UndirectedGraph(
        [("x1", "x2"), ("x2", "x4"), ("x3", "x4")], nodes=found.nodes
    )
    # an oracle is equally sure of both v-structures: the one of the first columns stands
    assert {(c.tail, c.head) for c in found.details.conflicts} == {("x2", "x4")}
    assert found.graph == mk.graphs.MixedGraph(["x1 --> x2", "x4 --> x2", "x4 --- x3"], nodes=found.nodes)
    assert any("conflict" in note for note in found.notes)
    assert found.graph.is_acyclic()
    assert len(found.dag.edges) == 3
    both = mk.learn_structure(method="pc", test=oracle, conflicts="bidirected")
    assert both.graph == mk.graphs.MixedGraph(["x1 --> x2", "x2 <-> x4", "x3 --> x4"])
    assert any("x2 <-> x4" in note for note in both.notes)
    with pytest.raises(mk.errors.InvalidArgument, match="hidden causes"):
        _ = both.dag


class _Measured(CITest):
    """Independencies with the p-values that are given; all else depends."""

    name = "measured"

    def __init__(self, names, p_values):
        super().__init__(names, 0.05)
        self.found = {(frozenset(pair), frozenset(z)): p for (*pair, z), p in p_values.items()}

    def _compute(self, queries):
        n = self.names
        keys = [(frozenset((n[x], n[y])), frozenset(n[v] for v in z)) for x, y, z in queries]
        return np.array([self.found.get(key, 0.0) for key in keys])


@pytest.mark.parametrize("order", ["abcd", "dcba", "cadb"])
def test_of_two_v_structures_that_contradict_each_other_the_one_with_the_larger_p_value_wins(order):
    """a -> b <- c and b -> c <- d both want the edge between b and c."""
    for left, right, edges, lost in (
        (0.9, 0.2, ["a --> b", "c --> b", "c --- d"], {("b", "c")}),
        (0.2, 0.9, ["b --> c", "d --> c", "a --- b"], {("c", "b")}),
    ):
        test = _Measured(list(order), {("a", "c", ""): left, ("b", "d", ""): right, ("a", "d", ""): 0.5})
        found = mk.learn_structure(method="pc", test=test)
        assert found.graph == mk.graphs.MixedGraph(edges, nodes=list(order))
        assert {(c.tail, c.head) for c in found.details.conflicts} == lost


def test_a_distribution_may_be_the_oracle():
    model = mk.examples.sprinkler()
    found = mk.learn_structure(method="pc", test=Oracle(model, by="distribution"))
    assert found.graph == mk.graphs.cpdag(model.graph)
    answer = mk.learn_structure(
        method="pc", test=Oracle(lambda x, y, given: {x, y} == {"a", "b"} and not given, names=list("abc"))
    )
    assert answer.graph == mk.graphs.MixedGraph(["a --> c", "b --> c"], nodes=list("abc"))


def test_the_y_structure_and_the_clique_of_the_lecture():
    y = mk.graphs.DAG([("x1", "x3"), ("x2", "x3"), ("x3", "x4")])
    assert mk.learn_structure(method="pc", test=y).graph == mk.graphs.MixedGraph.from_dag(y)
    clique = mk.graphs.DAG([("x2", "x3"), ("x2", "x1"), ("x3", "x1")])
    assert not mk.learn_structure(method="pc", test=clique).graph.directed_edges()


class _Said(CITest):
    """Independencies as they are listed, faithful to a graph or not."""

    name = "said"

    def __init__(self, names, independent):
        super().__init__(names, 0.5)
        self.independencies = {(frozenset((x, y)), frozenset(z)) for x, y, z in independent}

    def _compute(self, queries):
        n = self.names
        return np.array(
            [
                float((frozenset((n[x], n[y])), frozenset(n[v] for v in z)) in self.independencies)
                for x, y, z in queries
            ]
        )


def test_conservative_and_majority_rules_differ_where_separating_sets_disagree():
    # a and c are independent alone, given b and given d: b is in one of three sets (c - d - a is a triple as well)
    said = [("a", "c", ""), ("a", "c", "b"), ("a", "c", "d")]
    names = list("abcd")
    standard = mk.learn_structure(method="pc", test=_Said(names, said), forbidden=[("b", "d"), ("d", "b")])
    assert set(standard.graph.directed_edges()) == {("a", "b"), ("c", "b"), ("a", "d"), ("c", "d")}
    careful = mk.learn_structure(
        method="pc", test=_Said(names, said), orientation="conservative", forbidden=[("b", "d"), ("d", "b")]
    )
    assert not careful.graph.directed_edges()
    assert ("a", "b", "c") in careful.details.ambiguous
    assert any("ambiguous" in note for note in careful.notes)
    most = mk.learn_structure(
        method="pc", test=_Said(names, said), orientation="majority", forbidden=[("b", "d"), ("d", "b")]
    )
    assert set(most.graph.directed_edges()) >= {("a", "b"), ("c", "b")}


def test_nothing_is_concluded_from_an_ambiguous_triple():
    # a -> b is known; b - c would be directed by rule 1 if a - b - c were known not to be a collider
    said = [("a", "c", ""), ("a", "c", "b")]
    found = mk.learn_structure(
        method="pc", test=_Said(list("abc"), said), orientation="conservative", required=[("a", "b")]
    )
    assert found.graph == mk.graphs.MixedGraph(["a --> b", "b --- c"])


ROWS = mk.examples.sprinkler().sample(3000, seed=1)


def test_edges_have_p_values_and_tests_can_be_left_out():
    found = mk.learn_structure(ROWS, method="pc", test="g2", alpha=0.01)
    assert len(found.tests) == found.n_tests
    frame = found.test_frame()
    for (a, b), p in found.details.edge_p_values.items():
        own = frame[((frame.x == a) & (frame.y == b)) | ((frame.x == b) & (frame.y == a))]
        assert p == own.p_value.max() <= 0.01
    assert set(found.details.edge_p_values) == {
        tuple(sorted(e, key=found.nodes.index)) for e in found.skeleton.edges
    }
    assert mk.learn_structure(ROWS, method="pc", keep_tests=False).tests == []
    assert len(mk.learn_structure(ROWS, method="pc", keep_tests=2).tests) == 2


def test_the_order_independent_search_does_not_depend_on_the_order_of_columns():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        rng.normal(size=(80, 8)) @ rng.normal(size=(8, 8)), columns=[f"v{k}" for k in range(8)]
    )
    found = mk.learn_structure(frame, method="pc", alpha=0.1)
    turned = mk.learn_structure(frame[frame.columns[::-1]], method="pc", alpha=0.1)
    assert found.skeleton == turned.skeleton


def test_threads_and_processes_do_not_change_the_answer():
    one = mk.learn_structure(ROWS, method="pc", parallel=False)
    many = mk.learn_structure(ROWS, method="pc", parallel=True)
    assert (one.graph, one.tests) == (many.graph, many.tests)


def test_a_file_gives_the_same_graph_as_memory(tmp_path):
    ROWS.to_parquet(tmp_path / "rows.parquet")
    far = mk.learn_structure(str(tmp_path / "rows.parquet"), method="pc", test="chi2")
    near = mk.learn_structure(ROWS, method="pc", test="chi2")
    assert far.graph == near.graph
    assert far.separating_sets == near.separating_sets


def test_depth_limits_the_sets_and_time_keeps_what_is_there():
    found = mk.learn_structure(ROWS, method="pc", depth=0)
    assert all(not made.given for made in found.tests)
    stopped = mk.learn_structure(ROWS, method="pc", time_limit=1e-9)
    assert stopped.stopped == "time limit"
    assert stopped.n_edges == 6
    assert any("stopped before" in note for note in stopped.notes)
    with pytest.raises(mk.errors.InvalidArgument, match="depth= is"):
        mk.learn_structure(ROWS, method="pc", depth=-1)
    with pytest.raises(mk.errors.InvalidArgument, match="orientation="):
        mk.learn_structure(ROWS, method="pc", orientation="bold")


def test_the_first_separating_set_in_the_stated_order_is_kept():
    test = _Said(list("abcd"), [("b", "c", "a"), ("b", "c", "d"), ("a", "d", "bc")])
    rules = Knowledge().rules(test.names)
    with Clock(progress=False) as clock:
        found = adjacency_search(test, rules, clock)
    assert found.separators == {(1, 2): (0,), (0, 3): (1, 2)}


def _causal_learn_skeleton(cells, test, stable=True, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pc = pytest.importorskip("causallearn.search.ConstraintBased.PC").pc
        graph = pc(cells, 0.05, test, stable=stable, show_progress=False, **settings).G.graph
    return {(i, j) for i, j in combinations(range(len(graph)), 2) if graph[i, j] != 0 or graph[j, i] != 0}


def _skeleton(found):
    number = {name: k for k, name in enumerate(found.nodes)}
    return {tuple(sorted((number[a], number[b]))) for a, b in found.skeleton.edges}


@pytest.mark.parametrize("seed", range(4))
def test_skeletons_are_those_of_causal_learn(seed):
    rng = np.random.default_rng(seed)
    weights = np.triu(rng.normal(size=(7, 7)) * (rng.random((7, 7)) < 0.4), 1)
    numbers = rng.normal(size=(200, 7)) @ np.linalg.inv(np.eye(7) - weights)
    assert _skeleton(mk.learn_structure(numbers, method="pc", test="fisher-z")) == _causal_learn_skeleton(
        numbers, "fisherz"
    )
    cells = (numbers[:, :, None] > np.array([-0.7, 0.7])).sum(axis=2)
    for ours, theirs in (("g2", "gsq"), ("chi2", "chisq")):
        found = mk.learn_structure(cells, method="pc", test=ours)
        assert _skeleton(found) == _causal_learn_skeleton(cells, theirs)


@pytest.mark.skipif(not (BIF / "alarm.bif.gz").exists(), reason="the benchmark models are not here")
@pytest.mark.parametrize(
    ("network", "rows"), [("child", 500), pytest.param("alarm", 5000, marks=pytest.mark.slow)]
)
def test_samples_of_a_network_give_causal_learns_skeleton(network, rows):
    frame = mk.load(BIF / f"{network}.bif.gz").sample(rows, seed=5)
    cells = np.column_stack([frame[c].astype("category").cat.codes for c in frame.columns]).astype(np.int64)
    found = mk.learn_structure(frame, method="pc", test=G2(alpha=0.05))
    assert _skeleton(found) == _causal_learn_skeleton(cells, "gsq")


@pytest.mark.parametrize("test", [mk.ci_tests.G2(), mk.ci_tests.ChiSquare(), mk.ci_tests.G2(dof="full")])
def test_many_pairs_and_single_sets_tested_together_give_what_one_by_one_gives(test, monkeypatch):
    from markovia.structure.ci_tests import table_tests

    network = mk.generators.random_bayesian_network(70, max_parents=2, seed=3)
    rows = network.sample(600, seed=1)
    together = mk.learn_structure(rows, method="pc", test=test)
    monkeypatch.setattr(table_tests, "MANY", 10**6)
    single = mk.learn_structure(rows, method="pc", test=test)
    assert together.graph == single.graph
    assert together.separating_sets == single.separating_sets
    assert together.n_tests == single.n_tests == len(together.tests)
    made = {(t.x, t.y, t.given): t.p_value for t in together.tests}
    assert made == pytest.approx({(t.x, t.y, t.given): t.p_value for t in single.tests}, rel=1e-6, abs=1e-9)
    assert together.details.edge_p_values == pytest.approx(single.details.edge_p_values, rel=1e-6, abs=1e-9)
    assert together.tests[-1] == list(together.tests)[-1]


def test_sets_tried_as_arrays_are_those_tried_one_by_one(monkeypatch):
    from markovia.structure.ci_tests import ci_tests
    from markovia.structure.constraint import adjacency_search

    dag = mk.graphs.random_dag(70, max_parents=3, seed=1)
    network = mk.BayesianNetwork(dag, states=dict.fromkeys(dag.nodes, 2), tables="random", seed=1)
    rows = network.sample(2000, seed=1)
    arrays = mk.learn_structure(rows, method="pc")
    monkeypatch.setattr(ci_tests, "MOST_KEPT", 1)  # all pairs are kept, and the other tests counted
    few = mk.learn_structure(rows, method="pc")
    monkeypatch.setattr(adjacency_search, "SETS_OF_A_NODE", 0)
    single = mk.learn_structure(rows, method="pc")
    assert max(map(len, arrays.separating_sets.values())) > 1
    assert arrays.graph == few.graph == single.graph
    assert dict(arrays.separating_sets) == dict(few.separating_sets) == dict(single.separating_sets)
    assert arrays.details.edge_p_values == pytest.approx(single.details.edge_p_values)
    assert arrays.n_tests == few.n_tests == len(arrays.tests) > len(few.tests) == 70 * 69 // 2
