"""From a learned graph to a model with parameters."""

from typing import Any

import numpy as np

from markovia.data.reading import read_data
from markovia.data.reading_mixed import MixedTable
from markovia.data.row_sources import RowSource
from markovia.errors import InvalidArgument
from markovia.factors.tables.factor import Factor
from markovia.graphs.undirected import UndirectedGraph
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.markov_network import MarkovNetwork
from markovia.structure.task.result import LearnedStructure

MAX_CLIQUE_CELLS = 2**20
"""The largest table of a clique that is fitted."""


def fit_structure(learned: LearnedStructure, data: Any = None, **settings: Any) -> Any:
    """Return a model with the learned graph, its parameters learned from the data; see `LearnedStructure.fit`.

    An undirected graph becomes a `MarkovNetwork` with a table for every column and every edge; `pairwise=False` gives it a
    table for every maximal clique instead.
    """
    rows = learned.data if data is None else data
    if rows is None:
        raise InvalidArgument("this graph was learned without data; give the rows to fit")
    if isinstance(rows, MixedTable):
        rows = _discrete_rows(rows, learned)
    if isinstance(learned.graph, UndirectedGraph):
        return _fit_undirected(learned.graph, rows, **settings)
    hidden = getattr(learned.details, "latent", None)
    if hidden and data is None:
        settings.setdefault("latent", hidden)
    network = BayesianNetwork(learned.dag)
    network.fit(rows, **settings)
    return network


def _discrete_rows(rows: MixedTable, learned: LearnedStructure) -> RowSource:
    names = set(learned.nodes)
    for name, kind in zip(rows.names, rows.kinds, strict=True):
        if kind != "discrete" and name in names:
            more = (
                " (details.precision is the fitted Gaussian)" if hasattr(learned.details, "precision") else ""
            )
            raise InvalidArgument(f"only discrete data can be fitted to tables so far{more}")
    assert rows.table is not None
    return rows.table


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
