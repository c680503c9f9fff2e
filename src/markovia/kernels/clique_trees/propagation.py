"""Message passing on a compiled clique tree.

Cliques are numbered children first. Upwards, each clique's table is summed (or maximised) onto its separator; downwards,
its belief is summed onto the separators of its children and onto the variables it removes. Small tables are stored; large
ones are computed block by block in the cache, once on the way up and once on the way down, which is faster than memory
and needs none. A message is scaled to a maximum of one and the log of the scale is kept, so nothing overflows; where a
product might leave the range of doubles the status says so and the caller computes with logarithms.

Only what changed is computed again: a clique is dirty if its own evidence changed or a message into it did, and the
posterior of a separator is stale if the belief of the clique above it changed.
"""

from math import log, log2

from markovia.kernels.clique_trees import program_sections as at
from markovia.kernels.clique_trees.clique_tables import (
    DONE,
    IMPOSSIBLE,
    OUT_OF_RANGE,
    SAFE,
    blocks_of,
    measure,
    message_strides,
    multiply,
    opened,
    operands,
    place_block,
    reduce_rows,
)
from markovia.kernels.clique_trees.strided import (
    ADD,
    MULTIPLY,
    NO,
    ONE,
    YES,
    ZERO,
    add_rows,
    spread_rows,
    walk,
)
from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointer

ALL, NOTHING, AS_MARKED = -1, -2, -3
"""What may be wanted instead of a slot: everything, no posterior at all, what the flags of the state say."""


