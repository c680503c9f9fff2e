"""The tables of a model one after the other, so that a question only cuts its evidence out of them.

Method: the first question copies all tables into one array and numbers the variables; the model remembers that. Every
question then takes its observed states out, drops conditionals that cannot matter, and multiplies tables inside others
into those. Cost: one pass over the entries. Models with noisy-ors, gates or factors given by entries take another way.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from math import prod
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from markovia.factors.tables.conditional import ConditionalTable
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.inference.problem import Piece, Problem
from markovia.kernels.flat_graph import Graph
from markovia.runtime.array_types import Array, Ints

if TYPE_CHECKING:
    from collections.abc import Mapping

REMEMBERED = "whole tables"
LARGE = 2**22
"""Entries from which on the copy is not kept for a model without evidence."""
LARGEST = 2**27
"""Entries from which on no copy is kept."""
_scope, _values, _name = attrgetter("variables"), attrgetter("values"), attrgetter("name")
_NO_INTS: Ints = np.zeros(0, dtype=np.int64)
Cut = tuple[tuple[Variable, ...], Graph, float]
"""What evidence leaves of the tables: the free variables, their arrays, and the log of what was divided out."""


@dataclass(frozen=True)
class WholeTables:
    """All tables of a model; names as in `FlatGraph`.

    Attributes
    ----------
    pieces
        What the tables were made from.
    variables, number
        The variables in model order, and their numbers by name.
    begins
        Where each table begins in `values`.
    child
        For each table the variable that it sums to one over, or -1.
    mentioned
        One for each variable that is in a table, otherwise zero.
    """

    pieces: list[Piece]
    variables: tuple[Variable, ...]
    number: dict[str, int]
    cards: Ints
    scope_ptr: Ints
    scope: Ints
    begins: Ints
    values: Array
    child: Ints
    mentioned: NDArray[np.int8]

    @cached_property
    def edge_table(self) -> Ints:
        """The table of each place in `scope`."""
        return np.repeat(np.arange(len(self.begins)), np.diff(self.scope_ptr))

    @cached_property
    def strides(self) -> Ints:
        """The stride of each place in `scope` in its table."""
        return strides_of(self.scope_ptr, np.diff(self.scope_ptr), self.cards[self.scope])

    @cached_property
    def owner(self) -> dict[int, int]:
        """The first table that sums to one over each variable."""
        some = np.flatnonzero(self.child >= 0)[::-1].tolist()
        return {int(self.child[f]): f for f in some}

    @cached_property
    def alone(self) -> NDArray[np.bool_]:
        """The tables that are not in `owner`."""
        found = np.ones(len(self.begins), dtype=np.bool_)
        found[list(self.owner.values())] = False
        return found

    @cached_property
    def scopes(self) -> list[list[int]]:
        """The variables of each table."""
        flat, ptr = self.scope.tolist(), self.scope_ptr.tolist()
        return [flat[a:b] for a, b in pairwise(ptr)]


def same_pieces(some: Sequence[Piece], others: Sequence[Piece]) -> bool:
    """Say whether two lists hold the same objects."""
    return len(some) == len(others) and list(map(id, some)) == list(map(id, others))


def whole_tables(problem: Problem) -> WholeTables | None:
    """Return the tables of a problem as one array; None where they are not all plain tables, or too large."""
    memory = problem.memory
    kept: WholeTables | None = None if memory is None else memory.get(REMEMBERED)
    if kept is not None and same_pieces(kept.pieces, problem.pieces):
        return kept
    pieces = list(problem.pieces)
    kinds = set(map(type, pieces))
    if not kinds <= {Factor, ConditionalTable}:
        return None
    tables = list(map(_values, pieces))
    if sum([t.size for t in tables]) > LARGEST:
        return None
    made = _joined(problem.variables, pieces, tables, directed=ConditionalTable in kinds)
    if memory is not None and (problem.findings or len(made.values) <= LARGE):
        memory[REMEMBERED] = made
    return made


def _joined(
    variables: "Mapping[str, Variable]", pieces: list[Piece], tables: list[Array], *, directed: bool
) -> WholeTables:
    if directed:
        scopes = [p.variables if isinstance(p, Factor) else (*p.parents, p.variable) for p in pieces]
        number = {n: i for i, n in enumerate(variables)}
        child = [-1 if isinstance(p, Factor) else number[p.variable.name] for p in pieces]
    else:
        scopes = list(map(_scope, pieces))
        number = dict(zip(variables, range(len(variables)), strict=True))
        child = [-1] * len(pieces)
    scope_ptr = np.zeros(len(pieces) + 1, dtype=np.int64)
    np.cumsum(list(map(len, scopes)), out=scope_ptr[1:])
    names = map(_name, chain.from_iterable(scopes))
    scope = np.fromiter(map(number.__getitem__, names), dtype=np.int64, count=int(scope_ptr[-1]))
    mentioned = np.zeros(len(number), dtype=np.int8)
    mentioned[scope] = 1
    begins, values = _one_after_the_other(tables)
    return WholeTables(
        pieces=pieces,
        variables=tuple(variables.values()),
        number=number,
        cards=np.array([len(v.states) for v in variables.values()], dtype=np.int64),
        scope_ptr=scope_ptr,
        scope=scope,
        begins=begins,
        values=values,
        child=np.array(child, dtype=np.int64),
        mentioned=mentioned,
    )


def _one_after_the_other(tables: list[Array]) -> tuple[Ints, Array]:
    """Return where each table begins, and all entries; tables of one shape lie together, which is faster to copy."""
    shapes = [t.shape for t in tables]
    begins = np.zeros(len(tables), dtype=np.int64)
    parts: list[Array] = []
    at = 0
    different = set(shapes)
    if len(tables) < 4 * len(different):
        sizes = np.array([t.size for t in tables], dtype=np.int64)
        parts = [t.reshape(-1) for t in tables]
        begins = np.cumsum(sizes) - sizes
    else:
        kinds = {s: k for k, s in enumerate(different)}
        kind = np.array(list(map(kinds.__getitem__, shapes)), dtype=np.int64)
        for shape, k in kinds.items():
            chosen = np.flatnonzero(kind == k)
            size = prod(shape)
            picked = map(tables.__getitem__, chosen.tolist())
            parts.append(
                np.concatenate([t.reshape(1) for t in picked] if not shape else list(picked)).reshape(-1)
            )
            begins[chosen] = at + size * np.arange(len(chosen))
            at += size * len(chosen)
    values = np.concatenate(parts) if parts else np.zeros(0)
    return begins, np.ascontiguousarray(values, dtype=np.float64)


def cut_tables(problem: Problem, targets: Iterable[str] | None, *, absorb: bool) -> Cut | None:
    """Return what the evidence leaves of the tables; None where `whole_tables` is."""
    whole = whole_tables(problem)
    if whole is None:
        return None
    number, variables = whole.number, whole.variables
    code = np.full(len(variables), -1, dtype=np.int64)
    needed = np.zeros(len(variables), dtype=np.bool_)
    soft: list[tuple[int, Array]] = []
    for name, finding in problem.findings.items():
        i = number[name]
        needed[i] = True
        if finding.code is None:
            soft.append((i, finding.weights()))
        else:
            code[i] = finding.code
    free = code < 0
    kept = None
    if targets is not None:
        needed[[number[t] for t in targets]] = True
        kept = _relevant(whole, needed)
        if kept is not None:
            seen = needed | (whole.mentioned == 0)
            seen[whole.scope[kept[whole.edge_table]]] = True
            free &= seen
    chosen = np.flatnonzero(free)
    place = np.cumsum(free) - 1
    cards = whole.cards[chosen]
    starts = pointers(cards)
    logs = np.zeros(int(starts[-1]))
    with np.errstate(divide="ignore"):
        for i, weights in soft:
            begin = starts[place[i]]
            logs[begin : begin + len(weights)] += np.log(weights)
        members, arity, tables, log_scale = _left(whole, code, kept, place, starts, logs)
    return finished(
        tuple([variables[i] for i in chosen.tolist()]),
        cards, starts, logs, pointers(arity), members, pointers(tables[0]), tables[1], log_scale, absorb=absorb,
    )  # fmt: skip


def _relevant(whole: WholeTables, needed: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Mark all tables but the conditionals of variables that nothing needed descends from; None for all tables."""
    if not whole.owner:
        return None
    seen = needed.copy()
    seen[whole.scope[whole.alone[whole.edge_table]]] = True
    waiting = np.flatnonzero(seen).tolist()
    reached = set(waiting)
    owner, scopes = whole.owner, whole.scopes
    kept = whole.alone.copy()
    while waiting:
        f = owner.get(waiting.pop())
        if f is not None:
            kept[f] = True
            for v in scopes[f]:
                if v not in reached:
                    reached.add(v)
                    waiting.append(v)
    return None if kept.all() else kept


