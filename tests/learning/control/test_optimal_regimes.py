"""Optimal regimes: the rules of dynamic programming where all rows are there, and each method's own promise."""

from itertools import product

import numpy as np
import pytest

from markovia.errors import InvalidArgument, NoOverlap
from markovia.learning.control.optimal_regimes import (
    REGIME_METHODS,
    contrasts,
    learned_rules,
    robust_scores,
)
from markovia.learning.control.trajectory_weights import LoggedStage

FIRST = np.array([0.25, 0.75])
SEEN = np.array([[0.25, 0.75], [0.5, 0.25]])
SECOND = np.array([0.25, 0.5])  # P(a2 = 1 | l2)


def late(l1, a1, l2, a2, lasting):
    return 1.0 + l1 - 2.0 * l2 + lasting * a1 + a2 * (3.0 * l2 - 1.0 - 0.5 * a1)


def early(l1, a1):
    return a1 * (2.0 * l1 - 0.5)


def whole_world(scale=1.0, lasting=0.5):
    l1, a, seen, b = (np.array(v) for v in zip(*product(range(2), *[range(4)] * 3), strict=True))
    a1 = (a < 4 * FIRST[l1]).astype(int)
    l2 = (seen < 4 * SEEN[l1, a1]).astype(int)
    a2 = (b < 4 * SECOND[l2]).astype(int)
    one = LoggedStage("a1", (0, 1), l1[:, None].astype(float), l1, a1, scale * early(l1, a1))
    history = np.column_stack([l1, a1, l2]).astype(float)
    two = LoggedStage("a2", (0, 1), history, 4 * l1 + 2 * a1 + l2, a2, scale * late(l1, a1, l2, a2, lasting))
    return [one, two]


def optimal(lasting):
    """The rules of dynamic programming."""
    second = np.zeros((2, 2, 2), dtype=int)
    value = np.zeros((2, 2))
    for l1, a1, l2 in product((0, 1), repeat=3):
        gains = [late(l1, a1, l2, a2, lasting) for a2 in (0, 1)]
        second[l1, a1, l2] = int(np.argmax(gains))
        value[l1, a1] += (SEEN[l1, a1] if l2 else 1 - SEEN[l1, a1]) * max(gains)
    first = [int(early(l1, 1) + value[l1, 1] > early(l1, 0) + value[l1, 0]) for l1 in (0, 1)]
    return first, second.ravel().tolist()


@pytest.mark.parametrize("method", REGIME_METHODS)
@pytest.mark.parametrize("learner", ["linear", "tabular"])
@pytest.mark.parametrize(("scale", "lasting"), [(1.0, 2.0), (1.0, -3.0), (1e-9, 0.5), (1e9, 0.5)])
def test_rules_are_those_of_dynamic_programming(method, learner, scale, lasting):
    rules = learned_rules(whole_world(scale, lasting), method, learner=learner)
    first, second = optimal(lasting)
    assert first == {0.5: [0, 1], 2.0: [1, 1], -3.0: [0, 0]}[lasting]  # at once it gains -0.5 and 1.5
    assert rules[0].take(np.array([[0.0], [1.0]]), np.arange(2)).tolist() == first
    histories = np.array(list(product((0.0, 1.0), repeat=3)))
    assert rules[1].take(histories, np.arange(8)).tolist() == second


def test_contrasts_are_differences_of_means_where_both_models_are_saturated():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 300)
    a = (rng.random(300) < 0.3 + 0.4 * x).astype(int)
    gain = rng.normal(size=300) + a * x
    stage = LoggedStage("a", (0, 1), x[:, None].astype(float), x, a, gain)
    means = np.array([[gain[(x == v) & (a == w)].mean() for w in (0, 1)] for v in (0, 1)])
    for free, p in product((False, True), (0.5, 0.3 + 0.4 * x)):
        if free and np.ndim(p) == 0:
            continue  # free main effects need the shares themselves
        shares = np.array([a[x == v].mean() for v in (0, 1)])[x] if free else p * np.ones(300)
        coef = contrasts(stage, gain, np.column_stack([1 - shares, shares]), free=free)
        np.testing.assert_allclose(coef[1], [means[0] @ [-1, 1], means @ [-1, 1] @ [-1, 1]], atol=1e-10)


