"""The posterior over graphs against sums over all graphs, one by one."""

import warnings
from itertools import combinations, permutations, product
from math import factorial

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.data.tables.reading_mixed import read_mixed
from markovia.models.averaged_query import averaged_query
from markovia.structure.scores.scores import bind_score

ROWS = mk.examples.sprinkler().sample(60, seed=4)


def all_graphs(n):
    """Yield every directed acyclic graph over n numbered variables, as parents, with its number of topological orders."""
    orders = list(permutations(range(n)))
    sets = [[s for k in range(n) for s in combinations([p for p in range(n) if p != i], k)] for i in range(n)]
    for parents in product(*sets):
        many = 0
        for order in orders:
            place = {v: k for k, v in enumerate(order)}
            many += all(place[p] < place[i] for i, own in enumerate(parents) for p in own)
        if many:
            yield parents, many


def brute_force(frame, score="bic", by_orders=True, legal=lambda parents: True, prior=lambda parents: 1.0):
    """Return the edge probabilities, and the log of the sum of all weights, over every graph."""
    mixed = read_mixed(frame)
    bound = bind_score(score, mixed)
    n = len(mixed.names)
    logs, edges = [], []
    for parents, many in all_graphs(n):
        if not legal(parents):
            continue
        weight = bound.total(parents) + np.log(prior(parents)) + (np.log(many) if by_orders else 0.0)
        logs.append(weight)
        edges.append([[i in parents[j] for j in range(n)] for i in range(n)])
    top = max(logs)
    weights = np.exp(np.array(logs) - top)
    shares = np.tensordot(weights / weights.sum(), np.array(edges, dtype=float), axes=1)
    return shares, top + np.log(weights.sum()) - np.log(factorial(n))


@pytest.mark.parametrize("columns", [["cloudy", "rain"], ["cloudy", "rain", "wet"], list(ROWS.columns)])
def test_exact_sums_are_those_over_all_graphs(columns):
    expected, evidence = brute_force(ROWS[columns])
    found = mk.edge_posterior(ROWS, score="bic", names=columns)
    np.testing.assert_allclose(found.arrows, expected, atol=1e-10)
    assert found.log_evidence == pytest.approx(evidence)
    assert found.exact


def test_exact_sums_with_a_score_of_bayesians():
    expected, _ = brute_force(ROWS, "bdeu")
    np.testing.assert_allclose(mk.edge_posterior(ROWS).arrows, expected, atol=1e-10)


def test_exact_sums_obey_what_is_known():
    names = list(ROWS.columns)
    c, s, r, w = range(4)

    def legal(parents):
        return r in parents[w] and c not in parents[w] and s not in parents[c] and max(map(len, parents)) <= 2

    expected, _ = brute_force(ROWS, legal=legal)
    found = mk.edge_posterior(
        ROWS,
        score="bic",
        required=[("rain", "wet")],
        forbidden=[("cloudy", "wet"), ("sprinkler", "cloudy")],
        max_parents=2,
    )
    np.testing.assert_allclose(found.arrows, expected, atol=1e-10)
    assert found["rain", "wet"] == pytest.approx(1)
    assert names == list(found.names)


def test_numbers_of_parents_may_weigh_the_same():
    from math import comb

    expected, _ = brute_force(ROWS, prior=lambda parents: np.prod([1 / comb(3, len(own)) for own in parents]))
    found = mk.edge_posterior(ROWS, score="bic", prior="orders-by-size")
    np.testing.assert_allclose(found.arrows, expected, atol=1e-10)


def test_graphs_drawn_from_exact_sums_have_their_probabilities():
    found = mk.edge_posterior(ROWS, score="bic")
    draws = found.sample(2000, seed=0)
    names = found.names
    shares = np.array([[np.mean([g.has_edge(a, b) for g in draws]) for b in names] for a in names])
    np.testing.assert_allclose(shares, found.arrows, atol=4 * np.sqrt(0.25 / 2000))


def test_chains_over_orders_agree_with_exact_sums():
    exact = mk.edge_posterior(ROWS, score="bic")
    found = mk.edge_posterior(
        ROWS, score="bic", method="order-mcmc", steps=9000, warmup=300, chains=2, seed=0
    )
    np.testing.assert_allclose(found.arrows, exact.arrows, atol=0.04)  # about 4 standard errors
    assert found.r_hat < 1.1
    names = found.names
    draws = found.sample(1500, seed=1)
    shares = np.array([[np.mean([g.has_edge(a, b) for g in draws]) for b in names] for a in names])
    np.testing.assert_allclose(shares, found.arrows, atol=0.09)


