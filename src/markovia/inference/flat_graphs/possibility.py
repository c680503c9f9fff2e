"""Whether any configuration has positive weight, for engines that cannot tell from their own answer.

Messages and local search may give an ordinary-looking answer where zeros in the tables rule everything out, for instance
around a loop. `proved_impossible` looks for one configuration of positive weight by arc consistency and a depth-first search
of bounded length (`consistent_states`): no zeros, no work. `judged_log_mass` says which findings are to blame.
Cost: a pass over the tables; with zeros some reads of them for each variable, more where the search has to backtrack.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from markovia.errors import MarkoviaError, TooLarge
from markovia.inference.engine import get_engine
from markovia.inference.flat_graphs.consistent_states import States, configuration, consistent_states
from markovia.inference.flat_graphs.flat_graph import FlatGraph, build_flat_graph
from markovia.inference.problem import Problem
from markovia.runtime.array_types import Array, Ints

DECIDING_SECONDS = 10.0
"""Time of an exact answer where the search gave up."""


def proved_impossible(graph: FlatGraph, states: States | None = None, beliefs: Array | None = None) -> bool:
    """Say whether it is certain that every configuration has weight zero.

    `states` saves a pass where it is known; `beliefs` over all states are tried first: mostly their largest are possible.
    """
    if graph.log_scale == -np.inf:
        return True
    if not graph.n_factors or graph.values.min() > 0.0:
        return False
    if beliefs is not None and weighs(graph, graph.largest_states(beliefs)):
        return False
    states = consistent_states(graph) if states is None else states
    if not states.possible:
        return True
    return not states.free and configuration(graph, states, np.random.default_rng(0))[1]


def weighs(graph: FlatGraph, codes: Ints) -> bool:
    """Say whether a configuration has positive weight."""
    where = np.add.reduceat(codes[graph.scope] * graph.strides, graph.scope_ptr[:-1])
    possible = graph.values[graph.table_ptr[:-1] + where].min() > 0.0
    return bool(possible and graph.unary[graph.starts[:-1] + codes].min() > 0.0)


def plausible_mass(graph: FlatGraph, log_mass: float) -> bool:
    """Say whether a log mass lies where that of any model with these tables does.

    It is at most that of all states with the largest entries, and at least that of one state with the least positive ones.
    """
    with np.errstate(divide="ignore"):
        tables = np.where(graph.values > 0, graph.log_values, 0.0)
        alone = np.where(graph.unary > 0, graph.log_unary, 0.0)
    most = graph.log_scale + float(np.log(graph.cards).sum())
    least = graph.log_scale
    if len(graph.cards):
        least += float(np.minimum.reduceat(alone, graph.starts[:-1]).sum())
    if graph.n_factors:
        least += float(np.minimum.reduceat(tables, graph.table_ptr[:-1]).sum())
    slack = 1e-6 * (1.0 + abs(most))
    return bool(log_mass == -np.inf or least - slack <= log_mass <= most + slack)


def judged_log_mass(problem: Problem) -> float:
    """Return minus infinity if the findings certainly rule everything out, else some other number."""
    try:
        graph = build_flat_graph(problem, ())
    except (MarkoviaError, MemoryError):
        return _exact_log_mass(problem)
    if graph.log_scale == -np.inf:
        return -np.inf
    states = consistent_states(graph)
    if not states.possible:
        return -np.inf
    if states.free:
        return 0.0
    found, none = configuration(graph, states, np.random.default_rng(0))
    if none:
        return -np.inf
    return 0.0 if found is not None else _exact_log_mass(problem)


def _exact_log_mass(problem: Problem) -> float:
    """Return the log mass where an exact engine fits, else zero: nothing is known."""
    auto: Any = get_engine("auto")
    try:
        return float(replace(auto, approximate=False, time_limit=DECIDING_SECONDS).log_mass(problem))
    except TooLarge:
        return 0.0
