"""Laplace's approximation: reference numbers, brute force, a mode found by somebody else, scikit-learn."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

import markovia as mk
from markovia.learning.processes.laplace_evidence import LaplaceEvidence
from markovia.learning.processes.likelihoods import BernoulliLogit, SoftmaxClasses, StudentTNoise
from process_likelihoods import TARGETS, THREE, brute_force, covariance, many

k = mk.covariances


def test_the_reference_numbers_come_out():
    """Labels 1, 0, 1 at 0, .5 and 2 under an RBF of length one."""
    method = LaplaceEvidence(THREE, [1, 0, 1])
    value, _ = method.evidence(k.RBF(1.0) + BernoulliLogit())
    assert value == pytest.approx(-2.30442346, abs=5e-9)
    post = method.posterior(k.RBF(1.0) + BernoulliLogit())
    np.testing.assert_allclose(post.moments(THREE).means[0], [0.0841996, 0.0474415, 0.3194535], atol=5e-8)
    assert brute_force("bernoulli", 1.0, 1.0)[0] == pytest.approx(-2.28398257, abs=5e-9)


@pytest.mark.slow
@pytest.mark.parametrize("word", ["bernoulli", "probit", "ordinal", "poisson", "student-t"])
def test_the_approximation_is_near_the_integral(word):
    exact, mean, variance = brute_force(word)
    post = LaplaceEvidence(THREE, TARGETS[word]).posterior(covariance(word))
    assert post.info.log_evidence == pytest.approx(exact, abs=0.5 if word == "student-t" else 0.06)
    np.testing.assert_allclose(post.moments(THREE).means[0], mean, atol=0.2)
    np.testing.assert_allclose(
        post.moments(THREE).variances[0], variance, rtol=0.7 if word == "student-t" else 0.3
    )


def test_classes_together_are_the_mode_and_curvature_that_an_optimiser_finds():
    X, y = many("categorical", 5)
    K = covariance("categorical").value(X)
    at = y.astype(int)

    def minus(flat):
        f = flat.reshape(3, 5)
        prior = sum(row @ np.linalg.solve(K, row) for row in f)
        return 0.5 * prior - f[at, np.arange(5)].sum() + logsumexp(f, axis=0).sum()

    top = minimize(minus, np.zeros(15), method="BFGS", options={"gtol": 1e-9}).x
    p = np.exp(top.reshape(3, 5) - logsumexp(top.reshape(3, 5), axis=0))
    H = np.kron(np.eye(3), np.linalg.inv(K))
    for i in range(3):
        for j in range(3):
            H[5 * i : 5 * i + 5, 5 * j : 5 * j + 5] += np.diag(p[i] * (i == j) - p[i] * p[j])
    sign, log_det = np.linalg.slogdet(np.kron(np.eye(3), K) @ H)
    post = LaplaceEvidence(X, y).posterior(covariance("categorical"))
    assert sign == 1.0
    assert post.info.log_evidence == pytest.approx(-minus(top) - 0.5 * log_det, abs=1e-6)
    means, covariances = post.latent(X)
    np.testing.assert_allclose(means, top.reshape(3, 5), atol=1e-4)
    S = np.linalg.inv(H)
    for row in range(5):
        np.testing.assert_allclose(covariances[row], S[row::5, row::5], atol=1e-5)


@pytest.mark.slow
def test_the_evidence_of_classes_is_near_that_of_importance_sampling():
    made = k.RBF(1.0) + SoftmaxClasses(3)
    value = LaplaceEvidence(THREE, [0, 1, 2]).evidence(made)[0]
    f = np.random.default_rng(0).multivariate_normal(np.zeros(3), k.RBF(1.0).value(THREE), size=(200_000, 3))
    logs = f[:, [0, 1, 2], [0, 1, 2]] - logsumexp(f, axis=1)
    drawn = np.exp(logs.sum(axis=1))
    assert value == pytest.approx(np.log(drawn.mean()), abs=0.08)


def test_two_classes_of_a_softmax_are_a_logit_of_their_difference():
    """Whose covariance is that of a difference of two functions: twice that of each."""
    X, y = many("bernoulli", 8)
    two = LaplaceEvidence(X, y).evidence(k.RBF(0.9) + SoftmaxClasses(2))[0]
    one = LaplaceEvidence(X, y).evidence(2.0 * k.RBF(0.9) + BernoulliLogit())[0]
    assert two == pytest.approx(one, abs=1e-9)


def test_scikit_learn_has_the_same_evidence_gradient_and_latent_mode():
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    X, y = many("bernoulli", 30, seed=2)
    peer = GaussianProcessClassifier(ConstantKernel(1.4) * RBF([0.9, 1.7]), optimizer=None).fit(X, y)
    theirs, slopes = peer.log_marginal_likelihood(peer.kernel_.theta, eval_gradient=True)
    P = lambda v: mk.Parameter(np.asarray(v)[()], support="positive")  # noqa: E731
    made = P(1.4) * k.RBF(P([0.9, 1.7])) + BernoulliLogit()
    method = LaplaceEvidence(X, y)
    ours, found = method.evidence(made)
    assert ours == pytest.approx(theirs, abs=1e-6)
    by_name = {name: found[id(h.part), h.name] for name, h in made.free().items()}
    mine = np.concatenate([[1.4 * by_name["scaled.variance"]], np.array([0.9, 1.7]) * by_name["rbf.length"]])
    np.testing.assert_allclose(mine, slopes, atol=1e-5)
    at = np.random.default_rng(0).normal(size=(20, 2))
    np.testing.assert_allclose(method.posterior(made).probabilities(at), peer.predict_proba(at), atol=2e-3)


def test_outliers_are_let_be():
    x = np.linspace(0.0, 6.0, 30)[:, None]
    y = np.sin(x[:, 0])
    y[[5, 17]] += (30.0, -50.0)
    post = LaplaceEvidence(x, y).posterior(k.RBF(1.5) + StudentTNoise(0.05, 3.0))
    assert post.info.converged
    np.testing.assert_allclose(post.moments(x).means[0], np.sin(x[:, 0]), atol=0.05)


def test_complete_separation_and_a_row_a_class_are_ordinary():
    for X, y in (([[0.0], [1.0]], [0, 1]), ([[0.0], [0.1], [5.0], [5.1]], [0, 0, 1, 1]), ([[0.0]], [1])):
        for variance in (1.0, 1e6):
            post = LaplaceEvidence(X, y).posterior(variance * k.RBF(1.0) + BernoulliLogit())
            assert post.info.converged
            p = post.probabilities(np.asarray(X))
            assert np.all(p[np.arange(len(y)), y] > 0.5)
            assert np.isfinite(p).all()
