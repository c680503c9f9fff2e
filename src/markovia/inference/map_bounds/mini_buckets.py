"""Mini-buckets: how much the rest of a configuration can add at most, for every beginning of it.

Method: variables are eliminated in turn. All tables that mention a variable would be added up and maximised over it; where
that table is too large they are split into groups, each maximised by itself, which gives a bound. Before that the groups
of a split are made to agree on how good each state of the variable is, which tightens it (*moment matching*), and
pairwise models begin with sweeps of `trw-s`, which move log potentials to where they are compared. A search that gives
states to the variables in the opposite order reads the bounds off the tables that were made.
References: Dechter and Rish (2003), "Mini-buckets"; Kask and Dechter (2001) for the search; Ihler et al. (2012) for
matching.
Cost: for each variable as many entries as a table may have, times the groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from markovia.inference.exact.tree_plan import TreeStructure, plan_for
from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.inference.flat_graphs.flat_tables import pointers, strides_of
from markovia.inference.map_bounds.trw_s import PairSweeps, pair_places
from markovia.kernels.maximising.search_records import PrefixTables
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.clock import now

ROOM = 2**24
"""Entries of all tables together, about."""
SWEEPS = 50
"""Sweeps of `trw-s` before a pairwise model is split."""

LogTable = tuple[tuple[int, ...], Array]
"""Depths in order, and logs with an axis for each."""


@dataclass(frozen=True)
class MiniBuckets:
    """The tables of a search by prefixes.

    Attributes
    ----------
    order
        The variable at each depth.
    tables
        What prefixes are scored by.
    bound
        The score of the empty prefix: no configuration has a larger log weight.
    split
        How many variables had their tables split; with none the scores of prefixes are exact.
    """

    order: Ints
    tables: PrefixTables
    bound: float
    split: int

    @property
    def slots(self) -> int:
        """The most variables that are remembered at a time."""
        return int(self.tables.slot.max(initial=0)) + 1


def search_order(graph: FlatGraph) -> Ints:
    """Return the variables in the opposite of a good order to eliminate them."""
    scopes = [[v] for v in range(len(graph.cards))]
    scopes += [graph.members(f).tolist() for f in range(graph.n_factors)]
    plan = plan_for(TreeStructure(graph.cards.tolist(), scopes), effort=0.1)
    return np.asarray(plan.order, dtype=np.int64)[::-1].copy()


def mini_buckets(graph: FlatGraph, order: Ints, most: int, deadline: float = np.inf) -> MiniBuckets:
    """Return the tables of a search in an order, of at most so many entries; with none the search looks at the past only."""
    depth = np.empty_like(order)
    depth[order] = np.arange(len(order))
    cards = graph.cards[order]
    tables, constant = _log_tables(graph, depth, sweeps=bool(most), deadline=deadline)
    joining: list[list[int]] = [[] for _ in order]
    leaving: list[list[int]] = [[] for _ in order]
    for number, (scope, _) in enumerate(tables):
        joining[scope[-1]].append(number)
    split, most = 0, min(most, max(ROOM // max(len(order), 1), 1))
    for d in range(len(order) - 1, -1, -1) if most else ():
        groups = _groups([tables[i] for i in joining[d]], cards, most if now() <= deadline else 1)
        split += len(groups) > 1
        for scope, logs in _matched(groups):
            message = np.asarray(logs.max(axis=-1))
            leaving[d].append(len(tables))
            if len(scope) == 1:  # a number: part of the score of the empty prefix
                constant += float(message)
            else:
                joining[scope[-2]].append(len(tables))
            tables.append((scope[:-1], message))
    return MiniBuckets(order, _flat(cards, tables, joining, leaving), constant, split)


def _log_tables(graph: FlatGraph, depth: Ints, sweeps: bool, deadline: float) -> tuple[list[LogTable], float]:
    """Return the log tables by depth, and what is to be added to all; those of one state lose their axes."""
    unary, values, constant = graph.log_unary, graph.log_values, graph.log_scale
    if sweeps and graph.n_factors and np.all(graph.arity == 2):
        pairs = PairSweeps(graph)
        for _ in range(SWEEPS):
            before = pairs.bound
            if not pairs.there_and_back(deadline) or before - pairs.bound <= 1e-6 * max(1.0, abs(before)):
                break
        if pairs.bound > -np.inf and pairs.there_and_back():
            unary, moved = pairs.reparametrised()
            constant += float(pairs.peaks.sum())
            rows, columns = pair_places(graph)
            with np.errstate(invalid="ignore"):
                values = values + moved[rows] + moved[columns]
    found: list[LogTable] = [
        ((d,), own) for d, own in zip(depth.tolist(), np.split(unary, graph.starts[1:-1]), strict=True)
    ]
    for f in range(graph.n_factors):
        members = graph.members(f)
        logs = values[graph.table_ptr[f] : graph.table_ptr[f + 1]].reshape(graph.cards[members])
        logs = logs.transpose(np.argsort(depth[members]))
        scope = np.sort(depth[members[graph.cards[members] > 1]])
        if len(scope):
            found.append((tuple(scope.tolist()), logs.reshape([k for k in logs.shape if k > 1])))
        else:
            constant += float(logs.reshape(()))
    return found, constant


def _groups(tables: list[LogTable], cards: Ints, most: int) -> list[LogTable]:
    """Return sums of tables, each of at most so many entries where the tables allow it: the first group that has room."""
    groups: list[tuple[set[int], list[LogTable]]] = []
    for table in sorted(tables, key=lambda t: -t[1].size):
        for scope, inside in groups:
            wider = scope.union(table[0])
            if len(wider) == len(scope) or prod(cards[list(wider)].tolist()) <= most:
                scope |= wider
                inside.append(table)
                break
        else:
            groups.append((set(table[0]), [table]))
    found: list[LogTable] = []
    for members, inside in groups:
        joint = tuple(sorted(members))
        total = np.zeros(cards[list(joint)])
        for own, logs in inside:
            total += logs.reshape([int(cards[d]) if d in own else 1 for d in joint])
        found.append((joint, total))
    return found


def _matched(groups: list[LogTable]) -> list[LogTable]:
    """Return tables whose maxima by the last variable's state agree; their sum is the same."""
    if len(groups) == 1:
        return groups
    tops = np.stack([logs.reshape(-1, logs.shape[-1]).max(axis=0) for _, logs in groups])
    with np.errstate(invalid="ignore"):
        shifts = tops.mean(axis=0) - tops
    shifts[np.isnan(shifts)] = -np.inf  # a state that one group rules out
    return [(scope, logs + shift) for (scope, logs), shift in zip(groups, shifts, strict=True)]


