"""Context-free grammars with probabilities: sums over all parses of a sentence.

Method: rules are cut into such with two symbols on the right (each binary rule carries the probability once, the rest has
probability 1), words among symbols get symbols of their own. What derives nothing is summed in advance: the probabilities
that symbols derive the empty sentence are the least solution of a polynomial system, by Newton's method from zero; chains of
rules with one symbol (also where its neighbours derive nothing) are summed by one inverse matrix. So charts (CYK) have only
binary steps, and every derivation of the grammar as it was written is counted exactly once, cycles included.
References: Stolcke (1995), section 4; Etessami and Yannakakis (2009) on Newton's method; Lari and Young (1990).
Cost: see `kernels/sequences/grammar_chart.py`; the closures cost the cube of the number of symbols that have such rules.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from markovia.errors import TooLarge
from markovia.inference.flat_graphs.flat_tables import pointers
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.memory_budget import default_budget, readable

if TYPE_CHECKING:
    from markovia.kernels.sequences.grammar_chart import Charts, GrammarCounts, GrammarTables

NEWTON_STEPS = 60
"""A grammar whose derivations just do not grow for ever gains one bit a step, and no more than half of a number's bits."""


class GrammarRule(NamedTuple):
    """A rule: a symbol, what it becomes, and which of those are words."""

    left: str
    right: tuple[str, ...]
    is_word: tuple[bool, ...]

    def __str__(self) -> str:
        right = [repr(s) if word else s for s, word in zip(self.right, self.is_word, strict=True)]
        return f"{self.left} -> {' '.join(right) or 'ε'}"


@dataclass(frozen=True)
class Binarised:
    """A grammar in rules of at most two symbols. Rows are (..., rule), where rule is -1 for steps of probability 1."""

    rules: tuple[GrammarRule, ...]
    start: str

    @cached_property
    def symbols(self) -> list[str]:
        """The symbols that were written; others follow that only cut long rules into pieces."""
        return list(dict.fromkeys([self.start, *(rule.left for rule in self.rules)]))

    @cached_property
    def words(self) -> list[str]:
        """All words."""
        parts = [part for rule in self.rules for part in zip(rule.right, rule.is_word, strict=True)]
        return list(dict.fromkeys(s for s, word in parts if word))

    @cached_property
    def lefts(self) -> Ints:
        """The symbol on the left of each rule."""
        place = {s: i for i, s in enumerate(self.symbols)}
        return np.array([place[rule.left] for rule in self.rules], dtype=np.int64)

    @cached_property
    def _cut(self) -> tuple[Ints, Ints, Ints, Ints, int]:
        place = {s: i for i, s in enumerate(self.symbols)}
        word_place = {w: i for i, w in enumerate(self.words)}
        rows: list[list[tuple[int, ...]]] = [[], [], [], []]
        binary, unary, lexical, empty = rows
        size, own_symbols = len(place), {}
        for r, rule in enumerate(self.rules):
            a = place[rule.left]
            if len(rule.right) == 1 and rule.is_word[0]:
                lexical.append((a, word_place[rule.right[0]], r))
                continue
            parts = []
            for s, word in zip(rule.right, rule.is_word, strict=True):
                if word and s not in own_symbols:  # a word among others gets a symbol that becomes it
                    own_symbols[s] = size
                    lexical.append((size, word_place[s], -1))
                    size += 1
                parts.append(own_symbols[s] if word else place[s])
            if not parts:
                empty.append((a, r))
            elif len(parts) == 1:
                unary.append((a, parts[0], r))
            carried = r
            while len(parts) > 2:
                binary.append((a, parts[0], size, carried))
                a, parts, carried = size, parts[1:], -1
                size += 1
            if len(parts) == 2:
                binary.append((a, *parts, carried))
        binary.sort(key=lambda row: row[1])  # kernels look rules up by the left child
        shaped = [np.array(r, dtype=np.int64).reshape(-1, k) for r, k in zip(rows, (4, 3, 3, 2), strict=True)]
        return shaped[0], shaped[1], shaped[2], shaped[3], size

    binary = property(lambda self: self._cut[0], doc="Rows (parent, left, right, rule), by left child.")
    unary = property(lambda self: self._cut[1], doc="Rows (parent, child, rule).")
    lexical = property(lambda self: self._cut[2], doc="Rows (parent, word, rule).")
    empty = property(lambda self: self._cut[3], doc="Rows (parent, rule).")
    size = property(lambda self: self._cut[4], doc="How many symbols there are in all.")

    @cached_property
    def links(self) -> tuple[Ints, Ints]:
        """Steps that keep the span: rows (parent, child), and how each comes about, (link, kind, row, other child).

        Kind 0 is a unary rule; 1 and 2 are binary rules whose right, or left child derives nothing.
        """
        nullable = self.derivable(self.empty[:, 0], self.unary, self.binary)
        ways = [(a, b, 0, i, 0) for i, (a, b, _) in enumerate(self.unary.tolist())]
        for i, (a, b, c, _) in enumerate(self.binary.tolist()):
            ways += [(a, b, 1, i, c)] * bool(nullable[c]) + [(a, c, 2, i, b)] * bool(nullable[b])
        rows = np.array(ways, dtype=np.int64).reshape(-1, 5)
        pairs, link = np.unique(rows[:, :2], axis=0, return_inverse=True)
        return pairs, np.column_stack([link.reshape(-1), rows[:, 2:]])

    def derivable(self, begun: Ints, unary: Ints, binary: Ints) -> Flags:
        """Return which symbols derive something, if some do by themselves and rules need all of their children."""
        found = np.zeros(self.size, dtype=bool)
        found[begun] = True
        while True:
            before = found.sum()
            np.logical_or.at(found, unary[:, 0], found[unary[:, 1]])
            np.logical_or.at(found, binary[:, 0], found[binary[:, 1]] & found[binary[:, 2]])
            if found.sum() == before:
                return found


