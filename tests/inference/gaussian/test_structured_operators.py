"""Matrices with a structure against the same matrices written out: products, solutions, determinants, derivatives."""

import numpy as np
import pytest
from scipy.linalg import toeplitz

from markovia.inference.gaussian.structured_operators import (
    Kronecker,
    LagGrid,
    Preconditioner,
    Toeplitz,
    conjugate_gradients,
    lanczos_root,
    probed_solve,
)

RNG = np.random.default_rng(0)


def covariance(n, rng=RNG):
    A = rng.standard_normal((n, n + 2))
    return A @ A.T / n


def derivative(function, A, step=1e-6):
    """Return derivatives of a function of a symmetric matrix by its entries, each taken for itself."""
    found = np.empty_like(A)
    for place in np.ndindex(A.shape):
        away = np.zeros_like(A)
        away[place] = step
        found[place] = (function(A + away) - function(A - away)) / (2.0 * step)
    return found


def density(A, U):
    return 0.5 * (np.vdot(U, A @ U) - np.linalg.slogdet(A)[1])


@pytest.mark.parametrize("sizes", [(4,), (3, 2), (2, 3, 2), (1, 3)])
def test_a_kronecker_product_is_the_matrix_written_out(sizes):
    factors, scale, noise = [covariance(n) for n in sizes], 1.7, 0.3
    K = np.eye(1)
    for factor in factors:
        K = np.kron(K, factor)
    K, V = scale * K + noise * np.eye(len(K)), RNG.standard_normal((len(K), 3))
    made = Kronecker(factors, scale, noise)
    np.testing.assert_allclose(made.matvec(V), K @ V, atol=1e-12)
    np.testing.assert_allclose(made.solve(V), np.linalg.solve(K, V), atol=1e-11)
    assert made.logdet == pytest.approx(np.linalg.slogdet(K)[1], abs=1e-11)
    by_factors, by_scale, by_noise = made.weights(V)

    def value(factors, scale, noise):
        K = np.eye(1)
        for factor in factors:
            K = np.kron(K, factor)
        return density(scale * K + noise * np.eye(len(K)), V)

    for j, by in enumerate(by_factors):
        swapped = lambda F, j=j: [F if i == j else f for i, f in enumerate(factors)]  # noqa: E731
        expected = derivative(lambda F, swapped=swapped: value(swapped(F), scale, noise), factors[j])
        np.testing.assert_allclose(by + by.T, expected + expected.T, atol=1e-6)  # the matrix is symmetric
    h = 1e-6
    slope = (value(factors, scale + h, noise) - value(factors, scale - h, noise)) / (2 * h)
    assert by_scale == pytest.approx(slope, rel=1e-6)
    slope = (value(factors, scale, noise + h) - value(factors, scale, noise - h)) / (2 * h)
    assert by_noise == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_a_toeplitz_matrix_is_the_matrix_written_out(n):
    column = np.exp(-0.5 * np.arange(n) ** 2 / 4.0) + 0.2 * (np.arange(n) == 0)
    T, V, made = toeplitz(column), RNG.standard_normal((n, 3)), Toeplitz(column)
    np.testing.assert_allclose(made.matvec(V), T @ V, atol=1e-13)
    np.testing.assert_allclose(made.solve(V), np.linalg.solve(T, V), atol=1e-11)
    assert made.logdet == pytest.approx(np.linalg.slogdet(T)[1], abs=1e-11)
    h, by = 1e-6, made.weights(V)
    for k in range(n):
        away = h * (np.arange(n) == k)
        slope = (density(toeplitz(column + away), V) - density(toeplitz(column - away), V)) / (2 * h)
        assert by[k] == pytest.approx(slope, rel=1e-6, abs=1e-6)


def test_what_is_singular_is_no_operator():
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        Toeplitz(np.ones(3))
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        Kronecker([np.ones((2, 2)) - 1.0], 1.0, 0.0)


@pytest.mark.parametrize("counts", [(5,), (3, 4), (2, 3, 2)])
def test_a_grid_multiplies_by_lags(counts):
    grid = LagGrid(counts)
    points = np.stack([axis.ravel() for axis in np.meshgrid(*map(np.arange, counts), indexing="ij")], axis=1)
    kernel = lambda lags: np.exp(-0.3 * (lags**2).sum(axis=-1))  # noqa: E731
    values = kernel(grid.lags)
    K = kernel(points[:, None] - points[None])
    U, V = RNG.standard_normal((2, len(points), 3))
    np.testing.assert_allclose(grid.matvec(grid.ring(values), V), K @ V, atol=1e-12)
    # derivatives of sum(U * (K V)) by the values at lags
    pairs, by = U @ V.T, grid.weights(U, V)
    for lag, slope in zip(grid.lags, by, strict=True):
        there = (points[:, None] - points[None] == -lag).all(axis=-1)
        assert slope == pytest.approx(pairs[there].sum(), abs=1e-10)
    # eigenvalues of the ring, and their adjoint
    slopes = RNG.standard_normal(grid.size)
    slopes = slopes + np.roll(
        np.flip(slopes), 1, axis=tuple(range(len(counts)))
    )  # as those of a real ring are
    away = RNG.standard_normal(len(values))
    moved = np.vdot(slopes, grid.eigenvalues(values + away) - grid.eigenvalues(values))
    assert np.vdot(grid.by_values(slopes), away) == pytest.approx(moved, rel=1e-9)


