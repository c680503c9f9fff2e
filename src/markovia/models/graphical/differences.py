"""What differs between two models, and small pieces that all kinds of model share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import DuplicateName, InvalidArgument, TooLarge, UnsupportedModel, check_known
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import State, Variable
from markovia.graphs.separation.independencies import (
    Independence,
    all_independencies,
    local_independencies,
    pairwise_independencies,
)
from markovia.models.graphical.base import GraphicalModel
from markovia.models.graphical.directed_model import DirectedModel
from markovia.runtime.checks import check_choice
from markovia.runtime.shown import InNotebooks


@dataclass(frozen=True)
class Difference(InNotebooks):
    """One way in which two models differ."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def variable_differences(one: GraphicalModel, two: GraphicalModel) -> list[Difference]:
    """Return the variables that only one model has, and those with other states."""
    found = [Difference(n, "only in the first") for n in one.variables if n not in two]
    found += [Difference(n, "only in the second") for n in two.variables if n not in one]
    found += [
        Difference(n, f"states {one.states(n)} and {two.states(n)}")
        for n in one.variables
        if n in two and one.variable(n) != two.variable(n)
    ]
    return found


def network_differences(one: DirectedModel, two: DirectedModel, atol: float) -> list[Difference]:
    """Return what differs between two directed networks, variables first, then parents and tables."""
    found = variable_differences(one, two)
    told = {d.where for d in found}
    for name in one.variables:
        if name in told:
            continue
        if set(one.parents(name)) != set(two.parents(name)):
            found.append(Difference(name, f"parents {one.parents(name)} and {two.parents(name)}"))
        elif one.has_table(name) != two.has_table(name):
            found.append(Difference(name, "a table in only one of them"))
        elif any(one.variable(q) != two.variable(q) for q in one.parents(name)):
            found.append(Difference(name, "its parents have other states"))
        elif one.has_table(name) and not one[name].allclose(two[name], atol=atol):
            found.append(Difference(name, _table_difference(one[name], two[name])))
    for name in dict.fromkeys((*one._potentials, *two._potentials)):
        mine, other = one._potentials.get(name), two._potentials.get(name)
        if mine is None or other is None or (mine.form, mine.arguments) != (other.form, other.arguments):
            found.append(Difference(name, "another potential"))
    return found


def independencies_of_kind(graph: Any, kind: str) -> list[Independence]:
    """Return a graph's local, pairwise or all independencies."""
    functions: dict[str, Callable[[Any], list[Independence]]] = {
        "local": local_independencies,
        "pairwise": pairwise_independencies,
        "all": all_independencies,
    }
    check_choice("kind", kind, functions)
    return functions[kind](graph)


def require_kind(other: object, kind: type, verb: str) -> None:
    """Raise unless the other model is of a kind that can be compared with this one."""
    if not isinstance(other, kind):
        raise InvalidArgument(f"{verb}() takes another {kind.__name__}, not {type(other).__name__}")


def with_names(
    variables: Mapping[str, Variable], old: str | Mapping[str, str], new: str | None
) -> dict[str, Variable]:
    """Return the variables by their old names, renamed: one from old to new, or several by a mapping."""
    if not isinstance(old, str | Mapping) or (isinstance(old, Mapping) and new is not None):
        raise InvalidArgument('rename takes two names, rename("a", "b"), or one mapping, rename({"a": "b"})')
    mapping: Mapping[str, Any] = {old: new} if isinstance(old, str) else old
    check_known(mapping, variables)
    fresh = {n: v.renamed(mapping[n]) if n in mapping else v for n, v in variables.items()}
    if len({v.name for v in fresh.values()}) != len(fresh):
        raise DuplicateName(f"renaming {dict(mapping)} would give two variables one name")
    return fresh


def with_states(variable: Variable, states: Mapping[State, State] | Sequence[State]) -> Variable:
    """Return a variable with renamed states: a mapping from old to new, or all new ones in order."""
    if isinstance(variable, Quantity):
        raise UnsupportedModel(
            f"{variable.name!r} is a number and has no states to rename; rename() is for its name"
        )
    if isinstance(states, Mapping):
        for state in states:
            variable.index(state)
        states = [states.get(s, s) for s in variable.states]
    if isinstance(states, str | set | frozenset) or not isinstance(states, Iterable):
        raise InvalidArgument(
            f"the new states of {variable.name!r} are a mapping from old to new or a list, not {states!r}"
        )
    states = list(states)
    if len(states) != len(variable):
        raise InvalidArgument(
            f"{variable.name!r} has {len(variable)} states; {len(states)} new names were given"
        )
    return Variable(variable.name, states)


def _table_difference(one: Conditional, two: Conditional) -> str:
    if one.kind != two.kind:
        return f"a {one.kind} and a {two.kind}"
    if one.kind in ("decision", "utility"):
        return "other choices are allowed" if one.kind == "decision" else "other amounts"
    try:
        gap = np.abs(one.values - two.factor().transpose(one.names).values).max()
    except TooLarge:  # structured distributions over many parents are compared by their parameters
        return "parameters differ"
    return f"tables differ by up to {float(gap):.3g}"
