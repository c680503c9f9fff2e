"""Hidden groups and factors behind rows: mixtures, clusters, factor analysis, mixtures of regressions and experts.

Examples
--------
>>> import markovia as mk
>>> groups = mk.mixtures.PoissonMixture(2, random_state=0).fit([[1], [2], [1], [20], [22], [19]])
>>> labels = groups.predict([[0], [25]])
>>> bool(labels[0] != labels[1])
True
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
