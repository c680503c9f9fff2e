"""Hidden confounding: published numbers of robustness values, bounds and E-values, and what sentence and picture say."""

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.causal.estimation.checks.sensitivity import Sensitivity, e_value, robustness_value
from markovia.errors import InvalidArgument

# the study in Darfur (Cinelli & Hazlett, 2020): estimate .0973, error .0233, 783 degrees of freedom; the covariate "female"
# explains .908% of the treatment and, with a t statistic of -9.79, 10.9% of the outcome
DARFUR = 0.09731582, 0.02325654, 783
FEMALE = pd.DataFrame(
    {"treatment": [0.0090808], "outcome": [9.789**2 / (9.789**2 + 783)]},
    index=pd.Index(["female"], name="covariate"),
)


def darfur():
    return Sensitivity(*DARFUR, 0.139, 0.076, FEMALE, 1.0, 1.0, float("nan"))


def test_robustness_values_of_estimate_and_interval_are_the_published_ones():
    t = DARFUR[0] / DARFUR[1]
    assert robustness_value(t, 783) == pytest.approx(0.13878, abs=5e-5)
    assert robustness_value(t, 783, alpha=0.05) == pytest.approx(0.07626, abs=5e-5)
    assert robustness_value(-t, 783) == robustness_value(t, 783)
    assert robustness_value(1.9, 783, alpha=0.05) == 0.0
    assert t**2 / (t**2 + 783) == pytest.approx(0.022, abs=5e-4)


@pytest.mark.parametrize(("t", "dof", "q"), [(4.2, 30, 1.0), (9.0, 12, 1.0), (6.0, 4, 1.0), (5.0, 50, 0.5)])
def test_the_robustness_value_of_an_interval_is_the_smallest_that_makes_it_touch_zero(t, dof, q):
    """By a search over the strengths of confounders, each with the adjusted estimate and error of its regression."""
    from scipy.stats import t as student

    def significant(share):
        r2 = np.linspace(0, share, 400)
        y, a = np.meshgrid(r2, r2)
        left = q * t - np.sqrt(dof * y * a / (1 - a))
        error = np.sqrt((1 - y) / (1 - a) * dof / (dof - 1))
        return (left / error).min() > student.isf(0.025, dof - 1)

    found = robustness_value(t, dof, q=q, alpha=0.05)
    assert 0.01 < found < 0.9
    assert significant(0.99 * found)
    assert not significant(1.01 * found)


def test_bounds_of_confounders_as_strong_as_a_covariate_are_the_published_ones():
    published = {1: (0.0092, 0.1246, 0.0752), 2: (0.0183, 0.2493, 0.0529), 3: (0.0275, 0.3741, 0.0304)}
    for multiple, row in published.items():
        found = darfur().bounds(multiple)
        assert list(found.columns) == ["treatment", "outcome", "adjusted"]
        assert found.loc["female"].to_numpy() == pytest.approx(row, abs=6e-5)
    assert np.isnan(darfur().bounds(200).loc["female", "adjusted"])


def strong_and_weak():
    """`near` hardly moves the treatment but rules the outcome; `even` explains a little of both."""
    rng = np.random.default_rng(3)
    near, even, faint = rng.normal(size=(3, 900))
    a = 0.15 * near + 0.2 * even + rng.normal(size=900)
    y = 0.3 * a + 3 * near + 0.2 * even + 0.1 * faint + rng.normal(size=900)
    frame = pd.DataFrame({"even": even, "near": near, "faint": faint, "a": a, "y": y})
    return mk.causal.effect(frame, "a <- {even near faint} -> y; a -> y", "a", "y").sensitivity()


def test_the_sentence_names_the_benchmark_that_the_picture_shows_nearest_to_no_effect():
    import matplotlib.pyplot as plt

    found = strong_and_weak()
    left = found.adjusted(found.benchmarks["treatment"], found.benchmarks["outcome"])
    strongest = found.benchmarks.index[int(np.argmin(left))]
    assert strongest == "near"
    a, y = found.benchmarks.loc[strongest]
    assert a < found.benchmarks.loc["even", "treatment"]
    assert f"For scale, near explains {a:.1%} of the treatment's and {y:.1%} of the outcome's." in str(found)
    axes = found.plot()
    points = [tuple(float(v[0]) for v in line.get_data()) for line in axes.lines if line.get_marker() == "D"]
    assert np.array(sorted(points)) == pytest.approx(np.array(sorted(found.benchmarks.to_numpy().tolist())))
    drawn = {text.get_text(): text.xy[0] for text in axes.texts if text.get_text() in found.benchmarks.index}
    assert drawn == pytest.approx(found.benchmarks["treatment"].to_dict())
    plt.close("all")


def test_benchmarks_are_the_partial_r_squared_of_least_squares():
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(5)
    x = rng.normal(size=(300, 3)) @ [[1, 0.4, 0], [0, 2, 0.3], [0, 0, 0.5]]
    a = x @ [0.5, -0.2, 1.0] + rng.normal(size=300)
    y = 0.7 * a + x @ [1.0, 0.3, -2.0] + 2 * rng.normal(size=300)
    frame = pd.DataFrame(x, columns=["u", "v", "w"]).assign(a=a, y=y)
    found = mk.causal.effect(frame, "a <- {u v w} -> y; a -> y", "a", "y").sensitivity()
    first, second = (
        sm.OLS(a, sm.add_constant(x)).fit(),
        sm.OLS(y, sm.add_constant(np.column_stack([x, a]))).fit(),
    )
    for k, name in enumerate("uvw"):
        shares = [m.tvalues[k + 1] ** 2 / (m.tvalues[k + 1] ** 2 + m.df_resid) for m in (first, second)]
        assert found.benchmarks.loc[name].to_numpy() == pytest.approx(shares)
    assert (found.estimate, found.standard_error) == pytest.approx((second.params[4], second.bse[4]))
    assert found.dof == second.df_resid
    assert found.robustness == pytest.approx(robustness_value(second.tvalues[4], found.dof))
    assert found.robustness_interval == pytest.approx(
        robustness_value(second.tvalues[4], found.dof, alpha=0.05)
    )


