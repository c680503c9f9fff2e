"""Latent Dirichlet allocation: topics found again, bounds that climb and agree with scikit-learn's, new documents."""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.utils.estimator_checks import check_estimator

import markovia as mk
from markovia.errors import InvalidArgument, OutsideVocabularyWarning, UnknownVariable
from markovia.learning.latent.topic_documents import average_proportions

METHODS = ["gibbs", "uncollapsed", "vb", "online", "map", "ep"]


def corpus_of(k=4, v=40, d=200, n=60, seed=0):
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(v, 0.1), k)
    table = np.array([rng.multinomial(n, t @ phi) for t in rng.dirichlet(np.full(k, 0.2), d)])
    held_out = np.array([rng.multinomial(n, t @ phi) for t in rng.dirichlet(np.full(k, 0.2), 100)])
    return table, held_out, phi


TABLE, HELD_OUT, PHI = corpus_of()


def lda(method="gibbs", k=4, **options):
    passes = {"online": 30}.get(method, 60)
    return mk.LDA(
        k, **{"method": method, "max_iter": passes, "random_state": 0, "progress": False, **options}
    )


@pytest.fixture(scope="module")
def fitted():
    return {method: lda(method).fit(TABLE) for method in METHODS}


def cosines(a, b):
    return (a / np.linalg.norm(a, axis=1, keepdims=True)) @ (b / np.linalg.norm(b, axis=1, keepdims=True)).T


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_topics_that_made_the_corpus(method, fitted):
    found = fitted[method]
    alike = cosines(found.topic_word_, PHI)
    assert alike[linear_sum_assignment(-alike)].min() > 0.98
    assert found.components_.shape == (4, 40)
    shares = found.transform(HELD_OUT)
    assert shares.shape == (100, 4)
    assert shares.sum(axis=1) == pytest.approx(1.0)
    # knowing the topics themselves gives 11.8; knowing nothing gives 40
    assert found.perplexity(HELD_OUT) < 12.2
    assert found.score(HELD_OUT) == pytest.approx(-np.log(found.perplexity(HELD_OUT)))


@pytest.mark.parametrize("method", ["vb", "map"])
@pytest.mark.parametrize("given", [None, 0.3])
def test_bounds_and_posteriors_never_fall(method, given):
    model = lda(method, doc_topic_prior=given, topic_word_prior=given, tol=0.0, max_iter=40).fit(TABLE[:60])
    gains = np.diff(model.history_)
    assert len(gains) >= 20
    assert (gains > -1e-9 * abs(model.history_[-1])).all()
    assert gains[0] > 1.0


def as_scikit_learn(model, **options):
    """scikit-learn's model with our topics and priors."""
    from sklearn.decomposition._online_lda_fast import _dirichlet_expectation_2d

    other = LatentDirichletAllocation(
        model.n_components, doc_topic_prior=float(model.doc_topic_prior_[0]), mean_change_tol=1e-12,
        topic_word_prior=float(model.topic_word_prior_.flat[0]), max_doc_update_iter=5_000, random_state=0, **options,
    )  # fmt: skip
    other.partial_fit(TABLE[:2])
    other.components_ = model.components_.copy()
    other.exp_dirichlet_component_ = np.exp(_dirichlet_expectation_2d(other.components_))
    return other


def test_the_bound_the_transform_and_an_online_step_are_those_of_scikit_learn():
    priors = {"doc_topic_prior": 0.3, "topic_word_prior": 0.2}
    exact = {"mean_change_tol": 1e-12, "max_doc_update_iter": 5_000}
    model = lda("vb", max_iter=5, **priors, **exact).fit(TABLE)
    other = as_scikit_learn(model)
    assert model.bound(HELD_OUT) == pytest.approx(other.score(HELD_OUT), rel=1e-9)
    assert model.perplexity(HELD_OUT, method="bound") == pytest.approx(other.perplexity(HELD_OUT), rel=1e-7)
    assert model.transform(HELD_OUT) == pytest.approx(other.transform(HELD_OUT), abs=1e-7)
    online = lda("online", max_iter=1, total_samples=1_000, **priors, **exact).partial_fit(TABLE[:50])
    other = as_scikit_learn(online, total_samples=1_000)
    other.n_batch_iter_ = online.n_batch_iter_
    online.partial_fit(TABLE[50:120])
    other.partial_fit(TABLE[50:120])
    assert online.components_ == pytest.approx(other.components_, rel=1e-6)


