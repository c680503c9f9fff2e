"""Ailments in what people write: words of ailments with symptoms and treatments, beside other topics and common words."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

import numpy as np

from markovia.data.text.corpus import Corpus
from markovia.errors import InvalidArgument
from markovia.inference.collapsed.token_samplers import TokenTopics
from markovia.models.topics.lda_priors import prior_counts
from markovia.models.topics.sampled import SampledTopics
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, FromZero, Kind, Positive, Whole, check

TYPES = Kind((Mapping,), "a mapping from types such as 'symptoms' to lists of words", none=True)
RARE = 1e-4
"""The prior count of a word with a type outside ailments, as a share of that of others."""


@dataclass(eq=False, repr=False)
class AilmentTopics(SampledTopics):
    """Topics for messages about health: common words, topics that are no ailments, and ailments whose words have types.

    A word of a known type (a symptom, a treatment) hardly ever belongs to anything but an ailment, so that such words say
    which messages are about one, and which other words go with it. After the ailment topic aspect model of Paul and
    Dredze (2014), where a message has exactly one ailment; here it has shares of all topics, which a small `ailment_prior`
    holds to few ailments.

    Parameters
    ----------
    n_components
        The number of ailments.
    n_topics
        The number of other topics; beside them is one of common words.
    word_types
        Words whose type is known: `{"symptoms": ["cough", "fever"], "treatments": ["pills"]}`; words that are in no
        document are left out.
    background_prior
        Prior count of common words in a document; the more, the more words are common ones.
    doc_topic_prior, ailment_prior
        Prior count of each other topic in a document, 1 / n_topics by default, and of each ailment.
    topic_word_prior
        Prior count of each word in a topic.
    max_iter, burn_in, time_limit, checkpoint, progress, random_state
        As in `LDA`.

    Attributes
    ----------
    topic_names_
        "background", "topic 0", ..., "ailment 0", ..., in the order of topics.
    types_
        The type of each word of the vocabulary; "general" where it has none.
    components_, doc_topic_, history_, n_iter_
        As in `LDA`.

    Examples
    --------
    >>> flu, teeth, games = "flu bed cough fever", "tooth dentist toothache swelling", "game team win goal"
    >>> texts = [f"so my day and then {own}" for own in (flu, teeth, games)] * 30
    >>> types = {"symptoms": ["cough", "fever", "toothache", "swelling"]}
    >>> model = AilmentTopics(2, 1, word_types=types, max_iter=100, random_state=0).fit(texts)
    >>> sorted(sorted(words["symptoms"]) for words in model.ailment_words(2))
    [['cough', 'fever'], ['swelling', 'toothache']]
    """

    n_components: Count = 6
    n_topics: FromZero = 7
    _: KW_ONLY
    word_types: Annotated[Mapping[str, Sequence[str]] | None, TYPES] = None
    background_prior: Positive = 3.0
    ailment_prior: Positive = 0.3

    def _learn(self, corpus: Corpus, y: Any, rng: np.random.Generator) -> None:
        self.types_ = self._types(corpus.vocabulary)
        others = prior_counts(self.doc_topic_prior, self.n_topics) if self.n_topics else np.zeros(0)
        ailments = np.full(self.n_components, self.ailment_prior)
        self.doc_topic_prior_ = np.concatenate([[self.background_prior], others, ailments])
        beta = np.full((len(corpus.vocabulary), len(self.doc_topic_prior_)), self.topic_word_prior)
        typed = np.array([kind != "general" for kind in self.types_])
        beta[typed, : 1 + self.n_topics] *= RARE
        sampler = TokenTopics(corpus.words, corpus.offsets, self.doc_topic_prior_, beta)
        found = self._run(sampler, rng, corpus, typed)
        self.doc_topic_, self.components_ = found["theta"], np.ascontiguousarray(found["words"].T)
        topics, names = range(self.n_topics), range(self.n_components)
        self.topic_names_ = ["background", *(f"topic {k}" for k in topics), *(f"ailment {k}" for k in names)]

    def _types(self, vocabulary: list[str]) -> list[str]:
        kinds: dict[str, str] = {}
        for kind, words in (self.word_types or {}).items():
            for word in [words] if isinstance(words, str) else words:
                if kinds.setdefault(word, str(kind)) != str(kind):
                    both = f"{kinds[word]!r} and as {kind!r}"
                    raise InvalidArgument(f"word_types= has {word!r} as {both}; give one type")
        if kinds and not kinds.keys() & set(vocabulary):
            raise InvalidArgument(
                "word_types= names no word of the documents; words are in small letters as a rule"
            )
        return [kinds.get(word, "general") for word in vocabulary]

    def ailment_words(self, n: int = 5) -> list[dict[str, list[str]]]:
        """Return the leading words of each ailment by type, at most n of each; those of its own come first.

        Words that are likelier elsewhere are left out.
        """
        check("n", n, Whole(1))
        phi, kinds = self.topic_word_, np.array(self.types_)
        found: list[dict[str, list[str]]] = []
        for law in phi[1 + self.n_topics :]:
            best = np.argsort(-law, kind="stable")
            best = best[law[best] >= phi.max(axis=0)[best]]
            by_type = {k: best[kinds[best] == k][:n] for k in ("general", *(self.word_types or ()))}
            found.append({k: [self.vocabulary_[w] for w in words] for k, words in by_type.items()})
        return found

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Return the shares of the ailments in each document, other topics left out."""
        found = self.transform(X)[:, 1 + self.n_topics :]
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> Ints:  # noqa: N803
        """Return the ailment with the largest share of each document."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))
