"""Running messages on a factor graph until they no longer change: the schedules that sum- and max-product share.

- A forest needs no iteration: every node sends once towards the roots and once back, and the messages are exact.
- "flooding": all variables send, then all factors, from the messages of the round before; in several threads where
  that pays. The factors of a chain (see `causal_chains`) send there and back in each round.
- "sequential": nodes send one after the other, in breadth-first order and back, from the newest messages.
- "residual": always the factor whose incoming messages have moved most since it last sent (Sutton and McCallum, 2007).
"""

from dataclasses import dataclass
from itertools import pairwise
from math import inf
from threading import get_ident
from typing import Literal

import numpy as np

from markovia.inference.message_passing.message_graph import MessageGraph
from markovia.kernels.messages.message_records import FactorQueue, MessageBuffers, SweepLimits
from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import NumberRange
from markovia.runtime.clock import now
from markovia.runtime.devices import Device
from markovia.runtime.threads import in_parallel, thread_count

Schedule = Literal["flooding", "sequential", "residual"]
SMALL = NumberRange(0.0, 1.0, open="both", said="a small positive number")
SUM, LOG_SUM, MAX = 0, 1, 2
PARALLEL_FROM = 400_000
"""States of all messages together from which flooding uses threads."""
SLICE = 4_000_000
"""States that one call of a kernel may pass over before the clock is looked at."""
_BLOCKS = 16
_NONE = np.zeros(0)
ONCE = SweepLimits(0.0, 0.0, 1)


@dataclass(frozen=True)
class ScheduleSettings:
    """How messages are run."""

    schedule: Schedule
    damping: float
    tolerance: float
    max_iterations: int
    time_limit: float | None
    init: Literal["uniform", "random"]
    seed: int | None


@dataclass(frozen=True)
class Messages:
    """The last messages: factors to variables and variables to factors.

    Attributes
    ----------
    kind
        SUM, LOG_SUM or MAX.
    incoming, outgoing
        Messages into variables, messages into factors.
    converged, iterations, error
        Whether the last change was below the tolerance, the iterations made, and that change in probability.
    possible
        Whether no message vanished. If one did, no configuration has any weight.
    trace
        How far the messages moved, after how many iterations.
    device
        What computed them.
    """

    kind: int
    incoming: Array
    outgoing: Array
    converged: bool
    iterations: int
    error: float
    possible: bool
    trace: tuple[tuple[int, float], ...] = ()
    device: Device = "cpu"


def propagate(graph: MessageGraph, kind: int, settings: ScheduleSettings) -> Messages:
    """Run messages until none moves by more than the tolerance, or iterations or time run out."""
    if not np.isfinite(graph.log_scale):
        nothing = np.zeros(0)
        return Messages(kind, nothing, nothing, True, 0, 0.0, False)
    run = _ScheduleRun(graph, kind, settings)
    if graph.is_forest:
        run.two_passes()
    elif settings.schedule == "flooding":
        run.flooding()
    elif settings.schedule == "sequential":
        run.sequential()
    else:
        run.residual()
    converged = run.error < settings.tolerance and run.possible
    return Messages(
        kind, *run.buffers[:2], converged or not run.possible, run.rounds, run.error, run.possible,
        tuple(run.trace),
    )  # fmt: skip


