"""Guides that `fit` makes by itself: `m.guide("z", mk.guides.Amortised(hidden=64))`."""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
