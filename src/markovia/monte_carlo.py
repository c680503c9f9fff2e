"""Monte Carlo on any target, by hand: `mk.monte_carlo.rejection_sample(...)`.

Engines that sample a model are in `markovia.engines`.

Examples
--------
>>> import markovia as mk
>>> mk.monte_carlo.inverse_transform(lambda u: u**2, 3, seed=0).shape
(3,)
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
