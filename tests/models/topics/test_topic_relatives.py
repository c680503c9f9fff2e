"""Relatives of LDA: each finds again what it was drawn from, speaks plainly of bad input, and keeps its promises."""

from contextlib import nullcontext

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from sklearn.base import clone

import markovia as mk
from markovia.errors import ConvergenceWarning, InvalidArgument
from markovia.learning.latent.correlated_topics import fewest_correlations
from markovia.models.topics.ailments import AilmentTopics
from markovia.models.topics.authors import AuthorTopics
from markovia.models.topics.bigram import BigramTopics
from markovia.models.topics.correlated import CorrelatedTopics
from markovia.models.topics.dynamic import DynamicTopics
from markovia.models.topics.hmm_lda import HMMLDA
from markovia.models.topics.labelled import LabelledLDA
from markovia.models.topics.lsi import LSI
from markovia.models.topics.plsi import PLSI
from markovia.models.topics.supervised import SupervisedLDA
from markovia.models.topics.tied import TiedTopics
from markovia.models.topics.unigrams import UnigramMixture

V, K = 40, 3
PLAIN = [UnigramMixture, PLSI, CorrelatedTopics, TiedTopics, BigramTopics, HMMLDA, LSI, AilmentTopics]
INFORMED = [LabelledLDA, AuthorTopics, SupervisedLDA, DynamicTopics]


def topics(rng, k=K, v=V):
    return rng.dirichlet(np.full(v, 0.08), k)


def documents(rng, theta, phi, length=60):
    """Return counts of documents drawn from proportions and topics."""
    return csr_array(np.stack([rng.multinomial(length, t @ phi) for t in theta]))


def distances(found, true):
    """Return total variation distances of matched rows, and where each true row was found."""
    far = 0.5 * np.abs(true[:, None] - found[None]).sum(axis=2)
    rows, places = linear_sum_assignment(far)
    return far[rows, places], places


def test_a_mixture_of_unigrams_finds_the_kind_of_each_document():
    rng = np.random.default_rng(0)
    phi, kinds = topics(rng), rng.integers(0, K, 200)
    model = UnigramMixture(K, random_state=0).fit(documents(rng, np.eye(K)[kinds], phi))
    far, places = distances(model.topic_word_, phi)
    assert far.max() < 0.08
    counts = documents(rng, np.eye(K)[kinds], phi)
    assert (model.predict(counts) == places[kinds]).mean() > 0.99
    assert model.bic(counts) < UnigramMixture(1).fit(counts).bic(counts)


def test_one_topic_for_all_is_the_frequency_of_words():
    rng = np.random.default_rng(1)
    counts = documents(rng, np.ones((20, 1)), topics(rng, 1))
    model = UnigramMixture(1, smoothing=1e-9).fit(counts)
    shares = counts.toarray().sum(axis=0) / counts.sum()
    assert np.allclose(model.topic_word_[0], shares, atol=1e-8)
    seen = shares > 0
    assert np.isclose(
        model.log_prob(counts).sum(), (counts.toarray() @ np.log(np.where(seen, shares, 1.0))).sum()
    )


@pytest.mark.slow
def test_plsi_finds_topics_and_folds_in_new_documents():
    rng = np.random.default_rng(2)
    phi, theta = topics(rng), rng.dirichlet(np.full(K, 0.3), 300)
    model = PLSI(K, n_init=3, random_state=0).fit(documents(rng, theta, phi))
    far, places = distances(model.topic_word_, phi)
    assert far.max() < 0.1
    new = rng.dirichlet(np.full(K, 0.3), 50)
    assert np.abs(model.transform(documents(rng, new, phi, 2_000))[:, places] - new).max() < 0.08
    assert np.allclose(model.transform(documents(rng, theta[:1], phi)).sum(axis=1), 1.0)


