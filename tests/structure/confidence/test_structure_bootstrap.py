"""How sure edges are: the bootstrap, averaged networks, strengths of single edges."""

import os
import signal
import threading
from math import log

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import markovia as mk
from markovia.data.tables.reading_mixed import read_mixed
from markovia.structure.ci_tests.ci_tests import CITest
from markovia.structure.confidence import bootstrap as bootstrap_module
from markovia.structure.confidence.model_averaging import EdgeConfidence, edge_flags, significance_threshold
from markovia.structure.task.knowledge import Knowledge

mpl.use("agg")
TRUTH = mk.examples.sprinkler()
ROWS = TRUTH.sample(400, seed=1)


def confidence(names, arrows, lines=(), **more):
    """Return confidences from shares by name."""
    number = {n: i for i, n in enumerate(names)}
    a, b = np.zeros((len(names),) * 2), np.zeros((len(names),) * 2)
    for (x, y), share in dict(arrows).items():
        a[number[x], number[y]] = share
    for (x, y), share in dict(lines).items():
        b[number[x], number[y]] = b[number[y], number[x]] = share
    return EdgeConfidence(tuple(names), a, b, "by hand", n_graphs=100, asked=100, **more)


# -- the threshold ---------------------------------------------------------------------------------------------------


def test_the_threshold_of_the_paper_s_example():
    assert significance_threshold(np.array([0.0460, 0.2242, 0.3921, 0.7689, 0.8935, 0.9439])) == 0.3921


@pytest.mark.parametrize("seed", range(20))
def test_the_threshold_is_nearest_to_an_ideal_distribution(seed):
    rng = np.random.default_rng(seed)
    values = np.sort(rng.beta(0.4, 0.4, rng.integers(1, 15)))
    found = significance_threshold(values)
    xs = (np.arange(20_000) + 0.5) / 20_000
    share = np.searchsorted(values, xs, side="right") / len(values)
    distance = {t: np.abs(share - t).mean() for t in np.linspace(0, 1, 301)}
    own = np.mean(values <= found)  # t whose quantile the threshold is
    assert np.abs(share - own).mean() <= min(distance.values()) + 1e-3


def test_sure_and_impossible_edges_need_no_threshold():
    assert significance_threshold(np.array([0.0, 0.0, 1.0])) == 0.0
    assert significance_threshold(np.array([1.0, 1.0])) == 0.0
    assert significance_threshold(np.zeros(3)) == 0.0
    assert significance_threshold(np.array([])) == 0.0


# -- averaged networks -----------------------------------------------------------------------------------------------


def test_strength_and_direction_are_shares():
    sure = confidence("abc", {("a", "b"): 0.6, ("b", "a"): 0.1}, {("a", "b"): 0.2, ("b", "c"): 0.4})
    assert sure.adjacent("a", "b") == pytest.approx(0.9)
    assert sure["a", "b"] == 0.6
    assert sure.direction[0, 1] == pytest.approx((0.6 + 0.1) / 0.9)
    assert sure.direction[0, 1] + sure.direction[1, 0] == pytest.approx(1)
    assert sure.direction[0, 2] == 0
    frame = sure.to_pandas()
    assert frame.iloc[0].to_dict() == pytest.approx(
        {
            "from": "a", "to": "b", "strength": 0.9, "direction": 7 / 9,
            "forward": 0.6, "backward": 0.1, "undirected": 0.2,
        }
    )  # fmt: skip
    with pytest.raises(mk.errors.UnknownVariable):
        sure.adjacent("a", "z")
    with pytest.raises(mk.errors.InvalidArgument, match="pair"):
        _ = sure["ab"]


def test_a_consensus_without_the_arrows_that_graphs_do_not_decide_is_a_class_it_belongs_to():
    names = ("d", "a", "c", "b", "e")
    arrows, lines = np.zeros((5, 5)), np.zeros((5, 5))
    at = {n: k for k, n in enumerate(names)}
    for tail, head, share in (
        ("a", "b", 0.5),
        ("b", "a", 0.1),
        ("a", "c", 0.9),
        ("d", "c", 0.8),
        ("b", "e", 0.3),
        ("e", "b", 0.3),
    ):
        arrows[at[tail], at[head]] = share
    lines[at["a"], at["b"]] = lines[at["b"], at["a"]] = 0.3
    found = EdgeConfidence(names, arrows, lines, "pc", n_graphs=10)
    graph = found.consensus(0.5).graph
    known = found.undecided(graph)
    # a -> b has a majority, a -> c <- d is a collider, b - e is a tie: but turned into b it would be a new collider
    assert set(known.directed_edges() if known else graph.edges) >= {("a", "b"), ("a", "c"), ("d", "c")}
    assert known is None
    lines[at["a"], at["b"]] = lines[at["b"], at["a"]] = 0.7
    open_now = found.undecided(graph)
    assert {frozenset(e) for e in open_now.undirected_edges()} == {frozenset("ab"), frozenset("be")}
    assert set(open_now.directed_edges()) == {("a", "c"), ("d", "c")}
    network = mk.BayesianNetwork(graph)
    network.equivalence_class = open_now


