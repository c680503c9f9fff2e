"""Topics tied to each other: a few profiles of words, each permuted in many ways, as keys are scales transposed."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from markovia.data.text.corpus import Corpus
from markovia.errors import InvalidArgument
from markovia.inference.collapsed.token_samplers import Ties, TokenTopics
from markovia.models.topics.lda_priors import prior_counts
from markovia.models.topics.sampled import SampledTopics
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count


@dataclass(eq=False, repr=False)
class TiedTopics(SampledTopics):
    """LDA whose topics share profiles of words.

    Topic (p, s) has word w as often as profile p has the place where permutation s puts w. By default the
    permutations are all rotations of the vocabulary. With pitch classes as words, two profiles (major and minor) and
    12 rotations are the 24 keys. One permutation that moves nothing is LDA. Topics are in order of profiles, and of
    permutations within a profile.

    Parameters
    ----------
    n_components
        The number of profiles.
    permutations
        (permutations, words): the place in the profile of each word; all rotations by default, `(w - s) % words`.
    profile_prior
        Prior counts of profiles and places, (profiles, words); `topic_word_prior` each by default. Large counts hold
        profiles to what is known.
    names
        Names of the topics, for `topic_names_`.
    doc_topic_prior
        Prior count of each topic in a document; 1 / topics by default.
    topic_word_prior
        Prior count of each place in a profile.
    max_iter, burn_in, time_limit, checkpoint, progress, random_state
        As in `LDA`.

    Attributes
    ----------
    profiles_
        The probability of each place in each profile.
    components_
        Mean counts of words and the prior, topics x words, as the profiles give them.
    topic_names_
        `names`, or "profile p, shift s".
    doc_topic_
        Proportions of topics of the documents learned from.
    history_, n_iter_
        The log probability after each sweep, and their number.

    Examples
    --------
    >>> major = np.array([5, 0, 3, 0, 4, 3, 0, 5, 0, 3, 0, 2])  # how often C, C sharp, ... are heard in C major
    >>> pieces = np.stack([np.roll(major, k) for k in (0, 7, 2)] * 5)  # in C, G and D
    >>> keys = TiedTopics(1, profile_prior=[10.0 * major + 0.1], random_state=0, max_iter=100).fit(pieces)
    >>> keys.transform(pieces[:3]).argmax(axis=1).tolist()
    [0, 7, 2]
    """

    n_components: Count = 2
    _: KW_ONLY
    permutations: Any = None
    profile_prior: Any = None
    names: Any = None

    def _learn(self, corpus: Corpus, y: Any, rng: np.random.Generator) -> None:
        v, p, places = (
            len(corpus.vocabulary),
            self.n_components,
            _places(self.permutations, len(corpus.vocabulary)),
        )
        s = len(places)
        self.doc_topic_prior_ = prior_counts(self.doc_topic_prior, p * s)
        beta = np.full((p, v), self.topic_word_prior) if self.profile_prior is None else self._given(p, v)
        names = self.names or [f"profile {i}, shift {j}" for i in range(p) for j in range(s)]
        if len(names) != p * s:
            raise InvalidArgument(f"names= has {len(names)} names, and there are {p} x {s} = {p * s} topics")
        self.topic_names_ = [str(n) for n in names]
        ties = Ties(np.repeat(np.arange(p), s), np.tile(np.arange(s), p), places)
        sampler = TokenTopics(
            corpus.words, corpus.offsets, self.doc_topic_prior_, np.ascontiguousarray(beta.T), ties=ties
        )
        found = self._run(sampler, rng, corpus, beta, places)
        counts = found["words"].T
        self.doc_topic_ = found["theta"]
        self.profiles_ = np.asarray(counts / counts.sum(axis=1, keepdims=True))
        self.components_ = np.ascontiguousarray(counts[ties.profile[:, None], places[ties.mapping]])

    def _given(self, p: int, v: int) -> Array:
        beta = np.asarray(self.profile_prior, dtype=float)
        if beta.shape != (p, v) or not (beta > 0.0).all() or not np.isfinite(beta).all():
            raise InvalidArgument(
                f"profile_prior= are numbers above 0, a row of {v} words for each of {p} profiles, not shape {beta.shape}"
            )
        return beta


def _places(permutations: Any, v: int) -> Any:
    if permutations is None:
        return (np.arange(v)[None] - np.arange(v)[:, None]) % v
    found = np.asarray(permutations, dtype=np.int64)
    if found.ndim != 2 or found.shape[1] != v or (np.sort(found, axis=1) != np.arange(v)).any():
        raise InvalidArgument(
            f"permutations= are rows that hold each of 0 to {v - 1} once, one number a word of the vocabulary"
        )
    return np.ascontiguousarray(found)
