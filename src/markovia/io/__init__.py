"""Files: read and write models in the formats people already have.

Names are imported on first use; they are listed in `__init__.pyi`.
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
