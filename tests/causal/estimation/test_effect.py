"""The door `mk.causal.effect`: what it chooses and why, what it answers, and what it refuses in one sentence."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import markovia as mk
from markovia.causal.simulated_worlds import ihdp_like, lalonde_like, linear_world
from markovia.errors import InvalidArgument, NoOverlap, NotIdentifiable, UnknownArgument, UnknownVariable
from markovia.learning.regression.nuisance import make_folds

ADJUSTING = [
    "regression", "matching", "stratification", "ipw", "aipw", "tmle", "double-ml", "s-learner", "t-learner", "x-learner",
    "r-learner", "dr-learner",
]  # fmt: skip


def charig():
    counts = {
        ("small", "A"): (81, 87),
        ("large", "A"): (192, 263),
        ("small", "B"): (234, 270),
        ("large", "B"): (55, 80),
    }
    rows = [(s, t, k < won) for (s, t), (won, n) in counts.items() for k in range(n)]
    return pd.DataFrame(rows, columns=["stone", "treatment", "recovered"])


STONES = "stone -> treatment -> recovered; stone -> recovered"


def smokers(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    u = rng.random(n) < 0.5
    a = rng.random(n) < np.where(u, 0.7, 0.3)
    m = rng.random(n) < np.where(a, 0.8, 0.2)
    y = rng.random(n) < 0.1 + 0.4 * m + 0.3 * u
    names = {True: "yes", False: "no"}
    return pd.DataFrame({"smoke": a, "tar": m, "cancer": y}).replace(names)


@pytest.fixture(scope="module")
def world():
    return linear_world(800, seed=1)


@pytest.mark.parametrize("method", ADJUSTING)
def test_every_method_by_adjustment_finds_the_effect_and_prints_it(world, method):
    found = mk.causal.effect(world.frame, world.graph, "t", "y", method=method, repetitions=20)
    assert abs(found.value - world.ate) < 4 * found.standard_error
    assert found.adjustment == ("x1", "x2")
    assert "the method was asked for" in found.why
    assert str(found).startswith(f"The effect of t on y is {found.value:.4g}")


@pytest.mark.parametrize("method", ["stratification", "regression", "aipw", "plug-in"])
def test_charig_from_the_rows_of_the_table(method):
    options = {"strata": "cells"} if method == "stratification" else {}
    found = mk.causal.effect(
        charig(), STONES, "treatment", "recovered", method=method, repetitions=20, **options
    )
    exact = (357 * 234 / 270 + 343 * 55 / 80) / 700 - (357 * 81 / 87 + 343 * 192 / 263) / 700
    assert found.value == pytest.approx(exact, abs=0.003 if method == "aipw" else 1e-9)
    if method == "stratification":
        assert found.summary()["value"].to_numpy()[1:] == pytest.approx([0.8325, 0.7789], abs=5e-5)


def test_auto_takes_aipw_where_confounders_are_seen(world):
    found = mk.causal.effect(world.frame, world.graph, "t", "y")
    assert found.method == "aipw"
    assert "x1 and x2 block every back-door path" in found.why
    assert found.overlap.good
    assert found.balance().worst[0] > 0.3 > 0.1 > found.balance().worst[1]


def test_auto_takes_the_front_door_where_they_are_not():
    graph = "smoke -> tar -> cancer; u -> smoke; u -> cancer"
    found = mk.causal.effect(smokers(), graph, "smoke", "cancer", latent="u")
    assert (found.method, found.mediators) == ("front-door", ("tar",))
    assert abs(found.value - 0.24) < 4 * found.standard_error
    fitted = mk.causal.effect(
        smokers(), graph, "smoke", "cancer", latent="u", method="plug-in", repetitions=10
    )
    assert fitted.value == pytest.approx(found.value, abs=1e-9)


def test_auto_takes_an_instrument_where_neither_helps():
    rng = np.random.default_rng(2)
    z, u = rng.random(2000) < 0.5, rng.normal(size=2000)
    a = rng.random(2000) < 0.2 + 0.5 * z + 0.1 * (u > 0)
    frame = pd.DataFrame({"z": z, "a": a, "y": 2.0 * a + u + rng.normal(size=2000), "dose": a + z + u})
    found = mk.causal.effect(frame, "z -> a -> y; a <-> y", "a", "y")
    assert (found.method, found.instruments) == ("wald", ("z",))
    assert abs(found.value - 2) < 4 * found.standard_error
    assert not found.first_stage.weak
    assert mk.causal.effect(frame, "z -> dose -> y; dose <-> y", "dose", "y").method == "2sls"
    with_w = frame.assign(w=rng.normal(size=2000))
    assert mk.causal.effect(with_w, "w -> z -> a -> y; a <-> y; w -> y", "a", "y").method == "late"


def test_auto_fits_the_network_where_only_the_general_formula_helps():
    rng = np.random.default_rng(3)
    n = 4000
    u, v = rng.normal(size=n), rng.normal(size=n)
    w = u + v + rng.normal(size=n)
    z = 0.7 * w + rng.normal(size=n)
    x = 0.8 * z + u + rng.normal(size=n)
    y = 1.5 * x + v + rng.normal(size=n)
    frame = pd.DataFrame({"w": w, "z": z, "x": x, "y": y})
    found = mk.causal.effect(frame, "w -> z -> x -> y; w <-> x; w <-> y", "x", "y", repetitions=15)
    assert found.method == "plug-in"
    assert found.value == pytest.approx(1.5, abs=0.15)


def test_no_directed_path_is_answered_with_none_and_why(world):
    found = mk.causal.effect(world.frame, world.graph, "y", "t")
    assert (found.value, found.method, found.p_value) == (0.0, "none", 1.0)
    assert "no directed path" in str(found)
    assert mk.causal.effect(world.frame, world.graph, "x1", "x2", measure="ratio").value == 1.0
    assert "there is no effect" in str(found.report())


def test_the_effect_on_the_treated_differs_where_effects_do(world):
    everyone, treated, others = (
        mk.causal.effect(world.frame, world.graph, "t", "y", estimand=e) for e in ("ate", "att", "atc")
    )
    assert abs(treated.value - world.att) < 4 * treated.standard_error
    assert others.value < everyone.value < treated.value


@pytest.mark.parametrize("method", ["regression", "ipw", "aipw", "tmle"])
def test_ratios_and_odds_ratios_agree_with_the_means(method):
    found = {
        m: mk.causal.effect(charig(), STONES, "treatment", "recovered", measure=m, method=method)
        for m in ("difference", "ratio", "odds ratio")
    }
    a, b = found["difference"].summary().loc[["mean at A", "mean at B"], "value"]
    assert found["ratio"].value == pytest.approx(b / a)
    assert found["odds ratio"].value == pytest.approx(b / (1 - b) / (a / (1 - a)))
    assert found["ratio"].interval[0] < 1 < found["ratio"].interval[1]
    assert found["ratio"].p_value == pytest.approx(found["difference"].p_value, abs=0.02)


def test_bootstrap_errors_agree_with_influence_functions(world):
    one, two = (
        mk.causal.effect(world.frame, world.graph, "t", "y", method="regression", errors=e, random_state=4)
        for e in ("influence", "bootstrap")
    )
    assert two.standard_error == pytest.approx(one.standard_error, rel=0.2)
    assert two.estimate.draws.shape == (200,)
    again = mk.causal.effect(
        world.frame, world.graph, "t", "y", method="regression", errors="bootstrap", random_state=4
    )
    assert again.interval == two.interval


def test_a_treatment_of_several_levels_is_compared_two_at_a_time():
    rng = np.random.default_rng(5)
    x = rng.normal(size=1500)
    arm = np.digitize(x + rng.logistic(size=1500), [-0.7, 0.7])
    frame = pd.DataFrame(
        {"x": x, "drug": np.array(["none", "half", "full"])[arm], "y": arm + x + rng.normal(size=1500)}
    )
    graph = "x -> drug -> y; x -> y"
    with pytest.raises(InvalidArgument, match="say which two to compare"):
        mk.causal.effect(frame, graph, "drug", "y")
    found = mk.causal.effect(frame, graph, "drug", "y", control="none", treated="full", method="regression")
    assert abs(found.value - 2) < 4 * found.standard_error
    assert "half vs none" in found.summary().index


def test_a_continuous_treatment_has_a_slope_between_two_doses():
    rng = np.random.default_rng(6)
    x = rng.normal(size=800)
    a = x + rng.normal(size=800)
    frame = pd.DataFrame({"x": x, "a": a, "y": 1.5 * a + x + rng.normal(size=800)})
    for method in ("auto", "regression"):
        found = mk.causal.effect(frame, "x -> a -> y; x -> y", "a", "y", method=method, control=1, treated=3)
        assert abs(found.value - 3) < 4 * found.standard_error
    assert mk.causal.effect(frame, "x -> a -> y; x -> y", "a", "y").method == "double-ml"
    with pytest.raises(InvalidArgument, match="cut it into classes"):
        mk.causal.effect(frame, "x -> a -> y; x -> y", "a", "y", method="ipw")


def test_counts_have_a_rate_ratio():
    rng = np.random.default_rng(7)
    x = rng.normal(size=3000)
    t = rng.random(3000) < 1 / (1 + np.exp(-x))
    frame = pd.DataFrame({"x": x, "t": t, "visits": rng.poisson(np.exp(0.3 + 0.4 * x + 0.5 * t))})
    found = mk.causal.effect(frame, "x -> t -> visits; x -> visits", "t", "visits", measure="ratio")
    assert found.study.family == "poisson"
    assert abs(np.log(found.value) - 0.5) < 4 * found.standard_error


def test_conditional_effects_follow_the_covariate(world):
    found = mk.causal.effect(world.frame, world.graph, "t", "y")
    at = found.conditional({"x1": [0.0, 1.0], "x2": [0.0, 0.0]})
    assert at["value"].to_numpy() == pytest.approx([2, 3], abs=0.4)
    assert ((at["low"] < [2, 3]) & (at["high"] > [2, 3])).all()
    assert len(found.conditional(kind="t")) == len(world.frame)


def test_given_values_choose_the_rows():
    rng = np.random.default_rng(8)
    sex, x = rng.choice(["f", "m"], 2000), rng.normal(size=2000)
    t = rng.random(2000) < 1 / (1 + np.exp(-x))
    frame = pd.DataFrame(
        {"sex": sex, "x": x, "t": t, "y": t * (1.0 + 2 * (sex == "f")) + x + rng.normal(size=2000)}
    )
    graph = "x -> t -> y; x -> y; sex -> y"
    for value, truth in (("f", 3), ("m", 1)):
        found = mk.causal.effect(frame, graph, "t", "y", given={"sex": value})
        assert abs(found.value - truth) < 4 * found.standard_error
        assert found.n == (sex == value).sum()
    with pytest.raises(InvalidArgument, match="no row has sex='x'"):
        mk.causal.effect(frame, graph, "t", "y", given={"sex": "x"})


def test_text_and_category_covariates_are_coded():
    frame = lalonde_like(1500, seed=9).frame.assign(
        town=np.random.default_rng(9).choice(["a", "b", "c"], 1500)
    )
    graph = lalonde_like(5, seed=0).graph + "; t <- town -> y"
    found = mk.causal.effect(frame, graph, "t", "y")
    assert {"town=b", "town=c", "married=True"} <= set(found.study.columns)
    assert abs(found.value - 1.8) < 4 * found.standard_error


def test_a_learned_class_of_graphs_is_taken_too():
    rows = linear_world(3000, seed=10).frame
    graph = mk.graphs.MixedGraph.from_dag(
        mk.graphs.DAG([("x1", "t"), ("x2", "t"), ("t", "y"), ("x1", "y"), ("x2", "y")])
    )
    assert mk.causal.effect(rows, graph, "t", "y").adjustment == ("x1", "x2")


def test_missing_cells_are_named_and_handled_if_asked(world):
    frame = world.frame.copy()
    frame.loc[:9, "x1"] = np.nan
    with pytest.raises(InvalidArgument, match=r"cells are missing in 'x1' \(10 of 800\); missing='drop'"):
        mk.causal.effect(frame, world.graph, "t", "y")
    assert mk.causal.effect(frame, world.graph, "t", "y", missing="drop").n == 790
    marked = mk.causal.effect(frame, world.graph, "t", "y", missing="indicator")
    assert marked.n == 800
    assert "x1 missing" in marked.study.columns
    filled, mark = (marked.study.covariates[:, marked.study.columns.index(c)] for c in ("x1", "x1 missing"))
    assert filled[:10] == pytest.approx(np.full(10, frame["x1"].mean()))
    assert np.flatnonzero(mark).tolist() == list(range(10))


def test_clusters_widen_the_interval(world):
    twice = pd.concat([world.frame.assign(who=range(800))] * 2)
    alone = mk.causal.effect(twice, world.graph, "t", "y", method="regression")
    grouped = mk.causal.effect(twice, world.graph, "t", "y", method="regression", clusters="who")
    assert grouped.standard_error == pytest.approx(alone.standard_error * np.sqrt(2), rel=0.01)


def test_flexible_learners_come_from_scikit_learn():
    world = ihdp_like(700, seed=11)
    learner = {
        "outcome": DecisionTreeRegressor(min_samples_leaf=30),
        "treatment": DecisionTreeClassifier(min_samples_leaf=60),
    }
    found = mk.causal.effect(world.frame, world.graph, "t", "y", learner=learner)
    assert abs(found.value - world.ate) < 4 * found.standard_error


def propensities_of(found, learner):
    """What the treatment model says by hand: each fold predicted by the learner fitted to the others."""
    study = found.study
    fold = make_folds(study.codes, 5, np.random.default_rng(found.settings.seed))
    by_hand = np.empty(study.n)
    for k in range(5):
        model = clone(learner).fit(study.covariates[fold != k], study.codes[fold != k])
        by_hand[fold == k] = model.predict_proba(study.covariates[fold == k])[:, 1]
    return by_hand


@pytest.mark.parametrize(
    "method", ["aipw", "tmle", "ipw", "double-ml", "r-learner", "dr-learner", "regression"]
)
def test_overlap_is_that_of_the_treatment_model_that_was_used(method):
    """The treated are those with x1 far from 0: a tree sees that there is next to no overlap, a logistic model does not."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 2))
    t = (abs(x[:, 0]) > 1) ^ (rng.random(400) < 0.02)
    frame = pd.DataFrame(
        {"x1": x[:, 0], "x2": x[:, 1], "t": t, "y": 1.0 * t + x[:, 1] + rng.normal(size=400)}
    )
    tree = DecisionTreeClassifier(min_samples_leaf=10, random_state=0)
    learner = {"outcome": DecisionTreeRegressor(min_samples_leaf=20, random_state=0), "treatment": tree}
    asked = {"method": method, "repetitions": 3}
    found = mk.causal.effect(frame, CHAIN, "t", "y", learner=learner, **asked)
    p = propensities_of(found, tree)
    assert (found.overlap.low, found.overlap.high) == pytest.approx((p.min(), p.max()))
    assert found.overlap.extreme == pytest.approx((np.minimum(p, 1 - p) < 0.01).mean())
    assert not found.overlap.good
    assert ("of DecisionTreeClassifier" in str(found)) is (method == "regression")
    plain = mk.causal.effect(frame, CHAIN, "t", "y", **asked)
    assert plain.overlap.good
    assert plain.overlap.high < 0.9
    assert ("of a logistic regression" in str(plain)) is (method == "regression")


