"""Variable elimination on a bucket tree.

Method: process variables in an elimination order; each takes the product of the tables that mention it (its
bucket), removes itself by sum or max, and passes the rest on. Keeping the buckets turns one sweep into a
tree: a sweep back gives every marginal, exact draws, or the most probable explanation.
References: Dechter (1999), "Bucket elimination"; Lawler (1972) for the m best.
Cost: the sum over variables of the table sizes, exponential in the order's width, in time; the same in memory
when buckets are kept, the largest one otherwise. Every message is rescaled, so long products do not underflow.
Use it for single queries on models of moderate width: NumPy only, no compilation.
"""

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import prod
from typing import ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument, TooLarge
from markovia.factors.conditional import draw_rows
from markovia.factors.evidence import Finding
from markovia.factors.factor import Array, Factor
from markovia.factors.variable import Variable
from markovia.graphs.elimination import Heuristic, greedy_order
from markovia.inference.budget import default_budget, readable
from markovia.inference.problem import Problem
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

    def joint(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table over all targets together."""
        net = _Net(problem, problem.reduced(targets))
        keep = [net.ids[t] for t in targets]
        plan = self._plan(net, last=[keep], keep=keep, stored=False)
        sweep = _sweep(net, plan, stored=False)
        table, log_scale = _multiply(sweep.rest, keep, net.cards)
        log_mass = sweep.log_scale + log_scale
        total = float(table.sum())
        log_mass = log_mass + np.log(total) if total > 0 and np.isfinite(log_mass) else -np.inf
        answer = Factor.of(tuple(net.variables[i] for i in keep), table / total if total > 0 else table)
        return Tables([answer], float(log_mass), plan.details)

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table for each target, all from two sweeps."""
        net = _Net(problem, problem.reduced(targets))
        plan = self._plan(net)
        sweep = _sweep(net, plan)
        if not np.isfinite(sweep.log_scale):
            return Tables([], -np.inf, plan.details)
        beliefs = _backward(sweep.buckets)
        tables = []
        for t in targets:
            i = net.ids[t]
            values = beliefs[i]
            tables.append(Factor.of((net.variables[i],), values / values.sum()))
        return Tables(tables, sweep.log_scale, plan.details)

    def log_mass(self, problem: Problem) -> float:
        """Return the log of the total weight that agrees with the findings."""
        net = _Net(problem, problem.reduced(()))
        return _sweep(net, self._plan(net, stored=False), stored=False).log_scale

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> list[Assignment]:
        """Return the m best assignments of the targets, other variables summed out.

        Beyond the first, Lawler's partition: each found assignment splits the rest of the space into parts
        that agree with it up to some target and differ there.
        """
        first = self._best_one(problem, targets)
        if first is None:
            return []
        serial = count()
        heap = [(-first.log_weight, next(serial), first, problem, 0)]
        found: list[Assignment] = []
        while heap and len(found) < m:
            _, _, top, part, fixed = heapq.heappop(heap)
            found.append(top)
            if len(found) == m:
                break
            for k in range(fixed, len(targets)):
                without = _excluding(part, targets[k], top.codes[targets[k]])
                if without is None:
                    part = part.fixed({targets[k]: top.codes[targets[k]]})
                    continue
                rival = self._best_one(without, targets)
                if rival is not None:
                    heapq.heappush(heap, (-rival.log_weight, next(serial), rival, without, k))
                part = part.fixed({targets[k]: top.codes[targets[k]]})
        return found

    def sample(self, problem: Problem, n: int, rng: np.random.Generator) -> dict[str, NDArray[np.int64]]:
        """Draw n configurations of the free variables given the findings, as state codes."""
        net = _Net(problem, problem.reduced(None))
        sweep = _sweep(net, self._plan(net))
        codes: dict[int, NDArray[np.int64]] = {}
        for bucket in reversed(sweep.buckets):
            rows = bucket.table[tuple(codes[s] for s in bucket.scope)] if bucket.scope else bucket.table
            codes[bucket.variable] = draw_rows(rows, n, rng)
        return {net.variables[i].name: c for i, c in codes.items()}

    def _best_one(self, problem: Problem, targets: Sequence[str]) -> Assignment | None:
        fixed = {
            t: f.code for t in targets if (f := problem.findings.get(t)) is not None and f.code is not None
        }
        net = _Net(problem, problem.reduced(targets))
        free = [net.ids[t] for t in targets if t not in fixed]
        plan = self._plan(net, last=[free])
        sweep = _sweep(net, plan, maximise=set(free))
        if not np.isfinite(sweep.log_scale):
            return None
        codes: dict[int, int] = {}
        for bucket in reversed(sweep.buckets):
            if bucket.variable in set(free):
                at = tuple(codes[s] for s in bucket.scope)
                codes[bucket.variable] = int(np.argmax(bucket.table[at]))
        named = {net.variables[i].name: c for i, c in codes.items()}
        return Assignment({t: fixed.get(t, named.get(t, 0)) for t in targets}, sweep.log_scale)

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
    """The reduced problem on integer ids: cardinalities, tables with their scopes, and who meets whom."""

    def __init__(self, problem: Problem, factors: Iterable[Factor]) -> None:
        self.ids: dict[str, int] = {}
        self.variables: list[Variable] = []
        self.tables: list[tuple[tuple[int, ...], Array]] = []
        self.adjacency: list[set[int]] = []
        for factor in factors:
            scope = tuple(self._id(v) for v in factor.variables)
            self.tables.append((scope, factor.values))
            for i in scope:
                self.adjacency[i].update(scope)
        for i, around in enumerate(self.adjacency):
            around.discard(i)
        self.cards = [len(v) for v in self.variables]

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
    rest: list[tuple[tuple[int, ...], Array]]
    log_scale: float


def _sweep(net: _Net, plan: _Plan, maximise: Iterable[int] = (), stored: bool = True) -> _Sweep:
    """Eliminate in order; sum, or max for the named variables. `rest` holds tables over kept variables."""
    position = {v: k for k, v in enumerate(plan.order)}
    never = len(position)
    waiting: list[list[tuple[tuple[int, ...], Array]]] = [[] for _ in range(never + 1)]
    maximised = set(maximise)
    log_scale = 0.0
    for scope, table in net.tables:
        waiting[min((position.get(i, never) for i in scope), default=never)].append((scope, table))
    buckets: list[_Bucket] = []
    for k, v in enumerate(plan.order):
        here = waiting[k]
        waiting[k] = []
        inside = {i for scope, _ in here for i in scope} - {v}
        scope = tuple(sorted(inside, key=lambda i: (position.get(i, never), i)))
        table, log_top = _multiply(here, [*scope, v], net.cards)
        if log_top == -np.inf:
            return _Sweep([], [], -np.inf)
        log_scale += log_top
        if stored:
            buckets.append(_Bucket(v, scope, table))
        message = table.max(axis=-1) if v in maximised else table.sum(axis=-1)
        if scope:
            waiting[position.get(scope[0], never)].append((scope, message))
        else:
            log_scale += float(np.log(message))
    rest = []
    for scope, table in waiting[never]:
        if scope:
            rest.append((scope, table))
        elif float(table) > 0:
            log_scale += float(np.log(table))
        else:
            return _Sweep([], [], -np.inf)
    return _Sweep(buckets, rest, log_scale)


def _multiply(
    tables: Sequence[tuple[tuple[int, ...], Array]], axes: Sequence[int], cards: Sequence[int]
) -> tuple[Array, float]:
    """Multiply tables onto the given axes; return the product scaled to maximum one, and the log scale."""
    place = {a: k for k, a in enumerate(axes)}
    log_scale = 0.0
    result: Array | None = None
    for scope, table in sorted(tables, key=lambda t: t[1].size):
        order = sorted(range(len(scope)), key=lambda i: place[scope[i]])
        shape = [1] * len(axes)
        for i in scope:
            shape[place[i]] = cards[i]
        aligned = table.transpose(order).reshape(shape)
        result = aligned if result is None else result * aligned
        top = float(result.max())
        if top == 0.0:
            return np.zeros([cards[a] for a in axes]), -np.inf
        if not 1e-50 < top < 1e50:
            result = result / top
            log_scale += float(np.log(top))
    full = [cards[a] for a in axes]
    if result is None:
        return np.ones(full), 0.0
    top = float(result.max())
    return np.broadcast_to(result / top, full), log_scale + float(np.log(top))


def _backward(buckets: list[_Bucket]) -> dict[int, Array]:
    """Return every variable's unnormalised marginal by passing beliefs from the last bucket to the first."""
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
            incoming = (
                beliefs[where[scope[0]]].sum(axis=outside).transpose([remaining.index(s) for s in scope])
            )
            sent = table.sum(axis=-1)
            ratio = np.divide(incoming, sent, out=np.zeros(sent.shape), where=sent > 0)
            beliefs[k] = table * ratio[..., None]
            beliefs[k] /= beliefs[k].sum()
        marginal[v] = beliefs[k].sum(axis=tuple(range(len(scope))))
    return marginal


def _user_order(names: Sequence[str], net: _Net, stages: Sequence[int]) -> list[int]:
    order = [net.ids[n] for n in names if n in net.ids]
    missing = [v.name for i, v in enumerate(net.variables) if i not in set(order) and stages[i] == 0]
    if missing:
        raise InvalidArgument(f"the elimination order leaves out {', '.join(map(repr, missing[:5]))}")
    if len(set(order)) != len(order):
        raise InvalidArgument("the elimination order names a variable twice")
    rest = [i for i in range(len(net.variables)) if i not in set(order)]
    return sorted([*order, *rest], key=lambda i: stages[i])


def _excluding(problem: Problem, name: str, code: int) -> Problem | None:
    """Return the problem with one more state of a variable ruled out, or None if no state is left."""
    variable = problem.variables[name]
    known: Finding | None = problem.findings.get(name)
    weights = np.ones(len(variable)) if known is None else known.weights().copy()
    weights[code] = 0.0
    if not weights.any():
        return None
    findings = {**problem.findings, name: Finding(variable, None, likelihood=weights)}
    return replace(problem, findings=findings)
