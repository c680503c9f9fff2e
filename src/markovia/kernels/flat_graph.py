"""A flat factor graph as kernels take it: the arrays of `inference.flat_graphs.flat_graph.FlatGraph` in one tuple."""

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
