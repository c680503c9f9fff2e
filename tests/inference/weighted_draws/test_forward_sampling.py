"""Forward sampling, rejection sampling and likelihood weighting against exact answers."""

import numpy as np
import pytest

import markovia as mk
from markovia.inference.weighted_draws.weight_diagnostics import pareto_k
from model_strategies import log_marginal, log_sum, log_weights, random_case, random_findings

WITH_EVIDENCE = [mk.engines.RejectionSampling, mk.engines.LikelihoodWeighting]
CASES = [(seed, kind) for seed in range(8) for kind in ("directed", "certain", "structured")]


def exact_marginals(case, given):
    logs = log_weights(case, given)
    total = float(log_sum(logs))
    if np.isneginf(total):
        return {}, total
    return {n: np.exp(log_marginal(case, logs, [n]) - total) for n in case.cards}, total


def standard_errors(answer, exact, draws):
    """Distance from the exact answer in reported standard errors, but never less than one draw's worth."""
    gap = max(np.abs(answer[n].values - exact[n]).max() for n in answer)
    return gap / max(next(iter(answer.values())).info.error, 1.0 / draws)


@pytest.mark.parametrize(("seed", "kind"), CASES)
def test_forward_draws_agree_with_the_prior(seed, kind):
    case = random_case([seed, 31], kind, max_entries=2_000)
    exact, _ = exact_marginals(case, {})
    answer = case.model.marginals(engine=mk.engines.ForwardSampling(draws=20_000, seed=seed))
    assert answer
    assert standard_errors(answer, exact, 20_000) < 4.5


@pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")
@pytest.mark.parametrize("engine", WITH_EVIDENCE)
@pytest.mark.parametrize(("seed", "kind"), CASES)
def test_draws_with_evidence_agree_with_the_posterior(seed, kind, engine):
    case = random_case([seed, 32], kind, max_entries=2_000)
    given = random_findings(case, np.random.default_rng(seed))
    exact, total = exact_marginals(case, given)
    if np.isneginf(total):
        with pytest.raises(mk.errors.ImpossibleEvidence):
            case.model.marginals(given, engine=engine())
        return
    made = engine(draws=20_000, seed=seed)
    answer = case.model.marginals(given, engine=made)
    if not answer:
        assert case.model.log_evidence(given, engine=made) == pytest.approx(total, abs=0.2)
        return
    info = next(iter(answer.values())).info
    if info.log_evidence is None or info.details.effective_draws < 30:
        assert not info.converged
        return
    assert standard_errors(answer, exact, info.details.effective_draws) < 4.5
    assert abs(info.log_evidence - total) <= 4.5 * info.details.log_mass_error + 1e-9


def network(seed=0, n=6):
    rng = np.random.default_rng(seed)
    bn = mk.BayesianNetwork()
    for i in range(n):
        parents = [f"v{j}" for j in range(max(0, i - 2), i)]
        table = rng.dirichlet([0.8, 0.8], size=[2] * len(parents))
        bn.add(f"v{i}", states=[0, 1], parents=parents, p=table)
    return bn


@pytest.mark.parametrize("engine", WITH_EVIDENCE)
@pytest.mark.parametrize("given", [{"v4": 1, "v5": 0}, {"v4": [0.2, 3.0], "v2": 1}, {"v3": mk.Not(0)}])
def test_reported_errors_are_calibrated_and_the_mass_is_unbiased(engine, given):
    bn = network()
    exact = bn.query("v1", given)
    total = bn.log_evidence(given)
    zs, masses, errors = [], [], []
    for seed in range(60):
        p = bn.query("v1", given, engine=engine(draws=2_000, seed=seed))
        zs.append((p[1] - exact[1]) / p.info.error)
        masses.append(np.exp(p.info.log_evidence - total))
        errors.append(p.info.details.log_mass_error)
    assert abs(np.mean(zs)) < 4 / np.sqrt(60)
    assert 0.7 < np.std(zs) < 1.35
    assert abs(np.mean(masses) - 1.0) < 4 * np.mean(errors) / np.sqrt(60)
    assert 0.7 < np.std(masses) / np.mean(errors) < 1.35


