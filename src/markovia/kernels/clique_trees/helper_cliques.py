"""Helper cliques: products that a large clique shares with a few of its variables.

A clique of a million entries that multiplies hundreds of small tables would walk through all of its entries for each of
them. Tables that together span a small part of its variables are multiplied there first, in a helper below the clique.
"""

import numpy as np

from markovia.kernels.kernel import kernel


@kernel
def _union_size(mark, stamp, members, n_members, clique, first, last, card):
    """Return the entries of the union of a marked set and a scope."""
    size = 1.0
    for i in range(n_members):
        size *= card[members[i]]
    for i in range(first, last):
        if mark[clique[i]] != stamp:
            size *= card[clique[i]]
    return size


@kernel
def group(axis_start, axis_slot, card, clique_start, clique, n_separator, parent, factor_home):
    """Put helper cliques below large cliques that multiply many tables; return the extended tree.

    A helper holds the product of several factors and messages whose variables together span a small part of the clique. It
    removes nothing: all its slots are its separator. The large clique then multiplies one table instead of many, and on
    the way down sums onto one instead of many.
    """
    n = len(parent)
    n_factors = len(factor_home)
    k = len(card)
    child_head = np.full(2 * n + n_factors + 1, -1, np.int64)
    child_next = np.full(2 * n + n_factors + 1, -1, np.int64)
    factor_head = np.full(n, -1, np.int64)
    factor_next = np.full(n_factors, -1, np.int64)
    for c in range(n):
        if parent[c] >= 0:
            child_next[c] = child_head[parent[c]]
            child_head[parent[c]] = c
    for f in range(n_factors):
        if factor_home[f] >= 0:
            factor_next[f] = factor_head[factor_home[f]]
            factor_head[factor_home[f]] = f
    new_parent = np.empty(2 * n + n_factors + 1, np.int64)
    new_parent[:n] = parent
    pool = np.empty(len(clique) + 1024, np.int64)
    pool[: len(clique)] = clique
    starts = np.empty(2 * n + n_factors + 2, np.int64)
    starts[: n + 1] = clique_start
    total = n
    mark = np.full(k, -1, np.int64)
    stamp = 0
    members = np.empty(k, np.int64)
    for c in range(n):
        size = 1.0
        for i in range(clique_start[c], clique_start[c + 1]):
            size *= card[clique[i]]
        if size < 2048.0:
            continue
        most = size / 24.0
        # operands: children as 0 .. n-1, factors as n ..
        count = 0
        j = child_head[c]
        while j >= 0:
            count += 1
            j = child_next[j]
        f = factor_head[c]
        while f >= 0:
            count += 1
            f = factor_next[f]
        if count < 3:
            continue
        listed = np.empty(count, np.int64)
        entries = np.empty(count)
        m = 0
        j = child_head[c]
        while j >= 0:
            listed[m] = j
            m += 1
            j = child_next[j]
        f = factor_head[c]
        while f >= 0:
            listed[m] = n + f
            m += 1
            f = factor_next[f]
        for i in range(count):
            entries[i] = 1.0
            if listed[i] < n:
                for x in range(clique_start[listed[i]], clique_start[listed[i]] + n_separator[listed[i]]):
                    entries[i] *= card[clique[x]]
            else:
                for x in range(axis_start[listed[i] - n], axis_start[listed[i] - n + 1]):
                    entries[i] *= card[axis_slot[x]]
        order = np.argsort(-entries)
        taken = np.zeros(count, np.bool_)
        for a in range(count):
            seed = order[a]
            if taken[seed] or entries[seed] > most:
                continue
            stamp += 1
            n_members = 0
            joined = 0
            chosen = np.zeros(count, np.bool_)
            for b in range(a, count):
                o = order[b]
                if taken[o] or entries[o] > most:
                    continue
                if listed[o] < n:
                    first, last = clique_start[listed[o]], clique_start[listed[o]] + n_separator[listed[o]]
                    fits = _union_size(mark, stamp, members, n_members, clique, first, last, card) <= most
                    if fits:
                        for x in range(first, last):
                            if mark[clique[x]] != stamp:
                                mark[clique[x]] = stamp
                                members[n_members] = clique[x]
                                n_members += 1
                else:
                    first, last = axis_start[listed[o] - n], axis_start[listed[o] - n + 1]
                    fits = _union_size(mark, stamp, members, n_members, axis_slot, first, last, card) <= most
                    if fits:
                        for x in range(first, last):
                            if mark[axis_slot[x]] != stamp:
                                mark[axis_slot[x]] = stamp
                                members[n_members] = axis_slot[x]
                                n_members += 1
                if fits:
                    chosen[o] = True
                    joined += 1
            if joined < 2:
                continue
            at = starts[total]
            if at + n_members > len(pool):
                grown = np.empty(2 * len(pool) + n_members, np.int64)
                grown[:at] = pool[:at]
                pool = grown
            for i in range(1, n_members):
                s = members[i]
                x = i - 1
                while x >= 0 and members[x] < s:
                    members[x + 1] = members[x]
                    x -= 1
                members[x + 1] = s
            for i in range(n_members):
                pool[at + i] = members[i]
            starts[total + 1] = at + n_members
            new_parent[total] = c
            for o in range(count):
                if chosen[o]:
                    taken[o] = True
                    if listed[o] < n:
                        new_parent[listed[o]] = total
                    else:
                        factor_home[listed[o] - n] = total
            total += 1
    separators = np.empty(total, np.int64)
    separators[:n] = n_separator
    for c in range(n, total):
        separators[c] = starts[c + 1] - starts[c]
    return starts[: total + 1].copy(), pool[: starts[total]].copy(), separators, new_parent[:total].copy()
