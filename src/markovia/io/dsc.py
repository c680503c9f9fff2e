"""MSBN DSC files (`.dsc`), as Microsoft's MSBNx and bnlearn write them.

    belief network "weather"
    node rain { type : discrete [ 2 ] = { "no", "yes" }; }
    node wet  { name: "Wet grass"; type : discrete [ 2 ] = { "no", "yes" }; position: (10, 20); }
    probability ( rain ) { 0.8, 0.2; }
    probability ( wet | rain ) { (0) : 0.9, 0.1; (1) : 0.2, 0.8; }

A row is addressed by the parents' states: an unquoted number is a position (from 0), anything else the name of
a state; `default : ...;` fills the rows that are not listed. Rows that are all numbers, the usual case, are
converted in one piece. Other attributes of nodes and the `properties` block are kept as properties. Continuous
nodes are refused. Reading is linear in the size of the file.
"""

import re
from dataclasses import dataclass, field
from functools import partial
from math import prod

import numpy as np
from numpy.typing import NDArray

from markovia.errors import ParseError
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import State, Variable
from markovia.io.declarations import (
    DeclaredVariable,
    Parents,
    check_room,
    declared_network,
    dense,
    numbered_states,
)
from markovia.io.identifiers import WrittenNode, split_properties, written_network
from markovia.io.rows import RowPolicy
from markovia.io.scanner import MOST_ITEMS, Scanner, is_bare, nth_word, parse_numbers
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.source_text import Source, hint, quote, shown

_RESERVED = {"belief", "network", "node", "probability", "properties", "default", "discrete", "type"}
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN = r"\s*+[-+.0-9eE]++\s*+"
_PLAIN_ROWS = re.compile(rf"(?:\s*+\({_PLAIN}(?:,{_PLAIN})*\)\s*+:{_PLAIN}(?:,{_PLAIN})*;)+\s*+", re.ASCII)
_SIGNS = str.maketrans("(),:;", "     ")


def read_dsc(text: str, source: str | None = None) -> BayesianNetwork:
    """Read an MSBN DSC file.

    Parameters
    ----------
    text
        The file's content.
    source
        Its name, for errors and warnings.

    Returns
    -------
    BayesianNetwork
        A node without probability rows has no table.

    Raises
    ------
    ParseError
        If the text is not a discrete network in this format.

    Examples
    --------
    >>> bn = read_dsc('''belief network "b"
    ... node rain { type : discrete [ 2 ] = { "no", "yes" }; }
    ... probability ( rain ) { 0.8, 0.2; }''')
    >>> bn.name, bn.query("rain")["yes"]
    ('b', 0.2)
    """
    return _DscReader(Source(text, source)).read()


def write_dsc(model: object) -> str:
    """Write a Bayesian network as an MSBN DSC file.

    Raises
    ------
    UnsupportedModel
        If the model is not a Bayesian network, or a structured distribution is too large for a table.

    Examples
    --------
    >>> bn = BayesianNetwork(name="weather")
    >>> bn.add("rain", states=["no", "yes"], p=[0.75, 0.25])
    >>> print(write_dsc(bn))
    belief network "weather"
    node rain {
      type : discrete [ 2 ] = { "no", "yes" };
    }
    probability ( rain ) {
      0.75, 0.25;
    }
    """
    network = written_network(model, "MSBN DSC", free_states=True, reserved=_RESERVED)
    direct, rest = split_properties(network.properties, _fits)
    plain = network.name.isprintable()
    own = {**direct, **({} if plain else network.marks), **rest}
    head = [f"belief network {quote(network.name if plain else network.identifier)}\n"]
    if own:
        declared = "".join(f"  type {key} = string;\n" for key in own)
        head.append(
            "properties {\n" + declared + "".join(_attribute(k, v, "=") for k, v in own.items()) + "}\n"
        )
    return "".join([*head, *map(_node_block, network.nodes), *map(_probability_block, network.nodes)])


