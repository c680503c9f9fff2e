"""Edits of a document: each takes a snapshot and returns a new one, or refuses and leaves everything as it was."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import numpy as np

from markovia.errors import DuplicateName, InvalidArgument, InvalidTable, UnsupportedModel
from markovia.factors.decisions.decision import Decision
from markovia.factors.decisions.utility import Utility, Worth
from markovia.factors.gaussian.linear_gaussian import LinearGaussian, StateRegressions
from markovia.factors.local_models.noisy import NoisyAnd, NoisyOr
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional, ConditionalTable
from markovia.factors.tables.variable import Variable
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.equivalence import extend, meek
from markovia.graphs.kinds.mixed import Mark, MixedGraph
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.model import Model
from markovia.studio.documents import decision_edits as decisions
from markovia.studio.documents.document import Point, Snapshot
from markovia.studio.documents.edit_messages import (
    AddDecision,
    AddNode,
    AddNumberNode,
    AddUtility,
    Connect,
    Disconnect,
    Move,
    Note,
    RemoveNode,
    Rename,
    SetLocal,
    SetName,
    SetStates,
    SetTable,
    Tidy,
)
from markovia.studio.documents.findings import state_of
from markovia.studio.documents.views import MOST_ENTRIES, state_labels

OPEN_CLASS = (
    "some edges of this graph have no direction yet, so that others cannot change; draw the direction of each line first "
    "(from its cause to its effect)"
)


def edited(snapshot: Snapshot, edit: Any) -> Snapshot:
    """Return the snapshot after an edit."""
    if isinstance(edit, SetName):
        return replace(snapshot, name=edit.to)
    if isinstance(edit, Move):
        known = {n: p for n, p in edit.positions.items() if n in snapshot.positions}
        return replace(snapshot, positions={**snapshot.positions, **known})
    if isinstance(edit, Tidy):
        return replace(snapshot, positions={})  # who draws them next finds places for all
    model = snapshot.model
    if not isinstance(model, Model):
        raise UnsupportedModel("this is a graph without numbers; the studio edits networks")
    if isinstance(edit, Note):
        model.variable(edit.name)
        notes = {n: t for n, t in snapshot.notes.items() if n != edit.name}
        return replace(snapshot, notes={**notes, edit.name: edit.text} if edit.text else notes)
    if not isinstance(model, BayesianNetwork) and not isinstance(edit, Rename):
        raise UnsupportedModel(
            f"the studio edits the nodes of Bayesian networks; of a {type(model).__name__} only names and notes"
        )
    twin = model.copy()
    EDITS[type(edit)](twin, edit)
    if not isinstance(edit, Connect) and _class_of(model) is not None and _class_of(twin) is None:
        raise UnsupportedModel(OPEN_CLASS)
    return _followed(replace(snapshot, model=twin), edit)


def _class_of(model: Model) -> MixedGraph | None:
    """Return the class of graphs that a network is one member of."""
    return model.equivalence_class if isinstance(model, BayesianNetwork) else None


def _followed(snapshot: Snapshot, edit: Any) -> Snapshot:
    """Let positions and notes follow names; a new node takes the place it was given."""
    positions: dict[str, Point] = dict(snapshot.positions)
    notes = dict(snapshot.notes)
    if isinstance(edit, Rename):
        positions = {edit.to if n == edit.name else n: p for n, p in positions.items()}
        notes = {edit.to if n == edit.name else n: t for n, t in notes.items()}
    elif isinstance(edit, RemoveNode):
        positions.pop(edit.name, None)
        notes.pop(edit.name, None)
    elif isinstance(edit, AddNode | AddNumberNode | AddDecision | AddUtility) and edit.at is not None:
        positions[edit.name] = edit.at
    return replace(snapshot, positions=positions, notes=notes)


def _add_node(model: BayesianNetwork, edit: AddNode) -> None:
    _check_free(model, edit.name)
    model.add(edit.name, states=edit.states, parents=edit.parents, p="uniform")


def _add_number(model: BayesianNetwork, edit: AddNumberNode) -> None:
    _check_free(model, edit.name)
    model.add(edit.name, LinearGaussian(0.0, {}, 1.0))


def _add_decision(model: BayesianNetwork, edit: AddDecision) -> None:
    _check_free(model, edit.name)
    model.add(edit.name, Decision(edit.states), parents=edit.parents)


def _add_utility(model: BayesianNetwork, edit: AddUtility) -> None:
    _check_free(model, edit.name)
    shape = [len(model.variable(q)) for q in edit.parents if not isinstance(model.variable(q), Quantity)]
    model.add(edit.name, Utility(np.zeros(shape)), parents=edit.parents)


def _remove(model: BayesianNetwork, edit: RemoveNode) -> None:
    model.variable(edit.name)
    for child in list(model.children(edit.name)):
        _disconnect(model, Disconnect(edit.name, child))
    model.remove(edit.name)


def _check_free(model: Any, name: str) -> None:
    if name in model:
        raise DuplicateName(f"the model already has a node {name!r}; give the new one another name")


def _rename(model: Any, edit: Rename) -> None:
    if edit.to != edit.name:
        _check_free(model, edit.to)
    model.rename(edit.name, edit.to)


def _connect(model: BayesianNetwork, edit: Connect) -> None:
    parent, child = model.variable(edit.parent), model.variable(edit.child)
    if (known := model.equivalence_class) is not None:
        if (Mark.TAIL, Mark.TAIL) not in known.marks(edit.parent, edit.child):
            raise UnsupportedModel(OPEN_CLASS)
        _direct(model, known, edit.parent, edit.child)
        return
    if isinstance(node := decisions.acting(model, edit.child), decisions.Acting):
        if edit.parent in node.parent_names:
            raise InvalidArgument(f"there is already an edge {edit.parent} -> {edit.child}")
        decisions.put(model, decisions.with_parent(node, parent))
        return
    if isinstance(parent, Worth):
        raise UnsupportedModel(f"{edit.parent!r} is a utility, which nothing but a utility depends on")
    if not isinstance(child, Quantity):
        if isinstance(parent, Quantity):
            raise UnsupportedModel(
                f"{edit.parent!r} is a number and {edit.child!r} has states: such an edge is a function, written in Python"
            )
        model.add_edge(edit.parent, edit.child)
        return
    discrete, continuous, rows = _regressions(model, edit.child)
    if edit.parent in (*discrete, *continuous):
        raise InvalidArgument(f"there is already an edge {edit.parent} -> {edit.child}")
    if isinstance(parent, Quantity):
        rows = [LinearGaussian(r.bias, {**r.weights, edit.parent: 0.0}, r.variance) for r in rows]
    else:
        discrete = [*discrete, edit.parent]
        rows = [r for r in rows for _ in parent.states]
    _set_regressions(model, edit.child, discrete, rows)


def _direct(model: BayesianNetwork, known: MixedGraph, parent: str, child: str) -> None:
    """Give an edge of a class its direction, and those edges that follow from it (Meek's rules).

    The distribution stays as it is: where the network's own graph points the other way, another member of what is left of
    the class takes its place, with its tables computed from the old ones.
    """
    known.set_marks(parent, child, Mark.TAIL, Mark.ARROW)
    known = meek(known)
    graph = model.graph
    if not set(known.directed_edges()) <= set(graph.edges):
        if model.has_quantities:
            raise UnsupportedModel(
                f"the numbers of the model are those of {child} --> {parent}; learn it again with the edge "
                f"{parent} --> {child} required"
            )
        _reparameterise(model, extend(known))
    model.equivalence_class = known if known.undirected_edges() else None


def _reparameterise(model: BayesianNetwork, graph: DAG) -> None:
    """Give a network of tables an equivalent graph: every node's table is its conditional distribution as it was."""
    tables: dict[str, Conditional] = {}
    for name in model.variables:
        parents = graph.parents(name)
        if set(parents) == set(model.parents(name)):
            continue
        entries = prod(len(model.variable(n)) for n in (*parents, name))
        if entries > MOST_ENTRIES:
            raise UnsupportedModel(
                f"the table of {name!r} would have {entries:,} entries; learn again with this edge required"
            )
        joint = model.query([*parents, name]).values
        mass = joint.sum(axis=-1, keepdims=True)
        rows = np.where(mass > 0, joint / np.where(mass > 0, mass, 1.0), 1.0 / joint.shape[-1])
        variables = tuple(model.variable(n) for n in parents)
        tables[name] = ConditionalTable.of(model.variable(name), variables, rows)
    # all at once: edge by edge, there may be a cycle on the way
    model.install({n: model.variable(n) for n in model.variables}, tables)


def _disconnect(model: BayesianNetwork, edit: Disconnect) -> None:
    parent, child = model.variable(edit.parent), model.variable(edit.child)
    if edit.parent not in model.parents(edit.child):
        raise InvalidArgument(f"there is no edge {edit.parent} -> {edit.child}")
    if isinstance(node := decisions.acting(model, edit.child), decisions.Acting):
        weights = None if isinstance(parent, Quantity) else _belief(model, edit.parent)
        decisions.put(model, decisions.without_parent(node, edit.parent, weights))
        return
    if isinstance(child, Quantity):
        discrete, _, rows = _regressions(model, edit.child)
        if isinstance(parent, Quantity):
            kept = [
                LinearGaussian(r.bias, {n: w for n, w in r.weights.items() if n != edit.parent}, r.variance)
                for r in rows
            ]
        else:
            shape = [len(model.variable(n)) for n in discrete]
            places = np.moveaxis(np.arange(len(rows)).reshape(shape), discrete.index(edit.parent), -1)
            belief = _belief(model, edit.parent)
            kept = [
                _averaged([rows[k] for k in own], belief) for own in places.reshape(-1, len(parent)).tolist()
            ]
        _set_regressions(model, edit.child, [n for n in discrete if n != edit.parent], kept)
        return
    if not model.has_table(edit.child):
        model.remove_edge(edit.parent, edit.child)
        return
    table = model[edit.child].values
    axis = model.parents(edit.child).index(edit.parent)
    model.remove_edge(
        edit.parent, edit.child, p=np.average(table, axis=axis, weights=_belief(model, edit.parent))
    )


def _averaged(rows: Sequence[LinearGaussian], shares: Any) -> LinearGaussian:
    """Return the regression with the mean of a mixture of some, and its variance where the other parents are zero."""
    biases = np.array([r.bias for r in rows])
    bias = float(np.average(biases, weights=shares))
    variance = float(np.average([r.variance for r in rows] + (biases - bias) ** 2, weights=shares))
    weights = {
        n: float(np.average([r.weights.get(n, 0.0) for r in rows], weights=shares)) for n in rows[0].weights
    }
    return LinearGaussian(bias, weights, variance)


def _belief(model: BayesianNetwork, name: str) -> Any:
    """Return the weights of a variable's states: its own distribution where it has no parents, else all alike."""
    if model.has_table(name) and not model.parents(name) and decisions.acting(model, name) is None:
        return model[name].values
    return np.full(len(model.variable(name)), 1.0 / len(model.variable(name)))


def _set_states(model: BayesianNetwork, edit: SetStates) -> None:
    old = model.variable(edit.name)
    if isinstance(old, Quantity):
        raise UnsupportedModel(f"{edit.name!r} is a number and has no states")
    told = state_labels(old.states)
    if len(edit.states) == len(told):
        if len(set(edit.states)) != len(edit.states):
            raise InvalidArgument(f"the states of {edit.name!r} are not all different")
        model.rename_states(edit.name, [old.states[told.index(s)] if s in told else s for s in edit.states])
        return
    fresh = Variable(edit.name, [old.states[told.index(s)] if s in told else s for s in edit.states])
    kept = [told.index(s) if s in told else None for s in edit.states]
    variables = {n: fresh if n == edit.name else model.variable(n) for n in model.variables}
    tables: dict[str, Conditional] = {}
    for name in [edit.name, *model.children(edit.name)]:
        if not model.has_table(name):
            continue
        parents = tuple(variables[q] for q in model.parents(name))
        axes = [*model.parents(name), name]
        if (node := decisions.acting(model, name)) is not None:
            tables[name] = decisions.with_states(node, variables[name], parents, axes.index(edit.name), kept)
            continue
        if isinstance(model.variable(name), Quantity):
            raise UnsupportedModel(
                f"{name!r} has a regression for every state of {edit.name!r}; remove that edge before the states change"
            )
        tables[name] = ConditionalTable.of(
            variables[name], parents, _resized(model[name].values, axes.index(edit.name), kept)
        )
    model.install(variables, tables)


def _resized(values: Any, axis: int, kept: Sequence[int | None]) -> Any:
    """Return a table with other states along an axis: those that stay keep their entries, new rows are uniform."""
    own = axis == values.ndim - 1
    filler = 0.0 if own else 1.0 / values.shape[-1]
    slabs = [
        np.full(np.delete(np.array(values.shape), axis), filler) if k is None else values.take(k, axis=axis)
        for k in kept
    ]
    table = np.stack(slabs, axis=axis)
    sums = table.sum(axis=-1, keepdims=True)
    return np.where(sums > 0, table / np.where(sums > 0, sums, 1.0), 1.0 / table.shape[-1])


def _set_table(model: BayesianNetwork, edit: SetTable) -> None:
    variable = model.variable(edit.name)
    if (node := decisions.acting(model, edit.name)) is not None:
        decisions.put(model, decisions.with_amounts(node, edit.rows))
        return
    if isinstance(variable, Quantity):
        raise UnsupportedModel(f"{edit.name!r} is a number; give it linear Gaussians instead of a table")
    shape = [len(model.variable(q)) for q in model.parents(edit.name)]
    if len(edit.rows) != prod(shape):
        raise InvalidTable(f"the table of {edit.name!r} has {prod(shape):,} rows, not {len(edit.rows):,}")
    if any(len(row) != len(variable) for row in edit.rows):
        raise InvalidTable(f"a row of {edit.name!r} has {len(variable)} entries, one a state")
    model.replace(edit.name, p=np.array(edit.rows, dtype=float).reshape(*shape, -1), normalise=edit.normalise)


def _set_local(model: BayesianNetwork, edit: SetLocal) -> None:
    form = edit.form
    variable = model.variable(edit.name)
    if (node := decisions.acting(model, edit.name)) is not None:
        raise UnsupportedModel(f"{edit.name!r} is a {node.kind} and has no distribution")
    if form.kind == "linear-gaussian":
        if not isinstance(variable, Quantity):
            raise UnsupportedModel(f"{edit.name!r} has states; linear Gaussians are for numbers")
        discrete = [q for q in model.parents(edit.name) if not isinstance(model.variable(q), Quantity)]
        rows = [
            LinearGaussian(float(r.bias), {n: float(w) for n, w in r.weights.items()}, float(r.variance))
            for r in form.rows
        ]
        for n in {n for r in rows for n in r.weights}:
            if not isinstance(model.variable(n), Quantity):
                raise InvalidArgument(f"{n!r} has states; a weight is of a parent that is a number")
        _set_regressions(model, edit.name, discrete, rows)
        return
    if isinstance(variable, Quantity):
        raise UnsupportedModel(f"{edit.name!r} is a number; it takes linear Gaussians")
    if form.kind == "table":
        model.replace(edit.name, p=np.array(model[edit.name].values))
        return
    on = {n: state_of(model.variable(n), s) for n, s in form.on.items()}
    recipe = NoisyOr if form.kind == "noisy-or" else NoisyAnd
    strengths = {n: float(s) for n, s in form.strengths.items()}
    model.replace(edit.name, recipe(strengths, float(form.leak), on=on), parents=model.parents(edit.name))


def _regressions(model: BayesianNetwork, name: str) -> tuple[list[str], list[str], list[LinearGaussian]]:
    """Return the discrete and the continuous parents of a number and its regressions, in the order of the rows."""
    piece: Any = model[name]
    if piece.kind == "table" or not hasattr(piece, "recipe"):
        raise UnsupportedModel(
            f"{name!r} has a distribution that is written in Python; the studio edits linear Gaussians"
        )
    recipe = piece.recipe()
    rows = [recipe] if isinstance(recipe, LinearGaussian) else list(recipe.by_state.values())
    return [p.name for p in piece.discrete], [p.name for p in piece.continuous], rows


def _set_regressions(
    model: BayesianNetwork, name: str, discrete: Sequence[str], rows: Sequence[LinearGaussian]
) -> None:
    keys = list(product(*(model.variable(n).states for n in discrete)))
    if len(rows) != len(keys):
        raise InvalidArgument(
            f"{name!r} needs {len(keys):,} regressions, one a row of its parents' states, not {len(rows):,}"
        )
    if not discrete:
        model.replace(name, rows[0], parents=list(rows[0].weights))
        return
    by_state: Mapping[Any, LinearGaussian] = {
        (k[0] if len(discrete) == 1 else k): r for k, r in zip(keys, rows, strict=True)
    }
    form = StateRegressions(by_state)
    model.replace(name, form, parents=[*discrete, *form.parent_names])


EDITS: dict[type, Callable[[Any, Any], None]] = {
    AddNode: _add_node,
    AddNumberNode: _add_number,
    AddDecision: _add_decision,
    AddUtility: _add_utility,
    RemoveNode: _remove,
    Rename: _rename,
    Connect: _connect,
    Disconnect: _disconnect,
    SetStates: _set_states,
    SetTable: _set_table,
    SetLocal: _set_local,
}
