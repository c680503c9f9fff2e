"""Acquisitions: values against quadrature and simulation, gradients against differences, exact where numbers underflow."""

from math import log

import numpy as np
import pytest
from scipy import integrate, stats

from markovia.learning.processes.acquisition import (
    ACQUISITIONS,
    Acquisition,
    expected_fall,
    improvement_score,
    log_improvement,
)
from markovia.learning.processes.surrogate import fitted_surrogate
from model_strategies import tries

STEP = 1e-6
"""Of differences."""


@pytest.fixture(scope="module")
def process():
    rng = np.random.default_rng(0)
    X = rng.random((12, 3))
    return fitted_surrogate(X, np.sin(5 * X[:, 0]) + X[:, 1] ** 2 + 0.05 * rng.standard_normal(12))


@pytest.fixture(scope="module")
def constraint():
    X = np.random.default_rng(1).random((12, 3))
    return fitted_surrogate(X, 2.0 * X[:, 0] - X[:, 2] - 0.3, noise=0.0)


@pytest.mark.parametrize("z", [-8.0, -3.0, -1.0001, -0.9999, 0.0, 0.4, 2.0, 9.0])
def test_the_expected_improvement_is_its_integral(z):
    mean, sd = 0.7, 1.3
    best = mean + z * sd
    value, by_mean, by_sd = improvement_score("log-ei", best, 0.0, np.array([mean]), np.array([sd]))
    ends = max(z - 40.0, 0.0), max(z, 0.0) + 10.0  # the improvement in deviations
    mass, _ = integrate.quad(lambda u: u * sd * stats.norm.pdf(z - u), *ends, epsabs=0, limit=400)
    assert value[0] == pytest.approx(log(mass), abs=1e-9)
    for k, slope in enumerate((by_mean, by_sd)):
        up, down = (
            improvement_score(
                "log-ei", best, 0.0, np.array([mean + h * (k == 0)]), np.array([sd + h * (k == 1)])
            )[0][0]
            for h in (STEP, -STEP)
        )
        assert slope[0] == pytest.approx((up - down) / (2 * STEP), rel=1e-5)


@pytest.mark.parametrize("z", [-1.5, -20.0, -29.9, -30.1, -1e3, -1e5, -9.9e6, -1e12])
def test_the_log_improvement_is_exact_where_the_improvement_underflows(z):
    # with t = -z u: phi(z) + z Phi(z) = phi(z) / z^2 times the integral of t exp(-t - t^2 / (2 z^2))
    def integral(power):
        return integrate.quad(
            lambda t: t**power * np.exp(-t - t**2 / (2 * z**2)), 0, 60, epsabs=0, epsrel=1e-13, limit=200
        )[0]

    first = integral(1)
    rest = log(first) - 2 * log(-z)
    value, slope, density = log_improvement(np.array([z]))
    assert value[0] == pytest.approx(-0.5 * z**2 - 0.5 * log(2 * np.pi) + rest, rel=2e-13)
    # shares of the sum, which do not drown in the size of its log
    assert density[0] == pytest.approx(np.exp(-rest), rel=1e-11)
    assert slope[0] == pytest.approx(-integral(0) / z * np.exp(-rest), rel=1e-11)


def test_the_log_probability_of_improvement_is_that_of_the_normal_distribution():
    mean, sd = np.array([0.2, 5.0, 80.0]), np.array([1.5, 0.5, 1.0])
    value, _, _ = improvement_score("pi", 0.1, 0.0, mean, sd)
    np.testing.assert_allclose(value, stats.norm.logcdf(0.1, mean, sd), rtol=1e-13)


def test_the_lower_bound_is_the_mean_less_deviations():
    value, by_mean, by_sd = improvement_score("lcb", 0.0, 2.0, np.array([0.3]), np.array([0.1]))
    assert value[0] == pytest.approx(-(0.3 - 0.2))
    assert (by_mean[0], by_sd[0]) == (-1.0, 2.0)