def _node_block(node: WrittenNode) -> str:
    states = ", ".join(quote(s) for s in node.states)
    written = node.attributes(lambda k, v: k.lower() != "type" and _fits(k, v), "name")
    attributes = "".join(_attribute(k, v, ":") for k, v in written.items())
    return f"node {node.identifier} {{\n  type : discrete [ {len(node.states)} ] = {{ {states} }};\n{attributes}}}\n"


def _probability_block(node: WrittenNode) -> str:
    given = f" | {', '.join(node.parents)}" if node.parents else ""
    rows = node.rows()
    lines: list[str] = []
    if rows is not None:
        lines = [", ".join(map(repr, row)) for row in rows.tolist()]
    if rows is not None and node.parents:
        assert node.conditional is not None
        places = np.ndindex(*(len(p) for p in node.conditional.parents))
        lines = [f"({', '.join(map(str, at))}) : {line}" for at, line in zip(places, lines, strict=True)]
    return (
        f"probability ( {node.identifier}{given} ) {{\n" + "".join(f"  {line};\n" for line in lines) + "}\n"
    )


def _fits(key: str, value: str) -> bool:
    return (
        value.replace("\n", "").replace("\t", "").isprintable()
        and _KEY.fullmatch(key) is not None
        and key.lower() not in ("type", "import")
    )


def _attribute(key: str, value: str, sign: str) -> str:
    return f"  {key} {sign} {value if key == 'position' and is_bare(value) else quote(value)};\n"


@dataclass
class _DscRows:
    """The probability rows of one node as they are written."""

    child: str
    at: int
    parents: list[tuple[str, int]]
    places: list[tuple[tuple[str, bool, int], ...]] = field(default_factory=list)
    """For each row its parent states: text, whether it is a position, offset."""
    values: list[list[float]] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    default: list[float] | None = None
    bulk: tuple[NDArray[np.float64], str, int] | None = None
    """All rows at once where they are all numbers: the numbers, the text they stand in, its offset."""


