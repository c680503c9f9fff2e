"""Draws of concentrations against quadrature of the density that they have, from both sides."""

import numpy as np
import pytest
from scipy.special import gammaln

from markovia.inference.collapsed.concentrations import (
    Concentration,
    drawn_by_slice,
    drawn_concentration,
    drawn_tables,
)
from sampler_checks import assert_moments

DRAWS = 6_000


@pytest.mark.parametrize(
    ("n", "groups", "discount", "prior"), [(9, 3, 0.0, (2.0, 0.7)), (14, 5, 0.4, (1.5, 2.0)), (7, 1, 0.3, (3.0, 1.2)),
                                           (1, 1, 0.0, (2.0, 0.7))]
)  # fmt: skip
def test_a_concentration_has_its_posterior_given_the_number_of_groups(n, groups, discount, prior):
    law, rng = Concentration(1.0, prior, discount), np.random.default_rng(0)
    draws = []
    for _ in range(DRAWS):
        law.redraw(n, groups, rng)
        draws.append(law.value)

    def log_density(a):
        """Gamma prior times the part of a partition's law that has the concentration in it (Pitman 1995)."""
        seats = np.log(a + discount * np.arange(1, groups)).sum() - np.log(a + np.arange(1, n)).sum()
        return (prior[0] - 1.0) * np.log(a) - prior[1] * a + seats

    assert_moments(draws, log_density)


def test_a_concentration_of_many_restaurants_has_its_posterior_given_their_tables():
    guests, tables, prior, rng = np.array([5, 0, 12, 2]), 9, (1.3, 0.8), np.random.default_rng(1)
    value, draws = 1.0, []
    for _ in range(DRAWS):
        value = drawn_concentration(value, tables, guests, prior, rng)
        draws.append(value)

    def log_density(a):
        seats = (gammaln(a) - gammaln(a + guests)).sum() + tables * np.log(a)
        return (prior[0] - 1.0) * np.log(a) - prior[1] * a + seats

    assert_moments(draws, log_density)


def test_a_slice_of_the_logarithm_draws_from_the_density_of_the_value():
    rng, value, draws = np.random.default_rng(2), 1.0, []

    def log_density(v):
        return 1.7 * np.log(v) - 0.9 * v

    for _ in range(DRAWS):
        value = drawn_by_slice(value, log_density, rng, width=0.7)
        draws.append(value)
    assert_moments(draws, log_density)


def test_tables_of_guests_have_the_mean_and_variance_of_sums_of_coins():
    counts, strengths = np.array([[6, 0, 3], [1, 11, 2]]), np.array([0.7, 2.5, 1.3])
    rng = np.random.default_rng(3)
    drawn = np.array([drawn_tables(counts, strengths, rng) for _ in range(4_000)])
    chances = [[s / (s + np.arange(c)) for c, s in zip(row, strengths, strict=True)] for row in counts]
    mean = np.array([[p.sum() for p in row] for row in chances])
    variance = np.array([[(p * (1 - p)).sum() for p in row] for row in chances])
    assert drawn.mean(axis=0) == pytest.approx(mean, abs=4.0 * np.sqrt(variance.max() / 4_000))
    assert drawn.var(axis=0) == pytest.approx(variance, rel=0.1, abs=0.02)
