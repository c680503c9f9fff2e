"""Message passing on a compiled clique tree.

Cliques are numbered children first. Upwards, each clique's table is summed (or maximised) onto its separator; downwards,
its belief is summed onto the separators of its children and onto the variables it removes. Small tables are stored; large
ones are computed block by block in the cache, once on the way up and once on the way down, which is faster than memory
and needs none. A message is scaled to a maximum of one and the log of the scale is kept, so nothing overflows; where a
product might leave the range of doubles the status says so and the caller computes with logarithms.

Only what changed is computed again: a clique is dirty if its own evidence changed or a message into it did, and the
posterior of a separator is stale if the belief of the clique above it changed.
"""

import numpy as np

from markovia.kernels.clique_trees.clique_tables import (
    BLOCK,
    LIMIT,
    blocks_of,
    measure,
    message_strides,
    multiply_block,
    operands,
    place_block,
    reduce_rows,
    room_of,
    state_of,
    stays_in_range,
    tree_of,
)
from markovia.kernels.clique_trees.strided import gather, rows_add, rows_multiply, spread
from markovia.kernels.kernel import kernel

U = np.uint64
DONE, IMPOSSIBLE, OUT_OF_RANGE = 0, 1, 2
SAFE = -900.0
"""log2 of the smallest positive number that a product may reach unwatched."""


@kernel
def _fill_watched(n_operands, n_axes, size, start, tree, state, room):
    """Multiply with rescaling; return (status, log of the scale taken out)."""
    scale = 0.0
    low = 0.0
    for o in range(n_operands):
        if low + room.lows[o] < LIMIT:
            return OUT_OF_RANGE, scale
        spread(
            o == 0, state.tables, start, room.dims, 0, n_axes, state.values, room.offsets[o], room.strides, o,
            room.length, room.step, room.index,
        )  # fmt: skip
        top = 0.0
        least = np.inf
        for i in range(start, start + size):
            t = state.tables[i]
            if t > 0.0:
                least = min(least, t)
                top = max(top, t)
        if top == 0.0:
            return IMPOSSIBLE, scale
        if top < 1e-50:
            for i in range(start, start + size):
                state.tables[i] /= top
            scale += np.log(top)
            least /= top
        low = np.log2(least)
    return DONE, scale


