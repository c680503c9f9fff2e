"""Data for which a regression has no finite or no unique maximum-likelihood coefficients.

Classes are (quasi-)separated if some direction b has x_i . b >= 0 for every row of one class and <= 0 for every row of the
other, not all zero: going on along b raises the likelihood for ever. A linear program decides it (Konis, 2007). For several
classes the condition is x_i . (b_yi - b_k) >= 0; for Poisson counts with a log link x_i . b = 0 where the count is positive
and <= 0 where it is zero. Columns that are linear combinations of others are found by Gram-Schmidt elimination.
Cost: one linear program with a row an observation (equal rows count once); n p^2 for the rank.
"""

import numpy as np
from numpy.typing import NDArray

from markovia.runtime.array_types import Array

_LARGEST = 400_000
"""Entries up to which the linear program is solved; beyond it the answer is not known."""


def separated_classes(x: Array, codes: NDArray[np.int64], n_classes: int) -> bool | None:
    """Say whether classes are separated by linear functions of the columns; None where it is too large to decide.

    Examples
    --------
    >>> x = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> separated_classes(x, np.array([0, 0, 1]), 2), separated_classes(x, np.array([0, 1, 0]), 2)
    (True, False)
    """
    pairs = np.unique(np.column_stack([x, codes]), axis=0)
    rows, labels = pairs[:, :-1], pairs[:, -1].astype(np.int64)
    n, d = rows.shape
    free = n_classes - 1
    if n * free * d * free > _LARGEST:
        return None
    blocks = np.zeros((n, n_classes, n_classes, d))
    for k in range(n_classes):
        blocks[np.arange(n), k, labels, :] += rows
        blocks[:, k, k, :] -= rows
    other = np.arange(n_classes)[None, :] != labels[:, None]
    constraints = blocks[other].reshape(-1, n_classes * d)[:, d:]
    return _escapes(constraints, np.zeros((0, free * d)))


def separated_counts(x: Array, y: Array) -> bool | None:
    """Say whether a Poisson regression with a log link can drive the means of zero counts to zero for ever."""
    positive = np.unique(x[y > 0], axis=0)
    zero = np.unique(x[y == 0], axis=0)
    if (len(positive) + len(zero)) * x.shape[1] > _LARGEST:
        return None
    return _escapes(-zero, positive)


def _escapes(inequalities: Array, equalities: Array) -> bool:
    """Say whether some b has A b >= 0, not all zero, and E b = 0."""
    from scipy.optimize import linprog

    if not len(inequalities):
        return False
    size = np.maximum(np.abs(inequalities).max(axis=0), 1e-300)
    a = inequalities / size
    found = linprog(
        -a.sum(axis=0),
        A_ub=np.vstack([-a, a]),
        b_ub=np.concatenate([np.zeros(len(a)), np.ones(len(a))]),
        A_eq=equalities / size if len(equalities) else None,
        b_eq=np.zeros(len(equalities)) if len(equalities) else None,
        bounds=[(None, None)] * a.shape[1],
        method="highs",
    )
    return found.status == 3 or (found.status == 0 and -float(found.fun) > 1e-6)


def dependent_columns(x: Array, weights: Array) -> list[int]:
    """Return columns that are linear combinations of the others, as few as possible.

    Examples
    --------
    >>> x = np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 2.0], [1.0, 3.0, 4.0]])
    >>> dependent_columns(x, np.ones(3))
    [2]
    """
    used = weights > 0
    if not used.any():
        return list(range(x.shape[1]))
    half = x * np.sqrt(weights)[:, None]
    gram = half.T @ half
    length = np.sqrt(np.maximum(np.diag(gram), 0.0))
    if np.all(length > 0):
        try:  # a safely positive definite matrix of products settles it without a decomposition of the rows
            if float(np.diag(np.linalg.cholesky(gram / np.outer(length, length))).min()) > 1e-5:
                return []
        except np.linalg.LinAlgError:
            pass
    scaled = half[used] / np.where(length > 0, length, 1.0)
    q: list[Array] = []
    dependent = []
    for j in range(x.shape[1]):  # Gram-Schmidt in the order of the columns, so that later ones are blamed
        left = scaled[:, j].copy()
        for _ in range(2):
            for direction in q:
                left -= direction * float(direction @ left)
        norm = float(np.linalg.norm(left))
        if norm <= 1e-10:
            dependent.append(j)
        else:
            q.append(left / norm)
    return dependent
