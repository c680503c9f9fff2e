"""The orientation rules of partial ancestral graphs: R0 (colliders) and R1 to R10 of Zhang.

A graph is one dense matrix of marks: `marks[i, j]` is the mark at j of the edge between i and j, `NONE` where there is
none. A rule only ever replaces a circle; a mark that is there already (from knowledge or from an earlier rule) stays,
and a rule that would contradict it is counted as a conflict instead. R1 to R4 are sound and complete for arrowheads, R8
to R10 with them for tails; R5 to R7 are for data that were selected by an effect of the variables.

Papers: Zhang, *On the completeness of orientation rules for causal discovery in the presence of latent confounders and
selection bias*, Artificial Intelligence 172 (2008); Spirtes, Meek and Richardson (1995). Cost: each pass over R1 to R3
is a few matrix products; R4 is a search among the parents of a node; R5, R9 and R10 search uncovered paths edge by
edge, O(edges x degree) for each candidate.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from markovia.graphs.kinds.mixed import Mark, MixedGraph
from markovia.runtime.array_types import Flags
from markovia.structure.task.knowledge import Rules

NONE, CIRCLE, ARROW, TAIL = 0, 1, 2, 3
Marks = NDArray[np.int8]
Separators = Mapping[tuple[int, int], tuple[int, ...]]
PathCheck = Callable[[list[int]], bool]
"""Asked before R4 uses a discriminating path; False if it changed the graph, so that the path may be gone."""

_MARKS = {CIRCLE: Mark.CIRCLE, ARROW: Mark.ARROW, TAIL: Mark.TAIL}


@dataclass
class Ancestral:
    """A partial ancestral graph in the making.

    Attributes
    ----------
    marks
        `marks[i, j]`: the mark at j of the edge between i and j.
    separators
        For each pair (smaller number first) that a test took apart, the set that did it.
    conflicts
        Marks that a rule asked for and that contradict one that is there: (i, j, wanted mark at j).
    apart
        Which pairs some known set separates; others that are not adjacent say nothing about colliders between them.
    """

    marks: Marks
    separators: dict[tuple[int, int], tuple[int, ...]]
    conflicts: set[tuple[int, int, int]] = field(default_factory=set)
    apart: Flags = field(init=False)

    def __post_init__(self) -> None:
        self.apart = np.zeros(self.marks.shape, dtype=bool)
        for x, y in self.separators:
            self.apart[x, y] = self.apart[y, x] = True

    @classmethod
    def start(cls, adjacent: Flags, separators: Separators, rules: Rules | None = None) -> "Ancestral":
        """Return the graph with circles everywhere but where something is known.

        A required edge i -> j is read as "i causes j", a forbidden one (and a later tier) as "i does not cause j",
        which puts an arrowhead at i and leaves the other end open.
        """
        marks = np.where(adjacent, CIRCLE, NONE).astype(np.int8)
        if rules is not None:
            marks[adjacent & ~rules.allowed.T] = ARROW
            marks[adjacent & rules.required.T] = TAIL
            marks[adjacent & rules.required] = ARROW
        return cls(marks, dict(separators))

    @property
    def adjacent(self) -> Flags:
        """Who is adjacent."""
        return np.asarray(self.marks != NONE)

    def separator(self, x: int, y: int) -> tuple[int, ...] | None:
        """Return the set that took a pair apart."""
        return self.separators.get((x, y) if x < y else (y, x))

    def put(self, i: int, j: int, mark: int) -> bool:
        """Replace a circle at j on the edge between i and j; say whether that changed anything."""
        there = self.marks[i, j]
        if there == CIRCLE:
            self.marks[i, j] = mark
            return True
        if there != mark and there != NONE:
            self.conflicts.add((i, j, mark))
        return False

    def collide(self, a: int, b: int, c: int) -> None:
        """Make b a collider between a and c; with a tail at b, known beforehand, that is a conflict and nothing changes."""
        tails = [x for x in (a, c) if self.marks[x, b] == TAIL]
        if tails:
            self.conflicts.update((x, b, ARROW) for x in tails)
            return
        self.put(a, b, ARROW)
        self.put(c, b, ARROW)

    def remove(self, x: int, y: int, given: Iterable[int]) -> None:
        """Take an edge away, with the set that separates its ends."""
        self.marks[x, y] = self.marks[y, x] = NONE
        self.apart[x, y] = self.apart[y, x] = True
        self.separators[(x, y) if x < y else (y, x)] = tuple(sorted(given))

    def clear(self, rules: Rules | None = None) -> None:
        """Forget all orientations but what is known."""
        self.marks = Ancestral.start(self.adjacent, {}, rules).marks
        self.conflicts.clear()

    def unshielded(self) -> Iterator[tuple[int, int, int]]:
        """Yield each triple a, b, c (a < c) where a and c are separated and b is next to both."""
        adjacent, apart = self.adjacent, self.apart
        for b in range(len(adjacent)):
            near = np.flatnonzero(adjacent[b])
            first, second = np.nonzero(np.triu(apart[np.ix_(near, near)], 1))
            for a, c in zip(near[first].tolist(), near[second].tolist(), strict=True):
                yield a, b, c

    def graph(self, names: Iterable[str]) -> MixedGraph:
        """Return the graph over named nodes."""
        nodes = list(names)
        edges = [
            (nodes[i], nodes[j], _MARKS[int(self.marks[j, i])], _MARKS[int(self.marks[i, j])])
            for i, j in zip(*(k.tolist() for k in np.nonzero(np.triu(self.marks))), strict=True)
        ]
        return MixedGraph(edges, nodes=nodes)

    def contradictions(self, names: Iterable[str]) -> list[str]:
        """Return what to tell the reader about orientations that contradict each other."""
        if not self.conflicts:
            return []
        nodes = list(names)
        pairs = sorted({(min(i, j), max(i, j)) for i, j, _ in self.conflicts})
        shown = ", ".join(f"{nodes[i]} and {nodes[j]}" for i, j in pairs[:4]) + (
            ", ..." if len(pairs) > 4 else ""
        )
        return [
            f"orientations contradict each other at {len(pairs)} edges ({shown}); the first found was kept"
        ]


def orient_colliders(pag: Ancestral) -> None:
    """R0: make b a collider in a *-* b *-* c where a and c are separated by a set without b."""
    for a, b, c in list(pag.unshielded()):
        found = pag.separator(a, c)
        if found is None or b in found:
            continue
        pag.collide(a, b, c)


def orient(pag: Ancestral, *, selection_bias: bool = True, check: PathCheck | None = None) -> None:
    """Apply R1 to R10 until none of them changes anything.

    Parameters
    ----------
    pag
        The graph, colliders oriented.
    selection_bias
        Whether R5 to R7 are applied.
    check
        Asked before R4 uses a discriminating path (RFCI tests its edges).
    """
    changed = True
    while changed:
        changed = False
        while _rule_1(pag) | _rule_2(pag) | _rule_3(pag) or _rule_4(pag, check):
            changed = True
        if selection_bias:
            changed |= _rule_5(pag)
            while _rule_6(pag) | _rule_7(pag):
                changed = True
        while _rule_8(pag) | _rule_9(pag) | _rule_10(pag):
            changed = True


def _rule_1(pag: Ancestral) -> bool:
    """Apply R1: a *-> b o-* c with a, c apart: b --> c."""
    changed = False
    apart = pag.apart
    for b in range(len(pag.marks)):
        into = pag.marks[:, b] == ARROW
        if into.any():
            for c in np.flatnonzero((pag.marks[:, b] == CIRCLE) & apart[into].any(axis=0)).tolist():
                changed |= pag.put(c, b, TAIL) | pag.put(b, c, ARROW)
    return changed


def _rule_2(pag: Ancestral) -> bool:
    """Apply R2: a --> b *-> c or a *-> b --> c, with a *-o c: a *-> c."""
    arrow = (pag.marks == ARROW).astype(np.float32)
    directed = arrow * (pag.marks.T == TAIL)
    found = (directed @ arrow + arrow @ directed > 0) & (pag.marks == CIRCLE)
    pag.marks[found] = ARROW
    return bool(found.any())


def _rule_3(pag: Ancestral) -> bool:
    """Apply R3: a *-> b <-* c, a *-o d o-* c with a, c apart, and d *-o b: d *-> b."""
    changed = False
    apart = pag.apart
    marks = pag.marks
    for d, b in zip(*(k.tolist() for k in np.nonzero(marks == CIRCLE)), strict=True):
        ends = np.flatnonzero((marks[:, b] == ARROW) & (marks[:, d] == CIRCLE))
        if len(ends) > 1 and apart[np.ix_(ends, ends)].any():
            changed |= pag.put(d, b, ARROW)
    return changed


def _rule_4(pag: Ancestral, check: PathCheck | None) -> bool:
    """Apply R4: where t, ..., a, b, c discriminates for b o-* c: b --> c if b separates t, c, else a <-> b <-> c."""
    changed = False
    for b, c in zip(*(k.tolist() for k in np.nonzero(pag.marks.T == CIRCLE)), strict=True):
        if pag.marks[c, b] != CIRCLE:
            continue
        path = discriminating_path(pag, b, c)
        if path is None:
            continue
        if check is not None and not check(path):
            return True
        start, a = path[0], path[-3]
        given = pag.separator(start, c)
        if given is None:
            continue
        if b in given:
            changed |= pag.put(c, b, TAIL) | pag.put(b, c, ARROW)
        else:
            changed |= pag.put(a, b, ARROW) | pag.put(c, b, ARROW) | pag.put(b, c, ARROW)
    return changed


def discriminating_path(pag: Ancestral, b: int, c: int) -> list[int] | None:
    """Return a shortest path t, ..., a, b, c that discriminates for b, or None.

    t and c are separated, and every node between t and b is a collider on the path and a parent of c.
    """
    marks = pag.marks
    parents = (marks[:, c] == ARROW) & (marks[c] == TAIL)
    parents[b] = False
    starts = np.flatnonzero(parents & (marks[b] == ARROW))
    if not len(starts):
        return None
    ends = pag.apart[c]
    after: dict[int, int] = dict.fromkeys(starts.tolist(), b)
    queue = starts.tolist()
    for a in queue:
        into = marks[:, a] == ARROW
        for t in np.flatnonzero(into & ends).tolist():
            if t != b:
                path = [t, a]
                while path[-1] != b:
                    path.append(after[path[-1]])
                return [*path, c]
        for p in np.flatnonzero(into & parents & (marks[a] == ARROW)).tolist():
            if p not in after:
                after[p] = a
                queue.append(p)
    return None


def _rule_5(pag: Ancestral) -> bool:
    """Apply R5: edges a o-o b that close an uncovered cycle of such edges: a --- b. All are found before any changes."""
    circles = (pag.marks == CIRCLE) & (pag.marks.T == CIRCLE)
    apart = pag.apart
    found = []
    for a, b in zip(*(k.tolist() for k in np.nonzero(np.triu(circles))), strict=True):
        for c in np.flatnonzero(circles[a] & apart[b]).tolist():
            if uncovered_path(circles, apart, a, c, b, closed=True) is not None:
                found.append((a, b))
                break
    for a, b in found:
        pag.marks[a, b] = pag.marks[b, a] = TAIL
    return bool(found)


def _rule_6(pag: Ancestral) -> bool:
    """Apply R6: a --- b o-* c: b --* c."""
    undirected = ((pag.marks == TAIL) & (pag.marks.T == TAIL)).any(axis=0)
    found = (pag.marks == CIRCLE) & undirected[None, :]
    pag.marks[found] = TAIL
    return bool(found.any())


def _rule_7(pag: Ancestral) -> bool:
    """Apply R7: a --o b o-* c with a, c apart: b --* c."""
    tail_circle = (pag.marks == CIRCLE) & (pag.marks.T == TAIL)
    found = (pag.marks == CIRCLE) & (pag.apart.astype(np.float32) @ tail_circle > 0)
    pag.marks[found] = TAIL
    return bool(found.any())


def _rule_8(pag: Ancestral) -> bool:
    """Apply R8: a --> b --> c or a --o b --> c, with a o-> c: a --> c."""
    marks = pag.marks
    directed = (marks == ARROW) & (marks.T == TAIL)
    onward = ((marks == CIRCLE) & (marks.T == TAIL)) | directed
    found = (onward.astype(np.float32) @ directed > 0) & (marks == ARROW) & (marks.T == CIRCLE)
    pag.marks[found.T] = TAIL
    return bool(found.any())


def _rule_9(pag: Ancestral) -> bool:
    """Apply R9: a o-> c, and an uncovered potentially directed path a, b, ..., c with b, c apart: a --> c."""
    changed = False
    apart = pag.apart
    onward = _potentially_directed(pag.marks)
    for a, c in _half_open(pag.marks):
        for b in np.flatnonzero(onward[a] & apart[c]).tolist():
            if uncovered_path(onward, apart, a, b, c) is not None:
                changed |= pag.put(c, a, TAIL)
                onward = _potentially_directed(pag.marks)
                break
    return changed


def _rule_10(pag: Ancestral) -> bool:
    """Apply R10: a o-> c, b --> c <-- d, uncovered potentially directed paths a to b, a to d, first steps apart: a --> c."""
    changed = False
    apart = pag.apart
    for a, c in _half_open(pag.marks):
        marks = pag.marks
        onward = _potentially_directed(marks)
        onward[c] = onward[:, c] = False
        parents = np.flatnonzero((marks[:, c] == ARROW) & (marks[c] == TAIL)).tolist()
        firsts = np.flatnonzero(onward[a]).tolist()
        if len(parents) < 2 or not apart[np.ix_(firsts, firsts)].any():
            continue
        reached = {
            m: {
                b
                for b in parents
                if b != a and (b == m or uncovered_path(onward, apart, a, m, b) is not None)
            }
            for m in firsts
            if apart[m, firsts].any()
        }
        if any(
            apart[m, w] and reached[m] and reached[w] and len(reached[m] | reached[w]) > 1
            for m in reached
            for w in reached
        ):
            changed |= pag.put(c, a, TAIL)
    return changed


def _half_open(marks: Marks) -> list[tuple[int, int]]:
    """List the edges a o-> c."""
    tails, heads = np.nonzero((marks == ARROW) & (marks.T == CIRCLE))
    return list(zip(tails.tolist(), heads.tolist(), strict=True))


def _potentially_directed(marks: Marks) -> Flags:
    """Return where an edge may point from i to j: no arrowhead at i, no tail at j."""
    return np.asarray((marks != NONE) & (marks != TAIL) & (marks.T != ARROW))


def uncovered_path(
    steps: Flags, apart: Flags, first: int, second: int, last: int, *, closed: bool = False
) -> list[int] | None:
    """Return a path first, second, ..., last along `steps` whose nodes two apart are never adjacent, or None.

    Parameters
    ----------
    steps
        `steps[i, j]`: the path may go from i to j.
    apart
        Which pairs are separated.
    first, second, last
        The first two nodes and the last.
    closed
        Whether the last but one and the first are apart too, so that an edge last, first would close an uncovered cycle.
    """
    came: dict[tuple[int, int], tuple[int, int] | None] = {(first, second): None}
    queue = [(first, second)]
    for before, at in queue:
        for to in np.flatnonzero(steps[at] & apart[before]).tolist():
            if to == first or (at, to) in came:
                continue
            if to == last:
                if closed and not apart[at, first]:
                    continue
                path = [last]
                state: tuple[int, int] | None = (before, at)
                while state is not None:
                    path.append(state[1])
                    state = came[state]
                path = [first, *reversed(path)]
                # a walk may visit a node twice; then a slower search looks for one that does not
                return path if len(set(path)) == len(path) else _simple_path(steps, apart, path, closed)
            came[(at, to)] = (before, at)
            queue.append((at, to))
    return None


def _simple_path(steps: Flags, apart: Flags, walk: list[int], closed: bool) -> list[int] | None:
    first, second, last = walk[0], walk[1], walk[-1]
    stack: list[list[int]] = [[first, second]]
    while stack:
        path = stack.pop()
        for to in np.flatnonzero(steps[path[-1]] & apart[path[-2]]).tolist():
            if to in path:
                continue
            if to != last:
                stack.append([*path, to])
            elif not closed or apart[path[-1], first]:
                return [*path, to]
    return None
