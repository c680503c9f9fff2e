"""The rules that learn row by row, step by step against their formulas."""

import numpy as np
import pytest

from markovia.learning.regression.online import learn_by_rows, safe_rate


class Slopes:
    """An objective whose score of a row is the row itself minus the parameters, so that every step can be written down."""

    def __init__(self, x):
        self.x = x

    def row_score(self, b, rows):
        return (self.x[rows] - b).sum(axis=0)


def test_lms_makes_one_step_of_constant_length_a_row_in_their_order():
    x = np.random.default_rng(0).normal(size=(7, 2))
    l2, b = np.array([0.5, 0.0]), np.array([1.0, -1.0])
    found = learn_by_rows(Slopes(x), l2, b, 0.2)
    for row in x:
        b = b + 0.2 * (row - b - l2 * b / 7)
    np.testing.assert_allclose(found.coef, b)


@pytest.mark.parametrize("before", [0, 250])
def test_stochastic_gradients_fall_with_the_steps_and_later_passes_count_more_in_their_average(before):
    """Step t is rho / (1 + t / 100) ** 0.6 times the mean score of its batch; t goes on from pass to pass."""
    x = np.random.default_rng(1).normal(size=(10, 2))
    l2, b = np.array([0.3, 0.0]), np.array([2.0, 0.0])
    settings = {"batch": 4, "seed": 5, "passes": 2, "before": before}
    last = learn_by_rows(Slopes(x), l2, b, 0.4, **settings)
    mean = learn_by_rows(Slopes(x), l2, b, 0.4, averaged=True, **settings)
    path, total, size = [], 0.0, 0.0
    for number in (1, 2):
        order = np.random.default_rng([5, number - 1]).permutation(10)
        for rows in (order[:4], order[4:7], order[7:]):
            rate = 0.4 / (1 + (before + len(path)) / 100) ** 0.6
            b = b + rate * (x[rows].mean(axis=0) - b - l2 * b / 10)
            path.append(b)
            total, size = total + number * b, size + number
    np.testing.assert_allclose(last.coef, path[-1])
    np.testing.assert_allclose(mean.coef, total / size)
    assert last.steps == before + 6
    assert (last.passes, last.stopped) == (2, False)


def test_a_safe_rate_is_half_over_the_largest_curvature_of_a_row():
    x, weights = np.array([[3.0, 4.0], [1.0, 0.0]]), np.array([1.0, 40.0])
    assert safe_rate(x, weights, 0.25) == pytest.approx(0.5 / (0.25 * 40))
    assert safe_rate(x, np.ones(2), 0.25) == pytest.approx(0.5 / (0.25 * 25))
