"""Order-based search: swap neighbours in an order of the variables.

Method: an order's score is the sum over variables of the best family whose parents come earlier. The best swap of two
neighbours is made, again and again, with a list of swaps that may not be taken back at once, and from several random
orders. Only the two families of a swap change, so one step costs a few families. Teyssier and Koller, *Ordering-based
search: a simple and effective algorithm for learning Bayesian networks*, UAI (2005). Families are found by grow-shrink
(`grow_shrink`), or listed beforehand among the most promising candidates, as in the paper, where each is then the best
of its list. Use it as a light-weight search; BOSS moves variables further at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from markovia.graphs.kinds.masks import mask_of
from markovia.runtime.checks import check_choice, check_count
from markovia.structure.classes_and_orders.boss import OrderDetails, order_tools, starting_orders
from markovia.structure.classes_and_orders.cpdag_search import ClassSearch
from markovia.structure.classes_and_orders.grow_shrink import GrowShrinkTrees
from markovia.structure.scores.family_rows import LEAST_GAIN, FamilyRows
from markovia.structure.scores.scores import score_for
from markovia.structure.task.knowledge import Rules
from markovia.structure.task.result import FoundGraph, SearchStep
from markovia.structure.task.task import Task

LISTED_PARENTS = 3
"""The largest listed family where max_parents says nothing less."""


def order_search(
    task: Task,
    *,
    starts: int = 5,
    tabu: int = 10,
    patience: int = 200,
    families: str = "grow-shrink",
    candidates: int = 10,
    order: str | Sequence[str] = "data",
) -> FoundGraph:
    """Search over orders by swaps of neighbours.

    Knowledge is obeyed as in `boss`; a swap that would put a variable before a required parent is not made.

    Parameters
    ----------
    task
        Data, knowledge and limits.
    tabu
        For how many steps a swap is not taken back.
    patience
        How many steps without a better score are made before a search ends.
    families
        "grow-shrink", or "listed": all sets of up to 3 (or `max_parents`, if that is less) of a variable's candidates.
    candidates
        For listed families, how many candidates a variable has: those that raise its score most as only parents.
    order, starts
        As in `boss`.

    Returns
    -------
    Found
        As `boss`; `details.order` is the best order.

    Examples
    --------
    >>> import markovia as mk
    >>> data = mk.BayesianNetwork("a->c; b->c", tables="random", seed=1).sample(5000, seed=3)
    >>> found = mk.learn_structure(data, method="order-search", seed=0)
    >>> found.graph, found.details.order[-1]
    (MixedGraph(['a --> c', 'b --> c']), 'c')
    """
    check_count("starts", starts, 1)
    check_count("tabu", tabu)
    check_count("patience", patience)
    check_count("candidates", candidates, 1)
    check_choice("families", families, ("grow-shrink", "listed"))
    score = score_for(task)
    rows, trees, class_rows = order_tools(task, score)
    source = _Trees(trees) if families == "grow-shrink" else _Lists(rows, task.rules, candidates)
    path: list[SearchStep] = []
    best: _Line | None = None
    for begin in starting_orders(task, order, starts, class_rows, path):
        line = _Line(source, begin, task.rules)
        path.append(SearchStep("start", line.value, task.clock.seconds))
        line = _climbed(task, line, tabu, patience, path)
        if best is None or line.value > best.value + LEAST_GAIN:
            best = line
    assert best is not None
    graph, value = ClassSearch(task, class_rows, best.parents, path).answer()
    order = tuple(task.names[v] for v in best.order)
    details = OrderDetails(starts, score.n_computed, trees.n_nodes, order)
    return FoundGraph(graph, score=value, path=path, details=details)


class _Trees:
    """The families that grow-shrink finds."""

    def __init__(self, trees: GrowShrinkTrees) -> None:
        self.trees = trees

    def best(self, y: int, before: int) -> tuple[float, int]:
        node = self.trees.climb(y, before)
        return float(self.trees.score[node]), self.trees.kept[node]


class _Lists:
    """The families of each variable in a list, best first, without those that a subset beats."""

    def __init__(self, rows: FamilyRows, rules: Rules, candidates: int) -> None:
        self.lists: list[list[tuple[float, int]]] = []
        most = min(LISTED_PARENTS, rules.max_parents)
        for y in range(rows.n):
            required = np.flatnonzero(rules.required[:, y]).tolist()
            base = mask_of(required)
            row = rows.row(y, base)
            free = np.flatnonzero(row > -np.inf)
            chosen = sorted(free[np.argsort(-row[free], kind="stable")][:candidates].tolist())
            room = max(0, most - len(required))
            sets = [
                tuple(sorted((*required, *more))) for k in range(room + 1) for more in combinations(chosen, k)
            ]
            scored = zip(rows.score.many([(y, s) for s in sets]).tolist(), sets, strict=True)
            kept: list[tuple[float, int]] = []
            for value, own in sorted(scored, key=lambda pair: (-round(pair[0], 6), len(pair[1]), pair[1])):
                kept.append((value, mask_of(own)))
                if len(own) == len(required):
                    break
            self.lists.append(kept)

    def best(self, y: int, before: int) -> tuple[float, int]:
        return next(pair for pair in self.lists[y] if not pair[1] & ~before)


@dataclass
class _Line:
    """An order with the family of each variable, and what each swap of neighbours gains."""

    source: _Trees | _Lists
    order: list[int]
    rules: Rules
    scores: list[float] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        n = len(self.order)
        self.scores, self.parents = [0.0] * n, [0] * n
        self.before = [0] * n
        seen = 0
        for k, y in enumerate(self.order):
            self.before[k] = seen
            self.scores[y], self.parents[y] = self.source.best(y, seen)
            seen |= 1 << y
        self.value = sum(self.scores)
        self.gains = np.array([self._gain(k) for k in range(n - 1)])

    def _gain(self, k: int) -> float:
        a, b = self.order[k], self.order[k + 1]
        if self.rules.required[a, b]:
            return -np.inf
        first, _ = self.source.best(b, self.before[k])
        second, _ = self.source.best(a, self.before[k] | 1 << b)
        return first + second - self.scores[a] - self.scores[b]

    def swap(self, k: int) -> None:
        a, b = self.order[k], self.order[k + 1]
        self.value += float(self.gains[k])
        self.order[k], self.order[k + 1] = b, a
        self.scores[b], self.parents[b] = self.source.best(b, self.before[k])
        self.before[k + 1] = self.before[k] | 1 << b
        self.scores[a], self.parents[a] = self.source.best(a, self.before[k + 1])
        for j in (k - 1, k, k + 1):
            if 0 <= j < len(self.gains):
                self.gains[j] = self._gain(j)


def _climbed(task: Task, line: _Line, tabu: int, patience: int, path: list[SearchStep]) -> _Line:
    """Make the best swap that is not forbidden until nothing better is found for a while; return the best order."""
    best, until = list(line.order), 0
    value = line.value
    forbidden: dict[tuple[int, int], int] = {}
    step = 0
    while until <= patience and len(line.gains) and not task.clock.over():
        step += 1
        pairs = zip(line.order[:-1], line.order[1:], strict=True)
        held = np.array([forbidden.get(pair, 0) >= step for pair in pairs])
        better = line.value + line.gains > value + LEAST_GAIN
        open_gains = np.where(held & ~better, -np.inf, line.gains)
        if not np.isfinite(open_gains.max()):
            break
        k = int(task.rng.choice(np.flatnonzero(open_gains >= open_gains.max() - LEAST_GAIN)))
        a, b = line.order[k], line.order[k + 1]
        line.swap(k)
        forbidden[b, a] = step + tabu
        until += 1
        if line.value > value + LEAST_GAIN:
            value, until = line.value, 0
            best = list(line.order)
            names = task.names
            path.append(SearchStep(f"swap {names[a]}, {names[b]}", value, task.clock.seconds))
            task.clock.advance(note=f"{value:.6g}")
    return _Line(line.source, best, line.rules)
