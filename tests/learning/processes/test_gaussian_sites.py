"""A normal prior times one normal factor a row, against inverses of dense matrices."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument, Unanswered
from markovia.learning.processes.ep_evidence import ExpectationPropagation
from markovia.learning.processes.gaussian_sites import GaussianSites
from markovia.learning.processes.laplace_evidence import LaplaceEvidence
from markovia.learning.processes.likelihoods import (
    BernoulliLogit,
    NoiseProcess,
    NormalNoise,
    PoissonCounts,
    SoftmaxClasses,
)
from markovia.learning.processes.variational_evidence import VariationalEvidence
from process_likelihoods import THREE, WAYS, covariance, many

METHODS = {"laplace": LaplaceEvidence, "ep": ExpectationPropagation, "variational": VariationalEvidence}


@pytest.mark.parametrize(
    "W",
    [
        [0.5, 2.0, 0.1, 3.0],
        [0.5, 0.0, 1e-9, 3.0],
        [0.5, -0.05, 2.0, -0.1],  # noise with heavy tails
        [1e8, 1e-7, 1.0, 0.0],
    ],
)
def test_sites_are_what_dense_algebra_says(W):
    X = np.random.default_rng(0).normal(size=(4, 2))
    K, W = 1.4 * mk.covariances.RBF(0.9).value(X), np.array(W)
    sites = GaussianSites(K, W)
    R = np.linalg.solve(np.eye(4) + W[:, None] * K, np.diag(W))
    np.testing.assert_allclose(sites.R, R, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(sites.R, sites.R.T, rtol=1e-13, atol=1e-15)
    b = np.arange(4.0)
    np.testing.assert_allclose(sites.solve(b), R @ b, rtol=1e-8, atol=1e-9)
    assert sites.log_det == pytest.approx(np.linalg.slogdet(np.eye(4) + W[:, None] * K)[1], rel=1e-10)
    np.testing.assert_allclose(sites.variances, np.diag(K - K @ R @ K), rtol=1e-7)


def test_duplicated_rows_need_no_jitter():
    K = mk.covariances.RBF(1.0).value(np.array([[0.0], [0.0], [1.0], [1.0]]))
    sites = GaussianSites(K, np.full(4, 1e6))
    assert sites.variances.max() < 1e-6
    # two rows at a place are one with twice the precision
    once = GaussianSites(K[::2, ::2], np.full(2, 2e6))
    np.testing.assert_allclose(sites.variances[::2], once.variances, rtol=1e-6)


def test_factors_without_a_top_are_refused():
    K = mk.covariances.RBF(1.0).value(THREE)
    with pytest.raises(np.linalg.LinAlgError):
        GaussianSites(K, np.array([1.0, -2.0, 1.0]))


@pytest.mark.parametrize(("word", "way"), WAYS)
def test_gradients_are_those_of_differences(word, way):
    """By all numbers of the covariance and the likelihood at once, along random directions of their logs."""
    from markovia.learning.processes.evidence_ascent import Coordinates

    X, y = many(word, 7)
    made = covariance(word)
    coordinates = Coordinates(made)
    point = coordinates.read({})
    method = METHODS[way](X, y)
    value, slopes = method.evidence(made)
    assert {(id(h.part), h.name) for h in made.free().values()} == set(slopes)
    exact = coordinates.slope(made, slopes, point)
    rng = np.random.default_rng(3)
    for _ in range(2):
        way_up = rng.normal(size=len(point))
        ends = [
            METHODS[way](X, y).evidence(coordinates.at(point + step * way_up))[0] for step in (1e-4, -1e-4)
        ]
        assert exact @ way_up == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-5, abs=2e-6)
    assert method.posterior(made).info.log_evidence == pytest.approx(value, abs=1e-8)


@pytest.mark.parametrize(("word", "way"), WAYS)
def test_rows_in_another_order_and_units_change_nothing(word, way):
    """Nor do duplicated rows break anything."""
    X, y = many(word, 6)
    X[5], y[5] = X[4], y[4]
    at = np.array([[0.3, 0.1], [9.0, 9.0]])
    found, order = [], np.random.default_rng(0).permutation(6)
    for unit, rows in ((1.0, slice(None)), (1e9, order), (1e-9, order)):
        made = covariance(word)
        made = made.with_values(
            {name: unit * h.value for name, h in made.hypers().items() if name.endswith(".length")}
        )
        post = METHODS[way](unit * X[rows], y[rows]).posterior(made)
        found.append((post.info.log_evidence, *post.latent(unit * at)))
    for other in found[1:]:
        assert other[0] == pytest.approx(found[0][0], rel=1e-7)
        np.testing.assert_allclose(other[1], found[0][1], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(other[2], found[0][2], rtol=1e-5, atol=1e-6)


def test_targets_in_another_unit_give_the_function_in_that_unit():
    X, y = many("student-t", 8)
    found = []
    for unit in (1.0, 1e9, 1e-9):
        made = covariance("student-t").with_values(
            {"scaled.variance": 1.4 * unit**2, "studenttnoise.scale": 0.4 * unit}
        )
        for way in METHODS:
            post = METHODS[way](X, unit * y).posterior(made)
            mean, variance = post.target_moments(np.array([[0.1, 0.2]]))
            found.append((mean[0] / unit, variance[0] / unit**2, post.info.log_evidence + 8 * np.log(unit)))
    for way in range(3):
        np.testing.assert_allclose(found[3 + way], found[way], rtol=1e-4)
        np.testing.assert_allclose(found[6 + way], found[way], rtol=1e-4)


@pytest.mark.parametrize("way", METHODS)
def test_normal_noise_is_exact(way):
    from scipy.stats import multivariate_normal

    X, y = many("normal", 6)
    made = covariance("normal")
    K = made.value(X)
    post = METHODS[way](X, y).posterior(made)
    assert post.info.log_evidence == pytest.approx(
        multivariate_normal.logpdf(y, cov=K + 0.3 * np.eye(6)), abs=1e-9
    )
    at = np.array([[0.2, -0.1]])
    cross = made.value(at, X)
    there = post.moments(at)
    assert there.means[0, 0] == pytest.approx((cross @ np.linalg.solve(K + 0.3 * np.eye(6), y))[0], abs=1e-9)
    exact = 1.4 - (cross @ np.linalg.solve(K + 0.3 * np.eye(6), cross.T))[0, 0]
    assert there.variances[0, 0] == pytest.approx(exact, abs=1e-8)
    each = NormalNoise(np.full(6, 0.3))
    same = METHODS[way](X, y).posterior(1.4 * mk.covariances.RBF(0.9) + each)
    assert same.info.log_evidence == pytest.approx(post.info.log_evidence, abs=1e-9)


@pytest.mark.parametrize("way", METHODS)
def test_noise_of_many_degrees_of_freedom_is_nearly_normal(way):
    from scipy.stats import multivariate_normal

    from markovia.learning.processes.likelihoods import StudentTNoise

    X, y = many("normal", 6)
    made = 1.4 * mk.covariances.RBF(0.9)
    value, _ = METHODS[way](X, y).evidence(made + StudentTNoise(0.3**0.5, 1e7))
    exact = multivariate_normal.logpdf(y, cov=made.value(X) + 0.3 * np.eye(6))
    assert value == pytest.approx(exact, abs=1e-5)


def test_a_posterior_answers_as_every_function_does():
    post = LaplaceEvidence(THREE, [1, 0, 1]).posterior(mk.covariances.RBF(1.0) + BernoulliLogit())
    there = post.at([0.0, 1.0, 30.0])
    assert there.mean()[2] == pytest.approx(0.0, abs=1e-12)
    assert there.sd()[2] == pytest.approx(1.0)
    np.testing.assert_allclose(np.diag(there.cov()), there.var(), rtol=1e-10)
    np.testing.assert_allclose(post.latent(np.array([[1.0]]))[1][0, 0, 0], there.var()[1], rtol=1e-12)
    draws = there.sample(4000, seed=0)["f"]
    np.testing.assert_allclose(draws.std(axis=0), there.sd(), rtol=0.05)
    assert (post.info.engine, post.info.exact, post.info.converged) == ("laplace", False, True)


def test_white_noise_in_the_covariance_is_of_the_rows_not_of_the_function():
    white = mk.covariances.RBF(1.0) + mk.covariances.White(0.5) + BernoulliLogit()
    post = LaplaceEvidence(THREE, [1, 0, 1]).posterior(white)
    assert post.at([30.0]).var()[0] == pytest.approx(1.0)
    assert post.latent(np.array([[30.0]]))[1][0, 0, 0] == pytest.approx(1.5)  # what a new row is asked with


def test_questions_that_have_no_answer_say_so():
    post = LaplaceEvidence(THREE, [0, 1, 2]).posterior(mk.covariances.RBF(1.0) + SoftmaxClasses(3))
    with pytest.raises(Unanswered, match="a function for each class"):
        post.at([0.0]).mean()
    post = LaplaceEvidence(THREE, [0, 1, 2]).posterior(mk.covariances.RBF(1.0) + PoissonCounts(0.0))
    with pytest.raises(Unanswered, match="targets of likelihood='poisson' are no classes"):
        post.probabilities(THREE)


def test_methods_name_those_that_know_a_likelihood():
    with pytest.raises(
        InvalidArgument,
        match="method='ep' does not know likelihood='categorical'; 'variational' and 'laplace' do",
    ):
        ExpectationPropagation(THREE, [0, 1, 2]).evidence(mk.covariances.RBF(1.0) + SoftmaxClasses(3))
    with pytest.raises(InvalidArgument, match="likelihood='heteroscedastic'; 'variational' does"):
        LaplaceEvidence(THREE, [0, 1, 2]).evidence(mk.covariances.RBF(1.0) + NoiseProcess(level=0.0))


@pytest.mark.parametrize("way", METHODS)
def test_a_search_that_is_cut_says_that_it_did_not_settle(way):
    X, y = many("student-t", 8)
    cut = METHODS[way](X, 100.0 * y, max_iter=1).posterior(covariance("student-t"))
    assert not cut.info.converged
    assert "give max_iter=" in cut.info.advice
