"""Samplers of topics under a hierarchical Dirichlet process: against all seatings of tiny corpora, and jointly with data."""

from math import exp, lgamma, log

import numpy as np
import pytest

from markovia.inference.collapsed.hdp_topics import DirectAssignment, Franchise, HDPPriors, WordCounts
from sampler_checks import (
    assert_moments,
    canonical,
    geweke_scores,
    set_partitions,
    standard_score,
    total_variation,
)

SAMPLERS = [DirectAssignment, Franchise]
WORDS, OFFSETS = np.array([0, 1, 0, 0, 1]), np.array([0, 2, 5])


def seating(partition, concentration):
    """Return the log probability of a partition under a Chinese restaurant process."""
    sizes = np.bincount(partition) if len(partition) else []
    found = sum(log(concentration) + lgamma(n) for n in sizes)
    return found + lgamma(concentration) - lgamma(concentration + len(partition))


def exact_posterior(alpha, gamma, eta, v=2):
    """Return p(partition of all words by topic | words) and E(tables | words) by adding up all seatings of a franchise."""
    found, tables = {}, 0.0
    first, second = set_partitions(2), set_partitions(3)
    for a in first:
        for b in second:
            n_a, n_b = max(a) + 1, max(b) + 1
            for dishes in set_partitions(n_a + n_b):
                topics = [dishes[t] for t in a] + [dishes[n_a + t] for t in b]
                log_prob = seating(a, alpha) + seating(b, alpha) + seating(dishes, gamma)
                for k in set(topics):
                    n = np.bincount(WORDS[np.array(topics) == k], minlength=v)
                    log_prob += (
                        sum(lgamma(eta + c) - lgamma(eta) for c in n)
                        + lgamma(v * eta)
                        - lgamma(v * eta + n.sum())
                    )
                key = canonical(topics)
                found[key] = found.get(key, 0.0) + exp(log_prob)
                tables += (n_a + n_b) * exp(log_prob)
    total = sum(found.values())
    return {key: p / total for key, p in found.items()}, tables / total


@pytest.mark.parametrize("kind", SAMPLERS)
@pytest.mark.parametrize(
    ("alpha", "gamma", "eta"), [pytest.param(1.0, 1.5, 0.3, marks=pytest.mark.slow), (3.0, 0.5, 1.0)]
)
def test_topics_of_a_tiny_corpus_have_the_posterior_found_by_enumeration(kind, alpha, gamma, eta):
    rng = np.random.default_rng(1)
    sampler = kind(WORDS, OFFSETS, 2, HDPPriors(alpha, gamma, eta))
    sampler.start(0, rng)
    draws, tables = [], []
    for _ in range(5_000):
        sampler.sweep(rng)
        draws.append(canonical(sampler.topics_of_words()))
        tables.append(float(sampler.tables.sum()))
    exact, expected = exact_posterior(alpha, gamma, eta)
    # 52 partitions and 5,000 draws, little correlated: about 0.025 is the noise of sampling
    assert total_variation(draws[100:], exact) < 0.04
    # every chance of a new table and of a new topic moves the number of tables
    assert abs(standard_score(tables[100:], expected)) < 4.0


def stats(topics, words, alpha, gamma, eta):
    sizes = np.bincount(topics)
    return {
        "topics": float((sizes > 0).sum()),
        "largest": float(sizes.max()),
        "shared": float((topics[:4, None] == topics[4:]).mean()),
        "same words": float((words[:, None] == words).mean()),
        "same word in a topic": float(((words[:, None] == words) & (topics[:, None] == topics)).mean()),
        "alpha": alpha,
        "gamma": gamma,
        "eta": eta,
        "alpha squared": alpha**2,
        "topics times gamma": gamma * float((sizes > 0).sum()),
    }


def words_of(topics, eta, v, rng):
    found = np.empty(len(topics), dtype=np.int32)
    for k in np.unique(topics):
        which = topics == k
        found[which] = rng.choice(v, which.sum(), p=rng.dirichlet(np.full(v, eta)))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", SAMPLERS)
def test_draws_of_topics_and_words_in_turn_have_the_joint_law_of_the_prior(kind):
    rng, v, offsets = np.random.default_rng(2), 3, np.array([0, 4, 9])
    priors = HDPPriors((3.0, 2.0), (3.0, 2.0), (4.0, 4.0))

    def prior():
        alpha, gamma, eta = rng.gamma(3.0) / 2.0, rng.gamma(3.0) / 2.0, rng.gamma(4.0) / 4.0
        topics, dishes = [], []
        for n in np.diff(offsets):
            tables, sizes = [], []
            for _ in range(n):
                p = np.array([*sizes, alpha])
                t = int(rng.choice(len(p), p=p / p.sum()))
                if t == len(sizes):
                    served = np.array([*np.bincount(dishes), gamma]) if dishes else np.array([gamma])
                    dishes.append(int(rng.choice(len(served), p=served / served.sum())))
                    sizes.append(0)
                    tables.append(dishes[-1])
                sizes[t] += 1
                topics.append(tables[t])
        topics = np.array(topics)
        return stats(topics, words_of(topics, eta, v, rng), alpha, gamma, eta)

    sampler = kind(np.zeros(9, dtype=np.int32), offsets, v, priors)
    sampler.start(0, rng)

    def step():
        sampler.sweep(rng)
        topics = sampler.topics_of_words()
        sampler.words[:] = words_of(topics, sampler.eta, v, rng)
        sampler.by_word[:] = 0
        np.add.at(sampler.by_word, (sampler.words, topics), 1)
        return stats(topics, sampler.words, sampler.alpha, sampler.gamma, sampler.eta)

    scores = geweke_scores(prior, step, 1_500, 4_000)
    assert max(map(abs, scores.values())) < 4.0, scores


