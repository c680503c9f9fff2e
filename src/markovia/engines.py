"""Inference engines with their settings: `model.query(..., engine=mk.engines.VariableElimination(order="min-fill"))`.

Examples
--------
>>> import markovia as mk
>>> engine = mk.engines.VariableElimination(order="min-degree")
>>> mk.examples.sprinkler().query("rain", engine=engine).info.engine
'variable-elimination'
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
