"""A decision problem on names: probabilities, choices and amounts, read off the pieces of a network.

Utilities of utilities are folded here: a form that is linear in its attributes becomes their weighted sum, any other one a
table over all that the attributes depend on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument, InvalidEvidence, TooLarge, UnsupportedModel
from markovia.factors.decisions.decision import DecisionNode
from markovia.factors.decisions.utility import UtilityNode, called
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import MAX_TABLE_ENTRIES, Conditional, ConditionalTable
from markovia.factors.tables.evidence import Findings
from markovia.factors.tables.variable import Variable
from markovia.graphs.kinds.directed import DAG
from markovia.inference.problem import Piece
from markovia.runtime.array_types import Array

SAME_AMOUNT = 1e-12
"""How far amounts may differ, relative to the largest, and still count as the same."""


@dataclass(frozen=True)
class Amount:
    """What the states of some variables are worth to one attribute."""

    name: str
    scope: tuple[Variable, ...]
    table: Array


class Restriction(NamedTuple):
    """The observations that what may be chosen depends on, and truth values with axes `(*observations, states)`."""

    seen: tuple[str, ...]
    permitted: NDArray[np.bool_]


@dataclass(frozen=True)
class Diagram:
    """Chance nodes, open decisions and amounts that add up.

    Attributes
    ----------
    chance
        The conditional distributions, by child; decisions whose state is given are certain.
    decisions
        The open decisions, by name.
    amounts
        The utilities after folding, one an attribute.
    findings
        What is known.
    restrictions
        What may be chosen, by decision: the observations that this depends on, and truth values with axes
        `(*observations, states)`.
    """

    chance: Mapping[str, Conditional]
    decisions: Mapping[str, DecisionNode]
    amounts: Sequence[Amount]
    findings: Findings = field(default_factory=dict)
    restrictions: Mapping[str, "Restriction"] = field(default_factory=dict)

    @property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """The parents of every node, amounts as leaves."""
        nodes = {**self.chance, **self.decisions}
        found = {n: node.parent_names for n, node in nodes.items()}
        for k, amount in enumerate(self.amounts):
            found[leaf(k)] = tuple(v.name for v in amount.scope)
        return found

    @property
    def leaves(self) -> list[str]:
        """The names of the amounts as nodes of the graph."""
        return [leaf(k) for k in range(len(self.amounts))]

    @property
    def variables(self) -> dict[str, Variable]:
        """All variables with states, by name."""
        return {n: node.variable for n, node in {**self.chance, **self.decisions}.items()}


def leaf(k: int) -> str:
    """Return the name of an amount as a node: one that no user gives."""
    return f"\0worth {k}"


def read_diagram(pieces: Sequence[Piece], findings: Findings) -> Diagram:
    """Return the decision problem that the pieces of a network state.

    Raises
    ------
    InvalidArgument
        If there is no utility.
    InvalidEvidence
        For evidence that descends from an open decision.
    UnsupportedModel
        For nodes that are no tables.
    """
    chance: dict[str, Conditional] = {}
    decisions: dict[str, DecisionNode] = {}
    utilities: dict[str, UtilityNode] = {}
    for piece in pieces:
        if isinstance(piece, UtilityNode):
            utilities[piece.variable.name] = piece
        elif isinstance(piece, DecisionNode):
            decisions[piece.variable.name] = piece
        elif isinstance(piece, Conditional) and piece.kind == "table":
            chance[piece.variable.name] = piece
        else:
            raise UnsupportedModel(
                f"{piece.names[-1]!r} is a number; diagrams of tables, and of linear Gaussians with quadratic utilities, "
                "are solved"
            )
    if not utilities:
        raise InvalidArgument("there is no utility to decide by; add(name, mk.Utility(...))")
    for name in [n for n in decisions if n in findings]:  # to give what is decided is to decide it
        finding = findings[name]
        if finding.code is None:
            raise InvalidEvidence(
                f"{name!r} is a decision: give the state that is chosen, not {finding.said!r}"
            )
        chance[name] = settled_decision(decisions.pop(name), finding.code)
    _refuse_below(chance, decisions, findings)
    restrictions = {d: _restriction(node) for d, node in decisions.items() if node.allowed is not None}
    return Diagram(chance, decisions, folded(utilities), findings, restrictions)


def _restriction(node: DecisionNode) -> Restriction:
    """Return what may be chosen, over the observations that it depends on alone."""
    assert node.allowed is not None
    table, names = node.allowed, list(node.parent_names)
    for axis in reversed(range(len(names))):
        first = table.take([0], axis=axis)
        if (table == first).all():
            table = first.squeeze(axis=axis)
            del names[axis]
    return Restriction(tuple(names), table)


def settled_decision(node: DecisionNode, code: int) -> ConditionalTable:
    """Return a decision that is made: one state for certain, whatever is seen."""
    row = np.zeros(len(node.variable))
    row[code] = 1.0
    return ConditionalTable.of(node.variable, (), row)


def _refuse_below(
    chance: Mapping[str, Conditional], decisions: Mapping[str, DecisionNode], findings: Findings
) -> None:
    """Refuse evidence on what an open decision would still change."""
    if not findings or not decisions:
        return
    dag = DAG.from_parents({n: node.parent_names for n, node in {**chance, **decisions}.items()})
    for name in decisions:
        if known := sorted(dag.descendants([name]) & findings.keys()):
            raise InvalidEvidence(
                f"{known[0]!r} descends from {name!r}, which is not decided yet, so it cannot be known; give {name!r} too, "
                "or leave it out"
            )


def folded(utilities: Mapping[str, UtilityNode]) -> list[Amount]:
    """Return amounts that add up, with utilities of utilities worked in."""
    used = {p for node in utilities.values() if node.combines for p in node.parent_names}
    found: list[Amount] = []
    for name in utilities:
        if name not in used:
            found += _folded_node(name, utilities)
    return found


def _folded_node(name: str, utilities: Mapping[str, UtilityNode]) -> list[Amount]:
    """Return one utility, which no other one weighs, as amounts that add up."""
    node = utilities[name]
    if node.worth is not None:
        return [Amount(name, node.parents, node.worth)]
    if not node.combines:
        number = next(p.name for p in node.parents if isinstance(p, Quantity))
        raise UnsupportedModel(f"the utility {name!r} depends on {number!r}, a number, and has no table")
    parts = [_folded_node(p, utilities) for p in node.parent_names]
    attributes = [
        part[0] if len(part) == 1 else _summed(p, part)
        for p, part in zip(node.parent_names, parts, strict=True)
    ]
    weights = _linear_weights(node, attributes)
    if weights is not None:
        constant, slopes = weights
        found = [Amount(a.name, a.scope, s * a.table) for a, s in zip(attributes, slopes, strict=True)]
        return [*found, *([Amount(name, (), np.asarray(constant))] if constant else [])]
    scope = tuple(dict.fromkeys(v for a in attributes for v in a.scope))
    entries = prod([len(v) for v in scope])
    if entries > MAX_TABLE_ENTRIES // 16:
        raise TooLarge(
            f"the utility {name!r} is not linear and depends on {len(scope)} variables with {entries:,} combinations; weigh "
            "fewer attributes at a time, or make it linear",
            bytes=8.0 * entries,
        )
    views = [_spread(a, scope) for a in attributes]
    amounts = np.vectorize(
        lambda *said: float(
            called(node.form, node.parent_names, dict(zip(node.parent_names, said, strict=True)))
        ),
        otypes=[float],
    )
    table = np.asarray(amounts(*np.broadcast_arrays(*views)))
    if not np.isfinite(table).all():
        raise InvalidArgument(
            f"the utility {name!r} is not finite for all amounts of {', '.join(node.parent_names)}"
        )
    return [Amount(name, scope, table)]


def _summed(name: str, parts: Sequence[Amount]) -> Amount:
    scope = tuple(dict.fromkeys(v for a in parts for v in a.scope))
    return Amount(name, scope, np.asarray(sum(_spread(a, scope) for a in parts)))


def _spread(amount: Amount, scope: Sequence[Variable]) -> Array:
    """View an amount with the axes of a larger scope."""
    order = [amount.scope.index(v) for v in scope if v in amount.scope]
    shape = [len(v) if v in amount.scope else 1 for v in scope]
    return np.broadcast_to(amount.table.transpose(order).reshape(shape), [len(v) for v in scope])


def _linear_weights(node: UtilityNode, attributes: Sequence[Amount]) -> tuple[float, list[float]] | None:
    """Return constant and slopes if the form is linear on all amounts that there are, else None."""
    levels = [np.unique(a.table) for a in attributes]
    if prod([len(v) for v in levels]) > 100_000:
        return None
    rows = np.array(list(product(*levels)))
    names = node.parent_names
    said = np.array([float(called(node.form, names, dict(zip(names, row, strict=True)))) for row in rows])
    design = np.column_stack([np.ones(len(rows)), rows / np.maximum(np.abs(rows).max(axis=0), 1e-300)])
    weights, *_ = np.linalg.lstsq(design, said, rcond=None)
    scale = float(np.abs(said).max(initial=0.0))
    if not np.isfinite(scale) or np.abs(design @ weights - said).max() > SAME_AMOUNT * scale * 10:
        return None
    slopes = weights[1:] / np.maximum(np.abs(rows).max(axis=0), 1e-300)
    return float(weights[0]), [float(s) for s in slopes]
