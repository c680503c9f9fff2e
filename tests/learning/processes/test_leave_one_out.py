"""Closed forms of leave-one-out errors against refits, and their slopes against differences."""

import numpy as np
import pytest

import markovia as mk
from markovia.factors.covariances.algebra import White
from markovia.learning.processes.leave_one_out import (
    RidgeLeaveOneOut,
    SmootherLeaveOneOut,
    local_fits,
    nearest,
)

k = mk.covariances


def data(seed, n=9, d=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=n)


def weighted_line(w, at, X, y, lines):
    """Return the height at a place of the constant or line with the least weighted squares, by its definition."""
    A = np.column_stack([np.ones(len(X)), X - at])[:, : None if lines else 1]
    half = np.sqrt(w)
    return np.linalg.lstsq(half[:, None] * A, half * y, rcond=None)[0][0]


def slopes_by_differences(method, covariance):
    """Return the derivatives of the objective by each number that is free, by central differences."""
    found = {}
    for name, hyper in covariance.free().items():
        value = np.atleast_1d(np.asarray(hyper.value, float))
        slope = np.empty(value.size)
        for j in range(value.size):
            ends = []
            for sign in (1.0, -1.0):
                moved = value.copy()
                moved[j] += sign * 1e-6
                moved = moved if np.ndim(hyper.value) else moved[0]
                ends.append(method.evidence(covariance.with_values({name: moved}, keep=True))[0])
            slope[j] = (ends[0] - ends[1]) / 2e-6
        found[name] = slope
    return found


def same_slopes(method, covariance):
    _, found = method.evidence(covariance)
    for name, slope in slopes_by_differences(method, covariance).items():
        hyper = covariance.free()[name]
        got = np.ravel(found[(id(hyper.part), hyper.name)])
        np.testing.assert_allclose(got, slope, rtol=2e-6, atol=1e-7, err_msg=name)


COVARIANCES = [
    k.RBF(ard=True),
    2.0 * k.Matern52() + k.Linear(),
    k.Polynomial(2),
    k.RBF() * k.RationalQuadratic(),
]


@pytest.mark.parametrize("covariance", COVARIANCES, ids=str)
def test_ridge_errors_are_those_of_refits_for_each_target(covariance):
    X, y = data(1)
    Y = np.column_stack([y, y**2])
    made = (covariance + White(0.3)).started(X, y)
    loo = RidgeLeaveOneOut(X, Y)
    _, error, _, _ = loo.solved(made)
    K = made.value(X)
    refitted = np.array(
        [Y[i] - np.delete(K[i], i) @ np.linalg.solve(np.delete(np.delete(K, i, 0), i, 1), np.delete(Y, i, 0))
         for i in range(len(X))]
    )  # fmt: skip
    np.testing.assert_allclose(error, refitted, atol=1e-10)
    expected = -0.5 * Y.size * np.log((refitted**2).mean())
    assert loo.evidence(made)[0] == pytest.approx(expected, abs=1e-9)
    same_slopes(loo, made)


@pytest.mark.parametrize("lines", [False, True])
def test_local_fits_are_weighted_least_squares(lines):
    X, y = data(2, n=12)
    at, W = np.random.default_rng(3).normal(size=(5, 2)), k.Matern32(1.0)
    found, _ = local_fits(W.value(at, X), at, X, y, lines, None)
    expected = [weighted_line(w, a, X, y, lines) for w, a in zip(W.value(at, X), at, strict=True)]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("lines", [False, True])
def test_errors_of_smoothers_are_those_of_refits_and_slopes_those_of_differences(lines):
    X, y = data(4, n=12)
    made = k.Scaled(None, k.RBF(ard=True)).started(X, y)
    loo, K = SmootherLeaveOneOut(X, y, lines), made.value(X)
    out = [np.delete(np.arange(12), i) for i in range(12)]
    refitted = [y[i] - weighted_line(K[i, o], X[i], X[o], y[o], lines) for i, o in enumerate(out)]
    expected = -6.0 * np.log(np.mean(np.square(refitted)))
    assert loo.evidence(made)[0] == pytest.approx(expected, abs=1e-9)
    same_slopes(loo, made)


def test_where_all_weights_vanish_the_nearest_row_counts():
    X, y = np.array([[0.0], [1.0], [5.0]]), np.array([1.0, 2.0, 9.0])
    at, narrow = np.array([[1e9], [-1e9], [3.0]]), k.RBF(1e-2)
    for lines in (False, True):
        found, by_weight = local_fits(
            narrow.value(at, X), at, X, y, lines, lambda i: nearest(narrow, at[i], X)
        )
        np.testing.assert_allclose(found[:2], [9.0, 1.0])
        assert not by_weight.any()
    assert found[2] == 5.5  # between two nearest rows, the average


@pytest.mark.parametrize("lines", [False, True])
def test_the_error_goes_to_that_of_nearest_rows_as_lengths_go_to_zero(lines):
    X, y = data(8, n=20)
    far = (X - X[:, None])[..., 0] ** 2 + ((X - X[:, None])[..., 1] / 3.0) ** 2 + 1e9 * np.eye(20)
    expected = -10.0 * np.log(np.mean((y - y[far.argmin(axis=1)]) ** 2))
    for length in (1e-3, 1e-9):
        loo = SmootherLeaveOneOut(X, y, lines)
        assert loo.evidence(k.RBF([length, 3.0 * length]))[0] == pytest.approx(expected, abs=1e-9)


def test_rows_that_leave_a_slope_open_make_it_zero():
    X, y = np.array([[1.0, 7.0], [1.0, 7.0]]), np.array([2.0, 4.0])
    assert local_fits(np.ones((1, 2)), np.array([[3.0, 7.0]]), X, y, True, None)[0].tolist() == [3.0]


def test_the_posterior_is_the_process_whose_mean_the_ridge_is():
    X, y = data(5)
    made = k.RBF(0.7) + White(0.2)
    dual, _, _, _ = RidgeLeaveOneOut(X, y).solved(made)
    new = np.random.default_rng(0).normal(size=(4, 2))
    mean = RidgeLeaveOneOut(X, y).posterior(made).at(new).mean()
    np.testing.assert_allclose(mean, k.RBF(0.7).value(new, X) @ dual[:, 0], atol=1e-12)


def test_units_change_neither_slopes_nor_differences_of_the_objective():
    X, y = data(6)
    made, wide = ((k.RBF(length) + White()).started(X, y / y.std()) for length in (1.0, 2.0))
    for unit in (1e-9, 1e9):
        values = [[RidgeLeaveOneOut(X, s * y).evidence(c)[0] for c in (made, wide)] for s in (1.0, unit)]
        assert np.diff(values[0])[0] == pytest.approx(np.diff(values[1])[0], abs=1e-9)
