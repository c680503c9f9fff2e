"""Guided local search for most probable configurations: climb, then penalise what holds the climb back.

Method: climb by single changes in log weight minus penalties on table entries. At each local maximum the entry in use
with the largest -log(entry) / (1 + its penalty) gets a higher penalty, so that the landscape fills up there and the climb
moves on; penalties fade slowly. The best configuration by true weight is kept. References: Voudouris and Tsang (1999);
Park (2002); Hutter, Hoos and Stuetzle (2005), who call the variant with true weights in the climb GLS+.
Cost: a climb is a few passes over the variables, a penalty one pass over the factors.
Use it for large models with many zeros or strong tables, where plain climbing stops early.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovia.inference.local_search.local_search import LocalSearch
from markovia.inference.local_search.search_space import BestSoFar, Outcome, SearchSpace
from markovia.kernels.maximising.search_records import SearchPenalties, SearchState
from markovia.runtime.array_types import Ints
from markovia.runtime.checks import Count, CountOrNone, Positive
from markovia.runtime.seeds import kernel_seed

SMOOTHING = 0.99
"""What penalties are multiplied by from time to time."""
SLICE = 500_000
"""Table entries looked at between two looks at the clock, about."""


@dataclass(frozen=True)
class GuidedLocalSearch(LocalSearch):
    """Best configurations by climbing under penalties.

    Parameters
    ----------
    strength
        What one penalty costs, relative to the mean spread of a table's logs.
    max_climbs
        Climbs in all; with a time limit None means as many as it allows, without one 5,000.
    smooth_every
        Climbs after which all penalties are multiplied by 0.99.
    start
        A state for every free variable; by default the states that the tables over single variables prefer.
    seed, time_limit, progress
        Seed of the random numbers, seconds, and whether to show a bar (by default on a terminal).

    Examples
    --------
    >>> import markovia as mk
    >>> engine = mk.engines.GuidedLocalSearch(max_climbs=50, seed=0)
    >>> mk.examples.sprinkler().map(given={"wet": "yes"}, engine=engine).to_dict()
    {'cloudy': 'yes', 'sprinkler': 'no', 'rain': 'yes'}
    """

    strength: Positive = 0.3
    max_climbs: CountOrNone = None
    smooth_every: Count = 200

    name: ClassVar[str] = "guided-local-search"

    def _search(self, space: SearchSpace, rng: np.random.Generator, done: BestSoFar) -> Outcome:
        most = self.max_climbs if self.max_climbs or self.time_limit else 5_000
        guided(space, self._first(space), self.strength, most, self.smooth_every, rng, done)
        return Outcome(True)


def guided(
    space: SearchSpace,
    codes: Ints,
    strength: float,
    most: int | None,
    smooth_every: int,
    rng: np.random.Generator,
    done: BestSoFar,
) -> None:
    """Run guided local search from a configuration, in place, until the climbs or the time are over.

    Zeros count as much as the strongest table here, so that the search can cross them; what is best is still decided by
    fewest zeros first.
    """
    from markovia.kernels.maximising.local_search import fill_scores, guided_climbs

    wall, weight = _scales(space, strength)
    soft_unary, soft = np.maximum(space.unary, -wall), np.maximum(space.values, -wall)
    graph, order, made = space.arrays, np.arange(len(codes)), 0
    blame_unary, blame = np.zeros(len(soft_unary)), np.zeros(len(soft))
    scores = np.full(2, space.score(codes))
    search = SearchState(codes, np.empty(len(soft_unary)), kernel_seed(rng), codes.copy(), scores)
    at_once = max(1, SLICE // (len(soft_unary) + len(space.graph.scope)))
    done.note(codes, float(scores[0]), 0)
    while not done.over() and (most is None or made < most):
        work = soft - weight * blame
        penalised = graph._replace(unary=soft_unary - weight * blame_unary, values=work)
        fill_scores(penalised, codes, search.score)
        climbs = min(at_once, smooth_every - made % smooth_every)
        climbs = climbs if most is None else min(climbs, most - made)
        penalties = SearchPenalties(blame_unary, blame, work)
        moves = guided_climbs(graph, climbs, weight, wall, penalties, order, search)
        made += climbs
        scores[0] = space.score(codes)  # afresh, so that rounding does not add up
        done.note(search.best_x, space.score(search.best_x), climbs, moves)
        if made % smooth_every == 0:
            blame *= SMOOTHING
            blame_unary *= SMOOTHING


def _scales(space: SearchSpace, strength: float) -> tuple[float, float]:
    """Return what a zero counts in the climbs, and what a penalty costs."""
    graph, reaches = space.graph, []
    for logs, ptr in ((space.unary, graph.starts), (space.values, graph.table_ptr)):
        if len(logs):
            finite = np.where(logs <= -space.penalty, 0.0, logs)
            reaches.append(-np.minimum.reduceat(finite, ptr[:-1]))
    spread = np.concatenate(reaches)
    spread = spread[spread > 0]
    wall = 2.0 * float(spread.max()) + 5.0 if len(spread) else 10.0
    return wall, strength * (float(spread.mean()) if len(spread) else 1.0)
