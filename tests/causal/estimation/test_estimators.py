"""Estimators on arrays: right on average, and intervals that cover as often as they say."""

import numpy as np
import pytest
from scipy.stats import binom, chi2

from markovia.causal.estimation.adjustment.double_ml import partially_linear
from markovia.causal.estimation.adjustment.doubly_robust import aipw, tmle
from markovia.causal.estimation.adjustment.estimates import (
    ArmMeans,
    bootstrap,
    contrast,
    estimate,
    with_bootstrap,
)
from markovia.causal.estimation.adjustment.front_door_effects import front_door_lines, front_door_table
from markovia.causal.estimation.adjustment.instrumental_variables import (
    first_stage,
    late,
    two_stage_least_squares,
    wald,
)
from markovia.causal.estimation.adjustment.matching import matching
from markovia.causal.estimation.adjustment.mediation_effects import natural_effects
from markovia.causal.estimation.adjustment.meta_learners import LEARNERS, meta_learner
from markovia.causal.estimation.adjustment.over_time import marginal_structural_model, regime_mean
from markovia.causal.estimation.adjustment.standardisation import slope, standardisation
from markovia.causal.estimation.adjustment.stratification import stratification
from markovia.causal.estimation.adjustment.weighting import ipw
from markovia.causal.estimation.designs.designs import staggered_differences
from markovia.causal.estimation.designs.difference_in_differences import (
    averaged,
    difference_in_differences,
    group_time_effects,
    panel_difference,
)
from markovia.causal.estimation.designs.discontinuity import discontinuity
from markovia.causal.estimation.designs.synthetic_controls import simplex_weights, synthesise
from markovia.causal.estimation.effect import effect
from markovia.causal.simulated_worlds import ihdp_like, lalonde_like, linear_world
from markovia.errors import InvalidArgument
from markovia.learning.regression.nuisance import fit_glm, propensity

ARMS = {
    "standardisation": standardisation,
    "ipw": ipw,
    "horvitz-thompson": lambda *a, **k: ipw(*a, stabilised=False, **k),
    "aipw": aipw,
    "tmle": tmle,
    "matching": matching,
    "matching-3": lambda *a, **k: matching(*a, neighbours=3, **k),
    "propensity matching": lambda *a, **k: matching(*a, distance="propensity", **k),
    "stratification": stratification,
}


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def of_world(world):
    x = world.frame.drop(columns=["t", "y"]).to_numpy(float)
    return world.frame["t"].to_numpy(int), world.frame["y"].to_numpy(float), x


def linear_effect(method, population, seed):
    world = linear_world(500, seed=seed)
    truth = {None: world.ate, 1: world.att, 0: 2 * world.ate - world.att}[population]
    return contrast(ARMS[method](*of_world(world), population=population), 1, 0), truth


