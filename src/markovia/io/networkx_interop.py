"""To and from networkx graphs.

A networkx graph comes in as the graph class that fits it. Models go out as graphs whose nodes and edges carry what
networkx has attributes for; the way back to a model is `BayesianNetwork(from_networkx(g))`, a structure.
"""

from typing import Any

from markovia.errors import InvalidArgument, InvalidGraph
from markovia.factors.decisions.decision import DecisionNode
from markovia.factors.decisions.utility import UtilityNode
from markovia.factors.quantities.quantity import Quantity
from markovia.graphs import DAG, BipartiteGraph, JunctionTree, MixedGraph, UndirectedGraph
from markovia.io.peer_objects import require, text_names
from markovia.models.graphical.base import GraphicalModel
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.factor_graph import FactorGraph
from markovia.models.graphical.factor_model import FactorModel


def from_networkx(graph: Any) -> DAG | UndirectedGraph | MixedGraph | BipartiteGraph:
    """Turn a networkx graph into the graph class that fits it.

    Parameters
    ----------
    graph
        A `DiGraph` (gives a `DAG`), a `Graph` (gives an `UndirectedGraph`), a graph whose edges all have the
        attribute `marks` (gives a `MixedGraph`), or one with nodes ("variable", name) and ("factor", name) (gives a
        `BipartiteGraph`); the last two as `to_networkx` writes them. Nodes that are no strings become their text.

    Returns
    -------
    DAG, UndirectedGraph, MixedGraph or BipartiteGraph
        Nodes and edges keep their order.

    Raises
    ------
    CycleError
        If directed edges form a cycle.
    InvalidGraph
        If an edge joins a node to itself.
    DuplicateName
        If two nodes print alike, such as 1 and "1".

    Examples
    --------
    >>> import networkx as nx
    >>> from_networkx(nx.DiGraph([("rain", "wet"), ("sprinkler", "wet")]))
    DAG([('rain', 'wet'), ('sprinkler', 'wet')])
    >>> from_networkx(nx.path_graph(3)).edges
    [('0', '1'), ('1', '2')]
    """
    nx = require("networkx", "networkx")
    if not isinstance(graph, nx.Graph):
        raise InvalidArgument(f"expected a networkx graph, not {type(graph).__name__}")
    if len(graph) and all(
        isinstance(n, tuple) and len(n) == 2 and n[0] in ("variable", "factor") for n in graph
    ):
        return BipartiteGraph.from_networkx(graph)
    names = text_names(graph.nodes)
    plain = nx.relabel_nodes(graph, names, copy=True) if any(n != s for n, s in names.items()) else graph
    marked = [isinstance(d.get("marks"), str) for _, _, d in plain.edges(data=True)]
    if marked and all(marked):
        return MixedGraph.from_networkx(plain)
    if any(marked):
        raise InvalidGraph("some edges have the attribute marks and some do not; give it to all or to none")
    return DAG.from_networkx(plain) if plain.is_directed() else UndirectedGraph.from_networkx(plain)


def to_networkx(model: Any, *, tables: bool = False) -> Any:
    """Turn a model or a graph into a networkx graph.

    Parameters
    ----------
    model
        A Bayesian network (gives a `DiGraph`), a Markov network (`Graph`), a factor graph (bipartite `Graph` with
        nodes ("variable", name) and ("factor", name)), or a graph of `markovia.graphs`.
    tables
        Attach the numbers: to a node of a Bayesian network `parents` and `table` (axes parents, then the node; of a
        utility its parents; a decision has none), to
        a factor node `variables` and `table`, to a Markov network the graph attribute `factors`, a list of pairs
        (names, table).

    Returns
    -------
    networkx.Graph or a subclass
        The variables' nodes have the attribute `states`, numbers and utilities `domain` instead, decisions also
        `decision`; the graph has `name`.

    Raises
    ------
    IncompleteModel
        If tables are asked of a Bayesian network that lacks one.

    Examples
    --------
    >>> import markovia as mk
    >>> g = to_networkx(mk.BayesianNetwork("rain->wet{no|yes}", tables="uniform"), tables=True)
    >>> g.nodes["wet"]["states"], g.nodes["wet"]["parents"], g.nodes["wet"]["table"].tolist()
    (['no', 'yes'], ['rain'], [[0.5, 0.5], [0.5, 0.5]])
    """
    require("networkx", "networkx")
    if isinstance(model, DAG | UndirectedGraph | MixedGraph | BipartiteGraph | JunctionTree):
        return model.to_networkx()
    if not isinstance(model, GraphicalModel):
        raise InvalidArgument(f"expected a model or a graph, not {type(model).__name__}")
    graph = model.graph.to_networkx()
    graph.graph["name"] = model.name
    for name in model.variables:
        node = ("variable", name) if isinstance(model, FactorGraph) else name
        variable = model.variable(name)
        if isinstance(variable, Quantity):
            graph.nodes[node]["domain"] = variable.domain
        else:
            graph.nodes[node]["states"] = model.states(name)
        if isinstance(model, BayesianNetwork) and name in model.decisions:
            graph.nodes[node]["decision"] = True
    if tables:
        _attach_tables(graph, model)
    return graph


def _attach_tables(graph: Any, model: GraphicalModel) -> None:
    if isinstance(model, BayesianNetwork):
        for name in model.variables:
            graph.nodes[name]["parents"] = model.parents(name)
            node = model[name]
            if isinstance(node, UtilityNode) and node.worth is not None:
                graph.nodes[name]["table"] = node.worth.copy()
            elif not isinstance(node, DecisionNode):
                graph.nodes[name]["table"] = node.values.copy()
    elif isinstance(model, FactorGraph):
        for name, factor in zip(model.factor_names, model.factors, strict=True):
            node = graph.nodes["factor", name]
            node["variables"] = list(factor.names)
            node["table"] = factor.values.copy()
    elif isinstance(model, FactorModel):
        graph.graph["factors"] = [(list(f.names), f.values.copy()) for f in model.factors]
