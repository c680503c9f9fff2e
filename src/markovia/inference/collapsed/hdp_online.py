"""Online variational inference for topics under a hierarchical Dirichlet process, a batch of documents at a time.

Both levels of sticks are truncated, topics to `n_topics` and sticks of documents to `n_sticks`. A step moves the posterior
of topics towards that which a batch, counted as often as it fits into all documents, would give. Reference: Wang, Paisley
and Blei (2011).
"""

from typing import Any

import numpy as np

from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Array, Ints

ROUNDS, TOL = 20, 1e-3


class OnlineHDP:
    """The variational posterior of topics.

    Parameters
    ----------
    n_words, n_documents
        The size of the vocabulary, and how many documents there are in all.
    n_topics, n_sticks
        The truncation of topics, and of the sticks of a document.
    alpha, gamma, eta
        The concentrations of documents and of topics, the parameter of the Dirichlet laws of words.
    offset, decay
        Step i has the share (i + offset)^-decay.

    Attributes
    ----------
    by_word
        Parameters of the Dirichlet posteriors of words, (words, topics).
    sticks
        Parameters of the beta posteriors of the topics' sticks, (2, topics).
    """

    def __init__(
        self, n_words: int, n_documents: int, n_topics: int, n_sticks: int, *, alpha: float, gamma: float, eta: float,
        offset: float, decay: float, rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self.n_documents, self.n_sticks = n_documents, min(n_sticks, n_topics)
        self.alpha, self.gamma, self.eta = alpha, gamma, eta
        self.offset, self.decay, self.step = offset, decay, 0
        self.by_word = eta + rng.gamma(1.0, 1.0, (n_words, n_topics)) * n_documents * 100.0 / (
            n_topics * n_words
        )
        self.sticks = np.array([np.ones(n_topics), np.arange(n_topics, 0.0, -1.0)])

    def update(self, words: Any, offsets: Ints) -> Array:
        """Take in a batch of documents and return the expected words of each topic in each of them."""
        from scipy.special import psi

        v, n_topics = self.by_word.shape
        owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        pairs, counts = np.unique(owner * v + words, return_counts=True)
        there, ids = np.unique(pairs % v, return_inverse=True)
        starts = np.searchsorted(pairs // v, np.arange(len(offsets)))
        logs = psi(self.by_word[there]) - psi(self.by_word.sum(axis=0))
        both = psi(self.sticks.sum(axis=0))
        stay, go = psi(self.sticks[0]) - both, psi(self.sticks[1]) - both
        stay[-1] = 0.0
        log_topics = stay + np.append(0.0, np.cumsum(go[:-1]))
        longest = max(int(np.diff(starts).max(initial=1)), 1)
        rooms = (
            np.zeros((self.n_sticks, n_topics)), np.zeros((longest, self.n_sticks)), np.zeros((self.n_sticks, 2)),
            np.zeros((2, n_topics)),
        )  # fmt: skip
        said, served, found = np.zeros_like(logs), np.zeros(n_topics), np.zeros((len(offsets) - 1, n_topics))
        work = either(
            "markovia.kernels.collapsed.hdp_online:documents", 20 * len(ids) * self.n_sticks * n_topics
        )
        work(
            starts, ids.ravel(), counts.astype(np.float64), logs, log_topics, self.alpha, ROUNDS, TOL, *rooms, said, served,
            found,
        )  # fmt: skip
        share = min((self.step + self.offset) ** -self.decay, 1.0)
        scale = self.n_documents / max(len(offsets) - 1, 1)
        self.by_word *= 1.0 - share
        self.by_word += share * self.eta
        self.by_word[there] += share * scale * said
        rest = np.cumsum(served[::-1])[::-1] - served
        self.sticks *= 1.0 - share
        self.sticks += share * np.array([1.0 + scale * served, self.gamma + scale * rest])
        self.step += 1
        return found

    def topic_weights(self) -> Array:
        """Return the mean weight of each topic."""
        mean = self.sticks[0] / self.sticks.sum(axis=0)
        mean[-1] = 1.0
        return np.asarray(mean * np.append(1.0, np.cumprod(1.0 - mean[:-1])))
