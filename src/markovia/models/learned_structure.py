"""From a learned graph to a model with parameters."""

from dataclasses import replace
from typing import Any

import numpy as np

from markovia.data.tables.reading import read_data
from markovia.data.tables.reading_mixed import MixedTable, read_mixed
from markovia.errors import InvalidArgument, InvalidGraph, UnsupportedModel
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.equivalence import extend
from markovia.graphs.kinds.mixed import Mark, MixedGraph
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.learning.gaussian.covariance_selection import covariance_selection
from markovia.models.gaussian.gaussian_markov_network import GaussianMarkovNetwork
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.markov_network import MarkovNetwork
from markovia.structure.task.result import LearnedStructure
from markovia.structure.undirected.vector_nodes import column_graph

MAX_CLIQUE_CELLS = 2**20
"""The largest table of a clique that is fitted."""


def fit_structure(learned: LearnedStructure, data: Any = None, **settings: Any) -> Any:
    """Return a model with the learned graph, its parameters learned from the data; see `LearnedStructure.fit`.

    An undirected graph becomes a `MarkovNetwork` with a table for every column and every edge; `pairwise=False` gives it a
    table for every maximal clique instead. Over numbers it becomes a `GaussianMarkovNetwork`, and a directed graph a
    network of linear Gaussians (and tables for the columns with states).
    """
    columns = getattr(learned.details, "columns", None)
    if columns is not None and isinstance(learned.graph, UndirectedGraph):  # nodes of several columns
        learned = replace(learned, graph=column_graph(learned.graph, columns))
    rows = learned.data if data is None else data
    if rows is None:
        raise InvalidArgument("this graph was learned without data; give the rows to fit")
    if isinstance(rows, MixedTable):
        own = rows.only([n for n in learned.nodes if n in rows.names])
        if not own.discrete:
            return _fit_numbers(learned, own, data is None, settings)
        assert rows.table is not None
        rows = rows.table
    if isinstance(learned.graph, UndirectedGraph):
        read = hasattr(rows, "without_gaps")
        kinds = set() if read else set(read_mixed(rows, names=learned.nodes).kinds)
        if kinds == {"continuous"}:
            return _fit_field(learned.graph, rows, **settings)
        return _fit_undirected(learned.graph, rows, **settings)
    hidden = getattr(learned.details, "latent", None)
    if hidden and data is None:
        settings.setdefault("latent", hidden)
    network = BayesianNetwork(learned.dag)
    network.fit(rows, **settings)
    return _with_class(network, learned)


def _with_class(network: BayesianNetwork, learned: LearnedStructure) -> BayesianNetwork:
    """Leave the edges that the data do not direct without a direction for causal questions."""
    if isinstance(learned.graph, MixedGraph) and learned.graph.undirected_edges():
        network.equivalence_class = learned.graph
    return network


def _fit_numbers(learned: LearnedStructure, rows: MixedTable, own: bool, settings: dict[str, Any]) -> Any:
    """Return a model of rows with numbers: linear Gaussians and tables, or a field."""
    if isinstance(learned.graph, UndirectedGraph):
        if not rows.continuous:
            raise UnsupportedModel(
                "an undirected graph over numbers and states has no model here; learn a directed one, such as "
                "mk.learn_structure(data, 'hill-climb')"
            )
        return _fit_field(learned.graph, rows, **settings)
    columns: dict[str, Any] = {}
    table = None if rows.table is None else rows.table.in_memory()
    for k, (name, kind) in enumerate(zip(rows.names, rows.kinds, strict=True)):
        if kind == "continuous":
            assert rows.matrix is not None
            columns[name] = rows.matrix[:, rows.columns[k]]
        else:
            assert table is not None
            variable = rows.variable(k)
            columns[name] = np.array([*variable.states, None], dtype=object)[table.codes[rows.columns[k]]]
    numbers = {n for n, kind in zip(rows.names, rows.kinds, strict=True) if kind == "continuous"}
    network = BayesianNetwork(_states_first(learned, numbers))
    hidden = getattr(learned.details, "latent", None) or {}
    if hidden and own:
        settings.setdefault("latent", hidden)
    known = {} if table is None else table.variables
    network.install(
        {
            n: Quantity(n, "real") if n in numbers else Variable(n, hidden[n]) if n in hidden else known[n]
            for n in network.variables
        },
        {},
    )
    if own and rows.weights is not None:
        settings.setdefault("weights", rows.weights)
    network.fit(columns, **settings)
    return _with_class(network, learned)


def _states_first(learned: LearnedStructure, numbers: set[str]) -> DAG:
    """Return a graph of the class in which no number is the parent of a node with states, if there is one."""
    dag = learned.dag
    if not any(a in numbers and b not in numbers for a, b in dag.edges):
        return dag
    graph = learned.cpdag.copy()
    for a, b in graph.undirected_edges():
        if (a in numbers) != (b in numbers):
            first, second = (b, a) if a in numbers else (a, b)
            graph.set_marks(first, second, Mark.TAIL, Mark.ARROW)
    try:
        return extend(graph)
    except InvalidGraph:
        return dag


def _fit_field(
    graph: UndirectedGraph, rows: Any, *, prior: float = 0.0, weights: Any = None
) -> GaussianMarkovNetwork:
    mean, precision = covariance_selection(rows, graph.nodes, graph, prior, weights)
    return GaussianMarkovNetwork(precision, mean=mean, names=graph.nodes)


def _fit_undirected(
    graph: UndirectedGraph, rows: Any, *, pairwise: bool = True, **settings: Any
) -> MarkovNetwork:
    source = read_data(rows, graph.nodes, weights=settings.pop("weights", None))
    variables = {name: source.variables[name] for name in graph.nodes}
    scopes: list[tuple[str, ...]] = [(name,) for name in graph.nodes]
    if pairwise:
        scopes.extend(graph.edges)
    else:
        scopes.extend(c for c in graph.maximal_cliques() if len(c) > 1)
    factors = []
    for scope in scopes:
        own = tuple(variables[n] for n in scope)
        cells = int(np.prod([float(len(v)) for v in own]))
        if cells > MAX_CLIQUE_CELLS:
            raise InvalidArgument(
                f"the clique of {', '.join(map(repr, scope[:4]))}, ... has {cells:,} joint states; use pairwise=True"
            )
        factors.append(Factor.of(own, np.ones([len(v) for v in own])))
    network = MarkovNetwork(list(variables.values()), factors)
    return network.fit(source, **settings)
