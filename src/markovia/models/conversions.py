"""From one kind of model to another.

BN to undirected: every conditional table becomes a potential (moralisation); Z is one. Undirected to BN: triangulate,
direct the edges along a perfect elimination order, and read every conditional off the exact joint of a family;
perfect when the graph is chordal, otherwise with the triangulation's extra edges.
"""

from typing import TypeVar

import numpy as np

from markovia.errors import InvalidGraph
from markovia.factors.conditional import Conditional, ConditionalTable
from markovia.factors.factor import Array, Factor
from markovia.factors.variable import Variable
from markovia.graphs import is_chordal, to_directed, triangulate
from markovia.inference.engine import Engine
from markovia.models.base import GraphicalModel
from markovia.models.bayesian_network import BayesianNetwork
from markovia.models.factor_graph import FactorGraph
from markovia.models.factor_model import FactorModel
from markovia.models.markov_network import MarkovNetwork

M = TypeVar("M", bound=GraphicalModel)


def to_markov_network(model: GraphicalModel) -> MarkovNetwork:
    """Return the model as a Markov network over the same variables (moralisation for a directed one)."""
    return _with_properties(model, MarkovNetwork(_variables(model), _factors(model), name=model.name))


def to_factor_graph(model: GraphicalModel) -> FactorGraph:
    """Return the model as a factor graph with one factor a piece."""
    return _with_properties(model, FactorGraph(_variables(model), _factors(model), name=model.name))


def to_bayesian_network(
    model: GraphicalModel, *, allow_fill: bool = True, engine: str | Engine = "auto"
) -> BayesianNetwork:
    """Return a Bayesian network with the same joint distribution.

    Parameters
    ----------
    model
        Any model; a Bayesian network is copied.
    allow_fill
        Whether a graph that is not chordal may be triangulated; the result then hides some independencies.
    engine
        Who computes the joint distribution of each family.

    Raises
    ------
    InvalidGraph
        If the graph is not chordal and `allow_fill` is false.
    """
    if isinstance(model, BayesianNetwork):
        return model.copy()
    if not isinstance(model, FactorModel):
        raise InvalidGraph(f"cannot direct a {type(model).__name__}")
    graph = model.undirected_graph
    if not is_chordal(graph):
        if not allow_fill:
            raise InvalidGraph(
                "the graph is not chordal, so no Bayesian network has exactly its independencies; "
                "allow_fill=True adds the edges of a triangulation"
            )
        graph = triangulate(graph).graph
    dag = to_directed(graph)
    tables: dict[str, Conditional] = {}
    for name in dag.topological_order():
        parents = dag.parents(name)
        family = model.query([*parents, name], engine=engine).factor()
        variables = tuple(model.variable(p) for p in parents)
        tables[name] = ConditionalTable.of(model.variable(name), variables, _rows(family.values))
    ordered = [tables[n] for n in model.variables]
    return _with_properties(model, BayesianNetwork.from_conditionals(ordered, name=model.name))


def _rows(joint: Array) -> Array:
    """Divide a joint of (parents, child) into rows; a parent configuration of mass zero gets a uniform row."""
    mass = joint.sum(axis=-1, keepdims=True)
    uniform = np.full(joint.shape, 1.0 / joint.shape[-1])
    rows: Array = np.divide(joint, mass, out=uniform, where=mass > 0)
    return rows


def _variables(model: GraphicalModel) -> list[Variable]:
    return [model.variable(n) for n in model.variables]


def _factors(model: GraphicalModel) -> list[Factor]:
    return [p.factor() if isinstance(p, Conditional) else p for p in model.pieces()]


def _with_properties(source: GraphicalModel, target: M) -> M:
    target.properties = dict(source.properties)
    target.node_properties = {n: dict(q) for n, q in source.node_properties.items()}
    return target
