"""Clique tables: what a clique multiplies, computed whole, by row or block by block in the cache.

A clique's table is the product of its factors, likelihoods and its children's messages. Its axes run from the separator
(leading) to what the clique removes (trailing); observed variables have length one. `Tree` and `State` point into the
packed arrays of a program and of one evaluation of it; `Room` is one thread's scratch space.
"""

from collections import namedtuple
from math import inf, log, log2

from markovia.kernels.clique_trees import program_sections as at
from markovia.kernels.clique_trees.strided import LOOSE, MULTIPLY, NO, SET, ZERO, walk
from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointer, pointers

LIMIT = -960.0
"""log2 of the smallest positive number that a product may hold; sums of it can still be scaled."""
SAFE = -900.0
"""log2 of the smallest positive number that a product may reach unwatched."""
DONE, IMPOSSIBLE, OUT_OF_RANGE = 0, 1, 2

Tree = namedtuple(
    "Tree",
    "n_cliques clique_start clique n_separator parent child_start children factor_start factors axis_start axis_slot "
    "axis_stride factor_at table_at message_at marginal_at card",
)
State = namedtuple(
    "State",
    "values tables posterior marginals log_scale message_low factor_low soft_low code soft_at dirty belief_stale "
    "down_stale marginal_stale wanted",
)
Room = namedtuple(
    "Room",
    "table columns spare sums ratio lows shares dims place scratch offsets strides child_strides most_axes",
)


@inner(bare=True)
def tree_of(program):
    """Cut a program into its sections."""
    section = beyond(program, at.SECTIONS)
    return Tree(
        program[at.N_CLIQUES],
        beyond(program, section[at.CLIQUE_START]),
        beyond(program, section[at.CLIQUE]),
        beyond(program, section[at.N_SEPARATOR]),
        beyond(program, section[at.PARENT]),
        beyond(program, section[at.CHILD_START]),
        beyond(program, section[at.CHILDREN]),
        beyond(program, section[at.FACTOR_START]),
        beyond(program, section[at.FACTORS]),
        beyond(program, section[at.AXIS_START]),
        beyond(program, section[at.AXIS_SLOT]),
        beyond(program, section[at.AXIS_STRIDE]),
        beyond(program, section[at.FACTOR_AT]),
        beyond(program, section[at.TABLE_AT]),
        beyond(program, section[at.MESSAGE_AT]),
        beyond(program, section[at.MARGINAL_AT]),
        beyond(program, section[at.CARD]),
    )


@inner(bare=True)
def state_of(program, floats, ints, flags):
    """Cut the arrays of a state into their parts."""
    n, k = program[at.N_CLIQUES], program[at.N_SLOTS]
    tables = program[at.N_VALUES]
    posterior = tables + program[at.N_TABLES]
    marginals = posterior + tables - program[at.N_FACTOR_VALUES] - program[at.N_MARGINALS]
    scales = marginals + program[at.N_MARGINALS]
    return State(
        floats,
        beyond(floats, tables),
        beyond(floats, posterior),
        beyond(floats, marginals),
        beyond(floats, scales),
        beyond(floats, scales + n),
        beyond(floats, scales + 2 * n),
        beyond(floats, scales + 2 * n + program[at.N_FACTORS]),
        ints,
        beyond(ints, k),
        flags,
        beyond(flags, n),
        beyond(flags, 2 * n),
        beyond(flags, 3 * n),
        beyond(flags, 4 * n),
    )


@inner(bare=True)
def room_of(program, floats, ints):
    """Cut a thread's scratch arrays into their parts."""
    axes, operands, block = program[at.MOST_AXES], program[at.MOST_OPERANDS], program[at.LARGEST_BLOCK]
    sums = beyond(floats, 3 * block)
    ratio = beyond(sums, program[at.LARGEST_SEPARATOR])
    lows = beyond(ratio, program[at.LARGEST_SEPARATOR])
    return Room(
        floats,
        beyond(floats, block),
        beyond(floats, 2 * block),
        sums,
        ratio,
        lows,
        beyond(lows, operands),
        ints,
        beyond(ints, axes),
        beyond(ints, 2 * axes),
        beyond(ints, 5 * axes),
        beyond(ints, 5 * axes + operands),
        beyond(ints, 5 * axes + operands + operands * axes),
        axes,
    )


@inner(bare=True)
def opened(packed, room):
    """Return the program, and the parts of the tree, of its state and of a thread's room.

    Packed are the program and the state's numbers, whole numbers and flags; the room is numbers and whole numbers.
    """
    p, floats, ints, flags = pointers(packed)
    room_floats, room_ints = pointers(room)
    return p, tree_of(p), state_of(p, floats, ints, flags), room_of(p, room_floats, room_ints)


@inner(bare=True)
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
        if a == n_separator - 1:
            separator = size
    return n_axes, size, separator


@inner(bare=True)
def message_strides(c, child, tree, state, strides):
    """Write the strides of a child's message along the axes of its parent clique; return the message's size."""
    first = tree.clique_start[c]
    low = tree.clique_start[child]
    j = low + tree.n_separator[child] - 1
    step = 1
    for i in range(tree.clique_start[c + 1] - 1, first - 1, -1):
        v = tree.clique[i]
        strides[i - first] = 0
        if j >= low and tree.clique[j] == v:
            if state.code[v] < 0:
                strides[i - first] = step
                step *= tree.card[v]
            j -= 1
    return step


