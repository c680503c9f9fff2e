"""Netica DNE files (`.dne`, DNET-1).

    // ~->[DNET-1]->~
    bnet weather {
    node rain { kind = NATURE; discrete = TRUE; states = (no, yes); parents = (); probs = (0.8, 0.2); };
    node wet  { kind = NATURE; discrete = TRUE; states = (no, yes); parents = (rain);
                probs = ((0.9, 0.1), (0.2, 0.8)); title = "Wet grass"; };
    node umbrella { kind = DECISION; discrete = TRUE; states = (take, leave); parents = (rain); };
    node comfort { kind = UTILITY; discrete = FALSE; parents = (rain, umbrella);
                   functable = ((20, 100), (70, 0)); };
    };

In `probs` the child varies fastest, then the last parent; `@imposs` is zero. `functable` gives a deterministic node
one state a parent configuration, and a utility one amount, the last parent fastest. States without names are the
integers 0 ... k-1; a discretised continuous node has one state fewer than `levels`. Text notes (`kind = CONSTANT`)
are skipped. Names are at most 30 letters, digits and underscores, longer or stranger ones come back through marks.
Reading is linear in the size of the file. Reference: Norsys, *DNET file format*.
"""

import re

import numpy as np
from numpy.typing import NDArray

from markovia.factors.decisions.utility import Worth
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import State, Variable
from markovia.io.decision_nodes import read_amounts
from markovia.io.declarations import (
    DeclaredVariable,
    Define,
    Parents,
    choice,
    declared_network,
    dense,
    deterministic,
    numbered_states,
)
from markovia.io.identifiers import STATES, WrittenNode, split_properties, written_network
from markovia.io.numbers import is_number
from markovia.io.rows import RowPolicy
from markovia.io.scanner import MOST_ITEMS, Scanner, is_bare
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.source_text import Source, quote, shown

_LONGEST = 30
_KINDS = {"nature": "chance", "decision": "decision", "utility": "utility"}
_OWN = {
    "kind",
    "discrete",
    "chance",
    "states",
    "numstates",
    "parents",
    "probs",
    "functable",
    "visual",
    "node",
}
_RESERVED = {"bnet", "node", "visual", "true", "false"}
_BARE = {
    "levels", "statetitles", "numcases", "evidence", "inputs", "delays", "belief", "whenchanged", "autoupdate",
    "autocompile", "elimorder", "persistance", "measured", "statecomments",
}  # fmt: skip
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_POINT = re.compile(r"\(-?[0-9.]+, -?[0-9.]+\)")


def read_dne(text: str, source: str | None = None) -> BayesianNetwork:
    """Read a Netica DNE file.

    Parameters
    ----------
    text
        The file's content.
    source
        Its name, for errors and warnings.

    Returns
    -------
    BayesianNetwork
        Titles, comments and other attributes are in `properties` and `node_properties`, the position of a
        node under `center`. A node without `probs` and `functable` has no table.

    Raises
    ------
    ParseError
        If the text is not a discrete network in this format.

    Examples
    --------
    >>> bn = read_dne("bnet b { node rain { kind = NATURE; states = (no, yes); probs = (0.8, 0.2); }; };")
    >>> bn.name, bn.query("rain")["yes"]
    ('b', 0.2)
    """
    return _DneReader(Source(text, source)).read()


def write_dne(model: object) -> str:
    """Write a Bayesian network as a Netica DNE file.

    Raises
    ------
    UnsupportedModel
        If the model is not a Bayesian network, or a structured distribution is too large for a table.

    Examples
    --------
    >>> bn = BayesianNetwork(name="weather")
    >>> bn.add("rain", states=["no", "yes"], p=[0.75, 0.25])
    >>> print(write_dne(bn))
    // ~->[DNET-1]->~
    <BLANKLINE>
    bnet weather {
    <BLANKLINE>
    node rain {
      kind = NATURE;
      discrete = TRUE;
      chance = CHANCE;
      states = (no, yes);
      parents = ();
      probs = (0.75, 0.25);
    };
    };
    """
    network = written_network(model, "Netica DNE", reserved=_RESERVED, limit=_LONGEST)
    direct, rest = split_properties(network.properties, _fits)
    head = "".join(_attribute(k, v) for k, v in {**direct, **network.marks, **rest}.items())
    nodes = "\n".join(_node_block(node) for node in network.nodes)
    return f"// ~->[DNET-1]->~\n\nbnet {network.identifier} {{\n{head}\n{nodes}}};\n"


