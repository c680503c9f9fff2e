"""The adjacency search of PC and FCI: start complete, take away pairs that some subset of neighbours makes independent.

The order-independent form (Colombo and Maathuis 2014): neighbours are frozen while sets of one size are tried, so the result
does not depend on the order of the variables. Cost: exponential in the largest degree.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from markovia.learning.structure.ci_tests import CITest, Query
from markovia.learning.structure.knowledge import Rules
from markovia.learning.structure.watch import Watch


@dataclass
class Skeleton:
    """Who is adjacent, and what separates the others.

    Attributes
    ----------
    adjacent
        A symmetric matrix.
    separators
        For each pair (smaller number first) that a test took away, the set that did it.
    p_max
        The largest p-value seen for each pair.
    """

    adjacent: NDArray[np.bool_]
    separators: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    p_max: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))


def adjacency_search(
    test: CITest, rules: Rules, watch: Watch, *, depth: int | None = None, stable: bool = True
) -> Skeleton:
    """Return the skeleton. Forbidden pairs are never adjacent, required pairs always are.

    Parameters
    ----------
    test, rules, watch
        The independence test, what is known, when to stop.
    depth
        The largest size of a conditioning set; None for no limit.
    stable
        Whether neighbours are frozen while sets of one size are tried.
    """
    n = test.n
    adjacent = rules.pairs.copy()
    kept = rules.required_pairs
    skeleton = Skeleton(adjacent, {}, np.zeros((n, n)))
    size = 0
    while (depth is None or size <= depth) and not watch.over():
        frozen = adjacent.copy() if stable else adjacent
        busy = False
        for x, y in combinations(range(n), 2):
            if not adjacent[x, y] or kept[x, y]:
                continue
            for query in _queries(frozen, x, y, size):
                busy = True
                p = test.p_value(*query)
                skeleton.p_max[x, y] = skeleton.p_max[y, x] = max(skeleton.p_max[x, y], p)
                if p > test.alpha:
                    adjacent[x, y] = adjacent[y, x] = False
                    skeleton.separators[(x, y)] = query[2]
                    break
            watch.advance()
            if watch.over():
                return skeleton
        if not busy and size > 0:
            break
        size += 1
    return skeleton


def _queries(adjacent: NDArray[np.bool_], x: int, y: int, size: int) -> Iterator[Query]:
    seen = set()
    for end, other in ((x, y), (y, x)):
        near = [int(v) for v in np.flatnonzero(adjacent[end]) if v != other]
        for given in combinations(near, size):
            if given not in seen:
                seen.add(given)
                yield x, y, given
