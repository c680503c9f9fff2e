"""Greedy colouring of edges: groups of pairs in which no node occurs twice, so that all of a group can be worked on at once.

Each edge in order takes the smallest colour that neither end has yet: fewer than twice the largest degree; four on a grid
whose edges come row by row, those to the right before those down. Cost: linear in the edges.
"""

from markovia.kernels.kernel import kernel
from markovia.kernels.pointers import pointers

MOST_DEGREE = 31
"""Edges at a node up to which the colours fit into the bits of a number."""


@kernel(bare=True)
def colour_edges(ends, taken, colours):
    """Write the colour of each edge (a pair of `ends`); `taken` (nodes,) holds zeros: the bits of the colours at a node."""
    n = len(colours)
    ends, taken, colours = pointers((ends, taken, colours))
    for e in range(n):
        both = taken[ends[2 * e]] | taken[ends[2 * e + 1]]
        c = 0
        while (both >> c) & 1:
            c += 1
        taken[ends[2 * e]] |= 1 << c
        taken[ends[2 * e + 1]] |= 1 << c
        colours[e] = c
