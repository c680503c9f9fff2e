"""Names and states that a file format cannot say, and how they come back unchanged.

Variables may have any name and any mix of strings, integers and booleans as states; most formats know only
identifiers and text. One convention for all of them: the file shows the nearest thing that the format allows,
and four free-form properties (`MARKS`) carry the rest.

- `markovia_name` on a node or on the network: the true name, where the file shows a safe identifier instead;
- `markovia_states` on a node: `int` or `bool` where the states print as shown but are numbers or truth values,
  else a JSON list of the true states;
- `markovia_allowed` on a decision: which states may be chosen, where not all may (`markovia.io.decision_nodes`);
- `markovia_properties`: a JSON object of properties whose keys or values the format has no room for.

A value that is not plain printable text is written as a JSON string, so a mark is always printable ASCII-safe
text on one line. Files by others have no marks, and then names and states are exactly what the file shows.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from markovia.errors import TooLarge, UnsupportedModel
from markovia.factors.decisions.decision import DecisionNode
from markovia.factors.decisions.utility import Worth
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import State, Variable
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.mixed import MixedGraph
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.io.decision_nodes import allowed_mark, listed_amounts
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.factor_model import FactorModel
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork

NAME = "markovia_name"
STATES = "markovia_states"
PROPERTIES = "markovia_properties"
ALLOWED = "markovia_allowed"
MARKS = (NAME, STATES, PROPERTIES, ALLOWED)

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_TRUTH = {"True": True, "False": False}


@dataclass(frozen=True)
class WrittenNode:
    """One variable as a file shows it."""

    variable: Variable
    identifier: str
    states: tuple[str, ...]
    parents: tuple[str, ...]
    """The parents' identifiers in table order."""
    marks: dict[str, str]
    """The marks that restore what the identifier and the states do not say."""
    properties: dict[str, str]
    conditional: Conditional | None

    @property
    def kind(self) -> str:
        """What the file says the node is: "decision", "utility" or "chance"."""
        if isinstance(self.variable, Worth):
            return "utility"
        return "decision" if isinstance(self.conditional, DecisionNode) else "chance"

    def attributes(self, fits: Callable[[str, str], bool], label: str | None = None) -> dict[str, str]:
        """Return the properties and marks to write.

        Parameters
        ----------
        fits
            Whether the format can write this key with this value and will read back the same.
        label
            The property in which the format shows a readable name; it gets the true name where the
            identifier is another one.
        """
        name = self.variable.name
        renamed = self.identifier != name
        # a label equal to the true name would be taken for ours and dropped by the reader
        own = renamed and label is not None and self.properties.get(label) == name
        direct, rest = split_properties(self.properties, lambda k, v: fits(k, v) and not (own and k == label))
        if renamed and label is not None and label not in self.properties and is_plain(name):
            direct[label] = name
        return {**direct, **self.marks, **rest}

    def rows(self) -> NDArray[np.float64] | None:
        """Return the table with one row a parent configuration (amounts: the last parent along the rows), or None.

        Raises
        ------
        UnsupportedModel
            If the distribution is too large for a table.
        """
        if self.conditional is None or self.kind == "decision":
            return None
        if self.kind == "utility":
            return listed_amounts(self.conditional)
        try:
            return self.conditional.values.reshape(-1, len(self.variable))
        except TooLarge as error:
            raise UnsupportedModel(f"the format can only say full tables, and {error}") from None


@dataclass(frozen=True)
class WrittenNetwork:
    """A network as a file shows it."""

    name: str
    identifier: str
    """The network's name as an identifier."""
    marks: dict[str, str]
    """The mark that restores the network's name from the identifier."""
    properties: dict[str, str]
    nodes: tuple[WrittenNode, ...]


