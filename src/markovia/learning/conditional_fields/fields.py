"""Many graphs as one set of flat arrays: what the kernels of conditional random fields work on.

A `Fields` holds the graphs of all instances one after the other. Every node has the same k labels, and every edge a log
table; edges with the same features share one, so that chains with constant edge features have a single table. Graphs
without cycles are rooted once; narrow ones get a clique tree, which equal graphs share.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidGraph, TooLarge
from markovia.kernels.fields.crf_records import LogPotentials, PairwiseGraphs
from markovia.kernels.plain_code import either
from markovia.learning.conditional_fields.clique_plan import MOST_ENTRIES, MOST_NODES, CliquePlan, clique_plan
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.threads import in_parallel

BLOCK = 4096
"""Nodes that one thread takes at a time."""
SHARED_ENTRIES = 1 << 15
"""Entries of tables up to which edges with equal features share them."""


@dataclass
class Fields:
    """Graphs one after the other: nodes `node_ptr[g] : node_ptr[g + 1]`, edges by global node numbers.

    Use `Fields.of`, which also finds roots and neighbours.
    """

    k: int
    node_ptr: Ints
    edge_ptr: Ints
    tails: Ints
    heads: Ints
    rows: Array
    row: Ints
    ptr: Ints
    links: Ints
    order: Ints
    parent: Ints
    parent_edge: Ints
    forest: NDArray[np.bool_]
    plans: dict[Any, CliquePlan | None] = field(default_factory=dict)
    weights: Array | None = None

    @classmethod
    def of(
        cls,
        k: int,
        node_ptr: Ints,
        edge_ptr: Ints,
        tails: Ints,
        heads: Ints,
        edge_features: Array,
        *,
        share: bool = True,
    ) -> "Fields":
        """Link the graphs of all instances; with `share` edges with equal features share a table.

        Examples
        --------
        >>> ends = np.array([0, 2]), np.array([0, 1])
        >>> two = Fields.of(2, *ends, np.array([0]), np.array([1]), np.ones((1, 1)))
        >>> two.forest.tolist(), two.parent.tolist()
        ([True], [-1, 0])
        """
        if np.any(tails == heads):
            raise InvalidGraph("an edge joins a node with itself; the ends of an edge are two nodes")
        n = int(node_ptr[-1])
        ptr, links = link_nodes(n, tails, heads)
        order, parent, edge = (np.empty(n, dtype=np.int64) for _ in range(3))
        forest = np.empty(len(node_ptr) - 1, dtype=np.bool_)
        rows, row = _shared(edge_features, k) if share else (edge_features, np.arange(len(tails)))
        found = cls(k, node_ptr, edge_ptr, tails, heads, rows, row, ptr, links, order, parent, edge, forest)
        root_forests = either("markovia.kernels.fields.crf_forest:root_forests", 2 * n + 4 * len(tails))
        root_forests(found.graphs, forest)
        return found

    @property
    def graphs(self) -> PairwiseGraphs:
        """The graphs as kernels take them."""
        return PairwiseGraphs(*(getattr(self, name) for name in PairwiseGraphs._fields))

    @property
    def n_graphs(self) -> int:
        """The number of instances."""
        return len(self.node_ptr) - 1

    @property
    def own_tables(self) -> bool:
        """Whether every edge has a table of its own."""
        return len(self.rows) == len(self.tails) and len(self.rows) * self.k * self.k > SHARED_ENTRIES

    def best(self, scores: Array, tables: Array, which: Ints) -> tuple[Ints, Array]:
        """Return best labels of the nodes of the listed graphs without cycles, and the log weight of each graph."""
        found, weight = np.zeros(len(scores), dtype=np.int64), np.full(self.n_graphs, np.nan)
        graphs = self.graphs
        potentials = LogPotentials(np.ascontiguousarray(scores), np.ascontiguousarray(tables))
        steps = 2 * len(scores) * self.k * self.k
        forest_best = either("markovia.kernels.fields.crf_forest:forest_best", steps)

        def decode(some: Ints, _: None) -> None:
            forest_best(some, graphs, potentials, found, weight)

        in_parallel(decode, self.blocks(which), lambda: None)
        return found, weight

    def plan(self, g: int, most: int = MOST_ENTRIES) -> CliquePlan | None:
        """Return the clique tree of a graph, None if it is too wide; equal graphs share one."""
        first, n = int(self.node_ptr[g]), int(self.node_ptr[g + 1] - self.node_ptr[g])
        edges = slice(int(self.edge_ptr[g]), int(self.edge_ptr[g + 1]))
        left, right = self.tails[edges] - first, self.heads[edges] - first
        key = (n, left.tobytes(), right.tobytes(), most)
        if key not in self.plans:
            scopes: list[tuple[int, ...]] = [(i,) for i in range(n)]
            scopes += list(zip(left.tolist(), right.tolist(), strict=True))
            try:
                wide = n > MOST_NODES and not self.forest[g]
                self.plans[key] = None if wide else clique_plan([self.k] * n, scopes, most)
            except TooLarge:
                self.plans[key] = None
        return self.plans[key]

    def appearance(self) -> Array:
        """Return for each edge how often it is in a spanning forest, for forests that together hold every edge.

        Forests by Kruskal's algorithm, each preferring edges used least so far, until all edges were used and there are
        at least eight.
        """
        if self.weights is None:
            from scipy.sparse import csr_matrix
            from scipy.sparse.csgraph import minimum_spanning_tree

            n = int(self.node_ptr[-1])
            low, high = np.minimum(self.tails, self.heads), np.maximum(self.tails, self.heads)
            keys, place, times = np.unique(low * max(n, 1) + high, return_inverse=True, return_counts=True)
            low, high = keys // max(n, 1), keys % max(n, 1)
            used, rounds = np.zeros(len(keys)), 0
            while len(used) and (rounds < 8 or used.min() == 0.0):
                tree = minimum_spanning_tree(csr_matrix((1.0 + used, (low, high)), shape=(n, n))).tocoo()
                ends = np.minimum(tree.row, tree.col).astype(np.int64) * n + np.maximum(tree.row, tree.col)
                used[np.searchsorted(keys, ends)] += 1.0
                rounds += 1
            self.weights = (used / max(rounds, 1) / times)[place.ravel()]
        return self.weights

    def blocks(self, which: Ints) -> list[Ints]:
        """Split graphs into lists of about BLOCK nodes each."""
        if not len(which):
            return []
        sizes = np.diff(self.node_ptr)[which]
        block = (np.cumsum(sizes) - sizes) // BLOCK
        return np.split(which, np.flatnonzero(np.diff(block)) + 1)


def link_nodes(n: int, tails: Ints, heads: Ints) -> tuple[Ints, Ints]:
    """Return for every node its edges: pointers, then edge numbers.

    Examples
    --------
    >>> ptr, links = link_nodes(3, np.array([0, 1]), np.array([1, 2]))
    >>> ptr.tolist(), links.tolist()
    ([0, 1, 3, 4], [0, 0, 1, 1])
    """
    ends = np.column_stack([tails, heads]).ravel()
    links: Ints = np.argsort(ends, kind="stable") // 2
    return np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=n))]), links


def _shared(features: Array, k: int) -> tuple[Array, Ints]:
    """Return different rows of edge features and which one each edge has; or every row, where few are alike."""
    m = len(features)
    if m and np.all(features == features[0]):
        return features[:1].copy(), np.zeros(m, dtype=np.int64)
    few = features[
        : 4 * SHARED_ENTRIES // (k * k) + 1
    ]  # a look at some edges tells whether sharing is likely
    if m * k * k > SHARED_ENTRIES and len(np.unique(few, axis=0)) * k * k <= SHARED_ENTRIES:
        distinct, place = np.unique(features, axis=0, return_inverse=True)
        if len(distinct) * k * k <= SHARED_ENTRIES:
            return distinct, place.ravel().astype(np.int64)
    return np.ascontiguousarray(features), np.arange(m, dtype=np.int64)
