"""KISS and MSGP against dense matrices: interpolation, evidence, gradient, moments, inputs off the grid."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument
from markovia.learning.processes.interpolated_evidence import KISS, MSGP, RegularGrid
from process_checks import check_slopes, dense, free

k = mk.covariances
RNG = np.random.default_rng(0)
ROWS = {1: RNG.uniform(0.0, 4.0, (60, 1)), 2: RNG.uniform(0.0, 4.0, (60, 2))}
GRIDS = {1: 60, 2: [30, 32]}


def targets(X):
    return np.sin(X.sum(axis=1)) + 0.3 * np.random.default_rng(1).standard_normal(len(X))


def kiss(d, grid=None):
    """The method with probes that are all there is to probe, so that nothing is random."""
    method = KISS(ROWS[d], targets(ROWS[d]), grid=grid or GRIDS[d], rank=10, tol=1e-11)
    method.probes = np.sqrt(70.0) * np.eye(70)
    return method


@pytest.mark.parametrize("d", [1, 2])
def test_interpolation_is_exact_for_squares_and_near_for_what_is_smooth(d):
    grid = RegularGrid(ROWS[d], GRIDS[d])
    assert grid.covers(ROWS[d]).all()
    W = grid.weights(ROWS[d])
    square = lambda X: 1.0 + X[:, 0] * X[:, -1] - 0.5 * X[:, 0]  # noqa: E731
    np.testing.assert_allclose(W @ square(grid.points), square(ROWS[d]), atol=1e-9)
    np.testing.assert_allclose(W @ np.sin(grid.points).sum(axis=1), np.sin(ROWS[d]).sum(axis=1), atol=1e-3)
    np.testing.assert_allclose(W.sum(axis=1), 1.0)


@pytest.mark.parametrize("d", [1, 2])
def test_kiss_is_near_the_dense_process_and_exactly_that_of_its_own_matrix(d):
    X, y, method = ROWS[d], targets(ROWS[d]), kiss(d)
    whole = 1.5 * k.RBF(0.7) + k.White(0.1)
    W = method.W.toarray()
    S = W @ whole.parts[0].value(method.grid.points) @ W.T + 0.1 * np.eye(60)
    value = method.evidence(whole)[0]
    expected = -0.5 * (y @ np.linalg.solve(S, y) + np.linalg.slogdet(S)[1] + 60 * np.log(2.0 * np.pi))
    assert value == pytest.approx(expected, abs=1e-6)
    Z = np.random.default_rng(3).uniform(0.0, 4.0, (6, d))
    exact, mean, cov = dense(whole, X, y, Z)
    assert value == pytest.approx(exact, abs=0.1)
    at = method.posterior(whole).at(Z)
    np.testing.assert_allclose(at.mean(), mean, atol=2e-3)
    np.testing.assert_allclose(at.cov(), cov, atol=2e-3)
    np.testing.assert_allclose(at.sd() ** 2, np.diag(cov), atol=2e-3)


@pytest.mark.parametrize("kind", ["kiss", "msgp"])
@pytest.mark.parametrize("d", [1, 2])
def test_gradients_are_those_of_differences(kind, d):
    grid = {1: 30, 2: [12, 14]}[d]
    method = (
        kiss(d, grid) if kind == "kiss" else MSGP(ROWS[d], targets(ROWS[d]), grid=grid, rank=10, tol=1e-11)
    )
    covariance = k.Scaled(free(1.5), k.RBF(free(0.7))) + k.Matern52(free(1.5)) + k.White(free(0.1))
    check_slopes(method, covariance, rtol=1e-4, atol=2e-3)


def test_random_probes_are_off_by_their_standard_error():
    method, all_there_is = KISS(ROWS[1], targets(ROWS[1]), grid=60, rank=3, probes=30, seed=1), kiss(1)
    whole = 1.5 * k.Matern32(0.3) + k.White(0.1)
    post = method.posterior(whole)
    error = float(post.info.note.rpartition(" ")[2])
    assert 0.01 < error < 3.0
    assert post.info.log_evidence == pytest.approx(all_there_is.evidence(whole)[0], abs=4.0 * error)


def test_msgp_comes_near_where_rows_are_many_and_spread_evenly():
    X = np.random.default_rng(0).uniform(0.0, 20.0, (800, 1))
    y = np.sin(X[:, 0]) + 0.3 * np.random.default_rng(1).standard_normal(800)
    whole = 1.0 * k.RBF(1.0) + k.White(0.09)
    value, mean, cov = dense(whole, X, y, X[:5])
    method = MSGP(X, y, grid=150)
    assert method.evidence(whole)[0] == pytest.approx(value, abs=0.02 * abs(value))
    at = method.posterior(whole).at(X[:5])
    np.testing.assert_allclose(at.mean(), mean, atol=2e-3)
    np.testing.assert_allclose(at.sd() ** 2, np.diag(cov), rtol=0.05)


def test_inputs_off_the_grid_go_back_to_the_prior():
    X, y = ROWS[1], targets(ROWS[1])
    whole = 1.5 * k.RBF(0.7) + k.White(0.1)
    Z = np.array([[-1.0], [2.0], [4.6], [100.0]])
    _, mean, cov = dense(whole, X, y, Z)
    at = kiss(1).posterior(whole).at(Z)
    np.testing.assert_allclose(at.mean(), mean, atol=2e-3)
    np.testing.assert_allclose(at.sd() ** 2, np.diag(cov), atol=2e-3)


def test_functions_that_are_drawn_have_the_posterior_s_moments():
    post, Z = kiss(1).posterior(1.5 * k.RBF(0.7) + k.White(0.1)), np.array([[0.2], [2.0], [5.0]])
    drawn, at = post.draws(1_200, seed=0), post.at(Z)
    np.testing.assert_allclose(drawn(Z).mean(axis=0), at.mean(), atol=4.5 * at.sd().max() / np.sqrt(1_200))
    np.testing.assert_allclose(np.cov(drawn(Z).T), at.cov(), atol=0.2 * at.cov().max())
    np.testing.assert_allclose(post.mean_function()(Z), at.mean(), atol=1e-12)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_change_nothing(unit):
    X, y = ROWS[1], targets(ROWS[1])
    one = KISS(X, y, grid=60).posterior(1.5 * k.RBF(0.7) + k.White(0.1)).at([0.33])
    scaled = 1.5 * unit**2 * k.RBF(0.7 * unit) + k.White(0.1 * unit**2)
    two = KISS(X * unit, y * unit, grid=60).posterior(scaled).at([0.33 * unit])
    np.testing.assert_allclose([two.mean() / unit, two.sd() / unit], [one.mean(), one.sd()], rtol=1e-6)


def test_fits_climb():
    X = np.random.default_rng(0).uniform(0.0, 10.0, (300, 1))
    y = np.sin(X[:, 0]) + 0.3 * np.random.default_rng(1).standard_normal(300)
    start = (k.Scaled(None, k.RBF()) + k.White()).started(X, y)
    for kind in (KISS, MSGP):
        found = kind(X, y, grid=80).fit(start)
        assert found.covariance.hypers()["white.variance"].value == pytest.approx(0.09, rel=0.25)
        assert found.converged


def test_constant_columns_and_one_row():
    flat = np.column_stack([ROWS[1][:, 0], np.full(60, 3.0)])
    value = KISS(flat, targets(ROWS[1]), grid=[60, 10]).evidence(k.RBF(0.7) + k.White(0.1))[0]
    assert value == pytest.approx(
        dense(k.RBF(0.7) + k.White(0.1), flat, targets(ROWS[1]), flat[:1])[0], abs=0.5
    )
    assert KISS([[1.0]], [1.1]).posterior(k.RBF(1.0) + k.White(0.1)).at([1.0]).mean() == pytest.approx(
        1.0, abs=1e-3
    )


def test_what_it_does_not_do_is_said():
    X, y = ROWS[1], targets(ROWS[1])
    with pytest.raises(InvalidArgument, match="one to 4 columns"):
        KISS(np.zeros((5, 5)), np.zeros(5))
    with pytest.raises(InvalidArgument, match="grid= is how many points"):
        KISS(X, y, grid=5)
    with pytest.raises(InvalidArgument, match="stationary"):
        KISS(X, y).evidence(k.Linear(1.0) + k.White(0.1))
    with pytest.raises(InvalidArgument, match="probes= is a whole number"):
        KISS(X, y, probes=0)
    with pytest.raises(InvalidArgument, match="tol= is a relative residual"):
        MSGP(X, y, tol=0.0)
