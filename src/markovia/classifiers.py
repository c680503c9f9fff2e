"""Classifiers that are Bayesian networks, as scikit-learn estimators, and labels that spread along a graph.

Examples
--------
>>> import markovia as mk
>>> rows, labels = [[0.1], [0.3], [2.9], [3.1]], ["low", "low", "high", "high"]
>>> str(mk.classifiers.GaussianNaiveBayes().fit(rows, labels).predict([[2.5]])[0])
'high'
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
