"""Expectation propagation: against integrals over all values of the function."""

import numpy as np
import pytest

import markovia as mk
from markovia.learning.processes.ep_evidence import ExpectationPropagation
from markovia.learning.processes.laplace_evidence import LaplaceEvidence
from markovia.learning.processes.likelihoods import BernoulliLogit, BernoulliProbit, StudentTNoise
from process_likelihoods import TARGETS, THREE, brute_force, covariance

WORDS = ["bernoulli", "probit", "ordinal", "poisson", "student-t"]


@pytest.mark.parametrize("word", WORDS)
def test_evidence_and_moments_are_nearly_those_of_the_integral(word):
    exact, mean, variance = brute_force(word)
    post = ExpectationPropagation(THREE, TARGETS[word]).posterior(covariance(word))
    assert post.info.converged
    assert post.info.log_evidence == pytest.approx(exact, abs=2e-2 if word == "student-t" else 3e-3)
    there = post.moments(THREE)
    np.testing.assert_allclose(there.means[0], mean, atol=0.05 if word == "student-t" else 5e-3)
    np.testing.assert_allclose(there.variances[0], variance, rtol=0.05 if word == "student-t" else 1e-2)
    laplace = LaplaceEvidence(THREE, TARGETS[word]).evidence(covariance(word))[0]
    assert abs(post.info.log_evidence - exact) < abs(laplace - exact)


def test_one_row_is_exact():
    """The factor of a single row has the moments of its true density."""
    for likelihood, y in ((BernoulliLogit(), 1.0), (StudentTNoise(0.1, 2.0), 4.0)):
        value, _ = ExpectationPropagation([[0.0]], [y]).evidence(2.0 * mk.covariances.RBF(1.0) + likelihood)
        assert value == pytest.approx(
            float(likelihood.tilted(np.array([y]), np.zeros(1), np.array([2.0]))[0][0]), abs=1e-7
        )


def test_large_variances_and_separated_classes_settle():
    X, y = np.array([[0.0], [0.1], [0.2], [1.0], [1.1]]), [0, 0, 1, 1, 1]
    for variance in (1.0, 1e3, 1e6):
        post = ExpectationPropagation(X, y).posterior(variance * mk.covariances.RBF(0.5) + BernoulliProbit())
        assert post.info.converged
        assert -10.0 < post.info.log_evidence < -1.0


def test_outliers_settle():
    x = np.linspace(0.0, 6.0, 30)[:, None]
    y = np.sin(x[:, 0])
    y[[5, 17]] += (30.0, -50.0)
    post = ExpectationPropagation(x, y).posterior(mk.covariances.RBF(1.5) + StudentTNoise(0.05, 3.0))
    assert post.info.converged
    np.testing.assert_allclose(post.moments(x).means[0], np.sin(x[:, 0]), atol=0.05)
