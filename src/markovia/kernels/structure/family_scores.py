"""Scores of families straight from rows: a base of columns is sorted once, then each further column costs one pass.

Rows with the same configuration of the base lie side by side after a counting sort; configurations are numbered anew by
hashing where they are many, so no table is ever larger than a few times the rows. The states of a further column are
counted inside each group of rows: large groups as bit masks against the column's bit planes (and, popcount), small groups
row by row. Cost for a further column: about rows / 64 a large group and state, or the rows of the small groups.
"""

from math import lgamma, log

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointers
from markovia.kernels.structure.bit_planes import ones, packed_rows
from markovia.kernels.structure.structure_records import FamilyGroups, FamilyRoom, PackedRows

HASH = np.uint64(0x9E3779B97F4A7C15)


@inner(bare=True)
def _value(v, dirichlet, a, log_a, xlogx, n_logs):
    """Return what a count adds: x log x, or the log of a rising factorial."""
    if dirichlet:
        return lgamma(a + v) - log_a
    if v < n_logs:
        return xlogx[np.int64(v)]
    return v * log(v)


@inner(bare=True)
def _renumber(index, n, column, card, keys, numbers, slots):
    """Give the pairs (index, column) numbers in the order of their appearance, in place; return how many there are."""
    for i in range(slots):
        keys[i] = -1
    found = 0
    for i in range(n):
        key = np.int64(index[i]) * card + np.int64(column[i])
        mixed = np.uint64(key) * HASH
        slot = np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(slots - 1))
        while keys[slot] != key and keys[slot] >= 0:
            slot = (slot + 1) & (slots - 1)
        if keys[slot] < 0:
            keys[slot] = key
            numbers[slot] = np.int32(found)
            found += 1
        index[i] = numbers[slot]
    return found


@inner(bare=True)
def _sort(key, size, order, into, starts, n):
    """Sort the rows in `order` by key into `into`, keeping the order of equal ones; `starts` gets the ends of each key."""
    for k in range(size + 1):
        starts[k] = np.int32(0)
    for i in range(n):
        at = np.int64(key[i]) + 1
        starts[at] = np.int32(starts[at] + 1)
    for k in range(size):
        starts[k + 1] = np.int32(starts[k + 1] + starts[k])
    for i in range(n):
        row = np.int64(order[i])
        at = np.int64(key[row])
        into[np.int64(starts[at])] = np.int32(row)
        starts[at] = np.int32(starts[at] + 1)
    return 0


