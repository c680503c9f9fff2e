"""Weights of variational mixtures against quadrature: sticks, their concentration, and what they add to the bound."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import betaln

from markovia.learning.latent.variational_mixture import DirichletWeights, StickWeights

SIZES = np.array([3.5, 1.25, 6.0, 0.75])


def test_dirichlet_weights_have_the_moments_of_their_law():
    law = DirichletWeights(0.7)
    law.update(SIZES)
    drawn = stats.dirichlet(SIZES + 0.7).rvs(40_000, random_state=0)
    assert law.means() == pytest.approx((SIZES + 0.7) / (SIZES.sum() + 2.8))
    error = np.log(drawn).std(axis=0) / 200.0
    assert (abs(law.logs() - np.log(drawn).mean(axis=0)) < 4.0 * error).all()
    # given whole sizes the bound is the log probability of labels
    law.update(np.array([2.0, 0.0, 1.0, 0.0]))
    assert law.bound() == pytest.approx(np.log(0.7 / 2.8 * 1.7 / 3.8 * 0.7 / 4.8))


def test_sticks_have_the_moments_of_their_laws():
    law = StickWeights(1.9, None, 0.25)
    law.update(SIZES)
    a = 1.0 - 0.25 + SIZES[:-1]
    b = 1.9 + 0.25 * np.arange(1, 4) + [8.0, 6.75, 0.75]
    v = np.column_stack([stats.beta(a, b).rvs((40_000, 3), random_state=1), np.ones(40_000)])
    w = v * np.column_stack([np.ones(40_000), np.cumprod(1.0 - v[:, :-1], axis=1)])
    for found, values in ((law.means(), w), (law.logs(), np.log(w))):
        assert (abs(found - values.mean(axis=0)) < 4.0 * values.std(axis=0) / 200.0).all()
    # given whole sizes the bound is the log of the sticks' integral
    law.update(np.array([2.0, 1.0, 0.0, 3.0]))
    a, b = 0.75 + np.array([2.0, 1.0, 0.0]), 1.9 + 0.25 * np.arange(1, 4)
    assert law.bound() == pytest.approx((betaln(a, b + np.array([4.0, 3.0, 3.0])) - betaln(0.75, b)).sum())


def test_a_learned_concentration_adds_to_the_bound_what_quadrature_says():
    """E log p(labels, v, alpha) - E log q(v) - E log q(alpha) of a stick of three pieces."""
    shape, rate = 2.5, 1.4
    law = StickWeights(1.0, (shape, rate))
    for _ in range(3):
        before = law.concentration
        law.update(np.array([4.0, 1.5, 2.0]))
    a, b = 1.0 + np.array([4.0, 1.5]), before + np.array([3.5, 2.0])
    sticks = stats.beta(a, b)
    one_by_one = [stats.beta(*each) for each in zip(a, b, strict=True)]
    left = np.array([one.expect(lambda v: np.log1p(-v)) for one in one_by_one])
    taken = np.array([one.expect(np.log) for one in one_by_one])
    posterior = stats.gamma(shape + 2, scale=1.0 / (rate - left.sum()))
    assert law.concentration == pytest.approx(posterior.mean())
    labels = 4.0 * taken[0] + 3.5 * left[0] + 1.5 * taken[1] + 2.0 * left[1]
    prior = 2 * posterior.expect(np.log) + (posterior.mean() - 1.0) * left.sum()
    of_alpha = posterior.expect(stats.gamma(shape, scale=1.0 / rate).logpdf)
    expected = labels + prior + of_alpha + sticks.entropy().sum() + posterior.entropy()
    assert law.bound() == pytest.approx(expected, abs=1e-6)
