"""Samplers of latent features against enumeration, and against the prior when data are drawn along (Geweke 2004)."""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from scipy import stats

from markovia.factors.processes.feature_matrices import left_ordered
from markovia.factors.processes.indian_buffet import IndianBuffet
from markovia.inference.collapsed.indian_buffet_gibbs import IndianBuffetGibbs, log_marginal

X = np.array([[1.2, -0.5], [1.0, 0.3], [-0.8, 1.1]])
SAMPLERS = [("collapsed", False), ("gibbs", False), ("slice", False), ("gibbs", True), ("slice", True)]


def assert_means(series, expected, errors=4.5, batches=25):
    """Means of dependent draws (sweeps, numbers) within some standard errors, found from batches."""
    series = np.asarray(series, dtype=float)
    means = np.array([b.mean(axis=0) for b in np.array_split(series, batches)])
    error = means.std(axis=0, ddof=1) / np.sqrt(batches)
    gaps = np.abs(series.mean(axis=0) - expected)
    assert (gaps <= errors * error + 1e-9).all(), np.round(gaps / error, 2)


def test_the_marginal_likelihood_is_that_of_a_gaussian():
    w = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]])
    law = stats.multivariate_normal(np.zeros(3), 0.6 * np.eye(3) + 1.5 * w @ w.T)
    assert log_marginal(X, w, 0.6, 1.5) == pytest.approx(law.logpdf(X.T).sum())
    assert log_marginal(X, np.zeros((3, 0)), 0.6, 1.5) == pytest.approx(
        stats.norm(0, 0.6**0.5).logpdf(X).sum()
    )


@pytest.mark.parametrize(
    ("method", "x", "noise"),
    [
        (
            "collapsed",
            np.array([[2.0], [2.2], [-1.5]]),
            0.1,
        ),  # rows that share several features, and know it well
        pytest.param("gibbs", X, 0.6, marks=pytest.mark.slow),
        ("slice", X, 0.6),
    ],
)
def test_matrices_come_up_as_often_as_enumeration_says(method, x, noise):
    """All classes of up to six columns: 1716; those left out have less than 1e-5 of the mass."""
    columns = [c for c in product((0.0, 1.0), repeat=3) if any(c)]
    exact = {}
    for k in range(7):
        for chosen in combinations_with_replacement(columns, k):
            z = np.array(chosen).T.reshape(3, -1)
            logs = IndianBuffet(1.0).log_prob(z) + log_marginal(x, z, noise, 1.5)
            exact[k, left_ordered(z).tobytes()] = np.exp(logs)
    total = sum(exact.values())
    sampler, rng = IndianBuffetGibbs(x, method, alpha=1.0, noise=noise, spread=1.5), np.random.default_rng(0)
    drawn = []
    for _ in range(4_000):
        sampler.sweep(rng)
        drawn.append((sampler.z.shape[1], left_ordered(sampler.z).tobytes()))
    likeliest = sorted(exact, key=lambda c: -exact[c])[:6]
    number = sum(k * p for (k, _), p in exact.items()) / total
    series = [[d[0], *(d == c for c in likeliest)] for d in drawn]
    assert_means(series, [number, *(exact[c] / total for c in likeliest)])


@pytest.mark.slow
@pytest.mark.parametrize(("method", "weighted"), SAMPLERS)
def test_with_data_drawn_along_the_prior_comes_back(method, weighted):
    rng, rows, wide = np.random.default_rng(1), 4, 2
    sampler = IndianBuffetGibbs(rng.normal(size=(rows, wide)), method, weighted)
    series = []
    for _ in range(6_000):
        noise = np.sqrt(sampler.hyper[1])
        sampler.x = sampler.w @ sampler.a + noise * rng.standard_normal((rows, wide))
        sampler.sweep(rng)
        k, total = sampler.z.shape[1], sampler.z.sum()
        logs = np.log(sampler.hyper[1:])
        weights = np.abs(sampler.w).sum() - total * (np.sqrt(2 / np.pi) if weighted else 1.0)
        series.append([sampler.hyper[0], k, total, *logs, weights, k == 0])
    harmonic = sum(1 / n for n in range(1, rows + 1))
    # alpha ~ Gamma(1, 1), K ~ Poisson(alpha harmonic); log InverseGamma(1, s) has mean log s + Euler's number
    prior = [1.0, harmonic, rows, np.log(0.1) + np.euler_gamma, np.euler_gamma, 0.0, 1 / (1 + harmonic)]
    assert_means(series, prior)


def test_a_sweep_leaves_no_empty_column_and_counts_with_many_features():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(3, 4)) * 3
    sampler = IndianBuffetGibbs(x, "collapsed", alpha=40.0, noise=1.0, spread=1.0)
    for _ in range(20):
        sampler.sweep(rng)
        assert sampler.z.any(axis=0).all()
    assert sampler.z.shape[1] > 24  # more than the room a sweep begins with


