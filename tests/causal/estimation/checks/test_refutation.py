"""Refutations, sensitivity, falsification and designs: they pass what is right and fail what is wrong."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import markovia as mk
from markovia.causal import Refutation, Report
from markovia.causal.estimation.checks.sensitivity import e_value, robustness_value, rosenbaum_gamma
from markovia.causal.simulated_worlds import linear_world
from markovia.errors import InvalidArgument, NotIdentifiable, UnknownVariable
from markovia.graphs import MixedGraph


@pytest.fixture(scope="module")
def world():
    return linear_world(700, seed=1)


@pytest.fixture(scope="module")
def found(world):
    return mk.causal.effect(world.frame, world.graph, "t", "y", method="regression")


def test_a_right_effect_withstands_every_refutation(found):
    tried = found.refute()
    assert [r.kind for r in tried] == [
        "placebo treatment", "dummy outcome", "random common cause", "subsets", "bootstrap", "unobserved confounder",
    ]  # fmt: skip
    assert all(r.passed for r in tried), "\n".join(map(str, tried))
    assert abs(tried[0].value) < 0.1
    assert tried[-1].value < found.value


def test_an_estimator_that_finds_effects_everywhere_fails_the_placebo(found):
    from dataclasses import replace

    biased = replace(
        found, again=lambda s: (replace(found.again(s)[0], value=found.again(s)[0].value + 5), None)
    )
    failed = {r.kind: r.passed for r in biased.refute(["placebo treatment", "dummy outcome"], repetitions=5)}
    assert failed == {"placebo treatment": False, "dummy outcome": False}


def test_a_negative_control_uncovers_hidden_confounding():
    rng = np.random.default_rng(2)
    u, x = rng.normal(size=(2, 2000))
    t = rng.random(2000) < 1 / (1 + np.exp(-u - x))
    frame = pd.DataFrame(
        {
            "x": x,
            "t": t,
            "y": 1.0 * t + u + x,
            "height": u + x + rng.normal(size=2000),
            "noise": rng.normal(size=2000),
        }
    )
    found = mk.causal.effect(frame, "x -> t -> y; x -> y", "t", "y", method="regression")
    bad, good = found.refute("negative control", negative_controls=["height", "noise"])
    assert (bad.passed, good.passed) == (False, True)
    assert "in doubt" in found.report(repetitions=5, negative_controls="height").verdict


def test_refutations_refuse_what_they_do_not_know(found, world):
    with pytest.raises(InvalidArgument, match="is no refutation"):
        found.refute("prayer")
    with pytest.raises(UnknownVariable, match="nowhere"):
        found.refute("negative control", negative_controls="nowhere")
    none = mk.causal.effect(world.frame, world.graph, "y", "t")
    with pytest.raises(InvalidArgument, match="no estimate to refute"):
        none.refute()
    with pytest.raises(InvalidArgument, match="effects by adjustment"):
        none.sensitivity()


def test_robustness_values_are_those_of_the_published_example():
    """Darfur (Cinelli & Hazlett, 2020, table 1): estimate .097, se .023, t 4.18, 783 degrees of freedom."""
    assert robustness_value(4.18, 783) == pytest.approx(0.139, abs=5e-4)
    assert robustness_value(4.18 - 1.963, 783) == pytest.approx(0.076, abs=5e-4)


def test_a_confounder_as_strong_as_the_robustness_value_takes_the_whole_estimate(found):
    sensitive = found.sensitivity()
    rv = sensitive.robustness
    assert sensitive.adjusted(rv, rv) == pytest.approx(0, abs=1e-9)
    assert sensitive.adjusted(0.0, 0.5) == pytest.approx(sensitive.estimate)


def test_the_bias_formula_predicts_the_regression_with_the_confounder():
    """Leaving a covariate out moves the coefficient exactly as its partial R squared say."""
    rng = np.random.default_rng(3)
    x, u = rng.normal(size=(2, 500))
    a = x + u + rng.normal(size=500)
    y = a + x + 2 * u + rng.normal(size=500)
    frame = pd.DataFrame({"x": x, "u": u, "a": a, "y": y})
    short = mk.causal.effect(frame, "x -> a -> y; x -> y", "a", "y").sensitivity()
    full = mk.causal.effect(frame, "x -> a -> y; x -> y; a <- u -> y", "a", "y").sensitivity()
    r2 = full.benchmarks.loc["u"]
    assert float(short.adjusted(r2["treatment"], r2["outcome"])) == pytest.approx(full.estimate, abs=1e-9)


def test_e_values_are_those_of_the_published_example():
    assert e_value(3.9) == pytest.approx(7.26, abs=0.005)
    assert e_value(1.8) == pytest.approx(3.0, abs=1e-9)


def test_rosenbaum_pairs_without_an_effect_reject_nothing_and_with_one_agree_with_enumeration():
    rng = np.random.default_rng(4)
    assert rosenbaum_gamma(rng.normal(size=200)) < 1.3
    gamma = rosenbaum_gamma(rng.normal(size=200) + 1)
    assert 2 < gamma < 10
    # at that gamma the worst p-value of the signed-rank statistic, by simulation, is the level
    d = np.abs(np.sort(rng.normal(size=300)) + 1.2) + 0.01
    signs = np.ones(300)
    signs[:60] = -1
    found = rosenbaum_gamma(d * signs)
    from scipy.stats import rankdata

    ranks = rankdata(d)
    worst = (rng.random((20_000, 300)) < found / (1 + found)) @ ranks
    assert (worst >= ranks[signs > 0].sum()).mean() == pytest.approx(0.05, abs=0.012)


def test_the_right_graph_is_not_falsified_and_a_wrong_one_is():
    rows = mk.examples.asia().sample(3000, seed=11)
    right = mk.causal.falsify_graph(rows, mk.examples.asia(), permutations=40)
    assert not right.falsified
    assert right.informative
    wrong = mk.causal.falsify_graph(
        rows, "asia -> smoke -> xray; tub -> dysp; bronc -> lung; either -> asia", permutations=40
    )
    assert len(wrong.violated) > len(wrong.implied) / 4
    assert wrong.falsified
    assert "the data speak against" in str(wrong)
    full = mk.causal.falsify_graph(rows[["smoke", "lung"]], "smoke -> lung", permutations=10)
    assert not full.falsified
    assert "implies no independence" in str(full)


def chain_rows(direct, n=300, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    x = z + rng.normal(size=n)
    return pd.DataFrame({"z": z, "x": x, "y": x + direct * z + rng.normal(size=n)})


def test_a_graph_whose_only_independence_is_rejected_is_falsified_and_the_report_says_so():
    rows = chain_rows(0.3)
    found = mk.causal.falsify_graph(rows, "z -> x -> y", permutations=20)
    assert (len(found.violated), len(found.implied)) == (1, 1)
    assert found.falsified
    assert found.joint_p_value == found.p_values[0] < 0.05
    assert str(found).startswith("the data speak against the graph")
    assert "1 of 1 implied independencies is rejected" in str(found)
    report = mk.causal.effect(rows, "z -> x -> y", "x", "y").report(repetitions=5)
    assert "the data speak against the graph" in report.doubts
    assert "The graph\n  the data speak against the graph" in str(report)
    assert "in doubt" in report.verdict
    right = mk.causal.effect(chain_rows(0.0), "z -> x -> y", "x", "y").report(repetitions=5)
    assert right.doubts == []


def test_one_clear_violation_among_many_falsifies_and_a_faint_one_does_not():
    from markovia.causal.estimation.checks.falsification import Falsification
    from markovia.graphs.separation.independencies import Independence

    implied = tuple(Independence("a", name) for name in "bcdefghi")

    def judged(*small):
        p = (*small, *np.linspace(0.3, 0.9, 8 - len(small)))
        return Falsification(implied, implied[: sum(v <= 0.05 for v in p)], p, 0.5, 20)

    assert judged(0.0001).falsified
    assert judged(0.0001).joint_p_value == pytest.approx(8 * 0.0001)
    assert not judged(0.04).falsified
    assert "no more than chance explains" in str(judged(0.04))
    assert judged(0.012, 0.012).falsified
    assert judged(0.012, 0.012).joint_p_value == pytest.approx(8 * 0.012 / 2)


def test_a_right_graph_is_falsified_as_often_as_the_level_says():
    found = [
        mk.causal.falsify_graph(chain_rows(0.0, 60, s), "z -> x -> y", permutations=10).falsified
        for s in range(200)
    ]
    assert binom.ppf(0.0005, 200, 0.05) <= sum(found) <= binom.ppf(0.9995, 200, 0.05)


def test_a_discontinuity_prints_its_bandwidth_and_finds_the_jump():
    rng = np.random.default_rng(6)
    x = rng.uniform(0, 10, 3000)
    frame = pd.DataFrame({"score": x, "wage": 5 + x + 2 * (x >= 5) + rng.normal(size=3000)})
    frame["degree"] = rng.random(3000) < np.where(x >= 5, 0.9, 0.2)
    sharp = mk.causal.regression_discontinuity(frame, "score", "wage", cutoff=5)
    assert abs(sharp.value - 2) < 4 * sharp.standard_error
    assert "corrected for their bias" in str(sharp)
    fuzzy = mk.causal.regression_discontinuity(frame, "score", "wage", cutoff=5, treatment="degree")
    assert abs(fuzzy.value - 2 / 0.7) < 4 * fuzzy.standard_error
    with pytest.raises(UnknownVariable, match="scores"):
        mk.causal.regression_discontinuity(frame, "scores", "wage", cutoff=5)


def test_differences_in_differences_from_a_frame():
    rng = np.random.default_rng(7)
    n = 600
    g, x = rng.random(n) < 0.5, rng.normal(size=n)
    unit = rng.normal(size=n) + g
    frame = pd.DataFrame({
        "id": np.tile(np.arange(n), 2), "state": np.tile(np.where(g, "NJ", "AA"), 2), "when": np.repeat([1991, 1992], n),
        "x": np.tile(x, 2), "jobs": np.concatenate([unit, unit + 1 + x + 1.5 * g]) + rng.normal(size=2 * n),
    })  # fmt: skip
    for options in ({}, {"unit": "id"}, {"unit": "id", "covariates": "x"}, {"covariates": "x"}):
        found = mk.causal.difference_in_differences(
            frame, "jobs", group="state", period="when", treated="NJ", **options
        )
        assert abs(found.value - 1.5) < 4 * found.standard_error, options
    with pytest.raises(InvalidArgument, match="one row in each period"):
        mk.causal.difference_in_differences(
            frame.iloc[1:], "jobs", group="state", period="when", treated="AA", unit="id", covariates="x"
        )


def test_a_synthetic_control_from_a_frame():
    rng = np.random.default_rng(8)
    trend = rng.normal(size=(2, 16)).cumsum(axis=1)
    units = rng.dirichlet(np.ones(2), size=12) @ trend + 0.02 * rng.normal(size=(12, 16))
    units[3, 12:] += 2
    rows = [(f"u{i}", 2000 + t, units[i, t]) for i in range(12) for t in range(16)]
    frame = pd.DataFrame(rows, columns=["region", "year", "sales"])
    found = mk.causal.synthetic_control(frame, "sales", unit="region", time="year", treated="u3", start=2012)
    assert found.value == pytest.approx(2, abs=0.2)
    assert found.p_value == pytest.approx(1 / 12)
    assert found.weights.sum() == pytest.approx(1)
    assert "synthetic control" in str(found)
    assert found.plot().get_ylabel() == "gap in sales"
    with pytest.raises(UnknownVariable, match="u99"):
        mk.causal.synthetic_control(frame, "sales", unit="region", time="year", treated="u99", start=2012)


@pytest.mark.parametrize(("method", "truth"), [("doubly robust", 2.0), ("g-computation", 2.0), ("msm", 1.0)])
def test_treatments_over_time_from_a_frame(method, truth):
    rng = np.random.default_rng(9)
    n = 1200
    l0 = rng.normal(size=n)
    a0 = (rng.random(n) < 1 / (1 + np.exp(-0.5 * l0))).astype(int)
    l1 = 0.7 * l0 - 0.5 * a0 + rng.normal(size=n)
    a1 = (rng.random(n) < 1 / (1 + np.exp(-0.5 * l1 - 0.5 * a0))).astype(int)
    frame = pd.DataFrame(
        {"l0": l0, "a0": a0, "l1": l1, "a1": a1, "y": 1.5 * a0 + a1 + l1 + rng.normal(size=n)}
    )
    found = mk.causal.effect_over_time(
        frame, ["a0", "a1"], "y", covariates=["l0", "l1"], method=method, repetitions=30
    )
    assert abs(found.value - truth) < 4 * found.standard_error


def test_mediation_splits_the_effect():
    rng = np.random.default_rng(10)
    x = rng.normal(size=1500)
    a = rng.random(1500) < 1 / (1 + np.exp(-x))
    m = a + 0.5 * x + rng.normal(size=1500)
    frame = pd.DataFrame({"x": x, "a": a, "m": m, "y": 1.0 * a + 2 * m + x + rng.normal(size=1500)})
    found = mk.causal.mediation(frame, "a", "m", "y", covariates="x")
    assert found.total.value == pytest.approx(found.direct.value + found.indirect.value)
    assert abs(found.indirect.value - 2) < 4 * found.indirect.standard_error
    assert "goes through the mediators" in str(found)


def test_a_report_says_in_words_why_the_graph_was_not_tested():
    rng = np.random.default_rng(0)
    z, x = rng.normal(size=(2, 200))
    frame = pd.DataFrame({"z": z, "x": x + z, "y": x + rng.normal(size=200)})
    whole = mk.causal.effect(frame, "z -> x -> y", "x", "y").report(repetitions=5)
    assert "\n\nThe graph\n  the data" in str(whole)
    unseen = mk.causal.effect(frame, "z -> x -> y; y -> w", "x", "y").report(repetitions=5)
    assert unseen.graph == "not tested: the data have no column for w"
    assert "The graph\n  not tested: the data have no column for w" in str(unseen)
    mag = mk.causal.effect(frame, MixedGraph(["z o-> x", "x --> y"]), "x", "y").report(repetitions=5)
    assert str(mag.graph).startswith("not tested: the edge between 'z' and 'x' is neither directed nor")
    design = mk.causal.regression_discontinuity(frame, "z", "y", cutoff=0)
    assert "The graph\n  not tested: the design stands without one" in str(design.report())
    assert "nothing was tried against it" in design.report().verdict
    with pytest.raises(InvalidArgument, match="a design is not refitted"):
        design.refute()


def test_what_a_mag_hides_is_no_effect_from_data_either():
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "y": [0.0, 1.0, 2.0, 4.0], "z": [0.0, 1.0, 0.0, 1.0]})
    for graph in (MixedGraph(["x --> y"]), MixedGraph(["z <-> x", "x --> y", "z <-> y"])):
        with pytest.raises(NotIdentifiable):
            mk.causal.effect(frame, graph, "x", "y", family="mag")


@pytest.mark.parametrize(("moved", "passes"), [(0.4, True), (0.6, False), (-0.6, False)])
def test_a_random_covariate_may_move_the_estimate_by_half_its_error_and_no_more(found, moved, passes):
    from dataclasses import replace

    shifted = replace(found.estimate, value=found.value + moved * found.standard_error)
    changed = replace(found, again=lambda study: (shifted, None))
    (tried,) = changed.refute("random common cause", repetitions=5)
    assert tried.passed is passes
    assert (tried.value, tried.expected) == pytest.approx((shifted.value, found.value))


def test_a_report_doubts_covariates_that_differ_after_weighting_and_not_before(found):
    from dataclasses import replace

    from markovia.causal.estimation.adjustment.diagnostics import Balance

    def doubts(before, after):
        balanced = Balance(("x1", "x2"), np.array(before), np.array(after))
        return Report(replace(found, balanced=balanced), (), None, "not tested").doubts

    assert doubts([0.5, -0.8], [0.01, -0.05]) == []
    assert doubts([0.01, 0.02], [0.03, -0.2]) == ["covariates are not balanced"]


def test_a_refutation_by_subsets_takes_four_fifths_of_the_rows_and_says_how_far_it_is(found):
    from dataclasses import replace
    from math import erfc, sqrt

    sizes = []

    def again(study):
        sizes.append(study.n)
        return replace(found.estimate, value=float(len(sizes))), None

    (tried,) = replace(found, again=again).refute("subsets", repetitions=6)
    assert sizes == [560] * 6
    spread = np.arange(1.0, 7).std(ddof=1)
    assert tried.p_value == pytest.approx(erfc(abs(3.5 - found.value) / spread / sqrt(2)))
    assert tried.values.tolist() == [1, 2, 3, 4, 5, 6]


def _one_confounder(seed, strength, effect, n=1200):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    x = (strength * z + rng.logistic(size=n) > 0).astype(int)
    return {"z": z, "x": x, "y": effect * x + 3 * strength * z + rng.normal(size=n)}


def test_a_strong_confounder_that_was_adjusted_for_is_no_doubt():
    for seed in range(2):
        found = mk.causal.effect(_one_confounder(seed, 1.0, 0.6), "z -> x -> y; z -> y", "x", "y")
        report = found.report(repetitions=5)
        assert report.doubts == []
        (simulated,) = (r for r in report.refutations if r.kind == "unobserved confounder")
        # one as strong as z, and hidden, would turn it round: a scale, and the verdict says so
        assert not simulated.passed
        assert str(simulated).startswith("scale")
        assert report.verdict.endswith(
            "A hidden confounder as strong as the strongest observed one would turn it round."
        )


def test_an_effect_that_next_to_nothing_would_explain_is_in_doubt():
    rng = np.random.default_rng(0)
    n = 150_000
    x = rng.integers(0, 2, n)
    found = mk.causal.effect(
        {"x": x, "y": 0.015 * x + rng.normal(size=n)}, "x -> y", "x", "y", method="regression"
    )
    report = Report(found, (), found.sensitivity(), "not tested")
    assert report.seen
    assert report.doubts == [
        f"a hidden confounder that explains {report.sensitivity.robustness:.1%} of what is left of treatment and outcome "
        "would bring it to zero"
    ]


def test_the_simulated_confounder_is_as_strong_as_the_strongest_covariate():
    """Its partial shares are those of the covariate, so that least squares ends where the bias formula says."""
    found = mk.causal.effect(
        _one_confounder(3, 0.5, 1.0, 4000), "z -> x -> y; z -> y", "x", "y", method="regression"
    )
    (simulated,) = found.refute("unobserved confounder", repetitions=10)
    bounds = found.sensitivity()
    shares = bounds.benchmarks.loc["z"].to_numpy(float)
    assert simulated.value == pytest.approx(float(bounds.adjusted(*shares)), abs=0.03)


def test_a_failed_test_is_still_a_doubt():
    found = mk.causal.effect(_one_confounder(0, 0.3, 1.0), "z -> x -> y; z -> y", "x", "y")
    failed = Refutation("placebo treatment", False, 1.0, 0.0, 0.0, np.zeros(5), "words")
    assert Report(found, (failed,), None, "not tested").doubts == ["the placebo treatment test failed"]
