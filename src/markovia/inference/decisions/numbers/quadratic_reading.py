"""From the pieces of a network to a linear-quadratic diagram: affine functions of noises and choices, and their total."""

# ruff: noqa: N806 (letters of the literature)

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from markovia.errors import InvalidArgument, InvalidEvidence, UnsupportedModel
from markovia.factors.decisions.decision import DecisionNode
from markovia.factors.decisions.quadratic import Quadratic
from markovia.factors.decisions.utility import UtilityNode
from markovia.factors.gaussian.linear_gaussian import GaussianConditional
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.evidence import Findings
from markovia.graphs.kinds.directed import DAG
from markovia.inference.decisions.diagrams.diagram import leaf
from markovia.inference.decisions.numbers.linear_quadratic_diagram import LinearQuadraticDiagram
from markovia.inference.problem import Piece
from markovia.runtime.array_types import Array


def is_linear_quadratic(pieces: Sequence[Piece]) -> bool:
    """Say whether all nodes are linear Gaussian without states, decisions numbers, and utilities quadratic."""
    return not any(_other_than_linear(piece) for piece in pieces)


def _other_than_linear(piece: Piece) -> bool:
    if isinstance(piece, UtilityNode):
        return not isinstance(piece.form, Quadratic) and piece.parents != ()
    if isinstance(piece, DecisionNode):
        return not isinstance(piece.variable, Quantity)
    return not isinstance(piece, GaussianConditional) or bool(piece.discrete)


def read_linear_quadratic(pieces: Sequence[Piece], findings: Findings) -> LinearQuadraticDiagram:
    """Return the linear-quadratic problem that pieces state, for which `is_linear_quadratic` holds.

    Raises
    ------
    InvalidEvidence
        For evidence on what depends on an open decision, or that is not a number.
    InvalidArgument
        If there is no utility.
    """
    nodes: dict[str, Conditional] = {p.variable.name: p for p in pieces if isinstance(p, Conditional)}
    utilities = [p for p in nodes.values() if isinstance(p, UtilityNode)]
    if not utilities:
        raise InvalidArgument("there is no utility to decide by; add(name, mk.Utility(...))")
    numbers = {n: p for n, p in nodes.items() if not isinstance(p, UtilityNode)}
    decided = {
        n: _known_number(findings, n)
        for n, p in numbers.items()
        if isinstance(p, DecisionNode) and n in findings
    }
    decisions = [n for n, p in numbers.items() if isinstance(p, DecisionNode) and n not in decided]
    known = {n: _known_number(findings, n) for n in findings if n not in decided}
    parents = {n: () if n in decided else p.parent_names for n, p in numbers.items()}
    dag = DAG.from_parents(parents)
    for d in decisions:
        if below := sorted(dag.descendants([d]) & known.keys()):
            raise InvalidEvidence(
                f"{below[0]!r} descends from {d!r}, which is not decided yet, so it cannot be known; give {d!r} "
                "too, or leave it out"
            )
    noises = [n for n in numbers if n not in decisions and n not in decided]
    e, u = {n: k for k, n in enumerate(noises)}, {n: k for k, n in enumerate(decisions)}
    shift: dict[str, float] = {}
    noise_map: dict[str, Array] = {}
    control_map: dict[str, Array] = {}
    variances = np.zeros(len(noises))
    for n in dag.topological_order():
        M, N, s = np.zeros(len(noises)), np.zeros(len(decisions)), decided.get(n, 0.0)
        node = numbers[n]
        if n in u:
            N[u[n]] = 1.0
        elif isinstance(node, GaussianConditional):
            s, M[e[n]], variances[e[n]] = float(node.bias), 1.0, float(node.variance)
            for q, w in zip(node.continuous, node.weights.tolist(), strict=True):
                s, M, N = s + w * shift[q.name], M + w * noise_map[q.name], N + w * control_map[q.name]
        shift[n], noise_map[n], control_map[n] = s, M, N
    certain = np.diag((variances == 0.0).astype(np.float64))
    k, m = len(decisions), len(noises)
    leaves = {leaf(j): utility.parent_names for j, utility in enumerate(utilities)}
    empty = LinearQuadraticDiagram(
        {**parents, **leaves}, decisions, [*leaves], shift, noise_map, control_map, np.diag(variances), certain,
        np.zeros((k, k)), np.zeros((k, m)), np.zeros(k), np.zeros((m, m)), np.zeros(m), 0.0,
    )  # fmt: skip
    return _totalled(empty, utilities).informed(known)


def _totalled(diagram: LinearQuadraticDiagram, utilities: Sequence[UtilityNode]) -> LinearQuadraticDiagram:
    """Return a diagram with its utilities as one quadratic form of noises and choices."""
    A, B, a, C, c, constant = diagram.A, diagram.B, diagram.a, diagram.C, diagram.c, diagram.constant
    for utility in utilities:
        if not isinstance(utility.form, Quadratic):
            constant += float(utility.worth) if utility.worth is not None else 0.0
            continue
        names = utility.form.parent_names
        square, slope, free = utility.form.matrix(names)
        s, M, N = diagram.rows(names)
        pull = square @ s + slope / 2
        A, B, a = A + N.T @ square @ N, B + N.T @ square @ M, a + N.T @ pull
        C, c = C + M.T @ square @ M, c + M.T @ pull
        constant += float(s @ square @ s + slope @ s) + free
    return replace(diagram, A=A, B=B, a=a, C=C, c=c, constant=constant)


def _known_number(findings: Findings, name: str) -> float:
    value = findings[name].value
    if value is None or np.ndim(value) != 0:
        raise UnsupportedModel(
            f"what is known of {name!r} is one number where numbers are decided, not {findings[name].said!r}"
        )
    return float(value)
