"""Noisy-or, noisy-max and gates with many parents as chains of small tables.

The parents' effects are combined one after the other: an auxiliary variable holds what the first i parents have
produced, and one table over (auxiliary before, parent, auxiliary after) takes in the next. Summing the auxiliary
variables out gives the conditional back, and message passing on a chain is exact, so its fixed points and its Bethe log
partition function are those of the whole table, at a cost linear in the number of parents instead of exponential.

For a function of the parents (gates, counts, sums) partial results that can no longer lead to different outcomes share
a state, as in the minimisation of automata: two states for and, or and exclusive or, k + 1 for "at least k".

A noisy-max observed at its lowest state is a product of one table a parent.
References: Heckerman and Breese (1996); Diez and Galan (2003).
"""

from collections.abc import Callable, Mapping
from math import prod

import numpy as np

from markovia.factors.local_models.local_model import CausalIndependence
from markovia.factors.local_models.logical import DeterministicConditional
from markovia.factors.local_models.noisy import NoisyMaxConditional
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.runtime.array_types import Array, Ints

MAX_PARTIAL = 2**16
MAX_CHAIN = 2**27


def causal_chain(
    piece: CausalIndependence, fixed: Mapping[str, int], fresh: Callable[[int], Variable], maximise: bool
) -> list[Factor] | None:
    """Return a conditional under hard findings as small factors; None where its table does as well or must do.

    Parameters
    ----------
    piece
        The conditional.
    fixed
        State codes of observed variables.
    fresh
        Makes an auxiliary variable with a number of states.
    maximise
        Whether messages maximise: then auxiliary variables must be functions of the parents.
    """
    start = piece.start
    parents, contributions = [], []
    for parent, contribution in zip(piece.parents, piece.contributions, strict=True):
        if parent.name in fixed:
            start = piece.combine(start, contribution[fixed[parent.name]])
        else:
            parents.append(parent)
            contributions.append(contribution)
    seen = fixed.get(piece.variable.name)
    if len(parents) < 2:
        return None
    dense = prod(len(p) for p in parents) * (len(piece.variable) if seen is None else 1)
    if isinstance(piece, NoisyMaxConditional):
        lowest = len(piece.variable) - 1 if piece._mirrored else 0
        if seen == lowest and len(piece.variable) > 1:
            tables = [Factor.of((p,), np.exp(c[:, 0])) for p, c in zip(parents, contributions, strict=True)]
            return [*tables, Factor.scalar(float(np.exp(start[0])))]
        if maximise or 2 * sum(len(p) for p in parents) * len(piece.variable) ** 2 >= dense:
            return None
        steps = noisy_steps(piece, start, contributions)
    elif isinstance(piece, DeterministicConditional):
        found = function_steps(piece, start, contributions, seen)
        if found is None or 2 * sum(t.size for t in found) >= dense:
            return None
        steps = found
    else:
        return None
    if seen is not None:
        steps[-1] = np.ascontiguousarray(steps[-1][..., seen])
    return _linked(parents, steps, piece.variable if seen is None else None, fresh)


def _linked(
    parents: list[Variable], steps: list[Array], child: Variable | None, fresh: Callable[[int], Variable]
) -> list[Factor]:
    """Return the steps as factors over parents, auxiliary variables and the child."""
    factors = []
    before: tuple[Variable, ...] = ()
    for i, (parent, table) in enumerate(zip(parents, steps, strict=True)):
        if i < len(parents) - 1:
            after: tuple[Variable, ...] = (fresh(table.shape[-1]),)
        else:
            after = () if child is None else (child,)
        factors.append(Factor.of((*before, parent, *after), table))
        before = after
    return factors


def noisy_steps(piece: NoisyMaxConditional, start: Array, contributions: list[Array]) -> list[Array]:
    """Return P(largest effect so far | largest before, parent), one table a parent; the leak is in the first."""

    def effects(combined: Array) -> Array:
        rows: Array = np.exp(piece._finish(combined))
        return rows[..., ::-1] if piece._mirrored else rows

    states = len(piece.variable)
    steps = []
    for contribution in contributions:
        rows = effects(contribution)
        table = np.zeros((states, len(rows), states))
        at_most = rows.cumsum(axis=-1)
        for y in range(states):
            table[y, :, y] = at_most[:, y]
            table[y, :, y + 1 :] = rows[:, y + 1 :]
        steps.append(table)
    steps[0] = np.tensordot(effects(start), steps[0], axes=(0, 0))
    if piece._mirrored:
        steps[-1] = np.ascontiguousarray(steps[-1][..., ::-1])
    return steps


def function_steps(
    piece: DeterministicConditional, start: Ints, contributions: list[Ints], seen: int | None
) -> list[Array] | None:
    """Return tables of zeros and ones that carry the partial result along, with as few states as will do."""
    reached = [np.asarray(start).reshape(-1)]
    for contribution in contributions:
        reached.append(np.unique(piece.combine.outer(reached[-1], contribution[:, 0])))
        if len(reached[-1]) > MAX_PARTIAL:
            return None
    codes = piece.codes[np.searchsorted(piece.outcomes, reached[-1])]
    classes = (
        codes if seen is None else np.where(codes == seen, seen, (seen + 1) % max(len(piece.variable), 2))
    )
    width = len(piece.variable)
    steps: list[Array] = []
    entries = 0
    for i in range(len(contributions) - 1, -1, -1):
        results = piece.combine.outer(reached[i], contributions[i][:, 0])
        moves = classes[np.searchsorted(reached[i + 1], results)]
        rows, classes = np.unique(moves, axis=0, return_inverse=True)
        classes = classes.reshape(-1)
        entries += rows.size * width
        if entries > MAX_CHAIN:
            return None
        table = np.zeros((*rows.shape, width))
        np.put_along_axis(table, rows[..., None], 1.0, axis=-1)
        steps.append(table)
        width = len(rows)
    steps.reverse()
    steps[0] = np.ascontiguousarray(steps[0][0])
    return steps
