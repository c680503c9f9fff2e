"""Independent components against scikit-learn and known sources; files of estimators."""

import numpy as np
import pytest
from sklearn.decomposition import FastICA

import markovia as mk
from markovia.errors import MarkoviaError

RNG = np.random.default_rng(0)
SOURCES = np.column_stack([RNG.uniform(-1, 1, 2000), RNG.laplace(size=2000), np.sign(RNG.normal(size=2000))])
MIXING = np.array([[1.0, 0.5, 0.2], [0.3, 1.0, -0.5], [0.2, -0.4, 3.0]])
ROWS = SOURCES @ MIXING.T + [1.0, 2.0, 3.0]


@pytest.mark.parametrize("contrast", ["logcosh", "exp", "cube"])
def test_sources_are_found_up_to_order_and_sign(contrast):
    model = mk.mixtures.ICA(contrast=contrast, random_state=0).fit(ROWS)
    found = model.transform(ROWS)
    match = np.abs(np.corrcoef(SOURCES.T, found.T)[:3, 3:])
    assert sorted(match.argmax(axis=1)) == [0, 1, 2]
    assert match.max(axis=1).min() > 0.99
    assert np.allclose(found.std(axis=0), 1.0)
    assert np.allclose(model.inverse_transform(found), ROWS)
    theirs = FastICA(fun=contrast, random_state=0, whiten="unit-variance").fit_transform(ROWS)
    assert np.abs(np.corrcoef(theirs.T, found.T)[:3, 3:]).max(axis=1).min() > 0.999


def test_fewer_sources_than_columns_are_found_in_the_space_they_span():
    rows = SOURCES[:, :2] @ RNG.normal(size=(2, 5))
    model = mk.mixtures.ICA(2, random_state=0).fit(rows + 1e-6 * RNG.normal(size=rows.shape))
    assert np.abs(np.corrcoef(SOURCES[:, :2].T, model.transform(rows).T)[:2, 2:]).max(axis=1).min() > 0.99


def test_bad_input_gets_a_sentence():
    with pytest.raises(MarkoviaError, match="n_components=4 is more than 2000 rows of 3 columns have"):
        mk.mixtures.ICA(4).fit(ROWS)
    with pytest.raises(MarkoviaError, match="the column 'x1' does not vary"):
        mk.mixtures.ICA().fit(np.column_stack([ROWS[:, 0], np.ones(2000)]))
    with pytest.raises(MarkoviaError, match="contrast= is 'logcosh', 'exp' or 'cube'"):
        mk.mixtures.ICA(contrast="tanh").fit(ROWS)


@pytest.mark.parametrize(
    "model",
    [
        mk.KMeans(3, random_state=0),
        mk.KMeans(2, metric="mahalanobis", random_state=0),
        mk.mixtures.FactorAnalysis(1),
        mk.mixtures.ProbabilisticPCA(1),
        mk.mixtures.ICA(random_state=0),
        mk.mixtures.RegressionMixture(2, random_state=0),
        mk.mixtures.MixtureOfExperts(2, random_state=0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_files_keep_what_was_learned(tmp_path, model):
    rows = ROWS[:120]
    model.fit(rows, rows[:, 0] - rows[:, 1])
    mk.save(model, tmp_path / "model.json")
    back = mk.load(tmp_path / "model.json")
    ask = "transform" if hasattr(model, "transform") else "predict"
    assert type(back) is type(model)
    assert np.array_equal(getattr(back, ask)(rows), getattr(model, ask)(rows))