def written_network(
    model: object,
    format_name: str,
    *,
    free_names: bool = False,
    free_states: bool = False,
    reserved: Collection[str] = (),
    limit: int | None = None,
) -> WrittenNetwork:
    """Decide how a network's names and states are written.

    Parameters
    ----------
    model
        The network.
    format_name
        What to call the format in an error.
    free_names, free_states
        Whether the format takes any printable text as a name or a state, or only identifiers.
    reserved
        Words that cannot be names.
    limit
        The longest identifier the format allows.

    Raises
    ------
    UnsupportedModel
        If the model is not a Bayesian network.

    Examples
    --------
    >>> bn = BayesianNetwork()
    >>> bn.add("is it raining?", states=[False, True])
    >>> node = written_network(bn, "Hugin NET", free_states=True).nodes[0]
    >>> node.identifier, node.states
    ('is_it_raining', ('False', 'True'))
    >>> node.marks
    {'markovia_name': 'is it raining?', 'markovia_states': 'bool'}
    """
    if not isinstance(model, BayesianNetwork):
        raise refusal(model, f"{format_name} files hold Bayesian networks only")
    names = model.variables
    shown = safe_names(names, free=free_names, reserved=reserved, limit=limit)
    ids = dict(zip(names, shown, strict=True))
    nodes = []
    for name in names:
        variable = model.variable(name)
        own = () if isinstance(variable, Worth) else variable.states
        printed = [str(s) for s in own]
        states = tuple(safe_names(printed, free=free_states, reserved=reserved, limit=limit))
        marks = {} if ids[name] == name else {NAME: encode_text(name)}
        if (mark := states_mark(own, states)) is not None:
            marks[STATES] = mark
        conditional = model[name] if model.has_table(name) else None
        if isinstance(conditional, DecisionNode) and conditional.allowed is not None:
            marks[ALLOWED] = allowed_mark(conditional.allowed)
        nodes.append(
            WrittenNode(
                variable,
                ids[name],
                states,
                tuple(ids[q] for q in model.parents(name)),
                marks,
                dict(model.node_properties.get(name, {})),
                conditional,
            )
        )
    shown_name = safe_names([model.name], reserved=reserved, limit=limit)[0] if model.name else "unnamed"
    marks = {} if shown_name == model.name else {NAME: encode_text(model.name)}
    return WrittenNetwork(model.name, shown_name, marks, dict(model.properties), tuple(nodes))


def refusal(model: object, holds: str) -> UnsupportedModel:
    """Return the error for something that a format does not hold, with the formats that do.

    Parameters
    ----------
    model
        What was to be written.
    holds
        What the format holds, as the first half of the sentence.

    Examples
    --------
    >>> from markovia.graphs import UndirectedGraph
    >>> print(refusal(UndirectedGraph(), "BIF files hold Bayesian networks only"))
    BIF files hold Bayesian networks only, not an UndirectedGraph; save it as .dagitty or .json
    """
    kind = type(model).__name__
    if isinstance(model, DAG | UndirectedGraph | MixedGraph):
        cure = "; save it as .dagitty or .json"
    elif isinstance(model, FactorModel):
        cure = "; save it as .uai or .json, or convert it first"
    elif isinstance(model, DynamicBayesianNetwork):
        cure = "; save it as .json, or what its unroll(steps) returns"
    else:
        cure = ""
    return UnsupportedModel(f"{holds}, not {'an' if kind[0] in 'AEIOUaeiou' else 'a'} {kind}{cure}")


def safe_names(
    names: Iterable[str],
    *,
    free: bool = False,
    reserved: Collection[str] = (),
    limit: int | None = None,
) -> list[str]:
    """Return distinct names that a format can write, unchanged wherever it can.

    Parameters
    ----------
    names
        Any strings; equal ones get different safe names.
    free
        Whether printable text will do (see `is_plain`) or it has to be an identifier.
    reserved, limit
        As for `written_network`.

    Examples
    --------
    >>> safe_names(["x", "x y", "x_y", "9 < 10", "µ"])
    ['x', 'x_y_2', 'x_y', 'x9_10', 'x_2']
    """
    names = list(names)
    shown: list[str | None] = [None] * len(names)
    taken = set(reserved)
    for i, name in enumerate(names):
        fits = is_plain(name) if free else _IDENTIFIER.fullmatch(name) is not None
        if fits and name not in taken and (limit is None or len(name) <= limit):
            shown[i] = name
            taken.add(name)
    used: dict[str, int] = {}
    for i, name in enumerate(names):
        if shown[i] is not None:
            continue
        stem = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
        if not _IDENTIFIER.match(stem):
            stem = "x" + stem
        stem = stem[: (limit or 64) - 8]
        count = used.get(stem, 0)
        candidate = stem if count == 0 else f"{stem}_{count + 1}"
        while candidate in taken:
            count += 1
            candidate = f"{stem}_{count + 1}"
        used[stem] = count
        shown[i] = candidate
        taken.add(candidate)
    return [s for s in shown if s is not None]


