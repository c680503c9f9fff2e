"""The best directed graph under a score, with proof.

Method: score the parent sets that can matter (`parent_set_scores`), split the variables into the strongly connected parts
of the graph of possible parents (`order_problem`), and find the best order of each part by dynamic programming over
subsets (`dynamic_programming`) or by A* (`shortest_path_search`). A quick hill climb before that is the answer if the
search is stopped while parent sets are scored.
Papers: Silander and Myllymäki (2006); de Campos and Ji (2011); Yuan and Malone (2013); Fan, Malone and Yuan (2014).
Cost: exponential in the number of variables that hang together. With BIC 20 to 40 variables take seconds to minutes; more
rows and milder penalties leave more sets. Use it when the graph must be the best, or to see how far others are from
it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from markovia.graphs.kinds.directed import DAG
from markovia.runtime.checks import check_choice
from markovia.structure.dag_search.hill_climbing import hill_climb
from markovia.structure.exact import dynamic_programming, shortest_path_search
from markovia.structure.exact.order_problem import OrderProblem, order_problems
from markovia.structure.scores.parent_set_scores import scored_parent_sets
from markovia.structure.scores.scores import score_for
from markovia.structure.task.result import FoundGraph, SearchStep
from markovia.structure.task.task import Task

ALGORITHMS = ("auto", "dynamic-programming", "a-star")
SMALL = 12
"""Parts up to this size are solved by dynamic programming: it is done at once."""


@dataclass(frozen=True)
class ExactDetails:
    """How large the search was.

    Attributes
    ----------
    families_scored, parent_sets, levels
        Families whose score was computed, parent sets that were kept, and how many sets of each size were scored.
    parts
        Groups of variables that were settled by themselves.
    expanded
        Subsets that A* expanded.
    gap
        How far the bound is above the score; None where no bound is known.
    """

    families_scored: int = 0
    parent_sets: int = 0
    levels: Sequence[int] = ()
    parts: Sequence[list[str]] = ()
    expanded: int = 0
    gap: float | None = None


def exact(
    task: Task,
    *,
    algorithm: str = "auto",
    max_families: int = 20_000_000,
    max_nodes: int = 20_000_000,
    max_gigabytes: float = 4.0,
) -> FoundGraph:
    """Find the best graph.

    Parameters
    ----------
    task
        Data, score, knowledge and limits.
    algorithm
        "dynamic-programming", "a-star", or "auto": dynamic programming for small parts, A* for others.
    max_families
        The most families to score.
    max_nodes
        The most subsets that A* keeps; then it stops with a bound.
    max_gigabytes
        The most memory for dynamic programming.

    Returns
    -------
    Found
        `optimal` says whether the graph is proven best; `bound` is a bound on every graph's score, None if scoring was
        stopped. `details` has the number of families scored, the parent sets kept, and the parts.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.sprinkler().sample(1000, seed=1)
    >>> found = mk.learn_structure(rows, method="exact", required=[("cloudy", "rain")])
    >>> found.optimal, found.bound == found.score
    (True, True)
    """
    check_choice("algorithm", algorithm, ALGORITHMS)
    score = score_for(task)
    names, rules, clock = task.names, task.rules, task.clock
    climbed = None if score.n <= SMALL else hill_climb(replace(task, score=score), climbs=1, walks=0)
    if climbed is not None and clock.over():
        climbed.optimal = False
        climbed.details = ExactDetails()
        climbed.notes.append("stopped before parent sets were scored: no bound is known")
        return climbed
    sets = scored_parent_sets(score, rules, clock, max_families)
    problems = order_problems(sets)
    parents: dict[int, tuple[int, ...]] = {}
    starts = []
    for problem in problems:
        start = _feasible(problem, rules.required)
        order, loss = start, _loss(problem, start)
        if problem.m > dynamic_programming.PLAIN or (algorithm == "a-star" and problem.m > 1):
            order, loss = shortest_path_search.local_order(problem, start, task.rng)
        parents.update(problem.parents(order))
        starts.append((order, loss))
    now = score.total([parents[x] for x in range(score.n)])
    path = [SearchStep(f"scored {sets.n_scored} families, searched orders", now, clock.seconds)]
    optimal = sets.complete
    bound = 0.0
    expanded = 0
    for problem, (order, loss) in zip(problems, starts, strict=True):
        if loss <= problem.slack or not sets.complete:
            bound += problem.top if loss > problem.slack else problem.top - loss
            continue
        by_tables = algorithm == "dynamic-programming" or (algorithm == "auto" and problem.m <= SMALL)
        if by_tables:
            best = dynamic_programming.best_order(problem, clock, max_gigabytes)
            if best is not None:
                parents.update(problem.parents(best))
                bound += problem.top - _loss(problem, best)
            else:
                optimal = False
                bound += problem.top
        else:
            search = shortest_path_search.shortest_order(problem, clock, order, loss, max_nodes=max_nodes)
            parents.update(problem.parents(search.order))
            optimal &= search.proven
            bound += problem.top - search.least
            expanded += search.expanded
        now = score.total([parents[x] for x in range(score.n)])
        path.append(
            SearchStep(
                f"settled {problem.m} variables from {names[problem.variables[0]]}", now, clock.seconds
            )
        )
        clock.advance(note=f"{now:.6g}")
    graph = DAG([(names[p], names[x]) for x in range(score.n) for p in parents[x]], nodes=names)
    if climbed is not None and not optimal and climbed.score is not None and climbed.score > now:
        assert isinstance(climbed.graph, DAG)
        graph, now = climbed.graph, climbed.score
        path.append(SearchStep("hill climbing had found a better graph", now, clock.seconds))
    notes = []
    bound = now if optimal else max(bound, now)
    if not sets.complete:
        notes.append("stopped while parent sets were scored: no bound is known")
    elif not optimal:
        notes.append(f"not proven best: some graph may score up to {bound:.10g}, {bound - now:.4g} more")
    return FoundGraph(
        graph,
        score=now,
        path=path,
        optimal=optimal,
        bound=bound if sets.complete else None,
        notes=notes,
        details=ExactDetails(
            families_scored=sets.n_scored,
            parent_sets=sum(map(len, sets.sets)),
            levels=sets.levels,
            parts=[[names[x] for x in p.variables] for p in problems],
            expanded=expanded,
            gap=bound - now if sets.complete else None,
        ),
    )


def _loss(problem: OrderProblem, order: list[int]) -> float:
    placed, total = 0, 0.0
    for k in order:
        total += problem.loss(k, placed)
        placed |= 1 << k
    return total


def _feasible(problem: OrderProblem, required: np.ndarray) -> list[int]:
    """Return an order that the required edges allow."""
    order: list[int] = []
    left = list(range(problem.m))
    numbers = problem.variables
    while left:
        ready = next(k for k in left if not any(required[numbers[j], numbers[k]] for j in left))
        order.append(ready)
        left.remove(ready)
    return order
