"""Hugin NET files (`.net`), as Hugin, GeNIe, SamIam, bnlearn and pyAgrum write them.

    net { node_size = (50 50); }
    node rain { states = ("no" "yes"); label = "Rain"; position = (10 20); }
    node wet  { states = ("no" "yes"); }
    potential (rain) { data = (0.8 0.2); }
    potential (wet | rain) { data = ((0.9 0.1) (0.2 0.8)); }   % the child varies fastest
    decision umbrella { states = ("take" "leave"); }
    utility comfort { }
    potential (umbrella | rain) { }                            % what is seen
    potential (comfort | rain umbrella) { data = ((20 100) (70 0)); }   % the last parent varies fastest

Attributes other than the states are kept as properties of the network and its nodes. A `class` around everything
(object-oriented files without instances) is looked through. Continuous nodes, conditional Gaussians and tables given
as expressions have no place in a discrete network and are refused by name. Reading is linear in the size of the file.
Reference: *The HUGIN file format*, Hugin API reference manual.
"""

import re
from itertools import pairwise

from markovia.errors import ParseError
from markovia.factors.tables.variable import State
from markovia.io.declarations import DeclaredVariable, Define, choice, declared_network, dense
from markovia.io.identifiers import WrittenNode, split_properties, written_network
from markovia.io.rows import RowPolicy
from markovia.io.scanner import Scanner, is_bare
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.source_text import Source, hint, quote, shown

_UNSUPPORTED = ("continuous", "function", "instance", "interval")
_KINDS = {"node": "chance", "decision": "decision", "utility": "utility"}
_RESERVED = {"net", "class", *_KINDS, "discrete", "potential", "data", "states", "normal", *_UNSUPPORTED}
_BARE = {"position", "node_size", "state_values", "subtype", "inputs", "outputs"}
_NORMAL = re.compile(r"[\s(]*+normal\b")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_net(text: str, source: str | None = None) -> BayesianNetwork:
    """Read a Hugin NET file.

    Parameters
    ----------
    text
        The file's content.
    source
        Its name, for errors and warnings.

    Returns
    -------
    BayesianNetwork
        Attributes are in `properties` and `node_properties`. A node without `data` has no table.

    Raises
    ------
    ParseError
        If the text is not a discrete network in this format.

    Examples
    --------
    >>> bn = read_net('net {} node rain { states = ("no" "yes"); } potential (rain) { data = (0.8 0.2); }')
    >>> bn.query("rain")["yes"]
    0.2
    """
    return _NetReader(Source(text, source)).read()


def write_net(model: object) -> str:
    """Write a Bayesian network as a Hugin NET file.

    Raises
    ------
    UnsupportedModel
        If the model is not a Bayesian network, or a structured distribution is too large for a table.

    Examples
    --------
    >>> bn = BayesianNetwork()
    >>> bn.add("rain", states=["no", "yes"], p=[0.75, 0.25])
    >>> print(write_net(bn))
    net {
    }
    <BLANKLINE>
    node rain {
      states = ("no" "yes");
    }
    <BLANKLINE>
    potential (rain) {
      data = (0.75 0.25);
    }
    """
    network = written_network(model, "Hugin NET", free_states=True, reserved=_RESERVED)
    direct, rest = split_properties(
        network.properties, lambda key, value: key != "name" and _fits(key, value)
    )
    named = {"name": network.name} if network.name and "\0" not in network.name else network.marks
    head = {**(named if network.name else {}), **direct, **rest}
    blocks = ["net {\n" + "".join(_attribute(k, v) for k, v in head.items()) + "}\n"]
    blocks += [_node_block(node) for node in network.nodes]
    blocks += [_potential_block(node) for node in network.nodes]
    return "\n".join(blocks)


def _node_block(node: WrittenNode) -> str:
    states = "" if node.kind == "utility" else f"  states = ({' '.join(map(quote, node.states))});\n"
    written = node.attributes(lambda key, value: key.lower() != "states" and _fits(key, value), "label")
    attributes = "".join(_attribute(k, v) for k, v in written.items())
    word = "node" if node.kind == "chance" else node.kind
    return f"{word} {node.identifier} {{\n{states}{attributes}}}\n"


def _potential_block(node: WrittenNode) -> str:
    given = f" | {' '.join(node.parents)}" if node.parents else ""
    rows = node.rows()
    if rows is None:
        return f"potential ({node.identifier}{given}) {{\n}}\n"
    lines = [f"({' '.join(map(repr, row))})" for row in rows.tolist()]
    flat = len(node.parents) < (2 if node.kind == "utility" else 1)
    table = lines[0] if flat else "(\n    " + "\n    ".join(lines) + ")"
    return f"potential ({node.identifier}{given}) {{\n  data = {table};\n}}\n"


def _fits(key: str, value: str) -> bool:
    printable = value.replace("\n", "").replace("\t", "").isprintable()
    return printable and _KEY.fullmatch(key) is not None


def _attribute(key: str, value: str) -> str:
    return f"  {key} = {value if key in _BARE and is_bare(value) else quote(value)};\n"


