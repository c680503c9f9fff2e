"""Engines: variables, factors, evidence and a query in; a result with its provenance out.

Names are imported on first use; they are listed in `__init__.pyi`.
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
