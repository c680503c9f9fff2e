"""The posterior of tables: closed forms, brute force, other libraries, and draws."""

import pickle
from itertools import product
from math import lgamma

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

import markovia as mk
from model_strategies import bayesian_networks

PRIORS = ["bdeu", "k2", "laplace", 0.3, mk.priors.BDeu(3)]


def counted(frame, bn, name):
    scope = [*bn.parents(name), name]
    table = np.zeros([len(bn.states(n)) for n in scope])
    for row in frame[scope].astype(object).itertuples(index=False, name=None):
        table[tuple(bn.states(v).index(s) for v, s in zip(scope, row, strict=True))] += 1
    return table


@given(bayesian_networks(max_nodes=5), st.sampled_from(PRIORS), st.integers(0, 99))
@settings(max_examples=25)
def test_parameters_mean_variance_and_intervals_are_those_of_dirichlet_rows(bn, prior, seed):
    frame = bn.sample(30, seed=seed)
    fitted = bn.copy().fit(frame, prior=prior)
    post = fitted.posterior_
    total = 0.0
    for name in bn.variables:
        n = counted(frame, bn, name)
        a = mk.priors.as_prior(prior).pseudo_counts(
            bn.variable(name), [bn.variable(q) for q in bn.parents(name)]
        )
        alpha = n + a
        assert np.allclose(post.alpha(name).values, alpha)
        assert post.alpha(name).names == (*bn.parents(name), name)
        s = alpha.sum(axis=-1, keepdims=True)
        assert np.allclose(post.mean(name).values, alpha / s)
        assert np.allclose(fitted[name].values, alpha / s)
        assert np.allclose(post.variance(name).values, alpha / s * (1 - alpha / s) / (s + 1))
        table = post.interval(name, 0.9)
        if alpha.shape[-1] > 1:
            marginal = beta(alpha, s - alpha)
            assert np.allclose(table["low"], marginal.ppf(0.05).ravel(), atol=1e-7)
            assert np.allclose(table["high"], marginal.ppf(0.95).ravel(), atol=1e-7)
        for j in np.ndindex(*alpha.shape[:-1]):
            total += lgamma(a[j].sum()) - lgamma(alpha[j].sum())
            total += sum(lgamma(x) - lgamma(y) for x, y in zip(alpha[j], a[j], strict=True))
    assert np.isclose(post.log_marginal_likelihood, total)
    assert np.isclose(sum(post.by_family().values()), total)


@given(bayesian_networks(max_nodes=4), st.sampled_from(PRIORS))
@settings(max_examples=20)
def test_the_marginal_likelihood_is_the_product_of_predictive_probabilities(bn, prior):
    """P(rows) = prod P(row | rows before), each predicted by the network as fitted so far."""
    frame = bn.sample(12, seed=0)
    total = 0.0
    for i in range(len(frame)):
        total += bn.copy().fit(frame[:i], prior=prior).log_prob(frame[i : i + 1])[0]
    fitted = bn.copy().fit(frame, prior=prior)
    assert np.isclose(fitted.posterior_.log_marginal_likelihood, total)
    first = bn.copy().fit(frame[:5], prior=prior).posterior_
    assert np.isclose(first.log_predictive(frame[5:]), total - first.log_marginal_likelihood)


def test_equivalent_graphs_have_the_same_score_under_bdeu_but_not_under_k2():
    frame = mk.examples.asia().sample(300, seed=1)[["smoke", "lung", "bronc"]]
    graphs = ["smoke->lung; smoke->bronc", "lung->smoke->bronc", "bronc->smoke->lung"]
    for prior, same in [(mk.priors.BDeu(5), True), ("k2", False)]:
        scores = [
            mk.BayesianNetwork(g).fit(frame, prior=prior).posterior_.log_marginal_likelihood for g in graphs
        ]
        assert bool(np.ptp(scores) < 1e-9) is same
    chain, collider = (
        mk.BayesianNetwork(g).fit(frame, prior=mk.priors.BDeu(5)).posterior_.log_marginal_likelihood
        for g in (graphs[0], "lung->smoke<-bronc")
    )
    assert abs(collider - chain) > 0.1


