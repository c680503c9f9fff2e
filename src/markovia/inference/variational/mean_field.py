"""Naive mean field: the best product of independent distributions, by coordinate ascent.

Method: maximise the evidence lower bound

    ELBO(q) = sum over factors of E_q[log f] + entropy(q)  <=  log Z,        q(x) = q_1(x_1) q_2(x_2) ...

one distribution at a time: q_i is proportional to exp of the expected log of everything that mentions x_i. Each update
is the exact maximum over q_i, so the bound never falls; the end is a local maximum and depends on the start, which is
why there are restarts. References: Peterson & Anderson (1987); Jordan, Ghahramani, Jaakkola & Saul (1999); Wainwright &
Jordan (2008), chapter 5. Cost of a sweep: about twice the entries of all tables for each variable of a table's scope.
Use it for a guaranteed lower bound on log Z of a model that is too wide for exact inference. Marginals tend to be too sure
of themselves where couplings are strong.

Zeros: a product distribution has a finite bound only if no zero entry gets mass. The states that arc consistency rules out
are removed first. If zeros are left, ascent starts at single configurations of positive weight, from where it gives mass to
other states as far as the zeros allow.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from markovia.errors import TooLarge, Unanswered
from markovia.inference.approximate import Approximate
from markovia.inference.flat_graphs.consistent_states import States, configuration, consistent_states
from markovia.inference.flat_graphs.flat_graph import FlatGraph, codes_of, flat_graph
from markovia.inference.map_bounds.certified import polished
from markovia.inference.problem import Problem
from markovia.inference.result import Assignment, Course, Ranked, Record, Tables
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, TimeLimit, Tolerance, WholeSeed
from markovia.runtime.clock import now
from markovia.runtime.seeds import generator
from markovia.runtime.threads import in_parallel

SLICE = 2e7
"""Table entries one call of compiled code works through before the clock is looked at."""
SOFT_ZERO = -1e4
"""Log weight of a zero entry while nobody knows a configuration of positive weight."""


_NONE = np.zeros(0)


@dataclass(frozen=True)
class Ascent:
    """Where coordinate ascent ended.

    Attributes
    ----------
    q
        The distributions of all variables one after the other.
    elbo, trace
        The bound at the end and after every sweep; minus infinity while zero entries have mass.
    sweeps, change
        Sweeps made and the largest change of a probability in the last one.
    """

    q: Array
    elbo: float
    trace: Array
    sweeps: int
    change: float


@dataclass(frozen=True)
class AscentDetails:
    """The evidence lower bound, its course, and the clusters where there are any."""

    elbo: float
    elbo_trace: Array
    clusters: tuple[tuple[str, ...], ...] = ()

    @property
    def course(self) -> Course:
        """How the bound rose."""
        bounds = tuple(float(b) for b in np.ravel(self.elbo_trace))
        return Course(tuple(range(len(bounds))), bounds, "evidence lower bound", "sweep")


@dataclass(frozen=True)
class MeanField(Approximate):
    """Naive mean field with restarts; its log partition function is a lower bound.

    A joint of several variables is P(a) P(b | a) ..., each from a run of its own, so it keeps the dependence that a product
    of marginals would lose.

    Parameters
    ----------
    restarts
        Ascents from different starts; the one with the best bound answers. The first starts near the single-variable
        tables, the others at random.
    max_iterations
        Sweeps over all variables in one ascent.
    tolerance
        An ascent has converged when no probability changes by more than this in a sweep.
    time_limit
        Seconds; what is best by then answers.
    seed
        Seed of the random starts.

    Examples
    --------
    >>> import markovia as mk
    >>> grid = mk.generators.ising_grid(3, 3, coupling=0.2, field=0.3)
    >>> engine = mk.engines.MeanField()
    >>> bool(grid.log_partition(engine=engine) <= grid.log_partition())
    True
    >>> grid.query("x0_0", engine=engine).info.mass_bound
    'lower'
    """

    restarts: Count = 4
    max_iterations: Count = 1000
    tolerance: Tolerance = 1e-7
    time_limit: TimeLimit = None
    seed: WholeSeed = 0

    name: ClassVar[str] = "mean-field"
    answers: ClassVar[frozenset[str]] = frozenset({"joint", "marginals", "log_mass", "best"})

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return each target's distribution in the best product found; the mass is NaN where that has no finite bound."""
        graph = flat_graph(problem, targets)
        found = self.ascend(graph, problem)
        if found is None:
            return Tables([], -np.inf)
        mass = found.elbo if np.isfinite(found.elbo) else np.nan
        return Tables(graph.tables(found.q, targets), mass, self.record(found))

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> Ranked:
        """Return the most probable states of the product distribution, improved by single changes."""
        self._refuse_parts(problem, targets, m)
        graph = flat_graph(problem)
        found = self.ascend(graph, problem)
        if found is None:
            return Ranked()
        codes = polished(graph, graph.largest_states(found.q))
        weight = graph.log_weight(codes)
        if weight == -np.inf:
            raise Unanswered(
                f"engine {self.name!r} found no configuration of positive weight; use engine='junction-tree'"
            )
        record = replace(self.record(found), bound=np.inf)
        return Ranked([Assignment(graph.assignment(codes), weight)], record)

    def record(self, found: Ascent) -> Record:
        """Return what an answer says about the ascent it came from."""
        return Record(
            converged=bool(found.change <= self.tolerance and np.isfinite(found.elbo)),
            iterations=found.sweeps,
            error=found.change,
            mass_bound="lower",
            advice="raise max_iterations, or use 'loopy-bp' or 'tree-reweighted'",
            details=AscentDetails(found.elbo, found.trace),
        )

    def ascend(self, graph: FlatGraph, problem: Problem | None = None) -> Ascent | None:
        """Return the best of several ascents; None if no configuration has any weight."""
        start = now()
        end = np.inf if self.time_limit is None else start + self.time_limit
        states = consistent_states(graph)
        if not states.possible:
            return None
        rng = generator(self.seed)
        starts: list[Array] = []
        softened = False
        for k in range(self.restarts):
            q, certain = _start(graph, states, rng, k == 0)
            if q is None and k == 0 and not certain:
                q, certain = _exact_start(graph, problem)
            if certain:
                return None
            if q is None:
                if starts:
                    break
                q, softened = _spread(graph, states, rng, 0.1), True
            starts.append(q)
            if states.free is False and now() > end:
                break
        masked = graph.log_unary.copy()
        masked[~states.alive] = -np.inf
        logs = np.maximum(graph.log_values, SOFT_ZERO) if softened else graph.log_values
        run = Sweeps(graph, masked, logs)

        def work(q: Array, room: Any) -> Ascent:
            return run.ascend(q, self.max_iterations, self.tolerance, end, room)

        results = in_parallel(work, starts, graph.averaging_room)
        top = max(results, key=lambda r: r.elbo)
        if not softened:
            return top
        true = Sweeps(graph, masked, graph.log_values)
        return replace(top, elbo=true.elbo(top.q, graph.averaging_room()))


