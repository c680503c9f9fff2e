"""Choosing the variables to condition on, so that elimination fits a memory budget.

Method: greedy. While the tables of the elimination are too large, take the variable that shrinks them most for the
number of cases it costs; the order is searched anew after each choice, and members that turn out not to be needed
are dropped at the end. References: Rish and Dechter (2000), "Resolution versus search: two strategies for SAT", and
Bidyuk and Dechter (2007), "Cutset sampling for Bayesian networks" (w-cutsets), for the trade of width against cases.
Cost: a few elimination orders for every member of the cutset.
Only sizes are looked at; no table is made.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, log, prod
from typing import NamedTuple, cast

from markovia.errors import InvalidArgument
from markovia.graphs.triangulation.elimination import Heuristic, eliminate, follow
from markovia.inference.exact.bucket_tree import BucketPlan, Net

# what handling one bucket costs besides its entries, in entries: some microseconds of Python
STEP = 10_000
_HUGE = 1e150
_MAX_AXES = 64


@dataclass(frozen=True)
class EliminationCost:
    """What an elimination has to do, as far as its cost goes. Variables are the ids of the net.

    Attributes
    ----------
    net
        The variables and which of them share a table.
    order
        An order heuristic, or names in the order of elimination.
    limit
        How many table entries may exist at once.
    keep
        Variables that are not eliminated: the answer is one table over them.
    last
        Variables that are eliminated after all others.
    stored
        Variables whose tables are kept until the end.
    beliefs
        Whether a sweep back follows, which needs the tables above those of `stored` too.
    """

    net: Net
    order: Heuristic | Sequence[str]
    limit: float
    keep: tuple[int, ...] = ()
    last: tuple[int, ...] = ()
    stored: frozenset[int] = frozenset()
    beliefs: bool = False


@dataclass(frozen=True)
class Cutset:
    """Variables to condition on, and what is left to do in each case.

    Attributes
    ----------
    names
        The variables to fix, outermost first.
    order
        The elimination order of the others.
    cases
        The number of joint states of the cutset.
    entries
        How many table entries a case needs at once.
    operations
        Table entries gone through in all cases together, the handling of a table counted as 10,000.
    width, largest
        The width of the order and the entries of its largest table.
    fits
        Whether a case stays within the limit.
    """

    names: list[str]
    order: list[str]
    cases: int
    entries: float
    operations: float
    width: int
    largest: float
    fits: bool


def choose_cutset(
    elimination: EliminationCost,
    candidates: Iterable[int],
    forced: Sequence[int] = (),
    max_operations: float = inf,
) -> Cutset:
    """Choose a small cutset under which the elimination fits.

    Parameters
    ----------
    elimination
        What is to be done.
    candidates
        Which variables may be conditioned on.
    forced
        Members in any case; they come first.
    max_operations
        Stop adding members once handling the cases alone costs more than this; what is returned then does not fit.
    """
    search = _CutsetSearch(elimination)
    allowed = set(candidates) - set(forced)
    chosen: list[int] = []
    now = search.trial(forced)
    tries = max(1, min(8, 1000 // (len(elimination.net.cards) + 1)))
    while not now.fits and allowed and now.handling <= max_operations:
        gains = search.gains(now, allowed)
        ranked = sorted(gains, key=lambda v: (-gains[v], v))[:tries]
        trials = [search.trial([*forced, *chosen, v]) for v in ranked]
        best = min(range(len(trials)), key=lambda k: (*search.rank(now, ranked[k], trials[k]), k))
        now = trials[best]
        chosen.append(ranked[best])
        allowed.discard(ranked[best])
    if now.fits:
        for v in reversed(chosen[:-1]):
            fewer = search.trial([*forced, *(u for u in chosen if u != v)])
            if fewer.fits and fewer.operations <= now.operations:
                now = fewer
                chosen.remove(v)
    names = [v.name for v in elimination.net.variables]
    return Cutset(
        names=[names[v] for v in (*forced, *chosen)],
        order=[names[v] for v in now.plan.order],
        cases=now.cases,
        entries=now.entries,
        operations=now.operations,
        width=now.plan.width,
        largest=now.plan.largest,
        fits=now.fits,
    )


class _Trial(NamedTuple):
    """An elimination after some variables were fixed."""

    plan: BucketPlan
    cases: int
    entries: float
    operations: float
    burden: float
    fits: bool

    @property
    def handling(self) -> float:
        """What the tables cost without their entries; more members never make it less."""
        return _float(self.cases) * STEP * (len(self.plan.order) + 1.0)


class _CutsetSearch:
    """Trials of cutsets.

    The burden of a plan, which the greedy choice lowers, is the sum of its table sizes where tables are stored, and of
    their squares otherwise: then only the largest ones matter.
    """

    def __init__(self, elimination: EliminationCost) -> None:
        self.task = elimination
        self.power = 1 if elimination.stored else 2
        late = {*elimination.keep, *elimination.last}
        self.stages = [int(v in late) for v in range(len(elimination.net.cards))]
        given = elimination.order
        self.given = None if isinstance(given, str) else self._given(given)

    def trial(self, fixed: Sequence[int]) -> _Trial:
        """Search an order without the fixed variables and add up what it costs."""
        task, net = self.task, self.task.net
        gone = set(fixed)
        graph = [set() if v in gone else near - gone for v, near in enumerate(net.adjacency)]
        if self.given is None:
            steps = eliminate(graph, cast(Heuristic, task.order), net.cards, self.stages)
        else:
            steps = follow(graph, self.given)
        keep = [v for v in task.keep if v not in gone]
        plan = BucketPlan.of([s for s in steps if s[0] not in gone], net.cards, keep)
        stored = task.stored - gone
        entries = plan.need(plan.above(stored) if task.beliefs else stored)
        cases = prod(net.cards[v] for v in fixed)
        sweep = sum(plan.sizes) + plan.answer + STEP * (len(plan.order) + 1.0)
        operations = _float(cases) * sweep * (2 if task.beliefs else 1)
        fits = entries <= task.limit and plan.width < _MAX_AXES and len(keep) <= _MAX_AXES
        burden = sum(self._burden(s) for _, s in self._tables(plan))
        return _Trial(plan, cases, entries, operations, burden, fits)

    def gains(self, now: _Trial, allowed: set[int]) -> dict[int, float]:
        """Estimate, order unchanged, how far fixing each variable lowers the log of the burden, a log case."""
        cards = self.task.net.cards
        lowered: dict[int, float] = {}
        for members, size in self._tables(now.plan):
            burden = self._burden(size)
            for v in members:
                if v in allowed:
                    saved = burden - self._burden(size / cards[v])
                    lowered[v] = lowered.get(v, 0.0) + saved
        if not lowered:
            return dict.fromkeys(allowed, 0.0)
        return {v: _log_ratio(now.burden, now.burden - s) / _log_cases(cards[v]) for v, s in lowered.items()}

    def rank(self, now: _Trial, v: int, then: _Trial) -> tuple[int, float]:
        """Order trials: those that fit by their cost, then the others by what they gain for a log case."""
        if then.fits:
            return (0, then.operations)
        return (1, -_log_ratio(now.burden, then.burden) / _log_cases(self.task.net.cards[v]))

    def _burden(self, size: float) -> float:
        return float(min(size, _HUGE) ** self.power)

    def _tables(self, plan: BucketPlan) -> list[tuple[tuple[int, ...], float]]:
        """Return the variables and the sizes of all tables, the answer included."""
        tables = [
            ((v, *scope), size) for v, scope, size in zip(plan.order, plan.scopes, plan.sizes, strict=True)
        ]
        return [*tables, (plan.keep, plan.answer)] if plan.keep else tables

    def _given(self, names: Sequence[str]) -> list[int]:
        net = self.task.net
        order = [net.ids[n] for n in names if n in net.ids]
        named = set(order)
        missing = [n for n, v in net.ids.items() if v not in named and not self.stages[v]]
        if missing:
            raise InvalidArgument(f"the elimination order leaves out {', '.join(map(repr, missing[:5]))}")
        if len(named) != len(order):
            raise InvalidArgument("the elimination order names a variable twice")
        rest = [v for v in net.ids.values() if v not in named]
        return sorted([*order, *rest], key=lambda v: self.stages[v])


def _log_ratio(before: float, after: float) -> float:
    return log(before / after) if after > 0.0 else inf


def _float(cases: int) -> float:
    return float(cases) if cases < 1e300 else inf


def _log_cases(card: int) -> float:
    return log(card) if card > 1 else 1e-9
