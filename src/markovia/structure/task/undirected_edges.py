"""From strengths between pairs to an undirected graph that obeys what is known beforehand."""

from collections.abc import Sequence

import numpy as np

from markovia.errors import InvalidArgument
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.runtime.array_types import Array, Flags
from markovia.runtime.checks import check_choice
from markovia.structure.task.knowledge import Rules


def joined(coefficients: Array, rule: str) -> Flags:
    """Return which pairs are joined, from `coefficients[i, j]` of j in the regression of i, by the OR or the AND rule."""
    check_choice("rule", rule, ("or", "and"))
    used = coefficients != 0
    found: Flags = used | used.T if rule == "or" else used & used.T
    return found


def within_rules(present: Flags, strength: Array, rules: Rules) -> Flags:
    """Return the pairs that stay: allowed ones and required ones; the strongest first where neighbours are limited.

    Parameters
    ----------
    present, strength
        Symmetric matrices: what the method joined, and how strongly.
    """
    keep = present & rules.pairs & ~np.eye(len(present), dtype=bool)
    keep |= rules.required_pairs
    limit = rules.max_parents
    if (keep.sum(axis=1) <= limit).all():
        return keep
    required = rules.required_pairs
    if (required.sum(axis=1) > limit).any():
        raise InvalidArgument(
            f"a variable has more than max_parents={limit} required neighbours; in undirected graphs it limits neighbours"
        )
    found = required.copy()
    degree = found.sum(axis=1)
    first, second = np.nonzero(np.triu(keep & ~required))
    for k in np.argsort(-np.abs(strength[first, second]), kind="stable"):
        i, j = int(first[k]), int(second[k])
        if degree[i] < limit and degree[j] < limit:
            found[i, j] = found[j, i] = True
            degree[i] += 1
            degree[j] += 1
    return found


def undirected_graph(names: Sequence[str], present: Flags) -> UndirectedGraph:
    """Return the graph of a symmetric matrix."""
    first, second = np.nonzero(np.triu(present, 1))
    return UndirectedGraph(
        [(names[i], names[j]) for i, j in zip(first.tolist(), second.tolist(), strict=True)], nodes=names
    )


def partial_correlations_of(precision: Array) -> Array:
    """Return `-q_ij / sqrt(q_ii q_jj)`, zero on the diagonal."""
    root = np.sqrt(np.diag(precision))
    found = -precision / np.outer(root, root)
    np.fill_diagonal(found, 0.0)
    return np.asarray(found + 0.0)
