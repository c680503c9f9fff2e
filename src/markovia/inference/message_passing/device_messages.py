"""Loopy belief propagation on the GPU, for models whose tables are over two variables: every message of a round at once.

The schedules are those of `schedules`, as far as they can go side by side: "flooding" sends all messages from those of the
round before; "sequential" goes through the colours of the edges (tables of one colour share no variable), each with the
newest messages, so a grid takes four launches a round. Damping, the measure of change and the fixed points are the same;
numbers are double. Changes are looked at every few rounds. Beliefs and the Bethe free energy are then worked out on the
processor from the messages, as ever.
Cost of a round: every message reads those that its sender gets, and one table.
"""

from typing import Any

import numpy as np

from markovia.inference.flat_graphs.padded_links import PaddedLinks, padded_links, why_no_links
from markovia.inference.message_passing.message_graph import MessageGraph
from markovia.inference.message_passing.schedules import SUM, Messages, ScheduleSettings, first_messages
from markovia.runtime.array_types import Array
from markovia.runtime.clock import now
from markovia.runtime.devices import cuda_module
from markovia.runtime.libraries import cp

GPU_FROM = 100_000
"""Variables from which on a GPU pays, where the engine may choose."""
BLOCK, MOST_BLOCKS = 256, 4096
MOST_ROUNDS = 64
"""Rounds after which changes are looked at, at the latest."""
MOST_DEGREE = 31
"""Tables of a variable up to which edges are coloured."""
NONE = np.intp(0)
"""A pointer to nothing."""


def why_not_here(graph: MessageGraph, kind: int, schedule: str) -> str:
    """Say why messages cannot run on the GPU; nothing where they can."""
    if kind != SUM:
        return "messages in logarithms run on the processor"
    if schedule == "residual":
        return "the residual schedule sends one message after the other"
    if not graph.only_pairs:
        return "messages on the GPU are for tables over two variables"
    if schedule == "sequential" and np.diff(graph.edge_ptr).max(initial=0) > MOST_DEGREE:
        return (
            f"a variable is in more than {MOST_DEGREE} tables, which the sequential schedule takes one by one"
        )
    return why_no_links(graph.flat)


def device_messages(graph: MessageGraph, settings: ScheduleSettings) -> Messages:
    """Run sum-product messages until none moves by more than the tolerance, or iterations or time run out."""
    begun, links = now(), padded_links(graph.flat)
    run = DeviceRun(graph, links, first_messages(graph, SUM, settings), settings)
    rounds, error, trace = 0, np.inf, []
    while rounds < settings.max_iterations and error >= settings.tolerance:
        if rounds and settings.time_limit is not None and now() - begun > settings.time_limit:
            break
        moves = run.rounds(min(max(1, rounds // 8), MOST_ROUNDS, settings.max_iterations - rounds))
        rounds, error = rounds + len(moves), float(moves[-1])
        possible = bool(np.isfinite(moves).all())
        trace.append((rounds, error if possible else 0.0))
        if not possible:
            return Messages(SUM, *run.messages(), True, rounds, 0.0, False, tuple(trace), "gpu")
    return Messages(
        SUM, *run.messages(), error < settings.tolerance, rounds, error, True, tuple(trace), "gpu"
    )


class DeviceRun:
    """Messages into variables on the device, and the groups of links that are sent together."""

    def __init__(
        self, graph: MessageGraph, links: PaddedLinks, first: Array, settings: ScheduleSettings
    ) -> None:
        self.graph, self.edge, self.states = graph, links.edge, links.states
        count = len(links.edge)
        link_of = np.empty(count, dtype=np.int32)
        link_of[links.edge] = np.arange(count, dtype=np.int32)
        self.groups: list[tuple[int, Any]] = [(count, NONE)]
        self.flooding = settings.schedule == "flooding"
        if not self.flooding:
            from markovia.kernels.flat_graphs.edge_colours import colour_edges

            colours = np.zeros(count // 2, dtype=np.int64)
            colour_edges(
                np.ascontiguousarray(graph.scope), np.zeros(len(links.order), dtype=np.int64), colours
            )
            ends = link_of.reshape(-1, 2)
            parts = [np.sort(ends[colours == c], axis=None) for c in range(colours.max(initial=0) + 1)]
            self.groups = [(len(part), cp.asarray(part)) for part in parts]
        self.real = np.arange(self.states) < graph.flat.cards[graph.scope][:, None]
        padded = np.zeros((count, self.states))
        padded[self.real] = first
        self.incoming = cp.asarray(padded[links.edge])
        self.fresh = cp.empty_like(self.incoming) if self.flooding else self.incoming
        self.model = [
            cp.asarray(a)
            for a in (links.ptr, links.other, link_of[links.edge ^ 1], links.base, links.tables, links.unary)
        ]
        self.damping = np.float64(settings.damping)
        self.send = cuda_module("pair_messages", (f"STATES={self.states}",)).get_function("send_messages")

    def rounds(self, number: int) -> Array:
        """Send all messages so many times; return the largest change of each round, infinity where one vanished."""
        moved = cp.zeros(number, dtype=np.uint64)
        for r in range(number):
            for count, listed in self.groups:
                blocks = min(-(-count // BLOCK), MOST_BLOCKS)
                self.send(
                    (blocks,), (min(BLOCK, -(-count // 32) * 32),),
                    (np.int32(count), listed, *self.model, self.incoming, self.fresh, self.damping, moved[r:]),
                )  # fmt: skip
            self.incoming, self.fresh = self.fresh, self.incoming
        found: Array = cp.asnumpy(moved).view(np.float64)
        return found

    def messages(self) -> tuple[Array, Array]:
        """Return the messages into variables as `Messages` holds them, and room for those into factors."""
        padded = np.empty((len(self.edge), self.states))
        padded[self.edge] = cp.asnumpy(self.incoming)
        incoming = padded[self.real]
        return incoming, np.ones_like(incoming)
