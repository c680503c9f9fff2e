"""The quick likelihood of autoregressive moving averages against the joint Gaussian and the Kalman filter."""

import itertools

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import markovia as mk
from markovia.learning.sequences.arma_likelihood import arma_log_likelihood


def autocovariances(ar, ma, variance, steps):
    """Sum the weights of ten thousand past disturbances."""
    psi = np.zeros(10_000)
    psi[0] = 1.0
    for t in range(1, len(psi)):
        psi[t] = sum(a * psi[t - i - 1] for i, a in enumerate(ar) if t > i)
        psi[t] += ma[t - 1] if t <= len(ma) else 0.0
    return np.array([variance * psi[: len(psi) - h] @ psi[h:] for h in range(steps)])


@pytest.mark.parametrize(
    ("ar", "ma", "constant"),
    [
        ([], [], 0.0),
        ([0.6], [], 2.0),
        ([], [0.4, 2.0], -1.0),
        ([0.5, 0.0, -0.3], [0.2], 0.7),
        ([0.995], [-0.9], 0.0),
    ],
)
@pytest.mark.parametrize("unit", [1.0, 1e-9, 1e9])
def test_it_is_the_density_of_the_joint_gaussian(ar, ma, constant, unit):
    rng = np.random.default_rng(0)
    y, offsets, variance = rng.normal(size=9) * unit, np.array([0, 5, 6, 9]), 1.7 * unit**2
    cov = autocovariances(ar, ma, variance, 9)
    mean = constant * unit / (1.0 - sum(ar))
    wanted = 0.0
    for a, b in itertools.pairwise(offsets):
        matrix = cov[np.abs(np.subtract.outer(np.arange(b - a), np.arange(b - a)))]
        white = (y[a:b] - mean) / unit  # in units of the series, so that scipy inverts it
        wanted += multivariate_normal(cov=matrix / unit**2).logpdf(white) - (b - a) * np.log(unit)
    found = arma_log_likelihood(np.array(ar), np.array(ma), variance, constant * unit, y, offsets)
    assert found == pytest.approx(wanted, abs=1e-8)


@pytest.mark.parametrize("ar", [[1.0], [1.2], [0.5, 0.5], [1e200]])
def test_a_series_that_is_not_stationary_is_impossible(ar):
    assert arma_log_likelihood(np.array(ar), np.empty(0), 1.0, 0.0, np.ones(3), np.array([0, 3])) == -np.inf
    assert arma_log_likelihood(np.empty(0), np.empty(0), 0.0, 0.0, np.ones(3), np.array([0, 3])) == -np.inf


@pytest.mark.parametrize("seasonal", [(0, 0, 0, 0), (1, 1, 1, 4)])
def test_searches_by_differences_find_what_the_filter_over_all_steps_finds(seasonal):
    rng = np.random.default_rng(1)
    u = rng.normal(size=(60, 1))
    y = np.cumsum(rng.normal(size=60)) + 2.0 * u[:, 0]
    series, inputs = [y[:35], y[35:]], [u[:35], u[35:]]
    quick = mk.ARIMA((1, 1, 1), seasonal_order=seasonal, constant=True)
    slow = mk.ARIMA((1, 1, 1), seasonal_order=seasonal, constant=True)
    slow._quick_likelihood = lambda *given: None
    quick.fit(series, inputs=inputs)
    slow.fit(series, inputs=inputs)
    assert quick.log_likelihood_ == pytest.approx(slow.log_likelihood_, abs=1e-5)
    assert quick.log_likelihood_ == pytest.approx(quick.score(series, inputs=inputs), abs=1e-8)
    for name, error in slow.standard_errors_.items():
        assert quick.params_[name] == pytest.approx(slow.params_[name], abs=0.02 * error + 1e-3)
        assert quick.standard_errors_[name] == pytest.approx(error, rel=0.02)