def test_e_values_are_the_published_ones_for_harmful_protective_and_no_effects():
    """VanderWeele & Ding (2017): RR 3.9 (1.8 to 8.7) has 7.26 and 3.0; RR 0.80 (0.71 to 0.91) has 1.81 and 1.43."""
    assert e_value(3.9, (1.8, 8.7)) == pytest.approx((7.26, 3.0), abs=5e-3)
    assert e_value(0.80, (0.71, 0.91)) == pytest.approx((1.81, 1.43), abs=5e-3)
    assert e_value(1 / 3.9, (1 / 8.7, 1 / 1.8)) == pytest.approx(e_value(3.9, (1.8, 8.7)))
    assert e_value(1.0) == 1.0
    assert e_value(0.8, (0.6, 1.1)) == (pytest.approx(1.809, abs=1e-3), 1.0)
    assert e_value(1.3, (0.9, 1.9))[1] == 1.0


def test_odds_ratios_and_differences_are_turned_into_ratios_of_risks():
    """Odds of a common outcome by their root, of a rare one as they are; d by exp(0.91 d) with ends at 1.78 errors."""
    assert e_value(0.86, (0.75, 0.99), measure="odds ratio") == pytest.approx((1.37, 1.08), abs=5e-3)
    assert e_value(0.86, (0.75, 0.99), measure="odds ratio", rare=True) == pytest.approx(
        e_value(0.86, (0.75, 0.99))
    )
    half = 1.96 * 0.14
    found = e_value(-0.42, (-0.42 - half, -0.42 + half), measure="difference")
    near = 1 / np.exp(0.91 * -0.42 + 1.784 * 0.14)
    assert found == pytest.approx((e_value(np.exp(0.91 * 0.42)), near + np.sqrt(near * (near - 1))), rel=1e-3)
    assert found == pytest.approx((2.29, 1.54), abs=5e-3)
    assert e_value(0.0, measure="difference") == 1.0


@pytest.mark.parametrize("bad", [0.0, -0.5, float("nan")])
def test_what_is_no_ratio_has_no_e_value(bad):
    with pytest.raises(InvalidArgument, match="a positive number"):
        e_value(bad)


def risks(protective, n=4000, seed=1, base=0.4):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    t = rng.random(n) < 1 / (1 + np.exp(-x))
    p = np.clip(base + 0.03 * x + (-0.6 if protective else 0.6) * base * t, 0.001, 0.999)
    return pd.DataFrame({"x": x, "t": np.where(t, "treated", "control"), "y": rng.random(n) < p})


@pytest.mark.parametrize("protective", [True, False])
@pytest.mark.parametrize("measure", ["difference", "ratio", "odds ratio"])
def test_an_effect_has_the_e_values_of_its_ratio_of_risks(measure, protective):
    found = mk.causal.effect(
        risks(protective), "t <- x -> y; t -> y", "t", "y", method="regression", measure=measure
    )
    ratio = mk.causal.effect(
        risks(protective), "t <- x -> y; t -> y", "t", "y", method="regression", measure="ratio"
    )
    assert (ratio.value < 1) is protective
    own = found.sensitivity()
    expected = e_value(ratio.value, ratio.interval)
    if measure == "odds ratio":
        expected = e_value(found.value, found.interval, measure=measure)
    assert (own.e_value, own.e_value_interval) == pytest.approx(expected)
    assert 1 < own.e_value_interval < own.e_value


def test_odds_of_rare_outcomes_are_taken_as_risks():
    frame = risks(False, 20_000, base=0.05)
    found = mk.causal.effect(
        frame, "t <- x -> y; t -> y", "t", "y", method="regression", measure="odds ratio"
    )
    assert frame["y"].mean() < 0.15
    assert found.sensitivity().e_value == pytest.approx(e_value(found.value))


def test_an_effect_that_may_be_none_has_an_interval_of_e_value_1():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"x": rng.normal(size=300), "t": rng.random(300) < 0.5, "y": rng.normal(size=300)})
    found = mk.causal.effect(frame, "t <- x -> y; t -> y", "t", "y", method="regression")
    low, high = found.interval
    assert low < 0 < high
    assert found.sensitivity().e_value_interval == 1.0


def test_numbers_are_standardised_by_their_spread_within_the_arms():
    rng = np.random.default_rng(7)
    t = rng.random(500) < 0.3
    x = rng.normal(size=500)
    frame = pd.DataFrame({"x": x, "t": t, "y": 100 - 20 * t + 4 * x + 10 * rng.normal(size=500)})
    found = mk.causal.effect(frame, "t <- x -> y; t -> y", "t", "y", method="regression")
    within = np.sqrt(sum(((g - g.mean()) ** 2).sum() for _, g in frame.groupby("t")["y"]) / 498)
    ends = tuple(v / within for v in found.interval)
    own = found.sensitivity()
    assert (own.e_value, own.e_value_interval) == pytest.approx(
        e_value(found.value / within, ends, measure="difference")
    )
