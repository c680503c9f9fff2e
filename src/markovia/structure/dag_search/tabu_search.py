"""Tabu search over directed graphs: always the best move, even a worse one, that does not undo a recent move.

The search leaves local optima because what was done lately may not be undone for a while, unless that leads to a new best
score (Glover 1989, "Tabu search, part I"; for networks Bouckaert 1995). It begins at the graph that hill climbing finds. As
long as nothing is better it walks through equivalent graphs now and then, as hill climbing does, so that it also leaves by
moves that its own directions forbid; it takes no step that merely leads to an equivalent graph. Cost: that of hill climbing,
and a step of it for each that `max_worse` allows beyond. For graphs at least as good as hill climbing's in up to twice its
time.
"""

from typing import Any

import numpy as np

from markovia.runtime.checks import check_count
from markovia.structure.dag_search.edge_moves import WORDS, EdgeMoves, Parents, graph_of, start_parents
from markovia.structure.dag_search.hill_climbing import LONG_WALK, ClimbDetails, HillClimb
from markovia.structure.scores.scores import score_for
from markovia.structure.task.result import FoundGraph, SearchStep
from markovia.structure.task.task import Task


def tabu(
    task: Task,
    *,
    start: Any = None,
    length: int = 10,
    max_worse: int = 100,
    climbs: int | None = None,
    walks: int = 10,
    max_steps: int | None = None,
) -> FoundGraph:
    """Search until no better graph was found for a while.

    Parameters
    ----------
    task, start, max_steps
        As in `hill_climb`.
    length
        For how many steps a move may not be undone: the pair of nodes it changed is left alone.
    max_worse
        How many steps in a row may pass without a new best graph.
    climbs
        How often to climb to the graph where the search begins to take worse moves, as in hill climbing; 0 begins at
        `start` itself.
    walks
        As in hill climbing; 0 leaves all walks out, also those between worse moves.
    max_steps
        The most moves.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.asia().sample(2000, seed=1)
    >>> found = mk.learn_structure(rows, method="tabu", max_worse=20)
    >>> found.score > mk.learn_structure(rows, method="hill-climb", walks=0).score - 1e-6
    True
    """
    check_count("length", length, 1)
    check_count("max_worse", max_worse, 1)
    check_count("walks", walks)
    check_count("climbs", climbs, none=True)
    check_count("max_steps", max_steps, none=True)
    score, clock = score_for(task), task.clock
    begin = start_parents(task.names, task.rules, start)
    moves = EdgeMoves(score, task.rules, begin, least=-np.inf)
    path = [SearchStep("start", moves.total, clock.seconds)]
    best: Parents
    best, best_score = moves.parents, moves.total
    climb = HillClimb(task, moves, path, walks, max_steps)
    if climbs != 0:
        best, best_score = climb.often(begin, climbs)
        moves.restart(best)
    free_from = np.zeros((score.n, score.n), dtype=np.int64)
    steps, worse = climb.steps, 0
    while not clock.over() and worse < max_worse and (max_steps is None or steps < max_steps):
        gains = moves.gains()
        # a forbidden move is taken all the same where it leads to a new best
        needed = best_score - moves.total + moves.rounding
        held = free_from > steps
        gains.adds[held & (gains.adds <= needed)] = -np.inf
        kept = held[gains.tails, gains.heads]
        gains.removes[kept & (gains.removes <= needed)] = -np.inf
        gains.turns[kept & (gains.turns <= needed)] = -np.inf
        if climb.walks:
            # a reversal that changes nothing leads to an equivalent graph; walks do that
            gains.turns[np.abs(gains.turns) <= moves.rounding] = -np.inf
        move = gains.best(moves.rounding)
        if move is None:
            break
        moves.apply(move)
        steps += 1
        free_from[move.tail, move.head] = free_from[move.head, move.tail] = steps + length
        edge = f"{WORDS[move.what]} {task.names[move.tail]} -> {task.names[move.head]}"
        path.append(SearchStep(edge, moves.total, clock.seconds))
        if moves.total > best_score + moves.rounding:
            best, best_score, worse = moves.parents, moves.total, 0
        else:
            worse += 1
            if climb.walks and worse % length == 0:
                moves.walk_in_class(LONG_WALK * moves.n_edges, climb.rng)
        clock.advance(note=f"{best_score:.6g}")
    details = ClimbDetails(steps, score.n_computed)
    return FoundGraph(graph_of(best, task.names), score=best_score, path=path, details=details)
