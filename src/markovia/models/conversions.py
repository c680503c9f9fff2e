"""From one kind of model to another.

BN to undirected: every conditional table becomes a potential (moralisation); Z is one. Undirected to BN: triangulate,
eliminate, and read every conditional off the bucket of its variable;
perfect when the graph is chordal, otherwise with the triangulation's extra edges.
"""

from typing import TypeVar

from markovia.errors import ImpossibleEvidence, InvalidGraph, UnsupportedModel
from markovia.factors.tables.conditional import Conditional, ConditionalTable
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.graphs import is_chordal, perfect_elimination_order
from markovia.inference.exact.variable_elimination import VariableElimination
from markovia.inference.problem import Problem
from markovia.models.gaussian.gaussian_markov_network import GaussianMarkovNetwork
from markovia.models.graphical.base import GraphicalModel
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.factor_graph import FactorGraph
from markovia.models.graphical.factor_model import FactorModel
from markovia.models.graphical.markov_network import MarkovNetwork

M = TypeVar("M", bound=GraphicalModel)


def to_markov_network(model: GraphicalModel) -> MarkovNetwork | GaussianMarkovNetwork:
    """Return the model as a Markov network over the same variables (moralisation for a directed one).

    A network of linear Gaussians becomes a `GaussianMarkovNetwork`.
    """
    if isinstance(model, GaussianMarkovNetwork):
        return model.copy()
    if model.has_quantities and isinstance(model, BayesianNetwork):
        return GaussianMarkovNetwork.from_bayesian_network(model)
    return _with_properties(model, MarkovNetwork(_variables(model), _factors(model), name=model.name))


def to_factor_graph(model: GraphicalModel) -> FactorGraph:
    """Return the model as a factor graph with one factor a piece."""
    if model.has_quantities:
        raise UnsupportedModel("a factor graph is made of tables, and this model has numbers")
    return _with_properties(model, FactorGraph(_variables(model), _factors(model), name=model.name))


def to_bayesian_network(model: GraphicalModel, *, allow_fill: bool = True) -> BayesianNetwork:
    """Return a Bayesian network with the same joint distribution.

    One elimination sweep gives all tables: what a variable has to do with those eliminated after it, normalised.

    Parameters
    ----------
    model
        Any model; a Bayesian network is copied.
    allow_fill
        Whether a graph that is not chordal may be triangulated; the result then hides some independencies.

    Raises
    ------
    InvalidGraph
        If the graph is not chordal and `allow_fill` is false.
    ImpossibleEvidence
        If every configuration has weight zero.
    """
    if isinstance(model, BayesianNetwork):
        return model.copy()
    if not isinstance(model, FactorModel):
        raise InvalidGraph(f"cannot direct a {type(model).__name__}")
    graph = model.undirected_graph
    if is_chordal(graph):
        engine = VariableElimination(order=perfect_elimination_order(graph))
    elif allow_fill:
        engine = VariableElimination()
    else:
        raise InvalidGraph(
            "the graph is not chordal, so no Bayesian network has exactly its independencies; "
            "allow_fill=True adds the edges of a triangulation"
        )
    problem = Problem({n: model.variable(n) for n in model.variables}, model.pieces(), {})
    tables = {
        v.name: ConditionalTable.of(v, parents, rows) for v, parents, rows in engine.conditionals(problem)
    }
    if len(tables) < len(model):
        raise ImpossibleEvidence({})
    ordered = [tables[n] for n in model.variables]
    return _with_properties(model, BayesianNetwork.from_conditionals(ordered, name=model.name))


def _variables(model: GraphicalModel) -> list[Variable]:
    return [model.variable(n) for n in model.variables]


def _factors(model: GraphicalModel) -> list[Factor]:
    return [p.factor() if isinstance(p, Conditional) else p for p in model.pieces()]


def _with_properties(source: GraphicalModel, target: M) -> M:
    target.properties = dict(source.properties)
    target.node_properties = {n: dict(q) for n, q in source.node_properties.items()}
    return target