def test_chains_over_orders_obey_required_edges():
    settings = {"score": "bic", "required": [("wet", "cloudy"), ("cloudy", "rain")]}
    exact = mk.edge_posterior(ROWS, **settings)
    found = mk.edge_posterior(ROWS, method="order-mcmc", steps=5000, warmup=200, chains=2, seed=0, **settings)
    np.testing.assert_allclose(found.arrows, exact.arrows, atol=0.04)


def test_chains_over_graphs_agree_with_a_uniform_prior():
    expected, _ = brute_force(ROWS, by_orders=False)
    found = mk.edge_posterior(ROWS, score="bic", method="mcmc", steps=60_000, warmup=2000, chains=2, seed=0)
    np.testing.assert_allclose(found.arrows, expected, atol=0.06)  # about 4 standard errors
    assert found.r_hat < 1.1
    assert found.ess > 100
    assert all(0 < a < 1 for a in found.accepted)


def test_chains_over_graphs_obey_what_is_known():
    c, s, r, w = range(4)

    def legal(parents):
        return r in parents[w] and s not in parents[c] and max(map(len, parents)) <= 2

    expected, _ = brute_force(ROWS, by_orders=False, legal=legal)
    found = mk.edge_posterior(
        ROWS,
        score="bic",
        method="mcmc",
        steps=60_000,
        warmup=2000,
        chains=2,
        seed=1,
        required=[("rain", "wet")],
        forbidden=[("sprinkler", "cloudy")],
        max_parents=2,
    )
    np.testing.assert_allclose(found.arrows, expected, atol=0.06)  # about 4 standard errors
    for graph in found.sample(50, seed=0):
        assert graph.has_edge("rain", "wet")
        assert not graph.has_edge("sprinkler", "cloudy")


def test_the_same_seed_gives_the_same_chains():
    settings = {"score": "bic", "method": "mcmc", "steps": 500, "warmup": 100, "chains": 2, "seed": 5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mk.errors.ConvergenceWarning)
        one, two = mk.edge_posterior(ROWS, **settings), mk.edge_posterior(ROWS, **settings)
    np.testing.assert_array_equal(one.arrows, two.arrows)


def test_chains_that_have_not_mixed_warn():
    rows = mk.examples.asia().sample(2000, seed=0)
    with pytest.warns(mk.errors.ConvergenceWarning, match="have not mixed"):
        mk.edge_posterior(rows, score="bic", method="mcmc", steps=400, warmup=0, chains=4, seed=0)


def test_answers_are_averaged_over_graphs_and_weighed_by_the_evidence():
    rows = ROWS[["cloudy", "rain"]]
    posterior = mk.edge_posterior(rows, score="bic")
    answer = posterior.query("rain", given={"cloudy": "yes"}, n=400, seed=0, prior="k2")
    joined = mk.BayesianNetwork(mk.graphs.DAG([("cloudy", "rain")])).fit(rows, prior="k2")
    apart = mk.BayesianNetwork(mk.graphs.DAG(nodes=["cloudy", "rain"])).fit(rows, prior="k2")
    turned = mk.BayesianNetwork(mk.graphs.DAG([("rain", "cloudy")])).fit(rows, prior="k2")
    expected = weights = 0.0
    for model, p in (
        (joined, posterior["cloudy", "rain"]),
        (turned, posterior["rain", "cloudy"]),
        (apart, 1 - posterior.adjacent("cloudy", "rain")),
    ):
        seen = p * np.exp(model.log_evidence(given={"cloudy": "yes"}))
        expected += seen * model.query("rain", given={"cloudy": "yes"})["yes"]
        weights += seen
    assert answer["yes"] == pytest.approx(expected / weights, abs=0.02)
    assert answer.draws.shape[0] == 400
    assert answer.info.details.different <= 3


def few_rows():
    """Rows of two columns for which an edge is about as probable as none."""
    counts = {("n", "n"): 9, ("n", "y"): 3, ("y", "n"): 3, ("y", "y"): 4}
    cells = [cell for cell, many in counts.items() for _ in range(many)]
    return pd.DataFrame(cells, columns=["a", "b"])


