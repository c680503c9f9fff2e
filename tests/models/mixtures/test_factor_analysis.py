"""Factor analysis and probabilistic PCA against scikit-learn, dense Gaussians and their networks."""

import itertools

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn import decomposition

import markovia as mk
from markovia.errors import MarkoviaError
from markovia.learning.latent.factor_analysis import Factors, _turn, from_rows

KINDS = [mk.mixtures.FactorAnalysis, mk.mixtures.ProbabilisticPCA]


def rows_of(n=300, d=6, q=2, seed=0):
    rng = np.random.default_rng(seed)
    return (
        rng.normal(size=(n, q)) @ rng.normal(size=(q, d))
        + rng.normal(size=(n, d)) * rng.uniform(0.3, 1.5, d)
        + 3.0
    )


def with_gaps(rows, share=0.2, seed=1):
    gaps = np.random.default_rng(seed).random(rows.shape) < share
    return np.where(gaps, np.nan, rows)


def test_factors_are_those_of_scikit_learn():
    rows = rows_of()
    ours = mk.mixtures.FactorAnalysis(2, tol=0.0, max_iter=20_000).fit(rows)
    theirs = decomposition.FactorAnalysis(2, tol=1e-13, max_iter=20_000, svd_method="lapack").fit(rows)
    assert np.allclose(ours.get_covariance(), theirs.get_covariance(), atol=1e-4)
    assert np.allclose(ours.noise_variance_, theirs.noise_variance_, atol=1e-4)
    assert ours.score(rows) == pytest.approx(theirs.score(rows), abs=1e-8)
    signs = np.sign((ours.components_ * theirs.components_).sum(axis=1))
    assert np.allclose(ours.components_, signs[:, None] * theirs.components_, atol=1e-3)
    assert np.allclose(ours.transform(rows), theirs.transform(rows) * signs, atol=1e-3)


def test_rotated_factors_are_those_of_scikit_learn():
    rows = rows_of()
    for rotation in ("varimax", "quartimax"):
        ours = mk.mixtures.FactorAnalysis(2, rotation=rotation, tol=1e-13, max_iter=10_000).fit(rows)
        theirs = decomposition.FactorAnalysis(
            2, rotation=rotation, tol=1e-12, max_iter=10_000, svd_method="lapack"
        ).fit(rows)
        match = ours.components_ @ theirs.components_.T
        order = np.abs(match).argmax(axis=1)
        signs = np.sign(match[np.arange(2), order])
        assert np.allclose(ours.components_, signs[:, None] * theirs.components_[order], atol=2e-3)


def test_probabilistic_pca_is_that_of_scikit_learn():
    rows = rows_of()
    ours, theirs = mk.mixtures.ProbabilisticPCA(2).fit(rows), decomposition.PCA(2).fit(rows)
    share = 299 / 300  # theirs divides by rows less one
    assert ours.noise_variance_ == pytest.approx(theirs.noise_variance_ * share)
    assert np.allclose(ours.get_covariance(), theirs.get_covariance() * share)


@pytest.mark.parametrize("kind", KINDS)
def test_em_with_no_gaps_ends_where_the_closed_form_does(kind):
    rows = rows_of()
    made = kind(2, tol=1e-13, max_iter=20_000).fit(rows)
    rng = np.random.default_rng(0)
    start = Factors(rows.mean(axis=0), rng.normal(size=(6, 2)), np.ones(6))
    found = from_rows(
        rows, np.ones(300), start, one_noise=kind is mk.mixtures.ProbabilisticPCA, max_iter=5000, tol=1e-12
    )
    assert np.allclose(found.state.covariance, made.get_covariance(), atol=2e-4)
    assert all(b >= a - 1e-12 for a, b in itertools.pairwise(found.history))


@pytest.mark.parametrize("kind", KINDS)
def test_every_turn_raises_the_likelihood_and_ends_where_its_gradient_is_zero(kind):
    rows = with_gaps(rows_of(120, 4, 1, seed=3))
    model = kind(1, tol=1e-13, max_iter=5000).fit(rows)
    assert all(b >= a - 1e-12 for a, b in itertools.pairwise(model.history_))
    made = model._factors()

    def objective(vector):
        noise = np.exp(np.full(4, vector[8]) if kind is mk.mixtures.ProbabilisticPCA else vector[8:])
        return Factors(vector[:4], vector[4:8, None], noise).posteriors(rows)[2].mean()

    noise = np.log(made.noise[:1] if kind is mk.mixtures.ProbabilisticPCA else made.noise)
    at = np.concatenate([made.mean, made.loadings[:, 0], noise])
    step = 1e-5 * np.eye(len(at))
    gradient = [(objective(at + s) - objective(at - s)) / 2e-5 for s in step]
    assert np.abs(gradient).max() < 1e-5


