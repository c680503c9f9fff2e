"""What searches for a best configuration share: finite scores, starts, the best so far, the clock and the answer.

Zeros have no finite log. Here each counts as one violated table, scored below anything that the finite entries of all tables
together can make up for: fewer violations always win, then the larger weight. A search may thus walk through impossible
configurations; the answer's weight is computed from the tables themselves.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.tables.variable import State
from markovia.inference.flat_graphs.flat_graph import FlatGraph, flat_graph
from markovia.inference.problem import Problem
from markovia.inference.result import Assignment, Ranked, Record
from markovia.kernels.flat_graph import Graph
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Whole
from markovia.runtime.clock import Clock

TABLES = Whole(4, 2**30)
"""What a search may be told as the most entries of a table."""
TRACE = 10_000
"""Improvements that are remembered at most."""


@dataclass(frozen=True)
class SearchSpace:
    """A problem ready for search: the flat graph and finite scores of all table entries.

    Attributes
    ----------
    graph
        The free variables and the factors between them.
    unary, values
        The logs of the graph's tables; a zero is minus `penalty`.
    penalty
        What a violated table costs: more than all finite entries together can differ.
    """

    graph: FlatGraph
    unary: Array
    values: Array
    penalty: float

    @cached_property
    def arrays(self) -> Graph:
        """The arrays as kernels take them."""
        return self.graph.arrays._replace(unary=self.unary, values=self.values)

    @cached_property
    def near(self) -> tuple[Ints, Ints]:
        """Who shares a factor with whom: pointers and numbers."""
        ptr, near = self.graph.neighbours()
        return ptr.astype(np.int64), near.astype(np.int64)

    @cached_property
    def bits(self) -> Array:
        """Log2 of the number of states of each variable."""
        return np.log2(self.graph.cards)

    def score(self, codes: Ints) -> float:
        """Return the score of a configuration: its log weight without scale, violated tables as penalties."""
        g = self.graph
        total = float(self.unary[g.starts[:-1] + codes].sum())
        if g.n_factors:
            where = np.add.reduceat(codes[g.scope] * g.strides, g.scope_ptr[:-1])
            total += float(self.values[g.table_ptr[:-1] + where].sum())
        return total

    def best_alone(self) -> Ints:
        """Return the configuration that the tables over one variable prefer."""
        return self.graph.largest_states(self.unary)

    def at_random(self, rng: np.random.Generator) -> Ints:
        """Return a random configuration."""
        return np.minimum(
            (rng.random(len(self.graph.cards)) * self.graph.cards), self.graph.cards - 1
        ).astype(np.int64)

    def read(self, start: Mapping[str, State]) -> Ints:
        """Return states by name as a configuration; every free variable must be there."""
        missing = [n for n in self.graph.names if n not in start]
        if missing:
            raise InvalidArgument(f"start= has no state for {missing[0]!r}")
        return np.array([v.index(start[v.name]) for v in self.graph.variables], dtype=np.int64)


def search_space(problem: Problem) -> SearchSpace:
    """Return a problem ready for search."""
    graph = flat_graph(problem)
    reach = 1.0
    for logs, ptr in ((graph.log_unary, graph.starts), (graph.log_values, graph.table_ptr)):
        if len(logs):
            finite = np.where(np.isneginf(logs), 0.0, logs)
            reach -= float(np.minimum.reduceat(finite, ptr[:-1]).sum())
    unary = np.where(np.isneginf(graph.log_unary), -reach, graph.log_unary)
    values = np.where(np.isneginf(graph.log_values), -reach, graph.log_values)
    return SearchSpace(graph, unary, values, reach)


@dataclass(frozen=True)
class SearchDetails:
    """What a search has to say.

    Attributes
    ----------
    moves, restarts
        Changes made, and starts after the first.
    trace
        When each improvement came, in seconds, and the log weight it reached.
    climbs, core, table_limit
        Of searches by regions: climbs that ended, variables that are left after easy ones are summed away, and entries
        of the largest region.
    """

    moves: int
    restarts: int
    trace: tuple[tuple[float, float], ...]
    climbs: int | None = None
    core: int | None = None
    table_limit: float | None = None


class Outcome(NamedTuple):
    """How a search ended: by its own rule or by the clock before it got anywhere, with a proof, and `SearchDetails`."""

    finished: bool
    exact: bool = False
    climbs: int | None = None
    core: int | None = None
    table_limit: float | None = None


class BestSoFar(Clock):
    """The clock of a search, with the best configuration so far and how it came about.

    `lift` turns what is noted into configurations of the space, for a search that runs on a part of it.
    """

    def __init__(
        self, space: SearchSpace, time_limit: float | None, progress: bool | None, name: str
    ) -> None:
        super().__init__(time_limit, progress, unit="change", scale=True, name=name)
        self.space = space
        self.lift: Callable[[Ints], Ints] = np.copy
        self.codes: Ints = np.zeros(0, dtype=np.int64)
        self.score = -np.inf
        self.iterations, self.moves, self.restarts = 0, 0, 0
        self.trace: list[tuple[float, float]] = []
        self._lock = Lock()

    def note(self, codes: Ints, score: float, iterations: int = 1, moves: int = 0) -> bool:
        """Count work done, remember a configuration if it is the best so far, and say whether it is."""
        with self._lock:
            self.iterations += iterations
            self.moves += moves
            better = score > self.score + 1e-9
            if better or not len(self.codes):
                self.codes, self.score = self.lift(codes), score
                if len(self.trace) < TRACE:
                    self.trace.append((self.seconds, self.space.graph.log_weight(self.codes)))
            self.advance(moves, f"best {self.trace[-1][1]:.6g}")
        return better

    def answer(self, found: Outcome) -> Ranked:
        """Return the best configuration as an engine's answer."""
        graph = self.space.graph
        log_weight = graph.log_weight(self.codes)
        if np.isneginf(log_weight) and found.exact:
            return Ranked(record=Record(exact=True))
        possible = bool(log_weight > -np.inf)
        record = Record(
            exact=found.exact or None,
            converged=(found.finished or found.exact) and possible and self.reason != "interrupted",
            iterations=self.iterations,
            bound=log_weight if found.exact else np.inf,
            advice="give it more time or more restarts"
            if possible
            else "it found no configuration of positive weight; try engine='large-neighbourhood' or more time",
            details=SearchDetails(self.moves, self.restarts, tuple(self.trace), *found[2:]),
        )
        return Ranked([Assignment(graph.assignment(self.codes), log_weight)], record)
