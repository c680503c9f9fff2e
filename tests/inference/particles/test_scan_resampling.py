"""Resampling in JAX: the offspring that the NumPy schemes promise, without bias, and nothing of weight zero."""

import jax
import numpy as np
import pytest

from markovia.inference.particles.scan_resampling import SCHEMES, ancestors, running_sum
from markovia.inference.weighted_draws.resampling import resample
from markovia.runtime.double_precision import x64

rng = np.random.default_rng(0)


def offspring(scheme, log_weights, draws):
    n = len(log_weights)
    with x64():
        keys = jax.random.split(jax.random.key(1), draws)
        chosen = jax.jit(jax.vmap(lambda key: ancestors(scheme, key, log_weights)))(keys)
    return np.apply_along_axis(np.bincount, 1, np.asarray(chosen), minlength=n)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_offspring_have_the_expectation_that_the_weights_say(scheme):
    shares = rng.dirichlet(np.full(23, 0.4))
    counts = offspring(scheme, np.log(shares), 4000)
    assert (counts.sum(axis=1) == 23).all()
    error = counts.std(axis=0) / np.sqrt(4000) + 1e-3
    assert (np.abs(counts.mean(axis=0) - 23 * shares) < 4.5 * error).all()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_offspring_vary_as_those_of_the_schemes_in_numpy(scheme):
    shares = rng.dirichlet(np.ones(12))
    ours = offspring(scheme, np.log(shares), 4000)
    theirs = np.stack(
        [np.bincount(resample(np.log(shares), 12, seed, scheme), minlength=12) for seed in range(4000)]
    )
    assert np.abs(ours.var(axis=0) - theirs.var(axis=0)).max() < 0.12
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
        key = jax.random.key(3)
        chosen = np.asarray(ancestors(scheme, key, logs))
        assert (chosen % 7 == 3).all()
        assert (chosen == np.asarray(ancestors(scheme, key, logs - 1e4))).all()


def test_a_running_sum_over_several_levels_of_blocks_is_that_of_numpy():
    with x64():
        x = rng.random(300_001)
        np.testing.assert_allclose(running_sum(jax.numpy.asarray(x)), np.cumsum(x), rtol=1e-13)
