"""Samplers of topics against enumeration and against the joint distribution, and the same draws on any number of threads."""

from itertools import product
from math import lgamma

import numpy as np
import pytest

from markovia.inference.collapsed.dirichlet_priors import from_counts, from_logs
from markovia.inference.collapsed.topic_gibbs import CollapsedTopics
from markovia.inference.collapsed.topic_uncollapsed import UncollapsedTopics

WORDS, OFFSETS, N_WORDS = np.array([0, 0, 1, 1, 2, 2], dtype=np.int32), np.array([0, 3, 3, 6]), 3
PRIOR = np.array([0.7, 0.3])
WORD_PRIOR = np.array([[0.5, 0.4], [0.3, 0.8], [0.2, 0.6]])
KINDS = {
    "collapsed": lambda *a, **o: CollapsedTopics(*a, **o, blocks=1),
    "collapsed in blocks": lambda *a, **o: CollapsedTopics(*a, **o, blocks=2),
    "uncollapsed": UncollapsedTopics,
}


def log_joint(words, offsets, topics, prior, word_prior):
    """The log probability of words and topics, by one prediction after the other."""
    total, table = 0.0, word_prior.copy()
    for d in range(len(offsets) - 1):
        own = prior.copy()
        for i in range(offsets[d], offsets[d + 1]):
            k = topics[i]
            total += np.log(own[k] / own.sum() * table[words[i], k] / table[:, k].sum())
            own[k] += 1
            table[words[i], k] += 1
    return total


