"""The names that `markovia.models` hands out, each with its home."""

from markovia.models.graphical.base import GraphicalModel as GraphicalModel
from markovia.models.graphical.bayesian_network import BayesianNetwork as BayesianNetwork
from markovia.models.graphical.factor_graph import FactorGraph as FactorGraph
from markovia.models.graphical.markov_network import MarkovNetwork as MarkovNetwork
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork as DynamicBayesianNetwork
