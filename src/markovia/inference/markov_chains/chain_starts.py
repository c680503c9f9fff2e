"""Where Markov chains begin: configurations of positive weight, far from each other.

Each start is drawn variable by variable in model order, looking into the tables (forward sampling in a Bayesian network);
where that meets a zero, min-conflicts search repairs it (Minton et al. 1992). Of several candidates the one farthest from
the starts already chosen is taken, so that chains which cannot meet are likely to disagree. If no search succeeds, one that
backtracks is tried (it may prove that there is none), then exact sampling where it fits into memory.
Cost of a candidate: every table is read once for each of its variables.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from markovia.errors import TooLarge, Unanswered
from markovia.inference.flat_graphs.consistent_states import configuration, consistent_states
from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.inference.flat_graphs.possibility import judged_log_mass
from markovia.inference.impossible_evidence import impossible
from markovia.inference.problem import Problem
from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Ints

if TYPE_CHECKING:
    from markovia.kernels.sampling.chains import ChainArrays

TRIES = 12
FLIPS = 20_000
CANDIDATES = 8
DEAR = 2_000_000
"""Table entries times variables above which one candidate a chain has to do."""


def chain_starts(
    problem: Problem, graph: FlatGraph, arrays: "ChainArrays", seeds: Sequence[np.random.SeedSequence]
) -> list[Ints]:
    """Return one configuration of positive weight for each seed.

    Raises
    ------
    ImpossibleEvidence
        If the search failed and exact inference shows that there is none.
    Unanswered
        If the search failed and exact inference does not fit into memory.
    """
    if np.isneginf(graph.log_scale):
        raise impossible(problem, judged_log_mass)
    cost = float((np.diff(graph.table_ptr) * graph.arity).sum()) + len(graph.variables)
    candidates = 1 if cost > DEAR or len(seeds) == 1 else CANDIDATES
    found: list[Ints] = []
    for seed in seeds:
        rng = seed.generate_state(4, np.uint64)
        tried = [_search(arrays, rng, flat=k % 2 == 1) for k in range(candidates)]
        here = [x for x in tried if x is not None]
        if not here and (x := _hard_search(arrays, rng)) is not None:
            here = [x]
        if not here:
            return _exact_starts(problem, graph, seeds)
        far = [min((int((x != y).sum()) for y in found), default=0) for x in here]
        found.append(here[int(np.argmax(far))])
    return found


def _search(arrays: "ChainArrays", rng: np.ndarray, flat: bool, flips: int = FLIPS) -> Ints | None:
    n = len(arrays.cards)
    x = np.zeros(n, dtype=np.int64)
    room = np.empty(int(arrays.cards.max(initial=1)))
    steps = 6.0 * float((np.diff(arrays.table_ptr) * np.diff(arrays.scope_ptr) ** 2).sum()) + 20.0 * n
    draw_start = either("markovia.kernels.sampling.chain_starts:draw_start", steps)
    draw_start(arrays, np.arange(n), flat, rng, x, room)
    if _possible(arrays, x):
        return x
    from markovia.kernels.sampling.chain_starts import repair

    offset = np.zeros(len(arrays.table_ptr) - 1, dtype=np.int64)
    left = repair(arrays, rng, x, offset, flips)
    return x if left == 0 else None


def _possible(arrays: "ChainArrays", x: Ints) -> bool:
    """Say whether a configuration has positive weight."""
    if np.any(arrays.unary[arrays.starts[:-1] + x] == 0.0):
        return False
    if len(arrays.table_ptr) == 1:
        return True
    at = np.add.reduceat(x[arrays.scope] * arrays.strides, arrays.scope_ptr[:-1])
    return bool(np.all(arrays.values[arrays.table_ptr[:-1] + at] > 0.0))


def _hard_search(arrays: "ChainArrays", rng: np.ndarray) -> Ints | None:
    for k in range(TRIES):
        x = _search(arrays, rng, flat=k % 2 == 0, flips=FLIPS + 20 * len(arrays.cards))
        if x is not None:
            return x
    return None


def _exact_starts(problem: Problem, graph: FlatGraph, seeds: Sequence[np.random.SeedSequence]) -> list[Ints]:
    """Return starts found by a search that backtracks, or drawn exactly."""
    states = consistent_states(graph)
    found: list[Ints] = []
    for seed in seeds:
        start, none = configuration(graph, states, np.random.default_rng(seed))
        if none:
            raise impossible(problem, judged_log_mass)
        if start is not None:
            found.append(start)
    if found:
        return [found[k % len(found)] for k in range(len(seeds))]
    from markovia.inference.choosing.auto import Auto

    exact = Auto(approximate=False)
    try:
        if np.isneginf(exact.log_mass(problem)):
            raise impossible(problem, exact.log_mass)
        drawn = exact.sample(problem, len(seeds), np.random.default_rng(seeds[0]))
    except TooLarge:
        raise Unanswered(
            f"no configuration of positive weight was found to start a Markov chain from, in {TRIES} searches by "
            "min-conflicts and one that backtracks; the evidence may be impossible, or the tables too nearly deterministic "
            "for sampling: use engine='conditioning' or 'loopy-bp', or replace zeros in the tables by small numbers"
        ) from None
    return [np.array([drawn[n][k] for n in graph.names], dtype=np.int64) for k in range(len(seeds))]