def _left(
    whole: WholeTables, code: Ints, kept: NDArray[np.bool_] | None, place: Ints, starts: Ints, logs: Array
) -> tuple[Ints, Ints, tuple[Ints, Array], float]:
    """Take the observed states out of the kept tables: scopes and arities, sizes and entries, and the log of numbers.

    Tables over one variable are added to `logs`.
    """
    scope, home, strides, begins = whole.scope, whole.edge_table, whole.strides, whole.begins
    free = code[scope] < 0
    arity = np.diff(whole.scope_ptr)
    touched = not free.all()
    if touched:
        closed = ~free
        shift = np.bincount(home[closed], strides[closed] * code[scope[closed]], len(begins))
        begins = begins + shift.astype(np.int64)
        arity = np.bincount(home[free], minlength=len(begins))
    if kept is not None:
        free &= kept[home]
        arity = np.where(kept, arity, -1)
    log_scale = float(np.log(whole.values[begins[arity == 0]]).sum())
    single = np.flatnonzero(free & (arity[home] == 1))
    if len(single):
        count = whole.cards[scope[single]]
        within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        entries = np.repeat(begins[home[single]], count) + np.repeat(strides[single], count) * within
        at = np.repeat(starts[place[scope[single]]], count) + within
        logs += np.bincount(at, np.log(whole.values[entries]), len(logs))
    wide = arity > 1
    edges = np.flatnonzero(free & wide[home])
    now = arity[wide]
    ptr = pointers(now)
    states = whole.cards[scope[edges]]
    step = strides_of(ptr, now, states)
    sizes = step[ptr[:-1]] * states[ptr[:-1]]
    begins = begins[wide]
    table_ptr = pointers(sizes)
    many = np.flatnonzero(now < np.diff(whole.scope_ptr)[wide]) if touched else _NO_INTS
    if len(sizes) and table_ptr[-1] > LARGE:
        parts = []
        cut = set(many.tolist())
        for f in range(len(sizes)):
            if f in cut:
                own = slice(ptr[f], ptr[f + 1])
                lengths = [8 * k for k in strides[edges[own]].tolist()]
                parts.append(as_strided(whole.values[begins[f] :], tuple(states[own]), lengths).reshape(-1))
            else:
                parts.append(whole.values[begins[f] : begins[f] + sizes[f]])
        return place[scope[edges]], now, (sizes, np.concatenate(parts)), log_scale
    entries = np.arange(int(table_ptr[-1])) + np.repeat(begins - table_ptr[:-1], sizes)
    if len(many):
        count = sizes[many]
        at = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        target = np.repeat(table_ptr[many], count) + at
        found = np.repeat(begins[many], count)
        for k in range(int(now[many].max())):
            here = np.minimum(ptr[many] + k, ptr[many + 1] - 1)
            old = np.where(now[many] > k, strides[edges[here]], 0)
            digit = at // np.repeat(step[here], count) % np.repeat(states[here], count)
            found += np.repeat(old, count) * digit
        entries[target] = found
    return place[scope[edges]], now, (sizes, whole.values[entries]), log_scale


