"""Tabu search: always make the best change of one variable, and do not go back at once.

Method: steepest ascent that goes on through local maxima: the best single change is made even if it loses weight, and the
state that was left is forbidden for some moves (the tenure) unless it would give the best weight ever. After a stretch
without a new best the search goes back to a random configuration. Reference: Glover (1989).
Cost of a move: one look at the gain of every state of every variable, plus the tables around the changed one.
Use it on models of some hundred variables with dense tables; for large sparse ones prefer large neighbourhoods.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovia.inference.local_search.local_search import LocalSearch
from markovia.inference.local_search.search_space import BestSoFar, Outcome, SearchSpace
from markovia.kernels.maximising.search_records import SearchState
from markovia.runtime.array_types import Ints
from markovia.runtime.checks import Count, CountOrNone
from markovia.runtime.seeds import kernel_seed

SLICE = 2_000_000
"""States looked at between two looks at the clock."""


@dataclass(frozen=True)
class TabuSearch(LocalSearch):
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

    name: ClassVar[str] = "tabu"

    def _search(self, space: SearchSpace, rng: np.random.Generator, done: BestSoFar) -> Outcome:
        most = self.max_moves if self.max_moves or self.time_limit else 50_000
        tabu(space, self._first(space), self.tenure, most, self.patience, rng, done)
        return Outcome(True)


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

    n, graph = len(codes), space.arrays
    tenure = min(5 + n // 10, 50) if tenure is None else tenure
    at_once = max(1, min(patience, SLICE // max(1, len(space.unary))))
    until = np.zeros(len(space.unary), dtype=np.int64)
    best, quiet, made = codes.copy(), 0, 0
    scores = np.full(2, space.score(codes))
    search = SearchState(codes, np.empty(len(space.unary)), kernel_seed(rng), best, scores)
    done.note(codes, float(scores[0]), 0)
    while not done.over() and (most is None or made < most) and max(space.graph.cards) > 1:
        fill_scores(graph, codes, search.score)  # afresh, so that rounding does not add up
        scores[0] = space.score(codes)
        before = float(scores[1])
        steps = at_once if most is None else min(at_once, most - made)
        best_moves(graph, steps, tenure, tenure, made, until, search)
        made += steps
        quiet = 0 if scores[1] > before + 1e-9 else quiet + steps
        done.note(best, space.score(best), steps, steps)
        if quiet >= patience:
            quiet = 0
            done.restarts += 1
            codes[:] = space.at_random(rng)
            scores[:] = space.score(codes)
            best[:] = codes
