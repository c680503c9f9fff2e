"""The adjacency search of PC and FCI: start complete, take away pairs that some subset of neighbours makes independent.

The order-independent form (Colombo and Maathuis, *Order-independent constraint-based causal structure learning*, JMLR 2014):
neighbours are frozen while sets of one size are tried, so who is adjacent does not depend on the order of the variables, and
all pairs can be asked at once; which of several sets is kept as the separating one still does. The original form (Spirtes
and Glymour, 1991) lets each removal count at once.
The separating set is the first that is found: sizes 0, 1, ..., for each size the subsets of x's neighbours in lexicographic
order, then those of y's, x before y. Cost: exponential in the largest degree.
"""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations, islice, pairwise
from math import comb
from typing import Any

import numpy as np

from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.checks import check_count
from markovia.runtime.clock import Clock
from markovia.structure.ci_tests.ci_tests import CITest, Query
from markovia.structure.ci_tests.many_tests import PairTests, SetTests
from markovia.structure.task.knowledge import Rules

TESTS_AT_ONCE = 20_000
"""Tests of a round, about, where pairs ask several sets each."""
SETS_AT_ONCE = 2**25
"""Sets that are listed at a time, about."""
SETS_OF_A_NODE = 2**16
"""Where the neighbours of a node have more subsets, sets are not listed but made one after the other."""


class Separators(MutableMapping[tuple[int, int], tuple[int, ...]]):
    """The separating set of each pair (smaller number first); pairs that need none may be held as flags."""

    def __init__(self) -> None:
        self.apart: Flags | None = None
        self._sets: dict[tuple[int, int], tuple[int, ...]] = {}

    def __getitem__(self, pair: tuple[int, int]) -> tuple[int, ...]:
        found = self._sets.get(pair)
        if found is None and self.apart is not None and self.apart[pair]:
            return ()
        if found is None:
            raise KeyError(pair)
        return found

    def __setitem__(self, pair: tuple[int, int], given: tuple[int, ...]) -> None:
        if self.apart is not None:
            self.apart[pair] = False
        self._sets[pair] = given

    def __delitem__(self, pair: tuple[int, int]) -> None:
        if self.apart is not None:
            self.apart[pair] = False
        self._sets.pop(pair, None)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        if self.apart is not None:
            for x, row in enumerate(self.apart):
                yield from ((x, y) for y in np.flatnonzero(row).tolist())
        yield from self._sets

    def __len__(self) -> int:
        return len(self._sets) + (0 if self.apart is None else int(self.apart.sum()))


class NamedSeparators(Mapping[tuple[str, str], tuple[str, ...]]):
    """Separating sets by name, both orders of a pair as keys."""

    def __init__(self, separators: Mapping[tuple[int, int], tuple[int, ...]], names: Sequence[str]) -> None:
        self._separators, self._names = separators, names
        self._number = {name: k for k, name in enumerate(names)}

    def __getitem__(self, pair: tuple[str, str]) -> tuple[str, ...]:
        try:
            x, y = (self._number[name] for name in pair)
            given = self._separators[(x, y) if x < y else (y, x)]
        except (KeyError, TypeError, ValueError):
            raise KeyError(pair) from None
        return tuple(self._names[z] for z in given)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        names = self._names
        for x, y in self._separators:
            yield names[x], names[y]
            yield names[y], names[x]

    def __len__(self) -> int:
        return 2 * len(self._separators)

    def __repr__(self) -> str:
        return repr(dict(self))


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

    adjacent: Flags
    separators: "Separators"
    p_max: Array = field(default_factory=lambda: np.zeros((0, 0)))
    tested: Flags = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))

    def _note(self, x: int, y: int, p: float) -> None:
        if p > self.p_max[x, y]:
            self.p_max[x, y] = self.p_max[y, x] = p
        self.tested[x, y] = self.tested[y, x] = True


