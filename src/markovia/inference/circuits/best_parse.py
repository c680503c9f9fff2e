"""The most probable parse of a sentence under a context-free grammar: CYK with maxima, and its tree in the rules as written.

The best ways to derive nothing and the best chains of rules with one symbol are found in advance (Knuth 1977; Floyd 1962):
cycles never help, as probabilities are at most 1. Cost: that of a chart, see `kernels/sequences/grammar_chart.py`.
"""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.inference.circuits.grammar import WeightedGrammar
from markovia.inference.circuits.parse_tree import ParseTree
from markovia.runtime.array_types import Array, Ints

if TYPE_CHECKING:
    from markovia.kernels.sequences.grammar_chart import GrammarTables

Nodes = list[tuple[int, list[int]]]
"""Nodes of a tree, parents first: a symbol, and the places of its children, or -1 - the code of a word."""


def chart_row(i: Any, j: Any, n: int) -> Any:
    """Return the row of a chart for the words i to j - 1 of n, as `cell` does in kernels."""
    return i * n - i * (i - 1) // 2 + j - i - 1


class BestParse:
    """Finds best parses under one grammar."""

    def __init__(self, grammar: WeightedGrammar) -> None:
        self.grammar, self.cut = grammar, grammar.cut
        with np.errstate(divide="ignore"):
            self.binary, self.unary = np.log(grammar.binary), np.log(grammar.unary)
            self.lexical, self.empty = np.log(grammar.lexical), np.log(grammar.empty)

    @cached_property
    def nothing(self) -> tuple[Array, Ints]:
        """The best log probability of deriving nothing, and how: (kind, row) in empty (0), unary (1), binary rules (2)."""
        kinds, (_, child), (_, left, right) = (
            (self.cut.empty, self.cut.unary, self.cut.binary), self.cut.unary.T[:2], self.cut.binary.T[:3],
        )  # fmt: skip
        found, how = np.full(self.cut.size, -np.inf), np.zeros((self.cut.size, 2), dtype=np.int64)
        parents = np.concatenate([rows[:, 0] for rows in kinds])
        ways = np.array([(kind, row) for kind, rows in enumerate(kinds) for row in range(len(rows))])
        while True:
            scores = np.concatenate(
                [self.empty, self.unary + found[child], self.binary + found[left] + found[right]]
            )
            best = np.lexsort((-scores, parents))
            best = best[np.unique(parents[best], return_index=True)[1]]  # the best way of each symbol
            best = best[scores[best] > found[parents[best]]]
            if not len(best):
                return found, how
            found[parents[best]], how[parents[best]] = scores[best], ways[best]

    @cached_property
    def _chains(self) -> tuple[Ints, Array, Ints, dict[tuple[int, int], Ints]]:
        """Best chains: the symbols in them, log probabilities, the next symbol of each, and the way of each single step."""
        pairs, ways = self.cut.links
        link, kind, row, other = ways.T
        scores = np.empty(len(ways))
        scores[kind == 0] = self.unary[row[kind == 0]]
        scores[kind > 0] = self.binary[row[kind > 0]] + self.nothing[0][other[kind > 0]]
        linked, at = np.unique(pairs, return_inverse=True)
        n, at = len(linked), at.reshape(-1, 2)
        closed, following = np.full((n, n), -np.inf), np.tile(linked, (n, 1))
        steps = {}
        for w in np.argsort(scores, kind="stable").tolist():  # the best way of a step comes last
            closed[tuple(at[link[w]])] = scores[w]
            steps[int(pairs[link[w], 0]), int(pairs[link[w], 1])] = ways[w, 1:]
        np.fill_diagonal(closed, 0.0)
        for k in range(n):
            through = closed[:, k, None] + closed[k]
            better = through > closed
            following = np.where(better, following[:, k, None], following)
            closed = np.where(better, through, closed)
        return linked, closed, following, steps

    @cached_property
    def _tables(self) -> "GrammarTables":
        linked, closed, _, _ = self._chains
        return self.grammar.tables(self.grammar.chains(linked, closed, closed > -np.inf, 0.0), logs=True)

    def chart(self, words: Ints) -> tuple[Array, Array]:
        """Return log probabilities of the best derivations of all spans (spans, symbols), with and without unary chains."""
        from markovia.kernels.sequences.grammar_chart import best_chart

        n = len(words)
        self.grammar.need_room(n, 2)
        best, core = np.empty((2, n * (n + 1) // 2, self.cut.size))
        if n:
            best_chart(self._tables, words, best, core)
        return best, core

    def tree(self, words: Ints) -> ParseTree | None:
        """Return the best tree of a sentence, with its log probability; None where the grammar has none."""
        best, core = self.chart(words)
        log_prob = float(best[len(words) - 1, 0] if len(words) else self.nothing[0][0])
        return None if log_prob == -np.inf else self.built(self._nodes(words, best, core), log_prob)

    def _nodes(self, words: Ints, best: Array, core: Array) -> Nodes:
        """Return the nodes of the best tree."""
        cut, n = self.cut, len(words)
        nodes: Nodes = [(0, [])]
        waiting = [(0, 0, n)]

        def add(place: int, symbol: int, i: int, j: int) -> int:
            nodes[place][1].append(len(nodes))
            nodes.append((symbol, []))
            waiting.append((len(nodes) - 1, i, j))
            return len(nodes) - 1

        while waiting:
            place, i, j = waiting.pop()
            a = nodes[place][0]
            if i == j:
                kind, row = self.nothing[1][a].tolist()
                for c in () if kind == 0 else cut.unary[row, 1:2] if kind == 1 else cut.binary[row, 1:3]:
                    add(place, int(c), i, i)
                continue
            linked, closed, following, steps = self._chains
            at = int(np.searchsorted(linked, a))
            # a symbol that is in no chain stays what it is
            inside = at < len(linked) and linked[at] == a
            goal = int((closed[at] + core[chart_row(i, j, n), linked]).argmax()) if inside else 0
            while inside and a != linked[goal]:
                after = int(following[np.searchsorted(linked, a), goal])
                kind, _, other = steps[a, after].tolist()
                if kind == 2:
                    add(place, other, i, i)
                inner = add(place, after, i, j)
                waiting.pop()
                if kind == 1:
                    add(place, other, j, j)
                place, a = inner, after
            if j == i + 1:
                nodes[place][1].append(-1 - self._word(a, int(words[i])))
            else:
                left, right, k = self._split(a, i, j, n, best)
                add(place, left, i, k)
                add(place, right, k, j)
        return nodes

    def _word(self, a: int, word: int) -> int:
        """Return the word of a symbol: the one that is there, or the most probable one where it is missing."""
        if word < len(self.cut.words):
            return word
        rows = np.flatnonzero(self.cut.lexical[:, 0] == a)
        return int(self.cut.lexical[rows[self.lexical[rows].argmax()], 1])

    def _split(self, a: int, i: int, j: int, n: int, best: Array) -> tuple[int, int, int]:
        """Return the two symbols that a symbol over a span becomes, and where the second begins."""
        rules = np.flatnonzero(self.cut.binary[:, 0] == a)
        _, left, right, _ = self.cut.binary[rules].T
        k = np.arange(i + 1, j)
        first, second = best[chart_row(i, k, n)], best[chart_row(k, j, n)]
        scores = self.binary[rules] + first[:, left] + second[:, right]
        at, r = np.unravel_index(int(scores.argmax()), scores.shape)
        return int(left[r]), int(right[r]), int(k[at])

    def built(self, nodes: Nodes, log_prob: float) -> ParseTree:
        """Return the tree of nodes; what only cuts rules into pieces is put in its place."""
        cut, written = self.cut, len(self.cut.symbols)
        built: list[tuple[ParseTree | str, ...]] = [()] * len(nodes)
        for place in range(len(nodes) - 1, -1, -1):
            symbol, children = nodes[place]
            parts = tuple(p for c in children for p in (built[c] if c >= 0 else (cut.words[-1 - c],)))
            label = cut.symbols[symbol] if symbol < written else ""
            built[place] = (ParseTree(label, parts, None if place else log_prob),) if label else parts
        tree = built[0][0]
        assert isinstance(tree, ParseTree)
        return tree