def _node_block(node: WrittenNode) -> str:
    if node.kind == "utility":
        return _utility_block(node)
    lines = ["kind = NATURE;", "discrete = TRUE;", "chance = CHANCE;"]
    if node.kind == "decision":
        lines = ["kind = DECISION;", "discrete = TRUE;"]
    numbered = node.variable.numbered
    # titles of renamed states are ours: a reader drops them, so a node's own ones travel in a mark
    titled = STATES in node.marks and not numbered
    texts = [str(s) for s in node.variable.states]

    def fits(key: str, value: str) -> bool:
        return _fits_node(key, value) and not (titled and key == "statetitles")

    written = node.attributes(fits, "title")
    if numbered:
        lines.append(f"numstates = {len(texts)};")
        written.pop(STATES, None)
    else:
        lines.append(f"states = ({', '.join(node.states)});")
    if titled and list(node.states) != texts and all(map(str.isprintable, texts)):
        lines.append(f"statetitles = ({', '.join(map(quote, texts))});")
    lines.append(f"parents = ({', '.join(node.parents)});")
    rows = node.rows()
    if rows is not None:
        lines.append(f"probs = {_tuples(rows, nested=bool(node.parents))};")
    return _node_text(node, lines, written)


def _utility_block(node: WrittenNode) -> str:
    lines = [
        "kind = UTILITY;",
        "discrete = FALSE;",
        "chance = DETERMIN;",
        f"parents = ({', '.join(node.parents)});",
    ]
    rows = node.rows()
    if rows is not None:
        lines.append(f"functable = {_tuples(rows, nested=len(node.parents) > 1)};")
    return _node_text(node, lines, node.attributes(_fits_node, "title"))


def _tuples(rows: NDArray[np.float64], nested: bool) -> str:
    listed = [f"({', '.join(map(repr, row))})" for row in rows.tolist()]
    return "(\n    " + ",\n    ".join(listed) + ")" if nested else listed[0]


def _node_text(node: WrittenNode, lines: list[str], written: dict[str, str]) -> str:
    body = "".join(f"  {line}\n" for line in lines)
    body += "".join(_attribute(k, v) for k, v in written.items())
    return f"node {node.identifier} {{\n{body}}};\n"


def _fits(key: str, value: str) -> bool:
    printable = value.replace("\n", "").replace("\t", "").isprintable()
    known = key.lower() in _OWN or key.lower() in ("center", "nodeset")
    return printable and not known and _KEY.fullmatch(key) is not None


def _fits_node(key: str, value: str) -> bool:
    return _POINT.fullmatch(value) is not None if key == "center" else _fits(key, value)


def _attribute(key: str, value: str) -> str:
    if key == "center":
        return f"  visual V1 {{ center = {value}; }};\n"
    return f"  {key} = {value if key.lower() in _BARE and is_bare(value) else quote(value)};\n"


