"""What a file declares about a discrete network, gathered first and checked at the end.

Formats differ in the order in which they mention things: a table may come before the states of its parents.
A reader therefore only collects `DeclaredVariable`s, each with its place in the file and a function that makes the
distribution once the variables are known; `declared_network` then restores names and states (see
`markovia.io.identifiers`), resolves parents, makes the distributions and builds the network. Whatever is wrong
becomes one `ParseError` at the place that is to blame.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from markovia.errors import CycleError, InvalidArgument, MarkoviaError, ParseError
from markovia.factors.decisions.utility import Worth
from markovia.factors.tables.conditional import Conditional, ConditionalTable
from markovia.factors.tables.variable import State, Variable
from markovia.io.decision_nodes import read_amounts, read_choice, read_weights
from markovia.io.identifiers import (
    ALLOWED,
    NAME,
    PROPERTIES,
    STATES,
    decode_text,
    joined_properties,
    restored_states,
)
from markovia.io.rows import MAX_AXES, MAX_ENTRIES, RowPolicy
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.source_text import Source, brief, hint, shown

Parents: TypeAlias = tuple[Variable, ...]
Define: TypeAlias = Callable[[Variable, Parents], Conditional]
Locate: TypeAlias = Callable[[int], int]
_T = TypeVar("_T")

# a file that leaves most of a table to a default may still stand for a table of this many entries
_FREE_ENTRIES = 2**20


@dataclass
class DeclaredVariable:
    """One variable as the file declares it."""

    identifier: str
    at: int
    """Where the declaration begins."""
    states: list[State] = field(default_factory=list)
    """The states as the file shows them."""
    parents: list[tuple[str, int]] = field(default_factory=list)
    """The parents' identifiers and where they are mentioned."""
    define: Define | None = None
    """Makes the distribution from the child and its parents; None leaves the node without a table."""
    properties: dict[str, str] = field(default_factory=dict)
    kind: str = "chance"
    """Or "decision", or "utility", which has no states."""
    allowed: str | None = None
    """The mark that says what a decision may choose."""
    label: str | None = None
    """The property that repeats the true name for human readers and is dropped when a mark restores it."""


def declared_network(
    source: Source,
    declarations: Iterable[DeclaredVariable],
    *,
    name: str = "",
    properties: Mapping[str, str] | None = None,
    at: int = 0,
) -> BayesianNetwork:
    """Build the network.

    Parameters
    ----------
    source
        The text that is read, for the errors.
    declarations
        One a variable, in the order the network is to have.
    name, properties
        The network's own; marks among the properties are applied.
    at
        Where the network begins.

    Raises
    ------
    ParseError
        If a name is declared twice, a parent is unknown, states repeat, the edges form a cycle, or a
        distribution is not valid.
    """
    items = list(declarations)
    ids: dict[str, DeclaredVariable] = {}
    for item in items:
        if item.identifier in ids:
            raise source.error(item.at, f"{shown(item.identifier)} is declared twice; expected a new name")
        ids[item.identifier] = item
    variables = {item.identifier: declared_variable(source, item) for item in items}
    if len({v.name for v in variables.values()}) != len(variables):
        raise source.error(at, f"expected distinct names, but {NAME} gives one name to two variables")
    own = dict(properties or {})
    name = _marked(source, at, own, NAME, decode_text, name)
    own = _marked(source, at, own, PROPERTIES, lambda mark: joined_properties(own, mark), own)

    parents = {item.identifier: _parents(source, item, variables) for item in items}
    conditionals: dict[str, Conditional] = {}
    for item in items:
        if item.define is not None:
            variable = variables[item.identifier]
            try:
                conditionals[variable.name] = item.define(variable, parents[item.identifier])
            except ParseError:
                raise
            except MarkoviaError as error:
                raise source.error(item.at, brief(str(error))) from None
    try:
        network = _assembled(variables, parents, conditionals, name)
    except CycleError as error:
        first = next(item for item in items if variables[item.identifier].name == error.cycle[0])
        raise source.error(first.at, f"{brief(str(error))}; expected no cycle") from None
    except MarkoviaError as error:
        raise source.error(at, brief(str(error))) from None
    network.properties = own
    network.node_properties = {
        variables[item.identifier].name: item.properties for item in items if item.properties
    }
    return network


def dense(source: Source, policy: RowPolicy, values: NDArray[np.float64], at: int, locate: Locate) -> Define:
    """Return the maker of a full table whose numbers come parents first, child fastest; of amounts for a utility.

    Parameters
    ----------
    source, policy
        The text that is read and what to do with rows that do not sum to one.
    values
        The numbers, flat.
    at
        Where the table begins.
    locate
        The offset of the k-th number.
    """

    def define(variable: Variable, parents: Parents) -> Conditional:
        if isinstance(variable, Worth):
            return read_amounts(source, at, variable, parents, values)
        shape = (*(len(p) for p in parents), len(variable))
        if len(shape) > MAX_AXES:
            raise source.error(at, f"expected a table with at most {MAX_AXES} axes, found {len(shape)}")
        if prod(shape) != values.size:
            raise source.error(
                at, f"expected {_count(shape)} numbers for {shown(variable.name)}, found {values.size:,}"
            )
        rows = policy.check(
            values.reshape(shape),
            lambda row: source.position(locate(row * shape[-1])),
            f"of {shown(variable.name)}",
        )
        return ConditionalTable.of(variable, parents, rows)

    return define


