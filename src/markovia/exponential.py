"""Distributions by name, as exponential families: densities, moments, draws, natural parameters, conjugate priors.

Examples
--------
>>> import markovia as mk
>>> coin = mk.exponential.Bernoulli.fit([1, 1, 0, 1])
>>> coin.moments().tolist(), coin.natural().round(6).tolist()
([0.75], [1.098612])
>>> mk.exponential.Poisson.conjugate_prior(shape=1, rate=1).posterior([4, 2]).parameters
Gamma(shape=7, rate=3)
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
