"""Tabu search over directed graphs: always the best move, even a worse one, that does not undo a recent move.

The search leaves local optima because what was done lately may not be undone for a while, unless that leads to a new best
score (Glover 1989, "Tabu search, part I"; for networks Bouckaert 1995). Cost: as hill climbing a step; the number of steps
is what `max_worse` allows beyond it. For better graphs than hill climbing in several times its time.
"""

from typing import Any

import numpy as np

from markovia.learning.structure.edge_moves import (
    WORDS,
    EdgeMoves,
    as_dag,
    check_count,
    start_edges,
)
from markovia.learning.structure.result import Found, Step
from markovia.learning.structure.task import Task


def tabu(
    task: Task,
    *,
    start: Any = None,
    length: int = 10,
    max_worse: int = 100,
    max_steps: int | None = None,
) -> Found:
    """Search until no better graph was found for a while.

    Parameters
    ----------
    task
        Data, knowledge and limits.
    start
        A directed graph or model to begin with; by default no edges but the required ones.
    length
        For how many steps a move may not be undone: the pair of nodes it changed is left alone.
    max_worse
        How many steps in a row may pass without a new best graph.
    max_steps
        The most moves.
    """
    check_count("length", length, 1)
    check_count("max_worse", max_worse, 1)
    if max_steps is not None:
        check_count("max_steps", max_steps)
    score, watch = task.bound_score(), task.watch
    moves = EdgeMoves(score, task.rules, start_edges(task.names, task.rules, start))
    path = [Step("start", moves.total, watch.seconds)]
    best, best_score = moves.edges.copy(), moves.total
    free_from = np.zeros((score.n, score.n), dtype=np.int64)
    steps = worse = 0
    while not watch.over() and worse < max_worse and (max_steps is None or steps < max_steps):
        gains = moves.gains()
        # a forbidden move is taken all the same where it leads to a new best
        needed = best_score - moves.total + moves.rounding
        held = free_from > steps
        gains.adds[held & (gains.adds <= needed)] = -np.inf
        kept = held[gains.tails, gains.heads]
        gains.removes[kept & (gains.removes <= needed)] = -np.inf
        gains.turns[kept & (gains.turns <= needed)] = -np.inf
        move = gains.best(moves.rounding)
        if move is None:
            break
        moves.apply(move.what, move.tail, move.head)
        steps += 1
        free_from[move.tail, move.head] = free_from[move.head, move.tail] = steps + length
        edge = f"{WORDS[move.what]} {task.names[move.tail]} -> {task.names[move.head]}"
        path.append(Step(edge, moves.total, watch.seconds))
        if moves.total > best_score + moves.rounding:
            best, best_score, worse = moves.edges.copy(), moves.total, 0
        else:
            worse += 1
        watch.advance(note=f"{best_score:.6g}")
    details = {"steps": steps, "families": score.n_computed}
    return Found(as_dag(task.names, best), score=best_score, path=path, details=details)