def test_concentrations_and_eta_have_their_posteriors_given_tables_and_words():
    """Tables and words are held, so that each of the three has a density of its own."""
    from scipy.special import gammaln

    rng, v, offsets = np.random.default_rng(4), 5, np.array([0, 6, 6, 17, 20])
    priors = HDPPriors((2.0, 1.5), (3.0, 0.8), (1.7, 2.2))
    sampler = DirectAssignment(rng.integers(0, v, 20).astype(np.int32), offsets, v, priors)
    sampler.start(3, rng)
    sampler.by_word[:] = 0
    sampler.by_word[:, :3] = counts = np.array([[4, 0, 1], [0, 3, 0], [2, 0, 0], [0, 5, 0], [1, 0, 4]])
    sampler.totals[:] = 0
    sampler.totals[:3] = counts.sum(axis=0)
    sampler.tables[:] = 0
    sampler.tables[:3] = [4, 1, 3]
    draws = []
    for _ in range(6_000):
        sampler._concentrations(rng)
        draws.append([sampler.alpha, sampler.gamma, sampler.eta])
    lengths = np.array([6, 11, 3])

    def of_alpha(x):
        return np.log(x) - 1.5 * x + 8 * np.log(x) + (gammaln(x) - gammaln(x + lengths)).sum()

    def of_gamma(x):
        return 2 * np.log(x) - 0.8 * x + 3 * np.log(x) + gammaln(x) - gammaln(x + 8)

    def of_eta(x):
        words = gammaln(counts + x).sum() - 15 * gammaln(x) + 3 * gammaln(5 * x)
        return 0.7 * np.log(x) - 2.2 * x + words - gammaln(counts.sum(axis=0) + 5 * x).sum()

    for column, log_density in zip(np.array(draws).T, (of_alpha, of_gamma, of_eta), strict=True):
        assert_moments(column, log_density)


@pytest.mark.parametrize("kind", SAMPLERS)
def test_counts_stay_those_of_the_words_when_topics_need_more_room(kind):
    rng = np.random.default_rng(0)
    words = rng.integers(0, 500, 3_000)
    sampler = kind(words, np.arange(0, 3_001, 10), 500, HDPPriors(20.0, 200.0, 0.01))
    sampler.start(0, rng)
    for _ in range(3):
        sampler.sweep(rng)
    assert len(sampler.totals) > 16
    topics = sampler.topics_of_words()
    counts = np.zeros_like(sampler.by_word)
    np.add.at(counts, (words, topics), 1)
    np.testing.assert_array_equal(sampler.by_word, counts)
    np.testing.assert_array_equal(sampler.totals, counts.sum(axis=0))
    assert (sampler.topic_weights()[0][sampler.totals > 0] > 0.0).all()
    assert sampler.topic_weights()[0].sum() + sampler.topic_weights()[1] == pytest.approx(1.0)


@pytest.mark.parametrize("kind", SAMPLERS)
def test_topics_that_say_the_same_are_merged_and_others_are_not(kind):
    rng = np.random.default_rng(0)
    topic = np.repeat([0, 1], 50)
    words = rng.integers(0, 20, (100, 30)) + 20 * topic[:, None]
    sampler = kind(words.ravel(), np.arange(0, 3_001, 30), 40, HDPPriors(1.0, 1.0, 0.1))
    sampler.start(0, rng)
    for _ in range(10):
        sampler.sweep(rng)
    sampler.start(4, rng)
    # two halves of each topic, by chance
    mine = (2 * np.repeat(topic, 30) + rng.integers(0, 2, 3_000)).astype(np.int32)
    sampler.by_word[:] = 0
    np.add.at(sampler.by_word, (sampler.words, mine), 1)
    sampler.totals = sampler.by_word.sum(axis=0, dtype=np.int64)
    _seat(sampler, mine)
    assert sampler.merge_alike() == 2
    assert len(np.unique(sampler.topics_of_words())) == 2
    assert all(len(np.unique(sampler.topics_of_words()[np.repeat(topic, 30) == k])) == 1 for k in (0, 1))


def _seat(sampler, topics):
    if isinstance(sampler, DirectAssignment):
        sampler.topics[:] = topics
        sampler.weights[:] = 0.0
        sampler.weights[:4] = 0.24
        sampler.rest = np.array(0.04)
        return
    sampler.dishes[:], sampler.sizes[:] = 0, 0
    for d in range(100):
        inside = topics[30 * d : 30 * d + 30]
        dishes, seats, sizes = np.unique(inside, return_inverse=True, return_counts=True)
        sampler.seats[30 * d : 30 * d + 30] = seats
        sampler.dishes[30 * d : 30 * d + len(dishes)], sampler.sizes[30 * d : 30 * d + len(dishes)] = (
            dishes,
            sizes,
        )
        sampler.opened[d] = len(dishes)
    used = sampler.dishes[sampler.sizes > 0]
    sampler.tables = np.bincount(used, minlength=len(sampler.totals))


def test_log_prob_of_words_sums_to_one_over_all_words():
    total = 0.0
    topics = np.array([0, 0, 1])
    for a in range(2):
        for b in range(2):
            for c in range(2):
                counts = np.zeros((2, 2), dtype=np.int64)
                np.add.at(counts, ([a, b, c], topics), 1)
                total += exp(WordCounts(counts, counts.sum(axis=0)).log_prob(0.7))
    assert total == pytest.approx(1.0)
