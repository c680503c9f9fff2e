"""Problems whose wide noisy-or, noisy-max and gates are chains of small conditionals, so that engines of tables answer.

An auxiliary variable holds what the first parents have produced (`causal_chains`); summed out, the chain is the
conditional. Given the parents the auxiliary variables of a gate are certain, so there maximising is as good as summing.
"""

from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import NamedTuple

from markovia.factors.local_models.local_model import CausalIndependence
from markovia.factors.local_models.logical import DeterministicConditional
from markovia.factors.local_models.noisy import NoisyMaxConditional
from markovia.factors.tables.conditional import ConditionalTable
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.inference.flat_graphs.causal_chains import function_steps, noisy_steps
from markovia.inference.problem import Piece, Pieces, Problem

WIDE = 2**16
"""Entries of a table above which a chain is worth its auxiliary variables."""
NATIVE = frozenset({"loopy-bp", "likelihood-weighting", "forward", "rejection", "sir", "importance"})
"""Engines that need no table of a conditional."""

PLAIN = {Factor, ConditionalTable}
"""Pieces that are tables already."""


class _Unfolded(NamedTuple):
    pieces: Pieces
    variables: dict[str, Variable]
    unfolded: Pieces
    hidden: tuple[str, ...]
    certain: bool


def unfolded(problem: Problem, engine: str) -> Problem:
    """Return the problem with wide conditionals as chains; itself where it has none, or the engine needs no tables.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> for i in range(30):
    ...     _ = bn.add(f"cause{i}", p=[0.9, 0.1])
    >>> _ = bn.add("effect", mk.local.NoisyOr({f"cause{i}": 0.5 for i in range(30)}, leak=0.01))
    >>> p = bn.query("cause0", given={"effect": True})
    >>> p.info.exact, round(p[1], 4)
    (True, 0.1128)
    """
    if problem.held.types <= PLAIN or engine in NATIVE or not any(map(_is_wide, problem.pieces)):
        return problem
    memory = {} if problem.memory is None else problem.memory
    kept: _Unfolded | None = memory.get("unfolded")
    if kept is None or not kept.pieces.same(problem.pieces):
        kept = memory["unfolded"] = _unfold(problem)
        memory["unfolded memory"] = {}
    return replace(
        problem,
        variables=kept.variables,
        pieces=kept.unfolded,
        memory=memory["unfolded memory"],
        hidden=kept.hidden,
        hidden_certain=kept.certain,
        whole=problem,
    )


def _is_wide(piece: Piece) -> bool:
    return (
        isinstance(piece, NoisyMaxConditional | DeterministicConditional)
        and len(piece.parents) > 1
        and prod([len(p) for p in piece.parents]) * len(piece.variable) > WIDE
    )


def _unfold(problem: Problem) -> _Unfolded:
    variables = dict(problem.variables)
    found: list[Piece] = []
    certain = True
    for piece in problem.pieces:
        chain = _chain(piece, variables) if _is_wide(piece) else None
        certain = certain and (chain is None or isinstance(piece, DeterministicConditional))
        found.extend([piece] if chain is None else chain)
    hidden = tuple(n for n in variables if n not in problem.variables)
    return _Unfolded(problem.held, variables, Pieces(found), hidden, certain)


def _chain(piece: Piece, variables: dict[str, Variable]) -> list[Piece] | None:
    """Return the conditionals of the chain, its auxiliary variables added to the variables; None where it is too long."""
    assert isinstance(piece, CausalIndependence)
    parts = list(piece.contributions)
    if isinstance(piece, NoisyMaxConditional):
        steps = noisy_steps(piece, piece.start, parts)
    else:
        assert isinstance(piece, DeterministicConditional)
        found = function_steps(piece, piece.start, parts, None)
        if found is None:
            return None
        steps = found
    after: list[Variable] = []
    for i, table in enumerate(steps[:-1]):
        name = f"{piece.variable.name} after {i + 1}"
        while name in variables:
            name += "'"
        after.append(Variable(name, table.shape[-1]))
        variables[name] = after[-1]
    after.append(piece.variable)
    first = ConditionalTable(after[0], (piece.parents[0],), steps[0])
    rest = zip(pairwise(after), piece.parents[1:], steps[1:], strict=True)
    return [first, *(ConditionalTable(new, (old, parent), table) for (old, new), parent, table in rest)]
