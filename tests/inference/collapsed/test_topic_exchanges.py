"""Exchanges of topics: what they gain, and that topics which share a place get one each."""

import numpy as np
import pytest

from markovia.inference.collapsed.topic_exchanges import exchanged
from markovia.inference.collapsed.topic_gibbs import CollapsedTopics

PRIOR, WORD_PRIOR = 0.3, 0.07


def corpus(seed=3, n=40, v=30, k=4):
    """Documents about one or two of some topics, word by word in no order, and the topics that made the words."""
    rng = np.random.default_rng(seed)
    phi = rng.dirichlet(np.full(v, 0.1), k)
    lengths = rng.integers(15, 40, n)
    words, topics = [], []
    for length, theta in zip(lengths, rng.dirichlet(np.full(k, 0.2), n), strict=True):
        topics.append(rng.choice(k, length, p=theta))
        words.append([rng.choice(v, p=phi[t]) for t in topics[-1]])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return np.concatenate(words).astype(np.int32), offsets, np.concatenate(topics).astype(np.int32)


def log_joint(words, offsets, topics, v=30, k=4):
    priors = np.full(k, PRIOR), np.full((1, k), WORD_PRIOR)
    return CollapsedTopics(words, offsets, v, *priors, topics).log_prob()


def after(words, offsets, topics, halve, v=30, k=4):
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return exchanged(words, owners, topics, v, k, PRIOR, WORD_PRIOR, halve)


def test_a_pair_of_topics_in_one_place_is_taken_apart_into_the_place_of_a_topic_that_has_two():
    words, offsets, truth = corpus()
    merged = np.where(truth == 3, 1, truth)  # topics 1 and 3 share a place ...
    second = np.random.default_rng(0).random(len(words)) < 0.4
    merged[(truth == 2) & second] = 3  # ... and 2 has two, by chance

    def halve(own, starts):
        """Halves by what made the words: only the shared place has two in it."""
        at = np.flatnonzero(merged == 1)
        return (truth[at] == 3).astype(int) if len(at) == len(own) else np.zeros(len(own), dtype=int)

    found = after(words, offsets, merged, halve)
    parts = {frozenset(np.flatnonzero(found == k)) for k in range(4)}
    assert parts == {frozenset(np.flatnonzero(truth == k)) for k in range(4)}
    assert log_joint(words, offsets, found) > log_joint(words, offsets, merged) + 50.0


def test_exchanges_are_made_where_the_log_joint_rises_and_nowhere_else():
    words, offsets, truth = corpus()
    rng = np.random.default_rng(1)
    made = 0
    for _ in range(30):
        # topics with their names exchanged for some words, so that some exchanges gain and others do not
        blurred = np.where(
            rng.random(len(words)) < rng.uniform(0.0, 0.9), rng.integers(0, 3, len(words)), truth
        )
        found = after(words, offsets, blurred, lambda own, _: rng.integers(0, 2, len(own)))
        changed = (found != blurred).any()
        made += changed
        if changed:
            assert log_joint(words, offsets, found) > log_joint(words, offsets, blurred)
    assert 0 < made < 30


def test_topics_with_a_place_each_are_left_as_they_are():
    words, offsets, truth = corpus()
    rng = np.random.default_rng(2)
    assert (after(words, offsets, truth, lambda own, _: rng.integers(0, 2, len(own))) == truth).all()


def test_the_gain_is_the_difference_of_log_joints():
    from markovia.inference.collapsed.topic_exchanges import _gain

    words, offsets, truth = corpus(seed=5)
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    at = np.flatnonzero((truth == 1) | (truth == 2))
    gain = _gain(words[at], owners[at], (truth[at] == 2).astype(int), 30, PRIOR, WORD_PRIOR)
    one = np.where(truth == 2, 1, truth)
    assert gain == pytest.approx(log_joint(words, offsets, truth) - log_joint(words, offsets, one), abs=1e-3)
    assert abs(gain) > 10.0


def test_topics_that_are_not_alike_are_not_exchanged():
    words, offsets, truth = corpus()
    for prior, word_prior in [
        (np.array([0.3, 0.3, 0.3, 0.4]), np.full((1, 4), 0.07)),
        (np.full(4, 0.3), np.full((30, 4), 0.07)),
    ]:
        sampler = CollapsedTopics(words, offsets, 30, prior, word_prior, np.where(truth == 3, 1, truth))
        before = sampler.topics
        sampler._exchange(np.random.default_rng(0))
        assert (sampler.topics == before).all()
    sampler.set_priors(np.full(4, 0.3), np.full((1, 4), 0.07))
    sampler._exchange(np.random.default_rng(0))
    assert (sampler.topics != before).any()
    assert sampler.word_counts.sum() == len(words)
