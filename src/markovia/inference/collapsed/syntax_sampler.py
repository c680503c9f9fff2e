"""The collapsed Gibbs sampler of topics and syntax: words follow a chain of classes, one of which is the topics'."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Array, Codes, Ints
from markovia.runtime.seeds import kernel_seed

SWEEP = "markovia.kernels.collapsed.syntax_topics:sweep"
TRIAL = 50
"""Sweeps of a try to start."""


class SyntaxCounts(NamedTuple):
    """Tokens by document and topic, word and topic, word and class, and steps from class to class; and sums of all."""

    document: Array
    document_totals: Array
    topic: Array
    topic_totals: Array
    word_class: Array
    class_totals: Array
    steps: Array
    step_totals: Array


@dataclass
class SyntaxTopics:
    """The class of each token and the topic of those in class 0, given the words, all probabilities summed out.

    Parameters
    ----------
    words, offsets
        The words of all documents after one another, and where each begins.
    alpha
        The prior count of each topic in a document.
    beta, delta, gamma
        Prior counts of words and topics, (words, topics), words and classes, (words, classes), and steps from class
        to class, (classes + 1, classes), where the last row is the start of a document. Class 0 is that of the
        topics.
    """

    words: Codes
    offsets: Ints
    alpha: float
    beta: Array
    delta: Array
    gamma: Array
    tries: int = 1
    group: Ints = field(init=False)
    topic: Ints = field(init=False)
    counts: SyntaxCounts = field(init=False)

    def __post_init__(self) -> None:
        self.words: Ints = np.ascontiguousarray(self.words, dtype=np.int64)
        self.offsets = np.ascontiguousarray(self.offsets, dtype=np.int64)
        self.n_topics, self.n_classes = self.beta.shape[1], self.delta.shape[1]
        self._documents = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        self._base = -self._log_gammas(self._prior_counts())

    def start(self, rng: np.random.Generator) -> None:
        """Draw first classes and topics; of several tries go on from the most probable state after some sweeps."""
        best, top = {}, -np.inf
        for _ in range(self.tries if self.tries > 1 else 0):
            self._begin(rng)
            for _ in range(TRIAL):
                self.sweep(rng)
            if self.log_prob() > top:
                best, top = {k: np.array(v) for k, v in self.state().items()}, self.log_prob()
        if best:
            self.restore(best)
        else:
            self._begin(rng)

    def _begin(self, rng: np.random.Generator) -> None:
        """Draw classes and topics: a word is outside the topics as often as documents have it, as most have "the"."""
        n, v = max(len(self.offsets) - 1, 1), len(self.beta)
        having = np.bincount(np.unique(self._documents * v + self.words) % v, minlength=v)
        outside = rng.random(len(self.words)) < having[self.words] / n
        if self.n_classes == 1:
            outside[:] = False
        other = 1 + rng.integers(0, max(self.n_classes - 1, 1), len(self.words))
        self.group = np.where(outside, other, 0)
        self.topic = np.where(outside, -1, rng.integers(0, self.n_topics, len(self.words)))
        self.recount()

    def _prior_counts(self) -> SyntaxCounts:
        n, k = len(self.offsets) - 1, self.n_topics
        return SyntaxCounts(
            np.full((n, k), self.alpha), np.full(n, k * self.alpha), self.beta.copy(), self.beta.sum(axis=0),
            self.delta.copy(), self.delta.sum(axis=0), self.gamma.copy(), self.gamma.sum(axis=1),
        )  # fmt: skip

    def recount(self) -> None:
        """Count classes and topics of all tokens anew."""
        n = self.counts = self._prior_counts()
        before = np.roll(self.group, 1)
        before[self.offsets[:-1][np.diff(self.offsets) > 0]] = self.n_classes
        ours = self.group == 0
        for table, totals, rows, columns, by_row in (
            (n.document, n.document_totals, self._documents[ours], self.topic[ours], True),
            (n.topic, n.topic_totals, self.words[ours], self.topic[ours], False),
            (n.word_class, n.class_totals, self.words[~ours], self.group[~ours], False),
            (n.steps, n.step_totals, before, self.group, True),
        ):
            np.add.at(table, (rows, columns), 1.0)
            np.add.at(totals, rows if by_row else columns, 1.0)

    def sweep(self, rng: np.random.Generator) -> None:
        """Draw class and topic of every token once."""
        options = self.n_topics + self.n_classes
        run = either(SWEEP, 9 * len(self.words) * options)
        run(
            self.words, self.offsets, self.counts, self.group, self.topic, kernel_seed(rng), np.empty(options)
        )

    def log_prob(self) -> float:
        """Return log p of words, classes and topics."""
        return self._base + self._log_gammas(self.counts)

    def _log_gammas(self, n: SyntaxCounts) -> float:
        from scipy.special import gammaln

        tables = (n.document, n.topic, n.word_class, n.steps)
        totals = (n.document_totals, n.topic_totals, n.class_totals, n.step_totals)
        return float(sum(gammaln(t).sum() for t in tables) - sum(gammaln(t).sum() for t in totals))

    def summary(self) -> dict[str, Array]:
        """Return mean proportions of topics given the state, and counts of words in topics and classes, and of steps."""
        n = self.counts
        theta = n.document / n.document_totals[:, None]
        return {"theta": theta, "words": n.topic, "word_class": n.word_class, "steps": n.steps}

    def state(self) -> dict[str, Any]:
        """Return classes and topics, and the counts with all their roundings."""
        return {"group": self.group, "tokens": self.topic} | self.counts._asdict()

    def restore(self, state: Mapping[str, Array]) -> None:
        """Take up classes and topics, and counts where they are given."""
        self.group, self.topic = (np.array(state[k], dtype=np.int64) for k in ("group", "tokens"))
        self.recount()
        if "steps" in state:
            self.counts = SyntaxCounts(*(np.array(state[k]) for k in SyntaxCounts._fields))