@kernel(bare=True)
def score_groups(packed, groups, mode, ess, room, out):
    """Score the families of `FamilyGroups` in `PackedRows`; `out` (families,) gets their scores.

    Without a child the score is that of the set of columns. `mode` is 0 for sums of x log x (the log-likelihood), 1 for the
    Dirichlet marginal with `ess` spread over all cells, 2 for one pseudo-count a cell. The room is what `room_for` makes.
    """
    n, words, n_logs, slots = packed.codes.shape[1], room.masks.shape[1], len(packed.xlogx), len(room.keys)
    weighted, n_groups = len(packed.weights) > 0, len(groups.child)
    packed, groups, room = pointers(packed), pointers(groups), pointers(room)
    codes, cards, plane_start, weights, logs = (
        packed.codes, packed.cards, packed.plane_start, packed.weights, packed.xlogx,
    )  # fmt: skip
    index, rows, spare, cell_start, cell_config = (
        room.configs, room.rows, room.spare, room.cell_start, room.cell_config,
    )  # fmt: skip
    counts, totals, ticks = room.counts, room.totals, room.ticks
    dirichlet = mode > 0
    limit = max(2 * n, 1024)
    least = max(8, words // 8)
    for g in range(n_groups):
        # the configuration of the base in each row
        size, spread = 1, 1.0
        for i in range(n):
            index[i] = np.int32(0)
        for b in range(groups.base_start[g], groups.base_start[g + 1]):
            column = beyond(codes, groups.base[b] * n)
            card = cards[groups.base[b]]
            spread *= card
            if size * card <= limit:  # in mixed radix while these are few, else numbered anew
                for i in range(n):
                    index[i] = np.int32(index[i] * card + np.int64(column[i]))
                size *= card
            else:
                size = _renumber(index, n, column, card, room.keys, room.numbers, slots)
        child = groups.child[g]
        has_child = child >= 0
        own = 1
        if has_child:
            own = cards[child]
        # rows in the order of (configuration, child), and the cells that occur
        states = beyond(codes, max(child, 0) * n)
        n_cells = 0
        if size * own <= limit:
            for i in range(n):
                spare[i] = np.int32(index[i] * own + (np.int64(states[i]) if own > 1 else np.int64(0)))
            _sort(spare, size * own, room.every, rows, room.starts, n)
            begin = 0
            for k in range(size * own):
                end = np.int64(room.starts[k])
                if end > begin:
                    cell_start[n_cells] = np.int32(begin)
                    cell_config[n_cells] = np.int32(k // own)
                    n_cells += 1
                    begin = end
        else:
            for i in range(n):
                room.copied[i] = np.int32(states[i])
            _sort(room.copied, own, room.every, spare, room.starts, n)
            _sort(index, size, spare, rows, room.starts, n)
            last_config, last_state = -1, -1
            for i in range(n):
                row = np.int64(rows[i])
                config, state = np.int64(index[row]), np.int64(states[row]) if own > 1 else np.int64(0)
                if config != last_config or state != last_state:
                    cell_start[n_cells] = np.int32(i)
                    cell_config[n_cells] = np.int32(config)
                    n_cells += 1
                    last_config, last_state = config, state
        cell_start[n_cells] = np.int32(n)
        # the weight of each cell, or the rows of a large one as bits
        n_masks = 0
        for c in range(n_cells):
            low, high = np.int64(cell_start[c]), np.int64(cell_start[c + 1])
            room.cell_mask[c] = np.int32(-1)
            if weighted:
                room.cell_weight[c] = 0.0
                for i in range(low, high):
                    room.cell_weight[c] += weights[np.int64(rows[i])]
            elif high - low >= least:
                room.cell_mask[c] = np.int32(n_masks)
                bits = beyond(room.masks, n_masks * words)
                for i in range(words):
                    bits[i] = np.uint64(0)
                for i in range(low, high):
                    row = np.int64(rows[i])
                    bits[row >> 6] |= np.uint64(1) << np.uint64(row & 63)
                n_masks += 1

        # a pass for each further parent: its states are counted within each cell, and these summed within each configuration
        for f in range(groups.first[g], groups.first[g + 1]):
            new = max(groups.further[f], 0)
            card = 1
            if groups.further[f] >= 0:
                card = cards[new]
            column = beyond(codes, new * n)
            marks = beyond(packed.planes, plane_start[new] * words)
            has_planes = not weighted and plane_start[new + 1] > plane_start[new]
            # pseudo-counts of a cell and of a configuration, and what the commonest count, one, adds to the score
            a_cell = 1.0
            if mode == 1:
                a_cell = ess / (spread * card * own)
            a_config = a_cell * own
            log_cell = lgamma(a_cell) if dirichlet else 0.0
            log_config = lgamma(a_config) if dirichlet else 0.0
            one_cell = _value(1.0, dirichlet, a_cell, log_cell, logs, n_logs)
            one_config = _value(1.0, dirichlet, a_config, log_config, logs, n_logs)
            score = 0.0
            c = 0
            while c < n_cells:
                config = np.int64(cell_config[c])
                lone = c + 1 == n_cells or np.int64(cell_config[c + 1]) != config
                # a configuration of one row: no need to look which state it has
                if lone and not weighted and cell_start[c + 1] - cell_start[c] == 1:
                    score += one_cell
                    if has_child:
                        score -= one_config
                    c += 1
                    continue
                while c < n_cells and np.int64(cell_config[c]) == config:
                    low, high = np.int64(cell_start[c]), np.int64(cell_start[c + 1])
                    held = high - low
                    if card == 1:
                        amount = room.cell_weight[c] if weighted else np.float64(held)
                        if amount > 0.0:
                            score += _value(amount, dirichlet, a_cell, log_cell, logs, n_logs)
                            totals[0] += amount
                    elif weighted:
                        for i in range(low, high):
                            row = np.int64(rows[i])
                            counts[np.int64(column[row])] += weights[row]
                        for k in range(card):
                            if counts[k] > 0.0:
                                score += _value(counts[k], dirichlet, a_cell, log_cell, logs, n_logs)
                                totals[k] += counts[k]
                                counts[k] = 0.0
                    elif held == 1:
                        score += one_cell
                        totals[np.int64(column[np.int64(rows[low])])] += 1.0
                    elif held < card:
                        # fewer rows than states: row by row, as if they came one after the other
                        for i in range(low, high):
                            k = np.int64(column[np.int64(rows[i])])
                            before = ticks[k]
                            if dirichlet:
                                score += log(a_cell + before)
                            else:
                                score += logs[before + 1] - logs[before]
                            ticks[k] = before + 1
                            totals[k] += 1.0
                        for i in range(low, high):
                            ticks[np.int64(column[np.int64(rows[i])])] = 0
                    else:
                        # by bits where words are fewer than rows; the first state is the rest
                        if room.cell_mask[c] >= 0 and has_planes and held >= (card - 1) * least:
                            bits = beyond(room.masks, np.int64(room.cell_mask[c]) * words)
                            rest = held
                            for k in range(1, card):
                                mark = beyond(marks, (k - 1) * words)
                                shared = np.uint64(0)
                                for i in range(words):
                                    shared += ones(bits[i] & mark[i])
                                ticks[k] = np.int64(shared)
                                rest -= np.int64(shared)
                            ticks[0] = rest
                        else:
                            for i in range(low, high):
                                ticks[np.int64(column[np.int64(rows[i])])] += 1
                        for k in range(card):
                            if ticks[k] > 0:
                                amount = np.float64(ticks[k])
                                score += _value(amount, dirichlet, a_cell, log_cell, logs, n_logs)
                                totals[k] += amount
                                ticks[k] = 0
                    c += 1
                # the configurations of all parents
                for k in range(card):
                    if totals[k] > 0.0:
                        if has_child:
                            score -= _value(totals[k], dirichlet, a_config, log_config, logs, n_logs)
                        totals[k] = 0.0
            out[f] = score
    return 0


def room_for(packed: PackedRows) -> FamilyRoom:
    """Return the room that a thread needs."""
    n, words, widest = packed.codes.shape[1], packed.planes.shape[1], int(packed.cards.max(initial=1))
    slots = 1
    while slots < 2 * n:
        slots *= 2
    configs, rows, spare, copied, begin, config, mask = (np.empty(n + 1, np.int32) for _ in range(7))
    # a column may have more states than a table is allowed cells: states that do not occur count too
    starts = np.empty(max(2 * n, 1024, widest) + 2, np.int32)
    masks = np.empty((1 if len(packed.weights) else n // max(8, words // 8) + 1, words), np.uint64)
    return FamilyRoom(
        configs, rows, spare, copied, np.arange(n + 1, dtype=np.int32), begin, config, mask, np.empty(n), starts,
        np.empty(slots, np.int64), np.empty(slots, np.int32), np.zeros(widest), np.zeros(widest), np.zeros(widest, np.int64),
        masks,
    )  # fmt: skip


def load() -> None:
    """Compile the code, or load it from disk."""
    packed = packed_rows(np.array([[0, 1, 1], [1, 0, 1]]), np.array([2, 2]), None)
    one, ends = np.zeros(1, np.int64), np.arange(2)
    groups = FamilyGroups(one, 0 * ends, one[:0], ends, one + 1)
    score_groups(packed, groups, 0, 0.0, room_for(packed), np.empty(1))
