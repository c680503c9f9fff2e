"""Documents that topic models draw: frequencies against the model's own probabilities, and what is known of documents."""

from itertools import product

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument, UnknownVariable

TEXTS = ["aa bb aa cc", "cc dd dd cc", "bb aa aa", "dd cc dd bb"] * 4
FREE = {
    "LDA": lambda: mk.LDA(2, max_iter=30, random_state=0),
    "HDP": lambda: mk.HDP(max_iter=20, random_state=0),
    "PLSI": lambda: mk.PLSI(2, max_iter=30, tol=0.0, random_state=0),
    "UnigramMixture": lambda: mk.topics.UnigramMixture(2, random_state=0),
    "CorrelatedTopics": lambda: mk.CorrelatedTopics(2, max_iter=20, tol=0.0, random_state=0),
    "TiedTopics": lambda: mk.topics.TiedTopics(1, max_iter=20, random_state=0),
    "HierarchicalLDA": lambda: mk.topics.HierarchicalLDA(depth=2, max_iter=10, n_init=1, random_state=0),
}


def fit(name):
    return FREE[name]().fit(TEXTS)


def near(seen, wanted, n):
    """Frequencies of n draws against probabilities, five standard errors."""
    seen, wanted = np.asarray(seen), np.asarray(wanted)
    assert (np.abs(seen - wanted) <= 5 * np.sqrt(wanted * (1 - wanted) / n) + 1e-9).all()


def test_pairs_of_words_of_lda_are_as_frequent_as_its_own_probabilities_say():
    lda = fit("LDA")
    n, v = 40_000, 4
    corpus = lda.sample(n, length=2, seed=0)
    seen = np.bincount(corpus.words[::2] * v + corpus.words[1::2], minlength=v * v) / n
    a, phi = lda.doc_topic_prior_, lda.topic_word_
    second = (np.outer(a, a) + np.diag(a)) / (a.sum() * (a.sum() + 1))  # E[theta theta']
    wanted = np.array([phi[:, i] @ second @ phi[:, j] for i, j in product(range(v), repeat=2)])
    near(seen, wanted, n)
    assert not np.allclose(wanted, np.outer(*[wanted.reshape(v, v).sum(1)] * 2).ravel(), atol=0.01)


@pytest.mark.parametrize("name", FREE)
def test_words_topics_and_proportions_follow_from_each_other(name):
    model, n = fit(name), 3_000
    drawn = model.sample(n, length=5, topics=True, seed=1)
    assert drawn.corpus.lengths.tolist() == [5] * n
    assert drawn.corpus.vocabulary == model.vocabulary_
    assert drawn.proportions.sum(axis=1) == pytest.approx(1.0)
    shares = np.array([np.bincount(drawn.topics[i::5], minlength=model._n_features_out) for i in range(5)])
    near(
        shares.sum(axis=0) / (5 * n), drawn.proportions.mean(axis=0), n
    )  # topics are drawn by proportions ...
    own = drawn.proportions[drawn.corpus.owners, drawn.topics]
    assert (own > 0).all()
    assert own.mean() == pytest.approx((drawn.proportions**2).sum(axis=1).mean(), abs=0.02)
    for k in range(model._n_features_out):
        words = drawn.corpus.words[drawn.topics == k]
        if len(words) > 50:
            near(np.bincount(words, minlength=4) / len(words), model.topic_word_[k], len(words))
    again = model.sample(n, length=5, seed=1)
    assert (again.words == drawn.corpus.words).all()


def test_each_model_draws_proportions_by_its_own_law():
    theta = fit("UnigramMixture").sample(2_000, length=1, topics=True, seed=0).proportions
    assert set(np.unique(theta)) == {0.0, 1.0}
    plsi = fit("PLSI")
    rows = {tuple(r) for r in plsi.sample(50, length=1, topics=True, seed=0).proportions}
    assert rows <= {tuple(r) for r in plsi.doc_topic_}
    model = fit("CorrelatedTopics")
    theta = model.sample(20_000, length=0, topics=True, seed=0).proportions
    gap = np.log(theta[:, 0] / theta[:, 1])
    s = model.covariance_
    assert gap.mean() == pytest.approx(model.mean_[0] - model.mean_[1], abs=0.1)
    assert gap.var() == pytest.approx(s[0, 0] + s[1, 1] - 2 * s[0, 1], rel=0.05)
    tree = fit("HierarchicalLDA")
    used = tree.sample(200, length=1, topics=True, seed=0).proportions > 0
    paths = {tuple(np.flatnonzero(row)) for row in used}
    assert paths <= {tuple(sorted(p)) for p in tree.leaves()}


def test_labels_bound_the_topics_of_drawn_documents():
    labels = [["x"], ["y"], ["x", "y"], ["y"]] * 4
    model = mk.topics.LabelledLDA(max_iter=20, random_state=0, n_shared=1).fit(TEXTS, labels)
    drawn = model.sample(3, length=400, y=["y", ["x", "y"], None], topics=True, seed=0)
    per = np.array([np.bincount(drawn.topics[i * 400 : i * 400 + 400], minlength=3) for i in range(3)])
    assert per[0, 0] == 0
    assert drawn.proportions[0, 0] == 0.0
    assert per.sum() == 1200
    assert drawn.y == ["y", ["x", "y"], None]
    with pytest.raises(UnknownVariable, match="z"):
        model.sample(1, y=["z"])


