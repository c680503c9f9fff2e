"""G2 and chi-square statistics of many questions "x and y given a set" straight from columns of state codes.

For each question the rows are counted into one table, strata first, and the statistic and its degrees of freedom are summed
over the strata. Where the set has more configurations than the data could fill, its configurations are numbered by hashing
as they appear. Logarithms of whole counts come from a table. Cost: rows times columns of each question.
"""

import numpy as np

from markovia.kernels.kernel import inner, kernel

BLOCK = 4096
HASH = np.uint64(0x9E3779B97F4A7C15)
NUMBERED = 1 << 40
"""Keys are numbered anew before they grow beyond this."""


@inner
def _first_column(column, index):
    for i in range(len(index)):
        index[i] = np.uint32(column[i])


@inner
def _next_column(column, card, index):
    for i in range(len(index)):
        index[i] = np.uint32(index[i] * card + np.uint32(column[i]))


@inner
def _number_keys(keys, held_keys, held_numbers):
    """Replace keys by numbers 0, 1, ... in the order of their first appearance; return how many there are."""
    mask = np.int64(len(held_keys) - 1)
    held_keys[:] = -1
    held = 0
    for i in range(len(keys)):
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


@inner
def _xlogx(value, logs):
    whole = np.int64(value)
    if whole < len(logs):
        return logs[whole]
    return value * np.log(np.float64(value))


@inner
def _statistic(cells, strata, across, down, chi, logs, rows, columns):
    """Return the statistic of `strata` tables of `across` rows and `down` columns, and the degrees of freedom.

    Rows and columns of a stratum without any count take no part.
    """
    found = 0.0
    free = 0.0
    at = 0
    for _ in range(strata):
        columns[:down] = 0.0
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
            if here > 0:
                used_rows += 1
        if total > 0:
            used_columns = 0
            for c in range(down):
                if columns[c] > 0:
                    used_columns += 1
            if used_rows > 1 and used_columns > 1:
                free += (used_rows - 1) * (used_columns - 1)
                if chi:
                    for r in range(across):
                        if rows[r] > 0:
                            for c in range(down):
                                if columns[c] > 0:
                                    expected = rows[r] * columns[c] / total
                                    gap = cells[at + r * down + c] - expected
                                    found += gap * gap / expected
                else:
                    part = _xlogx(total, logs)
                    for r in range(across):
                        if rows[r] > 0:
                            part -= _xlogx(rows[r], logs)
                    for c in range(down):
                        if columns[c] > 0:
                            part -= _xlogx(columns[c], logs)
                    for k in range(at, at + across * down):
                        if cells[k] > 0:
                            part += _xlogx(cells[k], logs)
                    found += 2.0 * part
        at += across * down
    return max(found, 0.0), free


@kernel
def test_tables(
    codes, weights, cards, xs, ys, starts, given, low, high, limit, chi, logs, statistic, free
):  # pragma: no cover - compiled
    """Fill in `statistic[q]` and `free[q]` for the questions `low..high`.

    Question q is about the columns `xs[q]` and `ys[q]` given `given[starts[q]:starts[q + 1]]`. Tables up to `limit`
    cells are dense. `weights` has one number a row or none; `logs[k]` is k log k for whole k.
    """
    n = codes.shape[1]
    weighted = len(weights) > 0
    most = 1
    for k in range(len(cards)):
        most = max(most, cards[k])
    rows, columns = np.empty(most), np.empty(most)
    index = np.empty(BLOCK, np.uint32)
    counts = np.zeros(0 if weighted else limit, np.uint32)
    sums = np.zeros(limit if weighted else 0, np.float64)
    keys = np.empty(0, np.int64)
    held_keys, held_numbers = np.empty(0, np.int64), np.empty(0, np.int64)
    for q in range(low, high):
        x, y, first, last = xs[q], ys[q], starts[q], starts[q + 1]
        across, down = cards[x], cards[y]
        size = float(across) * down
        for k in range(first, last):
            size *= cards[given[k]]
        if size <= limit:
            whole = np.int64(size)
            if weighted:
                sums[:whole] = 0.0
            else:
                counts[:whole] = 0
            for begin in range(0, n, BLOCK):
                end = min(begin + BLOCK, n)
                part = index[: end - begin]
                if last > first:
                    _first_column(codes[given[first], begin:end], part)
                    for k in range(first + 1, last):
                        _next_column(codes[given[k], begin:end], np.uint32(cards[given[k]]), part)
                    _next_column(codes[x, begin:end], np.uint32(across), part)
                else:
                    _first_column(codes[x, begin:end], part)
                _next_column(codes[y, begin:end], np.uint32(down), part)
                if weighted:
                    for i in range(end - begin):
                        sums[part[i]] += weights[begin + i]
                else:
                    for i in range(end - begin):
                        counts[part[i]] += np.uint32(1)
            strata = whole // (across * down)
            if weighted:
                statistic[q], free[q] = _statistic(sums, strata, across, down, chi, logs, rows, columns)
            else:
                statistic[q], free[q] = _statistic(counts, strata, across, down, chi, logs, rows, columns)
            continue
        if len(keys) == 0:
            slots = 16
            while slots < 2 * n:
                slots *= 2
            keys = np.empty(n, np.int64)
            held_keys, held_numbers = np.empty(slots, np.int64), np.empty(slots, np.int64)
        keys[:] = 0
        radix = 1
        for k in range(first, last):
            card = cards[given[k]]
            if radix > NUMBERED // card:
                radix = _number_keys(keys, held_keys, held_numbers)
            for i in range(n):
                keys[i] = keys[i] * card + codes[given[k], i]
            radix *= card
        strata = _number_keys(keys, held_keys, held_numbers)
        if weighted:
            wide = np.zeros(strata * across * down, np.float64)
            for i in range(n):
                wide[(keys[i] * across + codes[x, i]) * down + codes[y, i]] += weights[i]
            statistic[q], free[q] = _statistic(wide, strata, across, down, chi, logs, rows, columns)
        else:
            many = np.zeros(strata * across * down, np.uint32)
            for i in range(n):
                many[(keys[i] * across + codes[x, i]) * down + codes[y, i]] += np.uint32(1)
            statistic[q], free[q] = _statistic(many, strata, across, down, chi, logs, rows, columns)


def load():
    """Compile everything here, or read it from disk."""
    spots = np.zeros(1, dtype=np.int64)
    for kind in (np.int8, np.int32):
        codes = np.zeros((2, 1), dtype=kind)
        test_tables(
            codes, np.zeros(0), np.array([2, 2]), spots, spots + 1, np.zeros(2, np.int64), spots[:0], 0, 1, 64, False,
            np.zeros(2), np.zeros(1), np.zeros(1),
        )  # fmt: skip
