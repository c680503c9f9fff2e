"""Kernel principal components: against features, scikit-learn, and what reconstruction promises."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as TheirPCA
from sklearn.linear_model import LinearRegression

import markovia as mk
from markovia.models.gaussian.kernel_pca import KernelPCA

k = mk.covariances


def rows(seed=0, n=20, d=3):
    return np.random.default_rng(seed).normal(size=(n, d)) * np.arange(1.0, d + 1.0)


def same_up_to_signs(one, other, **settings):
    signs = np.sign((one * other).sum(axis=0))
    np.testing.assert_allclose(one, other * signs, **settings)


def test_linear_components_are_principal_components():
    X, new = rows(), rows(1)
    model, plain = KernelPCA(covariance=k.Linear(1.0)).fit(X), PCA().fit(X)
    assert model.eigenvalues_.shape == (3,)  # no more directions than columns
    np.testing.assert_allclose(model.eigenvalues_ / 19, plain.explained_variance_, rtol=1e-10)
    same_up_to_signs(model.transform(new), plain.transform(new), atol=1e-9)


def test_a_polynomial_gives_the_components_of_its_features():
    """(1 + x z)^2 has the features (1, sqrt 2 x, x^2), whose covariance matrix has two eigenvalues above zero."""
    x = rows(2, d=1)
    phi = np.column_stack([2.0**0.5 * x, x**2])
    model, plain = KernelPCA(covariance=k.Polynomial(2, 1.0, 1.0)).fit(x), PCA().fit(phi)
    np.testing.assert_allclose(model.eigenvalues_ / 19, plain.explained_variance_, rtol=1e-9)
    new = rows(3, d=1)
    same_up_to_signs(
        model.transform(new), plain.transform(np.column_stack([2.0**0.5 * new, new**2])), atol=1e-8
    )


def test_components_are_scikit_learns_but_for_signs():
    X, new = rows(4), rows(5)
    model = KernelPCA(4, covariance=k.RBF(2.0)).fit(X)
    theirs = TheirPCA(4, kernel="rbf", gamma=0.5 / 4.0, eigen_solver="dense").fit(X)
    np.testing.assert_allclose(model.eigenvalues_, theirs.eigenvalues_, rtol=1e-10)
    same_up_to_signs(model.transform(new), theirs.transform(new), atol=1e-10)


def test_components_of_the_rows_have_the_eigenvalues_as_squares_and_no_mean():
    X = rows(6)
    found = KernelPCA(covariance=k.Matern32(2.0)).fit(X)
    scores = found.transform(X)
    np.testing.assert_allclose(scores.T @ scores, np.diag(found.eigenvalues_), atol=1e-10)
    np.testing.assert_allclose(scores.mean(axis=0), 0.0, atol=1e-10)
    # all components together keep all distances of the feature space
    gram = k.Matern32(2.0).value(X)
    far = np.diag(gram)[:, None] + np.diag(gram) - 2.0 * gram
    np.testing.assert_allclose(((scores[:, None] - scores) ** 2).sum(axis=2), far, atol=1e-9)


def test_rings_come_apart():
    rng = np.random.default_rng(0)
    angle, ring = rng.uniform(0.0, 2.0 * np.pi, 120), np.repeat([1.0, 4.0], 60)
    X = np.column_stack([np.cos(angle), np.sin(angle)]) * (ring + 0.1 * rng.normal(size=120))[:, None]
    scores = KernelPCA(3, covariance=k.Polynomial(2, 0.0, 1.0)).fit_transform(X)
    assert LinearRegression().fit(scores, ring).score(scores, ring) > 0.95
    assert LinearRegression().fit(X, ring).score(X, ring) < 0.1


def test_rows_come_back_from_their_components():
    angle = np.linspace(0.0, 6.0, 60)
    X = np.column_stack([np.cos(angle), np.sin(angle), 1e6 * angle, np.full(60, 7.0)])
    model = KernelPCA(6, covariance=k.RBF(1.0, columns=[0, 1]), preimages=True).fit(X)
    back = model.inverse_transform(model.transform(X))
    np.testing.assert_allclose(back[:, :2], X[:, :2], atol=0.02)
    np.testing.assert_allclose(back[:, 3], 7.0)
    with pytest.raises(mk.errors.InvalidArgument, match="preimages=True"):
        KernelPCA().fit(X).inverse_transform(X)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_and_order_change_nothing(unit):
    X, order = rows(7), np.random.default_rng(0).permutation(20)
    one, other, mixed = KernelPCA(3).fit(X), KernelPCA(3).fit(unit * X), KernelPCA(3).fit(X[order])
    np.testing.assert_allclose(other.eigenvalues_, one.eigenvalues_, rtol=1e-9)
    same_up_to_signs(other.transform(unit * X), one.transform(X), atol=1e-8)
    same_up_to_signs(mixed.transform(X), one.transform(X), atol=1e-8)


def test_the_unit_of_the_covariance_scales_components():
    X = rows(8)
    for scale in (1e-18, 1e18):
        one, other = KernelPCA(covariance=k.RBF(2.0)).fit(X), KernelPCA(covariance=scale * k.RBF(2.0)).fit(X)
        np.testing.assert_allclose(other.transform(X) / scale**0.5, one.transform(X), atol=1e-8)


def test_rows_that_do_not_vary_are_told():
    for X in ([[1.0]], np.ones((5, 2))):
        with pytest.raises(mk.errors.InvalidArgument, match="rows vary in 0 directions"):
            KernelPCA().fit(X)
    with pytest.raises(mk.errors.InvalidArgument, match=r"2 directions.*n_components=3; ask for fewer"):
        KernelPCA(3, covariance=k.Linear(1.0)).fit(rows(d=2))
    with pytest.raises(mk.errors.InvalidArgument, match="leave White out"):
        KernelPCA(covariance=k.RBF(1.0) + k.White(0.1)).fit(rows())
    with pytest.raises(mk.errors.InvalidArgument, match="row 0 of X misses"):
        KernelPCA().fit([[np.nan, 1.0], [1.0, 2.0]])


def test_ties_and_a_constant_column_add_no_direction():
    X = rows(9)
    twice, wide = np.concatenate([X, X]), np.column_stack([X, np.full(20, 3.0)])
    plain = KernelPCA(covariance=k.RBF(2.0)).fit(X)
    doubled = KernelPCA(covariance=k.RBF(2.0)).fit(twice)
    assert len(doubled.eigenvalues_) == len(plain.eigenvalues_)
    np.testing.assert_allclose(doubled.eigenvalues_, 2.0 * plain.eigenvalues_, rtol=1e-8)
    np.testing.assert_allclose(
        KernelPCA(covariance=k.RBF(2.0)).fit(wide).eigenvalues_, plain.eigenvalues_, rtol=1e-8
    )
