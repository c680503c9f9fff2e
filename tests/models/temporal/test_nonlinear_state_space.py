"""Nonlinear filters and smoothers: the Kalman filter where all is linear, dense sums on a grid, and refusals."""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone

import markovia as mk

A = np.array([[0.9, 0.2], [-0.1, 0.8]])
C = np.array([[1.0, 0.3], [0.2, -0.7]])
Q, R = np.array([[0.5, 0.1], [0.1, 0.3]]), np.array([[0.4, 0.1], [0.1, 0.6]])
SMOOTHING = ("extended", "unscented", "cubature", "ensemble")


def move(x):
    return A @ x


def show(x):
    return C @ x


def line(method, **more):
    given = (move, show, Q, R, [1.0, 0.0], np.eye(2))
    return mk.series.NonlinearStateSpace(*given, method=method, random_state=0, **more)


@pytest.fixture(scope="module")
def kalman():
    model = mk.LinearStateSpace(A, Q, C, R, [1.0, 0.0], np.eye(2))
    ys = [model.sample(k, seed=k)[0][0] for k in (20, 12)]
    ys[0][3], ys[1][4, 1] = np.nan, np.nan
    return model, ys


def answers(model, ys, smooth=True):
    """Filtered, smoothed and forecast numbers, one flat array each."""
    filtered, ahead = model.filter(ys), model.forecast(ys, 2)
    found = [filtered.mean, filtered.cov, filtered.innovations, filtered.predicted_cov, filtered.standardized]
    found += [ahead.mean, ahead.lower, ahead.state_cov]
    if smooth:
        smoothed = model.smooth(ys)
        np.testing.assert_array_equal(smoothed.log_prob, filtered.log_prob)
        found += [smoothed.mean, smoothed.cov]
    return [filtered.log_prob, *(np.concatenate([np.ravel(one) for one in part]) for part in found)]


