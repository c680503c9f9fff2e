"""Topics of authors: each word of a document is by one of its authors, who has proportions of topics."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.data.text.corpus import Corpus
from markovia.errors import InvalidArgument, UnknownVariable
from markovia.learning.latent.document_draws import DrawnWords, draw_from_rows
from markovia.models.topics.sampled import SampledTopics, listed
from markovia.runtime.array_types import Ints
from markovia.runtime.checks import Count, Whole, check


@dataclass(eq=False, repr=False)
class AuthorTopics(SampledTopics):
    """The author-topic model: proportions of topics belong to authors, and each word of a document is by one of its authors.

    `fit(X, y)` takes the authors of each document: one name, or a list of them. With one author of each document, all
    different, it is LDA. Reference: Rosen-Zvi et al. (2004).

    Parameters
    ----------
    n_components
        The number of topics.
    doc_topic_prior, topic_word_prior
        Prior count of each topic of an author, 1 / n_components by default, and of each word in a topic.
    max_iter, burn_in, time_limit, checkpoint, progress, random_state
        As in `LDA`.

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

    n_components: Count = 10
    _documents_have_y = True

    def _learn(self, corpus: Corpus, y: Any, rng: np.random.Generator) -> None:
        pointers, codes, self.authors_ = listed(y, len(corpus), "the authors")
        none = np.flatnonzero(np.diff(pointers) == 0)
        if len(none):
            raise InvalidArgument(
                f"document {corpus.names[none[0]]!r} has no author; give it one of its own, or leave it out"
            )
        sampler = self._tokens(corpus, self.n_components, owners=(pointers, codes))
        found = self._run(sampler, rng, corpus, pointers, codes)
        self.author_topic_, self.components_ = found["theta"], np.ascontiguousarray(found["words"].T)

    def _draw(self, lengths: Ints, y: Any, rng: np.random.Generator) -> DrawnWords:
        """Draw documents of the authors y: an author for each word, a topic of that author, a word of that topic."""
        pointers, codes, _ = listed(y, len(lengths), "the authors", self.authors_)
        many = np.diff(pointers)
        if (many == 0).any():
            raise InvalidArgument(
                f"document {int((many == 0).argmax())} of y= has no author; name at least one"
            )
        owners = np.repeat(np.arange(len(lengths)), lengths)
        author = codes[pointers[owners] + rng.integers(many[owners])]
        topics = draw_from_rows(self.author_topic_, author, rng)
        theta = np.add.reduceat(self.author_topic_[codes], pointers[:-1], axis=0) / many[:, None]
        return DrawnWords(draw_from_rows(self.topic_word_, topics, rng), topics, theta, y)

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
