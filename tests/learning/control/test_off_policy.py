"""Off-policy estimates: exact on worlds whose rows are all there, right errors, and refusals without overlap."""

from itertools import product

import numpy as np
import pytest

from markovia.errors import NoOverlap
from markovia.learning.control.off_policy import METHODS, action_values, implied_weights, off_policy_value
from markovia.learning.control.trajectory_weights import (
    LoggedStage,
    cumulative_weights,
    effective_sample_size,
    logged_probabilities,
    reached,
)

FIRST = np.array([0.25, 0.75])  # P(a1 = 1 | l1)
SEEN = np.array([[0.25, 0.5], [0.75, 0.25]])  # P(l2 = 1 | l1, a1)
SECOND = np.array([[[0.5, 0.75], [0.25, 0.5]], [[0.25, 0.25], [0.75, 0.5]]])  # P(a2 = 1 | l1, a1, l2)
EARLY = np.array([[1.0, -2.0], [0.5, 4.0]])
LATE = np.array(
    [[[[1.0, 3.0], [0.0, -1.0]], [[2.0, 5.0], [7.0, 1.0]]], [[[0.5, 0], [2, 2.5]], [[-3.0, 1.0], [0, 8.0]]]]
)
PLAN = (np.array([0.6, 0.3]), np.array([0.9, 0.2]))  # P(a1 = 1 | l1), P(a2 = 1 | l2)


def staged(l1, a1, l2, a2, r1, r2, actions=(0, 1)):
    histories = [l1[:, None], np.column_stack([l1, a1, l2])]
    cells = [l1, 4 * l1 + 2 * a1 + l2]
    return [
        LoggedStage(f"a{t + 1}", actions, histories[t].astype(float), cells[t], a, r)
        for t, (a, r) in enumerate(((a1, r1), (a2, r2)))
    ]


def whole_world():
    """Every combination as often as it is probable, so that the shares among the rows are the probabilities."""
    l1, a, seen, b = (np.array(v) for v in zip(*product(range(2), *[range(4)] * 3), strict=True))
    a1 = (a < 4 * FIRST[l1]).astype(int)
    l2 = (seen < 4 * SEEN[l1, a1]).astype(int)
    a2 = (b < 4 * SECOND[l1, a1, l2]).astype(int)
    return staged(l1, a1, l2, a2, EARLY[l1, a1], LATE[l1, a1, l2, a2]), l1, a1, l2


