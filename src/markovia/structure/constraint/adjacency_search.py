"""The adjacency search of PC and FCI: start complete, take away pairs that some subset of neighbours makes independent.

The order-independent form (Colombo and Maathuis, *Order-independent constraint-based causal structure learning*, JMLR 2014):
neighbours are frozen while sets of one size are tried, so who is adjacent does not depend on the order of the variables, and
all pairs can be asked at once; which of several sets is kept as the separating one still does. The original form (Spirtes
and Glymour, 1991) lets each removal count at once.
The separating set is the first that is found: sizes 0, 1, ..., for each size the subsets of x's neighbours in lexicographic
order, then those of y's, x before y. Cost: exponential in the largest degree.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from markovia.runtime.checks import check_count
from markovia.runtime.clock import Clock
from markovia.structure.ci_tests.ci_tests import CITest, Query
from markovia.structure.task.knowledge import Rules


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
        The largest p-value seen for each pair; 0 for pairs that were never tested.
    tested
        The pairs that were tested at all, a symmetric matrix.
    """

    adjacent: NDArray[np.bool_]
    separators: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)
    p_max: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))
    tested: NDArray[np.bool_] = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))

    def _note(self, x: int, y: int, p: float) -> None:
        if p > self.p_max[x, y]:
            self.p_max[x, y] = self.p_max[y, x] = p
        self.tested[x, y] = self.tested[y, x] = True


def named_separators(
    separators: Mapping[tuple[int, int], tuple[int, ...]], names: Sequence[str]
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return separating sets by name, both orders of a pair as keys."""
    found = {}
    for (x, y), given in separators.items():
        found[names[x], names[y]] = found[names[y], names[x]] = tuple(names[z] for z in given)
    return found


def adjacency_search(
    test: CITest,
    rules: Rules,
    watch: Clock,
    *,
    depth: int | None = None,
    stable: bool = True,
    separate_forbidden: bool = False,
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
    separate_forbidden
        Whether separating sets are also looked for where an edge is forbidden in both directions; orientation needs them.
    """
    check_count("depth", depth, none=True)
    n = test.n
    skeleton = Skeleton(rules.pairs.copy(), {}, np.zeros((n, n)), np.zeros((n, n), dtype=bool))
    asked = ~np.eye(n, dtype=bool) if separate_forbidden else rules.pairs
    open_pairs = asked & ~rules.required_pairs
    size = 0
    while (depth is None or size <= depth) and not watch.over():
        level = _frozen_level if stable else _live_level
        if not level(test, skeleton, open_pairs, watch, size):
            break
        size += 1
    return skeleton


def _frozen_level(
    test: CITest, skeleton: Skeleton, open_pairs: NDArray[np.bool_], watch: Clock, size: int
) -> bool:
    """Try sets of one size with neighbours frozen; say whether there was any such set.

    Every pair asks its next set in each round, so that a round is one batch; with few pairs left each asks several.
    """
    near = [np.flatnonzero(row).tolist() for row in skeleton.adjacent]
    asking = {
        (x, y): _queries(near, x, y, size) for x, y in combinations(range(test.n), 2) if open_pairs[x, y]
    }
    busy = False
    while asking and not watch.over():
        chunk = max(1, test.batch // len(asking))
        turns = {pair: list(islice(source, chunk)) for pair, source in asking.items()}
        asking = {pair: source for pair, source in asking.items() if turns[pair]}
        if not asking:
            break
        busy = True
        questions = [q for pair in asking for q in turns[pair]]
        answers = iter(test.p_values_until(questions, watch))
        for pair in list(asking):
            x, y = pair
            # fewer answers than questions only where the watch ended it
            for (_, _, given), p in [(q, p) for q in turns[pair] if (p := next(answers, None)) is not None]:
                skeleton._note(x, y, p)
                if p > test.alpha:
                    skeleton.adjacent[x, y] = skeleton.adjacent[y, x] = False
                    open_pairs[x, y] = open_pairs[y, x] = False
                    skeleton.separators[pair] = given
                    del asking[pair]
                    break
        watch.advance(len(questions), f"sets of {size}")
    return busy


def _live_level(
    test: CITest, skeleton: Skeleton, open_pairs: NDArray[np.bool_], watch: Clock, size: int
) -> bool:
    """Try sets of one size, each removal counting at once; say whether there was any such set."""
    adjacent, busy = skeleton.adjacent, False
    for x in range(test.n):
        for y in range(test.n):
            if not open_pairs[x, y]:
                continue
            if watch.over():
                return busy
            near = [int(v) for v in np.flatnonzero(adjacent[x]) if v != y]
            for given in combinations(near, size):
                busy = True
                p = test.p_value(x, y, given)
                skeleton._note(x, y, p)
                if p > test.alpha:
                    adjacent[x, y] = adjacent[y, x] = False
                    open_pairs[x, y] = open_pairs[y, x] = False
                    skeleton.separators[min(x, y), max(x, y)] = given
                    break
            watch.advance(note=f"sets of {size}")
    return busy


def _queries(near: list[list[int]], x: int, y: int, size: int) -> Iterator[Query]:
    """Yield each subset of x's neighbours, then of y's that are not all neighbours of x too."""
    own = set(near[x])
    for given in combinations([v for v in near[x] if v != y], size):
        yield x, y, given
    others = [v for v in near[y] if v != x]
    if own.issuperset(others):
        return
    for given in combinations(others, size):
        if not own.issuperset(given):
            yield x, y, given