@pytest.mark.parametrize("kind", ACQUISITIONS)
@pytest.mark.parametrize("constrained", [False, True])
def test_gradients_are_those_of_differences(kind, constrained, process, constraint):
    score = Acquisition(
        kind, process, -0.5, kappa=1.5, constraints=[constraint] * constrained, rng=np.random.default_rng(3)
    )
    X = np.random.default_rng(2).random((5, 3))
    value, slope = score.with_gradient(X)
    np.testing.assert_allclose(value, score(X), rtol=1e-10)
    h = 1e-5
    for j in range(3):
        step = h * np.eye(3)[j]
        differences = (score(X + step) - score(X - step)) / (2 * h)
        np.testing.assert_allclose(slope[:, j], differences, rtol=2e-4, atol=2e-4 * np.abs(differences).max())


def test_constraints_multiply_by_the_probability_that_they_hold(process, constraint):
    X = np.random.default_rng(2).random((6, 3))
    mean, sd = constraint.moments(X)
    holds = stats.norm.logcdf(0.0, constraint.unscaled(mean), constraint.scale * sd)
    plain, both = (Acquisition("log-ei", process, -0.5, constraints=c)(X) for c in ([], [constraint]))
    np.testing.assert_allclose(both - plain, holds, rtol=1e-8, atol=1e-8)
    # where no point is known to be possible, the score is that probability alone
    alone = Acquisition("log-ei", process, None, constraints=[constraint])(X)
    np.testing.assert_allclose(alone, holds, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("seed", tries(20))
def test_the_lowest_of_lines_is_that_of_quadrature(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 9))
    a, b = rng.standard_normal(n), rng.standard_normal(n) * rng.integers(0, 2, n)  # equal slopes among them
    z = np.linspace(-9, 9, 40_001)
    exact = np.trapezoid(np.min(a + b * z[:, None], axis=1) * stats.norm.pdf(z), z)
    fall, share, moment = expected_fall(a, b)
    assert a.min() - np.exp(fall) == pytest.approx(exact, abs=1e-6)
    assert share.sum() == pytest.approx(1.0)
    assert a @ share + b @ moment == pytest.approx(exact, abs=1e-6)


def test_a_fall_that_is_all_but_impossible_is_known_to_all_digits():
    fall, share, _ = expected_fall(np.array([0.0, 12.0, 30.0]), np.array([0.0, 1.0, 0.5]))
    assert fall == pytest.approx(log_improvement(-12.0)[0], rel=1e-12)
    assert share[1] == pytest.approx(stats.norm.sf(12.0), rel=1e-12)


def test_the_knowledge_gradient_is_that_of_simulated_trials():
    X = np.random.default_rng(0).random((12, 3))
    process = fitted_surrogate(X, np.sin(5 * X[:, 0]) + X[:, 1] ** 2, noise=0.5)
    # try the place, refit the mean with what came back, and see by how much the lowest mean of the set fell
    choices = np.random.default_rng(4).random((6, 3))
    x = np.array([[0.9, 0.2, 0.4]])
    score = Acquisition("kg", process, 0.0, choices=choices)
    places = np.vstack([choices, x])
    before = process.moments(choices)[0].min()
    mean, sd = process.moments(x)
    rng = np.random.default_rng(5)
    draws = mean[0] + np.sqrt(sd[0] ** 2 + process.noise) * rng.standard_normal(4000)
    lowest = np.array([process.function.updated(x, [y]).moments(places).means[0].min() for y in draws])
    error = lowest.std() / len(draws) ** 0.5
    assert np.exp(score(x)[0]) == pytest.approx(before - lowest.mean(), abs=4 * error)
    assert error < 0.1 * np.exp(score(x)[0])


def test_the_drawn_function_of_thompson_is_one_function_that_passes_near_the_trials(process):
    scores = [Acquisition("thompson", process, 0.0, rng=np.random.default_rng(s)) for s in range(2)]
    np.testing.assert_array_equal(scores[0](process.X), scores[0](process.X))
    assert not np.allclose(scores[0](process.X), scores[1](process.X))
    near = process.noise**0.5 + process.moments(process.X)[1].max()
    assert np.abs(-scores[0](process.X) - process.function.y).max() < 6 * near


def test_scores_are_finite_at_places_that_were_tried():
    X = np.linspace(0, 1, 5)[:, None]
    exact = fitted_surrogate(X, (X[:, 0] - 0.4) ** 2, noise=0.0)
    for kind in ACQUISITIONS:
        value, slope = Acquisition(kind, exact, -1.0, rng=np.random.default_rng(0)).with_gradient(X)
        assert np.isfinite(value).all(), kind
        assert np.isfinite(slope).all(), kind