@pytest.mark.filterwarnings("ignore")
def test_scores_and_estimates_agree_with_pgmpy():
    pytest.importorskip("pgmpy")
    from pgmpy.estimators import BayesianEstimator
    from pgmpy.models import DiscreteBayesianNetwork
    from pgmpy.structure_score import K2, BDeu

    bn = mk.examples.asia()
    frame = bn.sample(500, seed=2).astype(str)
    states = {n: list(bn.states(n)) for n in bn.variables}
    for prior, scorer, kind, options in [
        (
            mk.priors.BDeu(7),
            BDeu(frame, equivalent_sample_size=7, state_names=states),
            "BDeu",
            {"equivalent_sample_size": 7},
        ),
        ("k2", K2(frame, state_names=states), "K2", {}),
    ]:
        fitted = bn.copy()
        for name in ("either",):  # a table like all others
            fitted.replace(name, p="uniform")
        fitted.fit(frame, prior=prior)
        scores = fitted.posterior_.by_family()
        peer = DiscreteBayesianNetwork(bn.edges)
        estimator = BayesianEstimator(peer, frame, state_names=states)
        for name in bn.variables:
            assert np.isclose(scores[name], scorer.local_score(name, tuple(bn.parents(name))), rtol=1e-9)
            cpd = estimator.estimate_cpd(name, prior_type=kind, **options)
            order = [name, *bn.parents(name)]
            values = np.transpose(cpd.values, [cpd.variables.index(v) for v in order])
            assert np.allclose(np.moveaxis(values, 0, -1), fitted[name].values)


def test_smoothed_and_bdeu_estimates_agree_with_pyagrum():
    gum = pytest.importorskip("pyagrum")
    bn = mk.examples.asia()
    bn.replace("either", p="uniform")
    frame = bn.sample(400, seed=3).astype(str)
    template = mk.io.to_pyagrum(bn)
    for prior, use in [
        (1.0, lambda k: k.useSmoothingPrior(1)),
        (mk.priors.BDeu(4), lambda k: k.useBDeuPrior(4)),
    ]:
        learner = gum.BNLearner(frame, template)
        use(learner)
        peer = mk.io.from_pyagrum(learner.learnParameters(template.dag()))
        fitted = bn.copy().fit(frame, prior=prior)
        for name in bn.variables:
            assert peer[name].allclose(fitted[name], atol=1e-9)


def test_the_mode_is_where_the_density_is_largest():
    bn = mk.BayesianNetwork("a->b").fit({"a": [0, 0, 1], "b": [0, 1, 1]}, prior=2.0)
    assert np.allclose(bn.posterior_.mode("a").values, [3 / 5, 2 / 5])
    assert np.allclose(bn.posterior_.mode("b").values, [[1 / 2, 1 / 2], [1 / 3, 2 / 3]])
    flat = mk.BayesianNetwork("a->b").fit({"a": [0, 0, 1], "b": [0, 1, 1]}, prior=0.5)
    with pytest.raises(mk.errors.InvalidArgument, match="no single mode"):
        flat.posterior_.mode("b")


def test_draws_have_the_moments_of_the_posterior_also_for_tiny_parameters():
    rows = {"a": [0] * 7 + [1] * 3, "b": [0, 1, 2, 0, 0, 0, 1, 2, 2, 0]}
    for prior in (0.001, 1.0):
        post = mk.BayesianNetwork("a->b").fit(rows, prior=prior).posterior_
        drawn = np.array([d["b"].values for d in post.sample(2500, seed=0)])
        assert np.allclose(drawn.sum(axis=-1), 1)
        sd = np.sqrt(post.variance("b").values)
        assert (np.abs(drawn.mean(axis=0) - post.mean("b").values) < 5 * sd / 2500**0.5 + 1e-12).all()
        common = post.alpha("b").values > 0.1  # the others are nearly always zero, and seldom large
        assert np.allclose(drawn.std(axis=0)[common], sd[common], rtol=0.1)
    again = post.sample(2, seed=0)[1]["b"].values
    assert np.array_equal(again, drawn[1])


