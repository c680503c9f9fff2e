"""GeNIe / SMILE files (`.xdsl`).

    <smile version="1.0" id="weather">
      <nodes>
        <cpt id="rain"><state id="no"/><state id="yes"/><probabilities>0.8 0.2</probabilities></cpt>
        <cpt id="wet"><state id="no"/><state id="yes"/><parents>rain</parents>
          <probabilities>0.9 0.1 0.2 0.8</probabilities></cpt>
        <decision id="umbrella"><state id="take"/><state id="leave"/><parents>wet</parents></decision>
        <utility id="comfort"><parents>rain umbrella</parents><utilities>20 100 70 0</utilities></utility>
      </nodes>
      <extensions><genie><node id="wet"><name>Wet grass</name><position>1 2 3 4</position></node></genie></extensions>
    </smile>

The child varies fastest, then the last parent. Besides `cpt` there are `deterministic` nodes (one resulting state a
parent configuration) and `noisymax` nodes, which become a `NoisyMin`: SMILE lists the child's states from the
strongest to the weakest, so the largest effect is the one with the smallest index, and the last column of each parent
is its state without effect. The parents of a `decision` are what it sees; the amounts of a `utility` come with the
last parent fastest; a `mau` weighs utilities. Equation and temporal nodes, and multi-attribute utilities given by
expressions, are refused by name. pyAgrum writes its tables with the first parent fastest; its files say so in
`app="aGrUM ..."` and are read accordingly.

Kept as properties: user properties under their own names, attributes as `smile.<attribute>`, the drawing as
`genie.<element>` and `genie.<element>.<attribute>`. Reading is linear in the size of the file.
"""

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray

from markovia.factors.decisions.utility import UtilityNode
from markovia.factors.local_models.noisy import NoisyMin
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import Variable
from markovia.io.decision_nodes import linear_weights
from markovia.io.declarations import (
    DeclaredVariable,
    Define,
    Parents,
    choice,
    declared_network,
    dense,
    deterministic,
    weighted_sum,
)
from markovia.io.identifiers import WrittenNode, is_plain, split_properties, written_network
from markovia.io.rows import RowPolicy
from markovia.io.xml_reader import Element, XmlSource, element_numbers, number_offset, read_xml
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.source_text import shown

_DRAWN = re.compile(r"genie\.([A-Za-z_][A-Za-z0-9_]*)(?:\.([A-Za-z_][A-Za-z0-9_]*))?")
_SMILE = re.compile(r"smile\.([A-Za-z_][A-Za-z0-9_]*)")
_LABEL = "genie.name"
_TAGS = {
    "chance": ("cpt", "probabilities"),
    "decision": ("decision", ""),
    "utility": ("utility", "utilities"),
}
_KINDS = {
    **dict.fromkeys(("cpt", "deterministic", "noisymax"), "chance"),
    "decision": "decision",
    **dict.fromkeys(("utility", "mau"), "utility"),
}
"""What the elements declare."""


def read_xdsl(text: str, source: str | None = None) -> BayesianNetwork:
    """Read a GeNIe XDSL file.

    Parameters
    ----------
    text
        The file's content.
    source
        Its name, for errors and warnings.

    Returns
    -------
    BayesianNetwork
        A node without `probabilities` has no table; noisy-max nodes stay structured.

    Raises
    ------
    ParseError
        If the text is not a discrete network in this format.

    Examples
    --------
    >>> bn = read_xdsl('''<smile version="1.0" id="b"><nodes><cpt id="rain">
    ... <state id="no"/><state id="yes"/><probabilities>0.8 0.2</probabilities></cpt></nodes></smile>''')
    >>> bn.name, bn.query("rain")["yes"]
    ('b', 0.2)
    """
    return _XdslReader(XmlSource(text, source)).read()


