"""Dynamic networks of states whose decisions see something of them, read as partially observed processes.

A step's decision comes last: the state of a step is there, something is heard of it (which may depend on the decision
of the step before), the decision is taken, and the utilities of the step are earned. So what is heard in the first
step comes before the first decision.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.factors.decisions.decision import DecisionNode
from markovia.factors.quantities.quantity import Quantity
from markovia.inference.decisions.beliefs.partially_observed import PartiallyObserved
from markovia.inference.decisions.processes.decision_process import DecisionProcess, require_room
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.dynamic.decided_state import DecidedState, decided_state
from markovia.runtime.array_types import Array, Flags

if TYPE_CHECKING:
    from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork

MOST_AXES = 32
"""Axes that an array may have."""


def partially_observed_of(process: "DynamicBayesianNetwork") -> PartiallyObserved:
    """Return the partially observed process that a dynamic network with decisions describes.

    States of several variables are tuples; so are the choices of several decisions.

    Raises
    ------
    UnsupportedModel
        For a process with numbers, without decisions, or whose parts depend on each other in another way.
    TooLarge
        Where its tables would not fit into memory.
    """
    parts = decided_state(process.ready())
    names = (*parts.state, *parts.between, *(d.variable.name for d in parts.decisions))
    if number := next((n for n in names if isinstance(parts.later.variable(n), Quantity)), None):
        raise UnsupportedModel(f"{number!r} is a number; only states are planned for by beliefs")
    actions = [d.variable.name for d in parts.decisions]
    sizes = {n: len(parts.later.variable(n)) for n in (*parts.state, *parts.heard, *actions)}
    n, k = prod(sizes[s] for s in parts.state), prod(sizes[a] for a in actions)
    require_room(
        float(n) * n * k, f"transitions between {n:,} states by {k:,} choices", "leave variables out"
    )
    before = [f"{s}@-1" for s in parts.state]
    done = [f"{a}@-1" for a in actions]
    moved = _product(parts.later, parts.state, (*done, *before), parts.state, sizes)
    told = _heard(parts, parts.later, done, sizes).reshape(k, n, -1)
    worth = np.zeros([*(sizes[s] for s in parts.state), *(sizes[a] for a in actions)])
    for node in parts.utilities:
        axes = [*parts.state, *actions]
        assert node.worth is not None
        worth = worth + _placed(node.worth, node.parent_names, axes, sizes)
    flat = DecisionProcess.from_tables(
        moved.reshape(k, n, n), worth.reshape(n, k), allowed=_allowed(parts.decisions, n),
        initial=_product(parts.first, parts.state, (), parts.state, sizes).reshape(-1),
        states=_names(parts.later, parts.state), actions=_names(parts.later, actions),
    )  # fmt: skip
    heard = {name: tuple(parts.later.variable(name).states) for name in parts.heard} or {
        "heard": ("nothing",)
    }
    first = _heard(parts, parts.first, [], sizes).reshape(n, -1)
    return PartiallyObserved(flat, told, heard, first if parts.heard else None)


def _heard(
    parts: DecidedState, network: BayesianNetwork, done: Sequence[str], sizes: Mapping[str, int]
) -> Array:
    """Return the law of what is heard given the choices before and the state, which may be heard itself."""
    copies = {n: f"{n} heard" for n in parts.heard if n in parts.state}
    wanted = [copies.get(n, n) for n in parts.heard]
    all_sizes = {**sizes, **{copy: sizes[n] for n, copy in copies.items()}}
    same = [(np.eye(sizes[n]), [n, copy]) for n, copy in copies.items()]
    return _product(network, parts.between, (*done, *parts.state), wanted, all_sizes, same)


def _product(
    network: BayesianNetwork,
    names: Sequence[str],
    given: Sequence[str],
    wanted: Sequence[str],
    sizes: Mapping[str, int],
    more: Sequence[tuple[Array, list[str]]] = (),
) -> Array:
    """Return the product of some tables with axes `(*given, *wanted)`; all other variables are summed out."""
    pieces = [(np.asarray(network[n].values), [*network[n].parent_names, n]) for n in names]
    pieces += [*more]
    axes = [*given, *wanted]
    for name in axes:  # an axis that no table has is the same everywhere
        if not any(name in own for _, own in pieces):
            pieces.append((np.ones(sizes[_base(name)]), [name]))
    place = {n: i for i, n in enumerate(dict.fromkeys([n for _, own in pieces for n in own]))}
    if len(place) > MOST_AXES:
        raise UnsupportedModel(
            f"a step has {len(place)} variables that depend on each other, more than {MOST_AXES}"
        )
    arguments: list[Any] = []
    for table, own in pieces:
        arguments += [table, [place[n] for n in own]]
    return np.asarray(np.einsum(*arguments, [place[n] for n in axes], optimize=True))


def _placed(table: Array, names: Sequence[str], axes: Sequence[str], sizes: Mapping[str, int]) -> Array:
    """Return a table with one axis for each of some names, of size 1 where it has none."""
    order = sorted(range(len(names)), key=lambda i: axes.index(names[i]))
    return table.transpose(order).reshape([sizes[a] if a in names else 1 for a in axes])


def _allowed(decisions: Sequence[DecisionNode], n: int) -> Flags | None:
    """Return which choices are allowed; the same ones whatever is seen."""
    found = np.ones((), dtype=bool)
    for node in decisions:
        own = np.ones(len(node.variable), dtype=bool)
        if node.allowed is not None:
            rows = node.allowed.reshape(-1, len(node.variable))
            if not (rows == rows[0]).all():
                raise UnsupportedModel(
                    f"what {node.variable.name!r} may be depends on what it sees, which beliefs do not tell; let a utility "
                    "say what is no good"
                )
            own = rows[0]
        found = np.logical_and.outer(found, own)
    return None if found.all() else np.tile(found.reshape(-1), (n, 1))


def _names(network: BayesianNetwork, names: Sequence[str]) -> list[Any]:
    """Return the states of a variable, or tuples of those of several."""
    states = [network.variable(n).states for n in names]
    return list(states[0]) if len(states) == 1 else list(product(*states))


def _base(name: str) -> str:
    return name.removesuffix("@-1")
