"""Topics over time: the words of a topic drift from one time to the next."""

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.data.text.corpus import Corpus
from markovia.errors import InvalidArgument
from markovia.learning.latent.document_draws import DrawnWords, draw_from_rows, draw_words
from markovia.learning.latent.dynamic_topics import learn_dynamic, log_words
from markovia.learning.latent.topic_em import gibbs_start, normalised
from markovia.models.topics.climbing import ClimbingTopics
from markovia.models.topics.lda_priors import prior_counts
from markovia.models.topics.sampled import given_for_each, given_topics
from markovia.runtime import ports
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import LEVEL, Count, Positive, Whole, check
from markovia.runtime.clock import Clock
from markovia.runtime.seeds import Seed

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class DynamicTopics(ClimbingTopics):
    """Dynamic topics: at each time a topic has words of its own, a random walk away from those of the time before.

    `fit(X, y)` takes the time of each document: numbers, dates or anything that has an order.
    Documents have variational posteriors; the walks of all words' logits are the most probable ones, by Kalman
    smoothing, and the smoother's variances say how sure they are. Reference: Blei and Lafferty (2006).

    Parameters
    ----------
    n_components
        The number of topics.
    drift
        The variance of a step of a word's logit from one time to the next.
    spread
        The variance of words' logits at the first time.
    doc_topic_prior
        Prior count of each topic in a document; 1 / n_components by default.
    max_iter, tol
        Steps of EM at most; the gain a word below which it stops.
    time_limit, progress
        Seconds after which learning ends; a progress bar.
    random_state
        The seed of the start, which some sweeps of LDA's sampler find.

    Attributes
    ----------
    times_
        The times in order.
    topics_over_time_
        The probability of each word, times x topics x words.
    logit_deviation_
        Posterior deviations of logits, times x topics x words.
    components_
        The mean over times, weighted by the words of each.
    doc_topic_
        Proportions of topics of the documents learned from.
    history_, converged_, n_iter_
        The objective before each step, whether it settled, and how many steps there were.

    Examples
    --------
    >>> early, late = ["telegraph wire", "horse cart road"] * 6, ["radio wire", "car road street"] * 6
    >>> model = DynamicTopics(2, drift=0.5, random_state=0, tol=1e-4).fit(early + late, [1900] * 12 + [1930] * 12)
    >>> model.times_.tolist(), model.topics_over_time_.shape
    ([1900, 1930], (2, 2, 8))
    >>> paths = model.word_path("radio")
    >>> bool(paths.loc[1930].max() > paths.loc[1900].max())
    True
    """

    n_components: Count = 10
    _: KW_ONLY
    drift: Positive = 0.05
    spread: Positive = 10.0
    doc_topic_prior: Any = None
    max_iter: Count = 100
    _documents_have_y = True

    def _learn(self, corpus: Corpus, y: Any, rng: np.random.Generator) -> None:
        self.doc_topic_prior_ = prior_counts(self.doc_topic_prior, self.n_components)
        times = given_for_each(y, len(corpus), "time")
        if any(t is None or t != t for t in times.tolist()):
            raise InvalidArgument("y= lacks the time of a document; leave such documents out")
        self.times_, at = np.unique(times, return_inverse=True)
        order = [np.flatnonzero(at == t) for t in range(len(self.times_))]
        counts = corpus.counts()
        phi = gibbs_start(
            corpus.words.astype(np.int64), corpus.offsets, len(corpus.vocabulary), self.n_components, rng
        )
        with Clock(self.time_limit, False):
            found = learn_dynamic(
                [counts[rows] for rows in order], phi, alpha=self.doc_topic_prior_, drift=self.drift, spread=self.spread,
                max_iter=self.max_iter, tol=self.tol, progress=self.progress,
            )  # fmt: skip
        paths, posteriors = found.state
        laws = np.exp(log_words(paths.logits))
        self.topics_over_time_ = np.ascontiguousarray(laws.transpose(0, 2, 1))
        self.logit_deviation_ = np.ascontiguousarray(np.sqrt(paths.variance).transpose(0, 2, 1))
        shares = np.array([float(corpus.lengths[rows].sum()) for rows in order])
        self.components_ = np.einsum("t,tkv->kv", shares / shares.sum(), self.topics_over_time_)
        self.doc_topic_ = np.empty((len(corpus), self.n_components))
        for rows, gamma in zip(order, posteriors, strict=True):
            self.doc_topic_[rows] = normalised(gamma, 1)
        self._end(found)

    def transform(self, X: Any, times: Any = None) -> Array:  # noqa: N803
        """Return proportions of documents, given the topics of their times, or the mean topics where no times are given."""
        corpus = self._corpus(X)
        if times is None:
            return self._proportions(corpus, None)
        at = self._slices(times, len(corpus))
        found = np.empty((len(corpus), self.n_components))
        for t in np.unique(at):
            rows = np.flatnonzero(at == t)
            found[rows] = given_topics(corpus[rows], self.topics_over_time_[t], self.doc_topic_prior_)
        return found

    def _proportions(self, corpus: Corpus, seed: Seed) -> Array:
        return given_topics(corpus, self.topic_word_, self.doc_topic_prior_)

    def _draw(self, lengths: Ints, y: Any, rng: np.random.Generator) -> DrawnWords:
        """Draw documents of the times y, one for all or one each; without times by the mean topics."""
        n, k = len(lengths), self.n_components
        theta = rng.dirichlet(self.doc_topic_prior_, n)
        if y is None:
            return draw_words(lengths, theta, self.topic_word_, rng)
        y = np.full(n, y) if np.ndim(y) == 0 else y
        at = np.repeat(self._slices(y, n), lengths)
        topics = draw_from_rows(theta, np.repeat(np.arange(n), lengths), rng)
        laws = self.topics_over_time_.reshape(-1, self.n_features_in_)
        return DrawnWords(draw_from_rows(laws, at * k + topics, rng), topics, theta, y)

    def _slices(self, times: Any, n: int) -> Ints:
        """Return the positions of times; those after the last are taken as the last, as the walk goes on from there."""
        given: Array = given_for_each(times, n, "time", "times")
        return np.clip(np.searchsorted(self.times_, given, side="right") - 1, 0, len(self.times_) - 1)

    def word_path(self, word: str) -> "pd.DataFrame":
        """Return the probability of a word at each time, a column a topic."""
        import pandas as pd

        return pd.DataFrame(self.topics_over_time_[:, :, self._place(word)], index=self.times_)

    def top_words_at(self, time: Any, n: int = 10) -> list[list[str]]:
        """Return the leading words of each topic at a time."""
        check("n", n, Whole(1))
        laws = self.topics_over_time_[self._slices([time], 1)[0]]
        return [[self.vocabulary_[w] for w in np.argsort(-law, kind="stable")[:n]] for law in laws]

    def interval(self, word: str, level: float = 0.95) -> tuple[Array, Array]:
        """Return intervals of a word's probability, lows and highs, times x topics, from the smoother's variances."""
        from scipy.special import ndtri

        check("level", level, LEVEL)
        w = self._place(word)
        p, wide = self.topics_over_time_[:, :, w], ndtri(0.5 + 0.5 * level) * self.logit_deviation_[:, :, w]
        odds = p / (1.0 - p)
        low, high = odds * np.exp(-wide), odds * np.exp(wide)
        return np.asarray(low / (1.0 + low)), np.asarray(high / (1.0 + high))

    def plot_words(
        self, topic: int, words: int | list[str] = 6, *, ax: "Axes | None" = None, title: str | None = None
    ) -> "Axes":
        """Draw how words of a topic come and go, with 95 % bands; by default those that change most."""
        return ports.draw("plot-words-over-time", self, topic, words, ax=ax, title=title)

    def plot_shares(
        self,
        X: Any,  # noqa: N803
        times: Any,
        *,
        ax: "Axes | None" = None,
        title: str | None = None,
    ) -> "Axes":
        """Draw how much of the documents of each time each topic is."""
        return ports.draw("plot-topics-over-time", self, self._corpus(X), times, ax=ax, title=title)
