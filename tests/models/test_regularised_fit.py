"""Fitting with few labels: against expectation-maximisation, by the objective, and with rules and neighbours at work."""

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.errors import InvalidArgument, UnknownState, UnknownVariable


def rows(n=120, labelled=0.3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    a = np.where(rng.random(n) < 0.8, y, 1 - y)
    b = np.where(rng.random(n) < 0.7, y, 1 - y)
    label = np.where(rng.random(n) < labelled, np.array(["no", "yes"])[y], None)
    return pd.DataFrame({"y": label, "a": a, "b": b}), np.array(["no", "yes"])[y]


NETWORK = mk.BayesianNetwork("y->a; y->b")


def test_without_rules_it_is_expectation_maximisation():
    data, _ = rows()
    found = mk.fit_regularised(NETWORK, data, "y", tol=1e-12, max_iter=2000)
    wanted = NETWORK.copy().fit(data, missing=mk.EM(tolerance=1e-13, start="available"))
    for node in ("y", "a", "b"):
        assert found.model[node].values == pytest.approx(wanted[node].values, abs=1e-4)
    assert found.history[-1] == pytest.approx(wanted.fit_.log_likelihood, abs=1e-5)
    assert found.converged


def test_alpha_weighs_rows_without_labels_down_to_the_labelled_fit():
    data, _ = rows()
    none = mk.fit_regularised(NETWORK, data, "y", alpha=0.0)
    only = NETWORK.copy().fit(data.dropna())
    assert none.model["a"].values == pytest.approx(only["a"].values)
    half = mk.fit_regularised(NETWORK, data, "y", alpha=0.5, tol=1e-12, max_iter=2000)
    known = data["y"].notna().to_numpy()
    wanted = NETWORK.copy().fit(data, weights=np.where(known, 1.0, 0.5), missing=mk.EM(tolerance=1e-13))
    assert half.model["y"].values == pytest.approx(wanted["y"].values, abs=1e-4)


def test_the_objective_never_falls_and_is_the_one_that_is_written_down():
    data, _ = rows()
    rule = mk.learning.LabelRule(lambda r: r["a"] * 0.7, "yes", weight=1.5)
    pairs = [(i, i + 1, 0.5) for i in range(0, 100, 2)]
    how = {"rules": [rule], "neighbours": pairs, "smoothness": 0.8, "alpha": 0.7}
    found = mk.fit_regularised(NETWORK, data, "y", tol=0.0, max_iter=12, **how)
    assert (np.diff(found.history) > -1e-6).all()
    assert found.history[-1] > found.history[0] + 0.1
    # before the first step: the model of the labelled rows
    start, known = NETWORK.copy().fit(data.dropna()), data["y"].notna().to_numpy()
    one = mk.fit_regularised(NETWORK, data, "y", tol=0.0, max_iter=1, **{**how, "neighbours": None})
    joint = np.column_stack([start.log_prob(data.assign(y=label)) for label in ("no", "yes")])
    pull = 1.5 * 0.7 * np.outer(data["a"], [0, 1])
    value = joint[known, (data["y"][known] == "yes").astype(int)].sum()
    value += 0.7 * np.logaddexp.reduce((joint + pull)[~known], axis=1).sum()
    assert one.history[0] == pytest.approx(value)


def test_rules_reach_their_confidence_and_teach_the_model():
    data, truth = rows(400, 0.03, seed=3)
    rule = mk.learning.LabelRule(lambda r: (r["a"] == 1) & (r["b"] == 1), "yes", confidence=0.9)
    other = mk.learning.LabelRule(lambda r: (r["a"] == 0) & (r["b"] == 0), ["no"], confidence=0.9)
    found = mk.fit_regularised(NETWORK, data, "y", rules=[rule, other], prior="laplace", max_iter=200)
    assert (found.reached > 0.9 - 1e-4).all()
    guess = found.probabilities.idxmax(axis=1).to_numpy()
    assert (guess == truth).mean() > 0.75
    assert found.probabilities.to_numpy().sum(axis=1) == pytest.approx(1.0)


def test_neighbours_bring_labels_to_rows_whose_words_were_never_labelled():
    data = pd.DataFrame({"y": ["n", "n", "v", "v", None, None], "word": list("abcdef")})
    model = mk.BayesianNetwork("y->word")
    alone = mk.fit_regularised(model, data, "y", prior="laplace").probabilities.to_numpy()
    assert alone[4:, 0] == pytest.approx(0.5, abs=1e-6)  # nothing is known of new words
    pairs = [(0, 4), (1, 4), (2, 5), (3, 5)]  # words in the same places
    near = mk.fit_regularised(
        model, data, "y", neighbours=pairs, smoothness=2.0, prior="laplace", max_iter=500
    )
    assert near.probabilities["n"][4] > 0.9
    assert near.probabilities["v"][5] > 0.9
    assert near.gap < 1e-3


def test_classifiers_are_taught_too():
    data, truth = rows(300, 0.1, seed=1)
    rule = mk.learning.LabelRule(lambda r: r["a"] == 1, "yes", confidence=0.8)
    model = mk.regression.LogisticRegression()
    found = mk.fit_regularised(model, data, "y", rules=[rule], tol=1e-4)
    assert not hasattr(model, "coef_")
    assert (found.model.predict(data[["a", "b"]]) == truth).mean() > 0.7
    assert found.reached[0] > 0.8 - 1e-4


def test_time_limits_keep_what_there_is_and_bad_input_is_named():
    data, _ = rows()
    short = mk.fit_regularised(NETWORK, data, "y", time_limit=1e-9, tol=0.0)
    assert short.stopped == "time limit"
    assert len(short.history) == 1
    with pytest.raises(UnknownVariable, match="z"):
        mk.fit_regularised(NETWORK, data, "z")
    with pytest.raises(InvalidArgument, match="no row has a label"):
        mk.fit_regularised(NETWORK, data.assign(y=None), "y")
    with pytest.raises(UnknownState, match="maybe"):
        mk.fit_regularised(
            NETWORK, data, "y", rules=[mk.learning.LabelRule(lambda r: r["a"], "maybe", weight=1.0)]
        )
    with pytest.raises(InvalidArgument, match="from 0 to 1"):
        mk.fit_regularised(
            NETWORK, data, "y", rules=[mk.learning.LabelRule(lambda r: 3 * r["a"], "yes", weight=1.0)]
        )
    for pairs in ([(0, 0)], [(0, 500)], [(0.5, 1)], [(0, 1, -1.0)], [0, 1]):
        with pytest.raises(InvalidArgument, match="neighbours="):
            mk.fit_regularised(NETWORK, data, "y", neighbours=pairs)
    gap = pd.DataFrame({"y": ["no", "yes", None], "a": [0, 0, 1], "b": [0, 1, 1]})
    with pytest.raises(InvalidArgument, match="impossible"):
        mk.fit_regularised(NETWORK, gap, "y")
    with pytest.raises(InvalidArgument, match="predict_proba"):
        mk.fit_regularised(object(), data, "y")
