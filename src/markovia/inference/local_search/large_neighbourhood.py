"""Large neighbourhood search: free many variables at once and solve for them exactly.

Method: pick a region of variables whose induced elimination tables stay small, keep all others as they are, and set the
region to its best states by max-sum bucket elimination; the weight never falls. Regions come in three kinds: the
surroundings of a variable, strips between breadth-first layers, and everything but a random cutset. The limit of the tables
grows while no region helps. A climb that stands still is recombined with earlier ones: where two configurations differ is
a region too, and its best states are at least as good as either. New climbs start from random configurations or from
good ones with a part made random. If one region holds all variables the answer is exact.
References: Bidyuk and Dechter (2007) for cutsets of bounded width; Hamze and de Freitas (2004), Selby (2014) for
exact moves on subgraphs of low width; Shaw (1998) for large neighbourhoods.
Cost: a step is the total of the region's tables, milliseconds at the default limit; memory is that of the tables.
Use it where a best configuration is wanted and the junction tree is too wide: grids, diagnosis networks, weighted
constraints.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.inference.local_search.local_search import LocalSearch
from markovia.inference.local_search.search_core import core_of
from markovia.inference.local_search.search_space import TABLES, BestSoFar, Outcome, SearchSpace
from markovia.runtime.array_types import Ints
from markovia.runtime.checks import Count, CountOrNone
from markovia.runtime.seeds import kernel_seed
from markovia.runtime.threads import in_parallel

Mask = NDArray[np.uint8]
PATIENCE = 15
"""Regions without gain before the tables may grow."""
ENTRIES = 2e7
"""Entries of all tables of one region at most."""
POOL = 10
"""Configurations kept for recombination."""
ROUNDS = 12
"""Climbs without a time limit."""
SMALLEST = 8
"""Log2 of the table limit at the start of a climb."""
USUAL = 14
"""Log2 of the table limit at the end of the first climbs; it grows up to the engine's own."""


@dataclass(frozen=True)
class LargeNeighbourhood(LocalSearch):
    """Best configurations by exact moves on large regions.

    Parameters
    ----------
    table_limit
        Entries of the largest table that a region may need.
    rounds
        Climbs to make; without a time limit 12 by default, with one as many as it allows.
    chains
        Climbs that run side by side and then exchange what they found. The answer depends on it, not on the number of
        processors.
    start
        A state for every free variable, to start the first climb from.
    seed, time_limit, progress
        Seed of the random numbers, seconds, and whether to show a bar (by default on a terminal).

    Examples
    --------
    >>> import markovia as mk
    >>> engine = mk.engines.LargeNeighbourhood(seed=0)
    >>> mk.examples.sprinkler().map(given={"wet": "yes"}, engine=engine).to_dict()
    {'cloudy': 'yes', 'sprinkler': 'no', 'rain': 'yes'}
    """

    table_limit: Annotated[int, TABLES] = 2**20
    rounds: CountOrNone = None
    chains: Count = 2

    name: ClassVar[str] = "large-neighbourhood"

    def _search(self, space: SearchSpace, rng: np.random.Generator, done: BestSoFar) -> Outcome:
        core = core_of(space)
        done.lift = core.lift
        first = core.space.best_alone() if self.start is None else core.down(space.read(self.start))
        return RegionSearch(core.space, self.table_limit, done).run([first], self.chains, self.rounds, rng)


class _NeighbourhoodTask(NamedTuple):
    start: Ints
    zone: Mask | None
    rng: np.random.Generator
    pool: list[tuple[float, Ints]]
    top: float


class _Climbed(NamedTuple):
    codes: Ints
    score: float
    work: int
    finished: bool
    exact: bool


