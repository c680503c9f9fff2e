"""Support vector machines: the notes' example, scikit-learn, and conditions of the optimum that notice what was moved."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import SVC, SVR

import markovia as mk
from markovia.models.gaussian.support_vectors import SupportVectorClassifier, SupportVectorRegressor

k = mk.covariances
X3, Y3 = np.array([[3.0, 3.0], [4.0, 3.0], [1.0, 1.0]]), np.array([1, 1, -1])


def two_classes(seed=0, n=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0.0, "yes", "no"), rng.normal(size=(10, 2))


def test_the_hard_margin_of_three_points():
    """Positive (3, 3), (4, 3); negative (1, 1): w = (1/2, 1/2), b = -2, and the middle point is no support vector."""
    model = SupportVectorClassifier(k.Linear(1.0), C=1e6, tol=1e-12).fit(X3, Y3)
    found = model.optimality()[-1, 1]
    np.testing.assert_allclose(found.alpha, [0.25, 0.0, 0.25], atol=1e-9)
    np.testing.assert_allclose(found.w, [0.5, 0.5], atol=1e-9)
    assert found.b == pytest.approx(-2.0)
    assert found.margin == pytest.approx(2.0 * 2.0**0.5)
    assert found.primal == pytest.approx(0.25)
    assert found.dual == pytest.approx(0.25)
    assert found.support.tolist() == [0, 2]
    assert found.margin_errors == 0
    assert max(found.gap, found.infeasible, found.slackness) < 1e-9
    np.testing.assert_allclose(model.decision_function(X3), [1.0, 1.5, -1.0], atol=1e-9)


def test_decisions_are_scikit_learns_with_the_same_matrix():
    X, y, new = two_classes()
    covariance = 2.0 * k.Matern32(0.8) + k.Linear(0.3)
    theirs = SVC(kernel="precomputed", C=2.0, tol=1e-5).fit(covariance.value(X), y)
    ours = SupportVectorClassifier(covariance, C=2.0).fit(X, y)
    np.testing.assert_allclose(
        ours.decision_function(new), theirs.decision_function(covariance.value(new, X)), atol=1e-9
    )
    assert ours.predict(new).tolist() == theirs.predict(covariance.value(new, X)).tolist()
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    # the length of ours is theirs with gamma = 1 / (2 length^2)
    plain = SVC(gamma=0.5 / 0.7**2, tol=1e-5).fit(X, y)
    mine = SupportVectorClassifier(k.RBF(0.7)).fit(X, y)
    np.testing.assert_allclose(mine.decision_function(new), plain.decision_function(new), atol=1e-6)


def test_the_report_is_that_of_the_dual_problem_solved_by_itself():
    X, y, _ = two_classes(1, n=12)
    sign, K = np.where(y == "yes", 1.0, -1.0), k.RBF(1.0).value(X)
    Q = K * sign * sign[:, None]
    best = minimize(
        lambda a: (0.5 * a @ Q @ a - a.sum(), Q @ a - 1.0),
        np.full(12, 0.1), jac=True, bounds=[(0.0, 2.0)] * 12, method="SLSQP",
        constraints={"type": "eq", "fun": lambda a: a @ sign, "jac": lambda a: sign}, options={"ftol": 1e-14, "maxiter": 99},
    )  # fmt: skip
    model = SupportVectorClassifier(k.RBF(1.0), C=2.0, tol=1e-10).fit(X, y)
    found = model.optimality()["no", "yes"]
    np.testing.assert_allclose(found.alpha, best.x, atol=1e-5)
    assert found.dual == pytest.approx(-best.fun, abs=1e-8)
    # and the primal is what the function costs
    f = model.decision_function(X)
    slack = np.maximum(1.0 - sign * f, 0.0)
    beta = found.alpha * sign
    assert found.primal == pytest.approx(0.5 * beta @ K @ beta + 2.0 * slack.sum(), abs=1e-9)
    assert found.margin == pytest.approx(2.0 / (beta @ K @ beta) ** 0.5)
    assert found.w is None  # a function of an RBF has no weights of columns


def largest(report):
    return max(abs(report.gap), report.infeasible, report.slackness)


def test_conditions_hold_at_the_optimum_of_each_pair_of_classes_and_only_there():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(45, 2)) + np.repeat([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]], 15, axis=0)
    y = np.repeat(["a", "b", "c"], 15)
    model = SupportVectorClassifier(k.RBF(1.0), C=3.0, tol=1e-9).fit(X, y)
    reports = model.optimality()
    assert list(reports) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert all(largest(report) < 1e-5 for report in reports.values())
    for pair, report in reports.items():  # each is the machine of its two classes alone
        rows = np.isin(y, pair)
        alone = SupportVectorClassifier(k.RBF(1.0), C=3.0, tol=1e-9).fit(X[rows], y[rows]).optimality()[pair]
        assert report.primal == pytest.approx(alone.primal, abs=1e-6)
        assert report.b == pytest.approx(alone.b, abs=1e-5)
        assert report.margin_errors == alone.margin_errors


def test_a_fit_that_was_moved_or_stopped_early_says_what_is_violated():
    X, y, _ = two_classes(4)
    model = SupportVectorClassifier(k.RBF(1.0), tol=1e-9).fit(X, y)
    right = model.optimality()["no", "yes"]
    model.intercept_ = model.intercept_ + 0.1  # the constant: some product with what is left is not zero
    moved = model.optimality()["no", "yes"]
    assert moved.slackness > 1e-3
    assert moved.gap > 1e-3
    assert moved.infeasible == right.infeasible
    model.intercept_ = model.intercept_ - 0.1
    model.dual_coef_ = model.dual_coef_.copy()
    model.dual_coef_[0, 0] *= 3.0  # one multiplier: they add up to something
    assert model.optimality()["no", "yes"].infeasible > 1e-2
    rough = SupportVectorClassifier(k.RBF(1.0), tol=0.5).fit(X, y).optimality()["no", "yes"]
    assert rough.gap > 100.0 * max(right.gap, 1e-9)


def test_a_linear_machine_has_weights_and_others_have_none():
    X, y, new = two_classes(5)
    found = SupportVectorClassifier(0.5 * k.Linear(1.0, columns=[1]) + k.Constant(2.0)).fit(X, y)
    report = found.optimality()["no", "yes"]
    assert report.w[0] == 0.0  # the column that it does not look at
    f = found.decision_function(new)
    assert np.diff(f - new @ report.w) == pytest.approx(np.zeros(9), abs=1e-9)
    assert SupportVectorClassifier(k.Polynomial(2, 1.0, 1.0)).fit(X, y).optimality()["no", "yes"].w is None


def test_regression_is_scikit_learns_and_its_conditions_hold():
    X, _, new = two_classes(6)
    y = np.sin(2.0 * X[:, 0])
    model = SupportVectorRegressor(k.RBF(1.0), C=5.0, tol=1e-9, epsilon=0.05).fit(X, y)
    theirs = SVR(gamma=0.5, C=5.0, tol=1e-9, epsilon=0.05).fit(X, y)
    np.testing.assert_allclose(model.predict(new), theirs.predict(new), atol=1e-6)
    report = model.optimality()
    assert largest(report) < 1e-5
    inside = np.abs(model.predict(X) - y) < 0.05 - 1e-6
    assert (report.alpha[inside] == 0.0).all()
    assert inside.any()
    assert report.margin_errors == (np.abs(model.predict(X) - y) > 0.05 + 1e-8).sum()
    model.intercept_ = model.intercept_ + 0.1
    assert model.optimality().slackness > 1e-2


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_and_order_change_nothing(unit):
    X, y, new = two_classes(7)
    order = np.random.default_rng(0).permutation(40)
    one = SupportVectorClassifier(tol=1e-8).fit(X, y)
    other, mixed = (
        SupportVectorClassifier(tol=1e-8).fit(unit * X, y),
        SupportVectorClassifier(tol=1e-8).fit(X[order], y[order]),
    )
    np.testing.assert_allclose(other.decision_function(unit * new), one.decision_function(new), atol=1e-5)
    np.testing.assert_allclose(mixed.decision_function(new), one.decision_function(new), atol=1e-5)
    # C and epsilon have the unit of the targets
    plain = SupportVectorRegressor(C=1.0, epsilon=0.1, tol=1e-8).fit(X, X[:, 0])
    scaled = SupportVectorRegressor(C=unit, epsilon=0.1 * unit, tol=1e-8 * unit).fit(X, unit * X[:, 0])
    np.testing.assert_allclose(scaled.predict(new) / unit, plain.predict(new), atol=1e-5)


def test_odd_rows_have_an_answer():
    X, y, _ = two_classes(8)
    twice = SupportVectorClassifier().fit(
        np.concatenate([X, X]), np.concatenate([y, y[::-1]])
    )  # ties with unlike labels
    assert set(twice.predict(X)) <= {"no", "yes"}
    assert largest(twice.optimality()["no", "yes"]) < 1e-2
    wide = SupportVectorClassifier(k.RBF(1.0)).fit(np.column_stack([X, np.ones(40)]), y)
    assert wide.score(np.column_stack([X, np.ones(40)]), y) == SupportVectorClassifier(k.RBF(1.0)).fit(
        X, y
    ).score(X, y)
    flat = SupportVectorRegressor().fit(X, np.full(40, 7.0))
    np.testing.assert_allclose(flat.predict(X), 7.0, atol=0.11)
    assert flat.optimality().margin == np.inf
    assert flat.optimality().support.tolist() == []


def test_bad_input_is_told_in_a_sentence():
    X, y, _ = two_classes()
    with pytest.raises(mk.errors.MarkoviaError, match="class"):
        SupportVectorClassifier().fit(X, np.ones(40))
    with pytest.raises(ValueError, match="Unknown label type"):
        SupportVectorClassifier().fit(X, np.linspace(0.0, 1.0, 40))  # numbers are no labels
    with pytest.raises(mk.errors.MarkoviaError, match="C"):
        SupportVectorClassifier(C=0.0).fit(X, y)
    with pytest.raises(mk.errors.InvalidArgument, match="row 0 of X misses"):
        SupportVectorRegressor().fit([[np.nan], [1.0]], [1.0, 2.0])
    with pytest.raises(mk.errors.InvalidArgument, match="targets y"):
        SupportVectorRegressor().fit(X, y)
