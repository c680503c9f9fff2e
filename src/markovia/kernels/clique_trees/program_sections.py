"""What lies where in the program of a clique tree; see `markovia.kernels.clique_trees.tree_program`."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# sizes in the header, then where the sections begin
N_CLIQUES, N_FACTORS, N_SLOTS, N_VALUES, N_FACTOR_VALUES, N_TABLES, N_MARGINALS = 0, 1, 2, 3, 4, 5, 6
LARGEST_SEPARATOR, MOST_OPERANDS, MOST_AXES, MOST_SHARES, LARGEST_BLOCK, LONGEST_ROW, SECTIONS = (
    7,
    8,
    9,
    10,
    11,
    12,
    13,
)
# sections
CLIQUE_START, CLIQUE, N_SEPARATOR, PARENT, CHILD_START, CHILDREN, FACTOR_START, FACTORS = range(8)
SLOT_START, SLOT_CLIQUES, AXIS_START, AXIS_SLOT, AXIS_STRIDE, AXIS_SOURCE, FACTOR_AT = range(8, 15)
TABLE_AT, MESSAGE_AT, MARGINAL_AT, CARD, ORDER, SLOT, HOME, FACTOR_HOME, N_SECTIONS = range(15, 24)
BLOCK = 1 << 12
"""Entries of a clique's table that are computed at a time at most: they stay in the first cache."""
KEPT = 1 << 13
"""Entries up to which a clique's table is stored."""
BODY = SECTIONS + N_SECTIONS + 1
"""Where the first section begins."""


def section(program: NDArray[np.int64], i: int) -> NDArray[np.int64]:
    """Return one section of a program."""
    return program[program[SECTIONS + i] : program[SECTIONS + i + 1]]


def lengths(header: Sequence[int]) -> tuple[int, int, int, int, int]:
    """Return the lengths of a state's arrays (floats, ints, flags) and of a thread's scratch arrays (floats, ints)."""
    n, n_factors, k, values, factor_values, tables, marginals, separator, operands, axes, shares, block, _ = (
        header
    )
    messages = values - factor_values - marginals
    floats = values + tables + messages + marginals + 2 * n + n_factors + k
    room_ints = 5 * axes + operands + operands * axes + operands * (axes + 1)
    return floats, 2 * k, 5 * n, 3 * block + 2 * separator + operands + shares, room_ints
