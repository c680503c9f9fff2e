"""Ordered vectors: a density that integrates to one over the cone, and draws that have it."""

import jax
import numpy as np
import pytest
from scipy import stats

import markovia as mk
import markovia.distributions as dist
from markovia.runtime.double_precision import x64

BASES = {
    "normal": (lambda: dist.Normal(0.5, 1.5), stats.norm(0.5, 1.5), (-9.0, 10.0)),
    "gamma": (lambda: dist.Gamma(2.0, 1.0), stats.gamma(2.0), (0.0, 20.0)),
}


def log_density(distribution, points):
    with x64():
        return np.asarray(distribution.log_prob(points))


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("normal", 2),
        ("gamma", 3),
        pytest.param("normal", 3, marks=pytest.mark.slow),
        pytest.param("gamma", 2, marks=pytest.mark.slow),
    ],
)
def test_the_density_integrates_to_one_over_the_ordered_cone(name, size):
    make, _, (low, high) = BASES[name]
    nodes, weights = np.polynomial.legendre.leggauss(60)
    first = low + (high - low) * (nodes + 1) / 2
    gaps = (high - low) * (nodes + 1) / 2  # the cone is a first entry and positive gaps
    grid = np.stack(np.meshgrid(first, *[gaps] * (size - 1), indexing="ij"), axis=-1).reshape(-1, size)
    share = np.stack(np.meshgrid(*[weights * (high - low) / 2] * size, indexing="ij"), axis=-1)
    share = share.reshape(-1, size).prod(axis=1)
    spread = dist.Ordered(make(), size=size)
    points = grid.cumsum(axis=1)
    assert np.exp(log_density(spread, points)) @ share == pytest.approx(1.0, abs=1e-4)
    assert (log_density(spread, points[:5, ::-1]) == -np.inf).all()


@pytest.mark.parametrize("name", BASES)
def test_draws_are_in_order_and_are_order_statistics(name):
    make, reference, _ = BASES[name]
    spread = dist.Ordered(make(), size=3)
    with x64():
        draws = np.asarray(spread.sample(jax.random.PRNGKey(0), (4000,)))
    assert (np.diff(draws, axis=1) > 0).all()
    for k in range(3):  # the k-th of three has a beta distribution in the scale of probabilities
        assert stats.kstest(reference.cdf(draws[:, k]), stats.beta(k + 1, 3 - k).cdf).pvalue > 1e-3


def test_entries_that_are_not_alike_have_a_density_and_no_draws():
    spread = dist.Ordered(dist.Normal(np.array([0.0, 1.0]), 1.0))
    wanted = stats.norm([0.0, 1.0], 1.0).logpdf([0.2, 0.9]).sum() + np.log(2)
    assert float(log_density(spread, np.array([0.2, 0.9]))) == pytest.approx(wanted, rel=1e-12)
    with pytest.raises(
        mk.errors.UnsupportedModel, match="independent and alike: give the distribution of one, and size="
    ):
        spread.sample(jax.random.PRNGKey(0))
    with pytest.raises(ValueError, match="give size="):
        dist.Ordered(dist.Normal(0, 1))
