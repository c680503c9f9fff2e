"""Kronecker and Toeplitz processes against dense matrices."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument
from markovia.learning.processes.exact_evidence import ExactEvidence
from markovia.learning.processes.grid_evidence import KroneckerEvidence, ToeplitzEvidence
from process_checks import dense, free, slopes

k = mk.covariances
RNG = np.random.default_rng(0)
GRID = RNG.permutation([[a, b] for a in np.linspace(0.0, 3.0, 6) for b in (0.0, 0.3, 1.0, 2.5, 4.0)])
SERIES = RNG.permutation(np.linspace(0.0, 4.0, 30))[:, None]
CASES = {
    "product of one leaf": (KroneckerEvidence, GRID, k.Scaled(free(1.5), k.RBF(free([1.0, 2.0])))),
    "leaves of one column": (
        KroneckerEvidence, GRID,
        k.Scaled(free(1.5), k.Matern32(free(0.7), columns=[0]) * k.Periodic(free(1.0), free(2.0), columns=[1])),
    ),
    "series": (
        ToeplitzEvidence, SERIES,
        k.Scaled(free(1.5), k.Matern32(free(0.7)) * k.Periodic(free(1.0), free(2.0))) + k.RBF(free(1.0)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_they_are_the_dense_process(name):
    kind, X, covariance = CASES[name]
    covariance = covariance + k.White(free(0.1)) + k.White(free(0.2))
    y, Z = (
        np.random.default_rng(1).standard_normal(30),
        np.random.default_rng(2).uniform(-1.0, 5.0, (7, X.shape[1])),
    )
    method, exact = kind(X, y), ExactEvidence(X, y)
    (value, by), (expected, by_exact) = method.evidence(covariance), exact.evidence(covariance)
    assert value == pytest.approx(expected, abs=1e-9)
    for key, slope in slopes(by_exact, covariance).items():
        np.testing.assert_allclose(slopes(by, covariance)[key], slope, rtol=1e-7, atol=1e-8, err_msg=key)
    _, mean, cov = dense(covariance, X, y, Z)
    at = method.posterior(covariance).at(Z)
    np.testing.assert_allclose(at.mean(), mean, atol=1e-9)
    np.testing.assert_allclose(at.cov(), cov, atol=1e-9)
    np.testing.assert_allclose(at.sd() ** 2, np.diag(cov), atol=1e-9)
    np.testing.assert_allclose(method.posterior(covariance).mean_function()(Z), mean, atol=1e-9)
    order = RNG.permutation(30)
    assert kind(X[order], y[order]).evidence(covariance)[0] == pytest.approx(value, abs=1e-9)
    fixed = covariance.with_values({name: hyper.value for name, hyper in covariance.free().items()})
    assert method.evidence(fixed) == (pytest.approx(value), {})


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_change_nothing(unit):
    y = np.sin(SERIES[:, 0])
    one = ToeplitzEvidence(SERIES, y).posterior(1.5 * k.RBF(0.7) + k.White(0.1)).at([0.33])
    two = ToeplitzEvidence(SERIES * unit, y * unit).posterior(
        1.5 * unit**2 * k.RBF(0.7 * unit) + k.White(0.1 * unit**2)
    ).at([0.33 * unit])  # fmt: skip
    np.testing.assert_allclose([two.mean() / unit, two.sd() / unit], [one.mean(), one.sd()], rtol=1e-8)


def test_functions_that_are_drawn_have_the_posterior_s_moments():
    y = np.sin(SERIES[:, 0])
    post = ToeplitzEvidence(SERIES, y).posterior(1.5 * k.RBF(0.7) + k.White(0.1))
    drawn, Z = post.draws(1_200, seed=0), np.array([[-0.5], [0.33], [1.0]])
    values, at = drawn(Z), post.at(Z)
    np.testing.assert_allclose(drawn(Z[:1])[:, 0], values[:, 0], atol=1e-12)
    np.testing.assert_allclose(values.mean(axis=0), at.mean(), atol=4.5 * at.sd().max() / np.sqrt(1_200))
    np.testing.assert_allclose(np.cov(values.T), at.cov(), atol=0.2 * at.cov().max())


def test_one_row_is_a_series_and_a_grid():
    whole = k.RBF(1.0) + k.White(0.1)
    for kind in (ToeplitzEvidence, KroneckerEvidence):
        assert kind([[2.0]], [1.1]).posterior(whole).at([2.0]).mean() == pytest.approx(1.0)


def test_rows_that_are_no_grid_are_said():
    y = np.zeros(30)
    with pytest.raises(InvalidArgument, match="cells of a grid"):
        KroneckerEvidence(GRID[1:], y[1:])
    with pytest.raises(InvalidArgument, match="cells of a grid"):
        KroneckerEvidence(np.concatenate([GRID[1:], GRID[1:2]]), y)
    for rows in (SERIES**2, np.concatenate([SERIES[1:], SERIES[1:2]]), GRID):
        with pytest.raises(InvalidArgument, match="equal steps"):
            ToeplitzEvidence(rows, y)
    with pytest.raises(InvalidArgument, match="no product over the columns"):
        KroneckerEvidence(GRID, y).evidence(k.Matern32(1.0) + k.White(0.1))
    with pytest.raises(InvalidArgument, match="stationary"):
        ToeplitzEvidence(SERIES, y).evidence(k.Linear(1.0) + k.White(0.1))
