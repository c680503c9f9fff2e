"""Topics that are labels: a document draws its words only from the topics of the labels it has."""

import os
from itertools import pairwise
from typing import Any, Self

import numpy as np

from markovia.data.corpus import Corpus
from markovia.inference.collapsed.token_samplers import TokenTopics
from markovia.models.topics.sampled import SampledTopics, inferred_topics, listed
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Whole, check


class LabelledLDA(SampledTopics):
    """Labelled LDA: each label is a topic, and a document has only topics of its labels.

    Which words of a document come from which of its labels is learned, and so what each label is about. Documents
    without labels may have all topics. Reference: Ramage et al. (2009).

    Parameters
    ----------
    n_shared
        How many topics without a label every document may have beside its own.
    doc_topic_prior
        Prior count of each topic in a document.
    topic_word_prior
        Prior count of each word in a topic.
    max_iter, burn_in
        Sweeps, and how many of them come before those that are averaged; half by default.
    time_limit, checkpoint, progress
        Seconds after which sweeps end; a file that keeps the state, from which an interrupted run goes on; a progress
        bar.
    random_state
        The seed.

    Attributes
    ----------
    labels_
        The labels, in the order of the first topics.
    components_
        Mean counts of words and the prior, topics x words.
    doc_topic_
        Proportions of topics of the documents learned from.
    history_, n_iter_
        The log probability after each sweep, and their number.

    Examples
    --------
    >>> texts = ["goal match ball", "vote law", "ball match vote law", "law vote party", "goal goal ball"] * 10
    >>> labels = [["sport"], ["politics"], ["sport", "politics"], ["politics"], ["sport"]] * 10
    >>> model = LabelledLDA(max_iter=60, random_state=0).fit(texts, labels)
    >>> model.labels_, [sorted(words) for words in model.top_words(3)]
    (['politics', 'sport'], [['law', 'party', 'vote'], ['ball', 'goal', 'match']])
    >>> model.predict(["a match with a ball"]).tolist()
    ['sport']
    """

    def __init__(
        self,
        *,
        n_shared: int = 0,
        doc_topic_prior: float = 0.1,
        topic_word_prior: float = 0.05,
        max_iter: int = 200,
        burn_in: int | None = None,
        time_limit: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: bool | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_shared = n_shared
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.max_iter = max_iter
        self.burn_in = burn_in
        self.time_limit = time_limit
        self.checkpoint = checkpoint
        self.progress = progress
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Learn from documents and the labels of each: one, a list of them, or None where they are not known."""
        return super().fit(X, y)

    def _learn_from(self, corpus: Corpus, y: Any, rng: np.random.Generator) -> None:
        check("n_shared", self.n_shared, Whole(0))
        pointers, codes, self.labels_ = listed(y, len(corpus), "the labels")
        k = len(self.labels_) + self.n_shared
        self.prior_ = self._priors(k)
        sampler = TokenTopics(
            corpus.words.astype(np.int64), corpus.offsets, self.prior_,
            np.full((len(corpus.vocabulary), k), self.topic_word_prior), allowed=_sets(pointers, codes, k, self.n_shared),
        )  # fmt: skip
        found = self._run(
            sampler, lambda: {"theta": sampler.proportions(), "words": sampler.counts.places},
            rng, corpus, pointers, codes,
        )  # fmt: skip
        self.doc_topic_, self.components_ = found["theta"], np.ascontiguousarray(found["words"].T)

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Return the shares of labels in each document, topics without a label left out."""
        found = inferred_topics(self._corpus(X), self.topic_word_, self.prior_)[:, : len(self.labels_)]
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return the label with the largest share of each document."""
        return np.array(self.labels_)[self.predict_proba(X).argmax(axis=1)]


def _sets(pointers: Ints, codes: Ints, k: int, shared: int) -> tuple[Ints, Ints, Ints]:
    """Return which set of topics each document has, and the different sets."""
    common = tuple(range(k - shared, k))
    own = [tuple(sorted(codes[a:b].tolist())) for a, b in pairwise(pointers)]
    numbers = {s: i for i, s in enumerate(dict.fromkeys(own))}
    topics = [(*s, *common) if s else tuple(range(k)) for s in numbers]
    starts = np.concatenate([[0], np.cumsum([len(s) for s in topics])]).astype(np.int64)
    flat = np.array([t for s in topics for t in s], dtype=np.int64)
    return np.array([numbers[s] for s in own], dtype=np.int64), starts, flat
