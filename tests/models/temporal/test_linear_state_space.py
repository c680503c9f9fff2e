"""Linear state-space models: the network they unroll to, forecasts, inputs, learning, and refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import markovia as mk


def covariance(rng, k):
    a = rng.normal(size=(k, k))
    return a @ a.T + 0.1 * np.eye(k)


def random_model(rng, n=2, p=2, **more):
    A = rng.normal(size=(n, n))
    given = {
        "transition": 0.9 * A / np.abs(np.linalg.eigvals(A)).max(), "transition_cov": covariance(rng, n),
        "observation": rng.normal(size=(p, n)), "observation_cov": covariance(rng, p),
        "initial_mean": rng.normal(size=n), "initial_cov": covariance(rng, n),
        "transition_offset": rng.normal(size=n), "observation_offset": rng.normal(size=p),
    }  # fmt: skip
    return mk.LinearStateSpace(**{**given, **more})


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 3), p=st.integers(1, 2), varying=st.booleans())
def test_the_unrolled_network_answers_identically(seed, n, p, varying):
    rng, T = np.random.default_rng(seed), 4
    model = random_model(rng, n, p, **({"observation": rng.normal(size=(T, p, n))} if varying else {}))
    y = rng.normal(size=(T, p))
    y[rng.random(y.shape) < 0.3] = np.nan
    y[0, 0] = 0.5
    seen = {f"y{j}@{t}": float(y[t, j]) for t in range(T) for j in range(p) if not np.isnan(y[t, j])}
    network = model.unroll(T)
    smoothed = model.smooth(y)
    for t in range(T):
        for i in range(n):
            found = network.query(f"x{i}@{t}", given=seen, engine="gaussian")
            assert found.mean() == pytest.approx(smoothed.mean[0][t, i], abs=1e-8)
            assert found.sd() ** 2 == pytest.approx(smoothed.cov[0][t, i, i], abs=1e-8)
    assert network.log_prob(seen) == pytest.approx(model.log_prob(y)[0], abs=1e-8)


def test_forecasts_are_the_network_given_the_past():
    model = random_model(np.random.default_rng(1))
    y = np.random.default_rng(2).normal(size=(3, 2))
    found = model.forecast([y, y[:1]], 2, level=0.9)
    network = model.unroll(5)
    seen = {f"y{j}@{t}": float(y[t, j]) for t in range(3) for j in range(2)}
    for t in range(2):
        for j in range(2):
            p = network.query(f"y{j}@{3 + t}", given=seen)
            assert p.mean() == pytest.approx(found.mean[0][t, j], abs=1e-9)
            assert p.sd() == pytest.approx(np.sqrt(found.cov[0][t, j, j]), abs=1e-9)
            assert found.upper[0][t, j] - found.lower[0][t, j] == pytest.approx(
                2 * 1.6448536 * p.sd(), abs=1e-6
            )
    assert len(found.mean) == 2
    assert found.state_mean[1].shape == (2, 2)


def test_inputs_move_states_and_observations():
    rng = np.random.default_rng(3)
    B, D, u = rng.normal(size=(2, 1)), rng.normal(size=(2, 1)), rng.normal(size=(7, 1))
    driven = random_model(np.random.default_rng(4), transition_input=B, observation_input=D)
    plain = random_model(np.random.default_rng(4))
    by_hand = clone(plain).set_params(
        transition_offset=plain.transition_offset + u @ B.T,
        observation_offset=plain.observation_offset + u @ D.T,
    )
    y = rng.normal(size=(7, 2))
    assert driven.log_prob(y[:5], inputs=u[:5]) == pytest.approx(
        clone(plain)
        .set_params(
            transition_offset=by_hand.transition_offset[:5], observation_offset=by_hand.observation_offset[:5]
        )
        .log_prob(y[:5])
    )
    ahead = driven.forecast(y[:5], 2, inputs=u[:5], future_inputs=u[5:])
    np.testing.assert_allclose(ahead.mean[0], by_hand.forecast(y[:5], 2).mean[0])
    np.testing.assert_allclose(driven.smooth([y, y], inputs=[u, u]).mean[1], by_hand.smooth(y).mean[0])
    with pytest.raises(mk.MarkoviaError, match="so give inputs="):
        driven.log_prob(y)
    with pytest.raises(mk.MarkoviaError, match="inputs= has 5 steps"):
        driven.log_prob(y, inputs=u[:5])


def test_many_sequences_are_read_in_every_form():
    model = random_model(np.random.default_rng(5))
    y = np.random.default_rng(6).normal(size=(9, 2))
    apart = [model.log_prob(part)[0] for part in (y[:4], y[4:])]
    np.testing.assert_allclose(model.log_prob([y[:4], y[4:]]), apart)
    np.testing.assert_allclose(model.log_prob(y, [4, 5]), apart)
    frame = {"who": ["a"] * 4 + ["b"] * 5, "u": y[:, 0], "v": y[:, 1]}
    np.testing.assert_allclose(model.log_prob(frame, by="who"), apart)
    assert model.score(y, [4, 5]) == pytest.approx(sum(apart))


def test_draws_are_reproducible_and_a_diffuse_start_is_at_the_mean():
    model = random_model(
        np.random.default_rng(7), initial_cov=np.full((2, 2), np.inf), initial_mean=[5.0, -5.0]
    )
    ys, xs = model.sample(4, 3, seed=1)
    assert [y.shape for y in ys] == [(4, 2)] * 3
    assert all((x[0] == [5.0, -5.0]).all() for x in xs)
    np.testing.assert_array_equal(model.sample(4, 3, seed=1)[0][2], ys[2])
    with pytest.raises(mk.MarkoviaError, match="no diffuse start"):
        model.unroll(3)


LEARN = [
    ["transition_cov", "transition_offset", "initial_mean"],
    ["transition"],
    ["observation", "initial_cov"],
    ["observation_cov", "observation_offset"],
]


@pytest.mark.parametrize(
    ("missing", "learn"),
    [
        *((0.3, learn) for learn in LEARN),
        (0.0, LEARN[0]),
        *(pytest.param(0.0, learn, marks=pytest.mark.slow) for learn in LEARN[1:]),
    ],
)
def test_learning_never_lowers_the_likelihood_and_ends_where_its_slope_is_zero(missing, learn):
    rng = np.random.default_rng(8)
    ys = random_model(rng).sample(40, 4, seed=3)[0]
    for y in ys:
        y[rng.random(y.shape) < missing] = np.nan
    model = random_model(np.random.default_rng(9), learn=learn, max_iter=2000, tol=1e-13).fit(ys)
    assert (np.diff(model.log_likelihoods_) > -1e-8).all()
    assert model.converged_
    best = model.score(ys)

    def moved(name, i, by):
        value = np.array(getattr(model, f"{name}_"))
        value.flat[i] += by
        if name.endswith("_cov"):
            value = (value + value.T) / 2
        given = {k: getattr(model, f"{k}_") for k in model.get_params() if hasattr(model, f"{k}_")}
        return mk.LinearStateSpace(**{**given, name: value}).score(ys)

    for name in learn:
        for i in range(np.size(getattr(model, f"{name}_"))):
            slope = (moved(name, i, 1e-4) - moved(name, i, -1e-4)) / 2e-4
            assert abs(slope) < 2e-2, (name, i)
    assert best > model.log_likelihoods_[0]


def test_what_is_fixed_stays_and_masks_free_single_entries():
    rng = np.random.default_rng(10)
    truth = random_model(rng, 2, 1, transition_cov=np.diag([0.5, 0.2]), observation=[[1.0, 0.0]])
    ys = truth.sample(200, 2, seed=1)[0]
    mask = np.array([[True, False], [False, True]])
    start = clone(truth).set_params(
        learn={"transition": mask, "transition_cov": mask}, max_iter=20, tol=1e-13
    )
    with pytest.warns(mk.errors.ConvergenceWarning):
        found = clone(start).fit(ys)
    assert (found.transition_[~mask] == np.asarray(truth.transition)[~mask]).all()
    assert (found.transition_[mask] != np.asarray(truth.transition)[mask]).all()
    assert (found.transition_cov_[~mask] == 0).all()
    np.testing.assert_array_equal(found.observation_cov_, truth.observation_cov)
    assert (np.diff(found.log_likelihoods_) > -1e-9).all()
    with pytest.raises(mk.MarkoviaError, match="no blocks"):
        clone(truth).set_params(
            learn={"observation_cov": True, "transition_cov": [[True, True], [False, True]]}
        ).fit(ys)
    with pytest.raises(mk.MarkoviaError, match="learn= names 'slope'"):
        clone(truth).set_params(learn=["slope"]).fit(ys)


def test_time_varying_matrices_are_not_learned():
    model = random_model(np.random.default_rng(11), observation=np.ones((5, 2, 2)), max_iter=1)
    model.fit(np.random.default_rng(0).normal(size=(5, 2)))
    assert model.observation_.shape == (5, 2, 2)
    with pytest.raises(mk.MarkoviaError, match="varies over time"):
        clone(model).set_params(learn=["observation"]).fit(np.ones((5, 2)))
    with pytest.raises(mk.MarkoviaError, match="matrices for 5 steps, and none for step 5 of sequence 1"):
        model.log_prob([np.ones((4, 2)), np.ones((6, 2))])


def test_innovations_of_the_true_model_pass_their_tests_and_those_of_a_wrong_one_do_not():
    walk = mk.LinearStateSpace(1, 1, 1, 1)
    y = walk.sample(400, seed=0)[0][0]
    right = walk.filter(y).test_innovations()[0][0]
    wrong = mk.LinearStateSpace(1, 0.001, 1, 1).filter(y).test_innovations()[0][0]
    assert min(right.ljung_box.p_value, right.jarque_bera.p_value, right.heteroskedasticity.p_value) > 0.01
    assert wrong.ljung_box.p_value < 1e-6


def test_bad_sequences_are_named():
    walk = mk.LinearStateSpace(1, 1, 1, 1)
    with pytest.raises(mk.MarkoviaError, match="sequence 1 has no steps"):
        walk.log_prob([[1.0], []])
    with pytest.raises(mk.MarkoviaError, match="sequence 1 has 2 columns"):
        walk.log_prob([np.ones((3, 1)), np.ones((3, 2))])
    with pytest.raises(mk.MarkoviaError, match="3 numbers a step, but the model observes 1"):
        walk.log_prob(np.ones((3, 3)))
    with pytest.raises(mk.MarkoviaError, match="step 1 of sequence 0 has an infinite value"):
        walk.log_prob([1.0, np.inf])
    with pytest.raises(
        mk.MarkoviaError, match="step 1 of sequence 1 has an observation that is known exactly"
    ):
        mk.LinearStateSpace(1, 0, 1, 0, initial_cov=1).log_prob([[1.0], [1.0, 1.0]])
    with pytest.raises(mk.MarkoviaError, match="form="):
        mk.LinearStateSpace(form="root").log_prob([1.0])
    with pytest.raises(mk.MarkoviaError, match="steps="):
        walk.forecast([1.0, 2.0], 0)


def test_clones_and_pickles_keep_what_they_are():
    import pickle

    model = random_model(np.random.default_rng(12), max_iter=2)
    y = np.random.default_rng(13).normal(size=(20, 2))
    with pytest.warns(mk.errors.ConvergenceWarning):
        model.fit(y)
    assert pickle.loads(pickle.dumps(model)).score(y) == model.score(y)
    assert clone(model).score(y) == pytest.approx(model.log_likelihoods_[0])


@pytest.mark.slow
@pytest.mark.parametrize("varying", [False, True])
def test_scans_parallel_in_time_have_the_same_values(varying):
    rng = np.random.default_rng(12)
    more = {"transition": 0.5 * rng.normal(size=(24, 2, 2))} if varying else {}
    model = random_model(rng, **more)
    ys = [rng.normal(size=(k, 2)) for k in (24, 1)]
    ys[0][rng.random((24, 2)) < 0.3] = np.nan
    np.testing.assert_allclose(model.log_prob(ys, parallel="time"), model.log_prob(ys), rtol=1e-10)
    found, exact = model.filter(ys, parallel="time"), model.filter(ys)
    smoothed, truth = model.smooth(ys, parallel="time"), model.smooth(ys)
    for k in range(2):
        np.testing.assert_allclose(found.mean[k], exact.mean[k], atol=1e-9)
        np.testing.assert_allclose(found.cov[k], exact.cov[k], atol=1e-9)
        np.testing.assert_allclose(found.innovations[k], exact.innovations[k], atol=1e-9)
        np.testing.assert_allclose(smoothed.mean[k], truth.mean[k], atol=1e-9)
        np.testing.assert_allclose(smoothed.cov[k], truth.cov[k], atol=1e-9)
    with pytest.raises(mk.MarkoviaError, match="diffuse start is not run in parallel"):
        mk.LinearStateSpace().filter(ys[0][:, :1], parallel="time")


def test_results_of_one_array_are_that_array_to_numpy():
    model = random_model(np.random.default_rng(13))
    y = np.random.default_rng(14).normal(size=(6, 2))
    alone, listed = model.smooth(y), model.smooth([y])
    assert np.asarray(alone.mean).shape == (6, 2)
    assert np.asarray(listed.mean).shape == (1, 6, 2)
    np.testing.assert_array_equal(alone.mean[0], listed.mean[0])
    np.testing.assert_array_equal(alone.mean[:, 1], listed.mean[0][:, 1])
    assert np.asarray(model.forecast(y, 3).mean).shape == (3, 2)
    assert alone.cov.shape == (6, 2, 2)
