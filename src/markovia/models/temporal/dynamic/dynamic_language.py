"""The language of dynamic networks: `add("rain", parents=["rain@-1", "season"], p=..., initial=...)`.

A name such as `"x@-2"` is x two steps back. What is said of a variable becomes a node of the transition network and of one
network for each first step; a node of a first step has the parents that exist there already. A declaration that speaks of
a variable that is not there yet waits for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import IncompleteModel, InvalidArgument, InvalidGraph
from markovia.factors.distributions.finite_distributions import is_distribution
from markovia.factors.functions.reading import as_function_node
from markovia.factors.gaussian.linear_gaussian import LinearGaussian, as_recipe, continuous_parents
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.table_forms import LocalModel, argument_names
from markovia.factors.tables.variable import State, Variable
from markovia.inference.sequences.slices import lagged, split_name
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.editing_verbs import parent_list, variable_of


def own_variables(network: BayesianNetwork) -> list[str]:
    """Return the variables of a network that are not of an earlier step."""
    return [n for n in network.variables if not split_name(n)[1]]


@dataclass(frozen=True)
class Declaration:
    """What was said of one variable."""

    name: str
    form: Any
    states: int | Sequence[State] | None
    parents: tuple[str, ...]
    initial: Any
    normalise: bool
    static: bool

    @property
    def lags(self) -> int:
        """How far back its parents lie."""
        return max((split_name(q)[1] for q in self.parents), default=0)

    def first_forms(self) -> list[Any]:
        """Return its distributions at the steps that lack some of its parents; None where nothing was said."""
        if self.initial is None:
            return [None] * self.lags
        if self.lags <= 1:
            return [self.initial]
        if not isinstance(self.initial, list | tuple) or len(self.initial) != self.lags:
            raise InvalidArgument(
                f"{self.name!r} looks {self.lags} steps back, so initial= is a list of {self.lags} distributions, for the "
                f"steps 0 to {self.lags - 1}, each given the parents that exist there"
            )
        return list(self.initial)


def declared(
    name: str,
    form: Any,
    states: int | Sequence[State] | None,
    parents: Sequence[str] | str | None,
    initial: Any,
    normalise: bool,
    static: bool,
) -> Declaration:
    """Check what is said of a variable as far as it can be by itself."""
    if not isinstance(name, str) or not name or "@" in name:
        raise InvalidArgument(
            f"a variable of a dynamic network has a name without '@', not {name!r}; steps are told by parents"
        )
    form = as_recipe(form)
    if isinstance(form, type):
        raise InvalidArgument(f"{form.__name__} is a class; write {form.__name__}(...)")
    if parents is not None:
        listed = parent_list(parents)
        listed = (*listed, *(n for n in continuous_parents(form) if n not in listed))
    elif isinstance(form, Conditional | LocalModel):
        listed = parent_list(form.parent_names or ())
    elif callable(form) and not hasattr(form, "columns") and not is_distribution(form):
        listed = argument_names(form)
    else:
        listed = ()
    if name in listed:
        raise InvalidGraph(
            f"{name!r} cannot be its own parent; {lagged(name, 1)!r} is {name!r} a step before"
        )
    if static:
        if listed or initial is not None:
            raise InvalidArgument(
                f"{name!r} is static: it has one state for all steps, without parents and without initial="
            )
        return Declaration(name, None, states, (lagged(name, 1),), form, normalise, static)
    found = Declaration(name, form, states, listed, as_recipe(initial), normalise, static)
    if initial is not None and not found.lags:
        raise InvalidArgument(
            f"{name!r} has no parents in earlier steps, so its distribution is the same at step 0; leave initial= out"
        )
    found.first_forms()
    return found


def with_declarations(
    starts: Sequence[BayesianNetwork], transition: BayesianNetwork, waiting: Sequence[Declaration]
) -> tuple[list[BayesianNetwork], BayesianNetwork, list[Declaration]]:
    """Return the networks with all variables whose parents are there, and what still waits; those given stay as they are.

    Variables may look back at each other, so declarations whose parents all wait are taken together.
    """
    steps, later = [n.copy() for n in starts], transition.copy()
    ready = list(waiting)
    while lacking := [said for said in ready if missing_parents(steps[0], said, ready)]:
        ready = [said for said in ready if said not in lacking]
    known = {n: steps[0].variable(n) for n in steps[0].variables}
    for said in ready:
        known[said.name] = _variable(known, said)
    for said in ready:
        while len(steps) < said.lags:
            steps.append(later.copy())
        _add(steps, later, said, known)
    return steps, later, [said for said in waiting if said not in ready]


def _add(
    steps: Sequence[BayesianNetwork], later: BayesianNetwork, said: Declaration, known: Mapping[str, Variable]
) -> None:
    """Add a variable to all networks."""
    variable, forms = known[said.name], said.first_forms()
    for t, network in enumerate([*steps, later]):
        whole = t >= said.lags or network is later
        own = [q for q in said.parents if whole or split_name(q)[1] <= t]
        for parent in own:
            base, lag = split_name(parent)
            if lag and parent not in network:
                _add_earlier(network, parent, known[base])
        if said.static and whole:
            form: Any = np.eye(len(variable))
        else:
            form = (
                said.form if whole else _same_for_all(forms[t], variable, [network.variable(q) for q in own])
            )
        states = None if isinstance(variable, Quantity) else list(variable.states)
        if form is None and isinstance(variable, Quantity):
            raise IncompleteModel(
                f"{said.name!r} is a number that depends on earlier steps; say with initial= how it begins at step {t}"
            )
        listed = own if form is None or own or not callable(form) else None
        network.add(said.name, form, states=states, parents=listed, normalise=said.normalise)


def _same_for_all(form: Any, variable: Variable, parents: Sequence[Variable]) -> Any:
    """Return a beginning that is one row, where there are parents, as the same row for all their states."""
    discrete = not any(isinstance(v, Quantity) for v in (variable, *parents))
    if not parents or not discrete or not isinstance(form, list | tuple | np.ndarray):
        return form
    return np.tile(form, (*map(len, parents), 1)) if np.shape(form) == (len(variable),) else form


def missing_parents(first: BayesianNetwork, said: Declaration, waiting: Sequence[Declaration]) -> list[str]:
    """Return the variables that a declaration names and that are neither there nor waiting."""
    known = {*first.variables, *(w.name for w in waiting)}
    return [base for base, _ in map(split_name, said.parents) if base not in known]


def _add_earlier(network: BayesianNetwork, name: str, variable: Variable) -> None:
    if isinstance(variable, Quantity):
        network.add(name, LinearGaussian())  # a stand-in: its distribution is that of the step before
    else:
        network.add(name, states=list(variable.states))


def _variable(known: Mapping[str, Variable], said: Declaration) -> Variable:
    """Return the variable that is added, by its states, by how it begins, or by its distribution."""
    form = said.form
    if said.lags and said.initial is not None:
        form = said.first_forms()[0]
    elif said.lags and isinstance(form, LocalModel) and getattr(form, "domain", "states") == "states":
        form = None
    same = [q for q in said.parents if not split_name(q)[1]]
    if said.states is None and form is None:
        raise InvalidArgument(f"say the states of {said.name!r} with states=")
    whole = not said.lags or said.initial is not None
    if callable(form):
        listed = same if whole else list(said.parents)
        there = {q: known[b] for q in listed for b, _ in [split_name(q)] if b in known}
        node = as_function_node(
            there, said.name, form, said.states, None if is_distribution(form) else listed
        )
        if node is not None:
            return node.variable
    return variable_of(said.name, form, said.states, tuple(known[q] for q in same) if whole else ())
