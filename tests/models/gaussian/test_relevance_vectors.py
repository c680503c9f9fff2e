"""Relevance vector machines: the network of their weights, what is kept, and probabilities."""

import numpy as np
import pytest
from sklearn.linear_model import ARDRegression

import markovia as mk
from markovia.models.gaussian.relevance_vectors import RelevanceVectorClassifier, RelevanceVectorRegressor

k = mk.covariances


def wave(seed=0, n=50):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-5.0, 5.0, (n, 1))
    return X, np.sinc(X[:, 0] / 2.0) + 0.1 * rng.normal(size=n)


@pytest.fixture(scope="module")
def model():
    return RelevanceVectorRegressor(k.RBF(1.5)).fit(*wave())


def test_a_few_vectors_are_kept_and_the_noise_is_found(model):
    X, _ = wave()
    assert 3 <= len(model.relevance_) < 12
    assert model.weights_.noise**0.5 == pytest.approx(0.1, abs=0.03)
    new = np.linspace(-4.5, 4.5, 50)[:, None]
    mean, sd = model.predict(new, return_std=True)
    truth = np.sinc(new[:, 0] / 2.0)
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.06
    assert (np.abs(mean - truth) < 3.0 * sd).all()
    assert (sd >= model.weights_.noise**0.5).all()
    # the rows that are kept are enough to predict from
    kept = model.weights_.kept
    phi = np.column_stack([np.ones(50), k.RBF(1.5).value(new, X)])[:, kept]
    np.testing.assert_allclose(mean, phi @ model.weights_.mean)
    np.testing.assert_allclose(
        sd, np.sqrt(model.weights_.noise + np.einsum("ij,jk,ik->i", phi, model.weights_.cov, phi))
    )


def test_the_network_given_the_targets_knows_what_the_machine_knows(model):
    _, y = wave()
    weights, network = model.weights_, model.network()
    names = [f"w{j}" for j in weights.kept]
    given = {f"y{i}": float(v) for i, v in enumerate(y)}
    found = network.query(names, given=given)
    np.testing.assert_allclose([found.mean(name) for name in names], weights.mean, atol=1e-6)
    np.testing.assert_allclose([found.sd(name) for name in names], np.sqrt(np.diag(weights.cov)), atol=1e-6)
    assert network.log_evidence(given) == pytest.approx(model.log_evidence_, abs=1e-4)
    # precisions and noise are at a top of that evidence
    one = model.network([[0.5]])
    assert one.query("y0").var() == pytest.approx(
        weights.noise + float(np.sum(_bumps([[0.5]])[weights.kept] ** 2 / weights.precisions))
    )


def _bumps(at):
    return np.append(1.0, k.RBF(1.5).value(at, wave()[0])[0])


def test_it_is_sparser_than_automatic_relevance_with_priors_on_precisions(model):
    X, y = wave()
    design = k.RBF(1.5).value(X)
    theirs = ARDRegression().fit(design, y)
    ours = model.predict(X)
    assert np.sqrt(np.mean((ours - theirs.predict(design)) ** 2)) < 0.05
    assert len(model.weights_.kept) <= np.sum(np.abs(theirs.coef_) > 1e-3) + 1


@pytest.mark.parametrize(("x_unit", "y_unit"), [(1e9, 1e-9), (1e-9, 1e9)])
def test_units_change_nothing(x_unit, y_unit):
    X, y = wave(1)
    one, other = RelevanceVectorRegressor().fit(X, y), RelevanceVectorRegressor().fit(x_unit * X, y_unit * y)
    np.testing.assert_array_equal(other.relevance_, one.relevance_)
    np.testing.assert_allclose(other.predict(x_unit * X) / y_unit, one.predict(X), atol=1e-4)


def test_the_order_of_rows_changes_little(model):
    X, y = wave()
    order = np.random.default_rng(0).permutation(50)
    mixed = RelevanceVectorRegressor(k.RBF(1.5)).fit(X[order], y[order])
    np.testing.assert_allclose(mixed.predict(X), model.predict(X), atol=1e-4)
    assert sorted(order[mixed.relevance_]) == sorted(model.relevance_)


