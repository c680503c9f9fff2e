"""Greedy relaxations of the sparsest permutation (GRaSP): tuck a child in before its parent.

Method: an order stands for the directed graph whose parents grow-shrink finds among the earlier variables. A tuck of an edge
x -> y moves y, with those of its ancestors that are between them, to just before x. Tucks are tried depth first: one
that gains is kept and the search begins anew, one that leaves the score as it is may be followed by another, to a given
depth. Covered edges (x and y share their other parents) move inside the class or to a sparser one; singular edges (the
only directed path from x to y) and all edges relax that. Lam, Andrews and Ramsey, *Greedy relaxations of the sparsest
permutation algorithm*, UAI (2022). Cost: exponential in the depth at worst; trees remember all climbs (`grow_shrink`).
Use it on small and dense graphs; BOSS is faster on large ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from markovia.graphs.kinds.masks import is_above, mask_of, members
from markovia.runtime.checks import check_count
from markovia.structure.classes_and_orders.boss import OrderDetails, order_tools, starting_orders
from markovia.structure.classes_and_orders.cpdag_search import ClassSearch
from markovia.structure.classes_and_orders.grow_shrink import GrowShrinkOrder
from markovia.structure.scores.family_rows import LEAST_GAIN
from markovia.structure.scores.scores import score_for
from markovia.structure.task.result import FoundGraph, SearchStep
from markovia.structure.task.task import Task


def grasp(
    task: Task,
    *,
    depth: int = 3,
    singular_depth: int = 1,
    any_depth: int = 1,
    order: str | Sequence[str] = "ges",
    starts: int = 1,
    backward: bool = False,
) -> FoundGraph:
    """Search over orders by tucks, depth first.

    Knowledge is obeyed as in `boss`; a tuck that would put a variable before a required parent is not made.

    Parameters
    ----------
    task
        Data, knowledge and limits.
    depth
        How many tucks may follow each other until the score has to be better.
    singular_depth
        The first tucks of these that may be of singular edges, not only of covered ones.
    any_depth
        The first tucks of these that may be of any edge. With 0 here this is GRaSP-1 of the paper; with 0 for the singular
        ones too it is GRaSP-0.
    order, starts
        As in `boss`.
    backward
        Whether edges are deleted from the class at the end, as in the backward phase of `ges`.

    Returns
    -------
    Found
        As `boss`.

    Examples
    --------
    >>> import markovia as mk
    >>> data = mk.examples.asia().sample(2000, seed=1)
    >>> mk.learn_structure(data, method="grasp").score > mk.learn_structure(data, method="ges").score - 1e-6
    True
    """
    check_count("depth", depth, 1)
    check_count("singular_depth", singular_depth)
    check_count("any_depth", any_depth)
    check_count("starts", starts, 1)
    score = score_for(task)
    _, trees, class_rows = order_tools(task, score)
    path: list[SearchStep] = []
    best: GrowShrinkOrder | None = None
    for begin in starting_orders(task, order, starts, class_rows, path):
        state = GrowShrinkOrder(trees, begin)
        path.append(SearchStep("start", state.value, task.clock.seconds))
        tucks = _Tucks(task, state, depth, max(singular_depth, any_depth), any_depth, path)
        while not task.clock.over() and tucks.improve():
            pass
        if best is None or state.value > best.value + LEAST_GAIN:
            best = state
    assert best is not None
    search = ClassSearch(task, class_rows, best.parents(), path)
    if backward:
        search.backward()
    graph, value = search.answer()
    details = OrderDetails(starts, score.n_computed, trees.n_nodes)
    return FoundGraph(graph, score=value, path=path, details=details)


@dataclass
class _Tucks:
    """A depth-first search for tucks that gain."""

    task: Task
    state: GrowShrinkOrder
    depth: int
    singular_depth: int
    any_depth: int
    path: list[SearchStep]

    def improve(self) -> bool:
        """Make tucks until the score is better; say whether it is, and otherwise leave the order as it was."""
        start = self.state.value
        self._seen = {self._shape()}
        if not self._deeper(1, start):
            return False
        self.path.append(SearchStep("tuck", self.state.value, self.task.clock.seconds))
        self.task.clock.advance(note=f"{self.state.value:.6g}")
        return True

    def _deeper(self, level: int, start: float) -> bool:
        state = self.state
        parents = state.parents()
        for y in list(state.order):
            if self.task.clock.over():
                return False
            for x in sorted(members(parents[y]), key=state.place.__getitem__):
                bit = 1 << x
                covered = parents[x] == parents[y] & ~bit
                free = covered or level <= self.any_depth
                # an edge is singular if no other directed path leads from x to y
                if not free and (level > self.singular_depth or is_above(parents, x, parents[y] & ~bit)):
                    continue
                if self.task.rules.required[x, y]:
                    continue
                at, segment = self._tucked(parents, x, y)
                if segment is None:
                    continue
                value = state.value
                old = state.rearrange(at, segment)
                if state.value > start + LEAST_GAIN:
                    return True
                if level < self.depth and state.value > start - LEAST_GAIN:
                    shape = self._shape()
                    if shape not in self._seen:
                        self._seen.add(shape)
                        if self._deeper(level + 1, start):
                            return True
                state.undo(at, old, value)
        return False

    def _tucked(self, parents: list[int], x: int, y: int) -> tuple[int, list[int] | None]:
        """Return where x is, and the order from there to y after the tuck; None if knowledge forbids it."""
        state = self.state
        low, high = state.place[x], state.place[y]
        between = mask_of(state.order[low + 1 : high])
        taken, waiting = 1 << y, parents[y] & between
        while waiting:
            taken |= waiting
            found = 0
            for v in members(waiting):
                found |= parents[v]
            waiting = found & between & ~taken
        if self.task.rules.required[x, members(taken)].any():
            return low, None
        inside = state.order[low : high + 1]
        first = [v for v in inside if taken >> v & 1]
        return low, first + [v for v in inside if not taken >> v & 1]

    def _shape(self) -> tuple[int, ...]:
        return tuple(self.state.parents())
