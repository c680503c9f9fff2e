"""Telling in milliseconds that a model is far too wide for a junction tree.

Searching a good elimination order of a wide graph takes seconds to minutes, and is wasted if no order will do. One
elimination by smallest tables, stopped as soon as they are astronomically too large, tells most such models.
"""

from collections.abc import Sequence
from math import log2

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
    card = np.array([max(len(v), 1) for v in problem.variables.values()], dtype=np.int64)
    if any(sum(log2(card[number[n]]) for n in s) > HOPELESS for s in scopes if len(s) > WIDE):
        return True
    from markovia.kernels.clique_trees.elimination import wider_than

    starts = np.cumsum([0, *(len(s) for s in scopes)])
    flat = np.array([number[name] for s in scopes for name in s], dtype=np.int64)
    return wider_than(starts, flat, card, HOPELESS)
