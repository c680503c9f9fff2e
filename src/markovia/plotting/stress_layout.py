"""Spring drawing of an undirected graph: distances on paper follow distances in the graph.

The springs of Kamada and Kawai (1989), one between every two nodes with a rest length equal to their graph
distance, relaxed by stress majorisation (Gansner, Koren and North, 2004): each step solves one linear system
whose factor is computed once. The start is classical scaling of the distances, so the result does not depend on
luck; a seeded jitter only separates nodes that would start at one point. A grid comes out as a grid, a cycle as a
regular polygon.

Cost: O(n (n + m)) for the distances, O(n^3) once and O(n^2) a step. Good up to a thousand nodes.
"""

from collections.abc import Sequence

import numpy as np

from markovia.runtime.array_types import Array
from markovia.runtime.progress import Advance, paced
from markovia.runtime.seeds import generator

Pair = tuple[int, int]


def stress_layout(
    n: int,
    edges: list[Pair],
    *,
    seed: int = 0,
    steps: int = 300,
    advance: Advance = lambda n=1: None,
    told: int = 0,
) -> Array:
    """Place the nodes of a connected graph; neighbours are about one unit apart.

    Parameters
    ----------
    n
        The number of nodes.
    edges
        Pairs of node numbers.
    seed
        Seed of the jitter that separates nodes with the same distances to all others.
    steps
        The largest number of majorisation steps.
    advance, told
        Whom to tell how far the work is, in how many parts.

    Returns
    -------
    Array
        One row (x, y) a node.

    Examples
    --------
    >>> square = stress_layout(4, [(0, 1), (1, 2), (2, 3), (3, 0)])
    >>> sides = np.linalg.norm(square - np.roll(square, 1, axis=0), axis=1)
    >>> bool(np.allclose(sides, sides[0], atol=1e-2))
    True
    """
    from scipy.spatial.distance import cdist

    if n == 1:
        return np.zeros((1, 2))
    distance = graph_distances(n, edges)
    rng = generator(seed)
    x = _classical_scaling(distance) + rng.normal(scale=1e-2, size=(n, 2))
    off = ~np.eye(n, dtype=bool)
    weight = np.divide(1.0, distance**2, out=np.zeros_like(distance), where=off)
    laplacian = np.diag(weight.sum(axis=1)) - weight
    inverse = np.linalg.inv(laplacian + 1.0 / n)
    spring = weight * distance
    small = max(1e-6, 1e-7 * n)  # what a page of many nodes gains from more steps is not seen
    stress = np.inf
    for _ in paced(range(steps), told, advance):
        gap = cdist(x, x)
        now = float(np.einsum("ij,ij->", weight, (gap - distance) ** 2))
        if stress - now <= small * max(now, 1e-3 * n * n):
            break
        stress = now
        pull = np.divide(spring, gap, out=np.zeros_like(gap), where=gap > 1e-12)
        x = inverse @ (pull.sum(axis=1)[:, None] * x - pull @ x)
    return _upright(x - x.mean(axis=0), edges)


def graph_distances(n: int, edges: list[Pair], sources: Sequence[int] | None = None) -> Array:
    """Return the number of edges on shortest paths from each source (all nodes by default), by a search from each."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import shortest_path

    a, b = np.array(edges, dtype=np.intp).reshape(-1, 2).T
    joined = coo_array((np.ones(len(a)), (a, b)), (n, n)).tocsr()
    found: Array = shortest_path(joined, method="D", directed=False, unweighted=True, indices=sources)
    return np.minimum(found, float(n))


def _classical_scaling(distance: Array) -> Array:
    from scipy.linalg import eigh

    squared = distance**2
    centred = -0.5 * (squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean())
    n = len(centred)
    values, vectors = eigh(centred, subset_by_index=[n - 2, n - 1])
    axes = vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0.0))
    # an eigenvector's sign is arbitrary: fix it, so that every machine draws the same picture
    first = np.abs(axes).argmax(axis=0)
    signs = np.where(axes[first, [0, 1]] < 0, -1.0, 1.0)
    result: Array = axes * signs
    return result


def _upright(x: Array, edges: list[Pair]) -> Array:
    """Turn the drawing so that edges are as horizontal or vertical as they can be, and it is wider than high."""
    if not edges:
        return x
    a, b = np.array(edges).T
    steps = (x[b, 0] - x[a, 0]) + 1j * (x[b, 1] - x[a, 1])
    turn = -np.angle(np.sum(np.abs(steps) * np.exp(4j * np.angle(steps)))) / 4
    turned = (x[:, 0] + 1j * x[:, 1]) * np.exp(1j * turn)
    if np.ptp(turned.imag) > np.ptp(turned.real) * 1.05:
        turned = turned * 1j
    return np.stack([turned.real, turned.imag], axis=1)
