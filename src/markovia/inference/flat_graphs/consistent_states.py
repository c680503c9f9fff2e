"""Which states can occur at all, and one configuration of positive weight.

Method: arc consistency (a state that no positive table entry supports is removed, until nothing changes; Mackworth 1977),
and a randomised depth-first search that keeps the tables arc consistent and fixes the variable with fewest states left.
Cost: a pass of consistency reads the tables that have zeros a few times; the search is exponential in the worst case and
stops after a given number of choices. Variational methods start here when a model has zeros: a removed state has
probability zero, and a product distribution needs a start that no zero forbids.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.runtime.array_types import Ints
from markovia.runtime.seeds import kernel_seed

if TYPE_CHECKING:
    from markovia.kernels.flat_graphs.arc_consistency import ConsistencyWork

NODES = 20_000
"""Choices in one search before it starts again with other random numbers."""
TRIES = 3
SCAN = 5_000
"""Variables up to which the search looks for the one with fewest states left."""


@dataclass(frozen=True)
class States:
    """The states that arc consistency leaves.

    Attributes
    ----------
    alive
        For each state of each variable whether it is left.
    possible
        False if a variable has no state left: then no configuration has any weight.
    free
        Whether every combination of the states left has positive weight.
    """

    alive: NDArray[np.bool_]
    possible: bool
    free: bool


def consistent_states(graph: FlatGraph) -> States:
    """Return the states of a problem that arc consistency leaves.

    Parameters
    ----------
    graph
        The problem as flat arrays.

    Returns
    -------
    States
        Which are left; a state that is not left has probability zero.
    """
    if graph.log_scale == -np.inf:
        return States(graph.unary > 0, False, False)
    if not graph.n_factors or graph.values.min() > 0.0:
        return States(graph.unary > 0, True, True)
    from markovia.kernels.flat_graphs.arc_consistency import propagate, zero_free

    work = _work(graph, graph.unary > 0)
    start = np.flatnonzero(work.has_zero)
    work.queue[: len(start)] = start
    work.queued[start] = 1
    if propagate(graph.arrays, work, len(start), 0) < 0:
        return States(work.dom.astype(bool), False, False)
    free = zero_free(graph.arrays, work)
    return States(work.dom.astype(bool), True, bool(free))


def configuration(graph: FlatGraph, states: States, rng: np.random.Generator) -> tuple[Ints | None, bool]:
    """Return a configuration of positive weight, and whether it is certain that there is none.

    Parameters
    ----------
    graph, states
        The problem, and what arc consistency leaves of it.
    rng
        Where the search takes its random choices from.

    Returns
    -------
    tuple
        State codes and False; or None, and True if the search proved that there is none, False if it gave up.
    """
    if not states.possible:
        return None, True
    from markovia.kernels.flat_graphs.arc_consistency import search

    for _ in range(TRIES):
        work = _work(graph, states.alive)
        room = np.empty((2, len(graph.cards) + 1), dtype=np.int64)
        ended = search(graph.arrays, work, kernel_seed(rng), NODES + len(graph.cards), SCAN, *room)
        if ended == 0:
            return None, True
        if ended == 1:
            return np.flatnonzero(work.dom) - graph.starts[:-1], False
    return None, False


def _work(graph: FlatGraph, alive: NDArray[np.bool_]) -> "ConsistencyWork":
    """Return what the kernels write to, with the states that are alive."""
    from markovia.kernels.flat_graphs.arc_consistency import ConsistencyWork

    n_factors = graph.n_factors
    owner = np.repeat(np.arange(len(graph.cards)), graph.cards)
    least = np.minimum.reduceat(graph.values, graph.table_ptr[:-1]) if n_factors else np.zeros(0)
    wide = np.add.reduceat(graph.cards[graph.scope], graph.scope_ptr[:-1]).max() if n_factors else 0
    return ConsistencyWork(
        dom=alive.astype(np.int8),
        left=np.bincount(owner[alive], minlength=len(graph.cards)),
        owner=owner,
        has_zero=(least <= 0.0).astype(np.int8),
        queue=np.zeros(n_factors + 1, dtype=np.int64),
        queued=np.zeros(n_factors, dtype=np.int8),
        trail=np.empty(len(alive) + 1, dtype=np.int64),
        seen=np.zeros(wide, dtype=np.int8),
        at=np.zeros(int(graph.arity.max(initial=0)), dtype=np.int64),
        gone=np.zeros(wide, dtype=np.int64),
    )
