"""G2 and chi-square statistics of many questions "x and y given a set" straight from columns of state codes.

For each question the rows are counted into one table, strata first, and the statistic and its degrees of freedom are summed
over the strata. Small tables are counted by bit planes, 64 rows at a time, others row by row. Where the set has more
configurations than the data could fill, its configurations are numbered by hashing as they appear. Logarithms of whole
counts come from a table. Cost: rows times columns of each question; by planes rows times cells / 64.
"""

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointer
from markovia.kernels.structure.bit_planes import bit_planes, ones

BLOCK = 4096
HASH = np.uint64(0x9E3779B97F4A7C15)
NUMBERED = 1 << 40
"""Keys are numbered anew before they grow beyond this."""
PLANE_CELLS = 64
"""Larger tables are counted row by row."""
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@inner(bare=True)
def _number_keys(keys, n, held_keys, held_numbers, slots):
    """Replace keys by numbers 0, 1, ... in the order of their first appearance; return how many there are."""
    mask = slots - 1
    for i in range(slots):
        held_keys[i] = -1
    held = 0
    for i in range(n):
        key = keys[i]
        slot = np.int64((np.uint64(key) * HASH) >> np.uint64(32)) & mask
        while held_keys[slot] != key:
            if held_keys[slot] < 0:
                held_keys[slot] = key
                held_numbers[slot] = held
                held += 1
                break
            slot = (slot + 1) & mask
        keys[i] = held_numbers[slot]
    return held


@inner(bare=True)
def _xlogx(value, logs, n_logs):
    whole = np.int64(value)
    if whole < n_logs:
        return logs[whole]
    return value * np.log(value)


@inner(bare=True)
def _statistic(cells, strata, across, down, chi, logs, n_logs, rows, columns):
    """Return the statistic of `strata` tables of `across` rows and `down` columns, and the degrees of freedom.

    Rows and columns of a stratum without any count take no part.
    """
    found = 0.0
    free = 0.0
    for s in range(strata):
        at = s * across * down
        for c in range(down):
            columns[c] = 0.0
        total = 0.0
        used_rows = 0
        for r in range(across):
            here = 0.0
            for c in range(down):
                value = cells[at + r * down + c]
                here += value
                columns[c] += value
            rows[r] = here
            total += here
            if here > 0.0:
                used_rows += 1
        used_columns = 0
        for c in range(down):
            if columns[c] > 0.0:
                used_columns += 1
        if used_rows > 1 and used_columns > 1:
            free += (used_rows - 1) * (used_columns - 1)
            if chi:
                for r in range(across):
                    for c in range(down):
                        if rows[r] > 0.0 and columns[c] > 0.0:
                            expected = rows[r] * columns[c] / total
                            gap = cells[at + r * down + c] - expected
                            found += gap * gap / expected
            else:
                part = _xlogx(total, logs, n_logs)
                for r in range(across):
                    if rows[r] > 0.0:
                        part -= _xlogx(rows[r], logs, n_logs)
                for c in range(down):
                    if columns[c] > 0.0:
                        part -= _xlogx(columns[c], logs, n_logs)
                for k in range(at, at + across * down):
                    if cells[k] > 0.0:
                        part += _xlogx(cells[k], logs, n_logs)
                found += 2.0 * part
    return max(found, 0.0), free


@inner(bare=True)
def _count_planes(planes, plane_start, cards, x, y, given, first, last, n, words, masks, cells):
    """Count a small table by bits; return the number of strata."""
    for w in range(words):
        masks[w] = ALL
    if n & 63:
        masks[words - 1] = (np.uint64(1) << np.uint64(n & 63)) - np.uint64(1)
    strata = 1
    for k in range(first, last):
        card = cards[given[k]]
        own = beyond(planes, plane_start[given[k]] * words)
        for s in range(strata - 1, -1, -1):
            for w in range(words):
                here = masks[s * words + w]
                rest = here
                for c in range(card - 1, 0, -1):
                    part = here & own[(c - 1) * words + w]
                    masks[(s * card + c) * words + w] = part
                    rest ^= part
                masks[s * card * words + w] = rest
        strata *= card
    across, down = cards[x], cards[y]
    of_x, of_y = beyond(planes, plane_start[x] * words), beyond(planes, plane_start[y] * words)
    rest_of = beyond(masks, PLANE_CELLS * words)
    within = beyond(masks, (PLANE_CELLS + 1) * words)
    for s in range(strata):
        rows = beyond(masks, s * words)
        for w in range(words):
            rest_of[w] = rows[w]
        for r in range(across - 1, -1, -1):
            if r > 0:
                mark = beyond(of_x, (r - 1) * words)
                for w in range(words):
                    part = rows[w] & mark[w]
                    within[w] = part
                    rest_of[w] ^= part
            else:
                for w in range(words):
                    within[w] = rest_of[w]
            found = np.uint64(0)
            for w in range(words):
                found += ones(within[w])
            left = np.int64(found)
            at = (s * across + r) * down
            for c in range(1, down):
                mark = beyond(of_y, (c - 1) * words)
                found = np.uint64(0)
                for w in range(words):
                    found += ones(within[w] & mark[w])
                cells[at + c] = np.float64(np.int64(found))
                left -= np.int64(found)
            cells[at] = np.float64(left)
    return strata


