"""To and from pgmpy objects (pgmpy 1.1 and newer).

pgmpy writes a conditional table with the child's states as rows and the parents' configurations as columns, the
last parent changing fastest; here the parents' axes come first and the child's last. Its tables name their own
states, so one variable may have state names in one table and bare numbers in another: then the names count.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, InvalidTable, UnsupportedModel
from markovia.factors.tables.conditional import ConditionalTable
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import State, Variable
from markovia.graphs import DAG, Mark, MixedGraph, UndirectedGraph
from markovia.io.decision_nodes import refuse_decisions
from markovia.io.peer_objects import PeerTables, one_factor_per_scope, plain_states, require, text_names
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.factor_graph import FactorGraph
from markovia.models.graphical.factor_model import FactorModel
from markovia.models.graphical.markov_network import MarkovNetwork
from markovia.runtime.array_types import Array

Model = BayesianNetwork | MarkovNetwork | FactorGraph
Graph = DAG | UndirectedGraph | MixedGraph
LATENT = "latent"
_MARKS = {"-": Mark.TAIL, ">": Mark.ARROW, "o": Mark.CIRCLE}


def from_pgmpy(model: Any) -> Model | Graph:
    """Turn a pgmpy model or graph into one of ours.

    Parameters
    ----------
    model
        A `DiscreteBayesianNetwork` (tables may be missing), `DiscreteMarkovNetwork`, `FactorGraph`, or a bare `DAG`,
        `PDAG`, `ADMG`, `MAG` or `UndirectedGraph`.

    Returns
    -------
    BayesianNetwork, MarkovNetwork, FactorGraph, DAG, MixedGraph or UndirectedGraph
        Latent variables of a model are marked by the node property `latent`; of graphs only nodes and edges come.

    Raises
    ------
    UnsupportedModel
        For continuous and dynamic models, and for cluster graphs.
    InvalidTable
        If a table is no distribution or two tables disagree on a variable's states.

    Examples
    --------
    >>> from pgmpy.factors.discrete import TabularCPD
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> theirs = DiscreteBayesianNetwork([("rain", "wet")])
    >>> theirs.add_cpds(
    ...     TabularCPD("rain", 2, [[0.8], [0.2]]),
    ...     TabularCPD("wet", 2, [[0.9, 0.2], [0.1, 0.8]], evidence=["rain"], evidence_card=[2]),
    ... )
    >>> from_pgmpy(theirs)["wet"].values.tolist()
    [[0.9, 0.1], [0.2, 0.8]]
    """
    models, base = require("pgmpy.models", "pgmpy"), require("pgmpy.base", "pgmpy")
    if isinstance(model, models.DiscreteBayesianNetwork):
        return _bayesian_network(model)
    if isinstance(model, models.FactorGraph):
        return _factor_model(model, FactorGraph)
    if isinstance(model, models.DiscreteMarkovNetwork):
        return _factor_model(model, MarkovNetwork)
    graph = _graph(model, base)
    if graph is not None:
        return graph
    if type(model).__module__.partition(".")[0] == "pgmpy":
        raise UnsupportedModel(
            f"a pgmpy {type(model).__name__} is neither a discrete model nor a bare graph; "
            "for its structure alone pass pgmpy.base.DAG(model.edges())"
        )
    raise InvalidArgument(f"expected a pgmpy model, not {type(model).__name__}")


def to_pgmpy(model: Model | Graph) -> Any:
    """Turn a model or graph into a pgmpy object.

    Parameters
    ----------
    model
        A Bayesian network, Markov network, factor graph, `DAG`, `UndirectedGraph` or `MixedGraph`.

    Returns
    -------
    object
        `DiscreteBayesianNetwork` (variables without a table get none), `DiscreteMarkovNetwork`, `FactorGraph`, `DAG`,
        `UndirectedGraph`, `PDAG`, `ADMG` or `AncestralBase`. In undirected models, factors over the same variables
        are multiplied into one, and a variable without any factor gets a constant one, which holds its states.

    Raises
    ------
    UnsupportedModel
        If pgmpy has no class for it.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork("rain->wet{no|yes}", tables="uniform")
    >>> to_pgmpy(bn).get_cpds("wet").get_values().tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    models, base = require("pgmpy.models", "pgmpy"), require("pgmpy.base", "pgmpy")
    if isinstance(model, BayesianNetwork):
        refuse_decisions(model, "pgmpy's networks")
        return _theirs_directed(model, models)
    if isinstance(model, FactorModel):
        return _theirs_undirected(model, models)
    if isinstance(model, DAG):
        theirs = base.DAG()
    elif isinstance(model, UndirectedGraph):
        theirs = base.UndirectedGraph()
    elif isinstance(model, MixedGraph):
        return _theirs_mixed(model, base)
    else:
        raise InvalidArgument(f"expected a model or a graph, not {type(model).__name__}")
    theirs.add_nodes_from(model.nodes)
    theirs.add_edges_from(model.edges)
    return theirs


