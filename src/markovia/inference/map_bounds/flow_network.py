"""Minimum cuts of a network of pairs of arcs, solved in slices so that a clock or Ctrl-C can stop it.

Method, reference and cost: see `markovia.kernels.maximising.max_flow`.
"""

from dataclasses import dataclass

import numpy as np

from markovia.runtime.array_types import Array, Ints
from markovia.runtime.clock import now

SLICE = 20_000
"""Paths between two looks at the clock."""
RELATIVE = 1e-14
"""A residual capacity this small beside the largest one is rounding."""


@dataclass(frozen=True)
class Cut:
    """A minimum cut.

    Attributes
    ----------
    ones
        For each node 0 if it is on the source side and 1 if not.
    flow
        The value of the maximum flow, equal to that of the cut; infinite if every cut is.
    finished
        False if time ran out; then `flow` is only a lower bound and `ones` is no minimum cut.
    """

    ones: Ints
    flow: float
    finished: bool


class FlowNetwork:
    """Nodes between a source and a sink, linked by pairs of arcs; the links stay, the capacities change.

    Parameters
    ----------
    n
        The number of nodes, source and sink not counted.
    tails, heads
        The two nodes of each pair of arcs.

    Examples
    --------
    >>> network = FlowNetwork(2, np.array([0]), np.array([1]))
    >>> cut = network.cut(np.array([2.0]), np.array([0.0]), np.array([5.0, -1.5]))
    >>> cut.flow, cut.ones.tolist()
    (1.5, [0, 0])
    """

    def __init__(self, n: int, tails: Ints, heads: Ints) -> None:
        from markovia.kernels.maximising.max_flow import link_arcs

        self.n, m = n, len(tails)
        self.first, self.place = np.zeros(n + 1, dtype=np.int64), np.empty(m, dtype=np.int64)
        self.head, self.rev = np.empty((2, 2 * m), dtype=np.int32)
        pairs = [np.ascontiguousarray(ends, dtype=np.int64) for ends in (tails, heads)]
        link_arcs(*pairs, self.first, np.empty(n, dtype=np.int64), self.head, self.rev, self.place)

    def cut(self, there: Array, back: Array, terminal: Array, deadline: float = np.inf) -> Cut:
        """Return a minimum cut.

        Parameters
        ----------
        there, back
            The capacities from tail to head and from head to tail, zero or more, infinity included.
        terminal
            For each node the capacity from the source; if negative, that to the sink.
        deadline
            When to stop, on `runtime.clock.now`.
        """
        cap = np.zeros(len(self.head))
        cap[self.place] = there
        cap[self.rev[self.place]] = back
        return self.solve(cap, terminal, deadline)

    def solve(self, cap: Array, terminal: Array, deadline: float = np.inf) -> Cut:
        """Return a minimum cut for capacities in the order of the arcs; both arrays are used up."""
        from markovia.kernels.maximising.max_flow import CURRENT, DONE, SOURCE, STATE_SIZE, push_flow

        n = self.n
        terminal = np.array(terminal, dtype=np.float64)
        finite = max(_largest(cap), _largest(np.abs(terminal)))
        eps = RELATIVE * finite
        tree, waiting = np.zeros((2, n), dtype=np.int8)
        dist, ring, orphans = np.zeros((3, n), dtype=np.int32)
        state = np.zeros(STATE_SIZE, dtype=np.int64)
        arcs, flows = (self.first, self.head, self.rev), (cap, terminal)
        trees = tree, np.full(n, -1, dtype=np.int32), np.zeros(n, dtype=np.int64), dist
        queues = ring, orphans, waiting, state
        flow = 0.0
        finished = n == 0
        while not finished:
            flow += float(push_flow(SLICE, eps, n, arcs, flows, trees, queues))
            finished = bool(state[CURRENT] == DONE)
            if now() > deadline:
                break
        return Cut((tree != SOURCE).astype(np.int64), flow, finished)


def _largest(numbers: Array) -> float:
    if not len(numbers):
        return 0.0
    top = float(numbers.max())
    return top if np.isfinite(top) else float(numbers[np.isfinite(numbers)].max(initial=0.0))
