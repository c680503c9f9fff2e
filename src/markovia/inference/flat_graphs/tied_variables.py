"""Variables that have to change together: where zeros in a table cut its possible states into islands.

If y is a function of its parents, no single change leads from one possible state to another, and single-variable Gibbs
sampling never moves. A table ties its variables if its possible entries are not connected by changes of one variable.
Tied variables are joined into blocks as long as a block has few joint states; a table that would make a block too large
becomes a block of its own, which may overlap others.
"""

import numpy as np

from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.runtime.array_types import Array, Ints

LARGEST_TABLE = 1 << 16


def tied_blocks(graph: FlatGraph, most_states: int) -> list[Ints]:
    """Return blocks of at most so many joint states; variables in none of them can be updated singly."""
    group = np.arange(len(graph.variables))
    size = graph.cards.astype(np.float64)
    alone: list[Ints] = []
    tables = [f for f in with_zeros(graph) if len(islands(graph.table(f))) > 1]
    tables.sort(key=lambda f: float(np.prod(graph.cards[graph.members(f)].astype(np.float64))))
    for f in tables:
        members = graph.members(f)
        roots = np.unique(group[members])
        joint = float(np.prod(size[roots]))
        if joint <= most_states:
            group[np.isin(group, roots)] = roots[0]
            size[roots[0]] = joint
        elif float(np.prod(graph.cards[members].astype(np.float64))) <= most_states:
            alone.append(members)
    roots, counts = np.unique(group, return_counts=True)
    return [np.flatnonzero(group == r) for r in roots[counts > 1]] + alone


def with_zeros(graph: FlatGraph) -> list[int]:
    """Return the tables that have zeros and are small enough to look at."""
    if not graph.n_factors:
        return []
    sizes = np.diff(graph.table_ptr)
    least = np.minimum.reduceat(graph.values, graph.table_ptr[:-1])
    return np.flatnonzero((least == 0) & (sizes <= LARGEST_TABLE)).tolist()


def islands(table: Array) -> list[Ints]:
    """Return the flat positions of a table's possible entries, in sets connected by changes along one axis."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    possible = np.flatnonzero(table)
    where = np.array(np.unravel_index(possible, table.shape))
    ends: list[Ints] = []
    for axis in range(table.ndim):
        others = np.delete(where, axis, axis=0)
        order = np.lexsort(others) if len(others) else np.arange(len(possible))
        same = np.all(others[:, order[1:]] == others[:, order[:-1]], axis=0)
        ends.append(np.stack([order[:-1][same], order[1:][same]]))
    links = np.concatenate([np.zeros((2, 0), dtype=np.int64), *ends], axis=1)
    n = len(possible)
    _, label = connected_components(
        coo_matrix((np.ones(links.shape[1], dtype=np.int8), (links[0], links[1])), shape=(n, n)),
        directed=False,
    )
    return [possible[label == k] for k in range(int(label.max(initial=-1)) + 1)]
