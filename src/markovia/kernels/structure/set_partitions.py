"""Sums of n log n over the configurations of many sets of columns, by refining partitions of the rows.

Sets are lists of decreasing column numbers, sorted so that neighbours share their first columns. The rows are split by one
column after another. Rows with the same configuration so far that agree in all lower columns can never be told apart again:
they are merged into one, and a configuration of one such row is settled and left out of further work (stripped partitions,
Huhtala and others 1999). Cost: for each set the rows that are left before its last column.
"""

from math import log
from typing import Any

import numpy as np

from markovia.kernels.kernel import inner, kernel

HASH = np.uint64(0x9E3779B97F4A7C15)


@inner(_nrt=False)
def _settled(amount, xlogx):
    if len(xlogx) > 0:
        return xlogx[np.int64(amount)]
    return amount * log(amount) if amount > 0 else 0.0


@inner(_nrt=False)
def _merge(low, n, own, mark, much, keys, places):
    """Put rows of one group together that agree in all lower columns, in place; return how many are left."""
    room = 16
    while room < 2 * n:
        room *= 2
    mask = np.uint64(room - 1)
    for s in range(room):
        keys[s] = -1
    left = 0
    for i in range(n):
        key = np.int64(mark[i]) << 32 | np.int64(low[own[i]])
        mixed = np.uint64(key) * HASH
        s = (mixed ^ (mixed >> np.uint64(32))) & mask
        while keys[s] >= 0 and keys[s] != key:
            s = (s + np.uint64(1)) & mask
        if keys[s] < 0:
            keys[s] = key
            places[s] = left
            own[left], mark[left], much[left] = own[i], mark[i], much[i]
            left += 1
        else:
            much[places[s]] += much[i]
    return left


def room_for(codes: Any, weights: Any, cards: Any, size: int) -> Any:
    """Return what one thread needs for sets of a size: at each depth the rows, their groups and weights; and tables."""
    n = codes.shape[1]
    cells = (n + 1) * int(cards.max(initial=1))
    slots = max(16, 1 << max(2 * n - 1, 0).bit_length())
    rows, label = np.empty((size + 1, n), np.int32), np.zeros((size + 1, n), np.int32)
    amount = np.empty((size + 1, n), weights.dtype)
    rows[0], amount[0] = np.arange(n), weights
    held, groups = np.zeros(size + 1, np.int64), np.zeros(size + 1, np.int64)
    held[0], groups[0] = n, 1
    tables = np.empty(cells, weights.dtype), np.empty(cells, np.int32)
    hashed = np.empty(slots, np.int64), np.empty(slots, np.int32)
    return rows, label, amount, held, groups, np.zeros(size + 1), *tables, *hashed


@kernel(_nrt=False)
def set_sums(codes, lower, cards, sets, xlogx, room, out):
    """Fill in the sum of w log w over the configurations of each row of `sets` (column numbers, all of one length).

    `lower[b]` numbers the configurations of the columns below b in each row. `room` is made by `room_for` from
    one weight a row; whole numbers have their values of w log w in `xlogx`, which is empty for others.
    """
    n_sets, k = sets.shape
    rows, label, amount, held, groups, alone, mass, count, keys, places = room
    ready = 0
    for s in range(n_sets):
        same = 0
        if s > 0:
            while same < k and sets[s, same] == sets[s - 1, same]:
                same += 1
        if same < ready:
            ready = same
        for d in range(ready, k):
            bit = sets[s, d]
            column, card = codes[bit], np.int32(cards[bit])
            cells = groups[d] * card
            own, mark, much = rows[d], label[d], amount[d]
            if d == k - 1:
                for c in range(cells):
                    mass[c] = 0
                for i in range(held[d]):
                    mass[mark[i] * card + np.int32(column[own[i]])] += much[i]
                total = alone[d]
                for c in range(cells):
                    total += _settled(mass[c], xlogx)
                out[s] = total
                break
            after, tag, more = rows[d + 1], label[d + 1], amount[d + 1]
            left = held[d]
            for i in range(left):
                after[i] = own[i]
                tag[i] = mark[i] * card + np.int32(column[own[i]])
                more[i] = much[i]
            if d < k - 2:
                left = _merge(lower[bit], left, after, tag, more, keys, places)
            for c in range(cells):
                count[c] = 0
            for i in range(left):
                count[tag[i]] += 1
            fresh = 0
            for c in range(cells):
                if count[c] > 1:
                    count[c] = fresh
                    fresh += 1
                else:
                    count[c] = -1
            lonely = alone[d]
            at = 0
            for i in range(left):
                g = count[tag[i]]
                if g >= 0:
                    after[at], tag[at], more[at] = after[i], g, more[i]
                    at += 1
                else:
                    lonely += _settled(more[i], xlogx)
            held[d + 1] = at
            groups[d + 1] = fresh
            alone[d + 1] = lonely
            ready = d + 1