@inner(bare=True)
def operands(c, n_axes, tree, state, room):
    """List what a clique multiplies: offsets into `values` and strides; return (how many, log2 of the least product)."""
    begin = tree.clique_start[c]
    n = 0
    lowest = 0.0
    strides = room.strides
    for k in range(tree.factor_start[c], tree.factor_start[c + 1]):
        f = tree.factors[k]
        x = tree.factor_at[f]
        low = tree.axis_start[f]
        j = tree.axis_start[f + 1] - 1
        for i in range(n_axes - 1, -1, -1):
            v = tree.clique[begin + i]
            strides[i] = 0
            if j >= low and tree.axis_slot[j] == v:
                if state.code[v] < 0:
                    strides[i] = tree.axis_stride[j]
                else:
                    x += tree.axis_stride[j] * state.code[v]
                j -= 1
        room.offsets[n] = x
        room.lows[n] = state.factor_low[f]
        lowest += state.factor_low[f]
        strides = beyond(strides, room.most_axes)
        n += 1
    for a in range(tree.n_separator[c], n_axes):
        v = tree.clique[begin + a]
        if state.soft_at[v] >= 0 and state.code[v] < 0:
            for i in range(n_axes):
                strides[i] = 1 if i == a else 0
            room.offsets[n] = state.soft_at[v]
            room.lows[n] = state.soft_low[v]
            lowest += state.soft_low[v]
            strides = beyond(strides, room.most_axes)
            n += 1
    for k in range(tree.child_start[c], tree.child_start[c + 1]):
        child = tree.children[k]
        message_strides(c, child, tree, state, strides)
        room.offsets[n] = tree.message_at[child]
        room.lows[n] = state.message_low[child]
        lowest += state.message_low[child]
        strides = beyond(strides, room.most_axes)
        n += 1
    return n, lowest


@inner(bare=True)
def blocks_of(dims, n_axes, size):
    """Split a table into blocks that stay in the cache: (leading axes walked, entries a block)."""
    lead = 0
    block = size
    while block > at.BLOCK and lead < n_axes:
        block //= dims[lead]
        lead += 1
    return lead, block


@inner(bare=True)
def place_block(p, lead, room):
    """Write the states of the leading axes of block `p`."""
    for a in range(lead - 1, -1, -1):
        room.place[a] = p % room.dims[a]
        p //= room.dims[a]


@inner(bare=True)
def multiply(watched, rescaled, n_operands, n_axes, lead, block, values, out, room):
    """Compute the block at `room.place` of a clique's table; return (status, log of the scale taken out).

    If watched, it stops where a positive product could become zero, out of range; it may rescale before that.
    """
    scale = 0.0
    low = 0.0
    if n_operands == 0:
        for i in range(block):
            out[i] = 1.0
    for o in range(n_operands):
        if watched and low + room.lows[o] < LIMIT:
            return OUT_OF_RANGE, scale
        strides = beyond(room.strides, o * room.most_axes)
        x = room.offsets[o]
        for a in range(lead):
            x += room.place[a] * strides[a]
        walk(
            SET if o == 0 else MULTIPLY,
            out,
            beyond(values, x),
            n_axes - lead,
            beyond(room.dims, lead),
            beyond(strides, lead),
            room.scratch,
        )
        if watched:
            top = 0.0
            least = inf
            for i in range(block):
                t = out[i]
                if t > 0.0:
                    least = t if t < least else least
                    top = t if t > top else top
            if top == 0.0:
                if rescaled:
                    return IMPOSSIBLE, scale
                least = 1.0
            elif rescaled and top < 1e-50:
                for i in range(block):
                    out[i] /= top
                scale += log(top)
                least /= top
            low = log2(least)
    return DONE, scale


@inner(bare=True, fastmath=LOOSE)
def reduce_rows(maximise, table, block, rest, sums):
    """Sum (or maximise) a block of rows onto `sums`; a block may also be a part of one row, which is added on."""
    if block < rest:
        t = sums[0]
        if maximise:
            for i in range(block):
                t = table[i] if table[i] > t else t
        else:
            for i in range(block):
                t += table[i]
        sums[0] = t
    elif rest == 1:
        for k in range(block):
            sums[k] = table[k]
    elif maximise:
        for k in range(block // rest):
            t = 0.0
            for i in range(rest):
                t = table[i] if table[i] > t else t
            sums[k] = t
            table = beyond(table, rest)
    elif rest == 2:
        for k in range(block // 2):
            sums[k] = table[2 * k] + table[2 * k + 1]
    elif rest == 3:
        for k in range(block // 3):
            sums[k] = table[3 * k] + table[3 * k + 1] + table[3 * k + 2]
    elif rest == 4:
        for k in range(block // 4):
            sums[k] = table[4 * k] + table[4 * k + 1] + table[4 * k + 2] + table[4 * k + 3]
    else:
        for k in range(block // rest):
            t = 0.0
            for i in range(k * rest, k * rest + rest):
                t += table[i]
            sums[k] = t


@inner(bare=True)
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
    multiply(NO, NO, n, n_axes, lead, rest, state.values, out, room)
    return rest


@kernel(bare=True)
def table_of(c, packed, room, out):
    """Compute a clique's whole table into `out`."""
    _program, tree, state, room = opened(packed, room)
    n_axes, size, _ = measure(c, tree, state, room)
    n, _ = operands(c, n_axes, tree, state, room)
    multiply(NO, NO, n, n_axes, ZERO, size, state.values, pointer(out), room)
