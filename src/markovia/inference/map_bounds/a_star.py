"""A* search: the best configuration by always extending the most promising beginning.

Method: a beginning of a configuration is bounded by its tables so far and by mini-buckets for the rest (`mini_buckets`),
which pairwise models get after sweeps of `trw-s`. The beginning of the largest bound is extended first, so the first one
that is complete is a best configuration, and the largest bound that is open holds for all of them at any time. Of
beginnings that leave the same states behind only the first is extended. A beam search first finds a configuration that
rules out most of the rest.
References: Hart, Nilsson and Raphael (1968); Kask and Dechter (2001), "A general scheme for automatic generation of search
heuristics".
Cost: at worst exponential in time and memory, with the gap of the first bound; nothing but the mini-buckets where they are
not split.
Use it where a proof is wanted and the bound is nearly tight. `dual-decomposition` tightens the bound instead, and
`linear-program` with `integer=True` branches on both.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.inference.map_bounds.beam_search import beam
from markovia.inference.map_bounds.certified import PROOF, Certified, answer, nothing
from markovia.inference.map_bounds.mini_buckets import MiniBuckets, mini_buckets, search_order
from markovia.inference.result import Ranked, Record
from markovia.kernels.maximising.search_records import OpenNodes
from markovia.runtime.array_types import Ints
from markovia.runtime.checks import Count, TimeLimit, Whole
from markovia.runtime.clock import Clock

EXTENSIONS = 20_000
"""Nodes extended between two looks at the clock."""
FEW, MORE = 2**15, 16
"""Nodes that the search has room for at first, and how much more each time it begins anew."""
WIDTH = 64
"""Width of the beam search that finds the first configuration."""


Ending = Literal["proved", "time", "memory"]


@dataclass(frozen=True)
class SearchTreeDetails:
    """Beginnings extended and kept, the bound before the search, and how it ended."""

    extended: int
    nodes: int
    first_bound: float
    ended: Ending


@dataclass(frozen=True)
class AStar(Certified):
    """The most probable states by best-first search, proved; a configuration and a bound where time or memory end it.

    Parameters
    ----------
    table_limit
        Entries of the largest table by which the rest of a configuration is bounded: more memory, less search. Models of
        more than a thousand variables get smaller ones.
    max_nodes
        Beginnings to remember at most, some fifty bytes each.
    time_limit
        Seconds after which the best configuration so far is returned, with the bound so far.

    Examples
    --------
    >>> import markovia as mk
    >>> model = mk.generators.ising_grid(9, 9, coupling="random", field="random", seed=2)
    >>> found = model.map(engine=mk.engines.AStar(table_limit=64))
    >>> found.info.exact, found.gap, found.info.details.ended
    (True, 0.0, 'proved')
    """

    table_limit: Annotated[int, Whole(1, 2**30)] = 2**14
    max_nodes: Count = 4_000_000
    time_limit: TimeLimit = None

    name: ClassVar[str] = "a-star"

    def _search(self, graph: FlatGraph) -> Ranked:
        """Return a best configuration, or the best one so far with a bound."""
        with Clock(self.time_limit, progress=False) as clock:
            deadline = np.inf if self.time_limit is None else clock.start + self.time_limit
            buckets = mini_buckets(graph, search_order(graph), self.table_limit, deadline)
            return self._extend(graph, buckets, clock, deadline)

    def _extend(self, graph: FlatGraph, buckets: MiniBuckets, clock: Clock, deadline: float) -> Ranked:
        from markovia.kernels.maximising.prefix_search import FULL, GOING_ON, PROVED, best_first

        first = beam(graph, buckets, WIDTH, deadline)
        if first.bound == -np.inf:
            return nothing()
        codes, value = first.codes, graph.log_weight(first.codes)
        bound, ended, size = min(first.bound, buckets.bound), GOING_ON, FEW
        nodes = _open_nodes(buckets, min(size, self.max_nodes))
        while ended != PROVED and not clock.over():
            if ended == FULL:
                nodes = _open_nodes(buckets, min(size, self.max_nodes))
            # what is better by rounding alone is not looked for
            nodes.ends[3] = value + 0.5 * PROOF * max(1.0, abs(value)) if value > -np.inf else -np.inf
            room, ended = np.zeros(int(graph.cards.max())), GOING_ON
            while ended == GOING_ON and not clock.over():
                ended = best_first(buckets.tables, buckets.bound, EXTENSIONS, nodes, room)
            if ended == PROVED:
                if nodes.ends[4] >= 0:
                    codes = _configuration(nodes, int(nodes.ends[4]), buckets.order)
                elif value == -np.inf:
                    return nothing()
                bound = min(bound, float(nodes.ends[3]))
            elif nodes.ends[1]:
                bound = min(bound, max(float(nodes.bounds[nodes.heap[0]]), float(nodes.ends[3])))
            if ended == FULL and size >= self.max_nodes:
                break
            size *= MORE
        how: Ending = "proved" if ended == PROVED else "time" if clock.over() else "memory"
        record = Record(
            converged=ended == PROVED,
            iterations=int(nodes.ends[2]),
            error=max(bound - value, 0.0),
            advice="raise time_limit, max_nodes or table_limit, or use engine='dual-decomposition'",
            details=SearchTreeDetails(int(nodes.ends[2]), int(nodes.ends[0]), buckets.bound, how),
        )
        return answer(graph, codes, bound, record)


def _open_nodes(buckets: MiniBuckets, most: int) -> OpenNodes:
    """Return room for a search; memory that it does not reach is never touched but for the hash table."""
    size = 1 << (2 * most - 1).bit_length()
    bounds, n = np.empty(most), len(buckets.order)
    parents, states, depths, heap = (np.empty(most, dtype=np.int64) for _ in range(4))
    hashed, codes = np.full(size, -1, dtype=np.int64), np.zeros((2, buckets.slots), dtype=np.int64)
    ends = np.array([0.0, 0.0, 0.0, -np.inf, -1.0])
    return OpenNodes(bounds, parents, states, depths, heap, hashed, codes, np.zeros(n, dtype=np.int64), ends)


def _configuration(nodes: OpenNodes, node: int, order: Ints) -> Ints:
    """Return the states of a complete prefix by variable."""
    codes = np.empty(len(order), dtype=np.int64)
    for d in range(len(order) - 1, -1, -1):
        codes[order[d]] = nodes.states[node]
        node = int(nodes.parents[node])
    return codes
