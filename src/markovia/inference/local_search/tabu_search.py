"""Tabu search: always make the best change of one variable, and do not go back at once.

Method: steepest ascent that goes on through local maxima: the best single change is made even if it loses weight, and the
state that was left is forbidden for some moves (the tenure) unless it would give the best weight ever. After a stretch
without a new best the search goes back to a random configuration. Reference: Glover (1989).
Cost of a move: one look at the gain of every state of every variable, plus the tables around the changed one.
Use it on models of some hundred variables with dense tables; for large sparse ones prefer large neighbourhoods.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovia.inference.approximate import Approximate
from markovia.inference.local_search.search_space import (
    BestSoFar,
    SearchSpace,
    kernel_seed,
    nothing_to_search,
    search_space,
)
from markovia.inference.problem import Problem
from markovia.inference.result import Ranked
from markovia.runtime.array_types import Ints
from markovia.runtime.checks import AnySeed, Count, CountOrNone, Start, TimeLimit
from markovia.runtime.seeds import generator

SLICE = 2_000_000
"""States looked at between two looks at the clock."""


@dataclass(frozen=True)
class TabuSearch(Approximate):
    """Best configurations by tabu search over single changes.

    Parameters
    ----------
    tenure
        Moves for which a state that was left is forbidden, plus up to as many again at random; by default 5 plus a tenth of
        the number of variables, at most 50.
    max_moves
        Moves in all; with a time limit None means as many as it allows, without one 50,000.
    patience
        Moves without a new best after which the search starts again from a random configuration.
    start
        A state for every free variable; by default the states that the tables over single variables prefer.
    seed, time_limit, progress
        Seed of the random numbers, seconds, and whether to show a bar (by default on a terminal).

    Examples
    --------
    >>> import markovia as mk
    >>> engine = mk.engines.TabuSearch(max_moves=200, seed=0)
    >>> mk.examples.sprinkler().map(given={"wet": "yes"}, engine=engine).to_dict()
    {'cloudy': 'yes', 'sprinkler': 'no', 'rain': 'yes'}
    """

    tenure: CountOrNone = None
    max_moves: CountOrNone = None
    patience: Count = 5_000
    start: Start = None
    seed: AnySeed = None
    time_limit: TimeLimit = None
    progress: bool | None = None

    name: ClassVar[str] = "tabu"
    answers: ClassVar[frozenset[str]] = frozenset({"best"})

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> Ranked:
        """Return the best configuration that was met."""
        self._refuse_parts(problem, targets, m)
        space = search_space(problem)
        known = nothing_to_search(space)
        if known is not None:
            return known
        codes = space.best_alone() if self.start is None else space.read(self.start)
        most = self.max_moves if self.max_moves or self.time_limit else 50_000
        with BestSoFar(space, self.time_limit, self.progress, self.name) as done:
            tabu(space, codes, self.tenure, most, self.patience, generator(self.seed), done)
        return done.answer(True)


def tabu(
    space: SearchSpace,
    codes: Ints,
    tenure: int | None,
    most: int | None,
    patience: int,
    rng: np.random.Generator,
    done: BestSoFar,
) -> None:
    """Run tabu search from a configuration, in place, until the moves or the time are over."""
    from markovia.kernels.maximising.local_search import best_moves, fill_scores

    n, tables, state = len(codes), space.tables, kernel_seed(rng)
    tenure = min(5 + n // 10, 50) if tenure is None else tenure
    at_once = max(1, min(patience, SLICE // max(1, len(space.unary))))
    score = np.empty(len(space.unary))
    until = np.zeros(len(space.unary), dtype=np.int64)
    best, quiet, made = codes.copy(), 0, 0
    scores = np.full(2, space.score(codes))
    done.note(codes, float(scores[0]), 0)
    while not done.over() and (most is None or made < most) and max(space.graph.cards) > 1:
        fill_scores(codes, score, *tables[:8])  # afresh, so that rounding does not add up
        scores[0] = space.score(codes)
        before = float(scores[1])
        steps = at_once if most is None else min(at_once, most - made)
        best_moves(steps, tenure, tenure, made, until, best, scores, state, codes, score, *tables)
        made += steps
        quiet = 0 if scores[1] > before + 1e-9 else quiet + steps
        done.note(best, space.score(best), steps, steps)
        if quiet >= patience:
            quiet = 0
            done.restarts += 1
            codes[:] = space.at_random(rng)
            scores[:] = space.score(codes)
            best[:] = codes
