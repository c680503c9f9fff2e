"""What models of topics share whose topics are drawn token by token: settings, the run, and what is known of documents."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from markovia.data.text.corpus import Corpus
from markovia.errors import InvalidArgument, UnknownVariable
from markovia.inference.collapsed.averaged_draws import AveragedDraws
from markovia.inference.collapsed.sampler_settings import SamplerSettings
from markovia.inference.collapsed.token_samplers import TokenTopics
from markovia.learning.latent.topic_em import normalised
from markovia.learning.latent.topic_variational import document_posteriors
from markovia.models.topics.base import TopicModel
from markovia.models.topics.lda_priors import prior_counts
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.checks import FromZeroOrNone, Positive
from markovia.runtime.seeds import Seed

THIN = 5
"""Sweeps from one state that is averaged to the next."""


@dataclass(eq=False, repr=False)
class SampledTopics(SamplerSettings, TopicModel):
    """The base of models whose topics are drawn by collapsed Gibbs sampling.

    Parameters
    ----------
    doc_topic_prior, topic_word_prior
        Prior count of each topic in a document, by default 1 / topics, and of each word in a topic.
    max_iter, burn_in
        Sweeps, and how many of them come before those that are averaged; half by default.
    time_limit, checkpoint, progress
        Seconds after which sweeps end; a file that keeps the state, from which an interrupted run goes on; a progress bar.
    random_state
        The seed.

    Attributes
    ----------
    components_
        Mean counts of words and the prior, topics x words.
    doc_topic_
        Proportions of topics of the documents learned from.
    history_, n_iter_
        The log probability after each sweep, and their number.
    """

    _: KW_ONLY
    doc_topic_prior: Any = None
    topic_word_prior: Positive = 0.05
    burn_in: FromZeroOrNone = None
    progress: bool | None = None

    def _tokens(self, corpus: Corpus, n_topics: int, **given: Any) -> TokenTopics:
        """Return the sampler of LDA with what is given beside it."""
        self.doc_topic_prior_ = prior_counts(self.doc_topic_prior, n_topics)
        beta = np.full((len(corpus.vocabulary), n_topics), self.topic_word_prior)
        return TokenTopics(corpus.words, corpus.offsets, self.doc_topic_prior_, beta, **given)

    def _run(self, sampler: Any, rng: np.random.Generator, corpus: Corpus, *known: Any) -> dict[str, Array]:
        """Sweep, and return means of what states after the burn-in say; `known` tells one run's file from another's."""
        burn_in = self.max_iter // 2 if self.burn_in is None else self.burn_in
        averaged = AveragedDraws(sampler, burn_in, THIN)
        sampler.start(rng)
        free = ("max_iter", "time_limit", "checkpoint", "progress")
        settings = {k: v for k, v in self.get_params().items() if k not in free}
        about = (corpus.words, corpus.offsets, repr(settings), *known)
        self._sweeps(averaged, rng, name=type(self).__name__, about=about)
        return averaged.means()

    def _proportions(self, corpus: Corpus, seed: Seed) -> Array:
        return given_topics(corpus, self.topic_word_, self.doc_topic_prior_)


def given_topics(corpus: Corpus, topic_word: Array, prior: Array) -> Array:
    """Return the mean proportions of documents given topics, (topics, words), by variational Bayes.

    Draws would be nearer to the posterior where it has one peak; from an even start this finds the highest of several.
    """
    table = np.ascontiguousarray(topic_word.T)
    return normalised(
        document_posteriors(corpus.counts(), table, prior, most=200, tol=1e-5, keep=False).state, 1
    )


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


def given_for_each(values: Any, n: int, what: str, name: str = "y") -> Any:
    """Return what an argument says of each document, as an array of one value a document."""
    found = np.asarray(_given(values, f"the {what}"))
    if found.shape != (n,):
        raise InvalidArgument(
            f"{name}= is one {what} a document, {n} of them, not an array of shape {found.shape}"
        )
    return found


def listed(values: Any, n: int, what: str, known: list[Any] | None = None) -> tuple[Ints, Ints, list[Any]]:
    """Return pointers, positions and the names in order of what each document has: one name, or a list of them.

    `known` are the names that there may be; by default those that are found.
    """
    each = [_names(v) for v in _given(values, what)]
    if len(each) != n:
        raise InvalidArgument(f"y= has {what} of {len(each)} documents, and there are {n}")
    if known is not None:
        for name in (v for own in each for v in own if v not in known):
            raise UnknownVariable(str(name), [str(k) for k in known], what)
    try:
        names = known or sorted({v for own in each for v in own})
    except TypeError:
        names = sorted({v for own in each for v in own}, key=str)
    code = {v: i for i, v in enumerate(names)}
    pointers = np.concatenate([[0], np.cumsum([len(own) for own in each])]).astype(np.int64)
    return pointers, np.array([code[v] for own in each for v in own], dtype=np.int64), names


def _given(values: Any, what: str) -> Any:
    if values is None:
        raise InvalidArgument(
            f"y= is {what} of each document: requires y to be passed, but the target y is None"
        )
    return values


def _names(value: Any) -> list[Any]:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return []
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return [value.item() if isinstance(value, np.generic) else value]
    return list(dict.fromkeys(v.item() if isinstance(v, np.generic) else v for v in value))
