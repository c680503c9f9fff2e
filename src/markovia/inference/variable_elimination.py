"""Variable elimination on a bucket tree.

Method: process variables in an elimination order; each takes the product of the tables that mention it (its
bucket), removes itself by sum or max, and passes the rest on. Keeping the buckets turns one sweep into a
tree: a sweep back gives every marginal, exact draws, or the most probable explanation.
References: Dechter (1999), "Bucket elimination"; Nilsson (1998) for the m best.
Cost: the sum over variables of the table sizes, exponential in the order's width, in time; the same in memory
when buckets are kept, the largest one otherwise. Every message is rescaled, and what leaves the range of doubles
all the same is computed again with logarithms, so nothing underflows.
Use it for single queries on models of moderate width: NumPy only, no compilation.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count, islice
from math import prod
from typing import ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument, TooLarge
from markovia.factors.conditional import draw_rows
from markovia.factors.factor import Array, Factor
from markovia.factors.variable import Variable
from markovia.graphs.elimination import Heuristic, check_heuristic, greedy_order
from markovia.inference.arithmetic import Arithmetic, Scoped, in_range
from markovia.inference.budget import default_budget, readable
from markovia.inference.problem import Part, Problem
from markovia.inference.result import Assignment, Tables


@dataclass(frozen=True)
class VariableElimination:
    """Exact inference by variable elimination.

    Parameters
    ----------
    order
        "min-fill", "min-degree", "min-weight" or "weighted-min-fill"; or the names of all variables to
        eliminate, in order (names that are observed or irrelevant are skipped).
    max_bytes
        The memory budget; 80% of the free memory by default. Larger problems raise `TooLarge` before
        anything is allocated.
    """

    order: Heuristic | Sequence[str] = "min-fill"
    max_bytes: int | None = None

    name: ClassVar[str] = "variable-elimination"
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.order, str):
            check_heuristic(self.order)
        elif not isinstance(self.order, Sequence):
            raise InvalidArgument(
                f"order= is a heuristic or the names to eliminate in order, not {self.order!r}"
            )
        if self.max_bytes is not None and not isinstance(self.max_bytes, int | float):
            raise InvalidArgument(f"max_bytes= is a number of bytes, not {self.max_bytes!r}")

    def joint(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table over all targets together."""
        net = _Net(problem.parts(targets))
        keep = [net.ids[t] for t in targets]
        plan = self._plan(net, last=[keep], keep=keep, stored=False)

        def work(arithmetic: Arithmetic) -> tuple[Array, float]:
            sweep = _sweep(net, plan, arithmetic, stored=False)
            table, log_scale = arithmetic.multiply(sweep.rest, keep, net.cards)
            plain, log_total = arithmetic.plain(table)
            return plain, sweep.log_scale + log_scale + log_total

        table, log_mass = in_range(work)
        answer = Factor.of(tuple(net.variables[i] for i in keep), table)
        return Tables([answer], float(log_mass), plan.details)

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table for each target, all from two sweeps."""
        net = _Net(problem.parts(targets))
        plan = self._plan(net)

        def work(arithmetic: Arithmetic) -> tuple[dict[int, Array], float]:
            sweep = _sweep(net, plan, arithmetic)
            possible = np.isfinite(sweep.log_scale)
            return _backward(sweep.buckets, arithmetic) if possible else {}, sweep.log_scale

        beliefs, log_mass = in_range(work)
        if not beliefs and np.isneginf(log_mass):
            return Tables([], -np.inf, plan.details)
        tables = [Factor.of((net.variables[i],), beliefs[i]) for i in (net.ids[t] for t in targets)]
        return Tables(tables, log_mass, plan.details)

    def log_mass(self, problem: Problem) -> float:
        """Return the log of the total weight that agrees with the findings."""
        net = _Net(problem.parts(()))
        plan = self._plan(net, stored=False)
        return in_range(lambda arithmetic: _sweep(net, plan, arithmetic, stored=False).log_scale)

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> list[Assignment]:
        """Return the m best assignments of the targets, other variables summed out.

        One sweep is enough for all of them: walking the buckets back, each choice has a known regret, the loss
        against the best completion, so a best-first search over deviations finds the next best directly.
        """
        net = _Net(problem.parts(targets))
        free = [net.ids[t] for t in targets]
        plan = self._plan(net, last=[free])
        maximised = set(free)

        def work(arithmetic: Arithmetic) -> tuple[list[_Bucket], float]:
            sweep = _sweep(net, plan, arithmetic, maximised)
            chosen = [b for b in reversed(sweep.buckets) if b.variable in maximised]
            return [_Bucket(b.variable, b.scope, arithmetic.logs(b.table)) for b in chosen], sweep.log_scale

        buckets, log_best = in_range(work)
        if not np.isfinite(log_best):
            return []
        return [
            Assignment({net.variables[i].name: c for i, c in codes.items()}, log_best - regret)
            for regret, codes in islice(_by_regret(buckets), m)
        ]

    def sample(self, problem: Problem, n: int, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
        """Draw n configurations of the free variables given the findings, as state codes."""
        net = _Net(problem.parts(None))
        plan = self._plan(net)

        def work(arithmetic: Arithmetic) -> list[_Bucket]:
            buckets = _sweep(net, plan, arithmetic).buckets
            return [_Bucket(b.variable, b.scope, arithmetic.weights(b.table)) for b in buckets]

        codes: dict[int, NDArray[np.int64]] = {}
        for bucket in reversed(in_range(work)):
            rows = bucket.table[tuple(codes[s] for s in bucket.scope)] if bucket.scope else bucket.table
            codes[bucket.variable] = draw_rows(rows, n, rng)
        return {net.variables[i].name: c for i, c in codes.items()}

    def conditionals(self, problem: Problem) -> list[tuple[Variable, tuple[Variable, ...], Array]]:
        """Write the distribution as a product of conditionals, one a free variable, parents eliminated later.

        A variable's bucket holds all it has to do with the variables that are eliminated after it; divided by its
        sum it is the conditional distribution given those. A row of mass zero is uniform.
        """
        net = _Net(problem.parts(None))
        plan = self._plan(net)

        def work(arithmetic: Arithmetic) -> list[_Bucket]:
            buckets = _sweep(net, plan, arithmetic).buckets
            return [_Bucket(b.variable, b.scope, arithmetic.weights(b.table)) for b in buckets]

        found = []
        for variable, scope, table in in_range(work):
            mass = table.sum(axis=-1, keepdims=True)
            uniform = np.full(table.shape, 1.0 / table.shape[-1])
            rows = np.divide(table, mass, out=uniform, where=mass > 0)
            found.append((net.variables[variable], tuple(net.variables[s] for s in scope), rows))
        return found

    def _plan(
        self,
        net: "_Net",
        last: Sequence[Sequence[int]] = (),
        keep: Sequence[int] = (),
        stored: bool = True,
    ) -> "_Plan":
        stages = [0] * len(net.variables)
        for stage, group in enumerate(last, start=1):
            for i in group:
                stages[i] = stage
        if isinstance(self.order, str):
            order = greedy_order(net.adjacency, cast(Heuristic, self.order), net.cards, stages)
        else:
            order = _user_order(self.order, net, stages)
        kept = set(keep)
        plan = _Plan.of([v for v in order if v not in kept], net, kept)
        entries = plan.total if stored else 2 * plan.largest
        entries = max(entries, prod(net.cards[i] for i in keep))
        budget = default_budget() if self.max_bytes is None else self.max_bytes
        if 8 * entries > budget or plan.width > 63:
            raise TooLarge(
                f"exact elimination needs tables of {entries:,.3g} entries ({readable(8.0 * entries)}), "
                f"width {plan.width}; the budget is {readable(budget)}. "
                "Add evidence, ask for fewer variables at once, or raise VariableElimination(max_bytes=...)"
            )
        return plan


class _Net:
    """The reduced problem on integer ids: cardinalities, scopes, who meets whom; tables only when asked for."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self.ids: dict[str, int] = {}
        self.variables: list[Variable] = []
        self.adjacency: list[set[int]] = []
        self._parts = parts
        self._tables: list[Scoped] | None = None
        for part in parts:
            scope = [self._id(v) for v in part.variables]
            for i in scope:
                self.adjacency[i].update(scope)
        for i, around in enumerate(self.adjacency):
            around.discard(i)
        self.cards = [len(v) for v in self.variables]

    def tables(self) -> list[Scoped]:
        """Build the tables, once; the plan has passed the budget by then."""
        if self._tables is None:
            factors = [part.build() for part in self._parts]
            self._tables = [(tuple(self.ids[v.name] for v in f.variables), f.values) for f in factors]
        return self._tables

    def _id(self, variable: Variable) -> int:
        i = self.ids.get(variable.name)
        if i is None:
            i = self.ids[variable.name] = len(self.variables)
            self.variables.append(variable)
            self.adjacency.append(set())
        return i