@inner(bare=True)
def fill(share, maximise, c, sizes, tree, state, room, sums):
    """Compute a part of a clique's table block by block and reduce it onto `sums`; return (status, log scale taken out).

    The share is which part of how many, the sizes are those of `measure`.
    """
    part, parts = share
    n_axes, size, separator = sizes
    rest = size // separator
    n, lowest = operands(c, n_axes, tree, state, room)
    watched = lowest <= SAFE
    lead, block = blocks_of(room.dims, n_axes, size)
    blocks = size // block
    if block < rest or parts > 1:
        for s in range(size // rest):
            sums[s] = 0.0
    kept = tree.table_at[c] >= 0
    whole = beyond(state.tables, tree.table_at[c])
    for p in range(part * blocks // parts, (part + 1) * blocks // parts):
        place_block(p, lead, room)
        table = beyond(whole, p * block) if kept else room.table
        status, scale = multiply(watched, NO, n, n_axes, lead, block, state.values, table, room)
        if status != DONE:
            if not kept:
                return OUT_OF_RANGE, 0.0
            status, scale = multiply(YES, YES, n, n_axes, ZERO, size, state.values, whole, room)
            if status == DONE:
                reduce_rows(maximise, whole, size, rest, sums)
            return status, scale
        reduce_rows(maximise, table, block, rest, beyond(sums, p * block // rest))
    return DONE, 0.0


@inner(bare=True)
def send(c, separator, scale, sums, tree, state):
    """Scale the sums to a maximum of one and make them the message; mark the parent if it changed."""
    top = 0.0
    for s in range(separator):
        top = sums[s] if sums[s] > top else top
    if top == 0.0:
        return IMPOSSIBLE
    out = beyond(state.values, tree.message_at[c])
    least = 1.0
    inverse = 1.0 / top
    changed = False
    for s in range(separator):
        t = sums[s] * inverse
        if t != out[s]:
            changed = True
            out[s] = t
        if t > 0.0:
            least = t if t < least else least
    state.log_scale[c] = scale + log(top)
    state.message_low[c] = log2(least)
    state.dirty[c] = 0
    state.belief_stale[c] = 1
    if changed and tree.parent[c] >= 0:
        state.dirty[tree.parent[c]] = 1
    return DONE


@inner(bare=True)
def open_clique(c, separator, tree, state, ratio):
    """Write what turns a clique's table into its belief: the separator's posterior over the message sent."""
    message = beyond(state.values, tree.message_at[c])
    if tree.parent[c] < 0:
        ratio[0] = 1.0 / message[0]
        return
    below = beyond(state.posterior, tree.message_at[c] - tree.message_at[0])
    for s in range(separator):
        ratio[s] = below[s] / message[s] if message[s] > 0.0 else 0.0


@inner(bare=True)
def waiting_for(c, tree, state):
    """Pass on that a belief changed; return how many wanted children have separators that are out of date."""
    n = 0
    for k in range(tree.child_start[c], tree.child_start[c + 1]):
        child = tree.children[k]
        if state.belief_stale[c]:
            state.down_stale[child] = 1
        if state.wanted[c] and state.wanted[child] and state.down_stale[child]:
            n += 1
    if state.belief_stale[c]:
        state.marginal_stale[c] = 1
        state.belief_stale[c] = 0
    return n


@inner(bare=True)
def wanted_strides(c, n_axes, tree, state, strides):
    """Write the strides of the waiting children's messages, each row with its size at the end; return the total size."""
    total = 0
    for k in range(tree.child_start[c], tree.child_start[c + 1]):
        child = tree.children[k]
        if state.wanted[child] and state.down_stale[child]:
            size = message_strides(c, child, tree, state, strides)
            strides[n_axes] = size
            strides = beyond(strides, n_axes + 1)
            total += size
    return total


@inner(bare=True)
def pour(share, c, sizes, waiting, own, tree, state, room, onto):
    """Compute a part of a clique's belief and sum it onto its waiting children's separators and its own variables."""
    part, parts = share
    n_axes, size, separator = sizes
    shares, totals = onto
    rest = size // separator
    start = tree.table_at[c]
    n = 0
    if start < 0:
        n, _ = operands(c, n_axes, tree, state, room)
    lead, block = blocks_of(room.dims, n_axes, size)
    blocks = size // block
    table = room.table
    for p in range(part * blocks // parts, (part + 1) * blocks // parts):
        place_block(p, lead, room)
        if start < 0:
            multiply(NO, NO, n, n_axes, lead, block, state.values, table, room)
        else:
            for i in range(block):
                table[i] = state.tables[start + p * block + i]
        ratio = beyond(room.ratio, p * block // rest)
        if block < rest:
            spread_rows(MULTIPLY, table, ONE, block, ratio, ZERO, ZERO)
        else:
            spread_rows(MULTIPLY, table, block // rest, rest, ratio, ONE, ZERO)
        strides = room.child_strides
        below = shares
        for _ in range(waiting):
            x = 0
            for a in range(lead):
                x += room.place[a] * strides[a]
            dims, steps = beyond(room.dims, lead), beyond(strides, lead)
            walk(ADD, table, beyond(below, x), n_axes - lead, dims, steps, room.scratch)
            below = beyond(below, strides[n_axes])
            strides = beyond(strides, n_axes + 1)
        if not own:
            continue
        # the joint posterior of the clique's own variables, summed onto each of them, last axis first
        columns = table
        spare = room.spare
        left = block
        if block > rest:
            columns = room.columns
            for i in range(rest):
                columns[i] = 0.0
            add_rows(table, block // rest, rest, columns, ZERO, ONE)
            left = rest
        first = tree.n_separator[c]
        for a in range(n_axes - 1, (lead if lead > first else first) - 1, -1):
            d = room.dims[a]
            v = tree.clique[tree.clique_start[c] + a]
            if state.code[v] < 0:
                add_rows(columns, left // d, d, beyond(totals, tree.marginal_at[v]), ZERO, ONE)
                reduce_rows(NO, columns, left, d, spare)
                other = columns
                columns = spare
                spare = other
                left //= d
        for a in range(first, lead):
            v = tree.clique[tree.clique_start[c] + a]
            totals[tree.marginal_at[v] + room.place[a]] += columns[0]


@inner(bare=True)
def deliver(c, n_axes, own, tree, state, room, shares):
    """Make the sums the posteriors of the separators below and of the clique's own variables."""
    strides = room.child_strides
    for k in range(tree.child_start[c], tree.child_start[c + 1]):
        child = tree.children[k]
        if not (state.wanted[child] and state.down_stale[child]):
            continue
        size = strides[n_axes]
        total = 0.0
        for s in range(size):
            total += shares[s]
        below = beyond(state.posterior, tree.message_at[child] - tree.message_at[0])
        inverse = 1.0 / total if total > 0.0 else 0.0
        for s in range(size):
            t = shares[s] * inverse
            if t != below[s]:
                state.belief_stale[child] = 1
                below[s] = t
        state.down_stale[child] = 0
        shares = beyond(shares, size)
        strides = beyond(strides, n_axes + 1)
    if own:
        for a in range(tree.n_separator[c], n_axes):
            v = tree.clique[tree.clique_start[c] + a]
            if state.code[v] < 0:
                found = beyond(state.marginals, tree.marginal_at[v])
                total = 0.0
                for i in range(tree.card[v]):
                    total += found[i]
                for i in range(tree.card[v]):
                    found[i] /= total
        state.marginal_stale[c] = 0


@inner(bare=True)
def clear(c, n_axes, tree, totals):
    """Set the posteriors of a clique's own variables to zero."""
    for a in range(tree.n_separator[c], n_axes):
        v = tree.clique[tree.clique_start[c] + a]
        for i in range(tree.marginal_at[v], tree.marginal_at[v + 1]):
            totals[i] = 0.0


@kernel(bare=True)
def run(first, last, maximise, up, wanted, code, packed, room):
    """Bring cliques `first..last` up to date, upwards and then downwards; return (status, log of the scale taken out).

    Evidence is entered first where `code` has the state of every slot (-1: not observed); up, dirty cliques send their
    messages; down, beliefs go to the home of the wanted slot, or where else `wanted` says.
    """
    p, tree, state, room = opened(packed, room)
    observed = pointer(code)
    section = beyond(p, at.SECTIONS)
    for v in range(len(code)):
        if observed[v] != state.code[v]:
            state.code[v] = observed[v]
            for i in range(p[section[at.SLOT_START] + v], p[section[at.SLOT_START] + v + 1]):
                state.dirty[p[section[at.SLOT_CLIQUES] + i]] = 1
    total = 0.0
    if up:
        lost = 0.0
        for c in range(first, last):
            if state.dirty[c]:
                sizes = measure(c, tree, state, room)
                status, scale = fill((ZERO, ONE), maximise, c, sizes, tree, state, room, room.sums)
                if status == DONE:
                    status = send(c, sizes[2], scale, room.sums, tree, state)
                if status != DONE:
                    return status, 0.0
            term = state.log_scale[c] - lost
            now = total + term
            lost = (now - total) - term  # what the sum rounds off is added next time
            total = now
    if wanted == NOTHING:
        return DONE, total
    if wanted != AS_MARKED:
        for c in range(tree.n_cliques):
            state.wanted[c] = 2 if wanted == ALL else 0
        if wanted >= 0:
            c = p[section[at.HOME] + wanted]
            state.wanted[c] = 2
            c = tree.parent[c]
            while c >= 0:
                state.wanted[c] = 1
                c = tree.parent[c]
    for c in range(last - 1, first - 1, -1):
        waiting = waiting_for(c, tree, state)
        own = state.wanted[c] == 2 and state.marginal_stale[c] != 0
        if waiting > 0 or own:
            sizes = measure(c, tree, state, room)
            n_axes = sizes[0]
            open_clique(c, sizes[2], tree, state, room.ratio)
            for s in range(wanted_strides(c, n_axes, tree, state, room.child_strides)):
                room.shares[s] = 0.0
            if own:
                clear(c, n_axes, tree, state.marginals)
            onto = (room.shares, state.marginals)
            pour((ZERO, ONE), c, sizes, waiting, own, tree, state, room, onto)
            deliver(c, n_axes, own, tree, state, room, room.shares)
    return DONE, total
