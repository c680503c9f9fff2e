"""Inducing points for any likelihood: the optimum of SGPR, bounds against quadrature, batches, gradients."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument, Unanswered
from markovia.learning.processes.inducing_points import SGPR
from markovia.learning.processes.likelihoods import (
    BernoulliLogit,
    PoissonCounts,
    StudentTNoise,
    as_likelihood,
)
from markovia.learning.processes.stochastic_inducing import SVGP
from markovia.optimise.training import Training
from process_checks import check_slopes, dense, free, slopes

k = mk.covariances
RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 4.0, (25, 2))
F = np.sin(X[:, 0]) * X[:, 1]
Y = F + 0.3 * RNG.standard_normal(25)
P, Z = X[::4], RNG.uniform(0.0, 4.0, (5, 2))


def fitted():
    return k.Scaled(free(1.5), k.RBF(free([1.0, 2.0])))


def test_with_normal_noise_and_all_rows_it_is_the_optimum_of_sgpr():
    whole = fitted() + k.White(free(0.2)) + k.White(0.1)
    ours, other = SVGP(X, Y, inducing=P), SGPR(X, Y, inducing=P)
    (value, found), (expected, by) = ours.evidence(whole), other.evidence(whole)
    assert value == pytest.approx(expected, abs=1e-9)
    for name, slope in slopes(by, whole).items():
        np.testing.assert_allclose(slopes(found, whole)[name], slope, rtol=1e-5, atol=1e-6, err_msg=name)
    one, two = ours.posterior(whole).at(Z), other.posterior(whole).at(Z)
    np.testing.assert_allclose(one.mean(), two.mean(), atol=1e-8)
    np.testing.assert_allclose(one.cov(), two.cov(), atol=1e-8)


def test_points_at_the_data_are_exact():
    rough = 1.7 * k.Matern12(1.0) + k.White(0.1)
    value, mean, cov = dense(rough, X, Y, Z)
    method = SVGP(X, Y, inducing=X, jitter=0.0)
    assert method.evidence(rough)[0] == pytest.approx(value, abs=1e-8)
    at = method.posterior(rough).at(Z)
    np.testing.assert_allclose(at.mean(), mean, atol=1e-8)
    np.testing.assert_allclose(at.cov(), cov, atol=1e-8)


def test_the_bound_of_three_labels_is_below_their_evidence():
    rows, labels = np.array([[0.0], [0.5], [2.0]]), np.array([1.0, 0.0, 1.0])
    whole = k.RBF(1.0) + BernoulliLogit()
    value = SVGP(rows, labels, inducing=rows).evidence(whole)[0]
    assert -2.29 < value < -2.28398257  # by quadrature; what a normal posterior loses is little here
    fewer = SVGP(rows, labels, inducing=rows[:1]).evidence(whole)[0]
    assert fewer < value


LIKELIHOODS = {
    "bernoulli": (BernoulliLogit(), (F > 0.5).astype(float)),
    "poisson": (PoissonCounts(free(0.0, "real")), RNG.poisson(np.exp(0.5 * F)).astype(float)),
    "student": (StudentTNoise(free(0.3), free(4.0)), Y),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_gradients_are_those_of_differences(name, monkeypatch):
    # the best posterior is found to rounding, so that its change does not show
    likelihood, y = LIKELIHOODS[name]
    check_slopes(SVGP(X, y, inducing=P), fitted() + likelihood, rtol=2e-3, atol=2e-4, step=1e-3)


def test_probabilities_are_those_of_the_function_averaged():
    likelihood, y = LIKELIHOODS["bernoulli"]
    post = SVGP(X, y, inducing=P).posterior(1.5 * k.RBF([1.0, 2.0]) + likelihood)
    at = post.at(Z)
    drawn = np.random.default_rng(1).standard_normal(200_000)
    expected = [
        np.mean(1.0 / (1.0 + np.exp(-m - s * drawn))) for m, s in zip(at.mean(), at.sd(), strict=True)
    ]
    np.testing.assert_allclose(post.probabilities(Z)[:, 1], expected, atol=0.004)
    np.testing.assert_allclose(post.probabilities(Z).sum(axis=1), 1.0)
    means, variances = post.target_moments(Z)
    np.testing.assert_allclose(means, post.probabilities(Z)[:, 1])
    np.testing.assert_allclose(variances, means * (1.0 - means))
    counts = SVGP(X, LIKELIHOODS["poisson"][1], inducing=P).posterior(fitted() + PoissonCounts(0.0))
    with pytest.raises(Unanswered, match="no classes"):
        counts.probabilities(Z)


def test_batches_come_near_the_bound_of_all_rows():
    rng = np.random.default_rng(5)
    rows = rng.uniform(0.0, 8.0, (1_000, 1))
    y = np.sin(2.0 * rows[:, 0]) + 0.2 * rng.standard_normal(1_000)
    start = (k.Scaled(None, k.RBF()) + k.White()).started(rows, y)
    training = Training(epochs=25, batch=100, learning_rate=0.02, seed=0, progress=False)
    method = SVGP(rows, y, inducing=15, first=200, training=training)
    found = method.fit(start)
    best = SGPR(rows, y, inducing=15).fit(start)
    assert best.log_evidence - 8.0 < found.log_evidence <= best.log_evidence + 1.0
    assert found.covariance.hypers()["white.variance"].value == pytest.approx(0.04, rel=0.1)
    at = method.posterior(found.covariance).at(np.array([[np.pi / 4]]))
    assert at.mean()[0] == pytest.approx(1.0, abs=4.0 * at.sd()[0] + 0.02)
    again = SVGP(rows, y, inducing=15, first=200, training=training).fit(start)
    assert again.log_evidence == pytest.approx(found.log_evidence, rel=1e-10)


def test_a_time_limit_keeps_the_best_so_far(monkeypatch):
    rng = np.random.default_rng(5)
    rows = rng.uniform(0.0, 8.0, (400, 1))
    y = np.sin(2.0 * rows[:, 0]) + 0.2 * rng.standard_normal(400)
    start = (k.Scaled(None, k.RBF()) + k.White()).started(rows, y)
    found = SVGP(rows, y, inducing=10, first=100).fit(start, time_limit=1e-3)
    assert found.reason == "time limit"
    assert np.isfinite(found.log_evidence)


def test_what_it_does_not_do_is_said():
    with pytest.raises(InvalidArgument, match="chooses its points and keeps them"):
        SVGP(X, Y, move=True)
    with pytest.raises(InvalidArgument, match="likelihoods of one function"):
        SVGP(X, np.arange(25) % 3, inducing=P).evidence(fitted() + as_likelihood("categorical"))
    with pytest.raises(InvalidArgument, match="whole numbers"):
        SVGP(X, Y, inducing=P).evidence(fitted() + BernoulliLogit())
