"""Kalman filters and smoothers against the dense joint Gaussian, and against statsmodels."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

from markovia.errors import InvalidArgument
from markovia.inference.sequences.kalman_filter import KalmanFilter, simulate
from markovia.inference.sequences.state_space import state_space

FORMS = ["covariance", "square-root"]


def random_space(rng, n, p, steps=1, diffuse=False, noiseless=False):
    def covariance(k, count):
        a = rng.normal(size=(count, k, k))
        return a @ a.swapaxes(1, 2) + 0.1 * np.eye(k)

    T = rng.normal(size=(steps, n, n))
    T *= 0.9 / np.abs(np.linalg.eigvals(T)).max(axis=1)[:, None, None]
    H = np.zeros((steps, p, p)) if noiseless else covariance(p, steps)
    return state_space(
        T, covariance(n, steps), rng.normal(size=(steps, p, n)), H,
        rng.normal(size=n), None if diffuse else covariance(n, 1)[0],
        rng.normal(size=(steps, n)), rng.normal(size=(steps, p)),
    )  # fmt: skip


def random_rows(rng, lengths, p, missing=0.2):
    y = rng.normal(size=(sum(lengths), p))
    y[rng.random(y.shape) < missing] = np.nan
    return y, np.concatenate([[0], np.cumsum(lengths)])


def dense(space, y):
    """The posterior of all states of one sequence, a flat start where diffuse, by the precision of them all together."""
    steps, n = len(y), space.n_states
    at = lambda m, t: m[t if len(m) > 1 else 0]  # noqa: E731
    precision, shift = np.zeros((steps * n, steps * n)), np.zeros(steps * n)
    if not space.diffuse.any():
        first = np.linalg.inv(space.initial_cov)
        precision[:n, :n] += first
        shift[:n] += first @ space.initial_mean
    for t in range(steps):
        seen = ~np.isnan(y[t])
        z, h = at(space.observation, t)[seen], at(space.observation_cov, t)[np.ix_(seen, seen)]
        here = slice(t * n, t * n + n)
        precision[here, here] += z.T @ np.linalg.solve(h, z)
        shift[here] += z.T @ np.linalg.solve(h, y[t, seen] - at(space.observation_offset, t)[seen])
        if t + 1 < steps:
            D = np.hstack([-at(space.transition, t), np.eye(n)])
            q = np.linalg.inv(at(space.transition_cov, t))
            both = slice(t * n, t * n + 2 * n)
            precision[both, both] += D.T @ q @ D
            shift[both] += D.T @ q @ at(space.transition_offset, t)
    cov = np.linalg.inv(precision)
    return (cov @ shift).reshape(steps, n), cov.reshape(steps, n, steps, n)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 3),
    p=st.integers(1, 3),
    varying=st.booleans(),
    diffuse=st.booleans(),
)
def test_smoothing_is_the_joint_gaussian_given_what_was_seen(form, seed, n, p, varying, diffuse):
    rng = np.random.default_rng(seed)
    space = random_space(rng, n, p, 9 if varying else 1, diffuse)
    y, offsets = random_rows(rng, [9, 8], p)
    y[[1, 3, 6, 10, 12, 14]] = rng.normal(size=(6, p))  # enough to tell where a diffuse start was
    found = KalmanFilter(space, y, offsets, form=form).smoothed
    for i in range(2):
        mean, cov = dense(space, y[offsets[i] : offsets[i + 1]])
        steps = np.arange(len(mean))
        scale = np.abs(cov).max()
        np.testing.assert_allclose(found.mean[i], mean, atol=1e-8 * max(1, np.abs(mean).max()))
        np.testing.assert_allclose(found.cov[i], cov[steps, :, steps], atol=1e-8 * scale)
        np.testing.assert_allclose(found.lag_cov[i], cov[steps[1:], :, steps[:-1]], atol=1e-8 * scale)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("diffuse", [False, True])
@pytest.mark.parametrize("steps", [1, 60])
def test_filters_and_likelihoods_are_those_of_statsmodels(form, diffuse, steps):
    rng = np.random.default_rng(steps + diffuse)
    space = random_space(rng, 3, 2, steps, diffuse)
    y, offsets = random_rows(rng, [60], 2, 0.1)
    peer = KalmanSmoother(k_endog=2, k_states=3, k_posdef=3, tolerance=0)
    peer.bind(y.copy())
    last = lambda m: np.moveaxis(m, 0, -1)  # noqa: E731
    peer["selection"] = np.eye(3)
    for name, value in [
        ("transition", space.transition), ("state_cov", space.transition_cov), ("design", space.observation),
        ("obs_cov", space.observation_cov), ("state_intercept", space.transition_offset),
        ("obs_intercept", space.observation_offset),
    ]:  # fmt: skip
        peer[name] = last(value)
    if diffuse:
        peer.initialize_diffuse()
    else:
        peer.initialize_known(space.initial_mean, space.initial_cov)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = peer.smooth()
    start = space if not diffuse else space.__class__(**{**vars(space), "initial_mean": np.zeros(3)})
    run = KalmanFilter(start, y, offsets, form=form)
    ours = run.filtered
    np.testing.assert_allclose(run.log_prob, theirs.llf, rtol=1e-9)
    told = np.isfinite(ours.cov[0]).all(axis=(1, 2))
    assert told.sum() >= 56
    np.testing.assert_allclose(ours.mean[0][told], theirs.filtered_state.T[told], atol=1e-8)
    np.testing.assert_allclose(
        ours.cov[0][told], last(last(theirs.filtered_state_cov))[told].swapaxes(1, 2), atol=1e-8
    )
    whole = told & ~np.isnan(y).any(axis=1)
    whole[:6] = False
    np.testing.assert_allclose(ours.innovations[0][whole], theirs.forecasts_error.T[whole], atol=1e-8)
    np.testing.assert_allclose(
        ours.innovation_cov[0][whole], np.moveaxis(theirs.forecasts_error_cov, -1, 0)[whole], atol=1e-8
    )


def test_covariances_that_have_come_to_rest_change_no_answer():
    rng = np.random.default_rng(3)
    space = random_space(rng, 3, 2)
    y, offsets = random_rows(rng, [400, 300], 2, 0.0)
    y[200, 1] = np.nan
    resting = KalmanFilter(space, y, offsets)
    assert len(np.unique(resting.gains.slot)) < 250
    assert len(np.unique(resting.smoothed.place)) < 400
    moving = space.__class__(**{**vars(space), "transition": np.repeat(space.transition, 400, axis=0)})
    moved = KalmanFilter(moving, y, offsets)
    assert len(np.unique(moved.gains.slot)) == 700
    np.testing.assert_allclose(resting.log_prob, moved.log_prob, rtol=1e-11)
    for i in range(2):
        np.testing.assert_allclose(resting.smoothed.mean[i], moved.smoothed.mean[i], atol=1e-10)
        np.testing.assert_allclose(resting.smoothed.cov[i], moved.smoothed.cov[i], atol=1e-10)


@pytest.mark.slow
def test_draws_of_states_have_the_smoothed_means_and_covariances():
    rng = np.random.default_rng(5)
    space = random_space(rng, 2, 1, diffuse=True)
    y, offsets = random_rows(rng, [6], 1, 0.0)
    y[3] = np.nan
    run = KalmanFilter(space, y, offsets)
    draws = run.draw(rng, 4000)[0]
    joint_mean, joint_cov = dense(space, y)
    error = np.sqrt(np.einsum("tata->ta", joint_cov))
    assert (np.abs(draws.mean(axis=0) - joint_mean) < 4.5 * error / np.sqrt(4000)).all()
    flat = draws.reshape(4000, -1)
    scale = np.outer(error.ravel(), error.ravel())
    assert np.abs((np.cov(flat.T) - joint_cov.reshape(12, 12)) / scale).max() < 0.1


def test_draws_from_the_model_have_its_likelihood():
    rng = np.random.default_rng(7)
    space = random_space(rng, 2, 2, 5)
    offsets = np.arange(0, 5 * 3001, 5)
    x, y = simulate(
        space, offsets, rng, np.tile(space.transition_offset, (3000, 1)), np.tile(space.observation_offset, (3000, 1)),
        space.initial_mean,
    )  # fmt: skip
    log_prob = KalmanFilter(space, y, offsets).log_prob
    run = KalmanFilter(space, y[:5], np.array([0, 5])).filtered
    entropy = 0.5 * sum(np.linalg.slogdet(2 * np.pi * np.e * f)[1] for f in run.innovation_cov[0])
    assert abs(log_prob.mean() + entropy) < 4.5 * np.sqrt(
        5 / 3000
    )  # half a chi-square with ten degrees a sequence
    assert x.shape == (15_000, 2)


def test_an_observation_that_is_known_beforehand_is_refused_by_its_place():
    space = state_space(np.eye(2), 0, [[1, 0], [1, 0]], 0, [0, 0], np.eye(2))
    with pytest.raises(InvalidArgument, match="row 0 has an observation that is known exactly"):
        KalmanFilter(space, np.ones((2, 2)), np.array([0, 2]))


def test_a_start_that_nothing_tells_is_infinite_when_filtered_and_refused_when_smoothed():
    space = state_space(np.eye(2), np.eye(2), [[1.0, 0.0]], 1)
    run = KalmanFilter(space, np.ones((3, 1)), np.array([0, 3]))
    assert np.isinf(run.filtered.cov[0][2, 1, 1])
    assert np.isfinite(run.filtered.cov[0][2, 0, 0])
    with pytest.raises(InvalidArgument, match="row 2 do not tell all states that start diffuse"):
        _ = run.smoothed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"transition": np.ones((2, 3))}, "transition= is a square matrix"),
        ({"observation": np.ones((1, 3))}, "observation= is any by 2"),
        ({"transition_cov": [[1, 2], [2, 1]]}, "transition_cov= is no covariance"),
        ({"transition_cov": [[1, 2], [0, 9]]}, "transition_cov= is not symmetric"),
        ({"observation_cov": np.nan}, "observation_cov= has entries that are not finite"),
        ({"initial_mean": [1, 2, 3]}, "initial_mean= has 2 numbers"),
        ({"initial_cov": np.eye(3)}, "initial_cov= is 2 by 2"),
        ({"transition": np.ones((4, 2, 2)), "observation": np.ones((3, 1, 2))}, r"for \[3, 4\] steps"),
        ({"transition": "abc"}, "transition= is an array of numbers"),
    ],
)
def test_wrong_matrices_are_named(change, words):
    good = {
        "transition": np.eye(2), "transition_cov": np.eye(2), "observation": np.ones((1, 2)), "observation_cov": 1.0,
        "initial_mean": np.zeros(2), "initial_cov": np.eye(2),
    }  # fmt: skip
    with pytest.raises(InvalidArgument, match=words):
        state_space(**{**good, **change})
