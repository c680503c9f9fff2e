"""Tests of conditional independence, for `mk.learn_structure(test=...)` and `mk.independence_test(test=...)`.

Examples
--------
>>> import markovia as mk
>>> rows = mk.examples.sprinkler().sample(2000, seed=1)
>>> mk.independence_test(rows, "cloudy", "wet", given=["rain", "sprinkler"], test=mk.ci_tests.G2(alpha=0.01)).independent
True
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
