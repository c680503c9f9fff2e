"""Propensity scores: the numbers they hold, what they are judged by, and that every method uses them."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import markovia as mk
from markovia.causal import effect, propensity_score
from markovia.errors import InvalidArgument, UnknownVariable

GRAPH = "a -> t; b -> t; a -> y; b -> y; t -> y"


@pytest.fixture(scope="module")
def world():
    return mk.causal.simulated_worlds.linear_world(1500, seed=3)


@pytest.fixture(scope="module")
def score(world):
    return propensity_score(world.frame, "t", ["x1", "x2"])


def cells(n=4000, seed=0):
    """Return rows of discrete variables, in which the shares of the cells are the saturated propensity."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 2, (2, n))
    t = rng.random(n) < 0.2 + 0.3 * a + 0.3 * b * (1 - a)
    y = 1.0 * t + 2 * a - b + rng.normal(size=n)
    return pd.DataFrame({"a": a.astype(str), "b": b.astype(str), "t": np.where(t, "yes", "no"), "y": y})


def test_scores_are_those_of_the_maximum_likelihood_logistic_regression(world, score):
    x, t = world.frame[["x1", "x2"]].to_numpy(), world.frame["t"].to_numpy().astype(int)
    peer = LogisticRegression(C=1e12, tol=1e-10).fit(x, t).predict_proba(x)
    np.testing.assert_allclose(score.probabilities, peer, atol=1e-5)
    np.testing.assert_allclose(score.scores, peer[:, 1], atol=1e-5)
    # the score's equation: treatment and covariates are balanced on average exactly
    assert np.abs((t - score.scores) @ np.column_stack([np.ones(len(t)), x])).max() < 1e-6
    moved = world.frame.assign(x1=world.frame["x1"] * 1e9 + 5e8, x2=world.frame["x2"] * 1e-9)
    np.testing.assert_allclose(propensity_score(moved, "t", ["x1", "x2"]).scores, score.scores, atol=1e-6)
    upside = propensity_score(world.frame.iloc[::-1], "t", ["x1", "x2"])
    np.testing.assert_allclose(upside.scores[::-1], score.scores, atol=1e-10)
    assert upside.to_pandas().index.tolist() == world.frame.index[::-1].tolist()


def test_weights_of_the_saturated_score_balance_every_cell():
    rows = cells()
    full = propensity_score(rows.assign(ab=rows["a"] + rows["b"]), "t", ["ab"])
    assert (full.control, full.treated) == ("no", "yes")
    shares = rows.groupby(["a", "b"])["t"].transform(lambda t: (t == "yes").mean())
    np.testing.assert_allclose(full.scores, shares, atol=1e-9)
    assert np.abs(full.balance().before).max() > 0.1
    np.testing.assert_allclose(full.balance().after, 0.0, atol=1e-9)
    for who, size in (("att", (rows["t"] == "yes").sum()), ("atc", (rows["t"] == "no").sum())):
        weights = full.weights(who)
        for arm in ("yes", "no"):
            assert weights[rows["t"] == arm].sum() == pytest.approx(size)
        np.testing.assert_allclose(full.balance(who).after, 0.0, atol=1e-9)
    by_stratum = full.to_pandas()["yes"].round(9).groupby(full.strata(10)).agg(["nunique", "min"])
    assert by_stratum["nunique"].tolist() == [1, 1, 1, 1]  # rows with one score are in one stratum
    assert by_stratum["min"].is_monotonic_increasing
    assert full.overlap().extreme == 0.0
    assert full.overlap().low == pytest.approx(shares.min())


@pytest.mark.parametrize("method", ["ipw", "stratification", "aipw", "tmle"])
def test_a_method_with_the_logistic_score_gives_what_it_gives_by_itself(world, score, method):
    # these fit the same regression to all rows themselves, but the doubly robust ones cross-fit it
    alone = effect(world.frame, world.graph, "t", "y", method=method, adjustment=["x1", "x2"])
    given = effect(world.frame, world.graph, "t", "y", method=method, propensity=score)
    close = 1e-9 if method in ("ipw", "stratification") else 0.1 * alone.standard_error
    assert given.value == pytest.approx(alone.value, abs=close)
    assert given.standard_error == pytest.approx(alone.standard_error, rel=0.05)
    assert given.adjustment == ("x1", "x2")
    assert given.overlap.low == pytest.approx(score.overlap().low)


def test_matching_takes_the_score_as_its_distance(world, score):
    given = effect(world.frame, world.graph, "t", "y", method="matching", propensity=score)
    alone = effect(
        world.frame, world.graph, "t", "y", method="matching", distance="propensity", adjustment=["x1", "x2"]
    )
    assert given.value == pytest.approx(alone.value, abs=1e-6)
    assert given.standard_error == pytest.approx(alone.standard_error, rel=1e-3)
    with pytest.raises(InvalidArgument, match="uses no propensity"):
        effect(world.frame, world.graph, "t", "y", method="matching", propensity=score, distance="nearest")


