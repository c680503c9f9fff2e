"""The process that stands in for a costly function: its posterior by the dense formula, its units, its priors, its draws."""

import subprocess
import sys

import numpy as np
import pytest

from markovia.learning.processes.evidence_ascent import Coordinates
from markovia.learning.processes.surrogate import KINDS, LogNormal, fitted_surrogate


def trials(n=15, d=2, seed=0):
    X = np.random.default_rng(seed).random((n, d))
    return X, np.sin(4 * X[:, 0]) + X @ np.arange(d)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("noise", [None, 0.0, 0.3])
def test_the_posterior_is_the_dense_formula(kind, noise):
    X, y = trials()
    found = fitted_surrogate(X, y, kind=kind, noise=noise)
    Z = np.random.default_rng(1).random((4, 2))
    k = found.function.covariance
    K = k.value(X) + found.noise * np.eye(15)
    mean = k.value(Z, X) @ np.linalg.solve(K, (y - y.mean()) / y.std())
    cov = k.value(Z) - k.value(Z, X) @ np.linalg.solve(K, k.value(X, Z))
    np.testing.assert_allclose(found.moments(Z)[0], mean, atol=1e-6)
    np.testing.assert_allclose(found.moments(Z)[1], np.sqrt(np.diag(cov)), atol=1e-6)
    np.testing.assert_allclose(found.moments_with_pull(Z)[1], np.sqrt(np.diag(cov)), atol=1e-6)
    if noise:
        assert found.noise == pytest.approx((noise / y.std()) ** 2)


@pytest.mark.parametrize(("unit", "shift"), [(1e-9, 0.0), (1e9, 0.0), (1.0, 1e6), (1e-3, -7.0)])
def test_the_unit_of_values_changes_nothing_but_the_unit(unit, shift):
    X, y = trials()
    Z = np.random.default_rng(1).random((5, 2))
    plain, other = fitted_surrogate(X, y), fitted_surrogate(X, shift + unit * y)
    for a, b in zip(plain.moments(Z), other.moments(Z), strict=True):
        np.testing.assert_allclose(b, a, atol=1e-4)
    expected = shift + unit * plain.unscaled(plain.moments(Z)[0])
    np.testing.assert_allclose(other.unscaled(other.moments(Z)[0]), expected, rtol=1e-3)


@pytest.mark.parametrize("y", [[3.0], [3.0] * 6, [0.1 + 0.2] * 3 + [0.3] * 3, [0.0] * 4])
def test_values_that_are_all_the_same_are_believed(y):
    X = np.linspace(0, 1, len(y))[:, None]
    found = fitted_surrogate(X, np.array(y))
    mean, sd = found.moments(np.array([[0.35]]))
    assert found.unscaled(mean[0]) == pytest.approx(y[0])
    assert np.isfinite(sd).all()
    assert found.scale == 1.0


def test_trials_at_one_place_with_different_values_are_noise():
    X = np.array([[0.5]] * 8 + [[0.1], [0.9]])
    y = np.array([1.0, 2.0, 1.5, 0.5, 1.2, 1.8, 0.9, 1.1, 1.3, 1.2])
    found = fitted_surrogate(X, y)
    assert found.noise > 0.1
    assert fitted_surrogate(X, y, noise=0.0).moments(X)[0] is not None  # without noise, too, it is a process


def test_another_start_never_leads_to_a_less_probable_process():
    X, y = trials(20, 3)
    first = fitted_surrogate(X, y)
    numbers = {name: np.asarray(h.value) for name, h in first.covariance.free().items()}
    again = fitted_surrogate(X, y, start=numbers)
    for name, h in again.covariance.free().items():
        np.testing.assert_allclose(np.log(h.value), np.log(numbers[name]), atol=0.5)


def test_a_column_that_does_not_matter_gets_a_long_length():
    X = np.random.default_rng(0).random((40, 2))
    length = fitted_surrogate(X, np.sin(8 * X[:, 0]), noise=0.0).covariance.hypers()["matern52.length"].value
    assert length[1] > 3 * length[0]


def test_the_gradient_of_the_objective_with_its_priors_is_that_of_differences():
    from markovia.learning.processes.exact_evidence import ExactEvidence

    X, y = trials()
    k = fitted_surrogate(X, y).covariance
    coordinates, method = Coordinates(k), ExactEvidence(X, (y - y.mean()) / y.std())
    assert any(isinstance(h.prior, LogNormal) for h in k.free().values())

    def objective(point):
        made = coordinates.at(point)
        return method.evidence(made)[0] + coordinates.log_prior(made)

    point = coordinates.read({}) + 0.3
    made = coordinates.at(point)
    slope = coordinates.slope(made, method.evidence(made)[1], point)
    for j in range(len(point)):
        step = 1e-5 * np.eye(len(point))[j]
        assert slope[j] == pytest.approx((objective(point + step) - objective(point - step)) / 2e-5, abs=1e-4)


def test_draws_have_the_moments_of_the_process():
    X, y = trials()
    found = fitted_surrogate(X, y)
    Z = np.random.default_rng(1).random((3, 2))
    rng = np.random.default_rng(2)
    values = np.array([found.draw(rng)(Z)[0] for _ in range(400)])
    mean, sd = found.moments(Z)
    np.testing.assert_allclose(values.mean(axis=0), mean, atol=4 * sd.max() / 20 + 0.02)
    np.testing.assert_allclose(values.std(axis=0), sd, rtol=0.25, atol=0.01)


def test_points_under_way_are_believed_to_give_their_means():
    X, y = trials()
    found = fitted_surrogate(X, y, noise=0.0)
    x, z = np.array([[0.95, 0.05]]), np.array([[0.2, 0.7]])
    moved = found.believing(x)
    np.testing.assert_allclose(
        moved.moments(np.vstack([x, z]))[0], found.moments(np.vstack([x, z]))[0], atol=1e-6
    )
    assert moved.moments(x)[1][0] < 0.1 * found.moments(x)[1][0]


def test_nothing_of_a_search_loads_a_compiler():
    code = (
        "import sys, markovia as mk;"
        "found = mk.bayesopt.minimize(lambda p: (p['x'] - 1) ** 2, {'x': (0., 3.), 'k': ['a', 'b', 'c']}, 8, seed=0);"
        "print(*(m for m in ('jax', 'numba', 'numpyro', 'pandas', 'matplotlib', 'sklearn') if m in sys.modules))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == ""
    )