def choice(source: Source, item: DeclaredVariable) -> Define:
    """Return the maker of a decision that sees its parents."""
    return lambda variable, parents: read_choice(source, item.at, variable, parents, item.allowed)


def weighted_sum(source: Source, weights: NDArray[np.float64] | None, at: int) -> Define:
    """Return the maker of a utility that weighs utilities, all alike where there are no weights."""
    return lambda variable, parents: read_weights(source, at, variable, parents, weights)


def deterministic(source: Source, codes: Callable[[Variable], Sequence[int]], at: int) -> Define:
    """Return the maker of a table that is certain: for each parent configuration one state of the child.

    Parameters
    ----------
    source
        The text that is read.
    codes
        The child's state codes, one a parent configuration, given the child.
    at
        Where the table begins.
    """

    def define(variable: Variable, parents: Parents) -> Conditional:
        shape = (*(len(p) for p in parents), len(variable))
        found = codes(variable)
        if prod(shape[:-1]) != len(found):
            raise source.error(
                at, f"expected {_count(shape[:-1])} states for {shown(variable.name)}, found {len(found):,}"
            )
        check_room(source, shape, at)
        table = np.zeros((len(found), len(variable)))
        table[np.arange(len(found)), np.asarray(found, dtype=np.int64)] = 1.0
        return ConditionalTable.of(variable, parents, table.reshape(shape))

    return define


def check_room(source: Source, shape: Sequence[int], at: int) -> None:
    """Refuse a table that the file does not spell out and that is out of proportion to the file."""
    room = min(MAX_ENTRIES, max(_FREE_ENTRIES, 64 * len(source.text)))
    if len(shape) > MAX_AXES or prod(shape) > room:
        raise source.error(at, f"expected a table of at most {room:,} entries and {MAX_AXES} axes")


def numbered_states(source: Source, count: str, at: int) -> list[State]:
    """Return the states 0 ... k-1 for an announced number of states, refusing absurd numbers."""
    if not count.isascii() or not count.isdigit() or len(count) > 9:
        raise source.error(at, f"expected the number of states, found {shown(count)}")
    if not 1 <= int(count) <= max(2**16, len(source.text)):
        raise source.error(at, f"expected a possible number of states, found {shown(count)}")
    return list(range(int(count)))


def _count(shape: Sequence[int]) -> str:
    entries = prod(shape)
    return f"{entries:,}" if entries < 10**18 else "over 10**18"


def declared_variable(source: Source, item: DeclaredVariable) -> Variable:
    """Return the variable with its true name and states, and take the marks that say them out of the properties."""
    properties = item.properties
    name = _marked(source, item.at, properties, NAME, decode_text, item.identifier)
    if item.label is not None and name != item.identifier and properties.get(item.label) == name:
        del properties[item.label]
    states = _marked(
        source, item.at, properties, STATES, lambda mark: restored_states(item.states, mark), item.states
    )
    if item.kind == "decision":
        item.allowed = properties.pop(ALLOWED, None)
    item.properties = _marked(
        source, item.at, properties, PROPERTIES, lambda mark: joined_properties(properties, mark), properties
    )
    try:
        return Worth(name) if item.kind == "utility" else Variable(name, states)
    except InvalidArgument as error:
        raise source.error(item.at, f"{brief(str(error))}; expected one or more distinct states") from None


def _marked(
    source: Source, at: int, properties: dict[str, str], mark: str, decode: Callable[[str], _T], default: _T
) -> _T:
    text = properties.pop(mark, None)
    if text is None:
        return default
    try:
        return decode(text)
    except (ValueError, RecursionError) as error:
        raise source.error(
            at, f"expected a valid {mark}, found {shown(text)} ({brief(str(error), 80)})"
        ) from None


def _parents(source: Source, item: DeclaredVariable, variables: Mapping[str, Variable]) -> Parents:
    seen: set[str] = {item.identifier}
    for parent, at in item.parents:
        if item.kind != "utility" and isinstance(variables.get(parent), Worth):
            raise source.error(at, f"expected a parent with states, found the utility {shown(parent)}")
        if parent not in variables:
            near = hint(parent, variables)
            raise source.error(at, f"expected a declared variable, found {shown(parent)}{near}")
        if parent in seen:
            raise source.error(
                at, f"expected distinct parents of {shown(item.identifier)}, found {shown(parent)} again"
            )
        seen.add(parent)
    return tuple(variables[parent] for parent, _ in item.parents)


def _assembled(
    variables: Mapping[str, Variable],
    parents: Mapping[str, Parents],
    conditionals: Mapping[str, Conditional],
    name: str,
) -> BayesianNetwork:
    if len(conditionals) == len(variables):
        return BayesianNetwork.from_conditionals(conditionals.values(), name=name)
    structure = {variables[i].name: [q.name for q in parents[i]] for i in variables}
    states = {v.name: v.states for v in variables.values() if not isinstance(v, Worth)}
    network = BayesianNetwork(structure, states=states, name=name)
    network.install({v.name: v for v in variables.values()}, conditionals)
    return network
