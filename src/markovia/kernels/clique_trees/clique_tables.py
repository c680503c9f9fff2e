"""Clique tables: what a clique multiplies, computed whole, by row or block by block in the cache.

A clique's table is the product of its factors, likelihoods and its children's messages. Its axes run from the separator
(leading) to what the clique removes (trailing); observed variables have length one. `Tree` and `State` are views into the
packed arrays of a program and of one evaluation of it; `Room` is one thread's scratch space.
"""

from collections import namedtuple

import numpy as np

from markovia.kernels.clique_trees import tree_program as at
from markovia.kernels.clique_trees.strided import LOOSE, spread
from markovia.kernels.clique_trees.tree_program import section
from markovia.kernels.kernel import kernel
from markovia.kernels.uncounted_arrays import bare_bytes, bare_floats, bare_ints

U = np.uint64
ONE, TWO, THREE = np.uint64(1), np.uint64(2), np.uint64(3)
BLOCK = 1 << 12
"""Entries of a block at most: it stays in the first cache."""
LIMIT = -960.0
"""log2 of the smallest positive number that a product may hold; sums of it can still be scaled."""

Tree = namedtuple(
    "Tree",
    "clique_start clique n_separator parent child_start children factor_start factors axis_start axis_slot axis_stride "
    "factor_at table_at message_at marginal_at card",
)
State = namedtuple(
    "State",
    "values tables posterior marginals log_scale message_low factor_low soft_low code soft_at dirty belief_stale "
    "down_stale marginal_stale wanted",
)
Room = namedtuple("Room", "table sums ratio lows dims length step index place strides offsets")


@kernel
def tree_of(program):
    """Cut a program into its sections."""
    program = bare_ints(program)
    return Tree(
        section(program, at.CLIQUE_START),
        section(program, at.CLIQUE),
        section(program, at.N_SEPARATOR),
        section(program, at.PARENT),
        section(program, at.CHILD_START),
        section(program, at.CHILDREN),
        section(program, at.FACTOR_START),
        section(program, at.FACTORS),
        section(program, at.AXIS_START),
        section(program, at.AXIS_SLOT),
        section(program, at.AXIS_STRIDE),
        section(program, at.FACTOR_AT),
        section(program, at.TABLE_AT),
        section(program, at.MESSAGE_AT),
        section(program, at.MARGINAL_AT),
        section(program, at.CARD),
    )


@kernel
def lengths(program):
    """Return the lengths of a state's arrays (floats, ints, flags) and of a thread's scratch arrays (floats, ints)."""
    n, k = program[at.N_CLIQUES], program[at.N_SLOTS]
    messages = program[at.N_VALUES] - program[at.N_FACTOR_VALUES] - program[at.N_MARGINALS]
    floats = (
        program[at.N_VALUES]
        + program[at.N_TABLES]
        + messages
        + program[at.N_MARGINALS]
        + 2 * n
        + program[at.N_FACTORS]
        + k
    )
    axes, operands = program[at.MOST_AXES], program[at.MOST_OPERANDS]
    return (
        floats,
        2 * k,
        5 * n,
        3 * BLOCK + 2 * program[at.LARGEST_SEPARATOR] + operands,
        5 * axes + operands * axes + operands,
    )


@kernel
def state_of(program, floats, ints, flags):
    """Cut the arrays of a state into their parts."""
    floats, ints, flags = bare_floats(floats), bare_ints(ints), bare_bytes(flags)
    n, k = program[at.N_CLIQUES], program[at.N_SLOTS]
    messages = program[at.N_VALUES] - program[at.N_FACTOR_VALUES] - program[at.N_MARGINALS]
    a = program[at.N_VALUES]
    b = a + program[at.N_TABLES]
    c = b + messages
    d = c + program[at.N_MARGINALS]
    e = d + n
    f = e + n
    g = f + program[at.N_FACTORS]
    return State(
        floats[:a],
        floats[a:b],
        floats[b:c],
        floats[c:d],
        floats[d:e],
        floats[e:f],
        floats[f:g],
        floats[g : g + k],
        ints[:k],
        ints[k : 2 * k],
        flags[:n],
        flags[n : 2 * n],
        flags[2 * n : 3 * n],
        flags[3 * n : 4 * n],
        flags[4 * n : 5 * n],
    )