def sampled(n, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    l1 = rng.integers(0, 2, n)
    a1 = (rng.random(n) < FIRST[l1]).astype(int)
    l2 = (rng.random(n) < SEEN[l1, a1]).astype(int)
    a2 = (rng.random(n) < SECOND[l1, a1, l2]).astype(int)
    noise = rng.normal(size=(2, n))
    return staged(
        l1, a1, l2, a2, scale * (EARLY[l1, a1] + noise[0]), scale * (LATE[l1, a1, l2, a2] + noise[1])
    )


def both(p):
    return np.column_stack([1 - p, p])


def asked(stages):
    return [both(PLAN[0][stages[0].cell]), both(PLAN[1][stages[1].cell % 2])]


def truth():
    total = 0.0
    for l1, a1, l2, a2 in product((0, 1), repeat=4):
        chance = [PLAN[0][l1], SEEN[l1, a1], PLAN[1][l2]]
        weight = 0.5 * np.prod([p if v else 1 - p for p, v in zip(chance, (a1, l2, a2), strict=True)])
        total += weight * (EARLY[l1, a1] + LATE[l1, a1, l2, a2])
    return total


def known(l1, a1, l2):
    return [both(FIRST[l1]), both(SECOND[l1, a1, l2])]


@pytest.mark.parametrize("method", METHODS)
def test_all_methods_are_exact_where_all_rows_are_there(method):
    stages, l1, a1, l2 = whole_world()
    for logged in (None, known(l1, a1, l2)):
        found = off_policy_value(stages, asked(stages), method, logged=logged)
        assert found.value == pytest.approx(truth(), abs=1e-12)
        assert abs(found.influence.mean()) < 1e-12


@pytest.mark.parametrize("method", ["doubly robust", "fitted Q"])
def test_tables_make_fitted_q_the_g_formula_of_the_sample(method):
    stages = sampled(400, seed=3)
    l1, a1, l2 = stages[0].cell, stages[0].action, stages[1].cell % 2
    total = 0.0
    for one, first, two, second in product((0, 1), repeat=4):
        at = l1 == one
        with_first = at & (a1 == first)
        with_two = with_first & (l2 == two)
        with_second = with_two & (stages[1].action == second)
        weight = at.mean() * (PLAN[0][one] if first else 1 - PLAN[0][one])
        weight *= with_two.sum() / with_first.sum() * (PLAN[1][two] if second else 1 - PLAN[1][two])
        total += weight * (stages[0].reward[with_first].mean() + stages[1].reward[with_second].mean())
    assert off_policy_value(stages, asked(stages), method).value == pytest.approx(total, abs=1e-12)


def test_doubly_robust_is_right_where_the_values_or_the_weights_are():
    stages, l1, a1, l2 = whole_world()
    wrong_weights = [np.full((len(l1), 2), 0.5)] * 2
    found = off_policy_value(stages, asked(stages), logged=wrong_weights)
    assert found.value == pytest.approx(truth(), abs=1e-12)
    assert off_policy_value(stages, asked(stages), "importance", logged=wrong_weights).value != pytest.approx(
        truth(), abs=0.1
    )
    blind = [stage._replace(history=np.zeros((stage.n, 0))) for stage in stages]
    right = known(l1, a1, l2)
    found = off_policy_value(blind, asked(stages), learner="linear", logged=right)
    assert found.value == pytest.approx(truth(), abs=1e-12)
    q = off_policy_value(blind, asked(stages), "fitted Q", learner="linear", logged=right)
    assert q.value != pytest.approx(truth(), abs=0.1)


def smooth(n, seed=0):
    """Numbers instead of states, in which linear models of values and probabilities are right."""
    rng = np.random.default_rng(seed)
    x1 = rng.normal(size=n)
    p1 = 1 / (1 + np.exp(-0.5 * x1))
    a1 = (rng.random(n) < p1).astype(int)
    x2 = 0.5 * x1 + 0.5 * a1 + rng.normal(size=n)
    p2 = 1 / (1 + np.exp(0.3 * a1 - 0.5 * x2))
    a2 = (rng.random(n) < p2).astype(int)
    r1, r2 = x1 + rng.normal(size=n), 2 + x2 * (1 - a2) + a1 + 2 * a2 + rng.normal(size=n)
    histories = [x1[:, None], np.column_stack([x1, a1, x2])]
    stages = [LoggedStage(f"a{t}", (0, 1), h, np.arange(n), a, r) for t, h, a, r in
              zip((1, 2), histories, (a1, a2), (r1, r2), strict=True)]  # fmt: skip
    return stages, [both(np.full(n, 0.7)), both(np.full(n, 0.4))], [both(p1), both(p2)]


@pytest.mark.parametrize("learner", ["tabular", "linear"])
def test_fitted_q_moves_with_each_reward_as_its_implied_weights_say(learner):
    stages = sampled(300, seed=1)
    policy = asked(stages)
    weights = implied_weights(stages, policy, reached(stages, policy), learner)
    before = off_policy_value(stages, policy, "fitted Q", learner=learner).value
    for t, row in product((0, 1), (0, 7, 31)):
        reward = stages[t].reward.copy()
        reward[row] += 1.0
        moved = [s._replace(reward=reward) if k == t else s for k, s in enumerate(stages)]
        after = off_policy_value(moved, policy, "fitted Q", learner=learner).value
        assert after - before == pytest.approx(weights[t, row] / 300, abs=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "kind"),
    [*product(METHODS, ("tabular", "linear")), *product(METHODS[2:], ["known"])],
)
def test_errors_are_those_of_leaving_out_one_row_after_the_other(method, kind):
    n = 200 if kind == "linear" else 800
    stages, policy, logged = smooth(n, seed=5)
    learner, given = kind, None
    if kind != "linear":
        stages = sampled(n, seed=5)
        policy = asked(stages)
        logged = known(stages[0].cell, stages[0].action, stages[1].cell % 2)
        learner, given = "tabular", logged if kind == "known" else None

    def without(rows):
        part = [s.take(rows) for s in stages]
        p = None if given is None else [q[rows] for q in given]
        return off_policy_value(part, [q[rows] for q in policy], method, learner=learner, logged=p)

    values = np.array([without(np.arange(n) != i).value for i in range(n)])
    jackknife = np.sqrt((n - 1) / n * ((values - values.mean()) ** 2).sum())
    assert without(np.arange(n)).standard_error == pytest.approx(jackknife, rel=0.1)