class _ScheduleRun:
    """The buffers of one run."""

    def __init__(self, graph: MessageGraph, kind: int, settings: ScheduleSettings) -> None:
        self.graph = graph
        self.kind = kind
        self.settings = settings
        outgoing = np.full(int(graph.message_ptr[-1]), 1.0 if kind == SUM else 0.0)
        self.buffers = message_buffers(graph, first_messages(graph, kind, settings), outgoing)
        self.started = now()
        self.rounds = 0
        self.error = 0.0
        self.possible = True
        self.trace: list[tuple[int, float]] = []

    def two_passes(self) -> None:
        """Send from the leaves to the roots and back; half of that would be worth nothing, so no time limit stops it."""
        order, _ = self.graph.walk
        if self._sweep(order, True, 0.0, whole=True) and self._sweep(order, False, 0.0, whole=True):
            self.error = 0.0
        self.rounds = 1

    def sequential(self) -> None:
        """Sweep in breadth-first order and back until nothing moves."""
        order, _ = self.graph.walk
        while self._go_on():
            self.error = 0.0
            self.rounds += 1
            if not self._sweep(order, True, self.settings.damping):
                return
            if not self._sweep(order, False, self.settings.damping):
                return
            self.trace.append((self.rounds, self.error))

    def flooding(self) -> None:
        """Make rounds in which all variables and then all factors send."""
        graph = self.graph
        if len(self.buffers.incoming) >= PARALLEL_FROM and thread_count() > 1:
            self._parallel_flooding()
            return
        each = max(1, len(self.buffers.incoming) + len(graph.flat.values) + len(graph.logs))
        while self._go_on():
            rounds = min(
                max(1, SLICE // each), self.settings.max_iterations - self.rounds, self._until_a_look()
            )
            made, moved = self._send(graph.flooding, self.settings.damping, rounds=rounds)
            self.rounds += made
            if not self._moved(moved):
                return

    def _parallel_flooding(self) -> None:
        graph, dense = self.graph, self.graph.flat.n_factors
        first = [np.arange(*b) for b in _blocks(graph.edge_ptr, 0, len(graph.flat.cards))]
        ranges = _blocks(graph.scope_ptr, 0, graph.n_plain) + _blocks(graph.scope_ptr, dense, graph.n_factors)
        then = [-1 - np.arange(*b) for b in ranges] + [graph.chain_order(*b) for b in _chain_blocks(graph)]
        rooms: dict[int, MessageBuffers] = {}

        def room() -> MessageBuffers:
            return rooms.setdefault(get_ident(), message_buffers(graph, *self.buffers[:2]))

        def work(order: Ints, own: MessageBuffers) -> float:
            return self._send(order, self.settings.damping, own)[1]

        while self._go_on():
            in_parallel(work, first, room)
            moves = in_parallel(work, then, room)
            self.rounds += 1
            if not self._moved(min(moves) if min(moves) < 0 else max(moves)):
                return

    def residual(self) -> None:
        """Update the most urgent factor until none is urgent."""
        from markovia.kernels.messages.messages import residual

        graph = self.graph
        count = graph.n_factors
        queue = FactorQueue(np.arange(count), np.arange(count), np.ones(count))
        each = max(1, (len(self.buffers.incoming) + len(graph.flat.values) + len(graph.logs)) // count)
        made, most = 0, self.settings.max_iterations * count
        arrays = graph.arrays if self.kind == SUM else graph.log_arrays
        while self._go_on():
            steps = min(max(1, SLICE // (4 * each)), most - made, count * self._until_a_look())
            limits = SweepLimits(self.settings.damping, self.settings.tolerance, steps)
            steps, moved = residual(arrays, self.kind, limits, queue, self.buffers)
            made += int(steps)
            self.rounds = -(-made // count)
            if not self._moved(float(moved)):
                return
            if made >= most:
                return

    def _sweep(self, order: Ints, backward: bool, damping: float, whole: bool = False) -> bool:
        """Let nodes send one after the other, all of them or until time is up; whether no message vanished."""
        graph = self.graph
        each = max(1, (len(self.buffers.incoming) + len(graph.flat.values)) // max(1, len(order)))
        size = max(1, SLICE // each)
        starts = range(0, len(order), size)
        last = 0 if backward or not starts else starts[-1]
        for a in reversed(starts) if backward else starts:
            _, moved = self._send(order[a : a + size], damping, backward=backward)
            if moved < 0.0:
                self.possible = False
                return False
            self.error = max(self.error, moved)
            if not whole and a != last and self._late():
                self.error = max(self.error, self.settings.tolerance)  # part of a sweep proves nothing
                break
        return True

    def _send(
        self,
        order: Ints,
        damping: float,
        buffers: MessageBuffers | None = None,
        *,
        rounds: int = 1,
        backward: bool = False,
    ) -> tuple[int, float]:
        """Let nodes send in order; the rounds made and the last move (negative: a message vanished)."""
        limits = SweepLimits(damping, self.settings.tolerance, rounds)
        return send(self.graph, self.kind, order, buffers or self.buffers, limits, backward=backward)

    def _moved(self, moved: float) -> bool:
        """Take in the last move; whether to go on."""
        self.possible = moved >= 0.0
        self.error = max(moved, 0.0)
        self.trace.append((self.rounds, self.error))
        return self.possible

    def _until_a_look(self) -> int:
        """Return for how many iterations a kernel runs on its own: few at first, so that the trace shows the start."""
        return max(1, self.rounds // 8)

    def _late(self) -> bool:
        limit = self.settings.time_limit
        return limit is not None and now() - self.started > limit

    def _go_on(self) -> bool:
        if self.rounds == 0:
            return True
        if self.error < self.settings.tolerance or self.rounds >= self.settings.max_iterations:
            return False
        return not self._late()


def send(
    graph: MessageGraph,
    kind: int,
    order: Ints,
    buffers: MessageBuffers,
    limits: SweepLimits = ONCE,
    *,
    backward: bool = False,
    log_z: Array = _NONE,
) -> tuple[int, float]:
    """Let nodes send in order; the rounds made and the last move (negative: a message vanished).

    If `log_z` is given, factors do not send but write there the log of their total weight under the incoming messages.
    """
    if kind == SUM and graph.only_pairs:
        from markovia.kernels.messages.pair_sweeps import sweep_pairs

        made, moved = sweep_pairs(graph.arrays, limits, order, backward, buffers, log_z)
    else:
        arrays = graph.arrays if kind == SUM else graph.log_arrays
        # a decision needs few rounds, and sums are asked for again and again
        each = 20.0 * len(buffers.incoming) + 8.0 * (len(arrays.values) + len(arrays.codes))
        steps = limits.rounds * each if kind == MAX else inf
        sweeps = either("markovia.kernels.messages.messages:sweeps", steps)
        made, moved = sweeps(arrays, kind, limits, order, backward, buffers, log_z)
    return int(made), float(moved)


def first_messages(graph: MessageGraph, kind: int, settings: ScheduleSettings) -> Array:
    """Return the first messages."""
    sizes = graph.flat.cards[graph.scope]
    if settings.init == "uniform":
        first = np.repeat(1.0 / np.maximum(sizes, 1), sizes)
    else:
        rng = np.random.default_rng(settings.seed)
        first = rng.random(int(graph.message_ptr[-1])) + 0.05
        if len(first):
            first /= np.repeat(np.add.reduceat(first, graph.message_ptr[:-1]), sizes)
    return first if kind == SUM else np.log(first)


def message_buffers(graph: MessageGraph, incoming: Array, outgoing: Array) -> MessageBuffers:
    """Return messages with room for a kernel to work in."""
    return MessageBuffers(incoming, outgoing, np.empty(graph.room), np.empty(512, dtype=np.int64))


def _blocks(pointers: Ints, first: int, last: int) -> list[tuple[int, int]]:
    """Cut a range of nodes into stretches with about equally many edges."""
    if first >= last:
        return []
    marks = np.linspace(pointers[first], pointers[last], _BLOCKS + 1)
    cuts = np.unique(np.searchsorted(pointers[first : last + 1], marks)) + first
    cuts[0], cuts[-1] = first, last
    return [(int(a), int(b)) for a, b in pairwise(cuts)]


def _chain_blocks(graph: MessageGraph) -> list[tuple[int, int]]:
    """Return the stretches of factors that are one chain each, put together to few stretches."""
    first, last = graph.n_plain, graph.flat.n_factors
    if first == last:
        return []
    edges = slice(int(graph.scope_ptr[first]), int(graph.scope_ptr[last]))
    auxiliary = np.where(graph.scope[edges] >= graph.n_real, graph.scope[edges], -1)
    factor = graph.edge_factor[edges] - first
    low = np.full(last - first, np.iinfo(np.int64).max)
    np.minimum.at(low, factor[auxiliary >= 0], auxiliary[auxiliary >= 0])
    high = np.full(last - first, -1)
    np.maximum.at(high, factor, auxiliary)
    begins = np.concatenate(([0], np.flatnonzero(low[1:] > high[:-1]) + 1, [last - first]))
    chosen = begins[np.unique(np.linspace(0, len(begins) - 1, _BLOCKS + 1).astype(np.int64))] + first
    return [(int(a), int(b)) for a, b in pairwise(chosen)]


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
