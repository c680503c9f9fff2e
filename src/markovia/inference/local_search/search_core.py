"""The core of a search problem: variables that are cheap to maximise out are gone.

Method: as long as some variable and all its neighbours together have few configurations, the variable is replaced by the
maximum over its states, a table over its neighbours. The best configurations of what is left are those of the whole problem;
the states of the variables maximised out follow from it. A diagnosis network shrinks to a third, a grid to half.
Cost: some microseconds for each variable that goes.
"""

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np

from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.inference.local_search.search_space import SearchSpace
from markovia.runtime.array_types import Array, Ints

BITS = 6.0
"""Log2 of the entries of the largest table that is maximised."""


@dataclass(frozen=True)
class Core:
    """What is left of a search space, and the way back.

    Attributes
    ----------
    whole, space
        The space before and after.
    kept
        The numbers in `whole` of the variables of `space`.
    gone
        The variables maximised out, in order.
    """

    whole: SearchSpace
    space: SearchSpace
    kept: Ints
    gone: Ints

    def down(self, codes: Ints) -> Ints:
        """Return the part of a configuration that is in the core."""
        return np.ascontiguousarray(codes[self.kept])

    def lift(self, codes: Ints) -> Ints:
        """Return the best configuration of the whole space that agrees with one of the core."""
        from markovia.kernels.maximising.neighbourhoods import solve_region

        full = np.zeros(len(self.whole.graph.cards), dtype=np.int64)
        full[self.kept] = codes
        if len(self.gone):
            solve_region(self.whole.arrays, np.arange(4, dtype=np.uint64), full, self.gone, len(self.gone))
        return full


class _Table(NamedTuple):
    scope: tuple[int, ...]
    logs: Array


def core_of(space: SearchSpace, bits: float = BITS) -> Core:
    """Maximise out what is cheap, and return the rest.

    Parameters
    ----------
    space
        The problem.
    bits
        Log2 of the number of configurations that a variable and its neighbours may have.
    """
    graph = space.graph
    n = len(graph.cards)
    size = space.bits
    ptr, near = space.near
    around = [set(near[ptr[v] : ptr[v + 1]].tolist()) for v in range(n)]
    cost = [size[v] + sum([size[u] for u in around[v]]) for v in range(n)]
    tables: dict[int, _Table] = {}
    at: list[set[int]] = [set() for _ in range(n)]
    for f in range(graph.n_factors):
        scope = tuple(graph.members(f).tolist())
        logs = space.values[graph.table_ptr[f] : graph.table_ptr[f + 1]].reshape(graph.cards[list(scope)])
        tables[f] = _Table(scope, logs)
        for v in scope:
            at[v].add(f)
    unary = [space.unary[graph.starts[v] : graph.starts[v + 1]] for v in range(n)]
    heap = [(c, v) for v, c in enumerate(cost) if c <= bits]
    heapify(heap)
    gone: list[int] = []
    out = np.zeros(n, dtype=bool)
    while heap:
        c, v = heappop(heap)
        if out[v] or c != cost[v]:
            continue
        scope = (v, *sorted(around[v]))
        total = unary[v].reshape([-1] + [1] * (len(scope) - 1))
        for f in sorted(at[v]):
            total = total + _onto(tables[f], scope)
        message = np.broadcast_to(total, [int(graph.cards[u]) for u in scope]).max(axis=0)
        for f in list(at[v]):
            for u in tables.pop(f).scope:
                at[u].discard(f)
        out[v] = True
        gone.append(v)
        rest = scope[1:]
        if len(rest) == 1:
            unary[rest[0]] = unary[rest[0]] + message
        elif rest:
            _absorb(_Table(rest, message), len(tables) + graph.n_factors + v, tables, at)
        for u in rest:
            around[u] |= set(rest)
            around[u] -= {u, v}
            cost[u] = size[u] + sum([size[w] for w in around[u]])
            if cost[u] <= bits:
                heappush(heap, (cost[u], u))
    kept = np.flatnonzero(~out)
    return Core(space, _space(space, kept, unary, [*tables.values()]), kept, np.array(gone, dtype=np.int64))


def _absorb(new: _Table, key: int, tables: dict[int, _Table], at: list[set[int]]) -> None:
    """Add a table, together with those whose variables it holds."""
    inside = set(new.scope)
    logs = new.logs
    for f in sorted(set().union(*[at[u] for u in new.scope])):
        if inside.issuperset(tables[f].scope):
            logs = logs + _onto(tables[f], new.scope)
            for u in tables.pop(f).scope:
                at[u].discard(f)
    while key in tables:
        key += len(at)
    tables[key] = _Table(new.scope, logs)
    for u in new.scope:
        at[u].add(key)


def _onto(table: _Table, scope: tuple[int, ...]) -> Array:
    """Return a table with the axes of a wider scope, length one where it has none."""
    order = [table.scope.index(v) for v in scope if v in table.scope]
    moved = table.logs.transpose(order)
    lengths = iter(moved.shape)
    return moved.reshape([next(lengths) if v in table.scope else 1 for v in scope])


def _space(whole: SearchSpace, kept: Ints, unary: list[Array], tables: list[_Table]) -> SearchSpace:
    """Return the search space of what is left, the logs as they are."""
    number = np.full(len(whole.graph.cards), -1, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    cards = whole.graph.cards[kept]
    arity = np.array([len(t.scope) for t in tables], dtype=np.int64)
    scope = number[[v for t in tables for v in t.scope]] if tables else np.zeros(0, dtype=np.int64)
    strides = [s // t.logs.itemsize for t in tables for s in np.ascontiguousarray(t.logs).strides]
    edges = np.argsort(scope, kind="stable").astype(np.int64)
    flat_unary = np.concatenate([unary[v] for v in kept]) if len(kept) else np.zeros(0)
    values = np.concatenate([t.logs.ravel() for t in tables]) if tables else np.zeros(0)
    graph = FlatGraph(
        variables=tuple([whole.graph.variables[v] for v in kept]),
        cards=cards,
        starts=np.concatenate(([0], np.cumsum(cards))).astype(np.int64),
        unary=np.exp(flat_unary),
        scope_ptr=np.concatenate(([0], np.cumsum(arity))).astype(np.int64),
        scope=scope.astype(np.int64),
        strides=np.array(strides, dtype=np.int64),
        table_ptr=np.concatenate(([0], np.cumsum([t.logs.size for t in tables]))).astype(np.int64),
        values=np.exp(values),
        edge_ptr=np.searchsorted(scope[edges], np.arange(len(kept) + 1)).astype(np.int64),
        edges=edges,
        edge_factor=np.repeat(np.arange(len(tables), dtype=np.int64), arity),
        log_scale=0.0,
    )
    return SearchSpace(graph, flat_unary, values, whole.penalty)
