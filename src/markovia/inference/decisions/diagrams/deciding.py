"""Solve a diagram by what its graph allows: strong elimination, an order of solution, or a search with a bound.

- What every decision needs of the past it sees: perfect recall, solved by strong elimination.
- Otherwise, where some decision's best rule never depends on the others': one update each, in the order of solution.
- Otherwise: updates from several starts, perfect recall as a bound, and branch and bound in between.
References: Jensen, Jensen and Dittmer (1994); Lauritzen and Nilsson (2001).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import ImpossibleEvidence, TooLarge
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.separation.requisite import (
    Parents,
    decision_order,
    informed_parents,
    recall_parents,
    requisite_parents,
    solution_order,
)
from markovia.inference.decisions.diagrams.diagram import SAME_AMOUNT, Diagram
from markovia.inference.decisions.diagrams.policy_search import forgetting_rules, search_policies
from markovia.inference.decisions.diagrams.policy_structure import Numbered
from markovia.inference.decisions.diagrams.single_policy_updating import PolicyUpdater
from markovia.inference.decisions.diagrams.strong_elimination import DecisionRule, eliminate_strongly
from markovia.inference.exact.bucket_tree import BucketPlan
from markovia.inference.exact.decision_arithmetic import DecisionArithmetic, ExponentialWorths, WorthPairs

STARTS = 10
"""Random policies that updating begins with, besides the uniform one and the one that recalls."""
STARTS_OF_SEARCH = 2
"""The same where a search follows, whose nodes begin with policies of their own."""
NODES = 300
"""Nodes of the search for the best policy."""
SEARCH_ENTRIES = 2**27
"""Entries of all tables that a search may take: many nodes where they are small, few where they are large."""
SMALL_ENTRIES = 2**15
"""Entries of the tables of a relaxation up to which a search takes it; above, one with fewer that tells more is tried."""
BOUND_ENTRIES = 2**24
"""Entries of the largest table that a bound alone may take."""


@dataclass(frozen=True)
class Structure:
    """What the graph of a diagram says about how to solve it.

    Attributes
    ----------
    order
        The decisions in time.
    drawn, recalled
        The parents of all nodes, those of decisions as far as they matter: of what is seen, and of all the past.
    remembers
        Whether what matters of the past is seen anyway.
    solution
        An order of solution, where there is one.
    """

    order: list[str]
    drawn: Parents
    recalled: Parents
    remembers: bool
    solution: list[str] | None
    kept: dict[str, Any]


class DiagramSolution(NamedTuple):
    """What was found, before it is given to a user."""

    value: float
    bound: float
    gap: float
    exact: bool
    log_evidence: float
    rules: dict[str, DecisionRule]
    method: str
    note: str
    details: Any = None


@dataclass(frozen=True)
class PolicySearchDetails:
    """How much was tried: passes over all rules, starting policies, and nodes of the search."""

    rounds: int
    starts: int
    nodes: int


def structure_of(diagram: Diagram, memory: str, order: Sequence[str] | None) -> Structure:
    """Read off the graph what matters to each decision, and in which order to solve."""
    parents, decisions, leaves = diagram.parents, [*diagram.decisions], diagram.leaves
    keep = {d: restriction.seen for d, restriction in diagram.restrictions.items()}
    if memory == "perfect" or order is not None:
        time = decision_order(parents, decisions, order)
    else:
        inside = set(decisions)
        time = [n for n in DAG.from_parents(parents).topological_order() if n in inside]
    recalled = requisite_parents(recall_parents(parents, time), decisions, leaves, keep)
    if memory == "perfect":
        return Structure(time, recalled, recalled, True, None, {})
    drawn = requisite_parents(parents, decisions, leaves, keep)
    remembers = all({*recalled[d]} <= {*parents[d]} for d in decisions)
    if remembers:  # what is seen and does not matter may still be told apart by its position in time
        return Structure(time, drawn, recalled, True, None, {})
    return Structure(time, drawn, recalled, False, solution_order(drawn, decisions, leaves), {})


def solve(
    diagram: Diagram,
    structure: Structure,
    risk: float = 0.0,
    nodes: int = NODES,
    time_limit: float | None = None,
) -> DiagramSolution:
    """Return the best policy for a diagram, or a good one with a bound.

    Raises
    ------
    ImpossibleEvidence
        If what is known has probability zero.
    TooLarge
        If no method fits into memory.
    """
    arithmetic: DecisionArithmetic = ExponentialWorths(risk) if risk else WorthPairs()
    shift = _log_evidence(diagram, structure) if risk and diagram.findings else 0.0

    def settled(value: float) -> float:
        return value - shift / risk if risk else value

    if structure.remembers:
        plan = structure.kept.get("strong plan")
        solved = eliminate_strongly(diagram, structure.recalled, structure.order, arithmetic, plan)
        structure.kept["strong plan"] = solved.plan
        _refuse_impossible(solved.log_evidence, diagram)
        value = settled(solved.value)
        return DiagramSolution(
            value, value, 0.0, True, solved.log_evidence, solved.rules, "strong-elimination", ""
        )
    relaxation = _relaxation(diagram, structure, arithmetic)
    bound = relaxation.value
    if relaxation.rules is not None:
        _refuse_impossible(relaxation.log_evidence, diagram)
        rules = forgetting_rules(relaxation.rules, diagram, structure.drawn)
        if rules is not None:
            value, note = settled(bound), "what is forgotten is not needed"
            return DiagramSolution(
                value, value, 0.0, True, relaxation.log_evidence, rules, "strong-elimination", note
            )
    updater = PolicyUpdater(diagram, structure.drawn, arithmetic)
    if structure.solution is not None:
        updater.pass_once(structure.solution)
        best = updater.result()
        _refuse_impossible(best.log_evidence, diagram)
        return DiagramSolution(
            settled(best.value), settled(max(bound, best.value)), 0.0, True, best.log_evidence, best.rules,
            "single-policy-updating", "soluble: one update a decision",
        )  # fmt: skip
    return _searched(diagram, structure, arithmetic, updater, relaxation, nodes, time_limit, settled)


def _searched(
    diagram: Diagram,
    structure: Structure,
    arithmetic: DecisionArithmetic,
    updater: PolicyUpdater,
    relaxation: "Relaxation",
    nodes: int,
    time_limit: float | None,
    settled: Any,
) -> DiagramSolution:
    """Climb from several starts; where the bound leaves room, search."""
    backwards = structure.order[::-1]
    best = updater.climb(backwards)
    _refuse_impossible(best.log_evidence, diagram)
    bound, relaxed = relaxation.value, relaxation.parents
    searchable = relaxed is not None and 2 * relaxation.entries <= SEARCH_ENTRIES
    starts, rng = 1, np.random.default_rng(0)
    rounds = best.rounds
    while starts <= (STARTS_OF_SEARCH if searchable else STARTS) and best.value < bound - _close(bound):
        updater.random_start(rng)
        other = updater.climb(backwards)
        starts, rounds = starts + 1, rounds + other.rounds
        best = other if other.value > best.value + _close(best.value) else best
    ceiling, tried = bound, 0
    if best.value < bound - _close(bound) and searchable and relaxed is not None:
        affordable = int(min(nodes, max(2, SEARCH_ENTRIES // max(relaxation.entries, 1))))
        searched = search_policies(
            diagram, structure.drawn, relaxed, structure.order, arithmetic, best, affordable, time_limit
        )  # fmt: skip
        best, ceiling, tried = searched.best, searched.bound, searched.nodes
    gap = max(0.0, settled(ceiling) - settled(best.value))
    exact = gap <= _close(best.value)
    note = (
        f"no order of solution; {starts} starts"
        + (f", {tried:,} nodes searched" if tried else "")
        + ("" if exact else "; a local optimum")
    )
    return DiagramSolution(
        settled(best.value), settled(max(bound, best.value)), 0.0 if exact else gap, exact, best.log_evidence, best.rules,
        "policy-search" if tried else "single-policy-updating", note, PolicySearchDetails(rounds, starts, tried),
    )  # fmt: skip


class Relaxation(NamedTuple):
    """What a diagram is worth if decisions saw more, the entries that took, and what they would see; None if unknown.

    `rules` and `log_evidence` are those of perfect recall, where it was what was solved.
    """

    value: float
    entries: float
    parents: Parents | None
    rules: dict[str, DecisionRule] | None = None
    log_evidence: float = 0.0


def _relaxation(diagram: Diagram, structure: Structure, arithmetic: DecisionArithmetic) -> Relaxation:
    """Solve the diagram with perfect recall; where that is too large, with all seen that no choice changes."""
    if "relaxations" not in structure.kept:
        structure.kept["relaxations"] = list(_relaxed_plans(diagram, structure))
    best = Relaxation(np.inf, np.inf, None)
    for parents, plan in structure.kept["relaxations"]:
        entries = float(sum(plan.sizes))
        if entries >= best.entries:
            continue
        if best.value == np.inf:  # the first one that fits is the tighter one
            solved = eliminate_strongly(diagram, parents, structure.order, arithmetic.fresh(), plan)
            best = Relaxation(solved.value, entries, parents, solved.rules, solved.log_evidence)
        else:
            best = best._replace(entries=entries, parents=parents)
    return best


def _relaxed_plans(diagram: Diagram, structure: Structure) -> Iterator[tuple[Parents, BucketPlan]]:
    """Yield relaxations that fit, with their elimination orders; no second one after a small one."""
    keep = {d: r.seen for d, r in diagram.restrictions.items()}

    def informed() -> Parents:
        parents = informed_parents(diagram.parents, structure.order, [*diagram.chance])
        return requisite_parents(parents, [*diagram.decisions], diagram.leaves, keep)

    def recalled() -> Parents:
        return structure.recalled

    for parents_of in (recalled, informed):
        try:
            parents = parents_of()
            plan = Numbered.of(diagram, parents).strong_plan(structure.order)
        except TooLarge:
            continue
        if plan.largest <= BOUND_ENTRIES:
            yield parents, plan
            if sum(plan.sizes) <= SMALL_ENTRIES:
                return


def evaluate(diagram: Diagram, risk: float = 0.0) -> DiagramSolution:
    """Return what a diagram without open decisions is worth."""
    return solve(diagram, Structure([], diagram.parents, diagram.parents, True, None, {}), risk)


def _log_evidence(diagram: Diagram, structure: Structure) -> float:
    """Return the log probability of what is known, whatever is decided: nothing known depends on a decision."""
    return PolicyUpdater(diagram, structure.drawn, WorthPairs()).result().log_evidence


def _refuse_impossible(log_evidence: float, diagram: Diagram) -> None:
    if log_evidence == -np.inf:
        raise ImpossibleEvidence({n: f.said for n, f in diagram.findings.items()})


def _close(value: float) -> float:
    return 1000 * SAME_AMOUNT * max(abs(value), 1e-300)
