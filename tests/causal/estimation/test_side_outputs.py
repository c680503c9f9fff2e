"""What stands beside an effect: F statistics, p-values, summaries, bandwidths, shares, by formulas and statsmodels."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import markovia as mk
from markovia.causal.estimation.adjustment.estimates import (
    ArmMeans,
    Estimate,
    contrast,
    estimate,
    with_bootstrap,
)
from markovia.causal.estimation.adjustment.instrumental_variables import (
    first_stage,
    late,
    two_stage_least_squares,
)
from markovia.causal.estimation.adjustment.mediation_effects import natural_effects
from markovia.causal.estimation.adjustment.meta_learners import meta_learner
from markovia.causal.estimation.adjustment.over_time import regime_mean
from markovia.causal.estimation.adjustment.weighting import ipw
from markovia.causal.estimation.designs.difference_in_differences import (
    GroupTime,
    averaged,
    group_time_effects,
)
from markovia.causal.estimation.designs.discontinuity import choose_bandwidth, discontinuity
from markovia.causal.estimation.designs.synthetic_controls import synthesise
from markovia.learning.regression.nuisance import fit_glm, make_folds


def test_the_first_stage_has_the_f_statistic_of_least_squares():
    """Two instruments and three covariates, few rows: the degrees of freedom matter."""
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(1)
    z, x = rng.normal(size=(25, 2)), rng.normal(size=(25, 3))
    a = z @ [0.6, -0.3] + x @ [0.5, 0.0, 1.0] + rng.normal(size=25)
    whole = sm.OLS(a, sm.add_constant(np.column_stack([x, z]))).fit()
    test = whole.f_test(np.eye(6)[4:])
    found = first_stage(a, x, z)
    assert (found.f, found.instruments) == (pytest.approx(float(test.fvalue)), 2)
    assert found.weak is (test.fvalue < 10)


def test_p_values_and_intervals_are_normal_on_the_scale_of_the_measure():
    difference = Estimate(-0.3, 0.2)
    assert difference.p_value() == pytest.approx(2 * norm.cdf(-1.5))
    assert difference.interval(0.9) == pytest.approx(-0.3 + 0.2 * norm.ppf([0.05, 0.95]))
    ratio = Estimate(0.6, 0.2, on_log_scale=True)
    assert ratio.p_value() == pytest.approx(2 * norm.cdf(np.log(0.6) / 0.2))
    assert ratio.interval(0.8) == pytest.approx(0.6 * np.exp(0.2 * norm.ppf([0.1, 0.9])))


def test_a_bootstrap_has_the_spread_of_its_draws_and_their_quantiles():
    draws = np.random.default_rng(2).lognormal(0.4, 0.3, 199)
    found = with_bootstrap(Estimate(1.5, 9.0, on_log_scale=True), np.append(draws, np.nan))
    assert found.standard_error == pytest.approx(np.log(draws).std(ddof=1))
    # of 199 draws the fifth and the fifth but last leave two and a half percent on each side
    assert found.interval() == pytest.approx((np.sort(draws)[4], np.sort(draws)[-5]))
    assert with_bootstrap(Estimate(1.5, 9.0), draws).standard_error == pytest.approx(draws.std(ddof=1))


def test_clusters_are_summed_before_they_are_squared():
    rng = np.random.default_rng(3)
    influence, who = rng.normal(size=50), rng.integers(0, 7, 50)
    sums = np.array([influence[who == k].sum() for k in range(7)])
    assert estimate(1.0, influence, clusters=who).standard_error == pytest.approx(
        np.sqrt((sums**2).sum() * 7 / 6) / 50
    )


def test_a_summary_compares_every_level_with_the_control_that_was_asked_for():
    rng = np.random.default_rng(4)
    x = rng.normal(size=600)
    arm = np.digitize(x + rng.logistic(size=600), [-0.5, 1.0])
    frame = pd.DataFrame(
        {"x": x, "drug": np.array(["half", "none", "full"])[arm], "y": arm**2 + x + rng.normal(size=600)}
    )
    found = mk.causal.effect(
        frame,
        "x -> drug -> y; x -> y",
        "drug",
        "y",
        control="half",
        treated="full",
        method="regression",
        level=0.9,
    )
    table = found.summary()
    means = {k: table.loc[f"mean at {k}", "value"] for k in ("half", "none", "full")}
    assert table.loc["full vs half", "value"] == pytest.approx(means["full"] - means["half"])
    assert table.loc["none vs half", "value"] == pytest.approx(means["none"] - means["half"])
    covariance, levels = found.means.covariance, list(found.study.levels)
    i, j = levels.index("none"), levels.index("half")
    error = np.sqrt(covariance[i, i] + covariance[j, j] - 2 * covariance[i, j])
    row = table.loc["none vs half"]
    assert row["standard_error"] == pytest.approx(error)
    assert row["high"] - row["low"] == pytest.approx(2 * norm.ppf(0.95) * error)
    assert row["p_value"] == pytest.approx(2 * norm.sf(abs(row["value"]) / error))
    assert table.loc["mean at none", "standard_error"] == pytest.approx(np.sqrt(covariance[i, i]))


def test_the_bandwidth_is_that_of_imbens_and_kalyanaraman_by_their_steps():
    rng = np.random.default_rng(5)
    x = rng.normal(0.3, 2.0, 700)
    y = np.sin(x) + 0.3 * x**3 + 2 * (x >= 0) + rng.normal(size=700) * (1 + (x >= 0))
    n, below, above = 700, x < 0, x >= 0
    pilot = 1.84 * x.std() * n**-0.2
    near = [below & (x >= -pilot), above & (x <= pilot)]
    density = (near[0].sum() + near[1].sum()) / (2 * n * pilot)
    variances = [y[s].var(ddof=1) for s in near]
    third = 6 * np.linalg.lstsq(np.column_stack([above, x**0, x, x**2, x**3]), y, rcond=None)[0][4]
    curves, penalty = [], 0.0
    for side, variance in zip((below, above), variances, strict=True):
        wide = 3.56 * (variance / (density * third**2)) ** (1 / 7) * side.sum() ** (-1 / 7)
        rows = side & (abs(x) <= wide)
        curves.append(2 * np.polyfit(x[rows], y[rows], 2)[0])
        penalty += 2160 * variance / (rows.sum() * wide**4)
    expected = (
        3.4375 * (sum(variances) / (density * ((curves[1] - curves[0]) ** 2 + penalty))) ** 0.2 * n**-0.2
    )
    assert expected < 3
    assert choose_bandwidth(x, y) == pytest.approx(expected)
    # a change of units changes the bandwidth alike
    assert choose_bandwidth(100 * x, y / 7) == pytest.approx(100 * expected)


def test_a_discontinuity_is_the_gap_of_two_weighted_parabolas_and_reports_the_lines_rows_and_bandwidth():
    rng = np.random.default_rng(6)
    x = rng.uniform(2, 9, 300)
    a = (rng.random(300) < np.where(x >= 5, 0.8, 0.3)).astype(float)
    y = x**2 / 5 + 2 * a + rng.normal(size=300)

    def gap(target, degree):
        ends = []
        for side in (x >= 5, x < 5):
            rows = side & (abs(x - 5) < 2)
            root = np.sqrt(1 - abs(x[rows] - 5) / 2)
            ends.append(np.polyfit(x[rows] - 5, target[rows], degree, w=root)[-1])
        return ends[0] - ends[1]

    sharp = discontinuity(x, y, 5.0, bandwidth=2.0)
    assert sharp.estimate.value == pytest.approx(gap(y, 2))
    assert (sharp.local_linear, sharp.rows) == (pytest.approx(gap(y, 1)), int((abs(x - 5) < 2).sum()))
    fuzzy = discontinuity(x, y, 5.0, treatment=a, bandwidth=2.0)
    assert fuzzy.estimate.value == pytest.approx(gap(y, 2) / gap(a, 2))
    assert fuzzy.local_linear == pytest.approx(gap(y, 1) / gap(a, 1))
    # by the delta method: the error of the outcome less the effect times the treatment, over the treatment's jump
    both = discontinuity(x, y - fuzzy.estimate.value * a, 5.0, bandwidth=2.0).estimate
    assert fuzzy.estimate.standard_error == pytest.approx(both.standard_error / abs(gap(a, 2)))


def test_a_group_time_effect_errs_as_its_own_rows_do():
    rng = np.random.default_rng(7)
    start = np.repeat([1, 2, 3], [40, 70, 90])
    y = rng.normal(size=(200, 3)).cumsum(axis=1)
    found = {(e.group, e.period): e.estimate for e in group_time_effects(y, start, np.empty((200, 0)))}
    change = y[:, 2] - y[:, 1]
    ours, others = change[start == 2], change[start == 3]
    expected = np.sqrt(ours.var() / 70 + others.var() / 90)
    assert found[2, 2].value == pytest.approx(ours.mean() - others.mean(), abs=0.03)
    assert found[2, 2].standard_error == pytest.approx(expected, rel=0.05)


def test_an_average_of_group_effects_errs_by_the_shares_of_the_groups_too():
    start = np.repeat([1, 2, 4], [30, 50, 20])
    rng = np.random.default_rng(8)
    influence = rng.normal(size=(2, 100))
    parts = [GroupTime(1, 1, estimate(1.0, influence[0])), GroupTime(2, 3, estimate(4.0, influence[1]))]
    found = averaged(parts, start)
    assert found.value == pytest.approx((0.3 * 1 + 0.5 * 4) / 0.8)
    shares = (start == 1) * (1.0 - found.value) + (start == 2) * (4.0 - found.value)
    rows = (0.3 * influence[0] + 0.5 * influence[1] + shares) / 0.8
    assert found.standard_error == pytest.approx(np.sqrt((rows**2).sum()) / 100)


def test_the_doubly_robust_mean_of_a_regime_adds_the_residuals_of_every_step_with_that_steps_weight():
    """Against the formula written out, with models by statsmodels: both times confounded, the outcome model wrong."""
    sm = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(9)
    n = 400
    l0 = rng.normal(size=n)
    a0 = (rng.random(n) < 1 / (1 + np.exp(-l0))).astype(int)
    l1 = l0 - a0 + rng.normal(size=n)
    a1 = (rng.random(n) < 1 / (1 + np.exp(0.3 - l1))).astype(int)
    y = a0 + 2 * a1 + l1**2 + rng.normal(size=n)
    h0, h1 = sm.add_constant(l0[:, None]), sm.add_constant(np.column_stack([a0, l0, l1]))
    p0, p1 = (sm.Logit(a, h).fit(disp=0).predict() for a, h in ((a0, h0), (a1, h1)))
    w0 = a0 / p0
    w1 = w0 * (1 - a1) / (1 - p1)
    follows0, follows1 = a0 == 1, (a0 == 1) & (a1 == 0)
    m1 = (
        sm.OLS(y[follows1], h1[follows1]).fit().predict(h1)
        if np.linalg.matrix_rank(h1[follows1]) == 4
        else None
    )
    if m1 is None:  # among those who follow, a0 is always 1
        m1 = h1 @ np.linalg.lstsq(h1[follows1], y[follows1], rcond=None)[0]
    m0 = sm.OLS(m1[follows0], h0[follows0]).fit().predict(h0)
    rows = m0 + w0 * (m1 - m0) + w1 * (y - m1)
    found = regime_mean(np.column_stack([a0, a1]), y, [l0[:, None], l1[:, None]], [1, 0])
    assert found.value == pytest.approx(rows.mean(), abs=1e-6)
    assert found.standard_error == pytest.approx(rows.std() / np.sqrt(n), abs=1e-6)


def test_an_x_learner_trusts_the_arm_with_more_rows():
    """The effect imputed to the few treated rests on the model of the many controls, and weighs as much as the others."""
    rng = np.random.default_rng(10)
    x = rng.normal(size=(500, 2))
    a = (rng.random(500) < 0.15).astype(int)
    y = x[:, 0] + a * (1 + x[:, 0] * x[:, 1]) + 0.5 * rng.normal(size=500)
    tree, chance = (
        DecisionTreeRegressor(max_depth=3, random_state=0),
        DecisionTreeClassifier(max_depth=1, random_state=0),
    )
    model = meta_learner(a, y, x, "x", learner={"outcome": tree, "treatment": chance})
    arms = [clone(tree).fit(x[a == k], y[a == k]) for k in (0, 1)]
    gain = clone(tree).fit(x[a == 1], y[a == 1] - arms[0].predict(x[a == 1])).predict(x)
    loss = clone(tree).fit(x[a == 0], arms[1].predict(x[a == 0]) - y[a == 0]).predict(x)
    share = chance.fit(x, a).predict_proba(x)[:, 1]
    assert model.values(x) == pytest.approx(share * loss + (1 - share) * gain)
    assert model.probabilities[:, 1] == pytest.approx(share)
    assert abs(gain - loss).mean() > 0.3


def test_a_ratio_of_weighted_means_and_its_weights():
    rng = np.random.default_rng(11)
    x = rng.normal(size=(300, 1))
    a = (rng.random(300) < 1 / (1 + np.exp(-x[:, 0]))).astype(int)
    y = 5 + a + x[:, 0]
    found = ipw(a, y, x, population=1)
    p = found.probabilities[:, 1]
    weights = np.where(a == 1, 1.0, p / (1 - p))
    assert found.weights == pytest.approx(weights)
    assert found.values == pytest.approx([np.average(y[a == k], weights=weights[a == k]) for k in (0, 1)])


def test_the_effect_on_compliers_is_a_ratio_with_the_error_of_the_delta_method():
    """Without covariates it is Wald's ratio, whose error two-stage least squares has."""
    rng = np.random.default_rng(12)
    z = rng.integers(0, 2, 400)
    u = rng.normal(size=400)
    a = (rng.random(400) < 0.2 + 0.5 * z + 0.1 * (u > 0)).astype(float)
    y = 3 * a + u
    none = np.empty((400, 0))
    one, two = late(a, y, none, z), two_stage_least_squares(a, y, none, z[:, None].astype(float))
    assert one.value == pytest.approx(two.value, rel=0.02)
    assert one.standard_error == pytest.approx(two.standard_error, rel=0.03)


