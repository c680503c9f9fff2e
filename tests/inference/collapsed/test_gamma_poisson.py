"""Samplers and bounds of Poisson factors: the prior comes back, the bound rises and is one."""

from functools import partial

import numpy as np
import pytest

from markovia.inference.collapsed.gamma_poisson_gibbs import GammaPoissonGibbs
from markovia.learning.latent.gamma_poisson_vb import first_fit, step
from markovia.optimise.ascent import climb


def sampler_of(counts, masses, rng, a=0.8, eta=0.7):
    rows, columns = np.nonzero(counts)
    return GammaPoissonGibbs(
        rows, columns, counts[rows, columns], counts.shape, np.asarray(masses), a, eta, rng
    )


def assert_means(series, expected, errors=4.5, batches=25):
    series = np.asarray(series, dtype=float)
    means = np.array([b.mean(axis=0) for b in np.array_split(series, batches)])
    error = means.std(axis=0, ddof=1) / np.sqrt(batches)
    gaps = np.abs(series.mean(axis=0) - expected)
    assert (gaps <= errors * error + 1e-9).all(), np.round(gaps / error, 2)


def test_with_counts_drawn_along_the_prior_comes_back():
    from scipy.special import psi

    rng = np.random.default_rng(0)
    masses, a, eta = np.array([0.9, 1.4]), 0.8, 0.7
    sampler = sampler_of(np.ones((3, 3), dtype=int), masses, rng)
    series = []
    for _ in range(8_000):
        mean = sampler.activities @ (sampler.rates[:, None] * sampler.profiles)
        counts = rng.poisson(np.minimum(mean, 1e6))
        sampler.rows, sampler.columns = np.nonzero(counts)
        sampler.counts = counts[sampler.rows, sampler.columns]
        sampler.sweep(rng)
        series.append([
            np.log(sampler.scale[0]), *np.log(sampler.rates * sampler.scale), np.log(sampler.activities[1, 0]),
            sampler.activities[2, 1], sampler.profiles[0, 1], sampler.profiles[1, 2] ** 2,
        ])  # fmt: skip
    square = eta * (eta + 1) / (3 * eta * (3 * eta + 1))
    expected = [-np.euler_gamma, *psi(masses), psi(a) - np.log(a), 1.0, 1 / 3, square]
    assert_means(series, expected)


def test_a_split_keeps_every_count():
    rng = np.random.default_rng(1)
    counts = rng.poisson(3.0, (6, 5))
    sampler = sampler_of(counts, np.ones(4), rng)
    sampler.split(rng)
    assert sampler.of_rows.sum(axis=1).tolist() == counts.sum(axis=1).tolist()
    assert sampler.of_columns.sum(axis=0).tolist() == counts.sum(axis=0).tolist()


def test_the_bound_rises_and_stays_below_the_log_evidence():
    rng = np.random.default_rng(2)
    sampler = sampler_of(np.array([[2, 1]]), np.ones(1), rng, a=1.5, eta=1.2)
    bounds = climb(partial(step, sampler), first_fit(sampler), max_iter=60, tol=0.0, may_fall=True).history
    assert (np.diff(bounds) > -1e-9).all()
    # the evidence by simulation: one factor, so counts are Poisson(rate activity profile)
    draws = 200_000
    scale = rng.gamma(1.0, 1.0, draws)
    mean = rng.gamma(1.0, 1.0, draws) / scale * rng.gamma(1.5, 1 / 1.5, draws)
    profile = rng.beta(1.2, 1.2, draws)
    p = np.exp(-mean) * mean**3 * profile**2 * (1 - profile) / 2
    evidence, error = np.log(p.mean()), p.std() / p.mean() / np.sqrt(draws)
    assert bounds[-1] < evidence + 4 * error
    assert bounds[-1] > evidence - 1.5


@pytest.mark.parametrize("k", [1, 6])
def test_the_bound_rises_with_many_factors(k):
    rng = np.random.default_rng(3)
    sampler = sampler_of(rng.poisson(2.0, (12, 9)), np.full(k, 1 / k), rng, a=0.5, eta=0.1)
    bounds = climb(partial(step, sampler), first_fit(sampler), max_iter=80, tol=0.0, may_fall=True).history
    assert (np.diff(bounds) > -1e-8).all()