def world_of_one_stage(main):
    """All rows of a covariate of four values, an action taken in 1 to 3 of 4 rows, and a contrast 1 - x."""
    x, tick = (np.array(v) for v in zip(*product(range(4), range(4)), strict=True))
    p = np.array([0.25, 0.5, 0.75, 0.5])[x]
    a = (tick < 4 * p).astype(int)
    gain = main(x) + a * (1.0 - x)
    return LoggedStage("a", (0, 1), x[:, None].astype(float), x, a, gain), np.column_stack([1 - p, p])


def test_contrasts_are_right_where_main_effects_or_probabilities_are():
    wrong = np.full((16, 2), 0.5) + np.linspace(-0.2, 0.2, 16)[:, None] * [-1, 1]
    curved, p = world_of_one_stage(lambda x: np.array([0.0, 5.0, -3.0, 9.0])[x])
    np.testing.assert_allclose(contrasts(curved, curved.reward, p)[1], [1.0, -1.0], atol=1e-10)
    assert np.abs(contrasts(curved, curved.reward, wrong)[1] - [1.0, -1.0]).max() > 0.1
    line, _ = world_of_one_stage(lambda x: 2.0 + 3.0 * x)
    np.testing.assert_allclose(contrasts(line, line.reward, wrong)[1], [1.0, -1.0], atol=1e-10)
    np.testing.assert_allclose(contrasts(curved, curved.reward, p, free=True)[1], [1.0, -1.0], atol=1e-10)


def test_scores_average_to_what_each_action_gains():
    stage, _ = world_of_one_stage(lambda x: np.array([0.0, 5.0, -3.0, 9.0])[x])
    scores = robust_scores(stage, stage.reward, {"outcome": "linear", "treatment": "tabular"})
    np.testing.assert_allclose(scores.mean(axis=0), [2.75, 2.75 - 0.5], atol=1e-10)


@pytest.mark.parametrize("method", REGIME_METHODS)
def test_three_actions_of_which_one_was_never_taken(method):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2, 400)
    a = rng.choice([0, 2], 400)
    stage = LoggedStage("a", ("p", "q", "r"), x[:, None].astype(float), x, a, np.where(a == 2, x, 1.0 - x))
    if method == "tree":
        with pytest.raises(NoOverlap, match="takes 'q'"):
            learned_rules([stage], method)
        return
    rule = learned_rules([stage], method)[0]
    assert rule.take(np.array([[0.0], [1.0]]), np.arange(2)).tolist() == [0, 2]


@pytest.mark.parametrize("method", REGIME_METHODS)
def test_three_actions_each_best_somewhere(method):
    rng = np.random.default_rng(2)
    x = rng.integers(0, 3, 900)
    a = rng.integers(0, 3, 900)
    stage = LoggedStage("a", (0, 1, 2), np.eye(3)[x], x, a, (a == x) * 5.0 + rng.normal(size=900))
    rule = learned_rules([stage], method, depth=2)[0]
    assert rule.take(np.eye(3), np.arange(3)).tolist() == [0, 1, 2]


def test_a_table_has_no_rule_for_what_was_never_seen():
    rule = learned_rules(whole_world(), learner="tabular")[0]
    with pytest.raises(InvalidArgument, match="never logged"):
        rule.take(np.zeros((1, 1)), np.array([-1]))


def test_other_learners_find_the_rules_too():
    from sklearn.tree import DecisionTreeRegressor

    stages = [stage.take(np.tile(np.arange(128), 6)) for stage in whole_world()]
    for method in ("q", "tree"):
        rules = learned_rules(stages, method, learner=DecisionTreeRegressor(max_depth=3))
        assert rules[0].take(np.array([[0.0], [1.0]]), np.arange(2)).tolist() == [0, 1]