class _DneReader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.scan = Scanner(source)
        self.policy = RowPolicy(source.name)
        self.nodes: list[DeclaredVariable] = []
        self.properties: dict[str, str] = {}

    def read(self) -> BayesianNetwork:
        scan = self.scan
        begin = scan.expect("bnet")
        name = scan.text("the name of the network")
        scan.expect("{")
        while not scan.take("}"):
            if scan.sees("node"):
                self._node()
            else:
                self._statement(self.properties)
        scan.take(";")
        if scan.kind != "end":
            raise scan.expected("the end of the file")
        network = declared_network(self.source, self.nodes, name=name, properties=self.properties, at=begin)
        self.policy.finish()
        return network

    def _statement(self, properties: dict[str, str]) -> None:
        """Read `key = value;` into the properties, or a block such as `visual V1 { ... };`."""
        scan = self.scan
        key = scan.word("an attribute or '}'")
        if scan.take("="):
            properties[key] = scan.free_value()
            scan.expect(";")
            return
        if scan.kind == "word":
            scan.advance()
        if not scan.sees("{"):
            raise scan.expected("'=' or '{'")
        if key.lower() == "visual":
            self._visual(properties)
        else:
            scan.skip_block()
        scan.take(";")

    def _visual(self, properties: dict[str, str]) -> None:
        """Keep a node's position; the rest of a drawing belongs to the program that made it."""
        scan = self.scan
        scan.expect("{")
        while not scan.sees("}"):
            if scan.kind == "word" and scan.value == "center":
                scan.advance()
                scan.expect("=")
                properties["center"] = scan.free_value()
                scan.expect(";")
                continue
            if scan.kind == "end":
                raise scan.expected("'}'")
            if scan.sees("{"):
                scan.skip_block()
            else:
                scan.advance()
        scan.advance()

    def _node(self) -> None:
        scan = self.scan
        at = scan.expect("node")
        node = DeclaredVariable(scan.text("the name of the node"), at, label="title")
        kind, kind_at, continuous, count = "nature", at, False, None
        scan.expect("{")
        while not scan.take("}"):
            place = scan.at
            key = scan.value.lower() if scan.kind == "word" else ""
            if key not in _OWN or key in ("visual", "node"):
                self._statement(node.properties)
                continue
            scan.advance()
            scan.expect("=")
            if key == "kind":
                kind_at = scan.at
                kind = scan.word("the kind of the node")
            elif key == "discrete":
                continuous = scan.word("TRUE or FALSE").lower() == "false"
            elif key == "chance":
                scan.word("CHANCE or DETERMIN")
            elif key == "states":
                node.states = [state for state, _ in scan.items("a state")]
            elif key == "numstates":
                count = scan.word("the number of states"), place
            elif key == "parents":
                node.parents = scan.items("a parent")
            elif key == "probs":
                node.define = self._probs()
            else:
                node.define = self._functable(node)
            scan.expect(";")
        scan.take(";")
        if kind.lower() == "constant":
            return
        if kind.lower() not in _KINDS:
            raise self.source.error(
                kind_at,
                f"nodes of the kind {shown(kind)} are not supported; expected NATURE, DECISION or UTILITY",
            )
        node.kind = _KINDS[kind.lower()]
        if node.kind == "utility":
            node.states = []
            self.nodes.append(node)
            return
        if node.kind == "decision":  # a table that is there is the policy that Netica found
            node.define = choice(self.source, node)
        levels = _list_length(node.properties.get("levels", ""))
        if continuous and not levels:
            raise self.source.error(
                at, "continuous nodes are not supported; expected levels that discretise it"
            )
        if not node.states:
            node.states = self._unnamed(node, count, levels - continuous)
        elif STATES in node.properties:
            node.properties.pop("statetitles", None)
        self.nodes.append(node)

    def _unnamed(self, node: DeclaredVariable, count: tuple[str, int] | None, levels: int) -> list[State]:
        if count is not None:
            return numbered_states(self.source, *count)
        if levels > 0:
            return list(range(levels))
        raise self.source.error(node.at, f"expected the states of {shown(node.identifier)}")

    def _probs(self) -> Define:
        numbers = self.scan.numbers(zero="@imposs")
        return dense(self.source, self.policy, numbers.values, numbers.at, numbers.locate)

    def _functable(self, node: DeclaredVariable) -> Define:
        scan = self.scan
        start, depth = scan.at, 0
        found: list[tuple[str, int]] = []
        while not scan.sees(";"):
            if scan.take("("):
                depth += 1
            elif depth and scan.take(")"):
                depth -= 1
            elif not scan.take(","):
                place = scan.at
                found.append((scan.text("a state or ';'"), place))
                if len(found) > MOST_ITEMS:
                    raise scan.expected("';'")
        if depth:
            raise scan.expected("')'")

        def define(variable: Variable, parents: Parents) -> Conditional:
            if isinstance(variable, Worth):
                return read_amounts(self.source, start, variable, parents, numbers())
            return certain(variable, parents)

        def numbers() -> NDArray[np.float64]:
            for text, place in found:
                if not is_number(text):
                    raise self.source.error(place, f"expected an amount, found {shown(text)}")
            return np.array([float(text) for text, _ in found])

        def codes(variable: Variable) -> list[int]:
            known = {f"#{i}": i for i in range(len(variable))}
            known |= {str(state): i for i, state in enumerate(node.states)}
            result = []
            for state, place in found:
                if state not in known:
                    raise self.source.error(
                        place, f"expected a state of {shown(variable.name)}, found {shown(state)}"
                    )
                result.append(known[state])
            return result

        certain = deterministic(self.source, codes, start)
        return define


def _list_length(text: str) -> int:
    inner = text.strip("()").strip()
    return len(inner.split(",")) if inner else 0