def cells(seed, n=400):
    """Matching within the cells of two discrete covariates, where nearly every match is one of many ties."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.integers(0, 3, n), rng.integers(0, 2, n)]).astype(float)
    t = (rng.random(n) < 0.2 + 0.2 * x[:, 0] + 0.1 * x[:, 1]).astype(int)
    y = x[:, 0] ** 2 + t * (1 + x[:, 1]) + (1 + t) * rng.normal(size=n)
    return contrast(matching(t, y, x), 1, 0), 1 + x[:, 1].mean()


def instrument(kind, seed, n=600):
    rng = np.random.default_rng(seed)
    x, u = rng.normal(size=(n, 1)), rng.normal(size=n)
    z = (rng.random(n) < sigmoid(0.5 * x[:, 0])).astype(int)
    a = (rng.random(n) < sigmoid(-1.5 + 2.5 * z + 0.7 * u)).astype(float)
    y = 2 * a + u + 0.5 * x[:, 0] + rng.normal(size=n)
    if kind == "2sls":
        return two_stage_least_squares(a, y, x, z[:, None].astype(float)), 2.0
    if kind == "late":
        return late(a, y, x, z), 2.0
    return partially_linear(a, y, x, instrument=z.astype(float)), 2.0


def jump(fuzzy, seed, n=2000):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n)
    d = (x >= 0).astype(float)
    a = (rng.random(n) < 0.2 + 0.6 * d).astype(float) if fuzzy else d
    y = np.sin(2 * x) + 1.5 * a + 0.5 * x**2 * d + 0.5 * rng.normal(size=n)
    return discontinuity(x, y, treatment=a if fuzzy else None).estimate, 1.5


def differences(kind, seed, n=500):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1))
    g = (rng.random(n) < sigmoid(x[:, 0])).astype(int)
    u = rng.normal(size=n) + g
    before, after = u + x[:, 0] + rng.normal(size=n), u + 1 + 2 * x[:, 0] + 1.5 * g + rng.normal(size=n)
    if kind == "panel":
        return panel_difference(before, after, g, x), 1.5
    rows = np.concatenate([before, after]), np.tile(g, 2), np.repeat([0, 1], n), np.vstack([x, x])
    return difference_in_differences(*rows, clusters=np.tile(np.arange(n), 2)), 1.5


def front_door(kind, seed, n=500):
    rng = np.random.default_rng(seed)
    u = rng.normal(size=n)
    if kind == "table":
        a = (rng.random(n) < sigmoid(u)).astype(int)
        m = (rng.random(n) < 0.2 + 0.6 * a).astype(float)
        return contrast(front_door_table(a, 2 * m + u + rng.normal(size=n), m[:, None]), 1, 0), 1.2
    a = u + rng.normal(size=n)
    m = 0.6 * a + rng.normal(size=n)
    return front_door_lines(a, 2 * m + u + rng.normal(size=n), m[:, None]), 1.2


def mediated(part, seed, n=600):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1))
    a = (rng.random(n) < sigmoid(0.7 * x[:, 0])).astype(int)
    m = a + 0.5 * x[:, 0] + rng.normal(size=n)
    y = 1.5 * a + 2 * m + 0.5 * a * m + x[:, 0] + rng.normal(size=n)
    truth = {"total": 4.0, "direct": 1.5, "indirect": 2.5}[part]
    return getattr(natural_effects(a, y, m[:, None], x), part), truth


def over_time(kind, seed, n=600):
    rng = np.random.default_rng(seed)
    l0 = rng.normal(size=n)
    a0 = (rng.random(n) < sigmoid(0.5 * l0)).astype(int)
    l1 = 0.7 * l0 - 0.5 * a0 + rng.normal(size=n)
    a1 = (rng.random(n) < sigmoid(0.5 * l1 + 0.5 * a0)).astype(int)
    y = 1.5 * a0 + a1 + l1 + rng.normal(size=n)
    given = [l0[:, None], l1[:, None]]
    if kind == "msm":
        return marginal_structural_model(np.column_stack([a0, a1]), y, given), 1.0
    regimes = ([1, 1], [0, 0])
    one, two = (regime_mean(np.column_stack([a0, a1]), y, given, g, robust=kind == "robust") for g in regimes)
    return estimate(one.value - two.value, one.influence - two.influence), 2.0


def dose(kind, seed, n=500):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1)) + 1
    a = x[:, 0] + rng.normal(size=n)
    if kind == "slope":
        return slope(a, (1 + 0.5 * x[:, 0]) * a + x[:, 0] + rng.normal(size=n) * (1 + abs(a)) / 2, x), 1.5
    return partially_linear(a, 1.5 * a + x[:, 0] + rng.normal(size=n), x), 1.5


def programme(method, population, seed):
    world = lalonde_like(1500, seed=seed)
    return contrast(method(*of_world(world), population=population), 1, 0), world.ate


def early_years(method, population, seed):
    """A curved response that the lines of the outcome model miss; the weights' model is right."""
    world = ihdp_like(747, seed=seed)
    truth = world.ate if population is None else world.att
    return contrast(method(*of_world(world), population=population), 1, 0), truth


