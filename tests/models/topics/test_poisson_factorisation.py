"""Poisson factorisation: recovery, sparse and dense alike, resuming, bad input."""

import numpy as np
import pytest
from scipy import sparse

import markovia as mk
from markovia.errors import InvalidArgument


def data(seed=0, rows=150, k=4, columns=30):
    rng = np.random.default_rng(seed)
    profiles = rng.dirichlet(np.full(columns, 0.1), k)
    return profiles, rng.poisson(40 * rng.gamma(0.5, 2.0, (rows, k)) @ profiles)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gibbs", "vb"])
def test_the_factors_of_counts_are_found_and_their_number_within_one(method):
    profiles, counts = data()
    model = mk.topics.PoissonFactorisation(method=method, random_state=0).fit(counts)
    assert abs(model.n_components_ - 4) <= 1
    gaps = np.abs(model.components_[:, None] - profiles).sum(axis=2).min(axis=0)
    assert (gaps < 0.25).all()
    np.testing.assert_allclose(model.components_.sum(axis=1), 1.0)
    rebuilt = model.inverse_transform(model.transform(counts))
    assert np.corrcoef(rebuilt.ravel(), counts.ravel())[0, 1] > 0.97
    _, other = data(1)
    assert model.score(counts) > model.score(other)


def test_a_given_number_of_factors_is_kept():
    _, counts = data()
    model = mk.topics.PoissonFactorisation(3, max_iter=40, random_state=0).fit(counts)
    assert model.components_.shape == (3, 30)
    assert len(model.history_) == 40


@pytest.mark.parametrize("method", ["gibbs", "vb"])
def test_sparse_counts_give_the_same_answer(method):
    _, counts = data(rows=40)
    dense = mk.topics.PoissonFactorisation(3, method=method, max_iter=15, tol=1e-3, random_state=0).fit(
        counts
    )
    same = mk.topics.PoissonFactorisation(3, method=method, max_iter=15, tol=1e-3, random_state=0).fit(
        sparse.csr_matrix(counts)
    )
    np.testing.assert_allclose(dense.components_, same.components_)
    np.testing.assert_allclose(dense.transform(counts), same.transform(sparse.csr_array(counts)))


def test_new_rows_get_the_activities_that_maximise_their_bound():
    _, counts = data(rows=60)
    model = mk.topics.PoissonFactorisation(4, max_iter=60, random_state=0).fit(counts)
    found = model.transform(counts[:5])
    # at the fixed point, expected counts of factors plus the prior make the activities
    a, w = model.activity_prior, model.weights_
    totals = (found / w * (a + w) - a).sum(axis=1)
    np.testing.assert_allclose(totals, counts[:5].sum(axis=1), rtol=1e-4)


def test_a_run_that_was_cut_ends_like_one_that_was_not(tmp_path):
    _, counts = data(rows=30)

    def model(sweeps, file=None):
        return mk.topics.PoissonFactorisation(3, max_iter=sweeps, random_state=1, checkpoint=file)

    file = tmp_path / "run.npz"
    model(10, file).fit(counts)
    assert model(20, file).fit(counts).history_ == model(20).fit(counts).history_


def test_variational_bayes_warns_when_it_was_cut():
    _, counts = data(rows=30)
    with pytest.warns(UserWarning, match="still gained after 3 steps"):
        mk.topics.PoissonFactorisation(method="vb", max_iter=3, random_state=0).fit(counts)


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ([[1.5, 2.0]], "row 0 of X holds 1.5 in the column 'x0'; counts are whole numbers"),
        ([[-1, 2]], "Negative values in data"),
        ([[0, 0], [0, 0]], "all counts are 0"),
        ([[np.nan, 1]], "row 0 of X misses 'x0'"),
    ],
)
def test_bad_counts_are_answered_with_a_sentence(counts, words):
    with pytest.raises(InvalidArgument, match=words):
        mk.topics.PoissonFactorisation(2).fit(counts)


def test_bad_settings_are_answered_with_a_sentence():
    with pytest.raises(InvalidArgument, match="method= is 'gibbs' or 'vb'"):
        mk.topics.PoissonFactorisation(method="em").fit([[1, 2]])
    with pytest.raises(InvalidArgument, match="concentration= is a number, above 0"):
        mk.topics.PoissonFactorisation(concentration=0).fit([[1, 2]])


def test_a_saved_model_answers_the_same(tmp_path):
    _, counts = data(rows=30)
    model = mk.topics.PoissonFactorisation(3, max_iter=10, random_state=0).fit(counts)
    model.save(tmp_path / "factors.json")
    assert (mk.load(tmp_path / "factors.json").transform(counts) == model.transform(counts)).all()


def test_a_corpus_is_read_as_its_counts_and_new_documents_in_the_same_words():
    texts = ["cat dog cat", "dog cat dog", "sun rain sun", "rain sun rain"] * 10
    corpus = mk.topics.Corpus.read(texts)
    model = mk.topics.PoissonFactorisation(2, max_iter=30, random_state=0).fit(corpus)
    same = mk.topics.PoissonFactorisation(2, max_iter=30, random_state=0).fit(corpus.counts())
    assert (model.components_ == same.components_).all()
    new = model.transform(mk.topics.Corpus.read(["sun cat bird", "cat"]))  # other words, and in another order
    assert np.allclose(new, model.transform([[1, 0, 0, 1], [1, 0, 0, 0]]))
