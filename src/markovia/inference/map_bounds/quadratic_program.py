"""Quadratic programs behind most probable states of pairwise models: one that is concave, with a bound.

Method: give each variable shares of its states, independent of the others'. The average log weight is then quadratic in the
shares, and its maximum is that of a configuration, so this program is tight, but hard. Adding `d m (1 - m)` for each
share m, which is zero where shares are zero or one, makes it concave as soon as 2 d is at least the sum of the absolute
values of the entries that the state meets; its maximum then bounds the weight of every configuration. The tables are
centred first, which makes d small. The shares are rounded one variable at a time, each to the state that is best on
average, which never lowers the average, and polished.
Reference: Ravikumar and Lafferty (2006), "Quadratic programming relaxations for metric labeling and Markov random field MAP
estimation". Cost of a sweep: the entries of all tables; memory is one number a state, against one an entry in
`linear-program`.
Use it where weak couplings meet clear fields and for the shares; `trw-s` bounds better where couplings are strong.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.inference.map_bounds.certified import Certified, answer, polished
from markovia.inference.map_bounds.linear_program import INTEGRAL, ProgramDetails
from markovia.inference.map_bounds.trw_s import pair_places, ranges
from markovia.inference.result import Ranked, Record
from markovia.kernels.flat_graph import Graph
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, Positive, TimeLimit
from markovia.runtime.clock import Clock

SWEEPS = 10
"""Sweeps between two looks at the clock."""
LEAST = 1e-6
"""The least curvature, so that the best shares are unique."""


@dataclass(frozen=True)
class QuadraticProgram(Certified):
    """Most probable states of pairwise models by a concave quadratic program, with its value as bound.

    `info.details` has `value` (that of the program), `integral` (the share of variables whose shares are zeros and ones),
    and `marginals`, the shares of states by name.

    Parameters
    ----------
    max_iterations
        Sweeps over all variables at most.
    tolerance
        Stop when the value of the program is known to this, relative to its size.
    time_limit
        Seconds after which the shares so far are rounded.

    Examples
    --------
    >>> import markovia as mk
    >>> chain = mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], [[1, 5], [2, 3]])])
    >>> found = chain.map(engine="quadratic-program")
    >>> found.to_dict(), found.bound >= found.log_weight
    ({'a': 0, 'b': 1}, True)
    """

    max_iterations: Count = 1000
    tolerance: Positive = 1e-6
    time_limit: TimeLimit = None

    name: ClassVar[str] = "quadratic-program"

    def _search(self, graph: FlatGraph) -> Ranked:
        """Return rounded shares with the value of the program as bound."""
        from markovia.kernels.maximising.multilinear import concave_sweeps

        self._need_pairs(graph, "'linear-program' or 'relaxation-labelling'")
        finite = finite_logs(graph)
        centred, curvature, constant = _centred(graph, finite)
        shares = np.repeat(1.0 / graph.cards, graph.cards)
        room = graph.averaging_room()
        sweeps, missing, bound, value = 0, np.inf, graph.log_scale, 0.0
        with Clock(self.time_limit, progress=False) as clock:
            while sweeps < self.max_iterations and not (sweeps and clock.over()):
                step = min(SWEEPS, self.max_iterations - sweeps)
                missing = float(concave_sweeps(centred, curvature, shares, step, room))
                sweeps += step
                value = graph.log_scale + constant + average(centred, shares, room)
                value += float((curvature * shares * (1.0 - shares)).sum())
                # all shares together can add `missing` at most; tables have maxima of one, so the scale bounds too
                bound = min(bound, value + missing)
                if missing <= self.tolerance * max(1.0, abs(value)):
                    break
        peaks = np.maximum.reduceat(shares, graph.starts[:-1])
        integral = float(np.mean(peaks > 1.0 - INTEGRAL))
        record = Record(
            converged=missing <= self.tolerance * max(1.0, abs(value)),
            iterations=sweeps,
            error=max(missing, 0.0),
            advice="raise max_iterations or time_limit",
            details=ProgramDetails(integral, value, graph.by_name(shares)),
        )
        return answer(graph, rounded(graph, finite, shares), bound, record)


def finite_logs(graph: FlatGraph) -> Graph:
    """Return the log tables; zeros weigh a bit less than the least entry of any table, which lowers no configuration."""
    both = graph.log_unary, graph.log_values
    wall = 1.5 * min(float(logs.min(initial=0.0, where=np.isfinite(logs))) for logs in both) - 5.0
    unary, values = (np.maximum(logs, wall) for logs in both)
    return graph.log_arrays._replace(unary=unary, values=values)


def average(finite: Graph, shares: Array, room: tuple[Array, Array, Array]) -> float:
    """Return the average log weight of shares: the bound of mean field less its entropies."""
    from markovia.kernels.messages.mean_field import bound

    positive = shares[shares > 0]
    bounded = bound(finite, 0, len(finite.table_ptr) - 1, shares, *room)
    return float(bounded + positive @ np.log(positive))


def rounded(graph: FlatGraph, finite: Graph, shares: Array) -> Ints:
    """Return the configuration of shares, no worse on average, polished by single changes."""
    from markovia.kernels.maximising.multilinear import settle

    codes = np.zeros(len(graph.cards), dtype=np.int64)
    settle(finite, shares.copy(), codes, graph.averaging_room())
    return polished(graph, codes)


def _centred(graph: FlatGraph, finite: Graph) -> tuple[Graph, Array, float]:
    """Return pair tables whose rows and columns have averages of zero, half the absolute values each state meets, a number.

    What is taken out of the tables goes to the variables and into the number.
    """
    n, sizes, entries = len(finite.unary), graph.cards[graph.scope], np.diff(graph.table_ptr)
    states, (rows, columns) = ranges(graph.starts[graph.scope], sizes), pair_places(graph)
    pair = np.repeat(np.arange(graph.n_factors), entries)
    mean = np.bincount(pair, finite.values, graph.n_factors) / entries
    rest = finite.values - mean[pair]
    # an edge's state is averaged over the states at the other end
    own = np.bincount(rows, rest, len(states)) + np.bincount(columns, rest, len(states))
    own = own / np.repeat(sizes[np.arange(len(sizes)) ^ 1], sizes)
    rest = rest - own[rows] - own[columns]
    met = np.bincount(states[rows], np.abs(rest), n) + np.bincount(states[columns], np.abs(rest), n)
    moved = finite._replace(unary=finite.unary + np.bincount(states, own, n), values=rest)
    return moved, np.maximum(0.5 * met, LEAST), float(mean.sum())
