"""Topics and syntax: words follow a hidden chain of classes, one of which draws them from the document's topics."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from markovia.data.text.corpus import Corpus
from markovia.errors import InvalidArgument
from markovia.inference.collapsed.averaged_draws import AveragedDraws
from markovia.inference.collapsed.sampler_runs import run_sampler
from markovia.inference.collapsed.syntax_sampler import SyntaxTopics
from markovia.learning.latent.document_draws import DrawnWords, draw_from_rows
from markovia.learning.latent.topic_em import normalised
from markovia.models.topics.lda_priors import prior_counts
from markovia.models.topics.sampled import SampledTopics, first_halves
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, Positive, Whole, check
from markovia.runtime.seeds import Seed, generator

SWEEPS = 60
"""Sweeps over new documents; the first third is not averaged."""


@dataclass(eq=False, repr=False)
class HMMLDA(SampledTopics):
    """Topics and syntax: a hidden Markov model of word classes, where class 0 is LDA.

    Words that depend on their neighbours ("the", "of") go to classes 1, 2, ...; words that depend on the document go
    to topics, so that no list of stop words is needed. Documents must be texts or lists of words, as counts have no
    order. Reference: Griffiths et al. (2005).

    Parameters
    ----------
    n_components
        The number of topics.
    n_classes
        The number of classes, the topics' included; 1 is LDA.
    doc_topic_prior
        Prior count of each topic in a document; 1 / n_components by default.
    topic_word_prior, class_word_prior
        Prior count of each word in a topic, and in a class.
    step_prior
        Prior count of each step from a class to another.
    n_init
        From how many random states to begin; the most probable after 50 sweeps is gone on from.
    max_iter, burn_in, time_limit, checkpoint, progress, random_state
        As in `LDA`.

    Attributes
    ----------
    components_
        Mean counts of words and the prior, topics x words.
    class_counts_
        Mean counts of words in classes and the prior, classes x words; row 0 has the prior only.
    transition_
        Probabilities of steps from class to class.
    start_
        Probabilities of the first class of a document.
    doc_topic_
        Proportions of topics of the documents learned from.
    history_, n_iter_
        The log probability after each sweep, and their number.

    Examples
    --------
    >>> texts = ["the cat of the farm saw the dog", "the star of the sky saw the sun"] * 10
    >>> model = HMMLDA(2, 3, max_iter=50, random_state=0).fit(texts)
    >>> sorted(words[0] for words in model.class_words(1)[1:])
    ['of', 'the']
    """

    n_components: Count = 10
    n_classes: Count = 5
    _: KW_ONLY
    class_word_prior: Positive = 0.05
    step_prior: Positive = 0.1
    n_init: Count = 2
    max_iter: Count = 300

    def _learn(self, corpus: Corpus, y: Any, rng: np.random.Generator) -> None:
        self.doc_topic_prior_ = prior_counts(self.doc_topic_prior, self.n_components)
        if np.ptp(self.doc_topic_prior_):
            raise InvalidArgument("doc_topic_prior= is one number for all topics in HMMLDA")
        v, c = len(corpus.vocabulary), self.n_classes
        beta, delta = (
            np.full((v, self.n_components), self.topic_word_prior),
            np.full((v, c), self.class_word_prior),
        )
        sampler = self._sampler(corpus, beta, delta, np.full((c + 1, c), self.step_prior))
        sampler.tries = self.n_init
        found = self._run(sampler, rng, corpus)
        self.doc_topic_, self.step_counts_ = found["theta"], found["steps"]
        self.components_, self.class_counts_ = (
            np.ascontiguousarray(found[k].T) for k in ("words", "word_class")
        )

    def _sampler(self, corpus: Corpus, beta: Array, delta: Array, gamma: Array) -> SyntaxTopics:
        return SyntaxTopics(corpus.words, corpus.offsets, float(self.doc_topic_prior_[0]), beta, delta, gamma)

    @property
    def transition_(self) -> Array:
        """Probabilities of steps from class to class."""
        return normalised(self.step_counts_[:-1], 1)

    @property
    def start_(self) -> Array:
        """Probabilities of the first class of a document."""
        return normalised(self.step_counts_[-1], 0)

    def class_words(self, n: int = 10) -> list[list[str]]:
        """Return the leading words of each class; those of class 0 are the leading words of all topics together."""
        check("n", n, Whole(1))
        laws = normalised(self.class_counts_, 1)
        laws[0] = self.topic_shares_ @ self.topic_word_
        return [[self.vocabulary_[w] for w in np.argsort(-law, kind="stable")[:n]] for law in laws]

    def assign(self, X: Any) -> list[list[tuple[str, int, int]]]:  # noqa: N803
        """Return each document's words with class and topic (-1 outside class 0), as the last sweep over them drew."""
        corpus = self._corpus(X)
        sampler, _ = self._new(corpus, self.random_state)
        each = list(zip(corpus.words.tolist(), sampler.group.tolist(), sampler.topic.tolist(), strict=True))
        named = [(self.vocabulary_[w], c, k) for w, c, k in each]
        return [named[a:b] for a, b in zip(corpus.offsets[:-1], corpus.offsets[1:], strict=True)]

    def _new(self, corpus: Corpus, seed: Seed) -> tuple[SyntaxTopics, dict[str, Array]]:
        """Sweep over new documents with what was learned as prior counts; return the sampler and means."""
        rng = generator(seed)
        sampler = self._sampler(
            corpus,
            np.ascontiguousarray(self.components_.T),
            np.ascontiguousarray(self.class_counts_.T),
            self.step_counts_,
        )
        sampler.start(rng)
        averaged = AveragedDraws(sampler, SWEEPS // 3)
        run_sampler(averaged, SWEEPS, rng)
        return sampler, averaged.means()

    def _proportions(self, corpus: Corpus, seed: Seed) -> Array:
        return self._new(corpus, seed)[1]["theta"]

    def _draw(self, lengths: Ints, y: Any, rng: np.random.Generator) -> DrawnWords:
        """Draw the classes of each document's words as a chain, and words by class or, in class 0, by topics."""
        drawn = super()._draw(lengths, y, rng)
        starts, group = np.cumsum(lengths) - lengths, np.zeros(int(lengths.sum()), dtype=np.int64)
        laws = np.vstack([self.transition_, self.start_])
        for t in range(int(lengths.max())):  # all documents together, word by word
            at = starts[lengths > t] + t
            group[at] = draw_from_rows(laws, group[at - 1] if t else np.full(len(at), self.n_classes), rng)
        words = draw_from_rows(self.class_counts_, group, rng)
        return drawn._replace(
            words=np.where(group > 0, words, drawn.words), topics=np.where(group > 0, -1, drawn.topics)
        )

    def _completion(self, corpus: Corpus, seed: Seed) -> tuple[float, int]:
        """Return log p of the second halves of documents given the first, by the forward algorithm, and their words."""
        known = first_halves(corpus)
        theta = self._proportions(corpus.where(known), seed)
        owners, lengths = corpus.owners, corpus.lengths
        emission = normalised(self.class_counts_, 1).T[corpus.words]
        emission[:, 0] = np.einsum("nk,nk->n", theta[owners], self.topic_word_.T[corpus.words])
        belief, total = np.tile(self.start_, (len(corpus), 1)), 0.0
        for t in range(int(lengths.max())):  # all documents together, word by word
            here = np.flatnonzero(lengths > t)
            at = corpus.offsets[here] + t
            joint = belief[here] * emission[at]
            mass = joint.sum(axis=1)
            total += float(np.log(mass[~known[at]]).sum())
            belief[here] = (joint / mass[:, None]) @ self.transition_
        return total, int((~known).sum())