def summed_out(words, prior, phi):
    """The probability of a document, and its posterior mean of proportions, over all topics of its words."""
    mean, total = np.zeros(len(prior)), 0.0
    for topics in product(range(len(prior)), repeat=len(words)):
        own, p = prior.copy(), 1.0
        for w, k in zip(words, topics, strict=True):
            p *= own[k] / own.sum() * phi[k, w]
            own[k] += 1
        mean += p * own / own.sum()
        total += p
    return total, mean / total


def test_left_to_right_is_the_probability_that_enumeration_gives():
    model = lda(k=3, doc_topic_prior=[0.2, 0.5, 0.9], topic_word_prior=0.1).fit(TABLE[:50])
    documents = [["x1", "x5", "x5", "x9", "x2"], ["x3"], []]
    exact = [
        np.log(summed_out([int(w[1:]) for w in d], model.doc_topic_prior_, model.topic_word_)[0])
        for d in documents
    ]
    assert model.log_prob(documents, particles=20_000, seed=0) == pytest.approx(exact, abs=0.02)
    found = model.perplexity(documents, method="left-to-right", particles=20_000)
    assert found == pytest.approx(np.exp(-sum(exact) / 6), rel=0.02)


def test_average_proportions_are_the_posterior_means_that_enumeration_gives():
    prior, phi = np.array([0.4, 0.7]), np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])
    words = [0, 2, 1, 0]
    seeds = np.random.default_rng(0).integers(0, 2**64, (400, 4), dtype=np.uint64)
    drawn = [average_proportions(words, [0, 4], phi.T, prior, seed=s)[0] for s in seeds]
    found = np.mean(drawn, axis=0)
    assert found == pytest.approx(summed_out(words, prior, phi)[1], abs=0.01)


@pytest.mark.parametrize(
    "method", [pytest.param(m, marks=[pytest.mark.slow] * (m not in ("gibbs", "vb"))) for m in METHODS]
)
def test_the_same_seed_gives_the_same_topics_with_any_number_of_workers(method):
    big = np.vstack([TABLE] * 20)  # enough words for several blocks
    one, two = (lda(method, max_iter=2, n_jobs=n).fit(big) for n in (1, 2))
    assert (one.components_ == two.components_).all()
    assert (one.transform(TABLE[:9]) == two.transform(TABLE[:9])).all()
    assert (lda(method, max_iter=2, random_state=1).fit(TABLE).components_ != one.components_).any()


@pytest.mark.parametrize("method", METHODS)
def test_empty_documents_have_the_priors_proportions_and_unknown_words_are_counted(method, fitted):
    model = fitted[method]
    with pytest.warns(OutsideVocabularyWarning, match="2 of 3 words are not in the vocabulary"):
        found = model.transform([["x0", "zebra", "lion"], []])
    prior = model.doc_topic_prior_ / model.doc_topic_prior_.sum()
    assert found[1] == pytest.approx(prior)
    assert (lda(method).fit([["a", "b"], [], ["a"]]).doc_topic_prior_ > 0).all()


def test_documents_are_judged_one_by_one(fitted):
    for model in fitted.values():
        together = model.transform(HELD_OUT[:10])
        assert model.transform(csr_array(HELD_OUT[4:6])) == pytest.approx(together[4:6], abs=1e-12)


