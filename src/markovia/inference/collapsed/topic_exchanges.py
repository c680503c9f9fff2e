"""Exchanges of topics: two that say nearly the same become one, and the place that is left free goes to half of another.

A sampler that moves word by word soon has all topics but a pair that shares one place, while another topic has two places
or nearly none; from there it would need hundreds of sweeps, and priors learned meanwhile make the empty place emptier. What
a merge loses and a split gains of the log joint probability is known exactly, because both concern the words of two topics
only. An exchange is made where it gains: a climb for the first sweeps, not a move that leaves the posterior alone.
Cost: that of halving each topic once.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from markovia.runtime.array_types import Array, Codes, Ints


class Halved(NamedTuple):
    """Words of one topic shared by two: which of them are of the second, and what that gains in log probability."""

    second: Codes
    gain: float


def exchanged(
    words: Codes, owners: Codes, topics: Codes, n_words: int, n_topics: int, prior: float, word_prior: float,
    halve: Callable[[Codes, Ints], Codes],
) -> Codes:  # fmt: skip
    """Return the topics of words after all exchanges that gain; the same where none does.

    Parameters
    ----------
    words, owners, topics
        Of each word: which it is, its document, its topic.
    n_words, n_topics
        Words of the vocabulary; topics.
    prior, word_prior
        The parameters of the symmetric priors of topics in documents and of words in topics.
    halve
        Shares words of documents (the words, and where each document begins) among two topics, 0 and 1.
    """
    place = [np.flatnonzero(topics == k) for k in range(n_topics)]
    merges = sorted(
        (_merged(words, owners, (place[i], place[j]), n_words, prior, word_prior), i, j)
        for i, j in _alike(words, topics, n_words, n_topics)
    )
    splits = [
        (_halved(words[at], owners[at], n_words, prior, word_prior, halve), k)
        for k, at in enumerate(place)
        if len(at) > 1
    ]
    splits.sort(key=lambda found: found[0].gain)
    found = topics.copy()
    used: set[int] = set()
    while merges and splits:
        gain, i, j = merges.pop()
        if {i, j} & used:
            continue
        # a half of a topic that is itself merged would not be what was measured
        of = next((s for s in range(len(splits) - 1, -1, -1) if splits[s][1] not in used | {i, j}), None)
        if of is None or splits[of][0].gain + gain <= 0.0:
            break
        half, k = splits.pop(of)
        found[place[j]] = i
        found[place[k][half.second == 1]] = j
        used |= {i, j, k}
    return found


def _alike(words: Codes, topics: Codes, n_words: int, n_topics: int) -> set[tuple[int, int]]:
    """Return each topic and the one whose words are most like its own; with a topic without words, any."""
    cells = words.astype(np.int64) * n_topics + topics
    counts = np.bincount(cells, minlength=n_words * n_topics).reshape(n_words, n_topics)
    unit = counts / np.maximum(np.linalg.norm(counts, axis=0), 1.0)
    cosine = unit.T @ unit - 2.0 * np.eye(n_topics)
    pairs = ((k, int(np.argmax(cosine[k]))) for k in range(n_topics))
    return {(min(pair), max(pair)) for pair in pairs}


def _merged(
    words: Codes, owners: Codes, place: tuple[Codes, Codes], n_words: int, prior: float, word_prior: float
) -> float:
    """Return what the log joint probability gains where the words of two topics are of one."""
    at = np.concatenate(place)
    second = np.repeat([0, 1], [len(own) for own in place])
    return -_gain(words[at], owners[at], second, n_words, prior, word_prior)


def _halved(
    words: Codes, owners: Codes, n_words: int, prior: float, word_prior: float, halve: Callable[[Codes, Ints], Codes]
) -> Halved:  # fmt: skip
    """Return a topic's words shared by two topics."""
    order = np.argsort(owners, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(np.unique(owners, return_counts=True)[1])])
    second = np.empty(len(words), dtype=np.int32)
    second[order] = halve(words[order], offsets)
    return Halved(second, _gain(words, owners, second, n_words, prior, word_prior))


def _gain(words: Codes, owners: Codes, second: Codes, n_words: int, prior: float, word_prior: float) -> float:
    """Return the log joint probability of some words in two topics less that of all of them in one."""
    from scipy.special import gammaln

    def parts(of: Codes, n: int, each: float) -> Array:
        both = np.bincount(2 * of.astype(np.int64) + second, minlength=2 * n).reshape(n, 2)
        one = gammaln(both.sum(axis=1) + each) + gammaln(each)
        return np.asarray(gammaln(both + each).sum(axis=1) - one)

    totals, whole = np.bincount(second, minlength=2), n_words * word_prior
    normalisers = gammaln(totals + whole).sum() - gammaln(len(words) + whole) - gammaln(whole)
    documents = parts(owners, int(owners.max(initial=0)) + 1, prior).sum()
    return float(documents + parts(words, n_words, word_prior).sum() - normalisers)
