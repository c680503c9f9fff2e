"""Sets of nodes as whole numbers whose bit i stands for node i, and partially directed graphs made of them.

For searches that look at thousands of graphs over numbered nodes: unions and tests of inclusion cost one operation each.
`equivalence` has the same rules for graphs over names.
"""

from collections.abc import Iterable, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray


def members(mask: int) -> list[int]:
    """Return the nodes of a mask in increasing order.

    Examples
    --------
    >>> members(0b1011)
    [0, 1, 3]
    """
    found = []
    while mask:  # from the highest on: what is left of a long mask gets shorter
        high = mask.bit_length() - 1
        found.append(high)
        mask ^= 1 << high
    found.reverse()
    return found


def mask_of(nodes: Iterable[int]) -> int:
    """Return the mask of some nodes.

    Examples
    --------
    >>> bin(mask_of([0, 3]))
    '0b1001'
    """
    found = 0
    for v in nodes:
        found |= 1 << v
    return found


def masks_of(flags: NDArray[np.bool_]) -> list[int]:
    """Return the mask of each row of a matrix of flags.

    Examples
    --------
    >>> masks_of(np.array([[True, False, True], [False, True, False]]))
    [5, 2]
    """
    return [int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little") for row in flags]


def union_of(mask: int, sets: Sequence[int]) -> int:
    """Return the union of the sets that belong to the nodes of a mask.

    Examples
    --------
    >>> bin(union_of(0b101, [0b10, 0b0, 0b1000]))
    '0b1010'
    """
    found = 0
    while mask:
        low = mask & -mask
        mask ^= low
        found |= sets[low.bit_length() - 1]
    return found


def closed(mask: int, steps: Sequence[int], within: int = -1) -> int:
    """Return a set and all that steps from its nodes reach within another.

    Examples
    --------
    >>> bin(closed(0b1, [0b10, 0b100, 0]))
    '0b111'
    """
    found = fresh = mask
    while fresh:
        fresh = union_of(fresh, steps) & within & ~found
        found |= fresh
    return found


def turned(parents: Sequence[int]) -> list[int]:
    """Return the masks of children, given those of parents."""
    children = [0] * len(parents)
    for y, own in enumerate(parents):
        bit = 1 << y
        while own:
            low = own & -own
            own ^= low
            children[low.bit_length() - 1] |= bit
    return children


def is_above(parents: Sequence[int], node: int, mask: int) -> bool:
    """Say whether a node is in a set, or an ancestor of some node of it.

    Examples
    --------
    >>> is_above([0, 0b001, 0b010], 0, 0b100), is_above([0, 0b001, 0b010], 2, 0b011)  # 0 -> 1 -> 2
    (True, False)
    """
    goal, seen, fresh = 1 << node, 0, mask
    while fresh:
        if fresh & goal:
            return True
        seen |= fresh
        above = 0
        while fresh:
            low = fresh & -fresh
            above |= parents[low.bit_length() - 1]
            fresh ^= low
        fresh = above & ~seen
    return False


class PartlyDirected:
    """A graph of directed and undirected edges over the nodes 0, 1, ...

    Attributes
    ----------
    parents, children, joined, adjacent
        For each node the masks of those with a directed edge into it, out of it, an undirected edge, or any edge.
    """

    __slots__ = ("adjacent", "children", "joined", "n", "parents")

    def __init__(self, parents: list[int], joined: list[int]) -> None:
        self.n = len(parents)
        self.parents = parents
        self.joined = joined
        self.children = turned(parents)
        self.adjacent = [p | c | j for p, c, j in zip(parents, self.children, joined, strict=True)]

    def copy(self) -> Self:
        """Return a graph whose edges can be directed without this one changing."""
        twin = object.__new__(type(self))
        twin.n, twin.adjacent = self.n, self.adjacent  # who is adjacent never changes
        twin.parents, twin.children, twin.joined = self.parents[:], self.children[:], self.joined[:]
        return twin

    def is_clique(self, mask: int) -> bool:
        """Say whether all of a set are adjacent to each other."""
        rest = mask
        while rest:
            low = rest & -rest
            rest ^= low
            if rest & ~self.adjacent[low.bit_length() - 1]:
                return False
        return True

    def direct(self, a: int, b: int) -> None:
        """Make a - b the edge a -> b."""
        self.joined[a] &= ~(1 << b)
        self.joined[b] &= ~(1 << a)
        self.parents[b] |= 1 << a
        self.children[a] |= 1 << b

    def close(self) -> None:
        """Direct what follows from the directed edges by Meek's four rules.

        Examples
        --------
        >>> graph = PartlyDirected([0, 0b001, 0], [0, 0b100, 0b010])  # 0 -> 1 - 2
        >>> graph.close()
        >>> graph.parents
        [0, 1, 2]
        """
        changed = True
        while changed:
            changed = False
            for b in range(self.n):
                for a in members(self.joined[b]):
                    if self._must_point(a, b):
                        self.direct(a, b)
                        changed = True

    def _must_point(self, a: int, b: int) -> bool:
        """Say whether a - b has to become a -> b."""
        far = ~(self.adjacent[b] | 1 << b)
        if self.parents[a] & far or self.children[a] & self.parents[b]:
            return True  # rules 1 and 2
        if not self.is_clique(self.joined[a] & self.parents[b]):
            return True  # rule 3
        loose = self.joined[a] & far
        return any(self.parents[c] & loose for c in members(self.parents[b] & self.adjacent[a]))  # rule 4