def test_tempering_by_held_out_words_predicts_new_words_better():
    rng = np.random.default_rng(3)
    phi, theta = topics(rng, 2, 60), rng.dirichlet(np.full(2, 0.5), 80)
    counts, new = documents(rng, theta, phi, 25), documents(rng, rng.dirichlet(np.full(2, 0.5), 80), phi, 60)
    plain = PLSI(12, random_state=0).fit(counts)
    tempered = PLSI(12, tempering="auto", random_state=0).fit(counts)
    assert plain.power_ == 1.0
    assert tempered.power_ < 1.0
    assert tempered.perplexity(new) < plain.perplexity(new)


def test_lsi_by_singular_values_is_the_best_approximation_of_the_weights():
    rng = np.random.default_rng(4)
    counts = documents(rng, rng.dirichlet(np.full(K, 0.2), 30), topics(rng))
    shares, having = counts.toarray() / 60, (counts.toarray() > 0).mean(axis=0)
    weights = shares * np.log(1.0 / np.where(having > 0, having, 1.0))
    model = LSI(4, random_state=0).fit(counts)
    values = np.linalg.svd(weights, compute_uv=False)
    assert np.allclose(model.singular_values_, values[:4])
    assert np.allclose(model.transform(counts), model.doc_factors_)
    assert np.allclose(model.transform(counts[:1]), model.doc_factors_[:1])
    name, cosine = model.search([f"x{w}" for w in np.repeat(np.arange(V), counts.toarray()[7])], 1)[0]
    assert name == "7"
    assert np.isclose(cosine, 1.0)
    assert np.isclose(
        np.linalg.norm(weights - model.doc_factors_ @ model.components_) ** 2, (values[4:] ** 2).sum()
    )


def test_lsi_without_negative_numbers_finds_topics_and_has_no_perplexity():
    rng = np.random.default_rng(5)
    phi = topics(rng)
    theta = rng.dirichlet(np.full(K, 0.1), 200)
    counts = documents(rng, theta, phi)
    model = LSI(K, method="nmf", random_state=0).fit(counts)
    assert model.components_.min() >= 0.0
    assert np.abs(model.transform(counts) - model.doc_factors_).max() < 0.02
    _, places = distances(model.topic_word_, phi)
    assert (model.transform(counts)[:, places].argmax(axis=1) == theta.argmax(axis=1)).mean() > 0.9
    with pytest.raises(InvalidArgument, match="PLSI and LDA have one"):
        model.perplexity(counts)


def test_correlated_topics_find_which_topics_come_together():
    rng = np.random.default_rng(6)
    k, phi = 6, topics(rng, 6)
    true = np.eye(k)
    true[0, 1] = true[1, 0] = 0.8
    true[2, 3] = true[3, 2] = -0.6
    covariance = 3.0 * true
    logits = rng.multivariate_normal(np.zeros(k), covariance, 600)
    theta = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    model = CorrelatedTopics(k, random_state=0).fit(documents(rng, theta, phi, 300))
    far, places = distances(model.topic_word_, phi)
    assert far.max() < 0.1
    assert np.diff(model.history_).min() > -1e-6
    found = model.correlation_[np.ix_(places, places)]
    drawn = fewest_correlations(np.cov(logits.T))  # what the documents' own logits say
    drawn /= np.sqrt(np.outer(np.diag(drawn), np.diag(drawn)))
    off = ~np.eye(k, dtype=bool)
    assert np.abs(found - drawn)[off].mean() < 0.06
    assert np.abs(found - drawn).max() < 0.2  # a factored posterior overstates what keeps topics apart
    number = [int(name.split(":")[0]) for name in model.topic_graph().graph.nodes]
    edges = {frozenset(int(name.split(":")[0]) for name in edge) for edge in model.topic_graph().edges}
    assert sorted(number) == list(range(k))
    assert edges == {frozenset(places[:2].tolist()), frozenset(places[2:4].tolist())}
    new = documents(rng, theta[:30], phi, 3_000)
    assert np.abs(model.transform(new)[:, places] - theta[:30]).mean() < 0.03