def pointers(counts: Ints | Sequence[int]) -> Ints:
    """Return where each of so many things begins, and where the last ends."""
    found = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=found[1:])
    return found


def strides_of(scope_ptr: Ints, arity: Ints, states: Ints) -> Ints:
    """Return the stride of each variable in its table, from its number of states."""
    strides = np.ones(len(states), dtype=np.int64)
    for k in range(
        int(arity.max(initial=0)) - 1, 0, -1
    ):  # the stride left of place k, for every table that has one
        here = scope_ptr[:-1][arity > k] + k
        strides[here - 1] = strides[here] * states[here]
    return strides


def finished(
    variables: tuple[Variable, ...],
    cards: Ints,
    starts: Ints,
    logs: Array,
    scope_ptr: Ints,
    scope: Ints,
    table_ptr: Ints,
    values: Array,
    log_scale: float,
    *,
    absorb: bool,
) -> Cut:
    """Divide the tables and the logs of variables by their largest entries, and index the edges; the tables may be changed.

    `absorb` first multiplies every table whose variables all occur in another one into that one.
    """
    if absorb and not _all_apart(scope_ptr, scope, len(cards)):
        from markovia.kernels.flat_graphs.table_absorbing import absorb_tables

        gone = np.zeros(len(table_ptr) - 1, dtype=np.bool_)
        room = np.full((4, len(cards)), -1, dtype=np.int64)
        links = np.full((2, len(scope)), -1, dtype=np.int64)
        arity, sizes = np.diff(scope_ptr), np.diff(table_ptr)
        digits = np.zeros((2, int(arity.max(initial=1))), dtype=np.int64)
        if absorb_tables(cards, scope_ptr, scope, table_ptr, values, gone, room, links, digits):
            scope, values = scope[~np.repeat(gone, arity)], values[~np.repeat(gone, sizes)]
            scope_ptr, table_ptr = pointers(arity[~gone]), pointers(sizes[~gone])
    arity = np.diff(scope_ptr)
    with np.errstate(divide="ignore"):
        if len(cards):
            top = np.maximum.reduceat(logs, starts[:-1])
            log_scale += float(top.sum())
            logs = np.exp(logs - np.repeat(np.where(top > -np.inf, top, 0.0), cards))
        if len(arity):
            top = np.maximum.reduceat(values, table_ptr[:-1])
            log_scale += float(np.log(top).sum())
            values = values / np.repeat(np.where(top > 0, top, 1.0), np.diff(table_ptr))
    narrow = scope.astype(np.uint16) if len(cards) < 2**16 else scope  # sorted by digits, which is faster
    edges = np.argsort(narrow, kind="stable")
    edge_factor = np.repeat(np.arange(len(arity)), arity)
    strides = strides_of(scope_ptr, arity, cards[scope])
    edge_ptr = pointers(np.bincount(scope, minlength=len(cards)))
    arrays = Graph(
        cards, starts, logs, scope_ptr, scope, strides, table_ptr, values, edge_ptr, edges, edge_factor
    )
    return variables, arrays, log_scale


def _all_apart(scope_ptr: Ints, scope: Ints, n: int) -> bool:
    """Say whether all tables are over two variables, no two of them over the same ones."""
    if len(scope) != 2 * (len(scope_ptr) - 1) or np.any(np.diff(scope_ptr) != 2):
        return False
    pairs = scope.reshape(-1, 2)
    keys = np.sort(pairs.min(axis=1) * n + pairs.max(axis=1))
    return not np.any(keys[1:] == keys[:-1])
