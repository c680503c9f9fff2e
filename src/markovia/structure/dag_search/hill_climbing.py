"""Hill climbing over directed graphs: add, remove or reverse the one edge that raises the score most.

Equivalent graphs score the same but have other neighbours. So between its steps the search walks at random through the class
of its graph by reversing covered edges, which keeps the score and saves it from early directions that were mere chance
(Castelo & Kocka 2003, "On inclusion-driven learning of Bayesian networks"); it climbs several times so, more often the
more variables there are, and keeps the best. Later climbs are cheap, because most of their scores are known.
`walks=0` is plain hill climbing. Random restarts go on from the best graph after random moves.
Cost: all pairs once, then a step scores a few children with each further parent; what gains is kept in short lists.
A fast first choice; `ges` and `boss` find better graphs in more time.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.runtime.checks import check_count
from markovia.structure.dag_search.edge_moves import WORDS, EdgeMoves, Parents, graph_of, start_parents
from markovia.structure.scores.scores import score_for
from markovia.structure.task.result import FoundGraph, SearchStep
from markovia.structure.task.task import Task

LEAST_TRIES, MOST_TRIES = 10, 500
"""Edges that a walk through equivalent graphs looks at between two steps, at least and at most."""
LONG_WALK = 10
"""Edges that a walk looks at for each edge of the graph, at a local optimum."""
LEAST_CLIMBS, MOST_CLIMBS, NODES_A_CLIMB = 3, 10, 10
"""Climbs at least and at most, and for how many variables there is one, by default."""
MOST_NODES = 4000
"""Variables of all climbs together, at most, by default: a climb over more is made once."""


@dataclass(frozen=True)
class ClimbDetails:
    """How a climb went: steps made, families scored, walks through classes, restarts; for MMHC the pairs allowed."""

    steps: int
    families: int
    walks: int = 0
    restarts: int = 0
    candidates: UndirectedGraph | None = None


def hill_climb(
    task: Task,
    *,
    start: Any = None,
    restarts: int = 0,
    perturbations: int | None = None,
    climbs: int | None = None,
    walks: int = 10,
    max_steps: int | None = None,
) -> FoundGraph:
    """Climb to a graph that no single edge improves.

    Parameters
    ----------
    task
        Data, knowledge and limits.
    start
        A directed graph or model to begin with; by default no edges but the required ones.
    restarts
        How often to go on from the best graph after random moves.
    perturbations
        Random moves of a restart; by default a tenth of the graph's edges and at least four.
    climbs
        How often to climb from the start; the best counts. By default once for ten variables, three to ten times, less
        often for more than 400.
    walks
        How many walks through equivalent graphs in a row may find nothing better before a climb ends; 0 is plain hill
        climbing, once. Walks use random numbers of their own, so that a search without restarts always gives the same graph.
        Scores that differ between equivalent graphs (K2) take none.
    max_steps
        The most moves, of all restarts together.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.sprinkler().sample(2000, seed=1)
    >>> found = mk.learn_structure(rows, method="hill-climb", restarts=2, seed=0)
    >>> sorted(found.skeleton.edges)
    [('cloudy', 'rain'), ('cloudy', 'sprinkler'), ('rain', 'wet'), ('sprinkler', 'wet')]
    """
    check_count("restarts", restarts)
    if climbs is not None:
        check_count("climbs", climbs, 1)
    check_count("walks", walks)
    check_count("perturbations", perturbations, 1, none=True)
    check_count("max_steps", max_steps, none=True)
    score, clock = score_for(task), task.clock
    begin = start_parents(task.names, task.rules, start)
    moves = EdgeMoves(score, task.rules, begin)
    path = [SearchStep("start", moves.total, clock.seconds)]
    climb = HillClimb(task, moves, path, walks, max_steps)
    best, best_score = climb.often(begin, climbs)
    made = 0
    while made < restarts and not climb.over():
        made += 1
        moves.restart(best)
        moves.disturb(perturbations or max(4, sum(map(len, best)) // 10), task.rng)
        path.append(SearchStep(f"restart {made}", moves.total, clock.seconds))
        climb.run()
        if moves.total > best_score + moves.rounding:
            best, best_score = moves.parents, moves.total
    details = ClimbDetails(climb.steps, score.n_computed, climb.walked, made)
    return FoundGraph(graph_of(best, task.names), score=best_score, path=path, details=details)


class HillClimb:
    """One climb after the other over the same gains.

    Parameters
    ----------
    task, moves, path
        The task, the graph with its gains, and where steps are noted.
    walks
        How many walks in a row may find nothing better; none are made where equivalent graphs score differently.
    max_steps
        The most moves of all climbs.
    """

    def __init__(
        self, task: Task, moves: EdgeMoves, path: list[SearchStep], walks: int, max_steps: int | None
    ) -> None:
        self.task, self.moves, self.path = task, moves, path
        self.walks, self.max_steps = walks if moves.score.equivalent else 0, max_steps
        self.steps = self.walked = 0
        self.rng = np.random.default_rng(0)

    def over(self) -> bool:
        """Say whether the search must stop."""
        return self.task.clock.over() or (self.max_steps is not None and self.steps >= self.max_steps)

    def often(self, begin: Parents, climbs: int | None) -> tuple[Parents, float]:
        """Climb several times from the same graph, where the moves are; return the best graph and its score."""
        moves = self.moves
        if climbs is None:
            climbs = min(MOST_CLIMBS, max(LEAST_CLIMBS, moves.n // NODES_A_CLIMB))
            climbs = max(1, min(climbs, MOST_NODES // max(1, moves.n)))
        self.run()
        best, best_score = moves.parents, moves.total
        for again in range(2, climbs + 1 if self.walks else 0):
            if self.over():
                break
            moves.restart(begin)
            self.path.append(SearchStep(f"climb {again}", moves.total, self.task.clock.seconds))
            self.run()
            if moves.total > best_score + moves.rounding:
                best, best_score = moves.parents, moves.total
        return best, best_score

    def run(self) -> None:
        """Climb to a local optimum, then walk through its class and climb on while that helps."""
        moves = self.moves
        self._ascend()
        idle = 0
        while idle < self.walks and not self.over():
            self.walked += 1
            if not moves.walk_in_class(LONG_WALK * moves.n_edges, self.rng):
                break
            idle = 0 if self._ascend() else idle + 1

    def _ascend(self) -> int:
        moves, task = self.moves, self.task
        done = 0
        while not self.over():
            move = moves.best()
            if move is None or move.gain <= moves.rounding:
                break
            moves.apply(move)
            done += 1
            self.steps += 1
            edge = f"{WORDS[move.what]} {task.names[move.tail]} -> {task.names[move.head]}"
            self.path.append(SearchStep(edge, moves.total, task.clock.seconds))
            task.clock.advance(note=f"{moves.total:.6g}")
            if self.walks:
                moves.walk_in_class(max(LEAST_TRIES, min(MOST_TRIES, moves.n_edges)), self.rng)
        return done
