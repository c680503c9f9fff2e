"""Counting configurations: one pass over columns of state codes, many tables at once.

Rows are taken in blocks that stay in the nearest caches. For each table the block's flat indices are computed from four
columns at a time in 16-bit numbers where the table is small, in 32-bit numbers otherwise (loops that the compiler turns
into vector instructions; sums wrap around, so a code of -1 takes its stride away). Then they are counted.
Cost: rows times the number of columns of all tables for the indices, rows times tables for the counters.

`count_keys` counts whole numbers of any size by hashing (open addressing, linear probing); `split_text` numbers strings.
"""

import numpy as np

from markovia.kernels.kernel import kernel

BLOCK = 4096
NEAR = 1 << 16
"""Tables up to this size have 16-bit indices."""
HASH = np.uint64(0x9E3779B97F4A7C15)


@kernel
def _near_four(a, b, c, d, p, q, r, s, index):
    for i in range(len(index)):
        index[i] = np.uint16(
            index[i] + np.uint16(a[i]) * p + np.uint16(b[i]) * q + np.uint16(c[i]) * r + np.uint16(d[i]) * s
        )


@kernel
def _near_one(a, p, index):
    for i in range(len(index)):
        index[i] = np.uint16(index[i] + np.uint16(a[i]) * p)


@kernel
def _far_one(a, p, index):
    for i in range(len(index)):
        index[i] = np.uint32(index[i] + np.uint32(a[i]) * p)


@kernel
def _near_indices(codes, begin, end, scope, stride, low, high, base, index):
    """Fill in the flat 16-bit indices of rows `begin..end`."""
    index[:] = np.uint16(base)
    k = low
    while k + 4 <= high:
        _near_four(
            codes[scope[k], begin:end],
            codes[scope[k + 1], begin:end],
            codes[scope[k + 2], begin:end],
            codes[scope[k + 3], begin:end],
            np.uint16(stride[k]),
            np.uint16(stride[k + 1]),
            np.uint16(stride[k + 2]),
            np.uint16(stride[k + 3]),
            index,
        )
        k += 4
    while k < high:
        _near_one(codes[scope[k], begin:end], np.uint16(stride[k]), index)
        k += 1


@kernel
def _far_indices(codes, begin, end, scope, stride, low, high, base, index):
    """Fill in the flat 32-bit indices of rows `begin..end`."""
    index[:] = np.uint32(base)
    for k in range(low, high):
        _far_one(codes[scope[k], begin:end], np.uint32(stride[k]), index)


@kernel
def _tally(index, out):
    for i in range(len(index)):
        out[index[i]] += np.uint32(1)


@kernel
def _weigh(index, weights, out):
    for i in range(len(index)):
        out[index[i]] += weights[i]


@kernel
def count_tables(codes, first, last, scope_start, scope, stride, base, table_start, out):
    """Add the rows `first..last` of `codes` (one row a column of data) to the 32-bit counters in `out`.

    `scope[scope_start[t]:scope_start[t + 1]]` are the columns of table t and `stride` their strides; `base[t]` is where a
    row of zeros is counted. `out[table_start[t]:table_start[t + 1]]` is table t.
    """
    near = np.empty(BLOCK, np.uint16)
    far = np.empty(BLOCK, np.uint32)
    for begin in range(first, last, BLOCK):
        end = min(begin + BLOCK, last)
        n = end - begin
        for t in range(len(base)):
            table = out[table_start[t] : table_start[t + 1]]
            low, high = scope_start[t], scope_start[t + 1]
            if len(table) <= NEAR:
                _near_indices(codes, begin, end, scope, stride, low, high, base[t], near[:n])
                _tally(near[:n], table)
            else:
                _far_indices(codes, begin, end, scope, stride, low, high, base[t], far[:n])
                _tally(far[:n], table)


@kernel
def weigh_tables(codes, weights, first, last, scope_start, scope, stride, base, table_start, out):
    """Add the weights of rows instead of one for each; see `count_tables`."""
    near = np.empty(BLOCK, np.uint16)
    far = np.empty(BLOCK, np.uint32)
    for begin in range(first, last, BLOCK):
        end = min(begin + BLOCK, last)
        n = end - begin
        for t in range(len(base)):
            table = out[table_start[t] : table_start[t + 1]]
            low, high = scope_start[t], scope_start[t + 1]
            if len(table) <= NEAR:
                _near_indices(codes, begin, end, scope, stride, low, high, base[t], near[:n])
                _weigh(near[:n], weights[begin:end], table)
            else:
                _far_indices(codes, begin, end, scope, stride, low, high, base[t], far[:n])
                _weigh(far[:n], weights[begin:end], table)


@kernel
def count_keys(keys, weights, first, held, held_keys, held_weights):
    """Count `keys[first:]` (64-bit, non-negative) into an open hash table; -1 marks a free slot.

    The table's length is a power of two. Returns the first row that was not counted because the table would be more than
    half full (the number of rows when all were), and the number of slots in use. Without weights each row counts as one.
    """
    mask = np.int64(len(held_keys) - 1)
    room = len(held_keys) // 2
    for i in range(first, len(keys)):
        key = keys[i]
        mixed = np.uint64(key) * HASH
        slot = np.int64(mixed >> np.uint64(32)) & mask
        while held_keys[slot] != key:
            if held_keys[slot] < 0:
                if held >= room:
                    return i, held
                held_keys[slot] = key
                held += 1
                break
            slot = (slot + 1) & mask
        held_weights[slot] += weights[i] if len(weights) else 1.0
    return len(keys), held


@kernel
def split_text(offsets, text, slots, first_row, out):
    """Give the strings `text[offsets[i]:offsets[i + 1]]` the numbers of their distinct values; return how many there are.

    `first_row[v]` becomes the first row with value v; -1 is returned when there are more values than it has places.
    `slots` is a hash table of -1, a power of two long and at least twice as long as `first_row`.
    """
    mask = len(slots) - 1
    held = 0
    for i in range(len(offsets) - 1):
        low = offsets[i]
        size = offsets[i + 1] - low
        slot = size * 7
        if size > 0:  # the ends and the middle; strings that agree in these are told apart below
            slot += (
                np.int64(text[low]) * 31
                + np.int64(text[low + size - 1]) * 113
                + np.int64(text[low + size // 2]) * 197
            )
        slot &= mask
        while True:
            value = slots[slot]
            if value < 0:
                if held == len(first_row):
                    return -1
                slots[slot] = value = held
                first_row[held] = i
                held += 1
                break
            other = offsets[first_row[value]]
            if offsets[first_row[value] + 1] - other == size:
                j = 0
                while j < size and text[low + j] == text[other + j]:
                    j += 1
                if j == size:
                    break
            slot = (slot + 1) & mask
        out[i] = value
    return held


def load():
    """Compile everything here, or read it from disk."""
    layout = (np.array([0, 1]), np.array([0]), np.array([1]), np.array([0]), np.array([0, 2]))
    for kind in (np.int8, np.int32):
        codes = np.zeros((1, 1), dtype=kind)
        count_tables(codes, 0, 1, *layout, np.zeros(2, dtype=np.uint32))
        weigh_tables(codes, np.ones(1), 0, 1, *layout, np.zeros(2))
    split_text(
        np.zeros(2, np.int64),
        np.zeros(1, np.uint8),
        np.full(4, -1),
        np.zeros(2, np.int64),
        np.zeros(1, np.int8),
    )
    count_keys(np.zeros(1, np.int64), np.zeros(0), 0, 0, np.full(2, -1), np.zeros(2))