def test_a_synthetic_control_counts_units_whose_error_grew_as_much():
    rng = np.random.default_rng(13)
    donors = rng.normal(size=(6, 12)).cumsum(axis=1)
    treated = donors[1:4].mean(axis=0) + 0.3 * rng.normal(size=12)
    found = synthesise(treated, donors, 8)
    gaps = np.vstack([found.gaps, found.placebo_gaps])
    growth = (gaps[:, 8:] ** 2).mean(axis=1) / (gaps[:, :8] ** 2).mean(axis=1)
    assert found.p_value == pytest.approx((growth >= growth[0]).mean())
    assert 1 / 7 <= found.p_value < 1
    assert found.effect == pytest.approx(found.gaps[8:].mean())
    assert found.gaps == pytest.approx(treated - found.weights @ donors)


def test_contrasts_of_unlike_arms_have_signs_and_inverses():
    means = ArmMeans(np.array([0.5, 0.2, 0.4]), np.diag([1e-4, 4e-4, 9e-4]))
    assert contrast(means, 1, 2, "ratio").value == pytest.approx(0.5)
    assert contrast(means, 2, 1, "odds ratio").value == pytest.approx((0.4 / 0.6) / (0.2 / 0.8))
    assert contrast(means, 1, 0).value == pytest.approx(-0.3)
    assert contrast(means, 2, 0).standard_error == pytest.approx(np.sqrt(1e-3))


