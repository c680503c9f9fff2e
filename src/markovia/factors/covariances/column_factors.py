"""Covariances that are products over columns, for grids: their matrix is a Kronecker product of one small matrix a column.

RBF is such a product over all its columns (Matern is not), and so are covariances that look at one column each,
multiplied. What such a covariance is along one column is itself, at inputs that differ in that column alone.
"""

# ruff: noqa: D102, N803, N806 (the methods of `Covariance`; letters of the literature)

from collections.abc import Sequence
from typing import Any

import numpy as np

from markovia.factors.covariances.algebra import Constant, Product, Scaled, Sum, added, product
from markovia.factors.covariances.categories import Categorical
from markovia.factors.covariances.covariance import Covariance, Pull
from markovia.factors.covariances.periodic import Periodic
from markovia.factors.covariances.radial import RBF
from markovia.runtime.array_types import Array


class ColumnFactor(Covariance):
    """What a covariance is along one column: takes inputs of that column alone.

    Its parts are those of the whole, so its adjoint gives derivatives by the hyper-parameters of the whole.
    """

    def __init__(self, parts: Sequence[Covariance], column: int, width: int) -> None:
        super().__init__(parts=parts)
        self.column, self.width = column, width

    def _matrix(self, part: Covariance, X: Any, Z: Any, xp: Any) -> Any:
        if isinstance(part, Scaled):  # its variance alone: what it multiplies is another part
            return part.number("variance") * xp.ones((len(X), len(X if Z is None else Z)))
        return part.value(self._wide(X, xp), None if Z is None else self._wide(Z, xp), xp)

    def _wide(self, X: Any, xp: Any) -> Any:
        return X * xp.asarray(np.eye(self.width)[self.column])

    def k(self, X: Any, Z: Any, xp: Any) -> Any:
        found = [self._matrix(part, X, Z, xp) for part in self.parts]
        return product(found) * xp.ones((len(X), len(X if Z is None else Z)))

    def diag(self, X: Any, xp: Any) -> Any:
        found = [
            part.number("variance") if isinstance(part, Scaled) else part.diagonal(self._wide(X, xp), xp)
            for part in self.parts
        ]
        return product(found) * xp.ones(len(X))

    def adjoint(self, X: Array, Z: Array | None = None) -> tuple[Array, Pull]:
        matrices = [self._matrix(part, X, Z, np) for part in self.parts]
        wide, other = self._wide(X, np), None if Z is None else self._wide(Z, np)

        def pull(W: Array) -> dict[tuple[int, str], Any]:
            total: list[dict[tuple[int, str], Any]] = []
            for i, part in enumerate(self.parts):
                V = W * product(matrices, left_out=i)
                of_part = (
                    part.pulled(variance=V.sum)
                    if isinstance(part, Scaled)
                    else part.forward(wide, other)[1](V)
                )
                total.append(of_part)
            return added(total)

        return np.asarray(product(matrices) * np.ones((len(X), len(X if Z is None else Z)))), pull


def factors_over_columns(covariance: Covariance, d: int) -> list[ColumnFactor] | None:
    """Return one covariance a column whose product a covariance is; None where it is no such product.

    Examples
    --------
    >>> import markovia as mk
    >>> k = 2.0 * mk.covariances.RBF([1.0, 3.0])
    >>> [float(f.value([[0.0]], [[1.0]])[0, 0].round(6)) for f in k.factors_over_columns(2)]
    [1.213061, 0.945959]
    >>> mk.covariances.Matern32(1.0).factors_over_columns(2) is None
    True
    """
    found: list[list[Covariance]] = [[] for _ in range(d)]
    return [ColumnFactor(parts, j, d) for j, parts in enumerate(found)] if _split(covariance, found) else None


def _split(covariance: Covariance, found: list[list[Covariance]]) -> bool:
    """Put the parts of a covariance to their columns; say whether that can be done."""
    if isinstance(covariance, Product):
        return all(_split(part, found) for part in covariance.parts)
    if isinstance(covariance, Scaled | Constant):  # a number that multiplies goes with the first column
        found[0].append(covariance)
        return not covariance.parts or _split(covariance.parts[0], found)
    columns = _looks_at(covariance, len(found))
    if len(columns) > 1 and not isinstance(covariance, RBF | Periodic | Categorical):
        return False
    for column in columns:
        found[column].append(covariance)
    return True


def _looks_at(covariance: Covariance, d: int) -> set[int]:
    if covariance.columns is not None:
        return set(covariance.columns)
    if isinstance(covariance, Sum | Product | Scaled):
        return set().union(*(_looks_at(part, d) for part in covariance.parts))
    return set() if isinstance(covariance, Constant) else set(range(d))
