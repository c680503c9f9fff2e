"""A sweep of the Chinese restaurant franchise: a seat for each word of each document, a dish (topic) for each table.

Table t of document d lies at `offsets[d] + t`: a document has no more tables than words, so the tables of all documents need
no room beyond that of the words. Reference: Teh and others (2006), section 5.1.
"""

from math import exp, log

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.random_numbers import uniform

ALPHA, GAMMA, ETA = range(3)
DOCUMENT, TOKEN, TABLE, HIGH = range(4)
TINY = 1e-200


@kernel
def sweep(
    words, offsets, seats, sizes, dishes, opened, by_word, totals, tables, numbers, at, room, ahead, met, s
):
    """Go on from `at` until all documents are done (True) or a dish needs a slot that is not there (False).

    words, seats (tokens,; seat -1 for none yet), offsets (documents + 1,), sizes and dishes (tokens,): guests and dish of
    each table; opened (documents,): tables that were ever in use; by_word (words, slots), totals and tables (slots,): words
    and tables of each dish; numbers: alpha, gamma, eta; at: document, token, table, slots that were ever in use. Rooms:
    room (3, slots + 1), ahead (3, tokens of the longest document), met (words,), zeros.
    """
    alpha, gamma, eta = numbers[ALPHA], numbers[GAMMA], numbers[ETA]
    v, slots = by_word.shape
    flat, every = eta * v, 0
    for k in range(at[HIGH]):
        every += tables[k]
    chances = room[0]
    while at[DOCUMENT] < len(offsets) - 1:
        d = at[DOCUMENT]
        a, b = offsets[d], offsets[d + 1]
        for i in range(max(a, at[TOKEN]), b):
            at[TOKEN] = i
            w = words[i]
            if seats[i] >= 0:
                old = a + seats[i]
                k = dishes[old]
                seats[i] = -1
                sizes[old] -= 1
                by_word[w, k] -= 1
                totals[k] -= 1
                if sizes[old] == 0:
                    tables[k] -= 1
                    every -= 1
            fresh = 0.0
            for k in range(at[HIGH]):
                chances[k] = (by_word[w, k] + eta) / (totals[k] + flat)
                fresh += tables[k] * chances[k]
            table = alpha * (fresh + gamma / v) / (every + gamma)
            seated = 0.0
            for t in range(a, a + opened[d]):
                if sizes[t] > 0:
                    seated += sizes[t] * chances[dishes[t]]
            u = uniform(s) * (seated + table)
            found = a
            if u < seated:
                while True:
                    if sizes[found] > 0:
                        u -= sizes[found] * chances[dishes[found]]
                        if u < 0.0:
                            break
                    if found == a + opened[d] - 1:  # rounding: the last table that is in use
                        while sizes[found] == 0:
                            found -= 1
                        break
                    found += 1
            else:
                for k in range(at[HIGH]):
                    chances[k] *= tables[k]
                dish = _picked(chances, at[HIGH], fresh, gamma / v, tables, s)
                if dish == slots:
                    return False
                while found < a + opened[d] and sizes[found] > 0:
                    found += 1
                opened[d] = max(opened[d], found - a + 1)
                dishes[found] = dish
                at[HIGH] = max(at[HIGH], dish + 1)
                tables[dish] += 1
                every += 1
            seats[i] = found - a
            sizes[found] += 1
            by_word[w, dishes[found]] += 1
            totals[dishes[found]] += 1
        at[TOKEN] = b
        served = (sizes, dishes, opened[d], by_word, totals, tables)
        if not _new_dishes(words, a, b, seats, served, numbers, at, room, ahead, met, s):
            return False
        at[TABLE] = 0
        at[DOCUMENT] += 1
    return True


@inner
def _new_dishes(words, a, b, seats, served, numbers, at, room, ahead, met, s):
    """Draw the dish of each table of a document anew; False where one needs a slot that is not there."""
    sizes, dishes, opened, by_word, totals, tables = served
    gamma, eta = numbers[GAMMA], numbers[ETA]
    v, slots = by_word.shape
    flat = eta * v
    logs, first, following, earlier = room[1], ahead[0], ahead[1], ahead[2]
    for t in range(opened):
        first[t] = -1
    for i in range(b - 1, a - 1, -1):  # the words of each table as a list
        following[i - a] = first[seats[i]]
        first[seats[i]] = i - a
    for t in range(at[TABLE], opened):
        if sizes[a + t] == 0:
            continue
        at[TABLE] = t
        old = dishes[a + t]
        tables[old] -= 1
        i = first[t]
        while i >= 0:
            w = words[a + i]
            by_word[w, old] -= 1
            earlier[i] = met[w]
            met[w] += 1
            i = following[i]
        totals[old] -= sizes[a + t]
        top = -np.inf
        for k in range(at[HIGH] + 1):
            there = k < at[HIGH] and tables[k] > 0
            if k < at[HIGH] and not there:
                continue
            sum_, product = log(float(tables[k])) if there else log(gamma), 1.0
            i, n = first[t], totals[k] + flat if there else flat
            while i >= 0:
                known = by_word[words[a + i], k] if there else 0
                product *= (known + earlier[i] + eta) / n
                n += 1.0
                if product < TINY:
                    sum_ += log(product)
                    product = 1.0
                i = following[i]
            logs[k] = sum_ + log(product)
            top = max(top, logs[k])
        total = 0.0
        for k in range(at[HIGH]):
            room[2][k] = exp(logs[k] - top) if tables[k] > 0 else 0.0
            total += room[2][k]
        dish = _picked(room[2], at[HIGH], total, exp(logs[at[HIGH]] - top), tables, s)
        full = dish == slots
        if full:
            dish = old
        dishes[a + t] = dish
        at[HIGH] = max(at[HIGH], dish + 1)
        tables[dish] += 1
        i = first[t]
        while i >= 0:
            by_word[words[a + i], dish] += 1
            met[words[a + i]] = 0
            i = following[i]
        totals[dish] += sizes[a + t]
        if full:
            return False
    return True


@inner
def _picked(chances, high, total, other, tables, s):
    """Return a dish by its chance; where it is a new one, the first slot that is free."""
    u = uniform(s) * (total + other)
    if u < total:
        last = 0
        for k in range(high):
            if chances[k] > 0.0:
                last = k
                u -= chances[k]
                if u < 0.0:
                    break
        return last
    k = 0
    while k < high and tables[k] > 0:
        k += 1
    return k