@pytest.mark.parametrize("engine", WITH_EVIDENCE)
def test_joint_posteriors_and_draws_agree_with_the_exact_ones(engine):
    bn = network(3)
    given = {"v5": 1, "v0": [1.0, 0.3]}
    exact = bn.query(["v1", "v3"], given)
    p = bn.query(["v1", "v3"], given, engine=engine(draws=40_000, seed=1))
    assert np.abs(p.values - exact.values).max() < 4.5 * p.info.error
    rows = bn.sample(5_000, given, seed=2, engine=engine())
    assert (rows["v5"] == 1).all()
    share = ((rows["v1"] == 1) & (rows["v3"] == 0)).mean()
    assert abs(share - exact[1, 0]) < 5 * np.sqrt(exact[1, 0] / 5_000)


def test_the_same_seed_gives_the_same_answer_on_any_number_of_threads(monkeypatch):
    bn = network(5)
    engine = mk.engines.LikelihoodWeighting(draws=50_000, seed=7)
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("MARKOVIA_THREADS", threads)
        found.append(bn.query("v0", {"v5": 1}, engine=engine)[1])
    assert found[0] == found[1]
    assert (
        found[0] != bn.query("v0", {"v5": 1}, engine=mk.engines.LikelihoodWeighting(draws=50_000, seed=8))[1]
    )


def wide_noisy_or(causes=200):
    bn = mk.BayesianNetwork()
    for i in range(causes):
        bn.add(f"c{i}", states=[False, True], p=[0.98, 0.02])
    bn.add("fault", mk.local.NoisyOr({f"c{i}": 0.3 for i in range(causes)}, leak=0.01), states=[False, True])
    return bn


def test_a_noisy_or_of_two_hundred_parents_is_weighed_without_its_table():
    bn = wide_noisy_or()
    exact = 1.0 - 0.99 * (1.0 - 0.02 * 0.3) ** 200
    engine = mk.engines.LikelihoodWeighting(draws=20_000, seed=0)
    p = bn.query("c0", {"fault": True}, engine=engine)
    assert abs(np.exp(p.info.log_evidence) - exact) < 4 * exact * p.info.details.log_mass_error
    with_cause = 0.02 * (1.0 - 0.99 * 0.7 * (1.0 - 0.02 * 0.3) ** 199) / exact
    assert abs(p[True] - with_cause) < 4 * p.info.error
    prior = bn.query("fault", engine=mk.engines.ForwardSampling(draws=20_000))
    assert abs(prior[True] - exact) < 4 * prior.info.error


def test_barren_nodes_are_not_drawn():
    bn = wide_noisy_or()
    engine = mk.engines.LikelihoodWeighting()
    problem = bn._problem({"c1": True})
    assert [v.name for v in engine._sampler(problem, ["c0"]).variables] == ["c0", "c1"]


def test_forward_sampling_refuses_evidence_and_undirected_models():
    bn = network()
    with pytest.raises(mk.errors.Unanswered, match="likelihood-weighting"):
        bn.query("v0", {"v1": 1}, engine="forward")
    mn = mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], [[1, 2], [3, 4]])])
    for engine in ("forward", "rejection", "likelihood-weighting"):
        with pytest.raises(mk.errors.UnsupportedModel, match="'importance'"):
            mn.query("a", engine=engine)


def chain_of_rare_events(n=45):
    bn = mk.BayesianNetwork()
    for i in range(n):
        bn.add(f"v{i}", states=[0, 1], p=[0.5, 0.5])
    return bn