def test_effective_rows_are_those_of_the_weights_and_of_the_levels_asked_for():
    rng = np.random.default_rng(4)
    x = rng.normal(size=900)
    arm = np.digitize(x + rng.logistic(size=900), [-1.0, 0.4])
    frame = pd.DataFrame(
        {"x": x, "drug": np.array(["none", "half", "full"])[arm], "y": arm + x + rng.normal(size=900)}
    )
    asked = {"control": "none", "treated": "full"}
    found = mk.causal.effect(frame, "x -> drug -> y; x -> y", "drug", "y", method="ipw", **asked)
    w, codes = found.estimate.weights, found.study.codes
    assert found.study.levels == ("full", "half", "none")
    assert found.overlap.effective == pytest.approx(
        [w[codes == k].sum() ** 2 / (w[codes == k] ** 2).sum() for k in range(3)]
    )
    p = found.estimate.probabilities
    assert (found.overlap.low, found.overlap.high) == pytest.approx((p[:, 0].min(), p[:, 0].max()))
    two = mk.causal.effect(
        frame, "x -> drug -> y; x -> y", "drug", "y", method="dr-learner", repetitions=3, **asked
    )
    assert len(two.overlap.effective) == 2
    assert sum(two.overlap.effective) < (arm != 1).sum()
    sides = [frame["x"][frame["drug"] == k] for k in ("full", "none")]
    before = (sides[0].mean() - sides[1].mean()) / np.sqrt(sum(s.var(ddof=0) for s in sides) / 2)
    weighted = [np.average(x[codes == k], weights=w[codes == k]) for k in (0, 2)]
    assert found.balance().before == pytest.approx([before])
    unit = np.sqrt(sum(s.var(ddof=0) for s in sides) / 2)
    assert found.balance().after == pytest.approx([(weighted[0] - weighted[1]) / unit])
    assert two.balance().before == pytest.approx([before])