def test_priors_that_are_not_given_are_learned_and_those_given_are_kept():
    rng = np.random.default_rng(1)
    table = np.array([rng.multinomial(60, t @ PHI) for t in rng.dirichlet([2.0, 0.2, 0.2, 0.2], 300)])
    for method in ("gibbs", "vb"):
        model = lda(method, max_iter=300).fit(table)
        order = cosines(PHI, model.topic_word_).argmax(axis=1)
        assert model.doc_topic_prior_[order[0]] > 4 * np.delete(model.doc_topic_prior_, order[0]).max()
        assert 0.05 < model.topic_word_prior_.flat[0] < 0.2
        kept = lda(method, doc_topic_prior=0.4, topic_word_prior=0.2).fit(table)
        assert (kept.doc_topic_prior_ == 0.4).all()
        assert (kept.topic_word_prior_ == 0.2).all()


def test_seeded_words_lead_their_topics():
    seeds = {k: [f"x{w}" for w in np.argsort(-PHI[3 - k])[:3]] for k in range(4)}
    for method in ("gibbs", "uncollapsed", "vb", "online"):
        model = lda(method, seeds=seeds).fit(TABLE)
        assert cosines(model.topic_word_, PHI[::-1]).argmax(axis=1).tolist() == [0, 1, 2, 3]


def test_files_are_streamed_and_pieces_learned_one_after_the_other(tmp_path):
    lines = [" ".join(f"word{w}" for w in np.repeat(np.arange(40), row)) for row in TABLE]
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(lines))
    streamed = lda("online", batch_size=64).fit(path)
    order = [int(w[4:]) for w in streamed.vocabulary_]
    assert cosines(streamed.topic_word_, PHI[:, order]).max(axis=1).min() > 0.95
    pieces = lda("online", total_samples=200)
    for _ in range(20):
        for i in range(0, 200, 50):
            pieces.partial_fit(TABLE[i : i + 50])
    assert pieces.n_batch_iter_ == 81
    assert cosines(pieces.topic_word_, PHI).max(axis=1).min() > 0.95


def test_a_run_that_was_cut_goes_on_to_the_same_end(tmp_path):
    whole = lda(max_iter=40).fit(TABLE)
    path = tmp_path / "run.npz"
    lda(max_iter=17, checkpoint=path, burn_in=20).fit(TABLE)
    gone_on = lda(max_iter=40, checkpoint=path).fit(TABLE)
    assert gone_on.history_ == whole.history_
    assert (gone_on._draws[-1]["topics"] == whole._draws[-1]["topics"]).all()
    with pytest.raises(InvalidArgument, match="other data or settings"):
        lda(max_iter=40, checkpoint=path).fit(TABLE[:50])


def test_draws_tell_of_places_and_intervals_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(5)
    theta = rng.dirichlet(np.full(4, 0.2), 400)
    table = np.array([rng.multinomial(60, t @ PHI) for t in theta])
    for method in ("gibbs", "vb"):
        model = lda(method, max_iter=100, doc_topic_prior=0.2, topic_word_prior=0.1).fit(table)
        order = cosines(model.topic_word_, PHI).argmax(axis=1)
        low, high = model.proportion_intervals(level=0.9)
        inside = ((low <= theta[:, order]) & (theta[:, order] <= high)).mean()
        assert (0.86 if method == "gibbs" else 0.7) < inside < 0.96  # mean field is known to be too sure
    low, high = model.proportion_intervals(HELD_OUT[:3])
    assert (low < high).all()
    model = lda().fit([["sun", "sun", "rain"], ["cat", "dog", "dog"]] * 20)
    assert model.same_topic_probability((0, 0), (0, 0)) == 1.0
    assert model.same_topic_probability((0, 0), (2, 0)) >= model.same_topic_probability((0, 0), (1, 0))


