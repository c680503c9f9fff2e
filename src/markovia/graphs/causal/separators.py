"""Separators of mixed graphs: which sets of nodes block every path between two others, found without trying subsets.

A set Z that lies among the ancestors of x, y and what is required m-separates x from y exactly if it separates them
in the moral (augmented) graph of those ancestors, where every district and its parents are joined to each other.
There separators are cuts: one is found by a search, the cheapest by a maximal flow, and all minimal ones are listed
one after the other by growing the part around x (Takata). Sets of nodes are bit masks.

References: van der Zander, Liskiewicz and Textor, *Separators and adjustment sets in causal graphs: complete criteria
and an algorithmic framework*, Artificial Intelligence 270 (2019); Takata, *Space-optimal, backtracking algorithms to
list the minimal vertex separators of a graph*, Discrete Applied Mathematics 158 (2010). Cost: O(nodes + edges) words
of masks for one search, at most one search for each member of a set between two sets that are listed.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

from markovia.graphs.causal.admg import Admg
from markovia.graphs.kinds.masks import closed, mask_of, members, union_of


class Cuts(NamedTuple):
    """The separators of x and y that contain `required` and otherwise only nodes of `free`.

    `near` has, for each node, the mask of its neighbours in the moral graph of the ancestors.
    """

    near: list[int]
    x: int
    y: int
    free: int
    required: int

    @classmethod
    def of(cls, graph: Admg, x: int, y: int, allowed: int, required: int = 0) -> "Cuts":
        """Moralise what is above x, y and the required nodes."""
        above = graph.ancestors(x | y | required)
        near = [0] * len(graph.names)
        for district in graph.districts(above):
            clique = district | graph.parents_of(district)
            for node in members(clique):
                near[node] |= clique
        return cls(near, x, y, allowed & above & ~(x | y | required), required)

    def exists(self) -> bool:
        """Say whether there is a separator."""
        return not self._around(self.x, self.free) & self.y

    def nearest_to_x(self) -> int | None:
        """Return the minimal separator next to x, or None if there is none."""
        found = self._around_part(self.x)
        return None if found is None else found[1] | self.required

    def nearest_to_y(self) -> int | None:
        """Return the minimal separator next to y, or None if there is none."""
        return self._replace(x=self.y, y=self.x).nearest_to_x()

    def minimal(self) -> Iterator[int]:
        """Yield all minimal separators: those of which no member that is not required can be left out."""
        first = self._around_part(self.x)
        stack = [] if first is None else [(*first, 0)]
        while stack:
            part, cut, outside = stack.pop()
            yield cut | self.required
            for node in members(
                cut & ~outside
            ):  # the others have one of the cut on the side of x: the first such
                grown = self._around_part(part | 1 << node)
                if grown is not None and not grown[0] & outside:
                    stack.append((*grown, outside))
                outside |= 1 << node

    def cheapest(self, costs: Sequence[float]) -> int | None:
        """Return the separator of least total cost, of several the one next to y, or None if there is none.

        Every free node v is a pipe from 2v to 2v + 1 as wide as its cost; where a maximal flow from y to x fills it
        up, it is cut. The paths that are widened are shortest ones (Edmonds and Karp).
        """
        if not self.exists():
            return None
        room: list[dict[int, float]] = [{} for _ in range(2 * len(self.near))]
        for v, around in enumerate(self.near):
            room[2 * v][2 * v + 1] = costs[v] if self.free >> v & 1 else inf
            room[2 * v + 1].setdefault(2 * v, 0.0)
            for w in members(around & ~(self.required | 1 << v)):
                room[2 * v + 1][2 * w] = inf
                room[2 * w].setdefault(2 * v + 1, 0.0)
        starts, goals = [2 * v + 1 for v in members(self.y)], {2 * v for v in members(self.x)}
        while True:
            came, end = _path_with_room(room, starts, goals)
            if end is None:
                return self.required | mask_of(
                    v for v in members(self.free) if 2 * v in came and 2 * v + 1 not in came
                )
            path = [end]
            while came[path[-1]] != path[-1]:
                path.append(came[path[-1]])
            arcs = [(a, b) for b, a in pairwise(path)]
            width = min(room[a][b] for a, b in arcs)
            for a, b in arcs:
                room[a][b] -= width
                room[b][a] += width

    def _around(self, start: int, walls: int) -> int:
        return closed(start, self.near, ~(walls | self.required) | start)

    def _around_part(self, part: int) -> tuple[int, int] | None:
        """Return the smallest side of x around a part of it that a minimal separator leaves, and that separator."""
        walls = self.free & ~part
        region = self._around(part, walls)
        if region & self.y:
            return None
        touched = union_of(region, self.near) & walls
        cut = union_of(self._around(self.y, touched), self.near) & touched
        return self._around(self.x, cut), cut


def _path_with_room(
    room: list[dict[int, float]], starts: list[int], goals: set[int]
) -> tuple[dict[int, int], int | None]:
    """Search from the starts along arcs with room; return whence each was reached, and the goal that was."""
    came = {start: start for start in starts}
    queue = list(starts)
    for here in queue:
        for there, width in room[here].items():
            if width > 0 and there not in came:
                came[there] = here
                if there in goals:
                    return came, there
                queue.append(there)
    return came, None
