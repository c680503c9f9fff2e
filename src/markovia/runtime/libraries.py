"""Libraries that take long to load, under the names everybody knows them by, loaded when they are first asked for something.

`import markovia` has to stay light, and most questions need none of these. A file that does writes
`from markovia.runtime.libraries import jax, jnp` at its top: the names stand for the modules, and cost nothing until a
function reads an attribute of one. Whether a library was loaded shows in `sys.modules`, as ever.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["cp", "csgraph", "eqx", "jax", "jnp", "laws", "nx", "optax", "pd", "sparse", "sparse_solvers"]


COMPUTED_WITH = {"numpy": "NumPy", "numba": "Numba", "jax": "JAX"}
"""What numbers are computed with, by the names of the packages."""


class LateLibrary(ModuleType):
    """A module that is loaded when one of its attributes is read.

    Examples
    --------
    >>> LateLibrary("fractions").Fraction(1, 3)
    Fraction(1, 3)
    """

    def __getattr__(self, name: str) -> Any:
        # what looks modules over, such as doctest, asks for `__wrapped__` and the like, and should load nothing
        if name.startswith("__") and name != "__version__":
            raise AttributeError(f"{self.__name__!r} is not asked for {name!r} before it is loaded")
        return getattr(sys.modules.get(self.__name__) or import_module(self.__name__), name)

    def __reduce__(self) -> tuple[type["LateLibrary"], tuple[str]]:
        return LateLibrary, (self.__name__,)


if TYPE_CHECKING:
    import cupy as cp
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import networkx as nx
    import numpyro.distributions as laws
    import optax
    import pandas as pd
    import scipy.sparse as sparse
    import scipy.sparse.csgraph as csgraph
    import scipy.sparse.linalg as sparse_solvers
else:
    cp = LateLibrary("cupy")
    eqx, jax, jnp = LateLibrary("equinox"), LateLibrary("jax"), LateLibrary("jax.numpy")
    laws = LateLibrary("numpyro.distributions")
    nx, optax, pd = LateLibrary("networkx"), LateLibrary("optax"), LateLibrary("pandas")
    sparse, csgraph = LateLibrary("scipy.sparse"), LateLibrary("scipy.sparse.csgraph")
    sparse_solvers = LateLibrary("scipy.sparse.linalg")