class RegionSearch:
    """Climbs by regions, and the pool of what they found.

    Parameters
    ----------
    space
        The problem.
    table_limit
        Entries of the largest table of a region.
    done
        Where the best configuration and the time are kept.
    """

    def __init__(self, space: SearchSpace, table_limit: int, done: BestSoFar) -> None:
        self.space, self.done = space, done
        self.degree = np.diff(space.near[0])
        self.open = int(np.count_nonzero(space.graph.cards > 1))
        self.most = float(np.log2(table_limit))
        widest = float(np.ceil(space.bits.max(initial=1.0)))
        self.most = max(self.most, widest)
        self.first = min(self.most, max(float(SMALLEST), widest))
        self.top = min(self.most, max(float(USUAL), widest))
        self.climbs = 0
        self.pool: list[tuple[float, Ints]] = []

    def run(
        self, starts: Sequence[Ints], chains: int, rounds: int | None, rng: np.random.Generator
    ) -> Outcome:
        """Climb from the given starts, then from new ones, until the rounds or the time are over."""
        exact = self._run(starts, chains, rounds, rng)
        return Outcome(self.climbs > 0, exact, self.climbs, len(self.degree), 2.0**self.top)

    def _run(self, starts: Sequence[Ints], chains: int, rounds: int | None, rng: np.random.Generator) -> bool:
        """Climb; return whether one region held everything, so that the best is proved."""
        most = rounds if rounds is not None else ROUNDS if self.done.time_limit is None else None
        made, work, fresh = 0, 0, 0
        waiting = list(starts)
        self.done.note(waiting[0], self.space.score(waiting[0]), 0)
        if not self.open:
            return True
        while (most is None or made < most) and not self.done.over():
            tasks = []
            for _ in range(chains if most is None else min(chains, most - made)):
                (own,) = rng.spawn(1)
                if waiting:
                    start, zone = waiting.pop(0), None
                elif not self.pool or 3 * fresh <= work:
                    start, zone = self.space.at_random(own), None
                else:
                    start, zone = self._kicked(own)
                tasks.append(_NeighbourhoodTask(start, zone, own, list(self.pool), self.top))
            for task, found in zip(tasks, in_parallel(self._climb, tasks, lambda: None), strict=True):
                made += 1
                self.climbs += found.finished
                self.done.restarts = made - 1
                work += found.work
                fresh += found.work if task.zone is None else 0
                if found.exact:
                    return True
                self._keep(found)
            if made % 4 == 0 or chains > 4:
                self.top = min(self.top + 1, self.most)
        return False

    def _keep(self, found: _Climbed) -> None:
        if not any(np.array_equal(found.codes, codes) for _, codes in self.pool):
            self.pool.append((found.score, found.codes))
            self.pool.sort(key=lambda entry: -entry[0])
            del self.pool[POOL:]

    def _kicked(self, rng: np.random.Generator) -> tuple[Ints, Mask]:
        """Return a good configuration with the surroundings of a variable made random, and where to repair it."""
        n = len(self.degree)
        codes = self.pool[int(rng.integers(len(self.pool)))][1].copy()
        rank, _ = self._spread(rng)
        size = int(np.exp(rng.uniform(np.log(min(n, 10)), np.log(max(n // 2, 1) + 1))))
        inside = rank < size
        codes[inside] = self.space.at_random(rng)[inside]
        return codes, (rank < 3 * size).astype(np.uint8)

    def _spread(self, rng: np.random.Generator, zone: Mask | None = None) -> tuple[Ints, Ints]:
        from markovia.kernels.maximising.neighbourhoods import spread_from

        n = len(self.degree)
        rank, distance, queue = np.empty((3, n), dtype=np.int64)
        root = int(rng.integers(n)) if zone is None else int(rng.choice(np.flatnonzero(zone)))
        spread_from(self.space.near, root, kernel_seed(rng), rank, distance, queue)
        return rank, distance

    def _region(self, rng: np.random.Generator, zone: Mask | None, limit: float) -> tuple[Mask, Ints]:
        """Return which variables may be in a region, and in which order to leave them out."""
        n = len(self.degree)
        inside = np.ones(n, dtype=np.uint8) if zone is None else zone
        kind = int(rng.integers(3))
        if kind == 2:
            return inside, np.argsort(-self.degree * rng.random(n))
        rank, distance = self._spread(rng, zone)
        if kind == 0:
            size = np.exp(rng.uniform(np.log(min(20, n)), np.log(n))) + 1
            return inside & (rank < size), np.argsort(-rank)
        width = int(rng.integers(2, int(limit) + 2))
        strips = (distance + int(rng.integers(width))) % width != 0
        return inside & strips, np.argsort(-self.degree * rng.random(n))

    def _step(
        self, codes: Ints, candidate: Mask, leave: Ints, limit: float, rng: np.random.Generator
    ) -> tuple[Ints, float, int]:
        """Solve for a region; return the new configuration, its score and the size of the region."""
        from markovia.kernels.maximising.neighbourhoods import choose_region, solve_region

        order = np.empty(len(codes), dtype=np.int64)
        while True:
            found = choose_region(
                self.space.near, self.space.bits, candidate, leave, limit, ENTRIES, kernel_seed(rng), order
            )
            if found >= 0:
                break
            limit -= 1.0
        new = codes.copy()
        solve_region(self.space.arrays, kernel_seed(rng), new, order, found)
        return new, self.space.score(new), found

    def _climb(self, task: _NeighbourhoodTask, _: None) -> _Climbed:
        codes, zone, rng, limit = task.start, task.zone, task.rng, self.first
        score = self.space.score(codes)
        everything = self.open if zone is None else int(np.count_nonzero(zone & (self.space.bits > 0)))
        fails, work, finished = 0, 0, False
        while not self.done.over():
            candidate, leave = self._region(rng, zone, limit)
            new, value, size = self._step(codes, candidate, leave, limit, rng)
            work += size
            fails = 0 if value > score + 1e-9 else fails + 1
            moved = 0
            if value >= score - 1e-9:
                moved = int(np.count_nonzero(new != codes))
                codes, score = new, value
            self.done.note(codes, score, 1, moved)
            if size == everything:
                finished = True
                if size == self.open:
                    return _Climbed(codes, score, work, True, True)
                break
            if fails >= PATIENCE:
                fails = 0
                if limit >= task.top:
                    finished = True
                    break
                limit = min(limit + 2.0, task.top)
        codes, score, more = self._recombined(codes, score, task)
        return _Climbed(codes, score, work + more, finished, False)

    def _recombined(self, codes: Ints, score: float, task: _NeighbourhoodTask) -> tuple[Ints, float, int]:
        """Solve for where a configuration differs from those of the pool, until none of them helps."""
        changed, work = True, 0
        limit = min(self.most, max(18.0, self.first))
        while changed:
            changed = False
            for j in task.rng.permutation(len(task.pool)):
                value, other = task.pool[j]
                differ = (other != codes).astype(np.uint8)
                if self.done.over() or not differ.any():
                    continue
                leave = np.argsort(-self.degree * task.rng.random(len(codes)))
                better = other if value > score else codes
                new, found, size = self._step(better, differ, leave, limit, task.rng)
                work += size
                if found > score + 1e-9:
                    self.done.note(new, found, 1, int(np.count_nonzero(new != codes)))
                    codes, score, changed = new, found, True
        return codes, score, work
