"""Random partitions, measures and matrices: the laws behind models that choose their own number of groups or features.

Each has `sample(n, seed)`, `log_prob`, `posterior(data)` and `plot()`.

Examples
--------
>>> import markovia as mk
>>> crp = mk.processes.ChineseRestaurant(concentration=1.0)
>>> round(crp.expected_tables(1000), 2)
7.49
>>> crp.posterior([0, 0, 1]).predictive().tolist()
[0.5, 0.25, 0.25]
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
