"""Collapsed Gibbs sampling of topics (Griffiths and Steyvers 2004), on several cores and still exact.

Documents and words are cut into as many blocks. The blocks on a diagonal of this square share neither documents nor words;
all they share is how many words each topic has. The share of a topic's probability that falls to each block of words is
therefore drawn once a sweep, which a Dirichlet prior allows (what is left inside the blocks are Dirichlet distributions
again): then the blocks of a diagonal are independent, and are drawn side by side. Each has random numbers of its own, so the
draws do not depend on the number of threads. Cost: words x topics a sweep. Of a million words and 50 topics, two idle cores
make 1.5 times the sweeps of one, four 1.9 times; what is left is tables that move between cores, and learning priors.
"""

from collections.abc import Mapping
from functools import partial
from math import lgamma
from typing import Any

import numpy as np

from markovia.inference.collapsed.dirichlet_priors import from_counts
from markovia.inference.collapsed.topic_exchanges import exchanged
from markovia.runtime.array_types import Array, Codes, Ints
from markovia.runtime.threads import in_parallel

BLOCK = 60_000
"""Words for which a block of documents is worth its while."""
MOST_BLOCKS = 8
SMALL = 256
"""Counts whose log gammas are looked up."""
FIRST, EVERY, ALIKE = 10, 5, 50
"""Sweeps until priors are learned, between two times, and until topics may differ in theirs: before that, whichever topic
has grown by chance would only grow more."""
EXCHANGES = (20, 30, 40)
"""Sweeps after which topics are exchanged: all before topics may differ in their priors."""
HALVING = 20
"""Sweeps over the words of one topic that share them among two."""


