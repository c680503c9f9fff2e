"""What an edit says: one type a change, `op` tells which."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from markovia.studio.documents.messages import Name, Names, Number

States = Annotated[list[Name], Meta(min_length=1, max_length=1000)]
Coordinate = Annotated[float, Meta(ge=-1e7, le=1e7)]


class Edit(Struct, tag_field="op", forbid_unknown_fields=True, omit_defaults=True):
    """One change; `op` says which."""


class AddNode(Edit, tag="add_node"):
    """Add a variable with states; its table is uniform."""

    name: Name
    states: States
    parents: Names = []
    at: tuple[Coordinate, Coordinate] | None = None


class AddNumberNode(Edit, tag="add_number_node"):
    """Add a number: a standard normal."""

    name: Name
    at: tuple[Coordinate, Coordinate] | None = None


class AddDecision(Edit, tag="add_decision"):
    """Add a decision among states; its parents are what it sees."""

    name: Name
    states: States
    parents: Names = []
    at: tuple[Coordinate, Coordinate] | None = None


class AddUtility(Edit, tag="add_utility"):
    """Add a utility, worth zero whatever its parents are."""

    name: Name
    parents: Names = []
    at: tuple[Coordinate, Coordinate] | None = None


class RemoveNode(Edit, tag="remove_node"):
    """Remove a variable; its children forget it."""

    name: Name


class Rename(Edit, tag="rename"):
    """Rename a variable."""

    name: Name
    to: Name


class Connect(Edit, tag="connect"):
    """Add an edge; the child's rows are repeated, so that nothing else changes. One without a direction gets this one."""

    parent: Name
    child: Name


class Disconnect(Edit, tag="disconnect"):
    """Remove an edge; the child's rows are averaged over the parent as it is distributed alone."""

    parent: Name
    child: Name


class SetStates(Edit, tag="set_states"):
    """Give a variable other states: renamed where there are as many, else kept by name."""

    name: Name
    states: States


class SetTable(Edit, tag="set_table"):
    """Give a variable the rows of its table, one a combination of the parents' states, the last parent fastest.

    A row of a utility is one amount.
    """

    name: Name
    rows: Annotated[list[list[Number]], Meta(min_length=1, max_length=65_536)]
    normalise: bool = False


class Regression(Struct, forbid_unknown_fields=True):
    """A linear Gaussian."""

    bias: Number = 0.0
    weights: dict[Name, Number] = {}
    variance: Number = 1.0


class Form(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The parameters of a noisy-or or noisy-and, or one regression a combination of the discrete parents' states."""

    kind: Literal["table", "noisy-or", "noisy-and", "linear-gaussian"]
    strengths: dict[Name, Number] = {}
    leak: Number = 0.0
    on: dict[Name, str] = {}
    rows: Annotated[list[Regression], Meta(max_length=65_536)] = []


class SetLocal(Edit, tag="set_local"):
    """Give a variable a distribution by its few parameters."""

    name: Name
    form: Form


class Note(Edit, tag="note"):
    """Write a note on a variable; an empty one removes it."""

    name: Name
    text: Annotated[str, Meta(max_length=100_000)]


class Move(Edit, tag="move"):
    """Put nodes elsewhere."""

    positions: dict[Name, tuple[Coordinate, Coordinate]]


class Tidy(Edit, tag="tidy"):
    """Lay all nodes out anew, as when the model was opened."""


class SetName(Edit, tag="name"):
    """Name the model."""

    to: Name


AnyEdit = (
    AddNode | AddNumberNode | AddDecision | AddUtility | RemoveNode | Rename | Connect | Disconnect | SetStates | SetTable
    | SetLocal | Note | Move | Tidy | SetName
)  # fmt: skip
