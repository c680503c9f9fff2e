"""A flat graph by links, as kernels on a GPU read it: what a variable needs to know of its tables lies in one place.

A *link* is one variable's place in one factor. Its table is turned so that the variable's own states come last, and
every axis is filled up to the same number of states with weight zero: the place of a row is then the number that the
states of the factor's other variables spell, and no strides or numbers of states have to be read. Equal tables are
stored once, so a homogeneous grid reads a handful of numbers that stay in the cache.
Cost: one pass over the tables and a sort of one number a table; memory `arity * states ** arity` a different table.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.runtime.array_types import Array, Ints

MOST_STATES = 64
"""States of a variable up to which links are made; a kernel holds a number for each in a thread."""
MOST = 2**31
"""Links, and entries of tables, have to be fewer: places are 32 bits long."""
SEEN, MANY = 4096, 2048
"""So many tables are looked at; where that many of them differ, equal ones are not searched for."""


class PaddedLinks(NamedTuple):
    """A graph of n variables by links; variables may have new numbers (`order[k]` is the old one of k).

    | field | shape | holds |
    |---|---|---|
    | states | | the most states of a variable |
    | order | (n,) | the old number of each variable |
    | ptr | (n + 1,) | where the links of each variable begin |
    | edge | (links,) | the place in `graph.scope` that each link is |
    | other, other_ptr | (.,), (links + 1,) or none | the other variables of a link; no pointers where there is one each |
    | base | (links,) | where the link's table begins in `tables` |
    | tables | (.,) | weights, the states of the variable itself last |
    | unary | (n, states) | weights of single states |
    """

    states: int
    order: Ints
    ptr: NDArray[np.int32]
    edge: Ints
    other: NDArray[np.int32]
    other_ptr: NDArray[np.int32] | None
    base: NDArray[np.int32]
    tables: Array
    unary: Array


def why_no_links(graph: FlatGraph) -> str:
    """Say why a graph has no `padded_links`; nothing where it has."""
    states, arity = int(graph.cards.max(initial=1)), int(graph.arity.max(initial=1))
    if states > MOST_STATES:
        return f"a variable has more than {MOST_STATES} states"
    # at worst all tables differ, and each is stored once for every variable in it
    most = float((graph.arity * float(states) ** graph.arity).sum()) if arity > 2 else 0.0
    if len(graph.scope) >= MOST or max(most, len(graph.scope) * float(states) ** 2) >= MOST:
        return "the tables are too large"
    return ""


def padded_links(graph: FlatGraph, order: Ints | None = None) -> PaddedLinks:
    """Return a graph by links, its variables in a new order where one is given.

    Examples
    --------
    >>> from markovia.factors.tables.factor import Factor
    >>> from markovia.factors.tables.variable import Variable
    >>> from markovia.inference.flat_graphs.flat_graph import from_factors
    >>> x, y = Variable("x", ("a", "b")), Variable("y", ("a", "b", "c"))
    >>> links = padded_links(from_factors([x, y], [Factor.of((x, y), np.array([[1, 2, 3], [4, 5, 6]]))]))
    >>> (6 * links.tables.reshape(2, 3, 3)[1]).round().astype(int).tolist()  # of y, given x
    [[1, 2, 3], [4, 5, 6], [0, 0, 0]]
    """
    n, states = len(graph.cards), int(graph.cards.max(initial=1))
    order = np.arange(n) if order is None else order
    number = np.empty(n, dtype=np.int32)
    number[order] = np.arange(n, dtype=np.int32)
    degree = np.diff(graph.edge_ptr)[order]
    ptr = np.zeros(n + 1, dtype=np.int64)
    degree.cumsum(out=ptr[1:])
    edge = graph.edges[np.repeat(graph.edge_ptr[:-1][order] - ptr[:-1], degree) + np.arange(ptr[-1])]
    if len(graph.scope) and (graph.arity == 2).all():
        other, other_ptr = number[graph.scope[edge ^ 1]], None
    else:
        other, other_ptr = _others(graph, edge, number)
    base, tables = _turned_tables(graph, states)
    unary = np.zeros((n, states))
    unary[np.arange(states) < graph.cards[:, None]] = graph.unary
    return PaddedLinks(
        states, order, ptr.astype(np.int32), edge, other, other_ptr, base[edge], tables, unary[order]
    )


def _others(
    graph: FlatGraph, edge: Ints, number: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the other variables of every link, in the order of the factor's axes, and where they begin."""
    factor = graph.edge_factor[edge]
    count = graph.arity[factor] - 1
    ptr = np.zeros(len(edge) + 1, dtype=np.int64)
    count.cumsum(out=ptr[1:])
    place = np.repeat(graph.scope_ptr[factor] - ptr[:-1], count) + np.arange(ptr[-1])
    place += place >= np.repeat(edge, count)
    return number[graph.scope[place]], ptr.astype(np.int32)


def _turned_tables(graph: FlatGraph, states: int) -> tuple[NDArray[np.int32], Array]:
    """Return for each place in `scope` where its turned table begins, and all different ones."""
    base = np.zeros(len(graph.scope), dtype=np.int32)
    parts, at = [np.zeros(0)], 0
    for shape, factors in _by_shape(graph):
        size = int(np.prod(shape))
        if len(factors) == graph.n_factors:
            rows = graph.values.reshape(-1, size)
        else:
            rows = graph.values[graph.table_ptr[factors][:, None] + np.arange(size)]
        kept, which = _different(rows)
        wide = np.zeros((len(kept), *[states] * len(shape)))
        wide[(slice(None), *map(slice, shape))] = kept.reshape(-1, *shape)
        for axis in range(len(shape)):
            parts.append(np.moveaxis(wide, axis + 1, -1).reshape(-1))
            base[graph.scope_ptr[factors] + axis] = at + which * states ** len(shape)
            at += wide.size
    return base, np.concatenate(parts)


def _by_shape(graph: FlatGraph) -> list[tuple[tuple[int, ...], Ints]]:
    """Return the factors grouped by the shapes of their tables."""
    found: list[tuple[tuple[int, ...], Ints]] = []
    arity, cards = int(graph.arity.max(initial=0)), int(graph.cards.max(initial=1))
    if graph.n_factors and (graph.arity == arity).all() and (graph.cards == cards).all():
        return [((cards,) * arity, np.arange(graph.n_factors))]
    for arity in np.unique(graph.arity).tolist():
        factors = np.flatnonzero(graph.arity == arity)
        shapes = graph.cards[graph.scope[graph.scope_ptr[factors][:, None] + np.arange(arity)]]
        if (shapes == shapes[0]).all():
            found.append((tuple(shapes[0].tolist()), factors))
            continue
        kinds, which = np.unique(shapes, axis=0, return_inverse=True)
        found += [(tuple(s.tolist()), factors[which.ravel() == k]) for k, s in enumerate(kinds)]
    return found


def _different(rows: Array) -> tuple[Array, Ints]:
    """Return the different ones among the rows, and which of them each row is; all of them where many differ."""
    if (rows == rows[0]).all():
        return rows[:1], np.zeros(len(rows), dtype=np.int64)
    # equal rows have equal products with any numbers; the sample spares the sort where it would find nothing
    marks = rows @ np.random.default_rng(0).random(rows.shape[1])
    sample = marks[:: max(1, len(marks) // SEEN)]
    if len(sample) < SEEN or len(np.unique(sample)) < MANY:
        _, first, which = np.unique(marks, return_index=True, return_inverse=True)
        if np.array_equal(rows[first][which.ravel()], rows):
            return rows[first], which.ravel()
    return rows, np.arange(len(rows))
