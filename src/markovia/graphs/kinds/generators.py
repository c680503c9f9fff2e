"""Graphs to try things on: regular ones, and random ones that are reproducible from a seed.

Nodes are called `x0`, `x1`, ... in the order of the numbering; those of a grid `x0_0`, `x0_1`, ... by row
and column.
"""

from itertools import combinations, pairwise
from numbers import Real
from typing import Literal, overload

import numpy as np

from markovia.errors import InvalidArgument
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.runtime.seeds import Seed, generator


def random_dag(
    n: int,
    *,
    max_parents: int | None = None,
    edge_probability: float | None = None,
    n_edges: int | None = None,
    seed: Seed = None,
) -> DAG:
    """Draw a random DAG whose topological order is x0, x1, ...

    Parameters
    ----------
    n
        The number of nodes.
    max_parents
        The largest number of parents of a node. If neither of the next two is given, node i has a number of
        parents drawn uniformly from 0 ... min(i, max_parents).
    edge_probability
        Each possible edge is drawn with this probability (and a node with too many parents keeps a random
        `max_parents` of them).
    n_edges
        The number of edges, drawn uniformly from the possible ones.
    seed
        An integer or a NumPy generator.

    Raises
    ------
    InvalidArgument
        If the numbers do not fit together.

    Examples
    --------
    >>> g = random_dag(50, max_parents=3, seed=0)
    >>> max(len(g.parents(name)) for name in g)
    3
    >>> random_dag(6, n_edges=7, seed=1).n_edges
    7
    """
    _require_count(n)
    if edge_probability is not None and n_edges is not None:
        raise InvalidArgument("give edge_probability or n_edges, not both")
    if max_parents is not None:
        _require_count(max_parents, "max_parents")
    rng = generator(seed)
    most = n if max_parents is None else max_parents
    room = [min(i, most) for i in range(n)]
    if n_edges is not None:
        _require_count(n_edges, "n_edges")
        if n_edges > sum(room):
            raise InvalidArgument(f"n_edges is between 0 and {sum(room)} here, got {n_edges}")
        counts = _spread(n_edges, room, rng)
    elif edge_probability is not None:
        _require_share(edge_probability, "edge_probability")
        counts = [min(int(rng.binomial(i, edge_probability)), room[i]) for i in range(n)]
    else:
        counts = [int(rng.integers(0, r + 1)) for r in room]
    parents = {f"x{i}": [f"x{j}" for j in sorted(_choose(i, count, rng))] for i, count in enumerate(counts)}
    return DAG.from_parents(parents)


@overload
def random_tree(n: int, seed: Seed = None, *, directed: Literal[False] = False) -> UndirectedGraph: ...


@overload
def random_tree(n: int, seed: Seed = None, *, directed: Literal[True]) -> DAG: ...


def random_tree(n: int, seed: Seed = None, *, directed: bool = False) -> DAG | UndirectedGraph:
    """Draw a tree uniformly from all labelled trees (by a random Prüfer sequence).

    Parameters
    ----------
    n
        The number of nodes.
    seed
        An integer or a NumPy generator.
    directed
        Whether to return a DAG with all edges pointing away from x0.

    Examples
    --------
    >>> random_tree(20, seed=0).is_tree(), random_tree(20, seed=0, directed=True).roots()
    (True, ['x0'])
    """
    _require_count(n)
    rng = generator(seed)
    neighbors: list[list[int]] = [[] for _ in range(n)]
    for a, b in _pruefer_edges(n, rng):
        neighbors[a].append(b)
        neighbors[b].append(a)
    parent = {0: -1} if n else {}
    queue = list(parent)
    for node in queue:
        for other in neighbors[node]:
            if other not in parent:
                parent[other] = node
                queue.append(other)
    names = [f"x{i}" for i in range(n)]
    edges = [(f"x{parent[i]}", f"x{i}") for i in queue if parent[i] >= 0]
    return DAG(edges, nodes=names) if directed else UndirectedGraph(edges, nodes=names)


def random_k_tree(n: int, k: int, seed: Seed = None, *, keep: float = 1.0) -> UndirectedGraph:
    """Draw a k-tree: a clique of k + 1 nodes to which further nodes are joined, each to a random k-clique.

    Parameters
    ----------
    n
        The number of nodes, at least k + 1.
    k
        The treewidth.
    seed
        An integer or a NumPy generator.
    keep
        The share of edges to keep; below 1 the result is a partial k-tree, of treewidth at most k.

    Examples
    --------
    >>> g = random_k_tree(10, 2, seed=0)
    >>> g.n_edges, len(g.maximum_clique())
    (17, 3)
    """
    _require_count(n)
    _require_count(k, "k")
    if k < 1 or n < k + 1:
        raise InvalidArgument(f"a k-tree has k >= 1 and at least k + 1 nodes, got n={n}, k={k}")
    _require_share(keep, "keep")
    rng = generator(seed)
    edges = list(combinations(range(k + 1), 2))
    cliques = list(combinations(range(k + 1), k))
    for node in range(k + 1, n):
        base = cliques[int(rng.integers(len(cliques)))]
        edges += [(other, node) for other in base]
        cliques += [(*(o for o in base if o != left_out), node) for left_out in base]
    kept = rng.permutation(len(edges))[: round(keep * len(edges))]
    names = [f"x{i}" for i in range(n)]
    return UndirectedGraph(((names[edges[e][0]], names[edges[e][1]]) for e in sorted(kept)), nodes=names)


