"""Bucket trees: what variable elimination computes, kept as a tree.

Method: variables are eliminated one after the other; each takes the product of the tables that mention it (its
bucket), removes itself by sum or max, and passes the rest on to the bucket of the variable that is eliminated next
among those it meets. That makes the buckets a forest. A sweep up gives the mass or the maximum; a sweep back gives
every marginal (or, where both sum and max occur, an upper bound for every state).
References: Dechter (1999), "Bucket elimination"; Nilsson (1998) for the m best; Lauritzen and Spiegelhalter (1988) for
the division in the sweep back.
Cost: the sum over variables of the table sizes, in time; in memory the tables that are kept, the messages that wait,
and twice the table in work. `BucketPlan` knows all of it before a table is made.
Parts that evidence or the graph separates from the rest end in a tree of their own: they meet only as numbers.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from itertools import count
from math import fsum, prod
from typing import Any, NamedTuple

import numpy as np

from markovia.factors.tables.variable import Variable
from markovia.inference.exact.arithmetic import Scoped, TableArithmetic
from markovia.inference.exact.plan_details import PlanDetails
from markovia.inference.problem import Part
from markovia.inference.result import Record
from markovia.runtime.array_types import Array


class Net:
    """A problem on integer ids: cardinalities, scopes, who meets whom; tables only when asked for."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.ids: dict[str, int] = {}
        self.variables: list[Variable] = []
        self.adjacency: list[set[int]] = []
        self.scopes: list[tuple[int, ...]] = []
        self._parts = parts
        self._tables: list[Scoped] | None = None
        ids, adjacency = self.ids, self.adjacency
        for part in parts:
            scope = []
            for variable in part.variables:
                i = ids.setdefault(variable.name, len(adjacency))
                if i == len(adjacency):
                    self.variables.append(variable)
                    adjacency.append(set())
                scope.append(i)
            for i in scope:
                adjacency[i].update(scope)
            self.scopes.append(tuple(scope))
        for i, around in enumerate(adjacency):
            around.discard(i)
        self.cards = [len(v) for v in self.variables]

    def tables(self) -> list[Scoped]:
        """Build the tables, once; the plan has passed the budget by then."""
        if self._tables is None:
            factors = [part.build() for part in self._parts]
            self._tables = [(tuple([self.ids[n] for n in f.names]), f.values) for f in factors]
        return self._tables


@dataclass(frozen=True)
class BucketPlan:
    """An elimination order and what it leads to, known before any table is made.

    Attributes
    ----------
    order
        The variables to eliminate, in order.
    scopes
        The other variables of each one's bucket, those that are eliminated first in front.
    cards
        The number of states of every variable.
    keep
        Variables that are not eliminated.
    """

    order: list[int]
    scopes: list[tuple[int, ...]]
    cards: Sequence[int]
    keep: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, eliminated: Sequence[tuple[int, set[int]]], cards: Sequence[int], keep: Sequence[int] = ()
    ) -> "BucketPlan":
        """Make a plan from an elimination order with the neighbours each variable meets."""
        kept = set(keep)
        steps = [step for step in eliminated if step[0] not in kept] if kept else eliminated
        order = [v for v, _ in steps]
        rank = [len(order) + i for i in range(len(cards))]
        for k, v in enumerate(order):
            rank[v] = k
        scopes = [tuple(sorted(around, key=rank.__getitem__)) for _, around in steps]
        return cls(order, scopes, cards, tuple(keep))

    @cached_property
    def position(self) -> dict[int, int]:
        """The place of each variable in the order."""
        return {v: k for k, v in enumerate(self.order)}

    @cached_property
    def sizes(self) -> list[float]:
        """The entries of each bucket's table."""
        cards = self.cards
        found = []
        for v, scope in zip(self.order, self.scopes, strict=True):
            size = float(cards[v])
            for u in scope:
                size *= cards[u]
            found.append(size)
        return found

    @property
    def width(self) -> int:
        """The largest number of variables that one meets when it is eliminated."""
        return max(map(len, self.scopes), default=0)

    @property
    def largest(self) -> float:
        """The entries of the largest table."""
        return max(self.sizes, default=1.0)

    @property
    def answer(self) -> float:
        """The entries of the table over the variables that are kept."""
        return prod([float(self.cards[i]) for i in self.keep])

    def need(self, stored: Collection[int] = ()) -> float:
        """Return the entries that are held at the worst moment when the tables of some buckets are kept.

        Counted are kept tables, messages that wait, and for the bucket in work its table and one more of that size;
        in the sweep back a belief takes the place of its table.
        """
        never = len(self.order)
        position = self.position
        arriving = [0.0] * (never + 1)
        held = peak = 0.0
        for k, (v, scope, size) in enumerate(zip(self.order, self.scopes, self.sizes, strict=True)):
            peak = max(peak, held + 2 * size)
            held -= arriving[k]
            if v in stored:
                held += size
            if scope:
                message = size / self.cards[v]
                held += message
                arriving[position.get(scope[0], never)] += message
        largest = max([s for v, s in zip(self.order, self.sizes, strict=True) if v in stored], default=0.0)
        return max(peak, held + 2 * max(largest, self.answer if self.keep else 0.0))

    def operations(self, scopes: Sequence[tuple[int, ...]]) -> float:
        """Return the multiplications and additions of one sweep over tables with these scopes."""
        never = len(self.order)
        tables = [0] * (never + 1)
        for scope in scopes:
            tables[min([self.position.get(i, never) for i in scope], default=never)] += 1
        total = 0.0
        for k, size in enumerate(self.sizes):
            total += size * max(1, tables[k])
            if self.scopes[k]:
                tables[self.position.get(self.scopes[k][0], never)] += 1
        return total + self.answer * tables[never]

    def above(self, targets: Collection[int]) -> set[int]:
        """Return the targets and all whose buckets a belief passes on its way back to them."""
        needed = set(targets)
        for v, scope in zip(self.order, self.scopes, strict=True):
            if v in needed and scope:
                needed.add(scope[0])
        return needed

    @property
    def record(self) -> Record:
        """What an answer tells about the plan."""
        return Record(details=PlanDetails(self.width, int(self.largest)))


