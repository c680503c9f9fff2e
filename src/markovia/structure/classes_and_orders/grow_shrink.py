"""Grow-shrink trees: the parents of each variable among those before it, remembered for all orders at once.

Method: to choose parents among the variables that come earlier in an order, add the one that raises the score most
until none does (grow), then take away while that raises it (shrink). For one child all these climbs, over all orders,
are paths of one tree: a node is a set of parents, its branches are the further parents that gain, best first. A climb
goes down by the first branch whose variable is allowed, and a node is computed when a climb first comes to it (Andrews,
Ramsey, Sanchez-Romero, Camchong and Kummerfeld, *Fast scalable and accurate discovery of DAGs using the best order
score search and grow-shrink trees*, NeurIPS 2023). Cost: one row of scores for each node; a climb along known nodes
costs a look at each branch.
"""

import numpy as np

from markovia.graphs.kinds.masks import mask_of, members
from markovia.kernels.structure.structure_records import GrowShrinkBranches
from markovia.runtime.array_types import Array, Ints
from markovia.structure.scores.family_rows import LEAST_GAIN, FamilyRows
from markovia.structure.task.knowledge import Rules


class GrowShrinkTrees:
    """One tree for each variable; node y is the root of variable y's tree, its required parents.

    Parameters
    ----------
    rows
        The scores.
    rules
        What is known: parents are allowed ones, required parents are never taken away.

    Attributes
    ----------
    child, grown
        For each node its variable, and its set of parents (a mask) before shrinking.
    kept, score
        For each node the parents that are left after shrinking, and their score.
    first, count, branch, follow
        The branches of node t are `branch[first[t] : first[t] + count[t]]`, variables, best first; `follow` holds the
        node each leads to, or -1 where no climb has been.
    """

    def __init__(self, rows: FamilyRows, rules: Rules) -> None:
        self.rows = rows
        self.rules = rules
        self.child: list[int] = []
        self.grown: list[int] = []
        self.kept: list[int] = []
        self.better: list[int] = []
        self.n_nodes = 0
        self.first: Ints = np.zeros(64, dtype=np.int64)
        self.count: Ints = np.zeros(64, dtype=np.int64)
        self.score: Array = np.zeros(64)
        self.n_branches = 0
        self.branch: Ints = np.zeros(256, dtype=np.int64)
        self.follow: Ints = np.zeros(256, dtype=np.int64)
        self.origin: Ints = np.zeros(256, dtype=np.int64)
        self._required = [mask_of(rules.required[:, y].nonzero()[0].tolist()) for y in range(rows.n)]
        self._allowed = [rules.allowed[:, y] for y in range(rows.n)]
        for y in range(rows.n):
            self._add(y, self._required[y])

    @property
    def branches(self) -> GrowShrinkBranches:
        """The trees as compiled code reads them."""
        return GrowShrinkBranches(self.first, self.count, self.branch, self.follow, self.score)

    def climb(self, y: int, before: int) -> int:
        """Return the node that variable y's climb ends at, with the variables of a mask before it."""
        node = y
        while self.better[node] & before:
            at = int(self.first[node])
            for variable in self.branch[at : at + self.count[node]].tolist():
                if before >> variable & 1:
                    break
                at += 1
            node = int(self.follow[at])
            if node < 0:
                node = self.grow(at)
        return node

    def grow(self, at: int) -> int:
        """Compute the node that a branch leads to, and return it."""
        above = int(self.origin[at])
        node = self._add(self.child[above], self.grown[above] | 1 << int(self.branch[at]))
        self.follow[at] = node
        return node

    def grow_all(self, wanted: list[int]) -> None:
        """Compute the nodes that several branches lead to; their scores are asked for together."""
        above = self.origin[wanted].tolist()
        sets = [
            (self.child[t], self.grown[t] | 1 << v)
            for t, v in zip(above, self.branch[wanted].tolist(), strict=True)
        ]
        most = self.rules.max_parents
        self.rows.fetch([(y, parents) for y, parents in sets if parents.bit_count() < most])
        self.rows.know(
            [(y, parents & ~(1 << p)) for y, parents in sets for p in members(parents & ~self._required[y])]
        )
        for at in wanted:
            self.grow(at)

    def _add(self, y: int, parents: int) -> int:
        node = self.n_nodes
        value = self.rows.local(y, parents)
        further: list[int] = []
        if parents.bit_count() < self.rules.max_parents:
            gains = np.where(self._allowed[y], self.rows.row(y, parents) - value, -np.inf)
            chosen = np.flatnonzero(gains > LEAST_GAIN)
            further = chosen[np.argsort(-gains[chosen], kind="stable")].tolist()
        kept, value = self._shrunk(y, parents, value)
        self.child.append(y)
        self.grown.append(parents)
        self.kept.append(kept)
        self.better.append(mask_of(further))
        self._make_room(len(further))
        start, end = self.n_branches, self.n_branches + len(further)
        self.first[node], self.count[node], self.score[node] = start, len(further), value
        self.branch[start:end] = further
        self.follow[start:end] = -1
        self.origin[start:end] = node
        self.n_branches = end
        self.n_nodes += 1
        return node

    def _shrunk(self, y: int, parents: int, value: float) -> tuple[int, float]:
        while True:
            best, out = value + LEAST_GAIN, -1
            for p in members(parents & ~self._required[y]):
                without = self.rows.local(y, parents & ~(1 << p))
                if without > best:
                    best, out = without, p
            if out < 0:
                return parents, value
            parents &= ~(1 << out)
            value = best

    def _make_room(self, branches: int) -> None:
        if self.n_nodes == len(self.first):
            self.first = np.concatenate([self.first, np.zeros_like(self.first)])
            self.count = np.concatenate([self.count, np.zeros_like(self.count)])
            self.score = np.concatenate([self.score, np.zeros_like(self.score)])
        while self.n_branches + branches > len(self.branch):
            self.branch = np.concatenate([self.branch, np.zeros_like(self.branch)])
            self.follow = np.concatenate([self.follow, np.zeros_like(self.follow)])
            self.origin = np.concatenate([self.origin, np.zeros_like(self.origin)])


