"""Flat factor graphs as kernels take them, each in one tuple.

`Graph` holds the arrays of `inference.flat_graphs.flat_graph.FlatGraph`, `ListedGraph` those of
`inference.message_passing.message_graph.MessageGraph`.
"""

from typing import NamedTuple

from markovia.runtime.array_types import Array, Ints


class Graph(NamedTuple):
    """Names as in `FlatGraph`; `unary` and `values` hold weights or their logs, whichever a kernel asks for."""

    cards: Ints
    starts: Ints
    unary: Array
    scope_ptr: Ints
    scope: Ints
    strides: Ints
    table_ptr: Ints
    values: Array
    edge_ptr: Ints
    edges: Ints
    edge_factor: Ints


class ListedGraph(NamedTuple):
    """A graph with factors given by their entries after its tables, and where the message of each edge begins."""

    cards: Ints
    starts: Ints
    unary: Array
    scope_ptr: Ints
    scope: Ints
    strides: Ints
    table_ptr: Ints
    values: Array
    edge_ptr: Ints
    edges: Ints
    edge_factor: Ints
    at: Ints
    entry_ptr: Ints
    code_ptr: Ints
    codes: Ints
    logs: Array
