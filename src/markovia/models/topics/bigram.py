"""Topics of pairs of words: a word depends on its topic and on the word before it."""

import os
from typing import Any, Self

import numpy as np

from markovia.data.corpus import Corpus
from markovia.inference.collapsed.token_samplers import TokenTopics
from markovia.learning.latent.dynamic_topics import document_topics
from markovia.learning.latent.topic_em import expected, normalised
from markovia.models.topics.sampled import SampledTopics, first_halves
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.checks import Whole, check
from markovia.runtime.seeds import Seed


class BigramTopics(SampledTopics):
    """The bigram topic model: topics as in LDA, and words drawn given topic and previous word.

    The prior of each topic's words after a word is Dirichlet around how frequent words are. Documents must be texts
    or lists of words, as counts have no order. Reference: Wallach (2006).

    Parameters
    ----------
    n_components
        The number of topics.
    doc_topic_prior
        Prior count of each topic in a document; 1 / n_components by default.
    topic_word_prior
        The sum of the prior counts of all words that may follow a word in a topic.
    max_iter, burn_in
        Sweeps, and how many of them come before those that are averaged; half by default.
    time_limit, checkpoint, progress
        Seconds after which sweeps end; a file that keeps the state, from which an interrupted run goes on; a progress
        bar.
    random_state
        The seed.

    Attributes
    ----------
    components_
        Mean counts of words in topics, whatever the word before, topics x words.
    pairs_, pair_counts_, context_counts_
        The pairs that occur, (pairs, 2), where a first word past the last is the start of a document; mean counts
        with the prior by pair and topic, and by first word and topic.
    doc_topic_
        Proportions of topics of the documents learned from.
    history_, n_iter_
        The log probability after each sweep, and their number.

    Examples
    --------
    >>> texts = ["new york city", "new rules apply", "york city park", "rules apply here"] * 10
    >>> model = BigramTopics(2, max_iter=60, random_state=0).fit(texts)
    >>> model.next_words("york", 1)[0][0]
    'city'
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        doc_topic_prior: Any = None,
        topic_word_prior: float = 1.0,
        max_iter: int = 200,
        burn_in: int | None = None,
        time_limit: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: bool | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.max_iter = max_iter
        self.burn_in = burn_in
        self.time_limit = time_limit
        self.checkpoint = checkpoint
        self.progress = progress
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Learn from documents whose words are in order."""
        return super().fit(X, y)

    def _learn_from(self, corpus: Corpus, y: Any, rng: np.random.Generator) -> None:
        v = len(corpus.vocabulary)
        self.prior_ = self._priors(self.n_components)
        keys, codes = np.unique(_keys(corpus), return_inverse=True)
        self.pairs_ = np.column_stack([keys // v, keys % v])
        base = self.topic_word_prior * self.word_frequency_
        beta = np.repeat(base[self.pairs_[:, 1]][:, None], self.n_components, axis=1)
        sampler = TokenTopics(
            codes, corpus.offsets, self.prior_, beta, context=self.pairs_[codes, 0],
            context_prior=np.full((v + 1, self.n_components), self.topic_word_prior),
        )  # fmt: skip
        found = self._run(
            sampler,
            lambda: {
                "theta": sampler.proportions(),
                "pairs": sampler.counts.places,
                "first": sampler.counts.totals,
            },
            rng,
            corpus,
        )
        self.doc_topic_, self.pair_counts_, self.context_counts_ = (
            found["theta"],
            found["pairs"],
            found["first"],
        )
        words = np.repeat(base[:, None], self.n_components, axis=1)
        np.add.at(words, self.pairs_[:, 1], self.pair_counts_ - beta)
        self.components_ = np.ascontiguousarray(words.T)

    def next_words(self, word: str, n: int = 5, *, topic: int | None = None) -> list[tuple[str, float]]:
        """Return the likeliest words after a word and their probabilities, in one topic or over all."""
        check("n", n, Whole(1))
        first = self._place(word)
        shares = self.topic_shares_ if topic is None else np.eye(self.n_components)[topic]
        keys = first * self.n_features_in_ + np.arange(self.n_features_in_)
        found = self._pair_probabilities(keys) @ shares
        return [(self.vocabulary_[w], float(found[w])) for w in np.argsort(-found, kind="stable")[:n]]

    def _pair_probabilities(self, keys: Ints) -> Array:
        """Return p(second word | first, topic) of pairs, (pairs, topics)."""
        v = self.n_features_in_
        known = self.pairs_[:, 0] * v + self.pairs_[:, 1]
        at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        prior = self.topic_word_prior * self.word_frequency_[keys % v]
        counts = np.where((known[at] == keys)[:, None], self.pair_counts_[at], prior[:, None])
        return np.asarray(counts / self.context_counts_[keys // v])

    def _pair_counts(self, corpus: Corpus, *chosen: Flags) -> tuple[list[Any], Array]:
        """Return counts of documents and pairs among chosen words, and probabilities of the pairs."""
        from scipy.sparse import csr_array

        keys, codes = np.unique(_keys(corpus), return_inverse=True)
        owners, size = corpus.owners, (len(corpus), max(len(keys), 1))
        counts = [csr_array((np.ones(m.sum()), (owners[m], codes[m])), shape=size) for m in chosen]
        return counts, self._pair_probabilities(keys) if len(keys) else np.ones((1, self.n_components))

    def _proportions(self, corpus: Corpus, seed: Seed) -> Array:
        (counts,), phi = self._pair_counts(corpus, np.ones(len(corpus.words), dtype=bool))
        return normalised(document_topics(counts, phi, self.prior_, max_iter=200)[0], 1)

    def _completion(self, corpus: Corpus, seed: Seed) -> tuple[float, int]:
        first = first_halves(corpus)
        (known, asked), phi = self._pair_counts(corpus, first, ~first)
        theta = normalised(document_topics(known, phi, self.prior_, max_iter=200)[0], 1)
        return expected(asked, theta, phi, words=False)[0], int(asked.sum())


def _keys(corpus: Corpus) -> Ints:
    """Return a number for each word and the one before it; at the start of a document that is one past the last."""
    first = np.roll(corpus.words, 1).astype(np.int64)
    first[corpus.offsets[:-1][corpus.lengths > 0]] = len(corpus.vocabulary)
    return first * len(corpus.vocabulary) + corpus.words
