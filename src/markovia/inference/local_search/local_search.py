"""What the engines that search for a best configuration share: options, the search space, starts, the clock, the answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import ClassVar

import numpy as np

from markovia.inference.approximate import Approximate
from markovia.inference.local_search.search_space import BestSoFar, Outcome, SearchSpace, search_space
from markovia.inference.problem import Problem
from markovia.inference.result import Assignment, Ranked, Record
from markovia.runtime.array_types import Ints
from markovia.runtime.checks import AnySeed, Start, TimeLimit
from markovia.runtime.clock import now
from markovia.runtime.seeds import generator


@dataclass(frozen=True, kw_only=True)
class LocalSearch(Approximate):
    """Base of searches: an engine implements `_search`.

    Parameters
    ----------
    start
        A state for every free variable.
    seed, time_limit, progress
        Seed of the random numbers, seconds, and whether to show a bar (by default on a terminal).
    """

    start: Start = None
    seed: AnySeed = None
    time_limit: TimeLimit = None
    progress: bool | None = None

    answers: ClassVar[frozenset[str]] = frozenset({"best"})

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> Ranked:
        """Return the best configuration that was found."""
        self._refuse_parts(problem, targets, m)
        space, begin = search_space(problem), now()
        graph = space.graph
        if np.isneginf(graph.log_scale):
            return Ranked(record=Record(exact=True))
        if not len(graph.variables):
            return Ranked([Assignment({}, graph.log_scale)], Record(exact=True, bound=graph.log_scale))
        known = self._exactly(problem, targets, space)
        if known is not None:
            return known
        left = None if self.time_limit is None else max(self.time_limit - (now() - begin), 1e-3)
        with BestSoFar(space, left, self.progress, self.name) as done:
            found = self._search(space, generator(self.seed), done)
        return done.answer(found)

    def _exactly(self, problem: Problem, targets: Sequence[str], space: SearchSpace) -> Ranked | None:
        """Return an answer that needs no search, or None."""
        return None

    def _search(self, space: SearchSpace, rng: np.random.Generator, done: BestSoFar) -> Outcome:
        raise NotImplementedError

    def _first(self, space: SearchSpace) -> Ints:
        """Return the given start, or the states that the tables over single variables prefer."""
        return space.best_alone() if self.start is None else space.read(self.start)


def from_starts(
    climb: Callable[[Ints], bool],
    first: Ints,
    restarts: int | None,
    rng: np.random.Generator,
    done: BestSoFar,
) -> Outcome:
    """Climb from a configuration and then from random ones, so many or until the time is over."""
    finished = False
    for number in count() if restarts is None else range(restarts + 1):
        done.restarts = number
        finished |= climb(done.space.at_random(rng) if number else first)
        if done.over():
            break
    return Outcome(finished)