def test_a_consensus_takes_the_direction_of_the_majority():
    sure = confidence("abc", {("a", "b"): 0.6, ("b", "a"): 0.3, ("c", "b"): 0.9, ("a", "c"): 0.2})
    assert set(sure.consensus(0.5).edges) == {("a", "b"), ("c", "b")}
    assert set(sure.consensus(0.2).skeleton.edges) == {("a", "b"), ("b", "c"), ("a", "c")}
    assert sure.consensus(1.0).n_edges == 0
    with pytest.raises(mk.errors.InvalidArgument, match="threshold"):
        sure.consensus(0)


def test_a_consensus_has_no_cycle_and_says_what_it_turned():
    sure = confidence("abc", {("a", "b"): 0.9, ("b", "c"): 0.8, ("c", "a"): 0.7})
    found = sure.consensus(0.5)
    assert set(found.edges) == {("a", "b"), ("b", "c"), ("a", "c")}
    assert "turned" in found.notes[0]
    rules = Knowledge(forbidden=[("a", "c")]).rules("abc")
    found = confidence("abc", {("a", "b"): 0.9, ("b", "c"): 0.8, ("c", "a"): 0.7}, rules=rules).consensus(0.5)
    assert set(found.edges) == {("a", "b"), ("b", "c")}
    assert "left out" in found.notes[0]


def test_lines_are_directed_without_a_new_collider():
    sure = confidence("abcd", {("a", "b"): 0.9}, {("b", "c"): 1.0, ("c", "d"): 1.0})
    assert set(sure.consensus(0.5).edges) == {("a", "b"), ("b", "c"), ("c", "d")}


def test_a_consensus_obeys_what_is_known():
    rules = Knowledge(required=[("c", "a")], tiers=[["c"], ["a", "b"]], max_parents=1).rules("abc")
    sure = confidence("abc", {("b", "a"): 1.0}, {("a", "b"): 0.0, ("b", "c"): 0.9}, rules=rules)
    found = sure.consensus(0.5)
    assert set(found.edges) == {("c", "a"), ("a", "b")}
    assert "a -> b is turned" in found.notes[0]


def test_random_shares_always_give_an_acyclic_graph_within_the_rules():
    rng = np.random.default_rng(0)
    names = [f"v{i}" for i in range(7)]
    for _ in range(40):
        rules = Knowledge(
            tiers=[names[:2], names[2:5]], forbidden=[(names[5], names[0])], max_parents=3
        ).rules(names)
        raw = rng.dirichlet([0.5, 0.5, 0.5, 1.0], size=(7, 7))
        arrows = np.triu(raw[..., 0], 1) + np.triu(raw[..., 1], 1).T
        lines = np.triu(raw[..., 2], 1)
        arrows *= rules.allowed
        lines = (lines + lines.T) * rules.pairs
        found = EdgeConfidence(tuple(names), arrows, lines, "by hand", rules=rules).consensus(0.3)
        number = {n: i for i, n in enumerate(names)}
        assert all(rules.allowed[number[a], number[b]] for a, b in found.edges)
        assert max(len(found.dag.parents(n)) for n in names) <= 3


def test_directions_that_follow_from_knowledge_count_at_the_level_of_classes():
    dag = mk.graphs.DAG([("a", "b"), ("b", "c")])
    free = Knowledge().rules("abc")
    arrows, lines = edge_flags(dag, "abc", "cpdag", free)
    assert not arrows.any()
    assert lines.sum() == 4
    arrows, lines = edge_flags(dag, "abc", "cpdag", Knowledge(tiers=[["a"], ["b", "c"]]).rules("abc"))
    assert arrows[0, 1]
    assert arrows[1, 2]  # by Meek's first rule
    arrows, _ = edge_flags(dag, "abc", "dag", free)
    assert arrows.sum() == 2
    arrows, lines = edge_flags(mk.graphs.MixedGraph(["a o-> b", "b --> c"]), "abc", "cpdag", free)
    assert lines[0, 1]
    assert arrows[1, 2]