class Bucket(NamedTuple):
    """A variable's bucket: the product table with axes `(variable, *scope)`."""

    variable: int
    scope: tuple[int, ...]
    table: Array


class Sweep(NamedTuple):
    """What a sweep up leaves: the buckets that were asked for, tables over kept variables, and the log scale."""

    buckets: list[Bucket]
    rest: list[Scoped]
    log_scale: float


NOTHING = Sweep([], [], -np.inf)


def sweep(
    tables: Sequence[Scoped],
    plan: BucketPlan,
    arithmetic: TableArithmetic,
    maximised: Collection[int] = (),
    stored: Collection[int] = (),
    cards: Sequence[int] | None = None,
) -> Sweep:
    """Eliminate in order, by sum or, for the named variables, by max.

    Parameters
    ----------
    tables
        Tables of plain numbers with their scopes.
    plan
        The order.
    arithmetic
        Plain numbers or logarithms.
    maximised
        Variables that are removed by max.
    stored
        Variables whose buckets are kept.
    cards
        The numbers of states where the tables are restricted to some of them; those of the plan otherwise.
    """
    cards = plan.cards if cards is None else cards
    position = plan.position
    never = len(plan.order)
    waiting: list[list[Scoped]] = [[] for _ in range(never + 1)]
    for scoped in tables:
        first = min([position.get(i, never) for i in scoped[0]], default=never)
        waiting[first].append((scoped[0], arithmetic.of(scoped[1])))
    scales: list[float] = []  # added up exactly in the end: there may be many large ones
    buckets: list[Bucket] = []
    for k, v in enumerate(plan.order):
        scope = plan.scopes[k]
        table, log_top = arithmetic.multiply(waiting[k], (v, *scope), cards)
        waiting[k] = []
        if log_top == -np.inf:
            return NOTHING
        scales.append(log_top)
        if v in stored:
            buckets.append(Bucket(v, scope, table))
        message = arithmetic.max_first(table) if v in maximised else arithmetic.sum_first(table)
        if scope:
            waiting[position.get(scope[0], never)].append((scope, message))
        else:
            scales.append(arithmetic.log(message))
        del table, message  # not held while the next table is made
    rest = []
    for scope, table in waiting[never]:
        if scope:
            rest.append((scope, table))
        else:
            scales.append(arithmetic.log(table))
    log_scale = fsum(scales)
    return Sweep(buckets, rest, log_scale) if log_scale > -np.inf else NOTHING


