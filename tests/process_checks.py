"""What tests of Gaussian processes compare with: dense matrices and central differences."""

import numpy as np

import markovia as mk
from markovia.factors.covariances.algebra import split_white


def free(value, support="positive"):
    """Return a hyper-parameter that is fitted, starting at a number or an array."""
    found = mk.Parameter(0.0).with_value(np.asarray(value, dtype=float))
    found.support = support
    return found


def dense(covariance, X, y, Z):
    """Return the log density of targets, and the mean and covariance of the function at Z, by the textbook."""
    rest, noise = split_white(covariance)
    assert rest is not None
    K = rest.value(X) + sum(part.number("variance") for part in noise) * np.eye(len(X))
    cross, solved = rest.value(X, Z), np.linalg.solve(K, y)
    value = -0.5 * (y @ solved + np.linalg.slogdet(K)[1] + len(y) * np.log(2.0 * np.pi))
    return value, cross.T @ solved, rest.value(Z, Z) - cross.T @ np.linalg.solve(K, cross)


def slopes(found, covariance):
    """Return a gradient by the names of hyper-parameters."""
    return {name: np.asarray(found[id(h.part), h.name]) for name, h in covariance.free().items()}


def differences(value, covariance, step=1e-5):
    """Return the derivatives of a function of a covariance by its free numbers, by central differences in logs."""
    found = {}
    for name, hyper in covariance.free().items():
        at = np.asarray(hyper.value, dtype=float)
        slope = np.empty(at.shape)
        for i in np.ndindex(at.shape):
            away = np.zeros(at.shape)
            away[i] = step * (abs(at[i]) if hyper.support == "positive" else 1.0)
            ends = [
                value(covariance.with_values({name: at + sign * away}, keep=True)) for sign in (1.0, -1.0)
            ]
            slope[i] = (ends[0] - ends[1]) / (2.0 * away[i])
        found[name] = slope
    return found


def check_slopes(method, covariance, rtol=1e-5, atol=1e-5, step=1e-5):
    """Compare the gradient of a method's evidence with differences of it."""
    value, found = method.evidence(covariance)
    fixed = covariance.with_values({name: hyper.value for name, hyper in covariance.free().items()})
    assert abs(method.evidence(fixed)[0] - value) <= 1e-9 * (1.0 + abs(value))
    assert method.evidence(fixed)[1] == {}
    found, expected = (
        slopes(found, covariance),
        differences(lambda made: method.evidence(made)[0], covariance, step),
    )
    for name, slope in expected.items():
        assert found[name].shape == slope.shape, name
        np.testing.assert_allclose(found[name], slope, rtol=rtol, atol=atol, err_msg=name)
