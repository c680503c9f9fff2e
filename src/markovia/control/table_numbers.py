"""The numbers of a diagram that one may vary: entries of probability tables and amounts of utilities.

Where a probability moves, the others of its row keep their proportions; where it was one, they share what is left evenly.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from markovia.errors import InvalidArgument, UnknownVariable, UnsupportedModel, check_known
from markovia.factors.decisions.decision import DecisionNode
from markovia.factors.decisions.utility import UtilityNode, Worth
from markovia.factors.tables.conditional import Conditional, ConditionalTable
from markovia.graphs.kinds.directed import DAG


@dataclass(frozen=True)
class TableNumber:
    """One entry of a table.

    Attributes
    ----------
    node
        The node whose table it is in.
    at
        Its place there, as codes.
    what
        "probability" or "amount".
    label
        How it is printed.
    """

    node: Conditional
    at: tuple[int, ...]
    what: Literal["probability", "amount"]
    label: str

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.node.variable.name

    @property
    def value(self) -> float:
        """What the entry is now."""
        table = self.node.worth if isinstance(self.node, UtilityNode) else self.node.values
        assert table is not None
        return float(table[self.at])

    @property
    def scale(self) -> float:
        """How large such numbers are: one for probabilities, the largest amount of the utility for amounts."""
        if isinstance(self.node, UtilityNode):
            assert self.node.worth is not None
            return float(np.abs(self.node.worth).max())
        return 1.0

    def node_at(self, x: float) -> Conditional:
        """Return the node with this entry set to x."""
        if isinstance(self.node, UtilityNode):
            assert self.node.worth is not None
            amounts = self.node.worth.copy()
            amounts[self.at] = x
            return UtilityNode(self.node.variable, self.node.parents, amounts)
        table = self.node.values.copy()
        row = table[self.at[:-1]]
        rest = row.sum() - row[self.at[-1]]
        shares = row / rest if rest > 0 else np.full(len(row), 1.0 / max(len(row) - 1, 1))
        row[:] = (1.0 - x) * shares
        row[self.at[-1]] = x
        return ConditionalTable.of(self.node.variable, tuple(self.node.parents), table)

    def pieces_at(self, pieces: Iterable[Any], x: float) -> list[Any]:
        """Return the pieces of a network with this entry set to x."""
        fresh = self.node_at(x)
        return [fresh if piece is self.node else piece for piece in pieces]


def read_number(pieces: Iterable[Any], parameter: Any) -> TableNumber:
    """Return the number that a user names, `(utility, {parent: state})` or `(node, state, {parent: state})`.

    Raises
    ------
    InvalidArgument
        If it is named otherwise.
    """
    nodes = {p.variable.name: p for p in pieces if isinstance(p, Conditional)}
    if not isinstance(parameter, tuple) or not parameter or not isinstance(parameter[0], str):
        raise InvalidArgument(
            "a number is named by (utility, {parent: state}) or (node, state, {parent: state}), not "
            + repr(parameter)
        )
    name, *more = parameter
    if name not in nodes:
        raise UnknownVariable(name, nodes, "the network")
    node = nodes[name]
    _refuse_without_table(node)
    own: list[Hashable] = []
    if not isinstance(node, UtilityNode):
        if not more:
            raise InvalidArgument(f"say which probability of {name!r} is meant: ({name!r}, state, ...)")
        own = [more.pop(0)]
    states: Any = more.pop(0) if more else {}
    if more or not isinstance(states, Mapping):
        raise InvalidArgument(f"the parents' states of a number of {name!r} are a mapping, not {states!r}")
    check_known(states, node.parent_names, f"the parents of {name!r}")
    if missing := [n for n in node.parent_names if n not in states]:
        raise InvalidArgument(f"a number of {name!r} needs a state of {missing[0]!r} too")
    at = [p.index(states[p.name]) for p in node.parents] + [node.variable.index(s) for s in own]
    return number_at(node, tuple(at))


def number_at(node: Conditional, at: tuple[int, ...]) -> TableNumber:
    """Return the number at a place of a table."""
    rows = ", ".join(f"{p.name}={p.states[i]}" for p, i in zip(node.parents, at, strict=False))
    if isinstance(node, UtilityNode):
        return TableNumber(
            node, at, "amount", f"{node.variable.name}({rows})" if rows else node.variable.name
        )
    head = f"{node.variable.name}={node.variable.states[at[-1]]}"
    return TableNumber(node, at, "probability", f"P({head} | {rows})" if rows else f"P({head})")


def numbers_of(pieces: Sequence[Any], parameters: Iterable[Any] | None) -> list[TableNumber]:
    """Return all named numbers: tuples name one, names of nodes all of theirs, None those that a total may depend on.

    Probabilities of zero and one that are not named are left out, for they say what is impossible.
    """
    nodes = {p.variable.name: p for p in pieces if isinstance(p, Conditional)}
    if parameters is None:
        dag = DAG.from_parents({n: node.parent_names for n, node in nodes.items()})
        matter = dag.ancestors([n for n in nodes if isinstance(nodes[n], UtilityNode)], include_self=True)
        parameters = [
            n
            for n in nodes
            if n in matter and not isinstance(nodes[n], DecisionNode) and not _combines(nodes[n])
        ]
    found: list[TableNumber] = []
    for said in [parameters] if isinstance(parameters, str) else parameters:
        if not isinstance(said, str):
            found.append(read_number(pieces, said))
            continue
        if said not in nodes:
            raise UnknownVariable(said, nodes, "the network")
        node = nodes[said]
        _refuse_without_table(node)
        every = [number_at(node, at) for at in np.ndindex(_shape(node))]
        found += [n for n in every if n.what == "amount" or 0.0 < n.value < 1.0]
    return found


def _shape(node: Conditional) -> tuple[int, ...]:
    own = () if isinstance(node.variable, Worth) else (len(node.variable),)
    return (*(len(p) for p in node.parents), *own)


def _combines(node: Conditional) -> bool:
    return isinstance(node, UtilityNode) and node.combines


def _refuse_without_table(node: Conditional) -> None:
    if isinstance(node, DecisionNode):
        raise InvalidArgument(
            f"{node.variable.name!r} is a decision and has no numbers; name a probability or an amount"
        )
    if (node.worth is None) if isinstance(node, UtilityNode) else node.kind != "table":
        raise UnsupportedModel(f"{node.variable.name!r} is a function and has no table of numbers to vary")
