"""Relaxation labelling: shares of the states of all variables support each other until each variable has one state.

Method: a variable begins with its tables alone as shares. Again and again each share is multiplied by its *support*, the log
entries that agree with it averaged over the shares of the other variables and counted from the least entry of each table,
and the shares are normalised. The average log weight never falls, and shares end where no small change raises it, most
often at a configuration; what is left is rounded one variable at a time, which never lowers the average, and polished.
References: Rosenfeld, Hummel and Zucker (1976); Hummel and Zucker (1983); Pelillo (1997) for the ascent.
Cost of a sweep: the entries of all tables, times the variables of each.
Use it as a quick smooth search, less greedy than `icm`, on tables of any number of variables; its bound is only that of
each table's largest entry.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.inference.map_bounds.certified import Certified, answer
from markovia.inference.map_bounds.quadratic_program import average, finite_logs, rounded
from markovia.inference.result import Ranked, Record
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Count, Positive, TimeLimit
from markovia.runtime.clock import Clock

SWEEPS = 20
"""Sweeps between two looks at the clock."""


@dataclass(frozen=True)
class LabellingDetails:
    """The average log weight of the shares before each look at the clock and after the last one, and the shares by name."""

    averages: tuple[float, ...]
    marginals: dict[str, Array]


@dataclass(frozen=True)
class RelaxationLabelling(Certified):
    """Most probable states by relaxation labelling: a local maximum.

    Parameters
    ----------
    max_iterations
        Sweeps over all variables at most.
    tolerance
        Stop when no share changes by more than this in a sweep.
    time_limit
        Seconds after which the shares so far are rounded.

    Examples
    --------
    >>> import markovia as mk
    >>> model = mk.generators.ising_grid(8, 8, coupling=0.4, field="random", seed=0)
    >>> found = model.map(engine="relaxation-labelling")
    >>> greedy = model.map(engine=mk.engines.IteratedConditionalModes(restarts=0))
    >>> greedy.log_weight < found.log_weight < found.bound
    True
    """

    max_iterations: Count = 2000
    tolerance: Positive = 1e-6
    time_limit: TimeLimit = None

    name: ClassVar[str] = "relaxation-labelling"

    def _search(self, graph: FlatGraph) -> Ranked:
        """Return the configuration that the shares come to."""
        from markovia.kernels.maximising.multilinear import label

        finite = finite_logs(graph)
        shifted = finite._replace(
            unary=_from_zero(finite.unary, graph.starts), values=_from_zero(finite.values, graph.table_ptr)
        )
        shares = graph.unary / np.repeat(np.add.reduceat(graph.unary, graph.starts[:-1]), graph.cards)
        room, new = graph.averaging_room(), np.zeros_like(shares)
        sweeps, change = 0, np.inf
        averages = [graph.log_scale + average(finite, shares, room)]
        with Clock(self.time_limit, progress=False) as clock:
            while sweeps < self.max_iterations and change > self.tolerance and not clock.over():
                step = min(SWEEPS, self.max_iterations - sweeps)
                change = float(label(shifted, shares, new, step, room))
                sweeps += step
                averages.append(graph.log_scale + average(finite, shares, room))
        record = Record(
            converged=change <= self.tolerance,
            iterations=sweeps,
            advice="raise max_iterations or time_limit",
            details=LabellingDetails(tuple(averages), graph.by_name(shares)),
        )
        return answer(graph, rounded(graph, finite, shares), graph.log_scale, record)


def _from_zero(logs: Array, ptr: Ints) -> Array:
    """Return tables one after the other less the least entry of each."""
    if not len(logs):
        return logs
    return np.asarray(logs - np.repeat(np.minimum.reduceat(logs, ptr[:-1]), np.diff(ptr)))
