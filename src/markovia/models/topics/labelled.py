"""Topics that are labels: a document draws its words only from the topics of the labels it has."""

from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from markovia.data.text.corpus import Corpus
from markovia.models.topics.sampled import SampledTopics, listed
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import FromZero


@dataclass(eq=False, repr=False)
class LabelledLDA(SampledTopics):
    """Labelled LDA: each label is a topic, and a document has only topics of its labels.

    `fit(X, y)` takes the labels of each document: one, a list of them, or None where they are not known.
    Which words of a document come from which of its labels is learned, and so what each label is about. Documents
    without labels may have all topics. Reference: Ramage et al. (2009).

    Parameters
    ----------
    n_shared
        How many topics without a label every document may have beside its own.
    doc_topic_prior, topic_word_prior
        Prior count of each topic in a document, and of each word in a topic.
    max_iter, burn_in, time_limit, checkpoint, progress, random_state
        As in `LDA`.

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

    _: KW_ONLY
    n_shared: FromZero = 0
    doc_topic_prior: Any = 0.1
    _documents_have_y = True

    def _learn(self, corpus: Corpus, y: Any, rng: np.random.Generator) -> None:
        pointers, codes, self.labels_ = listed(y, len(corpus), "the labels")
        k = len(self.labels_) + self.n_shared
        sampler = self._tokens(corpus, k, allowed=_sets(pointers, codes, k, self.n_shared))
        found = self._run(sampler, rng, corpus, pointers, codes)
        self.doc_topic_, self.components_ = found["theta"], np.ascontiguousarray(found["words"].T)

    def _draw_proportions(self, n: int, y: Any, rng: np.random.Generator) -> Array:
        """Draw shares of the topics of each document's labels y, and of all topics where it has none."""
        k, found = len(self.components_), np.zeros((n, len(self.components_)))
        pointers, codes, _ = listed([None] * n if y is None else y, n, "the labels", self.labels_)
        set_of, starts, topics = _sets(pointers, codes, k, self.n_shared)
        for s, (a, b) in enumerate(pairwise(starts)):
            rows, own = np.flatnonzero(set_of == s), topics[a:b]
            found[np.ix_(rows, own)] = rng.dirichlet(self.doc_topic_prior_[own], len(rows))
        return found

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Return the shares of labels in each document, topics without a label left out."""
        found = self.transform(X)[:, : len(self.labels_)]
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
