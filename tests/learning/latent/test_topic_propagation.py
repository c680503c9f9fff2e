"""Expectation propagation on documents: evidence and proportions against sums over all assignments of topics."""

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import gammaln

import markovia as mk
from markovia.learning.latent.topic_propagation import propagated_documents
from markovia.learning.latent.topic_variational import document_posteriors, documents_bound


def brute(counts, table, prior):
    """Return log evidence, mean proportions and expected topics of words by summing over all assignments."""
    words, k = np.repeat(np.arange(len(counts)), counts), len(prior)
    logs, means, by_word = [], [], []
    for z in product(range(k), repeat=len(words)):
        n = np.bincount(z, minlength=k)
        law = gammaln(prior.sum()) - gammaln(prior.sum() + len(words))
        logs.append(law + (gammaln(prior + n) - gammaln(prior)).sum() + np.log(table[words, list(z)]).sum())
        means.append((prior + n) / (prior.sum() + len(words)))
        own = np.zeros(table.shape)
        np.add.at(own, (words, list(z)), 1.0)
        by_word.append(own)
    top = max(logs)
    weight = np.exp(np.array(logs) - top)
    share = weight / weight.sum()
    return top + np.log(weight.sum()), share @ np.array(means), np.tensordot(share, np.array(by_word), 1)


def propagate(counts, table, prior, **how):
    return propagated_documents(
        csr_array(np.atleast_2d(counts)), table, prior, **{"most": 300, "tol": 1e-9} | how
    )


@pytest.mark.parametrize("seed", range(6))
def test_evidence_proportions_and_topics_are_near_those_of_all_assignments_and_nearer_than_the_bound(seed):
    rng = np.random.default_rng(seed)
    k, v = (2, 4) if seed % 2 else (3, 3)
    table, prior = np.ascontiguousarray(rng.dirichlet(np.ones(v), k).T), rng.uniform(1.0, 2.5, k)
    counts = rng.multinomial(7, np.ones(v) / v)
    log_mass, mean, by_word = brute(counts, table, prior)
    found = propagate(counts, table, prior)
    assert found.unsettled == 0
    assert found.logs[0] == pytest.approx(log_mass, abs=0.08)
    assert found.state[0] / found.state[0].sum() == pytest.approx(mean, abs=0.02)
    assert found.stats == pytest.approx(by_word, abs=0.1)
    assert found.stats.sum(axis=1) == pytest.approx(counts)
    sparse = csr_array(counts[None])
    bound = documents_bound(
        document_posteriors(sparse, table, prior, most=500, tol=1e-9), np.array([7.0]), prior
    )
    assert abs(found.logs[0] - log_mass) < 0.5 * (log_mass - bound)


def test_one_word_one_topic_and_no_words_are_exact():
    rng = np.random.default_rng(0)
    table, prior = np.ascontiguousarray(rng.dirichlet(np.ones(4), 3).T), np.array([0.2, 1.5, 0.7])
    one = propagate([0, 0, 1, 0], table, prior)
    assert one.logs[0] == pytest.approx(brute([0, 0, 1, 0], table, prior)[0], abs=1e-12)
    assert one.state[0] / one.state[0].sum() == pytest.approx(brute([0, 0, 1, 0], table, prior)[1], abs=1e-9)
    alone = propagate([2, 0, 3, 1], table[:, :1].copy(), np.array([0.4]))
    assert alone.logs[0] == pytest.approx(float(np.array([2, 0, 3, 1]) @ np.log(table[:, 0])))
    none = propagate([0, 0, 0, 0], table, prior)
    assert none.logs[0] == 0.0
    assert none.state[0].tolist() == prior.tolist()


def test_a_repeated_word_ends_where_its_moments_match():
    table, prior, n = np.array([[0.7, 0.2, 0.1], [0.3, 0.8, 0.9]]), np.array([0.6, 1.0, 1.4]), 5
    gamma = propagate([n, 0], table, prior).state[0]
    cavity = gamma - (gamma - prior) / n  # all occurrences share a site
    total, share = cavity.sum(), cavity * table[0] / (cavity @ table[0])
    mean = (cavity + share) / (total + 1)
    second = (cavity + 1) * (cavity + 2 * share) / ((total + 1) * (total + 2))
    assert gamma / gamma.sum() == pytest.approx(mean, abs=1e-7)
    theirs = gamma * (gamma + 1) / (gamma.sum() * (gamma.sum() + 1))
    assert theirs.sum() == pytest.approx(second.sum(), abs=1e-7)


def test_neither_the_order_of_words_nor_of_documents_nor_threads_change_the_laws():
    rng = np.random.default_rng(1)
    table, prior = np.ascontiguousarray(rng.dirichlet(np.ones(6), 3).T), np.full(3, 0.8)
    counts = rng.multinomial(12, np.ones(6) / 6, 5)
    found, order = propagate(counts, table, prior), rng.permutation(6)
    turned = propagate(counts[::-1][:, order], np.ascontiguousarray(table[order]), prior, threads=2)
    assert turned.logs[::-1] == pytest.approx(found.logs, abs=1e-6)
    assert turned.state[::-1] == pytest.approx(found.state, abs=1e-6)


def test_small_priors_and_many_words_leave_proper_laws_and_a_finite_evidence():
    rng = np.random.default_rng(2)
    table, prior = np.ascontiguousarray(rng.dirichlet(np.full(30, 0.2), 5).T) + 1e-9, np.full(5, 0.05)
    found = propagate(rng.multinomial(60, np.ones(30) / 30, 20), table, prior, most=40)
    assert np.isfinite(found.logs).all()
    assert (found.state > 0).all()
    assert found.unsettled > 0  # and that is said


def test_lda_learns_and_judges_documents_by_propagation():
    texts = ["cat dog cat dog", "dog cat", "sun rain sun", "rain sun rain rain"] * 5
    lda = mk.LDA(2, method="ep", doc_topic_prior=0.8, topic_word_prior=0.1, random_state=0).fit(texts)
    assert sorted(sorted(words) for words in lda.top_words(2)) == [["cat", "dog"], ["rain", "sun"]]
    corpus = mk.topics.Corpus.read(texts[:4], lda.vocabulary_)
    wanted = [brute(row, lda.topic_word_.T, lda.doc_topic_prior_)[0] for row in corpus.counts().toarray()]
    found = lda.log_prob(texts[:4], method="ep")
    assert found == pytest.approx(wanted, abs=0.05)
    assert lda.perplexity(texts[:4], method="ep") == pytest.approx(np.exp(-found.sum() / 13))
    low, high = lda.proportion_intervals()
    assert ((low < lda.doc_topic_) & (lda.doc_topic_ < high)).all()
    with pytest.raises(mk.errors.InvalidArgument, match="no bound"):
        lda.bound(texts)
    hard = mk.LDA(4, doc_topic_prior=0.01, topic_word_prior=0.5, max_iter=5, random_state=0).fit(texts)
    with pytest.warns(mk.errors.ConvergenceWarning, match="did not settle"):
        hard.log_prob([" ".join(texts[:4] * 3)], method="ep")
