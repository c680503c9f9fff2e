"""What `fit` of a network with parameters makes large: `m.fit(data, method=mk.objectives.ELBO(draws=5))`."""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
