"""Topics whose number is learned: recovered from corpora drawn from known topics, whatever the sampler."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument


def corpus_of(n_topics, n_documents, length, n_words, seed, eta=0.1, alpha=0.1):
    """Return documents drawn from latent Dirichlet allocation, and its topics."""
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(n_words, eta), n_topics)
    words = []
    for theta in rng.dirichlet(np.full(n_topics, alpha), n_documents):
        topics = rng.choice(n_topics, length, p=theta)
        words.append([rng.choice(n_words, p=phi[k]) for k in topics])
    offsets = np.arange(0, n_documents * length + 1, length)
    return mk.topics.Corpus(
        np.array(words, dtype=np.int32).ravel(), offsets, [f"w{i}" for i in range(n_words)]
    ), phi


def matched(found, true):
    """Return the largest distance of a true topic from the nearest found one."""
    return max(min(0.5 * np.abs(one - other).sum() for other in found) for one in true)


@pytest.fixture(scope="module")
def small():
    return corpus_of(4, 150, 40, 60, 0)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["direct", "franchise"])
def test_the_number_of_topics_is_found_by_default(small, method):
    corpus, phi = small
    model = mk.HDP(100, method=method, random_state=1).fit(corpus)
    assert model.n_components_ == 4 == len(model.components_)
    assert model.n_components_posterior().argmax() == 4
    assert matched(model.topic_word_, phi) < 0.15
    shares = model.transform(corpus)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert model.perplexity(corpus) < 30.0 < 60.0  # knowing nothing would be 60
    assert model.alpha_ == pytest.approx(0.4, abs=0.25)  # four topics of 0.1


@pytest.mark.slow
def test_online_inference_finds_topics_and_takes_documents_in_pieces(small):
    corpus, phi = small
    model = mk.HDP(20, method="online", truncation=20, batch_size=50, random_state=0).fit(corpus)
    assert 4 <= model.n_components_ <= 6
    assert matched(model.topic_word_, phi) < 0.3
    pieces = mk.HDP(method="online", truncation=20, random_state=0)
    for first in (0, 50, 100):
        pieces.partial_fit(corpus[np.arange(first, first + 50)], n_documents=150)
    assert pieces.components_.shape[1] == 60
    with pytest.raises(InvalidArgument, match="method='online'"):
        mk.HDP().partial_fit(corpus)


def test_a_seed_gives_the_same_topics_and_a_file_goes_on_where_it_was(small, tmp_path):
    corpus, _ = small
    whole = mk.HDP(12, random_state=3).fit(corpus)
    again = mk.HDP(12, random_state=3).fit(corpus)
    np.testing.assert_array_equal(whole.components_, again.components_)
    path = tmp_path / "run.npz"
    mk.HDP(8, burn_in=6, random_state=3, checkpoint=path).fit(corpus)
    went_on = mk.HDP(12, burn_in=6, random_state=3, checkpoint=path).fit(corpus)
    np.testing.assert_array_equal(whole.components_, went_on.components_)
    assert whole.history_ == went_on.history_


def test_a_model_is_saved_and_loaded(small, tmp_path):
    corpus, _ = small
    model = mk.HDP(10, random_state=0).fit(corpus)
    model.save(tmp_path / "hdp.json")
    back = mk.load(tmp_path / "hdp.json")
    np.testing.assert_array_equal(back.transform(corpus), model.transform(corpus))
    assert back.n_components_posterior().argmax() == model.n_components_posterior().argmax()


def test_empty_documents_are_kept():
    model = mk.HDP(10, random_state=0).fit([["a", "b"], [], ["a", "a"]])
    shares = model.transform([["a"], []])
    assert shares.shape[0] == 2
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"method": "slice"}, "method= is 'direct', 'franchise' or 'online', not 'slice'"),
        ({"max_iter": 0}, "max_iter= is a whole number, 1 or more, not 0"),
        ({"burn_in": 300}, "burn_in=300 leaves no draws of max_iter=200 sweeps"),
        ({"alpha": "much"}, "alpha= is a number, above 0, or shape and rate of a gamma prior, not 'much'"),
        ({"gamma": -1.0}, "gamma= is a number, above 0, or shape and rate of a gamma prior, not -1.0"),
        ({"min_mass": 1.0}, "min_mass= is a number from 0 up to but not 1, not 1.0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, said):
    with pytest.raises(InvalidArgument) as error:
        mk.HDP(**settings).fit([["a", "b"], ["b"]])
    assert said in str(error.value)


def test_documents_without_words_are_refused_and_the_model_stays():
    model = mk.HDP(5, random_state=0).fit([["a", "b"], ["b"]])
    before = model.components_.copy()
    with pytest.raises(InvalidArgument, match="no words"):
        model.fit([[], []])
    np.testing.assert_array_equal(model.components_, before)
