"""Scores of families straight from rows: a base of columns is sorted once, then each further column costs one pass.

Rows with the same configuration of the base lie side by side after a counting sort; configurations are numbered anew by
hashing where they are many, so no table is ever larger than a few times the rows. The states of a further column are
counted inside each group of rows: large groups as bit masks against the column's bit planes (and, popcount), small groups
row by row. Cost for a further column: about rows / 64 a large group and state, or the rows of the small groups.
"""

from math import lgamma, log

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.structure.bit_planes import ones

HASH = np.uint64(0x9E3779B97F4A7C15)


@inner
def _shared_bits(a, b):
    found = np.uint64(0)
    for i in range(len(a)):
        found += ones(a[i] & b[i])
    return np.int64(found)


@inner
def _value(v, dirichlet, a, log_a, xlogx):
    """Return what a count adds: x log x, or the log of a rising factorial."""
    if dirichlet:
        return lgamma(a + v) - log_a
    if v < len(xlogx):
        return xlogx[np.int64(v)]
    return v * log(v)


@inner
def _renumber(index, column, card, keys, numbers):
    """Give the pairs (index, column) numbers in the order of their appearance, in place; return how many there are."""
    for i in range(len(keys)):
        keys[i] = -1
    mask = np.uint64(len(keys) - 1)
    shift = np.uint64(32)
    found = 0
    for i in range(len(index)):
        key = np.int64(index[i]) * card + np.int64(column[i])
        mixed = np.uint64(key) * HASH
        slot = (mixed ^ (mixed >> shift)) & mask
        while keys[slot] != key and keys[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        if keys[slot] < 0:
            keys[slot] = key
            numbers[slot] = found
            found += 1
        index[i] = numbers[slot]
    return found


@inner
def _sort(key, size, order, into, starts):
    """Sort the rows in `order` by key into `into`, keeping the order of equal ones; `starts` gets the ends of each key."""
    for k in range(size + 1):
        starts[k] = 0
    for i in range(len(order)):
        starts[key[i] + 1] += 1
    for k in range(size):
        starts[k + 1] += starts[k]
    for i in range(len(order)):
        row = order[i]
        into[starts[key[row]]] = row
        starts[key[row]] += 1


@kernel
def score_groups(
    codes, planes, plane_start, weights, cards, xlogx, child, base_start, base, first, further, mode, ess, out
):
    """Score families that share all parents but one.

    Group g is the child `child[g]` with the parents `base[base_start[g]:base_start[g + 1]]`; its families have one more
    parent each, `further[first[g]:first[g + 1]]`, or none where that is -1. `out` gets their scores. Without a child (-1)
    the score is that of the set of columns. `mode` is 0 for sums of x log x (the log-likelihood), 1 for the Dirichlet
    marginal with `ess` spread over all cells, 2 for one pseudo-count a cell.

    `planes[plane_start[v] + k - 1]` are the bits of the rows where column v has state k > 0; a column with many states has
    none, and then `plane_start[v + 1]` is `plane_start[v]`. Weighted rows have one number each in `weights`, and then
    `xlogx` is empty; it is empty or the values of x log x.
    """
    n = codes.shape[1]
    words = planes.shape[1]
    weighted = len(weights) > 0
    dirichlet = mode > 0
    limit = max(2 * n, 1024)
    index, rows, spare = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32)
    copied = np.empty(n, np.int32)
    cell_start = np.empty(n + 1, np.int32)
    cell_config = np.empty(n, np.int32)
    cell_weight = np.empty(n if weighted else 0, np.float64)
    cell_mask = np.empty(n, np.int32)
    least = max(8, words // 8)
    masks = np.empty((0 if weighted else n // least + 1, words), np.uint64)
    slots = 1
    while slots < 2 * n:
        slots *= 2
    keys, numbers = np.empty(slots, np.int64), np.empty(slots, np.int32)
    widest = 1
    for v in range(len(cards)):
        widest = max(widest, cards[v])
    # a column may have more states than a table is allowed cells: states that do not occur count too
    starts = np.empty(max(limit, widest) + 2, np.int32)
    ticks, cell, totals = (
        np.empty(widest, np.int64),
        np.empty(widest, np.float64),
        np.empty(widest, np.float64),
    )
    for k in range(widest):
        ticks[k], cell[k], totals[k] = 0, 0.0, 0.0
    every = np.empty(n, np.int32)
    for i in range(n):
        every[i] = i

    for g in range(len(child)):
        # the configuration of the base in each row
        size, spread = 1, 1.0
        for i in range(n):
            index[i] = 0
        for b in range(base_start[g], base_start[g + 1]):
            column, card = codes[base[b]], cards[base[b]]
            spread *= card
            if size * card <= limit:
                for i in range(n):
                    index[i] = index[i] * card + np.int32(column[i])
                size *= card
            else:
                size = _renumber(index, column, card, keys, numbers)
        own = 1
        if child[g] >= 0:
            own = cards[child[g]]
        # rows in the order of (configuration, child), and the cells that occur
        states = codes[max(child[g], 0)]
        n_cells = 0
        if size * own <= limit:
            if own > 1:
                for i in range(n):
                    spare[i] = index[i] * own + np.int32(states[i])
                _sort(spare, size * own, every, rows, starts)
            else:
                _sort(index, size, every, rows, starts)
            begin = 0
            for k in range(size * own):
                if starts[k] > begin:
                    cell_start[n_cells] = begin
                    cell_config[n_cells] = k // own
                    n_cells += 1
                    begin = starts[k]
        else:
            for i in range(n):
                copied[i] = np.int32(states[i])
            _sort(copied, own, every, spare, starts)
            _sort(index, size, spare, rows, starts)
            last_config, last_state = -1, -1
            for i in range(n):
                config, state = index[rows[i]], np.int64(states[rows[i]]) if own > 1 else 0
                if config != last_config or state != last_state:
                    cell_start[n_cells] = i
                    cell_config[n_cells] = config
                    n_cells += 1
                    last_config, last_state = config, state
        cell_start[n_cells] = n
        if weighted:
            for c in range(n_cells):
                cell_weight[c] = 0.0
                for i in range(cell_start[c], cell_start[c + 1]):
                    cell_weight[c] += weights[rows[i]]
        n_masks = 0
        for c in range(n_cells):
            cell_mask[c] = -1
            if not weighted and cell_start[c + 1] - cell_start[c] >= least:
                cell_mask[c] = n_masks
                bits = masks[n_masks]
                for i in range(words):
                    bits[i] = np.uint64(0)
                for i in range(cell_start[c], cell_start[c + 1]):
                    row = rows[i]
                    bits[row >> 6] |= np.uint64(1) << np.uint64(row & 63)
                n_masks += 1

        for f in range(first[g], first[g + 1]):
            new = further[f]
            card = 1
            if new >= 0:
                card = cards[new]
            column = codes[max(new, 0)]
            has_planes = not weighted and plane_start[max(new, 0) + 1] > plane_start[max(new, 0)]
            a_cell = 1.0
            if mode == 1:
                a_cell = ess / (spread * card * own)
            a_config = a_cell * own
            log_cell = lgamma(a_cell) if dirichlet else 0.0
            log_config = lgamma(a_config) if dirichlet else 0.0
            one_cell = _value(1.0, dirichlet, a_cell, log_cell, xlogx)
            one_config = _value(1.0, dirichlet, a_config, log_config, xlogx)
            score = 0.0
            c = 0
            while c < n_cells:
                config = cell_config[c]
                lone = c + 1 == n_cells or cell_config[c + 1] != config
                if lone and not weighted and cell_start[c + 1] - cell_start[c] == 1:
                    score += one_cell
                    if child[g] >= 0:
                        score -= one_config
                    c += 1
                    continue
                while c < n_cells and cell_config[c] == config:
                    low, high = cell_start[c], cell_start[c + 1]
                    held = high - low
                    if card == 1:
                        amount = cell_weight[c] if weighted else np.float64(held)
                        if amount > 0.0:
                            score += _value(amount, dirichlet, a_cell, log_cell, xlogx)
                            totals[0] += amount
                    elif weighted:
                        for i in range(low, high):
                            cell[np.int64(column[rows[i]])] += weights[rows[i]]
                        for k in range(card):
                            if cell[k] > 0.0:
                                score += _value(cell[k], dirichlet, a_cell, log_cell, xlogx)
                                totals[k] += cell[k]
                                cell[k] = 0.0
                    elif held == 1:
                        score += one_cell
                        totals[np.int64(column[rows[low]])] += 1.0
                    elif held < card:
                        # fewer rows than states: row by row, as if they came one after the other
                        for i in range(low, high):
                            k = np.int64(column[rows[i]])
                            before = ticks[k]
                            if dirichlet:
                                score += log(a_cell + before)
                            else:
                                score += xlogx[before + 1] - xlogx[before]
                            ticks[k] = before + 1
                            totals[k] += 1.0
                        for i in range(low, high):
                            ticks[np.int64(column[rows[i]])] = 0
                    else:
                        if cell_mask[c] >= 0 and has_planes and held >= (card - 1) * least:
                            bits = masks[cell_mask[c]]
                            rest = np.int64(held)
                            for k in range(1, card):
                                ticks[k] = _shared_bits(bits, planes[plane_start[new] + k - 1])
                                rest -= ticks[k]
                            ticks[0] = rest
                        else:
                            for i in range(low, high):
                                ticks[np.int64(column[rows[i]])] += 1
                        for k in range(card):
                            if ticks[k] > 0:
                                amount = np.float64(ticks[k])
                                score += _value(amount, dirichlet, a_cell, log_cell, xlogx)
                                totals[k] += amount
                                ticks[k] = 0
                    c += 1
                for k in range(card):
                    if totals[k] > 0.0:
                        if child[g] >= 0:
                            score -= _value(totals[k], dirichlet, a_config, log_config, xlogx)
                        totals[k] = 0.0
            out[f] = score


def load():
    """Compile the code, or load it from disk."""
    codes = np.array([[0, 1, 1], [1, 0, 1]], dtype=np.uint16)
    planes = np.array([[6], [5]], dtype=np.uint64)
    two, none = np.array([2, 2]), np.zeros(0, dtype=np.int64)
    ends = np.array([0, 1])
    child, start, further = np.array([0]), np.zeros(2, dtype=np.int64), np.array([1])
    xlogx, out = np.array([0.0, 0.0, 2 * log(2), 3 * log(3)]), np.empty(1)
    score_groups(
        codes, planes, np.arange(3), np.zeros(0), two, xlogx, child, start, none, ends, further, 0, 0.0, out
    )
    return out
