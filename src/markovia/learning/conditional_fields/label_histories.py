"""Chains of higher order, and with transitions that depend on the position, as plain chains of label histories.

A history is the last `order` labels, fewer at the beginning of a sequence. There are S = k + k^2 + ... of them, and the
chain of histories is of first order, so all recursions of hidden chains apply. A label c after a history h scores

    sum of G[0, g, c] over the ends g of h  +  the same of G[place, g, c] for the place of the step, counted from either end,

so a long n-gram has a weight beside those of the shorter ones that it ends in. References: Ye, Lee, Chieu and Wu (2009);
Cuong, Ye, Lee and Chieu (2014). Cost: tokens times S squared, that is labels to the power of twice the order, which is for
few labels; a table of S squared numbers for each kind of place.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from markovia.data.text.tokens import Tokens
from markovia.errors import TooLarge
from markovia.inference.sequences.hidden_chain import HiddenChain, Observed
from markovia.learning.conditional_fields.chain_objective import ChainObjective
from markovia.learning.conditional_fields.label_constraints import Allowed
from markovia.runtime.array_types import Array, Flags, Ints

MOST_ENTRIES = 1 << 26
"""Entries of all tables together, half a gigabyte."""


@dataclass(frozen=True)
class LabelHistories:
    """The histories of up to `order` of k labels: those of one label first, then of two, and so on, the oldest slowest.

    The `first` transitions, and the `last` ones, have weights of their own.
    """

    k: int
    order: int
    first: int = 0
    last: int = 0

    def __post_init__(self) -> None:
        count, tables = sum(self.k**n for n in range(1, self.order + 1)), (self.first + 1) * (self.last + 1)
        if self.longer and count**2 * tables > MOST_ENTRIES:
            raise TooLarge(
                f"order={self.order} of {self.k} labels has {count:,} histories, whose {tables} tables of pairs take more "
                "than half a gigabyte; lower order= or positions="
            )

    @property
    def longer(self) -> bool:
        """Whether they say more than the last label."""
        return self.order > 1 or self.first + self.last > 0

    @cached_property
    def starts(self) -> list[int]:
        """Where the histories of 1, 2, ... labels begin, and the end of all."""
        return [0, *np.cumsum([self.k**n for n in range(1, self.order + 1)]).tolist()]

    @cached_property
    def label(self) -> Ints:
        """The last label of each history."""
        return np.tile(np.arange(self.k), sum(self.k ** (n - 1) for n in range(1, self.order + 1)))

    @cached_property
    def follow(self) -> Ints:
        """The history after each one and each label, (histories, labels)."""
        k, m = self.k, self.order
        found = []
        for n in range(1, m + 1):
            after = np.arange(k**n)[:, None] * k + np.arange(k)
            found.append(self.starts[n] + after if n < m else self.starts[m - 1] + after % k**m)
        return np.concatenate(found)

    def names(self, classes: Any) -> list[tuple[Any, ...]]:
        """Return the histories as labels."""
        return [h for n in range(1, self.order + 1) for h in product(classes, repeat=n)]

    def codes(self, labels: Ints, offsets: Ints) -> Ints:
        """Return the history at each token of labelled sequences."""
        at = np.arange(len(labels)) - np.repeat(offsets[:-1], np.diff(offsets))
        found = np.array(self.starts)[np.minimum(at, self.order - 1)]
        for back in range(self.order):
            there = np.flatnonzero(at >= back)
            found[there] += labels[there - back] * self.k**back
        return found

    def places(self, offsets: Ints) -> Ints:
        """Return which table leads into each token: the place from the beginning, and from the end, 0 for neither."""
        lengths = np.diff(offsets)
        at = np.arange(int(offsets[-1])) - np.repeat(offsets[:-1], lengths)
        left = np.repeat(lengths, lengths) - at
        begun, ending = np.where(at <= self.first, at, 0), np.where(left <= self.last, left, 0)
        return np.asarray(begun * (self.last + 1) + ending)

    def expand(self, weights: Array) -> Array:
        """Return the score of each label after each history, at each kind of place: (places, histories, labels)."""
        own = weights.copy()
        for n in range(2, self.order + 1):  # a history has what its end has
            a, b, c = self.starts[n - 2 : n + 1]
            own[:, b:c] += np.tile(own[:, a:b], (1, self.k, 1))
        begun, ending = np.split(own[1:], [self.first])
        zero = np.zeros_like(own[:1])
        found = own[0] + np.concatenate([zero, begun])[:, None] + np.concatenate([zero, ending])
        return np.asarray(found.reshape(-1, *own.shape[1:]))

    def fold(self, counts: Array) -> Array:
        """Return sums for weights of those for expanded scores, (places, histories, labels): the transpose of `expand`."""
        grid = counts.reshape(self.first + 1, self.last + 1, *counts.shape[1:])
        found = np.concatenate([grid.sum(axis=(0, 1))[None], grid[1:].sum(axis=1), grid[:, 1:].sum(axis=0)])
        for n in range(self.order, 1, -1):
            a, b, c = self.starts[n - 2 : n + 1]
            found[:, a:b] += found[:, b:c].reshape(len(found), self.k, b - a, self.k).sum(axis=1)
        return found

    def chain(self, scores: Array, weights: Array, offsets: Ints) -> tuple[HiddenChain, Observed, Array]:
        """Return the chain of histories, what it sees, and what to add to its log masses; as `chain_of`."""
        moves = self.expand(weights)
        top = float(moves.max(initial=-np.inf))
        top = top if np.isfinite(top) else 0.0
        tables = np.full((len(moves), len(self.label), len(self.label)), -np.inf)
        np.put_along_axis(tables, np.broadcast_to(self.follow, moves.shape), moves - top, axis=2)
        begin = np.where(np.arange(len(self.label)) < self.k, 0.0, -np.inf)
        chain = HiddenChain.of_logs(begin, tables, self.places(offsets) if len(tables) > 1 else None)
        return chain, Observed.of(scores[:, self.label], offsets), top * (np.diff(offsets) - 1.0)

    def by_label(self, beliefs: Array) -> Array:
        """Return beliefs about labels from those about histories, along the last axis."""
        return np.asarray(beliefs.reshape(*beliefs.shape[:-1], -1, self.k).sum(axis=-2))


class HistoryObjective(ChainObjective):
    """`ChainObjective` with weights for label n-grams and for places: `transitions` are (places, histories, labels)."""

    def __init__(
        self,
        tokens: Tokens,
        codes: Ints,
        histories: LabelHistories,
        *,
        allowed: Allowed | None,
        **options: Any,
    ) -> None:
        self.histories, k = histories, histories.k
        one = np.ones(k, dtype=bool)
        pairs, first, last = (np.ones((k, k), dtype=bool), one, one) if allowed is None else allowed
        moves = np.repeat(pairs[histories.label][None], 1 + histories.first + histories.last, axis=0)
        super().__init__(tokens, codes, k, allowed=(moves, first, last), **options)

    def _shown_pairs(self) -> Flags:
        if (self.codes < 0).any():  # what is missing may be anything
            return np.ones(self.allowed[0].shape, dtype=bool)
        return np.asarray(self._pair_counts(self.tokens, self.codes) > 0.0)

    def _pair_counts(self, tokens: Tokens, codes: Ints) -> Array:
        own, chains = self.histories, tokens.chains
        right = np.setdiff1d(np.arange(len(codes)), chains)
        shape = ((own.first + 1) * (own.last + 1), len(own.label), own.k)
        counts = np.zeros(shape)
        np.add.at(counts, (own.places(chains)[right], own.codes(codes, chains)[right - 1], codes[right]), 1.0)
        return own.fold(counts)

    def _sum_out(self, tokens: Tokens, scores: Array, transitions: Array) -> tuple[float, Array]:
        own = self.histories
        chain, seen, more = own.chain(scores, transitions, tokens.chains)
        if self.margin:
            path, best = chain.best(seen)
            return float((best + more).sum()), self._features(tokens, own.label[path])
        found = chain.expect(seen)
        counts = np.take_along_axis(found.pairs, own.follow[None], axis=2)
        packed = self.pack(tokens, own.by_label(found.sums), own.fold(counts))
        return float((found.log_probs + more).sum()), packed