# -- from pgmpy -----------------------------------------------------------------------------------------------------


def _bayesian_network(model: Any) -> BayesianNetwork:
    names = text_names(model.nodes)
    cpds = {cpd.variable: cpd for cpd in model.get_cpds()}
    states = _agreed_states([cpds[n] for n in names if n in cpds])
    variables = {n: Variable(name, states.get(n, 2)) for n, name in names.items()}
    # the table's order of parents is the network's order of parents
    parents = {n: cpds[n].variables[1:] if n in cpds else list(model.get_parents(n)) for n in names}
    tables = PeerTables("pgmpy")
    found: dict[str, ConditionalTable] = {}
    for node, cpd in cpds.items():
        if set(parents[node]) != set(model.get_parents(node)):
            raise InvalidTable(
                f"the table of {node!r} has the parents {list(parents[node])}, the graph {model.get_parents(node)}"
            )
        values = np.moveaxis(_matched(cpd, states), 0, -1)
        found[names[node]] = tables.conditional(
            variables[node], [variables[p] for p in parents[node]], values
        )
    tables.finish()
    if len(found) == len(names):
        network = BayesianNetwork.from_conditionals([found[name] for name in names.values()])
    else:
        structure = {names[n]: [names[p] for p in parents[n]] for n in names}
        network = BayesianNetwork(structure, states={v.name: v.states for v in variables.values()})
        for name, table in found.items():
            network.replace(name, table)
    network.name = str(getattr(model, "name", "") or "")
    network.node_properties = {names[n]: {LATENT: "true"} for n in names if n in set(model.latents)}
    return network


def _factor_model(model: Any, kind: type[MarkovNetwork] | type[FactorGraph]) -> MarkovNetwork | FactorGraph:
    factor_class = require("pgmpy.factors.discrete", "pgmpy").DiscreteFactor
    nodes = [n for n in model.nodes if not isinstance(n, factor_class)]
    names = text_names(nodes)
    states = _agreed_states(model.factors)
    variables = {n: Variable(name, states.get(n, 2)) for n, name in names.items()}
    factors = [Factor([variables[n] for n in f.variables], _matched(f, states)) for f in model.factors]
    ours = kind(variables.values(), factors, name=str(getattr(model, "name", "") or ""))
    latents = set(getattr(model, "latents", ()))
    ours.node_properties = {names[n]: {LATENT: "true"} for n in names if n in latents}
    return ours


def _agreed_states(tables: list[Any]) -> dict[Any, list[State]]:
    """Return each variable's states; the table of a child knows its parents' states, too, or only their number."""
    agreed: dict[Any, list[State]] = {}
    for own in (True, False):  # what a table says of its own first variable counts before what others say
        for table in tables:
            for variable, cardinality in zip(table.variables, table.cardinality, strict=True):
                if own and variable != table.variables[0]:
                    continue
                said = plain_states(table.state_names.get(variable, range(int(cardinality))))
                known = agreed.get(variable)
                if known is None or (_numbered(known) and not _numbered(said) and len(known) == len(said)):
                    agreed[variable] = said
    return agreed


def _matched(table: Any, states: Mapping[Any, list[State]]) -> Array:
    """Return a table's values with every axis in the agreed order of states."""
    values = np.array(_as_numpy(table.values), dtype=np.float64)
    for axis, variable in enumerate(table.variables):
        said = plain_states(table.state_names.get(variable, range(values.shape[axis])))
        agreed = states[variable]
        if said == agreed or (_numbered(said) and len(said) == len(agreed)):
            continue
        if len(said) != len(agreed) or set(said) != set(agreed):
            raise InvalidTable(f"one pgmpy table gives {variable!r} the states {agreed}, another one {said}")
        values = np.take(values, [said.index(s) for s in agreed], axis=axis)
    return values


def _numbered(states: list[State]) -> bool:
    return states == list(range(len(states)))


def _as_numpy(values: Any) -> Any:
    return values.cpu().numpy() if hasattr(values, "cpu") else values  # pgmpy can keep its tables in torch