def ensembles():
    tree = DecisionTreeRegressor(min_samples_leaf=30)
    few = {"n_estimators": 5, "min_samples_leaf": 20}
    return {
        "forest": RandomForestRegressor(**few), "classifiers": RandomForestClassifier(**few),
        "extra trees": ExtraTreesRegressor(**few), "boosting": GradientBoostingRegressor(n_estimators=5),
        "histograms": HistGradientBoostingRegressor(max_iter=5), "ada": AdaBoostRegressor(n_estimators=3),
        "bagging": BaggingRegressor(tree, n_estimators=3),
        "voting": VotingRegressor([("one", tree), ("two", RandomForestRegressor(**few))]),
        "stacking": StackingRegressor([("one", tree)], final_estimator=clone(tree), cv=2),
        "pipeline": make_pipeline(StandardScaler(), RandomForestRegressor(**few)),
    }  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            k, marks=[pytest.mark.slow] * (k not in ("forest", "classifiers", "stacking", "pipeline"))
        )
        for k in ensembles()
    ],
)
def test_every_ensemble_of_scikit_learn_is_a_learner_and_the_seed_repeats_it(world, kind):
    """Ensembles that are not fitted have no length, and so no truth value."""
    frame = world.frame[:200]
    values = [mk.causal.effect(frame, CHAIN, "t", "y", learner=ensembles()[kind]).value for _ in range(2)]
    assert values[0] == values[1]
    assert 0 < values[0] < 4


