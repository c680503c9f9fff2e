"""Directing the edges of a skeleton: what is known, v-structures, and Meek's rules.

A triple x - z - y with x and y not adjacent is a collider x -> z <- y or it is not. Three ways to decide (Colombo and
Maathuis, JMLR 2014):

- "standard": it is unless z is in the set that separated x and y (Spirtes and Glymour 1991);
- "conservative": every subset of the neighbours of x and of y is tried; it is if z is in none of those that separate,
  it is not if z is in all of them, otherwise the triple is ambiguous and nothing is concluded from it (Ramsey, Zhang
  and Spirtes, *Adjacency-faithfulness and conservative causal inference*, UAI 2006);
- "majority": likewise, decided by the larger part of the separating sets; ambiguous only at a tie.

Meek's four rules (*Causal inference and causal explanation with background knowledge*, UAI 1995) then direct what
follows from no further collider and no cycle; they never conclude anything from an ambiguous triple. Where directions
contradict each other, nothing is overwritten in silence: every contradiction is listed.
Cost: "standard" asks no test; the others all subsets of the neighbours of x and of y for each triple.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.graphs.kinds.mixed import Mark, MixedGraph
from markovia.runtime.array_types import Flags
from markovia.runtime.clock import Clock
from markovia.structure.ci_tests.ci_tests import CITest, Query
from markovia.structure.constraint.adjacency_search import Skeleton
from markovia.structure.task.knowledge import Rules

Triple = tuple[int, int, int]
"""x, z, y: the one in the middle is in the middle, x < y."""


class OrientationConflict(NamedTuple):
    """A direction that was concluded and could not be had: tail, head, and why."""

    tail: str
    head: str
    why: str


@dataclass
class Triples:
    """What was decided about unshielded triples."""

    colliders: list[Triple] = field(default_factory=list)
    ambiguous: set[Triple] = field(default_factory=set)


def decide_triples(
    test: CITest, skeleton: Skeleton, rule: str, clock: Clock, depth: int | None = None
) -> Triples:
    """Decide which unshielded triples are colliders.

    Parameters
    ----------
    test, skeleton, clock
        The test, who is adjacent with the separating sets, when to stop (then the rest is decided by the standard rule).
    rule
        "standard", "conservative" or "majority".
    depth
        The largest separating set that is tried.
    """
    decided = Triples()
    for x, z, y in unshielded(skeleton.adjacent):
        first = skeleton.separators.get((x, y))
        if rule == "standard" or clock.over():
            if first is None:
                decided.ambiguous.add((x, z, y))
            elif z not in first:
                decided.colliders.append((x, z, y))
            continue
        separating = _separating_sets(test, skeleton.adjacent, x, y, depth, clock)
        if first is not None:
            separating.add(tuple(sorted(first)))
        with_z = sum(z in given for given in separating)
        share = with_z / len(separating) if separating else 0.5
        if share in (0.0, 1.0) or (rule == "majority" and share != 0.5):
            if share < 0.5:
                decided.colliders.append((x, z, y))
        else:
            decided.ambiguous.add((x, z, y))
        clock.advance(note="v-structures")
    return decided


def unshielded(adjacent: Flags) -> Iterator[Triple]:
    """Yield every triple x - z - y with x < y not adjacent, by x, y and z."""
    found = [
        (x, y, z)
        for z, row in enumerate(adjacent)
        for x, y in combinations(np.flatnonzero(row).tolist(), 2)
        if not adjacent[x, y]
    ]
    for x, y, z in sorted(found):
        yield x, z, y


def _separating_sets(
    test: CITest, adjacent: Flags, x: int, y: int, depth: int | None, clock: Clock
) -> set[tuple[int, ...]]:
    queries: dict[Query, None] = {}
    for end, other in ((x, y), (y, x)):
        near = [int(v) for v in np.flatnonzero(adjacent[end]) if v != other]
        most = len(near) if depth is None else min(depth, len(near))
        for size in range(most + 1):
            queries.update(dict.fromkeys((x, y, given) for given in combinations(near, size)))
    asked = list(queries)
    found = test.p_values_until(asked, clock)
    return {q[2] for q, p in zip(asked, found, strict=False) if p > test.alpha}


class Orientation:
    """A skeleton whose edges are being directed.

    Attributes
    ----------
    heads
        `heads[i, j]`: the edge between i and j has an arrowhead at j.
    conflicts
        Directions that were concluded and could not be had.
    """

    def __init__(self, adjacent: Flags, rules: Rules, names: tuple[str, ...]) -> None:
        self.adjacent = adjacent
        self.rules = rules
        self.names = names
        self.heads: Flags = np.zeros_like(adjacent)
        self.conflicts: list[OrientationConflict] = []
        self.ambiguous: set[Triple] = set()
        self._direct_known()

    def _direct_known(self) -> None:
        """Direct required edges, and edges with one direction forbidden."""
        allowed, required = self.rules.allowed, self.rules.required
        one_way = self.adjacent & (required | (allowed & ~allowed.T))
        for i, j in [*np.argwhere(one_way & required), *np.argwhere(one_way & ~required)]:
            why = self._obstacle(int(i), int(j))
            if why and not required[i, j]:
                self._conflict(int(i), int(j), why)
            else:
                self.heads[i, j] = True

    def direct_colliders(self, triples: Triples, strength: NDArray[np.float64], both_heads: bool) -> None:
        """Direct v-structures, those whose ends were separated with the largest p-values first.

        Parameters
        ----------
        triples
            What was decided.
        strength
            For each pair the p-value with which it was separated.
        both_heads
            Whether an edge that two v-structures want in opposite directions gets both arrowheads; otherwise the weaker
            v-structure is left out, and listed.
        """
        self.ambiguous = triples.ambiguous
        order = sorted(triples.colliders, key=lambda t: (-strength[t[0], t[2]], t))
        if both_heads:
            known = self.heads.copy()
            for x, z, y in order:
                for end in (x, y):
                    if known[z, end]:
                        self._conflict(end, z, f"{self.names[z]} --> {self.names[end]} is known")
                    elif not self.rules.allowed[end, z]:
                        self._conflict(end, z, "it is forbidden")
                    elif not self.heads[end, z] and self.heads[:, z].sum() >= self.rules.max_parents:
                        self._conflict(end, z, self._crowded(z))
                    else:
                        self.heads[end, z] = True
            for i, j in np.argwhere(np.triu(self.heads & self.heads.T)):
                self._conflict(int(i), int(j), "other independencies point the other way")
            return
        for x, z, y in order:
            obstacles = [(end, self._obstacle(end, z)) for end in (x, y)]
            new = sum(not self.heads[end, z] for end in (x, y))
            if not any(why for _, why in obstacles) and self._parents(z) + new > self.rules.max_parents:
                obstacles.append((x, self._crowded(z)))
            blocked = [(end, why) for end, why in obstacles if why]
            for end, why in blocked:
                self._conflict(end, z, why)
            if not blocked:
                self.heads[x, z] = self.heads[y, z] = True

    def follow(self) -> None:
        """Apply Meek's rules until nothing changes."""
        refused: set[tuple[int, int]] = set()
        changed = True
        while changed:
            changed = False
            undirected = self.adjacent & ~self.heads & ~self.heads.T
            for i, j in np.argwhere(undirected):
                a, b = int(i), int(j)
                if self.heads[a, b] or self.heads[b, a] or (a, b) in refused or not self._must_point(a, b):
                    continue
                why = self._obstacle(a, b)
                if not why and self._parents(b) >= self.rules.max_parents:
                    why = self._crowded(b)
                if why:
                    refused.add((a, b))
                    self._conflict(a, b, why)
                else:
                    self.heads[a, b] = True
                    changed = True

    def graph(self) -> MixedGraph:
        """Return the graph: directed, undirected, and where both heads were asked for, bidirected edges."""
        edges = []
        for i, j in np.argwhere(np.triu(self.adjacent)):
            at_i = Mark.ARROW if self.heads[j, i] else Mark.TAIL
            at_j = Mark.ARROW if self.heads[i, j] else Mark.TAIL
            edges.append((self.names[i], self.names[j], at_i, at_j))
        return MixedGraph(edges, nodes=self.names)

    def _parents(self, node: int) -> int:
        return int((self.heads[:, node] & ~self.heads[node]).sum())

    def _crowded(self, node: int) -> str:
        return f"{self.names[node]} would have more than {self.rules.max_parents} parents"

    def _conflict(self, tail: int, head: int, why: str) -> None:
        found = OrientationConflict(self.names[tail], self.names[head], why)
        if found not in self.conflicts:
            self.conflicts.append(found)

    def _obstacle(self, tail: int, head: int) -> str:
        """Say what speaks against tail -> head, or nothing."""
        names = self.names
        if self.heads[tail, head] and not self.heads[head, tail]:
            return ""
        if self.heads[head, tail]:
            return f"{names[head]} --> {names[tail]} is there already"
        if not self.rules.allowed[tail, head]:
            return "it is forbidden"
        if self._reaches(head, tail):
            return "it would close a directed cycle"
        return ""

    def _reaches(self, start: int, goal: int) -> bool:
        seen, waiting = {start}, [start]
        while waiting:
            node = waiting.pop()
            if node == goal:
                return True
            for child in np.flatnonzero(self.heads[node] & ~self.heads[:, node]).tolist():
                if child not in seen:
                    seen.add(child)
                    waiting.append(child)
        return False

    def _settled(self, x: int, z: int, y: int) -> bool:
        return ((x, z, y) if x < y else (y, z, x)) not in self.ambiguous

    def _must_point(self, a: int, b: int) -> bool:
        """Decide by Meek's rules whether a - b has to become a -> b."""
        heads, adjacent = self.heads, self.adjacent
        into_b = heads[:, b] & ~heads[b]
        # rule 1: c -> a - b with c, b not adjacent would be a new collider
        for c in np.flatnonzero(heads[:, a] & ~adjacent[b]).tolist():
            if c != b and self._settled(c, a, b):
                return True
        if (heads[a] & ~heads[:, a] & into_b).any():  # rule 2: a -> c -> b
            return True
        joined = adjacent[a] & ~heads[a] & ~heads[:, a]
        # rule 3: a - c -> b and a - d -> b with c, d not adjacent
        for c, d in combinations(np.flatnonzero(joined & into_b).tolist(), 2):
            if not adjacent[c, d] and self._settled(c, a, d):
                return True
        # rule 4: a - d -> c -> b with d, b not adjacent and a, c adjacent
        for c in np.flatnonzero(into_b & adjacent[a]).tolist():
            for d in np.flatnonzero(heads[:, c] & ~heads[c] & joined & ~adjacent[b]).tolist():
                if d != b and self._settled(d, a, b):
                    return True
        return False