@kernel
def room_of(program, floats, ints):
    """Cut a thread's scratch arrays into their parts."""
    floats, ints = bare_floats(floats), bare_ints(ints)
    axes, operands, separator = (
        program[at.MOST_AXES],
        program[at.MOST_OPERANDS],
        program[at.LARGEST_SEPARATOR],
    )
    table = 3 * BLOCK
    return Room(
        floats[:table],
        floats[table : table + separator],
        floats[table + separator : table + 2 * separator],
        floats[table + 2 * separator : table + 2 * separator + operands],
        ints[:axes],
        ints[axes : 2 * axes],
        ints[2 * axes : 3 * axes],
        ints[3 * axes : 4 * axes],
        ints[4 * axes : 5 * axes],
        ints[5 * axes : 5 * axes + operands * axes].reshape(operands, axes),
        ints[5 * axes + operands * axes :],
    )


@kernel(forceinline=True)
def measure(c, tree, state, room):
    """Write the lengths of a clique's axes (one where observed); return (axes, entries, separator entries)."""
    first = tree.clique_start[c]
    n_axes = tree.clique_start[c + 1] - first
    n_separator = tree.n_separator[c]
    size = 1
    separator = 1
    for a in range(n_axes):
        v = tree.clique[first + a]
        d = 1 if state.code[v] >= 0 else tree.card[v]
        room.dims[a] = d
        size *= d
        if a < n_separator:
            separator *= d
    return n_axes, size, separator


@kernel(forceinline=True)
def message_strides(c, child, tree, state, strides, row):
    """Write the strides of a child's message along the axes of its parent clique; return the message's size."""
    first = tree.clique_start[c]
    low = tree.clique_start[child]
    j = low + tree.n_separator[child] - 1
    step = 1
    for i in range(tree.clique_start[c + 1] - 1, first - 1, -1):
        v = tree.clique[i]
        strides[row, i - first] = 0
        if j >= low and tree.clique[j] == v:
            if state.code[v] < 0:
                strides[row, i - first] = step
                step *= tree.card[v]
            j -= 1
    return step


@kernel(forceinline=True)
def operands(c, n_axes, tree, state, room):
    """List what a clique multiplies: offsets into `values` and strides; return (how many, log2 of the least product)."""
    begin = tree.clique_start[c]
    n = 0
    lowest = 0.0
    for k in range(tree.factor_start[c], tree.factor_start[c + 1]):
        f = tree.factors[k]
        x = tree.factor_at[f]
        low = tree.axis_start[f]
        j = tree.axis_start[f + 1] - 1
        for i in range(n_axes - 1, -1, -1):
            v = tree.clique[begin + i]
            room.strides[n, i] = 0
            if j >= low and tree.axis_slot[j] == v:
                if state.code[v] < 0:
                    room.strides[n, i] = tree.axis_stride[j]
                else:
                    x += tree.axis_stride[j] * state.code[v]
                j -= 1
        room.offsets[n] = x
        room.lows[n] = state.factor_low[f]
        lowest += state.factor_low[f]
        n += 1
    for a in range(tree.n_separator[c], n_axes):
        v = tree.clique[begin + a]
        if state.soft_at[v] >= 0 and state.code[v] < 0:
            for i in range(n_axes):
                room.strides[n, i] = 0
            room.strides[n, a] = 1
            room.offsets[n] = state.soft_at[v]
            room.lows[n] = state.soft_low[v]
            lowest += state.soft_low[v]
            n += 1
    for k in range(tree.child_start[c], tree.child_start[c + 1]):
        child = tree.children[k]
        message_strides(c, child, tree, state, room.strides, n)
        room.offsets[n] = tree.message_at[child]
        room.lows[n] = state.message_low[child]
        lowest += state.message_low[child]
        n += 1
    return n, lowest


@kernel(forceinline=True)
def blocks_of(dims, n_axes, size):
    """Split a table into blocks that stay in the cache: (leading axes walked, entries a block)."""
    lead = 0
    block = size
    while block > BLOCK and lead < n_axes:
        block //= dims[lead]
        lead += 1
    return lead, block


