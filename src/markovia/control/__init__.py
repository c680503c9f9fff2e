"""Acting: what policies are worth, on data and in worlds; bandits, regimes, repairs.

Diagrams and processes are networks with decisions in them (`mk.Decision`, `mk.Utility`); these are the tools around them.

Names are imported on first use; they are listed in `__init__.pyi`.
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
