"""Cliques that are mostly zero, compressed to their non-zero entries.

Deterministic tables make most joint states of a large clique impossible, whatever is observed. The support lists the others
once: for each entry the state of the separator, the joint state of what the clique removes, and the place of every operand
in `values`. A pass over the support then replaces a pass over the whole table. It serves as long as nothing in the clique
itself is observed; then the table is cut down instead.

Layout for one clique: `(entries, operands, separator states, own states, places of operand 0, of operand 1, ...)`.
"""

import numpy as np

from markovia.kernels.clique_trees.clique_tables import (
    blocks_of,
    measure,
    message_strides,
    multiply_block,
    operands,
    place_block,
    room_of,
    state_of,
    tree_of,
)
from markovia.kernels.clique_trees.propagation import (
    DONE,
    OUT_OF_RANGE,
    SAFE,
    _deliver,
    _ratio,
    _send,
    _waiting,
)
from markovia.kernels.kernel import kernel


@kernel
def support_of(c, most, program, floats, ints, flags, room_floats, room_ints):
    """Return a clique's support from a collected state without evidence, or nothing if it has more than `most` entries."""
    tree, state, room = (
        tree_of(program),
        state_of(program, floats, ints, flags),
        room_of(program, room_floats, room_ints),
    )
    n_axes, size, separator = measure(c, tree, state, room)
    rest = size // separator
    n, _ = operands(c, n_axes, tree, state, room)
    lead, block = blocks_of(room.dims, n_axes, size)
    count = 0
    for p in range(size // block):
        place_block(p, lead, room)
        multiply_block(n, n_axes, lead, state.values, room.table, 0, room)
        for i in range(block):
            if room.table[i] != 0.0:
                count += 1
        if count > most:
            return np.empty(0, np.int32)
    found = np.empty(2 + (2 + n) * count, np.int32)
    found[0] = count
    found[1] = n
    e = 0
    for p in range(size // block):
        place_block(p, lead, room)
        multiply_block(n, n_axes, lead, state.values, room.table, 0, room)
        for i in range(block):
            if room.table[i] == 0.0:
                continue
            q = i
            for a in range(n_axes - 1, lead - 1, -1):
                room.place[a] = q % room.dims[a]
                q //= room.dims[a]
            found[2 + e] = (p * block + i) // rest
            found[2 + count + e] = (p * block + i) % rest
            for o in range(n):
                x = room.offsets[o]
                for a in range(n_axes):
                    x += room.place[a] * room.strides[o, a]
                found[2 + (2 + o) * count + e] = x
            e += 1
    return found


@kernel
def collect_support(c, maximise, program, floats, ints, flags, room_floats, room_ints, support):
    """Compute the upward message of a clique from its support; return a status."""
    tree, state, room = (
        tree_of(program),
        state_of(program, floats, ints, flags),
        room_of(program, room_floats, room_ints),
    )
    n_axes, _, separator = measure(c, tree, state, room)
    _, lowest = operands(c, n_axes, tree, state, room)
    if lowest <= SAFE:
        return OUT_OF_RANGE
    count, n = support[0], support[1]
    values, sums = state.values, room.sums
    for s in range(separator):
        sums[s] = 0.0
    for e in range(count):
        t = values[support[2 + 2 * count + e]]
        for o in range(1, n):
            t *= values[support[2 + (2 + o) * count + e]]
        s = support[2 + e]
        if maximise:
            sums[s] = max(sums[s], t)
        else:
            sums[s] += t
    return _send(c, separator, 0.0, sums, tree, state)


@kernel
def distribute_support(c, program, floats, ints, flags, room_floats, room_ints, support):
    """Bring a clique's belief down to its children and its own variables from its support, where wanted and stale."""
    tree, state, room = (
        tree_of(program),
        state_of(program, floats, ints, flags),
        room_of(program, room_floats, room_ints),
    )
    waiting = _waiting(c, tree, state)
    own = state.wanted[c] == 2 and state.marginal_stale[c]
    if waiting == 0 and not own:
        return DONE
    n_axes, size, separator = measure(c, tree, state, room)
    rest = size // separator
    _ratio(c, separator, tree, state, room.ratio)
    count, n = support[0], support[1]
    first_child = n - (tree.child_start[c + 1] - tree.child_start[c])
    share_at = np.zeros(waiting + 1, np.int64)
    places = np.zeros(waiting, np.int64)
    starts = np.zeros(waiting, np.int64)
    scratch = np.empty((1, n_axes), np.int64)
    k = 0
    for i in range(tree.child_start[c], tree.child_start[c + 1]):
        child = tree.children[i]
        if state.wanted[child] and state.down_stale[child]:
            share_at[k + 1] = share_at[k] + message_strides(c, child, tree, state, scratch, 0)
            places[k] = 2 + (2 + first_child + i - tree.child_start[c]) * count
            starts[k] = share_at[k] - tree.message_at[child]
            k += 1
    shares = np.zeros(share_at[waiting])
    columns = np.zeros(rest if own else 0)
    values = state.values
    for e in range(count):
        t = values[support[2 + 2 * count + e]] * room.ratio[support[2 + e]]
        for o in range(1, n):
            t *= values[support[2 + (2 + o) * count + e]]
        for k in range(waiting):
            shares[starts[k] + support[places[k] + e]] += t
        if own:
            columns[support[2 + count + e]] += t
    _deliver(c, n_axes, rest, share_at, shares, columns, tree, state, room.dims)
    return DONE
