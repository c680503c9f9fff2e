"""Which moves between states may be, and which have fixed probabilities."""

from typing import Any, Literal, get_args

import numpy as np

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.checks import numbers

Structure = Literal["ergodic", "left-right", "banded", "cyclic"]
STRUCTURES = get_args(Structure)


def allowed_moves(structure: Structure, k: int, band: int | None = None) -> Flags:
    """Return which moves a structure allows, (states, states).

    "left-right" allows moves to the same or a later state, "banded" to states on both sides, "cyclic" to the same or a later
    one with the first after the last; by at most `band` places (all of them, 1 and 1 by default).

    Examples
    --------
    >>> allowed_moves("left-right", 3, 1).astype(int).tolist()
    [[1, 1, 0], [0, 1, 1], [0, 0, 1]]
    """
    far = np.arange(k)[None, :] - np.arange(k)[:, None]
    if structure == "left-right":
        return np.asarray((far >= 0) & (far <= (k if band is None else band)))
    if structure == "banded":
        return np.asarray(np.abs(far) <= (1 if band is None else band))
    if structure == "cyclic":
        return np.asarray(far % k <= (1 if band is None else band))
    return np.ones((k, k), dtype=bool)


def fixed_moves(structure: Structure, k: int, band: int | None, mask: Any) -> Array:
    """Return the probabilities of moves that are fixed, NaN for those that are free.

    A mask has truth values, or 0 and 1, for moves that may be; or numbers for moves that are fixed, NaN for free ones.
    """
    found = np.where(allowed_moves(structure, k, band), np.nan, 0.0)
    if mask is None:
        return found
    given = numbers(mask, "transition_mask= has truth values, or numbers with NaN for free entries")
    if given.shape != (k, k):
        raise InvalidArgument(
            f"transition_mask= has shape {k} x {k}, not {' x '.join(map(str, given.shape)) or 'a number'}"
        )
    free = np.isnan(given)
    if not free.any():
        if not np.isin(given, (0.0, 1.0)).all():
            raise InvalidArgument(
                "transition_mask= has truth values (or 0 and 1) for moves that may be, or NaN for free entries beside "
                "numbers for fixed ones"
            )
        found[given == 0.0] = 0.0
    else:
        found[~free] = given[~free]
    spent = np.nansum(found, axis=1)
    open_rows = np.asarray(np.isnan(found).any(axis=1))
    low = np.where(np.isnan(found), 0.0, found).min(axis=1) < 0.0
    wrong = np.flatnonzero(low | np.where(open_rows, spent >= 1.0, np.abs(spent - 1.0) > 1e-6))
    if len(wrong):
        i = int(wrong[0])
        raise InvalidArgument(
            f"row {i} of the transition cannot add up to 1: its fixed entries sum to {spent[i]:g}"
            f"{'' if open_rows[i] else ', and none is free'}"
        )
    return found


def masked(transition: Array, fixed: Array) -> Array:
    """Return a transition with fixed entries as they are and the free ones sharing the rest in proportion."""
    free = np.isnan(fixed)
    left = 1.0 - np.nansum(fixed, axis=1, keepdims=True)
    inside = np.where(free, transition, 0.0)
    size = inside.sum(axis=1, keepdims=True)
    even = free / np.maximum(free.sum(axis=1, keepdims=True), 1)
    shares = np.where(size > 0.0, inside / np.where(size > 0.0, size, 1.0), even)
    return np.where(free, shares * left, np.nan_to_num(fixed))


def free_entries(transition: Array, fixed: Array | None) -> int:
    """Return the number of free parameters of a transition; entries that are zero are none."""
    free = transition > 0.0 if fixed is None else (transition > 0.0) & np.isnan(fixed)
    return int(np.maximum(free.sum(axis=1) - 1, 0).sum())
