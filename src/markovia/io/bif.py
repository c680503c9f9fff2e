r"""BIF, the Interchange Format for Bayesian Networks (version 0.15, Cozman 1996), read fast and written exactly.

A file is a `network` block, a `variable` block a variable and a `probability` block a table:

    network asia { property author = "me" ; }
    variable smoke { type discrete [ 2 ] { yes, no }; }
    variable lung { type discrete [ 2 ] { yes, no }; property position = (10, 20) ; }
    probability ( smoke ) { table 0.5, 0.5; }
    probability ( lung | smoke ) { (yes) 0.1, 0.9; (no) 0.01, 0.99; }

What the reader understands:

- comments (`//` and `/* */`), names and states in quotes (with `\"` and `\\`), states with spaces, signs or
  digits whether quoted or not; commas may be left out where no state has a space;
- rows in any order, a `default` row for those not listed, or one `table` with all numbers. As the specification
  says, a `table` lists the variables of the header in order with the last one fastest, so the child varies
  slowest: for `( c | a, b )` first all of `c`'s first state over `a`, `b`, then its second. (pyAgrum and pgmpy
  read it the same way.) A list of states in parentheses, on the other hand, is followed by one row;
- properties, which are kept: of the network in `model.properties`, of variables and tables in
  `model.node_properties`;
- blocks in any order.

BIF states are text. Where those of a model are integers or booleans, the property `markovia_states` says so (see
`markovia.io.identifiers`), and they come back as they were; in files by others states are strings. Rounded rows are
handled as `markovia.io.rows` says. Limits: 2**20 states a variable, 2**28 entries a table, and `default` rows may
fill in 2**24 entries a file.

Cost: linear in the length of the text; about 30 MB a second for files of tables.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from markovia.errors import CycleError, MarkoviaError, ParseError, UnsupportedModel
from markovia.factors.tables.conditional import ConditionalTable
from markovia.factors.tables.variable import Variable
from markovia.io.bif_tables import Body, EntryBudget
from markovia.io.bif_text import Cursor, mask, plain, quoted, said
from markovia.io.declarations import DeclaredVariable, declared_variable
from markovia.io.identifiers import MARKS, STATES, refusal, split_properties, states_mark
from markovia.io.rows import RowPolicy
from markovia.models.graphical.base import GraphicalModel
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.source_text import Source, brief, hint, shown

MAX_STATES = 2**20

_FIRST = re.compile(r"\s*+(?:network\b|variable\b|probability\b|//|/\*)", re.ASCII)
_VARIABLE = re.compile(
    r"\s*+([^\s{}()\[\];,|]++)\s*+\{\s*+type\s++discrete\s*+\[\s*+(\d{1,9})\s*+\]\s*+\{\s*+([^{}()\[\];]*+)\}\s*+;\s*+\}",
    re.ASCII,
)
_PROBABILITY = re.compile(r"\s*+\(([^{}()\[\];]*+)\)\s*+\{([^{}]*+)\}", re.ASCII)
_BODY_END = re.compile(r"\bproperty\b|[{}]", re.ASCII)
_ITEM = re.compile(r"\s*+([^,|]++)", re.ASCII)
_WORD = re.compile(r"[^\s,|]++", re.ASCII)
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_PLAIN_VALUE = re.compile(r"[^\s\";=\\/][^\";=\\/\n]*(?<!\s)")
# what the reader refuses: binary data, and the code points that stand for quoted signs while it reads
_UNWRITABLE = re.compile("[\0\ufdd0-\ufdef]")
_KEYWORDS = {"network", "variable", "probability", "property", "type", "discrete", "default", "table"}


def read_bif(text: str, source: str | None = None) -> BayesianNetwork:
    """Read a Bayesian network from BIF text.

    Parameters
    ----------
    text
        The whole file.
    source
        The file's name for messages.

    Raises
    ------
    ParseError
        If the text is not BIF, or does not define a network; with line, column and what was expected.

    Examples
    --------
    >>> bn = read_bif('''
    ... network demo { }
    ... variable rain { type discrete [ 2 ] { no, "yes, a lot" }; }
    ... probability ( rain ) { table 0.8, 0.2; }
    ... ''')
    >>> bn.name, bn.states("rain")
    ('demo', ['no', 'yes, a lot'])
    """
    origin = Source(text, source)
    if _FIRST.match(text) is None:
        raise Cursor(origin, text).error("expected 'network', 'variable' or 'probability'")
    return _BifReader(origin, mask(origin)).network()


def write_bif(model: GraphicalModel) -> str:
    """Write a Bayesian network as BIF text that reads back to exactly the same numbers.

    Raises
    ------
    UnsupportedModel
        If the model is not a Bayesian network, lacks a table, has two states with the same text, or
        text with a NUL character or a Unicode noncharacter.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork(name="demo")
    >>> bn.add("rain", states=["no", "yes"], p=[0.8, 0.2])
    >>> print(write_bif(bn))
    network demo {
    }
    variable rain {
      type discrete [ 2 ] { no, yes };
    }
    probability ( rain ) {
      table 0.8, 0.2;
    }
    <BLANKLINE>
    """
    if not isinstance(model, BayesianNetwork):
        raise refusal(model, "BIF files hold Bayesian networks only")
    # a bare `unknown` is what other programs write for a network without a name
    name = (
        "unknown" if not model.name else quoted("unknown") if model.name == "unknown" else _word(model.name)
    )
    lines = [f"network {name} {{", *_properties(model.properties), "}"]
    for variable in model.variables:
        lines += _variable_block(model, variable)
    for variable in model.variables:
        lines += _probability_block(model, variable)
    text = "\n".join(lines) + "\n"
    if (bad := _UNWRITABLE.search(text)) is not None:
        raise UnsupportedModel(
            f"BIF is plain text, and a name, state or property holds the character {bad[0]!a}; save as .json"
        )
    return text


@dataclass
class _Block:
    """A probability block that waits until all variables are known."""

    place: int
    header: tuple[int, str]
    body: tuple[int, int]


@dataclass
class _BifReader:
    source: Source
    text: str
    name: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    node_properties: dict[str, dict[str, str]] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)

    def network(self) -> BayesianNetwork:
        blocks = list(self._blocks())
        policy, budget = RowPolicy(self.source.name), EntryBudget()
        tables: dict[str, ConditionalTable] = {}
        for block in blocks:
            child, *parents = self._header(block)
            if child.name in tables:
                raise self.source.error(
                    block.place, f"expected one probability block for {shown(child.name)}, found two"
                )
            start, end = block.body
            body = Body(child, tuple(parents), Cursor(self.source, self.text, start, end), policy, budget)
            tables[child.name] = ConditionalTable.of(child, body.parents, body.table())
            if body.properties:
                self.node_properties.setdefault(child.name, {}).update(body.properties)
        for name in self.variables:
            if name not in tables:
                raise self.source.error(
                    self.places[name], f"expected a probability block for the variable {shown(name)}"
                )
        network = self._assembled(tables, blocks)
        policy.finish()
        return network

    def _restored(self, tables: dict[str, ConditionalTable]) -> dict[str, ConditionalTable]:
        """Give the tables the variables that marks among the properties tell of."""
        true: dict[str, Variable] = {}
        for name, properties in list(self.node_properties.items()):
            if not any(mark in properties for mark in MARKS):
                continue
            item = DeclaredVariable(
                name,
                self.places[name],
                [*self.variables[name].states],
                properties=self.node_properties.pop(name),
            )
            true[name] = declared_variable(self.source, item)
            if item.properties:
                self.node_properties[true[name].name] = item.properties
        if not true:
            return tables
        return {
            name: table.rebound(
                true.get(name, table.variable), tuple(true.get(p.name, p) for p in table.parents)
            )
            for name, table in tables.items()
        }

    def _assembled(self, tables: dict[str, ConditionalTable], blocks: list[_Block]) -> BayesianNetwork:
        try:
            restored = self._restored(tables)
            network = BayesianNetwork.from_conditionals((restored[n] for n in self.variables), name=self.name)
        except CycleError as error:
            place = next(b.place for b, t in zip(blocks, tables, strict=True) if t in error.cycle)
            raise self.source.error(place, f"expected an acyclic network; {brief(str(error))}") from None
        except ParseError:
            raise
        except MarkoviaError as error:
            raise self.source.error(0, f"expected a Bayesian network; {brief(str(error))}") from None
        network.properties = self.properties
        network.node_properties = self.node_properties
        return network

    # -- blocks ----------------------------------------------------------------------------------------------------

    def _blocks(self) -> Iterator[_Block]:
        """Read network and variable blocks; yield the probability blocks unread."""
        cursor = Cursor(self.source, self.text)
        seen_network = False
        while True:
            place, word = cursor.take()
            if word == "variable":
                self._variable(cursor)
            elif word == "probability":
                yield self._probability(cursor, place)
            elif word == "network" and not seen_network:
                seen_network = True
                self._network(cursor)
            elif not word and (seen_network or self.variables):
                return
            else:
                wanted = (
                    "'variable' or 'probability'"
                    if seen_network
                    else "'network', 'variable' or 'probability'"
                )
                raise cursor.error(f"expected {wanted}, found {said(word)}", place)

    def _network(self, cursor: Cursor) -> None:
        _, raw = cursor.until("{", "the name of the network")
        self.name = "" if raw.strip() == "unknown" else plain(raw)
        cursor.expect("{")
        while (token := cursor.take())[1] == "property":
            key, value = cursor.rest_of_property()
            self.properties[key] = value
        if token[1] != "}":
            raise cursor.error(f"expected 'property' or '}}', found {said(token[1])}", token[0])

    def _variable(self, cursor: Cursor) -> None:
        fast = _VARIABLE.match(self.text, cursor.pos)
        if fast:
            name, count, states = plain(fast[1]), int(fast[2]), fast[3]
            self._declare(cursor, fast.start(1), name, count, fast.start(3), states)
            cursor.pos = fast.end()
            return
        place, raw = cursor.until("{", "the name of a variable")
        name = plain(raw)
        cursor.expect("{")
        properties: dict[str, str] = {}
        declared = False
        while True:
            at, word = cursor.take()
            if word == "property":
                key, value = cursor.rest_of_property()
                properties[key] = value
            elif word == "type" and not declared:
                declared = True
                self._type(cursor, place, name)
            elif word == "}" and declared:
                break
            else:
                wanted = "'property' or '}'" if declared else "'type'"
                raise cursor.error(f"expected {wanted} in the block of {shown(name)}, found {said(word)}", at)
        if properties:
            self.node_properties.setdefault(name, {}).update(properties)

    def _type(self, cursor: Cursor, place: int, name: str) -> None:
        cursor.expect("discrete")
        cursor.expect("[")
        at, count = cursor.take()
        if not (count.isascii() and count.isdigit()):
            raise cursor.error(f"expected the number of states, found {said(count)}", at)
        cursor.expect("]")
        if cursor.peek() == "=":
            cursor.expect("=")
        cursor.expect("{")
        start, states = cursor.until("}", "the states")
        # beyond nine digits the count is wrong anyway, and converting thousands of digits would be refused
        self._declare(
            cursor, place, name, int(count[-9:]) if len(count.lstrip("0")) <= 9 else -1, start, states
        )
        cursor.expect("}")
        cursor.expect(";")

    def _declare(self, cursor: Cursor, place: int, name: str, count: int, at: int, listed: str) -> None:
        if not name:
            raise cursor.error("expected the name of a variable", place)
        if name in self.variables:
            raise cursor.error(f"expected a new variable, found {shown(name)} for the second time", place)
        if not 1 <= count <= MAX_STATES:
            raise cursor.error(f"expected 1 to {MAX_STATES:,} states for {shown(name)}", at)
        by_comma = listed.count(",") == count - 1  # counted first: the list may be the whole of a huge file
        items = listed.split(",") if by_comma else listed.replace(",", " ").split(maxsplit=count)
        if len(items) != count or not all(map(str.strip, items)):
            raise cursor.error(f"expected as many states for {shown(name)} as it announces, {count:,}", at)
        states = tuple(map(plain, items))
        if len(set(states)) != count:
            seen: set[str] = set()
            twice = next(s for s in states if s in seen or seen.add(s))  # type: ignore[func-returns-value]
            raise cursor.error(f"expected different states for {shown(name)}, found {shown(twice)} twice", at)
        self.variables[name] = Variable.of(name, states)
        self.places[name] = place

    def _probability(self, cursor: Cursor, place: int) -> _Block:
        fast = _PROBABILITY.match(self.text, cursor.pos)
        if fast:
            cursor.pos = fast.end()
            return _Block(place, (fast.start(1), fast[1]), fast.span(2))
        cursor.expect("(")
        header = cursor.until(")", "the variables of the table")
        cursor.expect(")")
        cursor.expect("{")
        start = at = cursor.pos
        while found := _BODY_END.search(self.text, at):
            if found.group() == "}":
                cursor.pos = found.end()
                return _Block(place, header, (start, found.start()))
            if found.group() == "{":
                raise cursor.error("expected '}' before the next '{'", found.start())
            # the text of a property may hold braces
            at = self.text.find(";", found.end()) + 1 or len(self.text)
        raise cursor.error("expected '}' to close the block that opens here", start - 1)

    def _header(self, block: _Block) -> list[Variable]:
        """Return the variable of a block and its parents."""
        at, raw = block.header
        known = self.variables
        found = [(m.start(1), plain(m[1])) for m in _ITEM.finditer(raw) if m[1].strip()]
        if any(name not in known for _, name in found):
            words = [(m.start(), plain(m.group())) for m in _WORD.finditer(raw)]
            if all(name in known for _, name in words):
                found = words
        if not found or not raw.partition("|")[0].strip():
            raise self.source.error(at, "expected the name of a variable")
        names: set[str] = set()
        for start, name in found:
            if name not in known:
                raise self.source.error(
                    at + start, f"expected a declared variable, found {shown(name)}{hint(name, known)}"
                )
            if name in names:
                raise self.source.error(
                    at + start, f"expected different variables, found {shown(name)} twice"
                )
            names.add(name)
        return [known[name] for _, name in found]


# -- writing -------------------------------------------------------------------------------------------------------


def _variable_block(model: BayesianNetwork, name: str) -> list[str]:
    states = [str(s) for s in model.states(name)]
    if len(set(states)) != len(states):
        raise UnsupportedModel(
            f"BIF states are text, and two states of {name!r} have the same text: {model.states(name)}; save as .json"
        )
    own, rest = split_properties(model.node_properties.get(name, {}), lambda key, value: True)
    mark = states_mark(model.states(name), states)
    return [
        f"variable {_word(name)} {{",
        f"  type discrete [ {len(states)} ] {{ {', '.join(map(_word, states))} }};",
        *_properties({**own, **({} if mark is None else {STATES: mark}), **rest}),
        "}",
    ]


def _probability_block(model: BayesianNetwork, name: str) -> list[str]:
    if not model.has_table(name):
        raise UnsupportedModel(
            f"BIF needs a table for every variable and {name!r} has none; use fill('uniform'), or save as .json"
        )
    conditional = model[name]
    try:
        rows = conditional.values.reshape(-1, len(conditional.variable)).tolist()
    except MarkoviaError as error:
        raise UnsupportedModel(f"BIF lists every row of a table: {error}") from None
    numbers = [", ".join(map(repr, row)) for row in rows]
    if not conditional.parents:
        return [f"probability ( {_word(name)} ) {{", f"  table {numbers[0]};", "}"]
    given = ", ".join(map(_word, conditional.parent_names))
    states = [[_word(str(s)) for s in p.states] for p in conditional.parents]
    listed = [f"  ({', '.join(key)}) {row};" for key, row in zip(product(*states), numbers, strict=True)]
    return [f"probability ( {_word(name)} | {given} ) {{", *listed, "}"]


def _properties(properties: dict[str, str]) -> list[str]:
    return [
        f"  property {_value(str(key))} = {_value(str(value))} ;"
        if value
        else f"  property {_value(str(key))} ;"
        for key, value in properties.items()
    ]


def _word(text: str) -> str:
    return text if _PLAIN.fullmatch(text) and text not in _KEYWORDS else quoted(text)


def _value(text: str) -> str:
    return text if _PLAIN_VALUE.fullmatch(text) else quoted(text)