def test_queries_average_over_drawn_networks_and_say_how_sure_they_are():
    bn = mk.BayesianNetwork("rain->wet->slip")
    frame = mk.BayesianNetwork("rain->wet->slip", tables="random", seed=3).sample(60, seed=0)
    bn.fit(frame, prior="bdeu")
    answer = bn.posterior_.query("wet", n=500, seed=1)
    # without evidence the answer is multilinear in independent tables: its mean is the network's own answer
    assert np.abs(answer.values - bn.query("wet").values).max() < 5 * answer.info.error
    assert not answer.info.exact
    root = bn.posterior_.query("rain", n=1000, seed=2).interval(0.95)
    exact = bn.posterior_.interval("rain", 0.95)
    assert np.allclose(root.to_numpy(), exact.to_numpy(), atol=0.03)
    few, many = (
        mk.BayesianNetwork("rain->wet->slip").fit(pd.concat([frame] * k), prior="bdeu") for k in (1, 50)
    )
    given = {"slip": 1}
    widths = [
        float((t["high"] - t["low"]).max())
        for t in (b.posterior_.query("rain", given=given, n=100).interval() for b in (few, many))
    ]
    assert widths[1] < widths[0] / 3
    joint = bn.posterior_.query(["rain", "wet"], given=given, n=50)
    assert joint.interval().shape == (4, 3)
    assert np.isclose(joint.values.sum(), 1)


def test_weighting_draws_by_the_evidence_gives_the_predictive_answer_of_the_mean_tables():
    bn = mk.BayesianNetwork("rain->wet")
    bn.fit({"rain": [0, 0, 1, 1, 1], "wet": [0, 1, 1, 1, 0]}, prior="k2")
    weighted, total = np.zeros(2), 0.0
    for drawn in bn.posterior_.sample(1500, seed=4):
        mass = np.exp(drawn.log_evidence({"wet": 1}))
        weighted += mass * drawn.query("rain", given={"wet": 1}).values
        total += mass
    assert np.allclose(weighted / total, bn.query("rain", given={"wet": 1}).values, atol=0.02)


def test_the_posterior_survives_copies_and_pickles_but_no_edit():
    rows = {"a": [0, 0, 1], "b": [0, 1, 1]}
    bn = mk.BayesianNetwork("a->b").fit(rows, prior="k2")
    assert np.array_equal(bn.copy().posterior_.alpha("b").values, bn.posterior_.alpha("b").values)
    assert np.array_equal(pickle.loads(pickle.dumps(bn)).posterior_.alpha("a").values, [3, 2])
    edits = [
        lambda n: n.replace("a", p=[0.5, 0.5]),
        lambda n: n.rename("a", "c"),
        lambda n: n.rename_states("a", ["x", "y"]),
        lambda n: n.add("z", p=[0.5, 0.5]),
        lambda n: n.remove("b"),
        lambda n: n.remove_edge("a", "b", p=[0.5, 0.5]),
        lambda n: n.fill("uniform"),
        lambda n: n.fit(rows),
    ]
    for edit in edits:
        twin = bn.copy()
        edit(twin)
        assert twin.posterior_ is None
    assert bn.do(a=1).posterior_ is None
    assert bn.posterior_ is not None
    assert mk.BayesianNetwork("a->b").posterior_ is None


