"""Generalised linear models with standard errors, as scikit-learn estimators.

Examples
--------
>>> import markovia as mk
>>> line = mk.regression.LinearRegression().fit([[0.0], [1.0], [2.0], [3.0]], [1.0, 3.1, 4.9, 7.0])
>>> line.coef_.round(2).tolist()
[1.98]
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
