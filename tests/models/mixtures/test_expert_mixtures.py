"""Mixtures of regressions and of experts against numerical gradients and models that made the rows."""

import itertools

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import markovia as mk
from markovia.errors import MarkoviaError
from markovia.learning.latent.expert_mixtures import Experts


def crossing(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x, which = rng.uniform(-2, 2, (n, 2)), rng.integers(2, size=n)
    coefs = np.array([[1.0, 2.0, 0.5], [-1.0, -2.0, 1.0]])
    y = (
        coefs[which, 0]
        + (x * coefs[which, 1:]).sum(axis=1)
        + rng.normal(size=n) * np.array([0.2, 0.4])[which]
    )
    return x, y, which, coefs


def gradient(model, x, y):
    """Return the largest slope of the objective in all parameters, by differences."""
    made, design = model._experts(), np.column_stack([np.ones(len(x)), x])
    shape = made.coefs.shape
    gate = made.gate if made.gated else made.gate[:, :1]

    def objective(vector):
        coefs, rest = np.split(vector, [made.coefs.size])
        given, rest = np.split(rest, [gate.size])
        full = np.zeros(shape)
        full[:, : gate.shape[1]] = given.reshape(gate.shape)
        variances = None if made.variances is None else np.exp(rest)
        found = Experts(coefs.reshape(shape), variances, full, made.gated, made.l2)
        return found.objective(design, y, np.ones(len(x))) / len(x)

    logs = [] if made.variances is None else np.log(made.variances)
    at = np.concatenate([made.coefs.ravel(), gate.ravel(), logs])
    return max(abs(objective(at + s) - objective(at - s)) / 2e-5 for s in 1e-5 * np.eye(len(at)))


def test_crossing_lines_are_recovered():
    x, y, which, coefs = crossing()
    model = mk.mixtures.RegressionMixture(2, random_state=0).fit(x, y)
    order = np.argsort(-model.coef_[:, 0])
    assert np.allclose(np.column_stack([model.intercept_, model.coef_])[order], coefs, atol=0.15)
    assert np.allclose(np.sqrt(model.variances_[order]), [0.2, 0.4], atol=0.08)
    assert np.allclose(model.weights_, 0.5, atol=0.08)
    assert (order[model.predict_components(x, y).argmax(axis=1)] == which).mean() > 0.9
    assert np.allclose(model.predict_components(x), model.weights_)
    assert np.allclose(model.predict(x), model.predict_means(x) @ model.weights_)


def test_one_regression_is_least_squares():
    x, y, _, _ = crossing()
    model = mk.mixtures.RegressionMixture(1).fit(x, y)
    other = LinearRegression().fit(x, y)
    assert np.allclose(model.coef_[0], other.coef_)
    assert model.variances_[0] == pytest.approx(((y - other.predict(x)) ** 2).mean())


@pytest.mark.parametrize(
    "model",
    [
        mk.mixtures.RegressionMixture(2, tol=1e-13, max_iter=5000, random_state=0),
        mk.mixtures.RegressionMixture(2, l2=3.0, tol=1e-13, max_iter=5000, random_state=0),
        mk.mixtures.MixtureOfExperts(2, l2=0.5, tol=1e-13, max_iter=5000, random_state=0),
        mk.mixtures.MixtureOfExperts(2, expert="logistic", l2=0.3, tol=1e-13, max_iter=5000, random_state=0),
    ],
    ids=["regressions", "penalised", "experts", "logistic"],
)
def test_learning_rises_and_ends_where_the_gradient_is_zero(model):
    x, y, _, _ = crossing(150, seed=2)
    classes = (y + 3.0 * x[:, 0] ** 2 > 1.0).astype(float)
    y = classes if model.expert == "logistic" else (y - y.mean()) / y.std()
    x = (x - x.mean(axis=0)) / x.std(axis=0)  # the units of the penalty
    model.fit(x, y)
    assert all(b >= a - 1e-10 for a, b in itertools.pairwise(model.history_))
    assert gradient(model, x, y) < 1e-5


def test_a_gate_tells_parts_of_the_space_apart():
    rng = np.random.default_rng(3)
    x = rng.uniform(-3, 3, (600, 1))
    y = np.where(x[:, 0] < 0, -2.0 * x[:, 0], 1.0 + 0.5 * x[:, 0]) + 0.1 * rng.normal(size=600)
    model = mk.mixtures.MixtureOfExperts(2, random_state=0).fit(x, y)
    assert model.score(x, y) > 0.98
    left = int(np.argmin(model.coef_[:, 0]))
    gates = model.predict_components([[-2.0], [2.0]])
    assert gates[0, left] > 0.99
    assert gates[1, left] < 0.01
    assert model.coef_[left, 0] == pytest.approx(-2.0, abs=0.05)


@pytest.mark.slow
def test_logistic_experts_separate_what_one_logistic_regression_cannot():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(800, 2))
    y = np.where(x[:, 0] * x[:, 1] > 0, "same", "other")
    model = mk.mixtures.MixtureOfExperts(2, expert="logistic", n_init=2, random_state=0).fit(x, y)
    assert mk.regression.LogisticRegression().fit(x, y).score(x, y) < 0.65
    assert model.score(x, y) > 0.95
    assert np.allclose(model.predict_proba(x).sum(axis=1), 1.0)
    assert set(model.predict(x)) == {"same", "other"}