def test_structural_zeros_stay_zero():
    prior = mk.priors.Dirichlet({"b": [[1, 1, 0], [0, 2, 0]]}, other=1.0)
    bn = mk.BayesianNetwork("a->b", states={"a": 2, "b": 3})
    bn.fit({"a": [0, 0, 1], "b": [0, 1, 1]}, prior=prior)
    assert np.allclose(bn["b"].values, [[0.5, 0.5, 0], [0, 1, 0]])
    post = bn.posterior_
    table = post.interval("b")
    assert table.loc[(0, 2), ["low", "high"]].tolist() == [0, 0]
    assert table.loc[(1, 1), ["low", "high"]].tolist() == [1, 1]
    assert all(d["b"].values[0, 2] == 0 for d in post.sample(20, seed=0))
    assert np.isclose(post.by_family()["b"], np.log(1 / 2 * 1 / 3))
    bn.fit({"a": [0], "b": [2]}, prior=prior)
    assert bn.posterior_.log_marginal_likelihood == -np.inf


def test_a_prior_network_speaks_of_any_structure():
    expert = mk.examples.sprinkler()
    bn = mk.BayesianNetwork(
        {"wet": ["rain"], "rain": []}, states={n: expert.states(n) for n in ("rain", "wet")}
    )
    prior = mk.priors.Dirichlet.from_network(expert, 20)
    rows = {"rain": ["yes"] * 5, "wet": ["yes"] * 5}
    bn.fit(rows, prior=prior)
    joint = 20 * expert.query(["rain", "wet"]).values
    joint[1, 1] += 5
    assert np.allclose(bn["wet"].values, joint / joint.sum(axis=-1, keepdims=True))
    assert np.allclose(bn.posterior_.alpha("rain").values, joint.sum(axis=-1))
    own = mk.examples.sprinkler()
    own.fit(expert.sample(0), prior=mk.priors.Dirichlet.from_network(own, 3))
    assert all(own[n].allclose(expert[n]) for n in expert.variables)
    with pytest.raises(mk.errors.UnknownVariable):
        mk.BayesianNetwork("rain->slip").fit({"rain": ["no", "yes"], "slip": [1, 1]}, prior=prior)
    with pytest.raises(mk.errors.InvalidArgument, match="states"):
        mk.BayesianNetwork("rain").fit({"rain": [0, 1]}, prior=prior)


def test_fixed_nodes_have_no_posterior_and_count_with_their_likelihood():
    bn = mk.BayesianNetwork("a->b", tables="uniform")
    rows = {"a": [0, 0, 1], "b": [0, 1, 1]}
    bn.fit(rows, prior="k2", fixed="a")
    post = bn.posterior_
    assert post.nodes == ["b"]
    assert np.isclose(post.by_family()["a"], 3 * np.log(0.5))
    assert post.mean("a") is bn["a"]
    assert all(d["a"] is bn["a"] for d in post.sample(3, seed=0))
    with pytest.raises(mk.errors.InvalidArgument, match="kept fixed"):
        post.alpha("a")
    with pytest.raises(mk.errors.UnknownVariable, match="'bb'"):
        post.interval("bb")
    assert bn.fit_.n_parameters == 2


def test_local_models_are_kept_at_their_value_in_a_posterior():
    bn = mk.BayesianNetwork("a", tables="uniform")
    bn.add("y", mk.local.Logistic({"a": 1.0}))
    bn.fit({"a": [0, 0, 1, 1, 1], "y": [False, True, True, True, False]}, prior="k2")
    post = bn.posterior_
    assert post.nodes == ["a"]
    assert post.sample(1, seed=0)[0]["y"] is bn["y"]
    with pytest.raises(mk.errors.InvalidArgument, match="Dirichlet"):
        post.alpha("y")
    with pytest.raises(mk.errors.InvalidArgument, match="closed-form"):
        _ = post.log_marginal_likelihood


