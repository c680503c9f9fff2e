"""What models of topics share whose topics are drawn token by token: priors, the run, and new documents."""

import os
from typing import Any, Self

import numpy as np

from markovia.data.corpus import Corpus
from markovia.errors import InvalidArgument
from markovia.inference.collapsed.averaged_draws import AveragedDraws
from markovia.inference.collapsed.sampler_runs import digest_of, run_sampler
from markovia.learning.latent.dynamic_topics import document_topics
from markovia.learning.latent.topic_em import normalised
from markovia.models.classifiers.input_checks import kept_on_failure
from markovia.models.topics.base import TopicModel, read_documents, seed_of
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.checks import POSITIVE, SECONDS, Interval, Whole, check
from markovia.runtime.seeds import Seed, generator

THIN = 5
"""Sweeps from one state that is averaged to the next."""


class InformedTopics(TopicModel):
    """The base of models that learn from documents and what else is known of each."""

    prior_: Array

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Learn from documents."""
        with kept_on_failure(self):
            corpus = read_documents(X)
            self._begin(corpus)
            if not len(corpus.words):
                raise InvalidArgument("no document has a word, so that there is nothing to learn topics from")
            self._learn_from(corpus, y, generator(seed_of(self.random_state)))
        return self

    def _learn_from(self, corpus: Corpus, y: Any, rng: np.random.Generator) -> None:
        """Learn from a corpus and what is known of its documents."""
        raise NotImplementedError


class SampledTopics(InformedTopics):
    """The base of models whose topics are drawn by collapsed Gibbs sampling."""

    doc_topic_prior: Any
    topic_word_prior: float
    max_iter: int
    burn_in: int | None
    time_limit: float | None
    checkpoint: str | os.PathLike[str] | None
    progress: bool | None
    history_: list[float]
    n_iter_: int

    def _priors(self, n_topics: int) -> Array:
        """Check the settings, and return the prior counts of topics in a document."""
        check("topic_word_prior", self.topic_word_prior, POSITIVE)
        check("max_iter", self.max_iter, Whole(1))
        check("burn_in", self.burn_in, Whole(0, none=True))
        check("time_limit", self.time_limit, SECONDS)
        return prior_counts(self.doc_topic_prior, n_topics)

    def _run(
        self, sampler: Any, read: Any, rng: np.random.Generator, corpus: Corpus, *more: Any
    ) -> dict[str, Array]:
        """Sweep, and return means of what `read` says of states after the burn-in."""
        burn_in = self.max_iter // 2 if self.burn_in is None else self.burn_in
        averaged = AveragedDraws(sampler, read, burn_in, THIN)
        sampler.start(rng)
        settings = {
            k: v
            for k, v in self.get_params().items()
            if k not in ("max_iter", "time_limit", "checkpoint", "progress")
        }
        run = run_sampler(
            averaged, self.max_iter, rng, time_limit=self.time_limit, progress=self.progress, checkpoint=self.checkpoint,
            digest=digest_of(corpus.words, corpus.offsets, repr(settings), *more), name=type(self).__name__,
        )  # fmt: skip
        self.history_, self.n_iter_ = run.history, run.sweeps
        return averaged.means()

    def _proportions(self, corpus: Corpus, seed: Seed) -> Array:
        """Return mean proportions given the learned topics, by variational Bayes."""
        return inferred_topics(corpus, self.topic_word_, self.prior_)


def prior_counts(given: Any, n_topics: int) -> Array:
    """Return the prior counts of topics in a document, by default 1 / topics each."""
    check("n_components", n_topics, Whole(1))
    try:
        alpha = np.broadcast_to(
            np.asarray(1.0 / n_topics if given is None else given, dtype=float), (n_topics,)
        ).copy()
    except (TypeError, ValueError):
        alpha = np.full(n_topics, np.nan)
    if not ((alpha > 0.0) & np.isfinite(alpha)).all():
        raise InvalidArgument(
            f"doc_topic_prior= is a number above 0, or {n_topics} of them, one a topic, not {given!r}"
        )
    return alpha


def inferred_topics(corpus: Corpus, topic_word: Array, prior: Array) -> Array:
    """Return mean proportions of documents given topics, (topics, words), and prior counts of topics."""
    found, _, _ = document_topics(corpus.counts(), np.ascontiguousarray(topic_word.T), prior, max_iter=200)
    return normalised(found, 1)


def first_halves(corpus: Corpus) -> Flags:
    """Return which words are in the first halves of their documents, for models whose words have an order.

    Raises where no document has two words.
    """
    lengths = corpus.lengths
    if not (lengths > 1).any():
        raise InvalidArgument(
            "no document has two known words, so that one could be predicted from the other"
        )
    place = np.arange(len(corpus.words)) - np.repeat(corpus.offsets[:-1], lengths)
    return np.asarray(2 * place < np.repeat(lengths, lengths))


def listed(values: Any, n: int, what: str) -> tuple[Ints, Ints, list[Any]]:
    """Return pointers, positions and the names in order of what each document has: one name, or a list of them."""
    if values is None:
        raise InvalidArgument(
            f"y= is {what} of each document: requires y to be passed, but the target y is None"
        )
    each = [_names(v) for v in values]
    if len(each) != n:
        raise InvalidArgument(f"y= has {what} of {len(each)} documents, and there are {n}")
    try:
        names = sorted({v for own in each for v in own})
    except TypeError:
        names = sorted({v for own in each for v in own}, key=str)
    code = {v: i for i, v in enumerate(names)}
    pointers = np.concatenate([[0], np.cumsum([len(own) for own in each])]).astype(np.int64)
    return pointers, np.array([code[v] for own in each for v in own], dtype=np.int64), names


def _names(value: Any) -> list[Any]:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return []
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return [value.item() if isinstance(value, np.generic) else value]
    return list(dict.fromkeys(v.item() if isinstance(v, np.generic) else v for v in value))


ONE_TO_ONE = Interval(0.0, 1.0, open="low", said="a number above 0, at most 1")