def adjacency_search(
    test: CITest,
    rules: Rules,
    clock: Clock,
    *,
    depth: int | None = None,
    stable: bool = True,
    separate_forbidden: bool = False,
) -> Skeleton:
    """Return the skeleton. Forbidden pairs are never adjacent, required pairs always are.

    Parameters
    ----------
    test, rules, clock
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
    skeleton = Skeleton(rules.pairs.copy(), Separators(), np.zeros((n, n)), np.zeros((n, n), dtype=bool))
    asked = ~np.eye(n, dtype=bool) if separate_forbidden else rules.pairs
    open_pairs = asked & ~rules.required_pairs
    size = 0
    while (depth is None or size <= depth) and not clock.over():
        level = _level(test, skeleton.adjacent, size) if stable else _live_level
        if not level(test, skeleton, open_pairs, clock, size):
            break
        size += 1
    return skeleton


def _level(test: CITest, adjacent: Flags, size: int) -> Any:
    """Return how sets of one size are tried with neighbours frozen: by the thousand where pairs were and sets are few."""
    if size == 0 and test.pair_blocks() is not None:
        return _all_pairs
    widest = int(np.count_nonzero(adjacent, axis=1).max(initial=0))
    return _array_level if test.log and comb(widest, size) <= SETS_OF_A_NODE else _frozen_level


def _all_pairs(test: CITest, skeleton: Skeleton, open_pairs: Flags, clock: Clock, size: int) -> bool:
    """Test all open pairs given nothing."""
    blocks = test.pair_blocks()
    assert blocks is not None
    asked = np.triu(open_pairs)
    if not asked.any():
        return False
    made: list[Array] = []
    apart = np.zeros_like(asked)
    for low, high, p in blocks:
        if made and clock.over():
            asked[low:] = False
            break
        own = asked[low:high]
        made += [row[flags] for row, flags in zip(p, own, strict=True)]
        skeleton.p_max[low:high][own] = p[own]
        apart[low:high] = own & (p > test.alpha)
        clock.advance(int(own.sum()), f"sets of {size}")
    test.note(PairTests(asked, made))
    for flags in (skeleton.adjacent, open_pairs):
        flags &= ~apart
        flags &= ~apart.T
    skeleton.tested |= asked
    skeleton.tested |= asked.T
    np.maximum(skeleton.p_max, skeleton.p_max.T, out=skeleton.p_max)
    skeleton.separators.apart = apart
    return True


def _array_level(test: CITest, skeleton: Skeleton, open_pairs: Flags, clock: Clock, size: int) -> bool:
    """Try sets of one size: all pairs ask their next set in each round, as arrays."""
    frozen = skeleton.adjacent.copy()
    near = [np.flatnonzero(row) for row in frozen]
    xs, ys = _pairs_of(open_pairs)
    # the pairs in parts that together have about so many sets
    most = np.array([comb(len(own), size) for own in near])
    full = np.cumsum(most[xs] + most[ys]) // SETS_AT_ONCE
    ends = [0, *(1 + np.flatnonzero(np.diff(full))).tolist(), len(xs)]
    busy = False
    for low, high in pairwise(ends):
        turns = []
        for x, y in zip(xs[low:high].tolist(), ys[low:high].tolist(), strict=True):
            # the subsets of x's neighbours, then those of y's that are not all neighbours of x too
            own, others = _subsets(near[x][near[x] != y], size), _subsets(near[y][near[y] != x], size)
            turns += [own, others[~frozen[x][others].all(axis=1)]]
        starts = np.cumsum([0, *map(len, turns)])[::2]
        given = np.concatenate([*turns, np.empty((0, size), np.int64)])
        asking, at = np.arange(low, high), starts[:-1].copy()
        while len(asking) and not clock.over():
            left = starts[asking - low + 1] - at
            asking, at, left = asking[left > 0], at[left > 0], left[left > 0]
            if not len(asking):
                break
            busy = True
            chunk = np.minimum(left, max(1, TESTS_AT_ONCE // len(asking)))
            pair = np.repeat(np.arange(len(asking)), chunk)
            first = np.cumsum(chunk) - chunk
            sets = given[at[pair] + np.arange(len(pair)) - first[pair]]
            p = test.p_array(xs[asking[pair]], ys[asking[pair]], sets)
            # of each pair what comes after the first set that separates it was not asked
            hit = np.flatnonzero(p > test.alpha)
            stop = np.full(len(asking), len(p))
            np.minimum.at(stop, pair[hit], hit)
            counted = np.arange(len(p)) <= stop[pair]
            a, b = xs[asking], ys[asking]
            np.maximum.at(skeleton.p_max, (a[pair[counted]], b[pair[counted]]), p[counted])
            tails, heads = (e[pair[counted]].astype(np.int32) for e in (a, b))
            test.note(SetTests(tails, heads, sets[counted].astype(np.int32), p[counted]))
            done = stop < len(p)
            for x, y, z in zip(a[done].tolist(), b[done].tolist(), sets[stop[done]].tolist(), strict=True):
                skeleton.adjacent[x, y] = skeleton.adjacent[y, x] = False
                open_pairs[x, y] = open_pairs[y, x] = False
                skeleton.separators[x, y] = tuple(z)
            clock.advance(int(counted.sum()), f"sets of {size}")
            asking, at = asking[~done], (at + chunk)[~done]
        if clock.over():
            break
    skeleton.p_max[ys, xs] = skeleton.p_max[xs, ys]
    return busy


def _pairs_of(flags: Flags) -> tuple[Ints, Ints]:
    """Return the pairs x < y of a symmetric matrix, by x and then y, without a copy of the matrix."""
    found = [x + 1 + np.flatnonzero(row[x + 1 :]) for x, row in enumerate(flags)]
    xs = np.repeat(np.arange(len(flags)), [len(ys) for ys in found])
    return xs, np.concatenate([*found, np.empty(0, np.int64)])


def _subsets(nodes: Ints, size: int) -> Ints:
    """Return the subsets of some nodes of one size, in lexicographic order: an array (subsets, size)."""
    return nodes[:, None] if size == 1 else nodes[_combinations(len(nodes), size)]


@lru_cache(maxsize=256)
def _combinations(n: int, size: int) -> Ints:
    return np.array(list(combinations(range(n), size)), dtype=np.int64).reshape(-1, size)


def _frozen_level(test: CITest, skeleton: Skeleton, open_pairs: Flags, clock: Clock, size: int) -> bool:
    """Try sets of one size with neighbours frozen; say whether there was any such set.

    Every pair asks its next set in each round, so that a round is one batch; with few pairs left each asks several.
    """
    near = [np.flatnonzero(row).tolist() for row in skeleton.adjacent]
    pairs = zip(*(ends.tolist() for ends in _pairs_of(open_pairs)), strict=True)
    asking = {(x, y): _queries(near, x, y, size) for x, y in pairs}
    busy = False
    while asking and not clock.over():
        chunk = max(1, test.batch // len(asking))
        turns = {pair: list(islice(source, chunk)) for pair, source in asking.items()}
        asking = {pair: source for pair, source in asking.items() if turns[pair]}
        if not asking:
            break
        busy = True
        questions = [q for pair in asking for q in turns[pair]]
        answers = iter(test.p_values_until(questions, clock))
        for pair in list(asking):
            x, y = pair
            # fewer answers than questions only where the clock ended it
            for (_, _, given), p in [(q, p) for q in turns[pair] if (p := next(answers, None)) is not None]:
                skeleton._note(x, y, p)
                if p > test.alpha:
                    skeleton.adjacent[x, y] = skeleton.adjacent[y, x] = False
                    open_pairs[x, y] = open_pairs[y, x] = False
                    skeleton.separators[pair] = given
                    del asking[pair]
                    break
        clock.advance(len(questions), f"sets of {size}")
    return busy


def _live_level(test: CITest, skeleton: Skeleton, open_pairs: Flags, clock: Clock, size: int) -> bool:
    """Try sets of one size, each removal counting at once; say whether there was any such set."""
    adjacent, busy = skeleton.adjacent, False
    for x in range(test.n):
        for y in range(test.n):
            if not open_pairs[x, y]:
                continue
            if clock.over():
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
            clock.advance(note=f"sets of {size}")
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
