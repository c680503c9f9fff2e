"""Exact marginal MAP by depth-first branch and bound.

Method: marginal MAP maximises over some variables after summing over the others. Eliminating in that order can need
far larger tables than eliminating in a free order. A free order takes some maximum before some sum, which can only give
more: an upper bound. One sweep up and one back over the bucket tree of a free order bounds the weight for every state
of every variable to maximise (see `bucket_tree.beliefs`). The search fixes these variables one by one, the most
promising state first, restricts the tables, and drops states whose bound does not beat the best assignment known. With
one variable left the bounds are the weights themselves.
Known assignments come from climbing: from the states of the highest bounds, one variable at a time takes its best
state while the others stay. Sums that no maximum precedes are done once, before the search. Parts that share no
variable are searched one by one.
Reference: Park and Darwiche (2003), "Solving MAP exactly using systematic search"; the order that delays maxima while
the tables stay small is in the spirit of Yuan and Hansen (2009).
Cost: two sweeps of the free order for each node of the search tree; the number of nodes is exponential in the number of
variables to maximise at worst, and small when the bound is tight.
Use it where the constrained order does not fit in memory; `VariableElimination` does so by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from math import exp
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.inference.exact.arithmetic import Plain, Ranged, Scoped, TableArithmetic
from markovia.inference.exact.bucket_tree import BucketPlan, beliefs, sweep
from markovia.runtime.array_types import Array

States = NDArray[np.int64]
Weighted = tuple[dict[int, int], float]
ROUNDS = 8


class BestAssignment(NamedTuple):
    """The best assignments with their log weights, best first, and the number of times the bound was computed."""

    best: list[Weighted]
    evaluations: int


def branch_and_bound(
    tables: Sequence[Scoped], plan: BucketPlan, maximised: frozenset[int], m: int
) -> BestAssignment:
    """Return the m assignments of the maximised variables with the largest sums over the others.

    Parameters
    ----------
    tables
        Tables of plain numbers with their scopes; every variable of the plan is in one of them.
    plan
        An elimination order of all variables, in any order of sums and maxima.
    maximised
        The variables to maximise.
    m
        How many assignments to return; there may be fewer of positive weight.

    Examples
    --------
    >>> tables = [((0, 1), np.array([[0.5, 0.4], [0.6, 0.0]]))]
    >>> plan = BucketPlan.of([(0, {1}), (1, set())], [2, 2])
    >>> branch_and_bound(tables, plan, frozenset([0]), 1).best[0][0]
    {0: 0}
    """
    tables, plan, log_scale = _sums_done(tables, plan, maximised)
    best: list[Weighted] = [({}, log_scale)] if log_scale > -np.inf else []
    evaluations = 0
    for own_tables, own_plan in _components(tables, plan):
        if not best:
            break
        search = _MarginalMapSearch(own_tables, own_plan, maximised & set(own_plan.order), m)
        best = _combined(best, search.run(), m)
        evaluations += search.evaluations
    return BestAssignment(best, evaluations)


@dataclass
class _Node:
    """A part of the search space: the states that each variable may still take.

    `tables` are those of the parent; `places` says which of their states are left.
    """

    states: dict[int, States]
    tables: list[Scoped]
    places: dict[int, list[int]]
    bound: float


@dataclass
class _MarginalMapSearch:
    tables: Sequence[Scoped]
    plan: BucketPlan
    maximised: frozenset[int]
    m: int
    evaluations: int = 0
    _known: dict[tuple[int, ...], float] = field(default_factory=dict)
    _in_range: Ranged = field(default_factory=Ranged)

    def __post_init__(self) -> None:
        self._ordered = sorted(self.maximised)
        self._stored = self.plan.above(self.maximised)

    def run(self) -> list[Weighted]:
        """Search depth first and return the m best assignments."""
        everything = {v: np.arange(self.plan.cards[v]) for v in self._ordered}
        stack = [_Node(everything, list(self.tables), {}, np.inf)]
        if not everything:
            mass = self._in_range(lambda arithmetic: sweep(self.tables, self.plan, arithmetic).log_scale)
            return [({}, mass)] if mass > -np.inf else []
        climbed = False
        while stack:
            node = stack.pop()
            if not self._promising(node.bound):
                continue
            tables = _restricted(node.tables, node.places)
            bounds = self._bounds(node.states, tables)
            if bounds is None:
                continue
            if not climbed:
                climbed = True
                self._climb(tables, {v: int(np.argmax(b)) for v, b in bounds.items()})
            stack.extend(self._branches(node.states, tables, bounds))
        return [(dict(zip(self._ordered, key, strict=True)), w) for key, w in self._known.items()]

    def _branches(
        self, states: dict[int, States], tables: list[Scoped], bounds: dict[int, Array]
    ) -> list[_Node]:
        """Drop states that cannot win and split on one variable; the most promising child comes last."""
        several = [v for v, s in states.items() if len(s) > 1]
        if len(several) <= 1:
            self._record(states, bounds, several)
            return []
        places = {v: [k for k, b in enumerate(own) if self._promising(float(b))] for v, own in bounds.items()}
        if not all(places.values()):
            return []
        states = {v: s[places[v]] for v, s in states.items()}
        tables = _restricted(tables, {v: places[v] for v in several if len(places[v]) < len(bounds[v])})
        left = {v: own[places[v]] for v, own in bounds.items()}
        bound = min(float(own.max()) for own in left.values())
        undecided = [v for v in several if len(states[v]) > 1]
        if not undecided:
            return [_Node(states, tables, {}, bound)]
        split = min(undecided, key=lambda v: (_spread(left[v]), v))
        return [
            _Node(
                {**states, split: states[split][k : k + 1]},
                tables,
                {split: [int(k)]},
                min(bound, float(left[split][k])),
            )
            for k in np.argsort(left[split], kind="stable")
        ]

    def _climb(self, tables: list[Scoped], at: dict[int, int]) -> None:
        """Improve an assignment one variable at a time; all that is met on the way is remembered."""
        value = -np.inf
        for _ in range(ROUNDS):
            before = value
            for v in self._ordered:
                states = {u: np.array([k]) for u, k in at.items()}
                states[v] = np.arange(self.plan.cards[v])
                others = _restricted(tables, {u: [k] for u, k in at.items() if u != v})
                weights = self._bounds(states, others)
                if weights is not None:
                    self._record(states, weights, [v])
                    at[v] = int(np.argmax(weights[v]))
                    value = float(weights[v][at[v]])
            if not value > before + 1e-9:
                return

    def _bounds(self, states: dict[int, States], tables: list[Scoped]) -> dict[int, Array] | None:
        """Bound the log weight for every state of every variable; None if no assignment is possible."""
        self.evaluations += 1
        cards = list(self.plan.cards)
        for v, own in states.items():
            cards[v] = len(own)
        several = frozenset([v for v in self._ordered if cards[v] > 1])

        def work(arithmetic: TableArithmetic) -> dict[int, Array] | None:
            found = sweep(tables, self.plan, arithmetic, several, self._stored, cards)
            if found.log_scale == -np.inf:
                return None
            own = beliefs(found.buckets, found.log_scale, arithmetic, self.maximised, several)
            return {v: arithmetic.logs(b.table) + b.log_scale for v, b in own.items()}

        return self._in_range(work)

    def _record(self, states: dict[int, States], weights: dict[int, Array], several: list[int]) -> None:
        """Remember the assignments where at most one variable is not fixed, and keep the m best."""
        own = several[0] if several else self._ordered[0]
        for k, weight in enumerate(weights[own]):
            if weight > -np.inf:
                codes = tuple([int(states[v][k if v == own else 0]) for v in self._ordered])
                self._known[codes] = float(weight)
        if len(self._known) > self.m:
            self._known = dict(nlargest(self.m, self._known.items(), key=lambda known: known[1]))

    def _promising(self, bound: float) -> bool:
        """Say whether a bound leaves room for one of the m best; rounding and ties do not."""
        if len(self._known) < self.m:
            return bound > -np.inf
        least = min(self._known.values())
        return bound > least + 1e-11 + 1e-14 * abs(least)


def _sums_done(
    tables: Sequence[Scoped], plan: BucketPlan, maximised: frozenset[int]
) -> tuple[list[Scoped], BucketPlan, float]:
    """Sum out the variables that no maximum precedes; return new tables, the plan for the rest and the log scale.

    Where plain numbers do not hold the sums, nothing is done: the search then computes with logarithms.
    """
    late = set(maximised)
    for v, scope in zip(plan.order, plan.scopes, strict=True):
        if v in late and scope:
            late.add(scope[0])
    steps = list(zip(plan.order, plan.scopes, strict=True))
    early = [(v, scope) for v, scope in steps if v not in late]
    later = [(v, scope) for v, scope in steps if v in late]
    rest = tuple([v for v, _ in later])
    first = BucketPlan([v for v, _ in early], [scope for _, scope in early], plan.cards, rest)
    second = BucketPlan(list(rest), [scope for _, scope in later], plan.cards)
    try:
        with np.errstate(under="raise", over="raise", invalid="raise"):
            found = sweep(tables, first, Plain())
    except FloatingPointError:
        return list(tables), plan, 0.0
    return found.rest, second, found.log_scale


def _components(tables: Sequence[Scoped], plan: BucketPlan) -> list[tuple[list[Scoped], BucketPlan]]:
    """Split a problem into those that share no variable."""
    label: dict[int, int] = {}
    for v, scope in zip(reversed(plan.order), reversed(plan.scopes), strict=True):
        label[v] = label[scope[0]] if scope else v
    own_tables: dict[int, list[Scoped]] = {}
    for scope, table in tables:
        root = label[scope[0] if scope else plan.order[0]]
        own_tables.setdefault(root, []).append((scope, table))
    own_steps: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
    for v, scope in zip(plan.order, plan.scopes, strict=True):
        own_steps.setdefault(label[v], []).append((v, scope))
    return [
        (own_tables.get(root, []), BucketPlan([v for v, _ in steps], [s for _, s in steps], plan.cards))
        for root, steps in own_steps.items()
    ]


def _restricted(tables: Sequence[Scoped], states: dict[int, list[int]]) -> list[Scoped]:
    """Keep only some states of some variables, given by their places."""
    if not states:
        return list(tables)
    found = []
    for scope, table in tables:
        for axis, v in enumerate(scope):
            kept = states.get(v)
            if kept is None:
                continue
            if len(kept) == 1:
                table = table[(slice(None),) * axis + (slice(kept[0], kept[0] + 1),)]
            else:
                table = table.take(kept, axis=axis)
        found.append((scope, table))
    return found


def _spread(bounds: Array) -> float:
    """Say how many states are as good as the best: one for a clear choice."""
    top = float(bounds.max())
    return sum([exp(float(b) - top) for b in bounds])


def _combined(left: list[Weighted], right: list[Weighted], m: int) -> list[Weighted]:
    """Return the m best unions of two lists of assignments over different variables."""
    left, right = (sorted(side, key=lambda found: -found[1]) for side in (left, right))
    pairs = [(i, j) for i in range(len(left)) for j in range(min(len(right), m // (i + 1)))]
    pairs = nlargest(m, pairs, key=lambda p: left[p[0]][1] + right[p[1]][1])
    return [({**left[i][0], **right[j][0]}, left[i][1] + right[j][1]) for i, j in pairs]
