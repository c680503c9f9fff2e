"""Gaussian processes and their relatives as estimators: presets with scikit-learn's verbs over `mk.covariances`.

Processes themselves, and the kernel machines that a covariance makes: ridge, principal components, smoothing, densities,
support vectors and relevance vectors. Those that are probabilistic models hand over their `network()`.
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
