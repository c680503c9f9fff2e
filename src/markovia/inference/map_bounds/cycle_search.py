"""Which cycles of pairs disagree: clusters that would lower a dual bound.

Method: for every pair of variables that share a table its present belief is projected from the tables. Cycles of
three and four variables are scored by how far the best configuration around the cycle is below the sum of the
pairs' own maxima. Longer ones are found in the signed graph of pairs that want to agree or to differ on keeping the
present configuration: a cycle with an odd number of the latter is frustrated, and a breadth-first search finds a
shortest one through an edge at odds with a maximum spanning tree.
References: Sontag, Meltzer, Globerson, Jaakkola and Weiss (2008); Sontag, Choe and Li (2012). Cost: linear in the
entries of tables, plus the number of short cycles.
"""

from itertools import pairwise

import numpy as np

from markovia.inference.map_bounds.dual_regions import Regions
from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Array, Ints

Cycle = tuple[int, ...]
MOST_CYCLES = 200_000
LONGEST = 40
_KERNELS = "markovia.kernels.maximising.dual_sweeps"
LARGEST = 4096
"""Entries of a cluster's table."""
SEARCHES = 500
"""Breadth-first searches for long cycles in one round."""


class CycleSearch:
    """The pairs of a model, its short cycles, and which of them are clusters already."""

    def __init__(self, regions: Regions) -> None:
        self.regions = regions
        self.cards = regions.graph.cards
        inside = regions.inside()
        self.pairs = np.array(sorted(inside), dtype=np.int64).reshape(-1, 2)
        self.number = {(int(i), int(j)): p for p, (i, j) in enumerate(self.pairs)}
        sizes = self.cards[self.pairs[:, 0]] * self.cards[self.pairs[:, 1]]
        self.pair_ptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        rows = [(p, f, e, o) for (i, j), p in self.number.items() for f, e, o in inside[i, j]]
        self.rows = np.array(rows, dtype=np.int64).reshape(-1, 4)
        self.neighbours: list[set[int]] = [set() for _ in self.cards]
        for i, j in self.number:
            self.neighbours[i].add(j)
            self.neighbours[j].add(i)
        self.covered = {tuple(sorted(regions.graph.members(f).tolist())) for f in range(regions.m)}
        self.short = self._short_cycles()
        self.taken: set[tuple[int, ...]] = set()

    def best(self, codes: Ints, most: int, least: float) -> list[Cycle]:
        """Return up to `most` new clusters, those that promise most first.

        Parameters
        ----------
        codes
            The best configuration so far.
        most
            How many clusters to return at most.
        least
            Promise at least this much fall of the bound.
        """
        if not len(self.pairs):
            return []
        beliefs = self._beliefs()
        found: list[Cycle] = []
        scores = self._scores(beliefs)
        for c in np.argsort(-scores, kind="stable")[: 4 * most]:
            if scores[c] <= least or len(found) >= most:
                break
            self._take(self.short[c], found)
        if len(found) < most:
            for cycle in self._long_cycles(beliefs, codes, least):
                if len(found) >= most:
                    break
                self._take(cycle, found)
        return found

    def _take(self, cycle: Cycle, found: list[Cycle]) -> None:
        """Add a cycle as one cluster, or as triangles where its table would be too large."""
        size = float(np.prod(self.cards[list(cycle)].astype(np.float64)))
        parts = [cycle]
        if len(cycle) > 3 and (size > LARGEST or len(cycle) > 6):
            parts = [(cycle[0], a, b) for a, b in pairwise(cycle[1:])]
        for part in parts:
            key = tuple(sorted(part))
            if np.prod(self.cards[list(part)].astype(np.float64)) > 64 * LARGEST:
                continue
            if key not in self.taken:
                self.taken.add(key)
                found.append(part)

    def _beliefs(self) -> Array:
        flat = self.regions.flat
        beliefs = np.zeros(int(self.pair_ptr[-1]))
        widths = self.cards[self.pairs[self.rows[:, 0], 1]]
        project_pairs = either(f"{_KERNELS}:project_pairs", 6.0 * len(flat.tables))
        room = np.empty(int(np.diff(self.pair_ptr).max(initial=1)))
        project_pairs(self.rows, widths, flat, self.pair_ptr, room, beliefs)
        return np.maximum(beliefs, -1e18)

    def _scores(self, beliefs: Array) -> Array:
        scores = np.zeros(len(self.short))
        if not len(scores):
            return scores
        widest = int(self.cards.max(initial=1))
        score_cycles = either(f"{_KERNELS}:score_cycles", 4.0 * float(self._lengths.sum()) * widest**3)
        score_cycles(
            self._cycles, self._lengths, self._pair_of, self.cards, self.pairs, self.pair_ptr, beliefs,
            np.empty((2, widest)), scores,
        )  # fmt: skip
        return scores

    def _short_cycles(self) -> list[Cycle]:
        """Return the triangles and the chordless squares that lie in no single table."""
        found: list[Cycle] = []
        near = self.neighbours
        for i, j in self.number:
            third = sorted(k for k in near[i] & near[j] if k > j)
            found.extend([(i, j, k) for k in third if (i, j, k) not in self.covered])
            if len(found) > MOST_CYCLES:
                break
        squares: set[tuple[int, ...]] = set()
        for i in range(len(near)):
            ends: dict[int, list[int]] = {}
            for j in near[i]:
                for k in near[j]:
                    if k > i and k not in near[i]:
                        ends.setdefault(k, []).append(j)
            for k, middles in ends.items():
                for a, j in enumerate(middles):
                    for l in middles[:a]:  # noqa: E741
                        if l not in near[j] and tuple(sorted((i, j, k, l))) not in self.covered:
                            squares.add((i, j, k, l) if min(j, l) == j else (i, l, k, j))
            if len(squares) + len(found) > MOST_CYCLES:
                break
        unique = {tuple(sorted(c)): c for c in [*found, *squares]}
        found = list(unique.values())
        self._cycles = np.zeros((len(found), 4), dtype=np.int64)
        self._pair_of = np.zeros((len(found), 4), dtype=np.int64)
        self._lengths = np.array([len(c) for c in found], dtype=np.int64)
        for c, cycle in enumerate(found):
            for k, i in enumerate(cycle):
                j = cycle[(k + 1) % len(cycle)]
                self._cycles[c, k] = i
                self._pair_of[c, k] = self.number[min(i, j), max(i, j)]
        return found

    def _long_cycles(self, beliefs: Array, codes: Ints, least: float) -> list[Cycle]:
        """Return shortest frustrated cycles through edges that disagree with a spanning tree of the surest edges."""
        from scipy.sparse import coo_matrix
        from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

        from markovia.kernels.maximising.dual_sweeps import pair_signs

        n = len(self.cards)
        signs = np.zeros(len(self.pairs))
        pair_signs(self.pairs, codes, self.cards, self.pair_ptr, beliefs, signs)
        strong = np.abs(signs) > least
        if not strong.any():
            return []
        a, b, s = self.pairs[strong, 0], self.pairs[strong, 1], signs[strong]
        cost = coo_matrix((1.0 / np.abs(s), (a, b)), shape=(n, n))
        tree = minimum_spanning_tree(cost.tocsr())
        sign_of = {(int(i), int(j)): v < 0 for i, j, v in zip(a, b, s, strict=True)}
        parity = np.full(n, -1, dtype=np.int64)
        for root in range(n):
            if parity[root] >= 0:
                continue
            parity[root] = 0
            order, parents = breadth_first_order(tree, root, directed=False)
            for v in order[1:]:
                u = int(parents[v])
                parity[v] = parity[u] ^ int(sign_of[min(u, int(v)), max(u, int(v))])
        odd = np.flatnonzero((parity[a] ^ parity[b]) != (s < 0))
        odd = odd[np.argsort(-np.abs(s[odd]), kind="stable")][:SEARCHES]
        return self._through(np.column_stack([a, b]), s, odd)

    def _through(self, pairs: Ints, signs: Array, odd: Ints) -> list[Cycle]:
        """Return a shortest cycle with an odd number of negative signs through each of some pairs."""
        from markovia.kernels.maximising.dual_sweeps import CycleRoom, SignedGraph, odd_cycle

        n = len(self.cards)
        tails = np.concatenate([pairs[:, 0], pairs[:, 1]])
        order = np.argsort(tails, kind="stable")
        ptr = np.searchsorted(tails[order], np.arange(n + 1)).astype(np.int64)
        others = np.concatenate([pairs[:, 1], pairs[:, 0]])[order]
        negative = np.tile(signs < 0, 2)[order].astype(np.int64)
        graph = SignedGraph(ptr, others, negative, np.tile(np.abs(signs), 2)[order])
        seen, came, queue = np.zeros((3, 2 * n), dtype=np.int64)
        search = CycleRoom(seen, came, queue, np.zeros(LONGEST, dtype=np.int64))
        found = []
        for stamp, e in enumerate(odd.tolist(), start=1):
            i, j = pairs[e].tolist()
            length = odd_cycle(graph, search, i, j, int(signs[e] < 0), abs(float(signs[e])) / 4, stamp)
            cycle = tuple(search.path[:length].tolist())
            if length > 2 and tuple(sorted(cycle)) not in self.covered:
                found.append(cycle)
        return found
