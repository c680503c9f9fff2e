"""Calibration: identities of the Brier score, agreement with scikit-learn, weights, bins and the diagram."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

import markovia as mk
from markovia.learning import calibration

matplotlib.use("agg")


def forecasts(seed, n=80, k=3):
    rng = np.random.default_rng(seed)
    law = rng.dirichlet(np.ones(k), size=n)
    y = np.concatenate([np.arange(k), [rng.choice(k, p=p) for p in law[k:]]])
    return law, np.array(["a", "b", "c", "d"])[y]


@given(st.integers(0, 2**16), st.sampled_from(["uniform", "quantile"]), st.integers(1, 15), st.booleans())
@settings(max_examples=40)
def test_the_brier_score_is_its_decomposition(seed, strategy, bins, weighted):
    law, y = forecasts(seed)
    w = np.random.default_rng(seed).random(len(y)) if weighted else None
    found = calibration(y, law, bins=bins, strategy=strategy, sample_weight=w)
    weights = np.ones(len(y)) if w is None else w
    for k, label in enumerate("abc"):
        r = found.by_class[label]
        brier = np.average((law[:, k] - (y == label)) ** 2, weights=weights)
        assert r.brier == pytest.approx(brier)
        assert r.reliability - r.resolution + r.uncertainty + r.within == pytest.approx(brier, abs=1e-12)
        assert r.count.sum() == pytest.approx(weights.sum())
        assert min(r.reliability, r.resolution, r.uncertainty) >= 0
    assert found.brier == pytest.approx(sum(r.brier for r in found.by_class.values()))
    outcome = (y[:, None] == np.array(["a", "b", "c"])).astype(float)
    assert found.brier == pytest.approx(np.average(((law - outcome) ** 2).sum(axis=1), weights=weights))
    assert found.log_loss == pytest.approx(log_loss(y, law, sample_weight=w, labels=["a", "b", "c"]))


@given(st.integers(0, 2**16))
@settings(max_examples=20)
def test_forecasts_with_few_values_have_nothing_within_bins(seed):
    rng = np.random.default_rng(seed)
    p = rng.choice([0.05, 0.25, 0.65, 0.95], 100)
    y = (rng.random(100) < p).astype(int)
    y[:2] = 0, 1
    r = calibration(y, p).by_class[1]
    assert r.within == pytest.approx(0, abs=1e-12)
    shares = {v: y[p == v].mean() for v in np.unique(p)}
    reliability = np.mean([(v - shares[v]) ** 2 for v in p])
    assert r.reliability == pytest.approx(reliability)
    assert r.resolution == pytest.approx(np.mean([(shares[v] - y.mean()) ** 2 for v in p]))


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_two_classes_agree_with_scikit_learn(strategy):
    law, y = forecasts(3, n=500, k=2)
    found = calibration(y, law[:, 1], strategy=strategy, bins=8)
    share, mean = calibration_curve(y, law[:, 1], n_bins=8, strategy=strategy, pos_label="b")
    r = found.by_class["b"]
    # quantiles are data here and interpolated there, so a row or two may change its bin
    assert np.allclose(r.predicted[r.count > 0], mean, atol=1e-12 if strategy == "uniform" else 0.01)
    assert np.allclose(r.observed[r.count > 0], share, atol=1e-12 if strategy == "uniform" else 0.03)
    assert r.brier == pytest.approx(brier_score_loss(y, law[:, 1], pos_label="b"))
    assert np.allclose(
        calibration(y, law).by_class["b"].predicted, calibration(y, law[:, 1]).by_class["b"].predicted
    )
    assert found.by_class["a"].expected_error == pytest.approx(
        calibration(y, law, strategy=strategy, bins=8).by_class["a"].expected_error
    )


def test_the_calibration_error_is_the_weighted_gap_of_confidence_and_accuracy():
    law, y = forecasts(8, n=300)
    found = calibration(y, law)
    confidence, right = law.max(axis=1), np.array(["a", "b", "c"])[law.argmax(axis=1)] == y
    bins = np.ceil(confidence * 10)
    gaps = [
        (np.mean(bins == b), abs(confidence[bins == b].mean() - right[bins == b].mean()))
        for b in np.unique(bins)
    ]
    assert found.expected_calibration_error == pytest.approx(sum(share * gap for share, gap in gaps))
    assert found.maximum_calibration_error == pytest.approx(max(gap for _, gap in gaps))
    assert found.accuracy == pytest.approx(right.mean())
    classwise = np.mean([r.expected_error for r in found.by_class.values()])
    assert found.classwise_calibration_error == pytest.approx(classwise)


def test_a_true_law_is_calibrated_and_naive_bayes_on_repeated_features_is_not():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 20_000)
    noisy = np.where(rng.random(20_000) < 0.7, y, 1 - y)
    X = np.column_stack([noisy] * 4)
    naive = calibration(y, mk.classifiers.BernoulliNaiveBayes().fit(X, y).predict_proba(X))
    tree = calibration(y, mk.classifiers.TreeAugmentedNaiveBayes().fit(X, y).predict_proba(X))
    assert tree.expected_calibration_error < 0.01
    assert naive.expected_calibration_error > 0.2
    assert naive.by_class[1].resolution == pytest.approx(tree.by_class[1].resolution)


def test_weights_count_like_repeated_rows():
    law, y = forecasts(2)
    times = np.random.default_rng(0).integers(1, 4, len(y))
    for strategy in ("uniform", "quantile"):
        weighted = calibration(y, law, sample_weight=times, strategy=strategy)
        repeated = calibration(np.repeat(y, times), np.repeat(law, times, axis=0), strategy=strategy)
        assert weighted.expected_calibration_error == pytest.approx(repeated.expected_calibration_error)
        assert weighted.log_loss == pytest.approx(repeated.log_loss)
        assert np.allclose(weighted.by_class["a"].count, repeated.by_class["a"].count)


def test_of_classes_that_are_equally_probable_the_first_is_the_forecast():
    found = calibration(
        ["b", "a", "c"], [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.2, 0.2, 0.6]], classes=["a", "b", "c"]
    )
    assert found.accuracy == pytest.approx(2 / 3)
    assert found.top.observed[4] == pytest.approx(1 / 2)


def test_quantile_bins_have_equally_many_rows():
    law, y = forecasts(4, n=1000, k=2)
    found = calibration(y, law[:, 1], bins=10, strategy="quantile").by_class["b"]
    assert found.count.tolist() == [100] * 10
    same = calibration([0, 1], [0.5, 0.5], bins=10, strategy="quantile").by_class[1]
    assert same.count.sum() == 2


def test_certain_forecasts_and_given_ends_of_bins():
    found = calibration([0, 1, 1], [0.0, 1.0, 0.0], bins=[0, 0.5, 1])
    assert found.log_loss == np.inf
    assert found.by_class[1].count.tolist() == [2, 1]
    assert calibration([0, 1], [0.0, 1.0]).log_loss == 0
    assert calibration([0, 1], [0.0, 1.0]).expected_calibration_error == 0


def test_a_frame_names_its_classes():
    frame = pd.DataFrame({"yes": [0.9, 0.2], "no": [0.1, 0.8]})
    assert calibration(["yes", "no"], frame).accuracy == 1
    bn = mk.examples.sprinkler()
    rows = bn.sample(50, seed=0)
    assert set(calibration(rows["rain"], bn.predict_proba(rows, "rain")).classes) == set(bn.states("rain"))
    only = calibration(["a", "a"], [[0.5, 0.5], [1.0, 0.0]], classes=["a", "b"])
    assert only.by_class["b"].uncertainty == 0


def test_wrong_input_is_named():
    with pytest.raises(mk.errors.InvalidArgument, match=r"row 0 sum to 0\.9"):
        calibration([0, 1], [[0.5, 0.4], [0.5, 0.5]])
    with pytest.raises(mk.errors.InvalidArgument, match="between 0 and 1"):
        calibration([0, 1], [1.5, 0.5])
    with pytest.raises(mk.errors.InvalidArgument, match="between 0 and 1"):
        calibration([0, 1], [np.nan, 0.5])
    with pytest.raises(mk.errors.InvalidArgument, match=r"shape \(2, 2\), not \(2, 3\)"):
        calibration([0, 1], np.full((2, 3), 1 / 3))
    with pytest.raises(mk.errors.InvalidArgument, match="2 is none of the classes"):
        calibration([0, 2], [0.5, 0.5], classes=[0, 1])
    with pytest.raises(mk.errors.InvalidArgument, match="strategy="):
        calibration([0, 1], [0.5, 0.5], strategy="kmeans")
    with pytest.raises(mk.errors.InvalidArgument, match="increase from 0 to 1"):
        calibration([0, 1], [0.5, 0.5], bins=[0.1, 1])
    with pytest.raises(mk.errors.InvalidArgument, match="bins= is a whole number, 1 or more"):
        calibration([0, 1], [0.5, 0.5], bins=0)


def test_the_diagram_shows_the_table():
    law, y = forecasts(1, n=200)
    found = calibration(y, law, bins=5)
    ax = found.plot()
    assert [line.get_label() for line in ax.lines] == ["calibrated", "a", "b", "c"]
    used = found.by_class["b"].count > 0
    assert np.allclose(ax.lines[2].get_xdata(), found.by_class["b"].predicted[used])
    assert np.allclose(ax.lines[2].get_ydata(), found.by_class["b"].observed[used])
    one = found.plot(classes="b", ax=matplotlib.pyplot.figure().add_subplot(), title="b only")
    assert [bar.get_height() for bar in one.child_axes[0].patches] == found.by_class["b"].count.tolist()
    assert one.get_title() == "b only"
    assert found.plot(classes="top").lines[1].get_label() == "most probable class"
    with pytest.raises(mk.errors.InvalidArgument, match="no class 'z'"):
        found.plot(classes="z")
    table = found.to_pandas()
    assert table.loc[table["class"] == "b", "count"].sum() == 200
    assert "expected calibration error" in str(found)
