"""Diagnostics for draws of your own: `mk.diagnostics.summary({"mu": array})`, chains by draws.

R-hat, effective sample sizes, Monte Carlo errors, Geweke's test, autocorrelations and burn-in of any draws: an array of
chains by draws, a mapping from name to such, a frame, or a posterior.

Examples
--------
>>> import markovia as mk
>>> import numpy as np
>>> draws = np.random.default_rng(0).normal(size=(4, 1000))
>>> mk.diagnostics.rhat(draws) < 1.01, mk.diagnostics.ess(draws) > 3000
(True, True)
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