def test_missing_cells_are_drawn_from_their_law():
    rng = np.random.default_rng(3)
    x, missing = X.copy(), np.zeros((3, 2), dtype=bool)
    missing[0, 1] = True
    sampler = IndianBuffetGibbs(x, "collapsed", False, missing, alpha=1e-9, noise=0.6, spread=1.5)
    drawn = []
    for _ in range(1500):
        sampler.sweep(rng)
        drawn.append([sampler.x[0, 1], sampler.x[0, 1] ** 2])
    assert_means(drawn, [0.0, 0.6])  # without features it is noise
    assert (sampler.x[~missing] == X[~missing]).all()


def test_a_new_feature_gets_its_value_from_the_row_that_has_it():
    rng, noise, spread = np.random.default_rng(4), 0.5, 2.0
    x, found = np.array([[1.5, -1.0]]), []
    while len(found) < 1500:
        sampler = IndianBuffetGibbs(x, "gibbs", alpha=1.0, noise=noise, spread=spread)
        sampler.draw_rows(rng, -np.ones(1))
        if sampler.z.shape[1] == 1:
            gap = sampler.a[0] - spread / (noise + spread) * x[0]
            found.append([*gap, *(gap**2)])
    variance = noise * spread / (noise + spread)
    assert_means(found, [0.0, 0.0, variance, variance])


@pytest.mark.parametrize(("method", "weighted"), SAMPLERS)
def test_rows_that_are_all_noise_leave_the_prior_of_the_buffet(method, weighted):
    """N = 6, alpha = 1: 2.45 features, 6 ones; with so much noise the rows say nothing."""
    rng, rows = np.random.default_rng(5), 6
    sampler = IndianBuffetGibbs(
        rng.normal(size=(rows, 2)), method, weighted, alpha=1.0, noise=1e12, spread=0.7
    )
    series = []
    for _ in range(2_500):
        sampler.sweep(rng)
        sizes = sampler.z.sum(axis=0)
        series.append([len(sizes), sizes.sum(), (sizes == 1).sum(), (sizes == 3).sum(), len(sizes) ** 2])
    harmonic = 2.45
    # features that m rows have: Poisson of mean alpha / m
    expected = [harmonic, 6.0, 1.0, 1.0 / 3.0, harmonic + harmonic**2]
    assert_means(series, expected, errors=4.0)
    spread = (
        np.array([b.mean(axis=0) for b in np.array_split(np.array(series), 25)]).std(axis=0, ddof=1) / 5.0
    )
    assert (spread[:3] < [0.2, 0.6, 0.1]).all()  # so that a feature too many would be seen


@pytest.mark.parametrize("alpha", [0.4, 2.6])
def test_the_prior_of_the_buffet_is_that_of_its_concentration(alpha):
    rng = np.random.default_rng(6)
    sampler = IndianBuffetGibbs(rng.normal(size=(4, 3)), "collapsed", alpha=alpha, noise=1e12, spread=2.0)
    series = []
    for _ in range(2_500):
        sampler.sweep(rng)
        series.append([sampler.z.shape[1], sampler.z.sum()])
    assert_means(series, [alpha * (1 + 1 / 2 + 1 / 3 + 1 / 4), 4 * alpha], errors=4.0)


def test_concentration_noise_and_spread_have_their_laws_given_the_features():
    """Gamma(1 + K, 1 + 1 + 1/2 + ... + 1/N), and inverse gammas of sums of squares; scale 2.5 sets their priors."""
    rng, n, wide, k, scale = np.random.default_rng(7), 5, 4, 3, 2.5
    sampler = IndianBuffetGibbs(rng.normal(size=(n, wide)), scale=scale)
    sampler.z = np.array([[1, 0, 1], [0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 0]]) * 1.0
    sampler.w, sampler.a = sampler.z * 1.3, rng.normal(size=(k, wide))
    square = ((sampler.x - sampler.w @ sampler.a) ** 2).sum()
    draws = []
    for _ in range(8_000):
        sampler._draw_hyper(rng)
        draws.append(sampler.hyper.copy())
    laws = [
        stats.gamma(1.0 + k, scale=1.0 / (1.0 + 1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5)),
        stats.invgamma(1.0 + n * wide / 2, scale=scale / 10 + square / 2),
        stats.invgamma(1.0 + k * wide / 2, scale=scale + (sampler.a**2).sum() / 2),
    ]
    for law, drawn in zip(laws, np.array(draws).T, strict=True):
        assert stats.kstest(drawn, law.cdf).pvalue > 1e-3
