"""Policy trees: the best of all trees, by trying all trees."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovia.errors import InvalidArgument, TooLarge
from markovia.learning.control.policy_trees import policy_tree


def best_by_trying_all(x, scores, depth):
    best = scores.sum(axis=0).max(initial=-np.inf) if len(x) else 0.0
    if depth == 0 or not len(x):
        return best
    for j in range(x.shape[1]):
        gaps = np.isnan(x[:, j])
        for cut in [*np.unique(x[~gaps, j]), -np.inf]:
            for side in (True, False):
                left = np.where(gaps, side, x[:, j] <= cut)
                sides = (best_by_trying_all(x[part], scores[part], depth - 1) for part in (left, ~left))
                best = max(best, sum(sides))
    return best


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.booleans(), st.integers(-9, 9))
def test_a_tree_gains_as_much_as_the_best_of_all_trees(seed, depth, gaps, unit):
    rng = np.random.default_rng(seed)
    n, columns, actions = rng.integers(1, 9 if depth < 3 else 6), rng.integers(1, 3), rng.integers(1, 4)
    x = rng.integers(0, 4, (n, columns)).astype(float)
    if gaps:
        x[rng.random(x.shape) < 0.25] = np.nan
    scores = rng.normal(size=(n, actions)).round(int(rng.integers(0, 7))) * 10.0**unit
    tree = policy_tree(x, scores, depth)
    best = best_by_trying_all(x, scores, depth) / n
    assert tree.value == pytest.approx(best, abs=1e-11 * np.abs(scores).sum() + 1e-300)
    assert scores[np.arange(n), tree.take(x)].mean() == tree.value


@pytest.mark.slow
@pytest.mark.parametrize(("depth", "rows", "times"), [(2, 12, 60), (3, 7, 8)])
def test_no_tree_is_passed_over_that_gains_more(depth, rows, times):
    for seed in range(times):
        rng = np.random.default_rng(seed)
        x, scores = rng.integers(0, 5, (rows, 2)).astype(float), rng.normal(size=(rows, 2))
        assert policy_tree(x, scores, depth).value == pytest.approx(
            best_by_trying_all(x, scores, depth) / rows
        )


def test_ties_go_to_the_tree_with_fewer_splits_then_to_the_first_column():
    x = np.array([[0, 0], [0, 0], [1, 1], [1, 1.0]])
    flat = policy_tree(x, np.ones((4, 2)), 3)
    assert flat.splits == 0
    assert flat.take(x).tolist() == [0] * 4
    gain = np.array([[1, 0], [1, 0], [0, 1], [0, 1.0]])
    tree = policy_tree(x, gain, 3)
    assert tree.splits == 1
    assert tree.columns[tree.columns >= 0].tolist() == [0]


def test_missing_cells_go_where_they_gain_and_are_said():
    x = np.array([[1.0], [2.0], [3.0], [np.nan]])
    high = policy_tree(x, np.array([[1, 0], [1, 0], [0, 1], [0, 1.0]]), 1)
    assert high.value == 1.0
    assert str(high) == "x0 <= 2.5: 0\nx0 > 2.5 or missing: 1"
    low = policy_tree(x, np.array([[0, 1], [1, 0], [1, 0], [0, 1.0]]), 1)
    assert low.take(np.array([[1.2], [9.0], [np.nan]])).tolist() == [1, 0, 1]
    alone = policy_tree(x, np.array([[1, 0], [1, 0], [1, 0], [0, 1.0]]), 1)
    assert alone.take(x).tolist() == [0, 0, 0, 1]


def test_rows_in_another_order_have_the_same_tree():
    rng = np.random.default_rng(0)
    x, scores = rng.normal(size=(60, 3)), rng.normal(size=(60, 3))
    one, order = policy_tree(x, scores, 2), rng.permutation(60)
    two = policy_tree(x[order], scores[order], 2)
    np.testing.assert_array_equal(one.columns, two.columns)
    np.testing.assert_array_equal(one.thresholds, two.thresholds)
    np.testing.assert_array_equal(one.actions, two.actions)


def test_constant_columns_and_no_columns_leave_one_leaf():
    for x in (np.zeros((3, 2)), np.zeros((3, 0)), np.full((3, 1), np.nan)):
        tree = policy_tree(x, np.array([[0, 1], [0, 1], [3, 1.0]]), 2)
        assert tree.take(x).tolist() == [0, 0, 0]
        assert str(tree) == "0"


def test_neighbouring_numbers_and_huge_ones_can_be_told_apart():
    for low, high in ((1.0, np.nextafter(1.0, 2)), (-1.7e308, 1.7e308), (1e-300, 2e-300)):
        x = np.array([[low], [high]])
        assert policy_tree(x, np.eye(2), 1).take(x).tolist() == [0, 1]


def test_what_would_take_too_long_is_refused_before_it_starts():
    x = np.random.default_rng(0).normal(size=(5000, 10))
    with pytest.raises(TooLarge, match="smaller depth"):
        policy_tree(x, np.ones((5000, 2)), 3)
    with pytest.raises(InvalidArgument, match="depth="):
        policy_tree(x, np.ones((5000, 2)), 4)
    with pytest.raises(InvalidArgument, match="finite"):
        policy_tree(x[:2], np.array([[np.nan], [1.0]]), 1)
    with pytest.raises(InvalidArgument, match="one line a row"):
        policy_tree(x, np.ones((4, 2)), 1)
