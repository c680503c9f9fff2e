"""Columns in a unit of their own, so that neither tiny nor huge numbers under- or overflow where they are squared."""

from collections.abc import Sequence

import numpy as np

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array

FLAT = 1e-12
"""A spread below this share of a column's largest number is rounding error."""


def unit_scaled(columns: Array) -> Array:
    """Return columns times a power of two each, their largest numbers between 1/2 and 1; nothing is rounded.

    Examples
    --------
    >>> unit_scaled(np.array([[6.0, 0.375], [-2.0, 0.25]])).tolist()
    [[0.75, 0.75], [-0.25, 0.5]]
    """
    _, exponents = np.frexp(np.abs(columns).max(axis=0, initial=0.0))
    found: Array = np.ldexp(columns, -exponents)
    return found


def check_spread(columns: Array, spread: Array, names: Sequence[str]) -> None:
    """Refuse the first column whose standard deviation is rounding error."""
    flat = np.flatnonzero(spread <= FLAT * np.abs(columns).max(axis=0, initial=0.0))
    if len(flat):
        raise InvalidArgument(f"the column {names[flat[0]]!r} is constant; leave it out")