@pytest.mark.parametrize("k", [2, 3])
def test_fewer_than_four_topics_have_proportions_and_no_correlations(k):
    rng = np.random.default_rng(8)
    model = CorrelatedTopics(k, random_state=0, max_iter=30, tol=1e-4).fit(
        documents(rng, rng.dirichlet(np.ones(k), 60), topics(rng, k))
    )
    assert model.transform([model.vocabulary_[:2]]).sum(axis=1) == pytest.approx(1.0)
    for ask in (lambda: model.correlation_, model.topic_graph):
        with pytest.raises(
            InvalidArgument, match=f"{k} topics determine no correlation.*n_components=4 or more"
        ):
            ask()


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_proportions_determine_correlations_from_four_topics_on(k):
    """Log ratios are linear in the covariances; what they leave free is the null space."""
    pairs = [(i, j) for i in range(k) for j in range(i, k)]
    # Cov(eta_i - eta_0, eta_j - eta_0) as a row over the covariance's entries
    rows = np.zeros((k * (k - 1) // 2, len(pairs)))
    at = {pair: c for c, pair in enumerate(pairs)}
    for r, (i, j) in enumerate(pair for pair in pairs if pair[0]):
        for (a, b), sign in (((i, j), 1), ((0, i), -1), ((0, j), -1), ((0, 0), 1)):
            rows[r, at[a, b]] += sign
    free = np.linalg.svd(rows)[2][np.linalg.matrix_rank(rows) :]
    off = [at[i, j] for i, j in pairs if i < j]
    seen = len(off) - np.linalg.matrix_rank(free[:, off])  # covariances that nothing free moves
    assert seen == max(k * (k - 1) // 2 - k, 0)
    assert (seen > 0) == (k >= 4)


def test_the_fewest_correlations_say_the_same_of_differences_of_logits():
    rng = np.random.default_rng(9)
    root = rng.normal(size=(5, 5))
    covariance = 0.2 * root @ root.T + np.diag([1.0, 2.0, 3.0, 1.5, 2.5])
    found = fewest_correlations(covariance)

    def apart(c):
        return np.diag(c)[:, None] + np.diag(c) - 2.0 * c

    assert apart(found) == pytest.approx(apart(covariance), abs=1e-9)
    off = ~np.eye(5, dtype=bool)
    shifts = rng.normal(0.0, 0.3, (200, 5))
    others = [np.abs(found + s + s[:, None])[off].sum() for s in shifts]
    assert np.abs(found)[off].sum() < min(others)
    true = np.diag([2.0, 1.0, 3.0, 1.5, 2.0])
    true[1, 3] = true[3, 1] = -0.9  # of five topics, one pair is found again
    shift = rng.normal(size=5)
    assert fewest_correlations(true + shift + shift[:, None]) == pytest.approx(true, abs=1e-5)


def test_labels_are_topics_and_are_found_again_in_new_documents():
    rng = np.random.default_rng(7)
    phi = topics(rng)
    sets = [sorted(rng.choice(K, rng.integers(1, 3), replace=False).tolist()) for _ in range(200)]
    theta = np.zeros((200, K))
    for d, own in enumerate(sets):
        theta[d, own] = rng.dirichlet(np.ones(len(own)))
    names = ["art", "law", "war"]
    counts = documents(rng, theta, phi)
    model = LabelledLDA(random_state=0, max_iter=100).fit(counts, [[names[k] for k in own] for own in sets])
    assert model.labels_ == names
    assert distances(model.topic_word_, phi)[1].tolist() == [0, 1, 2]
    assert 0.5 * np.abs(model.topic_word_ - phi).sum(axis=1).max() < 0.1
    assert (model.doc_topic_[theta == 0.0] == 0.0).all()
    new = rng.integers(0, K, 60)
    assert (model.predict(documents(rng, np.eye(K)[new], phi)) == np.array(names)[new]).mean() > 0.95
    shared = LabelledLDA(n_shared=1, random_state=0, max_iter=20).fit(counts, [names[own[0]] for own in sets])
    assert shared.components_.shape == (4, V)
    assert shared.predict_proba(counts).shape == (200, 3)


def test_authors_have_the_proportions_their_documents_were_drawn_with():
    rng = np.random.default_rng(8)
    phi, by_author = (
        topics(rng),
        np.array([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.0, 0.1, 0.9], [0.85, 0.15, 0.0]]),
    )
    authors = [rng.choice(4, 2, replace=False).tolist() for _ in range(300)]
    theta = np.stack([by_author[a].mean(axis=0) for a in authors])
    model = AuthorTopics(K, random_state=0, max_iter=150).fit(documents(rng, theta, phi), authors)
    far, places = distances(model.topic_word_, phi)
    assert far.max() < 0.1
    assert np.abs(model.author_topic_[:, places] - by_author).max() < 0.1
    assert model.similar_authors(0, 1)[0][0] == 3
    with pytest.raises(InvalidArgument, match="has no author"):
        AuthorTopics(2).fit(["aa bb", "cc"], [["x"], []])


def test_topics_watched_by_numbers_find_their_coefficients():
    rng = np.random.default_rng(9)
    phi, theta = topics(rng), rng.dirichlet(np.full(K, 0.5), 300)
    coef = np.array([-3.0, 1.0, 6.0])
    counts, new = documents(rng, theta, phi), rng.dirichlet(np.full(K, 0.5), 100)
    y = theta @ coef + rng.normal(0.0, 0.3, 300)
    y[:20] = np.nan
    model = SupervisedLDA(K, random_state=0, max_iter=150).fit(counts, y)
    far, places = distances(model.topic_word_, phi)
    assert far.max() < 0.1
    assert np.abs(model.coef_[places] - coef).max() < 0.8
    assert model.score(documents(rng, new, phi), new @ coef) > 0.85


def test_topics_watched_by_classes_tell_apart_what_words_alone_do_not():
    rng = np.random.default_rng(10)
    phi, theta = topics(rng, 4), rng.dirichlet(np.full(4, 0.3), 400)
    y = np.where(theta[:, 0] + theta[:, 1] > 0.5, "left", "right")
    model = SupervisedLDA(4, random_state=0, max_iter=100).fit(documents(rng, theta, phi), y)
    new = rng.dirichlet(np.full(4, 0.3), 200)
    right = np.where(new[:, 0] + new[:, 1] > 0.5, "left", "right")
    counts = documents(rng, new, phi)
    assert model.classes_.tolist() == ["left", "right"]
    assert model.score(counts, right) > 0.85
    assert np.allclose(model.predict_proba(counts).sum(axis=1), 1.0)


def test_dynamic_topics_follow_words_that_drift():
    rng = np.random.default_rng(11)
    first = np.log(topics(rng, 2) + 1e-3)
    paths = first + np.concatenate([np.zeros((1, 2, V)), rng.normal(0, 0.4, (5, 2, V))]).cumsum(axis=0)
    laws = np.exp(paths) / np.exp(paths).sum(axis=2, keepdims=True)
    theta = rng.dirichlet(np.full(2, 0.4), (6, 60))
    counts = csr_array(np.vstack([documents(rng, theta[t], laws[t], 100).toarray() for t in range(6)]))
    years = np.repeat(1990 + np.arange(6), 60)
    order = rng.permutation(360)
    model = DynamicTopics(2, drift=0.16, random_state=0).fit(counts[order], years[order])
    _, places = distances(model.topic_word_, laws.mean(axis=0))
    found = model.topics_over_time_[:, places]
    far = 0.5 * np.abs(found - laws).sum(axis=2).mean()
    still = 0.5 * np.abs(laws.mean(axis=0) - laws).sum(axis=2).mean()
    assert 3.0 * far < still
    assert far < 0.05
    assert np.allclose(model.transform(counts[order], years[order]), model.doc_topic_, atol=0.02)
    assert np.abs(model.doc_topic_[:, places] - theta.reshape(-1, 2)[order]).mean() < 0.05
    low, high = model.interval("x7")
    inside = (low <= laws[:, np.argsort(places), 7]) & (laws[:, np.argsort(places), 7] <= high)
    assert inside.mean() > 0.8
    assert (model.transform(counts[:5], [2030] * 5) == model.transform(counts[:5], [1995] * 5)).all()


MAJOR = np.array(
    [6.35, 2.23, 3.48, 2.33, 4.38, 4.09, 2.52, 5.19, 2.39, 3.66, 2.29, 2.88]
)  # Krumhansl and Kessler (1982)
MINOR = np.array([6.33, 2.68, 3.52, 5.38, 2.60, 3.53, 2.54, 4.75, 3.98, 2.69, 3.34, 3.17])
NOTES = ["C", "C#", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B"]


def pieces(rng, n=100, length=300):
    """Return counts of notes of pieces that are mostly in one key, and those keys; scales are sharper than the prior."""
    profiles = np.stack([MAJOR, MINOR]) ** 3
    profiles /= profiles.sum(axis=1, keepdims=True)
    keys = rng.integers(0, 24, n)
    laws = np.stack([np.roll(profiles[k // 12], k % 12) for k in range(24)])
    theta = (
        0.85 * np.eye(24)[keys] + 0.15 * np.eye(24)[(keys + 7) % 12 + 12 * (keys // 12)]
    )  # the dominant now and then
    return documents(rng, theta, laws, length), keys, profiles


def test_twenty_four_keys_come_from_two_profiles():
    rng = np.random.default_rng(12)
    counts, keys, profiles = pieces(rng)
    names = [f"{note} {mode}" for mode in ("major", "minor") for note in NOTES]
    model = TiedTopics(
        2,
        profile_prior=np.stack([MAJOR, MINOR]),
        names=names,
        doc_topic_prior=0.05,
        random_state=0,
        max_iter=200,
    ).fit(counts)
    found = model.transform(counts)
    assert found.shape == (100, 24)
    assert (found.argmax(axis=1) == keys).mean() > 0.9
    assert 0.5 * np.abs(model.profiles_ - profiles).sum(axis=1).max() < 0.06
    assert np.allclose(
        model.topic_word_[7], np.roll(model.profiles_[0], 7)
    )  # G major is C major, seven semitones up
    assert model.topic_names_[7] == "G major"


def test_one_permutation_that_moves_nothing_is_lda():
    rng = np.random.default_rng(13)
    phi, theta = topics(rng), rng.dirichlet(np.full(K, 0.3), 100)
    counts = documents(rng, theta, phi)
    tied = TiedTopics(K, permutations=[np.arange(V)], random_state=0, max_iter=80).fit(counts)
    everything = LabelledLDA(n_shared=K, random_state=0, max_iter=80, doc_topic_prior=1 / K).fit(
        counts, [[]] * 100
    )
    assert np.array_equal(tied.components_, everything.components_)


def test_bigrams_tell_words_by_the_word_before():
    rng = np.random.default_rng(14)
    chains = rng.dirichlet(np.full(12, 0.05), (2, 12))
    texts = []
    for _ in range(150):
        chain, word, text = chains[rng.integers(2)], rng.integers(12), []
        for _ in range(30):
            word = rng.choice(12, p=chain[word])
            text.append(f"w{word:02d}")
        texts.append(text)
    model = BigramTopics(2, random_state=0, max_iter=150).fit(texts[:120])
    probabilities = np.array(
        [[dict(model.next_words(f"w{i:02d}", 12, topic=k)) for i in range(12)] for k in range(2)]
    )
    found = np.array([[[p.get(f"w{j:02d}", 0.0) for j in range(12)] for p in row] for row in probabilities])
    assert np.allclose(found.sum(axis=2), 1.0)
    far = min(0.5 * np.abs(found[list(o)] - chains).sum(axis=2).mean() for o in ((0, 1), (1, 0)))
    assert far < 0.15
    assert model.perplexity(texts[120:]) < 0.6 * PLSI(2, random_state=0).fit(texts[:120]).perplexity(
        texts[120:]
    )


@pytest.mark.slow
def test_syntax_and_topics_are_told_apart():
    rng = np.random.default_rng(15)
    step = np.array([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]])
    phi = np.zeros((2, 30))
    phi[0, :10], phi[1, 10:20] = 0.1, 0.1
    syntax = np.zeros((3, 30))
    syntax[1, 20:25], syntax[2, 25:] = 0.2, 0.2
    texts = []
    for _ in range(150):
        theta, c, text = rng.dirichlet([0.3, 0.3]), 0, []
        for _ in range(40):
            c = rng.choice(3, p=step[c])
            text.append(f"{rng.choice(30, p=theta @ phi if c == 0 else syntax[c]):02d}")
        texts.append(text)
    model = HMMLDA(2, 3, random_state=0, max_iter=150).fit(texts[:120])
    assert distances(model.topic_word_, phi)[0].max() < 0.1
    laws = model.class_counts_[1:] / model.class_counts_[1:].sum(axis=1, keepdims=True)
    far, places = distances(laws, syntax[1:])
    assert far.max() < 0.1
    order = np.array([0, *(places + 1)])
    assert np.abs(model.transition_[np.ix_(order, order)] - step).max() < 0.06
    tokens = [t for text in model.assign(texts[120:]) for t in text]
    assert np.mean([(int(word) < 20) == (c == 0) for word, c, _ in tokens]) > 0.97
    assert model.perplexity(texts[120:]) < 0.6 * UnigramMixture(1).fit(texts[:120]).perplexity(texts[120:])


def test_one_class_is_lda():
    rng = np.random.default_rng(16)
    phi, theta = topics(rng), rng.dirichlet(np.full(K, 0.3), 150)
    counts = documents(rng, theta, phi)
    model = HMMLDA(K, 1, random_state=0, max_iter=120).fit(counts)
    assert distances(model.topic_word_, phi)[0].max() < 0.12


def known(rng, kind, n):
    names = ["a", "b", "c"]
    if kind is SupervisedLDA:
        return rng.normal(size=n)
    return rng.integers(0, 3, n) if kind is DynamicTopics else [[names[i]] for i in rng.integers(0, 3, n)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", PLAIN + INFORMED)
def test_same_seed_same_model_and_clones_and_files_hold_it(kind, tmp_path):
    rng = np.random.default_rng(17)
    counts = documents(rng, rng.dirichlet(np.ones(K), 15), topics(rng, K, 12), 20)
    y = known(rng, kind, 15) if kind in INFORMED else None
    given = {"max_iter": 20, "random_state": 3} | ({} if kind is LabelledLDA else {"n_components": 2})
    with pytest.warns() if kind in (PLSI, CorrelatedTopics, DynamicTopics) else nullcontext():
        one = kind(**given).fit(counts, y)
        two = clone(one).fit(counts, y)
    assert np.array_equal(one.components_, two.components_)
    assert np.array_equal(one.transform(counts), two.transform(counts))
    assert one.transform(counts).shape == (15, len(one.components_))
    assert list(one.get_feature_names_out()) == [
        f"{kind.__name__.lower()}{i}" for i in range(len(one.components_))
    ]
    one.save(tmp_path / "model.json")
    back = mk.load(tmp_path / "model.json")
    assert type(back) is kind
    assert np.array_equal(back.transform(counts), one.transform(counts))
    assert back.top_words(3) == one.top_words(3)
    empty = csr_array((1, 12), dtype=int)
    assert np.isfinite(one.transform(empty)).all()


@pytest.mark.parametrize("kind", PLAIN + INFORMED)
def test_a_failed_fit_leaves_the_model_as_it_was(kind):
    model = kind(random_state=0)
    with pytest.raises(InvalidArgument, match="whole numbers"):
        model.fit([[0.5, 1.0], [1.0, 2.0]], [1, 2])
    assert not hasattr(model, "components_")
    assert not hasattr(model, "vocabulary_")


@pytest.mark.parametrize("kind", INFORMED)
def test_what_is_known_of_documents_must_be_there_for_each(kind):
    with pytest.raises(InvalidArgument, match="y= is"):
        kind().fit(["aa bb", "bb cc"])
    with pytest.raises(InvalidArgument, match=r"documents|a document"):
        kind().fit(["aa bb", "bb cc"], [1.5, 2.5, 3.5])


BAD = [
    (PLSI, {"tempering": 1.5}, "tempering= is a number above 0, at most 1, or 'auto', or None, not 1.5"),
    (PLSI, {"n_components": 0}, "n_components= is a whole number, 1 or more, not 0"),
    (CorrelatedTopics, {"n_components": 1}, "n_components= is a whole number, 2 or more, not 1"),
    (CorrelatedTopics, {"shrinkage": 0}, "shrinkage= is a number, above 0, not 0"),
    (LSI, {"n_components": 9}, "at most the smaller of 2 documents and 3 words, not 9"),
    (LSI, {"n_components": 1, "method": "pca"}, "method= is 'svd' or 'nmf', not 'pca'"),
    (UnigramMixture, {"n_components": 3}, "need as many documents, and there are 2"),
    (TiedTopics, {"permutations": [[0, 0, 1]]}, "hold each of 0 to 2 once"),
    (TiedTopics, {"profile_prior": [[1.0, 1.0]]}, "a row of 3 words for each of 2 profiles"),
    (TiedTopics, {"names": ["x"]}, "has 1 names, and there are 2 x 3 = 6 topics"),
    (HMMLDA, {"n_classes": 0}, "n_classes= is a whole number, 1 or more, not 0"),
    (HMMLDA, {"doc_topic_prior": [0.1, 0.2], "n_components": 2}, "one number for all topics"),
    (
        BigramTopics,
        {"doc_topic_prior": -1.0},
        "doc_topic_prior= is a number above 0, or one for each of 10 topics",
    ),
]


@pytest.mark.parametrize(("kind", "settings", "words"), BAD)
def test_bad_settings_are_answered_in_one_sentence(kind, settings, words):
    with pytest.raises(InvalidArgument) as found:
        kind(**settings).fit(["aa bb", "bb cc"])
    assert words in str(found.value)
    assert "\n" not in str(found.value)


def test_bad_responses_and_documents_without_words_are_answered():
    with pytest.raises(InvalidArgument, match="has 1 class"):
        SupervisedLDA(2).fit(["aa bb", "bb cc"], ["x", "x"])
    with pytest.raises(InvalidArgument, match="holds no numbers"):
        SupervisedLDA(2, response="number").fit(["aa bb", "bb cc"], ["x", "y"])
    with pytest.raises(InvalidArgument, match="no document has a response"):
        SupervisedLDA(2).fit(["aa bb", "bb cc"], [np.nan, np.nan])
    with pytest.raises(InvalidArgument, match="no probabilities of classes"):
        SupervisedLDA(2, max_iter=5).fit(["aa bb", "bb cc"], [0.5, 1.5]).predict_proba(["aa"])
    for kind in (PLSI, HMMLDA, CorrelatedTopics):
        with pytest.raises(InvalidArgument, match="nothing to learn topics from"):
            kind().fit(csr_array((3, 4), dtype=int))
    with pytest.raises(InvalidArgument, match="every word is in all documents"):
        LSI(1).fit(["aa bb", "bb aa"])


def test_a_sampler_that_is_cut_goes_on_from_its_file(tmp_path):
    rng = np.random.default_rng(18)
    counts = documents(rng, rng.dirichlet(np.ones(K), 20), topics(rng, K, 12), 20)
    y = rng.normal(size=20)
    whole = SupervisedLDA(2, max_iter=30, burn_in=10, random_state=1).fit(counts, y)
    file = tmp_path / "run.npz"
    SupervisedLDA(2, max_iter=17, burn_in=10, random_state=1, checkpoint=file).fit(counts, y)
    went_on = SupervisedLDA(2, max_iter=30, burn_in=10, random_state=1, checkpoint=file).fit(counts, y)
    assert whole.history_ == went_on.history_
    assert np.allclose(whole.components_, went_on.components_)
    assert np.allclose(whole.coef_, went_on.coef_)


def test_learning_that_still_gains_says_so():
    rng = np.random.default_rng(19)
    counts = documents(rng, rng.dirichlet(np.ones(K), 20), topics(rng, K, 12), 20)
    with pytest.warns(ConvergenceWarning, match="still gained after 2 steps"):
        PLSI(3, max_iter=2, random_state=0).fit(counts)


def test_lsi_of_counts_factors_the_counts_themselves():
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.5, (12, 8))
    model = mk.LSI(3, weighting="counts", random_state=0).fit(counts)
    left, values, right = np.linalg.svd(counts.astype(float), full_matrices=False)
    assert model.singular_values_ == pytest.approx(values[:3], rel=1e-6)
    assert model.transform(counts) @ model.components_ == pytest.approx(
        (left[:, :3] * values[:3]) @ right[:3], abs=1e-4
    )
    every = np.array(
        [[1, 1], [2, 1], [1, 3]]
    )  # words that are everywhere weigh nothing by TF-IDF, and count here
    assert mk.LSI(1, weighting="counts", random_state=0).fit(every).singular_values_[0] > 1
    with pytest.raises(InvalidArgument, match="all documents"):
        mk.LSI(1).fit(every)
    with pytest.raises(InvalidArgument, match="weighting"):
        mk.LSI(1, weighting="log").fit(counts)


def health_posts(n=150, seed=0):
    rng = np.random.default_rng(seed)
    subjects = [
        ["flu", "bed", "cough", "fever", "fluids", "paracetamol"],
        ["tooth", "dentist", "toothache", "swelling", "braces", "filling"],
        ["game", "team", "win", "match", "goal"],
    ]
    common = ["so", "my", "day", "and", "then"]
    return [" ".join([*rng.choice(common, 4), *rng.choice(subjects[i % 3], 5)]) for i in range(n)]


SYMPTOMS = {
    "symptoms": ["cough", "fever", "toothache", "swelling", "itch"],
    "treatments": ["braces", "fluids"],
}


def test_ailments_show_their_words_by_type_and_common_words_and_other_topics_stay_outside():
    posts = health_posts()
    model = mk.topics.AilmentTopics(2, 1, word_types=SYMPTOMS, max_iter=150, random_state=1).fit(posts)
    words = model.ailment_words()
    assert {frozenset(w["symptoms"]) for w in words} == {
        frozenset(["cough", "fever"]), frozenset(["toothache", "swelling"])
    }  # fmt: skip
    flu = next(k for k, w in enumerate(words) if "cough" in w["symptoms"])
    assert words[flu]["treatments"] == ["fluids"]
    assert {"flu", "bed"} <= set(words[flu]["general"])
    assert model.topic_names_ == ["background", "topic 0", "ailment 0", "ailment 1"]
    ill = [p for i, p in enumerate(posts) if i % 3 < 2]
    truth = np.array([flu if i % 3 == 0 else 1 - flu for i in range(150) if i % 3 < 2])
    assert (model.predict(ill) == truth).mean() > 0.9
    share = model.transform(posts)[:, 2:].sum(axis=1)
    assert share[2::3].mean() < 0.5 * share[::3].mean()  # games are no ailment
    assert model.sample(3, length=8, seed=0).lengths.tolist() == [8, 8, 8]
    typed = [model.vocabulary_.index(w) for w in ("cough", "braces")]
    assert model.topic_word_[:2, typed].max() < 0.02


def test_types_of_words_are_checked():
    with pytest.raises(InvalidArgument, match="one type"):
        mk.topics.AilmentTopics(word_types={"a": ["flu"], "b": ["flu"]}).fit(health_posts(6))
    with pytest.raises(InvalidArgument, match="names no word"):
        mk.topics.AilmentTopics(word_types={"a": ["Zzz"]}).fit(health_posts(6))
    with pytest.raises(InvalidArgument, match="word_types"):
        mk.topics.AilmentTopics(word_types=["flu"]).fit(health_posts(6))