def test_the_log_probability_is_that_of_one_prediction_after_the_other():
    rng = np.random.default_rng(0)
    words, offsets = rng.integers(0, 5, 40).astype(np.int32), np.array([0, 7, 7, 30, 40])
    for word_prior in (np.full((1, 3), 0.2), rng.uniform(0.1, 1, (5, 3))):
        topics = rng.integers(0, 3, 40)
        prior = rng.uniform(0.1, 2, 3)
        sampler = CollapsedTopics(words, offsets, 5, prior, word_prior, topics)
        full = np.broadcast_to(word_prior, (5, 3))
        assert sampler.log_prob() == pytest.approx(log_joint(words, offsets, topics, prior, full), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_samplers_draw_from_the_posterior_that_enumeration_gives(kind):
    states = list(product(range(2), repeat=len(WORDS)))
    logs = np.array([log_joint(WORDS, OFFSETS, z, PRIOR, WORD_PRIOR) for z in states])
    exact = np.exp(logs - logs.max())
    exact /= exact.sum()
    sampler = KINDS[kind](WORDS, OFFSETS, N_WORDS, PRIOR, WORD_PRIOR)
    # 64 states: independent draws would be 0.5 * sum sqrt(2 p / (pi n)) = 0.02 away; the uncollapsed sampler moves slowly
    # (0.075, 0.042 and 0.020 away after 4,000, 16,000 and 64,000 sweeps)
    rng, n, limit = np.random.default_rng(1), *((16_000, 0.06) if kind == "uncollapsed" else (10_000, 0.035))
    found = np.zeros(len(states))
    weights = 2 ** np.arange(len(WORDS))[::-1]
    for _ in range(n):
        sampler.sweep(rng)
        found[int(sampler.topics @ weights)] += 1
    assert 0.5 * np.abs(found / n - exact).sum() < limit


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_drawing_words_and_topics_in_turns_leaves_the_joint_distribution(kind):
    """Geweke's test: words given topics, topics given words; statistics have the means of draws from the prior."""
    rng = np.random.default_rng(2)
    offsets, n_words = np.array([0, 4, 9]), 4
    prior, word_prior = np.array([0.6, 0.4, 0.8]), np.full((1, 3), 0.5)
    owners = np.repeat([0, 1], np.diff(offsets))

    def topics_drawn():
        theta = rng.dirichlet(prior, 2)
        return np.array([rng.choice(3, p=theta[d]) for d in owners])

    def words_drawn(topics):
        phi = rng.dirichlet(np.full(n_words, 0.5), 3)
        return np.array([rng.choice(n_words, p=phi[k]) for k in topics], dtype=np.int32)

    def statistics(words, topics):
        same = topics[:, None] == topics
        alike = words[:, None] == words
        return [
            (topics == 0).sum() ** 2,
            (topics == 2).sum(),
            (same & alike).sum(),
            (same[:4, 4:] & alike[:4, 4:]).sum(),
        ]

    fresh = []
    for _ in range(3_000):
        topics = topics_drawn()
        fresh.append(statistics(words_drawn(topics), topics))
    topics, chain = topics_drawn(), []
    for _ in range(4_000):
        words = words_drawn(topics)
        sampler = KINDS[kind](words, offsets, n_words, prior, word_prior, topics)
        sampler.sweep(rng)
        topics = sampler.topics
        chain.append(statistics(words, topics))
    fresh, chain = np.array(fresh, dtype=float), np.array(chain, dtype=float)
    batches = chain.reshape(40, 100, -1).mean(axis=1)
    error = np.sqrt(fresh.var(axis=0) / len(fresh) + batches.var(axis=0, ddof=1) / len(batches))
    assert (np.abs(fresh.mean(axis=0) - chain.mean(axis=0)) < 4 * error).all()


@pytest.mark.parametrize("kind", [CollapsedTopics, UncollapsedTopics])
def test_draws_do_not_depend_on_threads_and_counts_are_those_of_the_topics(kind):
    rng = np.random.default_rng(3)
    words = rng.integers(0, 50, 3_000).astype(np.int32)
    offsets = np.arange(0, 3_001, 30)
    prior, word_prior = np.full(20, 0.1), np.full((1, 20), 0.05)
    found = []
    for threads in (1, 2, 3):
        sampler = kind(words, offsets, 50, prior, word_prior, threads=threads, blocks=4)
        own = np.random.default_rng(4)
        for _ in range(5):
            sampler.sweep(own)
        found.append(sampler.topics)
        table = np.zeros((50, 20))
        np.add.at(table, (words, sampler.topics), 1)
        assert (sampler.word_counts == table).all()
        documents = np.zeros((100, 20))
        np.add.at(documents, (np.repeat(np.arange(100), 30), sampler.topics), 1)
        assert (sampler.document_counts == documents).all()
    assert (found[0] == found[1]).all()
    assert (found[0] == found[2]).all()
    assert len(np.unique(found[0])) == 20


def test_more_topics_than_one_block_of_lanes_are_drawn_in_proportion():
    """One word, many topics: the conditional is the prior of documents, whatever the lanes."""
    for k in (1, 5, 16, 17, 50, 150):
        rng = np.random.default_rng(k)
        prior = rng.uniform(0.2, 2.0, k)
        sampler = CollapsedTopics(
            np.zeros(20_000, np.int32), np.arange(20_001), 1, prior, np.ones((1, k)), blocks=1
        )
        sampler.sweep(rng)
        found = np.bincount(sampler.topics, minlength=k) / 20_000
        expected = prior / prior.sum()
        assert (np.abs(found - expected) < 5 * np.sqrt(expected / 20_000)).all()


def test_priors_learned_from_counts_are_the_most_probable_under_their_gamma_prior():
    rng = np.random.default_rng(0)
    counts = np.array([rng.multinomial(rng.integers(1, 60), p) for p in rng.dirichlet([0.3, 1.5, 0.8], 20)])

    def posterior(a, alike=False):
        rows = sum(lgamma(n + p) - lgamma(p) for row in counts for n, p in zip(row, a, strict=True))
        rows += sum(lgamma(a.sum()) - lgamma(a.sum() + n) for n in counts.sum(axis=1))
        return rows + sum(np.log(p) - p for p in (a[:1] if alike else a))

    best = from_counts(counts, np.ones(3))
    one = from_counts(counts, np.ones(3), symmetric=True)
    for step in (0.999, 1.001):
        assert posterior(one * step, alike=True) < posterior(one, alike=True)
        for j in range(3):
            assert posterior(best * np.where(np.arange(3) == j, step, 1)) < posterior(best)
    assert np.ptp(one) == 0


def test_documents_about_one_topic_each_do_not_drive_their_prior_to_nothing():
    counts = np.repeat(np.array([[8, 0], [0, 8]]), 20, axis=0)
    assert from_counts(counts, np.ones(2)) == pytest.approx(0.01955, rel=1e-3)  # the largest on a fine grid
    assert from_counts(counts, np.ones(2), symmetric=True) == pytest.approx(0.00971, rel=1e-3)


def test_priors_learned_from_logs_have_those_expectations():
    from scipy.special import psi

    means = np.log(np.random.default_rng(0).dirichlet([0.4, 0.1, 2.0], 300) + 1e-12).mean(axis=0)
    found = from_logs(means, np.ones(3))
    assert psi(found) - psi(found.sum()) == pytest.approx(means, rel=1e-5)
