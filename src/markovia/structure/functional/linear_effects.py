"""Linear acyclic models x = Bx + e: coefficients along an order, orders from coefficients, total effects.

`B[j, i]` is the effect of i on j, as the literature on LiNGAM writes it; graphs and `weights` use [i, j] for i -> j, its
transpose.

Which coefficients are zero is decided by the adaptive lasso with BIC (Zou 2006), by Wald tests, by a threshold, or not at
all; those that stay are estimated anew by least squares. Everything follows from the covariances: O(p³) a variable, whatever
the number of rows.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.checks import check_choice, check_level, check_number
from markovia.structure.task.acyclicity import limited_parents, possible_edges, reachable
from markovia.structure.task.knowledge import Rules

PRUNINGS = ("adaptive-lasso", "wald", "threshold", "none")


def total_effects(effects: Array) -> Array:
    """Return (I - B)⁻¹: entry [j, i] is by how much j changes where the noise of i grows by one.

    Examples
    --------
    >>> b = np.array([[0, -0.2, 0.3], [0, 0, 0], [0, 0.5, 0]])
    >>> total_effects(b).round(3).tolist()
    [[1.0, -0.05, 0.3], [0.0, 1.0, 0.0], [0.0, 0.5, 1.0]]
    """
    found: Array = np.linalg.inv(np.eye(len(effects)) - effects).astype(np.float64)
    return found


def order_of(effects: Array) -> list[int] | None:
    """Return an order in which causes come before their effects, or None where B has a cycle.

    Examples
    --------
    >>> order_of(np.array([[0, -0.2, 0.3], [0, 0, 0], [0, 0.5, 0]]))
    [1, 2, 0]
    """
    present = effects != 0
    np.fill_diagonal(present, False)
    left = list(range(len(effects)))
    order: list[int] = []
    while left:
        root = next((j for j in left if not present[j, left].any()), None)
        if root is None:
            return None
        order.append(root)
        left.remove(root)
    return order


def triangular_order(effects: Array, required: Flags) -> list[int]:
    """Return the order that leaves the least above the diagonal: the smallest entries are set to zero until one fits.

    This is the search of Shimizu et al. (2006), algorithm C; since setting further entries to zero never closes a cycle, the
    number of them is found by bisection. Required entries stay.

    Parameters
    ----------
    effects
        A full estimate of B.
    required
        `required[i, j]` for i -> j.
    """
    sizes = np.abs(effects)
    p = len(effects)
    free = ~np.eye(p, dtype=bool) & ~required.T
    ranks = np.argsort(np.where(free, sizes, np.inf), axis=None, kind="stable")[: int(free.sum())]
    start = np.where(np.eye(p, dtype=bool), 0.0, np.where(required.T, 1.0, effects))

    def after(count: int) -> list[int] | None:
        trial = start.copy()
        trial.ravel()[ranks[:count]] = 0.0
        return order_of(trial)

    low, high = -1, len(ranks)
    while high - low > 1:
        middle = (low + high) // 2
        if after(middle) is None:
            low = middle
        else:
            high = middle
    found = after(high)
    assert found is not None  # the required edges alone make no cycle
    return found


def known_before(rules: Rules) -> tuple[Flags, Flags]:
    """Return what the rules say about orders: who surely comes before whom, and who may be an ancestor of whom.

    i comes before j where a required path leads from i to j, or where an allowed path does and none leads back.
    """
    needed = reachable(rules.required)
    may = reachable(possible_edges(rules))
    before: Flags = (needed | (may & ~may.T)) & ~np.eye(len(may), dtype=bool)
    return before, may


class Effects(NamedTuple):
    """Coefficients along an order: B, the t value of each, and notes."""

    matrix: Array
    t_values: Array
    notes: list[str]


def effects_along(
    order: Sequence[int],
    rows: Array,
    rules: Rules,
    names: Sequence[str],
    *,
    prune: str,
    threshold: float,
    alpha: float,
) -> Effects:
    """Regress each variable on those before it, and drop the coefficients that are not there.

    Parameters
    ----------
    order
        Causes first.
    rows
        One column a variable.
    rules
        Forbidden edges have no coefficient; required ones are never dropped.
    names
        For the notes.
    prune
        "adaptive-lasso", "wald" (level `alpha`), "threshold" (size `threshold`) or "none".
    """
    n, p = rows.shape
    centred = rows - rows.mean(axis=0)
    units = centred.std(axis=0)
    centred /= units  # coefficients are chosen where every column has variance 1, so that units do not matter
    covariances = centred.T @ centred / n
    by_unit = (
        units[:, None] / units
    )  # the coefficient of i on j times this is that of the columns as they are
    chosen = np.zeros((p, p), dtype=bool)
    for place, child in enumerate(order):
        before = np.array([i for i in order[:place] if rules.allowed[i, child]], dtype=np.int64)
        if len(before):
            limits = threshold / by_unit[child, before]
            kept = _chosen(covariances, child, before, rules.required[before, child], n, prune, limits, alpha)
            chosen[before[kept], child] = True
    matrix, t_values = _refitted(covariances, chosen, n)
    edges, notes = limited_parents(chosen, np.abs(t_values).T, rules, names)
    if notes:
        matrix, t_values = _refitted(covariances, edges, n)
    return Effects(matrix * by_unit, t_values, notes)


def check_pruning(prune: Any, threshold: Any, alpha: Any) -> None:
    """Refuse settings of `effects_along` that mean nothing."""
    check_choice("prune", prune, PRUNINGS)
    check_number("threshold", threshold)
    check_level("alpha", alpha)


def check_rank(rows: Array, names: Sequence[str]) -> None:
    """Refuse columns of which some are linear combinations of others."""
    correlations = np.corrcoef(rows, rowvar=False).reshape(rows.shape[1], rows.shape[1])
    values, axes = np.linalg.eigh(correlations)
    if values[0] < 1e-10:
        bound = [names[i] for i in np.flatnonzero(np.abs(axes[:, 0]) > 1e-4).tolist()]
        raise InvalidArgument(
            f"the columns {', '.join(map(repr, bound))} are linearly dependent; leave one of them out with names="
        )


def _refitted(covariances: Array, edges: Flags, n: int) -> tuple[Array, Array]:
    p = len(covariances)
    matrix, t_values = np.zeros((p, p)), np.zeros((p, p))
    for child in range(p):
        parents = np.flatnonzero(edges[:, child])
        if len(parents):
            found, t = _regression(covariances, child, parents, n)
            matrix[child, parents], t_values[child, parents] = found, t
    return matrix, t_values


def _regression(covariances: Array, child: int, parents: Any, n: int) -> tuple[Array, Array]:
    """Return the least-squares coefficients and their t values."""
    gram = covariances[np.ix_(parents, parents)]
    inverse = np.linalg.pinv(gram, hermitian=True)
    found: Array = inverse @ covariances[parents, child]
    left = max(float(covariances[child, child] - found @ covariances[parents, child]), 1e-300)
    errors = np.sqrt(np.maximum(np.diag(inverse), 1e-300) * left / max(n - len(parents) - 1, 1))
    return found, found / errors


def _chosen(
    covariances: Array,
    child: int,
    before: Any,
    required: Any,
    n: int,
    prune: str,
    threshold: Array,
    alpha: float,
) -> Any:
    if prune == "none":
        return np.ones(len(before), dtype=bool)
    found, t = _regression(covariances, child, before, n)
    if prune == "threshold":
        return (np.abs(found) >= threshold) | required
    if prune == "wald":
        from scipy.stats import t as student

        freedom = max(n - len(before) - 1, 1)
        return (2 * student.sf(np.abs(t), freedom) < alpha) | required
    return _adaptive_lasso(covariances, child, before, required, found, n)


def _adaptive_lasso(covariances: Array, child: int, before: Any, required: Any, found: Array, n: int) -> Any:
    """Return which coefficients the adaptive lasso keeps at the best BIC along its path; required ones are unpenalised."""
    from sklearn.linear_model import lars_path_gram

    full = covariances[np.ix_(before, before)]
    with_child = covariances[before, child]
    left = float(covariances[child, child])
    noise = max(left - float(found @ with_child), 1e-12 * left)
    free = np.flatnonzero(~required)
    if len(free) == 0:
        return np.ones(len(before), dtype=bool)
    must = np.flatnonzero(required)
    gram, moments = full[np.ix_(free, free)], with_child[free]
    if len(must):  # what the required parents explain is taken out of everything first
        solved = np.linalg.pinv(full[np.ix_(must, must)], hermitian=True)
        cross = full[np.ix_(free, must)] @ solved
        gram = gram - cross @ full[np.ix_(must, free)]
        moments = moments - cross @ with_child[must]
        left -= float(with_child[must] @ solved @ with_child[must])
    scale = np.abs(found[free]) + 1e-300
    gram, moments = gram * scale[:, None] * scale, moments * scale
    _, _, path = lars_path_gram(
        Xy=n * moments, Gram=n * gram, n_samples=n, method="lasso", copy_X=True, copy_Gram=True
    )
    losses = left - 2 * moments @ path + np.einsum("ik,ij,jk->k", path, gram, path)
    active = np.abs(path) > np.finfo(float).eps
    bic = n * losses / noise + math.log(n) * active.sum(axis=0)
    kept = required.copy()
    kept[free] = active[:, int(bic.argmin())]
    return kept