def grid(rows: int, cols: int, *, diagonal: bool = False, torus: bool = False) -> UndirectedGraph:
    """Build a rectangular lattice.

    Parameters
    ----------
    rows, cols
        Its size; node `x{r}_{c}` is in row r and column c.
    diagonal
        Whether to join diagonal neighbours too.
    torus
        Whether the last row and column are joined to the first ones.

    Examples
    --------
    >>> grid(3, 3).neighbors("x1_1")
    ['x0_1', 'x1_0', 'x1_2', 'x2_1']
    """
    _require_count(rows, "rows")
    _require_count(cols, "cols")
    steps = [(0, 1), (1, 0), *([(1, 1), (1, -1)] if diagonal else [])]
    graph = UndirectedGraph(nodes=[f"x{r}_{c}" for r in range(rows) for c in range(cols)])
    for r in range(rows):
        for c in range(cols):
            for down, right in steps:
                i, j = r + down, c + right
                if torus:
                    i, j = i % rows, j % cols
                if 0 <= i < rows and 0 <= j < cols and (i, j) != (r, c):
                    graph._link(r * cols + c, i * cols + j)
    return graph


@overload
def chain(n: int, *, directed: Literal[False] = False) -> UndirectedGraph: ...


@overload
def chain(n: int, *, directed: Literal[True]) -> DAG: ...


def chain(n: int, *, directed: bool = False) -> DAG | UndirectedGraph:
    """Build the path x0, x1, ..., as a DAG if `directed`.

    Examples
    --------
    >>> chain(3, directed=True).edges
    [('x0', 'x1'), ('x1', 'x2')]
    """
    _require_count(n)
    names = [f"x{i}" for i in range(n)]
    edges = list(pairwise(names))
    return DAG(edges, nodes=names) if directed else UndirectedGraph(edges, nodes=names)


def cycle(n: int) -> UndirectedGraph:
    """Build the cycle of n nodes, at least three.

    Examples
    --------
    >>> cycle(3).edges
    [('x0', 'x1'), ('x0', 'x2'), ('x1', 'x2')]
    """
    _require_count(n)
    if n < 3:
        raise InvalidArgument(f"a cycle has at least three nodes, got {n}")
    return UndirectedGraph((f"x{i}", f"x{(i + 1) % n}") for i in range(n))


def complete(n: int) -> UndirectedGraph:
    """Build the graph in which all n nodes are joined.

    Examples
    --------
    >>> complete(4).n_edges
    6
    """
    _require_count(n)
    names = [f"x{i}" for i in range(n)]
    return UndirectedGraph(combinations(names, 2), nodes=names)


def star(n: int) -> UndirectedGraph:
    """Build the graph of n nodes in which x0 is joined to all others.

    Examples
    --------
    >>> star(4).degree("x0")
    3
    """
    _require_count(n)
    names = [f"x{i}" for i in range(n)]
    return UndirectedGraph((("x0", name) for name in names[1:]), nodes=names)


def _choose(n: int, count: int, rng: np.random.Generator) -> list[int]:
    """Draw `count` of 0 ... n-1 without replacement, in time that does not depend on n (Floyd)."""
    chosen: set[int] = set()
    for top in range(n - count, n):
        candidate = int(rng.integers(0, top + 1))
        chosen.add(top if candidate in chosen else candidate)
    return list(chosen)


def _spread(total: int, room: list[int], rng: np.random.Generator) -> list[int]:
    """Draw `total` of the possible (node, slot) places and count them for each node."""
    starts = np.cumsum([0, *room])
    counts = [0] * len(room)
    for place in _choose(int(starts[-1]), total, rng):
        counts[int(np.searchsorted(starts, place, side="right")) - 1] += 1
    return counts


def _pruefer_edges(n: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    if n < 2:
        return []
    sequence = [int(i) for i in rng.integers(0, n, size=n - 2)]
    degree = [1] * n
    for node in sequence:
        degree[node] += 1
    edges: list[tuple[int, int]] = []
    pointer = leaf = degree.index(1)
    for node in sequence:
        edges.append((leaf, node))
        degree[leaf] -= 1
        degree[node] -= 1
        if degree[node] == 1 and node < pointer:
            leaf = node
        else:
            pointer += 1
            while degree[pointer] != 1:
                pointer += 1
            leaf = pointer
    edges.append((leaf, n - 1))
    return edges


def _require_count(n: int, what: str = "the number of nodes") -> None:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise InvalidArgument(f"{what} is a whole number that is not negative, got {n!r}")


def _require_share(value: float, what: str) -> None:
    if not isinstance(value, Real) or not 0 <= value <= 1:
        raise InvalidArgument(f"{what} is a number between 0 and 1, got {value!r}")