def test_intervals_of_all_nodes_come_as_one_table():
    bn = mk.BayesianNetwork("a->b").fit({"a": ["x", "x", "z"], "b": [0, 1, 1]}, prior="k2")
    table = bn.posterior_.interval()
    assert list(table.index.names) == ["node", "given", "state"]
    assert len(table) == 6
    one = bn.posterior_.interval("b")
    assert np.allclose(table.loc["b"].to_numpy(), one.to_numpy())
    assert table.loc[("b", "a=z", 1), "mean"] == pytest.approx(2 / 3)
    for bad in (0, 1.0, "x"):
        with pytest.raises(mk.errors.InvalidArgument, match="level"):
            bn.posterior_.interval("b", bad)


def test_the_priors_print_what_they_are_and_refuse_nonsense():
    assert repr(mk.priors.Laplace(0.5)) == "Dirichlet(0.5)"
    assert repr(mk.priors.BDeu(4)) == "BDeu(equivalent_sample_size=4)"
    assert repr(mk.priors.Dirichlet({"a": [1, 2], "b": 3})) == "Dirichlet({'a': 2 table, 'b': 3}, other=1)"
    for bad in (lambda: mk.priors.BDeu(0), lambda: mk.priors.Dirichlet(-1), lambda: mk.priors.Gaussian(0)):
        with pytest.raises(mk.errors.InvalidArgument, match="= is a number, above 0, not"):
            bad()
    for wrong in ("bdue", True, [1]):
        with pytest.raises(mk.errors.InvalidArgument, match="a prior is"):
            mk.BayesianNetwork("a").fit({"a": [0, 1]}, prior=wrong)
    with pytest.raises(mk.errors.InvalidArgument, match="do not fit"):
        mk.BayesianNetwork("a").fit({"a": [0, 1]}, prior=mk.priors.Dirichlet({"a": [1, 2, 3]}))


@given(st.lists(st.integers(0, 6), min_size=2, max_size=4), st.floats(0.1, 5.0))
@settings(max_examples=10)
def test_the_score_is_the_integral_over_all_tables(counts, alpha):
    """Numerically: the mean likelihood over tables drawn from the prior, on a grid of Beta quantiles for two states."""
    n = np.array(counts[:2], dtype=float)
    grid = beta(alpha, alpha).ppf((np.arange(20_000) + 0.5) / 20_000)
    likelihood = grid ** n[0] * (1 - grid) ** n[1]
    rows = {"c": [0] * counts[0] + [1] * counts[1]}
    bn = mk.BayesianNetwork("c", states={"c": 2}).fit(rows, prior=alpha)
    assert np.isclose(np.exp(bn.posterior_.log_marginal_likelihood), likelihood.mean(), rtol=2e-3)


def test_the_probabilities_of_all_data_sets_sum_to_one():
    bn = mk.BayesianNetwork("a->b", states={"a": 2, "b": 2})
    cells = list(product([0, 1], repeat=2))
    total = 0.0
    for rows in product(cells, repeat=3):
        frame = pd.DataFrame(rows, columns=["a", "b"])
        total += np.exp(bn.copy().fit(frame, prior="bdeu").posterior_.log_marginal_likelihood)
    assert np.isclose(total, 1.0)


def test_a_ridge_without_a_prior_for_tables_leaves_tables_at_their_maximum():
    bn = mk.BayesianNetwork("a", tables="uniform")
    bn.add("y", mk.local.Logistic({"a": 1.0}))
    rows = {"a": [0, 0, 1, 1, 1], "y": [False, True, True, True, False]}
    bn.fit(rows, prior=mk.priors.Gaussian(1.0, tables=None))
    assert bn["a"].values.tolist() == [0.4, 0.6]
    post = bn.posterior_
    assert post.nodes == []
    assert len(post.interval()) == 0
    with pytest.raises(mk.errors.InvalidArgument, match="no pseudo-counts"):
        post.alpha("a")
    with pytest.raises(mk.errors.InvalidArgument, match="no pseudo-counts"):
        _ = post.log_marginal_likelihood
    with pytest.raises(mk.errors.InvalidArgument, match="one number for it"):
        bn.fit(rows, prior=mk.priors.Dirichlet({"y": [[1, 2, 3], [3, 4, 5]]}))