class CollapsedTopics:
    """The topics of all words, with the counts that go with them; a `Sampler` for `run_sampler`.

    Parameters
    ----------
    words, offsets
        The words of all documents, and where each document begins.
    n_words
        How many words the vocabulary has.
    prior
        Of topics in documents, a number a topic.
    word_prior
        Of words in topics: words x topics, or 1 x topics where all words are alike.
    topics
        The topics to begin with; -1 for none yet, which the first sweep draws one after the other.
    threads, blocks
        Threads; blocks of documents and of words, by default by the number of words.
    learn
        Whether the priors of documents and of words are learned on the way; the prior of words then is one for all.
    """

    def __init__(
        self,
        words: Codes,
        offsets: Ints,
        n_words: int,
        prior: Array,
        word_prior: Array,
        topics: Codes | None = None,
        threads: int | None = None,
        blocks: int | None = None,
        learn: tuple[bool, bool] = (False, False),
    ) -> None:
        self.learn, self.sweeps = learn, 0
        self.n_topics, self.n_words, self.threads = len(prior), n_words, threads
        self.offsets = offsets
        n, lengths = len(words), np.diff(offsets)
        limit = max(1, min(MOST_BLOCKS, n // BLOCK, n_words, len(lengths)))
        self.blocks = limit if blocks is None else blocks
        owners = np.repeat(np.arange(len(lengths)), lengths)
        self._word_block = _even_parts(np.bincount(words, minlength=n_words), self.blocks)
        document_block = np.minimum(offsets[:-1] * self.blocks // max(n, 1), self.blocks - 1)
        home = document_block[owners] * self.blocks + self._word_block[words]
        self._order = np.argsort(home, kind="stable")
        self._starts = np.searchsorted(home[self._order], np.arange(self.blocks**2 + 1))
        self._words = words[self._order].astype(np.int32)
        self._owners = owners[self._order].astype(np.int32)
        self._topics = np.full(n, -1, dtype=np.int32)
        self._width = -(-self.n_topics // 16) * 16
        self.document_topic = np.zeros((len(lengths), self._width), dtype=np.int32)
        self._table = np.zeros((n_words, self._width), dtype=np.float32)
        self.set_priors(prior, word_prior)
        if topics is not None:
            self._take(np.asarray(topics)[self._order])

    @property
    def topics(self) -> Codes:
        """The topic of each word, in the order of the words given."""
        found = np.empty_like(self._topics)
        found[self._order] = self._topics
        return found

    @property
    def word_counts(self) -> Array:
        """How often each word has each topic, words x topics."""
        return np.asarray(np.rint(self._table[:, : self.n_topics] - self._word_prior))

    @property
    def document_counts(self) -> Codes:
        """How many words of each document have each topic, documents x topics."""
        return self.document_topic[:, : self.n_topics]

    def set_priors(self, prior: Array, word_prior: Array) -> None:
        """Take other priors; counts stay."""
        counts = self.word_counts if hasattr(self, "_word_prior") else 0.0
        self.prior, self.word_prior = (
            np.asarray(prior, dtype=np.float64),
            np.asarray(word_prior, dtype=np.float64),
        )
        self._prior = np.zeros(self._width, dtype=np.float32)
        self._prior[: self.n_topics] = prior
        self._word_prior = self.word_prior.astype(np.float32)
        self._table[:, : self.n_topics] = counts + self._word_prior

    def _take(self, topics: Codes) -> None:
        self._topics = topics.astype(np.int32)
        here = self._topics >= 0
        cells = self._owners[here].astype(np.int64) * self._width + self._topics[here]
        self.document_topic = np.bincount(cells, minlength=self.document_topic.size).astype(np.int32)
        self.document_topic = self.document_topic.reshape(-1, self._width)
        cells = self._words[here].astype(np.int64) * self._width + self._topics[here]
        counts = np.bincount(cells, minlength=self._table.size).reshape(-1, self._width)[:, : self.n_topics]
        self._table[:, : self.n_topics] = counts + self._word_prior

    def sweep(self, rng: np.random.Generator) -> None:
        """Draw the topic of every word; early on exchange topics, and now and then learn the priors."""
        self._draw(rng)
        self.sweeps += 1
        if self.sweeps in EXCHANGES:
            self._exchange(rng)
        if any(self.learn) and self.sweeps >= FIRST and self.sweeps % EVERY == 0:
            prior, word_prior = self.prior, self.word_prior
            if self.learn[0]:
                prior = from_counts(self.document_counts, prior, symmetric=self.sweeps < ALIKE, steps=100)
            if self.learn[1]:
                counts = self.word_counts.astype(np.int64).T
                one = from_counts(
                    counts, np.full(self.n_words, word_prior.flat[0]), symmetric=True, steps=100
                )[0]
                word_prior = np.full((1, self.n_topics), one)
            self.set_priors(prior, word_prior)

    def _exchange(self, rng: np.random.Generator) -> None:
        """Give the place of a topic that is there twice, or hardly at all, to half of one that is two."""
        alike = len(self.word_prior) == 1 and (self.prior == self.prior[0]).all()
        if self.n_topics < 3 or not alike:  # places are not the same, so a topic cannot go to another
            return
        prior, word_prior = float(self.prior[0]), float(self.word_prior.flat[0])

        def halve(words: Codes, offsets: Ints) -> Codes:
            pair = CollapsedTopics(
                words, offsets, self.n_words, np.full(2, prior), np.full((1, 2), word_prior), blocks=1
            )
            for _ in range(HALVING):
                pair.sweep(rng)
            return pair.topics

        self._take(
            exchanged(self._words, self._owners, self._topics, self.n_words, self.n_topics, prior, word_prior, halve)
        )  # fmt: skip

    def _draw(self, rng: np.random.Generator) -> None:
        k = self.n_topics
        self._table[:, :k] = self.word_counts + self._word_prior  # counts are whole: rounding does not add up
        totals = np.ones((self.blocks, self._width))
        for b in range(self.blocks):
            totals[b, :k] = self._table[self._word_block == b, :k].sum(axis=0, dtype=np.float64)
        mass = np.ones((self.blocks, self._width))
        if self.blocks > 1:
            drawn = rng.standard_gamma(totals)
            mass = np.maximum(drawn, 1e-300) / np.maximum(drawn.sum(axis=0), 1e-300)
        seeds = rng.integers(0, 2**64, size=(self.blocks, self.blocks, 4), dtype=np.uint64)
        for shift in range(self.blocks):
            work = partial(self._diagonal, shift=shift, totals=totals, mass=mass, seeds=seeds)
            in_parallel(work, range(self.blocks), self._room, self.threads)

    def _room(self) -> Any:
        return np.zeros((3, self._width), dtype=np.float32)

    def _diagonal(self, row: int, room: Any, *, shift: int, totals: Array, mass: Array, seeds: Any) -> None:
        from markovia.kernels.collapsed.topic_sweeps import sweep

        column = (row + shift) % self.blocks
        home = row * self.blocks + column
        low, high = self._starts[home], self._starts[home + 1]
        if low < high:
            sweep(
                self._words, self._owners, self._topics, low, high, self._table, self.document_topic, totals[column],
                self._prior, mass[column], seeds[row, column], room,
            )  # fmt: skip

    def log_prob(self) -> float:
        """Return the log probability of words and topics, with topics' words and documents' topics summed out."""
        from markovia.kernels.collapsed.topic_sweeps import log_gammas

        k = self.n_topics
        counts = np.ascontiguousarray(self.word_counts, dtype=np.int32)
        total = log_gammas(counts, self.word_prior, _small(self.word_prior), len(counts), k, k)
        scale = self.n_words if len(self.word_prior) == 1 else 1
        of_words = self.word_prior.sum(axis=0) * scale
        prior = self.prior[None]
        documents = self.document_topic
        total += log_gammas(documents, prior, _small(prior), len(documents), k, self._width)
        total += sum(
            lgamma(p) - lgamma(p + n)
            for p, n in zip(of_words, counts.sum(axis=0, dtype=np.int64), strict=True)
        )
        lengths, times = np.unique(np.diff(self.offsets), return_counts=True)
        a = float(self.prior.sum())
        total += sum((lgamma(a) - lgamma(a + n)) * t for n, t in zip(lengths, times, strict=True))
        return float(total)

    def state(self) -> dict[str, Array]:
        """Return the topics of all words, and the priors."""
        found: dict[str, Any] = {"topics": self.topics, "prior": self.prior, "word_prior": self.word_prior}
        return found | {"sweeps": np.array(self.sweeps)}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Take up the topics and priors of a state."""
        self.set_priors(state["prior"], state["word_prior"])
        self.sweeps = int(state["sweeps"])
        self._take(np.asarray(state["topics"], dtype=np.int32)[self._order])


def _even_parts(weights: Ints, parts: int) -> Ints:
    """Return a part for each of some things, such that the parts weigh about the same."""
    order = np.argsort(-weights, kind="stable")
    there_and_back = np.concatenate([np.arange(parts), np.arange(parts)[::-1]])
    found = np.empty(len(weights), dtype=np.int64)
    found[order] = np.resize(there_and_back, len(weights))
    return found


def _small(prior: Array) -> Array:
    """Return log gammas of small counts for each topic, where all rows have one prior."""
    from scipy.special import gammaln

    if len(prior) > 1:
        return np.zeros((1, 1))
    found = gammaln(prior[0][:, None] + np.arange(SMALL)) - gammaln(prior[0])[:, None]
    return np.ascontiguousarray(found)
