"""Recipes for modules that `mk.Parameter` takes: settings from which `fit` makes a network.

Examples
--------
>>> import markovia as mk
>>> mk.networks.mlp(8, 64, hidden=128)
mlp(8, 64, hidden=128, layers=2, activation='silu')
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