@kernel(forceinline=True)
def place_block(p, lead, room):
    """Write the states of the leading axes of block `p`."""
    for a in range(lead - 1, -1, -1):
        room.place[a] = p % room.dims[a]
        p //= room.dims[a]


@kernel(forceinline=True)
def multiply_block(n_operands, n_axes, lead, values, out, start, room):
    """Compute the block at `room.place` of a clique's table into `out[start:]`."""
    if n_operands == 0:
        size = 1
        for a in range(lead, n_axes):
            size *= room.dims[a]
        for i in range(size):
            out[start + i] = 1.0
    for o in range(n_operands):
        x = room.offsets[o]
        for a in range(lead):
            x += room.place[a] * room.strides[o, a]
        spread(
            o == 0,
            out,
            start,
            room.dims,
            lead,
            n_axes,
            values,
            x,
            room.strides,
            o,
            room.length,
            room.step,
            room.index,
        )


@kernel
def stays_in_range(n_operands, n_axes, lead, block, values, out, start, room):
    """Compute a block as `multiply_block` does, but stop and say no where a positive product could become zero."""
    low = 0.0
    for o in range(n_operands):
        if low + room.lows[o] < LIMIT:
            return False
        x = room.offsets[o]
        for a in range(lead):
            x += room.place[a] * room.strides[o, a]
        spread(
            o == 0,
            out,
            start,
            room.dims,
            lead,
            n_axes,
            values,
            x,
            room.strides,
            o,
            room.length,
            room.step,
            room.index,
        )
        least = 1.0
        for i in range(start, start + block):
            if 0.0 < out[i] < least:
                least = out[i]
        low = np.log2(least)
    return True


@kernel(fastmath=LOOSE, forceinline=True)
def reduce_rows(maximise, table, start, block, rest, sums, s):
    """Sum (or maximise) a block of rows onto `sums` from row `s` on; a block may also be a part of one row."""
    b = U(start)
    z = U(s)
    if block < rest:
        t = sums[z]
        if maximise:
            for i in range(U(block)):
                t = table[b + i] if table[b + i] > t else t
        else:
            for i in range(U(block)):
                t += table[b + i]
        sums[z] = t
        return
    r = U(rest)
    rows = U(block // rest)
    if rest == 1:
        for k in range(rows):
            sums[z + k] = table[b + k]
    elif maximise:
        for k in range(rows):
            t = 0.0
            for i in range(r):
                t = table[b + i] if table[b + i] > t else t
            b += r
            sums[z + k] = t
    elif rest == 2:
        for k in range(rows):
            sums[z + k] = table[b + k * TWO] + table[b + k * TWO + ONE]
    elif rest == 3:
        for k in range(rows):
            sums[z + k] = table[b + k * THREE] + table[b + k * THREE + ONE] + table[b + k * THREE + TWO]
    else:
        for k in range(rows):
            t = 0.0
            for i in range(r):
                t += table[b + i]
            b += r
            sums[z + k] = t


@kernel
def table_of(c, program, floats, ints, flags, room_floats, room_ints, out):
    """Compute a clique's whole table into `out`."""
    tree, state, room = (
        tree_of(program),
        state_of(program, floats, ints, flags),
        room_of(program, room_floats, room_ints),
    )
    n_axes, _, _ = measure(c, tree, state, room)
    n, _ = operands(c, n_axes, tree, state, room)
    multiply_block(n, n_axes, 0, state.values, out, 0, room)


@kernel
def row_of(c, tree, state, room, fixed, out):
    """Write the row of a clique's table for the separator states in `fixed` (by slot) into `out`; return its length."""
    n_axes, size, separator = measure(c, tree, state, room)
    rest = size // separator
    lead = tree.n_separator[c]
    s = 0
    for a in range(lead):
        v = tree.clique[tree.clique_start[c] + a]
        room.place[a] = 0 if state.code[v] >= 0 else fixed[v]
        s = s * room.dims[a] + room.place[a]
    start = tree.table_at[c]
    if start >= 0:
        for i in range(rest):
            out[i] = state.tables[start + s * rest + i]
        return rest
    n, _ = operands(c, n_axes, tree, state, room)
    multiply_block(n, n_axes, lead, state.values, out, 0, room)
    return rest