def test_graphs_that_make_the_evidence_more_probable_count_for_more():
    """P(b | e) = sum of draws' P(e | graph) P(b | e, graph) / sum of P(e | graph), with graphs and tables by hand."""
    rows = few_rows()
    # under an edge the joint table is counted, without one two margins; the prior of k2 adds one a cell
    joined = {"n": np.array([10, 4]) / 14, "y": np.array([4, 5]) / 9}
    first = np.array([13, 8]) / 21
    both = np.array([first[0] * joined["n"], first[1] * joined["y"]])  # a -> b
    apart = np.outer(first, np.array([13, 8]) / 21)
    third = np.array([12, 9]) / 21  # of c, which hangs on nothing or on b
    graphs = [mk.graphs.DAG([("a", "b")])] * 3 + [mk.graphs.DAG(nodes=["a", "b"])] * 5
    answer = averaged_query(graphs, rows, "b", {"a": "y"}, prior="k2")
    # the evidence is as probable under both graphs
    expected = (3 * both[1] + 5 * apart[1]) / (3 * both[1].sum() + 5 * apart[1].sum())
    np.testing.assert_allclose(answer.values, expected)
    # evidence on both ends tells the graphs apart
    rows["c"] = ["n"] * 11 + ["y"] * 8
    answer = averaged_query(
        [mk.graphs.DAG([("a", "b")], nodes=["a", "b", "c"])] * 3 + [mk.graphs.DAG([("b", "c")], nodes=["a", "b", "c"])],
        rows, "c", {"a": "y", "b": "y"}, prior="k2",
    )  # fmt: skip
    tally = pd.crosstab(rows["b"], rows["c"]).to_numpy() + 1.0
    given_b = tally[1] / tally[1].sum()
    weights = np.array([3 * both[1, 1], apart[1, 1]])
    np.testing.assert_allclose(answer.values, (weights[0] * third + weights[1] * given_b) / weights.sum())
    assert both[1, 1] > 1.2 * apart[1, 1]


def test_the_interval_of_an_averaged_answer_weighs_graphs_as_the_mean_does():
    """One graph of ten makes the evidence twice as probable as the nine: its share of the quantiles is 0.18, not 0.1."""
    a = ["n"] * 60 + ["y"] * 60
    rows = pd.DataFrame({"a": a, "b": a, "c": ["n", "y"] * 30 + ["y"] * 60})
    names = ["a", "b", "c"]
    graphs = [mk.graphs.DAG([("a", "c")], nodes=names)] * 9 + [mk.graphs.DAG([("a", "b")], nodes=names)]
    answer = averaged_query(graphs, rows, "c", {"a": "y", "b": "y"}, prior="k2")
    # P(a = y) is the same in all; P(b = y) is 1/2 in nine graphs, 61/62 in one; P(c = y | a = y) = 61/62 in the nine
    loose, bound = 9 * 0.5, 61 / 62
    plain = (rows["c"] == "y").sum() + 1
    expected = (loose * 61 / 62 + bound * plain / 122) / (loose + bound)
    assert answer["y"] == pytest.approx(expected)
    share = bound / (loose + bound)
    low = answer.interval(1 - 2 * share + 0.01).loc["y", "low"]
    assert low == pytest.approx(plain / 122)
    assert answer.interval(1 - 2 * share - 0.01).loc["y", "low"] == pytest.approx(61 / 62)
    assert answer.interval(0.95).loc["y", "high"] == pytest.approx(61 / 62)


def test_what_cannot_be_summed_is_said():
    rng = np.random.default_rng(0)
    wide = rng.integers(0, 2, (30, 21))
    with pytest.raises(mk.errors.TooLarge, match="order-mcmc"):
        mk.edge_posterior(wide, score="bic")
    for settings, words in (
        ({"method": "guess"}, "method="),
        ({"prior": "graphs"}, "prior= of exact"),
        ({"method": "mcmc", "prior": "orders"}, "prior= of mcmc"),
        ({"steps": 10}, "for Markov chains"),
        ({"method": "mcmc", "steps": 0}, "steps"),
        ({"method": "mcmc", "chains": 0}, "chains"),
        ({"missing": "no"}, "missing="),
    ):
        with pytest.raises(mk.errors.InvalidArgument, match=words):
            mk.edge_posterior(ROWS, "bic", **settings)
    with pytest.raises(mk.errors.Unanswered, match="time limit"):
        mk.edge_posterior(ROWS, "bic", time_limit=1e-9)
    with pytest.raises(mk.errors.Unanswered, match="before the first draw"):
        mk.edge_posterior(ROWS, "bic", method="mcmc", time_limit=1e-9)
    with pytest.raises(
        mk.errors.UnknownArgument, match=r"takes no max_parent= \(did you mean 'max_parents'\?\)"
    ):
        mk.edge_posterior(ROWS, "bic", max_parent=2)
    with pytest.raises(mk.errors.InvalidArgument, match="n= is a whole number"):
        mk.edge_posterior(ROWS, "bic").sample(0)


def test_a_posterior_reads_well_and_has_a_consensus():
    found = mk.edge_posterior(ROWS, score="bic")
    assert "exact sums (bic; a graph weighs as much as it has topological orders)" in str(found)
    assert repr(found).startswith("<EdgePosterior: probabilities of edges")
    assert found.consensus(0.5).dag.n_edges >= 2
    one = mk.edge_posterior(ROWS, score="bic", names=["rain"])
    assert one.arrows.tolist() == [[0.0]]
    assert one.sample(1)[0].nodes == ["rain"]