@dataclass(frozen=True)
class _Plan:
    """An elimination order and the sizes it leads to, known before any table is made."""

    order: list[int]
    width: int
    largest: float
    total: float

    @classmethod
    def of(cls, order: list[int], net: _Net, kept: set[int]) -> "_Plan":
        graph = [set(a) for a in net.adjacency]
        width, largest, total = 0, 1.0, 0.0
        for v in order:
            around = graph[v]
            size = float(net.cards[v])
            for u in around:
                size *= net.cards[u]
            width, largest, total = max(width, len(around)), max(largest, size), total + size
            for u in around:
                graph[u] |= around
                graph[u] -= {u, v}
        return cls(order, width, largest, total)

    @property
    def details(self) -> dict[str, float]:
        return {"width": self.width, "largest_table": int(self.largest)}


class _Bucket(NamedTuple):
    """A variable's bucket: the product table with axes `(*scope, variable)`."""

    variable: int
    scope: tuple[int, ...]
    table: Array


@dataclass(frozen=True)
class _Sweep:
    buckets: list[_Bucket]
    rest: list[Scoped]
    log_scale: float


def _sweep(
    net: _Net, plan: _Plan, arithmetic: Arithmetic, maximise: Iterable[int] = (), stored: bool = True
) -> _Sweep:
    """Eliminate in order; sum, or max for the named variables. `rest` holds tables over kept variables."""
    position = {v: k for k, v in enumerate(plan.order)}
    never = len(position)
    waiting: list[list[Scoped]] = [[] for _ in range(never + 1)]
    maximised = set(maximise)
    log_scale = 0.0
    for scope, values in net.tables():
        first = min((position.get(i, never) for i in scope), default=never)
        waiting[first].append((scope, arithmetic.of(values)))
    buckets: list[_Bucket] = []
    for k, v in enumerate(plan.order):
        here = waiting[k]
        waiting[k] = []
        inside = {i for scope, _ in here for i in scope} - {v}
        scope = tuple(sorted(inside, key=lambda i: (position.get(i, never), i)))
        table, log_top = arithmetic.multiply(here, [*scope, v], net.cards)
        if log_top == -np.inf:
            return _Sweep([], [], -np.inf)
        log_scale += log_top
        if stored:
            buckets.append(_Bucket(v, scope, table))
        message = np.asarray(table.max(axis=-1)) if v in maximised else arithmetic.sum_last(table)
        if scope:
            waiting[position.get(scope[0], never)].append((scope, message))
        else:
            log_scale += arithmetic.log(message)
    rest = []
    for scope, table in waiting[never]:
        if scope:
            rest.append((scope, table))
        else:
            log_scale += arithmetic.log(table)
    return _Sweep(buckets, rest, log_scale) if log_scale > -np.inf else _Sweep([], [], -np.inf)


