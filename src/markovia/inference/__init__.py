"""Engines: variables, factors, evidence and a query in; a result with its provenance out."""

from markovia.inference.engine import Engine, engine_names, get_engine
from markovia.inference.enumeration import Enumeration
from markovia.inference.icm import ConditionalModes, iterated_conditional_modes
from markovia.inference.posterior import Explanation, Posterior
from markovia.inference.problem import Problem
from markovia.inference.result import Info
from markovia.inference.variable_elimination import VariableElimination

__all__ = [
    "ConditionalModes",
    "Engine",
    "Enumeration",
    "Explanation",
    "Info",
    "Posterior",
    "Problem",
    "VariableElimination",
    "engine_names",
    "get_engine",
    "iterated_conditional_modes",
]
