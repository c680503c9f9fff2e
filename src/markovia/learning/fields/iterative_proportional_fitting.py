"""Iterative proportional fitting: scale tables in turn until the model has the data's margins.

Method: multiply a table by (data margin / model margin), table after table (Deming and Stephan 1940). Every step is an exact
maximum over that table, so the likelihood never falls, and the limit is the maximum likelihood model with free tables
(Csiszár 1975; Darroch and Ratcliff 1972). Entries that no row shows become zero, as they should; zeros at the start stay.
Where the tables are the cliques of a chordal graph (*decomposable* models), the answer is written down at once: the product
of clique margins over separator margins (Lauritzen 1996, section 4.4).
Cost of a sweep: one exact inference a table; a small model is kept as one joint table instead. Use it for free tables
without penalties; gradients are faster where there are many tables.
"""

from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from markovia.learning.fields.exact_expectations import ExactExpectations, exact_expectations
from markovia.learning.fields.field_layout import FieldLayout
from markovia.runtime.array_types import Array
from markovia.runtime.progress import progress_bar

JOINT = 1 << 20
"""Entries of a joint table up to which it is scaled itself."""
MOST_PAIRS = 5_000_000
"""Pairs of tables that share a variable up to which a perfect order is looked for."""


@dataclass(frozen=True)
class FittedMargins:
    """Log tables whose margins are those of the data.

    Attributes
    ----------
    log_tables
        All cells; minus infinity for zeros.
    sweeps, error
        Sweeps over all tables, and the largest difference of a margin after the last.
    history
        The mean log likelihood of a row before the first sweep and after each.
    decomposable
        Whether the answer was written down at once.
    """

    log_tables: Array
    sweeps: int
    error: float
    history: list[float]
    decomposable: bool


def proportional_fitting(
    layout: FieldLayout,
    observed: Array,
    *,
    max_iterations: int,
    tolerance: float,
    progress: bool | None = None,
) -> FittedMargins:
    """Fit free tables to margins of the data.

    Parameters
    ----------
    layout
        The model with free tables; minus infinity in its base are zeros.
    observed
        The share of the rows in each cell.
    max_iterations, tolerance
        Sweeps at most; stop when no margin differs by more than the tolerance.
    """
    if not np.isneginf(layout.base).any():
        found = decomposable_tables(layout, observed)
        if found is not None:
            with np.errstate(invalid="ignore"):
                value = float(np.nansum(np.where(observed > 0, found * observed, 0.0)))
            return FittedMargins(found, 1, 0.0, [value], True)
    if prod(layout.arrays.cards.tolist()) <= JOINT and len(layout.variables) <= 60:
        return _on_joint(layout, observed, max_iterations, tolerance, progress)
    return _on_tree(layout, observed, max_iterations, tolerance, progress)


def decomposable_tables(layout: FieldLayout, observed: Array) -> Array | None:
    """Return clique margins over separator margins as log tables; None unless the tables are cliques of a chordal graph."""
    order = perfect_order(layout)
    if order is None:
        return None
    found = np.zeros(layout.n_cells)
    covered: set[int] = set()
    with np.errstate(divide="ignore", invalid="ignore"):
        for step in order:
            scope = layout.scopes[step.table]
            low, high = layout.n_single + layout.arrays.table_ptr[step.table : step.table + 2]
            margin = observed[low:high].reshape(layout.arrays.cards[list(scope)].tolist())
            drop = tuple(a for a, i in enumerate(scope) if i not in step.separator)
            below = margin.sum(axis=drop, keepdims=True) if step.separator else 1.0
            found[low:high] = np.where(margin > 0, np.log(margin) - np.log(below), -np.inf).ravel()
            covered.update(scope)
        for i in range(len(layout.variables)):
            if i not in covered:
                low, high = layout.arrays.starts[i], layout.arrays.starts[i + 1]
                free = _has_weights(layout, i)
                found[low:high] = np.log(observed[low:high]) if free else -np.log(high - low)
    return found


class MarginStep(NamedTuple):
    """A table in a perfect order, and the variables it shares with the tables before it."""

    table: int
    separator: frozenset[int]


def perfect_order(layout: FieldLayout) -> list[MarginStep] | None:
    """Return the tables so that each meets those before it inside one of them; None if there is no such order.

    The order comes from a maximum spanning forest of the tables by shared variables: it has the running intersection
    property if and only if some order has. Where millions of pairs of tables meet it is not looked for.
    """
    scopes = [frozenset(s) for s in layout.scopes]
    holders: dict[int, list[int]] = {}
    for f, scope in enumerate(scopes):
        for i in scope:
            holders.setdefault(i, []).append(f)
    shared: dict[tuple[int, int], int] = {}
    pairs = all(len(s) == 2 for s in scopes)
    if not pairs and sum(len(tables) ** 2 for tables in holders.values()) > MOST_PAIRS:
        return None
    for tables in holders.values():
        for k, f in enumerate(
            tables[:1] if pairs else tables
        ):  # all links of pairs weigh one, so a star will do
            for g in tables[k + 1 :]:
                shared[f, g] = shared.get((f, g), 0) + 1
    root = list(range(len(scopes)))

    def top(f: int) -> int:
        while root[f] != f:
            root[f] = root[root[f]]
            f = root[f]
        return f

    links: list[list[int]] = [[] for _ in scopes]
    weight = 0
    for f, g in sorted(shared, key=lambda pair: -shared[pair]):
        a, b = top(f), top(g)
        if a != b:
            root[a] = b
            links[f].append(g)
            links[g].append(f)
            weight += shared[f, g]
    if weight != sum(map(len, scopes)) - len(holders):
        return None
    found: list[MarginStep] = []
    seen = [False] * len(scopes)
    for first in range(len(scopes)):
        if seen[first]:
            continue
        queue = [(first, -1)]
        seen[first] = True
        for f, parent in queue:
            found.append(MarginStep(f, scopes[f] & scopes[parent] if parent >= 0 else frozenset()))
            for g in links[f]:
                if not seen[g]:
                    seen[g] = True
                    queue.append((g, f))
    return found


