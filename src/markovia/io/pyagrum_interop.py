"""To and from pyAgrum objects (pyAgrum 3 and newer).

A pyAgrum tensor lists its variables with the fastest one first, a conditional table its child; `toarray()` has the
axes in the opposite order, so parents come first there as they do here. A tensor is a view into its network and dies
with it: every array is copied as soon as it is seen.

pyAgrum knows labels (text) and integers as states. Integers in increasing order go out as range or integer variables;
all other states as labels, with a property of the network that restores them on the way back.
"""

from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, InvalidTable, MarkoviaError, UnsupportedModel
from markovia.factors.tables.conditional import ConditionalTable
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import State, Variable
from markovia.io.decision_nodes import refuse_decisions
from markovia.io.identifiers import STATES, restored_states, states_mark
from markovia.io.peer_objects import PeerTables, one_factor_per_scope, require
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.factor_model import FactorModel
from markovia.models.graphical.markov_network import MarkovNetwork
from markovia.runtime.array_types import Array

DESCRIPTION = "description"
_LARGEST_INTEGER = 2**31 - 1


def from_pyagrum(model: Any) -> BayesianNetwork | MarkovNetwork:
    """Turn a pyAgrum network into one of ours.

    Parameters
    ----------
    model
        A `BayesNet` or a `MarkovRandomField`.

    Returns
    -------
    BayesianNetwork or MarkovNetwork
        States are integers for range and integer variables and labels otherwise. A conditional table that is zero
        everywhere (pyAgrum's way to say that it was never filled) is left out. Properties and descriptions are kept.

    Raises
    ------
    UnsupportedModel
        For other pyAgrum models, such as influence diagrams.
    InvalidTable
        If a table is no distribution.

    Examples
    --------
    >>> import pyagrum as gum
    >>> theirs = gum.BayesNet()
    >>> _ = theirs.add(gum.LabelizedVariable("rain", "", ["no", "yes"])), theirs.add(gum.RangeVariable("wet", "", 1, 2))
    >>> theirs.addArc("rain", "wet")
    >>> theirs.cpt("rain")[:] = [0.8, 0.2]
    >>> theirs.cpt("wet")[:] = [[0.9, 0.1], [0.2, 0.8]]
    >>> from_pyagrum(theirs)["wet"]
    ConditionalTable P(wet | rain)
    rain  wet    p
    no    1    0.9
    no    2    0.1
    yes   1    0.2
    yes   2    0.8
    """
    gum = require("pyagrum", "pyagrum")
    if isinstance(model, gum.BayesNet):
        ours: BayesianNetwork | MarkovNetwork = _bayesian_network(model, gum)
    elif isinstance(model, gum.MarkovRandomField):
        ours = _markov_network(model, gum)
    elif type(model).__module__.partition(".")[0] == "pyagrum":
        raise UnsupportedModel(
            f"expected a pyAgrum BayesNet or MarkovRandomField, not {type(model).__name__}"
        )
    else:
        raise InvalidArgument(f"expected a pyAgrum network, not {type(model).__name__}")
    properties = {key: model.property(key) for key in model.properties()}
    ours.name = properties.pop("name", "")
    ours.properties = {k: v for k, v in properties.items() if not k.startswith(STATES)}
    for node in model.nodes():
        text = model.variable(node).description()
        name = model.variable(node).name()
        if text and text != name:
            ours.node_properties[name] = {DESCRIPTION: text}
    return ours


