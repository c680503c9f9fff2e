"""What questions and learners answer with: classes to name in a signature or an `isinstance`, seldom built by hand.

Examples
--------
>>> import markovia as mk
>>> isinstance(mk.examples.sprinkler().query("rain"), mk.results.Posterior)
True
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
