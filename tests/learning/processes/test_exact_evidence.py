"""The exact log evidence: the density of a multivariate normal distribution, its gradient, and scikit-learn's numbers."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

import markovia as mk
from markovia.errors import TooLarge
from markovia.learning.processes.exact_evidence import ExactEvidence, mirror

k = mk.covariances
X3, Y3 = np.array([[0.0], [0.5], [2.0]]), np.array([1.0, 0.2, -0.7])


def rows(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)


def free(value):
    return mk.Parameter(value).with_value(np.asarray(value, dtype=float))


@pytest.mark.parametrize(
    ("covariance", "value"),
    [(k.RBF(1.0), -3.3602643363), (k.Matern52(1.0), -3.4051925874), (k.Periodic(1.0, 1.5), -4.5837120517)],
    ids=["rbf", "matern", "periodic"],
)
def test_the_numbers_of_the_worked_example(covariance, value):
    assert ExactEvidence(X3, Y3).evidence(covariance + k.White(0.1))[0] == pytest.approx(value, abs=1e-9)


def test_the_evidence_is_the_density_of_a_multivariate_normal():
    for seed in range(5):
        X, y = rows(12, 2, seed)
        whole = 1.7 * k.Matern32([0.5, 2.0]) * k.RBF(1.0) + k.Linear(0.3) + k.White(0.2) + k.White(0.1)
        expected = multivariate_normal.logpdf(y, np.zeros(12), whole.value(X))
        assert ExactEvidence(X, y).evidence(whole)[0] == pytest.approx(expected, abs=1e-10)


def test_columns_of_targets_add_up_and_errors_of_rows_are_noise():
    X, y = rows(9, 1)
    two, errors = np.stack([y, y**2], axis=1), np.linspace(0.1, 0.5, 9)
    covariance = k.RBF(free(0.7)) + k.White(free(0.2))
    each = [ExactEvidence(X, column).evidence(covariance) for column in two.T]
    both = ExactEvidence(X, two).evidence(covariance)
    assert both[0] == pytest.approx(sum(value for value, _ in each), abs=1e-10)
    for key, slope in both[1].items():
        np.testing.assert_allclose(slope, sum(s[key] for _, s in each), atol=1e-10)
    known = ExactEvidence(X, y, errors=errors).evidence(covariance)[0]
    assert known == pytest.approx(
        multivariate_normal.logpdf(y, np.zeros(9), covariance.value(X) + np.diag(errors**2))
    )


def test_gradients_agree_with_differences():
    X, y = rows(15, 2)
    covariance = (
        free(1.3) * k.RBF(free([0.8, 1.5]))
        + k.RationalQuadratic(free(1.0), free(0.7))
        + k.White(free(0.2))
        + k.White(free(0.1))
    )
    method, free_ones = ExactEvidence(X, y), covariance.free()
    _, slopes = method.evidence(covariance)
    for name, hyper in free_ones.items():
        for i in range(np.size(hyper.value)):
            step = np.zeros(np.shape(hyper.value))
            step.flat[i] = 1e-5
            up, down = (
                method.evidence(covariance.with_values({name: hyper.value + s}))[0] for s in (step, -step)
            )
            assert np.ravel(slopes[id(hyper.part), hyper.name])[i] == pytest.approx(
                (up - down) / 2e-5, rel=1e-6, abs=1e-7
            )


def test_scikit_learn_says_the_same_at_several_covariances():
    X, y = rows(40, 3)
    pairs = [
        (2.0 * k.RBF([0.5, 1.0, 3.0]) + k.White(0.1),
         2.0 * kernels.RBF([0.5, 1.0, 3.0]) + kernels.WhiteKernel(0.1)),
        (k.Matern32(1.5) + k.White(0.5), kernels.Matern(1.5, nu=1.5) + kernels.WhiteKernel(0.5)),
        (0.7 * k.Matern52(0.4) * k.RBF(2.0) + k.White(0.2),
         0.7 * kernels.Matern(0.4, nu=2.5) * kernels.RBF(2.0) + kernels.WhiteKernel(0.2)),
        (k.RationalQuadratic(1.0, 0.5) + k.Constant(0.3) + k.White(0.2),
         kernels.RationalQuadratic(1.0, 0.5) + kernels.ConstantKernel(0.3) + kernels.WhiteKernel(0.2)),
    ]  # fmt: skip
    for ours, theirs in pairs:
        fitted = GaussianProcessRegressor(theirs, optimizer=None, alpha=0.0).fit(X, y)
        assert ExactEvidence(X, y).evidence(ours)[0] == pytest.approx(
            fitted.log_marginal_likelihood_value_, abs=1e-8
        )


def test_a_second_value_in_the_same_buffer_is_that_of_a_fresh_one():
    X, y = rows(30, 1)
    method = ExactEvidence(X, y)
    method.evidence(k.RBF(free(3.0)) + k.White(0.5))
    again = k.RBF(free(0.4)) + k.White(free(0.1))
    value, slopes = method.evidence(again)
    expected, others = ExactEvidence(X, y).evidence(again)
    assert value == expected
    assert slopes == others


def test_units_of_targets_move_the_evidence_by_their_logarithm():
    X, y = rows(10, 1)
    for unit in (1e-9, 1e9):
        found = ExactEvidence(unit * X, unit * y).evidence(unit**2 * k.RBF(unit) + k.White(0.1 * unit**2))[0]
        expected = ExactEvidence(X, y).evidence(k.RBF(1.0) + k.White(0.1))[0] - 10 * np.log(unit)
        assert found == pytest.approx(expected, abs=1e-8)


def test_rows_beyond_the_memory_are_refused_with_an_estimate_and_a_method_that_would_do():
    with pytest.raises(TooLarge, match=r"300 rows takes about .*method='sgpr'") as refused:
        ExactEvidence(np.zeros((300, 1)), np.zeros(300), memory=1e6)
    assert refused.value.bytes == pytest.approx(6 * 8 * 300**2)


def test_mirroring_fills_the_upper_triangle_across_blocks():
    A = np.asfortranarray(np.random.default_rng(0).normal(size=(600, 600)))
    low = np.tril(A)
    mirror(A)
    np.testing.assert_array_equal(A, low + np.tril(low, -1).T)


def test_noise_alone_has_an_evidence_too():
    y = np.array([1.0, -2.0])
    found, slopes = ExactEvidence(np.zeros((2, 1)), y).evidence(k.White(free(2.0)))
    assert found == pytest.approx(multivariate_normal.logpdf(y, np.zeros(2), 2.0 * np.eye(2)))
    assert next(iter(slopes.values())) == pytest.approx(-0.5 * 2 / 2.0 + 0.5 * 5.0 / 4.0)
