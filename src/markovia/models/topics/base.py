"""What all models of topics share: documents in, topics and their words out, and how good they are.

A subclass is a dataclass of its settings, whose types say what they may be, and writes `_learn` (sets `components_`,
topics x words); topics of documents are drawn given those topics unless it writes `_proportions`. Reading documents,
perplexity, coherence, tables of words and pictures are here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from markovia.data.text.corpus import Corpus
from markovia.data.text.document_texts import Tokenizer
from markovia.data.text.vocabulary import Vocabulary
from markovia.errors import InvalidArgument, OutsideVocabularyWarning, warn_user
from markovia.learning.latent.document_draws import DrawnWords, document_lengths, draw_words
from markovia.learning.latent.topic_coherence import Measure, coherence
from markovia.learning.latent.topic_documents import average_proportions
from markovia.runtime import ports
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Choice, Whole, check
from markovia.runtime.estimator import fitting
from markovia.runtime.ports import Savable
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks, aligned, html_table
from markovia.runtime.transforming_estimator import TransformingEstimator

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Ranking = Literal["probability", "lift", "relevance", "specificity"]


@dataclass(frozen=True, eq=False)
class SampledDocuments(InNotebooks):
    """Documents that a model drew, and what it drew on the way.

    Attributes
    ----------
    corpus
        The documents.
    topics
        The topic of each of `corpus.words`; -1 for a word that is of none.
    proportions
        Documents x topics.
    y
        What `fit` takes as y: as it was given, or drawn where the model has a law of it.
    """

    corpus: Corpus
    topics: Ints
    proportions: Array
    y: Any

    def __repr__(self) -> str:
        return f"SampledDocuments({self.corpus!r}, {self.proportions.shape[1]} topics)"


class TopicModel(TransformingEstimator, Savable):
    """The base of models of topics.

    Attributes
    ----------
    components_
        Topics x words. Rows are pseudo-counts where the model has such, else probabilities; `topic_word_` is normalised.
    vocabulary_
        The words.
    n_features_in_
        How many words there are.
    word_frequency_
        The share of each word among all words.
    """

    components_: Array
    doc_topic_prior_: Array
    history_: list[float]
    n_iter_: int
    converged_: bool
    vocabulary_: list[str]
    n_features_in_: int
    random_state: Any
    word_frequency_: Array
    _tokenizer: Tokenizer
    _threads: int | None = None
    _documents_have_y: ClassVar[bool] = False  # whether documents are drawn given something known of each

    def _learn(self, corpus: Corpus, y: Any, rng: np.random.Generator) -> None:
        """Learn from a corpus and what is known of its documents, and set `components_`."""
        raise NotImplementedError

    def _proportions(self, corpus: Corpus, seed: Seed) -> Array:
        """Return the topics of each document of a corpus, a row each that sums to one."""
        table = np.ascontiguousarray(self.topic_word_.T)
        return average_proportions(corpus.words, corpus.offsets, table, self.doc_topic_prior_, self._threads)

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803
        """Learn the topics of documents.

        Parameters
        ----------
        X
            A `Corpus`, or what `Corpus.read` takes: texts, lists of words, counts, frames, a path.
        y
            What is known of each document, where the model learns from that too.
        """
        with fitting(self):
            corpus = read_documents(X)
            self._begin(corpus)
            self._learn(corpus, y, generator(self.random_state))
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Array:  # noqa: N803
        """Learn, and return the topics of the documents."""
        corpus = read_documents(X)
        return self.fit(corpus, y, **fit_params).transform(corpus)

    def transform(self, X: Any) -> Array:  # noqa: N803
        """Return the proportions of topics of each document, a row each that sums to one.

        Words outside the vocabulary tell nothing and a warning counts them; a document without words gets the prior's
        proportions.
        """
        check_is_fitted(self, "components_")
        return self._proportions(self._corpus(X), self.random_state)

    def sample(
        self,
        n_documents: int = 1,
        *,
        length: Any = 100,
        y: Any = None,
        topics: bool = False,
        seed: Seed = None,
    ) -> Any:
        """Draw new documents: proportions of topics, then for each word its topic, and the word by that topic.

        Parameters
        ----------
        n_documents
            How many.
        length
            Words of a document: a number for all, or one each, such as `rng.poisson(80, n_documents)`.
        y
            What is known of each document, where the model learns from that: labels, authors, times.
        topics
            Whether topics and proportions are wanted, too.
        seed
            The seed.

        Returns
        -------
        Corpus or SampledDocuments
            The documents, as `fit` takes them; with `topics=True` an object with `corpus`, `topics`, `proportions` and
            `y`. Topics are the learned ones, `topic_word_`; their uncertainty is not drawn.

        Examples
        --------
        >>> import markovia as mk
        >>> lda = mk.LDA(2, max_iter=20, random_state=0).fit(["cat dog cat", "sun rain sun"] * 5)
        >>> lda.sample(3, length=[5, 0, 2], seed=0)
        Corpus(3 documents, 7 words, 4 in the vocabulary, 1 document is empty)
        """
        check_is_fitted(self, "components_")
        check("n_documents", n_documents, Whole(1))
        if y is not None and not self._documents_have_y:
            raise InvalidArgument(
                f"{type(self).__name__} draws documents of which nothing is known; leave out y="
            )
        lengths = document_lengths(length, n_documents)
        drawn = self._draw(lengths, y, generator(seed))
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        corpus = Corpus(
            drawn.words.astype(np.int32), offsets, list(self.vocabulary_), tokenizer=self._tokenizer
        )
        return SampledDocuments(corpus, *drawn[1:]) if topics else corpus

    def _draw(self, lengths: Ints, y: Any, rng: np.random.Generator) -> DrawnWords:
        """Draw the words of documents of some lengths."""
        theta = self._draw_proportions(len(lengths), y, rng)
        return draw_words(lengths, theta, self.topic_word_, rng)._replace(y=y)

    def _draw_proportions(self, n: int, y: Any, rng: np.random.Generator) -> Array:
        """Draw the proportions of n documents, by the Dirichlet prior unless a model has another law."""
        return rng.dirichlet(self.doc_topic_prior_, n)

    @property
    def topic_word_(self) -> Array:
        """The probability of each word in each topic."""
        check_is_fitted(self, "components_")
        return np.asarray(self.components_ / self.components_.sum(axis=1, keepdims=True))

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def perplexity(self, X: Any, *, seed: Seed = 0) -> float:  # noqa: N803
        """Return the perplexity of documents by completion: half of each tells its topics, the other half is predicted.

        Smaller is better; the number of words in the vocabulary is what knowing nothing gives.
        """
        total, n = self._completion(self._corpus(X), seed)
        return float(np.exp(-total / n))

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Return the mean log probability a word, by completion; larger is better, and `perplexity` is exp(-score).

        scikit-learn's LDA returns the total of a bound for the documents as they are instead.
        """
        total, n = self._completion(self._corpus(X), 0)
        return float(total / n)

    def _completion(self, corpus: Corpus, seed: Seed) -> tuple[float, int]:
        rng = generator(seed)
        known, asked = corpus.halves(rng)
        if not len(asked.words):
            raise InvalidArgument(
                "no document has two known words, so that one could be predicted from the other"
            )
        return log_probability(self._proportions(known, rng), self.topic_word_, asked), len(asked.words)

    def top_words(
        self, n: int = 10, *, by: Ranking = "probability", weight: float = 0.6, probabilities: bool = False
    ) -> list[Any]:
        """Return the leading words of each topic.

        Parameters
        ----------
        n
            How many.
        by
            "probability"; "lift", how much likelier the word is in the topic than anywhere; "relevance", a mean of the logs
            of both (Sievert and Shirley 2014); "specificity", how sure the word makes one of the topic.
        weight
            Of the probability in the relevance.
        probabilities
            Whether each word comes with its probability.
        """
        check("n", n, Whole(1))
        scores, phi = self.word_scores(by, weight=weight), self.topic_word_
        found: list[Any] = []
        for k in range(len(phi)):
            best = np.lexsort((-phi[k], -scores[k]))[:n]
            words = [self.vocabulary_[w] for w in best]
            found.append(list(zip(words, phi[k, best].tolist(), strict=True)) if probabilities else words)
        return found

    def word_scores(self, by: Ranking = "probability", *, weight: float = 0.6) -> Array:
        """Return how each word speaks for each topic, topics x words; see `top_words`."""
        check("by", by, Choice(("probability", "lift", "relevance", "specificity")))
        phi = self.topic_word_
        if by == "probability":
            return phi
        tiny = np.finfo(float).tiny
        with np.errstate(divide="ignore"):
            lift = np.log(np.maximum(phi, tiny)) - np.log(np.maximum(self.word_frequency_, tiny))
        if by == "lift":
            return np.asarray(np.exp(lift))
        if by == "relevance":
            return np.asarray(weight * np.log(np.maximum(phi, tiny)) + (1 - weight) * lift)
        joint = phi * self.topic_shares_[:, None]
        return np.asarray(joint / np.maximum(joint.sum(axis=0), tiny))

    def word_specificity(self, word: str) -> float:
        """Return how much a word tells of the topic, from 0 (nothing) to 1 (it is of one topic only).

        One less the entropy of the topic given the word, over the largest entropy.
        """
        p = self.word_scores("specificity")[:, self._place(word)]
        h = -float((p * np.log(np.maximum(p, np.finfo(float).tiny))).sum())
        return float(1.0 - h / np.log(len(p))) if len(p) > 1 else 1.0

    def same_topic_probability(self, i: str, j: str) -> float:
        """Return the probability that one occurrence of each of two words is of the same topic."""
        joint = self.word_scores("specificity")
        return float(joint[:, self._place(i)] @ joint[:, self._place(j)])

    @property
    def topic_shares_(self) -> Array:
        """The share of each topic among all words."""
        total = self.components_.sum(axis=1)
        return np.asarray(total / total.sum())

    def _place(self, word: str) -> int:
        check_is_fitted(self, "components_")
        return Vocabulary.of(self.vocabulary_).position(word)

    def coherence(
        self,
        X: Any,  # noqa: N803
        measure: Measure = "npmi",
        *,
        n: int = 10,
        window: int | None = None,
    ) -> Array:
        """Return how often the leading words of each topic occur together in documents, a number a topic.

        Parameters
        ----------
        X
            Documents; words that stand in windows are counted where they are texts or lists of words.
        measure
            "umass" (Mimno et al. 2011), "npmi" (Bouma 2009) or "c_v" (Röder et al. 2015).
        n
            How many leading words.
        window
            Words of a sliding window; by default whole documents for "umass" and "npmi", 110 for "c_v".
        """
        corpus = self._corpus(X)
        ranked = np.argsort(-self.topic_word_, axis=1, kind="stable")[:, :n]
        return coherence(corpus, ranked, measure, window)

    def topics(self, n: int = 8) -> "pd.DataFrame":
        """Return a table with a row a topic: its share of all words and its leading words."""
        import pandas as pd

        return pd.DataFrame(
            {"share": self.topic_shares_, "words": [" ".join(words) for words in self.top_words(n)]}
        )

    def plot_topics(
        self,
        n: int = 8,
        *,
        topics: Sequence[int] | None = None,
        ax: "Axes | None" = None,
        title: str | None = None,
    ) -> Any:
        """Draw the leading words of topics as panels of bars; returns an array of axes, or `ax` for one topic on it."""
        return ports.call("plot-topics", self, n, topics=topics, ax=ax, title=title)

    def plot_map(self, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
        """Draw topics as discs, near each other where their words are alike."""
        return ports.draw("plot-topic-map", self, ax=ax, title=title)

    def plot_documents(self, X: Any, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":  # noqa: N803
        """Draw of which topics documents are composed."""
        return ports.draw("plot-documents", self, self._corpus(X), ax=ax, title=title)

    def _begin(self, corpus: Corpus) -> None:
        """Take over the words of a corpus."""
        if not len(corpus.vocabulary):
            raise InvalidArgument(
                f"the documents hold no words: 0 feature(s) (shape={corpus.shape}) while a minimum of 1 is required."
            )
        if not len(corpus):
            raise InvalidArgument(
                "there are no documents: Found array with 0 sample(s) while a minimum of 1 is required"
            )
        if not len(corpus.words):
            raise InvalidArgument(
                "the documents hold no words, so that there is nothing to learn topics from"
            )
        self.vocabulary_, self._tokenizer = list(corpus.vocabulary), corpus.tokenizer
        self.n_features_in_ = len(self.vocabulary_)
        total: Ints = np.bincount(corpus.words, minlength=self.n_features_in_)
        self.word_frequency_ = (total + 1e-9) / (total + 1e-9).sum()

    def _corpus(self, X: Any) -> Corpus:  # noqa: N803
        """Return documents in the words of the model; words that it does not know are counted in a warning."""
        check_is_fitted(self, "vocabulary_")
        own = Corpus(
            np.zeros(0, np.int32), np.zeros(1, np.int64), self.vocabulary_, tokenizer=self._tokenizer
        )
        if (
            hasattr(X, "shape")
            and len(X.shape) == 2
            and X.shape[1] != self.n_features_in_
            and not hasattr(X, "columns")
            and not isinstance(X, Corpus)
        ):
            raise InvalidArgument(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features as "
                f"input: the columns are the words of the vocabulary"
            )
        corpus = Corpus.read(X, own)
        missed = int(corpus.unknown.sum())
        if missed and not isinstance(X, Corpus):
            warn_user(
                f"{missed:,} of {missed + len(corpus.words):,} words are not in the vocabulary and tell nothing",
                OutsideVocabularyWarning,
            )
        return corpus

    @property
    def _input_tags(self) -> Mapping[str, bool]:
        return {"positive_only": True, "sparse": True, "string": True}

    def __str__(self) -> str:
        if not hasattr(self, "components_"):
            return str(super().__repr__())
        shares = self.topic_shares_
        rows = [[f"{k}", f"{shares[k]:.3f}", " ".join(w)] for k, w in enumerate(self.top_words(8))]
        return aligned(["topic", "share", "words"], [[a, b, c] for a, b, c in rows], left=3)

    def _repr_html_(self) -> str:
        if not hasattr(self, "components_"):
            return str(super()._repr_html_())
        shares = self.topic_shares_
        rows = [[k, f"{shares[k]:.3f}", ", ".join(w)] for k, w in enumerate(self.top_words(8))]
        return html_table(["topic", "share", "words"], rows, title=type(self).__name__)


def read_documents(X: Any) -> Corpus:  # noqa: N803
    """Return a corpus as it is, and anything else read."""
    return X if isinstance(X, Corpus) else Corpus.read(X)


def log_probability(proportions: Array, topic_word: Array, corpus: Corpus) -> float:
    """Return the log probability of all words of a corpus, given the topics of its documents (documents x topics)."""
    total = 0.0
    owners = corpus.owners
    step = max(1, 2_000_000 // max(len(topic_word), 1))
    by_word = np.ascontiguousarray(topic_word.T)
    for start in range(0, len(owners), step):
        piece = slice(start, start + step)
        p = np.einsum("nk,nk->n", proportions[owners[piece]], by_word[corpus.words[piece]])
        total += float(np.log(np.maximum(p, np.finfo(float).tiny)).sum())
    return total