def test_weights_count_as_repeated_rows():
    x, y, _, _ = crossing(60, seed=5)
    times = np.random.default_rng(0).integers(1, 4, 60)
    one, other = (
        mk.mixtures.MixtureOfExperts(2, l2=0.5, tol=1e-12, n_init=3, max_iter=5000, random_state=0)
        for _ in range(2)
    )
    one.fit(x, y, sample_weight=times)
    other.fit(np.repeat(x, times, axis=0), np.repeat(y, times))
    assert one.history_[-1] == pytest.approx(other.history_[-1], abs=1e-6)


def test_log_densities_and_criteria_are_those_of_the_formula():
    x, y, _, _ = crossing(100, seed=6)
    model = mk.mixtures.RegressionMixture(2, random_state=0).fit(x, y)
    means = model.intercept_ + x @ model.coef_.T
    densities = np.exp(-0.5 * (y[:, None] - means) ** 2 / model.variances_) / np.sqrt(
        2 * np.pi * model.variances_
    )
    logs = np.log(densities @ model.weights_)
    assert np.allclose(model.log_likelihoods(x, y), logs)
    assert model.bic(x, y) == pytest.approx(9 * np.log(100) - 2 * logs.sum())
    assert model.aic(x, y) == pytest.approx(18 - 2 * logs.sum())
    found = mk.mixtures.choose_components(mk.mixtures.RegressionMixture(random_state=0), x, [1, 2, 3], y=y)
    assert found.n_components == 2
    assert found.scores[1] == pytest.approx(model.bic(x, y))


def test_bad_input_gets_a_sentence():
    x, y, _, _ = crossing(20)
    with pytest.raises(MarkoviaError, match="there are 20 rows, but y has 19 entries"):
        mk.mixtures.RegressionMixture(2).fit(x, y[:-1])
    with pytest.raises(MarkoviaError, match="logistic experts need a y of two classes, not of 20"):
        mk.mixtures.MixtureOfExperts(2, expert="logistic").fit(x, y)
    with pytest.raises(MarkoviaError, match="linear experts need a y of numbers"):
        mk.mixtures.MixtureOfExperts(2).fit(x, ["a"] * 20)
    with pytest.raises(MarkoviaError, match="n_components=21 is more than the n_samples=20 rows"):
        mk.mixtures.RegressionMixture(21).fit(x, y)
    assert not hasattr(mk.mixtures.MixtureOfExperts(2), "predict_proba")
    y[4] = np.nan
    with pytest.raises(MarkoviaError, match=r"y\[4\] is NaN or inf"):
        mk.mixtures.RegressionMixture(2).fit(x, y)
