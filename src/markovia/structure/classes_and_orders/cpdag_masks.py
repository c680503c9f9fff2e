"""Equivalence classes of directed graphs as bit masks: what searches over classes work on.

A class is its completed partially directed graph (CPDAG): compelled edges are directed, the others are not. Sets of
variables are masks (`graphs.masks`); `graphs.equivalence` does the same for one graph over names, where a search visits
thousands of classes and asks of each what has changed.

- The class of a directed graph comes from the order of its edges (Chickering 1995), in one pass over the nodes.
- What is known beforehand is put in by directing the edges it settles and closing under Meek's rules (1995).

Cost: O(nodes + edges) mask operations for each.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from markovia.graphs.kinds.masks import PartlyDirected, members, turned
from markovia.graphs.kinds.mixed import Mark, MixedGraph
from markovia.structure.task.knowledge import Rules


class ClassGraph(PartlyDirected):
    """A completed partially directed graph over the variables 0, 1, ...

    Examples
    --------
    >>> graph = ClassGraph.of_parents([0, 0b001, 0b010])     # 0 -> 1 -> 2
    >>> [members(m) for m in graph.joined]
    [[1], [0, 2], [1]]
    """

    __slots__ = ()

    @classmethod
    def of_parents(cls, dag: Sequence[int]) -> "ClassGraph":
        """Return the class of a directed graph, given as a mask of parents for each variable.

        Heads are taken in topological order. Of the edges into y let x -> y have the last tail. All are compelled if a
        compelled edge into x, or another parent of y, comes from outside the parents of y, or of x; otherwise those are
        whose tail has a compelled edge into x.
        """
        order = topological(dag)
        place = [0] * len(dag)
        for k, v in enumerate(order):
            place[v] = k
        compelled = [0] * len(dag)
        for y in order:
            own = dag[y]
            if own:
                x = max(members(own), key=place.__getitem__)
                forced = compelled[x] & ~own or (own & ~(1 << x)) & ~dag[x]
                compelled[y] = own if forced else compelled[x]
        joined = [0] * len(dag)
        for y in order:
            free = dag[y] & ~compelled[y]
            joined[y] |= free
            for x in members(free):
                joined[x] |= 1 << y
        return cls(compelled, joined)

    def cliques(self, mask: int, most: int) -> Iterator[int]:
        """Yield the subsets of a set that are cliques of at most so many, the empty one first."""
        stack = [(0, mask, most)]
        while stack:
            chosen, rest, left = stack.pop()
            yield chosen
            if left:
                while rest:
                    high = 1 << (rest.bit_length() - 1)
                    rest ^= high
                    stack.append((chosen | high, rest & self.adjacent[high.bit_length() - 1], left - 1))

    def path(self, start: int, goal: int, blocked: int, direct: bool = True) -> list[int] | None:
        """Return a path along undirected and directed edges between two variables, past blocked ones, or None.

        The search goes on from that end of which fewer variables were just reached.

        Parameters
        ----------
        start, goal
            Two variables.
        blocked
            A mask of variables that paths may not visit.
        direct
            False leaves the edge between the two out.
        """
        ends, onwards = (start, goal), (self.children, self.parents)
        fronts, reached = [[start], [goal]], [1 << start, 1 << goal]
        came: tuple[dict[int, int], dict[int, int]] = ({}, {})
        while fronts[0] and fronts[1]:
            side = int(len(fronts[1]) < len(fronts[0]))
            free, there = ~(blocked | reached[side]), reached[1 - side]
            following = []
            for v in fronts[side]:
                new = (self.joined[v] | onwards[side][v]) & free
                if v == ends[side] and not direct:
                    new &= ~(1 << ends[1 - side])
                if new & there:
                    found = [v]
                    while found[-1] != ends[side]:
                        found.append(came[side][found[-1]])
                    found.reverse()
                    found.append((new & there).bit_length() - 1)
                    while found[-1] != ends[1 - side]:
                        found.append(came[1 - side][found[-1]])
                    return found[::-1] if side else found
                free ^= new
                reached[side] |= new
                for w in members(new):
                    came[side][w] = v
                    following.append(w)
            fronts[side] = following
        return None

    def passable(self, path: Sequence[int]) -> bool:
        """Say whether a path can still be gone along."""
        return all((self.joined[v] | self.children[v]) >> w & 1 for v, w in pairwise(path))

    def separates(self, within: int, wall: int, a: int, b: int) -> bool:
        """Say whether a wall parts two sets inside a set, along any adjacency."""
        seen = front = a & ~wall
        while front:
            if seen & b:
                return False
            following = 0
            for v in members(front):
                following |= self.adjacent[v]
            front = following & within & ~wall & ~seen
            seen |= front
        return not seen & b

    def same(self, other: "ClassGraph") -> bool:
        """Say whether two classes are one."""
        return self.parents == other.parents and self.joined == other.joined

    def informed(self, rules: Rules) -> "ClassGraph | None":
        """Direct the edges that knowledge settles, and those that follow; None if no member of the class obeys it."""
        parents, joined = list(self.parents), list(self.joined)
        waiting: list[tuple[int, int]] = []
        for y in range(self.n):
            for x in members(parents[y]):
                if not rules.allowed[x, y] or rules.required[y, x]:
                    return None
            waiting.extend(
                (x, y) for x in members(joined[y]) if rules.required[x, y] or not rules.allowed[y, x]
            )
        for x, y in zip(*np.nonzero(rules.required), strict=True):
            if not self.adjacent[int(x)] >> int(y) & 1:
                return None
        if not waiting:
            return self
        closed = ClassGraph(parents, joined)
        for x, y in waiting:
            if closed.parents[x] >> y & 1:
                return None
            closed.direct(x, y)
        closed.close()
        for y in range(self.n):
            for x in members(closed.parents[y]):
                if not rules.allowed[x, y]:
                    return None
        dag = extension(closed.parents, closed.joined)
        if dag is None or not self.same(ClassGraph.of_parents(dag)):
            return None
        return closed

    def named(self, names: Sequence[str]) -> MixedGraph:
        """Return the graph over names."""
        edges = []
        for y in range(self.n):
            edges += [(names[x], names[y], Mark.TAIL, Mark.ARROW) for x in members(self.parents[y])]
            edges += [(names[x], names[y], Mark.TAIL, Mark.TAIL) for x in members(self.joined[y]) if x < y]
        return MixedGraph(edges, nodes=names)


def topological(dag: Sequence[int]) -> list[int]:
    """Return an order of a directed graph (masks of parents) in which parents come first."""
    children = turned(dag)
    left = [own.bit_count() for own in dag]
    order = [v for v, k in enumerate(left) if not k]
    for v in order:
        mask = children[v]
        while mask:
            low = mask & -mask
            mask ^= low
            w = low.bit_length() - 1
            left[w] -= 1
            if not left[w]:
                order.append(w)
    return order


def extension(parents: Sequence[int], joined: Sequence[int]) -> list[int] | None:
    """Direct the undirected edges without a cycle or a new v-structure; None if that cannot be done.

    Dor and Tarsi (1992): take away a sink whose undirected neighbours are adjacent to all its other neighbours, again and
    again.
    """
    n = len(parents)
    children = turned(parents)
    around = [p | c | j for p, c, j in zip(parents, children, joined, strict=True)]
    dag = [0] * n
    left = (1 << n) - 1
    waiting = list(range(n - 1, -1, -1))
    while waiting:
        v = waiting.pop()
        if not left >> v & 1 or children[v] & left:
            continue
        near = around[v] & left
        if any(near & ~(1 << w) & ~around[w] for w in members(joined[v] & left)):
            continue
        dag[v] = near
        left &= ~(1 << v)
        waiting.extend(reversed(members(near)))
    return None if left else dag