def test_natural_effects_are_the_average_of_the_efficient_influence_function_by_its_formula():
    """A confounded treatment and a curved outcome, whose linear model leaves residuals for the odds to weigh."""
    rng = np.random.default_rng(14)
    n = 300
    x = rng.normal(size=(n, 1))
    a = (rng.random(n) < 1 / (1 + np.exp(0.7 - x[:, 0]))).astype(int)
    m = a[:, None] + 0.5 * x + rng.normal(size=(n, 1))
    y = a + m[:, 0] ** 2 + x[:, 0] + rng.normal(size=n)
    found = natural_effects(a, y, m, x, clip=0.0, seed=3)
    fold, both = make_folds(a, 5, np.random.default_rng(3)), np.hstack([m, x])
    theta = {pair: np.empty(n) for pair in ((1, 1), (1, 0), (0, 0))}
    for k in range(5):
        train, test = fold != k, fold == k
        of_x, of_both = (fit_glm(c[train], a[train] * 1.0, "bernoulli").predict(c[test]) for c in (x, both))
        p, q = np.column_stack([1 - of_x, of_x]), np.column_stack([1 - of_both, of_both])
        for one, two in theta:
            line = fit_glm(both[train & (a == one)], y[train & (a == one)])
            inner = train & (a == two)
            mean, nested = (
                line.predict(both[test]),
                fit_glm(x[inner], line.predict(both[inner])).predict(x[test]),
            )
            # P(m | two, x) / P(m | one, x) / P(one | x), by Bayes' rule from the two treatment models
            odds = q[:, two] / p[:, two] * p[:, one] / q[:, one] / p[:, one]
            if one == two:
                odds = 1 / p[:, one]
            theta[one, two][test] = (
                (a[test] == one) * odds * (y[test] - mean)
                + (a[test] == two) / p[:, two] * (mean - nested)
                + nested
            )
    for name, rows in (
        ("total", theta[1, 1] - theta[0, 0]),
        ("direct", theta[1, 0] - theta[0, 0]),
        ("indirect", theta[1, 1] - theta[1, 0]),
    ):
        part = getattr(found, name)
        assert part.value == pytest.approx(rows.mean())
        assert part.standard_error == pytest.approx(rows.std() / np.sqrt(n))
