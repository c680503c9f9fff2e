"""Weighted matrices and acyclic graphs: the measure h(W), and the way from weights to a graph that obeys the rules.

h(W) = tr(exp(W∘W)) - d is zero exactly where the graph of the non-zero entries has no directed cycle (Zheng, Aragam,
Ravikumar, Xing 2018, DAGs with NO TEARS); its gradient is exp(W∘W)ᵀ∘2W. Cost O(d³).

`weights[i, j]` belongs to i -> j throughout.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from markovia.graphs.kinds.directed import DAG
from markovia.runtime.array_types import Array, Flags
from markovia.structure.task.knowledge import Rules


def acyclicity(weights: Array) -> tuple[float, Array]:
    """Return h(W) and its gradient.

    Examples
    --------
    >>> h, _ = acyclicity(np.array([[0.0, 2.0], [0.0, 0.0]]))
    >>> h
    0.0
    >>> h, gradient = acyclicity(np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> round(h, 4), gradient.round(4).tolist()
    (1.0862, [[0.0, 2.3504], [2.3504, 0.0]])
    """
    value, gradient = squared_acyclicity(weights * weights)
    return value, gradient * 2.0 * weights


def squared_acyclicity(squares: Array) -> tuple[float, Array]:
    """Return tr(exp(A)) - d of a matrix with no negative entry, and its gradient exp(A)ᵀ."""
    from scipy.linalg import expm

    exponential = expm(squares)
    return float(np.trace(exponential)) - len(squares), exponential.T


def reachable(edges: Flags) -> Flags:
    """Return for each pair whether a directed path leads from the first to the second; nodes reach themselves."""
    reach: Flags = edges | np.eye(len(edges), dtype=bool)
    for k in range(len(edges)):
        reach |= reach[:, [k]] & reach[[k], :]
    return reach


def is_acyclic(edges: Flags) -> bool:
    """Say whether a matrix of edges has no directed cycle."""
    left = edges.copy()
    alive = np.ones(len(edges), dtype=bool)
    while alive.any():
        roots = alive & ~left.any(axis=0)
        if not roots.any():
            return False
        left[roots] = False
        alive &= ~roots
    return True


def possible_edges(rules: Rules) -> Flags:
    """Return the allowed edges that close no cycle with the required ones."""
    found: Flags = rules.allowed & ~reachable(rules.required).T
    return found


class Projected(NamedTuple):
    """Edges that make a graph within the rules, the threshold they passed, and what was done to get there."""

    edges: Flags
    threshold: float
    notes: list[str]


def acyclic_edges(weights: Array, rules: Rules, threshold: float, names: Sequence[str]) -> Projected:
    """Keep the weights whose size reaches a threshold, and of them what makes an acyclic graph within the rules.

    Where the edges above the threshold close a cycle, the threshold is raised to the first value at which they do
    not. Where a variable has too many parents, its weakest edges go. Required edges stay, whatever their weight.

    Parameters
    ----------
    weights
        `weights[i, j]` for i -> j.
    rules
        What is known.
    threshold
        The smallest size of a weight that counts; zeros never count.
    names
        The variables, for the notes.

    Examples
    --------
    >>> from markovia.structure.task.knowledge import Knowledge
    >>> w = np.array([[0.0, 0.9, 0.1], [0.4, 0.0, 0.8], [0.0, 0.0, 0.0]])
    >>> found = acyclic_edges(w, Knowledge().rules("abc"), 0.3, "abc")
    >>> found.edges.astype(int).tolist(), found.threshold
    ([[0, 1, 0], [0, 0, 1], [0, 0, 0]], 0.8)
    >>> found.notes
    ['the edges above the threshold 0.3 close a cycle; it was raised to 0.8, which drops 1 edge']
    """
    size = np.abs(weights)
    possible = possible_edges(rules)
    kept = (size >= threshold) & (size > 0) & possible & ~rules.required
    notes: list[str] = []
    values = np.sort(size[kept])
    used = threshold
    if not is_acyclic(kept | rules.required):
        low, high = (
            0,
            len(values),
        )  # dropping the `high` weakest leaves no cycle, dropping the `low` weakest does
        while high - low > 1:
            middle = (low + high) // 2
            if is_acyclic((kept & (size > values[middle - 1])) | rules.required):
                high = middle
            else:
                low = middle
        strong = kept & (size > values[high - 1])
        gone = int(kept.sum() - strong.sum())
        used = float(size[strong].min()) if strong.any() else float(np.nextafter(values[-1], np.inf))
        kept = strong
        notes.append(
            f"the edges above the threshold {threshold:g} close a cycle; it was raised to {used:.4g}, "
            f"which drops {gone} edge{'s' if gone != 1 else ''}"
        )
    edges, dropped = limited_parents(kept | rules.required, size, rules, names)
    return Projected(edges, used, notes + dropped)


def limited_parents(
    edges: Flags, strength: Array, rules: Rules, names: Sequence[str]
) -> tuple[Flags, list[str]]:
    """Drop each variable's weakest edges beyond the largest number of parents; say so in notes.

    Required edges are dropped never, and `strength` says which of the others go first.
    """
    edges = edges.copy()
    notes = []
    for child in range(len(edges)):
        extra = int(edges[:, child].sum()) - rules.max_parents
        if extra <= 0:
            continue
        free = np.flatnonzero(edges[:, child] & ~rules.required[:, child])
        weakest = free[np.argsort(strength[free, child], kind="stable")[:extra]]
        edges[weakest, child] = False
        gone = ", ".join(repr(names[k]) for k in weakest)
        notes.append(f"max_parents={rules.max_parents} drops the weakest parents of {names[child]!r}: {gone}")
    return edges, notes


def directed_graph(edges: Flags, names: Sequence[str]) -> DAG:
    """Return the graph of a matrix of edges."""
    return DAG([(names[a], names[b]) for b, a in np.argwhere(edges.T).tolist()], nodes=names)


def varsortability(edges: Flags, variances: Array) -> float:
    """Return the share of directed paths along which the variance grows (Reisach, Seiler, Weichwald 2021).

    Paths are counted by their lengths and ends, ties count half; NaN for a graph without edges. Near 1 the order of the
    variances alone gives the graph away, and methods that score unscaled data look better than they are.

    Examples
    --------
    >>> chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool)
    >>> varsortability(chain, np.array([1.0, 2.0, 5.0])), varsortability(chain, np.array([1.0, 2.0, 0.5]))
    (1.0, 0.3333333333333333)
    """
    paths = edges.copy()
    ratio = variances[None, :] / variances[:, None]
    right = total = 0.0
    while paths.any():
        along = ratio[paths]
        total += len(along)
        right += float((along > 1 + 1e-9).sum()) + 0.5 * float((np.abs(along - 1) <= 1e-9).sum())
        paths = (paths.astype(np.int64) @ edges.astype(np.int64)) > 0
    return right / total if total else float("nan")
