"""Topics that tell of a response: a number or a class of each document is predicted from the shares of its topics."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np

from markovia.data.text.corpus import Corpus
from markovia.errors import InvalidArgument
from markovia.inference.collapsed.token_samplers import WatchedTopics
from markovia.learning.latent.document_draws import DrawnWords, draw_from_rows
from markovia.learning.latent.topic_responses import ClassResponse, NumberResponse
from markovia.models.topics.lda_priors import prior_counts
from markovia.models.topics.sampled import SampledTopics, given_for_each
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, Positive


@dataclass(eq=False, repr=False)
class SupervisedLDA(SampledTopics):
    """Supervised LDA: topics of words and, through the shares of topics, a response of each document.

    `fit(X, y)` takes the response of each document, NaN or None where it is not known.
    Topics, coefficients and noise are drawn together by Gibbs sampling. Reference: Blei and McAuliffe (2007).

    Parameters
    ----------
    n_components
        The number of topics.
    response
        "number", "class", or "auto": classes unless y holds numbers with fractions.
    coef_scale
        The prior deviation of coefficients; of standardised numbers in units of the noise.
    doc_topic_prior, topic_word_prior
        Prior count of each topic in a document, 1 / n_components by default, and of each word in a topic.
    max_iter, burn_in, time_limit, checkpoint, progress, random_state
        As in `LDA`.

    Attributes
    ----------
    coef_
        The mean coefficients: of numbers, (topics,), what the response is when a document is all of one topic; of
        classes, (classes, topics), scores before the softmax.
    noise_variance_
        Of numbers, the mean variance around what topics tell.
    classes_
        The classes, or None.
    components_
        Mean counts of words and the prior, topics x words.
    doc_topic_
        Proportions of topics of the documents learned from.
    history_, n_iter_
        The log probability after each sweep, and their number.

    Examples
    --------
    >>> texts = ["good great film", "bad awful film", "great good good", "awful bad plot"] * 15
    >>> stars = [4.5, 1.2, 4.9, 0.8] * 15
    >>> model = SupervisedLDA(2, max_iter=60, random_state=0).fit(texts, stars)
    >>> good, bad = model.predict(["great good", "awful plot"])
    >>> bool(good > 3.5), bool(bad < 2.5)
    (True, True)
    """

    n_components: Count = 10
    _: KW_ONLY
    response: Literal["auto", "number", "class"] = "auto"
    coef_scale: Positive = 10.0

    def _learn(self, corpus: Corpus, y: Any, rng: np.random.Generator) -> None:
        k = self.n_components
        watcher, centre, unit = self._watcher(y, corpus)
        self.doc_topic_prior_ = prior_counts(self.doc_topic_prior, k)
        sampler = WatchedTopics(
            corpus.words, corpus.offsets, self.doc_topic_prior_, np.full((len(corpus.vocabulary), k), self.topic_word_prior),
            kind=1 if self.classes_ is None else 2, watcher=watcher,
        )  # fmt: skip
        found = self._run(sampler, rng, corpus, watcher.value)
        self.doc_topic_, self.components_ = found["theta"], np.ascontiguousarray(found["words"].T)
        if self.classes_ is None:
            self.coef_ = centre + unit * found["coef"][0]
            self.noise_variance_ = float(unit**2 * found["noise"])
        else:
            self.coef_ = found["coef"]

    def _watcher(self, y: Any, corpus: Corpus) -> tuple[NumberResponse | ClassResponse, float, float]:
        """Return the response, and the centre and unit of numbers."""
        seen = given_for_each(y, len(corpus), "response")
        gaps = np.array([v is None or v != v for v in seen.tolist()], dtype=bool)
        if gaps.all():
            raise InvalidArgument("y= says nothing: no document has a response")
        if self.response != "class" and _numeric(seen[~gaps]):
            numbers = np.where(gaps, np.nan, np.where(gaps, 0.0, seen).astype(float))
            if self.response == "number" or (numbers[~gaps] % 1.0).any():
                if np.isinf(numbers).any():
                    raise InvalidArgument(
                        "y= holds an infinite number; responses are finite, or NaN where not known"
                    )
                self.classes_ = None
                centre, unit = float(numbers[~gaps].mean()), float(numbers[~gaps].std()) or 1.0
                return NumberResponse((numbers - centre) / unit, self.coef_scale), centre, unit
        if self.response == "number":
            raise InvalidArgument('y= holds no numbers; give numbers, or response="class"')
        self.classes_, codes = np.unique(seen[~gaps], return_inverse=True)
        if len(self.classes_) < 2:
            raise InvalidArgument(f"y= has 1 class, {self.classes_[0]!r}; a class response needs two or more")
        value = np.full(len(corpus), -1.0)
        value[~gaps] = codes
        return ClassResponse(value, len(self.classes_), self.coef_scale), 0.0, 1.0

    def _draw(self, lengths: Ints, y: Any, rng: np.random.Generator) -> DrawnWords:
        """Draw documents, and the response of each by the shares of its topics."""
        drawn = super()._draw(lengths, y, rng)
        owners, k = np.repeat(np.arange(len(lengths)), lengths), self.n_components
        shares = np.bincount(owners * k + drawn.topics, minlength=len(lengths) * k).reshape(-1, k)
        scores = shares / np.maximum(lengths, 1)[:, None] @ self.coef_.T
        if self.classes_ is None:
            return drawn._replace(y=rng.normal(scores, np.sqrt(self.noise_variance_)))
        laws = np.exp(scores - scores.max(axis=1, keepdims=True))
        return drawn._replace(y=self.classes_[draw_from_rows(laws, np.arange(len(laws)), rng)])

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Return the probability of each class for each document."""
        if self.classes_ is None:
            raise InvalidArgument(
                "the response is a number, which has no probabilities of classes; use predict"
            )
        scores = self.transform(X) @ self.coef_.T
        return np.asarray(np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)))

    def predict(self, X: Any) -> Any:  # noqa: N803
        """Return the expected number, or the most probable class, of each document."""
        proportions = self.transform(X)
        if self.classes_ is None:
            return proportions @ self.coef_
        return self.classes_[(proportions @ self.coef_.T).argmax(axis=1)]

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Return R squared of numbers or the share of classes that are right; without y the mean log probability a word."""
        if y is None:
            return super().score(X)
        seen, told = np.asarray(y), self.predict(X)
        if self.classes_ is not None:
            return float((told == seen).mean())
        off = seen.astype(float) - told
        return 1.0 - float((off**2).sum() / ((seen - seen.mean()) ** 2).sum())


def _numeric(values: Any) -> bool:
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in values.tolist())
