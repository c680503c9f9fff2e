"""What users hold: a graph, its numbers, and verbs."""

from markovia.models.base import GraphicalModel
from markovia.models.bayesian_network import BayesianNetwork
from markovia.models.dynamic import DynamicBayesianNetwork
from markovia.models.factor_graph import FactorGraph
from markovia.models.markov_network import MarkovNetwork

__all__ = ["BayesianNetwork", "DynamicBayesianNetwork", "FactorGraph", "GraphicalModel", "MarkovNetwork"]
