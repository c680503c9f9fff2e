"""Deep generative models as estimators: presets that state a network, train it and hand it over.

Each has scikit-learn's verbs, and `network()`, the graphical model that answers every other question. Rules are those of a
network with parameters and guides (`mk.Parameter`, `m.guide`).
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
