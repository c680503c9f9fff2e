"""Correlated topics: which topics come together, and the graph of them."""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from markovia.data.text.corpus import Corpus
from markovia.errors import InvalidArgument
from markovia.learning.latent.correlated_topics import (
    LogisticNormal,
    Logits,
    expect_logits,
    fewest_correlations,
    learn_correlated,
    softmax,
)
from markovia.learning.latent.topic_em import TopicTables, learn_plsi
from markovia.models.topics.climbing import ClimbingTopics
from markovia.optimise.ascent import Climb, best_climb
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, Positive, Whole, check
from markovia.runtime.clock import Clock
from markovia.runtime.seeds import Seed

if TYPE_CHECKING:
    from markovia.structure.task.result import LearnedStructure

FEWEST = 4
"""Topics from which on proportions say something of correlations."""


@dataclass(eq=False, repr=False)
class CorrelatedTopics(ClimbingTopics):
    """The correlated topic model: proportions are the softmax of a Gaussian, so that topics may come together.

    Learned by variational EM, whose bound rises with every step. Proportions say how logits differ and not where they
    lie, so many covariances mean the same; `correlation_` and the graph are of the one with the fewest correlations,
    as for other data that sum to one. Of two or three topics that leaves no correlation determined, so these need four; with
    four, two that are correlated cannot be told from the other two, with five or more they can.
    References: Blei and Lafferty (2007); Friedman and Alm (2012).

    Parameters
    ----------
    n_components
        The number of topics, 2 or more.
    topic_word_prior
        Added to the count of each word in each topic.
    shrinkage
        The covariance is drawn to the unit matrix by as much as so many documents would.
    max_iter, tol
        Steps of EM at most; the gain of the bound a word below which it stops.
    n_init
        Starts by short runs of PLSI, of which the best is gone on from.
    time_limit, progress
        Seconds after which learning ends; a progress bar.
    random_state
        The seed of starts.

    Attributes
    ----------
    components_
        The probability of each word in each topic.
    mean_, covariance_
        Of the logits of a document's proportions; only variances of their differences mean something.
    doc_logits_
        The expected logits of the documents learned from.
    history_, converged_, n_iter_
        The bound after each step (with the log priors), whether it settled, and how many steps there were.

    Examples
    --------
    >>> texts = ["cell gene dna cell", "gene dna ball", "vote law party", "law vote ball", "ball goal match goal"] * 4
    >>> model = CorrelatedTopics(4, random_state=0, max_iter=50, tol=1e-4).fit(texts)
    >>> model.correlation_.shape
    (4, 4)
    """

    n_components: Annotated[int, Whole(2)] = 10
    _: KW_ONLY
    topic_word_prior: Positive = 0.01
    shrinkage: Positive = 1.0
    n_init: Count = 3

    def _learn(self, corpus: Corpus, y: Any, rng: np.random.Generator) -> None:
        counts, k, v = corpus.counts(), self.n_components, len(corpus.vocabulary)

        def run(rng: np.random.Generator, progress: bool | None) -> Climb[TopicTables]:
            theta, phi = rng.dirichlet(np.ones(k), len(corpus)), rng.dirichlet(np.ones(v), k)
            return learn_plsi(counts, theta, np.ascontiguousarray(phi.T), max_iter=100, tol=1e-5)

        with Clock(self.time_limit, False):
            phi = best_climb(run, [rng] * self.n_init).state.phi + 0.01 / v
            found = learn_correlated(
                counts, phi / phi.sum(axis=0), max_iter=self.max_iter, tol=self.tol, smoothing=self.topic_word_prior,
                shrinkage=self.shrinkage, progress=self.progress,
            )  # fmt: skip
        law, logits = found.state
        self.mean_, self.covariance_ = law.mean, law.covariance
        self.components_, self.doc_logits_ = np.ascontiguousarray(law.phi.T), logits.mean
        self._end(found)

    def _proportions(self, corpus: Corpus, seed: Seed) -> Array:
        law = LogisticNormal(self.mean_, self.covariance_, np.ascontiguousarray(self.components_.T))
        size = (len(corpus), len(self.mean_))
        begin = Logits(np.tile(self.mean_, (len(corpus), 1)), np.full(size, 0.5))
        return softmax(expect_logits(corpus.counts(), law, begin, steps=100, tol=1e-4).mean)

    def _draw_proportions(self, n: int, y: Any, rng: np.random.Generator) -> Array:
        return softmax(rng.multivariate_normal(self.mean_, self.covariance_, n, method="cholesky"))

    @property
    def correlation_(self) -> Array:
        """The correlations of topics' logits, topics x topics; four topics or more have such."""
        k = len(self.covariance_)
        if k < FEWEST:
            raise InvalidArgument(
                f"proportions of {k} topics determine no correlation: they know differences of logits only, and {k} shifts "
                f"change all of {k * (k - 1) // 2} covariances; learn n_components={FEWEST} or more"
            )
        found = fewest_correlations(self.covariance_)
        scale = np.sqrt(np.diag(found))
        return np.asarray(found / np.outer(scale, scale))

    def topic_graph(self, rho: float | None = None, *, words: int = 3) -> "LearnedStructure":
        """Return the graph of topics: an edge where two are correlated given all others, by the graphical lasso.

        Parameters
        ----------
        rho
            The penalty; by default the extended Bayesian information criterion chooses it.
        words
            How many leading words name a topic.
        """
        import pandas as pd

        from markovia.structure.learn import learn_structure

        check("words", words, Whole(1))
        k, n = len(self.covariance_), len(self.doc_logits_)
        if n <= k:
            raise InvalidArgument(
                f"a graph of {k} topics needs more than as many documents, and there are {n}"
            )
        # the lasso knows rows by their covariance alone: rows of no meaning get that of the topics
        rows = np.random.default_rng(0).normal(size=(n, k))
        rows, _ = np.linalg.qr(rows - rows.mean(axis=0))
        rows = np.sqrt(n) * rows @ np.linalg.cholesky(self.correlation_).T
        names = [f"{j}: {' '.join(top)}" for j, top in enumerate(self.top_words(words))]
        penalty: dict[str, Any] = {} if rho is None else {"rho": rho}
        return learn_structure(pd.DataFrame(rows, columns=names), method="graphical-lasso", **penalty)