class _NetReader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.scan = Scanner(source, percent=True)
        self.policy = RowPolicy(source.name)
        self.nodes: dict[str, DeclaredVariable] = {}
        self.potentials: set[str] = set()
        self.name = ""
        self.properties: dict[str, str] = {}

    def read(self) -> BayesianNetwork:
        scan = self.scan
        begin, wrapped = scan.at, False
        if scan.sees("net"):
            self._head()
        elif scan.take("class"):
            self.name = scan.word("the name of the class")
            scan.expect("{")
            wrapped = True
        else:
            raise scan.expected("'net' or 'class'")
        pending: list[DeclaredVariable] = []
        while scan.kind != "end" and not (wrapped and scan.sees("}")):
            self._item(pending, wrapped)
        if wrapped:
            scan.expect("}")
        if scan.kind != "end":
            raise scan.expected("the end of the file")
        self._attach(pending)
        network = declared_network(
            self.source, self.nodes.values(), name=self.name, properties=self.properties, at=begin
        )
        self.policy.finish()
        return network

    def _head(self) -> None:
        self.scan.advance()
        if self.scan.kind == "word":
            self.name = self.scan.word("a name")
        self.scan.expect("{")
        while not self.scan.take("}"):
            key, value = self._assignment()
            if key == "name":
                self.name = value
            else:
                self.properties[key] = value

    def _item(self, pending: list[DeclaredVariable], wrapped: bool) -> None:
        scan = self.scan
        for kind in _UNSUPPORTED:
            if scan.sees(kind):
                raise self._refused(f"{kind} nodes are not supported")
        if scan.sees("potential"):
            self._potential(pending)
            return
        at = scan.at
        word = scan.word("'node' or 'potential'")
        if word == "discrete":
            word = scan.word("'node'")
            if word not in ("node", "decision"):
                raise self.source.error(at, f"expected 'discrete node', found {shown(word)}")
        elif word not in _KINDS:
            if wrapped and scan.take("="):
                self.properties[word] = scan.free_value()
                scan.expect(";")
                return
            raise self.source.error(at, f"expected 'node' or 'potential', found {shown(word)}")
        self._node(at, _KINDS[word])

    def _node(self, at: int, kind: str) -> None:
        scan = self.scan
        identifier = scan.text("the name of the node")
        if identifier in self.nodes:
            raise self.source.error(at, f"expected a new node, but {shown(identifier)} is declared twice")
        node = self.nodes[identifier] = DeclaredVariable(identifier, at, kind=kind, label="label")
        scan.expect("{")
        while not scan.take("}"):
            if scan.sees("states"):
                scan.advance()
                scan.expect("=")
                node.states = [state for state, _ in scan.items("a state")]
                scan.expect(";")
            else:
                key, value = self._assignment()
                node.properties[key] = value
        if kind == "decision":
            node.define = choice(self.source, node)
        if kind == "utility":
            node.states = []
        elif not node.states:
            node.states = _implied_states(node.properties)
        if not node.states and kind != "utility":
            raise self.source.error(at, f"expected the states of {shown(identifier)}")

    def _potential(self, pending: list[DeclaredVariable]) -> None:
        scan = self.scan
        at = scan.expect("potential")
        scan.expect("(")
        child = scan.text("the child of the potential")
        parents: list[tuple[str, int]] = []
        if scan.take("|"):
            while not scan.sees(")"):
                place = scan.at
                parents.append((scan.text("a parent or ')'"), place))
                scan.take(",")
        if not scan.sees(")"):
            raise scan.expected("'|' or ')' after the one child of a potential")
        scan.advance()
        scan.expect("{")
        table = DeclaredVariable(child, at, parents=parents)
        while not scan.take("}"):
            key = scan.word("an attribute or '}'")
            if key == "data":
                scan.expect("=")
                table.define = self._data()
            elif key.startswith("model_") or key == "samples_per_interval":
                raise self.source.error(scan.at, "expressions are not supported; expected a table in 'data'")
            else:
                scan.expect("=")
                scan.free_value()
            scan.expect(";")
        pending.append(table)

    def _data(self) -> Define:
        scan = self.scan
        start = scan.at
        if _NORMAL.match(self.source.text, start):
            raise self.source.error(
                start, "conditional Gaussians ('normal') are not supported; expected numbers"
            )
        numbers = scan.numbers()
        return dense(self.source, self.policy, numbers.values, numbers.at, numbers.locate)

    def _attach(self, pending: list[DeclaredVariable]) -> None:
        for table in pending:
            child = table.identifier
            if child not in self.nodes:
                near = hint(child, self.nodes)
                raise self.source.error(table.at, f"expected a declared node, found {shown(child)}{near}")
            if child in self.potentials:
                raise self.source.error(
                    table.at, f"expected one potential a node, found a second one of {shown(child)}"
                )
            self.potentials.add(child)
            self.nodes[child].parents = table.parents
            if self.nodes[child].kind != "decision":  # a table in a decision's potential is somebody's policy
                self.nodes[child].define = table.define

    def _assignment(self) -> tuple[str, str]:
        key = self.scan.word("an attribute or '}'")
        self.scan.expect("=")
        value = self.scan.free_value()
        self.scan.expect(";")
        return key, value

    def _refused(self, reason: str) -> ParseError:
        return self.source.error(self.scan.at, f"{reason}; expected discrete nodes")


def _implied_states(properties: dict[str, str]) -> list[State]:
    """Return the states that a node's subtype and values stand for where it does not name them."""
    subtype = properties.get("subtype", "")
    if subtype == "boolean":
        return [False, True]
    values = properties.get("state_values", "").strip("()").replace(",", " ").split()
    if subtype == "interval":
        return [f"{low} - {high}" for low, high in pairwise(values)]
    whole = all(v.lstrip("-").isdigit() and v.isascii() and len(v) < 19 for v in values)
    return [int(v) for v in values] if whole else list(values)
