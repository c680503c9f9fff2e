"""Trees of largest weight: undirected ones directed away from a root, and branchings where directions are restricted.

`maximum_spanning_tree` is Prim's algorithm, quadratic in the nodes. `maximum_branching` is that of Chu and Liu (1965) and
Edmonds (1967): every node takes its best incoming edge, and cycles are contracted; at most cubic in the nodes.
"""

from collections.abc import Sequence

import numpy as np

from markovia.errors import InvalidArgument, check_known
from markovia.runtime.array_types import Array


def maximum_spanning_tree(weights: Array, root: int) -> list[int]:
    """Return each node's parent in a maximum spanning tree directed away from the root, -1 for the root (Prim)."""
    n = len(weights)
    parent = np.full(n, root)
    parent[root] = -1
    best = weights[root].copy()
    best[root] = -np.inf
    for _ in range(n - 1):
        k = int(best.argmax())
        best[k] = -np.inf
        closer = (weights[k] > best) & ~np.isneginf(best)
        best[closer] = weights[k][closer]
        parent[closer] = k
    return [int(p) for p in parent]


def maximum_branching(weights: Array) -> list[int]:
    """Return each node's parent, -1 for none, so that there is no cycle and the sum of the weights is largest.

    `weights[i, j]` belongs to the edge i -> j; edges that are not above zero are never taken.
    """
    n = len(weights)
    full = np.zeros((n + 1, n + 1))  # node n is above all
    full[:n, :n] = np.where(weights > 0, weights, -np.inf)
    full[:, n] = -np.inf
    np.fill_diagonal(full, -np.inf)
    parent = _arborescence(full, n)
    return [-1 if p == n else p for p in parent[:n]]


def _arborescence(weights: Array, root: int) -> list[int]:
    """Return each node's parent in the best arborescence from a root that reaches every node at once."""
    n = len(weights)
    parent = [int(p) for p in weights.argmax(axis=0)]
    parent[root] = -1
    cycle = _cycle(parent)
    if not cycle:
        return parent
    inside = set(cycle)
    outside = [v for v in range(n) if v not in inside]
    rest = np.array(outside)
    place = {v: k for k, v in enumerate(outside)}
    ring = np.array(cycle)
    kept = np.array([weights[parent[v], v] for v in cycle])
    smaller = np.full((len(outside) + 1, len(outside) + 1), -np.inf)
    smaller[:-1, :-1] = weights[np.ix_(rest, rest)]
    into = weights[np.ix_(rest, ring)] - kept  # entering at v saves v's edge of the cycle
    out = weights[np.ix_(ring, rest)]
    smaller[:-1, -1] = into.max(axis=1)
    smaller[-1, :-1] = out.max(axis=0)
    found = _arborescence(smaller, place[root])
    last = len(outside)
    for k, v in enumerate(outside):
        if v == root:
            parent[v] = -1
        elif found[k] == last:
            parent[v] = int(ring[out[:, k].argmax()])
        else:
            parent[v] = outside[found[k]]
    enters = found[last]
    parent[int(ring[into[enters].argmax()])] = outside[enters]
    return parent


def _cycle(parent: Sequence[int]) -> list[int]:
    state = [0] * len(parent)
    for begin in range(len(parent)):
        trail = []
        v = begin
        while v >= 0 and state[v] == 0:
            state[v] = 1
            trail.append(v)
            v = parent[v]
        if v >= 0 and state[v] == 1:
            return trail[trail.index(v) :]
        for u in trail:
            state[u] = 2
    return []


def root_place(root: object, names: Sequence[str], what: str) -> int | None:
    """Return the position that `root=` names, None for None; `what` says among what."""
    if root is None:
        return None
    if isinstance(root, str):
        check_known([root], names, f"the {what}")
        return list(names).index(root)
    if isinstance(root, int | np.integer) and not isinstance(root, bool) and 0 <= root < len(names):
        return int(root)
    raise InvalidArgument(f"root= is the name or position of one of the {len(names)} {what}, not {root!r}")
