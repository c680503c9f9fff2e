"""What the formats say of decisions and utilities: choices without a table, and amounts in the order of the parents.

GeNIe, Hugin, Netica and XMLBIF agree on all of it: the parents of a decision are what it sees; the amounts of a utility
come with the last parent fastest, as rows of probabilities do. None of them can forbid choices: what is allowed travels in
the mark `markovia_allowed` (0 and 1, one word for each thing seen), which other programs do not read. Utilities of
utilities are weighted sums; only GeNIe (`mau`) has them.
"""

from math import prod

import numpy as np

from markovia.errors import UnsupportedModel, warn_user
from markovia.factors.decisions.decision import Allowed, DecisionNode
from markovia.factors.decisions.quadratic import Quadratic
from markovia.factors.decisions.utility import UtilityNode, Worth
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import Variable
from markovia.models.graphical.decisions.decision_verbs import DecisionVerbs
from markovia.runtime.array_types import Array
from markovia.runtime.source_text import Source, shown

HELD_KINDS = ("table", "decision", "utility")
KEPT = "pickle keeps it"
HELD = "save it as .xdsl, .net, .dne or .xmlbif, or as .json, which holds every model"


def read_choice(
    source: Source, at: int, variable: Variable, parents: tuple[Variable, ...], mark: str | None
) -> DecisionNode:
    """Return a decision that sees its parents, with what the mark allows."""
    node = DecisionNode(variable, parents)
    if mark is None:
        return node
    shape = (*(len(p) for p in parents), len(variable))
    signs = mark.replace(" ", "")
    if len(signs) != prod(shape) or not {*signs} <= {"0", "1"}:
        raise source.error(
            at, f"expected {prod(shape):,} signs 0 and 1 for what {shown(variable.name)} may be"
        )
    allowed = (np.frombuffer(signs.encode(), dtype=np.uint8) == ord("1")).reshape(shape)
    if not allowed.any(axis=-1).all():
        raise source.error(
            at, f"expected something to be allowed for {shown(variable.name)} whatever is seen"
        )
    allowed.setflags(write=False)
    return DecisionNode(variable, parents, allowed)


def read_amounts(
    source: Source, at: int, variable: Variable, parents: tuple[Variable, ...], values: Array
) -> UtilityNode:
    """Return a utility whose amounts are listed with the last parent fastest."""
    assert isinstance(variable, Worth)
    if mixed := next((p.name for p in parents if isinstance(p, Worth)), None):
        raise source.error(
            at, f"expected parents with states for {shown(variable.name)}, found the utility {shown(mixed)}"
        )
    shape = tuple(len(p) for p in parents)
    if prod(shape) != values.size:
        raise source.error(
            at, f"expected {prod(shape):,} amounts for {shown(variable.name)}, found {values.size:,}"
        )
    return UtilityNode(variable, parents, values.reshape(shape))


def read_weights(
    source: Source, at: int, variable: Variable, parents: tuple[Variable, ...], weights: Array | None
) -> UtilityNode:
    """Return a weighted sum of utilities; a plain sum where there are no weights."""
    assert isinstance(variable, Worth)
    if odd := next((p.name for p in parents if not isinstance(p, Worth)), None):
        raise source.error(
            at, f"expected utilities to be weighed by {shown(variable.name)}, found {shown(odd)}"
        )
    if weights is None:
        weights = np.ones(len(parents))
    if weights.size != len(parents):
        raise source.error(
            at, f"expected {len(parents)} weights for {shown(variable.name)}, found {weights.size}"
        )
    return UtilityNode(
        variable, parents, Quadratic({}, dict(zip([p.name for p in parents], weights.tolist(), strict=True)))
    )


def allowed_mark(allowed: Allowed) -> str:
    """Return what may be chosen as words of 0 and 1, one for each thing seen."""
    rows = allowed.reshape(-1, allowed.shape[-1])
    return " ".join("".join("01"[int(x)] for x in row) for row in rows)


def listed_amounts(node: Conditional) -> Array:
    """Return the amounts of a utility as rows, the last parent along them.

    Raises
    ------
    UnsupportedModel
        If it is no table.
    """
    assert isinstance(node, UtilityNode)
    if node.worth is None:
        raise UnsupportedModel(
            f"the format holds tables of amounts, and {node.variable.name!r} is worth a function of "
            f"{', '.join(map(repr, node.parent_names))}; {_cure(node)}"
        )
    return node.worth.reshape(-1, node.worth.shape[-1] if node.worth.ndim else 1)


def linear_weights(node: Conditional) -> list[float]:
    """Return the weights of a utility of utilities, in the order of its parents.

    Raises
    ------
    UnsupportedModel
        If it is not written as a weighted sum.
    """
    assert isinstance(node, UtilityNode)
    form = node.form
    if not isinstance(form, Quadratic) or form.terms or form.constant:
        raise UnsupportedModel(
            f"the format holds weighted sums of utilities, and {node.variable.name!r} is another function; say the weights "
            "as mk.Quadratic({}, linear={...})"
        )
    return [form.linear.get(name, 0.0) for name in node.parent_names]


def refuse_decisions(model: DecisionVerbs, holder: str) -> None:
    """Refuse a network with decisions or utilities.

    Raises
    ------
    UnsupportedModel
        With formats that hold them.
    """
    if names := [*model.decisions, *model.utilities]:
        raise UnsupportedModel(f"{holder} hold no decisions and utilities such as {names[0]!r}; {HELD}")


def check_nodes(model: DecisionVerbs, format_name: str) -> None:
    """Refuse nodes that a format of tables does not hold; warn of rules that other programs overlook.

    Raises
    ------
    UnsupportedModel
        If a node is no table, decision or utility.
    """
    nodes: dict[str, Conditional] = {n: model[n] for n in model.variables if model.has_table(n)}
    if odd := next((n for n, node in nodes.items() if node.kind not in HELD_KINDS), None):
        raise UnsupportedModel(
            f"{format_name} files hold tables, and {odd!r} is of the kind {nodes[odd].kind!r}; {KEPT}"
        )
    if ruled := next((n for n, node in nodes.items() if getattr(node, "allowed", None) is not None), None):
        warn_user(
            f"{format_name} files do not say what is forbidden: markovia reads back what {ruled!r} may be, other programs "
            "allow everything"
        )


def _cure(node: UtilityNode) -> str:
    return (
        "save it as .xdsl"
        if node.combines and isinstance(node.form, Quadratic)
        else "give it states to depend on"
    )
