"""Variational posteriors: bounds below the integral, the best of their kind, and noise that differs from place to place."""

import numpy as np
import pytest

import markovia as mk
from markovia.learning.processes.evidence_ascent import maximise_evidence
from markovia.learning.processes.likelihoods import NoiseProcess, with_likelihood
from markovia.learning.processes.variational_evidence import VariationalEvidence
from process_likelihoods import LIKELIHOODS, TARGETS, THREE, brute_force, covariance

WORDS = ["bernoulli", "probit", "ordinal", "poisson", "student-t"]


@pytest.mark.slow
@pytest.mark.parametrize("word", WORDS)
def test_the_bound_is_below_the_integral_and_near(word):
    exact, mean, _ = brute_force(word)
    post = VariationalEvidence(THREE, TARGETS[word]).posterior(covariance(word))
    assert exact - (0.3 if word == "student-t" else 0.03) < post.info.log_evidence < exact
    assert post.info.mass_bound == "lower"
    np.testing.assert_allclose(post.moments(THREE).means[0], mean, atol=0.2 if word == "student-t" else 0.02)


@pytest.mark.parametrize("word", WORDS)
def test_no_normal_posterior_nearby_has_a_higher_bound(word):
    """The bound written out densely, at the posterior that was found and at moved ones."""
    y, likelihood = np.array(TARGETS[word], dtype=float), LIKELIHOODS[word]()
    K = 1.4 * mk.covariances.RBF(0.9).value(THREE)
    post = VariationalEvidence(THREE, y).posterior(covariance(word))
    there = post.at(THREE)
    m, L = there.mean(), np.linalg.cholesky(there.cov())

    def bound(m, L):
        S = L @ L.T
        away = np.trace(np.linalg.solve(K, S)) + m @ np.linalg.solve(K, m) - 3.0
        away += np.linalg.slogdet(K)[1] - np.linalg.slogdet(S)[1]
        return likelihood.expected(y, m, np.diag(S))[0].sum() - 0.5 * away

    best = bound(m, L)
    assert best == pytest.approx(post.info.log_evidence, abs=1e-7)
    rng = np.random.default_rng(0)
    for _ in range(10):
        assert (
            bound(m + 0.05 * rng.normal(size=3), L @ (np.eye(3) + 0.05 * np.tril(rng.normal(size=(3, 3)))))
            < best
        )


@pytest.mark.slow
def test_the_bound_of_several_classes_is_below_the_integral_and_near():
    """By importance sampling; the average of the softmax is one over points, right to some thousandths."""
    from scipy.special import logsumexp

    f = np.random.default_rng(0).multivariate_normal(
        np.zeros(3), 1.4 * mk.covariances.RBF(0.9).value(THREE), size=(400_000, 3)
    )
    logs = (f[:, [0, 1, 2], [0, 1, 2]] - logsumexp(f, axis=1)).sum(axis=1)
    exact = np.log(np.exp(logs).mean())
    post = VariationalEvidence(THREE, [0, 1, 2]).posterior(covariance("categorical"))
    assert exact - 0.08 < post.info.log_evidence < exact + 5e-3
    assert post.info.mass_bound is None  # points are not the integral
    share = np.exp(logs - logs.max())
    mean = np.einsum("s,sci->ci", share / share.sum(), f)
    np.testing.assert_allclose(post.latent(THREE)[0], mean, atol=0.03)


def test_noise_that_differs_is_found_where_it_is():
    """Simulated: the deviation of the noise grows fivefold from left to right."""
    rng = np.random.default_rng(4)
    x = np.sort(rng.uniform(0.0, 10.0, size=120))[:, None]
    sd = np.exp(-2.0 + 0.16 * x[:, 0])
    y = np.sin(x[:, 0]) + sd * rng.normal(size=120)
    made = with_likelihood(mk.covariances.RBF(1.5), NoiseProcess(), x, y)
    method = VariationalEvidence(x, y)
    top = maximise_evidence(method, made, max_iter=25)
    post = method.posterior(top.covariance)
    at = np.linspace(0.5, 9.5, 7)[:, None]
    mean, variance = post.target_moments(at)
    np.testing.assert_allclose(mean, np.sin(at[:, 0]), atol=0.25)
    np.testing.assert_allclose(np.sqrt(variance), np.exp(-2.0 + 0.16 * at[:, 0]), rtol=0.5)
    # a constant level of noise is less probable, by far
    constant = VariationalEvidence(x, y).evidence(
        mk.covariances.RBF(1.5) + NoiseProcess(1e-8 * mk.covariances.RBF(1.0), float(np.log(0.16)))
    )[0]
    assert top.log_evidence > constant + 5.0
