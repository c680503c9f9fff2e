"""Telling in milliseconds that a model is far too wide for a junction tree.

Searching a good elimination order of a wide graph takes seconds to minutes, and is wasted if no order will do. One
least-degree elimination, stopped at the first clique that is astronomically too large, tells most such models.
"""

from collections.abc import Sequence

import numpy as np

from markovia.factors.tables.factor import Factor
from markovia.inference.problem import Problem

SMALL = 300
"""Variables up to which a search costs less than looking twice."""
WIDE = 16
"""Variables of a scope from which on it is looked at by itself."""
HOPELESS = 55.0
"""log2 of the entries of a clique that no better order will bring down to what fits."""


def hopeless(problem: Problem, targets: Sequence[str] | None) -> bool:
    """Say whether a junction tree of the problem is out of reach."""
    if len(problem.variables) <= SMALL:
        return False
    if not problem.findings and all(isinstance(p, Factor) for p in problem.pieces):
        scopes = [p.names for p in problem.pieces if len(p.names) > 1]
    else:
        scopes = [tuple([v.name for v in part.variables]) for part in problem.parts(targets)]
        scopes = [s for s in scopes if len(s) > 1]
    number = {n: i for i, n in enumerate(problem.variables)}
    bits = np.log2([max(len(v), 1) for v in problem.variables.values()])
    if any(sum(bits[number[n]] for n in s) > HOPELESS for s in scopes if len(s) > WIDE):
        return True
    from markovia.kernels.clique_trees.width_check import widest_clique

    return bool(widest_clique(*adjacency(len(number), scopes, number), bits, HOPELESS) > HOPELESS)


def adjacency(
    n: int, scopes: Sequence[tuple[str, ...]], number: dict[str, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the neighbours of every variable: pointers, and numbers in increasing order."""
    lengths = np.array([len(s) for s in scopes], dtype=np.int64)
    flat = np.array([number[name] for s in scopes for name in s], dtype=np.int64)
    starts = np.cumsum(lengths) - lengths
    pairs = []
    for length in np.unique(lengths):
        rows = flat[starts[lengths == length][:, None] + np.arange(length)]
        i, j = np.nonzero(~np.eye(length, dtype=bool))
        pairs.append((rows[:, i] * n + rows[:, j]).ravel())
    keys = np.unique(np.concatenate(pairs)) if pairs else np.zeros(0, dtype=np.int64)
    return np.searchsorted(keys // n, np.arange(n + 1)), keys % n