def test_a_preconditioner_of_all_columns_is_the_matrix():
    K, V = covariance(8), RNG.standard_normal((8, 2))
    P = Preconditioner(np.diag(K), lambda i: K[i], 0.3, 20)
    A = K + 0.3 * np.eye(8)
    np.testing.assert_allclose(P.solve(V), np.linalg.solve(A, V), atol=1e-10)
    assert P.logdet == pytest.approx(np.linalg.slogdet(A)[1], abs=1e-10)
    np.testing.assert_allclose(P.probes(np.eye(16)) @ P.probes(np.eye(16)).T, A, atol=1e-10)
    few = Preconditioner(np.diag(K), lambda i: K[i], 0.3, 3)
    left = np.diag(K) - (few.L**2).sum(axis=1)
    B = few.L @ few.L.T + (0.3 + left.mean()) * np.eye(8)
    np.testing.assert_allclose(few.solve(V), np.linalg.solve(B, V), atol=1e-10)
    assert few.logdet == pytest.approx(np.linalg.slogdet(B)[1], abs=1e-10)
    assert np.trace(A) == pytest.approx(np.trace(B))
    assert Preconditioner(np.ones(4), lambda i: np.ones(4), 0.1, 4).L.shape == (
        4,
        1,
    )  # nothing is left after one


def test_conjugate_gradients_solve_and_say_how_near_they_came():
    A, B = covariance(12) + 0.1 * np.eye(12), RNG.standard_normal((12, 3))
    B[:, 1] = 0.0
    found = conjugate_gradients(lambda V: A @ V, B, lambda V: V, 1e-12, 60)
    np.testing.assert_allclose(found.solutions, np.linalg.solve(A, B), atol=1e-9)
    assert found.residual <= 1e-12
    short = conjugate_gradients(lambda V: A @ V, B, lambda V: V, 1e-12, 2)
    assert short.steps == 2
    assert short.residual > 1e-6
    nothing = conjugate_gradients(lambda V: A @ V, np.zeros((12, 1)), lambda V: V, 1e-12, 5)
    assert nothing.steps == 0
    assert nothing.residual == 0.0


def test_probes_estimate_the_log_determinant_and_the_trace_without_bias():
    K, y = covariance(10), RNG.standard_normal(10)
    A, D = K + 0.2 * np.eye(10), covariance(10)
    P = Preconditioner(np.diag(K), lambda i: K[i], 0.2, 4)
    found = probed_solve(
        lambda V: A @ V, P, y, np.sqrt(14.0) * np.eye(14), 1e-12, 50
    )  # all there is to probe
    np.testing.assert_allclose(found.alpha, np.linalg.solve(A, y), atol=1e-9)
    assert found.logdet == pytest.approx(np.linalg.slogdet(A)[1], abs=1e-8)
    left_out = np.trace(P.solve(D))
    assert np.vdot(found.left, D @ found.right) + left_out == pytest.approx(
        np.trace(np.linalg.solve(A, D)), abs=1e-8
    )
    some = [probed_solve(lambda V: A @ V, P, y, RNG.standard_normal((14, 8)), 1e-10, 50) for _ in range(200)]
    mean = np.mean([one.logdet for one in some])
    assert abs(mean - found.logdet) < 4.0 * np.std([one.logdet for one in some]) / np.sqrt(200)
    assert np.mean([one.error for one in some]) == pytest.approx(
        np.std([one.logdet for one in some]), rel=0.2
    )


def test_a_root_of_the_inverse_is_never_too_large():
    A = covariance(12) + 0.05 * np.eye(12)
    inverse, start = np.linalg.inv(A), RNG.standard_normal(12)
    for most in (1, 4, 12, 40):
        R = lanczos_root(lambda V: A @ V, start, most)
        assert R.shape == (12, min(most, 12))
        assert np.linalg.eigvalsh(inverse - R @ R.T).min() > -1e-8
    np.testing.assert_allclose(R @ R.T, inverse, atol=1e-7)
    assert lanczos_root(lambda V: 2.0 * V, start, 5).shape == (12, 1)  # one product spans all