@pytest.mark.parametrize("method", ["extended", "unscented", "cubature", "gaussian-sum"])
def test_linear_models_have_the_kalman_filters_answers(kalman, method):
    model, ys = kalman
    smooth = method != "gaussian-sum"
    for ours, theirs in zip(
        answers(line(method, iterations=2), ys, smooth), answers(model, ys, smooth), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.slow
def test_ensembles_are_off_the_kalman_filter_by_chance_alone(kalman):
    model, ys = kalman
    seeds, members = 12, 400
    runs = [answers(line("ensemble", members=members).set_params(random_state=k), ys) for k in range(seeds)]
    for each, truth in zip(zip(*runs, strict=True), answers(model, ys), strict=True):
        spread = np.std(each, axis=0, ddof=1)
        off = np.mean(each, axis=0) - truth
        known = ~np.isnan(truth)
        # the mean of the runs is as far off as its standard error says, and one run by a few roots of its members
        assert np.sqrt(np.mean(off[known] ** 2)) < 2 * np.sqrt(np.mean(spread[known] ** 2) / seeds)
        assert np.sqrt(np.mean(spread[known] ** 2)) < 5 / np.sqrt(members)


def test_small_alphas_and_singular_covariances_keep_the_unscented_filter_exact(kalman):
    _, ys = kalman
    flat = np.diag([0.5, 0.0])
    exact = mk.LinearStateSpace(A, flat, C, R, [1.0, 0.0], flat)
    found = mk.series.NonlinearStateSpace(
        move, show, flat, R, [1.0, 0.0], flat, method="unscented", alpha=1e-2, beta=2.0, kappa=1.0
    )
    assert found.log_prob(ys) == pytest.approx(exact.log_prob(ys), abs=1e-7)
    np.testing.assert_allclose(found.smooth(ys).mean[1], exact.smooth(ys).mean[1], atol=1e-7)


def wave(x):
    return x + jnp.sin(x)


def bend(x):
    return x + 0.1 * x**3


def on_a_grid(y, q, r, m, p):
    """Return filtered means, smoothed means and the log likelihood by sums over a fine grid."""
    grid = np.linspace(-9, 9, 1801)

    def normal(x, v):
        return np.exp(-0.5 * x**2 / v) / np.sqrt(2 * np.pi * v)

    width = grid[1] - grid[0]
    step = normal(grid[None, :] - (grid + np.sin(grid))[:, None], q) * width
    law, total, laws = normal(grid - m, p) * width, 0.0, []
    for one in y:
        law = law * (1.0 if np.isnan(one) else normal(one - grid - 0.1 * grid**3, r))
        total += np.log(law.sum())
        law = law / law.sum()
        laws.append(law)
        law = law @ step
    back, smoothed = np.ones_like(grid), []
    for one, law in zip(y[::-1], laws[::-1], strict=True):
        both = law * back
        smoothed.append(grid @ both / both.sum())
        seen = back * (1.0 if np.isnan(one) else normal(one - grid - 0.1 * grid**3, r))
        back = step @ seen
        back /= back.max()
    return np.array([grid @ law for law in laws]), np.array(smoothed[::-1]), total


@pytest.mark.slow
@pytest.mark.parametrize(("method", "near"), [("extended", 0.05), ("unscented", 0.03), ("ensemble", 0.05)])
def test_a_mildly_bent_model_is_followed_as_on_a_dense_grid(method, near):
    q, r, m, p = 0.05, 0.02, 0.5, 0.05
    model = mk.series.NonlinearStateSpace(
        wave, bend, q, r, [m], p, method=method, members=5_000, random_state=1, iterations=3
    )
    y = model.sample(15, seed=3)[0][0]
    y[6] = np.nan
    filtered, smoothed, total = on_a_grid(y[:, 0], q, r, m, p)
    assert np.abs(np.asarray(model.filter(y).mean)[:, 0] - filtered).max() < near
    assert np.abs(np.asarray(model.smooth(y).mean)[:, 0] - smoothed).max() < near
    assert model.log_prob(y)[0] == pytest.approx(total, abs=0.3)


def square(x):
    return x[0] ** 2 + 2 * x[0] * x[1] + 3 * x[1] ** 2 + x[1]


@pytest.mark.slow
def test_sigma_points_have_the_exact_mean_of_a_quadratic_observation():
    mean, cov = np.array([1.0, -2.0]), np.array([[2.0, 0.5], [0.5, 1.0]])
    exact = float(square(mean)) + cov[0, 0] + 2 * cov[0, 1] + 3 * cov[1, 1]
    for method in ("unscented", "cubature"):
        model = mk.series.NonlinearStateSpace(move, square, Q, 0.5, mean, cov, method=method)
        assert model.filter([[np.nan]]).expected[0][0, 0] == pytest.approx(exact, abs=1e-12)
    plain = mk.series.NonlinearStateSpace(move, square, Q, 0.5, mean, cov)
    assert abs(plain.filter([[np.nan]]).expected[0][0, 0] - exact) > 0.5


@pytest.mark.slow
def test_iterating_the_derivative_ends_at_the_mode():
    model = mk.series.NonlinearStateSpace(wave, bend, 0.1, 0.01, [0.5], 2.0, iterations=30)
    y = np.array([[4.0]])
    x = np.linspace(-5, 5, 2_000_001)
    mode = x[np.argmin((y[0, 0] - x - 0.1 * x**3) ** 2 / 0.01 + (x - 0.5) ** 2 / 2.0)]
    assert model.filter(y).mean[0][0, 0] == pytest.approx(mode, abs=1e-5)
    once = clone(model).set_params(iterations=1)
    assert abs(once.filter(y).mean[0][0, 0] - mode) > 0.05


def still(x):
    return x


def absolute(x):
    return x**2


def test_a_gaussian_sum_keeps_both_signs_of_a_number_seen_squared():
    prior = [(0.5, 1.5, 0.3), (0.5, -1.5, 0.3)]
    model = mk.series.NonlinearStateSpace(
        still, absolute, 1e-6, 0.2, initial=prior, method="gaussian-sum", components=2
    )
    found = model.filter([4.0, 4.1, 3.9])
    weights, means, _ = found.components[0]
    assert weights[-1] == pytest.approx([0.5, 0.5])
    assert sorted(means[-1][:, 0]) == pytest.approx([-2.0, 2.0], abs=0.1)
    assert found.mean[0][-1, 0] == pytest.approx(0, abs=1e-9)
    assert found.cov[0][-1, 0, 0] == pytest.approx(4, abs=0.3)


@pytest.mark.slow
def test_a_gaussian_sum_is_exact_for_mixed_noise_until_parts_are_merged():
    """Two steps, each noise of two parts: eight Gaussians at the end, summed here one by one."""
    noise, blur = [(0.7, 0.0, 0.2), (0.3, 1.0, 1.0)], [(0.9, 0.0, 0.5), (0.1, 0.0, 5.0)]
    model = mk.series.NonlinearStateSpace(
        still, still, initial=[(1.0, 0.0, 1.0)], transition_noise=noise, observation_noise=blur,
        method="gaussian-sum", components=8,
    )  # fmt: skip
    y, total, mean = np.array([0.5, 2.0]), 0.0, 0.0
    for a, _, r0 in blur:
        for b, bias, q in noise:
            for c, _, r1 in blur:
                law = mk.LinearStateSpace(
                    1, q, 1, np.array([r0, r1])[:, None, None], 0, 1, transition_offset=bias
                )
                p = a * b * c * np.exp(law.log_prob(y)[0])
                total, mean = total + p, mean + p * law.filter(y).mean[0][-1, 0]
    found = model.filter(y)
    assert found.log_prob[0] == pytest.approx(np.log(total), abs=1e-10)
    assert found.mean[0][-1, 0] == pytest.approx(mean / total, abs=1e-10)
    merged = clone(model).set_params(components=2).filter(y)
    assert merged.log_prob[0] == pytest.approx(np.log(total), abs=0.05)
    assert merged.log_prob[0] != found.log_prob[0]


@pytest.mark.slow
def test_draws_have_the_laws_moments_and_inputs_reach_both_functions():
    model = mk.series.NonlinearStateSpace(
        lambda x, u: 0.5 * x + u, lambda x, u: x - u, 0.3, 0.2, [1.0], 0.1, method="unscented"
    )
    u = np.array([[1.0], [0.0], [-2.0]])
    ys, xs = model.sample(3, 20_000, inputs=u, seed=0)
    expected = np.array([1.0, 1.5, 0.75])
    assert np.mean(xs, axis=0)[:, 0] == pytest.approx(expected, abs=0.02)
    assert np.mean(ys, axis=0)[:, 0] == pytest.approx(expected - u[:, 0], abs=0.02)
    assert np.var(np.array(ys)[:, 0, 0]) == pytest.approx(0.3, abs=0.02)
    blank = np.full((3, 1), np.nan)
    assert model.filter(blank, inputs=u).expected[0][:, 0] == pytest.approx(expected - u[:, 0])
    ahead = model.forecast(blank[:1], 2, inputs=u[:1], future_inputs=u[1:])
    assert ahead.state_mean[0][:, 0] == pytest.approx(expected[1:])
    np.testing.assert_array_equal(
        model.sample(3, 2, inputs=u, seed=4)[0][1], model.sample(3, 2, inputs=u, seed=4)[0][1]
    )


@pytest.mark.slow
def test_localised_and_inflated_ensembles_change_what_they_say_they_change(kalman):
    _, ys = kalman
    none = line("ensemble", localisation=np.zeros((2, 2))).filter(ys)
    np.testing.assert_allclose(none.mean[0], none.predicted_mean[0], atol=1e-12)
    plain, wide = line("ensemble").filter(ys), line("ensemble", inflation=2.0).filter(ys)
    assert np.trace(wide.predicted_cov[0][5]) > 2 * np.trace(plain.predicted_cov[0][5])


def test_a_scan_is_compiled_once_for_lengths_that_share_a_shape():
    from markovia.inference.sequences.nonlinear_filter import Rule, filter_program

    model = line("cubature")
    for steps in (9, 12, 16):
        model.log_prob(np.zeros((steps, 2)))
    assert filter_program(move, show, Rule("cubature"))._cache_size() <= 2  # one and two sequences


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"transition": lambda x: np.sin(x)}, "transition= cannot be compiled"),
        ({"transition": lambda x: x[:1]}, "gives 1 numbers, but initial_mean= has 2"),
        ({"observation": lambda x: x[:1]}, "2 numbers a step, but observation= gives 1"),
        ({"observation": 3.0}, "observation= is a function"),
        ({"observation": lambda x: np.ones((2, 3)) @ x}, "observation= fails for a state of 2 numbers"),
        ({"method": "other"}, "method"),
        ({"kappa": -5.0}, "kappa="),
        ({"transition_cov": [[1.0, 2.0], [2.0, 1.0]]}, "transition_cov= is no covariance"),
        ({"initial": [(1.0, 0.0, 1.0)]}, "mixtures are for"),
        ({"localisation": np.ones((3, 2))}, "localisation= is 2 by 2"),
        ({"observation": lambda x: jnp.exp(800 * x)}, "the filter of sequence 1 left"),
    ],
)
def test_what_is_wrong_is_said(kalman, change, words):
    ys = [np.full((2, 2), np.nan), np.ones((3, 2))]
    with pytest.raises(mk.MarkoviaError, match=words):
        clone(line("extended")).set_params(**change).filter(ys)


def test_a_gaussian_sum_does_not_smooth_and_weights_sum_to_one(kalman):
    with pytest.raises(mk.errors.UnsupportedModel, match="only filters"):
        line("gaussian-sum").smooth(kalman[1])
    with pytest.raises(mk.MarkoviaError, match="sum to 1"):
        line("gaussian-sum", initial=[(0.4, [0.0, 0.0], 1.0)]).filter(kalman[1])
