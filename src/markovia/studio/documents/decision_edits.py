"""Edits of decisions and utilities: what a decision sees, and what the parents of a utility are worth, as axes come and go.

A new parent repeats what is there; one that goes leaves what is allowed whatever it is, and amounts averaged over it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from markovia.errors import InvalidTable, UnsupportedModel
from markovia.factors.decisions.decision import DecisionNode
from markovia.factors.decisions.utility import UtilityNode, Worth
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import Variable
from markovia.graphs.kinds.directed import DAG
from markovia.models.graphical.bayesian_network import BayesianNetwork

Acting = DecisionNode | UtilityNode


def acting(model: BayesianNetwork, name: str) -> Acting | None:
    """Return a decision or a utility; None for what is neither."""
    node = model[name] if model.has_table(name) else None
    return node if isinstance(node, Acting) else None


def put(model: BayesianNetwork, node: Acting) -> None:
    """Give a network another decision or utility in place of the one of that name; a cycle is refused."""
    DAG.from_parents(
        {**{n: model.parents(n) for n in model.variables}, node.variable.name: node.parent_names}
    )
    model.install({n: model.variable(n) for n in model.variables}, {node.variable.name: node})


def with_parent(node: Acting, parent: Variable) -> Acting:
    """Return a node with one parent more, on which nothing depends yet."""
    parents = (*node.parents, parent)
    name = node.variable.name
    if isinstance(parent, Worth):
        raise UnsupportedModel(f"{parent.name!r} is a utility; what weighs utilities is written in Python")
    if isinstance(node, UtilityNode):
        if node.worth is None or isinstance(parent, Quantity):
            raise UnsupportedModel(
                f"{name!r} would be worth a function of numbers or utilities, which is written in Python"
            )
        amounts = np.broadcast_to(node.worth[..., None], (*node.worth.shape, len(parent)))
        return UtilityNode(node.variable, parents, amounts)
    if node.allowed is None:
        return DecisionNode(node.variable, parents)
    if isinstance(parent, Quantity):
        raise UnsupportedModel(
            f"not everything is allowed for {name!r}, which cannot depend on {parent.name!r}, a number"
        )
    shape = (*node.allowed.shape[:-1], len(parent), node.allowed.shape[-1])
    return DecisionNode(node.variable, parents, np.broadcast_to(node.allowed[..., None, :], shape))


def without_parent(node: Acting, parent: str, weights: Any) -> Acting:
    """Return a node without a parent: amounts averaged with weights, and only what was allowed in each of its states."""
    axis = node.parent_names.index(parent)
    parents = (*node.parents[:axis], *node.parents[axis + 1 :])
    name = node.variable.name
    if isinstance(node, UtilityNode):
        if node.worth is None:
            raise UnsupportedModel(f"{name!r} is worth a function, which is written in Python")
        return UtilityNode(node.variable, parents, np.average(node.worth, axis=axis, weights=weights))
    if node.allowed is None:
        return DecisionNode(node.variable, parents)
    always = np.asarray(node.allowed.all(axis=axis))
    if not always.any(axis=-1).all():
        raise UnsupportedModel(
            f"nothing would be allowed for {name!r} whatever {parent!r} is; the edge stays"
        )
    return DecisionNode(node.variable, parents, None if always.all() else always)


def with_states(
    node: Acting, variable: Variable, parents: tuple[Variable, ...], axis: int, kept: Sequence[int | None]
) -> Acting:
    """Return a node after the states along an axis changed: new ones are allowed, and worth nothing."""

    def resized(table: Any, filler: Any) -> Any:
        slab = np.full(np.delete(np.array(table.shape), axis), filler, dtype=table.dtype)
        return np.stack([slab if k is None else table.take(k, axis=axis) for k in kept], axis=axis)

    if isinstance(node, UtilityNode):
        assert isinstance(variable, Worth)
        return UtilityNode(variable, parents, node.form if node.worth is None else resized(node.worth, 0.0))
    if node.allowed is None:
        return DecisionNode(variable, parents)
    allowed = resized(node.allowed, True)
    if not allowed.any(axis=-1).all():
        raise UnsupportedModel(
            f"nothing would be allowed for {variable.name!r} somewhere; keep one of its states"
        )
    return DecisionNode(variable, parents, None if allowed.all() else allowed)


def with_amounts(node: Conditional, rows: Sequence[Sequence[float]]) -> UtilityNode:
    """Return a utility with other amounts, one a row."""
    name = node.variable.name
    if not isinstance(node, UtilityNode):
        raise UnsupportedModel(f"{name!r} is a decision and has no table; ask what to decide")
    if node.worth is None:
        raise UnsupportedModel(f"{name!r} is worth a function, which is written in Python")
    if len(rows) != node.worth.size or any(len(row) != 1 for row in rows):
        raise InvalidTable(f"{name!r} has {node.worth.size:,} amounts, one a row")
    return UtilityNode(
        node.variable, node.parents, np.array(rows, dtype=np.float64).reshape(node.worth.shape)
    )