def write_xdsl(model: object) -> str:
    """Write a Bayesian network as a GeNIe XDSL file; structured distributions are written as full tables.

    Raises
    ------
    UnsupportedModel
        If the model is not a Bayesian network, or a structured distribution is too large for a table.

    Examples
    --------
    >>> bn = BayesianNetwork(name="weather")
    >>> bn.add("rain", states=["no", "yes"], p=[0.75, 0.25])
    >>> print(write_xdsl(bn))
    <?xml version="1.0" encoding="UTF-8"?>
    <smile version="1.0" id="weather">
      <nodes>
        <cpt id="rain">
          <state id="no" />
          <state id="yes" />
          <probabilities>0.75 0.25</probabilities>
        </cpt>
      </nodes>
      <extensions>
        <genie version="1.0" app="markovia" name="weather">
        </genie>
      </extensions>
    </smile>
    """
    network = written_network(model, "GeNIe XDSL")
    direct, rest = split_properties(
        network.properties,
        lambda k, v: not k.startswith(("genie.", "smile.id", "smile.version")) and _fits(k, v),
    )
    attributes, plain = _attributes(direct)
    parts = ['<?xml version="1.0" encoding="UTF-8"?>\n']
    parts.append(f'<smile version="1.0" id={quoteattr(network.identifier)}{attributes}>\n')
    own = {**plain, **network.marks, **rest}
    if own:
        lines = "".join(_property(k, v, "    ") for k, v in own.items())
        parts.append(f"  <properties>\n{lines}  </properties>\n")
    written = [(node, node.attributes(_fits_node, _LABEL)) for node in network.nodes]
    parts.append("  <nodes>\n")
    parts += [_node_block(node, properties) for node, properties in written]
    parts.append("  </nodes>\n")
    drawn = "".join(_drawing(node.identifier, properties) for node, properties in written)
    name = quoteattr(network.name if network.name.isprintable() else network.identifier)
    parts.append(f'  <extensions>\n    <genie version="1.0" app="markovia" name={name}>\n')
    parts.append(f"{drawn}    </genie>\n  </extensions>\n")
    parts.append("</smile>\n")
    return "".join(parts)


def _node_block(node: WrittenNode, properties: dict[str, str]) -> str:
    attributes, plain = _attributes(properties)
    conditional = node.conditional
    weighs = isinstance(conditional, UtilityNode) and conditional.combines
    tag, table = ("mau", "weights") if weighs else _TAGS[node.kind]
    lines = [f"    <{tag} id={quoteattr(node.identifier)}{attributes}>"]
    lines += [f"      <state id={quoteattr(state)} />" for state in node.states]
    if node.parents:
        lines.append(f"      <parents>{' '.join(node.parents)}</parents>")
    numbers = None
    if weighs and conditional is not None:
        numbers = linear_weights(conditional)
    elif (rows := node.rows()) is not None:
        numbers = rows.reshape(-1).tolist()
    if numbers is not None:
        lines.append(f"      <{table}>{' '.join(map(repr, numbers))}</{table}>")
    kept = {k: v for k, v in plain.items() if not _DRAWN.fullmatch(k)}
    return (
        "\n".join(lines)
        + "\n"
        + "".join(_property(k, v, "      ") for k, v in kept.items())
        + f"    </{tag}>\n"
    )


def _drawing(identifier: str, properties: dict[str, str]) -> str:
    elements: dict[str, tuple[str, dict[str, str]]] = {}
    for key, value in properties.items():
        match = _DRAWN.fullmatch(key)
        if match:
            text, attributes = elements.get(match[1], ("", {}))
            if match[2]:
                attributes[match[2]] = value
            else:
                text = value
            elements[match[1]] = (text, attributes)
    if not elements:
        return ""
    lines = [f"      <node id={quoteattr(identifier)}>"]
    for tag, (text, attributes) in elements.items():
        inside = "".join(f" {k}={quoteattr(v)}" for k, v in attributes.items())
        lines.append(
            f"        <{tag}{inside}>{escape(text)}</{tag}>" if text else f"        <{tag}{inside} />"
        )
    return "\n".join(lines) + "\n      </node>\n"


