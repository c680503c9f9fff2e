"""Inference engines with their settings: `model.query(..., engine=mk.engines.VariableElimination(order="min-fill"))`.

Examples
--------
>>> import markovia as mk
>>> engine = mk.engines.VariableElimination(order="min-degree")
>>> mk.examples.sprinkler().query("rain", engine=engine).info.engine
'variable-elimination'
"""

from markovia.inference.auto import Auto, load_kernels
from markovia.inference.conditioning import Conditioning
from markovia.inference.engine import Engine, engine_names, get_engine
from markovia.inference.enumeration import Enumeration
from markovia.inference.junction_tree import JunctionTree
from markovia.inference.variable_elimination import VariableElimination

__all__ = [
    "Auto",
    "Conditioning",
    "Engine",
    "Enumeration",
    "JunctionTree",
    "VariableElimination",
    "engine_names",
    "get_engine",
    "load_kernels",
]
