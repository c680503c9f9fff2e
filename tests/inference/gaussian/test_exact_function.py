"""The exact posterior of a function against dense formulas: moments, more rows, draws, and matrices that are no matrices."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument, Unanswered
from markovia.inference.gaussian.exact_function import ExactFunction, MovedFunction, cholesky_in_place

k = mk.covariances
X3, Y3 = np.array([[0.0], [0.5], [2.0]]), np.array([1.0, 0.2, -0.7])


class Distance(k.Covariance):
    """No covariance: larger for what is farther."""

    def k(self, X, Z, xp):
        return xp.abs(X - (X if Z is None else Z).T)


def dense(covariance, noise, X, y, Z):
    K = covariance.value(X) + noise * np.eye(len(X))
    cross = covariance.value(X, Z)
    return cross.T @ np.linalg.solve(K, y), covariance.value(Z) - cross.T @ np.linalg.solve(K, cross)


@pytest.mark.parametrize(
    ("covariance", "mean", "sd"),
    [(k.RBF(1.0), -0.21661077, 0.40458324), (k.Matern52(1.0), -0.20786890, 0.51861839),
     (k.Periodic(1.0, 1.5), 0.12267824, 0.96085941)],
    ids=["rbf", "matern", "periodic"],
)  # fmt: skip
def test_the_numbers_of_the_worked_example(covariance, mean, sd):
    values = ExactFunction(X3, Y3, covariance, 0.1).at(1.0)
    assert values.mean() == pytest.approx(mean, abs=1e-8)
    assert values.sd() == pytest.approx(sd, abs=1e-8)


def test_the_notes_example_of_two_points_with_little_noise():
    values = ExactFunction([[0.0], [1.0]], [0.0, 1.0], k.RBF(length=0.5**0.5), 1e-4).at(0.5)
    assert values.mean() == pytest.approx(0.569349, abs=1e-4)
    assert values.var() == pytest.approx(0.113181, abs=1e-4)


def test_moments_are_those_of_the_dense_formula_in_any_order_of_rows():
    rng = np.random.default_rng(0)
    X, y, Z = rng.normal(size=(20, 2)), rng.normal(size=20), rng.normal(size=(7, 2))
    covariance = 1.5 * k.Matern32([0.5, 1.0]) + k.Constant(0.3)
    mean, cov = dense(covariance, 0.2, X, y, Z)
    order = rng.permutation(20)
    for f in (ExactFunction(X, y, covariance, 0.2), ExactFunction(X[order], y[order], covariance, 0.2)):
        values = f.at(Z)
        np.testing.assert_allclose(values.mean(), mean, atol=1e-12)
        np.testing.assert_allclose(values.cov(), cov, atol=1e-12)
        np.testing.assert_allclose(values.var(), np.diag(cov), atol=1e-12)
        np.testing.assert_allclose(f.means(Z), mean, atol=1e-12)
        np.testing.assert_allclose(f.covariances(Z[:2], Z[2:]), cov[:2, 2:], atol=1e-12)


def test_without_noise_the_function_goes_through_its_values_and_nothing_is_unknown_there():
    values = ExactFunction(X3, Y3, k.RBF(1.0)).at(X3)
    np.testing.assert_allclose(values.mean(), Y3, atol=1e-12)
    np.testing.assert_allclose(values.sd(), 0.0, atol=1e-7)


def test_weight_space_is_function_space():
    rng = np.random.default_rng(1)
    X, y, Z = rng.normal(size=(15, 3)), rng.normal(size=15), rng.normal(size=(4, 3))
    with_one, new = (np.column_stack([np.ones(len(A)), A]) for A in (X, Z))
    precision = np.eye(4) + with_one.T @ with_one / 0.5
    weights = np.linalg.solve(precision, with_one.T @ y / 0.5)
    values = ExactFunction(X, y, k.Constant(1.0) + k.Linear(1.0), 0.5).at(Z)
    np.testing.assert_allclose(values.mean(), new @ weights, atol=1e-12)
    np.testing.assert_allclose(values.cov(), new @ np.linalg.solve(precision, new.T), atol=1e-12)


def test_more_rows_extend_the_factor_to_what_all_rows_give():
    rng = np.random.default_rng(2)
    X, y, Z = rng.normal(size=(30, 2)), rng.normal(size=(30, 2)), rng.normal(size=(5, 2))
    whole = ExactFunction(X, y, k.RBF(1.0), 0.1)
    steps = ExactFunction(X[:10], y[:10], k.RBF(1.0), 0.1).updated(X[10:12], y[10:12]).updated(X[12:], y[12:])
    np.testing.assert_allclose(np.tril(steps.factor), np.tril(whole.factor), atol=1e-12)
    np.testing.assert_allclose(steps.moments(Z).means, whole.moments(Z).means, atol=1e-11)
    assert steps.info.log_evidence == pytest.approx(whole.info.log_evidence)
    with pytest.raises(Unanswered, match="fit them together"):
        ExactFunction(X, y, k.RBF(1.0), np.full(30, 0.1)).updated(X, y)


def test_a_row_that_is_there_already_makes_an_update_begin_anew_and_say_its_jitter():
    f = ExactFunction([[0.0], [1.0]], [1.0, 2.0], k.RBF(1.0)).updated([[1.0]], [2.0])
    assert f.jitter > 0.0
    assert "was added to variances" in f.info.note
    assert f.at(0.0).mean() == pytest.approx(1.0, abs=1e-6)


def test_no_rows_leave_the_prior():
    values = ExactFunction(np.zeros((0, 1)), np.zeros(0), 2.0 * k.RBF(1.0)).at([0.0, 1.0])
    np.testing.assert_allclose(values.mean(), 0.0)
    np.testing.assert_allclose(values.var(), 2.0)


@pytest.mark.parametrize("covariance", [k.RBF(1.0), k.Brownian(1.0)], ids=["with a spectrum", "without"])
def test_functions_that_are_drawn_have_the_posterior_mean_and_covariance_and_stay_what_they_are(covariance):
    X, Z = np.array([[0.5], [1.0], [2.0]]), np.array([[0.7], [1.5], [2.5]])
    f = ExactFunction(X, Y3, covariance, 0.1)
    functions = f.draws(4_000, seed=0)
    first = functions(Z)
    together = functions(np.concatenate([Z, [[3.0]]]))
    np.testing.assert_allclose(together[:, :3], first, atol=1e-12)
    values = f.at(Z)
    np.testing.assert_allclose(first.mean(axis=0), values.mean(), atol=4.5 * values.sd().max() / 4_000**0.5)
    np.testing.assert_allclose(np.cov(first.T), values.cov(), atol=0.05)


def test_a_factor_that_fails_gets_jitter_and_what_is_no_covariance_is_refused():
    K = np.asfortranarray(np.ones((3, 3)))
    assert cholesky_in_place(K) > 0.0
    np.testing.assert_allclose(np.tril(K) @ np.tril(K).T, 1.0, atol=1e-8)
    good = np.asfortranarray(np.diag([4.0, 9.0]))
    assert cholesky_in_place(good) == 0.0
    with pytest.raises(InvalidArgument, match="not positive definite at these inputs"):
        ExactFunction(X3, Y3, Distance())
    with pytest.raises(InvalidArgument, match="not positive definite at these inputs"):
        ExactFunction(X3, Y3, 0.0 * k.RBF(1.0))


def test_a_function_in_other_units_is_moved_in_all_its_answers():
    inner = ExactFunction(X3, Y3, k.RBF(1.0), 0.1)
    moved = MovedFunction(inner, 10.0, lambda rows: rows[:, 0])
    Z = np.array([[0.2], [1.0]])
    np.testing.assert_allclose(moved.at(Z).mean(), Z[:, 0] + 10.0 * inner.at(Z).mean())
    np.testing.assert_allclose(moved.at(Z).cov(), 100.0 * inner.at(Z).cov())
    np.testing.assert_allclose(moved.draws(3, seed=1)(Z), Z[:, 0] + 10.0 * inner.draws(3, seed=1)(Z))
    assert moved.info.log_evidence == pytest.approx(inner.info.log_evidence - 3 * np.log(10.0))
