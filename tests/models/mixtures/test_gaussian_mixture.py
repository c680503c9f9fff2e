"""Gaussian mixtures: scikit-learn's path, worked numbers, missing cells, singular likelihoods, saving."""

import numpy as np
import pytest
import sklearn.mixture
from scipy.stats import multivariate_normal, norm

import markovia as mk
from markovia.errors import ConvergenceWarning
from markovia.learning.components.gaussian import Gaussian
from markovia.learning.latent.group_em import responsibilities


def rows_in_groups(n=300, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate(
        [rng.standard_normal((n, 3)) @ rng.standard_normal((3, 3)) + 3 * m for m in range(4)]
    )


@pytest.mark.parametrize("kind", ["full", "diag", "tied", "spherical"])
@pytest.mark.parametrize("start", ["kmeans", "random"])
@pytest.mark.filterwarnings("ignore")
def test_the_same_start_goes_the_same_way_as_in_scikit_learn(kind, start):
    rows = rows_in_groups(100)
    rows /= rows.std(axis=0)  # where a share of the variance and a number are the same floor
    settings = {"covariance_type": kind, "init_params": start, "random_state": 0, "tol": 1e-7, "max_iter": 15}
    ours, theirs = (
        mk.GaussianMixture(4, **settings).fit(rows),
        sklearn.mixture.GaussianMixture(4, **settings).fit(rows),
    )
    assert (ours.n_iter_, ours.converged_) == (theirs.n_iter_, theirs.converged_)
    assert ours.lower_bound_ == pytest.approx(theirs.lower_bound_, abs=1e-9)
    for name in ("weights_", "means_", "covariances_", "precisions_"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), rel=1e-7, abs=1e-8)
    assert ours.score_samples(rows) == pytest.approx(theirs.score_samples(rows), abs=1e-8)
    assert ours.predict_proba(rows) == pytest.approx(theirs.predict_proba(rows), abs=1e-8)
    assert ours.bic(rows) == pytest.approx(theirs.bic(rows))
    assert ours.aic(rows) == pytest.approx(theirs.aic(rows))


@pytest.mark.parametrize("start", ["k-means++", "random_from_data"])
@pytest.mark.filterwarnings("ignore")
def test_starts_at_single_rows_are_those_of_scikit_learn(start):
    rows = rows_in_groups(100)
    rows /= rows.std(axis=0)
    settings = {"init_params": start, "random_state": 3, "max_iter": 1, "reg_covar": 1e-3}
    ours = mk.GaussianMixture(4, **settings).fit(rows)
    theirs = sklearn.mixture.GaussianMixture(4, **settings).fit(rows)
    assert ours.means_ == pytest.approx(theirs.means_, abs=1e-8)
    assert ours.covariances_ == pytest.approx(theirs.covariances_, abs=1e-8)


def test_saved_and_loaded_it_answers_the_same(tmp_path):
    rows = rows_in_groups(50)
    mixture = mk.GaussianMixture(4, random_state=0).fit(rows)
    mixture.save(tmp_path / "groups.json")
    again = mk.load(tmp_path / "groups.json")
    assert isinstance(again, mk.GaussianMixture)
    assert again.get_params() == mixture.get_params()
    assert (again.predict_proba(rows) == mixture.predict_proba(rows)).all()
    assert again.history_ == mixture.history_
    assert again.converged_ == mixture.converged_


def one_dimension(weights, means, variances, **settings):
    """Return a mixture that takes one step from given values."""
    return mk.GaussianMixture(
        len(means),
        weights_init=weights,
        means_init=np.reshape(means, (-1, 1)),
        precisions_init=1.0 / np.reshape(variances, (-1, 1, 1)),
        reg_covar=0.0,
        max_iter=1,
        **settings,
    )


def test_a_row_half_way_to_the_second_mean_has_the_responsibility_of_the_notes():
    two = Gaussian(np.array([[-1.0], [1.0]]), np.ones((2, 1, 1)))
    logs = two.log_densities(np.array([[0.5]])).T + np.log(0.5)
    expected = logs.copy()
    assert responsibilities(logs, None, None) == pytest.approx(np.logaddexp(*expected[:, 0]))
    assert logs[1, 0] == pytest.approx(0.7310586, abs=1e-7)


