"""Latent Dirichlet allocation: documents mix topics, topics are distributions over words.

Reference: Blei, Ng and Jordan (2003). Learned by collapsed or uncollapsed Gibbs sampling, by variational Bayes on a whole
corpus or in pieces, or by EM for the most probable topics. Cost: words x topics a pass.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any, Literal, Self

import numpy as np

from markovia.data.text.corpus import BATCH, Corpus, CorpusStream
from markovia.errors import InvalidArgument
from markovia.inference.collapsed.sampler_settings import SamplerSettings
from markovia.inference.collapsed.topic_gibbs import CollapsedTopics
from markovia.inference.collapsed.topic_uncollapsed import UncollapsedTopics
from markovia.learning.latent.topic_propagation import PropagatedTopics
from markovia.learning.latent.topic_variational import BoundedTopics, DocumentSteps, climbed, online_step
from markovia.models.topics.base import read_documents
from markovia.models.topics.lda_priors import prior_counts, seeded_places, word_priors
from markovia.models.topics.lda_questions import TopicQuestions
from markovia.optimise.ascent import Climb, climb
from markovia.optimise.checkpoint import Checkpoint, digest_of
from markovia.runtime.array_types import Array, Codes
from markovia.runtime.checks import (
    Count,
    CountOrNone,
    Decay,
    FromZeroOrNone,
    Kind,
    NumberRange,
    Positive,
    Tolerance,
)
from markovia.runtime.clock import Clock
from markovia.runtime.estimator import fitting
from markovia.runtime.seeds import Seed, generator

SAMPLED = ("gibbs", "uncollapsed")
KEPT_PRIORS = ("online", "map", "ep")
SEEDS = Kind((Mapping,), "a mapping from topics to lists of words", none=True)
LEARNED = 0.1
"""Where priors that are learned begin."""
START = 50
"""Sweeps of the sampler from which "vb", "map" and "online" begin."""
ENOUGH, SOFT = 200_000, 0.8
"""Words from which "online" begins, and how much its first topics are drawn to how frequent words are."""
FEW = 7
"""Steps a document of "online": more of them gain less than more documents do."""


@dataclass(eq=False, repr=False)
class LDA(SamplerSettings, TopicQuestions):
    """Topics of documents, by latent Dirichlet allocation.

    Parameters
    ----------
    n_components
        The number of topics.
    method
        "gibbs" (collapsed), "vb" (variational Bayes), "online" (the same in pieces, for corpora beyond memory),
        "uncollapsed" (Gibbs with proportions and topics drawn too), "map" (EM) or "ep" (the most probable topics by the
        evidence of documents, which expectation propagation finds; Minka and Lafferty 2002).
    max_iter
        Sweeps or passes over the documents; by default 300 for samplers, 100 for "vb", "map" and "ep", 10 for "online".
    tol
        The gain of the bound a word at which "vb", "online", "map" and "ep" stop.
    doc_topic_prior, topic_word_prior
        Parameters of the Dirichlet priors, a number or one for each topic (word); by default they are learned from 0.1
        on, and for "online", "map" and "ep" 1 / n_components.
    learn_priors
        Whether priors are learned (of documents one for each topic, of words one for all; Wallach et al. 2009); by default
        those that are not given, except for "online", "map" and "ep". Topics differ in theirs once each has its place.
    seeds
        Words that lead topics: `{0: ["goal", "match"]}`; they begin there and weigh `seed_weight` more in the prior.
    seed_weight
        Words that a seed is worth.
    burn_in, n_draws
        Sweeps before draws are kept (by default half); draws that are kept, evenly, and averaged.
    learning_decay, learning_offset, batch_size, total_samples
        Of "online" and `partial_fit`, as in scikit-learn.
    max_doc_update_iter, mean_change_tol
        Steps a document at most (by default 100, and 7 where "online" learns), and the mean change at which they end.
    n_jobs
        Threads; the answer does not depend on it.
    random_state
        The seed.
    time_limit, progress
        Seconds at most; whether to show a progress bar.
    checkpoint
        A file that samplers, "vb", "map" and "ep" write their state to and go on from.

    Attributes
    ----------
    components_
        Topics x words: Dirichlet parameters (expected counts and prior).
    doc_topic_prior_, topic_word_prior_
        The priors, learned or given.
    doc_topic_
        The proportions of the documents learned from (not for "online").
    history_
        The log joint probability after each sweep, the bound, log posterior or log evidence after each pass.
    n_iter_, converged_, stopped_
        Passes; whether the bound settled; "time limit" or "interrupted" where that ended the fit.

    Examples
    --------
    >>> texts = ["cat dog cat", "dog cat dog dog", "sun rain sun", "rain sun rain rain"] * 5
    >>> lda = LDA(2, doc_topic_prior=0.1, topic_word_prior=0.1, max_iter=50, random_state=0).fit(texts)
    >>> sorted(sorted(words) for words in lda.top_words(2))
    [['cat', 'dog'], ['rain', 'sun']]
    >>> lda.transform(["cat cat dog"]).max() > 0.9
    np.True_
    """

    n_components: Count = 10
    _: KW_ONLY
    method: Literal["gibbs", "vb", "online", "uncollapsed", "map", "ep"] = "gibbs"
    max_iter: CountOrNone = None  # type: ignore[assignment]  # None is what is usual for the method
    tol: Tolerance = 1e-4
    doc_topic_prior: Any = None
    topic_word_prior: Any = None
    learn_priors: bool | None = None
    seeds: Annotated[Mapping[int, Sequence[str]] | None, SEEDS] = None
    seed_weight: Tolerance = 50.0
    burn_in: FromZeroOrNone = None
    n_draws: Count = 10
    learning_decay: Decay = 0.7
    learning_offset: Tolerance = 10.0
    batch_size: Count = BATCH
    total_samples: Annotated[float | None, NumberRange(1.0, said="1 or more", none=True)] = None
    max_doc_update_iter: CountOrNone = None
    mean_change_tol: Positive = 1e-3
    n_jobs: int | None = None
    progress: bool | None = None

    _not_saved = ("_draws", "_offsets", "_state")

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Learn the topics of documents: a `Corpus` or its stream, or what `Corpus.read` takes; "online" streams a path."""
        if self.method != "online" or not isinstance(X, CorpusStream | str | os.PathLike):
            return super().fit(X, y)
        with fitting(self):
            stream = X if isinstance(X, CorpusStream) else Corpus.stream(X, batch_size=self.batch_size)
            self.vocabulary_, self._tokenizer = list(stream.vocabulary), stream.tokenizer
            self.n_features_in_ = len(self.vocabulary_)
            self.word_frequency_ = np.full(self.n_features_in_, 1.0 / max(self.n_features_in_, 1))
            n = sum(len(piece) for piece in stream)
            self._online(stream, n, generator(self.random_state))
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Learn from one more piece of documents, by an online variational step; the first gives the vocabulary.

        `total_samples` says how many documents there will be (by default as many as were seen).
        """
        with fitting(self):
            first = not hasattr(self, "components_")
            corpus = read_documents(X) if first else self._corpus(X)
            if first:
                self._begin(corpus)
                n = self.total_samples or len(corpus)
                self._start_online(corpus, n, generator(self.random_state))
            elif not hasattr(self, "_seen"):  # learned by another method: go on from its topics
                self.n_batch_iter_, self._seen = 1, 0
            self._seen += len(corpus)
            self._online_step(corpus, self.total_samples or max(self._seen, 1))
        return self

    @property
    def _passes(self) -> int:
        usual = {"gibbs": 300, "uncollapsed": 300, "online": 10}
        return self.max_iter or usual.get(self.method, 100)

    @property
    def _threads(self) -> int | None:  # type: ignore[override]
        return None if self.n_jobs is None or self.n_jobs < 0 else max(int(self.n_jobs), 1)

    @property
    def _learned(self) -> tuple[bool, bool]:
        """Whether the priors of documents and of words are learned."""
        if self.method in KEPT_PRIORS:
            if self.learn_priors:
                raise InvalidArgument(
                    f"method={self.method!r} keeps its priors; learn_priors=True is for the other methods"
                )
            return False, False
        if self.learn_priors is not None:
            return self.learn_priors, self.learn_priors and not self.seeds
        return self.doc_topic_prior is None, self.topic_word_prior is None and not self.seeds

    def _priors(self, vocabulary: list[str]) -> tuple[Array, Array]:
        """Return the priors to begin with: (topics), and (1 or words) x topics."""
        k = self.n_components
        fixed = self.method in KEPT_PRIORS
        usual, words = (1.0 / k, 1.0 / k) if fixed else (max(1.0 / k, LEARNED), LEARNED)
        table = word_priors(self.topic_word_prior, vocabulary, k, self.seeds, self.seed_weight, words)
        return prior_counts(self.doc_topic_prior, k, usual=usual), table

    def _learn(self, corpus: Corpus, y: Any, rng: np.random.Generator) -> None:
        if self.method == "online":
            self._online(corpus, len(corpus), rng)
        elif self.method in SAMPLED:
            self._sample(corpus, rng)
        else:
            self._climb(corpus, rng)

    def _sampler(self, corpus: Corpus, **given: Any) -> CollapsedTopics:
        kind = UncollapsedTopics if self.method == "uncollapsed" else CollapsedTopics
        return kind(
            corpus.words, corpus.offsets, self.n_features_in_, *self._priors(self.vocabulary_), self._begin_topics(corpus),
            threads=self._threads, **given,
        )  # fmt: skip

    def _sample(self, corpus: Corpus, rng: np.random.Generator) -> None:
        learned, sweeps = self._learned, self._passes
        sampler = self._sampler(corpus, learn=learned)
        burn_in = min(sweeps // 2 if self.burn_in is None else self.burn_in, sweeps - 1)
        about = (corpus.words, corpus.offsets, sampler.prior, sampler.word_prior, self.method, learned)
        run = self._sweeps(
            sampler, rng, lambda: _kept(sampler), sweeps=sweeps, burn_in=burn_in,
            thin=max(1, -(-(sweeps - burn_in) // self.n_draws)), about=about, name="LDA",
        )  # fmt: skip
        self._draws, self._offsets = run.draws, corpus.offsets
        counts, mixed = (
            np.mean([d[name] for d in self._draws], axis=0) for name in ("word_counts", "document_counts")
        )
        self.doc_topic_prior_, self.topic_word_prior_ = (
            sampler.prior,
            np.ascontiguousarray(sampler.word_prior.T),
        )
        self.components_ = np.ascontiguousarray((counts + sampler.word_prior).T)
        mixed += sampler.prior
        self.doc_topic_ = mixed / mixed.sum(axis=1, keepdims=True)
        self.stopped_, self.converged_ = run.reason, True

    def _begin_topics(self, corpus: Corpus) -> Codes | None:
        """Return the topics of seeded words, -1 for others."""
        if not self.seeds:
            return None
        leads = np.full(self.n_features_in_, -1, dtype=np.int32)
        for topic, place in seeded_places(self.seeds, self.n_components, self.vocabulary_):
            leads[place] = topic
        return np.asarray(leads[corpus.words])

    # -- bounds ----------------------------------------------------------------------------------------------------------

    def _started(self, corpus: Corpus, rng: np.random.Generator) -> BoundedTopics:
        """Return topics to begin with.

        Bounds have many peaks; some sweeps of the sampler find a good one, at a small part of the cost.
        """
        sampler = self._sampler(corpus)
        for _ in range(START):
            sampler.sweep(rng)
        start = sampler.word_counts + sampler.word_prior
        return self._topics(start, sampler.prior, sampler.word_prior)

    def _topics(self, components: Array, prior: Array, word_prior: Array) -> BoundedTopics:
        """Return topics with the steps of the method."""
        kind = PropagatedTopics if self.method == "ep" else BoundedTopics
        return kind(components, prior, word_prior, self.method in ("map", "ep"), self._threads)

    def _climb(self, corpus: Corpus, rng: np.random.Generator) -> None:
        learned, topics = self._learned, self._started(corpus, rng)
        digest = digest_of(corpus.words, corpus.offsets, topics.components, self.method, learned)
        with Clock(self.time_limit, False):
            found = climbed(
                topics, corpus.counts(), corpus.lengths.astype(np.float64), learned, passes=self._passes, tol=self.tol,
                most=self.max_doc_update_iter or 100, change=self.mean_change_tol, progress=self.progress,
                checkpoint=Checkpoint(self.checkpoint, digest),
            )  # fmt: skip
        self._state = found.state.documents
        self._settle(found.state.topics)
        self.doc_topic_ = self._state / self._state.sum(axis=1, keepdims=True)
        self._finish(found)

    def _online(self, pieces: Corpus | CorpusStream, n: int, rng: np.random.Generator) -> None:
        first, heard = [], 0
        for piece in self._pieces(pieces, rng):
            first.append(piece)
            heard += len(piece.words)
            if heard >= ENOUGH:
                break
        offsets = np.concatenate([[0], np.cumsum(np.concatenate([piece.lengths for piece in first]))])
        words = np.concatenate([piece.words for piece in first])
        self._start_online(Corpus(words, offsets, self.vocabulary_), n, rng)

        def one_pass(now: tuple[Array, int]) -> tuple[tuple[Array, int], float]:
            self.components_, self.n_batch_iter_ = now
            total, heard = 0.0, 0
            for piece in self._pieces(pieces, rng):
                total += self._online_step(piece, n)
                heard += len(piece.words)
                if clock.over():  # a pass may take hours
                    break
            return (self.components_, self.n_batch_iter_), total / max(heard, 1)

        with Clock(self.time_limit, False) as clock:
            found = climb(
                one_pass, (self.components_, self.n_batch_iter_), max_iter=self._passes, tol=self.tol, may_fall=True,
                progress=self.progress, name="LDA", unit="pass",
            )  # fmt: skip
        self.components_, self.n_batch_iter_ = found.state
        self._finish(found)

    def _pieces(self, pieces: Corpus | CorpusStream, rng: np.random.Generator) -> Iterator[Corpus]:
        if isinstance(pieces, CorpusStream):
            return iter(pieces)
        order = rng.permutation(len(pieces))
        return (pieces[order[i : i + self.batch_size]] for i in range(0, len(order), self.batch_size))

    def _start_online(self, piece: Corpus, n: float, rng: np.random.Generator) -> None:
        """Begin with the topics of a first piece, as if all documents were like it.

        Few documents have few of a topic's words: topics are drawn to how frequent words are, else they could not find
        the others.
        """
        model = self._started(piece, rng)
        counts = (model.components - model.word_prior) * (n / max(len(piece), 1))
        frequent = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / max(counts.sum(), 1.0)
        model.set_components(SOFT * frequent + (1.0 - SOFT) * counts + model.word_prior)
        self._settle(model)
        self.n_batch_iter_, self._seen = 1, 0
        self.n_iter_, self.converged_, self.stopped_, self.history_ = 1, False, None, []

    def _online_step(self, corpus: Corpus, n: float) -> float:
        """Move the topics towards a piece of documents, and return the piece's part of the bound."""
        share = (self.learning_offset + self.n_batch_iter_) ** -self.learning_decay
        rule = {
            "most": self.max_doc_update_iter or FEW,
            "tol": self.mean_change_tol,
            "threads": self._threads,
        }
        self.components_, bound = online_step(
            self.components_, self.doc_topic_prior_, self.topic_word_prior_, corpus.counts(), share, n, **rule
        )
        self.n_batch_iter_ += 1
        return bound

    def _bounded(self) -> BoundedTopics:
        """Return the topics as they are now, for variational steps."""
        words, prior = (np.ascontiguousarray(a.T) for a in (self.components_, self.topic_word_prior_))
        return self._topics(words, self.doc_topic_prior_, prior)

    def _settle(self, model: BoundedTopics) -> None:
        self.components_ = np.ascontiguousarray(model.components.T)
        self.doc_topic_prior_, self.topic_word_prior_ = model.prior, np.ascontiguousarray(model.word_prior.T)

    def _finish(self, found: Climb[Any]) -> None:
        self.history_, self.n_iter_ = found.history, len(found.history)
        self.converged_, self.stopped_ = found.converged, found.stopped
        found.warn(self.tol)

    def _proportions(self, corpus: Corpus, seed: Seed) -> Array:
        if self.method in SAMPLED:
            return super()._proportions(corpus, seed)
        state = self._steps(corpus).state
        return np.asarray(state / state.sum(axis=1, keepdims=True))

    def _steps(self, corpus: Corpus) -> DocumentSteps:
        most, tol = self.max_doc_update_iter or 100, self.mean_change_tol
        return self._bounded().steps(corpus.counts(), most=most, tol=tol, keep=False)


def _kept(sampler: CollapsedTopics) -> dict[str, Array]:
    """Return what a draw leaves, in small whole numbers."""
    found = {n: getattr(sampler, n) for n in ("word_counts", "document_counts", "topics")}
    return {n: a.astype(np.min_scalar_type(int(a.max(initial=0)))) for n, a in found.items()}