def test_the_score_and_nothing_else_is_what_weighting_uses():
    rows = cells()
    flat = propensity_score(rows, "t", [])
    assert len(np.unique(flat.scores.round(9))) == 1
    fixed = propensity_score(rows, "t", ["a", "b"], learner=DecisionTreeClassifier(max_depth=2))
    assert fixed.model == "DecisionTreeClassifier, cross-fitted"
    found = effect(rows, GRAPH, "t", "y", method="ipw", propensity=fixed, clip=0.0)
    t, y, w = rows["t"] == "yes", rows["y"], fixed.weights(clip=0.0)
    by_hand = (w * y)[t].sum() / w[t].sum() - (w * y)[~t].sum() / w[~t].sum()
    assert found.value == pytest.approx(by_hand, abs=1e-12)
    # part of the rows, in the frame's own numbering
    some = effect(
        rows, GRAPH, "t", "y", method="ipw", propensity=fixed, given={"a": "1"}, adjustment=["a", "b"]
    )
    inside = (rows["a"] == "1").to_numpy()
    t, y, w = t[inside], y[inside], w[inside]
    assert some.value == pytest.approx(
        (w * y)[t].sum() / w[t].sum() - (w * y)[~t].sum() / w[~t].sum(), abs=1e-9
    )


def test_errors_by_bootstrap_and_refutations_go_on_with_a_score(world, score):
    booted = effect(
        world.frame, world.graph, "t", "y", method="ipw", propensity=score, errors="bootstrap", repetitions=40
    )
    assert booted.standard_error > 0
    # a shuffled treatment or a further covariate needs a score of its own, as if none had been given
    kinds = ["placebo treatment", "random common cause", "unobserved confounder"]
    alone = effect(world.frame, world.graph, "t", "y", method="ipw", adjustment=["x1", "x2"])
    given = effect(world.frame, world.graph, "t", "y", method="ipw", propensity=score)
    for one, two in zip(given.refute(kinds, repetitions=5), alone.refute(kinds, repetitions=5), strict=True):
        np.testing.assert_allclose(one.values, two.values, rtol=1e-9)


def test_a_score_of_three_levels_and_of_gaps():
    rng = np.random.default_rng(5)
    x = rng.normal(size=600)
    level = np.array(["low", "mid", "high"])[
        np.clip((x + rng.normal(size=600)).round() + 1, 0, 2).astype(int)
    ]
    with pytest.raises(InvalidArgument, match="control= and treated="):
        propensity_score({"x": x, "t": level}, "t", "x")
    three = propensity_score({"x": x, "t": level}, "t", "x", control="low", treated="high")
    np.testing.assert_allclose(three.to_pandas().sum(axis=1), 1.0)
    assert three.balance().worst[1] < three.balance().worst[0]
    x[:5] = np.nan
    with pytest.raises(InvalidArgument, match="cells are missing"):
        propensity_score({"x": x, "t": level}, "t", "x", control="low", treated="high")
    fewer = propensity_score({"x": x, "t": level}, "t", "x", control="low", treated="high", missing="drop")
    assert fewer.to_pandas().index.tolist() == list(range(5, 600))


def test_scores_print_draw_and_travel(score):
    text = str(score)
    assert "The propensity of t = 1 given x1, x2" in text
    assert "a logistic regression" in text
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(score)).scores, score.scores)
    axes = score.plot()
    heights = np.array([bar.get_height() for bar in axes.patches])
    assert heights[heights > 0].sum() == pytest.approx(1.0)
    assert heights[heights < 0].sum() == pytest.approx(-1.0)


def test_scores_of_other_rows_treatments_and_methods_are_refused(world, score):
    ask = lambda frame=world.frame, method="ipw", **more: effect(  # noqa: E731
        frame, world.graph, "t", "y", method=method, **{"propensity": score, **more}
    )
    with pytest.raises(InvalidArgument, match="other rows"):
        ask(world.frame.iloc[::-1])
    with pytest.raises(InvalidArgument, match="other rows"):
        ask(world.frame.iloc[[*range(len(world.frame)), 0]])
    with pytest.raises(InvalidArgument, match="uses no propensity score; take 'matching', 'stratification'"):
        ask(method="regression")
    with pytest.raises(InvalidArgument, match="use no propensity"):
        ask(method="stratification", strata="cells")
    with pytest.raises(InvalidArgument, match="names other columns"):
        ask(adjustment=["x1"])
    with pytest.raises(InvalidArgument, match="propensity_score returns"):
        ask(propensity=score.scores)
    with pytest.raises(InvalidArgument, match="one of 't', not of x1"):
        effect(world.frame, world.graph, "x1", "y", propensity=score)
    with pytest.raises(InvalidArgument, match="does not give the effect"):
        ask(propensity=propensity_score(world.frame, "t", ["x1"]))
    with pytest.raises(InvalidArgument, match="many values"):
        propensity_score(world.frame, "x1", ["x2"])
    with pytest.raises(InvalidArgument, match="its own covariates"):
        propensity_score(world.frame, "t", ["t"])
    with pytest.raises(UnknownVariable):
        propensity_score(world.frame, "t", ["nope"])
