"""Sums, products and multiples: the identities that make new covariances of old ones."""

import pickle

import jax.numpy as jnp
import numpy as np
import pytest

import markovia as mk
from markovia.factors.covariances.algebra import split_white, spread

k = mk.covariances
rng = np.random.default_rng(0)
X = rng.normal(size=(8, 2))


def least(K):
    return np.linalg.eigvalsh(K)[0] / np.trace(K)


def test_what_is_closed_stays_a_covariance():
    a, b = k.RBF(0.7), k.Polynomial(2, 1.0, 0.5)
    for cov in (a + b, a * b, 3.0 * a, a**3, b * b + 2.0, k.Warped(a, jnp.sin)):
        assert least(cov.value(X)) > -1e-12
    # the exponential of a covariance is the sum of its powers
    K, series = b.value(X) / 10, np.zeros((8, 8))
    for n in range(25):
        series = series + np.array((0.1 * b).value(X) ** n if n else np.ones((8, 8))) / np.prod(
            np.arange(1.0, n + 1)
        )
    np.testing.assert_allclose(series, np.exp(K), rtol=1e-9)
    assert least(np.exp(K)) > -1e-12


def test_an_rbf_is_an_exponential_of_products():
    """exp(-|x - z|^2 / 2) = g(x) exp(x z) g(z), the feature expansion of Mercer's sum."""
    g = np.exp(-0.5 * (X**2).sum(1))
    np.testing.assert_allclose(k.RBF(1.0).value(X), g[:, None] * np.exp(X @ X.T) * g, rtol=1e-12)


def test_mercer_the_brownian_bridge_is_the_sum_over_its_waves():
    t = np.array([[0.1], [0.35], [0.6], [0.9]])
    n = np.arange(1, 4001)
    waves = 2**0.5 * np.sin(n * np.pi * t) / (n * np.pi)
    bridge = k.Brownian(1.0).value(t) - t @ t.T
    np.testing.assert_allclose(waves @ waves.T, bridge, atol=1e-4)


def test_numbers_add_constants_and_multiply_variances():
    assert isinstance(k.RBF(1.0) + 2.0, k.Sum)
    assert isinstance(2.0 + k.RBF(1.0), k.Sum)
    np.testing.assert_allclose((k.RBF(1.0) + 2.0).value(X), k.RBF(1.0).value(X) + 2.0)
    np.testing.assert_allclose((k.RBF(1.0) * 3.0).value(X), (3.0 * k.RBF(1.0)).value(X))
    assert (np.float64(3.0) * k.RBF(1.0)).value([[0.0]]).tolist() == [
        [3.0]
    ]  # NumPy numbers do not take it over
    with pytest.raises(TypeError):
        k.RBF(1.0) + "noise"
    with pytest.raises(TypeError):
        k.RBF(1.0) * None


def test_sums_and_products_are_flat_and_say_whether_they_are_stationary():
    cov = k.RBF(1.0) + (k.Constant(1.0) + k.White(1.0))
    assert len(cov.parts) == 3
    assert cov.stationary
    assert (2.0 * k.RBF(1.0) * k.Cosine(1.0)).stationary
    assert not (cov * k.Linear(1.0)).stationary
    assert not k.Changepoint(cov, cov, 0.0, 1.0).stationary


def test_white_is_noise_of_places_alone():
    cov = k.White(0.5)
    twice = np.concatenate([X, X])
    np.testing.assert_array_equal(cov.value(twice), 0.5 * np.eye(16))
    assert not cov.value(twice, X).any()
    assert cov.diagonal(X).tolist() == [0.5] * 8


def test_noise_is_split_from_the_rest():
    rest, noise = split_white(k.RBF(1.0) + k.White(0.1) + k.Constant(2.0) + k.White(0.3))
    assert repr(rest) == "RBF(length=1) + Constant(variance=2)"
    assert len(noise) == 2
    assert split_white(k.White(0.1))[0] is None
    product = k.RBF(1.0) * k.White(0.1)
    assert split_white(product) == (product, ())


def test_the_spread_of_targets_that_do_not_vary_is_their_size():
    assert spread(np.array([3.0, 3.0])) == 9.0
    assert spread(np.zeros(3)) == 1.0
    assert spread(np.array([1.0, np.nan, 3.0])) == 1.0


def test_a_covariance_comes_back_from_a_file():
    cov = mk.Parameter(2.0) * k.RBF(columns=0) * k.Index(
        W=[[1.0], [2.0]], kappa=[0.1, 0.1], column=1
    ) + k.White(0.1)
    back = pickle.loads(pickle.dumps(cov))
    assert repr(back) == repr(cov)
    assert list(back.free()) == list(cov.free())


def test_a_level_starts_at_the_variance_of_targets_and_noise_at_a_tenth():
    y = X[:, 0]
    found = (k.Constant() + k.White()).started(X, y).hypers()
    assert float(found["constant.variance"].value) == pytest.approx(np.var(y))
    assert float(found["white.variance"].value) == pytest.approx(0.1 * np.var(y))