def is_plain(text: str) -> bool:
    """Say whether text survives any format that quotes or escapes: printable, one line, no outer blanks."""
    return bool(text) and text.isprintable() and text == text.strip()


def encode_text(text: str) -> str:
    """Write any string as printable text: itself if it is plain, else as a JSON string.

    Examples
    --------
    >>> encode_text("a b"), encode_text(" a")
    ('a b', '" a"')
    """
    return text if is_plain(text) and not text.startswith('"') else json.dumps(text)


def decode_text(text: str) -> str:
    """Undo `encode_text`.

    Raises
    ------
    ValueError
        If the text starts like a JSON string but is none.
    """
    if not text.startswith('"'):
        return text
    decoded = json.loads(text)
    if not isinstance(decoded, str):
        raise ValueError("not a JSON string")
    return decoded


def states_mark(states: Sequence[State], shown: Sequence[str]) -> str | None:
    """Return the mark that turns the shown states back into the true ones, or None if they are the same."""
    if list(states) == list(shown) and all(isinstance(s, str) for s in states):
        return None
    if [str(s) for s in states] == list(shown):
        if all(isinstance(s, bool) for s in states):
            return "bool"
        if all(isinstance(s, int) and not isinstance(s, bool) for s in states):
            return "int"
    return json.dumps(list(states))


def restored_states(shown: Sequence[State], mark: str) -> list[State]:
    """Undo `states_mark`.

    Raises
    ------
    ValueError
        If the mark does not fit the shown states.
    """
    if mark == "bool":
        return [_TRUTH[str(s)] if str(s) in _TRUTH else _refuse(f"{s!r} is not True or False") for s in shown]
    if mark == "int":
        return [int(str(s)) for s in shown]
    states = json.loads(mark)
    if not isinstance(states, list) or not all(isinstance(s, str | int) for s in states):
        raise ValueError("not a list of states")
    if len(states) != len(shown):
        raise ValueError(f"{len(states)} states instead of {len(shown)}")
    return states


def split_properties(
    properties: Mapping[str, str], fits: Callable[[str, str], bool]
) -> tuple[dict[str, str], dict[str, str]]:
    """Separate the properties a format can write from the mark that carries the rest.

    Parameters
    ----------
    properties
        Any string to string mapping.
    fits
        Whether the format can write this key with this value and will read back the same.

    Examples
    --------
    >>> split_properties({"label": "x", "a b": "y"}, lambda key, value: key.isidentifier())
    ({'label': 'x'}, {'markovia_properties': '{"a b": "y"}'})
    """
    direct = {k: v for k, v in properties.items() if k not in MARKS and fits(k, v)}
    rest = {k: v for k, v in properties.items() if k not in direct}
    return direct, {PROPERTIES: json.dumps(rest)} if rest else {}


def joined_properties(properties: dict[str, str], mark: str) -> dict[str, str]:
    """Undo `split_properties`.

    Raises
    ------
    ValueError
        If the mark is not a JSON object of strings.
    """
    rest = json.loads(mark)
    if not isinstance(rest, dict) or not all(isinstance(v, str) for v in rest.values()):
        raise ValueError("not an object of strings")
    return {**properties, **rest}


def _refuse(reason: str) -> State:
    raise ValueError(reason)
