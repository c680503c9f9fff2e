"""Gaussian fields: a whole undirected model as one piece, `exp(h'x - x'Kx / 2)` with a sparse precision K."""

from typing import Any, ClassVar

from markovia.factors.quantities.quantity import Quantity
from markovia.runtime.array_types import Array


class GaussianField:
    """An unnormalised Gaussian density with a sparse precision matrix.

    Parameters
    ----------
    variables
        Quantities, in the order of the matrix.
    information, precision
        The vector h and the symmetric sparse matrix K (compressed rows).
    """

    kind: ClassVar[str] = "field"
    __slots__ = ("information", "names", "precision", "variables")

    def __init__(self, variables: tuple[Quantity, ...], information: Array, precision: Any) -> None:
        self.variables = variables
        self.names = tuple([v.name for v in variables])
        self.information, self.precision = information, precision

    def log_value(self, x: Array) -> Array:
        """Return the log of the density at rows of numbers, without its normaliser."""
        return x @ self.information - 0.5 * ((self.precision @ x.T).T * x).sum(axis=-1)  # type: ignore[no-any-return]
