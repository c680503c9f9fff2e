"""Noises of structural models: densities, draws and quantiles against SciPy, none of them standard."""

import numpy as np
import pytest
from scipy.stats import norm

import markovia.distributions as dist
from markovia.causal.counterfactuals.noises import Empirical, GaussianNoise, Weighted, as_noise


def test_a_normal_noise_has_scipys_density_and_quantiles():
    noise, peer = as_noise(dist.Normal(-1.5, 2.5), "x"), norm(-1.5, 2.5)
    assert isinstance(noise, GaussianNoise)
    at = np.array([-7.0, -1.0, 0.3, 4.0])
    assert noise.log_prob(at) == pytest.approx(peer.logpdf(at))
    assert noise.quantiles(np.array([0.02, 0.4, 0.9])) == pytest.approx(peer.ppf([0.02, 0.4, 0.9]))
    drawn = noise.sample(4000, np.random.default_rng(0))
    assert drawn.mean() == pytest.approx(-1.5, abs=4 * 2.5 / np.sqrt(4000))
    assert drawn.std() == pytest.approx(2.5, rel=4 / np.sqrt(8000))


def test_residuals_have_the_kernel_density_of_silvermans_rule():
    values = np.random.default_rng(1).gamma(2.0, 3.0, 400)
    noise = Empirical(values)
    quartiles = np.quantile(values, [0.25, 0.75])
    width = 0.9 * min(values.std(), (quartiles[1] - quartiles[0]) / 1.34) * 400**-0.2
    assert noise.width == pytest.approx(width)
    at = np.array([0.5, 3.0, 7.7, 14.0])
    by_hand = norm.pdf((at[:, None] - values) / width).mean(axis=1) / width
    assert np.exp(noise.log_prob(at)) == pytest.approx(by_hand, rel=0.01)
    assert noise.quantiles(np.array([0.3])) == pytest.approx(np.quantile(values, 0.3))


def test_listed_probabilities_are_those_of_the_states_in_their_order():
    noise = Weighted([0.1, 0.6, 0.3])
    assert np.exp(noise.log_prob(np.array([2, 0]))) == pytest.approx([0.3, 0.1])
    assert noise.quantiles(np.array([0.05, 0.5, 0.95])).tolist() == [0.0, 1.0, 2.0]
    shares = np.bincount(noise.sample(3000, np.random.default_rng(2)), minlength=3) / 3000
    assert shares == pytest.approx([0.1, 0.6, 0.3], abs=4 * 0.5 / np.sqrt(3000))