def test_rejection_says_so_when_nothing_is_accepted():
    bn = chain_of_rare_events()
    given = {f"v{i}": 1 for i in range(40)}
    engine = mk.engines.RejectionSampling(draws=1_000)
    with pytest.warns(mk.errors.ConvergenceWarning, match="none of 1,000 draws"):
        p = bn.query("v44", given, engine=engine)
    assert p.info.log_evidence is None
    assert p.info.details.acceptance == 0.0
    with pytest.raises(mk.errors.Unanswered, match="likelihood-weighting"):
        bn.sample(1, given, engine=mk.engines.RejectionSampling(max_tries=100), seed=0)
    weighed = bn.query("v44", given, engine="likelihood-weighting")
    assert weighed.info.log_evidence == pytest.approx(40 * np.log(0.5))


def test_the_acceptance_rate_estimates_the_probability_of_the_evidence():
    p = mk.examples.sprinkler().query(
        "rain", {"wet": "yes"}, engine=mk.engines.RejectionSampling(draws=40_000)
    )
    share = p.info.details.acceptance
    assert p.info.details.accepted == round(share * 40_000)
    assert abs(share - 0.6471) < 4 * np.sqrt(0.6471 * 0.3529 / 40_000)


@pytest.mark.parametrize("engine", ["rejection", "likelihood-weighting"])
def test_impossible_evidence_is_named(engine):
    bn = mk.BayesianNetwork()
    bn.add("a", states=[0, 1], p=[0.5, 0.5])
    bn.add("b", states=[0, 1], parents=["a"], p=[[1, 0], [0, 1]])
    bn.add("c", states=[0, 1], p=[0.5, 0.5])
    with pytest.raises(mk.errors.ImpossibleEvidence) as error:
        bn.query("c", {"a": 0, "b": 1}, engine=engine)
    assert error.value.evidence == {"a": 0, "b": 1}
    with pytest.raises(mk.errors.ImpossibleEvidence):
        bn.sample(2, {"a": 0, "b": 1}, engine=engine, seed=0)


def test_more_draws_are_made_until_the_tolerance_is_met():
    bn = network()
    p = bn.query("v0", {"v5": 1}, engine=mk.engines.LikelihoodWeighting(tolerance=0.002))
    assert p.info.converged
    assert p.info.error <= 0.002
    with pytest.warns(mk.errors.ConvergenceWarning, match="over the tolerance"):
        p = bn.query("v0", {"v5": 1}, engine=mk.engines.LikelihoodWeighting(draws=1_000, tolerance=1e-3))
    assert p.info.iterations == 1_000


def test_a_time_limit_ends_the_draws():
    bn = network()
    p = bn.query("v0", {"v5": 1}, engine="likelihood-weighting", time_limit=0.1)
    assert p.info.iterations > 0
    assert p.info.seconds < 5


def test_an_answer_without_spread_does_not_use_up_its_time():
    bn = network()
    engine = mk.engines.LikelihoodWeighting(time_limit=60.0)
    answer = engine.joint(bn._problem({"v0": 1}), [])
    assert answer.log_mass == pytest.approx(bn.log_evidence({"v0": 1}))
    assert answer.record.iterations <= 400_000


def test_everything_observed_and_single_variables_work():
    bn = network(n=2)
    exact = bn.log_evidence({"v0": 1, "v1": 0})
    for engine in ("rejection", "likelihood-weighting"):
        assert bn.log_evidence({"v0": 1, "v1": 0}, engine=engine) == pytest.approx(exact, abs=0.1)
        assert bn.sample(3, {"v0": 1, "v1": 0}, engine=engine, seed=0).to_numpy().tolist() == [[1, 0]] * 3
    one = mk.BayesianNetwork()
    one.add("x", states=["only"], p=[1.0])
    for engine in ("forward", "rejection", "likelihood-weighting"):
        assert one.query("x", engine=engine)["only"] == 1.0


