"""Kernel ridge as features and as a process; smoothers by their formulas; what was chosen against grids and refits."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge as TheirRidge

import markovia as mk
from markovia.inference.gaussian.exact_function import ExactFunction
from markovia.models.gaussian.kernel_regression import KernelRidge, LocalLinear, NadarayaWatson

k = mk.covariances
ALL = [KernelRidge, NadarayaWatson, LocalLinear]


def data(seed=0, n=15, d=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(X[:, 0]) + 0.2 * rng.normal(size=n), rng.normal(size=(6, d))


# -- ridge ---------------------------------------------------------------------------------------------------------


def test_ridge_is_the_mean_of_a_process():
    X, y, new = data()
    for covariance in (k.RBF(0.8), 2.0 * k.Matern32(1.0) + k.Linear(0.5), k.Polynomial(3, 1.0, 0.5)):
        model = KernelRidge(covariance, penalty=0.3).fit(X, y)
        mean = ExactFunction(X, y, covariance, 0.3).at(new).mean()
        np.testing.assert_allclose(model.predict(new), mean, rtol=1e-10, atol=1e-10)
        process = mk.GaussianProcess(covariance + k.White(0.3), mean=0.0).fit(X, y)
        np.testing.assert_allclose(model.predict(new), process.predict(new), rtol=1e-10, atol=1e-10)


def test_ridge_with_a_polynomial_is_ridge_on_its_features():
    """(1 + x z)^2 = phi(x) . phi(z) with phi = (1, sqrt 2 x, x^2); the dual solves what the primal does."""
    x, y, _ = data(d=1)
    new = np.linspace(-2.0, 2.0, 7)[:, None]

    def features(x):
        return np.column_stack([np.ones(len(x)), 2.0**0.5 * x, x**2])

    phi = features(x)
    w = np.linalg.solve(phi.T @ phi + 0.7 * np.eye(3), phi.T @ y)
    model = KernelRidge(k.Polynomial(2, offset=1.0, variance=1.0), penalty=0.7).fit(x, y)
    np.testing.assert_allclose(model.predict(new), features(new) @ w, rtol=1e-11, atol=1e-12)
    # the weights are a combination of the features of rows, a_n = -(w . phi_n - y_n) / penalty
    np.testing.assert_allclose(model.dual_coef_, (y - phi @ w) / 0.7, rtol=1e-9)


def test_one_plus_products_is_the_line_with_two_standard_normal_weights():
    X, y, new = data(d=1)
    A = np.column_stack([np.ones(15), X])
    w = np.linalg.solve(A.T @ A + 0.5 * np.eye(2), A.T @ y)
    model = KernelRidge(k.Constant(1.0) + k.Linear(1.0), penalty=0.5).fit(X, y)
    np.testing.assert_allclose(model.predict(new), w[0] + w[1] * new[:, 0], rtol=1e-11)


def test_ridge_is_scikit_learns_at_the_same_numbers():
    X, y, new = data(1)
    Y = np.column_stack([y, y**2])
    theirs = TheirRidge(kernel="rbf", gamma=0.5 / 0.9**2, alpha=0.2).fit(X, Y)
    model = KernelRidge(k.RBF(0.9), penalty=0.2).fit(X, Y)
    np.testing.assert_allclose(model.predict(new), theirs.predict(new), rtol=1e-10)
    np.testing.assert_allclose(model.dual_coef_, theirs.dual_coef_, rtol=1e-9)


def test_the_predictions_without_a_row_are_those_of_refits():
    X, y, _ = data(2)
    model = KernelRidge(k.RBF(1.0), penalty=0.1).fit(X, y)
    for i in range(len(X)):
        rest = np.delete(np.arange(len(X)), i)
        left = KernelRidge(k.RBF(1.0), penalty=0.1).fit(X[rest], y[rest]).predict(X[[i]])[0]
        assert model.leave_one_out_[i] == pytest.approx(left, abs=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_what_was_not_said_has_less_error_than_all_around(seed):
    X, y, _ = data(seed, n=40, d=1)
    model = KernelRidge().fit(X, y)

    def error(length, penalty):
        found = KernelRidge(k.RBF(length), penalty=penalty).fit(X, y).leave_one_out_
        return np.mean((found - y) ** 2)

    chosen, length = np.mean((model.leave_one_out_ - y) ** 2), model.covariance_.hypers()["rbf.length"].value
    assert chosen == pytest.approx(error(length, model.penalty_))
    around = [
        error(length * s, model.penalty_ * t)
        for s in (0.7, 0.95, 1.0, 1.05, 1.4)
        for t in (0.3, 0.9, 1.1, 3.0)
    ]
    assert chosen <= min(around) * (1.0 + 1e-6)
    assert chosen <= min(error(0.5 * s, 0.1) for s in (0.25, 1.0, 4.0))


def test_white_noise_in_the_covariance_is_the_penalty():
    X, y, new = data(4)
    one, two = (
        KernelRidge(k.RBF(1.0) + k.White(0.3)).fit(X, y),
        KernelRidge(k.RBF(1.0), penalty=0.3).fit(X, y),
    )
    assert one.penalty_ == two.penalty_ == 0.3
    np.testing.assert_array_equal(one.predict(new), two.predict(new))


def test_ridge_hands_over_its_process_and_network():
    X, y, new = data(5)
    model = KernelRidge(k.RBF(1.0), penalty=0.3).fit(X, y)
    process = model.process()
    np.testing.assert_allclose(process.predict(new), model.predict(new), atol=1e-10)
    # no other scale of the variance makes the targets more probable
    scale = float(y @ model.dual_coef_) / len(y)
    at = [
        ExactFunction(X, y, s * scale * k.RBF(1.0), s * scale * 0.3).info.log_evidence
        for s in (0.9, 1.0, 1.1)
    ]
    assert at[1] == max(at)
    assert process.log_marginal_likelihood_value_ == pytest.approx(at[1])
    with pytest.raises(mk.errors.InvalidArgument, match="several targets"):
        KernelRidge(k.RBF(1.0), penalty=0.3).fit(X, np.column_stack([y, y])).process()


# -- smoothers -----------------------------------------------------------------------------------------------------


def test_an_average_is_the_weighted_mean_of_targets():
    X, y, new = data(6)
    W = k.Matern52(0.7).value(new, X)
    model = NadarayaWatson(k.Matern52(0.7)).fit(X, y)
    np.testing.assert_allclose(model.predict(new), W @ y / W.sum(axis=1), rtol=1e-12)
    # and the conditional mean of a kernel density of rows and targets
    density = mk.gp.KernelDensity([0.7, 0.7, 0.1]).fit(np.column_stack([X, y]))
    grid = np.linspace(-4.0, 4.0, 2001)
    at = np.column_stack([np.tile(new[0], (2001, 1)), grid])
    p = np.exp(density.score_samples(at))
    W = k.RBF(0.7).value(new[:1], X)
    assert p @ grid / p.sum() == pytest.approx((W @ y / W.sum())[0], abs=1e-8)


def test_lines_are_weighted_least_squares_and_exact_for_linear_targets():
    X, y, new = data(7)
    W, model = k.RBF(0.7).value(new, X), LocalLinear(k.RBF(0.7)).fit(X, y)
    for at, w, found in zip(new, W, model.predict(new), strict=True):
        A = np.column_stack([np.ones(len(X)), X - at])
        assert found == pytest.approx(np.linalg.solve((A.T * w) @ A, (A.T * w) @ y)[0], rel=1e-8)
    straight = LocalLinear(k.RBF(0.7)).fit(X, 3.0 - X @ [1.0, 2.0])
    np.testing.assert_allclose(straight.predict(new), 3.0 - new @ [1.0, 2.0], atol=1e-9)


@pytest.mark.parametrize("kind", [NadarayaWatson, LocalLinear])
def test_the_bandwidth_has_the_least_leave_one_out_error(kind):
    rng = np.random.default_rng(8)
    X = rng.uniform(-3.0, 3.0, (30, 1))
    y = np.sin(2.0 * X[:, 0]) + 0.2 * rng.normal(size=30)
    model = kind().fit(X, y)

    def error(length):
        left = [
            kind(k.RBF(length)).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[[i]])[0] - y[i]
            for i in range(30)
        ]
        return float(np.mean(np.square(left)))

    length = float(model.covariance_.hypers()["rbf.length"].value)
    assert model.leave_one_out_error_ == pytest.approx(error(length), rel=1e-6)
    assert model.leave_one_out_error_ <= min(error(length * s) for s in (0.5, 0.9, 1.1, 2.0)) + 1e-9
    assert model.score(X, y) > 0.8


def test_several_lengths_find_the_column_that_matters():
    rng = np.random.default_rng(9)
    X = rng.uniform(-2.0, 2.0, (80, 2))
    model = NadarayaWatson(k.RBF(ard=True)).fit(X, np.sin(2.0 * X[:, 0]))
    first, second = model.covariance_.hypers()["rbf.length"].value
    assert second > 3.0 * first


def test_the_nearest_row_is_nearest_as_the_covariance_sees_it():
    X, y = np.array([[0.0, 0.0], [1.0, 5.0]]), np.array([1.0, 2.0])
    narrow = NadarayaWatson(k.RBF([1e-3, 1e3])).fit(X, y)
    assert narrow.predict([[0.9, 0.0], [0.2, 5.0]]).tolist() == [2.0, 1.0]
    other = NadarayaWatson(k.RBF(1e-3, columns=[1])).fit(X, y)
    assert other.predict([[0.9, 0.0], [0.2, 5.0], [0.0, 1e6]]).tolist() == [1.0, 2.0, 2.0]


def test_far_away_an_average_is_the_nearest_target():
    model = NadarayaWatson(k.RBF(0.1)).fit([[0.0], [1.0]], [3.0, 5.0])
    assert model.predict([[-1e6], [1e6], [100.0]]).tolist() == [3.0, 5.0, 5.0]


# -- all of them ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(("x_unit", "y_unit"), [(1e9, 1.0), (1e-9, 1.0), (1.0, 1e9), (1.0, 1e-9)])
def test_units_change_nothing(kind, x_unit, y_unit):
    X, y, new = data(3, n=30, d=1)
    one, other = kind().fit(X, y), kind().fit(x_unit * X, y_unit * y)
    np.testing.assert_allclose(other.predict(x_unit * new) / y_unit, one.predict(new), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", ALL)
def test_the_order_of_rows_changes_nothing(kind):
    X, y, new = data(11)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(
        kind().fit(X[order], y[order]).predict(new), kind().fit(X, y).predict(new), atol=1e-4
    )


@pytest.mark.parametrize("kind", ALL)
def test_odd_rows_have_an_answer(kind):
    X, y, _ = data(12)
    assert kind().fit([[1.0]], [2.0]).predict([[1.0]])[0] == pytest.approx(2.0, rel=0.5)  # one row
    flat = kind().fit(X, np.full(15, 7.0))
    assert np.isfinite(flat.predict(X)).all()  # constant targets
    column = kind().fit(np.column_stack([X, np.ones(15)]), y)
    np.testing.assert_allclose(
        column.predict(np.column_stack([X, np.ones(15)])), kind().fit(X, y).predict(X), atol=1e-3
    )
    twice = kind().fit(np.concatenate([X, X]), np.concatenate([y, y + 1.0])).predict(X)
    assert np.isfinite(twice).all()  # ties with unlike targets
    same = kind().fit(np.zeros((4, 2)), [1.0, 2.0, 3.0, 4.0]).predict([[0.0, 0.0]])[0]
    assert same == pytest.approx(2.5, rel=0.25)  # all rows the same


@pytest.mark.parametrize("kind", ALL)
def test_bad_input_is_told_in_a_sentence(kind):
    X, y, _ = data()
    Z = X.copy()
    Z[3, 1] = np.nan
    with pytest.raises(mk.errors.InvalidArgument, match=r"row 3 of X misses 'x1'.*fill them or drop the row"):
        kind().fit(Z, y)
    with pytest.raises(mk.errors.InvalidArgument, match="targets y are finite numbers"):
        kind().fit(X, np.where(np.arange(15) == 2, np.nan, y))
    with pytest.raises(mk.errors.InvalidArgument, match="targets y are finite numbers"):
        kind().fit(X, list("abcdefghijklmno"))
    with pytest.raises(mk.errors.InvalidArgument, match="inconsistent numbers of samples"):
        kind().fit(X, y[:-1])
    with pytest.raises(mk.errors.MarkoviaError, match=r"one of mk\.covariances"):
        kind("rbf").fit(X, y)


def test_what_makes_no_sense_is_refused():
    X, y, _ = data()
    with pytest.raises(mk.errors.InvalidArgument, match="noise alone"):
        KernelRidge(k.White(1.0)).fit(X, y)
    with pytest.raises(mk.errors.InvalidArgument, match="has a White"):
        KernelRidge(k.RBF(1.0) + k.White(1.0), penalty=1.0).fit(X, y)
    with pytest.raises(mk.errors.InvalidArgument, match=r"not positive definite.*larger penalty="):
        KernelRidge(k.RBF(1.0), penalty=1e-300).fit(np.zeros((3, 1)), [1.0, 2.0, 3.0])
    with pytest.raises(mk.errors.InvalidArgument, match="leave White out"):
        NadarayaWatson(k.RBF(1.0) + k.White(1.0)).fit(X, y)
    with pytest.raises(mk.errors.InvalidArgument, match="weights are negative"):
        LocalLinear(k.Linear(1.0)).fit(X, y)


def test_more_rows_than_memory_has_room_for_are_refused(monkeypatch):
    monkeypatch.setattr("markovia.models.gaussian.kernel_machine.default_budget", lambda: 10_000)
    X, y, _ = data()
    with pytest.raises(mk.errors.TooLarge, match=r"all pairs of 15 rows take .*sample of the rows"):
        KernelRidge().fit(X, y)


def test_predictions_in_blocks_are_those_at_once(monkeypatch):
    X, y, _ = data(13)
    model = LocalLinear(k.RBF(1.0)).fit(X, y)
    new = np.random.default_rng(0).normal(size=(50, 2))
    whole = model.predict(new)
    monkeypatch.setattr("markovia.models.gaussian.kernel_machine.BLOCK", 40)
    np.testing.assert_allclose(model.predict(new), whole, rtol=1e-13)


def test_fits_need_no_compiler():
    script = (
        "import sys, numpy as np, markovia as mk\n"
        "X = np.random.default_rng(0).normal(size=(20, 2)); y = X[:, 0]\n"
        "for kind in (mk.gp.KernelRidge, mk.gp.LocalLinear, mk.gp.NadarayaWatson, mk.gp.KernelDensity, mk.gp.KernelPCA,\n"
        "             mk.gp.RelevanceVectorRegressor, mk.gp.SupportVectorRegressor):\n"
        "    kind().fit(X, y)\n"
        "assert not {'jax', 'numba', 'matplotlib'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=600)
