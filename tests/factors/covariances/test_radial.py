"""Covariances of distances: closed forms, both conventions of a length, and scikit-learn's."""

import numpy as np
import pytest
from sklearn.gaussian_process import kernels

import markovia as mk

k = mk.covariances
rng = np.random.default_rng(0)
X, Z = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))
LENGTHS = [0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (k.RBF(LENGTHS), kernels.RBF(LENGTHS)),
        (k.Matern12(LENGTHS), kernels.Matern(LENGTHS, nu=0.5)),
        (k.Matern32(LENGTHS), kernels.Matern(LENGTHS, nu=1.5)),
        (k.Matern52(LENGTHS), kernels.Matern(LENGTHS, nu=2.5)),
        (k.RationalQuadratic(1.3, alpha=0.6), kernels.RationalQuadratic(1.3, 0.6)),
        (2.5 * k.RBF(0.7) + k.White(0.1), 2.5 * kernels.RBF(0.7) + kernels.WhiteKernel(0.1)),
        (k.Periodic(0.9, 1.7, columns=0), kernels.ExpSineSquared(0.9, 1.7)),
        (k.Linear(1.0) + k.Constant(4.0), kernels.DotProduct(2.0)),
    ],
)
def test_the_same_as_scikit_learn(ours, theirs):
    one = "ExpSine" in repr(theirs)
    A, C = (X[:, :1], Z[:, :1]) if one else (X, Z)
    np.testing.assert_allclose(ours.value(A), theirs(A), rtol=1e-12)
    np.testing.assert_allclose(ours.value(A, C), theirs(A, C), rtol=1e-12)


def test_a_length_and_a_width_are_two_conventions():
    D = ((X[:, None] - Z) ** 2).sum(-1)
    np.testing.assert_allclose(k.RBF(length=0.8).value(X, Z), np.exp(-D / (2 * 0.8**2)), rtol=1e-12)
    np.testing.assert_allclose(k.RBF(width=0.8).value(X, Z), np.exp(-D / 0.8), rtol=1e-12)
    assert k.RBF(width=mk.Parameter(0.5)).hypers()["rbf.length"].free
    np.testing.assert_allclose(k.RBF(width=[2.0, 8.0]).own["length"], [1.0, 2.0])


def test_the_example_of_the_width_between_two_points():
    K = k.RBF(width=1.0).value([[0.0], [1.0]])
    cross = k.RBF(width=1.0).value([[0.5]], [[0.0], [1.0]])
    assert round((cross @ np.linalg.solve(K, [0.0, 1.0])).item(), 6) == 0.569349
    assert round((1.0 - cross @ np.linalg.solve(K, cross[0])).item(), 6) == 0.113181


def test_amplitude_and_length_of_a_scaled_one():
    cov = 1.7**2 * k.RBF(0.6)
    assert cov.value([[2.0]])[0, 0] == pytest.approx(1.7**2)
    assert cov.value([[0.0]], [[0.6]])[0, 0] == pytest.approx(1.7**2 * np.exp(-0.5))


def test_matern_numbers_of_the_text():
    r = 0.9
    found = [c(1.0).value([[0.0]], [[r]])[0, 0] for c in (k.Matern12, k.Matern32, k.Matern52)]
    s3, s5 = 3**0.5 * r, 5**0.5 * r
    np.testing.assert_allclose(
        found, [np.exp(-r), (1 + s3) * np.exp(-s3), (1 + s5 + s5**2 / 3) * np.exp(-s5)], rtol=1e-14
    )


def test_a_rational_quadratic_of_large_alpha_is_an_rbf():
    gaps = [np.abs(k.RationalQuadratic(0.8, a).value(X) - k.RBF(0.8).value(X)).max() for a in (1e2, 1e4, 1e6)]
    assert gaps[0] > 50 * gaps[1] > 2500 * gaps[2]
    assert gaps[2] < 1e-5


def test_a_column_with_a_huge_length_does_not_count():
    np.testing.assert_allclose(
        k.RBF([0.5, 1.0, 1e9]).value(X), k.RBF([0.5, 1.0], columns=[0, 1]).value(X), rtol=1e-12
    )


def test_one_length_over_all_columns_is_that_length_for_each():
    for cls in (k.RBF, k.Matern12, k.Matern32, k.Matern52):
        np.testing.assert_allclose(cls(1.3).value(X), cls([1.3] * 3).value(X), rtol=1e-13)


@pytest.mark.parametrize("far", [1e3, 1e6])
def test_gradients_keep_their_digits_far_from_zero(far):
    moved, W = X + far, rng.normal(size=(6, 6))
    cov = k.RBF(mk.Parameter(LENGTHS))
    ((near,), (away,)) = (cov.forward(A)[1](W).values() for A in (X, moved))
    np.testing.assert_allclose(away, near, rtol=1e-15 * far**1 * 1e3)
    np.testing.assert_allclose(
        cov.input_gradient(moved, moved, W), cov.input_gradient(X, X, W), rtol=1e-9 * far / 1e3, atol=1e-9
    )


def test_equal_rows_have_the_same_value_and_no_nan():
    twice = np.concatenate([X, X])
    for cov in (k.Matern12(1.0), k.Matern32(LENGTHS), k.RationalQuadratic(1.0, 1.0)):
        K, pull = cov.with_values({next(iter(cov.hypers())): mk.Parameter(1.0)}).forward(twice)
        assert (K[:6, :6] == K[6:, 6:]).all()
        assert all(np.isfinite(v).all() for v in pull(np.ones_like(K)).values())
        assert np.isfinite(cov.input_gradient(twice, twice, np.ones_like(K))).all()
