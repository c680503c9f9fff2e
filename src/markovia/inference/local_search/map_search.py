"""The one engine to ask for a hard most probable explanation: exact where it fits, otherwise searches that work together.

Method: if the junction tree's estimated run fits the time, it answers, and the answer is proved. Otherwise what is cheap to
maximise out is maximised out, guided local search and tabu search make quick first configurations of the core, and large
neighbourhood search climbs from them, recombines what the climbs found and starts again until the time is over.
References: see `guided_local_search`, `tabu_search`, `large_neighbourhood`, `search_core`.
Cost: what `time_limit` allows; without one, a fixed number of climbs.
Use it for models whose tree is too wide; a bound comes from engines such as dual decomposition.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from markovia.errors import TooLarge
from markovia.inference.exact.tree_plan import TreeStructure, plan_for
from markovia.inference.local_search.guided_local_search import guided
from markovia.inference.local_search.large_neighbourhood import RegionSearch
from markovia.inference.local_search.local_search import LocalSearch
from markovia.inference.local_search.search_core import core_of
from markovia.inference.local_search.search_space import TABLES, BestSoFar, Outcome, SearchSpace
from markovia.inference.local_search.tabu_search import tabu
from markovia.inference.problem import Problem
from markovia.inference.result import Ranked
from markovia.runtime.array_types import Ints
from markovia.runtime.checks import Count, CountOrNone

SPEED = 2e7
"""Table entries of a junction tree that a second is worth; the tree is several times faster than that."""
USUAL_SECONDS = 5.0
"""Seconds that an exact answer may take by estimate when there is no time limit."""
FIRST_SHARE = 0.03
"""Share of the time limit that each first configuration may take."""
FIRST_WORK = 2_000_000
"""Entries looked at for each first configuration."""


@dataclass(frozen=True)
class MapSearch(LocalSearch):
    """Most probable configurations of hard models: exact if it fits, otherwise a portfolio of searches.

    Parameters
    ----------
    table_limit
        Entries of the largest table of a region in large neighbourhood search.
    rounds
        Climbs to make; without a time limit 12 by default, with one as many as it allows.
    chains
        Climbs that run side by side. The answer depends on it, not on the number of processors.
    try_exact
        Whether the junction tree may answer where its estimate fits the time.
    start
        A state for every free variable, to start one of the climbs from.
    seed, time_limit, progress
        Seed of the random numbers, seconds, and whether to show a bar (by default on a terminal).

    Examples
    --------
    >>> import markovia as mk
    >>> best = mk.examples.sprinkler().map(given={"wet": "yes"}, engine=mk.engines.MapSearch(seed=0))
    >>> best["rain"], best.info.exact
    ('yes', True)
    """

    table_limit: Annotated[int, TABLES] = 2**20
    rounds: CountOrNone = None
    chains: Count = 2
    try_exact: bool = True

    name: ClassVar[str] = "map-search"

    def _search(self, space: SearchSpace, rng: np.random.Generator, done: BestSoFar) -> Outcome:
        core = core_of(space)
        done.lift = core.lift
        starts: list[Ints] = [] if self.start is None else [core.down(space.read(self.start))]
        search = RegionSearch(core.space, self.table_limit, done)
        if len(core.kept):
            starts += self._first_ones(search, rng)
        return search.run(starts or [core.space.best_alone()], self.chains, self.rounds, rng)

    def _exactly(self, problem: Problem, targets: Sequence[str], space: SearchSpace) -> Ranked | None:
        """Return the junction tree's answer if it fits the time and the memory."""
        from markovia.inference.exact.junction_tree import JunctionTree

        if not self.try_exact:
            return None
        graph = space.graph
        scopes = [[v] for v in range(len(graph.cards))]
        scopes += [graph.members(f).tolist() for f in range(graph.n_factors)]
        plan = plan_for(TreeStructure(graph.cards.tolist(), scopes), effort=0.1)
        if plan.total > SPEED * (self.time_limit or USUAL_SECONDS):
            return None
        try:
            found = JunctionTree().best(problem, targets, 1)
        except TooLarge:
            return None
        return Ranked(found, replace(found.record, exact=True, engine=JunctionTree.name))

    def _first_ones(self, search: RegionSearch, rng: np.random.Generator) -> list[Ints]:
        """Return quick configurations of the core to climb from."""
        space, found = search.space, []
        limit = None if self.time_limit is None else FIRST_SHARE * self.time_limit
        for number in range(2):
            codes = space.best_alone()
            with BestSoFar(space, limit, False, self.name) as quick:
                if number == 0:
                    most = max(1, FIRST_WORK // (len(space.unary) + len(space.graph.scope)))
                    guided(space, codes, 0.3, most, 200, rng, quick)
                else:
                    tabu(space, codes, None, max(1, FIRST_WORK // len(space.unary)), 5_000, rng, quick)
            found.append(quick.codes)
            search.done.note(quick.codes, quick.score, quick.iterations, quick.moves)
        return found
