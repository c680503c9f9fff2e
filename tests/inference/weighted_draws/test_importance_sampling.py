"""Importance sampling with every proposal, and resampling, against exact answers."""

import numpy as np
import pytest

import markovia as mk
from markovia.inference.weighted_draws.resampling import resample
from model_strategies import log_marginal, log_sum, log_weights, random_case, random_findings

PROPOSALS = {
    "mini-bucket": {"proposal": "mini-bucket"},
    "narrow mini-bucket": {"proposal": "mini-bucket", "table_entries": 4},
    "adaptive": {"proposal": "adaptive", "rounds": 4, "round_draws": 1_000},
}


@pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")
@pytest.mark.parametrize("proposal", PROPOSALS)
@pytest.mark.parametrize(
    ("seed", "kind"), [(s, k) for s in range(5) for k in ("directed", "certain", "structured", "undirected")]
)
def test_weighted_draws_agree_with_the_exact_posterior(seed, kind, proposal):
    case = random_case([seed, 41], kind, max_entries=2_000)
    given = random_findings(case, np.random.default_rng(seed))
    logs = log_weights(case, given)
    total = float(log_sum(logs))
    engine = mk.engines.ImportanceSampling(draws=10_000, seed=seed, **PROPOSALS[proposal])
    if np.isneginf(total):
        with pytest.raises(mk.errors.ImpossibleEvidence):
            case.model.marginals(given, engine=engine)
        return
    problem = case.model._problem(given)
    answer = engine.marginals(problem, problem.free)
    assert answer.record.details.effective_draws > 30
    assert abs(answer.log_mass - total) <= 4.5 * answer.record.details.log_mass_error + 1e-9
    floor = 1.0 / answer.record.details.effective_draws
    for name, table in zip(problem.free, answer.tables, strict=True):
        exact = np.exp(log_marginal(case, logs, [name]) - total)
        assert np.abs(table.values - exact).max() < 4.5 * max(answer.record.error, floor)
        assert table.values.sum() == pytest.approx(1.0)


def ring(n=6, seed=0, strength=1.0):
    rng = np.random.default_rng(seed)
    names = [f"x{i}" for i in range(n)]
    pairs = [(a, names[(i + 1) % n]) for i, a in enumerate(names)] + [("x0", "x3"), ("x1", "x4")]
    factors = [mk.Factor(list(p), np.exp(strength * rng.normal(size=(3, 3)))) for p in pairs]
    return mk.MarkovNetwork(dict.fromkeys(names, 3), factors)


@pytest.mark.parametrize("proposal", PROPOSALS)
def test_errors_are_calibrated_and_the_mass_is_unbiased(proposal):
    mn = ring()
    given = {"x2": 1, "x5": [0.5, 1.0, 2.0]}
    exact, total = mn.query("x0", given), mn.log_partition(given)
    zs, masses, errors = [], [], []
    for seed in range(60):
        engine = mk.engines.ImportanceSampling(draws=1_000, seed=seed, **PROPOSALS[proposal])
        answer = engine.marginals(mn._problem(given), ["x0"])
        at = int(np.argmin(np.abs(exact.values - 0.5)))  # the state with the largest standard error
        zs.append((answer.tables[0].values[at] - exact[at]) / answer.record.error)
        masses.append(np.exp(answer.log_mass - total))
        errors.append(answer.record.details.log_mass_error)
    assert abs(np.mean(zs)) < 4 / np.sqrt(60)
    assert 0.7 < np.std(zs) < 1.35
    if proposal == "mini-bucket":
        assert np.allclose(masses, 1.0)  # nothing was split: every weight is Z
    else:
        assert abs(np.mean(masses) - 1.0) < 4 * np.mean(errors) / np.sqrt(60)
        assert 0.7 < np.std(masses) / np.mean(errors) < 1.35


def test_wide_enough_buckets_draw_exactly():
    mn = ring(strength=3.0)
    p = mn.query(["x0", "x3"], engine=mk.engines.ImportanceSampling(draws=20_000, table_entries=3**6))
    assert p.info.details.effective_draws == pytest.approx(20_000)
    assert p.info.details.log_mass_error < 1e-6
    assert np.abs(p.values - mn.query(["x0", "x3"]).values).max() < 4.5 * p.info.error
    split = mk.engines.ImportanceSampling(draws=20_000, table_entries=9).marginals(mn._problem(None), ["x0"])
    assert split.record.details.effective_draws < 19_000


def rare_leaves(n=8):
    bn = mk.BayesianNetwork()
    for i in range(n):
        bn.add(f"a{i}", states=[0, 1], p=[0.95, 0.05])
        bn.add(f"b{i}", states=[0, 1], parents=[f"a{i}"], p=[[0.99, 0.01], [0.1, 0.9]])
    return bn, {f"b{i}": 1 for i in range(n)}