class GrowShrinkOrder:
    """An order of the variables and the directed graph it stands for: the parents that each climb finds.

    Attributes
    ----------
    order, place
        The variables in their order, and where each is.
    node
        For each variable the node of its tree that its climb ends at.
    value
        The score.
    """

    def __init__(self, trees: GrowShrinkTrees, order: list[int]) -> None:
        self.trees = trees
        self.order = list(order)
        self.place = [0] * len(order)
        self.node = [0] * len(order)
        self.value = 0.0
        self.refresh()

    def parents(self) -> list[int]:
        """Return the parents of each variable as masks."""
        return [self.trees.kept[t] for t in self.node]

    def settle(self, order: list[int], value: float) -> None:
        """Take over an order and its score; nodes are as before until `refresh`."""
        self.order = order
        for k, y in enumerate(order):
            self.place[y] = k
        self.value = value

    def refresh(self) -> None:
        """Climb again for every variable."""
        before = 0
        for k, y in enumerate(self.order):
            self.place[y] = k
            self.node[y] = self.trees.climb(y, before)
            before |= 1 << y
        self.value = float(sum(self.trees.score[t] for t in self.node))

    def before(self, k: int) -> int:
        """Return the mask of the first k variables."""
        return mask_of(self.order[:k])

    def rearrange(self, start: int, segment: list[int]) -> list[tuple[int, int]]:
        """Put variables in another order from a place on; return what undoes it (variable, node), in the old order."""
        old = [(y, self.node[y]) for y in self.order[start : start + len(segment)]]
        before = self.before(start)
        scores = self.trees.score
        for k, y in enumerate(segment):
            self.order[start + k] = y
            self.place[y] = start + k
            node = self.trees.climb(y, before)
            if node != self.node[y]:
                scores = self.trees.score
                self.value += float(scores[node] - scores[self.node[y]])
                self.node[y] = node
            before |= 1 << y
        return old

    def undo(self, start: int, old: list[tuple[int, int]], value: float) -> None:
        """Take a rearrangement back."""
        for k, (y, node) in enumerate(old):
            self.order[start + k] = y
            self.place[y] = start + k
            self.node[y] = node
        self.value = value