def _flat(
    cards: Ints, tables: list[LogTable], joining: list[list[int]], leaving: list[list[int]]
) -> PrefixTables:
    """Return tables as arrays; each variable gets the first slot that is free from its depth to its last use."""
    n = len(cards)
    used = [max(scope, default=0) for scope, _ in tables]
    for d, listed in enumerate(leaving):
        for i in listed:
            used[i] = d
    last = list(range(n))
    for (scope, _), d in zip(tables, used, strict=True):
        for v in scope:
            last[v] = max(last[v], d)
    ending: list[list[int]] = [[] for _ in range(n)]
    for v, d in enumerate(last):
        ending[d].append(v)
    slot, free, live, held = [0] * n, list[int](), list[list[int]](), set[int]()
    for d in range(n):
        slot[d] = free.pop() if free else len(held)
        held.add(slot[d])
        gone = [slot[v] for v in ending[d]]
        free += gone
        held.difference_update(gone)
        live.append(sorted(held))
    scope_ptr, scopes = _listed([scope for scope, _ in tables])
    slots = np.array(slot, dtype=np.int64)
    strides = strides_of(scope_ptr, np.diff(scope_ptr), cards[scopes])
    return PrefixTables(
        cards.astype(np.int64), slots, *_listed(live), scope_ptr, slots[scopes], strides,
        pointers([logs.size for _, logs in tables])[:-1], np.concatenate([logs.ravel() for _, logs in tables]),
        *_listed(joining), *_listed(leaving),
    )  # fmt: skip


def _listed(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Return lists as one array, and where each begins in it."""
    return pointers([len(one) for one in lists]), np.array([i for one in lists for i in one], dtype=np.int64)