class Sweeps:
    """A graph prepared for coordinate ascent."""

    def __init__(self, graph: FlatGraph, log_unary: Array, logs: Array) -> None:
        self.graph = graph
        self.arrays = graph.arrays._replace(unary=log_unary, values=logs)
        sizes = np.diff(graph.table_ptr)
        arity = graph.arity
        self.work = np.bincount(
            graph.scope, weights=2.0 * sizes[graph.edge_factor], minlength=len(graph.cards)
        )
        self.total = float((2.0 * sizes * (arity + 1)).sum()) + len(graph.unary) + 1.0
        self.order: Ints = np.arange(len(graph.cards), dtype=np.int64)

    def ascend(
        self, q: Array, max_sweeps: int, tolerance: float, end: float, room: tuple[Array, Array, Array]
    ) -> Ascent:
        """Sweep from `q` until nothing changes, the sweeps are made or the time is over."""
        from markovia.kernels.messages.mean_field import ascend

        at_once = int(SLICE / self.total)
        trace: list[Array] = []
        done, change = 0, np.inf
        while done < max_sweeps and change > tolerance:
            if at_once >= 1:
                part = np.empty(min(at_once, max_sweeps - done))
                n, change = ascend(self.arrays, self.order, q, *room, tolerance, part)
                trace.append(part[:n])
                done += n
            else:
                change = self._sweep(q, room, end)
                trace.append(np.array([self.elbo(q, room) - self.graph.log_scale]))
                done += 1
            if now() > end:
                break
        bounds = np.concatenate(trace) + self.graph.log_scale if trace else np.empty(0)
        return Ascent(q, float(bounds[-1]), bounds, done, float(change))

    def elbo(self, q: Array, room: tuple[Array, Array, Array]) -> float:
        """Return the bound at a product distribution."""
        from markovia.kernels.messages.mean_field import bound

        total = self.graph.log_scale
        step = max(1, int(self.graph.n_factors * SLICE / self.total))
        for first in range(0, max(1, self.graph.n_factors), step):
            total += bound(self.arrays, first, min(first + step, self.graph.n_factors), q, *room)
        return float(total)

    def _sweep(self, q: Array, room: tuple[Array, Array, Array], end: float) -> float:
        """Make one sweep in slices; if the time ends inside it, infinity says that it did."""
        from markovia.kernels.messages.mean_field import ascend

        change = 0.0
        cuts = np.searchsorted(np.cumsum(self.work), np.arange(SLICE, self.total, SLICE))
        pieces = np.unique(np.concatenate(([0], cuts + 1, [len(self.order)])).clip(0, len(self.order)))
        for first, last in pairwise(pieces.tolist()):
            _, part = ascend(self.arrays, self.order[first:last], q, *room, 0.0, _NONE)
            change = max(change, part)
            if now() > end and last < len(self.order):
                return np.inf
        return change


