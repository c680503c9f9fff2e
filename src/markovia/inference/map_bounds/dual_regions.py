"""Tables and the separators they share: the dual of the relaxation that asks tables to agree on separators.

The separators are the variables and, on demand, what tables have in common, and pairs of variables around clusters.
A cluster is a table of ones over a few variables, with the pairs around it as separators: it forces these pairs to
come from one distribution, which tightens the relaxation (Sontag et al. 2008). Everything is kept as flat arrays
for `markovia.kernels.maximising.dual_sweeps`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.clock import now

if TYPE_CHECKING:
    from markovia.kernels.maximising.dual_sweeps import DualTables

CHUNK = 500_000
"""Table entries between two looks at the clock."""


class Regions:
    """The tables of a model as potentials that can move, clusters that were added, and the bound.

    Edges 0, 1, ... are those of the flat graph; those of larger separators follow.
    """

    def __init__(self, graph: FlatGraph) -> None:
        self.graph = graph
        self.n, self.m = len(graph.cards), graph.n_factors
        self.bound = graph.log_scale
        self.potentials = graph.log_unary.copy()
        self.tables = graph.log_values.copy()
        self.sizes = np.diff(graph.table_ptr).tolist()
        self.cards = graph.cards.tolist()
        self.place = np.arange(self.n, dtype=np.float64).tolist()
        self.edge_factor = graph.edge_factor.tolist()
        self.edge_separator = graph.scope.tolist()
        self.maps: list[NDArray[np.int32]] = [_digits(graph)]
        self.separators: dict[tuple[int, ...], int] = {}
        self._inside: dict[tuple[int, int], list[tuple[int, int, int]]] | None = None
        self.hard = bool(np.any(graph.values == 0))
        self.turn = -1
        self._arrange()

    def _arrange(self) -> None:
        """Make the flat arrays after tables, separators or edges were added."""
        cards = np.array(self.cards, dtype=np.int64)
        self.starts = np.concatenate(([0], np.cumsum(cards))).astype(np.int64)
        self.table_ptr = np.concatenate(([0], np.cumsum(self.sizes))).astype(np.int64)
        factor = np.array(self.edge_factor, dtype=np.int64)
        separator = np.array(self.edge_separator, dtype=np.int64)
        self.edge_of_factor = factor
        sizes = np.array(self.sizes, dtype=np.int64)
        self.map_ptr = np.concatenate(([0], np.cumsum(sizes[factor]))).astype(np.int64)
        self.map: NDArray[np.int32] = np.concatenate(self.maps)
        self.maps = [self.map]
        self.edges = np.argsort(separator, kind="stable").astype(np.int64)
        self.edge_ptr = np.searchsorted(separator[self.edges], np.arange(len(cards) + 1)).astype(np.int64)
        place = np.array(self.place)
        self.order = np.lexsort((np.arange(len(cards)), place)).astype(np.int64)
        rank = np.empty(len(cards), dtype=np.int64)
        rank[self.order] = np.arange(len(cards))
        self.shares = (
            _shares(factor, separator, rank, len(sizes)),
            _shares(factor, separator, -rank, len(sizes)),
        )
        degree = np.diff(self.edge_ptr)
        self.belief = np.zeros(int(cards.max(initial=1)))
        self.gathered = np.zeros(int((degree * cards).max(initial=1)) if len(cards) else 1)
        work = float(sizes[factor].sum()) / max(len(cards), 1)
        self.step = max(1, int(CHUNK / max(work, 1.0)))

    def adopt(self, potentials: Array, added: Array, bound: float) -> None:
        """Go on from potentials of states and what was added to tables for each state of each edge."""
        sizes = np.diff(self.table_ptr)[self.edge_of_factor]
        cards = self.graph.cards[self.graph.scope]
        entry = np.arange(len(self.map)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        entry += np.repeat(self.table_ptr[self.edge_of_factor], sizes)
        self.tables = self.graph.log_values.copy()
        np.add.at(self.tables, entry, added[np.repeat(np.cumsum(cards) - cards, sizes) + self.map])
        self.potentials = potentials
        self.bound = bound

    def there_and_back(self, deadline: float = np.inf) -> bool:
        """Visit all separators in order and back; the bound never rises. False if time ran out first."""
        from markovia.kernels.maximising.dual_sweeps import sweep

        n = len(self.order)
        for forward in (True, False):
            for done in range(0, n, self.step):
                if done and now() > deadline:
                    return False
                low, high = (
                    (done, min(done + self.step, n)) if forward else (max(n - done - self.step, 0), n - done)
                )
                shares = self.shares[0 if forward else 1]
                fall = sweep(low, high, forward, self.order, shares, self.flat, self.belief, self.gathered)
                self.bound += min(0.0, float(fall))
                if self.bound == -np.inf:
                    return False
        return True

    def decoded(self) -> Ints:
        """Return the configuration that the present potentials suggest, taking variables in order and back in turn."""
        from markovia.kernels.maximising.dual_sweeps import decode

        graph = self.graph
        codes = np.full(self.n, -1, dtype=np.int64)
        self.turn = -self.turn
        order = np.ascontiguousarray(self.order[:: self.turn])
        states = (
            np.add.reduceat(graph.cards[graph.scope], graph.scope_ptr[:-1]) if self.m else graph.cards[:0]
        )
        room = (
            np.empty(int(graph.starts[-1]), dtype=bool), np.empty(self.m, dtype=np.int64),
            np.zeros(self.m, dtype=bool), np.empty(int(states.max(initial=1)), dtype=bool),
        )  # fmt: skip
        decode(order, self.hard, self.flat, codes, self.belief, self.gathered, room)
        return codes

    @property
    def flat(self) -> "DualTables":
        """All tables, separators and edges as kernels take them."""
        from markovia.kernels.maximising.dual_sweeps import DualTables

        return DualTables(
            self.starts, self.potentials, self.table_ptr, self.tables, self.graph.scope_ptr, self.graph.scope,
            self.edge_ptr, self.edges, self.edge_of_factor, self.map_ptr, self.map,
        )  # fmt: skip

    def inside(self) -> dict[tuple[int, int], list[tuple[int, int, int]]]:
        """Return for each pair of variables the tables it lies in, with the two edges there."""
        if self._inside is None:
            self._inside = {}
            for f in range(self.m):
                edges = range(self.graph.scope_ptr[f], self.graph.scope_ptr[f + 1])
                for e in edges:
                    for o in edges:
                        i, j = int(self.graph.scope[e]), int(self.graph.scope[o])
                        if i < j:
                            self._inside.setdefault((i, j), []).append((f, e, o))
        return self._inside

    def share_intersections(self, largest: int) -> int:
        """Make separators of what two tables have in common, where that is more than one variable; return how many."""
        made = 0
        seen: set[tuple[int, int]] = set()
        sets = [set(self.graph.members(f).tolist()) for f in range(self.m)]
        for held in self.inside().values():
            for k, (f, _, _) in enumerate(held):
                for g, _, _ in held[:k]:
                    if (g, f) in seen:
                        continue
                    seen.add((g, f))
                    common = tuple(sorted(sets[f] & sets[g]))
                    if (
                        common not in self.separators
                        and np.prod([float(self.cards[i]) for i in common]) <= largest
                    ):
                        self._separator(common)
                        made += 1
        if made:
            self._arrange()
        return made

    def add(self, clusters: Sequence[tuple[int, ...]]) -> None:
        """Add clusters, each a cycle of variables, with the pairs around it as separators."""
        for cluster in clusters:
            shape = [self.cards[i] for i in cluster]
            size = int(np.prod(shape))
            f = len(self.sizes)
            self.sizes.append(size)
            grid = np.indices(shape).reshape(len(shape), -1)
            rows = {i: grid[k] for k, i in enumerate(cluster)}
            self.tables = np.concatenate([self.tables, np.zeros(size)])
            for k, i in enumerate(cluster):
                a, b = sorted((i, cluster[(k + 1) % len(cluster)]))
                separator = self._separator((a, b))
                self._edge(f, separator, rows[a] * self.cards[b] + rows[b])
        self._arrange()

    def _separator(self, members: tuple[int, ...]) -> int:
        """Return the separator of some variables, made and linked to the tables that hold them where it is new."""
        if members in self.separators:
            return self.separators[members]
        s = len(self.cards)
        self.separators[members] = s
        self.cards.append(int(np.prod([self.cards[i] for i in members])))
        self.place.append(sum(self.place[i] for i in members) / len(members) + 0.25)
        self.potentials = np.concatenate([self.potentials, np.zeros(self.cards[s])])
        graph = self.graph
        for f in {f for f, _, _ in self.inside().get((members[0], members[1]), ())}:
            edges = {int(graph.scope[e]): e for e in range(graph.scope_ptr[f], graph.scope_ptr[f + 1])}
            if all(i in edges for i in members):
                places = np.zeros(self.sizes[f], dtype=np.int64)
                for i in members:
                    e = edges[i]
                    places = places * self.cards[i] + self.map[self.map_ptr[e] : self.map_ptr[e + 1]]
                self._edge(f, s, places)
        return s

    def _edge(self, factor: int, separator: int, places: Ints) -> None:
        self.edge_factor.append(factor)
        self.edge_separator.append(separator)
        self.maps.append(places.astype(np.int32))


def _digits(graph: FlatGraph) -> NDArray[np.int32]:
    """Return for each edge the variable's state at every entry of the factor's table."""
    sizes = np.diff(graph.table_ptr)[graph.edge_factor]
    within = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    states = within // np.repeat(graph.strides, sizes) % np.repeat(graph.cards[graph.scope], sizes)
    found: NDArray[np.int32] = states.astype(np.int32)
    return found


def _shares(factor: Ints, separator: Ints, rank: Ints, n_tables: int) -> Array:
    """Return what part of a separator's potential each edge's table gets in a sweep along the ranks.

    A table with a separator still to come gets an equal part, the smaller the more tables have one that was before.
    """
    here = rank[separator]
    last = np.full(n_tables, np.iinfo(np.int64).min)
    first = np.full(n_tables, np.iinfo(np.int64).max)
    np.maximum.at(last, factor, here)
    np.minimum.at(first, factor, here)
    onward, before = here < last[factor], here > first[factor]
    n = len(rank)
    out = np.bincount(separator, weights=onward, minlength=n)
    into = np.bincount(separator, weights=before, minlength=n)
    share = 1.0 / np.maximum(np.maximum(out, into), 1.0)
    return np.where(onward, share[separator], 0.0)
