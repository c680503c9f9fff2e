"""Covariance functions of Gaussian processes: `mk.covariances.RBF(length=1.0)`; they add, multiply and scale.

A hyper-parameter that is a number is fixed, a `mk.Parameter` is fitted, and one that is not said is fitted from the scale of
the data.
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
