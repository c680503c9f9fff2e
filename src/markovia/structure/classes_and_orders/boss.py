"""Best order score search (BOSS): move one variable at a time to its best place in an order.

Method: an order stands for the directed graph in which each variable has the parents that grow-shrink finds among the
earlier ones. Each variable in turn is moved to the place where the score is best, until no move gains; then edges are
deleted greedily from the class of the graph, as in the backward phase of GES; and again from the order of what is left,
while that gains. Kicks (an iterated local search) are an addition of ours: known trees make climbing again cheap.
Andrews, Ramsey, Sanchez-Romero, Camchong and Kummerfeld, *Fast scalable and accurate discovery of DAGs using the best order
score search and grow-shrink trees*, NeurIPS (2023). Cost: a few sweeps of 3 n^2 climbs along known trees, which
compiled code makes, and one row of scores for each new node of a tree. Use it where the best score counts; it takes
dense graphs better than GES.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from markovia.errors import InvalidArgument, check_known
from markovia.graphs.kinds.masks import mask_of
from markovia.kernels.structure.structure_records import MoveRoom
from markovia.runtime.array_types import Flags
from markovia.runtime.checks import check_count
from markovia.structure.classes_and_orders.cpdag_masks import topological
from markovia.structure.classes_and_orders.cpdag_search import ClassSearch
from markovia.structure.classes_and_orders.grow_shrink import GrowShrinkOrder, GrowShrinkTrees
from markovia.structure.scores.family_rows import LEAST_GAIN, FamilyRows
from markovia.structure.scores.scores import score_for
from markovia.structure.task.acyclicity import reachable
from markovia.structure.task.knowledge import Rules
from markovia.structure.task.result import FoundGraph, SearchStep
from markovia.structure.task.task import Task

COMPILED_FROM = 12
"""With so many variables the moves are scored by compiled code; below, plain Python is done before that is loaded."""

TOGETHER = 6
"""Nodes of trees that are computed together."""
KICKED = 3
"""How many variables a kick moves."""


@dataclass(frozen=True)
class OrderDetails:
    """Starts, families that were scored, nodes of the grow-shrink trees, and for "order-search" the best order."""

    starts: int
    families: int
    tree_nodes: int
    order: tuple[str, ...] | None = None


def boss(
    task: Task,
    *,
    starts: int = 1,
    kicks: int = 10,
    order: str | Sequence[str] = "both",
    backward: bool = True,
) -> FoundGraph:
    """Search over orders by best moves of single variables.

    Knowledge: a variable's parents are taken from the allowed ones, its required parents are always among them, and orders
    have required parents first. The backward phase obeys it as `ges` does. The graph that is returned has the edges directed
    that knowledge settles, and those that follow by Meek's rules.

    Parameters
    ----------
    task
        Data, knowledge and limits.
    starts
        How often the search begins: first from `order`, then from random ones. The best is kept.
    kicks
        How often the best order is disturbed by moving a few variables at random and climbed from again; what is better is
        kept. Give `seed` for the same answer each time; 0 leaves this out, and then nothing is random with one start.
    order
        What the first search begins with: "ges" for an order of the graph that greedy equivalence search finds; "data" for
        the order of the columns; "both" climbs from each and goes on from the better one; or the variables in an order
        of your own.
    backward
        Whether edges are deleted from the class at the end.

    Returns
    -------
    Found
        A CPDAG, and the score of its members.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.sprinkler().sample(5000, seed=3)
    >>> mk.learn_structure(rows, method="boss", starts=2, seed=0).graph
    MixedGraph(['cloudy --- sprinkler', 'cloudy --- rain', 'sprinkler --> wet', 'rain --> wet'])
    """
    check_count("starts", starts, 1)
    check_count("kicks", kicks)
    score = score_for(task)
    _, trees, class_rows = order_tools(task, score)
    path: list[SearchStep] = []
    best: ClassSearch | None = None
    first: str | Sequence[str] = order
    if isinstance(order, str) and order == "both":
        first = [task.names[k] for k in _better_start(task, trees, class_rows, path)]
    for begin in starting_orders(task, first, starts, class_rows, path):
        state = GrowShrinkOrder(trees, begin)
        path.append(SearchStep("start", state.value, task.clock.seconds))
        search = climb_orders(task, state, class_rows, path, kicks, backward)
        if best is None or search.value > best.value + LEAST_GAIN:
            best = search
    assert best is not None
    graph, value = best.answer()
    details = OrderDetails(starts, score.n_computed, trees.n_nodes)
    return FoundGraph(graph, score=value, path=path, details=details)


def order_tools(task: Task, score: object) -> tuple[FamilyRows, GrowShrinkTrees, FamilyRows]:
    """Return the scores for trees, the trees, and the scores for classes (where either direction may be looked at)."""
    from markovia.structure.scores.local_score import LocalScore

    assert isinstance(score, LocalScore)
    rules = task.rules
    rows = FamilyRows(score, rules.allowed)
    if score.n and (rules.max_parents > 0):
        rows.first_rows()
    class_rows = rows if rules.free else FamilyRows(score, rules.pairs)
    return rows, GrowShrinkTrees(rows, rules), class_rows


def climb_orders(
    task: Task,
    state: GrowShrinkOrder,
    class_rows: FamilyRows,
    path: list[SearchStep],
    kicks: int,
    backward: bool,
) -> ClassSearch:
    """Move variables until no move gains, then delete edges of the class, and again while that gains."""
    best_moves(task, state, path)
    for _ in range(kicks):
        if task.clock.over():
            break
        state = _kicked(task, state, path)
    while True:
        search = ClassSearch(task, class_rows, state.parents(), path)
        if not backward or task.clock.over() or not search.backward():
            return search
        _, dag = search.finish()
        again = GrowShrinkOrder(state.trees, required_first(topological(dag), task.rules))
        best_moves(task, again, path)
        if again.value <= search.value + LEAST_GAIN:
            return search
        state = again


def _kicked(task: Task, state: GrowShrinkOrder, path: list[SearchStep]) -> GrowShrinkOrder:
    """Move a few variables at random and climb from there; return the better order."""
    order = list(state.order)
    for v in task.rng.choice(len(order), min(KICKED, len(order)), replace=False).tolist():
        order.remove(v)
        order.insert(int(task.rng.integers(len(order) + 1)), v)
    steps: list[SearchStep] = []
    other = GrowShrinkOrder(state.trees, required_first(order, task.rules))
    best_moves(task, other, steps)
    if other.value <= state.value + LEAST_GAIN:
        return state
    path.append(SearchStep("kick", other.value, task.clock.seconds))
    return other


def best_moves(task: Task, state: GrowShrinkOrder, path: list[SearchStep]) -> None:
    """Move each variable to its best place, in turn, until a whole sweep gains nothing."""
    if len(state.order) >= COMPILED_FROM and not task.rules.required.any():
        _compiled_sweeps(task, state, path)
    else:
        _plain_sweeps(task, state, path)


def _compiled_sweeps(task: Task, state: GrowShrinkOrder, path: list[SearchStep]) -> None:
    from markovia.kernels.structure.order_moves import next_move

    n, clock, trees = len(state.order), task.clock, state.trees
    order = np.array(state.order, dtype=np.int64)
    room = MoveRoom(
        np.empty(n - 1, np.int64), np.empty(n, np.int64), np.zeros(n), np.empty(4 * n + TOGETHER, np.int64)
    )
    queue, at, made = order.copy(), 0, 0
    while not clock.over():
        at, what, k = next_move(queue, at, order, trees.branches, room, TOGETHER, LEAST_GAIN)
        if what == 2:
            trees.grow_all(room.wanted[:k].tolist())
        elif what == 1:
            # the queue ends where the last move was made: then a whole sweep gained nothing
            made += 1
            x = int(queue[at])
            queue, at = np.concatenate([queue[at + 1 :], queue[: at + 1]]), 0
            value = state.value + float(room.totals.max() - room.totals[state.place[x]])
            state.settle(order.tolist(), value)
            path.append(SearchStep(f"move {task.names[x]}", value, clock.seconds))
            clock.advance(note=f"{value:.6g}")
        else:
            break
    if made:
        state.refresh()


def _plain_sweeps(task: Task, state: GrowShrinkOrder, path: list[SearchStep]) -> None:
    n, clock = len(state.order), task.clock
    above, below = _required_ancestors(task.rules)
    quiet = 0
    while True:
        for x in list(state.order):
            if clock.over():
                return
            others = [y for y in state.order if y != x]
            here = state.place[x]
            low = max((k + 1 for k, y in enumerate(others) if above[y, x]), default=0)
            high = min((k for k, y in enumerate(others) if below[y, x]), default=n - 1)
            totals = (_compiled_moves if n >= COMPILED_FROM else _plain_moves)(
                state.trees, x, others, low, high
            )
            best = int((totals >= totals.max() - LEAST_GAIN).argmax())
            quiet += 1
            if totals[best] > totals[here - low] + LEAST_GAIN:
                _place(state, x, others, low + best)
                quiet = 0
                path.append(SearchStep(f"move {task.names[x]}", state.value, clock.seconds))
                clock.advance(note=f"{state.value:.6g}")
            if quiet >= n:
                return


def _place(state: GrowShrinkOrder, x: int, others: list[int], to: int) -> None:
    here = state.place[x]
    wanted = [*others[:to], x, *others[to:]]
    start, end = min(here, to), max(here, to) + 1
    state.rearrange(start, wanted[start:end])


def _compiled_moves(
    trees: GrowShrinkTrees, x: int, others: list[int], low: int, high: int
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    from markovia.kernels.structure.order_moves import move_scores

    line = np.array(others, dtype=np.int64)
    place = np.empty(len(others) + 1, dtype=np.int64)
    place[line] = np.arange(len(others))
    room = MoveRoom(line, place, np.zeros(len(place)), np.empty(4 * len(place), dtype=np.int64))
    while k := move_scores(x, trees.branches, room, 0, low, high):
        trees.grow_all(room.wanted[:k].tolist())
    return room.totals[low : high + 1]


def _plain_moves(
    trees: GrowShrinkTrees, x: int, others: list[int], low: int, high: int
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    before = 0
    for y in others[:low]:
        before |= 1 << y
    own, ahead, behind = [], [], []
    for k in range(low, high + 1):
        end = trees.climb(x, before)
        own.append(float(trees.score[end]))
        if k < high:
            y = others[k]
            node, other = trees.climb(y, before), trees.climb(y, before | 1 << x)
            behind.append(float(trees.score[node]))
            ahead.append(float(trees.score[other]))
            before |= 1 << y
    earlier = np.concatenate([[0.0], np.cumsum(behind)])
    later = np.concatenate([np.cumsum(ahead[::-1])[::-1], [0.0]])
    found: np.ndarray[tuple[int], np.dtype[np.float64]] = np.array(own) + earlier + later
    return found


def _better_start(
    task: Task, trees: GrowShrinkTrees, class_rows: FamilyRows, path: list[SearchStep]
) -> list[int]:
    """Return the order with the higher score after climbing from that of the columns and that of a greedy search."""
    found = []
    for order in ("data", "ges"):
        state = GrowShrinkOrder(trees, required_first(given_order(task, order, class_rows, path), task.rules))
        best_moves(task, state, path)
        found.append(state)
    return max(found, key=lambda state: state.value).order


def starting_orders(
    task: Task, order: str | Sequence[str], starts: int, class_rows: FamilyRows, path: list[SearchStep]
) -> Iterator[list[int]]:
    """Yield the orders to begin with, required parents first: the given one, then random ones until time is over."""
    yield required_first(given_order(task, order, class_rows, path), task.rules)
    for _ in range(starts - 1):
        if task.clock.over():
            return
        yield required_first(task.rng.permutation(len(task.names)).tolist(), task.rules)


def given_order(
    task: Task, order: str | Sequence[str], class_rows: FamilyRows, path: list[SearchStep]
) -> list[int]:
    """Return the order to begin with, as numbers."""
    n = len(task.names)
    if isinstance(order, str):
        if order == "data":
            return list(range(n))
        if order != "ges":
            raise InvalidArgument(f"order= is 'ges', 'data' or a list of names, not {order!r}")
        start = [mask_of(task.rules.required[:, j].nonzero()[0].tolist()) for j in range(n)]
        search = ClassSearch(task, class_rows, start, path)
        search.forward()
        search.backward()
        return topological(search.finish()[1])
    number = {name: k for k, name in enumerate(task.names)}
    check_known(order, number, "the data")
    found = [number[name] for name in order]
    if sorted(found) != list(range(n)):
        raise InvalidArgument(f"order= names each of the {n} variables once")
    return found


def required_first(order: list[int], rules: Rules) -> list[int]:
    """Return the order with required parents before their children, otherwise as it was."""
    if not rules.required.any():
        return order
    found: list[int] = []
    done = np.zeros(len(order), dtype=bool)
    while len(found) < len(order):
        for y in order:
            if not done[y] and done[rules.required[:, y]].all():
                done[y] = True
                found.append(y)
                break
    return found


def _required_ancestors(rules: Rules) -> tuple[Flags, Flags]:
    """Return which variables are required ancestors, and which required descendants, of each."""
    reach = reachable(rules.required) & ~np.eye(len(rules.required), dtype=bool)
    return reach, reach.T
