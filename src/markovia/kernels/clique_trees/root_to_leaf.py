"""Walks from the root of a collected clique tree to its leaves: the best configuration, and exact draws.

Given the states of its separator, a row of a clique's table holds the weight of every joint state of the variables that the
clique removes, all that lies below included. So one walk down chooses them clique by clique: the largest entry of the row
after maximising, or one drawn in proportion after summing.
"""

from markovia.kernels.clique_trees.clique_tables import (
    measure,
    opened,
    row_of,
)
from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointer


@inner(bare=True)
def _write_states(c, choice, tree, state, fixed, step):
    """Split the number of a joint state into states of the clique's own variables."""
    for i in range(tree.clique_start[c + 1] - 1, tree.clique_start[c] + tree.n_separator[c] - 1, -1):
        v = tree.clique[i]
        if state.code[v] < 0:
            fixed[v * step] = choice % tree.card[v]
            choice //= tree.card[v]


@kernel(bare=True)
def walk_best(first, last, packed, room, fixed, row):
    """Write the states of cliques `first..last` in the best configuration into `fixed` (by slot).

    The states of what lies above are read from there. `row` is room for the longest row; it holds the last one in the end.
    """
    _program, tree, state, room = opened(packed, room)
    fixed, row = pointer(fixed), pointer(row)
    for c in range(last - 1, first - 1, -1):
        rest = row_of(c, tree, state, room, fixed, row)
        best = 0
        for i in range(rest):
            if row[i] > row[best]:
                best = i
        _write_states(c, best, tree, state, fixed, 1)


@kernel(bare=True)
def draw_clique(c, packed, room, uniforms, order, fixed, states, running):
    """Draw the states of a clique's own variables for all columns of `fixed`, one uniform number a column.

    Columns are gone through in `order`; a stored table is summed up once, another one row by row as the separator's states
    change, so columns with the same ones should be neighbours. `running` is room for a stored table and for any row.
    """
    _program, tree, state, room = opened(packed, room)
    n = len(uniforms)
    uniforms, order, fixed = pointer(uniforms), pointer(order), pointer(fixed)
    states, running = pointer(states), pointer(running)
    _, size, separator = measure(c, tree, state, room)
    rest = size // separator
    first = tree.clique_start[c]
    stored = tree.table_at[c] >= 0
    if stored:
        table = beyond(state.tables, tree.table_at[c])
        for i in range(size):
            running[i] = table[i] if i % rest == 0 else running[i - 1] + table[i]
    before = -1
    for j in range(n):
        k = order[j]
        s = 0
        for a in range(tree.n_separator[c]):
            v = tree.clique[first + a]
            if state.code[v] < 0:
                states[v] = fixed[v * n + k]
                s = s * room.dims[a] + states[v]
        low = running
        if stored:
            low = beyond(running, s * rest)
        elif s != before:
            before = s
            row_of(c, tree, state, room, states, running)
            for i in range(1, rest):
                running[i] += running[i - 1]
        # the first entry whose running total exceeds a uniform share of the whole row
        share = uniforms[k] * low[rest - 1]
        lo = 0
        hi = rest - 1
        while lo < hi:
            middle = (lo + hi) // 2
            if low[middle] > share:
                hi = middle
            else:
                lo = middle + 1
        _write_states(c, lo, tree, state, beyond(fixed, k), n)