def test_weighted_means_are_those_of_the_textbook():
    stages, policy, logged = smooth(50, seed=2)
    ratio = [p[np.arange(50), s.action] / q[np.arange(50), s.action]
             for p, q, s in zip(policy, logged, stages, strict=True)]  # fmt: skip
    first, both_times = ratio[0], ratio[0] * ratio[1]
    r1, r2 = (s.reward for s in stages)
    by_hand = {
        "importance": (both_times * (r1 + r2)).mean(),
        "weighted": (both_times * (r1 + r2)).sum() / both_times.sum(),
        "per-decision": (first * r1 + both_times * r2).mean(),
        "weighted per-decision": (first * r1).sum() / first.sum()
        + (both_times * r2).sum() / both_times.sum(),
    }
    for method, value in by_hand.items():
        found = off_policy_value(stages, policy, method, learner="linear", logged=logged)
        assert found.value == pytest.approx(value, rel=1e-12)
        assert found.overlap[1].effective == pytest.approx(both_times.sum() ** 2 / (both_times**2).sum())


def test_fitted_weights_err_less_than_known_ones():
    stages = sampled(2000, seed=2)
    logged = known(stages[0].cell, stages[0].action, stages[1].cell % 2)
    fitted = off_policy_value(stages, asked(stages), "importance")
    given = off_policy_value(stages, asked(stages), "importance", logged=logged)
    assert fitted.standard_error < 0.9 * given.standard_error


def test_learners_that_are_cross_fitted_come_near_the_truth():
    from sklearn.tree import DecisionTreeRegressor

    stages = sampled(1500, seed=8)
    tree = DecisionTreeRegressor(min_samples_leaf=30)
    for learner, folds in ((tree, None), ("tabular", 3)):
        found = off_policy_value(stages, asked(stages), learner=learner, folds=folds)
        assert abs(found.value - truth()) < 4 * found.standard_error
        assert found.standard_error < 0.3
        again = off_policy_value(stages, asked(stages), learner=learner, folds=folds)
        assert again.value == found.value
    without = off_policy_value(stages, asked(stages), "fitted Q", learner=tree)
    assert np.isnan(without.standard_error)


def test_units_of_the_reward_and_the_order_of_rows_do_not_matter():
    small, large = (sampled(300, seed=4, scale=s) for s in (1e-9, 1e9))
    order = np.random.default_rng(0).permutation(300)
    for method, learner in product(METHODS, ("tabular", "linear")):
        one = off_policy_value(small, asked(small), method, learner=learner)
        two = off_policy_value(large, asked(large), method, learner=learner)
        assert two.value == pytest.approx(1e18 * one.value, rel=1e-9)
        assert two.standard_error == pytest.approx(1e18 * one.standard_error, rel=1e-9)
        turned = [s.take(order) for s in small]
        again = off_policy_value(turned, asked(turned), method, learner=learner)
        assert again.value == pytest.approx(one.value, rel=1e-9)
        np.testing.assert_allclose(again.influence, one.influence[order], rtol=1e-6, atol=1e-22)


def test_what_was_never_done_is_refused_with_the_stage_and_the_rows():
    stages = sampled(200)
    bare = stages[1]._replace(action=np.where(stages[1].cell == 5, 0, stages[1].action))
    place = int(np.flatnonzero(bare.cell == 5)[0])
    always = [both(np.ones(200))] * 2
    with pytest.raises(NoOverlap, match=rf"at 'a2' the policy takes 1 in \d+ rows \(positions {place}, "):
        off_policy_value([stages[0], bare], [both(np.full(200, 0.5)), always[1]], "weighted")
    with pytest.raises(NoOverlap, match="at 'a1' the policy takes 1"):
        off_policy_value([stages[0]._replace(action=0 * stages[0].action), stages[1]], always)
    never = stages[1]._replace(action=0 * stages[1].action)
    with pytest.raises(NoOverlap, match="which no row does that could be learned from"):
        off_policy_value([stages[0], never], always, "fitted Q", learner="linear", floor=0.0)
    few = stages[1]._replace(action=np.where(np.arange(200) < 5, stages[1].action, 0))
    with pytest.raises(NoOverlap, match="too few for a regression on 3 columns"):
        off_policy_value([stages[0], few], always, "fitted Q", learner="linear", floor=0.0)


