"""What kernels of conditional random fields work on: many graphs of nodes with k labels each, one after the other.

The shape of each array stands beside it.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.runtime.array_types import Array, Ints


class PairwiseGraphs(NamedTuple):
    """Graphs, and breadth-first trees in them."""

    node_ptr: Ints  # (graphs + 1,): where the nodes of each graph begin
    tails: Ints  # (edges,)
    heads: Ints  # (edges,)
    row: Ints  # (edges,): which table an edge has, its first axis the tail
    ptr: Ints  # (nodes + 1,): where the edges of each node begin
    links: Ints  # (2 edges,)
    order: Ints  # (nodes,): from roots on
    parent: Ints  # (nodes,): or -1
    parent_edge: Ints  # (nodes,): or -1


class LogPotentials(NamedTuple):
    """Logarithms of potentials."""

    scores: Array  # (nodes, k)
    tables: Array  # (tables, k, k)


class FieldBeliefs(NamedTuple):
    """What was found of fields."""

    log_mass: Array  # (graphs,): log normalisers
    beliefs: Array  # (nodes, k): distributions of labels
    pairs: Array  # (tables, k, k): sums of edges' distributions
    error: Array  # (graphs,): the largest change in the last sweep


class LaneBlocks(NamedTuple):
    """Trees side by side in blocks: slot (t, z) of block b, step t of lane z, is `(start[b] + t) * lanes + z`."""

    start: Ints  # (blocks + 1,): the first step of each block
    graphs: Ints  # (blocks, lanes): the graph of each lane, or -1
    nodes: Ints  # (slots,): the node of each slot, or -1
    above: Ints  # (slots,): the step of its parent in the same lane, or -1 for a root
    code: Ints  # (slots,): the table of the edge to the parent, or -1
    alike: Ints  # (steps, 3): parent of all lanes, table of all but roots (-2 where they differ), whether all have nodes


class LaneWeights(NamedTuple):
    """Weights of node features, and exponentials of log tables less their largest entries, each before its transpose."""

    weights: Array  # (k, features)
    tables: Array  # (2 tables, k, k)
    tops: Array  # (2 tables,): the largest entries


class LaneSums(NamedTuple):
    """Sums over the nodes and edges of each block, and the log mass of each graph."""

    sums: Array  # (blocks, k, features)
    pairs: Array  # (blocks, 2 tables, k, k): still to be multiplied by the tables
    mass: Array  # (graphs,)


class FieldCliques(NamedTuple):
    """A clique tree, children before parents; every factor has a home clique."""

    parent: Ints  # (cliques,)
    table_ptr: Ints  # (cliques + 1,): where the entries of each clique begin
    sep_ptr: Ints  # (cliques + 1,): where those of its separator with the parent do
    up_map: NDArray[np.int32]  # (entries,): the entry of the separator that each one goes with
    down_ptr: Ints  # (cliques + 1,)
    down_map: NDArray[np.int32]  # the same for the parent's entries
    home: Ints  # (factors,)
    factor_ptr: Ints  # (factors + 1,): where the entries of each factor begin
    map_ptr: Ints  # (factors + 1,)
    factor_map: NDArray[np.int32]  # for the home's entries those of the factor


class LabelledTokens(NamedTuple):
    """Sequences of tokens with sparse features."""

    offsets: Ints  # (sequences + 1,)
    ptr: Ints  # (tokens + 1,): where the features of each token begin
    columns: Ints  # (entries,)
    values: Array  # (entries,), or none where all are 1
    codes: Ints  # (tokens,): labels; -1 for none


class ChainParameters(NamedTuple):
    """What a chain has for each parameter: weights, whether they may change, ..."""

    state: NDArray[Any]  # (features, k)
    pair: NDArray[Any]  # (k, k): of a label after a label
    base: NDArray[Any]  # (3, k): of labels anywhere, first and last
