"""Beam search: give states to one variable after the other, and keep only the most promising beginnings.

Method: every beginning that was kept is extended by each state of the next variable; of those that leave the same states
behind for what comes later the best stays, as in Viterbi's recursion, and of the rest the `width` best. A beginning is worth
its tables so far and a bound on what is to come (`mini_buckets`), so the largest worth that was thrown away bounds every
configuration that was not looked at: where nothing as good as the answer was thrown away, the answer is proved.
References: Lowerre (1976); Kask and Dechter (2001) for the bound.
Cost: width times states for each variable and table, after that of the mini-buckets.
Use it for long sequences and other models that are easy to decode going forward; the answer of a narrow beam can be
arbitrarily bad, and the gap says how bad at most. `a-star` goes on until there is none.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.inference.map_bounds.certified import Certified, answer, nothing, polished
from markovia.inference.map_bounds.mini_buckets import MiniBuckets, mini_buckets, search_order
from markovia.inference.result import Ranked, Record
from markovia.kernels.maximising.search_records import BeamState
from markovia.runtime.array_types import Ints
from markovia.runtime.checks import Count, FromZero, TimeLimit
from markovia.runtime.clock import now

WORK = 1_000_000
"""Extensions between two looks at the clock."""


@dataclass(frozen=True)
class BeamDetails:
    """Beginnings thrown away although they were possible, and the bound on all configurations before the search."""

    pruned: int
    first_bound: float


@dataclass(frozen=True)
class BeamSearch(Certified):
    """Most probable states by beam search, with a bound on what was thrown away.

    Parameters
    ----------
    width
        Beginnings that are kept at each variable.
    lookahead
        Entries of the largest table by which the rest of a configuration is bounded. Zero looks at the past only, variables
        in the order of the model: plain beam search, as for sequences.
    time_limit
        Seconds after which the beam narrows to the best beginning.

    Examples
    --------
    >>> import markovia as mk
    >>> model = mk.generators.ising_grid(6, 6, coupling="random", field="random", seed=1)
    >>> found = model.map(engine=mk.engines.BeamSearch(width=20))
    >>> found.info.exact, found.gap
    (True, 0.0)
    >>> narrow = model.map(engine=mk.engines.BeamSearch(width=1, lookahead=0))
    >>> narrow.log_weight < found.log_weight < narrow.bound
    True
    """

    width: Count = 100
    lookahead: FromZero = 2**12
    time_limit: TimeLimit = None

    name: ClassVar[str] = "beam"

    def _search(self, graph: FlatGraph) -> Ranked:
        """Return the best configuration in the beam, polished, with a bound."""
        deadline = np.inf if self.time_limit is None else now() + self.time_limit
        order = search_order(graph) if self.lookahead else np.arange(len(graph.cards))
        buckets = mini_buckets(graph, order, self.lookahead, deadline)
        found = beam(graph, buckets, self.width, deadline)
        if found.bound == -np.inf:
            return nothing()
        record = Record(
            converged=found.complete and now() <= deadline,
            advice="a larger width= or time_limit= finds more; or use engine='a-star' or 'map-search'",
            details=BeamDetails(found.pruned, buckets.bound),
        )
        return answer(graph, found.codes, found.bound, record)


class Beam(NamedTuple):
    """A configuration, whether it came out of the beam, a bound on all configurations, and how many beginnings went."""

    codes: Ints
    complete: bool
    bound: float
    pruned: int


def beam(graph: FlatGraph, buckets: MiniBuckets, width: int, deadline: float = np.inf) -> Beam:
    """Run a beam through the variables; where nothing possible is left in it, the answer is the best by single changes."""
    from markovia.kernels.maximising.prefix_search import beam_steps

    if buckets.bound == -np.inf:
        return Beam(np.zeros(len(graph.cards), dtype=np.int64), False, -np.inf, 0)
    n, most = len(graph.cards), int(graph.cards.max())
    size = 1 << (2 * width * most - 1).bit_length()
    state = BeamState(
        np.zeros((2, width, buckets.slots), dtype=np.int64), np.zeros((2, width)), np.zeros((n, width), dtype=np.int64),
        np.zeros((n, width), dtype=np.int64), np.zeros(width * most), np.zeros(size, dtype=np.int64),
        np.zeros(width, dtype=np.int64), np.array([1.0, -np.inf]),
    )  # fmt: skip
    state.scores[0, 0] = buckets.bound
    step, pruned, depth = max(1, WORK // (width * most)), 0, 0
    while depth < n and state.ends[0]:
        last = min(depth + step, n)
        pruned += int(beam_steps(buckets.tables, depth, last, width if now() <= deadline else 1, state))
        depth = last
    bound = min(float(state.ends[1]), buckets.bound)
    if not state.ends[0]:
        return Beam(polished(graph, graph.largest_states(graph.unary)), False, bound, pruned)
    scores = state.scores[n % 2, : int(state.ends[0])]
    at = int(np.argmax(scores))
    codes, bound = np.empty(n, dtype=np.int64), max(bound, float(scores[at]))
    for d in range(n - 1, -1, -1):
        codes[buckets.order[d]] = state.states[d, at]
        at = int(state.parents[d, at])
    return Beam(polished(graph, codes), True, bound, pruned)