def _attributes(properties: dict[str, str]) -> tuple[str, dict[str, str]]:
    """Separate what is written as attributes of a tag from the other properties."""
    text, rest = "", {}
    for key, value in properties.items():
        match = _SMILE.fullmatch(key)
        if match:
            text += f" {match[1]}={quoteattr(value)}"
        else:
            rest[key] = value
    return text, rest


def _fits(key: str, value: str) -> bool:
    return is_plain(key) and is_plain(value)


def _fits_node(key: str, value: str) -> bool:
    if key.startswith("genie.") and not _DRAWN.fullmatch(key):
        return False
    return key != "smile.id" and _fits(key, value)


def _property(key: str, value: str, indent: str) -> str:
    return f"{indent}<property id={quoteattr(key)}>{escape(value)}</property>\n"


class _XdslReader:
    def __init__(self, source: XmlSource) -> None:
        self.source = source
        self.policy = RowPolicy(source.name)

    def read(self) -> BayesianNetwork:
        root = read_xml(self.source)
        if root.tag != "smile":
            raise self.source.error(root.at, f"expected <smile>, found <{root.tag[:40]}>")
        if (temporal := root.first("dynamic")) is not None:
            raise self.source.error(temporal.at, "dynamic networks are not supported; expected a static one")
        holder = root.first("nodes")
        if holder is None:
            raise self.source.error(root.at, "expected <nodes> in <smile>")
        drawings = _drawings(root)
        app = next((g.attributes.get("app", "") for g in _genie(root)), "")
        nodes = [self._node(element, first_fastest=app.startswith("aGrUM")) for element in holder.children]
        for node in nodes:
            node.properties.update(drawings.get(node.identifier, {}))
        properties = _own_attributes(root, {"id", "version"})
        for place in (root, *root.all("properties")):
            properties.update(self._user_properties(place))
        network = declared_network(
            self.source, nodes, name=root.attributes.get("id", ""), properties=properties, at=root.at
        )
        self.policy.finish()
        return network

    def _node(self, element: Element, first_fastest: bool) -> DeclaredVariable:
        if element.tag not in _KINDS:
            raise self.source.error(
                element.at, f"<{element.tag[:40]}> nodes are not supported; expected {', '.join(_KINDS)}"
            )
        node = DeclaredVariable(self._identifier(element), element.at, kind=_KINDS[element.tag], label=_LABEL)
        if node.kind != "utility":
            node.states = [self._identifier(state) for state in element.all("state")]
        node.properties = {**_own_attributes(element, {"id"}), **self._user_properties(element)}
        parents = element.first("parents")
        if parents is not None:
            node.parents = [(name, parents.at) for name in parents.text.split()]
        node.define = self._distribution(element, node)
        if first_fastest and element.tag in ("cpt", "utility"):
            node.parents.reverse()
        return node

    def _distribution(self, element: Element, node: DeclaredVariable) -> Define | None:
        if element.tag == "decision":
            return choice(self.source, node)
        if element.tag == "mau":
            return self._weighted(element)
        if element.tag in ("cpt", "utility"):
            table = element.first(_TAGS[node.kind][1])
            if table is None:
                return None
            values = element_numbers(self.source, table)
            return dense(
                self.source, self.policy, values, table.at, lambda k: number_offset(self.source, table, k)
            )
        if element.tag == "deterministic":
            results = element.first("resultingstates")
            return None if results is None else self._certain(results, node)
        parameters = element.first("parameters")
        return None if parameters is None else self._noisy(element, parameters)

    def _weighted(self, element: Element) -> Define:
        if (expressions := element.first("expressions")) is not None:
            raise self.source.error(
                expressions.at, "expressions of utilities are not supported; expected weights"
            )
        weights = element.first("weights")
        if weights is None:
            return weighted_sum(self.source, None, element.at)
        return weighted_sum(self.source, element_numbers(self.source, weights), weights.at)

    def _certain(self, results: Element, node: DeclaredVariable) -> Define:
        def codes(variable: Variable) -> list[int]:
            known = {str(state): i for i, state in enumerate(node.states)}
            found = results.text.split()
            for k, state in enumerate(found):
                if state not in known:
                    raise self.source.error(
                        number_offset(self.source, results, k),
                        f"expected a state of {shown(variable.name)}, found {shown(state)}",
                    )
            return [known[state] for state in found]

        return deterministic(self.source, codes, results.at)

    def _noisy(self, element: Element, parameters: Element) -> Define:
        values = element_numbers(self.source, parameters)
        strengths = element.first("strengths")
        order = None if strengths is None else element_numbers(self.source, strengths)

        def define(variable: Variable, parents: Parents) -> Conditional:
            width = len(variable)
            columns = sum(len(p) for p in parents)
            if values.size not in (columns * width, (columns + 1) * width):
                raise self.source.error(
                    parameters.at,
                    f"expected {(columns + 1) * width} parameters for {shown(variable.name)}, found {values.size}",
                )
            rows = self.policy.check(
                values.reshape(-1, width),
                lambda row: self.source.position(number_offset(self.source, parameters, row * width)),
                f"of {shown(variable.name)}",
            )
            effects, start = {}, 0
            for parent in parents:
                stop = start + len(parent)
                states = self._outcomes(order, start, stop, rows[start:stop], strengths or parameters)
                effects[parent.name] = rows[start:stop][states]
                start = stop
            leak = rows[columns] if len(rows) > columns else None
            return NoisyMin(effects, leak=leak).bind(variable, parents)

        return define

    def _outcomes(
        self,
        order: NDArray[np.float64] | None,
        start: int,
        stop: int,
        rows: NDArray[np.float64],
        place: Element,
    ) -> NDArray[np.int64]:
        """Return for each state of a parent the column that belongs to it.

        `strengths` lists the parent's states from the strongest to the one without effect, and the columns
        follow that list. Files whose columns follow the states themselves show it: there the column of the
        state without effect, not the last one, is certain of the child's last state.
        """
        size = stop - start
        ranked = np.arange(size) if order is None else order[start:stop]
        if ranked.size != size or sorted(ranked.tolist()) != list(range(size)):
            raise self.source.error(place.at, "expected strengths that list every state of every parent once")
        ranking = ranked.astype(np.int64)
        certain = rows[:, -1] == 1.0
        if certain[ranking[-1]] and not certain[-1]:
            return np.arange(size)
        return np.argsort(ranking)

    def _identifier(self, element: Element) -> str:
        identifier = element.attributes.get("id", "").strip()
        if not identifier:
            raise self.source.error(element.at, f"expected an id in <{element.tag[:40]}>")
        return identifier

    def _user_properties(self, element: Element) -> dict[str, str]:
        return {self._identifier(item): item.text for item in element.all("property")}


def _own_attributes(element: Element, known: set[str]) -> dict[str, str]:
    return {f"smile.{key}": value for key, value in element.attributes.items() if key not in known}


def _genie(root: Element) -> Iterator[Element]:
    for extension in root.all("extensions"):
        yield from extension.all("genie")


def _drawings(root: Element) -> dict[str, dict[str, str]]:
    """Collect how GeNIe draws each node, wherever in its submodels the node is."""
    found: dict[str, dict[str, str]] = {}
    waiting = [child for genie in _genie(root) for child in genie.children]
    while waiting:
        element = waiting.pop()
        if element.tag == "submodel":
            waiting += element.children
        elif element.tag == "node" and "id" in element.attributes:
            drawing = found.setdefault(element.attributes["id"], {})
            for part in element.children:
                if part.text:
                    drawing[f"genie.{part.tag}"] = part.text
                drawing.update({f"genie.{part.tag}.{k}": v for k, v in part.attributes.items()})
    return found
