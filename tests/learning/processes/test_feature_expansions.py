"""Random and structured features and eigenfunctions against the covariances they stand for, and processes made of them."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument
from markovia.learning.processes.feature_evidence import (
    FastfoodProcess,
    FourierProcess,
    HilbertProcess,
    KitchenSinks,
)
from markovia.learning.processes.feature_expansions import (
    Fastfood,
    fastfood_features,
    fourier_features,
    hadamard,
    hilbert_features,
    prior_draws,
)
from process_checks import check_slopes, dense, free

k = mk.covariances
RNG = np.random.default_rng(0)
X = RNG.uniform(0.0, 3.0, (20, 2))
Y = np.sin(X[:, 0]) * X[:, 1] + 0.3 * RNG.standard_normal(20)
Z = RNG.uniform(0.0, 3.0, (4, 2))
COVARIANCES = {
    "rbf": 1.7 * k.RBF([1.0, 2.0]),
    "matern": 0.5 * k.Matern32(0.8),
    "sum": k.RBF(1.0, columns=[0]) + 2.0 * k.Matern52(1.5) + k.Constant(0.3),
    "product": k.RBF(1.0) * k.Cosine([3.0, 4.0]),
}


def about(expansion, covariance, width):
    """Say how far products of features are from the covariance, in standard errors of as many independent ones."""
    phi = expansion.features(X)
    assert phi.shape == (20, expansion.size)
    apart = phi @ phi.T - covariance.value(X)
    return np.abs(apart).max() / covariance.diagonal(X).max() * np.sqrt(expansion.size / 2) / width


@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("name", COVARIANCES)
def test_fourier_features_come_near_the_covariance_as_their_number_grows(name, orthogonal):
    for size in (200, 4_000):
        made = fourier_features(COVARIANCES[name], size, 2, seed=1, orthogonal=orthogonal)
        assert about(made, COVARIANCES[name], 1.0) < 4.0
        np.testing.assert_allclose(
            (made.features(X) ** 2).sum(axis=1), COVARIANCES[name].diagonal(X), rtol=1e-9
        )


def test_orthogonal_frequencies_err_less():
    def error(orthogonal):
        K = k.RBF(1.0).value(X)
        made = [
            fourier_features(k.RBF(1.0), 40, 2, seed=s, orthogonal=orthogonal).features(X) for s in range(100)
        ]
        return np.mean([(phi @ phi.T - K) ** 2 for phi in made])

    assert error(True) < 0.9 * error(False)


@pytest.mark.parametrize("name", ["rbf", "matern", "sum"])
def test_fastfood_features_come_near_the_covariance_as_their_number_grows(name):
    for size in (200, 4_000):
        assert about(fastfood_features(COVARIANCES[name], size, 2, seed=1), COVARIANCES[name], 1.0) < 4.0


def test_a_fastfood_matrix_is_a_matrix_of_normal_numbers():
    turn = Fastfood(5, 4_000, np.random.default_rng(0))
    G = turn.product(np.eye(5)).T  # rows of the matrix
    assert G.shape == (4_000, 5)
    assert abs(G.mean()) < 4.0 / np.sqrt(G.size)
    np.testing.assert_allclose(G.T @ G / len(G), np.eye(5), atol=0.15)
    lengths = (turn.product(RNG.standard_normal((1, 5))) ** 2).mean()
    assert np.isfinite(lengths)
    W = RNG.standard_normal((3, 4_000))
    np.testing.assert_allclose(turn.transposed(W), W @ G, rtol=1e-9)  # the adjoint


def test_the_hadamard_matrix_is_that_of_the_kronecker_product():
    H = np.array([[1.0]])
    for _ in range(3):
        H = np.kron([[1.0, 1.0], [1.0, -1.0]], H)
    A = RNG.standard_normal((4, 8))
    np.testing.assert_allclose(hadamard(A), A @ H, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "size", "error"), [("rbf", 900, 1e-7), ("matern", 2_500, 0.01), ("sum", 2_500, 3e-3)]
)
def test_hilbert_features_are_the_covariance_away_from_the_ends_of_the_box(name, size, error):
    made = hilbert_features(COVARIANCES[name], size, np.full(2, 1.5), np.full(2, 8.0))
    phi = made.features(X)
    np.testing.assert_allclose(
        phi @ phi.T, COVARIANCES[name].value(X), atol=error * COVARIANCES[name].diagonal(X).max()
    )


def test_hilbert_features_are_for_few_columns_and_inputs_in_the_box():
    with pytest.raises(InvalidArgument, match="one to three columns"):
        hilbert_features(k.RBF(1.0), 100, np.zeros(4), np.ones(4))
    method = HilbertProcess(X, Y)
    post = method.posterior(k.RBF(1.0) + k.White(0.1))
    with pytest.raises(InvalidArgument, match="outside the box"):
        post.at(np.array([[100.0, 0.0]])).mean()
    with pytest.raises(InvalidArgument, match="boundary="):
        HilbertProcess(X, Y, boundary=1.0)


METHODS = {
    "fourier": (FourierProcess, {"features": 40}),
    "kitchen-sinks": (KitchenSinks, {"features": 40}),
    "fastfood": (FastfoodProcess, {"features": 40}),
    "hilbert": (HilbertProcess, {"features": 49}),
}


@pytest.mark.parametrize("name", METHODS)
def test_evidence_and_posterior_are_those_of_linear_regression_on_the_features(name):
    kind, settings = METHODS[name]
    method = kind(X, Y, **settings)
    whole = 1.7 * k.RBF([1.0, 2.0]) + k.White(0.1)
    expansion = method.expansion(whole.parts[0])
    phi, at = expansion.features(X), expansion.features(Z)
    S = phi @ phi.T + 0.1 * np.eye(20)
    value = -0.5 * (Y @ np.linalg.solve(S, Y) + np.linalg.slogdet(S)[1] + 20 * np.log(2.0 * np.pi))
    assert method.evidence(whole)[0] == pytest.approx(value, abs=1e-8)
    post = method.posterior(whole)
    np.testing.assert_allclose(post.at(Z).mean(), at @ phi.T @ np.linalg.solve(S, Y), atol=1e-9)
    cov = at @ at.T - at @ phi.T @ np.linalg.solve(S, phi @ at.T)
    np.testing.assert_allclose(post.at(Z).cov(), cov, atol=1e-9)
    np.testing.assert_allclose(post.at(Z).sd() ** 2, np.diag(cov), atol=1e-9)
    drawn = post.draws(5_000, seed=0)(Z)
    np.testing.assert_allclose(
        drawn.mean(axis=0), post.at(Z).mean(), atol=4.5 * post.at(Z).sd().max() / np.sqrt(5_000)
    )
    np.testing.assert_allclose(np.cov(drawn.T), cov, atol=0.1 * cov.max())
    assert str(expansion.size) in post.info.note


@pytest.mark.slow
@pytest.mark.parametrize("name", METHODS)
def test_gradients_are_those_of_differences(name):
    kind, settings = METHODS[name]
    covariance = k.Scaled(free(1.5), k.RBF(free([1.0, 2.0]))) + k.Matern32(free(2.0)) + k.Constant(free(0.5))
    check_slopes(kind(X, Y, **settings), covariance + k.White(free(0.2)), rtol=2e-5, atol=1e-5)


def test_many_features_come_near_the_exact_process():
    whole = 1.7 * k.RBF([1.0, 2.0]) + k.White(0.1)
    value, mean, _ = dense(whole, X, Y, Z)
    for kind, settings in (
        (FourierProcess, {"features": 1_000}),
        (HilbertProcess, {"features": 900, "boundary": 3.0}),
    ):
        method = kind(X, Y, **settings)
        assert method.evidence(whole)[0] == pytest.approx(value, abs=0.5)
        np.testing.assert_allclose(method.posterior(whole).at(Z).mean(), mean, atol=0.1)


def test_functions_drawn_from_the_prior_have_its_covariance():
    drawn = prior_draws(COVARIANCES["sum"], 1_500, np.random.default_rng(0))
    values, K = drawn(Z), COVARIANCES["sum"].value(Z)
    np.testing.assert_array_equal(drawn(Z[:2]), values[:, :2])
    np.testing.assert_allclose(values.T @ values / 1_500, K, atol=0.12 * K.max())


def test_bad_settings_are_said():
    with pytest.raises(InvalidArgument, match="features= is how many"):
        FourierProcess(X, Y, features=1)
    with pytest.raises(InvalidArgument, match="fastfood is for"):
        FastfoodProcess(X, Y).evidence(k.Cosine(1.0) + k.White(0.1))
    with pytest.raises(InvalidArgument, match="no random frequencies"):
        FourierProcess(X, Y).evidence(k.Linear(1.0) + k.White(0.1))