def test_undirected_graphs_have_an_undirected_consensus():
    found = confidence("abc", {}, {("a", "b"): 0.9}, undirected=True).consensus(0.5)
    assert found.graph == mk.graphs.UndirectedGraph([("a", "b")], nodes=["a", "b", "c"])
    with pytest.raises(mk.errors.InvalidArgument, match="ancestral"):
        confidence("ab", {}, ancestral=True).consensus()


# -- the bootstrap ---------------------------------------------------------------------------------------------------


def test_the_edges_of_the_truth_come_back():
    sure = mk.bootstrap_structure(ROWS, replicates=40, seed=0)
    assert sure.n_graphs == 40
    for a, b in (("cloudy", "rain"), ("sprinkler", "wet"), ("rain", "wet")):
        assert sure.adjacent(a, b) > 0.9
    assert sure.adjacent("cloudy", "wet") < 0.3
    found = sure.consensus()
    assert found.dag.skeleton().has_edge("rain", "wet")
    assert found.fit().query("rain")["yes"] == pytest.approx(np.mean(ROWS["rain"] == "yes"))
    assert "40 graphs" in str(sure)
    assert "<table>" in sure._repr_html_()


def resampling_cases():
    """Tables of four kinds of rows that occur 1, 2, 3 and 6 times, and what tells the kinds apart."""
    times = [1, 2, 3, 6]
    kinds = np.repeat(np.arange(4), times)
    long = pd.DataFrame({"k": kinds, "x": kinds * 1.5})
    short = pd.DataFrame({"k": range(4), "x": np.arange(4) * 1.5})
    yield "states", read_mixed(long[["k"]])
    yield "groups of equal rows", read_mixed(long[["k"]]).grouped()
    yield "weighted states", read_mixed(short[["k"]], weights=times)
    yield "measurements", read_mixed(long[["x"]], continuous=["x"])
    yield "weighted measurements", read_mixed(short[["x"]], continuous=["x"], weights=times)
    yield "states and measurements", read_mixed(long, continuous=["x"])
    yield "weighted states and measurements", read_mixed(short, continuous=["x"], weights=times)


@pytest.mark.parametrize(("what", "mixed"), list(resampling_cases()))
def test_replicates_have_the_moments_of_a_multinomial(what, mixed):
    """Of n rows drawn with replacement, kind i is there n p_i times on average, with covariance n (p_i [i=j] - p_i p_j)."""
    rng, draws = np.random.default_rng(0), 3000
    counts = np.zeros((draws, 4))
    for row in counts:
        drawn = mixed.resampled(rng)
        if mixed.matrix is None:
            table = drawn.codes()
            kinds, weights = table.codes[0], table.weights
        else:
            kinds, weights = (drawn.matrix[:, -1] / 1.5).round().astype(int), drawn.weights
        row += np.bincount(kinds, weights, 4)
        if mixed.matrix is not None and mixed.table is not None:
            assert np.array_equal(drawn.codes().codes[0], kinds)  # a row stays whole
    p = np.array([1, 2, 3, 6]) / 12
    assert (counts.sum(axis=1) == 12).all()
    spread = 12 * (np.diag(p) - np.outer(p, p))
    assert (np.abs(counts.mean(axis=0) - 12 * p) < 5 * np.sqrt(np.diag(spread) / draws)).all()
    np.testing.assert_allclose(np.cov(counts.T), spread, atol=0.3)


