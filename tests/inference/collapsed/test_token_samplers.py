"""Collapsed samplers of topics: every posterior of a tiny corpus by enumeration, and Geweke's joint distributions."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from markovia.inference.collapsed.syntax_sampler import SyntaxTopics
from markovia.inference.collapsed.token_samplers import Ties, TokenTopics, TopicResponse, WatchedTopics
from markovia.learning.latent.topic_responses import ClassResponse, NumberResponse

WORDS, OFFSETS = np.array([0, 1, 0, 2, 1]), np.array([0, 3, 3, 5])
ALPHA, BETA = np.array([0.5, 1.2]), np.array([[0.3, 0.8], [0.4, 0.1], [1.0, 0.2]])


def posterior_of(sampler, options):
    """Return log p of each state, from the sampler's own count of it."""
    found = {}
    for state in product(*options):
        sampler.restore(as_state(sampler, state))
        found[state] = sampler.log_prob()
    logs = np.array(list(found.values()))
    probs = np.exp(logs - np.logaddexp.reduce(logs))
    return dict(zip(found, probs, strict=True))


def as_state(sampler, state):
    if isinstance(sampler, SyntaxTopics):
        at = np.array(state)
        group = np.maximum(at - sampler.n_topics + 1, 0)
        return {"group": group, "tokens": np.where(group == 0, at, -1)}
    return {"topic": np.array([k for k, _ in state]), "owner": np.array([a for _, a in state])}


def seen_state(sampler):
    if isinstance(sampler, SyntaxTopics):
        at = np.where(sampler.group == 0, sampler.topic, sampler.group + sampler.n_topics - 1)
        return tuple(at.tolist())
    return tuple(zip(sampler.topic.tolist(), sampler.owner.tolist(), strict=True))


def agrees(sampler, options, draws=20_000):
    """Assert that each token's draws agree with the enumeration within 4.5 standard errors of batch means."""
    exact = posterior_of(sampler, options)
    rng = np.random.default_rng(0)
    sampler.start(rng)
    seen = []
    for _ in range(draws):
        sampler.sweep(rng)
        seen.append(seen_state(sampler))
    check(seen, exact)


def check(seen, exact):
    n = len(next(iter(exact)))
    tests = [(i, o) for i in range(n) for o in sorted({s[i] for s in exact})]
    pairs = [(i, j) for i in range(n) for j in range(i)]
    for i, option in tests:
        compare([s[i] == option for s in seen], sum(p for s, p in exact.items() if s[i] == option))
    for i, j in pairs:
        compare([s[i] == s[j] for s in seen], sum(p for s, p in exact.items() if s[i] == s[j]))


def compare(hits, exact):
    batches = np.array(hits, dtype=float).reshape(100, -1).mean(axis=1)
    error = batches.std(ddof=1) / 10.0
    assert abs(batches.mean() - exact) < 4.5 * error + 1e-9, (batches.mean(), exact, error)


def own(topics=2):
    return [[(k, d) for k in range(topics)] for d in np.repeat([0, 1, 2], np.diff(OFFSETS))]


def test_topics_of_lda_have_the_enumerated_posterior():
    agrees(TokenTopics(WORDS, OFFSETS, ALPHA, BETA), own())


def test_log_prob_of_a_state_is_the_chain_of_its_predictives():
    sampler = TokenTopics(WORDS, OFFSETS, ALPHA, BETA)
    sampler.restore({"topic": np.array([0, 1, 0, 1, 1]), "owner": np.array([0, 0, 0, 2, 2])})
    topics, words, found = ALPHA.copy(), BETA.copy(), 0.0
    for i, (w, k) in enumerate(zip(WORDS, [0, 1, 0, 1, 1], strict=True)):
        topics = ALPHA.copy() if i == 3 else topics
        found += np.log(topics[k] / topics.sum()) + np.log(words[w, k] / words[:, k].sum())
        topics[k] += 1
        words[w, k] += 1
    assert np.isclose(sampler.log_prob(), found)