def test_words_of_one_topic_go_together_and_specific_words_are_known():
    texts = [
        ["cat", "dog", "the"],
        ["dog", "cat", "the"],
        ["sun", "rain", "the"],
        ["rain", "sun", "the"],
    ] * 20
    model = lda(k=2, doc_topic_prior=0.1, topic_word_prior=0.05).fit(texts)
    assert model.same_topic_probability("cat", "dog") > 0.95
    assert model.same_topic_probability("cat", "sun") < 0.05
    assert model.word_specificity("cat") > 0.9 > 0.3 > model.word_specificity("the")
    assert {"cat", "dog"} in [set(words) for words in model.top_words(2, by="lift")]
    assert all("the" in words for words in model.top_words(3))
    assert all("the" not in words for words in model.top_words(2, by="relevance", weight=0.2))
    with pytest.raises(UnknownVariable, match="did you mean 'cat'"):
        model.word_specificity("cats")


def test_models_are_saved_and_loaded(tmp_path, fitted):
    for method, model in fitted.items():
        model.save(tmp_path / f"{method}.json")
        again = mk.load(tmp_path / f"{method}.json")
        assert (again.transform(HELD_OUT[:5]) == model.transform(HELD_OUT[:5])).all()
        assert again.perplexity(HELD_OUT) == pytest.approx(model.perplexity(HELD_OUT), rel=1e-12)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_components": 0}, "n_components= is a whole number, 1 or more"),
        ({"method": "em"}, "method= is 'gibbs', 'vb'"),
        ({"doc_topic_prior": -1.0}, "doc_topic_prior= is a number above 0"),
        ({"doc_topic_prior": [0.1, 0.2]}, "one for each of 4 topics"),
        ({"topic_word_prior": [0.1, 0.2]}, "one for each of 40 words"),
        ({"seeds": {9: ["x1"]}}, "names topic 9; topics are 0 ... 3"),
        ({"seeds": {0: ["zebra"]}}, "unknown variable 'zebra' in the vocabulary"),
        ({"method": "map", "learn_priors": True}, "keeps its priors"),
        ({"learning_decay": 0.2}, "learning_decay="),
        ({"max_iter": 0}, "max_iter="),
    ],
)
def test_bad_settings_get_one_sentence(options, sentence):
    with pytest.raises(mk.MarkoviaError, match=sentence):
        mk.LDA(**{"n_components": 4, "max_iter": 2, **options}).fit(TABLE)


def test_bad_documents_get_one_sentence(fitted):
    model = fitted["gibbs"]
    with pytest.raises(mk.MarkoviaError, match="whole numbers"):
        model.transform(HELD_OUT[:2] + 0.5)
    with pytest.raises(mk.MarkoviaError, match="X has 3 features, but LDA is expecting 40 features"):
        model.transform(np.ones((2, 3), dtype=int))
    with pytest.raises(mk.MarkoviaError, match="no words"):
        lda().fit(["", ""])
    with pytest.raises(mk.MarkoviaError, match="two known words"):
        model.perplexity([["x1"], []])
    before = model.components_.copy()
    with pytest.raises(mk.MarkoviaError):
        model.fit([[-1, 2]])
    assert (model.components_ == before).all()
    with pytest.raises(mk.MarkoviaError, match="no bound"):
        fitted["map"].bound(HELD_OUT)


def test_one_document_and_more_topics_than_words_are_learned():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = lda(k=5).fit([["a", "b", "a"]])
    assert model.transform([["a"]]).shape == (1, 5)


def test_time_limits_keep_what_there_is():
    for method in METHODS:
        model = lda(method, max_iter=100_000, tol=0.0, time_limit=0.3).fit(TABLE)
        assert model.stopped_ == "time limit" or (method in ("vb", "map", "ep") and model.converged_)
        assert model.transform(HELD_OUT[:2]).shape == (2, 4)


class Rounded(mk.LDA):
    """LDA of numbers with fractions, which scikit-learn's checks are made of: rounded first."""

    def fit(self, X, y=None):
        return super().fit(_whole(X), y)

    def fit_transform(self, X, y=None):
        return self.fit(X, y).transform(X)

    def transform(self, X):
        return super().transform(_whole(X))

    def partial_fit(self, X, y=None):
        return super().partial_fit(_whole(X), y)

    def score(self, X, y=None):
        return super().score(_whole(X), y)


