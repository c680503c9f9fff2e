"""From a learned graph to a model with parameters."""

from typing import Any

from markovia.errors import InvalidArgument
from markovia.graphs.undirected import UndirectedGraph
from markovia.learning.structure.result import LearnedStructure
from markovia.learning.structure.study import StructureData
from markovia.models.bayesian_network import BayesianNetwork


def fit_structure(learned: LearnedStructure, data: Any = None, **settings: Any) -> Any:
    """Return a model with the learned graph, its parameters learned from the data; see `LearnedStructure.fit`."""
    rows = learned.data if data is None else data
    if rows is None:
        raise InvalidArgument("this graph was learned without data; give the rows to fit")
    if isinstance(rows, StructureData):
        if rows.table is None or rows.matrix is not None:
            raise InvalidArgument("only discrete data can be fitted to tables so far")
        rows = rows.table
    if isinstance(learned.graph, UndirectedGraph):
        raise InvalidArgument("fit an undirected graph with MarkovNetwork")
    network = BayesianNetwork(learned.dag)
    network.fit(rows, **settings)
    return network
