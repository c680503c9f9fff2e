"""One strongly connected part of the graph of possible parents, as a search for the best order of its variables.

The best graphs of the parts together are the best graph: parents in other parts never close a cycle (Fan, Malone and Yuan
2014). A part's parent sets become bit masks over its own variables, and scores become losses against each variable's best.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from markovia.errors import TooLarge
from markovia.kernels.structure.structure_records import ParentSetLosses
from markovia.runtime.array_types import Array
from markovia.structure.scores.parent_set_scores import ParentSets
from markovia.structure.task.acyclicity import reachable

TOLERANCE = 1e-11
"""Differences below this share of the whole score are rounding."""


@dataclass
class OrderProblem:
    """Variables to be put in order, each with its parent sets.

    Attributes
    ----------
    variables
        Their numbers in the data; bit k stands for the k-th.
    sets
        The parent sets of each.
    chosen
        For each set the parents it stands for, in other parts as well.
    top
        The sum of the variables' best scores.
    """

    variables: list[int]
    sets: ParentSetLosses
    chosen: list[tuple[int, ...]]
    top: float
    tops: Array

    @property
    def m(self) -> int:
        """The number of variables."""
        return len(self.variables)

    @property
    def slack(self) -> float:
        """A loss that is rounding."""
        return TOLERANCE * (1.0 + float(np.abs(self.tops).sum()))

    def loss(self, k: int, placed: int) -> float:
        """Return the least loss of a variable with parents among those placed."""
        at = self._first(k, placed)
        return float("inf") if at < 0 else float(self.sets.losses[at])

    def parents(self, order: Sequence[int]) -> dict[int, tuple[int, ...]]:
        """Return the best parents of every variable when parents come earlier in an order."""
        placed, found = 0, {}
        for k in order:
            found[self.variables[k]] = self.chosen[self._first(k, placed)]
            placed |= 1 << k
        return found

    def reordered(self, order: Sequence[int]) -> "OrderProblem":
        """Return the same problem with its variables numbered otherwise: the new k-th is the old `order[k]`."""
        place = np.empty(self.m, dtype=np.int64)
        place[list(order)] = np.arange(self.m)
        start, masks, losses = self.sets
        renamed = np.zeros(len(masks), dtype=np.int64)
        for k in range(self.m):
            renamed |= (masks >> k & 1) << int(place[k])
        parts = [np.arange(start[k], start[k + 1]) for k in order]
        pick = np.concatenate(parts)
        return OrderProblem(
            [self.variables[k] for k in order],
            ParentSetLosses(np.cumsum([0, *map(len, parts)], dtype=np.int64), renamed[pick], losses[pick]),
            [self.chosen[i] for i in pick.tolist()],
            self.top,
            self.tops[list(order)],
        )

    def _first(self, k: int, placed: int) -> int:
        start, masks, _ = self.sets
        fits = np.flatnonzero(masks[start[k] : start[k + 1]] & ~placed == 0)
        return int(start[k] + fits[0]) if len(fits) else -1


def order_problems(found: ParentSets) -> list[OrderProblem]:
    """Split variables into the strongly connected parts of the graph of possible parents, earlier parts first."""
    n = len(found.sets)
    possible = np.zeros((n, n), dtype=bool)
    for x, sets in enumerate(found.sets):
        for parents in sets:
            possible[list(parents), x] = True
    return [_problem(part, found) for part in _parts(possible)]


def _parts(edges: NDArray[np.bool_]) -> list[list[int]]:
    """Return the strongly connected parts, from sources to sinks."""
    reach = reachable(edges)
    both = reach & reach.T
    parts, seen = [], np.zeros(len(edges), dtype=bool)
    for x in range(len(edges)):
        if not seen[x]:
            part = np.flatnonzero(both[x])
            seen[part] = True
            parts.append(part.tolist())
    return sorted(parts, key=lambda part: int(reach[:, part[0]].sum()))


def _problem(part: list[int], found: ParentSets) -> OrderProblem:
    if len(part) > 62:
        raise TooLarge(
            f"{len(part)} variables hang together by possible parents, and exact search takes 62 at most; "
            "forbid edges, or use method='order-search'"
        )
    place = {x: k for k, x in enumerate(part)}
    start, masks, losses, chosen = [0], [], [], []
    tops = []
    for x in part:
        top = float(found.scores[x][0])
        tops.append(top)
        kept: list[int] = []
        for parents, score in zip(found.sets[x], found.scores[x].tolist(), strict=True):
            mask = sum(1 << place[p] for p in parents if p in place)
            if any(other & ~mask == 0 for other in kept):
                continue  # a better set asks for no more
            kept.append(mask)
            masks.append(mask)
            losses.append(top - score)
            chosen.append(parents)
        start.append(len(masks))
    return OrderProblem(
        part,
        ParentSetLosses(np.array(start), np.array(masks, dtype=np.int64), np.array(losses, dtype=np.float64)),
        chosen,
        float(sum(tops)),
        np.array(tops),
    )