def to_pyagrum(model: BayesianNetwork | FactorModel) -> Any:
    """Turn a model into a pyAgrum network.

    Parameters
    ----------
    model
        A Bayesian network, a Markov network or a factor graph.

    Returns
    -------
    pyagrum.BayesNet or pyagrum.MarkovRandomField
        Variables without a table keep pyAgrum's zeros. In undirected models, factors over the same variables are
        multiplied into one, since pyAgrum allows no second one, and a variable without any factor gets a constant
        one, since pyAgrum cannot answer without.

    Raises
    ------
    UnsupportedModel
        If two states of a variable print alike, such as 1 and "1", or a table is too large to be written out.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork("rain->wet{no|yes}", tables="uniform")
    >>> theirs = to_pyagrum(bn)  # keep the network: its tables die with it
    >>> theirs.cpt("wet").toarray().tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    gum = require("pyagrum", "pyagrum")
    if not isinstance(model, BayesianNetwork | FactorModel):
        raise InvalidArgument(f"expected a model, not {type(model).__name__}")
    if isinstance(model, BayesianNetwork):
        refuse_decisions(model, "pyAgrum's Bayesian networks")
    theirs = (
        gum.BayesNet(model.name) if isinstance(model, BayesianNetwork) else gum.MarkovRandomField(model.name)
    )
    theirs.setProperty("name", model.name)
    for key, value in model.properties.items():
        theirs.setProperty(key, value)
    try:
        for name in model.variables:
            variable = model.variable(name)
            theirs.add(
                _their_variable(variable, model.node_properties.get(name, {}).get(DESCRIPTION, ""), gum)
            )
            mark = states_mark(variable.states, [str(s) for s in variable.states])
            if mark is not None and not _increasing(variable.states):
                theirs.setProperty(f"{STATES} {name}", mark)
        if isinstance(model, BayesianNetwork):
            _fill_directed(theirs, model)
        else:
            _fill_undirected(theirs, model)
    except gum.GumException as error:
        raise UnsupportedModel(f"pyAgrum refuses the model: {error}") from None
    return theirs


# -- from pyAgrum ---------------------------------------------------------------------------------------------------


def _bayesian_network(model: Any, gum: Any) -> BayesianNetwork:
    variables = _variables(model, gum)
    tables = PeerTables("pyAgrum")
    found: dict[str, ConditionalTable] = {}
    structure: dict[str, list[str]] = {}
    for name, variable in variables.items():
        axes, values = _axes_and_values(model.cpt(name))
        structure[name] = axes[:-1]
        if values.any():
            found[name] = tables.conditional(variable, [variables[p] for p in axes[:-1]], values)
    tables.finish()
    if len(found) == len(variables):
        return BayesianNetwork.from_conditionals(found.values())
    network = BayesianNetwork(structure, states={n: v.states for n, v in variables.items()})
    for name, table in found.items():
        network.replace(name, table)
    return network


def _markov_network(model: Any, gum: Any) -> MarkovNetwork:
    variables = _variables(model, gum)
    factors = []
    for scope in model.factors():
        axes, values = _axes_and_values(model.factor(scope))
        factors.append(Factor([variables[n] for n in axes], values))
    return MarkovNetwork(variables.values(), factors)


def _axes_and_values(tensor: Any) -> tuple[list[str], Array]:
    return list(reversed(tensor.names)), np.array(tensor.toarray(), dtype=np.float64, copy=True)


def _variables(model: Any, gum: Any) -> dict[str, Variable]:
    variables = {}
    for node in sorted(model.nodes()):
        theirs = model.variable(node)
        name, labels = str(theirs.name()), [str(s) for s in theirs.labels()]
        states: list[State] = list(labels)
        if theirs.varType() in (gum.VarType_RANGE, gum.VarType_INTEGER):
            states = [int(label) for label in labels]
        elif model.existsProperty(f"{STATES} {name}"):
            try:
                states = restored_states(labels, model.property(f"{STATES} {name}"))
            except ValueError:
                states = list(labels)  # the labels were changed since, and then they count
        variables[name] = Variable(name, states)
    return variables


# -- to pyAgrum -----------------------------------------------------------------------------------------------------


def _their_variable(variable: Variable, description: str, gum: Any) -> Any:
    states = variable.states
    if _increasing(states):
        if states == tuple(range(int(states[0]), int(states[-1]) + 1)):
            return gum.RangeVariable(variable.name, description, int(states[0]), int(states[-1]))
        return gum.IntegerVariable(variable.name, description, [int(s) for s in states])
    labels = [str(s) for s in states]
    if len(set(labels)) != len(labels):
        twice = next(s for s in labels if labels.count(s) > 1)
        raise UnsupportedModel(
            f"two states of {variable.name!r} print as {twice!r}; pyAgrum's states are text"
        )
    return gum.LabelizedVariable(variable.name, description, labels)


def _increasing(states: tuple[State, ...]) -> bool:
    """Say whether the states are integers in increasing order, which pyAgrum has a type of variable for."""
    return all(
        isinstance(s, int) and not isinstance(s, bool) and abs(s) <= _LARGEST_INTEGER for s in states
    ) and list(states) == sorted(states)


def _fill_directed(theirs: Any, model: BayesianNetwork) -> None:
    for name in model.variables:
        for parent in model.parents(name):
            theirs.addArc(parent, name)
    for name in model.variables:
        if model.has_table(name):
            try:
                values = model[name].values
            except MarkoviaError as error:
                raise UnsupportedModel(f"pyAgrum can only say full tables, and {error}") from None
            _assign(theirs.cpt(name), [*model.parents(name), name], values)


def _fill_undirected(theirs: Any, model: FactorModel) -> None:
    for factor in one_factor_per_scope(model, "pyAgrum"):
        _assign(theirs.addFactor(list(factor.names)), list(factor.names), factor.values)


def _assign(tensor: Any, axes: list[str], values: Array) -> None:
    wanted = list(reversed(tensor.names))
    if set(wanted) != set(axes):
        raise InvalidTable(f"pyAgrum made a table over {wanted} for one over {axes}")
    tensor[:] = np.ascontiguousarray(values.transpose([axes.index(name) for name in wanted]))
