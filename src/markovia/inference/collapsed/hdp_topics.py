"""Gibbs samplers for topics under a hierarchical Dirichlet process, their words' distributions summed out.

    beta ~ GEM(gamma),  theta_d ~ DP(alpha, beta),  z ~ theta_d,  phi_k ~ Dirichlet(eta),  w ~ phi_z

`DirectAssignment` draws a topic for each word and the weights beta; `Franchise` seats words at tables of their document, and
tables share topics. Both draw the concentrations, and eta where it has a prior. Topics lie in slots that are reused, and
there are as many as are needed. Reference: Teh, Jordan, Beal and Blei (2006). Cost of a sweep: words times topics.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.inference.collapsed.concentrations import Gamma, drawn_by_slice, drawn_concentration
from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.seeds import kernel_seed

SLOTS = 16
"""Topics for which there is room at first."""
HELD, EVERY = 0.2, 10
"""The share of settling sweeps in which concentrations are held, and after how many sweeps topics are merged then."""
SHARED = ("by_word", "totals", "tables", "sums", "kept")
KERNELS = "markovia.kernels.collapsed"


@dataclass(frozen=True)
class HDPPriors:
    """Priors of the concentrations, gamma laws by shape and rate; a number is a concentration that is known."""

    alpha: Gamma | float = (1.0, 1.0)
    gamma: Gamma | float = (1.0, 1.0)
    eta: Gamma | float = 0.01


class HDPSampler:
    """What both samplers share: counts of words by topic, and the concentrations.

    Parameters
    ----------
    words, offsets
        The words of all documents one after the other as numbers; document d has places `offsets[d]` to `offsets[d + 1]`.
    n_words
        The size of the vocabulary.
    priors
        Of the concentrations.
    """

    def __init__(self, words: Any, offsets: Any, n_words: int, priors: HDPPriors | None = None) -> None:
        priors = priors or HDPPriors()
        self.words = np.ascontiguousarray(words, dtype=np.int32)
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self.lengths, self.n_words, self.priors = np.diff(self.offsets), n_words, priors
        self.alpha, self.gamma, self.eta = (
            float(p) if not isinstance(p, tuple) else p[0] / p[1]
            for p in (priors.alpha, priors.gamma, priors.eta)
        )
        self.high = 0
        self.by_word = np.zeros((n_words, SLOTS), dtype=np.int32)
        self.totals = np.zeros(SLOTS, dtype=np.int64)
        self.tables = np.zeros(SLOTS, dtype=np.int64)
        self._log_prob = -np.inf
        self.settling, self.done = 0, 0
        self.sums, self.kept = np.zeros((n_words, 0)), np.zeros((2, 0))

    def sweep(self, rng: np.random.Generator) -> None:
        """Draw all hidden variables once.

        In the first `settling` sweeps, concentrations stay for a while as they are and topics that say the same are merged.
        """
        self._sweep(rng)
        self.done += 1
        if self.settling * HELD < self.done <= self.settling and self.done % EVERY == 0:
            self.merge_alike()

    def collect(self) -> None:
        """Add the present words and weight of each topic to what was collected of it while it has been there."""
        more = len(self.totals) - self.kept.shape[1]
        self.sums, self.kept = np.pad(self.sums, ((0, 0), (0, more))), np.pad(self.kept, ((0, 0), (0, more)))
        gone = self.totals == 0
        self.sums[:, gone], self.kept[:, gone] = 0.0, 0.0
        self.sums += self.by_word
        self.kept += np.where(gone, 0.0, [np.ones(len(gone)), self.topic_weights()[0]])

    def collected(self) -> tuple[Array, Array]:
        """Return the mean words (words, slots) and weights (slots,) of topics over the sweeps collected."""
        times = np.maximum(self.kept[0], 1.0)
        return self.sums / times, self.kept[1] / times

    def _sweep(self, rng: np.random.Generator) -> None:
        raise NotImplementedError

    def start(self, n_topics: int, rng: np.random.Generator) -> None:
        """Begin with random topics of the words; 0 lets the first sweep give each a topic by those before it."""
        raise NotImplementedError

    def topics_of_words(self) -> Ints:
        """Return the topic (slot) of each word."""
        raise NotImplementedError

    def topic_weights(self) -> tuple[Array, float]:
        """Return beta of each slot, and of all topics without a word."""
        raise NotImplementedError

    def log_prob(self) -> float:
        """Return log p(words, hidden variables | concentrations) of the last sweep."""
        return self._log_prob

    def _grow(self) -> None:
        more = len(self.totals)
        self.by_word = np.pad(self.by_word, ((0, 0), (0, more)))
        for name in ("totals", "tables"):
            setattr(self, name, np.pad(getattr(self, name), (0, more)))

    def _concentrations(self, rng: np.random.Generator) -> None:
        """Draw alpha and gamma given the tables, and eta given the words of topics."""
        if self.done < self.settling * HELD:
            return
        tables, topics = int(self.tables.sum()), int((self.tables > 0).sum())
        if isinstance(self.priors.alpha, tuple):
            self.alpha = drawn_concentration(self.alpha, tables, self.lengths, self.priors.alpha, rng)
        if isinstance(self.priors.gamma, tuple):
            self.gamma = drawn_concentration(self.gamma, topics, np.array([tables]), self.priors.gamma, rng)
        if isinstance(self.priors.eta, tuple):
            shape, rate = self.priors.eta
            found = WordCounts(self.by_word, self.totals)
            self.eta = drawn_by_slice(
                self.eta, lambda x: found.log_prob(x) + (shape - 1.0) * float(np.log(x)) - rate * x, rng
            )

    def merge_alike(self) -> int:
        """Merge topics with their nearest ones where that explains the words as well; return how many went.

        Compared are lower bounds of log p(words): log p(words, topics) plus the entropy of whose word is whose. Gibbs
        sampling is slow to join two topics that say the same; this is for the sweeps before draws are kept.
        """
        from scipy.special import gammaln

        there = np.flatnonzero(self.totals)
        k, n_documents = len(there), len(self.lengths)
        place = np.zeros(len(self.totals), dtype=np.int64)
        place[there] = np.arange(k)
        topic = place[self.topics_of_words()]
        document = np.repeat(np.arange(n_documents), self.lengths)
        inside = (
            np.bincount(document * k + topic, minlength=n_documents * k).reshape(-1, k).astype(np.float64)
        )
        counts = self.by_word[:, there].astype(np.float64)
        alike = counts / np.linalg.norm(counts, axis=0)
        alike = alike.T @ alike
        np.fill_diagonal(alike, -1.0)
        strength = self.alpha * self.topic_weights()[0][there]
        flat, gone = self.eta * self.n_words, np.zeros(k, dtype=bool)

        def fit(n: Array, local: Array, weight: float) -> float:
            words = gammaln(n[n > 0] + self.eta).sum() - (n > 0).sum() * gammaln(self.eta)
            local = local[local > 0]
            topics = gammaln(local + weight).sum() - len(local) * gammaln(weight)
            return float(words + gammaln(flat) - gammaln(n.sum() + flat) + topics)

        def entropy(pair: list[int]) -> float:
            them = np.flatnonzero((topic == pair[0]) | (topic == pair[1]))
            words = (counts[:, pair] + self.eta) / (counts[:, pair].sum(axis=0) + flat)
            p = (inside[:, pair] + strength[pair])[document[them]] * words[self.words[them]]
            p /= p.sum(axis=1, keepdims=True)
            return -float((p * np.log(np.maximum(p, 1e-300))).sum())

        for b in np.argsort(counts.sum(axis=0)):
            a = int(np.argmax(np.where(gone, -2.0, alike[b])))
            if a == b:
                continue
            apart = sum(fit(counts[:, j], inside[:, j], strength[j]) for j in (a, b)) + entropy([a, int(b)])
            if (
                fit(counts[:, a] + counts[:, b], inside[:, a] + inside[:, b], strength[a] + strength[b])
                > apart
            ):
                gone[b] = True
                for sums in (counts.T, inside.T, strength):
                    sums[a] += sums[b]
                topic[topic == b] = a
                self._join(int(there[b]), int(there[a]))
        return int(gone.sum())

    def _join(self, old: int, new: int) -> None:
        for counts in (self.by_word.T, self.totals, self.tables):
            counts[new] += counts[old]
            counts[old] = 0

    def state(self) -> dict[str, Array]:
        """Return the state as arrays."""
        found = {name: getattr(self, name) for name in (*SHARED, *self._own)}
        return found | {
            "numbers": np.array([self.alpha, self.gamma, self.eta, self._log_prob, self.high, self.done])
        }

    def restore(self, state: Mapping[str, Array]) -> None:
        """Take up a state that `state` gave."""
        for name in (*SHARED, *self._own):
            setattr(self, name, np.array(state[name]))
        self.alpha, self.gamma, self.eta, self._log_prob = map(float, state["numbers"][:4])
        self.high, self.done = map(int, state["numbers"][4:])

    _own: tuple[str, ...] = ()


class DirectAssignment(HDPSampler):
    """Draws of the topic of each word and of the weights of topics; see `HDPSampler`.

    Examples
    --------
    >>> sampler = DirectAssignment([0, 0, 1, 1], [0, 2, 4], 2)
    >>> sampler.start(2, np.random.default_rng(0))
    >>> sampler.sweep(np.random.default_rng(0))
    >>> int(sampler.totals.sum()), sampler.by_word.sum(axis=1).tolist()
    (4, [2, 2])
    """

    _own = ("topics", "weights", "rest")

    def start(self, n_topics: int, rng: np.random.Generator) -> None:
        """Begin with random topics of the words; 0 lets the first sweep give each a topic by those before it."""
        self.topics = np.full(len(self.words), -1, dtype=np.int32)
        self.weights, self.rest = np.zeros(len(self.totals)), np.array(1.0)
        while len(self.totals) < n_topics:
            self._grow()
        if n_topics > 0:
            self.topics[:] = rng.integers(0, n_topics, len(self.words))
            self.topics[: min(n_topics, len(self.words))] = np.arange(min(n_topics, len(self.words)))
            np.add.at(self.by_word, (self.words, self.topics), 1)
            self.totals = self.by_word.sum(axis=0, dtype=np.int64)
            self.high = n_topics
            self.weights = np.where(self.totals > 0, 1.0 / (n_topics + 1.0), 0.0)
            self.rest = np.array(1.0 - self.weights.sum())

    def _grow(self) -> None:
        super()._grow()
        self.weights = np.pad(self.weights, (0, len(self.totals) - len(self.weights)))

    def _sweep(self, rng: np.random.Generator) -> None:
        """Draw a topic for every word, then tables, weights and concentrations."""
        at = np.array([0, 0, self.high])
        self.tables[:] = 0
        numbers = np.array([self.alpha, self.gamma, self.eta, float(self.rest), 0.0])
        seed = kernel_seed(rng)
        work = either(f"{KERNELS}.hdp_direct:sweep", 4 * len(self.words) * (self.high + 4))
        while True:
            slots = len(self.totals)
            counts = (self.by_word, self.totals, self.weights, self.tables)
            rooms = (*np.zeros((3, slots)), np.zeros(slots, dtype=np.int64))
            if work(self.words, self.offsets, self.topics, *counts, numbers, at, *rooms, seed):
                break
            self._grow()
        self.high = int(at[2])
        self._log_prob = numbers[4] + WordCounts(self.by_word, self.totals).log_prob(self.eta)
        self._concentrations(rng)  # given tables only, so before the weights, which are then drawn given all
        there = self.tables > 0
        drawn = rng.gamma(np.append(self.tables[there], self.gamma))
        drawn = np.maximum(drawn / drawn.sum(), 1e-300)
        self.weights[:] = 0.0
        self.weights[there], self.rest = drawn[:-1], np.array(drawn[-1])

    def _join(self, old: int, new: int) -> None:
        super()._join(old, new)
        self.topics[self.topics == old] = new
        self.weights[new] += self.weights[old]
        self.weights[old] = 0.0

    def topics_of_words(self) -> Ints:
        """Return the topic (slot) of each word."""
        return self.topics.astype(np.int64)

    def topic_weights(self) -> tuple[Array, float]:
        """Return beta of each slot, and of all topics without a word."""
        return self.weights, float(self.rest)


class Franchise(HDPSampler):
    """Draws of the table of each word and the topic of each table; see `HDPSampler`.

    Examples
    --------
    >>> sampler = Franchise([0, 0, 1, 1], [0, 2, 4], 2)
    >>> sampler.start(0, np.random.default_rng(0))
    >>> sampler.sweep(np.random.default_rng(0))
    >>> int(sampler.totals.sum()), int(sampler.sizes.sum())
    (4, 4)
    """

    _own = ("seats", "sizes", "dishes", "opened")

    def start(self, n_topics: int, rng: np.random.Generator) -> None:
        """Begin with random topics, one table a topic in each document; 0 seats words by those before them."""
        n = len(self.words)
        self.seats = np.full(n, -1, dtype=np.int32)
        self.sizes, self.dishes = np.zeros(n, dtype=np.int32), np.zeros(n, dtype=np.int32)
        self.opened = np.zeros(len(self.lengths), dtype=np.int64)
        while len(self.totals) < n_topics:
            self._grow()
        if n_topics == 0 or n == 0:
            return
        topics = rng.integers(0, n_topics, n)
        np.add.at(self.by_word, (self.words, topics), 1)
        self.totals = self.by_word.sum(axis=0, dtype=np.int64)
        self.high = n_topics
        document = np.repeat(np.arange(len(self.lengths)), self.lengths)
        kinds, table, sizes = np.unique(document * n_topics + topics, return_inverse=True, return_counts=True)
        of, dish = np.divmod(kinds, n_topics)
        self.opened = np.bincount(of, minlength=len(self.lengths))
        first = np.cumsum(self.opened) - self.opened
        self.seats[:] = table - first[document]
        places = self.offsets[of] + np.arange(len(kinds)) - first[of]
        self.sizes[places], self.dishes[places] = sizes, dish
        self.tables = np.bincount(dish, minlength=len(self.totals))

    def _sweep(self, rng: np.random.Generator) -> None:
        """Draw a table for every word, a topic for every table, and the concentrations."""
        at = np.array([0, 0, 0, self.high])
        numbers = np.array([self.alpha, self.gamma, self.eta])
        ahead = np.zeros((3, int(self.lengths.max(initial=1))), dtype=np.int64)
        met, seed = np.zeros(self.n_words, dtype=np.int64), kernel_seed(rng)
        work = either(f"{KERNELS}.hdp_franchise:sweep", 10 * len(self.words) * (self.high + 4))
        while True:
            served = (
                self.seats,
                self.sizes,
                self.dishes,
                self.opened,
                self.by_word,
                self.totals,
                self.tables,
            )
            room = np.zeros((3, len(self.totals) + 1))
            if work(self.words, self.offsets, *served, numbers, at, room, ahead, met, seed):
                break
            self._grow()
        self.high = int(at[3])
        self._log_prob = self._seating_log_prob() + WordCounts(self.by_word, self.totals).log_prob(self.eta)
        self._concentrations(rng)

    def _join(self, old: int, new: int) -> None:
        super()._join(old, new)
        self.dishes[self.dishes == old] = new

    def _seating_log_prob(self) -> float:
        from scipy.special import gammaln

        alpha, gamma = self.alpha, self.gamma
        m, n = self.tables[self.tables > 0], self.sizes[self.sizes > 0]
        inside = (
            len(n) * np.log(alpha) + gammaln(n).sum() + (gammaln(alpha) - gammaln(alpha + self.lengths)).sum()
        )
        shared = len(m) * np.log(gamma) + gammaln(m).sum() + gammaln(gamma) - gammaln(gamma + m.sum())
        return float(inside + shared)

    def topics_of_words(self) -> Ints:
        """Return the topic (slot) of each word."""
        found: Ints = self.dishes[np.repeat(self.offsets[:-1], self.lengths) + self.seats].astype(np.int64)
        return found

    def topic_weights(self) -> tuple[Array, float]:
        """Return the mean of beta given the tables of each slot, and that of all topics without a word."""
        every = self.tables.sum() + self.gamma
        return self.tables / every, self.gamma / every


class WordCounts:
    """Counts of words by topic as often as each count comes, so that log p(words | topics) is quick for many eta."""

    def __init__(self, by_word: Any, totals: Ints) -> None:
        self._v = len(by_word)
        self._totals = totals[totals > 0]
        self._many, self._often = np.unique(by_word[by_word > 0], return_counts=True)

    def log_prob(self, eta: float) -> float:
        """Return log p(words | topics), the topics' distributions summed out under a symmetric Dirichlet law.

        Examples
        --------
        >>> round(float(np.exp(WordCounts(np.array([[2], [1]]), np.array([3])).log_prob(1.0))), 6)
        0.083333
        """
        from scipy.special import gammaln

        inside = self._often @ (gammaln(self._many + eta) - gammaln(eta))
        return float(inside + (gammaln(self._v * eta) - gammaln(self._totals + self._v * eta)).sum())
