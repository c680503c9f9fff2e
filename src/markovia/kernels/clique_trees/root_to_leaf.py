"""Walks from the root of a collected clique tree to its leaves: the best configuration, and exact draws.

Given the states of its separator, a row of a clique's table holds the weight of every joint state of the variables that the
clique removes, all that lies below included. So one walk down chooses them clique by clique: the largest entry of the row
after maximising, or one drawn in proportion after summing.
"""

import numpy as np

from markovia.kernels.clique_trees.clique_tables import measure, room_of, row_of, state_of, tree_of
from markovia.kernels.kernel import kernel


@kernel
def _write_states(c, choice, tree, state, dims, n_axes, fixed, column):
    """Split the number of a joint state into states of the clique's own variables."""
    for a in range(n_axes - 1, tree.n_separator[c] - 1, -1):
        v = tree.clique[tree.clique_start[c] + a]
        if state.code[v] < 0:
            fixed[v, column] = choice % dims[a]
            choice //= dims[a]


@kernel
def row_at(c, program, floats, ints, flags, room_floats, room_ints, fixed, out):
    """Compute the row of a clique for the separator states in `fixed` (by slot) into `out`."""
    tree, state, room = (
        tree_of(program),
        state_of(program, floats, ints, flags),
        room_of(program, room_floats, room_ints),
    )
    row_of(c, tree, state, room, fixed, out)


@kernel
def walk_best(program, floats, ints, flags, room_floats, room_ints, fixed):
    """Write the state of every unobserved slot in the best configuration into column 0 of `fixed`."""
    tree, state, room = (
        tree_of(program),
        state_of(program, floats, ints, flags),
        room_of(program, room_floats, room_ints),
    )
    states = fixed[:, 0].copy()
    row = np.empty(1)
    for c in range(len(tree.parent) - 1, -1, -1):
        _, size, separator = measure(c, tree, state, room)
        if size // separator > len(row):
            row = np.empty(size // separator)
        rest = row_of(c, tree, state, room, states, row)
        best = 0
        for i in range(rest):
            if row[i] > row[best]:
                best = i
        n_axes = tree.clique_start[c + 1] - tree.clique_start[c]
        _write_states(c, best, tree, state, room.dims, n_axes, fixed, 0)
        for a in range(tree.n_separator[c], n_axes):
            v = tree.clique[tree.clique_start[c] + a]
            states[v] = fixed[v, 0]


@kernel
def draw_clique(c, program, floats, ints, flags, room_floats, room_ints, uniforms, fixed):
    """Draw the states of a clique's own variables for all columns of `fixed`, one uniform number a column."""
    tree, state, room = (
        tree_of(program),
        state_of(program, floats, ints, flags),
        room_of(program, room_floats, room_ints),
    )
    n_axes, size, separator = measure(c, tree, state, room)
    rest = size // separator
    n = fixed.shape[1]
    first = tree.clique_start[c]
    index = np.zeros(n, np.int64)
    for a in range(tree.n_separator[c]):
        v = tree.clique[first + a]
        if state.code[v] < 0:
            for k in range(n):
                index[k] = index[k] * room.dims[a] + fixed[v, k]
    start = tree.table_at[c]
    if start >= 0:
        running = np.empty(size)
        for s in range(separator):
            t = 0.0
            for i in range(rest):
                t += state.tables[start + s * rest + i]
                running[s * rest + i] = t
        for k in range(n):
            low = index[k] * rest
            _choose(c, running, low, rest, uniforms[k], tree, state, room.dims, n_axes, fixed, k)
        return
    running = np.empty(rest)
    states = np.zeros(len(tree.card), np.int64)
    by_index = np.argsort(index)
    before = -1
    for j in range(n):
        k = by_index[j]
        if index[k] != before:
            before = index[k]
            for a in range(tree.n_separator[c]):
                v = tree.clique[first + a]
                states[v] = fixed[v, k]
            row_of(c, tree, state, room, states, running)
            for i in range(1, rest):
                running[i] += running[i - 1]
        _choose(c, running, 0, rest, uniforms[k], tree, state, room.dims, n_axes, fixed, k)


@kernel
def _choose(c, running, low, rest, uniform, tree, state, dims, n_axes, fixed, column):
    """Find the first entry whose running total exceeds a uniform share of the whole row."""
    share = uniform * running[low + rest - 1]
    lo, hi = 0, rest - 1
    while lo < hi:
        middle = (lo + hi) // 2
        if running[low + middle] > share:
            hi = middle
        else:
            lo = middle + 1
    _write_states(c, lo, tree, state, dims, n_axes, fixed, column)
