"""What the annealing of elimination orders works on (`order_annealing`)."""

from typing import NamedTuple

from markovia.runtime.array_types import Array, Ints

BITS = 60
"""Members of a set that a whole number holds, so that no sign is in the way."""
DONE, TOTAL, BEST = 0, 1, 2
"""Places in the `sums` of an annealing: steps made, the cost of the tree, the lowest one so far."""


class OrderTree(NamedTuple):
    """A graph, an elimination order of it as a tree of buckets, and the best order met so far.

    The bucket of v is v with its neighbours when it is eliminated, its ring; the parent of v is the first of the ring to be
    eliminated, -1 without one. All orders in which children come before their parents have the same buckets.

    | field | shape | holds |
    |---|---|---|
    | near_start, near | (n + 1,), (.,) | the neighbours of each vertex |
    | card, logs | (n,) | its states, and their binary logarithm |
    | stage | (n,) | vertices of a smaller stage come first |
    | parent, first, after, before | (n,) | the tree: parent, first child, next and previous child of the same parent |
    | size, ring | (n,), (n, longest ring) | how many are in the ring, and who |
    | cost | (n,) | of the bucket |
    | best | (n,) | the best order |
    """

    near_start: Ints
    near: Ints
    card: Array
    logs: Array
    stage: Ints
    parent: Ints
    first: Ints
    after: Ints
    before: Ints
    size: Ints
    ring: Ints
    cost: Array
    best: Ints


class PartRoom(NamedTuple):
    """Room for the graph of a part of the tree, whose vertices are numbered anew, and for one elimination of it.

    A set of these vertices is a row of whole numbers with `BITS` bits each.

    | field | shape | holds |
    |---|---|---|
    | place | (n,) | the number of a vertex in the part, -1 for others |
    | member | (room,) | the vertices of the part, those to eliminate first |
    | below | (n,) | the children of these that are not in the part |
    | start, links | (room, words) | each one's neighbours at the start, and while vertices are eliminated |
    | rings | (room, words) | the ring of each one in the order found |
    | order, rank | (room,) | the order found, and where each one is in it |
    | left | (n,) | those still to eliminate |
    | some | (words,) | a set |
    | card, logs, fill, key | (room,) | states, their logarithm, what eliminating one fills in now, its score |
    """

    place: Ints
    member: Ints
    below: Ints
    start: Ints
    links: Ints
    rings: Ints
    order: Ints
    rank: Ints
    left: Ints
    some: Ints
    card: Array
    logs: Array
    fill: Array
    key: Array
