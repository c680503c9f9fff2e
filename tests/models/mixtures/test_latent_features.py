"""Latent features: recovery, new rows against enumeration, missing cells, resuming, bad input."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

import markovia as mk
from markovia.errors import InvalidArgument


def images(seed=0, n=100):
    parts = np.zeros((4, 6, 6))
    parts[0, 1, 0:3] = parts[0, 0:3, 1] = 1
    parts[1, 0:3, 3:6] = 1
    parts[1, 1, 4] = 0
    parts[2, 3:6, 0] = parts[2, 3, 0:3] = 1
    parts[3, 4, 3:6] = parts[3, 3:6, 4] = 1
    rng = np.random.default_rng(seed)
    has = rng.random((n, 4)) < 0.5
    return parts.reshape(4, 36), has, has @ parts.reshape(4, 36) + 0.5 * rng.normal(size=(n, 36))


def matched(components, parts):
    """The best correlation of each true part with a component."""
    return np.abs(np.corrcoef(np.vstack([components, parts]))[: len(components), len(components) :]).max(
        axis=0
    )


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_four_features_of_noisy_images_are_found(seed):
    parts, has, x = images(seed)
    model = mk.LatentFeatures(random_state=seed).fit(x)
    assert model.n_components_ == 4
    assert (matched(model.components_, parts) > 0.95).all()
    assert abs(model.noise_std_ - 0.5) < 0.03
    found = model.features_[:, np.corrcoef(np.vstack([model.components_, parts]))[:4, 4:].argmax(axis=0)]
    assert (found == has).mean() > 0.97
    number = model.posterior_.n_features(least=2)
    assert max(number, key=number.get) == 4
    assert sum(model.posterior_.n_features().values()) == pytest.approx(1)
    _, more, held_out = images(seed + 10, 200)
    assert (np.abs(model.inverse_transform(model.transform(held_out)) - more @ parts)).mean() < 0.12
    assert model.score(held_out) > stats.norm(0, held_out.std()).logpdf(held_out).sum(axis=1).mean()
    together = model.posterior_.co_occurrence()
    assert np.corrcoef(together.ravel(), (has.astype(float) @ has.T).ravel())[0, 1] > 0.95


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gibbs", "slice"])
def test_weighted_features_are_found(method):
    parts, has, _ = images()
    rng = np.random.default_rng(1)
    x = (has * rng.normal(size=has.shape)) @ (3 * parts) + 0.5 * rng.normal(size=(100, 36))
    model = mk.LatentFeatures("gaussian", method=method, max_iter=300, n_init=2, random_state=0).fit(x)
    assert model.n_components_ == 4
    assert (matched(model.components_, parts) > 0.9).all()
    assert abs(model.noise_std_ - 0.5) < 0.05


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(3)
    x = (rng.random((40, 2)) < 0.5) @ np.array([[2.0, 0, 1], [0, 2.0, -1]]) + 0.4 * rng.normal(size=(40, 3))
    return x, mk.LatentFeatures(max_iter=60, n_init=1, random_state=0).fit(x)


def test_new_rows_are_explained_as_enumeration_says(small):
    _, model = small
    row = np.array([0.4, np.nan, 0.3])
    seen = ~np.isnan(row)
    kinds = np.array([*product((0, 1), repeat=model.n_components_)])
    logs = stats.norm(kinds @ model.components_[:, seen], model.noise_std_).logpdf(row[seen]).sum(axis=1)
    logs += stats.bernoulli(model.chances_).logpmf(kinds).sum(axis=1)
    p = np.exp(logs)
    np.testing.assert_allclose(model.transform([row])[0], p @ kinds / p.sum(), rtol=1e-9)
    np.testing.assert_allclose(model.score_samples([row])[0], np.log(p.sum()), rtol=1e-9)


def test_weighted_rows_score_as_gaussians_and_draws_agree_with_their_means(small):
    x, _ = small
    model = mk.LatentFeatures("gaussian", max_iter=40, n_init=1, random_state=0).fit(x)
    row, k, noise = np.array([0.5, -1.0, 0.8]), model.n_components_, model.noise_std_**2
    total, mean = 0.0, np.zeros(k)
    for kind in product((0.0, 1.0), repeat=k):
        a = np.diag(kind) @ model.components_
        covariance = noise * np.eye(3) + a.T @ a
        p = stats.multivariate_normal(np.zeros(3), covariance).pdf(row) * np.exp(
            stats.bernoulli(model.chances_).logpmf(np.array(kind)).sum()
        )
        total += p
        mean += p * (a @ np.linalg.solve(covariance, row))
    np.testing.assert_allclose(model.score_samples([row])[0], np.log(total), rtol=1e-9)
    drawn = model.transform(np.tile(row, (60, 1))).mean(axis=0)  # 60 chains of 100 kept sweeps
    assert np.abs(drawn - mean / total).max() < 0.08
    side = np.linspace(-8.0, 8.0, 161)  # a missing cell is summed out
    whole = model.score_samples(np.column_stack([np.full(161, 0.5), side, np.full(161, 0.8)]))
    expected = np.log(np.exp(whole).sum() * (side[1] - side[0]))
    assert model.score([[0.5, np.nan, 0.8]]) == pytest.approx(expected, abs=0.2)


@pytest.mark.parametrize("weights", ["binary", "gaussian"])
def test_scores_that_are_estimated_are_near_those_of_all_combinations(small, monkeypatch, weights):
    x, _ = small
    model = mk.LatentFeatures(weights, max_iter=40, n_init=1, random_state=0).fit(x)
    rows = x[:20].copy()
    rows[::4, 1] = np.nan if weights == "binary" else rows[::4, 1]
    exact = model.score_samples(rows)
    monkeypatch.setattr("markovia.learning.latent.held_features.MOST_ENUMERATED", 0)
    estimated = model.score_samples(rows)
    assert np.abs(estimated - exact).max() < 0.5
    assert abs((estimated - exact).mean()) < 0.05
    np.testing.assert_array_equal(model.score_samples(rows), estimated)


def test_a_feature_that_no_other_new_row_has_keeps_its_chance(small, monkeypatch):
    x, _ = small
    model = mk.LatentFeatures(max_iter=40, n_init=1, random_state=0).fit(x)
    model.chances_ = np.linspace(0.5, 0.05, model.n_components_)
    row = model.components_.sum(axis=0, keepdims=True) * 0.6
    exact = model.transform(row)
    monkeypatch.setattr("markovia.learning.latent.held_features.MOST_ENUMERATED", 0)
    monkeypatch.setattr("markovia.learning.latent.held_features.SWEEPS", 6_000)
    np.testing.assert_allclose(model.transform(row), exact, atol=0.06)


def test_a_run_that_was_cut_ends_like_one_that_was_not(small, tmp_path):
    x, _ = small

    def model(sweeps, file=None):
        return mk.LatentFeatures(max_iter=sweeps, burn_in=5, n_init=1, random_state=1, checkpoint=file)

    file = tmp_path / "run.npz"
    model(30, file).fit(x)
    resumed = model(60, file).fit(x)
    whole = model(60).fit(x)
    assert resumed.history_ == whole.history_
    assert resumed.n_iter_ == 60
    with pytest.raises(InvalidArgument, match="of other data or settings"):
        model(60, file).fit(x + 1)


def test_the_same_seed_gives_the_same_answer_and_missing_cells_are_filled(small):
    x, model = small
    again = mk.LatentFeatures(max_iter=60, n_init=1, random_state=0).fit(x)
    assert (again.components_ == model.components_).all()
    gaps = x.copy()
    gaps[::7, 1] = np.nan
    filled = mk.LatentFeatures(max_iter=60, n_init=1, random_state=0).fit(gaps)
    rebuilt = filled.inverse_transform(filled.transform(gaps))
    assert np.abs(rebuilt[::7, 1] - x[::7, 1]).mean() < np.abs(x[:, 1] - x[:, 1].mean()).mean()


def test_fixed_scales_are_held_and_no_features_is_an_answer():
    x = 0.3 * np.random.default_rng(0).normal(size=(30, 4))
    model = mk.LatentFeatures(
        noise_std=0.3, feature_std=2.0, concentration=0.5, max_iter=40, random_state=0
    ).fit(x)
    assert (model.noise_std_, model.feature_std_, model.concentration_) == (pytest.approx(0.3), 2.0, 0.5)
    assert model.n_components_ == 0
    assert model.transform(x).shape == (30, 0)
    assert model.score(x) == pytest.approx(stats.norm(0, 0.3).logpdf(x).sum(axis=1).mean())


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"weights": "real"}, "weights= is 'binary' or 'gaussian'"),
        ({"weights": "gaussian", "method": "collapsed"}, "is for weights='binary'"),
        ({"max_iter": 0}, "max_iter= is a whole number, 1 or more"),
        ({"burn_in": 1000}, "burn_in=1000 leaves no draws of max_iter=1000"),
        ({"noise_std": -1.0}, "noise_std= is a positive number"),
        ({"n_init": 0}, "n_init= is a whole number"),
    ],
)
def test_bad_settings_are_answered_with_a_sentence(settings, words):
    with pytest.raises(InvalidArgument, match=words):
        mk.LatentFeatures(**settings).fit(np.ones((3, 2)))


def test_an_empty_column_is_named_and_pictures_are_drawn(small):
    import matplotlib

    matplotlib.use("agg")
    _, model = small
    with pytest.raises(InvalidArgument, match="all cells of the column 'x1' are missing"):
        mk.LatentFeatures().fit([[1.0, np.nan], [2.0, np.nan]])
    assert model.plot().get_title() == f"{model.n_components_} features"
    assert model.plot(shape=(1, 3)).images
    with pytest.raises(InvalidArgument, match="3 places"):
        model.plot(shape=(2, 2))


def test_a_saved_model_answers_the_same(small, tmp_path):
    x, model = small
    model.save(tmp_path / "features.json")
    again = mk.load(tmp_path / "features.json")
    assert (again.transform(x) == model.transform(x)).all()
    assert again.posterior_.n_features() == model.posterior_.n_features()
