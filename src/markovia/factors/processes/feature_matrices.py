"""Matrices of features, items by columns, as laws see them: up to the order of columns, or in order of appearance.

Columns that are equal form a history h; K_h counts them. The left-ordered form sorts columns by their first row, then the
second, ...; one such matrix stands for all matrices that differ by the order of columns.
"""

from collections import Counter
from math import lgamma

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array, Ints


def matrix_of(matrix: ArrayLike, *, binary: bool = True) -> Ints:
    """Return a matrix of whole numbers, 0 or 1 where it is binary, without its empty columns."""
    found = np.asarray(matrix)
    kind = "0 or 1" if binary else "whole numbers, 0 or more"
    if found.ndim != 2:
        raise InvalidArgument(f"a matrix of features has a row for each item, not shape {found.shape}")
    whole = found.dtype.kind in "biu" or (found.dtype.kind == "f" and np.array_equal(found, np.round(found)))
    if not whole or (found.size and (found.min() < 0 or (binary and found.max() > 1))):
        raise InvalidArgument(f"the entries of a matrix of features are {kind}")
    found = found.astype(np.int64)
    return np.asarray(found[:, found.any(axis=0)])


def left_ordered(matrix: ArrayLike) -> Ints:
    """Return the left-ordered form: columns by decreasing history, without empty ones.

    Examples
    --------
    >>> left_ordered([[0, 1, 1], [1, 0, 1], [1, 0, 0]]).tolist()
    [[1, 1, 0], [1, 0, 1], [0, 0, 1]]
    """
    found = matrix_of(matrix, binary=False)
    return np.asarray(found[:, np.lexsort(-found[::-1])]) if found.size else found


def log_multiplicity(matrix: Ints) -> float:
    """Return the sum of log K_h! over histories."""
    histories = Counter(column.tobytes() for column in np.ascontiguousarray(matrix.T))
    return sum(lgamma(times + 1.0) for times in histories.values()) if matrix.size else 0.0


def first_rows(matrix: Ints) -> Ints:
    """Return the row in which each column first appears."""
    return np.asarray((matrix > 0).argmax(axis=0)) if matrix.size else np.zeros(0, dtype=np.int64)


def log_orders(matrix: Ints) -> float:
    """Return the sum over rows of log K_1! of the columns that first appear there; -inf where those are out of order."""
    from scipy.special import gammaln

    first = first_rows(matrix)
    if (np.diff(first) < 0).any():
        return -np.inf
    return float(gammaln(np.bincount(first) + 1.0).sum())


def order_of_rows(parts: list[Array], n: int) -> Ints:
    """Stack rows of growing length into a matrix, zeros where a column was not there yet."""
    found = np.zeros((n, max((p.size for p in parts), default=0)), dtype=np.int64)
    for row, part in zip(found, parts, strict=True):
        row[: part.size] = part
    return found
