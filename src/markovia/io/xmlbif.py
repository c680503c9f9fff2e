"""XMLBIF 0.3 files (`.xml`, `.xmlbif`, `.bifxml`), as JavaBayes, SamIam, Weka and pyAgrum write them.

    <BIF VERSION="0.3"><NETWORK><NAME>weather</NAME>
      <VARIABLE TYPE="nature"><NAME>rain</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE>
      <DEFINITION><FOR>rain</FOR><TABLE>0.8 0.2</TABLE></DEFINITION>
    </NETWORK></BIF>

In `TABLE` the child varies fastest, then the last `GIVEN`. `TYPE="decision"` and `TYPE="utility"` variables make it an
influence diagram: the `GIVEN` of a decision are what it sees, and it has no `TABLE`; the `TABLE` of a utility lists amounts
with the last `GIVEN` fastest. `PROPERTY` elements are read as `key = value` (a
property without `=` is a key with an empty value) and kept. Any printable text is a legal name or state.
Reading is linear in the size of the file. Reference: Cozman, *The Interchange Format for Bayesian Networks*.
"""

from collections.abc import Mapping
from xml.sax.saxutils import escape

from markovia.io.declarations import DeclaredVariable, Locate, choice, declared_network, dense
from markovia.io.identifiers import WrittenNode, is_plain, split_properties, written_network
from markovia.io.rows import RowPolicy
from markovia.io.xml_reader import Element, XmlSource, element_numbers, number_offset, read_xml
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.source_text import hint, shown

# no document type: it is optional, and TinyXML, which pyAgrum reads with, does not get past one
_KINDS = {"nature": "chance", "discrete": "chance", "decision": "decision", "utility": "utility"}
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'


def read_xmlbif(text: str, source: str | None = None) -> BayesianNetwork:
    """Read an XMLBIF file.

    Parameters
    ----------
    text
        The file's content.
    source
        Its name, for errors and warnings.

    Returns
    -------
    BayesianNetwork
        A variable whose definition has no `TABLE` has no table.

    Raises
    ------
    ParseError
        If the text is not a discrete network in this format.

    Examples
    --------
    >>> bn = read_xmlbif('''<BIF VERSION="0.3"><NETWORK><NAME>b</NAME>
    ... <VARIABLE TYPE="nature"><NAME>rain</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE>
    ... <DEFINITION><FOR>rain</FOR><TABLE>0.8 0.2</TABLE></DEFINITION>
    ... </NETWORK></BIF>''')
    >>> bn.name, bn.query("rain")["yes"]
    ('b', 0.2)
    """
    place = XmlSource(text, source)
    root = read_xml(place)
    if root.tag.lower() != "bif":
        raise place.error(root.at, f"expected <BIF>, found <{root.tag[:40]}>")
    network = root.first("network")
    if network is None:
        raise place.error(root.at, "expected <NETWORK> in <BIF>")
    policy = RowPolicy(source)
    nodes: dict[str, DeclaredVariable] = {}
    for element in network.all("variable"):
        node = _variable(place, element)
        if node.identifier in nodes:
            raise place.error(element.at, f"expected a new variable, found {shown(node.identifier)} again")
        nodes[node.identifier] = node
    defined: set[str] = set()
    for element in network.all("definition", "probability"):
        _define(place, policy, element, nodes, defined)
    name = network.first("name")
    model = declared_network(
        place,
        nodes.values(),
        name="" if name is None else name.text,
        properties=_properties(network),
        at=network.at,
    )
    policy.finish()
    return model


def write_xmlbif(model: object) -> str:
    """Write a Bayesian network as an XMLBIF 0.3 file.

    Raises
    ------
    UnsupportedModel
        If the model is not a Bayesian network, or a structured distribution is too large for a table.

    Examples
    --------
    >>> bn = BayesianNetwork(name="weather")
    >>> bn.add("rain", states=["no", "yes"], p=[0.75, 0.25])
    >>> "<OUTCOME>yes</OUTCOME>" in write_xmlbif(bn), read_xmlbif(write_xmlbif(bn)).allclose(bn)
    (True, True)
    """
    network = written_network(model, "XMLBIF", free_names=True, free_states=True)
    direct, rest = split_properties(network.properties, _fits)
    plain = not network.name or is_plain(network.name)
    own = {**direct, **({} if plain else network.marks), **rest}
    parts = [_HEAD, '<BIF VERSION="0.3">\n<NETWORK>\n']
    parts.append(f"<NAME>{escape(network.name if plain else network.identifier)}</NAME>\n")
    parts += [_property(key, value) for key, value in own.items()]
    parts += [_variable_block(node) for node in network.nodes]
    parts += [_definition_block(node) for node in network.nodes]
    parts.append("</NETWORK>\n</BIF>\n")
    return "".join(parts)


