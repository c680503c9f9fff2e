"""Sweeps over the groups of rows whose parameters are summed out: Gibbs steps, splits and merges.

Components lie in slots: `slots[:used]` are in use, the others free; `stats` has a row a slot. The last row of `stats` stays
empty: it has the density of a row in a new group.
"""

from math import exp, lgamma, log

import numpy as np

from markovia.kernels.collapsed.conjugate import add_row, blank, log_predictive, remove_row
from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import pointer
from markovia.kernels.random_numbers import below, uniform

USED, PROPOSALS, ROW, MERGED = range(4)


@kernel(bare=True)
def sweep(
    kind, prior, rows, labels, stats, slots, at, alpha, discount, finite, s, room, logs, crowd, members
):
    """Propose splits and merges, draw the group of each row given all others, and count afresh.

    Return whether it came to its end, and the log density of rows given groups; it ends early when no slot is free, and goes
    on when the caller has made more. `at` has the slots in use, the proposals left, the row to go on from, and how many
    merges were taken, proposals refused and splits taken. With `finite` every slot is a component, in use or not; else
    labels end as 0, 1, ... Labels of -1 belong to no group. `crowd` has the log weight of a group of 0, 1, ... rows.

    One kernel and not three: the families below would be compiled as often.
    """
    n, d, wide, empty = len(rows), rows.shape[1], stats.shape[1], stats.shape[0] - 1
    prior, rows, stats, room = pointer(prior), pointer(rows), pointer(stats), pointer(room)
    while at[PROPOSALS] > 0:
        if at[USED] + 3 > empty:
            return False, 0.0
        came = _split_merge(
            kind, prior, rows, labels, stats, slots, at, alpha, discount, s, room, members, d, wide
        )
        at[MERGED + 1 + came] += 1
        at[PROPOSALS] -= 1
    used = at[USED]
    for i in range(at[ROW], n):
        if not finite and used == empty:
            at[USED] = used
            at[ROW] = i
            return False, 0.0
        k = labels[i]
        if k >= 0:
            remove_row(kind, prior, stats, k, rows, i, room, d, wide)
            if stats[k * wide] < 0.5:
                blank(kind, prior, stats, k, d, wide)  # forgets the rounding of what came and went
                if not finite:
                    used = _release(slots, used, k)
        many = used if finite else used + 1
        for j in range(many):
            if j < used:
                k = slots[j]
                size = crowd[int(stats[k * wide])]
            else:  # a group of its own
                k, size = empty, log(alpha + discount * used)
            logs[j] = size + log_predictive(kind, prior, stats, k, rows, i, room, d, wide)
        j = _drawn(logs, many, s)
        if j == used and not finite:
            blank(kind, prior, stats, slots[j], d, wide)  # a split that was refused may have left something
            used += 1
        labels[i] = slots[j]
        add_row(kind, prior, stats, slots[j], rows, i, room, d, wide)
    at[ROW] = n
    if not finite:
        for k in range(empty):
            slots[k] = 0
        for i in range(n):
            slots[labels[i]] = 1
        used = 0
        for k in range(empty):
            used += slots[k]
            slots[k] = used - 1
        for i in range(n):
            labels[i] = slots[labels[i]]
    total = 0.0
    for k in range(empty + 1):
        blank(kind, prior, stats, k, d, wide)
    for i in range(n):
        if labels[i] >= 0:
            total += log_predictive(kind, prior, stats, labels[i], rows, i, room, d, wide)
            add_row(kind, prior, stats, labels[i], rows, i, room, d, wide)
    used = 0
    free = empty
    for k in range(empty):
        if stats[k * wide] > 0.0:
            slots[used] = k
            used += 1
        else:
            free -= 1
            slots[free] = k
    at[USED] = used
    return True, total


