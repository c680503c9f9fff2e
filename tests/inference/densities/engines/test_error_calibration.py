"""Errors that engines report are the spread of their answers over seeds: neither too small nor too large."""

import numpy as np
import pytest
from scipy import stats

from density_examples import gaussian, gaussian_answer, hierarchy
from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior
from markovia.inference.densities.engines.advi import ADVI
from markovia.inference.densities.engines.approximation_details import judged
from markovia.inference.densities.engines.density_importance import DensityImportance
from markovia.inference.densities.engines.smc import SMC
from markovia.inference.markov_chains.diagnostics import mcse
from markovia.inference.result import Info


def check_calibrated(z, *, level=1e-3):
    """Check that standardised errors have mean square one, from both sides, and no bias beyond theirs."""
    z = np.asarray(z)
    low, high = stats.chi2.ppf([level / 2, 1 - level / 2], len(z)) / len(z)
    assert low < float((z**2).mean()) < high, (low, float((z**2).mean()), high)


def test_the_error_of_a_mean_of_chains_is_its_spread_over_runs():
    rng = np.random.default_rng(0)
    z = []
    for _ in range(300):
        x = np.empty((3, 400))
        x[:, 0] = rng.normal(size=3) / 0.8
        for t in range(1, 400):
            x[:, t] = 0.6 * x[:, t - 1] + rng.normal(size=3)
        z.append(x.mean() / mcse(x))
    check_calibrated(z)


def weighted(rng, n=500):
    """Draws of N(0, 1.5^2) in two chains, weighed to be of N(0.4, 1)."""
    x = rng.normal(0.0, 1.5, (2, n // 2))
    logs = stats.norm.logpdf(x, 0.4, 1.0) - stats.norm.logpdf(x, 0.0, 1.5)
    return x, logs, DrawnPosterior(("x",), {"x": x}, Info("importance", exact=False), log_weights=logs)


def test_the_error_of_a_weighted_mean_is_its_spread_over_runs():
    rng = np.random.default_rng(1)
    z = []
    for _ in range(300):
        _, _, post = weighted(rng)
        z.append((post.mean() - 0.4) / post.summary().loc["x", "mcse"])
    check_calibrated(z)


def test_weighted_draws_have_the_numbers_of_scipy():
    x, logs, post = weighted(np.random.default_rng(2))
    w = np.exp(logs) / np.exp(logs).sum()
    row = post.summary().loc["x"]
    assert row["mean"] == pytest.approx((w * x).sum(), rel=1e-12)
    assert row["sd"] == pytest.approx(np.sqrt((w * (x - (w * x).sum()) ** 2).sum()), rel=5e-3)
    assert row["mcse"] == pytest.approx(np.sqrt((w**2 * (x - (w * x).sum()) ** 2).sum()), rel=1e-12)
    assert row["ess_bulk"] == pytest.approx(1.0 / (w**2).sum(), rel=1e-12)
    kernel = stats.gaussian_kde(x.ravel(), weights=w.ravel())
    places = np.array([-1.0, 0.3, 2.2])
    np.testing.assert_allclose(post.log_prob(places), kernel.logpdf(places), rtol=1e-10)
    assert post.log_prob(2.2) < post.log_prob(0.3) - 1.0
    # the weights count: unweighted draws have another density
    plain = stats.gaussian_kde(x.ravel()).logpdf([-1.0])[0]
    assert abs(post.log_prob(-1.0) - plain) > 0.05
    assert post.quantile(0.9) == pytest.approx(stats.norm.ppf(0.9, 0.4, 1.0), abs=0.2)
    assert post.quantile(0.5) == pytest.approx(0.4, abs=0.15)


def test_the_error_of_an_evidence_by_weights_is_its_spread_over_runs():
    rng = np.random.default_rng(3)
    z = []
    for _ in range(400):
        x = rng.standard_t(5.0, 300)
        details = judged(2.5 + stats.norm.logpdf(x, 0.3, 0.9) - stats.t.logpdf(x, 5.0))
        z.append((details.log_mass - 2.5) / details.log_mass_error)
    check_calibrated(z)


@pytest.mark.slow
def test_the_evidence_of_importance_sampling_is_calibrated_over_seeds():
    exact = gaussian_answer()[2]
    z = []
    for seed in range(40):
        found = DensityImportance(draws=400, degrees=4.0, seed=seed).draw(gaussian())
        z.append((found.log_mass - exact) / found.record.details.log_mass_error)
    check_calibrated(z)


@pytest.mark.slow
def test_the_evidence_of_tempering_is_calibrated_over_seeds():
    exact = gaussian_answer()[2]
    z = []
    for seed in range(40):
        found = SMC(draws=250, moves=3, leapfrog=5, seed=seed).draw(gaussian())
        z.append((found.log_mass - exact) / found.record.details.log_mass_error)
    check_calibrated(z)


@pytest.mark.slow
def test_a_mean_field_fit_has_the_scale_of_the_conditionals():
    mean, covariance, _ = gaussian_answer()
    found = ADVI(draws=4000, steps=3000, seed=1).draw(gaussian()).points[0]
    scale = 1.0 / np.sqrt(np.diag(np.linalg.inv(covariance)))
    np.testing.assert_allclose(found.mean(axis=0), mean, atol=0.06)
    np.testing.assert_allclose(found.std(axis=0), scale, rtol=0.06)


@pytest.mark.slow
def test_a_fit_to_batches_counts_each_row_once():
    found = ADVI(draws=4000, steps=2500, batch=10, step_size=0.03, seed=2).draw(hierarchy()).points[0]
    # given mu, an element has its prior's precision and that of five observations: 1 + 5 / 4
    assert found.std(axis=0)[1:].mean() == pytest.approx((1 + 5 / 4) ** -0.5, rel=0.04)