def test_the_share_of_an_edge_is_the_chance_that_a_multinomial_sample_shows_it():
    """BIC joins two columns where rows times their information is above log(rows) / 2; the chance by NumPy's draws."""
    cells = np.array([[14, 7], [6, 13]])
    rows = pd.DataFrame(
        np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], cells.ravel(), axis=0), columns=list("ab")
    )
    drawn = np.random.default_rng(1).multinomial(40, cells.ravel() / 40, size=20_000).reshape(-1, 2, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        margins = drawn.sum(axis=2)[:, :, None] * drawn.sum(axis=1)[:, None, :] / 40
        gain = np.where(drawn > 0, drawn * np.log(drawn / margins), 0.0).sum(axis=(1, 2))
    chance = np.mean(gain > np.log(40) / 2)
    assert 0.3 < chance < 0.9
    found = mk.bootstrap_structure(rows, replicates=200, seed=5, score="bic").adjacent("a", "b")
    assert found == pytest.approx(chance, abs=4 * np.sqrt(chance * (1 - chance) / 200))
    assert 0 < found < 1


def test_shares_are_those_of_searches_on_the_same_samples():
    sure = mk.bootstrap_structure(ROWS, replicates=5, seed=3, level="dag")
    mixed = read_mixed(ROWS).grouped()
    total = np.zeros((4, 4))
    for rng in np.random.default_rng(3).spawn(5):
        found = mk.learn_structure(mixed.resampled(rng))
        total += edge_flags(found.graph, mixed.names, "dag", Knowledge().rules(mixed.names))[0]
    np.testing.assert_allclose(sure.arrows, total / 5)


def test_the_number_of_jobs_does_not_change_the_answer():
    one = mk.bootstrap_structure(ROWS, replicates=6, seed=7)
    two = mk.bootstrap_structure(ROWS, replicates=6, seed=7, n_jobs=2)
    np.testing.assert_array_equal(one.arrows, two.arrows)
    np.testing.assert_array_equal(one.lines, two.lines)


def test_knowledge_holds_in_every_replicate():
    sure = mk.bootstrap_structure(
        ROWS, replicates=8, seed=0, required=[("wet", "cloudy")], forbidden=[("rain", "wet"), ("wet", "rain")]
    )
    assert sure["wet", "cloudy"] == 1
    assert sure.adjacent("rain", "wet") == 0
    assert ("wet", "cloudy") in sure.consensus().edges


def test_a_time_limit_keeps_finished_replicates():
    sure = mk.bootstrap_structure(ROWS, replicates=100_000, seed=0, time_limit=0.3)
    assert 1 <= sure.n_graphs < 100_000
    assert sure.stopped == "time limit"
    assert "of 100,000 asked for" in str(sure)
    with pytest.raises(mk.errors.InvalidArgument, match="no replicate"):
        mk.bootstrap_structure(ROWS, replicates=10, time_limit=1e-9)


def test_ctrl_c_keeps_finished_replicates(monkeypatch):
    real = bootstrap_module._replicate
    done = []

    def slowly(*args):
        if len(done) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        done.append(1)
        return real(*args)

    monkeypatch.setattr(bootstrap_module, "_replicate", slowly)
    sure = mk.bootstrap_structure(ROWS, replicates=50, seed=0)
    assert sure.stopped == "interrupted"
    assert sure.n_graphs == 3  # the fourth saw the flag before its end
    assert threading.active_count() < 50


def test_arguments_of_the_bootstrap_are_checked():
    for replicates in (0, 2.5, True):
        with pytest.raises(mk.errors.InvalidArgument, match="replicates"):
            mk.bootstrap_structure(ROWS, replicates=replicates)
    with pytest.raises(mk.errors.InvalidArgument, match="level="):
        mk.bootstrap_structure(ROWS, level="pag")
    with pytest.raises(mk.errors.UnknownArgument, match="takes no lenght"):
        mk.bootstrap_structure(ROWS, lenght=1)


def test_confidences_are_drawn(tmp_path):
    sure = mk.bootstrap_structure(ROWS, replicates=10, seed=0)
    ax = sure.plot()
    edges = [p for p in ax.patches if p.get_gid() == "edge"]
    drawn = sum(row[2] >= max(0.05, sure.threshold / 4) for row in sure._rows())
    assert len(edges) == drawn
    widest = max(edges, key=lambda p: p.get_linewidth())
    assert widest.get_alpha() == pytest.approx(0.2 + 0.8 * sure.strength.max())
    assert sum(t.get_gid() == "share" for t in ax.texts) == drawn
    assert not [t for t in sure.plot(labels=False).texts if t.get_gid() == "share"]
    with pytest.raises(mk.errors.InvalidArgument, match="least="):
        sure.plot(least=2)
    round_trip = confidence("abc", {("a", "b"): 0.9, ("b", "c"): 0.9, ("c", "a"): 0.9})
    assert round_trip.plot() is not None  # a cycle has no layers
    with pytest.raises(mk.errors.InvalidArgument, match="spring"):
        round_trip.plot(layout="layered")


# -- single edges ----------------------------------------------------------------------------------------------------


def test_the_score_lost_with_an_edge_is_the_difference_of_two_graphs():
    from markovia.structure.scores.scores import bind_score

    score = bind_score("bic", read_mixed(ROWS))
    names = list(ROWS.columns)
    graph = TRUTH.graph
    whole = score.total([[names.index(p) for p in graph.parents(n)] for n in names])
    found = mk.edge_strength(TRUTH, ROWS, "score")
    assert set(found) == set(graph.edges)
    for a, b in graph.edges:
        rest = [[names.index(p) for p in graph.parents(n) if (p, n) != (a, b)] for n in names]
        assert found[a, b] == pytest.approx(whole - score.total(rest))
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert list(found.to_pandas().columns) == ["from", "to", "score"]
    assert "score of 4 edges, by bic" in str(found)
    assert "<table>" in found._repr_html_()


def test_mutual_information_of_tables_is_the_entropy_sum():
    found = mk.edge_strength(TRUTH, ROWS, "mutual-information")

    def entropy(names):
        p = ROWS.groupby(names, observed=True).size() / len(ROWS)
        return -sum(v * log(v) for v in p)

    z, x, y = "sprinkler", "rain", "wet"
    expected = entropy([x, z]) + entropy([y, z]) - entropy([x, y, z]) - entropy([z])
    assert found[x, y] == pytest.approx(expected)


def test_mutual_information_of_measurements_is_that_of_gaussians():
    rng = np.random.default_rng(0)
    a = rng.normal(size=500)
    b = 0.5 * a + rng.normal(size=500)
    c = a - b + rng.normal(size=500)
    frame = pd.DataFrame({"a": a, "b": b, "c": c})
    found = mk.edge_strength(mk.graphs.DAG([("a", "b"), ("a", "c"), ("b", "c")]), frame, "mutual-information")
    r = np.corrcoef(a, b)[0, 1]
    assert found["a", "b"] == pytest.approx(-0.5 * log(1 - r * r))
    inverse = np.linalg.inv(np.cov(frame.to_numpy().T))
    partial = -inverse[0, 2] / np.sqrt(inverse[0, 0] * inverse[2, 2])
    assert found["a", "c"] == pytest.approx(-0.5 * log(1 - partial**2))


class _ChiSquareOfPairs(CITest):
    """A test for pairs without conditions, by SciPy."""

    name = "pairs"

    def __init__(self, frame):
        super().__init__(list(frame.columns), 0.05)
        self.frame = frame

    def _compute(self, queries):
        found = []
        for x, y, given in queries:
            assert not given
            table = pd.crosstab(self.frame[self.names[x]], self.frame[self.names[y]])
            found.append(stats.chi2_contingency(table, correction=False).pvalue)
        return np.array(found)


def test_p_values_are_those_of_the_test_of_parent_and_child():
    tree = mk.graphs.DAG([("cloudy", "rain"), ("cloudy", "sprinkler"), ("rain", "wet")])
    test = _ChiSquareOfPairs(ROWS)
    found = mk.edge_strength(tree, ROWS, test=test)
    table = pd.crosstab(ROWS["rain"], ROWS["wet"])
    assert found["rain", "wet"] == pytest.approx(stats.chi2_contingency(table, correction=False).pvalue)
    assert list(found.values()) == sorted(found.values())
    assert found.by == "pairs"


def test_edges_of_learned_graphs_are_measured_with_their_rows():
    found = mk.learn_structure(ROWS)
    assert dict(mk.edge_strength(found, measure="score")) == pytest.approx(
        dict(mk.edge_strength(found.dag, ROWS, "score"))
    )
    assert all(value > 0 for value in mk.edge_strength(found, measure="score").values())
    with pytest.raises(mk.errors.InvalidArgument, match="read before"):
        mk.edge_strength(found, measure="score", weights=np.ones(len(ROWS)))


def test_arguments_of_edge_strength_are_checked():
    for settings, words in (
        ({"measure": "p"}, "measure="),
        ({"measure": "score", "test": "g2"}, "test= is for"),
        ({"score": "bic"}, "score= is for"),
        ({"missing": "no"}, "missing="),
    ):
        with pytest.raises(mk.errors.InvalidArgument, match=words):
            mk.edge_strength(TRUTH, ROWS, **settings)
    with pytest.raises(mk.errors.InvalidArgument, match="give the rows"):
        mk.edge_strength(TRUTH)
    with pytest.raises(mk.errors.InvalidArgument, match="directed graph"):
        mk.edge_strength(mk.graphs.UndirectedGraph([("rain", "wet")]), ROWS)
    with pytest.raises(mk.errors.UnknownVariable):
        mk.edge_strength(mk.graphs.DAG([("rain", "damp")]), ROWS, "score")