def test_labels_restrict_topics_and_all_labels_are_lda():
    everywhere = (np.zeros(3, dtype=int), np.array([0, 2]), np.arange(2))
    free, all_labels = (TokenTopics(WORDS, OFFSETS, ALPHA, BETA, allowed=a) for a in (None, everywhere))
    one, two = posterior_of(free, own()), posterior_of(all_labels, own())
    assert all(np.isclose(one[s], two[s]) for s in one)
    some = (np.array([0, 1, 1]), np.array([0, 1, 3]), np.array([1, 0, 1]))
    options = [[(1, 0)]] * 3 + own()[3:]
    agrees(TokenTopics(WORDS, OFFSETS, ALPHA, BETA, allowed=some), options)


def test_authors_and_topics_are_drawn_together():
    owners = (np.array([0, 2, 3, 4]), np.array([0, 1, 0, 1]))
    options = [[(k, a) for k in range(2) for a in range(2)]] * 3 + [[(k, 1) for k in range(2)]] * 2
    agrees(TokenTopics(WORDS, OFFSETS, ALPHA, BETA, owners=owners), options)


def test_one_author_a_document_is_lda():
    owners = (np.arange(4), np.arange(3))
    free, owned = (TokenTopics(WORDS, OFFSETS, ALPHA, BETA, owners=o) for o in (None, owners))
    one, two = posterior_of(free, own()), posterior_of(owned, own())
    assert all(np.isclose(one[s], two[s]) for s in one)


def test_tied_topics_share_a_profile_up_to_a_permutation():
    ties = Ties(np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([[0, 1, 2], [2, 0, 1]]))
    agrees(TokenTopics(WORDS, OFFSETS, np.array([0.5, 1.2, 0.4]), BETA, ties=ties), own(3))


def test_words_may_depend_on_the_word_before():
    pairs = np.array([0, 1, 2, 3, 4])  # start-0, 0-1, 1-0, start-2, 2-1
    prior = np.full((5, 2), 0.3)
    context, context_prior = np.array([3, 0, 1, 3, 2]), np.full((4, 2), 0.9)
    sampler = TokenTopics(pairs, OFFSETS, ALPHA, prior, context=context, context_prior=context_prior)
    agrees(sampler, own())


def with_classes(classes):
    beta, delta = np.full((3, 2), 0.4), np.full((3, classes), 0.3)
    return SyntaxTopics(WORDS, OFFSETS, 0.7, beta, delta, np.full((classes + 1, classes), 0.6))


def test_classes_and_topics_have_the_enumerated_posterior():
    sampler = with_classes(3)
    agrees(sampler, [range(4)] * 5)


def test_log_prob_of_classes_is_the_chain_of_their_predictives():
    sampler = with_classes(2)
    at = (0, 2, 2, 1, 0)
    sampler.restore(as_state(sampler, at))
    found, steps, topics = 0.0, np.full((3, 2), 0.6), np.full((3, 2), 0.7)
    words, syntax = np.full((3, 2), 0.4), np.full(3, 0.3)
    for i, (w, a) in enumerate(zip(WORDS, at, strict=True)):
        before = 2 if i in (0, 3) else int(at[i - 1] == 2)
        c, d = int(a == 2), 0 if i < 3 else 2
        found += np.log(steps[before, c] / steps[before].sum())
        steps[before, c] += 1
        if c:
            found += np.log(syntax[w] / syntax.sum())
            syntax[w] += 1
        else:
            found += np.log(topics[d, a] / topics[d].sum() * words[w, a] / words[:, a].sum())
            topics[d, a] += 1
            words[w, a] += 1
    assert np.isclose(sampler.log_prob(), found)


# -- Geweke (2004): draws of the joint distribution, forward and by the sampler with the words drawn anew -----------------


def forward_topics(sampler, rng):
    """Draw owners, topics and words of a sampler's law, urn by urn."""
    c = sampler.choices
    owners = sampler._owner_prior.copy()
    topic, owner = np.empty(len(WORDS), dtype=int), np.empty(len(WORDS), dtype=int)
    for i, d in enumerate(np.repeat([0, 1, 2], np.diff(OFFSETS))):
        owner[i] = rng.choice(c.owner[c.owner_ptr[d] : c.owner_ptr[d + 1]])
        topic[i] = rng.choice(len(ALPHA), p=owners[owner[i]] / owners[owner[i]].sum())
        owners[owner[i], topic[i]] += 1
    sampler.restore({"topic": topic, "owner": owner})
    new_words(sampler, rng)


