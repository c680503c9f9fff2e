"""The junction tree: compile once, answer anything.

Method: eliminate variables in a searched order, join the maximal cliques in a tree with the running intersection
property, and pass messages over it, up and down, in compiled code. The tree is compiled once a model (its order is cached
by structure) and keeps its messages between questions: new evidence, or evidence taken back, is propagated only through
what it changes, and a question about a few variables only down to their cliques. Several targets that no clique holds are
answered from the conditionals between their cliques. Maxima give the best configurations, sums give exact draws.
For a large model, or when it is asked again and again with other states observed, a question is reduced to what matters for
it and compiled for that alone if it is smaller; its tree is kept too, and only the tables that findings cut change in it.
References: Lauritzen & Spiegelhalter (1988); Jensen, Lauritzen & Olesen (1990); Shafer & Shenoy (1990); Dawid (1992) and
Nilsson (1998) for maxima.
Cost: the total of the clique tables a run, in time; in memory only separators and small cliques, since large cliques are
computed block by block. The first use in a process loads compiled code; the first use after an installation compiles it.
Use it for everything asked more than once, for all marginals, and for large models.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import prod
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np

from markovia.errors import InvalidArgument, TooLarge
from markovia.factors.tables.conditional import ConditionalTable
from markovia.factors.tables.evidence import Finding, Findings
from markovia.factors.tables.factor import Factor
from markovia.inference.exact.cut_tables import CutFactor
from markovia.inference.exact.tree_answers import by_regret, cut_up, onto, subtree
from markovia.inference.exact.tree_plan import (
    CompiledTree,
    TreePlan,
    TreeStructure,
    plan_for,
    scope_of,
    structure_of,
)
from markovia.inference.exact.tree_state import ALL, NOTHING, OutOfRange, TreeState
from markovia.inference.exact.variable_elimination import VariableElimination
from markovia.inference.problem import Piece, Problem
from markovia.inference.result import Assignment, Draws, LogMass, Ranked, Tables
from markovia.kernels.clique_trees.program_sections import SLOT
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Bytes, Kind, Positive, check_options
from markovia.runtime.memory_budget import default_budget, readable

T = TypeVar("T")
SMALL, WHOLE = 1 << 14, 1 << 21
"""Entries up to which the tree of the whole model answers every question, and every one that is not asked often; others
are reduced first to what matters for them."""
ROOTED = 1 << 24
"""Entries up to which a tree for one target is planned once more, with the target in its root."""
OFTEN = 3
"""How often a question is asked, whatever states are observed, until it is worth a tree of its own."""
MOST_COUNTED = 1000
"""Questions that are counted."""
FEW, ALL_AT_ONCE = 100, 2000
"""Pieces up to which the first question of a model, and a first one for the posteriors of all variables, compiles all of it,
whatever is observed."""
KEPT_TREES, KEPT_BYTES = 16, 1 << 28
"""How many trees of questions are kept with a model that is not compiled as a whole, and how much memory they may take."""
WRITTEN_OUT = frozenset({Factor, ConditionalTable})
"""Pieces that are tables already."""
DENSE = 1 << 22
"""Entries up to which a structured conditional, such as a noisy-or, is written out as a table."""


@dataclass(frozen=True)
class JunctionTree:
    """Exact inference on a compiled junction tree.

    Parameters
    ----------
    order
        The names of all variables to eliminate, in order; searched by default.
    search
        How much order search is worth: 1 spends about as long on it as one run may save, 10 ten times that.
    max_bytes
        The memory budget; 80% of the free memory by default. Larger problems raise `TooLarge` with the estimate before
        anything is allocated.

    Examples
    --------
    >>> import markovia as mk
    >>> asia = mk.examples.asia()
    >>> engine = mk.engines.JunctionTree()
    >>> p = asia.query("lung", given={"xray": "yes"}, engine=engine)
    >>> round(p["yes"], 6), p.info.engine
    (0.488711, 'junction-tree')
    """

    order: Annotated[
        Sequence[str] | None, Kind((Sequence,), said="a list of names to eliminate in order", none=True)
    ] = None
    search: Positive = 1.0
    max_bytes: Bytes = None

    name: ClassVar[str] = "junction-tree"
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_options(self)

    # -- questions -----------------------------------------------------------------------------------------------

    def joint(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table over all targets together."""

        def work(state: TreeState, findings: Findings) -> Tables:
            record = state.plan.record
            slots = [state.tree.slot_of[t] for t in targets]
            asked = state.ask(findings, slots[0] if len(slots) == 1 else NOTHING)
            if asked is None:
                state.set_evidence(findings)
                log_mass = state.collect()
            else:
                log_mass = asked
                if len(slots) == 1 and log_mass > -np.inf:
                    answer = Factor.of((problem.variables[targets[0]],), state.marginal(slots[0]))
                    return Tables([answer], log_mass, record)
            if log_mass == -np.inf or not targets:
                return Tables([Factor.scalar()], log_mass, record)
            variables = tuple([problem.variables[t] for t in targets])
            home = int(state.plan.home[min(slots)])
            state.distribute([home])
            if len(slots) == 1:
                return Tables([Factor.of(variables, state.marginal(slots[0]))], log_mass, record)
            if set(slots) <= set(state.free_slots(home).tolist()):
                return Tables([Factor.of(variables, onto(state, home, slots))], log_mass, record)
            found = self._across(state, targets)
            return Tables(found.tables, log_mass, record)

        return self._run(problem, targets, False, work, lambda other: other.joint(problem, targets))

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table for each target, all from two passes over the tree."""

        def work(state: TreeState, findings: Findings) -> Tables:
            slot_of, plan = state.tree.slot_of, state.plan
            asked = state.ask(findings, ALL)
            if asked is None:
                state.set_evidence(findings)
                log_mass = state.collect()
            else:
                log_mass = asked
            if log_mass == -np.inf:
                return Tables([], -np.inf, plan.record)
            slots = [slot_of[t] for t in targets]
            if asked is None:
                few = 2 * len(slots) <= len(slot_of)
                state.distribute(sorted({int(plan.home[s]) for s in slots}) if few else None)
            return cut_up(problem, targets, slots, plan, state.marginals.copy(), log_mass)

        return self._run(problem, targets, False, work, lambda other: other.marginals(problem, targets))

    def log_mass(self, problem: Problem) -> LogMass:
        """Return the log of the total weight that agrees with the findings."""

        def work(state: TreeState, findings: Findings) -> LogMass:
            asked = state.ask(findings, NOTHING)
            if asked is not None:
                return LogMass(asked)
            state.set_evidence(findings)
            return LogMass(state.collect())

        return self._run(problem, (), False, work, lambda other: other.log_mass(problem))

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> Ranked:
        """Return the m best assignments of the targets, other variables summed out.

        Over all unobserved variables: maxima on the tree. Over some of them sums come before maxima, which is left to
        variable elimination.
        """
        if len(targets) < len(problem.free):
            return VariableElimination(max_bytes=self.max_bytes).best(problem, targets, m)

        def work(state: TreeState, findings: Findings) -> Ranked:
            state.set_evidence(findings)
            log_best = state.collect()
            found = Ranked(record=state.plan.record)
            if log_best == -np.inf:
                return found
            names = {s: n for n, s in state.tree.slot_of.items() if state.code[s] < 0}
            for regret, states in islice(by_regret(state), m):
                codes = {names[s]: int(c) for s, c in enumerate(states.tolist()) if s in names}
                found.append(Assignment({t: codes[t] for t in targets}, log_best - regret))
            return found

        return self._run(problem, None, True, work, lambda other: other.best(problem, targets, m))

    def sample(self, problem: Problem, n: int, rng: np.random.Generator) -> Draws:
        """Draw n configurations of the free variables given the findings, as state codes."""

        def work(state: TreeState, findings: Findings) -> Draws:
            state.set_evidence(findings)
            state.collect()
            codes = state.draw(n, rng)
            return Draws({name: codes[s] for name, s in state.tree.slot_of.items() if state.code[s] < 0})

        return self._run(problem, None, False, work, lambda other: other.sample(problem, n, rng))

    # -- compiling -----------------------------------------------------------------------------------------------

    def plan(self, problem: Problem) -> TreePlan:
        """Return the compiled plan of the whole problem, its findings left aside."""
        return self._whole(problem)

    def compiled(self, problem: Problem, targets: Sequence[str] | None) -> tuple[CompiledTree, Findings]:
        """Return the tree to answer a question with, and the findings to enter into it.

        Raises
        ------
        TooLarge
            If the tree does not fit the budget.
        """
        kept = self._kept(problem)
        if kept.tree is not None and self.max_bytes is None and kept.serves(SMALL):
            return kept.tree, problem.findings
        question = (None if targets is None else tuple(targets), _observed(problem.findings))
        tree = None if kept.serves(SMALL) else kept.trees.get(question)
        if tree is None and kept.plan is None:
            hard = any(f.code is not None for f in problem.findings.values())
            everything = targets is not None and problem.asks_for_all(targets)
            most = ALL_AT_ONCE if everything else FEW
            if kept.asked or not hard or len(problem.pieces) <= most:
                self._whole(problem, kept)
            kept.asked = True
        if (
            tree is None
            and kept.serves(WHOLE)
            and (kept.serves(SMALL) or problem.asks_for_all(targets) or kept.times(question) < OFTEN)
        ):
            if kept.tree is None:
                self._check(kept.known_plan)
            tree = kept.loaded()
        if tree is None:
            tree = self._reduced(kept, problem, targets)
            kept.keep(question, tree)
        elif self.max_bytes is not None:
            self._check(tree.plan)
        return tree, problem.findings

    def _reduced(self, kept: "_Kept", problem: Problem, targets: Sequence[str] | None) -> CompiledTree:
        """Compile what matters for a question; return the tree of the whole model where that is hardly larger."""
        hard = any(f.code is not None for f in problem.findings.values())
        everything = problem.asks_for_all(targets)
        usable = kept.tree is not None or (
            everything and kept.plan is not None and not kept.structured and self._fits(kept.known_plan)
        )
        if usable and everything and not hard:
            return kept.loaded()
        parts = problem.parts(targets)
        names = {v.name: v for part in parts for v in part.variables}
        structure = TreeStructure.over(names, [part.variables for part in parts])
        ids = {n: i for i, n in enumerate(names)}
        order = None if self.order is None else [ids[n] for n in self.order if n in ids]
        plan = plan_for(structure, effort=self.search, order=order)
        if order is None and targets is not None and len(targets) == 1 and SMALL < plan.total < ROOTED:
            # with the target in the root messages go up only; the constraint hardly costs entries
            rooted = plan_for(structure, [ids[targets[0]]], self.search)
            plan = rooted if rooted.total <= 1.2 * plan.total else plan
        if usable and kept.known_plan.entries_given(kept.codes(problem.findings)) <= 1.2 * plan.total:
            return kept.loaded()
        self._check(plan)
        tables: list[Array] = []
        cuts: list[CutFactor] = []
        for i, part in enumerate(parts):
            source = part.source
            if isinstance(source, Finding):
                cuts.append(CutFactor(i, source, (source.variable.name,)))
            elif source is not None and len(scope := scope_of(source)) > len(part.variables):
                cuts.append(CutFactor(i, source, tuple([v.name for v in scope if v.name not in ids])))
            else:
                tables.append(part.build().values)
                continue
            tables.append(np.ones([len(v.states) for v in part.variables]))
        return CompiledTree(plan, list(names.values()), tables, cuts)

    @property
    def _key(self) -> tuple[Any, ...]:
        return (self.name, None if self.order is None else tuple(self.order), self.search)

    def _kept(self, problem: Problem) -> "_Kept":
        """Return what is kept with a model, anew where its pieces have changed."""
        memory = problem.memory
        if memory is None:
            return _Kept(problem)
        key = self._key
        kept: _Kept | None = memory.get(key)
        if kept is None or not kept.fits(problem):
            kept = memory[key] = _Kept(problem)
        return kept

    def _whole(self, problem: Problem, kept: "_Kept | None" = None) -> TreePlan:
        """Return the whole model's plan, kept with the model until its pieces change."""
        kept = self._kept(problem) if kept is None else kept
        if kept.plan is None:
            order = None if self.order is None else _complete_order(self.order, list(problem.variables))
            kept.structured = not kept.pieces.types <= WRITTEN_OUT and any(map(_too_wide, kept.pieces))
            kept.plan = plan_for(structure_of(problem), effort=self.search, order=order)
        return kept.plan

    def _budget(self) -> float:
        return default_budget() if self.max_bytes is None else self.max_bytes

    def _fits(self, plan: TreePlan) -> bool:
        return plan.bytes < 1 << 20 or plan.bytes <= self._budget()

    def _check(self, plan: TreePlan) -> None:
        if not self._fits(plan) or (self.max_bytes is not None and plan.bytes > self.max_bytes):
            raise TooLarge(
                f"the junction tree has tables of {plan.total:,.3g} entries and needs {readable(plan.bytes)} and about "
                f"{4 * plan.total:,.2g} operations (width {plan.width}); the budget is {readable(self._budget())}. "
                "engine='conditioning' needs less memory and more time; or add evidence, ask for fewer variables, or "
                "raise JunctionTree(max_bytes=...)",
                bytes=plan.bytes,
                operations=4 * plan.total,
            )

    def _run(
        self,
        problem: Problem,
        targets: Sequence[str] | None,
        maximise: bool,
        work: Callable[[TreeState, Findings], T],
        in_logs: Callable[[VariableElimination], T],
    ) -> T:
        tree, findings = self.compiled(problem, targets)
        idle = tree.max_states if maximise else tree.states
        try:
            state = idle.pop()
            state.tree = tree
        except IndexError:
            state = TreeState(tree, maximise)
        try:
            found = work(state, findings)
        except OutOfRange:
            return by_logarithms(in_logs(VariableElimination(max_bytes=self.max_bytes)))
        del state.tree  # no cycle of references, so that memory is free as soon as the model is gone
        idle.append(state)  # only if the work was not interrupted
        return found

    def _across(self, state: TreeState, targets: Sequence[str]) -> Tables:
        """Join targets that no clique holds: sum out the rest of the subtree between their cliques."""
        plan, tree = state.plan, state.tree
        names = {s: n for n, s in tree.slot_of.items()}
        by_name = {v.name: v for v in tree.variables}
        homes = {int(plan.home[tree.slot_of[t]]) for t in targets}
        cliques = subtree(plan.parent.tolist(), homes)
        state.distribute(sorted(cliques))
        tops = {c for c in cliques if int(plan.parent[c]) not in cliques}
        needed = {tree.slot_of[t] for t in targets}
        for c in cliques - tops:
            needed.update(plan.clique_slots(c)[: plan.n_separator[c]].tolist())
        factors = []
        for c in sorted(cliques):
            slots = state.free_slots(c).tolist()
            if c in tops:
                table = state.belief(c)
            else:
                rows = state.rows(c)
                sums = rows.sum(axis=1, keepdims=True)
                table = np.divide(rows, sums, out=np.zeros(rows.shape), where=sums > 0).reshape(state.dims(c))
            drop = tuple(i for i, s in enumerate(slots) if s not in needed)
            factors.append(
                Factor.of(tuple(by_name[names[s]] for s in slots if s in needed), table.sum(axis=drop))
            )
        variables = {v.name: v for f in factors for v in f.variables}
        return VariableElimination(max_bytes=self.max_bytes).joint(Problem(variables, factors, {}), targets)


