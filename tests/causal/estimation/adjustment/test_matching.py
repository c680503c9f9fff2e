"""Matching: ties count alike, whatever the order of the rows, and errors are those of Abadie and Imbens with ties."""

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.causal.estimation.adjustment.estimates import contrast
from markovia.causal.estimation.adjustment.matching import DISTANCES, matching
from markovia.causal.estimation.adjustment.stratification import stratification
from markovia.errors import InvalidArgument


def kidney_stones(seed=None):
    counts = {
        ("small", "A"): (81, 87),
        ("large", "A"): (192, 263),
        ("small", "B"): (234, 270),
        ("large", "B"): (55, 80),
    }
    rows = [(s, t, k < won) for (s, t), (won, n) in counts.items() for k in range(n)]
    frame = pd.DataFrame(rows, columns=["stone", "treatment", "recovered"])
    return frame if seed is None else frame.sample(frac=1, random_state=seed)


def stones_effect(frame, **options):
    return mk.causal.effect(
        frame, "stone -> treatment -> recovered; stone -> recovered", "treatment", "recovered", method="matching",
        **options,
    )  # fmt: skip


def grid(n=300, seed=0):
    """Three arms and two covariates on an uneven grid, so that cells tie with their own rows and with each other."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.integers(0, 4, n), 2.5 * rng.integers(0, 3, n)]).astype(float)
    a = rng.choice(3, n, p=[0.5, 0.2, 0.3])
    y = x[:, 0] ** 2 - x[:, 1] + a * (1 + x[:, 0]) + (1 + a) * rng.normal(size=n)
    return a, y, x


def by_hand(a, y, x, neighbours, population=None):
    """Matched means and their covariance by loops over pairs of rows, in standardised covariates, as the paper has them."""
    z = (x - x.mean(axis=0)) / x.std(axis=0)
    gap = np.sqrt(((z[:, None] - z[None]) ** 2).sum(axis=2))
    n, arms = len(y), int(a.max()) + 1
    kept = np.ones(n, bool) if population is None else a == population
    imputed, once, squares, noise = np.empty((n, arms)), np.zeros(n), np.zeros(n), np.empty(n)
    for i in range(n):
        for k in range(arms):
            if k == a[i]:
                imputed[i, k] = y[i]
                continue
            others = np.flatnonzero(a == k)
            near = others[gap[i, others] <= np.sort(gap[i, others])[neighbours - 1] + 1e-9]
            imputed[i, k] = y[near].mean()
            once[near] += kept[i] / len(near)
            squares[near] += kept[i] / len(near) ** 2
        own = np.flatnonzero((a == a[i]) & (np.arange(n) != i))
        near = own[gap[i, own] <= gap[i, own].min() + 1e-9]
        noise[i] = len(near) / (len(near) + 1) * (y[i] - y[near].mean()) ** 2
    values = imputed[kept].mean(axis=0)
    away = imputed[kept] - values
    extra = noise * ((kept + once) ** 2 - kept - squares)
    spread = np.diag([extra[a == k].sum() for k in range(arms)])
    return values, (away.T @ away + spread) / kept.sum() ** 2


@pytest.mark.parametrize("population", [None, 2])
@pytest.mark.parametrize("neighbours", [1, 4])
def test_means_and_errors_with_ties_are_those_of_the_paper_by_loops(neighbours, population):
    a, y, x = grid()
    found = matching(
        a, y, x, arms=3, distance="nearest", neighbours=neighbours, bias_adjusted=False, population=population
    )
    values, covariance = by_hand(a, y, x, neighbours, population)
    assert found.values == pytest.approx(values, abs=1e-12)
    assert found.covariance == pytest.approx(covariance, rel=1e-9)


def test_matching_on_a_discrete_covariate_is_exact_adjustment():
    exact = (357 * 234 / 270 + 343 * 55 / 80) / 700 - (357 * 81 / 87 + 343 * 192 / 263) / 700
    found = stones_effect(kidney_stones())
    assert exact == pytest.approx(-0.0536, abs=1e-4)
    assert found.value == pytest.approx(exact, abs=1e-12)
    cells = mk.causal.effect(
        kidney_stones(), "stone -> treatment -> recovered; stone -> recovered", "treatment", "recovered",
        method="stratification", strata="cells",
    )  # fmt: skip
    # the variance in a cell has the degrees of freedom of a sample, not of a population
    assert found.standard_error == pytest.approx(cells.standard_error, rel=0.01)


@pytest.mark.parametrize(
    "options", [{"distance": d} for d in DISTANCES] + [{"neighbours": 3}, {"bias_adjusted": False}]
)
def test_neither_the_order_of_the_rows_nor_the_seed_changes_the_answer(options):
    first = stones_effect(kidney_stones(), **options)
    for seed in range(4):
        other = stones_effect(kidney_stones(seed), random_state=seed + 5, **options)
        assert other.value == pytest.approx(first.value, abs=1e-12)
        assert other.standard_error == pytest.approx(first.standard_error, abs=1e-12)
        assert other.sensitivity().gamma == first.sensitivity().gamma


@pytest.mark.parametrize("distance", DISTANCES)
def test_the_order_of_rows_on_a_grid_changes_nothing_either(distance):
    a, y, x = grid()
    order = np.random.default_rng(1).permutation(len(a))
    first, other = (
        matching(a[k], y[k], x[k], arms=3, distance=distance, neighbours=2, caliper=3.0)
        for k in (np.arange(len(a)), order)
    )
    assert other.values == pytest.approx(first.values, abs=1e-10)
    assert other.covariance == pytest.approx(first.covariance, rel=1e-8)
    assert other.weights == pytest.approx(first.weights[order], abs=1e-10)


def test_weights_count_every_row_and_what_it_stands_in_for():
    """Each of n rows has an outcome in every arm, so that the weights of an arm sum to n."""
    a, y, x = grid()
    found = matching(a, y, x, arms=3, neighbours=2)
    assert [found.weights[a == k].sum() for k in range(3)] == pytest.approx([300, 300, 300])


def test_strata_of_equal_scores_do_not_depend_on_the_order_of_the_rows():
    a, y, x = grid(400, 3)
    a = (a > 0).astype(int)
    order = np.random.default_rng(2).permutation(len(a))
    first, other = (contrast(stratification(a[k], y[k], x[k]), 1, 0) for k in (np.arange(len(a)), order))
    assert other.value == pytest.approx(first.value, abs=1e-10)
    assert other.standard_error == pytest.approx(first.standard_error, abs=1e-10)


def test_an_arm_of_one_row_is_refused_since_its_noise_cannot_be_told():
    with pytest.raises(InvalidArgument, match="two rows or more in each arm, and arm 1"):
        matching(np.array([0, 0, 1]), np.ones(3), np.array([[0.0], [1.0], [2.0]]))