class WeightedGrammar:
    """A binarised grammar with the probabilities of its rules."""

    def __init__(self, cut: Binarised, probabilities: Array) -> None:
        self.cut = cut
        with_one = np.append(probabilities, 1.0)  # for steps that belong to a rule already counted
        self.binary, self.unary = with_one[cut.binary[:, 3]], with_one[cut.unary[:, 2]]
        self.lexical, self.empty = with_one[cut.lexical[:, 2]], with_one[cut.empty[:, 1]]

    # -- what derives nothing, and chains --------------------------------------------------------------------------

    def _least(self, constant: Array) -> tuple[Array, Ints, Array]:
        """Return the least solution of e = constant + unary e + binary e e, where it is positive, and the slopes there."""
        cut = self.cut
        unary, binary = cut.unary[self.unary > 0.0], cut.binary[self.binary > 0.0]
        at = np.flatnonzero(cut.derivable(np.flatnonzero(constant > 0.0), unary, binary))
        place = np.full(cut.size, len(at))  # all that derive nothing of the kind share the last place
        place[at] = np.arange(len(at))
        n = len(at) + 1
        parent, child = place[cut.unary[:, :2]].T
        above, left, right = place[cut.binary[:, :3]].T
        found, slopes, begun = np.zeros(n), np.zeros((n, n)), np.append(constant[at], 0.0)
        for _ in range(NEWTON_STEPS if len(at) else 0):
            value = begun + np.bincount(parent, self.unary * found[child], n)
            value += np.bincount(above, self.binary * found[left] * found[right], n)
            slopes = np.zeros((n, n))
            np.add.at(slopes, (parent, child), self.unary)
            np.add.at(slopes, (above, left), self.binary * found[right])
            np.add.at(slopes, (above, right), self.binary * found[left])
            slopes[-1] = slopes[:, -1] = value[-1] = 0.0
            try:
                step = np.linalg.solve(np.eye(n) - slopes, value - found)
            except np.linalg.LinAlgError:  # on the edge of growing for ever: the solution is double
                break
            found = np.clip(found + step, 0.0, 1.0)
            if np.abs(step).max() <= 1e-14:
                break
        return found[place], at, slopes[:-1, :-1]

    @cached_property
    def nothing(self) -> tuple[Array, Ints, Array]:
        """The probability that each symbol derives nothing, which symbols may, and the slopes of their equations."""
        return self._least(np.bincount(self.cut.empty[:, 0], self.empty, self.cut.size).astype(np.float64))

    def mass(self) -> float:
        """Return the probability that derivations end: that of all sentences together."""
        begun = np.bincount(self.cut.lexical[:, 0], self.lexical, self.cut.size)
        begun = begun + np.bincount(self.cut.empty[:, 0], self.empty, self.cut.size)
        return float(self._least(begun.astype(np.float64))[0][0])

    def _ways(self, nothing: Array) -> Array:
        """Return the weight of each way to make a step that keeps the span."""
        _, kind, row, other = self.cut.links[1].T
        found = np.zeros(len(kind))
        found[kind == 0] = self.unary[row[kind == 0]]
        found[kind > 0] = self.binary[row[kind > 0]] * nothing[other[kind > 0]]
        return found

    def tables(self, chains: tuple[Ints, Ints, Array], logs: bool) -> "GrammarTables":
        """Return what kernels need: closed chains as parents, children and weights, the weights of rules as logs or not."""
        from markovia.kernels.sequences.grammar_chart import GrammarTables

        cut = self.cut
        parent, child, weight = chains
        order = np.argsort(parent, kind="stable")
        by_word = np.argsort(cut.lexical[:, 1], kind="stable")
        lexical = np.concatenate([by_word, np.arange(len(by_word))])  # a missing word may be any
        sizes = np.append(np.bincount(cut.lexical[:, 1], minlength=len(cut.words)), len(by_word))
        with np.errstate(divide="ignore"):
            scale = np.log if logs else np.asarray
            return GrammarTables(
                pointers(np.bincount(cut.binary[:, 1], minlength=cut.size)), cut.binary[:, 0].copy(),
                cut.binary[:, 2].copy(), scale(self.binary), pointers(sizes), cut.lexical[lexical, 0], lexical,
                scale(self.lexical[lexical]), pointers(np.bincount(parent, minlength=cut.size)), child[order],
                weight[order], cut.links[0][:, 0].copy(), cut.links[0][:, 1].copy(),
            )  # fmt: skip

    @cached_property
    def sums(self) -> "GrammarTables":
        """What kernels need for sums over all derivations."""
        cut, (pairs, ways) = self.cut, self.cut.links
        step = np.bincount(ways[:, 0], self._ways(self.nothing[0]), len(pairs))
        # a symbol that derives no words only makes chains that lead nowhere, some of them for ever
        begun, binary = cut.lexical[self.lexical > 0.0, 0], cut.binary[self.binary > 0.0]
        there = cut.derivable(begun, pairs[step > 0.0], binary)
        linked, at = np.unique(pairs, return_inverse=True)
        moves = np.zeros((len(linked), len(linked)))
        moves[tuple(at.reshape(-1, 2).T)] = step * there[pairs].all(axis=1)
        closed = np.maximum(np.linalg.inv(np.eye(len(linked)) - moves), 0.0)
        return self.tables(self.chains(linked, closed, closed > 0.0, 1.0), logs=False)

    def chains(self, linked: Ints, closed: Array, kept: Flags, one: float) -> tuple[Ints, Ints, Array]:
        """Return closed chains among some symbols as parents, children and weights; all others only stay what they are."""
        parent, child = np.nonzero(kept)
        others = np.setdiff1d(np.arange(self.cut.size), linked)
        weight = np.concatenate([closed[parent, child], np.full(len(others), one)])
        return np.append(linked[parent], others), np.append(linked[child], others), weight

    # -- expected counts -------------------------------------------------------------------------------------------

    def log_probs(self, words: Ints, offsets: Ints) -> Array:
        """Return the log probability of each sentence; codes of words, that after the last for a missing one."""
        return self._passes(words, offsets, np.zeros(len(offsets) - 1))[0]

    def expected_counts(self, words: Ints, offsets: Ints, weights: Array) -> tuple[Array, Array]:
        """Return how often each rule is expected in all sentences, weighted, and the log probability of each sentence."""
        log_probs, counts, _ = self._passes(words, offsets, weights)
        cut, (nothing, at, slopes) = self.cut, self.nothing
        link, kind, row, other = cut.links[1].T
        used = counts.links[link] * self._ways(nothing)
        binary = counts.binary + np.bincount(row[kind > 0], used[kind > 0], len(self.binary))
        unary = np.bincount(row[kind == 0], used[kind == 0], len(self.unary))
        # symbols that had to derive nothing: beside a chain, or as a whole sentence; those below them follow
        empties = np.bincount(other[kind > 0], used[kind > 0], cut.size)
        empties[0] += weights[(np.diff(offsets) == 0) & np.isfinite(log_probs)].sum()
        empty = np.zeros(len(self.empty))
        if empties.any():
            below = slopes * nothing[at] / nothing[at, None]
            uses = np.zeros(cut.size)
            uses[at] = np.linalg.solve(np.eye(len(at)) - below.T, empties[at]) / nothing[at]
            parent, left, right = cut.binary[:, :3].T
            binary = binary + uses[parent] * self.binary * nothing[left] * nothing[right]
            unary = unary + uses[cut.unary[:, 0]] * self.unary * nothing[cut.unary[:, 1]]
            empty = uses[cut.empty[:, 0]] * self.empty
        rules = np.concatenate([rows[:, -1] for rows in (cut.binary, cut.unary, cut.lexical, cut.empty)])
        used = np.concatenate([binary, unary, counts.lexical, empty])
        found = np.bincount(rules[rules >= 0], used[rules >= 0], len(cut.rules))
        return found.astype(np.float64), log_probs

    def _passes(self, words: Ints, offsets: Ints, weights: Array) -> "tuple[Array, GrammarCounts, Charts]":
        from markovia.kernels.sequences.grammar_chart import Charts, GrammarCounts, inside_outside

        n, size = int(np.diff(offsets).max(initial=0)), self.cut.size
        self.need_room(n, 2 if weights.any() else 1)
        rows = n * (n + 1) // 2
        more = rows if weights.any() else 0
        charts = Charts(np.empty((rows, size)), np.empty(rows), np.empty((more, size)), np.empty(more))
        counts = GrammarCounts(*map(np.zeros, (len(self.binary), len(self.lexical), len(self.cut.links[0]))))
        whole = np.diff(offsets) > 0
        found = np.empty(int(whole.sum()))
        starts = np.append(offsets[:-1][whole], offsets[-1])
        inside_outside(self.sums, words, starts, weights[whole], charts, counts, found)
        with np.errstate(divide="ignore"):
            log_probs = np.full(len(weights), np.log(self.nothing[0][0]))
        log_probs[whole] = found
        return log_probs, counts, charts

    def need_room(self, n: int, charts: int) -> None:
        """Refuse sentences of n words whose charts do not fit into memory."""
        need, budget = 4.0 * n * (n + 1) * self.cut.size * charts, default_budget()
        if need > budget:
            raise TooLarge(
                f"the charts of a sentence of {n:,} words need {readable(need)}; the budget is {readable(budget)}. Cut the "
                "sentence, or use fewer symbols", bytes=need,
            )  # fmt: skip

    def spans(self, words: Ints) -> tuple[Array, float]:
        """Return how many nodes of each symbol are expected over the words i to j - 1, (i, j, symbol), and log p."""
        n, written = len(words), len(self.cut.symbols)
        log_probs, _, charts = self._passes(words, np.array([0, n]), np.ones(1))
        found = np.zeros((n, n + 1, written))
        if n and log_probs[0] > -np.inf:
            first, last = np.triu_indices(n)
            # a node that a chain leads to has the chain above it and all its own derivations below
            share = np.exp(charts.tops + charts.scales - log_probs[0])
            found[first, last + 1] = (charts.around * charts.sums)[:, :written] * share[:, None]
        return found, float(log_probs[0])