class _Kept:
    """What is kept with a model: its own plan and tree once they were made, and the trees of questions about parts of it."""

    def __init__(self, problem: Problem) -> None:
        self.pieces = problem.held
        self.variables = list(problem.variables.values())
        self.asked = False
        self.plan: TreePlan | None = None
        self.structured = False
        self.tree: CompiledTree | None = None
        self.trees: dict[Any, CompiledTree] = {}
        self.counts: dict[Any, int] = {}

    def fits(self, problem: Problem) -> bool:
        """Say whether the pieces are still the same."""
        return len(self.variables) == len(problem.variables) and self.pieces.same(problem.pieces)

    @property
    def known_plan(self) -> TreePlan:
        """The whole model's plan, which was made."""
        assert self.plan is not None
        return self.plan

    def serves(self, entries: int) -> bool:
        """Say whether the whole model was planned, can be written out, and has no more entries than that."""
        return self.plan is not None and not self.structured and self.plan.total <= entries

    def times(self, question: Any) -> int:
        """Count how often a question is asked."""
        if len(self.counts) > MOST_COUNTED:
            self.counts = {}
        times = self.counts[question] = self.counts.get(question, 0) + 1
        return times

    def loaded(self) -> CompiledTree:
        """Return the tree of the whole model."""
        if self.tree is None:
            self.tree = CompiledTree(self.known_plan, self.variables, [p.values for p in self.pieces])
        return self.tree

    def codes(self, findings: Findings) -> Ints:
        """Return the observed state of each slot of the whole model's tree, -1 for none."""
        code = np.full(len(self.variables), -1, dtype=np.int64)
        slots = self.known_plan.section(SLOT)
        for i, v in enumerate(self.variables):
            finding = findings.get(v.name)
            if finding is not None and finding.code is not None:
                code[slots[i]] = finding.code
        return code

    def keep(self, question: Any, tree: CompiledTree) -> None:
        """Remember the tree of a question; the oldest are forgotten where there are many or they take much memory."""
        if tree.plan.bytes > KEPT_BYTES and tree is not self.tree:
            return
        trees = self.trees
        trees[question] = tree
        while len(trees) > KEPT_TREES or (
            len(trees) > 1
            and sum(t.plan.bytes for t in list(trees.values()) if t is not self.tree) > KEPT_BYTES
        ):
            trees.pop(next(iter(trees), None), None)


