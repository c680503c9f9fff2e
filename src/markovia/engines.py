"""Inference engines with their settings: `model.query(..., engine=mk.engines.VariableElimination(order="min-fill"))`.

Examples
--------
>>> import markovia as mk
>>> engine = mk.engines.VariableElimination(order="min-degree")
>>> mk.examples.sprinkler().query("rain", engine=engine).info.engine
'variable-elimination'
"""

from markovia.inference.engine import Engine, engine_names, get_engine
from markovia.inference.enumeration import Enumeration
from markovia.inference.variable_elimination import VariableElimination

__all__ = ["Engine", "Enumeration", "VariableElimination", "engine_names", "get_engine"]