def _variable_block(node: WrittenNode) -> str:
    shown_states = ("worth",) if node.kind == "utility" else node.states  # pyAgrum wants one state
    states = "".join(f"  <OUTCOME>{escape(s)}</OUTCOME>\n" for s in shown_states)
    properties = "".join("  " + _property(k, v) for k, v in node.attributes(_fits).items())
    name = f"  <NAME>{escape(node.identifier)}</NAME>\n"
    kind = "nature" if node.kind == "chance" else node.kind
    return f'<VARIABLE TYPE="{kind}">\n{name}{states}{properties}</VARIABLE>\n'


def _definition_block(node: WrittenNode) -> str:
    given = "".join(f"  <GIVEN>{escape(p)}</GIVEN>\n" for p in node.parents)
    rows = node.rows()
    table = ""
    if rows is not None:
        lines = "".join(f"    {' '.join(map(repr, row))}\n" for row in rows.tolist())
        table = f"  <TABLE>\n{lines}  </TABLE>\n"
    return f"<DEFINITION>\n  <FOR>{escape(node.identifier)}</FOR>\n{given}{table}</DEFINITION>\n"


def _fits(key: str, value: str) -> bool:
    return is_plain(key) and "=" not in key and (not value or is_plain(value))


def _property(key: str, value: str) -> str:
    return f"<PROPERTY>{escape(f'{key} = {value}' if value else key)}</PROPERTY>\n"


def _properties(element: Element) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in element.all("property"):
        key, _, value = item.text.partition("=")
        if key.strip():
            found[key.strip()] = value.strip()
    return found


def _variable(place: XmlSource, element: Element) -> DeclaredVariable:
    kind = next((v for k, v in element.attributes.items() if k.lower() == "type"), "nature")
    if kind.lower() not in _KINDS:
        raise place.error(
            element.at,
            f"{shown(kind)} variables are not supported; expected TYPE to be nature, decision or utility",
        )
    name = element.first("name")
    if name is None or not name.text:
        raise place.error(element.at, "expected <NAME> in <VARIABLE>")
    states = [outcome.text for outcome in element.all("outcome", "value")]
    found = DeclaredVariable(
        name.text, element.at, properties=_properties(element), kind=_KINDS[kind.lower()]
    )
    if found.kind != "utility":  # pyAgrum gives amounts one state, which is none
        found.states = [*states]
    if found.kind == "decision":
        found.define = choice(place, found)
    return found


def _define(
    place: XmlSource,
    policy: RowPolicy,
    element: Element,
    nodes: Mapping[str, DeclaredVariable],
    defined: set[str],
) -> None:
    children = list(element.all("for"))
    if len(children) != 1:
        raise place.error(element.at, f"expected one <FOR> in <DEFINITION>, found {len(children)}")
    child = children[0].text
    if child not in nodes:
        near = hint(child, nodes)
        raise place.error(children[0].at, f"expected a declared variable, found {shown(child)}{near}")
    if child in defined:
        raise place.error(
            element.at, f"expected one definition a variable, found a second one of {shown(child)}"
        )
    defined.add(child)
    nodes[child].parents = [(parent.text, parent.at) for parent in element.all("given")]
    for key, value in _properties(element).items():
        nodes[child].properties.setdefault(key, value)
    table = element.first("table")
    if table is not None and nodes[child].kind != "decision":
        values = element_numbers(place, table)
        nodes[child].define = dense(place, policy, values, table.at, _locator(place, table))


def _locator(place: XmlSource, table: Element) -> Locate:
    return lambda k: number_offset(place, table, k)