def _observed(findings: Findings) -> frozenset[tuple[str, bool]]:
    return frozenset([(n, f.code is None) for n, f in findings.items()])


def by_logarithms(found: T) -> T:
    """Say in an answer that the tree left the range of doubles and elimination with logarithms took its place."""
    if not isinstance(found, Tables | Ranked):
        return found
    details = replace(found.record.details, arithmetic="logarithms")
    record = replace(found.record, engine=VariableElimination.name, details=details)
    if isinstance(found, Tables):
        return Tables(found.tables, found.log_mass, record)  # type: ignore[return-value]
    return Ranked(found, record)  # type: ignore[return-value]


def _complete_order(names: Sequence[str], known: list[str]) -> list[int]:
    ids = {n: i for i, n in enumerate(known)}
    order = [ids[n] for n in names if n in ids]
    if len(set(order)) != len(order):
        raise InvalidArgument("the elimination order names a variable twice")
    missing = [n for n in ids if ids[n] not in set(order)]
    if missing:
        raise InvalidArgument(f"the elimination order leaves out {', '.join(map(repr, missing[:5]))}")
    return order


def _too_wide(piece: Piece) -> bool:
    """Say whether a piece is a structured conditional too wide to be written out."""
    if isinstance(piece, Factor | ConditionalTable):
        return False
    return prod(len(v) for v in scope_of(piece)) > DENSE