def test_words_are_by_the_authors_of_the_document():
    model = mk.topics.AuthorTopics(2, max_iter=20, random_state=0).fit(TEXTS, ["p", "q", ["p", "q"], "q"] * 4)
    n = 20_000
    drawn = model.sample(2, length=n, y=["p", ["p", "q"]], topics=True, seed=0)
    theta = np.array([model.author_topic_[0], model.author_topic_.mean(axis=0)])
    assert drawn.proportions == pytest.approx(theta)
    for d in range(2):
        near(
            np.bincount(drawn.corpus.words[d * n : (d + 1) * n], minlength=4) / n,
            theta[d] @ model.topic_word_,
            n,
        )
    with pytest.raises(InvalidArgument, match="no author"):
        model.sample(1, y=[[]])


def test_words_are_those_of_the_time():
    model = mk.topics.DynamicTopics(2, drift=1.0, max_iter=10, tol=0.0, random_state=0)
    model.fit(TEXTS, [1, 1, 2, 2] * 4)
    drawn = model.sample(2_000, length=10, y=2, topics=True, seed=0)
    words = drawn.corpus.words[drawn.topics == 0]
    near(np.bincount(words, minlength=4) / len(words), model.topics_over_time_[1, 0], len(words))
    assert (drawn.y == 2).all()
    assert len(model.sample(3, length=2, seed=0)) == 3


def test_responses_are_drawn_by_the_shares_of_topics():
    numbers = mk.topics.SupervisedLDA(2, max_iter=30, random_state=0).fit(TEXTS, [0.1, 2.3, 0.4, 2.1] * 4)
    drawn = numbers.sample(5_000, length=4, topics=True, seed=0)
    shares = (drawn.topics.reshape(-1, 4) == 1).mean(axis=1)
    left = drawn.y - (1 - shares) * numbers.coef_[0] - shares * numbers.coef_[1]
    assert left.mean() == pytest.approx(0.0, abs=5 * np.sqrt(numbers.noise_variance_ / 5_000))
    assert left.var() == pytest.approx(numbers.noise_variance_, rel=0.1)
    classes = mk.topics.SupervisedLDA(2, max_iter=30, random_state=0).fit(TEXTS, ["u", "w"] * 8)
    drawn = classes.sample(5_000, length=1, topics=True, seed=0)
    law = np.exp(classes.coef_[:, drawn.topics])
    near([(drawn.y == "u").mean()], [(law[0] / law.sum(axis=0)).mean()], 5_000)


def test_pairs_of_the_bigram_model_are_as_frequent_as_its_own_probabilities_say():
    model = mk.topics.BigramTopics(2, max_iter=20, random_state=0).fit(TEXTS)
    v, n = 4, 60_000
    drawn = model.sample(n, length=3, topics=True, seed=0)
    w, z = (a.reshape(n, 3) for a in (drawn.corpus.words, drawn.topics))
    for k in range(2):
        own = z[:, 0] == k
        start = model._pair_probabilities(v * v + np.arange(v))[:, k]
        near(np.bincount(w[own, 0], minlength=v) / own.sum(), start, own.sum())
        for first in range(v):
            own = (z[:, 2] == k) & (w[:, 1] == first)
            law = model._pair_probabilities(first * v + np.arange(v))[:, k]
            near(np.bincount(w[own, 2], minlength=v) / own.sum(), law, own.sum())


def test_classes_of_words_and_syntax_are_drawn_as_a_chain():
    model = mk.topics.HMMLDA(2, 3, max_iter=20, random_state=0).fit(TEXTS)
    n = 20_000
    drawn = model.sample(n, length=2, topics=True, seed=0)
    content = (drawn.topics >= 0).reshape(n, 2)
    near([content[:, 0].mean()], [model.start_[0]], n)
    near([content[:, 1].mean()], [(model.start_ @ model.transition_)[0]], n)
    laws = model.class_counts_ / model.class_counts_.sum(axis=1, keepdims=True)
    law = model.start_[1:] @ laws[1:]
    words = drawn.corpus.words[::2][~content[:, 0]]
    near(np.bincount(words, minlength=4) / len(words), law / law.sum(), len(words))


def test_drawn_counts_have_the_means_and_spread_of_the_factors():
    rng = np.random.default_rng(0)
    counts = rng.poisson(rng.gamma(1.0, 1.0, (40, 2)) @ np.array([[4.0, 4, 0], [0, 1, 5]]))
    model = mk.topics.PoissonFactorisation(2, max_iter=40, random_state=0).fit(counts)
    drawn = model.sample(40_000, seed=0)
    parts = model.weights_[:, None] * model.components_
    assert drawn.mean(axis=0) == pytest.approx(parts.sum(axis=0), rel=0.05)
    wanted = (
        parts.sum(axis=0) + (parts**2).sum(axis=0) / model.activity_prior
    )  # Poisson, and gamma of variance 1 / a
    assert drawn.var(axis=0) == pytest.approx(wanted, rel=0.1)


def test_what_cannot_be_drawn_is_refused():
    lda = fit("LDA")
    for length in (-1, 2.5, [1, 2, 3], "long", np.nan):
        with pytest.raises(InvalidArgument, match="length="):
            lda.sample(2, length=length)
    with pytest.raises(InvalidArgument, match="leave out y="):
        lda.sample(2, y=["x", "y"])
    with pytest.raises(InvalidArgument, match="no probabilities"):
        mk.LSI(2, random_state=0).fit(TEXTS).sample(1)
    with pytest.raises(InvalidArgument, match="n_documents="):
        lda.sample(0)