def new_words(sampler, rng):
    """Draw words given topics, urn by urn, in the sampler's own arrays."""
    places = sampler.beta.copy()
    for i, k in enumerate(sampler.topic):
        p = sampler.ties.profile[k]
        place = rng.choice(len(places), p=places[:, p] / places[:, p].sum())
        places[place, p] += 1
        sampler.words[i] = np.flatnonzero(sampler.ties.place[sampler.ties.mapping[k]] == place)[0]
    sampler.recount()


def measured(sampler):
    same = sampler.words[:, None] == sampler.words
    together = sampler.topic[:, None] == sampler.topic
    return [
        (sampler.topic == 0).sum(), (sampler.words == 0).sum(), (same & together).sum(), together[0, 2], same[0, 4],
        (sampler.owner == 0).sum(), ((sampler.topic == 0) & (sampler.words == 1)).sum(),
    ]  # fmt: skip


def same_joint(forward, onward, draws=1_600):
    """Assert equal means, within 4.5 errors, of what two ways to draw say; errors of the second by 40 batches."""
    one, two = (
        np.array([forward() for _ in range(draws)], dtype=float),
        np.array([onward() for _ in range(draws)], dtype=float),
    )
    batches = two.reshape(40, -1, two.shape[1]).mean(axis=1)
    error = np.sqrt(one.var(axis=0) / draws + batches.var(axis=0, ddof=1) / 40)
    assert (np.abs(one.mean(axis=0) - two.mean(axis=0)) < 4.5 * error + 1e-9).all(), (
        one.mean(0),
        two.mean(0),
        error,
    )


LAWS = {
    "lda": {},
    "labels": {"allowed": (np.array([0, 1, 1]), np.array([0, 1, 3]), np.array([1, 0, 1]))},
    "authors": {"owners": (np.array([0, 2, 3, 4]), np.array([0, 1, 0, 1]))},
    "ties": {"ties": Ties(np.array([0, 1]), np.array([0, 1]), np.array([[0, 1, 2], [2, 0, 1]]))},
}


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_words_and_topics_drawn_in_turn_have_their_joint_distribution(law):
    rng = np.random.default_rng(1)
    one, two = (TokenTopics(WORDS.copy(), OFFSETS, ALPHA, BETA, **LAWS[law]) for _ in range(2))
    forward_topics(two, rng)

    def forward():
        forward_topics(one, rng)
        return measured(one)

    def onward():
        two.sweep(rng)
        new_words(two, rng)
        return measured(two)

    same_joint(forward, onward)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [1, 2])
def test_responses_coefficients_words_and_topics_drawn_in_turn_have_their_joint_distribution(kind):
    rng = np.random.default_rng(2)

    def made():
        watcher = (
            NumberResponse(np.zeros(3), 1.5, 3.0, 2.0) if kind == 1 else ClassResponse(np.zeros(3), 2, 1.5)
        )
        return WatchedTopics(WORDS.copy(), OFFSETS, ALPHA, BETA, kind=kind, watcher=watcher)

    def new_responses(sampler, coef, variance):
        shares = sampler.shares()
        if kind == 1:
            value = shares @ coef[0] + np.sqrt(variance) * rng.normal(size=3)
        else:
            scores = shares @ coef.T
            value = (rng.random(3) < 1.0 / (1.0 + np.exp(scores[:, 0] - scores[:, 1]))).astype(float)
        sampler.watcher = replace(sampler.watcher, value=value)
        sampler.response = TopicResponse(kind, value, coef, variance)

    def said(sampler):
        r = sampler.response
        both = (r.value[2] > 0.5) * r.coef[0, 0]
        return [*measured(sampler), r.coef[0, 0], r.coef[0, 1] ** 2, np.log(r.variance), r.value[0], both]

    def prior(sampler):
        forward_topics_watched(sampler, rng)
        variance = 2.0 / rng.gamma(3.0) if kind == 1 else 1.0
        coef = 1.5 * np.sqrt(variance) * rng.normal(size=(kind, 2))
        new_responses(sampler, coef, variance)

    one, two = made(), made()
    prior(two)

    def forward():
        prior(one)
        return said(one)

    def onward():
        two.sweep(rng)
        new_words(two, rng)
        new_responses(two, two.response.coef, two.response.variance)
        return said(two)

    same_joint(forward, onward)


