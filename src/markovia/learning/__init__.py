"""Learning from data: counts, parameters, regressions, measures of association, tests of dependence.

Names are imported on first use: most of them need only a part of what is here. They are listed in `__init__.pyi`.
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