class _DscReader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.scan = Scanner(source)
        self.policy = RowPolicy(source.name)
        self.nodes: dict[str, DeclaredVariable] = {}
        self.tables: dict[str, _DscRows] = {}
        self.properties: dict[str, str] = {}

    def read(self) -> BayesianNetwork:
        scan = self.scan
        begin = scan.at
        if not scan.take("belief"):
            scan.take("diagnostic")
        scan.expect("network")
        name = scan.text("the name of the network") if scan.kind == "string" else ""
        while scan.kind != "end":
            if scan.sees("node"):
                self._node()
            elif scan.sees("probability"):
                self._probability()
            elif scan.take("properties"):
                self._block(self.properties)
            else:
                raise scan.expected("'node', 'probability' or 'properties'")
        for rows in self.tables.values():
            if rows.child not in self.nodes:
                near = hint(rows.child, self.nodes)
                raise self.source.error(rows.at, f"expected a declared node, found {shown(rows.child)}{near}")
            node = self.nodes[rows.child]
            node.parents = rows.parents
            if rows.values or rows.default is not None or rows.bulk is not None:
                node.define = partial(self._define, rows)
        network = declared_network(
            self.source, self.nodes.values(), name=name, properties=self.properties, at=begin
        )
        self.policy.finish()
        return network

    # -- declarations --------------------------------------------------------------------------------------

    def _node(self) -> None:
        scan = self.scan
        at = scan.expect("node")
        identifier = scan.text("the name of the node")
        if identifier in self.nodes:
            raise self.source.error(at, f"expected a new node, but {shown(identifier)} is declared twice")
        node = self.nodes[identifier] = DeclaredVariable(identifier, at, label="name")
        self._block(node.properties, node)
        if not node.states:
            raise self.source.error(at, f"expected the type of {shown(identifier)}")

    def _block(self, properties: dict[str, str], node: DeclaredVariable | None = None) -> None:
        scan = self.scan
        scan.expect("{")
        while not scan.take("}"):
            key = scan.word("an attribute or '}'")
            if key.lower() == "type" and node is not None:
                scan.expect(":")
                node.states = self._type()
            elif key.lower() in ("type", "import"):
                scan.free_value()
            else:
                if not scan.take(":"):
                    scan.expect("=")
                properties[key] = scan.free_value()
            scan.expect(";")

    def _type(self) -> list[State]:
        scan = self.scan
        if not scan.take("discrete"):
            raise scan.expected("'discrete' (other types of nodes are not supported)")
        scan.expect("[")
        place = scan.at
        count = scan.word("the number of states")
        scan.expect("]")
        if not scan.take("="):
            return numbered_states(self.source, count, place)
        states: list[State] = [state for state, _ in scan.items("a state", "{", "}")]
        if count != str(len(states)):
            raise self.source.error(
                place, f"expected {len(states)} (the states listed), found {shown(count)}"
            )
        return states

    # -- probabilities -------------------------------------------------------------------------------------

    def _probability(self) -> None:
        scan = self.scan
        at = scan.expect("probability")
        scan.expect("(")
        child = scan.text("the child")
        parents: list[tuple[str, int]] = []
        if scan.take("|"):
            while not scan.sees(")"):
                place = scan.at
                parents.append((scan.text("a parent or ')'"), place))
                scan.take(",")
        scan.expect(")")
        if child in self.tables:
            raise self.source.error(at, f"expected one table a node, found a second one of {shown(child)}")
        rows = self.tables[child] = _DscRows(child, at, parents)
        scan.expect("{")
        body = scan.plain_until("}") if parents else None
        if body is not None and _PLAIN_ROWS.fullmatch(body):
            start = scan.at
            cleaned = body.translate(_SIGNS)
            numbers = parse_numbers(cleaned, lambda k, message: self.source.error(start + k, message))
            rows.bulk = (numbers, body, start)
            scan.jump(start + len(body))
        while not scan.take("}"):
            self._row(rows)

    def _row(self, rows: _DscRows) -> None:
        scan = self.scan
        at = scan.at
        if scan.take("default"):
            scan.expect(":")
            rows.default = self._numbers()
            return
        place: list[tuple[str, bool, int]] = []
        if scan.take("("):
            while not scan.take(")"):
                position = scan.kind == "word" and scan.value.isascii() and scan.value.isdigit()
                here = scan.at
                place.append((scan.text("a state or ')'"), position, here))
                scan.take(",")
            scan.expect(":")
        rows.places.append(tuple(place))
        rows.offsets.append(at)
        rows.values.append(self._numbers())

    def _numbers(self) -> list[float]:
        scan = self.scan
        words: list[str] = []
        places: list[int] = []
        while not scan.take(";"):
            places.append(scan.at)
            words.append(scan.word("a number"))
            scan.take(",")
            if len(words) > MOST_ITEMS:
                raise scan.expected("';'")

        listed = " ".join(words)

        def fail(offset: int, message: str) -> ParseError:
            return self.source.error(places[listed.count(" ", 0, offset)], message)

        values: list[float] = parse_numbers(listed, fail).tolist()
        return values

    # -- tables --------------------------------------------------------------------------------------------

    def _define(self, rows: _DscRows, child: Variable, parents: Parents) -> Conditional:
        shape = (*(len(p) for p in parents), len(child))
        check_room(self.source, shape, rows.at)
        n_rows = prod(shape[:-1])
        table = np.full((n_rows, len(child)), np.nan)
        where = np.full(n_rows, -1, dtype=np.int64)
        if rows.bulk is not None:
            self._fill_bulk(rows, shape, table, where)
        else:
            for place, values, at in zip(rows.places, rows.values, rows.offsets, strict=True):
                number = self._row_number(place, rows.parents, at)
                self._check_length(values, child, at)
                self._check_new(where, number, child, at)
                table[number], where[number] = values, at
        missing = where < 0
        if missing.any():
            if rows.default is None:
                raise self.source.error(
                    rows.at,
                    f"expected {n_rows:,} rows for {shown(child.name)}, found {n_rows - int(missing.sum()):,}",
                )
            self._check_length(rows.default, child, rows.at)
            table[missing], where[missing] = rows.default, rows.at
        at_row = where.tolist() if rows.bulk is None else None

        def locate(k: int) -> int:
            if at_row is not None:
                return int(at_row[k // len(child)])
            assert rows.bulk is not None
            _, body, start = rows.bulk
            return start + nth_word(body.translate(_SIGNS), int(where[k // len(child)]))

        return dense(self.source, self.policy, table.reshape(-1), rows.at, locate)(child, parents)

    def _fill_bulk(
        self, rows: _DscRows, shape: tuple[int, ...], table: NDArray[np.float64], where: NDArray[np.int64]
    ) -> None:
        """Fill the table from rows that are all numbers; `where` gets the word at which each row begins."""
        assert rows.bulk is not None
        numbers, body, start = rows.bulk
        width = len(shape) - 1 + shape[-1]
        lines = body.split(";")[:-1]
        n_parents = len(shape) - 1
        # p positions take p - 1 commas, k numbers another k - 1
        commas = np.array([(line.count(",", 0, line.index(")")), line.count(",")) for line in lines])
        wrong = (commas != (n_parents - 1, width - 2)).any(axis=1)
        if wrong.any():
            bad = int(np.argmax(wrong))
            offset = start + sum(len(line) + 1 for line in lines[:bad])
            raise self.source.error(
                offset,
                f"expected {n_parents} positions and {shape[-1]} numbers in this row of {shown(rows.child)}",
            )
        grid = numbers.reshape(len(lines), width)
        places = grid[:, :n_parents]
        limits = np.array(shape[:-1])
        bad_rows = ~((places >= 0) & (places < limits) & (places == np.floor(places))).all(axis=1)
        flat = np.zeros(len(lines), dtype=np.int64)
        if not bad_rows.any():
            flat = np.ravel_multi_index(tuple(places.T.astype(np.int64)), shape[:-1])
            bad_rows = np.ones(len(lines), dtype=bool)
            bad_rows[np.unique(flat, return_index=True)[1]] = False
        if bad_rows.any():
            first = int(np.argmax(bad_rows))
            offset = start + nth_word(body.translate(_SIGNS), first * width)
            raise self.source.error(offset, f"expected the positions of a new row within {list(shape[:-1])}")
        table[flat] = grid[:, n_parents:]
        where[flat] = np.arange(len(lines)) * width

    def _row_number(
        self, place: tuple[tuple[str, bool, int], ...], parents: list[tuple[str, int]], at: int
    ) -> int:
        if len(place) != len(parents):
            raise self.source.error(
                at, f"expected a state for each of {len(parents)} parents, found {len(place)}"
            )
        number = 0
        for (state, position, offset), (parent, _) in zip(place, parents, strict=True):
            states = [str(s) for s in self.nodes[parent].states]
            code = (
                int(state) if position and len(state) < 10 else states.index(state) if state in states else -1
            )
            if not 0 <= code < len(states):
                raise self.source.error(offset, f"expected a state of {shown(parent)}, found {shown(state)}")
            number = number * len(states) + code
        return number

    def _check_length(self, values: list[float], child: Variable, at: int) -> None:
        if len(values) != len(child):
            raise self.source.error(
                at, f"expected {len(child)} numbers for {shown(child.name)}, found {len(values)}"
            )

    def _check_new(self, where: NDArray[np.int64], number: int, child: Variable, at: int) -> None:
        if where[number] >= 0:
            raise self.source.error(
                at, f"expected each row of {shown(child.name)} once, found this one again"
            )