def _whole(X):
    if hasattr(X, "tocsr"):
        X = X.tocsr(copy=True)
        X.data = np.round(X.data)
        return X
    if (
        (hasattr(X, "__array__") or isinstance(X, list))
        and np.asarray(X).dtype.kind != "c"
        and np.asarray(X).ndim == 2
    ):
        return np.round(np.asarray(X, dtype=float))
    return X


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gibbs", "vb", "online"])
def test_scikit_learns_checks_pass_on_whole_numbers(method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            Rounded(2, method=method, max_iter=5, random_state=0, progress=False), on_skip=None, on_fail=None
        )
    assert {r["check_name"]: str(r["exception"]) for r in results if r["status"] == "failed"} == {}


def test_short_documents_about_one_topic_each_are_told_apart_however_long_the_run():
    texts = [
        "the cat and the dog play in the garden",
        "a dog chases a cat around the house",
        "the sun and the moon shine in the sky",
        "stars and the moon light the night sky",
    ] * 10
    for seed in range(3):
        model = mk.LDA(2, max_iter=400, random_state=seed, progress=False).fit(texts)
        assert model.transform(texts[:4]).argmax(axis=1).tolist() in ([0, 0, 1, 1], [1, 1, 0, 0])


def small_corpus(seed, n, length, k, v):
    """Counts of documents of one length, and the topics that made them."""
    rng = np.random.default_rng(seed)
    phi, theta = rng.dirichlet(np.full(v, 0.05), k), rng.dirichlet(np.full(k, 0.1), n)
    return np.array([rng.multinomial(length, t @ phi) for t in theta]), phi


def errors(model, phi):
    """The L1 distance of each topic from the one that it stands for."""
    apart = np.abs(model.topic_word_[:, None] - phi).sum(axis=2)
    return apart[linear_sum_assignment(apart)]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gibbs", "uncollapsed", "vb", "map", "ep"])
def test_no_topic_of_a_small_corpus_is_lost_at_the_defaults(method):
    for seed in (6, 7, 9):  # corpora in which two topics come to share a place
        table, phi = small_corpus(seed, 150, 60, 6, 200)
        settings = {"max_iter": 120} if method in ("gibbs", "uncollapsed") else {}
        model = mk.LDA(6, method=method, random_state=0, progress=False, **settings).fit(table)
        # 6,000 words of 6 topics: an error of about .12 is what knowing each word's topic would leave
        assert errors(model, phi).max() < 0.25
        assert errors(model, phi).mean() > 0.08


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("method", ["gibbs", "uncollapsed", "vb", "map", "ep"])
def test_no_topic_of_500_short_documents_is_lost_at_the_defaults(method, seed):
    table, phi = small_corpus(seed, 500, 100, 10, 1_000)
    model = mk.LDA(10, method=method, random_state=0, progress=False).fit(table)
    assert 0.14 < errors(model, phi).mean() < 0.19
    assert errors(model, phi).max() < 0.3


@pytest.mark.slow
def test_the_plate_network_agrees_on_a_tiny_corpus():
    corpus = mk.topics.Corpus.read(["a a b", "b c c"], tokenizer=str.split)
    settings = {"doc_topic_prior": [0.9, 0.3], "topic_word_prior": 0.5}
    mine = mk.LDA(2, max_iter=20_000, n_draws=5_000, random_state=0, **settings).fit(corpus).doc_topic_
    engine = mk.engines.NUTS(draws=2_000, warmup=500, chains=4, seed=0)
    network = mk.LDA(2, **settings).network(corpus)
    post = network.query("theta", given={"w": corpus.words, "document": corpus.owners}, engine=engine)
    assert post.mean("theta") == pytest.approx(mine, abs=0.03)
