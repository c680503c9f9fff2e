"""Recipes for laws with an exact density made of neural networks: flows and autoregressive models, for `mk.Parameter`."""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
