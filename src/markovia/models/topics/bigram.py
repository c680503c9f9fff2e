"""Topics of pairs of words: a word depends on its topic and on the word before it."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from markovia.data.text.corpus import Corpus
from markovia.inference.collapsed.token_samplers import TokenTopics
from markovia.learning.latent.document_draws import DrawnWords, draw_from_rows
from markovia.models.topics.base import log_probability
from markovia.models.topics.lda_priors import prior_counts
from markovia.models.topics.sampled import SampledTopics, first_halves, given_topics
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, Positive, Whole, check
from markovia.runtime.seeds import Seed


@dataclass(eq=False, repr=False)
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
    max_iter, burn_in, time_limit, checkpoint, progress, random_state
        As in `LDA`.

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

    n_components: Count = 10
    topic_word_prior: Positive = field(default=1.0, kw_only=True)

    def _learn(self, corpus: Corpus, y: Any, rng: np.random.Generator) -> None:
        v, k = len(corpus.vocabulary), self.n_components
        keys, codes = np.unique(_keys(corpus), return_inverse=True)
        self.pairs_ = np.column_stack([keys // v, keys % v])
        base = np.repeat((self.topic_word_prior * self.word_frequency_)[:, None], k, axis=1)
        beta = base[self.pairs_[:, 1]]
        self.doc_topic_prior_ = prior_counts(self.doc_topic_prior, k)
        sampler = TokenTopics(
            codes, corpus.offsets, self.doc_topic_prior_, beta, context=self.pairs_[codes, 0],
            context_prior=np.full((v + 1, k), self.topic_word_prior),
        )  # fmt: skip
        found = self._run(sampler, rng, corpus)
        self.doc_topic_, self.pair_counts_, self.context_counts_ = (
            found[name] for name in ("theta", "words", "totals")
        )
        np.add.at(base, self.pairs_[:, 1], self.pair_counts_ - beta)
        self.components_ = np.ascontiguousarray(base.T)

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

    def _in_pairs(self, corpus: Corpus) -> tuple[Corpus, Array]:
        """Return documents whose words are pairs, and the probabilities of these, (topics, pairs)."""
        keys, codes = np.unique(_keys(corpus), return_inverse=True)
        pairs = replace(corpus, words=codes.astype(np.int32), vocabulary=[str(key) for key in keys])
        return pairs, self._pair_probabilities(keys).T

    def _proportions(self, corpus: Corpus, seed: Seed) -> Array:
        return given_topics(*self._in_pairs(corpus), self.doc_topic_prior_)

    def _draw(self, lengths: Ints, y: Any, rng: np.random.Generator) -> DrawnWords:
        """Draw words in turn: one that was seen after the last one in the topic, or by the prior any word."""
        drawn = super()._draw(lengths, y, rng)  # of which only topics stay
        prior, begin = self.topic_word_prior, np.cumsum(lengths) - lengths
        seen = self.pair_counts_ - prior * self.word_frequency_[self.pairs_[:, 1], None]
        sums = np.vstack([np.zeros(self.n_components), np.maximum(seen, 0.0).cumsum(axis=0)])
        starts = np.searchsorted(self.pairs_[:, 0], np.arange(self.n_features_in_ + 2))
        words = draw_from_rows(self.word_frequency_[None], np.zeros_like(drawn.topics), rng)
        for t in range(int(lengths.max())):  # all documents together, word by word
            at = begin[lengths > t] + t
            first = words[at - 1] if t else np.full(len(at), self.n_features_in_)
            low, high = (sums[starts[first + i], drawn.topics[at]] for i in (0, 1))
            target = low + rng.random(len(at)) * (prior + high - low)
            for k in np.unique(drawn.topics[at[target < high]]):
                own = (drawn.topics[at] == k) & (target < high)
                pair = np.searchsorted(sums[:, k], target[own], side="right") - 1
                words[at[own]] = self.pairs_[pair, 1]
        return drawn._replace(words=words)

    def _completion(self, corpus: Corpus, seed: Seed) -> tuple[float, int]:
        first = first_halves(corpus)
        pairs, phi = self._in_pairs(corpus)
        asked, theta = pairs.where(~first), given_topics(pairs.where(first), phi, self.doc_topic_prior_)
        return log_probability(theta, phi, asked), len(asked.words)


def _keys(corpus: Corpus) -> Ints:
    """Return a number for each word and the one before it; at the start of a document that is one past the last."""
    first = np.roll(corpus.words, 1).astype(np.int64)
    first[corpus.offsets[:-1][corpus.lengths > 0]] = len(corpus.vocabulary)
    return first * len(corpus.vocabulary) + corpus.words