def test_heavy_weights_are_noticed():
    bn = mk.BayesianNetwork()
    for i in range(30):
        bn.add(f"a{i}", states=[0, 1], p=[0.9, 0.1])
        bn.add(f"b{i}", states=[0, 1], parents=[f"a{i}"], p=[[0.99, 0.01], [0.05, 0.95]])
    given = {f"b{i}": 1 for i in range(30)}
    with pytest.warns(mk.errors.ConvergenceWarning, match="few draws carry most of the weight"):
        p = bn.query("a0", given, engine=mk.engines.LikelihoodWeighting(draws=5_000))
    assert p.info.details.pareto_k > 0.7
    assert p.info.details.effective_draws < 100


@pytest.mark.parametrize("k", [0.2, 0.6, 1.0])
def test_the_tail_index_of_pareto_weights_is_found(k):
    found = [pareto_k(k * np.random.default_rng(s).exponential(size=20_000)) for s in range(5)]
    assert np.mean(found) == pytest.approx(k, abs=0.12)


@pytest.mark.parametrize(("k", "n"), [(0.0, 40), (0.3, 200), (0.9, 1000), (1.6, 3000)])
def test_the_tail_index_is_that_of_zhang_and_stephens_pulled_to_one_half_by_ten_draws(k, n):
    """Written out from the paper (2009), with the prior of PSIS: (m k + 10 / 2) / (m + 10) for m weights in the tail."""
    logs = np.random.default_rng(n).exponential(size=n) * max(k, 0.05)
    m = int(np.ceil(min(n / 5, 3 * np.sqrt(n))))
    largest = sorted(logs)[-m - 1 :]
    x = [float(np.exp(v - largest[-1]) - np.exp(largest[0] - largest[-1])) for v in largest[1:]]
    grid = 30 + int(np.sqrt(m))
    quartile = x[int(m / 4 + 0.5) - 1]
    thetas = [1 / x[-1] + (1 - np.sqrt(grid / (j - 0.5))) / (3 * quartile) for j in range(1, grid + 1)]

    def shape(theta):
        return -sum(np.log(1 - theta * v) for v in x) / m

    fits = np.array([m * (np.log(theta / shape(theta)) + shape(theta) - 1) for theta in thetas])
    weights = np.array([1 / sum(np.exp(fits - own)) for own in fits])
    theta = float(weights @ thetas / weights.sum())
    assert pareto_k(logs) == pytest.approx((m * -shape(theta) + 5) / (m + 10), rel=1e-9)


def test_bad_settings_are_refused():
    for bad in ({"draws": 0}, {"tolerance": -1.0}, {"seed": -1}, {"time_limit": 0}, {"draws": 2.5}):
        with pytest.raises(mk.errors.InvalidArgument, match=next(iter(bad))):
            mk.engines.LikelihoodWeighting(**bad)
    with pytest.raises(mk.errors.Unanswered, match="most probable"):
        network().map(engine="likelihood-weighting")


@pytest.mark.parametrize("seed", range(8))
def test_local_models_drawn_as_they_are_agree_with_the_posterior(seed, monkeypatch):
    monkeypatch.setattr("markovia.inference.weighted_draws.sequential_draws.SMALL_TABLE", 0)
    case = random_case([seed, 33], "structured", max_entries=500)
    given = random_findings(case, np.random.default_rng(seed), rate=0.2)
    exact, total = exact_marginals(case, given)
    problem = case.model._problem(given)
    if np.isneginf(total) or not problem.free:
        pytest.skip("impossible or nothing to ask")
    for engine in (
        mk.engines.LikelihoodWeighting(draws=10_000, seed=seed),
        mk.engines.ImportanceSampling(
            proposal="adaptive", rounds=3, round_draws=1_000, draws=10_000, seed=seed
        ),
    ):
        answer = engine.marginals(problem, problem.free)
        assert answer.record.details.effective_draws > 30
        assert abs(answer.log_mass - total) <= 4.5 * answer.record.details.log_mass_error + 1e-9
        floor = 1.0 / answer.record.details.effective_draws
        for name, table in zip(problem.free, answer.tables, strict=True):
            assert np.abs(table.values - exact[name]).max() < 4.5 * max(answer.record.error, floor)
