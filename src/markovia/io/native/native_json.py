"""markovia's own file format: JSON, versioned and complete.

Everything a model holds survives: names, the type of every state (text, integer, boolean), every bit of every
number, properties, nodes without tables, the order of variables and parents, structured conditionals with their
few parameters, and plain graphs. A file is one object:

    {"format": "markovia", "version": 1, "kind": "bayesian-network",
     "name": "demo", "properties": {"author": "me"}, "node_properties": {"wet": {"unit": "none"}},
     "variables": [{"name": "rain", "states": ["no", "yes"]}, {"name": "wet", "states": [false, true]}],
     "conditionals": [{"variable": "rain", "parents": [], "rows": [[0.8, 0.2]]},
                      {"variable": "wet", "parents": ["rain"], "rows": [[0.9, 0.1], [0.2, 0.8]]}]}

- `kind` is `bayesian-network`, `markov-network`, `factor-graph`, `gaussian-markov-network`, `dynamic-bayesian-network`,
  `dag`, `undirected-graph` or `mixed-graph`; or `chain-crf`, `memm` or `segment-crf`, taggers
  (`markovia.io.native.native_taggers`); or `hidden-markov-model` or `markov-chain`
  (`markovia.io.native.native_sequences`); or `linear-state-space`, `arima`, `dynamic-factor` or `structural-series`
  (`markovia.io.native.native_state_spaces`); or `estimator` (`markovia.io.native.native_estimators`); or
  `posterior`, an answer (`markovia.io.native.native_posteriors`). A
  dynamic network has `initial` and `transition`, each an object with what a Bayesian network has; one that looks several
  steps back has a list `early` of those of steps 1, 2, ...
- `states` are strings, integers or booleans; a number k stands for the integers 0 to k-1. A variable that is a number has
  a `domain` instead: `"real"`, `"number"` (its distribution tells) or `"input"`; a utility has `"utility"`. It may have
  `plates`, pairs of a name and a length or null, and `labels`, names of the values 0, 1, ...
- `conditionals` (Bayesian networks) has one entry a variable. `rows` lists one row of child probabilities for
  each configuration of the parents, the last parent fastest. Without `rows` and without `model` the node has no
  table. Instead of `rows` there may be `"model"` (the class of a structured conditional, such as
  `NoisyOrConditional`, or `DecisionNode`) and `"parameters"`, see `markovia.io.native.native_local`.
- `learned`, `guides` and `potentials` (Bayesian networks, may be left out) are parameters, what latent nodes are proposed
  from, and log weights, see `markovia.io.native.native_parameters`.
- `undirected` (Bayesian networks, may be left out) lists pairs of a parent and a child whose edge the data left without a
  direction: the network is one member of that class of graphs.
- `factors` (Markov networks and factor graphs) lists `{"variables": [...], "values": [...]}`, the values in one
  flat list with the last variable fastest.
- A Gaussian field has `information` (one number a variable) and `precision`, a list of `[name, name, number]` with each pair
  once.
- Graphs have `nodes` and `edges`: pairs for `dag` and `undirected-graph`; `[a, mark at a, mark at b, b]` with
  marks `-`, `>` and `o` for `mixed-graph`.
- `name`, `properties` and `node_properties` may be left out. Unknown keys are refused, so that a misspelt one is
  not lost; a later version of the format has a higher `version`.

Syntax errors are reported with line and column, other errors also with the path of the value (such as
`$.conditionals[3].rows[0]`). Numbers are written so that they read back exactly.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from markovia.errors import CycleError, MarkoviaError, ParseError, UnsupportedModel
from markovia.factors.decisions.utility import Worth
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional, ConditionalTable
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.graphs.kinds.chain_graph import ChainGraph
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.mixed import Mark, MixedGraph
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.inference.posterior_questions import PosteriorQuestions
from markovia.io.native.json_paths import JsonNode, parse_json
from markovia.io.native.native_estimators import Nested, estimator_content, is_estimator, read_estimator
from markovia.io.native.native_local import read_local, write_local
from markovia.io.native.native_parameters import read_parameters, write_parameters
from markovia.io.native.native_posteriors import posterior_content, read_posterior
from markovia.io.native.native_sequences import is_plain_hmm, read_chain, read_hmm, write_chain, write_hmm
from markovia.io.native.native_state_spaces import PRESETS, read_state_space, state_space_content
from markovia.io.native.native_taggers import (
    read_chain_crf,
    read_memm,
    read_segment_crf,
    tagger_content,
)
from markovia.io.rows import RowPolicy, checked_size
from markovia.models.crf.chain_crf import ChainCRF
from markovia.models.crf.memm import MEMM
from markovia.models.crf.segment_crf import SegmentCRF
from markovia.models.gaussian.gaussian_markov_network import GaussianMarkovNetwork
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.chain_graph_model import ChainGraphModel
from markovia.models.graphical.factor_graph import FactorGraph
from markovia.models.graphical.factor_model import FactorModel
from markovia.models.graphical.markov_network import MarkovNetwork
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork
from markovia.models.temporal.hmm import HMM
from markovia.models.temporal.kalman_model import KalmanModel
from markovia.models.temporal.markov_chain import MarkovChain
from markovia.runtime.source_text import brief, shown

VERSION = 1
MAX_STATES = 2**20
UTILITY_DOMAIN = "utility"
DOMAINS = ("real", "number", "input", UTILITY_DOMAIN)

Graph = DAG | UndirectedGraph | MixedGraph
Thing = (
    BayesianNetwork
    | DynamicBayesianNetwork
    | FactorModel
    | GaussianMarkovNetwork
    | ChainCRF
    | ChainGraphModel
    | HMM
    | KalmanModel
    | MarkovChain
    | MEMM
    | SegmentCRF
    | DAG
    | UndirectedGraph
    | MixedGraph
    | PosteriorQuestions
)

_COMMON = ("format", "version", "kind")
_MODEL = (*_COMMON, "name", "properties", "node_properties", "variables")


def read_json(text: str, source: str | None = None) -> Thing:
    """Read a model or a graph from native JSON text.

    Parameters
    ----------
    text
        The whole file.
    source
        The file's name for messages.

    Raises
    ------
    ParseError
        If the text is not JSON, or not a model in this format.

    Examples
    --------
    >>> text = '{"format": "markovia", "version": 1, "kind": "dag", "nodes": ["a", "b"], "edges": [["a", "b"]]}'
    >>> read_json(text).edges
    [('a', 'b')]
    """
    return read_root(parse_json(text, source))


def read_root(root: JsonNode) -> Thing:
    """Read a model or a graph from parsed JSON, whose arrays may be arrays already."""
    root.need(dict, "an object")
    if root.get("format").value != "markovia":
        root.get("format").fail("expected 'markovia'")
    version = root.get("version")
    if version.need(int, "a version number") != VERSION:
        version.fail(f"expected version {VERSION}; a newer markovia may read this file")
    kind = root.get("kind")
    reader = _READERS.get(kind.text())
    if reader is None:
        kind.fail(f"expected one of {', '.join(map(repr, _READERS))}")
    return reader(root)


def write_json(model: Thing) -> str:
    """Write a model or a graph as native JSON text.

    Raises
    ------
    UnsupportedModel
        If it is neither a model of tables and linear Gaussians nor one of the graph classes.

    Examples
    --------
    >>> print(write_json(DAG([("a", "b")])))
    {"format": "markovia", "version": 1, "kind": "dag",
    "nodes": ["a", "b"],
    "edges": [
    ["a", "b"]]}
    <BLANKLINE>
    """
    return text_of(native_root(model))


def native_root(model: Thing) -> dict[str, Any]:
    """Return what a file holds of a model: plain values, arrays, and models inside (`Nested`)."""
    kind, content = _content(model)
    return {"format": "markovia", "version": VERSION, "kind": kind, **content}


def text_of(root: Mapping[str, Any]) -> str:
    """Return the text of a file."""
    lines = [f'{{"format": "markovia", "version": {VERSION}, "kind": {json.dumps(root["kind"])}']
    for key, value in list(root.items())[len(_COMMON) :]:
        if isinstance(value, list) and value and isinstance(value[0], dict | list):
            listed = ",\n".join(_dump(item) for item in value)
            lines.append(f"{json.dumps(key)}: [\n{listed}]")
        else:
            lines.append(f"{json.dumps(key)}: {_dump(value)}")
    return ",\n".join(lines) + "}\n"


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_listed)


def _listed(value: Any) -> Any:
    """Return an array as lists, in which what is no finite number is a word; a model inside as text."""
    if isinstance(value, Nested):
        return text_of(value.root)
    if value.dtype.kind == "f" and not np.isfinite(value).all():
        words = value.astype(object)
        words[~np.isfinite(value)] = [str(x) for x in value[~np.isfinite(value)]]
        return words.tolist()
    return value.tolist()


# -- writing -------------------------------------------------------------------------------------------------------


def _content(model: Thing) -> tuple[str, dict[str, Any]]:
    if isinstance(model, BayesianNetwork):
        return "bayesian-network", _network_content(model)
    if isinstance(model, KalmanModel):
        return state_space_content(model)
    if isinstance(model, DynamicBayesianNetwork):
        parts: dict[str, Any] = {"initial": model.initial, "transition": model.transition}
        content: dict[str, Any] = {part: _network_content(net) for part, net in parts.items()}
        if model.order > 1:
            content["early"] = [_network_content(net) for net in model.starts[1:]]
        return "dynamic-bayesian-network", content
    if isinstance(model, MarkovNetwork | FactorGraph):
        kind = "factor-graph" if isinstance(model, FactorGraph) else "markov-network"
        factors = [
            {"variables": list(f.names), "values": f.values.reshape(-1).tolist()} for f in model.factors
        ]
        return kind, {**_header(model), "factors": factors}
    if isinstance(model, ChainGraphModel):
        potentials = [factor for field in model.components for factor in field.factors]
        network = model.to_network()
        _, content = _content(MarkovNetwork([network.variable(n) for n in model.variables], potentials))
        return "chain-graph-model", {**content, "graph": _content(model.graph)[1]}
    if isinstance(model, GaussianMarkovNetwork):
        return "gaussian-markov-network", _field_content(model)
    if isinstance(model, HMM) and is_plain_hmm(model):
        return "hidden-markov-model", write_hmm(model)
    if isinstance(model, MarkovChain):
        return "markov-chain", write_chain(model)
    if isinstance(model, ChainCRF | MEMM | SegmentCRF):
        return tagger_content(model)
    if is_estimator(model):
        return estimator_content(model)
    if isinstance(model, PosteriorQuestions):
        return posterior_content(model)
    if isinstance(model, DAG | UndirectedGraph):
        kind = "dag" if isinstance(model, DAG) else "undirected-graph"
        return kind, {"nodes": model.nodes, "edges": [list(e) for e in model.edges]}
    if isinstance(model, MixedGraph):
        edges = [[a, mark_a.value, mark_b.value, b] for a, b, mark_a, mark_b in model.edges]
        return "mixed-graph", {"nodes": model.nodes, "edges": edges}
    raise UnsupportedModel(
        f"the native format holds networks, fields, taggers and graphs, not a {type(model).__name__}"
    )


def _network_content(model: BayesianNetwork) -> dict[str, Any]:
    known = model.equivalence_class
    return {
        **_header(model),
        "conditionals": [_conditional(model, name) for name in model.variables],
        **({} if known is None else {"undirected": [list(pair) for pair in known.undirected_edges()]}),
        **write_parameters(model),
    }


def _field_content(model: GaussianMarkovNetwork) -> dict[str, Any]:
    entries, names = model.precision.tocoo(), model.variables
    pairs = [
        [names[i], names[j], x]
        for i, j, x in zip(entries.row.tolist(), entries.col.tolist(), entries.data.tolist(), strict=True)
        if i <= j
    ]
    return {**_header(model), "information": model.information_vector.tolist(), "precision": pairs}


def _header(model: BayesianNetwork | FactorModel | GaussianMarkovNetwork) -> dict[str, Any]:
    return {
        "name": model.name,
        "properties": {str(k): str(v) for k, v in model.properties.items()},
        "node_properties": {
            n: {str(k): str(v) for k, v in own.items()}
            for n, own in model.node_properties.items()
            if n in model
        },
        "variables": [_variable(model.variable(n)) for n in model.variables],
    }


def _variable(variable: Variable) -> dict[str, Any]:
    if isinstance(variable, Quantity):
        said: dict[str, Any] = {"name": variable.name, "domain": variable.domain}
        if variable.plates:
            said["plates"] = [[p, variable.lengths.get(p)] for p in variable.plates]
        if variable.labels:
            said["labels"] = list(variable.labels)
        return said
    return {"name": variable.name, "states": list(variable.states)}


def _conditional(model: BayesianNetwork, name: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"variable": name, "parents": model.parents(name)}
    if model.has_table(name):
        conditional = model[name]
        local = write_local(conditional)
        if local is not None:
            entry["model"], entry["parameters"] = local
        else:
            try:
                entry["rows"] = conditional.values.reshape(-1, len(conditional.variable)).tolist()
            except MarkoviaError as error:
                raise UnsupportedModel(f"the table of {name!r} cannot be listed: {error}") from None
    return entry


# -- reading -------------------------------------------------------------------------------------------------------


def _read_bayesian_network(root: JsonNode) -> BayesianNetwork:
    root.only(*_MODEL, "conditionals", "undirected", "learned", "guides", "potentials")
    variables = _variables(root)
    listed = root.get("conditionals")
    policy = RowPolicy(root.source.name)
    parents: dict[str, tuple[Variable, ...]] = {}
    tables: dict[str, Conditional] = {}
    for entry in listed.items():
        entry.only("variable", "parents", "rows", "model", "parameters")
        variable = _known(entry.get("variable"), variables)
        if variable.name in parents:
            entry.fail(f"expected one entry a variable, found two for {shown(variable.name)}")
        named = tuple(_known(p, variables) for p in entry.get("parents").items())
        if len({variable, *named}) != len(named) + 1:
            entry.get("parents").fail("expected different parents, none of them the variable itself")
        parents[variable.name] = named
        if "model" in entry:
            tables[variable.name] = read_local(entry, variable, named)
        elif "rows" in entry:
            number = next((v.name for v in (*named, variable) if isinstance(v, Quantity)), None)
            if number is not None:
                entry.get("rows").fail(f"expected no table: {shown(number)} is a number")
            tables[variable.name] = _table(entry.get("rows"), variable, named, policy)
    for name in variables:
        if name not in parents:
            listed.fail(f"expected an entry for the variable {shown(name)}")
    try:
        network = _network(variables, parents, tables)
    except CycleError as error:
        listed.fail(f"expected an acyclic network; {brief(str(error))}")
    _describe(root, network)
    if "undirected" in root:
        network.equivalence_class = _undirected(root.get("undirected"), network)
    read_parameters(root, network)
    policy.finish()
    return network


def _undirected(listed: JsonNode, network: BayesianNetwork) -> MixedGraph:
    """Return the class of graphs that the network is a member of: its own graph, without the arrows of the pairs listed."""
    graph = MixedGraph.from_dag(network.graph)
    for entry in listed.items():
        ends = entry.need(list, "a pair of names")
        if (
            len(ends) != 2
            or not all(isinstance(n, str) and n in graph for n in ends)
            or not graph.adjacent(ends[0], ends[1])
        ):
            entry.fail("expected two variables that an edge of the network joins")
        graph.set_marks(ends[0], ends[1], Mark.TAIL, Mark.TAIL)
    return graph


def _read_dynamic_network(root: JsonNode) -> DynamicBayesianNetwork:
    root.only(*_COMMON, "initial", "early", "transition")
    initial, transition = (_read_bayesian_network(root.get(part)) for part in ("initial", "transition"))
    early = [_read_bayesian_network(net) for net in root.get("early").items()] if "early" in root else []
    try:
        return DynamicBayesianNetwork([initial, *early], transition)
    except MarkoviaError as error:
        root.get("transition").fail(f"expected the later steps of the process; {brief(str(error))}")


def _network(
    variables: Mapping[str, Variable],
    parents: Mapping[str, tuple[Variable, ...]],
    tables: Mapping[str, Conditional],
) -> BayesianNetwork:
    if len(tables) == len(variables):
        return BayesianNetwork.from_conditionals([tables[n] for n in variables])
    structure = {n: [p.name for p in parents[n]] for n in variables}
    counted = {n: v.states for n, v in variables.items() if not isinstance(v, Quantity)}
    network = BayesianNetwork(structure, states=counted)
    network.install(variables, tables)
    return network


def _table(
    rows: JsonNode, variable: Variable, parents: tuple[Variable, ...], policy: RowPolicy
) -> ConditionalTable:
    shape = (*map(len, parents), len(variable))
    n, k = _size(rows, shape) // len(variable), len(variable)
    items = rows.need(list, "a list of rows")
    if len(items) != n:
        rows.fail(f"expected {n:,} rows, one for each configuration of the parents, found {len(items):,}")
    for i, row in enumerate(items):
        if not isinstance(row, list) or len(row) != k:
            rows.at(i).fail(
                f"expected a row of {k} probabilities, one for each state of {shown(variable.name)}"
            )
    values = _numbers([number for row in items for number in row], lambda i: rows.at(i // k).at(i % k))
    table = policy.check(
        values.reshape(shape), lambda row: rows.at(row).position(), f"of {shown(variable.name)}"
    )
    table.setflags(write=False)
    return ConditionalTable.of(variable, parents, table)


def _read_factor_model(
    root: JsonNode, cls: type[MarkovNetwork] | type[FactorGraph], *more: str
) -> FactorModel:
    root.only(*_MODEL, "factors", *more)
    variables = _variables(root)
    factors = []
    for entry in root.get("factors").items():
        entry.only("variables", "values")
        scope = tuple(_known(v, variables) for v in entry.get("variables").items())
        if len(set(scope)) != len(scope):
            entry.get("variables").fail("expected each variable once")
        listed = entry.get("values")
        shape = tuple(map(len, scope))
        size = _size(listed, shape)
        items = listed.need(list, "a list of numbers")
        if len(items) != size:
            listed.fail(f"expected {size:,} numbers for the scope, found {len(items):,}")
        values = _numbers(items, listed.at).reshape(shape)
        bad = ~((values >= 0.0) & (values < np.inf))
        if bad.any():
            listed.at(int(np.argmax(bad))).fail("expected a finite number that is not negative")
        values.setflags(write=False)
        factors.append(Factor.of(scope, values))
    model = cls(variables.values(), factors)
    _describe(root, model)
    return model


def _read_chain_graph_model(root: JsonNode) -> ChainGraphModel:
    network = _read_factor_model(root, MarkovNetwork, "graph")
    graph = _read_graph(root.get("graph"), lambda nodes, edges: ChainGraph(_marked(edges), nodes=nodes))
    try:
        return ChainGraphModel(
            graph, network.factors, variables=[network.variable(n) for n in network.variables]
        )
    except MarkoviaError as error:
        root.get("factors").fail(f"expected the factors of a chain graph; {brief(str(error))}")


def _read_field(root: JsonNode) -> GaussianMarkovNetwork:
    root.only(*_MODEL, "information", "precision")
    variables = _variables(root)
    listed = root.get("information")
    items = listed.need(list, "a list of numbers")
    if len(items) != len(variables):
        listed.fail(f"expected {len(variables):,} numbers, one a variable, found {len(items):,}")
    information = _numbers(items, listed.at)
    precision: dict[tuple[str, str], float] = {}
    for entry in root.get("precision").items():
        parts = entry.need(list, "an entry of the precision")
        if len(parts) != 3:
            entry.fail("expected [name, name, number]")
        pair = (_known(entry.at(0), variables).name, _known(entry.at(1), variables).name)
        if pair in precision or pair[::-1] in precision:
            entry.fail("expected each pair of variables once")
        number = parts[2]
        if type(number) not in (float, int) or not abs(number) < 1e308:
            entry.at(2).fail("expected a number")
        precision[pair] = float(number)
    try:
        model = GaussianMarkovNetwork(precision, information=information, names=list(variables))
    except MarkoviaError as error:
        root.get("precision").fail(f"expected a precision matrix; {brief(str(error))}")
    _describe(root, model)
    return model


def _read_graph(root: JsonNode, build: Callable[[list[str], list[JsonNode]], Graph]) -> Graph:
    root.only(*_COMMON, "nodes", "edges")
    nodes = [node.text() for node in root.get("nodes").items()]
    if len(set(nodes)) != len(nodes):
        root.get("nodes").fail("expected different nodes")
    edges = list(root.get("edges").items())
    known = set(nodes)
    for edge in edges:
        ends = edge.need(list, "an edge")
        if (
            len(ends) not in (2, 4)
            or any(not isinstance(e, str) for e in ends)
            or not {ends[0], ends[-1]} <= known
        ):
            edge.fail("expected an edge between two of the nodes")
    try:
        return build(nodes, edges)
    except MarkoviaError as error:
        if isinstance(error, ParseError):
            raise
        root.get("edges").fail(f"expected the edges of a graph; {brief(str(error))}")


def _pairs(edges: Sequence[JsonNode]) -> list[tuple[str, str]]:
    for edge in edges:
        if len(edge.value) != 2:
            edge.fail("expected a pair of nodes")
    return [(e.value[0], e.value[1]) for e in edges]


def _marked(edges: Sequence[JsonNode]) -> list[tuple[str, str, Mark, Mark]]:
    marks = {mark.value: mark for mark in Mark}
    for edge in edges:
        if len(edge.value) != 4 or edge.value[1] not in marks or edge.value[2] not in marks:
            edge.fail("expected [node, mark, mark, node] with marks '-', '>' or 'o'")
    return [(e.value[0], e.value[3], marks[e.value[1]], marks[e.value[2]]) for e in edges]


_READERS: dict[str, Callable[[JsonNode], Thing]] = {
    "bayesian-network": _read_bayesian_network,
    "dynamic-bayesian-network": _read_dynamic_network,
    "markov-network": lambda root: _read_factor_model(root, MarkovNetwork),
    "factor-graph": lambda root: _read_factor_model(root, FactorGraph),
    "chain-graph-model": _read_chain_graph_model,
    "gaussian-markov-network": _read_field,
    "hidden-markov-model": read_hmm,
    "markov-chain": read_chain,
    **dict.fromkeys(("linear-state-space", *PRESETS), read_state_space),
    "chain-crf": read_chain_crf,
    "memm": read_memm,
    "segment-crf": read_segment_crf,
    "estimator": read_estimator,
    "posterior": read_posterior,
    "dag": lambda root: _read_graph(root, lambda nodes, edges: DAG(_pairs(edges), nodes=nodes)),
    "undirected-graph": lambda root: _read_graph(
        root, lambda nodes, edges: UndirectedGraph(_pairs(edges), nodes=nodes)
    ),
    "mixed-graph": lambda root: _read_graph(
        root, lambda nodes, edges: MixedGraph(_marked(edges), nodes=nodes)
    ),
}


def _variables(root: JsonNode) -> dict[str, Variable]:
    found: dict[str, Variable] = {}
    room = 2**22 + len(root.source.text)
    for entry in root.get("variables").items():
        entry.only("name", "states", "domain", "plates", "labels")
        name = entry.get("name").text()
        if not name or name in found:
            entry.get("name").fail("expected a new, non-empty name")
        if "domain" in entry:
            if "states" in entry or entry.get("domain").text() not in DOMAINS:
                entry.get("domain").fail(f"expected states, or one of the domains {', '.join(DOMAINS)}")
            domain = entry.get("domain").value
            found[name] = Worth(name) if domain == UTILITY_DOMAIN else _quantity(entry, name)
            continue
        states = entry.get("states")
        value = states.value
        if isinstance(value, int) and not isinstance(value, bool):
            room -= max(value, 0)
            if not 1 <= value <= MAX_STATES or room < 0:
                states.fail(f"expected 1 to {MAX_STATES:,} states")
        elif not isinstance(value, list) or not all(isinstance(s, str | int) for s in value):
            states.fail("expected a list of states (strings, integers or booleans) or their number")
        try:
            found[name] = Variable(name, value)
        except MarkoviaError as error:
            states.fail(f"expected the states of a variable; {brief(str(error))}")
    return found


def _quantity(entry: JsonNode, name: str) -> Quantity:
    plates: dict[str, int | None] = {}
    for item in entry.get("plates").items() if "plates" in entry else ():
        pair = item.need(list, "[plate, length]")
        length = pair[1] if len(pair) == 2 else 0
        if not isinstance(pair[0], str) or not (length is None or (isinstance(length, int) and length > 0)):
            item.fail("expected [plate, length], the length null where it comes with the data")
        plates[pair[0]] = length
    labels = entry.get("labels").need(list, "a list of names") if "labels" in entry else []
    if not all(isinstance(s, str | int) for s in labels):
        entry.get("labels").fail("expected names of values (strings, integers or booleans)")
    lengths = {p: n for p, n in plates.items() if n is not None}
    return Quantity(name, entry.get("domain").text(), tuple(plates), lengths, tuple(labels))


def _describe(root: JsonNode, model: BayesianNetwork | FactorModel | GaussianMarkovNetwork) -> None:
    """Fill in the parts of a model that may be left out."""
    if "name" in root:
        model.name = root.get("name").text()
    if "properties" in root:
        model.properties = _texts(root.get("properties"))
    if "node_properties" in root:
        for name, own in root.get("node_properties").fields():
            if name not in model:
                own.fail(f"expected properties of a variable; there is no {shown(name)}")
            model.node_properties[name] = _texts(own)


def _texts(node: JsonNode) -> dict[str, str]:
    return {key: value.text() for key, value in node.fields()}


def _known(node: JsonNode, variables: Mapping[str, Variable]) -> Variable:
    name = node.text()
    if name not in variables:
        node.fail("expected the name of a variable")
    return variables[name]


def _size(node: JsonNode, shape: Sequence[int]) -> int:
    try:
        return checked_size(shape, available=len(node.source.text))
    except ParseError as error:
        node.fail(error.expected)


def _numbers(items: list[Any], at: Callable[[int], JsonNode]) -> Any:
    kinds = set(map(type, items))
    if not kinds <= {float, int}:
        first = next(i for i, x in enumerate(items) if type(x) not in (float, int))
        at(first).fail("expected a number")
    try:
        return np.array(items, dtype=np.float64)
    except OverflowError:
        first = next(i for i, x in enumerate(items) if abs(x) > 1e308)
        at(first).fail("expected a number of ordinary size")