def test_an_em_step_has_the_numbers_of_the_notes():
    rows = np.array([[-2.0], [-1.0], [1.0], [2.5]])
    first = one_dimension([0.5, 0.5], [-1.0, 1.0], [1.0, 1.0]).fit(rows)
    assert first.weights_ == pytest.approx([0.497177, 0.502823], abs=1e-6)
    assert first.means_.ravel() == pytest.approx([-1.362136, 1.595436], abs=1e-6)
    assert first.covariances_.ravel() == pytest.approx([0.643639, 1.074203], abs=1e-6)
    assert first.history_[0] * 4 == pytest.approx(-7.794622, abs=1e-6)
    assert first.score(rows) * 4 == pytest.approx(-6.984015, abs=1e-6)


@pytest.mark.parametrize(
    ("sigma", "expected"), [(1, -5.7225), (1e-2, -2.6130), (1e-4, 1.9878), (1e-8, 11.1981)]
)
def test_the_likelihood_grows_without_end_as_a_component_shrinks_onto_a_row(sigma, expected):
    rows = np.array([[-1.0], [0.0], [3.0]])
    start = one_dimension([0.5, 0.5], [0.0, 1.0], [sigma**2, 4.0]).fit(rows)
    assert start.history_[0] * 3 == pytest.approx(expected, abs=5e-5)


def test_a_component_that_only_the_floor_holds_is_said_and_a_prior_cures_it():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(0, 1, 60), [5.0, 5.0, 5.0]])[:, None]
    start = {"means_init": [[0.0], [5.0]], "weights_init": [0.9, 0.1], "random_state": 0}
    with pytest.warns(ConvergenceWarning, match="only the floor reg_covar=1e-06 keeps its variance up"):
        mk.GaussianMixture(2, **start).fit(rows)
    prior = {"mean": [0.0], "strength": 0.01, "scale": 1.0, "df": 3.0}
    held = mk.GaussianMixture(2, prior=prior, **start).fit(rows)
    assert held.covariances_.min() > 0.05


def test_an_em_step_has_the_numbers_of_brute_force():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 2)) * [1.0, 3.0]
    means, covariances, weights = (
        rng.normal(size=(2, 2)),
        np.array([np.eye(2), [[2.0, 0.5], [0.5, 1.0]]]),
        [0.3, 0.7],
    )
    joint = np.column_stack(
        [w * multivariate_normal(m, c).pdf(rows) for w, m, c in zip(weights, means, covariances, strict=True)]
    )
    shares = joint / joint.sum(axis=1, keepdims=True)
    size = shares.sum(axis=0)
    new = shares.T @ rows / size[:, None]
    spread = [((rows - m).T * s) @ (rows - m) / n for m, s, n in zip(new, shares.T, size, strict=True)]
    settings = {"reg_covar": 0.0, "weights_init": weights, "means_init": means, "max_iter": 1}
    found = mk.GaussianMixture(2, precisions_init=np.linalg.inv(covariances), **settings).fit(rows)
    assert found.means_ == pytest.approx(new)
    assert found.covariances_ == pytest.approx(np.array(spread))
    assert found.weights_ == pytest.approx(size / 30)
    assert found.lower_bound_ == pytest.approx(np.log(joint.sum(axis=1)).mean())


