"""Seeing that a function is linear by calling it: numbers that only know how to be added and scaled.

A function that accepts `Affine` arguments and returns one is linear in them, for sure: everything else (a logarithm, a
comparison, a product of two of them) refuses. Coefficients may be arrays, one a row.
"""

from collections.abc import Callable
from typing import Any

import numpy as np


class Affine:
    """`constant + sum of coefficient * symbol`."""

    __array_ufunc__ = None  # arrays leave arithmetic to this class, and np.log(affine) is an error
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, constant: Any, terms: dict[str, Any]) -> None:
        self.constant, self.terms = constant, terms

    def __add__(self, other: Any) -> "Affine":
        if not isinstance(other, Affine):
            return Affine(self.constant + _plain(other), self.terms)
        names = self.terms.keys() | other.terms.keys()
        terms = {n: self.terms.get(n, 0.0) + other.terms.get(n, 0.0) for n in names}
        return Affine(self.constant + other.constant, terms)

    def __mul__(self, other: Any) -> "Affine":
        if isinstance(other, Affine):
            raise TypeError("a product of two symbols is not linear")
        by = _plain(other)
        return Affine(self.constant * by, {n: c * by for n, c in self.terms.items()})

    def __neg__(self) -> "Affine":
        return self.__mul__(-1.0)

    def __pos__(self) -> "Affine":
        return self

    def __sub__(self, other: Any) -> "Affine":
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> "Affine":
        return self.__neg__().__add__(other)

    def __truediv__(self, other: Any) -> "Affine":
        if isinstance(other, Affine):
            raise TypeError("a quotient of two symbols is not linear")
        return self.__mul__(1.0 / _plain(other))

    __radd__ = __add__
    __rmul__ = __mul__

    def _refuse(self, *_: Any) -> Any:
        raise TypeError("a symbol has no value to compare or round")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _refuse
    __float__ = __int__ = __len__ = __iter__ = __getitem__ = __array__ = _refuse


def _plain(value: Any) -> Any:
    found = np.asarray(value)
    if found.dtype.kind not in "biuf":
        raise TypeError("only numbers are added to symbols")
    return found


def affine(function: Callable[..., Any], arguments: dict[str, Any], symbols: list[str]) -> Affine | None:
    """Return the function as a linear one of some of its arguments, the others being given; None where it is not linear."""
    calls = {**arguments, **{s: Affine(0.0, {s: 1.0}) for s in symbols}}
    try:
        found = function(**calls)
    except Exception:  # whatever a function does with a symbol that it does not understand, it is not linear
        return None
    if isinstance(found, Affine):
        return found
    try:
        plain = np.asarray(found)
    except TypeError:
        return None
    return Affine(plain, {}) if plain.dtype.kind in "biuf" else None
