"""Collapsed Gibbs samplers of the topic of each token, for the relatives of latent Dirichlet allocation.

`TokenTopics` has LDA's conditional with four things that may be added: topics that a document must choose from
(labels), owners of proportions other than the document (authors), topics that share a profile of words (ties), and
words that depend on the word before (bigrams). `WatchedTopics` adds a response of each document whose coefficients
are drawn too. Cost of a sweep: tokens x owners of a document x topics.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np

from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Array, Codes, Ints
from markovia.runtime.seeds import kernel_seed

SWEEP = "markovia.kernels.collapsed.token_topics:sweep"


class TopicTokens(NamedTuple):
    """The words of all documents after one another, the context of each, and where documents begin."""

    word: Ints
    context: Ints
    offsets: Ints


class Choices(NamedTuple):
    """The owners of document d, `owner[owner_ptr[d]:...]`, and its topics, those of the set `set_of[d]`."""

    owner_ptr: Ints
    owner: Ints
    set_of: Ints
    set_ptr: Ints
    topic: Ints


class Ties(NamedTuple):
    """The profile of each topic, and the row of `place` (mappings, words) that says where it has a word."""

    profile: Ints
    mapping: Ints
    place: Ints


class Counts(NamedTuple):
    """Tokens by owner and topic, by owner, by place and profile, by context and profile; priors are in them."""

    owners: Array
    owner_totals: Array
    places: Array
    totals: Array


class TopicResponse(NamedTuple):
    """What watches the topics: kind 0 nothing, 1 a number with variance, 2 a class; -1 classes and NaN are not known."""

    kind: int
    value: Array
    coef: Array
    variance: float


NOT_WATCHED = TopicResponse(0, np.empty(0), np.empty((0, 0)), 1.0)


def own_documents(n: int) -> tuple[Ints, Ints]:
    """Return pointers and owners where each document owns its tokens."""
    return np.arange(n + 1), np.arange(n)


@dataclass
class TokenTopics:
    """The topics of all tokens given the words, with proportions and words of topics summed out.

    Parameters
    ----------
    words, offsets
        The words of all documents after one another, and where each begins.
    alpha
        The prior counts of topics, (topics,).
    beta
        The prior counts of places and profiles, (places, profiles); of words and topics where there are no ties.
    owners
        Pointers and owners of each document; the document itself by default.
    allowed
        Topics of each document: the set of each, pointers of sets, and their topics; all by default.
    ties
        Which profile and permutation each topic has; its own and none by default.
    context, context_prior
        The context of each token, and prior counts by context and profile; one context by default.
    """

    words: Codes
    offsets: Ints
    alpha: Array
    beta: Array
    owners: tuple[Ints, Ints] | None = None
    allowed: tuple[Ints, Ints, Ints] | None = None
    ties: Ties | None = None
    context: Ints | None = None
    context_prior: Array | None = None
    topic: Ints = field(init=False)
    owner: Ints = field(init=False)
    counts: Counts = field(init=False)
    response: TopicResponse = field(default=NOT_WATCHED, init=False)

    def __post_init__(self) -> None:
        n, k = len(self.offsets) - 1, len(self.alpha)
        self.words: Ints = np.ascontiguousarray(self.words, dtype=np.int64)
        self.offsets = np.ascontiguousarray(self.offsets, dtype=np.int64)
        self.lengths = np.diff(self.offsets)
        pointers, owners = own_documents(n) if self.owners is None else self.owners
        sets = (np.zeros(n, dtype=np.int64), np.array([0, k]), np.arange(k))
        self.choices = Choices(pointers, owners, *(sets if self.allowed is None else self.allowed))
        self.n_owners = n if self.owners is None else int(owners.max(initial=-1)) + 1
        if self.ties is None:
            places = np.arange(len(self.beta))
            self.ties = Ties(np.arange(k), np.zeros(k, dtype=np.int64), places[None])
        context = np.zeros(len(self.words), dtype=np.int64) if self.context is None else self.context
        self.tokens = TopicTokens(self.words, context, self.offsets)
        self._totals = self.beta.sum(axis=0)[None] if self.context_prior is None else self.context_prior
        self._owner_prior = np.tile(self.alpha, (self.n_owners, 1))
        if self.allowed is not None:  # only documents own their tokens here
            may = np.zeros((len(self.choices.set_ptr) - 1, k), dtype=bool)
            may[np.repeat(np.arange(len(may)), np.diff(self.choices.set_ptr)), self.choices.topic] = True
            self._owner_prior *= may[self.choices.set_of]
        wide = max(
            int((np.diff(pointers) * np.diff(self.choices.set_ptr)[self.choices.set_of]).max(initial=0)), 1
        )
        self._room = np.empty(2 * k + wide)
        self._base = -self._log_gammas(self._prior_counts())
        self._base -= float(np.log(np.maximum(np.diff(pointers), 1)) @ self.lengths)

    def start(self, rng: np.random.Generator) -> None:
        """Draw first topics and owners: as priors of words say where they say something, else with the same probability."""
        c = self.choices
        documents = np.repeat(np.arange(len(self.lengths)), self.lengths)
        begin, end = c.set_ptr[c.set_of[documents]], c.set_ptr[c.set_of[documents] + 1]
        self.topic = c.topic[begin + (rng.random(len(documents)) * (end - begin)).astype(np.int64)]
        if self.ties is not None and self.allowed is None and np.ptp(self.beta, axis=0).any():
            law = (self.beta / self.beta.sum(axis=0))[
                self.ties.place[self.ties.mapping], self.ties.profile[:, None]
            ]
            sums = (self.alpha[:, None] * law).cumsum(axis=0)
            u = rng.random(len(documents)) * sums[-1][self.words]
            for k in range(len(self.alpha) - 1, -1, -1):
                self.topic[u < sums[k][self.words]] = k
        begin, end = c.owner_ptr[documents], c.owner_ptr[documents + 1]
        self.owner = c.owner[begin + (rng.random(len(documents)) * (end - begin)).astype(np.int64)]
        self.recount()

    def _prior_counts(self) -> Counts:
        return Counts(
            self._owner_prior.copy(), self._owner_prior.sum(axis=1), self.beta.copy(), self._totals.copy()
        )

    def recount(self) -> None:
        """Count the topics of all tokens anew."""
        assert self.ties is not None
        self.counts = self._prior_counts()
        profile = self.ties.profile[self.topic]
        np.add.at(self.counts.owners, (self.owner, self.topic), 1.0)
        np.add.at(self.counts.owner_totals, self.owner, 1.0)
        np.add.at(
            self.counts.places, (self.ties.place[self.ties.mapping[self.topic], self.words], profile), 1.0
        )
        np.add.at(self.counts.totals, (self.tokens.context, profile), 1.0)

    def sweep(self, rng: np.random.Generator) -> None:
        """Draw topic and owner of every token once."""
        run = either(SWEEP, 12 * len(self.words) * len(self.alpha))
        scores = np.empty(max(len(self.response.coef), 1))
        run(
            self.tokens, self.choices, self.ties, self.counts, self.response, self.topic, self.owner, kernel_seed(rng),
            np.empty_like(self.counts.totals), self._room, scores,
        )  # fmt: skip

    def log_prob(self) -> float:
        """Return log p of words and topics (and owners)."""
        return self._base + self._log_gammas(self.counts)

    def _log_gammas(self, counts: Counts) -> float:
        from scipy.special import gammaln

        may = counts.owners if self.allowed is None else counts.owners[self._owner_prior > 0.0]
        found = gammaln(may).sum() - gammaln(counts.owner_totals).sum()
        return float(found + gammaln(counts.places).sum() - gammaln(counts.totals).sum())

    def state(self) -> dict[str, Any]:
        """Return topics and owners, and the counts with all their roundings."""
        return {"topic": self.topic, "owner": self.owner} | self.counts._asdict()

    def restore(self, state: Mapping[str, Array]) -> None:
        """Take up topics and owners, and counts where they are given."""
        self.topic, self.owner = (np.array(state[k], dtype=np.int64) for k in ("topic", "owner"))
        self.recount()
        if "places" in state:
            self.counts = Counts(*(np.array(state[k]) for k in Counts._fields))

    def summary(self) -> dict[str, Array]:
        """Return mean proportions of topics given the state, (owners, topics), and counts of words and of contexts."""
        theta = self.counts.owners / np.maximum(self.counts.owner_totals, 1e-300)[:, None]
        return {"theta": theta, "words": self.counts.places, "totals": self.counts.totals}

    def topic_words(self) -> Array:
        """Return the mean words of topics given the state, (topics, words), where there is one context."""
        assert self.ties is not None
        law = self.counts.places / self.counts.totals
        return np.ascontiguousarray(law[self.ties.place[self.ties.mapping], self.ties.profile[:, None]])


class Watcher(Protocol):
    """The law of the responses of documents given the shares of their topics."""

    @property
    def value(self) -> Array:
        """The responses, as the kernel reads them."""

    def redraw(self, shares: Array, coef: Array | None, rng: np.random.Generator) -> tuple[Array, float]:
        """Draw coefficients, (responses, topics), from where they are, and the variance."""

    def log_prob(self, shares: Array, coef: Array, variance: float) -> float:
        """Return log p of responses and coefficients."""


@dataclass
class WatchedTopics(TokenTopics):
    """Topics with a response of each document: a number or a class that depends on the shares of its topics.

    `watcher` draws the response's coefficients and variance given the shares of topics, (documents, topics).
    """

    kind: int = 1
    watcher: Watcher = field(kw_only=True)

    def shares(self) -> Array:
        """Return the shares of topics among the tokens of documents, (documents, topics)."""
        return (self.counts.owners - self._owner_prior) / np.maximum(self.lengths, 1)[:, None]

    def start(self, rng: np.random.Generator) -> None:
        """Draw first topics, and coefficients given them."""
        super().start(rng)
        self.response = NOT_WATCHED
        self._redraw(rng)

    def _redraw(self, rng: np.random.Generator) -> None:
        coef = self.response.coef if self.response.kind else None
        drawn = self.watcher.redraw(self.shares(), coef, rng)
        self.response = TopicResponse(self.kind, self.watcher.value, *drawn)

    def sweep(self, rng: np.random.Generator) -> None:
        """Draw every topic once, then the coefficients."""
        super().sweep(rng)
        self._redraw(rng)

    def log_prob(self) -> float:
        """Return log p of words, topics, responses and coefficients."""
        response = self.watcher.log_prob(self.shares(), self.response.coef, self.response.variance)
        return super().log_prob() + response

    def summary(self) -> dict[str, Array]:
        """Return what topics say, and coefficients and variance."""
        return super().summary() | {"coef": self.response.coef, "noise": np.array(self.response.variance)}

    def state(self) -> dict[str, Any]:
        """Return topics and coefficients."""
        return super().state() | {"coef": self.response.coef, "variance": np.array(self.response.variance)}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Take up topics and coefficients."""
        super().restore(state)
        self.response = TopicResponse(
            self.kind, self.watcher.value, np.asarray(state["coef"]), float(state["variance"])
        )
