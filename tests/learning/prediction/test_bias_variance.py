"""Bias, variance and noise: the identities, closed forms, Domingos' theorem by enumeration, and the bootstrap."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import markovia as mk
from markovia.learning import bias_variance, squared_decomposition, zero_one_decomposition

matplotlib.use("agg")


def half_the_mean(X, y, points):
    return np.full(len(points), y.mean() / 2)


def four_draws(rng):
    return np.zeros((4, 1)), 2.0 + rng.standard_normal(4)


def test_the_worked_example_half_the_mean_of_four_draws():
    n = 5_000
    found = bias_variance(
        half_the_mean,
        four_draws,
        test=[[0.0]],
        truth=lambda X: [2.0],
        noise=1.0,
        loss="squared",
        n_datasets=n,
        seed=1,
    )
    assert found.noise == 1.0
    # the mean of n trainings has standard error 1/4/sqrt(n), and bias² changes by twice that
    assert found.bias == pytest.approx(1.0, abs=4 * 2 * 0.25 / np.sqrt(n))
    assert found.variance == pytest.approx(1 / 16, abs=4 * np.sqrt(2 / n) / 16)
    assert found.total == pytest.approx(2.0625, abs=0.04)
    assert found.total == pytest.approx(found.bias + found.variance + found.noise, rel=1e-12)


@given(st.integers(0, 2**16), st.booleans())
@settings(max_examples=30)
def test_the_squared_error_is_bias_plus_variance_plus_noise_at_every_point(seed, gaps):
    rng = np.random.default_rng(seed)
    predictions, truth, noise = rng.normal(size=(7, 5)), rng.normal(size=5), rng.random(5)
    seen = rng.random((7, 5)) < 0.7 if gaps else np.ones((7, 5), dtype=bool)
    seen[0] = True
    found = squared_decomposition(predictions, truth, noise, seen)
    parts = found.by_point
    assert np.allclose(parts["bias"] + parts["variance"] + parts["noise"], parts["total"])
    for j in range(5):
        own = predictions[seen[:, j], j]
        assert parts["bias"][j] == pytest.approx((own.mean() - truth[j]) ** 2)
        assert parts["variance"][j] == pytest.approx(own.var())
        assert parts["total"][j] == pytest.approx(((own - truth[j]) ** 2).mean() + noise[j])
    assert found.total == pytest.approx(found.bias + found.variance + found.noise)


def test_the_variance_of_least_squares_is_the_textbook_one():
    X = np.column_stack([np.ones(12), np.linspace(-1, 1, 12)])
    weights, sigma = np.array([0.5, 2.0]), 0.7
    found = bias_variance(
        LinearRegression(fit_intercept=False),
        lambda rng: (X, X @ weights + sigma * rng.standard_normal(12)),
        test=X,
        truth=lambda x: x @ weights,
        noise=sigma**2,
        n_datasets=600,
        seed=0,
    )
    assert found.loss == "squared"
    # trace of the hat matrix is 2
    assert found.variance == pytest.approx(sigma**2 * 2 / 12, rel=0.2)
    assert found.bias == pytest.approx(0.0, abs=3 * sigma**2 * 2 / 12 / 600)


def test_shrinking_raises_bias_and_lowers_variance():
    def draw(rng):
        X = rng.normal(size=(15, 5))
        return X, X.sum(axis=1) + rng.standard_normal(15)

    points = np.random.default_rng(9).normal(size=(40, 5))
    loose, tight = (
        bias_variance(Ridge(a), draw, test=points, truth=lambda x: x.sum(axis=1), noise=1.0, seed=3)
        for a in (0.01, 30.0)
    )
    assert tight.bias > loose.bias
    assert tight.variance < loose.variance


@given(st.integers(0, 2**16), st.integers(2, 4))
@settings(max_examples=40)
def test_domingos_theorem_holds_for_any_number_of_classes(seed, k):
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.ones(k), size=6)
    predictions = rng.integers(0, k, (9, 6))
    found = zero_one_decomposition(predictions, law, classes=range(k))
    for j in range(6):
        votes = np.bincount(predictions[:, j], minlength=k) / 9
        direct = sum(votes[a] * law[j, b] for a in range(k) for b in range(k) if a != b)
        best, main = law[j].argmax(), votes.argmax()
        bias, spread, noise = float(best != main), 1 - votes[main], 1 - law[j, best]
        c2 = 1.0 if best == main else (-votes[best] / spread if spread else 0.0)
        off = 1 - votes[best]
        agree = sum(votes[a] * law[j, a] for a in range(k) if a != best) / (off * noise) if off else 0.0
        c1 = votes[best] - off * agree
        assert found.by_point["total"][j] == pytest.approx(direct)
        assert c1 * noise + bias + c2 * spread == pytest.approx(direct)
        assert found.by_point["noise"][j] == pytest.approx(c1 * noise)
        assert found.by_point["variance"][j] == pytest.approx(c2 * spread)
    assert found.total == pytest.approx(found.bias + found.variance + found.noise)
    assert found.variance == pytest.approx(found.unbiased_variance - found.biased_variance)


def test_a_constant_classifier_has_no_variance_and_a_deep_tree_less_bias():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    constant = bias_variance(lambda x, t, points: np.full(len(points), "same"), (X, y), seed=1, n_datasets=30)
    assert constant.loss == "zero-one"
    assert constant.variance == 0
    assert constant.bias == constant.total == pytest.approx((y != "same").mean())
    assert constant.noise is None
    stump, deep = (
        bias_variance(DecisionTreeClassifier(max_depth=d, random_state=0), (X, y), seed=1, n_datasets=40)
        for d in (1, None)
    )
    assert deep.bias < stump.bias
    assert deep.total < stump.total
    assert "noise is unknown" in str(deep)


def test_the_bootstrap_tests_only_rows_that_were_not_drawn():
    X, y = np.arange(30.0)[:, None], np.arange(30.0)

    def remembers(x, t, points):
        known = dict(zip(x[:, 0], t, strict=True))
        return np.array([known.get(p, -1000.0) for p in np.asarray(points)[:, 0]])

    found = bias_variance(remembers, (X, y), loss="squared", n_datasets=40, seed=2)
    assert np.all(found.main == -1000.0)
    frame, labels = pd.DataFrame(X, columns=["x"]), pd.Series(y)
    same = bias_variance(DecisionTreeRegressor(), (frame, labels), n_datasets=40, seed=2)
    assert same.variance > 0
    with pytest.raises(mk.errors.InvalidArgument, match="n_datasets= should be larger"):
        bias_variance(remembers, (X, y), loss="squared", n_datasets=2, seed=2)


def test_the_same_seed_gives_the_same_answer_whatever_the_workers():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    forest = RandomForestClassifier(3)
    with parallel_config(backend="threading"):
        one, two, again = (
            bias_variance(forest, (X, y), test=(X, y), n_datasets=6, seed=5, n_jobs=n) for n in (None, 2, 1)
        )
    for name in one.by_point:
        assert np.array_equal(one.by_point[name], two.by_point[name])
        assert np.array_equal(one.by_point[name], again.by_point[name])


def test_a_known_law_of_named_classes_separates_the_noise():
    def draw(rng):
        X = rng.integers(0, 2, (40, 1))
        return X, np.where(rng.random(40) < 0.8, X[:, 0], 1 - X[:, 0]).astype(str)

    found = bias_variance(
        mk.classifiers.CategoricalNaiveBayes(states={"x0": 2}),
        draw,
        test=[[0], [1]],
        truth=lambda X: [[0.8, 0.2, 0.0], [0.2, 0.8, 0.0]],
        classes=["0", "1", "2"],
        n_datasets=60,
        seed=0,
    )
    assert found.bias == 0
    assert found.noise == pytest.approx(0.2, abs=0.02)
    assert found.total == pytest.approx(found.bias + found.variance + found.noise)
    with pytest.raises(mk.errors.InvalidArgument, match="classes= names them"):
        zero_one_decomposition(np.array([["a", "b"]]), [[0.5, 0.2, 0.3]] * 2)
    with pytest.raises(mk.errors.InvalidArgument, match="'b' is not among classes="):
        zero_one_decomposition(np.array([["a", "b"]]), ["a", "a"], classes=["a", "c"])


def test_an_interrupted_run_uses_the_trainings_that_are_done():
    calls = []

    def stops(X, y, points):
        calls.append(len(y))
        if len(calls) > 5:
            raise KeyboardInterrupt
        return half_the_mean(X, y, points)

    settings_ = {"test": [[0.0]], "truth": lambda X: [2.0], "loss": "squared", "seed": 0}
    found = bias_variance(stops, four_draws, n_datasets=50, **settings_)
    assert found.n_datasets == 5
    assert found.variance > 0
    with pytest.raises(KeyboardInterrupt):
        bias_variance(stops, four_draws, n_datasets=50, **settings_)


def test_wrong_input_is_named():
    X, y = np.zeros((4, 1)), np.arange(4.0)
    with pytest.raises(mk.errors.InvalidArgument, match="test= has to say"):
        bias_variance(half_the_mean, four_draws)
    with pytest.raises(mk.errors.InvalidArgument, match=r"test= is a pair \(X, y\)"):
        bias_variance(half_the_mean, four_draws, test=X)
    with pytest.raises(mk.errors.InvalidArgument, match="loss= is 'squared', 'zero-one' or None"):
        bias_variance(half_the_mean, (X, y), loss="absolute")
    with pytest.raises(mk.errors.InvalidArgument, match="n_datasets="):
        bias_variance(half_the_mean, (X, y), n_datasets=1)
    with pytest.raises(mk.errors.InvalidArgument, match="noise= is a variance"):
        bias_variance(half_the_mean, (X, y), test=X, truth=lambda x: x[:, 0], noise=-1.0, n_datasets=3)
    with pytest.raises(mk.errors.InvalidArgument, match="4 points were to be predicted, but 1"):
        bias_variance(lambda x, t, points: [1.0], (X, y), test=(X, y), n_datasets=3)


def test_the_picture_stacks_the_summands():
    rng = np.random.default_rng(1)
    results = {d: squared_decomposition(rng.normal(size=(9, 4)) * d, np.zeros(4), np.ones(4)) for d in (1, 2)}
    ax = mk.plotting.plot_bias_variance(results)
    tops = [bars[1].get_y() + bars[1].get_height() for bars in ax.containers]
    assert tops[-1] == pytest.approx(results[2].total)
    assert tops[0] == pytest.approx(results[2].bias)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["1", "2"]
    classes = zero_one_decomposition(np.array([["a", "b"], ["a", "b"], ["b", "a"]]), ["a", "a"], known=False)
    assert "bias and noise" in [t.get_text() for t in classes.plot().get_legend().get_texts()]
    with pytest.raises(mk.errors.InvalidArgument, match="cannot share one picture"):
        mk.plotting.plot_bias_variance({"a": classes, "b": results[1]})
    assert list(classes.to_pandas().index)[-1] == "total"