@inner(bare=True)
def _split_merge(kind, prior, rows, labels, stats, slots, at, alpha, discount, s, room, members, d, wide):
    """Propose to split the group of two random rows, or to merge their groups; return what came of it.

    The proposal allocates rows in turn (Dahl 2005); 1 is a split, -1 a merge, 0 neither. Three slots must be free.
    """
    n, used = len(labels), at[USED]
    i = below(s, n)
    j = below(s, n - 1)
    j += j >= i
    one, other = labels[i], labels[j]
    many = 0
    for r in range(n):
        if (labels[r] == one or labels[r] == other) and r != i and r != j:
            members[many] = r
            many += 1
    for r in range(many - 1, 0, -1):
        t = below(s, r + 1)
        members[r], members[t] = members[t], members[r]
    first, second, both = slots[used], slots[used + 1], slots[used + 2]
    for k in range(used, used + 3):
        blank(kind, prior, stats, slots[k], d, wide)
    split = one == other
    apart, together, path = 0.0, 0.0, 0.0
    for step in range(many + 2):
        r = i if step == 0 else j if step == 1 else members[step - 2]
        together += log_predictive(kind, prior, stats, both, rows, r, room, d, wide)
        add_row(kind, prior, stats, both, rows, r, room, d, wide)
        here = log_predictive(kind, prior, stats, first, rows, r, room, d, wide)
        there = log_predictive(kind, prior, stats, second, rows, r, room, d, wide)
        goes = step == 1  # the two rows begin a group each, the others choose
        if step > 1:
            odds = there - here + log((stats[second * wide] - discount) / (stats[first * wide] - discount))
            goes = uniform(s) * (1.0 + exp(-odds)) < 1.0 if split else labels[r] == other
            if not goes:
                odds = -odds
            path -= log(1.0 + exp(-odds)) if odds > -30.0 else -odds
            if goes:
                members[step - 2] = -r - 1
        apart += there if goes else here
        add_row(kind, prior, stats, second if goes else first, rows, r, room, d, wide)
    groups = used if split else used - 1
    gain = apart - together + log(alpha + discount * groups) - lgamma(1.0 - discount)
    gain += lgamma(stats[first * wide] - discount) + lgamma(stats[second * wide] - discount)
    gain -= lgamma(stats[both * wide] - discount)
    if split:
        if log(uniform(s)) >= gain - path:
            return 0
        for step in range(many):
            r = members[step]
            if r < 0:
                labels[-r - 1] = second
            else:
                labels[r] = first
        labels[i], labels[j] = first, second
        at[USED] = _release(slots, _claim(slots, _claim(slots, used, first), second), one)
        return 1
    if log(uniform(s)) >= path - gain:
        return 0
    for step in range(many):
        r = members[step]
        labels[-r - 1 if r < 0 else r] = both
    labels[i], labels[j] = both, both
    at[USED] = _release(slots, _release(slots, _claim(slots, used, both), one), other)
    return -1


@kernel(bare=True)
def reused_sweep(logs, labels, sizes, roles, start, alpha, discount, s, room):
    """Draw the group of each row from `start` on where densities are given, `logs (rows, columns)`; return where it ended.

    A column is a group (role 1), one of a few parameters that new groups may take (2), a fresh draw from the prior that
    has not been looked at (0), or used up (3). It ends when no fresh draw is left; then the caller makes some.
    """
    n, columns = logs.shape
    fresh = 0
    while fresh < columns and roles[fresh] != 0:
        fresh += 1
    spare, used = 0, 0
    for k in range(columns):
        spare += roles[k] == 2
        used += roles[k] == 1
    for i in range(start, n):
        if fresh == columns:
            return i
        k = labels[i]
        sizes[k] -= 1
        if sizes[k] == 0:  # its parameter takes the place of one that waits
            which = below(s, spare)
            for c in range(columns):
                if roles[c] == 2:
                    if which == 0:
                        roles[c] = 3
                    which -= 1
            roles[k] = 2
            used -= 1
        new = log((alpha + discount * used) / spare)
        for c in range(columns):
            if roles[c] == 1:
                room[c] = log(sizes[c] - discount) + logs[i, c]
            elif roles[c] == 2:
                room[c] = new + logs[i, c]
            else:
                room[c] = -np.inf
        k = _drawn(room, columns, s)
        labels[i] = k
        sizes[k] += 1
        if roles[k] == 2:
            roles[k] = 1
            used += 1
            roles[fresh] = 2
            while fresh < columns and roles[fresh] != 0:
                fresh += 1
    return n


@inner(bare=True)
def _drawn(logs, many, s):
    """Return a place drawn by weights given as logarithms; they are spoilt."""
    peak = logs[0]
    for j in range(1, many):
        if logs[j] > peak:
            peak = logs[j]
    total = 0.0
    for j in range(many):
        if logs[j] > peak - 40.0:
            total += exp(logs[j] - peak)
        logs[j] = total
    point = uniform(s) * total
    j = 0
    while j < many - 1 and logs[j] <= point:
        j += 1
    return j


@inner(bare=True)
def _claim(slots, used, k):
    at = used
    while slots[at] != k:
        at += 1
    slots[at], slots[used] = slots[used], k
    return used + 1


@inner(bare=True)
def _release(slots, used, k):
    at = 0
    while slots[at] != k:
        at += 1
    slots[at], slots[used - 1] = slots[used - 1], k
    return used - 1


@kernel(bare=True)
def predictive(kind, prior, stats, rows, room, out):
    """Write the log density of each row given the rows of each component, `out (rows, components)`."""
    n, d, many, wide = len(rows), rows.shape[1], len(stats), stats.shape[1]
    prior, rows, stats, room, out = pointer(prior), pointer(rows), pointer(stats), pointer(room), pointer(out)
    for i in range(n):
        for k in range(many):
            out[i * many + k] = log_predictive(kind, prior, stats, k, rows, i, room, d, wide)