def _start(
    graph: FlatGraph, states: States, rng: np.random.Generator, near: bool
) -> tuple[Array | None, bool]:
    """Return distributions of finite bound, or None; and whether it is certain that there are none."""
    if states.free:
        return _spread(graph, states, rng, 0.1 if near else 3.0), False
    codes, certain = configuration(graph, states, rng)
    return (None, certain) if codes is None else (_points(graph, codes), False)


def _spread(graph: FlatGraph, states: States, rng: np.random.Generator, noise: float) -> Array:
    """Return distributions near the single-variable tables, with noise on their logs."""
    q = np.where(states.alive, np.maximum(graph.unary, 1e-300), 0.0)
    q *= np.exp(noise * rng.standard_normal(len(q)))
    return _normalised(graph, q)


def _exact_start(graph: FlatGraph, problem: Problem | None) -> tuple[Array | None, bool]:
    """Ask an exact engine for the best configuration, where it can."""
    if problem is None:
        return None, False
    from markovia.inference.exact.junction_tree import JunctionTree

    try:
        found = JunctionTree().best(problem, problem.free, 1)
    except TooLarge:
        return None, False
    if not found or found[0].log_weight == -np.inf:
        return None, True
    return _points(graph, codes_of(graph, found[0].codes)), False


def _points(graph: FlatGraph, codes: Ints) -> Array:
    q = np.zeros(len(graph.unary))
    q[graph.starts[:-1] + codes] = 1.0
    return q


def _normalised(graph: FlatGraph, q: Array) -> Array:
    if not len(graph.cards):
        return q
    q = q / np.repeat(np.maximum.reduceat(q, graph.starts[:-1]), graph.cards)
    return np.asarray(q / np.repeat(np.add.reduceat(q, graph.starts[:-1]), graph.cards))
