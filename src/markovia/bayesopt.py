"""Bayesian optimisation: the search of a minimum, or of an estimator's settings, with few trials.

Examples
--------
>>> import markovia as mk
>>> found = mk.bayesopt.minimize(lambda p: (p["x"] - 0.3) ** 2, {"x": (0.0, 1.0)}, 10, seed=0)
>>> abs(found.best_point["x"] - 0.3) < 0.01
True
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