@pytest.mark.parametrize("kind", ["full", "diag", "tied", "spherical"])
def test_a_step_with_weights_has_the_closed_form_of_its_covariance_type(kind):
    """Weighted responsibilities of a start, then weighted means and scatters; a row of weight w counts as w rows."""
    rng = np.random.default_rng(21)
    rows, weights = rng.normal(size=(25, 2)) * [1.0, 3.0] + [0.5, -2.0], rng.integers(0, 4, 25)
    means, start = np.array([[1.0, -4.0], [-0.5, 1.0]]), np.array([[2.0, 0.4], [0.4, 5.0]])
    begins = {
        "full": np.array([start, 2 * start]), "tied": start, "diag": np.array([[2.0, 5.0], [1.0, 8.0]]),
        "spherical": np.array([2.0, 6.0]),
    }[kind]  # fmt: skip
    full = {
        "full": lambda: begins,
        "tied": lambda: np.array([start, start]),
        "diag": lambda: np.array([np.diag(b) for b in begins]),
        "spherical": lambda: begins[:, None, None] * np.eye(2),
    }[kind]()
    precisions = 1.0 / begins if kind in ("diag", "spherical") else np.linalg.inv(begins)
    shares = [0.3, 0.7]
    joint = np.column_stack(
        [w * multivariate_normal(m, c).pdf(rows) for w, m, c in zip(shares, means, full, strict=True)]
    )
    r = weights[:, None] * joint / joint.sum(axis=1, keepdims=True)
    size = r.sum(axis=0)
    new = r.T @ rows / size[:, None]
    scatter = np.array([((rows - m).T * s) @ (rows - m) for m, s in zip(new, r.T, strict=True)])
    expected = {
        "full": scatter / size[:, None, None],
        "tied": scatter.sum(axis=0) / weights.sum(),
        "diag": np.array([np.diag(s) for s in scatter]) / size[:, None],
        "spherical": np.array([np.trace(s) for s in scatter]) / (2.0 * size),
    }[kind]
    settings = {
        "covariance_type": kind, "reg_covar": 0.0, "max_iter": 1, "weights_init": shares, "means_init": means,
        "precisions_init": precisions,
    }  # fmt: skip
    found = mk.GaussianMixture(2, **settings).fit(rows, sample_weight=weights)
    assert found.means_ == pytest.approx(new)
    assert found.covariances_ == pytest.approx(expected)
    assert found.weights_ == pytest.approx(size / weights.sum())
    assert found.lower_bound_ == pytest.approx((weights * np.log(joint.sum(axis=1))).sum() / weights.sum())
    again = mk.GaussianMixture(2, **settings).fit(np.repeat(rows, weights, axis=0))
    assert found.covariances_ == pytest.approx(again.covariances_)
    free = {"full": 6, "tied": 3, "diag": 4, "spherical": 2}[kind] + 4 + 1
    assert found.bic(rows) == pytest.approx(free * np.log(25) - 2 * found.score_samples(rows).sum())


def test_components_in_another_order_are_as_likely():
    rows = rows_in_groups(60)
    mixture = mk.GaussianMixture(4, random_state=0, tol=1e-8, max_iter=500).fit(rows)
    order = [2, 0, 3, 1]
    start = {"weights_init": mixture.weights_[order], "means_init": mixture.means_[order]}
    other = mk.GaussianMixture(4, precisions_init=mixture.precisions_[order], **start, tol=1e-8).fit(rows)
    assert other.score(rows) == pytest.approx(mixture.score(rows), abs=1e-6)
    assert other.predict_proba(rows) == pytest.approx(mixture.predict_proba(rows)[:, order], abs=1e-4)


@pytest.mark.parametrize(
    "kind",
    ["full", "diag", "low-rank", *(pytest.param(k, marks=pytest.mark.slow) for k in ("tied", "spherical"))],
)
def test_missing_cells_are_integrated_out(kind):
    rows = rows_in_groups(60, 1)
    holes = np.where(np.random.default_rng(1).random(rows.shape) < 0.25, np.nan, rows)
    mixture = mk.GaussianMixture(3, covariance_type=kind, random_state=0, max_iter=30, tol=0).fit(holes)
    assert np.isfinite(mixture.history_).all()
    gains = np.diff(mixture.history_)
    assert gains.min() > -1e-7
    full = mixture.component_params_["covariances"]
    expected = []
    for row in holes:
        seen = ~np.isnan(row)
        each = [
            w * (multivariate_normal(m[seen], c[np.ix_(seen, seen)]).pdf(row[seen]) if seen.any() else 1.0)
            for w, m, c in zip(mixture.weights_, mixture.means_, full, strict=True)
        ]
        expected.append(np.log(sum(each)))
    assert mixture.score_samples(holes) == pytest.approx(np.array(expected), abs=1e-9)


