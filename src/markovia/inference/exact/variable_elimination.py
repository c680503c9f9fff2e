"""Variable elimination on a bucket tree.

Method: see `bucket_tree`: variables are summed or maximised out one by one, tables are multiplied only when their turn
comes. A question about some variables first drops the conditionals that it does not depend on (barren nodes); evidence
is cut out of the tables, so what it separates falls apart and is never multiplied together. Posteriors sum out all
but the targets; all marginals come from a sweep up and one back; the m best from one sweep up with max.
Marginal MAP sums before it maximises (constrained elimination). Where that order is too wide while a free one is not,
the answer comes from branch and bound, see `marginal_map`.
References: Dechter (1999), "Bucket elimination"; Nilsson (1998) for the m best.
Cost: the sum over variables of the table sizes, exponential in the order's width, in time; the same in memory
when buckets are kept, the largest ones otherwise. Tables are rescaled on the way, and what leaves the range of doubles
all the same is computed again with logarithms, so nothing underflows.
Use it for single queries on models of moderate width: NumPy only, no compilation.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import log2
from typing import Annotated, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument, InvalidGraph, TooLarge
from markovia.factors.tables.conditional import draw_rows
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.graphs.triangulation.elimination import Heuristic, check_heuristic, eliminate, follow
from markovia.inference.exact.arithmetic import TableArithmetic, in_range
from markovia.inference.exact.bucket_tree import Bucket, BucketPlan, Net, beliefs, by_regret, sweep
from markovia.inference.problem import Problem
from markovia.inference.result import Assignment, Draws, LogMass, Ranked, Record, Tables
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Bytes, Kind, check_options
from markovia.runtime.memory_budget import default_budget, readable

Method = Literal["auto", "constrained", "branch-and-bound"]
SMALL = 2**20  # bytes that are there without looking
CUTSET_BITS = 30
CASE_STEP = 1e4  # what a variable costs in each case of conditioning besides its table, in entries
DAY = 1e13  # entries


@dataclass(frozen=True)
class VariableElimination:
    """Exact inference by variable elimination.

    Parameters
    ----------
    order
        "min-fill", "min-degree", "min-weight" or "weighted-min-fill"; "perfect" where the graph that the evidence
        leaves is chordal, for an order that adds no edge (several targets at once are moved to its end); or the names
        of all variables to eliminate, in order (names that are observed or irrelevant are skipped).
    max_bytes
        The memory budget; 80% of the free memory by default. Larger problems raise `TooLarge` with the estimate
        before anything is allocated.
    marginal_map
        How `best` maximises over some variables and sums over the others: "constrained" (sums first),
        "branch-and-bound" (any order, as a bound), or "auto": constrained if it fits the budget.

    Examples
    --------
    >>> import markovia as mk
    >>> engine = mk.engines.VariableElimination(marginal_map="branch-and-bound")
    >>> mk.examples.asia().map(given={"dysp": "yes"}, targets=["lung", "bronc"], engine=engine).to_dict()
    {'lung': 'no', 'bronc': 'yes'}
    """

    order: Annotated[
        Heuristic | Literal["perfect"] | Sequence[str],
        Kind((str, Sequence), said="a heuristic or the names to eliminate in order"),
    ] = "min-fill"
    max_bytes: Bytes = None
    marginal_map: Method = "auto"

    name: ClassVar[str] = "variable-elimination"
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_options(self)
        if isinstance(self.order, str):
            check_heuristic(self.order, others=["perfect"])

    def joint(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table over all targets together."""
        net = Net(problem.parts(targets))
        keep = tuple([net.ids[t] for t in targets])
        plan = self._fitting(net, self._plan(net, last=keep, keep=keep))

        def work(arithmetic: TableArithmetic) -> tuple[Array, float]:
            found = sweep(net.tables(), plan, arithmetic)
            if found.log_scale == -np.inf:
                return np.zeros([net.cards[i] for i in keep]), -np.inf
            table, log_scale = arithmetic.multiply(found.rest, keep, net.cards)
            plain, log_total = arithmetic.plain(table)
            return plain, found.log_scale + log_scale + log_total

        table, log_mass = in_range(work)
        answer = Factor.of(tuple([net.variables[i] for i in keep]), table)
        return Tables([answer], float(log_mass), plan.record)

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table for each target, all from two sweeps."""
        net = Net(problem.parts(targets))
        asked = [net.ids[t] for t in targets]
        plan = self._plan(net)
        stored = plan.above(asked)
        self._fitting(net, plan, stored)

        def work(arithmetic: TableArithmetic) -> tuple[list[Array], float]:
            found = sweep(net.tables(), plan, arithmetic, stored=stored)
            if found.log_scale == -np.inf:
                return [], -np.inf
            own = beliefs(found.buckets, found.log_scale, arithmetic, set(asked))
            return [arithmetic.plain(own[i].table)[0] for i in asked], found.log_scale

        tables, log_mass = in_range(work)
        answers = [Factor.of((net.variables[i],), t) for i, t in zip(asked, tables, strict=False)]
        return Tables(answers, float(log_mass), plan.record)

    def log_mass(self, problem: Problem) -> LogMass:
        """Return the log of the total weight that agrees with the findings."""
        net = Net(problem.parts(()))
        plan = self._fitting(net, self._plan(net))
        return LogMass(in_range(lambda arithmetic: sweep(net.tables(), plan, arithmetic).log_scale))

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> Ranked:
        """Return the m best assignments of the targets, other variables summed out.

        One constrained sweep is enough for all of them: walking the buckets back, each choice has a known regret, the
        loss against the best completion, so a best-first search over deviations finds the next best directly.
        The record's details say which method was used.
        """
        net = Net(problem.parts(targets))
        free = [net.ids[t] for t in targets]
        maximised = frozenset(free)
        if self.marginal_map != "branch-and-bound":
            plan = self._plan(net, last=free)
            if self._fits(plan, maximised):
                return self._constrained(net, plan, maximised, m)
            if len(free) == len(net.cards):
                raise self._too_large(net, plan, maximised)
            if self.marginal_map == "constrained":
                searchable = self._fits(self._plan(net), range(len(net.cards)))
                cure = "VariableElimination(marginal_map='branch-and-bound') would do" if searchable else ""
                raise self._too_large(net, plan, maximised, cure)
        return self._searched(net, free, m)

    def sample(self, problem: Problem, n: int, rng: np.random.Generator) -> Draws:
        """Draw n configurations of the free variables given the findings, as state codes."""
        net = Net(problem.parts(None))
        codes: dict[int, NDArray[np.int64]] = {}
        for variable, scope, table in reversed(self._weights(net)):
            rows = np.moveaxis(table, 0, -1)
            codes[variable] = draw_rows(rows[tuple([codes[s] for s in scope])] if scope else rows, n, rng)
        return Draws({net.variables[i].name: c for i, c in codes.items()})

    def conditionals(self, problem: Problem) -> list[tuple[Variable, tuple[Variable, ...], Array]]:
        """Write the distribution as a product of conditionals, one a free variable, parents eliminated later.

        A variable's bucket holds all it has to do with the variables that are eliminated after it; divided by its
        sum it is the conditional distribution given those. A row of mass zero is uniform.
        """
        net = Net(problem.parts(None))
        found = []
        buckets = self._weights(net)[::-1]
        while buckets:
            variable, scope, table = buckets.pop()  # a table goes when its conditional is there
            mass = table.sum(axis=0)
            rows = np.full(table.shape, 1.0 / table.shape[0])
            np.divide(table, mass, out=rows, where=mass > 0)
            parents = tuple([net.variables[s] for s in scope])
            found.append((net.variables[variable], parents, np.ascontiguousarray(np.moveaxis(rows, 0, -1))))
        return found

    def planned(self, net: Net) -> BucketPlan:
        """Return the plan of a problem without looking at the budget."""
        return self._plan(net)

    def _weights(self, net: Net) -> list[Bucket]:
        """Return all buckets as plain numbers, each column up to its own scale; none if nothing is possible."""
        everything = range(len(net.cards))
        plan = self._plan(net)
        self._fitting(net, plan, everything)

        def work(arithmetic: TableArithmetic) -> list[Bucket]:
            buckets = sweep(net.tables(), plan, arithmetic, stored=everything).buckets
            for k, (variable, scope, table) in enumerate(buckets):
                buckets[k] = Bucket(variable, scope, arithmetic.weights(table))
            return buckets

        return in_range(work)

    def _constrained(self, net: Net, plan: BucketPlan, maximised: frozenset[int], m: int) -> Ranked:
        def work(arithmetic: TableArithmetic) -> tuple[list[Bucket], float, TableArithmetic]:
            found = sweep(net.tables(), plan, arithmetic, maximised, stored=maximised)
            return found.buckets[::-1], found.log_scale, arithmetic

        buckets, log_best, arithmetic = in_range(work)
        ranked = Ranked(record=_told(plan, "constrained"))
        if np.isfinite(log_best):
            for regret, codes in islice(by_regret(buckets, arithmetic), m):
                named = {net.variables[i].name: c for i, c in codes.items()}
                ranked.append(Assignment(named, log_best - regret))
        return ranked

    def _searched(self, net: Net, free: Sequence[int], m: int) -> Ranked:
        from markovia.inference.exact.marginal_map import branch_and_bound

        maximised = frozenset(free)
        everything = range(len(net.cards))
        plan = self._fitting(net, self._plan(net), everything)
        if isinstance(self.order, str) and self.order != "perfect":
            for cap in (max(plan.largest / 4, 2.0**14), 2.0**11, 2.0**8):
                later = self._plan(net, last=free, cap=cap)
                if self._fits(later, everything):
                    plan = later
                    break
        found = branch_and_bound(net.tables(), plan, maximised, m)
        ranked = Ranked(record=_told(plan, "branch-and-bound", found.evaluations))
        for codes, log_weight in found.best:
            named = {net.variables[i].name: c for i, c in codes.items()}
            ranked.append(Assignment(named, log_weight))
        return ranked

    # -- orders and budget ---------------------------------------------------------------------------------------

    def _plan(
        self, net: Net, last: Sequence[int] = (), keep: Sequence[int] = (), cap: float = float("inf")
    ) -> BucketPlan:
        stages = [0] * len(net.cards)
        for i in last:
            stages[i] = 1
        if not isinstance(self.order, str):
            steps = follow(net.adjacency, _user_order(self.order, net, stages))
        elif self.order == "perfect":
            steps = follow(net.adjacency, _perfect_order(net, stages))
        else:
            steps = eliminate(net.adjacency, cast(Heuristic, self.order), net.cards, stages, cap)
        return BucketPlan.of(steps, net.cards, keep)

    def _budget(self, n_bytes: float) -> float:
        if self.max_bytes is not None:
            return self.max_bytes
        return SMALL if n_bytes <= SMALL else default_budget()

    def _fits(self, plan: BucketPlan, stored: Collection[int] = ()) -> bool:
        if (
            self.max_bytes is None
            and 32.0 * (sum(plan.sizes) + plan.answer) < SMALL
            and plan.width < 64
            and len(plan.keep) <= 64
        ):
            return True
        n_bytes = 8.0 * plan.need(stored)
        return n_bytes <= self._budget(n_bytes) and plan.width < 64 and len(plan.keep) <= 64

    def _fitting(self, net: Net, plan: BucketPlan, stored: Collection[int] = ()) -> BucketPlan:
        """Return the plan, or raise `TooLarge` if it does not fit the budget."""
        if not self._fits(plan, stored):
            raise self._too_large(net, plan, stored)
        return plan

    def _too_large(self, net: Net, plan: BucketPlan, stored: Collection[int], cure: str = "") -> TooLarge:
        n_bytes = 8.0 * plan.need(stored)
        operations = plan.operations(net.scopes) * (2 if stored else 1)
        budget = self._budget(n_bytes)
        return TooLarge(
            f"exact elimination needs tables of {n_bytes / 8:,.3g} entries ({readable(n_bytes)}) and "
            f"{operations:,.3g} operations, width {plan.width}; the budget is {readable(budget)}. "
            f"{cure or _advice(plan, budget)}",
            bytes=n_bytes,
            operations=operations,
        )


def _user_order(names: Sequence[str], net: Net, stages: Sequence[int]) -> list[int]:
    order = [net.ids[n] for n in names if n in net.ids]
    named = set(order)
    missing = [v.name for i, v in enumerate(net.variables) if i not in named and stages[i] == 0]
    if missing:
        raise InvalidArgument(f"the elimination order leaves out {', '.join(map(repr, missing[:5]))}")
    if len(named) != len(order):
        raise InvalidArgument("the elimination order names a variable twice")
    rest = [i for i in range(len(net.variables)) if i not in named]
    return sorted([*order, *rest], key=lambda i: stages[i])


def _perfect_order(net: Net, stages: Sequence[int]) -> list[int]:
    """Return an order that adds no edge, ending with the only variable of a later stage if there is one."""
    from markovia.graphs.kinds.undirected import UndirectedGraph
    from markovia.graphs.triangulation.chordal import chordless_cycle, is_chordal, perfect_elimination_order

    names = [v.name for v in net.variables]
    edges = [(names[i], names[j]) for i, around in enumerate(net.adjacency) for j in around if i < j]
    graph = UndirectedGraph(edges, nodes=names)
    if not is_chordal(graph):
        cycle = chordless_cycle(graph) or []
        raise InvalidGraph(
            "order='perfect' needs a chordal graph, and what is left of the model under this evidence is not: the "
            f"cycle {' - '.join([*cycle, *cycle[:1]])} has no chord; use a heuristic such as order='min-fill'"
        )
    last = next((n for n, stage in zip(names, stages, strict=True) if stage), None)
    order = [net.ids[n] for n in perfect_elimination_order(graph, last=last)]
    return sorted(order, key=lambda i: stages[i])


def _advice(plan: BucketPlan, budget: float) -> str:
    """Say what else would do: less memory for more time, or a smaller question."""
    cure = "raise VariableElimination(max_bytes=...)"
    if 16.0 * plan.answer > budget or len(plan.keep) > 64:
        return (
            f"Already the answer has {plan.answer:,.3g} entries: ask for fewer variables at once, or {cure}"
        )
    cases = 2.0 ** _cutset_bits(plan, budget)
    if cases <= 2.0**CUTSET_BITS and cases * CASE_STEP * (len(plan.order) + 1) <= DAY:
        return (
            f"engine='conditioning' would do with less memory, in about {cases:,.2g} cases; "
            f"or add evidence, or {cure}"
        )
    return f"No exact engine will do: add evidence, ask for fewer variables at once, or {cure}"


def _cutset_bits(plan: BucketPlan, budget: float) -> float:
    """Estimate the log of the number of cases to go through until the largest table takes a tenth of the budget.

    Greedy: the variable is fixed next that most of the tables which are still too large have.
    """
    room = log2(max(2.0, budget / 80.0))
    logs = [log2(c) for c in plan.cards]
    tables = [(set(scope) | {v}) - set(plan.keep) for v, scope in zip(plan.order, plan.scopes, strict=True)]
    bits = 0.0
    while bits <= CUTSET_BITS:
        tables = [t for t in tables if sum([logs[i] for i in t]) > room]
        if not tables:
            return bits
        uses: dict[int, float] = {}
        for table in tables:
            for i in table:
                uses[i] = uses.get(i, 0.0) + 1.0
        chosen = max(uses, key=lambda i: (uses[i], -logs[i], -i))
        bits += logs[chosen]
        for table in tables:
            table.discard(chosen)
    return bits


def _told(plan: BucketPlan, method: str, evaluations: int | None = None) -> Record:
    """Return what is said of best states of some variables."""
    details = replace(plan.record.details, marginal_map=method, evaluations=evaluations)
    return Record(details=details)