def staggered(part, seed, n=400):
    """Starts in periods 1, 2 or never; the effect grows by the period and differs between groups; x changes the trend."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1))
    start = np.where(rng.random(n) < sigmoid(x[:, 0]), rng.choice([1, 2], n), 4)
    time = np.arange(4)
    since = np.maximum(time - start[:, None] + 1, 0)
    y = (
        rng.normal(size=(n, 1))
        + start[:, None]
        + time * (1 + x)
        + since * start[:, None]
        + rng.normal(size=(n, 4))
    )
    found = group_time_effects(y, start, x)
    if part == "average":
        groups = np.array([(start == 1).mean(), (start == 2).mean()])
        truth = (groups @ [6.0, 6.0]) / (groups @ [3, 2])
        return averaged(found, start), truth
    return next(e.estimate for e in found if (e.group, e.period) == (2, 3)), 4.0


WORLDS = {
    **{f"{m}, {p}": (lambda s, m=m, p=p: linear_effect(m, p, s)) for m in ARMS for p in (None, 1, 0)},
    **{f"instrument {k}": (lambda s, k=k: instrument(k, s)) for k in ("2sls", "late", "pliv")},
    "matching in cells": cells,
    "sharp jump": lambda s: jump(False, s),
    "fuzzy jump": lambda s: jump(True, s),
    **{f"differences {k}": (lambda s, k=k: differences(k, s)) for k in ("panel", "rows")},
    **{f"front door {k}": (lambda s, k=k: front_door(k, s)) for k in ("table", "lines")},
    **{f"mediation {k}": (lambda s, k=k: mediated(k, s)) for k in ("total", "direct", "indirect")},
    **{f"time {k}": (lambda s, k=k: over_time(k, s)) for k in ("robust", "msm")},
    **{f"dose {k}": (lambda s, k=k: dose(k, s)) for k in ("slope", "dml")},
    **{f"staggered {k}": (lambda s, k=k: staggered(k, s)) for k in ("group", "average")},
    "job programme aipw": lambda s: programme(aipw, None, s),
    "job programme tmle, treated": lambda s: programme(tmle, 1, s),
    "early years aipw": lambda s: early_years(aipw, None, s),
    "early years tmle, treated": lambda s: early_years(tmle, 1, s),
    "early years ipw": lambda s: early_years(ipw, None, s),
}
QUICK = [
    "standardisation, 0", "ipw, None", "ipw, 1", "horvitz-thompson, 0", "aipw, None", "aipw, 1", "tmle, 0",
    "matching, None", "matching-3, 1", "propensity matching, None", "matching in cells", "stratification, None",
    "stratification, 1", "instrument 2sls", "instrument late", "instrument pliv", "sharp jump", "fuzzy jump",
    "differences rows", "differences panel", "front door table", "front door lines", "mediation direct",
    "mediation indirect", "time robust", "time msm", "dose slope", "dose dml", "staggered group",
]  # fmt: skip


def is_calibrated(found, errors):
    """Whether reported errors are as large as the spread: their ratio is that of a variance to its mean, from both sides.

    The variance of n normal errors over its expectation is a chi-square over n - 1; a tenth is allowed for small samples.
    """
    dof = len(errors) - 1
    ratio = errors.var(ddof=1) / np.mean([e.standard_error**2 for e, _ in found])
    return 0.9 * chi2.ppf(5e-4, dof) / dof < ratio < 1.1 * chi2.ppf(1 - 5e-4, dof) / dof


def coverage(world, repetitions, start, worlds=WORLDS):
    found = [worlds[world](seed) for seed in range(start, start + repetitions)]
    errors = np.array([e.value - truth for e, truth in found])
    inside = [low <= truth <= high for (_, truth), (low, high) in ((f, f[0].interval()) for f in found)]
    return errors, int(sum(inside)), found


@pytest.mark.slow
@pytest.mark.parametrize("world", QUICK)
def test_an_estimator_is_unbiased_and_its_errors_are_neither_too_small_nor_too_large(world):
    errors, covered, found = coverage(world, 100, 10_000)
    assert abs(errors.mean()) < 3.5 * errors.std(ddof=1) / 10
    assert covered >= binom.ppf(0.0005, 100, 0.95)
    assert is_calibrated(found, errors)


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_intervals_cover_95_percent_within_2_at_500_repetitions(world):
    errors, covered, found = coverage(world, 500, 50_000)
    assert is_calibrated(found, errors)
    repetitions = 500
    if not 0.93 <= covered / 500 <= 0.97:
        # 500 repetitions of exact intervals leave the band in one world of twenty-five; 2,500 tell chance from a wrong error
        more, further, _ = coverage(world, 2000, 200_000)
        errors, covered, repetitions = np.append(errors, more), covered + further, 2500
    assert abs(errors.mean()) < 3.5 * errors.std(ddof=1) / np.sqrt(repetitions)
    assert 0.93 <= covered / repetitions <= 0.97


def bootstrapped_effect(seed, method, measure="difference"):
    world = linear_world(200, seed=seed)
    frame = world.frame.assign(y=world.frame["y"] + 4)
    found = effect(
        frame, world.graph, "t", "y", method=method, measure=measure, errors="bootstrap", repetitions=99,
        random_state=seed,
    )  # fmt: skip
    return found.estimate, 7 / 5 if measure == "ratio" else 2.0


def bootstrapped_front_door(seed, method="front-door", n=200, repetitions=99):
    import pandas as pd

    rng = np.random.default_rng(seed)
    u = rng.random(n) < 0.5
    x = (rng.random(n) < np.where(u, 0.8, 0.2)).astype(int)
    m = (rng.random(n) < 0.2 + 0.6 * x).astype(int)
    y = (rng.random(n) < 0.1 + 0.4 * m + 0.4 * u).astype(int)
    frame = pd.DataFrame({"x": x, "m": m, "y": y})
    found = effect(
        frame, "x -> m -> y; x <-> y", "x", "y", method=method, errors="bootstrap", repetitions=repetitions,
        random_state=seed,
    )  # fmt: skip
    return found.estimate, 0.24


def bootstrapped_clusters(seed):
    """Five rows a cluster share the instrument and half of the noise."""
    rng = np.random.default_rng(seed)
    house = np.repeat(np.arange(80), 5)
    z, shared = rng.normal(size=80)[house], rng.normal(size=80)[house]
    u = rng.normal(size=400)
    a = z + u
    y = 2 * a + u + shared + rng.normal(size=400)

    def again(rows):
        return two_stage_least_squares(a[rows], y[rows], np.empty((400, 0)), z[rows, None])

    draws = bootstrap(lambda rows: again(rows).value, 400, 99, rng, house)
    return with_bootstrap(again(np.arange(400)), draws), 2.0


BOOTSTRAPPED = {
    "ratio of weighted means": lambda s: bootstrapped_effect(s, "ipw", "ratio"),
    "t-learner": lambda s: bootstrapped_effect(s, "t-learner"),
    "front door": bootstrapped_front_door,
    "clusters": bootstrapped_clusters,
}


@pytest.mark.slow
@pytest.mark.parametrize("world", BOOTSTRAPPED)
def test_bootstrap_intervals_cover_95_percent_within_2_at_500_repetitions(world):
    errors, covered, _ = coverage(world, 500, 70_000, BOOTSTRAPPED)
    assert abs(errors.mean()) < 3.5 * errors.std(ddof=1) / np.sqrt(500)
    assert 0.93 <= covered / 500 <= 0.97


def test_the_plug_in_is_bootstrapped_as_the_front_door_whose_formula_it_evaluates():
    """Both are the same function of the rows, so that the coverage of one is that of the other."""
    door, plug = (bootstrapped_front_door(70_000, m, repetitions=3)[0] for m in ("front-door", "plug-in"))
    assert plug.draws == pytest.approx(door.draws, abs=1e-9)
    assert plug.interval() == pytest.approx(door.interval(), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("learner", ["boosting", "forest"])
def test_flexible_learners_find_a_curved_effect(learner):
    world = ihdp_like(1500, seed=0)
    found = contrast(aipw(*of_world(world), learner=learner, folds=2), 1, 0)
    assert abs(found.value - world.ate) < 3.5 * found.standard_error
    assert found.standard_error < 0.15


def test_plain_g_computation_agrees_with_the_robust_one_in_a_linear_world():
    plain, robust = over_time("plain", 3, 4000)[0], over_time("robust", 3, 4000)[0]
    assert plain.value == pytest.approx(robust.value, abs=3 * robust.standard_error)
    assert np.isnan(plain.standard_error)


@pytest.mark.parametrize("kind", LEARNERS)
def test_meta_learners_find_a_linear_conditional_effect(kind):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 2))
    a = (rng.random(4000) < sigmoid(x[:, 0])).astype(int)
    y = a * (1 + x[:, 0]) + x[:, 1] + rng.normal(size=4000)
    at = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    model = meta_learner(a, y, x, kind)
    assert model.values(at) == pytest.approx([1, 2, 1], abs=0.15)
    assert np.isfinite(model.errors(at)).all() == (kind == "dr")


@pytest.mark.slow
@pytest.mark.parametrize("kind", LEARNERS)
def test_meta_learners_take_any_scikit_learn_regressor(kind):
    from sklearn.ensemble import HistGradientBoostingRegressor

    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 2))
    a = (rng.random(1500) < 0.5).astype(int)
    y = a * (x[:, 0] > 0) * 2 + rng.normal(size=1500) * 0.3
    model = meta_learner(a, y, x, kind, learner=HistGradientBoostingRegressor(max_iter=30), folds=2)
    low, high = model.values(np.array([[-1.0, 0.0], [1.0, 0.0]]))
    assert high - low > 1.2


def test_adjusting_for_the_propensity_equals_adjusting_for_the_covariate():
    """Sum over c of P(y|x,c) P(c) = sum over h(c) of P(y|x,h(c)) P(h(c)) with h(c) = P(x|c), on a random joint."""
    rng = np.random.default_rng(1)
    cell = rng.integers(0, 6, 4000)
    hidden = np.array([0.2, 0.7, 0.2, 0.5, 0.7, 0.5])
    # every cell of one propensity holds exactly the same share of treated rows
    a = np.zeros(4000, int)
    for c in range(6):
        rows = np.flatnonzero(cell == c)[: 10 * (int((cell == c).sum()) // 10)]
        a[rows[: int(hidden[c] * len(rows) + 0.5)]] = 1
        cell[np.setdiff1d(np.flatnonzero(cell == c), rows)] = -1
    kept = cell >= 0
    a, cell = a[kept], cell[kept]
    y = rng.normal(size=len(a)) + a * cell
    by_cell = stratification(a, y, cell[:, None].astype(float), strata="cells")
    by_score = stratification(a, y, hidden[cell][:, None], strata="cells")
    assert by_score.values != pytest.approx([y[a == 0].mean(), y[a == 1].mean()], abs=1e-3)
    assert by_score.values == pytest.approx(by_cell.values, abs=1e-13)


def test_cells_weights_and_saturated_models_agree_to_rounding_on_discrete_covariates():
    rng = np.random.default_rng(2)
    cell = rng.integers(0, 4, 800)
    x = np.eye(4)[cell][:, 1:]
    a = (rng.random(800) < np.array([0.2, 0.5, 0.5, 0.8])[cell]).astype(int)
    y = (rng.random(800) < 0.2 + 0.1 * cell + 0.2 * a).astype(float)
    found = [
        stratification(a, y, x, strata="cells"),
        standardisation(a, y, x, family="bernoulli"),
        ipw(a, y, x, clip=0.0),
        ipw(a, y, x, clip=0.0, stabilised=False),
    ]
    for other in found[1:]:
        assert other.values == pytest.approx(found[0].values, abs=1e-8)
        assert other.covariance == pytest.approx(found[0].covariance, rel=1e-6)


def test_charig_counts_give_the_adjusted_recovery_rates():
    counts = {("s", "A"): (81, 87), ("l", "A"): (192, 263), ("s", "B"): (234, 270), ("l", "B"): (55, 80)}
    rows = [[s == "l", t == "B", k < won] for (s, t), (won, n) in counts.items() for k in range(n)]
    large, arm, recovered = np.array(rows, dtype=float).T
    found = stratification(arm.astype(int), recovered, large[:, None], strata="cells")
    assert found.values == pytest.approx([0.8325, 0.7789], abs=5e-5)
    model = standardisation(arm.astype(int), recovered, large[:, None], family="bernoulli")
    assert model.values == pytest.approx(found.values, abs=1e-10)


def test_ratios_have_the_errors_of_the_chain_rule_and_intervals_on_the_log_scale():
    means = ArmMeans(np.array([0.2, 0.5]), np.diag([0.0004, 0.0009]))
    ratio, odds = contrast(means, 1, 0, "ratio"), contrast(means, 1, 0, "odds ratio")
    assert ratio.value == pytest.approx(2.5)
    assert ratio.standard_error == pytest.approx(np.sqrt(0.0004 / 0.04 + 0.0009 / 0.25))
    assert odds.value == pytest.approx(4.0)
    low, high = ratio.interval()
    assert low * high == pytest.approx(2.5**2)
    assert ratio.null == 1.0


def test_clusters_of_copies_have_the_errors_of_the_rows_once():
    t, y, x = of_world(linear_world(300, seed=4))
    once = contrast(standardisation(t, y, x), 1, 0)
    copies = np.tile(t, 3), np.tile(y, 3), np.tile(x, (3, 1))
    thrice = contrast(standardisation(*copies, clusters=np.tile(np.arange(300), 3)), 1, 0)
    assert thrice.value == pytest.approx(once.value)
    assert thrice.standard_error == pytest.approx(once.standard_error * np.sqrt(300 / 299))


@pytest.mark.parametrize("arms", [3, 4])
def test_three_and_four_arms_are_estimated_together(arms):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(4000, 2))
    scores = np.column_stack([0.4 * k * x[:, 0] for k in range(arms)])
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    a = (rng.random(4000)[:, None] > p.cumsum(axis=1)).sum(axis=1)
    y = 1.0 * a + x[:, 0] + rng.normal(size=4000)
    assert propensity(a, x, arms).probabilities == pytest.approx(p, abs=0.06)
    for method in (standardisation, ipw, aipw, tmle, matching):
        found = contrast(method(a, y, x, arms=arms), arms - 1, 0)
        assert abs(found.value - arms + 1) < 3.5 * found.standard_error, method
        assert found.standard_error < 0.12


def test_wald_is_the_ratio_of_the_two_differences():
    rng = np.random.default_rng(6)
    z = rng.integers(0, 2, 300)
    a = (rng.random(300) < 0.2 + 0.5 * z).astype(float)
    y = a + rng.normal(size=300)
    by_hand = (y[z == 1].mean() - y[z == 0].mean()) / (a[z == 1].mean() - a[z == 0].mean())
    assert wald(a, y, z).value == pytest.approx(by_hand)
    assert first_stage(a, np.empty((300, 0)), z[:, None].astype(float)).f > 10


def test_two_stage_least_squares_agrees_with_its_formula():
    rng = np.random.default_rng(7)
    z, x, u = rng.normal(size=(200, 2)), rng.normal(size=(200, 1)), rng.normal(size=200)
    a = z @ [1.0, 0.5] + u
    y = 2 * a + x[:, 0] + u + rng.normal(size=200)
    w, d = np.column_stack([np.ones(200), x, z]), np.column_stack([a, np.ones(200), x])
    project = w @ np.linalg.inv(w.T @ w) @ w.T
    inverse = np.linalg.inv(d.T @ project @ d)
    coef = inverse @ d.T @ project @ y
    meat = (project @ d).T @ np.diag((y - d @ coef) ** 2) @ (project @ d)
    found = two_stage_least_squares(a, y, x, z)
    assert found.value == pytest.approx(coef[0])
    assert found.standard_error == pytest.approx(np.sqrt((inverse @ meat @ inverse)[0, 0]))


def test_the_fitted_line_has_the_robust_errors_of_the_sandwich():
    rng = np.random.default_rng(8)
    x = rng.normal(size=(100, 2))
    y = x @ [1.0, 2.0] + rng.normal(size=100) * abs(x[:, 0])
    model = fit_glm(x, y)
    rows = np.column_stack([np.ones(100), x])
    bread = np.linalg.inv(rows.T @ rows)
    residual = y - rows @ model.coef
    sandwich = bread @ (rows * residual[:, None] ** 2).T @ rows @ bread
    influence = model.coef_influence(x, y, np.ones(100))
    assert influence.T @ influence / 100**2 == pytest.approx(sandwich)


def test_the_differences_of_four_means_are_the_interaction():
    y = np.array([1.0, 3.0, 2.0, 8.0, 1.0, 3.0, 2.0, 8.0])
    g, t = np.array([0, 0, 1, 1] * 2), np.array([0, 1] * 4)
    assert difference_in_differences(y, g, t).value == pytest.approx((8 - 2) - (3 - 1))


def test_staggered_differences_of_one_start_are_the_difference_in_differences():
    rng = np.random.default_rng(3)
    start = np.repeat([1, 2], 50)
    y = rng.normal(size=(100, 2)) + (start == 1)[:, None] * [0.0, 2.0]
    (one,) = group_time_effects(y, start, np.empty((100, 0)))
    rows = y.T.ravel(), np.tile((start == 1).astype(int), 2), np.repeat([0, 1], 100)
    two = difference_in_differences(*rows, clusters=np.tile(np.arange(100), 2))
    assert one.estimate.value == pytest.approx(two.value)
    assert one.estimate.standard_error == pytest.approx(two.standard_error, rel=0.02)


def test_units_treated_earlier_are_no_controls_and_frames_are_read_by_their_starts():
    """Effects that grow: a comparison of the late with the early group would be far off."""
    import pandas as pd

    unit, year = np.repeat(np.arange(60), 4), np.tile([2000, 2001, 2002, 2003], 60)
    first = np.array([2001.0, 2002.0, np.nan])[unit % 3]
    grown = np.where(year >= first, 5.0 * (year - np.nan_to_num(first) + 1), 0.0)
    frame = pd.DataFrame({"unit": unit, "year": year, "first": first, "y": unit + year + grown})
    found = staggered_differences(
        frame.sample(frac=1, random_state=0), "y", unit="unit", period="year", start="first"
    )
    assert {k: e.value for k, e in found.by_group.items()} == pytest.approx(
        {(2001, 2001): 5, (2001, 2002): 10, (2001, 2003): 15, (2002, 2002): 5, (2002, 2003): 10}
    )
    assert {k: e.value for k, e in found.by_length.items()} == pytest.approx({0: 5, 1: 10, 2: 15})
    assert found.average.value == pytest.approx(9)
    assert list(found.to_pandas().columns)[:3] == ["start", "period", "value"]
    with pytest.raises(InvalidArgument, match="one row in each 'year'"):
        staggered_differences(frame.iloc[1:], "y", unit="unit", period="year", start="first")
    with pytest.raises(InvalidArgument, match="no group has a period before its start"):
        staggered_differences(frame.assign(first=2000.0), "y", unit="unit", period="year", start="first")


def test_a_synthetic_control_recovers_the_mixture_and_ranks_first_among_placebos():
    rng = np.random.default_rng(9)
    trend = rng.normal(size=(3, 20)).cumsum(axis=1)
    donors = rng.dirichlet(np.ones(3), size=19) @ trend + 0.01 * rng.normal(size=(19, 20))
    treated = 0.3 * donors[0] + 0.7 * donors[5]
    treated[14:] += 3.0
    found = synthesise(treated, donors, 14)
    assert found.gaps[:14] == pytest.approx(np.zeros(14), abs=1e-6)
    assert found.effect == pytest.approx(3.0, abs=0.1)
    assert found.p_value == pytest.approx(1 / 20)


def test_simplex_weights_are_those_of_quadratic_programming():
    from scipy.optimize import minimize

    rng = np.random.default_rng(10)
    columns, target = rng.normal(size=(8, 5)), rng.normal(size=8)
    peer = minimize(
        lambda w: ((columns @ w - target) ** 2).sum(),
        np.full(5, 0.2),
        bounds=[(0, 1)] * 5,
        method="SLSQP",
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-14},
    )
    found = simplex_weights(columns, target)
    assert found.sum() == pytest.approx(1.0)
    assert ((columns @ found - target) ** 2).sum() <= peer.fun + 1e-8


def test_a_caliper_leaves_rows_without_a_near_match_out():
    rng = np.random.default_rng(11)
    x = np.concatenate([rng.normal(size=100), rng.normal(size=100), [8.0]])[:, None]
    a = np.concatenate([np.zeros(100), np.ones(101)]).astype(int)
    y = x[:, 0] + a
    y[-1] = 1000.0
    kept = contrast(matching(a, y, x, caliper=0.5, bias_adjusted=False), 1, 0)
    assert kept.value == pytest.approx(1.0, abs=0.2)
    with pytest.raises(InvalidArgument, match="widen it"):
        matching(np.array([0, 0, 1, 1]), np.ones(4), np.array([[0.0], [0.1], [9.0], [9.1]]), caliper=0.01)


def test_trimming_leaves_out_rows_without_overlap():
    rng = np.random.default_rng(12)
    x = rng.normal(size=(500, 1))
    a = (rng.random(500) < sigmoid(3 * x[:, 0])).astype(int)
    trimmed = ipw(a, x[:, 0] + a, x, trim=0.1)
    assert (trimmed.weights == 0).sum() > 100
    assert contrast(trimmed, 1, 0).value == pytest.approx(1.0, abs=0.2)
    with pytest.raises(InvalidArgument, match="trim less"):
        ipw(a, x[:, 0], x, trim=0.6)


LINE = np.arange(40.0)
BAD = {
    "does not move": lambda: two_stage_least_squares(LINE, LINE, LINE[:, None], LINE[:, None]),
    "five rows on each side": lambda: discontinuity(LINE, LINE, 100.0),
    "both groups in both": lambda: difference_in_differences(LINE, np.repeat([0, 1], 20), np.zeros(40, int)),
    "two periods": lambda: synthesise(np.ones(5), np.ones((3, 5)), 1),
    "never occur in arm": lambda: front_door_table(
        np.array([0, 0, 1]), np.ones(3), np.array([[0.0], [0.0], [1.0]])
    ),
    "combination of covariate values": lambda: stratification(
        np.array([0, 0, 1]), np.ones(3), np.array([[0.0], [0.0], [1.0]]), strata="cells"
    ),
    "perfectly": lambda: partially_linear(LINE, np.ones(40), LINE[:, None]),
    "learner= is": lambda: aipw(np.tile([0, 1], 20), LINE, np.ones((40, 1)), learner="trees"),
    "positive means": lambda: contrast(ArmMeans(np.array([-1.0, 2.0]), np.eye(2)), 1, 0, "ratio"),
    "follows the regime": lambda: regime_mean(np.zeros((9, 1), int), np.ones(9), [np.ones((9, 1))], [1]),
}


@pytest.mark.parametrize("sentence", BAD)
def test_bad_input_is_answered_in_one_sentence(sentence):
    with pytest.raises(InvalidArgument, match=sentence):
        BAD[sentence]()


def door(t, y, m):
    """The front door of a binary mediator whose effect differs between the arms."""
    return front_door_table(t, y + 5 * t * m[:, 0], m.astype(float))


JACKKNIFED = {
    "standardisation": lambda t, y, x: contrast(standardisation(t, y, x), 1, 0),
    "standardisation of the treated": lambda t, y, x: contrast(standardisation(t, y, x, population=1), 1, 0, "ratio"),
    "weights": lambda t, y, x: contrast(ipw(t, y, x), 1, 0),
    "weights of the treated": lambda t, y, x: contrast(ipw(t, y, x, population=1), 1, 0),
    "slope": lambda t, y, x: slope(x[:, 1], y + t * x[:, 0] * x[:, 1], x[:, :1]),
    "front door table": lambda t, y, x: contrast(door(t, y, x[:, :1] + t[:, None] > 0), 1, 0),
    "front door lines": lambda t, y, x: front_door_lines(x[:, 0], y, x[:, 1:] + x[:, :1]),
    "instrument": lambda t, y, x: two_stage_least_squares(x[:, 0] + t, y, x[:, 1:], t[:, None].astype(float)),
    "structural model": lambda t, y, x: marginal_structural_model(t[:, None], y, [x]),
    "sharp jump": lambda t, y, x: discontinuity(x[:, 0], y + 2 * (x[:, 0] >= 0), bandwidth=1.5).estimate,
    "fuzzy jump": lambda t, y, x: discontinuity(
        x[:, 0], y + 2 * t, treatment=np.where(x[:, 0] >= 0, x[:, 1] > -1.2, x[:, 1] > 1.2) * 1.0, bandwidth=1.5
    ).estimate,
    "differences": lambda t, y, x: difference_in_differences(y, t, (x[:, 0] > 0.2).astype(int), x[:, 1:]),
    "strata": lambda t, y, x: contrast(stratification(t, y, (x > 0).astype(float), strata="cells"), 1, 0),
    "Horvitz-Thompson": lambda t, y, x: contrast(ipw(t, y - 10, x, stabilised=False), 1, 0),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", JACKKNIFED)
def test_standard_errors_are_those_of_the_jackknife(name):
    t, y, x = of_world(linear_world(250, seed=21))
    y = y + 10
    own = JACKKNIFED[name](t, y, x)
    rows = np.arange(250)
    left = np.array([JACKKNIFED[name](t[k], y[k], x[k]).value for k in (np.delete(rows, i) for i in rows)])
    left = np.log(left) if own.on_log_scale else left
    assert own.standard_error == pytest.approx(
        np.sqrt(249 / 250 * ((left - left.mean()) ** 2).sum()), rel=0.06
    )


def test_errors_of_a_difference_and_a_ratio_know_that_the_arms_move_together():
    means = ArmMeans(np.array([0.2, 0.5]), 1e-4 * np.array([[4.0, 3.0], [3.0, 9.0]]))
    assert contrast(means, 1, 0).standard_error == pytest.approx(1e-2 * np.sqrt(4 + 9 - 6))
    expected = 1e-2 * np.sqrt(4 / 0.04 + 9 / 0.25 - 2 * 3 / 0.1)
    assert contrast(means, 1, 0, "ratio").standard_error == pytest.approx(expected)
    slopes = np.array([-1 / 0.16, 1 / 0.25])
    assert contrast(means, 1, 0, "odds ratio").standard_error == pytest.approx(
        np.sqrt(slopes @ means.covariance @ slopes)
    )


@pytest.mark.parametrize("population", [None, 1, 0])
@pytest.mark.parametrize("method", [aipw, tmle])
def test_doubly_robust_estimates_forgive_a_wrong_outcome_model(method, population):
    rng = np.random.default_rng(22)
    x = rng.normal(size=(20_000, 1))
    a = (rng.random(20_000) < sigmoid(0.5 * x[:, 0])).astype(int)
    found = contrast(
        method(a, a + 3 * x[:, 0] ** 2 + rng.normal(size=20_000), x, population=population), 1, 0
    )
    assert abs(found.value - 1) < 4 * found.standard_error
    assert found.standard_error < 0.15


def test_mediation_forgives_a_wrong_outcome_model():
    rng = np.random.default_rng(23)
    a = rng.integers(0, 2, 20_000)
    m = a + rng.normal(size=20_000)
    found = natural_effects(a, a + m**2 + rng.normal(size=20_000), m[:, None], np.empty((20_000, 0)))
    assert abs(found.indirect.value - 1) < 4 * found.indirect.standard_error < 0.6
    assert abs(found.direct.value - 1) < 4 * found.direct.standard_error < 0.6


def test_matching_errors_are_those_of_abadie_and_imbens_by_hand():
    rng = np.random.default_rng(24)
    x, a = rng.normal(size=(60, 1)), np.repeat([0, 1], 30)
    y = x[:, 0] + a + rng.normal(size=60)
    gap = np.abs(x - x.T) + np.where(a[:, None] == a[None, :], np.inf, 0)
    match = gap.argmin(axis=1)
    one, zero = np.where(a == 1, y, y[match]), np.where(a == 0, y, y[match])
    used = np.bincount(match, minlength=60)
    own = np.abs(x - x.T) + np.where((a[:, None] == a[None, :]) & ~np.eye(60, dtype=bool), 0, np.inf)
    noise = (y - y[own.argmin(axis=1)]) ** 2 / 2
    by_hand = (((one - zero - (one - zero).mean()) ** 2).sum() + noise @ (used**2 + used)) / 60**2
    found = contrast(matching(a, y, x, bias_adjusted=False), 1, 0)
    assert found.value == pytest.approx((one - zero).mean())
    assert found.standard_error == pytest.approx(np.sqrt(by_hand))