def _graph(model: Any, base: Any) -> Graph | None:
    if isinstance(model, base.PDAG):
        names = text_names(model.nodes)
        edges = [(names[a], names[b], Mark.TAIL, Mark.ARROW) for a, b in model.directed_edges]
        edges += [(names[a], names[b], Mark.TAIL, Mark.TAIL) for a, b in model.undirected_edges]
        return MixedGraph(edges, nodes=names.values())
    if isinstance(model, base.ADMG):
        names = text_names(model.nodes)
        heads = {"directed": Mark.TAIL, "bidirected": Mark.ARROW}
        # a bidirected edge is stored once in each direction; a mixed graph keeps one of two equal edges
        return MixedGraph(
            [(names[a], names[b], heads[d["type"]], Mark.ARROW) for a, b, d in model.edges(data=True)],
            nodes=names.values(),
        )
    if isinstance(model, base.AncestralBase):
        names = text_names(model.nodes)
        return MixedGraph(
            [
                (names[a], names[b], _MARKS[d["marks"][a]], _MARKS[d["marks"][b]])
                for a, b, d in model.edges(data=True)
            ],
            nodes=names.values(),
        )
    # subclasses are models whose numbers would be lost without a word
    if type(model) in (base.DAG, base.SimpleCausalModel, base.UndirectedGraph):
        names = text_names(model.nodes)
        edges_of = [(names[a], names[b]) for a, b in model.edges()]
        kind = UndirectedGraph if type(model) is base.UndirectedGraph else DAG
        return kind(edges_of, nodes=names.values())
    return None


# -- to pgmpy -------------------------------------------------------------------------------------------------------


def _theirs_directed(model: BayesianNetwork, models: Any) -> Any:
    cpd_class = require("pgmpy.factors.discrete", "pgmpy").TabularCPD
    theirs = models.DiscreteBayesianNetwork()
    theirs.add_nodes_from(model.variables)
    theirs.add_edges_from(model.edges)
    theirs.latents = _latents(model)
    theirs.name = model.name
    for name in model.variables:
        if not model.has_table(name):
            continue
        table = model[name]
        child = table.variable
        theirs.add_cpds(
            cpd_class(
                name,
                len(child),
                table.values.reshape(-1, len(child)).T,
                evidence=list(table.parent_names) or None,
                evidence_card=[len(p) for p in table.parents] or None,
                state_names={v.name: list(v.states) for v in (child, *table.parents)},
            )
        )
    return theirs


def _theirs_undirected(model: FactorModel, models: Any) -> Any:
    factor_class = require("pgmpy.factors.discrete", "pgmpy").DiscreteFactor
    as_factor_graph = isinstance(model, FactorGraph)
    theirs = (
        models.FactorGraph()
        if as_factor_graph
        else models.DiscreteMarkovNetwork(latents=list(_latents(model)))
    )
    theirs.add_nodes_from(model.variables)
    theirs.name = model.name
    if not as_factor_graph:
        theirs.add_edges_from(model.undirected_graph.edges)
    for f in one_factor_per_scope(model, "pgmpy"):
        phi = factor_class(
            list(f.names),
            list(f.shape),
            f.values.ravel(),
            state_names={v.name: list(v.states) for v in f.variables},
        )
        theirs.add_factors(phi)
        if as_factor_graph:
            theirs.add_node(phi)
            theirs.add_edges_from([(name, phi) for name in f.names])
    return theirs


def _latents(model: BayesianNetwork | FactorModel) -> set[str]:
    return {n for n, properties in model.node_properties.items() if properties.get(LATENT) == "true"}


def _theirs_mixed(graph: MixedGraph, base: Any) -> Any:
    marks = {frozenset((at_a, at_b)) for *_, at_a, at_b in graph.edges}
    directed, undirected, bidirected = (
        frozenset((Mark.TAIL, Mark.ARROW)),
        frozenset((Mark.TAIL,)),
        frozenset((Mark.ARROW,)),
    )
    if graph.is_simple() and marks <= {directed, undirected}:
        theirs = base.PDAG(graph.directed_edges(), graph.undirected_edges())
        theirs.add_nodes_from(graph.nodes)
    elif marks <= {directed, bidirected} and graph.is_acyclic():
        theirs = base.ADMG()
        theirs.add_nodes_from(graph.nodes)
        theirs.add_directed_edges(graph.directed_edges())
        theirs.add_bidirected_edges(graph.bidirected_edges())
    elif graph.is_simple():
        theirs = base.AncestralBase()
        theirs.add_nodes_from(graph.nodes)
        for a, b, at_a, at_b in graph.edges:
            theirs.add_edge(a, b, at_a.value, at_b.value)
    else:
        raise UnsupportedModel("pgmpy has no graph with several edges between two nodes but those of an ADMG")
    return theirs