def test_a_proposal_that_learns_beats_the_prior_on_unlikely_evidence():
    bn, given = rare_leaves()
    problem = bn._problem(given)
    learned = mk.engines.ImportanceSampling(proposal="adaptive", draws=10_000).marginals(problem, ["a0"])
    with pytest.warns(mk.errors.ConvergenceWarning, match="importance did not converge"):
        prior = bn.query("a0", given, engine=mk.engines.ImportanceSampling(proposal="prior", draws=10_000))
    assert learned.record.details.effective_draws > 5_000 > 50 * prior.info.details.effective_draws
    assert learned.record.converged
    assert learned.tables[0].values[1] == pytest.approx(bn.query("a0", given)[1], abs=0.02)


def test_the_prior_as_proposal_is_likelihood_weighting():
    bn = mk.examples.asia()
    given = {"dysp": "yes", "smoke": [0.2, 0.9]}
    one = bn.query("lung", given, engine=mk.engines.ImportanceSampling(proposal="prior", draws=5_000, seed=3))
    two = bn.query("lung", given, engine=mk.engines.LikelihoodWeighting(draws=5_000, seed=3))
    assert np.array_equal(one.values, two.values)


def test_marginals_of_another_engine_make_a_proposal():
    mn = ring(strength=0.5)
    exact = mn.marginals()
    engine = mk.engines.ImportanceSampling(proposal=exact, draws=20_000)
    p = mn.query("x1", engine=engine)
    assert p.info.details.proposal == "dict"
    assert np.abs(p.values - exact["x1"].values).max() < 4.5 * p.info.error
    uniform = {n: [1, 1, 1] for n in mn.variables}
    other = mn.query("x1", engine=mk.engines.ImportanceSampling(proposal=uniform, draws=20_000))
    assert other.info.details.effective_draws < p.info.details.effective_draws
    by_state = {n: {0: 0.2, 1: 0.3, 2: 0.5} for n in mn.variables}
    p = mn.query("x1", engine=mk.engines.ImportanceSampling(proposal=by_state, draws=20_000))
    assert np.abs(p.values - exact["x1"].values).max() < 4.5 * p.info.error


def test_a_bayesian_network_makes_a_proposal():
    bn = mk.examples.sprinkler()
    flat = bn.copy()
    rng = np.random.default_rng(0)
    other = mk.BayesianNetwork()
    for name in flat.variables:  # no edge at all, other probabilities
        other.add(name, states=flat.states(name), p=rng.dirichlet([3, 3]))
    given = {"wet": "yes"}
    p = bn.query("rain", given, engine=mk.engines.ImportanceSampling(proposal=other, draws=40_000))
    assert abs(p["yes"] - bn.query("rain", given)["yes"]) < 4.5 * p.info.error
    assert abs(p.info.log_evidence - np.log(0.6471)) < 4.5 * p.info.details.log_mass_error


def test_unnormalised_estimates_are_unbiased_and_need_the_mass():
    bn = mk.examples.sprinkler()
    uniform = {n: [1, 1] for n in bn.variables}
    found = []
    for seed in range(80):
        engine = mk.engines.ImportanceSampling(proposal=uniform, draws=200, seed=seed, normalised=False)
        found.append(engine.marginals(bn._problem(None), ["wet"]).tables[0].values)
    found = np.array(found)
    assert not np.allclose(found.sum(axis=1), 1.0, atol=0.01)
    error = found[:, 1].std() / np.sqrt(80)
    assert abs(found[:, 1].mean() - 0.6471) < 4 * error
    engine = mk.engines.ImportanceSampling(normalised=False, draws=1_000)
    with pytest.raises(mk.errors.InvalidArgument, match="known_log_mass="):
        bn.query("rain", {"wet": "yes"}, engine=engine)
    told = mk.engines.ImportanceSampling(
        proposal=uniform, normalised=False, known_log_mass=np.log(0.6471), draws=40_000
    )
    p = bn.query("rain", {"wet": "yes"}, engine=told)
    assert abs(p["yes"] - 0.707928) < 4.5 * p.info.error


