"""Max-product belief propagation: a most probable configuration from messages that maximise.

Method: as loopy belief propagation with maxima in place of sums, in logarithms (max-sum). A configuration is read off in
breadth-first order, each variable given the states chosen before it, so ties are broken consistently; single changes then
improve it as long as one does. Exact on forests, ties included. With loops nothing bounds the answer; where messages
converge without ties it beats all that differ only in parts with at most one loop each (Weiss and Freeman, 2001).
Cost of an iteration: one pass over all tables.
Use it for most probable states of large sparse models; `trw-s` and `dual-decomposition` also give a bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import numpy as np

from markovia.inference.approximate import Approximate
from markovia.inference.impossible_evidence import impossible
from markovia.inference.message_passing.message_graph import MessageGraph, message_graph
from markovia.inference.message_passing.schedules import (
    MAX,
    SMALL,
    Messages,
    Schedule,
    ScheduleSettings,
    message_buffers,
    propagate,
    send,
)
from markovia.inference.problem import Problem
from markovia.inference.result import Assignment, Ranked, Record, Tables
from markovia.kernels.messages.message_records import DecodingRoom
from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Ints
from markovia.runtime.checks import Count, Damping, FromZero, TimeLimit, WholeSeed

ADVICE = "try damping=0.5, schedule='residual' or restarts=10; the states are the best that were found"
MAX_POLISHING = 1000
_DECODING = "markovia.kernels.messages.max_decoding"


@dataclass(frozen=True)
class MaxProductDetails:
    """The schedule of the messages, damping, runs from different starts, and single changes that improved the result."""

    schedule: str
    damping: float
    runs: int
    polished: int


@dataclass(frozen=True)
class MaxProduct(Approximate):
    """Max-product belief propagation for most probable states.

    Parameters
    ----------
    schedule, damping, tolerance, max_iterations, time_limit, init, seed, absorb
        As in `LoopyBP`.
    restarts
        After a run that did not converge, try again up to so many times from random messages; the best states of all
        runs are kept.

    Examples
    --------
    >>> import markovia as mk
    >>> hmm = mk.examples.sprinkler()
    >>> found = hmm.map(given={"cloudy": "yes"}, engine="max-product")
    >>> found["rain"], found.info.exact, found.gap
    ('yes', True, 0.0)
    """

    schedule: Schedule = "sequential"
    damping: Damping = 0.0
    tolerance: Annotated[float, SMALL] = 1e-9
    max_iterations: Count = 1000
    time_limit: TimeLimit = None
    init: Literal["uniform", "random"] = "uniform"
    seed: WholeSeed = None
    restarts: FromZero = 0
    absorb: bool = True

    name: ClassVar[str] = "max-product"
    answers: ClassVar[frozenset[str]] = frozenset({"best"})

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> Ranked:
        """Return the best configuration that was found, with its bound: infinite unless proved best."""
        self._refuse_parts(problem, targets, m)
        graph = message_graph(problem, absorb=self.absorb, maximise=True)
        settings = self._settings()
        messages = propagate(graph, MAX, settings)
        if not messages.possible:
            raise impossible(problem, self._best_weight)
        codes, weight, changes = _configuration(graph, messages)
        runs = 1
        while not messages.converged and runs <= self.restarts:
            fresh = replace(settings, init="random", seed=(self.seed or 0) + runs)
            other = propagate(graph, MAX, fresh)
            found, value, more = _configuration(graph, other)
            if value > weight:
                codes, weight, changes = found, value, more
            if other.converged or other.error < messages.error:
                messages = other
            runs += 1
        proved = graph.is_forest and messages.converged
        reached = weight > -np.inf
        if proved and not reached:
            raise impossible(problem, self._best_weight)
        record = Record(
            engine=self.name,
            converged=bool(messages.converged and reached),
            iterations=messages.iterations,
            error=messages.error,
            exact=proved,
            bound=weight if proved else np.inf,
            advice=ADVICE if reached else "no states of positive weight were found; try damping=0.5",
            details=MaxProductDetails(
                "two passes" if graph.is_forest else self.schedule, self.damping, runs, changes
            ),
        )
        names = graph.flat.names[: graph.n_real]
        assignment = dict(zip(names, codes[: graph.n_real].tolist(), strict=True))
        return Ranked([Assignment({n: assignment[n] for n in targets}, weight)], record)

    def max_marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return for each state of each target the weight of the best configuration with it, the best of all being one."""
        from markovia.kernels.messages.messages import beliefs

        graph = message_graph(problem, absorb=self.absorb, maximise=True)
        messages = propagate(graph, MAX, self._settings())
        flat = np.zeros(int(graph.flat.starts[-1]))
        record = Record(
            converged=messages.converged,
            iterations=messages.iterations,
            error=messages.error,
            exact=bool(graph.is_forest and messages.converged),
        )
        if not messages.possible:
            return Tables([], -np.inf, record)
        beliefs(graph.log_arrays, MAX, messages.incoming, flat)
        return Tables(graph.flat.tables(flat, targets), np.nan, record)

    def _best_weight(self, problem: Problem) -> float:
        """Return the log weight of the best states found; minus infinity where messages show that there are none."""
        graph = message_graph(problem, absorb=self.absorb, maximise=True)
        messages = propagate(graph, MAX, self._settings())
        if not messages.possible:
            return -np.inf
        weight = _configuration(graph, messages)[1]
        return weight if graph.is_forest or weight > -np.inf else np.nan

    def _settings(self) -> ScheduleSettings:
        return ScheduleSettings(
            self.schedule,
            self.damping,
            self.tolerance,
            self.max_iterations,
            self.time_limit,
            self.init,
            self.seed,
        )


def _configuration(graph: MessageGraph, messages: Messages) -> tuple[Ints, float, int]:
    """Return the states that messages lead to after polishing, their log weight, and the changes that polishing made."""
    cards = graph.flat.cards
    state = np.full(len(cards), -1, dtype=np.int64)
    arrays = graph.log_arrays
    room, score = np.empty(graph.room), np.empty(max(1, int(cards.max(initial=1))))
    width = int(np.diff(graph.scope_ptr).max(initial=1))
    decoding = DecodingRoom(messages.outgoing, state, room, score, *np.empty((2, width), dtype=np.int64))
    order, _ = graph.walk
    send(graph, MAX, np.arange(len(cards)), message_buffers(graph, messages.incoming, messages.outgoing))
    steps = 4.0 * (len(arrays.scope) + len(arrays.values) * width + len(arrays.codes))
    decode, polish, log_weight = (
        either(f"{_DECODING}:{name}", steps) for name in ("decode", "polish", "log_weight")
    )
    decode(arrays, order[order >= 0], messages.incoming, decoding)
    changes = 0
    for _ in range(MAX_POLISHING):
        made = int(polish(arrays, decoding))
        changes += made
        if not made:
            break
    return state, float(log_weight(arrays, state)) + graph.log_scale, changes