def test_odd_rows_have_an_answer():
    X, y = wave()
    twice = RelevanceVectorRegressor(k.RBF(1.5)).fit(np.concatenate([X, X]), np.concatenate([y, y]))
    assert len(twice.relevance_) < 14
    flat = RelevanceVectorRegressor(k.RBF(1.5)).fit(X, np.full(50, 7.0))
    np.testing.assert_allclose(flat.predict(X), 7.0, rtol=1e-3)
    for constant in (0.0, 3.0):
        assert np.isfinite(RelevanceVectorRegressor().fit([[1.0]], [constant]).predict([[1.0]])).all()
    wide = RelevanceVectorRegressor(k.RBF(1.5)).fit(np.column_stack([X, np.ones(50)]), y)
    assert len(wide.relevance_) < 12


def test_too_few_steps_are_told():
    X, y = wave()
    with pytest.warns(mk.errors.ConvergenceWarning):
        RelevanceVectorRegressor(k.RBF(1.5), max_iter=2).fit(X, y)


def test_a_classifier_keeps_few_rows_and_its_probabilities_are_honest():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 2))
    p = 1.0 / (1.0 + np.exp(-3.0 * np.sin(1.5 * X[:, 0])))
    y = np.where(rng.random(300) < p, "b", "a")
    model = RelevanceVectorClassifier(k.RBF(1.0)).fit(X[:150], y[:150])
    assert len(model.relevance_) < 20
    found = model.predict_proba(X[150:])
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    truth = p[150:]
    loss = -np.mean(np.log(np.where(y[150:] == "b", found[:, 1], found[:, 0])))
    best = -np.mean(np.log(np.where(y[150:] == "b", truth, 1.0 - truth)))
    assert loss < best + 0.1
    assert np.abs(found[:, 1] - truth).mean() < 0.12
    assert (model.predict(X) == np.where(model.predict_proba(X)[:, 1] > 0.5, "b", "a")).all()


def test_probabilities_are_averages_over_weights():
    """MacKay's formula against the average of the logistic function over the normal posterior of the function."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 1))
    model = RelevanceVectorClassifier(k.RBF(1.0)).fit(
        X, (X[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(int)
    )
    new = np.linspace(-2.0, 2.0, 9)[:, None]
    (weights,) = model.weights_
    phi = np.column_stack([np.ones(9), k.RBF(1.0).value(new, X)])[:, weights.kept]
    nodes, share = np.polynomial.hermite_e.hermegauss(60)
    f = (phi @ weights.mean)[:, None] + np.sqrt(np.einsum("ij,jk,ik->i", phi, weights.cov, phi))[
        :, None
    ] * nodes
    expected = (1.0 / (1.0 + np.exp(-f))) @ share / share.sum()
    np.testing.assert_allclose(model.predict_proba(new)[:, 1], expected, atol=0.015)


def test_several_classes_are_each_told_from_the_rest():
    rng = np.random.default_rng(3)
    y = np.repeat([5, 3, 9], 30)
    X = rng.normal(size=(90, 2)) * 0.6 + np.repeat([[0.0, 0.0], [2.5, 0.0], [0.0, 2.5]], 30, axis=0)
    model = RelevanceVectorClassifier(k.RBF(1.5)).fit(X, y)
    assert model.classes_.tolist() == [3, 5, 9]
    assert len(model.weights_) == 3
    assert model.score(X, y) > 0.95
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_classes_that_come_apart_have_finite_weights():
    model = RelevanceVectorClassifier(k.RBF(1.0)).fit([[0.0], [0.1], [9.0], [9.1]], [0, 0, 1, 1])
    assert np.isfinite(model.predict_proba([[0.0], [5.0], [9.0], [1e9]])).all()
    assert model.predict([[0.0], [9.0]]).tolist() == [0, 1]


def test_bad_input_is_told_in_a_sentence():
    X, y = wave()
    with pytest.raises(mk.errors.InvalidArgument, match="one class"):
        RelevanceVectorClassifier().fit(X, np.zeros(50, int))
    with pytest.raises(mk.errors.InvalidArgument, match="targets y"):
        RelevanceVectorRegressor().fit(X, np.where(np.arange(50) == 3, np.inf, y))
    with pytest.raises(mk.errors.InvalidArgument, match="leave White out"):
        RelevanceVectorRegressor(k.RBF(1.0) + k.White(0.1)).fit(X, y)
    with pytest.raises(mk.errors.InvalidArgument, match="row 1 of X misses"):
        RelevanceVectorRegressor().fit([[1.0], [np.nan]], [1.0, 2.0])