def test_log_densities_and_factors_given_gaps_are_those_of_the_dense_gaussian():
    rows = with_gaps(rows_of(40, 5, 2, seed=4), 0.4)
    model = mk.mixtures.FactorAnalysis(2).fit(rows_of(200, 5, 2, seed=4))
    covariance, w = model.get_covariance(), model.components_.T
    logs, factors, filled = model.score_samples(rows), model.transform(rows), model.impute(rows)
    for i, row in enumerate(rows):
        there = ~np.isnan(row)
        assert np.array_equal(filled[i, there], row[there])
        if not there.any():
            assert logs[i] == pytest.approx(0.0)
            continue
        own = covariance[np.ix_(there, there)]
        assert logs[i] == pytest.approx(multivariate_normal.logpdf(row[there], model.mean_[there], own))
        weights = np.linalg.solve(own, row[there] - model.mean_[there])
        assert np.allclose(factors[i], w[there].T @ weights)
        assert np.allclose(filled[i], np.where(there, row, model.mean_ + covariance[:, there] @ weights))


@pytest.mark.parametrize("kind", KINDS)
def test_the_network_answers_the_same(kind):
    rows = with_gaps(rows_of(150, 4, 2, seed=5))
    model = kind(2).fit(rows)
    network = model.network()
    row = rows[~np.isnan(rows[:, [0, 2]]).any(axis=1)][0]
    given = {f"x{j}": row[j] for j in (0, 2)}
    seen = np.array([[row[0], np.nan, row[2], np.nan]])
    for k in range(2):
        assert network.query(f"z{k}", given=given).mean() == pytest.approx(model.transform(seen)[0, k])
    for j in (1, 3):
        assert network.query(f"x{j}", given=given).mean() == pytest.approx(model.impute(seen)[0, j])
    assert network.log_evidence(given=given) == pytest.approx(model.score_samples(seen)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_weights_count_as_repeated_rows_with_gaps_too(kind):
    rows = with_gaps(rows_of(80, 4, 1, seed=6))
    times = np.random.default_rng(0).integers(1, 4, 80)
    one = kind(1, max_iter=2000).fit(rows, sample_weight=times)
    other = kind(1, max_iter=2000).fit(np.repeat(rows, times, axis=0))
    assert np.allclose(one.get_covariance(), other.get_covariance(), atol=1e-8)


@pytest.mark.slow
def test_the_true_covariance_is_recovered_from_rows_with_many_gaps():
    rng = np.random.default_rng(7)
    w, noise = rng.normal(size=(5, 2)), rng.uniform(0.2, 1.0, 5)
    rows = rng.normal(size=(20_000, 2)) @ w.T + rng.normal(size=(20_000, 5)) * np.sqrt(noise)
    found = mk.mixtures.FactorAnalysis(2, tol=1e-7).fit(with_gaps(rows, 0.4))
    assert np.allclose(found.get_covariance(), w @ w.T + np.diag(noise), atol=0.15)


def test_bic_finds_the_number_of_factors():
    rows = rows_of(2000, 8, 3, seed=8)
    scores = [mk.mixtures.FactorAnalysis(q).fit(rows).bic(rows) for q in range(1, 6)]
    assert 1 + int(np.argmin(scores)) == 3
    model = mk.mixtures.ProbabilisticPCA(2).fit(rows)
    assert model.aic(rows) == pytest.approx(2 * (8 + 16 - 1 + 1) - 2 * model.score_samples(rows).sum())
    assert np.allclose(np.cov(model.sample(100_000, seed=0).T), model.get_covariance(), atol=0.3)


def test_bad_input_gets_a_sentence():
    with pytest.raises(MarkoviaError, match="n_components=7 is more than the 6 columns of X"):
        mk.mixtures.FactorAnalysis(7).fit(rows_of())
    rows = rows_of()
    rows[:, 2] = np.nan
    with pytest.raises(MarkoviaError, match="all cells of the column 'x2' are missing"):
        mk.mixtures.ProbabilisticPCA(1).fit(rows)
    with pytest.raises(MarkoviaError, match="rotation= is 'varimax', 'quartimax' or None"):
        mk.mixtures.FactorAnalysis(1, rotation="promax").fit(rows_of())


def test_a_turn_of_em_keeps_rows_without_cells_out():
    rows = rows_of(50, 3, 1, seed=9)
    made = Factors(rows.mean(axis=0), np.ones((3, 1)), np.ones(3))
    more = np.concatenate([rows, np.full((7, 3), np.nan)])
    one, other = _turn(made, rows, np.ones(50), False)[0], _turn(made, more, np.ones(57), False)[0]
    assert np.allclose(one.covariance, other.covariance)
