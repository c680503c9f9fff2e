"""Dual decomposition of the most probable configuration, tightened by clusters until the gap closes or time is up.

Method: every table is maximised on its own; block coordinate descent on the dual moves log potentials between
tables and the variables they share so that the sum of the maxima, an upper bound on the log weight of any
configuration, never rises. The blocks are visited in order and back, each variable handing its potential to the
tables still to come (SRMP) instead of equal shares to all (MPLP); pairwise models start with the sweeps of `trw-s`.
When the bound rests above the best configuration, cycles of variables that disagree are
added as clusters, which tightens the linear program behind the bound. Each round decodes and polishes a
configuration.
References: Globerson and Jaakkola (2007), "Fixing max-product" (MPLP); Sontag, Globerson and Jaakkola (2011),
"Introduction to dual decomposition"; Kolmogorov (2015) (SRMP); Sontag et al. (2008, 2012) for clusters.
Cost of a round: the entries of all tables times their number of separators.
Use it for factors of any size, and where `trw-s` leaves a gap.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovia.inference.flat_graphs.flat_graph import FlatGraph, flat_graph
from markovia.inference.map_bounds.certified import Certified, nothing
from markovia.inference.map_bounds.cycle_search import LARGEST, CycleSearch
from markovia.inference.map_bounds.dual_regions import Regions
from markovia.inference.map_bounds.trw_s import DualDetails, PairSweeps, TreeReweightedSearch, iteration_limit
from markovia.inference.problem import Problem
from markovia.inference.result import Ranked
from markovia.runtime.checks import CountOrNone, FromZero, TimeLimit, Tolerance
from markovia.runtime.clock import now

LEAST = 1e-6
"""A cluster has to promise this part of the gap."""
MOST_TABLES = 200_000
"""Models with more tables are not searched for clusters."""
ROUNDS = 8
"""Rounds between two additions of clusters, at least."""
AGAIN = 32
"""Rounds after a search that found no cluster before the next one."""
REST = 1e-3
"""A round that closes less than this part of the gap calls for clusters."""


@dataclass(frozen=True)
class DualDecomposition(Certified):
    """Most probable states by dual decomposition, with a bound that clusters tighten; also known as MPLP.

    Parameters
    ----------
    max_iterations
        Rounds there and back at most; by default 1000, or as many as fit into the time limit.
    tolerance
        Stop when the bound rests to this part of the gap and no cluster helps.
    tighten
        Whether to add clusters (never done where there are more than 200,000 factors).
    max_clusters
        How many clusters to add at most.
    time_limit
        Seconds after which the best configuration so far is returned.

    Examples
    --------
    >>> import markovia as mk
    >>> model = mk.generators.ising_grid(6, 6, coupling="random", field="random", seed=1)
    >>> found = model.map(engine="dual-decomposition")
    >>> found.info.exact, found.gap
    (True, 0.0)
    """

    max_iterations: CountOrNone = None
    tolerance: Tolerance = 1e-5
    tighten: bool = True
    max_clusters: FromZero = 20_000
    time_limit: TimeLimit = None

    name: ClassVar[str] = "dual-decomposition"

    def _solve(self, problem: Problem) -> Ranked:
        """Return the best configuration that was found, with a bound."""
        deadline = np.inf if self.time_limit is None else now() + self.time_limit
        graph = flat_graph(problem)
        if graph.log_scale == -np.inf:
            return nothing()
        return _Descent(self, graph, deadline).run()


class _Descent:
    """Rounds of one run: pairwise models start with the faster sweeps of `trw-s`, until clusters are needed."""

    def __init__(self, engine: DualDecomposition, graph: FlatGraph, deadline: float) -> None:
        self.engine, self.graph, self.deadline = engine, graph, deadline
        self.search = TreeReweightedSearch(graph)
        self.pairs = PairSweeps(graph) if np.all(graph.arity == 2) else None
        self.regions = None if self.pairs is not None else Regions(graph)
        self.cycles: CycleSearch | None = None
        self.added = 0

    @property
    def sweeps(self) -> "PairSweeps | Regions":
        """Whatever holds the potentials now."""
        found = self.regions if self.regions is not None else self.pairs
        assert found is not None
        return found

    def run(self) -> Ranked:
        """Descend until the gap is closed, nothing helps, or time is up."""
        engine, search = self.engine, self.search
        trace: list[float] = []
        since = iteration = 0
        rests = False
        exhausted = not engine.tighten or self.graph.n_factors > MOST_TABLES
        most = iteration_limit(engine.max_iterations, engine.time_limit)
        while iteration < most:
            iteration += 1
            since += 1
            finished = self.sweeps.there_and_back(self.deadline)
            bound = self.sweeps.bound
            if bound == -np.inf:
                return nothing()
            trace.append(bound)
            if iteration < 4 or iteration % 4 == 0 or not finished:
                search.offer(self.sweeps.decoded())
            if search.done(bound) or not finished or now() > self.deadline:
                break
            if since < ROUNDS:
                continue
            fall, gap = (trace[-4] - trace[-1]) / 3, search.gap(bound)
            if not exhausted and fall <= REST * gap:
                search.offer(self.sweeps.decoded())
                if search.done(bound):
                    break
                tightened = self._tightened(gap)
                since = 0 if tightened else -AGAIN
                if tightened or fall > engine.tolerance * gap:
                    continue
                exhausted = True
            if exhausted and fall <= engine.tolerance * gap:
                rests = True
                break
        for _ in range(2):
            search.offer(self.sweeps.decoded())
        details = DualDetails(tuple(trace), self.added)
        other = "engines.LinearProgram(integer=True)"
        return search.answer(self.sweeps.bound, iteration, rests, details, other)

    def _tightened(self, gap: float) -> bool:
        """Add separators or clusters; False if there are none to add."""
        if self.regions is None:
            assert self.pairs is not None
            self.pairs.there_and_back()
            self.regions = Regions(self.graph)
            self.regions.adopt(*self.pairs.reparametrised(), self.pairs.bound)
        if self.cycles is None:
            self.cycles = CycleSearch(self.regions)
            if self.regions.share_intersections(LARGEST):
                return True
        most = min(max(20, len(self.cycles.pairs) // 10), self.engine.max_clusters - self.added)
        found = self.cycles.best(self.search.codes, most, LEAST * gap) if most > 0 else []
        if found:
            self.regions.add(found)
            self.added += len(found)
        return bool(found)