@kernel(bare=True)
def test_tables(
    codes, planes, plane_start, weights, cards, xs, ys, starts, given, low, high, limit, chi, logs, cells, rows, columns,
    index, masks, keys, held_keys, held_numbers, statistic, free,
):  # pragma: no cover - compiled # fmt: skip
    """Fill in `statistic[q]` and `free[q]` for the questions `low..high`.

    Question q is about the columns `xs[q]` and `ys[q]` given `given[starts[q]:starts[q + 1]]`. Tables up to `limit`
    cells are dense. `codes` (columns, rows); `planes` as `bit_planes` makes them, none for weighted rows. `weights` has one
    number a row or none; `logs[k]` is k log k for whole k. The rest is room: `cells` for the largest table, `rows` and
    `columns` (states), `index` (BLOCK), `masks` (PLANE_CELLS + 2, words); `keys` (rows) and a power of two of
    `held_keys` and `held_numbers` where some table is larger than `limit`.
    """
    n, words, n_logs, slots = codes.shape[1], masks.shape[1], len(logs), len(held_keys)
    weighted = len(weights) > 0
    code, plane, plane_at, weight, states = (
        pointer(codes), pointer(planes), pointer(plane_start), pointer(weights), pointer(cards),
    )  # fmt: skip
    givens, log_of, cell, row, column = (
        pointer(given), pointer(logs), pointer(cells), pointer(rows), pointer(columns),
    )  # fmt: skip
    places, mask, key, held, numbers = (
        pointer(index), pointer(masks), pointer(keys), pointer(held_keys), pointer(held_numbers),
    )  # fmt: skip
    for q in range(low, high):
        x, y, first, last = xs[q], ys[q], starts[q], starts[q + 1]
        across, down = states[x], states[y]
        size = np.float64(across) * np.float64(down)
        bits = plane_at[x + 1] - plane_at[x] + plane_at[y + 1] - plane_at[y]
        needed = across + down - 2
        for k in range(first, last):
            z = givens[k]
            size *= states[z]
            bits += plane_at[z + 1] - plane_at[z]
            needed += states[z] - 1
        strata = 1
        if size <= PLANE_CELLS and bits == needed and not weighted:
            strata = _count_planes(plane, plane_at, states, x, y, givens, first, last, n, words, mask, cell)
        elif size <= limit:
            whole = np.int64(size)
            strata = whole // (across * down)
            for k in range(whole):
                cell[k] = 0.0
            for begin in range(0, n, BLOCK):
                many = min(n - begin, BLOCK)
                for i in range(many):
                    places[i] = np.uint32(0)
                for k in range(first, last + 2):
                    z = y
                    if k < last:
                        z = givens[k]
                    elif k == last:
                        z = x
                    card = np.uint32(states[z])
                    here = beyond(code, z * n + begin)
                    for i in range(many):
                        places[i] = np.uint32(places[i] * card + np.uint32(here[i]))
                if weighted:
                    for i in range(many):
                        cell[places[i]] += weight[begin + i]
                else:
                    for i in range(many):
                        cell[places[i]] += 1.0
        else:
            for i in range(n):
                key[i] = 0
            radix = 1
            for k in range(first, last):
                card_of = states[givens[k]]
                if radix > NUMBERED // card_of:
                    radix = _number_keys(key, n, held, numbers, slots)
                here = beyond(code, givens[k] * n)
                for i in range(n):
                    key[i] = key[i] * card_of + np.int64(here[i])
                radix *= card_of
            strata = _number_keys(key, n, held, numbers, slots)
            for k in range(strata * across * down):
                cell[k] = 0.0
            of_x, of_y = beyond(code, x * n), beyond(code, y * n)
            for i in range(n):
                at = (key[i] * across + np.int64(of_x[i])) * down + np.int64(of_y[i])
                if weighted:
                    cell[at] += weight[i]
                else:
                    cell[at] += 1.0
        statistic[q], free[q] = _statistic(cell, strata, across, down, chi, log_of, n_logs, row, column)


class TestTables:
    """Rows in memory as the compiled code reads them, and the room that a thread needs."""

    def __init__(self, codes, cards, weights):
        self.codes = np.ascontiguousarray(codes, dtype=np.uint16)
        self.cards = cards
        self.weights = np.zeros(0) if weights is None else np.array(weights, dtype=np.float64)
        n = self.codes.shape[1]
        whole = np.arange(min(n + 1, 1 << 16) if weights is None else 0, dtype=np.float64)
        self.logs = whole * np.log(np.maximum(whole, 1.0))
        some = self.codes if weights is None else self.codes[:, :0]
        self.planes, self.plane_start = bit_planes(some, cards)

    def room(self, cells, sparse):
        """Return room for tables of so many cells, `sparse` where some have more than may be dense."""
        most, n = int(self.cards.max(initial=1)), self.codes.shape[1]
        slots = 1 << max(4, (2 * n - 1).bit_length())
        return (
            np.empty(cells), np.empty(most), np.empty(most), np.empty(BLOCK, np.uint32),
            np.empty((PLANE_CELLS + 2, self.planes.shape[1]), np.uint64), np.empty(n if sparse else 0, np.int64),
            np.empty(slots if sparse else 0, np.int64), np.empty(slots if sparse else 0, np.int64),
        )  # fmt: skip

    def run(self, xs, ys, starts, given, part, limit, chi, statistic, free, room):
        """Fill in the statistics of the questions `part[0]..part[1]`."""
        test_tables(
            self.codes, self.planes, self.plane_start, self.weights, self.cards, xs, ys, starts, given, part[0], part[1],
            limit, chi, self.logs, *room, statistic, free,
        )  # fmt: skip


def load():
    """Compile everything here, or read it from disk."""
    tables = TestTables(np.zeros((2, 1), np.uint16), np.array([2, 2]), None)
    spots = np.zeros(1, dtype=np.int64)
    room = tables.room(64, True)
    tables.run(
        spots, spots + 1, np.zeros(2, np.int64), spots[:0], (0, 1), 64, False, np.zeros(1), np.zeros(1), room
    )