def test_an_em_step_with_missing_cells_is_that_of_integrals():
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(6, 2)) @ np.array([[1.0, 0.4], [0.0, 1.0]])
    rows[0, 1] = rows[3, 0] = np.nan
    mean, spread = np.array([0.2, -0.1]), np.array([[1.5, 0.6], [0.6, 0.9]])
    grid = np.linspace(-12, 12, 4001)
    first, second = np.zeros(2), np.zeros((2, 2))
    for row in rows:
        gap = np.flatnonzero(np.isnan(row))
        points = np.repeat(row[None], len(grid) if len(gap) else 1, axis=0)
        if len(gap):
            points[:, gap[0]] = grid
        density = multivariate_normal(mean, spread).pdf(points)
        density = np.atleast_1d(density) / np.sum(density)
        first += density @ points
        second += (points.T * density) @ points
    found = mk.GaussianMixture(
        1, means_init=mean[None], precisions_init=np.linalg.inv(spread)[None], reg_covar=0.0, max_iter=1
    ).fit(rows)
    assert found.means_[0] == pytest.approx(first / 6, abs=1e-9)
    assert found.covariances_[0] == pytest.approx(second / 6 - np.outer(first, first) / 36, abs=1e-9)


def test_narrow_components_far_apart_lose_no_digits():
    rng = np.random.default_rng(0)
    rows = np.concatenate([1e4 * m + 1e-3 * rng.standard_normal((200, 2)) for m in (-1, 1)])
    mixture = mk.GaussianMixture(2, reg_covar=0.0, random_state=0, prior={"df": 1.0, "scale": 1e-12}).fit(
        rows
    )
    for k, own in enumerate((rows[:200], rows[200:])):
        j = int(mixture.predict(own[:1])[0])
        assert mixture.means_[j] == pytest.approx(own.mean(axis=0), rel=1e-12), k
        expected = multivariate_normal(mixture.means_[j], mixture.covariances_[j]).logpdf(own) + np.log(0.5)
        assert mixture.score_samples(own) == pytest.approx(expected, abs=1e-6)


def test_low_rank_covariances_are_found():
    rng = np.random.default_rng(0)
    loadings = rng.normal(size=(2, 8, 2))
    rows = np.concatenate(
        [
            10 * j + rng.normal(size=(3000, 2)) @ w.T + 0.5 * rng.normal(size=(3000, 8))
            for j, w in enumerate(loadings)
        ]
    )
    mixture = mk.GaussianMixture(2, covariance_type="low-rank", n_factors=2, random_state=0, tol=1e-6).fit(
        rows
    )
    for w, own in zip(loadings, (rows[:3000], rows[3000:]), strict=True):
        j = int(mixture.predict(own[:1])[0])
        assert mixture.covariances_[j] == pytest.approx(w @ w.T + 0.25 * np.eye(8), abs=0.35)
    full = mk.GaussianMixture(2, random_state=0).fit(rows)
    assert mixture.bic(rows) < full.bic(rows)
    assert (np.diff(mixture.history_) > -1e-9).all()


def test_the_default_start_finds_what_single_clusterings_miss():
    rng = np.random.default_rng(5)
    centres = rng.normal(0, 4, (12, 3))
    rows = np.concatenate([c + rng.standard_normal((150, 3)) for c in centres])
    truth = np.log(np.mean([multivariate_normal(c, np.eye(3)).pdf(rows) for c in centres], axis=0)).mean()
    for seed in range(2):
        assert mk.GaussianMixture(12, random_state=seed).fit(rows).score(rows) > truth


def test_one_dimension_agrees_with_densities():
    mixture = mk.GaussianMixture(2, random_state=0).fit(np.random.default_rng(0).normal(size=(50, 1)))
    sds = np.sqrt(mixture.covariances_.ravel())
    expected = sum(
        w * norm(m, s).pdf(0.3) for w, m, s in zip(mixture.weights_, mixture.means_.ravel(), sds, strict=True)
    )
    assert np.exp(mixture.score_samples([[0.3]]))[0] == pytest.approx(expected)