def forward_topics_watched(sampler, rng):
    plain = TokenTopics(sampler.words, OFFSETS, ALPHA, BETA)
    forward_topics(plain, rng)
    sampler.words[:], sampler.topic, sampler.owner = plain.words, plain.topic, plain.owner
    sampler.recount()


def test_classes_words_and_topics_drawn_in_turn_have_their_joint_distribution():
    rng = np.random.default_rng(3)
    one, two = with_classes(3), with_classes(3)
    one.words, two.words = WORDS.copy(), WORDS.copy()

    def words_given(sampler):
        topic, word_class = sampler.beta.copy(), sampler.delta.copy()
        for i, (c, k) in enumerate(zip(sampler.group, sampler.topic, strict=True)):
            table, column = (topic, k) if c == 0 else (word_class, c)
            sampler.words[i] = rng.choice(3, p=table[:, column] / table[:, column].sum())
            table[sampler.words[i], column] += 1
        sampler.recount()

    def prior(sampler):
        steps, documents = sampler.gamma.copy(), np.full((3, 2), sampler.alpha)
        group, topic = np.empty(5, dtype=int), np.full(5, -1)
        for i, d in enumerate([0, 0, 0, 2, 2]):
            before = 3 if i in (0, 3) else group[i - 1]
            group[i] = rng.choice(3, p=steps[before] / steps[before].sum())
            steps[before, group[i]] += 1
            if group[i] == 0:
                topic[i] = rng.choice(2, p=documents[d] / documents[d].sum())
                documents[d, topic[i]] += 1
        sampler.restore({"group": group, "tokens": topic})
        words_given(sampler)

    def said(s):
        same, classes = s.words[:, None] == s.words, s.group[:, None] == s.group
        return [
            (s.group == 0).sum(), (s.group == 2).sum(), (s.topic == 0).sum(), (same & classes).sum(), classes[0, 1],
            classes[3, 4], (s.words == 0).sum(),
            (same & classes & (s.topic[:, None] == s.topic)).sum(), (s.group[1:] == s.group[:-1]).sum(),
        ]  # fmt: skip

    prior(two)

    def forward():
        prior(one)
        return said(one)

    def onward():
        two.sweep(rng)
        words_given(two)
        return said(two)

    same_joint(forward, onward)


@pytest.mark.parametrize("kind", [1, 2])
def test_topics_watched_by_a_response_have_the_enumerated_posterior(kind):
    sampler = TokenTopics(WORDS, OFFSETS, ALPHA, BETA)
    value = np.array([0.3, np.nan, 1.4]) if kind == 1 else np.array([1.0, -1.0, 0.0])
    coef = np.array([[-1.0, 2.0]]) if kind == 1 else np.array([[3.0, -2.0], [-1.0, 4.0]])
    sampler.response = TopicResponse(kind, value, coef, 0.2)
    exact = posterior_of(sampler, own())
    for state in exact:
        topics = np.array([k for k, _ in state])
        for part, y in ((topics[:3], value[0]), (topics[3:], value[2])):
            mean = coef[:, part].mean(axis=1)
            log = -0.5 * (y - mean[0]) ** 2 / 0.2 if kind == 1 else mean[int(y)] - np.logaddexp(*mean)
            exact[state] *= np.exp(log)
    total = sum(exact.values())
    exact = {state: p / total for state, p in exact.items()}
    rng = np.random.default_rng(4)
    sampler.start(rng)
    seen = []
    for _ in range(20_000):
        sampler.sweep(rng)
        seen.append(seen_state(sampler))
    check(seen, exact)