class Belief(NamedTuple):
    """A variable's own table after the sweep back, not normalised, and the log of the scale taken out of it."""

    table: Array
    log_scale: float


def beliefs(
    buckets: list[Bucket],
    log_scale: float,
    arithmetic: TableArithmetic,
    wanted: Collection[int],
    maximised: Collection[int] = (),
) -> dict[int, Belief]:
    """Pass beliefs from the last bucket to the first and return the wanted variables' own tables.

    Where all variables are summed these are the marginals; where all are maximised, the best weight for every state.
    Where both occur, a maximum may be taken before a sum, so each number is an upper bound of the best weight.

    Parameters
    ----------
    buckets
        The buckets of `wanted` and of all above them (`BucketPlan.above`), from a sweep up. The list is emptied on the way,
        so that a table goes when its belief is there.
    log_scale
        The log scale of that sweep.
    arithmetic, maximised
        As in the sweep up.
    wanted
        The variables whose tables are returned.
    """
    where = {b.variable: k for k, b in enumerate(buckets)}
    axes = [(b.variable, *b.scope) for b in buckets]
    children = [0] * len(buckets)
    for b in buckets:
        if b.scope:
            children[where[b.scope[0]]] += 1
    passed: dict[int, Belief] = {}
    found: dict[int, Belief] = {}
    for k in range(len(buckets) - 1, -1, -1):
        v, scope, table = buckets.pop()
        sent = np.asarray(table.max(axis=0)) if v in maximised else arithmetic.sum_first(table)
        if scope:
            up = where[scope[0]]
            above = passed[up]
            incoming = _onto(above.table, axes[up], scope, arithmetic, maximised)
            table, log_top = arithmetic.absorb(table, incoming, sent)
            belief = Belief(table, above.log_scale + log_top)
            children[up] -= 1
            if not children[up]:
                del passed[up]
            del above, incoming
        else:
            belief = Belief(table, log_scale - arithmetic.log(sent))
        if children[k]:
            passed[k] = belief
        if v in wanted:
            found[v] = Belief(_onto(table, axes[k], (v,), arithmetic, maximised), belief.log_scale)
        del table, belief
    return found


def by_regret(
    buckets: Sequence[Bucket], arithmetic: TableArithmetic
) -> Iterator[tuple[float, dict[int, int]]]:
    """Yield all assignments of positive weight, best first, with their log loss against the best.

    Buckets come in the order of choice. An assignment is reached from the one that agrees with it up to its last
    deviation from the greedy choice, so each is reached once.
    """
    serial = count()
    # an entry shares the list of choices that it deviates from: the first `start - 1` of them and its own state
    heap: list[tuple[float, int, list[int], int, int]] = [(0.0, next(serial), [], 0, 0)]
    while heap:
        regret, _, before, start, own = heappop(heap)
        codes: dict[int, int] = {}
        rows: list[Array] = []
        for k, (variable, scope, table) in enumerate(buckets):
            at: tuple[Any, ...] = (slice(None), *[codes[s] for s in scope])
            row = table[at]
            rows.append(row)
            codes[variable] = before[k] if k < start - 1 else own if k < start else int(row.argmax())
        chosen = [codes[b.variable] for b in buckets]
        yield regret, codes
        for k in range(start, len(buckets)):
            row = arithmetic.logs(rows[k])
            top = float(row[chosen[k]])
            for state in range(len(row)):
                if state != chosen[k] and row[state] > -np.inf:
                    loss = regret + max(0.0, top - float(row[state]))
                    heappush(heap, (loss, next(serial), chosen, k + 1, state))


def _onto(
    table: Array,
    axes: tuple[int, ...],
    kept: tuple[int, ...],
    arithmetic: TableArithmetic,
    maximised: Collection[int],
) -> Array:
    """Remove all axes but the kept ones: sums first, then maxima."""
    if len(axes) == len(kept):
        return table
    inside = set(kept)
    if not maximised:
        return arithmetic.sum_onto(table, _outside(axes, inside))
    table = arithmetic.sum_onto(table, _outside(axes, {*inside, *maximised}))
    left = [a for a in axes if a in inside or a in maximised]
    return table if len(left) == len(kept) else np.asarray(table.max(axis=_outside(left, inside)))


def _outside(axes: Sequence[int], inside: set[int]) -> tuple[int, ...]:
    return tuple([k for k, a in enumerate(axes) if a not in inside])
