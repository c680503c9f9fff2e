"""Covariances that repeat: their periods, and the mixtures that they are."""

import numpy as np

import markovia as mk

k = mk.covariances
x = np.linspace(-2.0, 5.0, 9).reshape(-1, 1)


def test_a_period_is_one():
    for cov in (k.Periodic(0.7, 1.3), k.Cosine(1.3)):
        np.testing.assert_allclose(cov.value(x + 1.3, x), cov.value(x), atol=1e-13)
        np.testing.assert_allclose(cov.value(x + 13 * 1.3, x), cov.value(x), atol=1e-12)


def test_the_form_of_the_text():
    tau = x - x.T
    np.testing.assert_allclose(
        k.Periodic(0.7, 1 / 0.4).value(x), np.exp(-2 * np.sin(np.pi * 0.4 * tau) ** 2 / 0.7**2), rtol=1e-12
    )
    np.testing.assert_allclose(k.Cosine(3.0).value(x), np.cos(2 * np.pi * tau / 3.0), atol=1e-14)


def test_several_columns_multiply_or_make_a_plane_wave():
    X = np.random.default_rng(0).normal(size=(5, 2))
    both = k.Periodic([0.7, 1.1], [1.3, 2.0])
    parts = k.Periodic(0.7, 1.3, columns=0) * k.Periodic(1.1, 2.0, columns=1)
    np.testing.assert_allclose(both.value(X), parts.value(X), rtol=1e-12)
    r = X[:, None] - X
    wave = np.cos(2 * np.pi * (r[..., 0] / 1.3 + r[..., 1] / 2.0))
    np.testing.assert_allclose(k.Cosine([1.3, 2.0]).value(X), wave, atol=1e-13)


def test_a_quasi_periodic_covariance_is_the_product():
    product = k.Periodic(0.9, 1.7) * k.RBF(2.5)
    np.testing.assert_array_equal(k.QuasiPeriodic(0.9, 1.7, 2.5).value(x), product.value(x))


def test_a_spectral_mixture_is_a_sum_of_cosines_that_fade():
    tau = x - x.T
    cov = k.SpectralMixture([1.5, 0.5], [0.2, 1.1], [0.05, 0.3])
    expected = sum(
        w * np.exp(-2 * np.pi**2 * tau**2 * s**2) * np.cos(2 * np.pi * tau * m)
        for w, m, s in ((1.5, 0.2, 0.05), (0.5, 1.1, 0.3))
    )
    np.testing.assert_allclose(cov.value(x), expected, atol=1e-13)
    # at mean zero a component is an RBF of length 1 / (2 pi scale)
    rbf = k.RBF(1 / (2 * np.pi * 0.3))
    np.testing.assert_allclose(k.SpectralMixture([1.0], [0.0], [0.3]).value(x), rbf.value(x), rtol=1e-10)


def test_slopes_by_the_period_keep_their_digits_far_from_zero():
    W = np.random.default_rng(1).normal(size=(9, 9))
    for cov in (k.Periodic(0.7, mk.Parameter(1.25)), k.Cosine(mk.Parameter(1.25))):
        (near,) = cov.forward(x)[1](W).values()
        (away,) = cov.forward(x + 1.25 * 2.0**20)[1](W).values()
        np.testing.assert_allclose(away, near, rtol=1e-7)