def test_rows_that_the_policy_does_not_come_to_need_no_overlap():
    stages = sampled(400)
    away = stages[0].action == 1
    second = stages[1]._replace(action=np.where(away, 0, stages[1].action))
    policy = [both(np.zeros(400)), both(np.ones(400))]  # never a1 = 1, after which a2 = 1 was never done
    found = off_policy_value([stages[0], second], policy)
    assert np.isfinite(found.value)
    assert found.overlap[1].following == int((~away & (second.action == 1)).sum())


def test_a_rare_action_is_refused_by_the_floor_and_kept_by_a_lower_one():
    n = 2000
    action = np.zeros(n, dtype=int)
    action[3] = 1
    stage = LoggedStage(
        "a", (0, 1), np.zeros((n, 0)), np.zeros(n, dtype=int), action, np.arange(n, dtype=float)
    )
    policy = [both(np.ones(n))]
    with pytest.raises(NoOverlap, match=r"below 0\.001"):
        off_policy_value([stage], policy)
    found = off_policy_value([stage], policy, "importance", floor=0.0)
    assert found.value == pytest.approx(3.0)
    assert found.overlap[0].effective == pytest.approx(1.0)
    assert found.overlap[0].largest == pytest.approx(n)


def test_one_row_has_a_value_and_no_error():
    stage = LoggedStage("a", (0, 1), np.zeros((1, 1)), np.zeros(1, dtype=int), np.array([1]), np.array([4.0]))
    for method, learner in product(METHODS, ("tabular", "linear")):
        found = off_policy_value([stage], [both(np.ones(1))], method, learner=learner)
        assert found.value == pytest.approx(4.0)
        assert np.isnan(found.standard_error)


def test_columns_that_are_constant_change_nothing():
    stages = sampled(300, seed=6)
    wider = [s._replace(history=np.column_stack([s.history, np.full(300, 7.0)])) for s in stages]
    for method in METHODS:
        one, two = (off_policy_value(s, asked(stages), method, learner="linear") for s in (stages, wider))
        assert two.value == pytest.approx(one.value, abs=1e-7)
        assert two.standard_error == pytest.approx(one.standard_error, abs=1e-7)


def test_three_actions_have_shares_or_a_multinomial_regression():
    rng = np.random.default_rng(0)
    n = 4000
    x = rng.integers(0, 2, n)
    p = np.array([[0.2, 0.3, 0.5], [0.5, 0.25, 0.25]])[x]
    a = (rng.random(n)[:, None] > np.cumsum(p, axis=1)).sum(axis=1)
    stage = LoggedStage("a", ("p", "q", "r"), x[:, None].astype(float), x, a, a + 2.0 * x * (a == 1))
    everywhere = np.ones(n, dtype=bool)
    shares = logged_probabilities(stage, "tabular", everywhere)
    np.testing.assert_allclose(logged_probabilities(stage, "linear", everywhere), shares, atol=1e-8)
    np.testing.assert_allclose(shares, p, atol=0.04)
    second = np.tile([0.0, 1.0, 0.0], (n, 1))
    for method in METHODS:
        assert off_policy_value([stage], [second], method).value == pytest.approx(
            1.0 + 2.0 * x.mean(), abs=0.2
        )


def test_values_are_those_of_dynamic_programming():
    stages, *_ = whole_world()
    policy = asked(stages)
    q, v = action_values(stages, policy, "tabular", np.ones(stages[0].n, dtype=bool), reached(stages, policy))
    l1, a1, l2 = stages[0].cell, stages[0].action, stages[1].cell % 2
    np.testing.assert_allclose(q[1], LATE[l1, a1, l2], atol=1e-12)
    late = np.einsum("iajb,jb->iaj", LATE, both(PLAN[1]))
    first = EARLY + (both(SEEN.ravel()).reshape(2, 2, 2) * late).sum(axis=-1)
    np.testing.assert_allclose(q[0], first[l1], atol=1e-12)
    np.testing.assert_allclose(v[0], (both(PLAN[0]) * first).sum(axis=1)[l1], atol=1e-12)


def test_weights_multiply_over_time_and_unequal_ones_count_for_fewer_rows():
    weights = cumulative_weights(
        [np.array([1.0, 0.0]), np.array([0.5, 1.0])], [np.array([0.5, 0.0])] * 2, 0.25
    )
    np.testing.assert_allclose(weights, [[2.0, 0.0], [2.0, 0.0]])
    assert effective_sample_size(np.array([3.0, 1.0])) == pytest.approx(16 / 10)
    assert effective_sample_size(np.array([1e200, 1e200])) == pytest.approx(2.0)
    assert effective_sample_size(np.zeros(3)) == 0.0
