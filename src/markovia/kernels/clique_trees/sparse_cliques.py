"""Cliques that are mostly zero, compressed to their non-zero entries.

Deterministic tables make most joint states of a large clique impossible, whatever is observed. The support lists the others
once: for each entry the state of the separator, the joint state of what the clique removes, and the place of every operand
in `values`. A pass over the support then replaces a pass over the whole table. It serves as long as nothing in the clique
itself is observed; then the table is cut down instead.

Layout for one clique: `(entries, operands, separator states, own states, places of operand 0, of operand 1, ...)`.
"""

from markovia.kernels.clique_trees.clique_tables import (
    OUT_OF_RANGE,
    SAFE,
    blocks_of,
    measure,
    multiply,
    opened,
    operands,
    place_block,
)
from markovia.kernels.clique_trees.propagation import (
    clear,
    deliver,
    open_clique,
    send,
    waiting_for,
    wanted_strides,
)
from markovia.kernels.clique_trees.strided import NO
from markovia.kernels.kernel import kernel
from markovia.kernels.pointers import beyond, pointer


@kernel(bare=True)
def support_of(c, packed, room, found):
    """List a clique's support, from a collected state without evidence; return (entries, operands).

    Nothing is written where `found` is too short for it: called with an empty array, it counts.
    """
    _program, tree, state, room = opened(packed, room)
    n_axes, size, separator = measure(c, tree, state, room)
    rest = size // separator
    n, _ = operands(c, n_axes, tree, state, room)
    lead, block = blocks_of(room.dims, n_axes, size)
    count = (len(found) - 2) // (2 + n)
    found = pointer(found)
    e = 0
    for b in range(size // block):
        place_block(b, lead, room)
        multiply(NO, NO, n, n_axes, lead, block, state.values, room.table, room)
        for i in range(block):
            if room.table[i] == 0.0:
                continue
            if e < count:
                q = i
                for a in range(n_axes - 1, lead - 1, -1):
                    room.place[a] = q % room.dims[a]
                    q //= room.dims[a]
                found[2 + e] = (b * block + i) // rest
                found[2 + count + e] = (b * block + i) % rest
                for o in range(n):
                    x = room.offsets[o]
                    for a in range(n_axes):
                        x += room.place[a] * room.strides[o * room.most_axes + a]
                    found[2 + (2 + o) * count + e] = x
            e += 1
    if count > 0:
        found[0] = e
        found[1] = n
    return e, n


@kernel(bare=True)
def collect_support(c, maximise, packed, room, support):
    """Compute the upward message of a clique from its support; return a status."""
    _program, tree, state, room = opened(packed, room)
    support = pointer(support)
    n_axes, _, separator = measure(c, tree, state, room)
    n, lowest = operands(c, n_axes, tree, state, room)
    if lowest <= SAFE:
        return OUT_OF_RANGE
    count = support[0]
    place = beyond(support, 2 + 2 * count)
    values, sums = state.values, room.sums
    for s in range(separator):
        sums[s] = 0.0
    for e in range(count):
        t = values[place[e]]
        for o in range(1, n):
            t *= values[place[o * count + e]]
        s = support[2 + e]
        if not maximise:
            sums[s] += t
        elif t > sums[s]:
            sums[s] = t
    return send(c, separator, 0.0, sums, tree, state)


@kernel(bare=True)
def distribute_support(c, packed, room, support):
    """Bring a clique's belief down to its children and its own variables from its support, where wanted and stale."""
    _program, tree, state, room = opened(packed, room)
    support = pointer(support)
    waiting = waiting_for(c, tree, state)
    own = state.wanted[c] == 2 and state.marginal_stale[c] != 0
    if waiting == 0 and not own:
        return
    n_axes, _, separator = measure(c, tree, state, room)
    n, _ = operands(c, n_axes, tree, state, room)
    open_clique(c, separator, tree, state, room.ratio)
    shares, marginals = room.shares, state.marginals
    for s in range(wanted_strides(c, n_axes, tree, state, room.child_strides)):
        shares[s] = 0.0
    if own:
        clear(c, n_axes, tree, marginals)
    count = support[0]
    place = beyond(support, 2 + 2 * count)
    # where the places of each waiting child's message are, and what turns them into places among the shares
    first_child = n - (tree.child_start[c + 1] - tree.child_start[c])
    places, shifts = room.offsets, room.strides
    k = 0
    size = 0
    for i in range(tree.child_start[c], tree.child_start[c + 1]):
        child = tree.children[i]
        if state.wanted[child] and state.down_stale[child]:
            places[k] = (first_child + i - tree.child_start[c]) * count
            shifts[k] = size - tree.message_at[child]
            size += room.child_strides[k * (n_axes + 1) + n_axes]
            k += 1
    values = state.values
    for e in range(count):
        t = values[place[e]] * room.ratio[support[2 + e]]
        for o in range(1, n):
            t *= values[place[o * count + e]]
        for k in range(waiting):
            shares[shifts[k] + place[places[k] + e]] += t
        if own:
            q = support[2 + count + e]
            for a in range(n_axes - 1, tree.n_separator[c] - 1, -1):
                v = tree.clique[tree.clique_start[c] + a]
                marginals[tree.marginal_at[v] + q % tree.card[v]] += t
                q //= tree.card[v]
    deliver(c, n_axes, own, tree, state, room, shares)
