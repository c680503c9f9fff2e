"""The variational picture of inference: mean parameters, consistency, the marginal polytope, free energies and duals.

Examples
--------
>>> import markovia as mk
>>> model = mk.MarkovNetwork.ising({("a", "b"): 0.5})
>>> mu = mk.variational.mean_parameters(model)
>>> bool(mk.variational.locally_consistent(mu)), bool(mk.variational.in_marginal_polytope(mu))
(True, True)
"""

from markovia.runtime.lazy_names import lazy_names as _lazy_names

__getattr__, __dir__ = _lazy_names(__name__)