def test_a_noisy_or_of_many_parents_is_a_target_for_given_proposals():
    bn = mk.BayesianNetwork()
    for i in range(60):
        bn.add(f"c{i}", states=[0, 1], p=[0.9, 0.1])
    bn.add(
        "e",
        mk.local.NoisyOr(
            {f"c{i}": 0.05 for i in range(60)}, on=dict.fromkeys([f"c{i}" for i in range(60)], 1)
        ),
    )
    state = bn.states("e")[1]
    exact = 1.0 - (1.0 - 0.1 * 0.05) ** 60
    uniform = {f"c{i}": [0.8, 0.2] for i in range(60)}
    for proposal in ("mini-bucket", "adaptive", uniform):
        engine = mk.engines.ImportanceSampling(proposal=proposal, draws=10_000, rounds=2)
        p = bn.query("c0", {"e": state}, engine=engine)
        assert abs(np.exp(p.info.log_evidence) - exact) < 4.5 * exact * p.info.details.log_mass_error


def test_bad_proposals_are_refused():
    bn = mk.examples.sprinkler()
    with pytest.raises(mk.errors.InvalidArgument, match="mini-bucket, prior, adaptive"):
        mk.engines.ImportanceSampling(proposal="best")
    with pytest.raises(mk.errors.InvalidArgument, match="not list"):
        mk.engines.ImportanceSampling(proposal=[1, 2])
    for proposal, match in [
        ({"rain": [1, 1]}, "no probabilities for"),
        ({n: [1, 1, 1] for n in bn.variables}, "needs 2 probabilities"),
    ]:
        with pytest.raises(mk.errors.InvalidArgument, match=match):
            bn.query("rain", engine=mk.engines.ImportanceSampling(proposal=proposal))
    with pytest.raises(mk.errors.UnknownVariable, match="'rian'"):
        bn.query("rain", engine=mk.engines.ImportanceSampling(proposal={"rian": [1, 1]}))
    with pytest.raises(mk.errors.InvalidArgument, match="differs in"):
        bn.query("rain", engine=mk.engines.ImportanceSampling(proposal=mk.examples.asia()))
    with pytest.raises(mk.errors.UnsupportedModel, match="must be a Bayesian network"):
        bn.query("rain", engine=mk.engines.ImportanceSampling(proposal=bn.to_markov_network()))


# -- resampling ----------------------------------------------------------------------------------------------------

SCHEMES = ["multinomial", "stratified", "systematic", "residual"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_resampling_keeps_each_draw_by_its_share_on_average(scheme):
    weights = np.array([0.0, 0.07, 0.5, 0.13, 0.3])
    rng = np.random.default_rng(0)
    with np.errstate(divide="ignore"):
        logs = np.log(weights) - 1000.0
    counts = np.array([np.bincount(resample(logs, 7, rng, scheme), minlength=5) for _ in range(4_000)])
    assert (counts.sum(axis=1) == 7).all()
    assert (counts[:, 0] == 0).all()
    error = np.maximum(counts.std(axis=0) / np.sqrt(4_000), 1e-12)
    assert (np.abs(counts.mean(axis=0) - 7 * weights) < 4.5 * error).all()
    if scheme != "multinomial":
        assert (counts.var(axis=0)[1:] < (7 * weights * (1 - weights))[1:]).all()


def test_resampling_refuses_what_has_no_weight():
    with pytest.raises(mk.errors.InvalidArgument, match="finite"):
        resample([-np.inf, -np.inf], 3)
    with pytest.raises(mk.errors.InvalidArgument, match="scheme="):
        resample([0.0], 3, scheme="best")
    assert resample([0.0], 0).shape == (0,)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("directed", [True, False])
def test_resampled_draws_agree_with_the_posterior(scheme, directed):
    model = mk.examples.asia() if directed else ring()
    given = {"dysp": "yes"} if directed else {"x2": 0}
    names = ["lung", "bronc"] if directed else ["x0", "x4"]
    engine = mk.engines.SamplingImportanceResampling(draws=5_000, scheme=scheme, seed=1)
    p = model.query(names, given, engine=engine)
    exact = model.query(names, given)
    assert np.abs(p.values - exact.values).max() < 4.5 * p.info.error
    assert abs(p.info.error) < 0.02
    rows = model.sample(2_000, given, seed=3, engine=engine)
    first = model.states(names[0])[0]
    share, truth = (rows[names[0]] == first).mean(), exact.marginal(names[0])[first]
    assert abs(share - truth) < 5 * np.sqrt(truth * (1 - truth) / 2_000)


def test_resampling_from_a_small_pool_says_how_many_different_draws_are_left():
    engine = mk.engines.SamplingImportanceResampling(draws=1_000, pool=50, seed=0)
    p = mk.examples.asia().query("lung", {"smoke": "yes"}, engine=engine)
    assert p.info.details.different <= 50
    with pytest.raises(mk.errors.ImpossibleEvidence):
        mk.examples.asia().query("lung", {"lung": "yes", "either": "no"}, engine="sir")
