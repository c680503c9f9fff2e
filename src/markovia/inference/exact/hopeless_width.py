"""Telling in milliseconds that a model is far too wide for a junction tree.

Searching a good elimination order of a wide graph takes seconds to minutes, and is wasted if no order will do. One
elimination by smallest tables, stopped as soon as they are astronomically too large, tells most such models.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from markovia.factors.tables.factor import Factor
from markovia.graphs.triangulation.elimination import eliminate
from markovia.inference.exact.tree_plan import TreeStructure, structure_of
from markovia.inference.problem import Problem
from markovia.kernels.compiled_code import worth_loading

SMALL = 300
"""Variables up to which a search costs less than looking twice."""
WIDE = 16
"""Variables of a scope from which on it is looked at by itself."""
HOPELESS = 55.0
"""log2 of the entries of a clique that no better order will bring down to what fits."""
SEARCH = "markovia.kernels.clique_trees.elimination:search_order"
PYTHON_RATE = 1e4
"""Variables a second that are eliminated without compiled code, about."""
LOAD_SECONDS, COMPILE_SECONDS = 0.5, 5.0


def hopeless(problem: Problem, targets: Sequence[str] | None) -> bool:
    """Say whether a junction tree of the problem is out of reach; it is not where the whole model's is within."""
    if len(problem.variables) <= SMALL or not _wide_as_a_whole(problem):
        return False
    if not problem.findings and (targets is None or all(isinstance(p, Factor) for p in problem.pieces)):
        return True
    scopes = [tuple([v.name for v in part.variables]) for part in problem.parts(targets)]
    number = {n: i for i, n in enumerate(problem.variables)}
    card = [max(len(v), 1) for v in problem.variables.values()]
    return _wide(TreeStructure(card, [[number[name] for name in s] for s in scopes if len(s) > 1]))


def _wide_as_a_whole(problem: Problem) -> bool:
    """Say whether the model is too wide when nothing is observed, once a model."""
    structure, memory = structure_of(problem), problem.memory
    if memory is None:
        return _wide(structure)
    known = memory.get(_wide)
    if known is None or known[0] is not structure:
        known = memory[_wide] = structure, _wide(structure)
    return bool(known[1])


def _wide(structure: TreeStructure) -> bool:
    starts, scope, card = structure.scope_start, structure.scope, np.maximum(structure.card, 1)
    wide = np.flatnonzero(np.diff(starts) > WIDE)
    if any(np.log2(card[scope[starts[i] : starts[i + 1]]]).sum() > HOPELESS for i in wide):
        return True
    n = len(card)
    if worth_loading(SEARCH, n / PYTHON_RATE, LOAD_SECONDS, COMPILE_SECONDS):
        from markovia.kernels.clique_trees.elimination import wider_than

        return wider_than(starts, scope, card, HOPELESS)
    adjacency: list[set[int]] = [set() for _ in range(n)]
    flat, bounds = scope.tolist(), starts.tolist()
    for first, last in pairwise(bounds):
        for i in flat[first:last]:
            adjacency[i].update(flat[first:last])
    for i, around in enumerate(adjacency):
        around.discard(i)
    return len(eliminate(adjacency, "min-weight", card.tolist(), stop=2.0**HOPELESS)) < n
