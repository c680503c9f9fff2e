"""Disjoint clusters of variables for structured mean field.

- *blocks*: k x k squares if the model is a rectangular grid (found from the graph alone), else connected blocks of up to
  k * k variables, each grown by the variable with most links into the block;
- *chains*: paths; *trees*: trees. Both are grown so that no two factors link the cluster in a loop, hence exact inference
  inside takes time linear in the cluster;
- *auto*: whole parts of the graph that have no loop; strips of a grid that exact inference finds narrow; else connected
  blocks as large as exact inference inside them is cheap.

Cost: about linear in the graph.
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from math import log

import numpy as np

from markovia.errors import InvalidArgument, UnknownVariable
from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.runtime.array_types import Ints

Clusters = list[list[int]]
KINDS = ("auto", "blocks", "chains", "trees")
CHEAP = log(2.0**14)
"""Log of the joint states of an automatic block; on a grid, twice that of the states across a strip."""


def clusters_of(
    graph: FlatGraph, wanted: str | Sequence[Sequence[str]], block: int, known: Sequence[str]
) -> Clusters:
    """Return a partition of the variables of a graph, by number.

    Parameters
    ----------
    graph
        The problem as flat arrays.
    wanted
        "auto", "blocks", "chains", "trees", or lists of names; variables in no list get a cluster of their own.
    block
        Side of a block on a grid; its square is the size of a block elsewhere.
    known
        The names of all variables of the problem, observed ones included (they are left out of clusters).

    Raises
    ------
    UnknownVariable, InvalidArgument
        If a list names a variable the problem lacks, or one that is in another list.
    """
    if isinstance(wanted, str):
        if wanted == "auto":
            return automatic(graph)
        if wanted == "blocks":
            return blocks(graph, block)
        return linked(graph, paths=wanted == "chains")
    found: Clusters = []
    seen: set[str] = set()
    names = set(known)
    for cluster in wanted:
        for name in cluster:
            if name not in names:
                raise UnknownVariable(name, known)
            if name in seen:
                raise InvalidArgument(f"clusters= names {name!r} twice; clusters share no variable")
            seen.add(name)
        inside = [graph.index[n] for n in cluster if n in graph.index]
        if inside:
            found.append(inside)
    found.extend([[i] for i, n in enumerate(graph.names) if n not in seen])
    return found


def automatic(graph: FlatGraph) -> Clusters:
    """Return parts without loops whole, and cheap blocks of the others."""
    if graph.is_forest:
        return linked(graph, paths=False)
    at = grid_positions(graph)
    if at is not None:
        return strips(at, max(2, int(CHEAP / 2 / log(max(2, int(graph.cards.max(initial=2)))))))
    return connected(graph, len(graph.cards), CHEAP)


def blocks(graph: FlatGraph, k: int) -> Clusters:
    """Return k x k squares of a grid, or connected blocks of up to k * k variables."""
    at = grid_positions(graph)
    return connected(graph, k * k, 4.0 * CHEAP) if at is None else squares(at, k)


def squares(at: Ints, k: int) -> Clusters:
    """Cut a grid into squares; `at` has the row and the column of each variable."""
    found: dict[tuple[int, int], list[int]] = {}
    for i, (r, c) in enumerate((at // k).tolist()):
        found.setdefault((r, c), []).append(i)
    return list(found.values())


def strips(at: Ints, k: int) -> Clusters:
    """Cut a grid into strips of at most k rows (or columns, where those are fewer cuts), about equally wide."""
    rows, cols = (at.max(axis=0) + 1).tolist()
    line = at[:, 0] if rows <= cols else at[:, 1]
    across = min(rows, cols)
    pieces = -(-across // k)
    found: list[list[int]] = [[] for _ in range(pieces)]
    for i, r in enumerate(line.tolist()):
        found[r * pieces // across].append(i)
    return found


def grid_positions(graph: FlatGraph) -> Ints | None:
    """Return the row and column of each variable if the graph is a rectangular grid of pairs, else None.

    With A and B two neighbouring corners, a variable in row i and column j has distance i + j from A and i + (width - 1 - j)
    from B, so the distances give its position; then every link is checked.
    """
    n, m = len(graph.cards), graph.n_factors
    if n < 4 or m != len(graph.scope) // 2 or graph.arity.max(initial=0) != 2:
        return None
    pointers, others = graph.neighbours()
    degree = np.diff(pointers)
    corners = np.flatnonzero(degree == 2)
    if degree.min() != 2 or degree.max() > 4 or not len(corners):
        return None
    from_a = _distances(int(corners[0]), pointers, others)
    if from_a.min() < 0:
        return None
    for b in corners[np.argsort(from_a[corners], kind="stable")][1:3].tolist():
        from_b = _distances(b, pointers, others)
        row2 = from_a + from_b - from_a[b]
        if np.any(row2 % 2):
            continue
        row = row2 // 2
        at = np.stack([row, from_a - row], axis=1)
        rows, cols = int(at[:, 0].max()) + 1, int(at[:, 1].max()) + 1
        if at.min() < 0 or rows * cols != n or len(np.unique(at[:, 0] * cols + at[:, 1])) != n:
            continue
        ends = graph.scope.reshape(-1, 2)
        steps = np.abs(at[ends[:, 0]] - at[ends[:, 1]]).sum(axis=1)
        if np.all(steps == 1) and m == rows * (cols - 1) + cols * (rows - 1):
            return np.asarray(at, dtype=np.int64)
    return None


def connected(graph: FlatGraph, most: int, log_states: float) -> Clusters:
    """Return connected blocks of at most so many variables and joint states."""
    pointers, others = graph.neighbours()
    logs = np.log(graph.cards)
    free = np.ones(len(graph.cards), dtype=bool)
    found: Clusters = []
    for source in range(len(graph.cards)):
        if not free[source]:
            continue
        block: list[int] = []
        size = 0.0
        links: dict[int, int] = {source: 0}
        heap: list[tuple[int, int]] = [(0, source)]
        while heap and len(block) < most:
            count, i = heappop(heap)
            if not free[i] or -count != links[i]:
                continue
            if block and size + logs[i] > log_states:
                continue
            free[i] = False
            block.append(i)
            size += float(logs[i])
            for j in others[pointers[i] : pointers[i + 1]].tolist():
                if free[j]:
                    links[j] = links.get(j, 0) + 1
                    heappush(heap, (-links[j], j))
        found.append(sorted(block))
    return found


def linked(graph: FlatGraph, paths: bool) -> Clusters:
    """Return clusters inside which the factors form no loop: paths, or trees."""
    free = np.ones(len(graph.cards), dtype=bool)
    owner = np.full(graph.n_factors, -1, dtype=np.int64)  # the cluster that last touched a factor
    found: Clusters = []
    for source in range(len(graph.cards)):
        if not free[source]:
            continue
        number = len(found)
        cluster: list[int] = []
        frontier = [source]
        while frontier:
            i = frontier.pop() if paths else frontier.pop(0)
            touched = _factors(graph, i)
            if not free[i] or (cluster and int((owner[touched] == number).sum()) != 1):
                continue
            free[i] = False
            cluster.append(i)
            near = [int(j) for f in touched.tolist() if owner[f] != number for j in graph.members(f)]
            owner[touched] = number
            near = [j for j in near if j != i and free[j]]
            frontier = sorted(near, reverse=True) if paths else frontier + near
        found.append(cluster)
    return found


def _factors(graph: FlatGraph, i: int) -> Ints:
    return graph.edge_factor[graph.edges[graph.edge_ptr[i] : graph.edge_ptr[i + 1]]]


def _distances(source: int, pointers: Ints, others: Ints) -> Ints:
    """Return the number of links from a variable to every other, -1 where there is no way."""
    found = np.full(len(pointers) - 1, -1, dtype=np.int64)
    found[source] = 0
    layer = [source]
    while layer:
        following = []
        for i in layer:
            for j in others[pointers[i] : pointers[i + 1]].tolist():
                if found[j] < 0:
                    found[j] = found[i] + 1
                    following.append(j)
        layer = following
    return found