def test_learners_without_probabilities_or_weights_are_refused_in_a_sentence(world):
    from sklearn.linear_model import Ridge, RidgeClassifier

    def asked(**options):
        return mk.causal.effect(world.frame[:200], CHAIN, "t", "y", **options)

    with pytest.raises(InvalidArgument, match="Ridge cannot predict a binary target"):
        asked(learner=Ridge())
    with pytest.raises(InvalidArgument, match="RidgeClassifier gives no probabilities"):
        asked(learner={"outcome": Ridge(), "treatment": RidgeClassifier()})
    with pytest.raises(InvalidArgument, match="needs weighted rows, which Pipeline does not take"):
        asked(learner=ensembles()["pipeline"], method="r-learner")


CHAIN = "x1 -> t -> y; x2 -> t; x1 -> y; x2 -> y"
REFUSED = {
    "a variable has no effect on itself": (InvalidArgument, {"outcome": "t"}),
    "unknown variable 'tt' in the graph": (UnknownVariable, {"treatment": "tt"}),
    "is 'ate', 'att' or 'atc'": (InvalidArgument, {"estimand": "average"}),
    "method= is 'auto'": (InvalidArgument, {"method": "magic"}),
    "has no option 'trims'": (UnknownArgument, {"method": "ipw", "trims": 0.1}),
    "the bootstrap fails for matching": (InvalidArgument, {"method": "matching", "errors": "bootstrap"}),
    "does not give the effect": (InvalidArgument, {"adjustment": ["x1"]}),
    "is no instrument": (InvalidArgument, {"instrument": "x1"}),
    "uses no instrument": (InvalidArgument, {"instrument": "x1", "method": "ipw"}),
    "no mediators meet": (InvalidArgument, {"method": "front-door"}),
    "is no level of 't'": (InvalidArgument, {"treated": 7}),
    "both 1; compare": (InvalidArgument, {"treated": 1, "control": 1}),
    "given= maps": (InvalidArgument, {"given": "x1"}),
    "estimates differences": (InvalidArgument, {"method": "double-ml", "measure": "ratio"}),
    "needs a treatment of levels": (InvalidArgument, {"method": "double-ml", "estimand": "att"}),
    "positive means": (InvalidArgument, {"measure": "ratio", "frame": lambda f: f.assign(y=f["y"] - 50)}),
    "is 1 in every row": (InvalidArgument, {"frame": lambda f: f.assign(t=1)}),
    "no overlap: x1 and x2 tell": (NoOverlap, {"frame": lambda f: f.assign(t=(f["x1"] > 0).astype(int))}),
    "latent=\\['x2'\\]": (UnknownVariable, {"frame": lambda f: f.drop(columns="x2")}),
    "unknown variable 'y' in the data": (UnknownVariable, {"frame": lambda f: f.drop(columns="y")}),
    "has 3 states; make a column": (
        InvalidArgument,
        {"frame": lambda f: f.assign(y=pd.cut(f["y"], 3).astype(str))},
    ),
    "is not identified": (NotIdentifiable, {"graph": "t -> y; t <-> y"}),
    "no row is left": (InvalidArgument, {"missing": "drop", "frame": lambda f: f.assign(x1=np.nan)}),
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_bad_questions_get_one_sentence(world, sentence):
    error, asked = REFUSED[sentence]
    asked = {"treatment": "t", "outcome": "y", "graph": CHAIN, **asked}
    frame = asked.pop("frame", lambda f: f)(world.frame)
    with pytest.raises(error, match=sentence) as caught:
        mk.causal.effect(frame, asked.pop("graph"), asked.pop("treatment"), asked.pop("outcome"), **asked)
    assert "\n" not in str(caught.value)


def test_pictures_are_drawn(world):
    import matplotlib.pyplot as plt

    found = mk.causal.effect(world.frame, world.graph, "t", "y", method="regression")
    other = mk.causal.effect(world.frame, world.graph, "t", "y", method="ipw")
    assert [t.get_text() for t in found.plot([other]).get_yticklabels()] == ["ipw", "regression"]
    assert found.balance().plot().get_xlabel() == "standardised difference of means"
    assert found.sensitivity().plot().get_ylabel() == "with the outcome"
    assert len(found.report(repetitions=5).plot().ravel()) == 4
    plt.close("all")
