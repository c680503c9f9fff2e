"""Resampling in JAX: the offspring that the NumPy schemes promise, without bias, and nothing of weight zero."""

import jax
import numpy as np
import pytest

from markovia.inference.particles.scan_resampling import SCHEMES, ancestors, running_sum
from markovia.inference.weighted_draws.resampling import resample
from markovia.runtime.double_precision import x64

rng = np.random.default_rng(0)


def counts_of(chosen, n):
    """Return how often each was drawn, one row a draw of all."""
    return np.stack([(chosen == i).sum(axis=1) for i in range(n)], axis=1)


def offspring(scheme, log_weights, draws):
    with x64():
        keys = jax.random.split(jax.random.key(1), draws)
        chosen = jax.jit(jax.vmap(lambda key: ancestors(scheme, key, log_weights)))(keys)
    return counts_of(np.asarray(chosen), len(log_weights))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_offspring_are_without_bias_and_vary_as_those_of_the_schemes_in_numpy(scheme):
    shares = rng.dirichlet(np.full(12, 0.7))
    ours = offspring(scheme, np.log(shares), 4000)
    assert (ours.sum(axis=1) == 12).all()
    error = ours.std(axis=0) / np.sqrt(4000) + 1e-3
    assert (np.abs(ours.mean(axis=0) - 12 * shares) < 4.5 * error).all()
    theirs = counts_of(np.stack([resample(np.log(shares), 12, seed, scheme) for seed in range(4000)]), 12)
    assert np.abs(np.cov(ours.T) - np.cov(theirs.T)).max() < 0.12


@pytest.mark.parametrize("scheme", ["systematic", "stratified", "residual"])
def test_offspring_are_within_their_bounds(scheme):
    shares = rng.dirichlet(np.ones(40))
    counts, want = offspring(scheme, np.log(shares), 300), 40 * shares
    if scheme == "systematic":
        assert (np.abs(counts - want) < 1).all()
    elif scheme == "stratified":
        assert (np.abs(counts - want) < 2).all()
    else:
        assert (counts >= np.floor(want)).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_nothing_of_weight_zero_is_drawn_and_scale_does_not_matter(scheme):
    logs = np.where(np.arange(5000) % 7 == 3, rng.normal(size=5000), -np.inf)
    with x64():
        draw = jax.jit(lambda logs: ancestors(scheme, jax.random.key(3), logs))
        chosen = np.asarray(draw(logs))
        assert (chosen % 7 == 3).all()
        assert (chosen == np.asarray(draw(logs - 1e4))).all()


def test_a_running_sum_over_several_levels_of_blocks_is_that_of_numpy():
    with x64():
        x = rng.random(300_001)
        np.testing.assert_allclose(jax.jit(running_sum)(x), np.cumsum(x), rtol=1e-13)
