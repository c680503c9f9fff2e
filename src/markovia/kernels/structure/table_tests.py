"""G2 and chi-square statistics of many questions "x and y given a set" straight from columns of state codes.

For each question the rows are counted into one table, strata first, and the statistic and its degrees of freedom are summed
over the strata. Small tables are counted by bit planes, 64 rows at a time, others row by row. Where the set has more
configurations than the data could fill, its configurations are numbered by hashing as they appear. Logarithms of whole
counts come from a table. Cost: rows times columns of each question; by planes rows times cells / 64.
"""

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointers
from markovia.kernels.structure.bit_planes import ones, packed_rows
from markovia.kernels.structure.structure_records import PackedRows, TableQuestions, TableRoom

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
def _statistic(room, strata, across, down, chi, logs, n_logs):
    """Return the statistic of `strata` tables of `across` rows and `down` columns, and the degrees of freedom.

    Rows and columns of a stratum without any count take no part.
    """
    cells, rows, columns = room.cells, room.rows, room.columns
    found = 0.0
    free = 0.0
    for s in range(strata):
        at = s * across * down
        # margins of the stratum
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
def _count_planes(packed, x, y, given, first, last, n, words, room):
    """Count a small table by bits; return the number of strata."""
    planes, plane_start, cards = packed.planes, packed.plane_start, packed.cards
    masks, cells = room.masks, room.cells
    # the rows of each stratum: all of them, split by the states of each given column, the first state being the rest
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
        # its rows with each state of x, and of these the numbers with each state of y
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
def test_tables(packed, questions, low, high, limit, chi, room, statistic, free):
    """Fill in `statistic[q]` and `free[q]` for the questions `low..high`; tables up to `limit` cells are dense.

    Takes `PackedRows`, `TableQuestions` and the room that `room_for` makes; `chi` for Pearson's statistic.
    """
    n, words, n_logs = packed.codes.shape[1], room.masks.shape[1], len(packed.xlogx)
    weighted, slots = len(packed.weights) > 0, len(room.held_keys)
    packed, questions, room = pointers(packed), pointers(questions), pointers(room)
    codes, weights, cards, plane_start = packed.codes, packed.weights, packed.cards, packed.plane_start
    given, cells, places, keys = questions.given, room.cells, room.places, room.keys
    for q in range(low, high):
        x, y = questions.xs[q], questions.ys[q]
        first, last = questions.starts[q], questions.starts[q + 1]
        across, down = cards[x], cards[y]
        # cells of the whole table, and whether all of its columns have planes
        size = np.float64(across) * np.float64(down)
        bits = plane_start[x + 1] - plane_start[x] + plane_start[y + 1] - plane_start[y]
        needed = across + down - 2
        for k in range(first, last):
            z = given[k]
            size *= cards[z]
            bits += plane_start[z + 1] - plane_start[z]
            needed += cards[z] - 1
        strata = 1
        if size <= PLANE_CELLS and bits == needed and not weighted:
            strata = _count_planes(packed, x, y, given, first, last, n, words, room)
        elif size <= limit:
            # dense: the cell of each row in mixed radix, column by column over a stretch of rows that stays near
            whole = np.int64(size)
            strata = whole // (across * down)
            for k in range(whole):
                cells[k] = 0.0
            for begin in range(0, n, BLOCK):
                many = min(n - begin, BLOCK)
                for i in range(many):
                    places[i] = np.uint32(0)
                for k in range(first, last + 2):
                    z = y
                    if k < last:
                        z = given[k]
                    elif k == last:
                        z = x
                    card = np.uint32(cards[z])
                    here = beyond(codes, z * n + begin)
                    for i in range(many):
                        places[i] = np.uint32(places[i] * card + np.uint32(here[i]))
                if weighted:
                    for i in range(many):
                        cells[places[i]] += weights[begin + i]
                else:
                    for i in range(many):
                        cells[places[i]] += 1.0
        else:
            # sparse: only configurations of the set that occur are strata, numbered as they appear
            for i in range(n):
                keys[i] = 0
            radix = 1
            for k in range(first, last):
                card_of = cards[given[k]]
                if radix > NUMBERED // card_of:
                    radix = _number_keys(keys, n, room.held_keys, room.held_numbers, slots)
                here = beyond(codes, given[k] * n)
                for i in range(n):
                    keys[i] = keys[i] * card_of + np.int64(here[i])
                radix *= card_of
            strata = _number_keys(keys, n, room.held_keys, room.held_numbers, slots)
            for k in range(strata * across * down):
                cells[k] = 0.0
            of_x, of_y = beyond(codes, x * n), beyond(codes, y * n)
            for i in range(n):
                at = (keys[i] * across + np.int64(of_x[i])) * down + np.int64(of_y[i])
                if weighted:
                    cells[at] += weights[i]
                else:
                    cells[at] += 1.0
        statistic[q], free[q] = _statistic(room, strata, across, down, chi, packed.xlogx, n_logs)


def room_for(packed: PackedRows, cells: int, sparse: bool) -> TableRoom:
    """Return room for tables of so many cells, `sparse` where some have more than may be dense."""
    most, n = int(packed.cards.max(initial=1)), packed.codes.shape[1]
    slots = 1 << max(4, (2 * n - 1).bit_length()) if sparse else 0
    return TableRoom(
        np.empty(cells), np.empty(most), np.empty(most), np.empty(BLOCK, np.uint32),
        np.empty((PLANE_CELLS + 2, packed.planes.shape[1]), np.uint64), np.empty(n if sparse else 0, np.int64),
        np.empty(slots, np.int64), np.empty(slots, np.int64),
    )  # fmt: skip


def load() -> None:
    """Compile everything here, or read it from disk."""
    packed = packed_rows(np.zeros((2, 1)), np.array([2, 2]), None)
    x = np.zeros(1, np.int64)
    questions = TableQuestions(x, x + 1, np.zeros(2, np.int64), x[:0])
    test_tables(packed, questions, 0, 1, 64, False, room_for(packed, 64, True), np.zeros(1), np.zeros(1))
