"""K2: with the order of the variables known, each one's parents are chosen greedily among those before it.

Parents are added one at a time while the score rises (Cooper & Herskovits 1992). No cycle can arise, and the variables are
independent of each other. Cost: n^2 times the number of parents families. For data whose order in time is known.
"""

from collections.abc import Sequence

import numpy as np

from markovia.errors import InvalidArgument, check_known
from markovia.structure.dag_search.edge_moves import TINY
from markovia.structure.dag_search.hill_climbing import ClimbDetails
from markovia.structure.scores.scores import score_for
from markovia.structure.task.acyclicity import directed_graph
from markovia.structure.task.result import FoundGraph, SearchStep
from markovia.structure.task.task import Task


def k2(task: Task, *, order: Sequence[str] | None = None) -> FoundGraph:
    """Choose parents greedily along an order; with the score "k2" unless another is asked for.

    Parameters
    ----------
    task
        Data, knowledge and limits. Required edges must not go against the order.
    order
        All variables, causes before effects; by default the order of the data's columns.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.sprinkler().sample(2000, seed=1)
    >>> mk.learn_structure(rows, method="k2", order=["cloudy", "rain", "sprinkler", "wet"]).dag.parents("wet")
    ['sprinkler', 'rain']
    """
    if task.score is None and task.rows.discrete:
        task.score = "k2"
    score, rules, clock = score_for(task), task.rules, task.clock
    sequence = _numbers(task.names, order)
    place = np.empty(score.n, dtype=np.int64)
    place[sequence] = np.arange(score.n)
    for i, j in np.argwhere(rules.required).tolist():
        if place[i] > place[j]:
            raise InvalidArgument(
                f"the edge {task.names[i]!r} -> {task.names[j]!r} is required and against the order"
            )
    edges = rules.required.copy()
    now = score.many([(j, tuple(np.flatnonzero(edges[:, j]).tolist())) for j in range(score.n)])
    path = [SearchStep("start", float(now.sum()), clock.seconds)]
    for child in sequence:
        while edges[:, child].sum() < rules.max_parents and not clock.over():
            free = np.flatnonzero(rules.allowed[:, child] & ~edges[:, child] & (place < place[child]))
            if not len(free):
                break
            gains = score.added(child, np.flatnonzero(edges[:, child]).tolist(), free) - now[child]
            at = int(gains.argmax())
            if gains[at] <= TINY * max(1.0, abs(now[child])):
                break
            edges[free[at], child] = True
            now[child] += gains[at]
            move = f"add {task.names[free[at]]} -> {task.names[child]}"
            path.append(SearchStep(move, float(now.sum()), clock.seconds))
        clock.advance(note=task.names[child])
    details = ClimbDetails(len(path), score.n_computed)
    return FoundGraph(directed_graph(edges, task.names), score=float(now.sum()), path=path, details=details)


def _numbers(names: Sequence[str], order: Sequence[str] | None) -> list[int]:
    if order is None:
        return list(range(len(names)))
    if isinstance(order, str):
        raise InvalidArgument(f"order= is a list of all variables, not {order!r}")
    number = {name: i for i, name in enumerate(names)}
    found = []
    for name in order:
        check_known([name], number, "the data")
        found.append(number[name])
    if len(set(found)) < len(found) or len(found) < len(names):
        wrong = next((n for n in names if list(order).count(n) != 1), "")
        raise InvalidArgument(
            f"order= names every variable once, and {wrong!r} is there {list(order).count(wrong)} times"
        )
    return found