def _backward(buckets: list[_Bucket], arithmetic: Arithmetic) -> dict[int, Array]:
    """Return every variable's normalised marginal by passing beliefs from the last bucket to the first."""
    where = {b.variable: k for k, b in enumerate(buckets)}
    beliefs: list[Array] = [b.table for b in buckets]
    marginal: dict[int, Array] = {}
    for k in range(len(buckets) - 1, -1, -1):
        v, scope, table = buckets[k]
        if scope:
            above = buckets[where[scope[0]]]
            axes = [*above.scope, above.variable]
            outside = tuple(j for j, a in enumerate(axes) if a not in scope)
            remaining = [a for a in axes if a in scope]
            incoming = arithmetic.sum_onto(beliefs[where[scope[0]]], outside)
            incoming = incoming.transpose([remaining.index(s) for s in scope])
            beliefs[k] = arithmetic.absorb(table, incoming, arithmetic.sum_last(table))
        marginal[v] = arithmetic.plain(arithmetic.sum_onto(beliefs[k], tuple(range(len(scope)))))[0]
    return marginal


def _by_regret(buckets: Sequence[_Bucket]) -> Iterator[tuple[float, dict[int, int]]]:
    """Yield all assignments of positive weight, best first, with their log loss against the best.

    Buckets come in the order of choice and hold logs. An assignment is reached from the one that agrees with it up to
    its last deviation from the greedy choice, so each is reached once.
    """
    serial = count()
    heap: list[tuple[float, int, list[int], int]] = [(0.0, next(serial), [], 0)]
    while heap:
        regret, _, prefix, start = heappop(heap)
        codes: dict[int, int] = {}
        for k, (variable, scope, logs) in enumerate(buckets):
            if k < len(prefix):
                codes[variable] = prefix[k]
                continue
            row = logs[tuple(codes[s] for s in scope)]
            codes[variable] = int(np.argmax(row))
        chosen = [codes[b.variable] for b in buckets]
        yield regret, codes
        for k in range(start, len(buckets)):
            variable, scope, logs = buckets[k]
            row = logs[tuple(codes[s] for s in scope)]
            top = float(row[chosen[k]])
            for state in range(len(row)):
                if state != chosen[k] and row[state] > -np.inf:
                    loss = regret + max(0.0, top - float(row[state]))
                    heappush(heap, (loss, next(serial), [*chosen[:k], state], k + 1))


def _user_order(names: Sequence[str], net: _Net, stages: Sequence[int]) -> list[int]:
    order = [net.ids[n] for n in names if n in net.ids]
    named = set(order)
    missing = [v.name for i, v in enumerate(net.variables) if i not in named and stages[i] == 0]
    if missing:
        raise InvalidArgument(f"the elimination order leaves out {', '.join(map(repr, missing[:5]))}")
    if len(named) != len(order):
        raise InvalidArgument("the elimination order names a variable twice")
    rest = [i for i in range(len(net.variables)) if i not in named]
    return sorted([*order, *rest], key=lambda i: stages[i])
