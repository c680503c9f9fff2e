"""Scores of families straight from rows: a base of columns is sorted once, then each further column costs one pass.

Rows with the same configuration of the base lie side by side after a counting sort; configurations are numbered anew by
hashing where they are many, so no table is ever larger than a few times the rows. The states of a further column are
counted inside each group of rows: large groups as bit masks against the column's bit planes (and, popcount), small groups
row by row. Cost for a further column: about rows / 64 a large group and state, or the rows of the small groups.
"""

from math import lgamma, log

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointer
from markovia.kernels.structure.bit_planes import ones

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
def score_groups(
    codes, planes, plane_start, weights, cards, xlogx, child, base_start, base, first, further, mode, ess, out,
    whole, starts, keys, numbers, reals, ticks, masks,
):  # fmt: skip
    """Score families that share all parents but one.

    Group g is the child `child[g]` with the parents `base[base_start[g]:base_start[g + 1]]`; its families have one more
    parent each, `further[first[g]:first[g + 1]]`, or none where that is -1. `out` gets their scores. Without a child (-1)
    the score is that of the set of columns. `mode` is 0 for sums of x log x (the log-likelihood), 1 for the Dirichlet
    marginal with `ess` spread over all cells, 2 for one pseudo-count a cell.

    `planes[plane_start[v] + k - 1]` are the bits of the rows where column v has state k > 0; a column with many states has
    none, and then `plane_start[v + 1]` is `plane_start[v]`. Weighted rows have one number each in `weights`, and then
    `xlogx` is empty; it is empty or the values of x log x. The rest is what `room` makes, zero where it says so.
    """
    n, words, n_logs, slots = codes.shape[1], masks.shape[1], len(xlogx), len(keys)
    widest = len(ticks)
    code, plane, logs, weight = pointer(codes), pointer(planes), pointer(xlogx), pointer(weights)
    index, start_of, key_of, number_of = pointer(whole), pointer(starts), pointer(keys), pointer(numbers)
    cell, tick, mask = pointer(reals), pointer(ticks), pointer(masks)
    rows, spare, copied = beyond(index, n + 1), beyond(index, 2 * (n + 1)), beyond(index, 3 * (n + 1))
    cell_start, cell_config = beyond(index, 4 * (n + 1)), beyond(index, 5 * (n + 1))
    cell_mask, every = beyond(index, 6 * (n + 1)), beyond(index, 7 * (n + 1))
    totals, cell_weight = beyond(cell, widest), beyond(cell, 2 * widest)
    weighted = len(weights) > 0
    dirichlet = mode > 0
    limit = max(2 * n, 1024)
    least = max(8, words // 8)
    for g in range(len(child)):
        # the configuration of the base in each row
        size, spread = 1, 1.0
        for i in range(n):
            index[i] = np.int32(0)
        for b in range(base_start[g], base_start[g + 1]):
            column = beyond(code, base[b] * n)
            card = cards[base[b]]
            spread *= card
            if size * card <= limit:
                for i in range(n):
                    index[i] = np.int32(index[i] * card + np.int64(column[i]))
                size *= card
            else:
                size = _renumber(index, n, column, card, key_of, number_of, slots)
        has_child = child[g] >= 0
        own = 1
        if has_child:
            own = cards[child[g]]
        # rows in the order of (configuration, child), and the cells that occur
        states = beyond(code, max(child[g], 0) * n)
        n_cells = 0
        if size * own <= limit:
            for i in range(n):
                spare[i] = np.int32(index[i] * own + (np.int64(states[i]) if own > 1 else np.int64(0)))
            _sort(spare, size * own, every, rows, start_of, n)
            begin = 0
            for k in range(size * own):
                end = np.int64(start_of[k])
                if end > begin:
                    cell_start[n_cells] = np.int32(begin)
                    cell_config[n_cells] = np.int32(k // own)
                    n_cells += 1
                    begin = end
        else:
            for i in range(n):
                copied[i] = np.int32(states[i])
            _sort(copied, own, every, spare, start_of, n)
            _sort(index, size, spare, rows, start_of, n)
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
        n_masks = 0
        for c in range(n_cells):
            low, high = np.int64(cell_start[c]), np.int64(cell_start[c + 1])
            cell_mask[c] = np.int32(-1)
            if weighted:
                cell_weight[c] = 0.0
                for i in range(low, high):
                    cell_weight[c] += weight[np.int64(rows[i])]
            elif high - low >= least:
                cell_mask[c] = np.int32(n_masks)
                bits = beyond(mask, n_masks * words)
                for i in range(words):
                    bits[i] = np.uint64(0)
                for i in range(low, high):
                    row = np.int64(rows[i])
                    bits[row >> 6] |= np.uint64(1) << np.uint64(row & 63)
                n_masks += 1

        for f in range(first[g], first[g + 1]):
            new = max(further[f], 0)
            card = 1
            if further[f] >= 0:
                card = cards[new]
            column = beyond(code, new * n)
            marks = beyond(plane, plane_start[new] * words)
            has_planes = not weighted and plane_start[new + 1] > plane_start[new]
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
                        amount = cell_weight[c] if weighted else np.float64(held)
                        if amount > 0.0:
                            score += _value(amount, dirichlet, a_cell, log_cell, logs, n_logs)
                            totals[0] += amount
                    elif weighted:
                        for i in range(low, high):
                            row = np.int64(rows[i])
                            cell[np.int64(column[row])] += weight[row]
                        for k in range(card):
                            if cell[k] > 0.0:
                                score += _value(cell[k], dirichlet, a_cell, log_cell, logs, n_logs)
                                totals[k] += cell[k]
                                cell[k] = 0.0
                    elif held == 1:
                        score += one_cell
                        totals[np.int64(column[np.int64(rows[low])])] += 1.0
                    elif held < card:
                        # fewer rows than states: row by row, as if they came one after the other
                        for i in range(low, high):
                            k = np.int64(column[np.int64(rows[i])])
                            before = tick[k]
                            if dirichlet:
                                score += log(a_cell + before)
                            else:
                                score += logs[before + 1] - logs[before]
                            tick[k] = before + 1
                            totals[k] += 1.0
                        for i in range(low, high):
                            tick[np.int64(column[np.int64(rows[i])])] = 0
                    else:
                        if cell_mask[c] >= 0 and has_planes and held >= (card - 1) * least:
                            bits = beyond(mask, np.int64(cell_mask[c]) * words)
                            rest = held
                            for k in range(1, card):
                                mark = beyond(marks, (k - 1) * words)
                                shared = np.uint64(0)
                                for i in range(words):
                                    shared += ones(bits[i] & mark[i])
                                tick[k] = np.int64(shared)
                                rest -= np.int64(shared)
                            tick[0] = rest
                        else:
                            for i in range(low, high):
                                tick[np.int64(column[np.int64(rows[i])])] += 1
                        for k in range(card):
                            if tick[k] > 0:
                                amount = np.float64(tick[k])
                                score += _value(amount, dirichlet, a_cell, log_cell, logs, n_logs)
                                totals[k] += amount
                                tick[k] = 0
                    c += 1
                for k in range(card):
                    if totals[k] > 0.0:
                        if has_child:
                            score -= _value(totals[k], dirichlet, a_config, log_config, logs, n_logs)
                        totals[k] = 0.0
            out[f] = score
    return 0


def room(n, words, widest, weighted):
    """Return the room a thread needs for `n` rows in so many words, and columns of up to `widest` states."""
    slots = 1
    while slots < 2 * n:
        slots *= 2
    whole = np.empty((8, n + 1), np.int32)
    whole[7] = np.arange(n + 1)
    # a column may have more states than a table is allowed cells: states that do not occur count too
    starts = np.empty(max(2 * n, 1024, widest) + 2, np.int32)
    return (
        whole, starts, np.empty(slots, np.int64), np.empty(slots, np.int32), np.zeros(2 * widest + n),
        np.zeros(widest, np.int64), np.empty((1 if weighted else n // max(8, words // 8) + 1, words), np.uint64),
    )  # fmt: skip


def load():
    """Compile the code, or load it from disk."""
    codes = np.array([[0, 1, 1], [1, 0, 1]], dtype=np.uint16)
    planes = np.array([[6], [5]], dtype=np.uint64)
    two, none = np.array([2, 2]), np.zeros(0, dtype=np.int64)
    ends = np.array([0, 1])
    child, start, further = np.array([0]), np.zeros(2, dtype=np.int64), np.array([1])
    xlogx, out = np.array([0.0, 0.0, 2 * log(2), 3 * log(3)]), np.empty(1)
    score_groups(
        codes, planes, np.arange(3), np.zeros(0), two, xlogx, child, start, none, ends, further, 0, 0.0, out,
        *room(3, 1, 2, False),
    )  # fmt: skip
    return out