@kernel(forceinline=True)
def _fill(part, parts, maximise, c, n, safe, n_axes, size, rest, tree, state, room, sums):
    """Compute a part of a clique's table block by block and reduce it onto `sums`; say whether it stayed in range."""
    lead, block = blocks_of(room.dims, n_axes, size)
    blocks = size // block
    if block < rest or parts > 1:
        for s in range(size // rest):
            sums[s] = 0.0
    kept = tree.table_at[c] >= 0
    table = state.tables if kept else room.table
    for p in range(part * blocks // parts, (part + 1) * blocks // parts):
        place_block(p, lead, room)
        start = tree.table_at[c] + p * block if kept else 0
        if safe:
            multiply_block(n, n_axes, lead, state.values, table, start, room)
        elif not stays_in_range(n, n_axes, lead, block, state.values, table, start, room):
            return False
        reduce_rows(maximise, table, start, block, rest, sums, p * block // rest)
    return True


@kernel(forceinline=True)
def _send(c, separator, scale, sums, tree, state):
    """Scale the sums to a maximum of one and make them the message; mark the parent if it changed."""
    top = 0.0
    for s in range(separator):
        top = max(top, sums[s])
    if top == 0.0:
        return IMPOSSIBLE
    out = tree.message_at[c]
    least = 1.0
    inverse = 1.0 / top
    changed = False
    for s in range(separator):
        t = sums[s] * inverse
        if t != state.values[out + s]:
            changed = True
            state.values[out + s] = t
        if t > 0.0:
            least = min(least, t)
    state.log_scale[c] = scale + np.log(top)
    state.message_low[c] = np.log2(least)
    state.dirty[c] = 0
    state.belief_stale[c] = 1
    if changed and tree.parent[c] >= 0:
        state.dirty[tree.parent[c]] = 1
    return DONE


@kernel
def _collect(first, last, maximise, tree, state, room):
    for c in range(first, last):
        if not state.dirty[c]:
            continue
        n_axes, size, separator = measure(c, tree, state, room)
        rest = size // separator
        n, lowest = operands(c, n_axes, tree, state, room)
        scale = 0.0
        if tree.table_at[c] >= 0 and size <= BLOCK and lowest > SAFE:
            multiply_block(n, n_axes, 0, state.values, state.tables, tree.table_at[c], room)
            reduce_rows(maximise, state.tables, tree.table_at[c], size, rest, room.sums, 0)
        elif not _fill(0, 1, maximise, c, n, lowest > SAFE, n_axes, size, rest, tree, state, room, room.sums):
            start = tree.table_at[c]
            if start < 0:
                return OUT_OF_RANGE
            status, scale = _fill_watched(n, n_axes, size, start, tree, state, room)
            if status != DONE:
                return status
            reduce_rows(maximise, state.tables, start, size, rest, room.sums, 0)
        status = _send(c, separator, scale, room.sums, tree, state)
        if status != DONE:
            return status
    return DONE


@kernel
def collect(first, last, maximise, program, floats, ints, flags, room_floats, room_ints):
    """Compute the tables and upward messages of the dirty cliques in `first..last`; return a status."""
    tree, state, room = (
        tree_of(program),
        state_of(program, floats, ints, flags),
        room_of(program, room_floats, room_ints),
    )
    return _collect(first, last, maximise, tree, state, room)


@kernel
def collect_part(c, part, parts, maximise, program, floats, ints, flags, room_floats, room_ints, sums):
    """Compute one part of a large clique's table and its share of the message, in `sums`."""
    tree, state, room = (
        tree_of(program),
        state_of(program, floats, ints, flags),
        room_of(program, room_floats, room_ints),
    )
    n_axes, size, separator = measure(c, tree, state, room)
    rest = size // separator
    n, lowest = operands(c, n_axes, tree, state, room)
    if not _fill(part, parts, maximise, c, n, lowest > SAFE, n_axes, size, rest, tree, state, room, sums):
        return OUT_OF_RANGE
    return DONE


@kernel
def send_parts(c, maximise, program, floats, ints, flags, room_floats, room_ints, shares):
    """Join the shares of a large clique's message and send it."""
    tree, state, room = (
        tree_of(program),
        state_of(program, floats, ints, flags),
        room_of(program, room_floats, room_ints),
    )
    _, _, separator = measure(c, tree, state, room)
    for k in range(1, len(shares)):
        for s in range(separator):
            if maximise:
                shares[0, s] = max(shares[0, s], shares[k, s])
            else:
                shares[0, s] += shares[k, s]
    return _send(c, separator, 0.0, shares[0], tree, state)


@kernel(forceinline=True)
def _ratio(c, separator, tree, state, ratio):
    """Write what turns a clique's table into its belief: the separator's posterior over the message sent."""
    start = tree.message_at[c]
    if tree.parent[c] < 0:
        ratio[0] = 1.0 / state.values[start]
        return
    down = start - tree.message_at[0]
    for s in range(separator):
        t = state.values[start + s]
        ratio[s] = state.posterior[down + s] / t if t > 0.0 else 0.0


@kernel
def _peel(c, n_axes, tree, state, dims, columns, start, spare, spare_at, rest):
    """Sum the joint posterior of a clique's own variables, in `columns[start:]`, onto each of them, last axis first."""
    size = rest
    for a in range(n_axes - 1, tree.n_separator[c] - 1, -1):
        v = tree.clique[tree.clique_start[c] + a]
        if state.code[v] >= 0:
            continue
        d = dims[a]
        m = tree.marginal_at[v]
        for i in range(d):
            state.marginals[m + i] = 0.0
        rows = size // d
        rows_add(columns, U(start), rows, d, state.marginals, m, 0, 1)
        reduce_rows(False, columns, start, size, d, spare, spare_at)
        for i in range(rows):
            columns[start + i] = spare[spare_at + i]
        size = rows
        total = 0.0
        for i in range(d):
            total += state.marginals[m + i]
        for i in range(d):
            state.marginals[m + i] /= total


@kernel(forceinline=True)
def _receive(child, size, sums, start, tree, state):
    """Normalise the sums and make them the posterior of the separator above `child`."""
    total = 0.0
    for s in range(size):
        total += sums[start + s]
    down = tree.message_at[child] - tree.message_at[0]
    inverse = 1.0 / total if total > 0.0 else 0.0
    for s in range(size):
        t = sums[start + s] * inverse
        if t != state.posterior[down + s]:
            state.belief_stale[child] = 1
            state.posterior[down + s] = t
    state.down_stale[child] = 0


@kernel(forceinline=True)
def _waiting(c, tree, state):
    """Pass on that a belief changed; return the wanted children whose separators are out of date."""
    first, last = tree.child_start[c], tree.child_start[c + 1]
    if state.belief_stale[c]:
        for k in range(first, last):
            state.down_stale[tree.children[k]] = 1
        state.marginal_stale[c] = 1
        state.belief_stale[c] = 0
    n = 0
    if state.wanted[c]:
        for k in range(first, last):
            child = tree.children[k]
            if state.wanted[child] and state.down_stale[child]:
                n += 1
    return n


@kernel
def _pour(
    lo, hi, c, n_axes, size, separator, tree, state, ratio, room, child_strides, share_at, shares, columns
):
    """Compute blocks `lo..hi` of a clique's belief and sum them onto its children's separators and its own variables."""
    rest = size // separator
    n = 0
    start = tree.table_at[c]
    if start < 0:
        n, _ = operands(c, n_axes, tree, state, room)
    lead, block = blocks_of(room.dims, n_axes, size)
    for p in range(lo, hi):
        place_block(p, lead, room)
        if start < 0:
            multiply_block(n, n_axes, lead, state.values, room.table, 0, room)
        else:
            b = U(start + p * block)
            for i in range(U(block)):
                room.table[i] = state.tables[b + i]
        if block < rest:
            t = ratio[p * block // rest]
            for i in range(U(block)):
                room.table[i] *= t
        else:
            rows_multiply(room.table, U(0), block // rest, rest, ratio, p * block // rest, 1, 0)
        for k in range(len(share_at) - 1):
            x = share_at[k]
            for a in range(lead):
                x += room.place[a] * child_strides[k, a]
            gather(
                room.table,
                0,
                room.dims,
                lead,
                n_axes,
                shares,
                x,
                child_strides,
                k,
                room.length,
                room.step,
                room.index,
            )
        if len(columns) > 0:
            if block < rest:
                z = U((p * block) % rest)
                for i in range(U(block)):
                    columns[z + i] += room.table[i]
            else:
                rows_add(room.table, U(0), block // rest, rest, columns, 0, 0, 1)


@kernel
def _distribute(first, last, tree, state, room):
    for c in range(last - 1, first - 1, -1):
        waiting = _waiting(c, tree, state)
        own = state.wanted[c] == 2 and state.marginal_stale[c]
        if waiting == 0 and not own:
            continue
        n_axes, size, separator = measure(c, tree, state, room)
        rest = size // separator
        _ratio(c, separator, tree, state, room.ratio)
        start = tree.table_at[c]
        if start >= 0 and size <= BLOCK:
            b = U(start)
            for i in range(U(size)):
                room.table[i] = state.tables[b + i]
            rows_multiply(room.table, U(0), separator, rest, room.ratio, 0, 1, 0)
            for k in range(tree.child_start[c], tree.child_start[c + 1]):
                child = tree.children[k]
                if not (state.wanted[child] and state.down_stale[child]):
                    continue
                n = message_strides(c, child, tree, state, room.strides, 0)
                for s in range(n):
                    room.sums[s] = 0.0
                gather(
                    room.table,
                    0,
                    room.dims,
                    0,
                    n_axes,
                    room.sums,
                    0,
                    room.strides,
                    0,
                    room.length,
                    room.step,
                    room.index,
                )
                _receive(child, n, room.sums, 0, tree, state)
            if own:
                if separator > 1:
                    for i in range(rest):
                        room.table[BLOCK + i] = 0.0
                    rows_add(room.table, U(0), separator, rest, room.table, BLOCK, 0, 1)
                start = BLOCK if separator > 1 else 0
                _peel(c, n_axes, tree, state, room.dims, room.table, start, room.table, 2 * BLOCK, rest)
                state.marginal_stale[c] = 0
            continue
        share_at = np.zeros(waiting + 1, np.int64)
        child_strides = np.empty((max(waiting, 1), n_axes), np.int64)
        k = 0
        for i in range(tree.child_start[c], tree.child_start[c + 1]):
            child = tree.children[i]
            if state.wanted[child] and state.down_stale[child]:
                share_at[k + 1] = share_at[k] + message_strides(c, child, tree, state, child_strides, k)
                k += 1
        shares = np.zeros(share_at[waiting])
        columns = np.zeros(rest if own else 0)
        _, block = blocks_of(room.dims, n_axes, size)
        _pour(
            0, size // block, c, n_axes, size, separator, tree, state, room.ratio, room, child_strides, share_at,
            shares, columns,
        )  # fmt: skip
        _deliver(c, n_axes, rest, share_at, shares, columns, tree, state, room.dims)
    return DONE


@kernel
def _deliver(c, n_axes, rest, share_at, shares, columns, tree, state, dims):
    """Hand the sums of a large clique to its children and to its own variables."""
    k = 0
    for i in range(tree.child_start[c], tree.child_start[c + 1]):
        child = tree.children[i]
        if state.wanted[child] and state.down_stale[child]:
            _receive(child, share_at[k + 1] - share_at[k], shares, share_at[k], tree, state)
            k += 1
    if len(columns) > 0:
        _peel(c, n_axes, tree, state, dims, columns, 0, np.empty(rest), 0, rest)
        state.marginal_stale[c] = 0


@kernel
def distribute(first, last, program, floats, ints, flags, room_floats, room_ints):
    """Bring beliefs from the root down through cliques `last-1 .. first` where wanted and stale."""
    tree, state, room = (
        tree_of(program),
        state_of(program, floats, ints, flags),
        room_of(program, room_floats, room_ints),
    )
    return _distribute(first, last, tree, state, room)


@kernel
def open_clique(c, program, floats, ints, flags, room_floats, room_ints):
    """Get ready to split a large clique: write its ratio into the room; return (children waiting, sizes)."""
    tree, state, room = (
        tree_of(program),
        state_of(program, floats, ints, flags),
        room_of(program, room_floats, room_ints),
    )
    waiting = _waiting(c, tree, state)
    own = state.wanted[c] == 2 and state.marginal_stale[c]
    share_at = np.zeros(waiting + 1, np.int64)
    if waiting == 0 and not own:
        return share_at, 0
    n_axes, size, separator = measure(c, tree, state, room)
    _ratio(c, separator, tree, state, room.ratio)
    scratch = np.empty((1, n_axes), np.int64)
    k = 0
    for i in range(tree.child_start[c], tree.child_start[c + 1]):
        child = tree.children[i]
        if state.wanted[child] and state.down_stale[child]:
            share_at[k + 1] = share_at[k] + message_strides(c, child, tree, state, scratch, 0)
            k += 1
    return share_at, size // separator if own else 0


@kernel
def distribute_part(
    c, part, parts, program, floats, ints, flags, room_floats, room_ints, ratio, share_at, shares, columns
):
    """Sum one part of a large clique's belief onto its children's separators and its own variables."""
    tree, state, room = (
        tree_of(program),
        state_of(program, floats, ints, flags),
        room_of(program, room_floats, room_ints),
    )
    n_axes, size, separator = measure(c, tree, state, room)
    child_strides = np.empty((len(share_at), n_axes), np.int64)
    k = 0
    for i in range(tree.child_start[c], tree.child_start[c + 1]):
        child = tree.children[i]
        if state.wanted[child] and state.down_stale[child]:
            message_strides(c, child, tree, state, child_strides, k)
            k += 1
    shares[:] = 0.0
    columns[:] = 0.0
    _, block = blocks_of(room.dims, n_axes, size)
    blocks = size // block
    _pour(
        part * blocks // parts, (part + 1) * blocks // parts, c, n_axes, size, separator, tree, state, ratio, room,
        child_strides, share_at, shares, columns,
    )  # fmt: skip


@kernel
def close_clique(c, program, floats, ints, flags, room_floats, room_ints, share_at, shares, columns):
    """Join the parts of a large clique."""
    tree, state, room = (
        tree_of(program),
        state_of(program, floats, ints, flags),
        room_of(program, room_floats, room_ints),
    )
    n_axes, size, separator = measure(c, tree, state, room)
    for k in range(1, len(shares)):
        for i in range(shares.shape[1]):
            shares[0, i] += shares[k, i]
        for i in range(columns.shape[1]):
            columns[0, i] += columns[k, i]
    _deliver(c, n_axes, size // separator, share_at, shares[0], columns[0], tree, state, room.dims)
