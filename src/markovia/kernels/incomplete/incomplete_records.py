"""What expectations over missing cells work on; the shape of each array stands beside it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.runtime.array_types import Array, Ints


class NetworkFamilies(NamedTuple):
    """The tables of a model, one after the other: the families of a network, or any others."""

    card: Ints  # (variables,)
    scope_start: Ints  # (families + 1,): where each family's variables begin
    scope: Ints  # (axes,)
    stride: Ints  # (axes,)
    of_start: Ints  # (variables + 1,): where the families that mention a variable begin
    of_family: Ints  # (axes,)
    table_at: Ints  # (families + 1,): where each table begins


class MissingGroups(NamedTuple):
    """The row and pattern of each group of missing cells, and the patterns as lists of variables."""

    row: Ints
    pattern: Ints
    member_start: Ints
    member: Ints


class GroupCases(NamedTuple):
    """Each group's case (-1 without a tree); each case's pattern, weight, and offsets in all tables, `base[at:]`."""

    of: Ints
    pattern: Ints
    weight: Array
    at: Ints
    base: Ints


class PatternTrees(NamedTuple):
    """A clique tree for each pattern; children come before parents, the root last.

    The eight numbers of a clique are its entries, entries of its separator, place of its parent in the pattern (-1), where
    the map of its message into the parent's entries begins, its first slot, its first axis, where its table begins in the
    room of the pattern (its message follows), and the number of axes of its separator.
    """

    clique_at: Ints  # (patterns + 1,): the first clique of each pattern; a pattern without a tree has none
    clique: Ints  # (cliques + 1, 8)
    axis: Ints  # (axes,): the variables of cliques, separator first, as places among the pattern's members
    length: Ints  # (axes,): their states
    slot: Ints  # (slots, 2): the families multiplied into each clique, and where the map of each begins
    maps: NDArray[
        np.int32
    ]  # for each entry of a clique the offset in a family's table, or in a child's message


class DecodedCases(NamedTuple):
    """States for the members of the listed cases, where each case's begin, and each case's log weight."""

    states: Ints
    at: Ints  # (listed + 1,)
    logs: Array  # (listed,)
