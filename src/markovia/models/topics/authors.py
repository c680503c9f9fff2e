"""Topics of authors: each word of a document is by one of its authors, who has proportions of topics."""

import os
from typing import Any, Self

import numpy as np

from markovia.data.corpus import Corpus
from markovia.errors import InvalidArgument, UnknownVariable
from markovia.inference.collapsed.token_samplers import TokenTopics
from markovia.models.topics.sampled import SampledTopics, listed
from markovia.runtime.checks import Whole, check


class AuthorTopics(SampledTopics):
    """The author-topic model: proportions of topics belong to authors, and each word of a document is by one of its authors.

    With one author of each document, all different, it is LDA. Reference: Rosen-Zvi et al. (2004).

    Parameters
    ----------
    n_components
        The number of topics.
    doc_topic_prior
        Prior count of each topic of an author; 1 / n_components by default.
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
    authors_
        The authors in order.
    author_topic_
        The mean proportions of topics of each author, authors x topics.
    components_
        Mean counts of words and the prior, topics x words.
    history_, n_iter_
        The log probability after each sweep, and their number.

    Examples
    --------
    >>> texts = ["star planet orbit", "gene cell dna", "star gene orbit cell", "planet star", "dna cell"] * 10
    >>> authors = [["Ada"], ["Ben"], ["Ada", "Ben"], ["Cy"], ["Ben"]] * 10
    >>> model = AuthorTopics(2, max_iter=60, random_state=0).fit(texts, authors)
    >>> model.similar_authors("Ada", 1)[0][0]
    'Cy'
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        doc_topic_prior: Any = None,
        topic_word_prior: float = 0.05,
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
        """Learn from documents and the authors of each: one name, or a list of them."""
        return super().fit(X, y)

    def _learn_from(self, corpus: Corpus, y: Any, rng: np.random.Generator) -> None:
        k = self.n_components
        self.prior_ = self._priors(k)
        pointers, codes, self.authors_ = listed(y, len(corpus), "the authors")
        none = np.flatnonzero(np.diff(pointers) == 0)
        if len(none):
            raise InvalidArgument(
                f"document {corpus.names[none[0]]!r} has no author; give it one of its own, or leave it out"
            )
        sampler = TokenTopics(
            corpus.words.astype(np.int64), corpus.offsets, self.prior_,
            np.full((len(corpus.vocabulary), k), self.topic_word_prior), owners=(pointers, codes),
        )  # fmt: skip
        found = self._run(
            sampler, lambda: {"theta": sampler.proportions(), "words": sampler.counts.places},
            rng, corpus, pointers, codes,
        )  # fmt: skip
        self.author_topic_, self.components_ = found["theta"], np.ascontiguousarray(found["words"].T)

    def similar_authors(self, author: Any, n: int = 5) -> list[tuple[Any, float]]:
        """Return the authors whose topics are most alike, with the Hellinger distance of proportions, 0 to 1."""
        check("n", n, Whole(1))
        if author not in self.authors_:
            raise UnknownVariable(str(author), [str(a) for a in self.authors_], "the authors")
        roots = np.sqrt(self.author_topic_)
        here = self.authors_.index(author)
        far = np.sqrt(np.maximum(1.0 - roots @ roots[here], 0.0))
        order = [int(i) for i in np.argsort(far, kind="stable") if i != here][:n]
        return [(self.authors_[i], float(far[i])) for i in order]
