"""Switching dynamics: all paths of regimes, the unrolled network, one regime that is a Kalman filter, and learning."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone

import markovia as mk
from markovia.inference.sequences import switching_runs


def covariance(rng, k):
    a = rng.normal(size=(k, k))
    return a @ a.T + 0.2 * np.eye(k)


def random_model(method, seed=0, K=2, n=2, p=2, **more):
    rng = np.random.default_rng(seed)
    chain = rng.dirichlet(np.full(K, 2.0), size=K)
    return mk.SwitchingStateSpace(
        transition=0.6 * rng.normal(size=(K, n, n)),
        transition_cov=[covariance(rng, n) for _ in range(K)],
        observation=rng.normal(size=(K, p, n)),
        observation_cov=[covariance(rng, p) for _ in range(K)],
        initial_mean=rng.normal(size=(K, n)),
        initial_cov=[covariance(rng, n) for _ in range(K)],
        transition_offset=rng.normal(size=(K, n)),
        observation_offset=rng.normal(size=(K, p)),
        regime_transition=chain,
        regime_start=rng.dirichlet(np.full(K, 2.0)),
        method=method,
        random_state=0,
        **more,
    )


@pytest.fixture(scope="module")
def short():
    exact = random_model("exact")
    y = exact.sample(5, seed=1)[0][0]
    y[2, 1] = np.nan
    return exact, y


def test_all_paths_are_the_unrolled_network(short):
    exact, y = short
    y = y[:3]
    network = exact.unroll(3)
    seen = {f"y{j}@{t}": float(y[t, j]) for t in range(3) for j in range(2) if not np.isnan(y[t, j])}
    found = exact.smooth(y)
    assert network.log_evidence(given=seen) == pytest.approx(found.log_prob[0], abs=1e-8)
    for t in range(3):
        assert network.query(f"s@{t}", given=seen)[1] == pytest.approx(found.regimes[0][t, 1], abs=1e-8)
        for i in range(2):
            state = network.query(f"x{i}@{t}", given=seen)
            assert state.mean() == pytest.approx(found.mean[0][t, i], abs=1e-8)
            assert state.sd() ** 2 == pytest.approx(found.cov[0][t, i, i], abs=1e-8)
    past = {name: value for name, value in seen.items() if not name.endswith("@2")}
    ahead = exact.forecast(y[:2], 1, level=0.9)
    law = network.query("y1@2", given=past)
    assert law.mean() == pytest.approx(ahead.mean[0][0, 1], abs=1e-8)
    assert law.sd() ** 2 == pytest.approx(ahead.cov[0][0, 1, 1], abs=1e-8)
    assert network.query("s@2", given=past)[0] == pytest.approx(ahead.regimes[0][0, 0], abs=1e-8)
    # paths that end in the same regime are one Gaussian in an interval
    laws = [network.query("y1@2", given={**past, "s@2": k}) for k in range(2)]
    for end, level in ((ahead.lower, 0.05), (ahead.upper, 0.95)):
        below = [norm.cdf(end[0][0, 1], one.mean(), one.sd()) for one in laws]
        assert ahead.regimes[0][0] @ below == pytest.approx(level, abs=1e-8)


@pytest.mark.parametrize(
    ("method", "filtering", "smoothing"),
    [("imm", 0.15, 0.3), ("gpb2", 0.005, 0.3), ("rao-blackwell", 0.03, 0.1)],
)
def test_approximations_are_near_all_paths(short, method, filtering, smoothing):
    exact, y = short
    model = random_model(method, particles=2_000, paths=500)
    found, truth = model.filter(y), exact.filter(y)
    for ours, theirs in (
        (found.mean, truth.mean),
        (found.regimes, truth.regimes),
        (found.expected, truth.expected),
    ):
        np.testing.assert_allclose(ours[0], theirs[0], atol=filtering)
    assert found.log_prob == pytest.approx(truth.log_prob, abs=2 * filtering)
    smoothed, best = model.smooth(y), exact.smooth(y)
    np.testing.assert_allclose(smoothed.mean[0], best.mean[0], atol=smoothing)
    np.testing.assert_allclose(smoothed.regimes[0], best.regimes[0], atol=smoothing)


def test_two_steps_are_exact_by_gpb2(short):
    exact, y = short
    found, truth = random_model("gpb2").filter(y[:2]), exact.filter(y[:2])
    assert found.log_prob == pytest.approx(truth.log_prob, abs=1e-10)
    np.testing.assert_allclose(found.regimes[0], truth.regimes[0], atol=1e-10)
    np.testing.assert_allclose(found.cov[0], truth.cov[0], atol=1e-10)


@pytest.mark.parametrize("method", ["imm", "gpb2", "rao-blackwell"])
def test_regimes_that_are_alike_are_one_kalman_filter(method):
    rng = np.random.default_rng(3)
    given = {
        "transition": [[0.9, 0.1], [0.0, 0.7]], "transition_cov": covariance(rng, 2),
        "observation": [[1.0, 0.5]], "observation_cov": 0.4, "initial_mean": [1.0, 0.0], "initial_cov": np.eye(2),
    }  # fmt: skip
    line = mk.LinearStateSpace(**given)
    model = mk.SwitchingStateSpace(
        **given, regime_transition=[[0.7, 0.3], [0.2, 0.8]], method=method, particles=20, paths=5
    )
    ys = [line.sample(k, seed=k)[0][0] for k in (12, 7)]
    ys[0][4] = np.nan
    assert model.log_prob(ys) == pytest.approx(line.log_prob(ys), abs=1e-8)
    found, truth = model.smooth(ys), line.smooth(ys)
    for one in range(2):
        np.testing.assert_allclose(found.mean[one], truth.mean[one], atol=1e-8)
        np.testing.assert_allclose(found.cov[one], truth.cov[one], atol=1e-8)


def test_particle_likelihoods_are_unbiased(short):
    exact, y = short
    model = random_model("rao-blackwell", particles=4)
    found = [clone(model).set_params(random_state=k).log_prob(y)[0] for k in range(300)]
    ratios = np.exp(np.array(found) - exact.log_prob(y)[0])
    assert ratios.std() > 0
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(300)


def test_exact_learning_never_lowers_the_likelihood_and_keeps_what_is_shared(short):
    ys = [y for k in range(3) for y in short[0].sample(5, seed=k)[0]]
    ys[1][2, 0] = np.nan
    model = random_model("exact", seed=5, max_iter=12, tol=1e-13)
    model.set_params(observation=np.eye(2), observation_cov=np.eye(2), transition_cov=np.eye(2))
    with pytest.warns(mk.errors.ConvergenceWarning):
        model.fit(ys)
    assert (np.diff(model.log_likelihoods_) > -1e-8).all()
    assert model.log_likelihoods_[-1] > model.log_likelihoods_[0] + 5
    for name in ("observation_", "observation_cov_", "transition_cov_"):
        np.testing.assert_allclose(getattr(model, name)[0], getattr(model, name)[1])
    assert np.abs(model.transition_[0] - model.transition_[1]).max() > 0.01
    np.testing.assert_allclose(model.regime_transition_.sum(axis=1), 1)
    np.testing.assert_array_equal(model.transition_offset_, model.transition_offset)


@pytest.mark.slow
def test_learning_tells_calm_from_wild():
    true = mk.SwitchingStateSpace(
        1.0, [[[0.01]], [[4.0]]], 1.0, 0.1, regime_transition=[[0.95, 0.05], [0.1, 0.9]]
    )
    ys = true.sample(400, 2, seed=2)[0]
    rough = clone(true).set_params(
        transition_cov=[[[0.1]], [[1.0]]], regime_transition=[[0.8, 0.2], [0.2, 0.8]],
        learn=["transition_cov", "observation_cov", "regime_transition"], tol=1e-5,
    ).fit(ys)  # fmt: skip
    assert 0 < rough.transition_cov_[0, 0, 0] < 0.05
    assert rough.transition_cov_[1, 0, 0] == pytest.approx(4, rel=0.35)
    assert rough.observation_cov_[0, 0, 0] == pytest.approx(0.1, rel=0.4)
    assert rough.regime_transition_[0, 0] == pytest.approx(0.95, abs=0.04)
    assert (np.diff(rough.log_likelihoods_) > -1e-3).all()  # up to the error of merged Gaussians
    assert rough.score(ys) > rough.log_likelihoods_[0] + 10


def test_draws_follow_the_chain_and_the_matrices():
    model = random_model("gpb2", n=1, p=1)
    ys, xs, ss = (np.array(part) for part in model.sample(3, 20_000, seed=0))
    chain, start = np.asarray(model.regime_transition), np.asarray(model.regime_start)
    assert np.bincount(ss[:, 2]) / 20_000 == pytest.approx(start @ chain @ chain, abs=0.015)
    blank = model.filter(np.full((3, 1), np.nan))
    assert ys.mean(axis=0)[:2, 0] == pytest.approx(blank.expected[0][:2, 0], abs=0.05)
    assert xs.var(axis=0)[:2, 0] == pytest.approx(blank.cov[0][:2, 0, 0], rel=0.05)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"regime_transition": [[0.5, 0.4], [0.5, 0.5]]}, "regime_transition= has probabilities"),
        ({"regime_start": [1.0]}, "regime_start= has probabilities"),
        ({"transition": np.zeros((3, 2, 2))}, "transition= is there for 3 regimes"),
        ({"initial_cov": np.full((2, 2), np.inf)}, "no diffuse start"),
        ({"method": "kim"}, "method"),
        ({"method": "exact"}, "too many for method='exact'"),
        (
            {"observation": np.ones((1, 2)), "observation_cov": 1.0, "observation_offset": None},
            "2 numbers a step",
        ),
    ],
)
def test_what_is_wrong_is_said(change, words):
    with pytest.raises(mk.MarkoviaError, match=words):
        random_model("gpb2").set_params(**change).filter(np.zeros((20, 2)))
    with pytest.raises(mk.MarkoviaError, match="learn= names 'noise'"):
        random_model("gpb2", learn=["noise"]).fit(np.zeros((3, 2)))


@pytest.mark.filterwarnings("ignore:EM did not settle")
def test_one_regime_learns_what_a_linear_model_learns_with_numbers_missing():
    rng = np.random.default_rng(6)
    given = {
        "transition": [[0.9, 0.1], [0.0, 0.7]], "transition_cov": covariance(rng, 2),
        "observation": np.eye(2), "observation_cov": covariance(rng, 2), "initial_mean": [1.0, 0.0],
        "initial_cov": np.eye(2), "max_iter": 3, "tol": 0.0,
    }  # fmt: skip
    ys = mk.LinearStateSpace(**given).sample(15, 2, seed=1)[0]
    for y in ys:
        y[rng.random(y.shape) < 0.3] = np.nan
    line, model = mk.LinearStateSpace(**given).fit(ys), mk.SwitchingStateSpace(**given).fit(ys)
    assert model.log_likelihoods_ == pytest.approx(line.log_likelihoods_, abs=1e-8)


@pytest.mark.parametrize(
    "method", ["gpb2", *(pytest.param(m, marks=pytest.mark.slow) for m in ("imm", "rao-blackwell", "exact"))]
)
def test_the_compiler_says_what_plain_arithmetic_says(monkeypatch, method):
    model = random_model(method, particles=7, paths=5)
    ys = random_model(method).sample(6, 2, seed=4)[0]
    ys[0][3, 0] = np.nan
    ys[1] = ys[1][:4]
    plain = model.smooth(ys)
    monkeypatch.setattr(switching_runs, "PLAIN_STEPS", 0)
    compiled = model.smooth(ys)
    assert plain.log_prob == pytest.approx(compiled.log_prob, abs=1e-10)
    for i in range(2):
        np.testing.assert_allclose(plain.mean[i], compiled.mean[i], atol=1e-8)
        np.testing.assert_allclose(plain.cov[i], compiled.cov[i], atol=1e-8)
        np.testing.assert_allclose(plain.regimes[i], compiled.regimes[i], atol=1e-8)
