"""What can be asked of a network with decisions in it before they are made: whatever does not depend on them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from markovia.errors import InvalidEvidence, UnsupportedModel
from markovia.factors.decisions.decision import DecisionNode, undecided
from markovia.factors.decisions.utility import UtilityNode
from markovia.factors.tables.conditional import Conditional
from markovia.inference.problem import Piece, Problem

ACTING = frozenset({"decision", "utility"})
"""Kinds of pieces that no engine treats: choices and amounts."""


def answerable(pieces: Iterable[Piece], decided: Iterable[str] = ()) -> list[str]:
    """Return the variables whose distribution no open decision changes; those `decided` are not open."""
    nodes = [piece for piece in pieces if isinstance(piece, Conditional)]
    made = {*decided}
    loose = {n.variable.name for n in nodes if n.kind in ACTING and n.variable.name not in made}
    parents = {n.variable.name: n.parent_names for n in nodes}
    changed = True
    while changed:
        below = {
            n for n, q in parents.items() if n not in loose and n not in made and not loose.isdisjoint(q)
        }
        changed = bool(below)
        loose |= below
    return [n for n in parents if n not in loose]


def undecided_problem(problem: Problem, targets: Iterable[str] | None) -> Problem:
    """Return the problem without utilities, decisions whose state is given as set, and without those that do not matter.

    Raises
    ------
    IncompleteModel
        If the answer depends on a decision that is open.
    UnsupportedModel
        If a utility is asked for: it has no distribution among the nodes.
    """
    amounts = [piece.variable.name for piece in problem.pieces if isinstance(piece, UtilityNode)]
    for name in (*(targets or ()), *problem.findings):
        if name in amounts:
            raise UnsupportedModel(
                f"{name!r} is a utility, an amount and no variable; ask utility(), or decide()"
            )
    pieces: list[Piece] = []
    for piece in problem.pieces:
        if isinstance(piece, UtilityNode):
            continue
        if isinstance(piece, DecisionNode) and piece.variable.name in problem.findings:
            finding = problem.findings[piece.variable.name]
            if finding.code is None and finding.value is None:
                raise InvalidEvidence(
                    f"{piece.variable.name!r} is a decision: give the state that is chosen, not {finding.said!r}"
                )
            chosen = finding.value if finding.code is None else piece.variable.states[finding.code]
            piece = set_decision(piece, chosen)
        pieces.append(piece)
    variables = {n: v for n, v in problem.variables.items() if n not in amounts}
    memory = None if problem.memory is None else problem.memory.setdefault("decisions", {})
    open_problem = replace(problem, variables=variables, pieces=pieces, memory=memory)
    if "decision" not in open_problem.kinds:
        return open_problem
    left = open_problem.relevant([] if targets is None else targets)
    waiting = next((p for p in (pieces if targets is None else left) if isinstance(p, DecisionNode)), None)
    if waiting is not None:
        raise undecided(waiting.variable.name)
    return open_problem.bare(cast("Iterable[str]", targets))


def set_decision(node: DecisionNode, chosen: object) -> Conditional:
    """Return a decision that is made, whatever is seen."""
    return node.fixed_at(chosen)
