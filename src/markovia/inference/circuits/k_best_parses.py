"""The k most probable parses of a sentence, best first.

Method: recursive enumeration (Jimenez and Marzal 2000) over the chart of the best parse: the next parse of a symbol over a
span differs from one that was found in the rule at its top, or takes the next parse of one of its parts. Only what the k
parses need is looked at. Chains of rules with one symbol and parts that derive nothing are parts like others, and a cycle
comes after what it goes round. Cost: that of the best parse, and for each parse the rules of the parts that it changes.
"""

from heapq import heapify, heappop, heappush

import numpy as np

from markovia.errors import TooLarge
from markovia.inference.circuits.best_parse import BestParse, Nodes, chart_row
from markovia.inference.circuits.parse_tree import ParseTree
from markovia.runtime.array_types import Ints

Part = tuple[int, int, int]
"""A symbol over the words i to j - 1."""
Ways = list[tuple[float, tuple[Part, ...], int]]
"""Ways to derive a part: the log probability of the rule, the parts below it, and the code of its word, or -1."""
Ranked = tuple[float, int, tuple[int, ...]]
"""A derivation of a part: its log probability (minus it while it waits), its way, and the ranks of the parts below."""


MOST_NODES = 1_000_000


class KBestParses:
    """Enumerates the parses of one sentence."""

    def __init__(self, parser: BestParse, words: Ints) -> None:
        self.parser, self.words = parser, words
        self.best = parser.chart(words)[0]
        self.ways: dict[Part, Ways] = {}
        self.waiting: dict[Part, list[Ranked]] = {}
        self.found: dict[Part, list[Ranked]] = {}
        self.seen: set[tuple[Part, int, tuple[int, ...]]] = set()

    def trees(self, k: int) -> list[ParseTree]:
        """Return the k best trees, or all where there are fewer."""
        root: Part = (0, 0, len(self.words))
        found: list[ParseTree] = []
        try:
            while len(found) < k and self._reach(root, len(found)):
                log_prob = self.found[root][len(found)][0]
                found.append(self.parser.built(self._nodes(root, len(found)), log_prob))
        except RecursionError:
            raise TooLarge(
                f"the parts of a sentence of {len(self.words):,} words are nested too deep to list its parses; use parse"
            ) from None
        return found

    def _first(self, part: Part) -> float:
        """Return the log probability of the best derivation of a part."""
        a, i, j = part
        n = len(self.words)
        return float(self.parser.nothing[0][a] if i == j else self.best[chart_row(i, j, n), a])

    def _open(self, part: Part) -> None:
        """List the ways to derive a part, each with the best parts below it."""
        (a, i, j), cut, parser = part, self.parser.cut, self.parser
        ways: Ways = [
            (float(parser.unary[r]), ((int(cut.unary[r, 1]), i, j),), -1)
            for r in np.flatnonzero(cut.unary[:, 0] == a)
        ]
        for r in np.flatnonzero(cut.binary[:, 0] == a):
            left, right = int(cut.binary[r, 1]), int(cut.binary[r, 2])
            ways += [(float(parser.binary[r]), ((left, i, k), (right, k, j)), -1) for k in range(i, j + 1)]
        if i == j:
            ways += [(float(parser.empty[r]), (), -1) for r in np.flatnonzero(cut.empty[:, 0] == a)]
        elif j == i + 1:
            missing = self.words[i] == len(cut.words)
            rows = np.flatnonzero((cut.lexical[:, 0] == a) & ((cut.lexical[:, 1] == self.words[i]) | missing))
            ways += [(float(parser.lexical[r]), (), int(cut.lexical[r, 1])) for r in rows]
        # of equally probable ways those that end come first: a cycle that costs nothing is not gone round for ever
        ways.sort(key=lambda way: sum(below[1:] == part[1:] for below in way[1]))
        scores = [p + sum(map(self._first, below)) for p, below, _ in ways]
        self.ways[part], self.found[part] = ways, []
        self.waiting[part] = [(-s, w, (0,) * len(ways[w][1])) for w, s in enumerate(scores) if s > -np.inf]
        heapify(self.waiting[part])

    def _reach(self, part: Part, rank: int) -> bool:
        """Find derivations of a part up to a rank, 0 for the best; say whether there are so many."""
        if part not in self.found:
            self._open(part)
        found, waiting = self.found[part], self.waiting[part]
        while len(found) <= rank:
            if found:  # what follows the last one: the next derivation of one of its parts
                _, way, ranks = found[-1]
                p, below, _ = self.ways[part][way]
                for q in range(len(below)):
                    after = (*ranks[:q], ranks[q] + 1, *ranks[q + 1 :])
                    if (part, way, after) not in self.seen and self._reach(below[q], after[q]):
                        self.seen.add((part, way, after))
                        for one, at in zip(below, after, strict=True):
                            self._reach(one, at)
                        score = p + sum(self.found[one][at][0] for one, at in zip(below, after, strict=True))
                        heappush(waiting, (-score, way, after))
            if not waiting:
                return False
            score, way, ranks = heappop(waiting)
            found.append((-score, way, ranks))
        return True

    def _nodes(self, root: Part, rank: int) -> Nodes:
        """Return the nodes of a derivation."""
        nodes: Nodes = [(root[0], [])]
        waiting = [(0, root, rank)]
        while waiting:
            if len(nodes) > MOST_NODES:
                raise TooLarge(
                    "a cycle of rules costs nothing here, so that one parse goes round it for ever; use parse"
                )
            place, part, at = waiting.pop()
            self._reach(part, at)
            _, way, ranks = self.found[part][at]
            _, below, word = self.ways[part][way]
            if word >= 0:
                nodes[place][1].append(-1 - word)
            for one, rank_below in zip(below, ranks, strict=True):
                nodes[place][1].append(len(nodes))
                nodes.append((one[0], []))
                waiting.append((len(nodes) - 1, one, rank_below))
        return nodes