def _targets(layout: FieldLayout) -> list[int]:
    """Return the tables to scale: those of two or more variables, and single variables in none of them."""
    inside = set(layout.arrays.scope.tolist())
    n = len(layout.variables)
    alone = [i for i in range(n) if i not in inside and _has_weights(layout, i)]
    return alone + [n + f for f in range(layout.n_tables)]


def _has_weights(layout: FieldLayout, i: int) -> bool:
    """Say whether a variable has a table of its own."""
    return bool(
        layout.design.indptr[layout.arrays.starts[i + 1]] > layout.design.indptr[layout.arrays.starts[i]]
    )


def _ratio(wanted: Array, have: Array) -> Array:
    return np.divide(wanted, have, out=np.zeros_like(have), where=have > 0)


def _value(layout: FieldLayout, observed: Array, log_tables: Array, log_z: float) -> float:
    used = observed > 0
    return float(observed[used] @ log_tables[used]) - log_z


def _on_joint(
    layout: FieldLayout, observed: Array, max_iterations: int, tolerance: float, progress: bool | None
) -> FittedMargins:
    """Scale one joint table; the tables' own factors are kept in logs beside it."""
    shape = layout.arrays.cards.tolist()
    n = len(shape)
    logs = np.where(np.isneginf(layout.base), -np.inf, 0.0)
    joint = np.ones(shape)
    places: dict[int, tuple[int, int, tuple[int, ...], tuple[int, ...], list[int]]] = {}
    scopes: list[tuple[int, ...]] = [(i,) for i in range(n)]
    for t, scope in enumerate(scopes + layout.scopes):
        low, high = int(layout.cell_ptr[t]), int(layout.cell_ptr[t + 1])
        drop = tuple(a for a in range(n) if a not in scope)
        kept = sorted(scope)
        wide = [shape[a] if a in scope else 1 for a in range(n)]
        places[t] = (low, high, tuple(kept.index(i) for i in scope), drop, wide)
        joint *= _laid(np.exp(logs[low:high]), scope, kept, shape, wide)
    log_z = float(np.log(joint.sum()))  # stays: every scaling leaves the total as it is
    joint /= joint.sum()
    history = [_value(layout, observed, logs, log_z)]
    error, done = np.inf, 0
    with progress_bar(progress, max_iterations, unit="sweep") as advance:
        try:
            while done < max_iterations and error > tolerance:
                error = 0.0
                for t in _targets(layout):
                    low, high, turn, drop, wide = places[t]
                    have = joint.sum(axis=drop).transpose(turn).ravel()
                    error = max(error, float(np.abs(have - observed[low:high]).max(initial=0.0)))
                    ratio = _ratio(observed[low:high], have)
                    with np.errstate(divide="ignore"):
                        logs[low:high] += np.log(ratio)
                    scope = (scopes + layout.scopes)[t]
                    joint *= _laid(ratio, scope, sorted(scope), shape, wide)
                done += 1
                history.append(_value(layout, observed, logs, log_z))
                advance(1)
        except KeyboardInterrupt:
            if not done:
                raise
    return FittedMargins(logs, done, error, history, False)


def _laid(flat: Array, scope: tuple[int, ...], kept: list[int], shape: list[int], wide: list[int]) -> Array:
    """View a table's entries so that they multiply along its axes of the joint table."""
    table = flat.reshape([shape[i] for i in scope])
    return table.transpose([scope.index(i) for i in kept]).reshape(wide)


def _on_tree(
    layout: FieldLayout, observed: Array, max_iterations: int, tolerance: float, progress: bool | None
) -> FittedMargins:
    """Scale tables by marginals from a junction tree that is compiled once."""
    expectations: ExactExpectations = exact_expectations(layout)
    logs = np.where(np.isneginf(layout.base), -np.inf, 0.0)
    log_z, marginals = expectations(logs)
    history = [_value(layout, observed, logs, log_z)]
    error, done = np.inf, 0
    with progress_bar(progress, max_iterations, unit="sweep") as advance:
        try:
            while done < max_iterations and error > tolerance:
                error = 0.0
                for t in _targets(layout):
                    low, high = layout.cell_ptr[t], layout.cell_ptr[t + 1]
                    have = marginals[low:high]
                    gap = float(np.abs(have - observed[low:high]).max(initial=0.0))
                    error = max(error, gap)
                    if gap == 0.0:
                        continue
                    with np.errstate(divide="ignore"):
                        logs[low:high] += np.log(_ratio(observed[low:high], have))
                    log_z, marginals = expectations(logs)
                done += 1
                history.append(_value(layout, observed, logs, log_z))
                advance(1)
        except KeyboardInterrupt:
            if not done:
                raise
    return FittedMargins(logs, done, error, history, False)
