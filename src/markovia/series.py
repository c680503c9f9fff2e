"""Sequences: hidden Markov models and their relatives, chains, state spaces, particle filters, series, dynamic networks.

Examples
--------
>>> import markovia as mk
>>> rain = mk.series.MarkovChain(smoothing=1).fit([["dry", "dry", "wet"], ["wet", "wet", "dry", "dry"]])
>>> rain.hitting_times("wet").round(6).tolist()
[2.5, 0.0]
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
