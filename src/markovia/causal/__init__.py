"""Causal questions: which effects a graph and data determine, how large they are, and what would have happened.

>>> import markovia as mk
>>> mk.causal.districts(mk.causal.read_graph("x -> z -> y; x <-> y"))
[['x', 'y'], ['z']]

Names are imported on first use; they are listed in `__init__.pyi`.
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
