"""Helper cliques: products that a large clique shares with a few of its variables.

A clique of a million entries that multiplies hundreds of small tables would walk through all of its entries for each of
them. Tables that together span a small part of its variables are multiplied there first, in a helper below the clique.
"""

from markovia.kernels.clique_trees.clique_trees import parts
from markovia.kernels.kernel import kernel
from markovia.kernels.pointers import beyond, pointer, pointers

LARGE = 2048.0
"""Entries from which a clique gets helpers."""
SHARE = 24.0
"""How many times smaller than the clique a helper is at least."""


@kernel(bare=True)
def group(n, scopes, order, work, sizes, entries, count, end):
    """Put helper cliques below large cliques that multiply many tables; return (cliques, where the pool ends).

    A helper holds the product of several factors and messages whose variables together span a small part of the clique. It
    removes nothing: all its slots are its separator. The large clique then multiplies one table instead of many, and on
    the way down sums onto one instead of many. `entries` has room for a number an operand, the pool for a slot list of every
    two operands.
    """
    n_factors = len(scopes[0]) - 1
    scope_start, scope, card = pointers(scopes)
    order, sizes, entries = pointer(order), pointer(sizes), pointer(entries)
    made = parts(pointer(work), n, n_factors)
    pool = made.pool
    child_head, child_next, factor_head = made.spare, beyond(made.spare, n), beyond(made.spare, 2 * n)
    mark, members, factor_next = (
        beyond(made.spare, 3 * n),
        beyond(made.spare, 4 * n),
        beyond(made.spare, 5 * n),
    )
    listed = beyond(made.spare, 5 * n + n_factors)
    chosen = beyond(made.spare, 6 * n + 2 * n_factors)
    for v in range(n):
        mark[v] = -1
    # children and factors of each clique as linked lists
    for c in range(count):
        child_head[c] = -1
        factor_head[c] = -1
    for c in range(count):
        p = made.parent[c]
        if p >= 0:
            child_next[c] = child_head[p]
            child_head[p] = c
    for f in range(n_factors):
        c = made.factor_home[f]
        if c >= 0:
            factor_next[f] = factor_head[c]
            factor_head[c] = f
    total = count
    stamp = 0
    for c in range(count):
        if sizes[c] < LARGE:
            continue
        most = sizes[c] / SHARE
        # operands, children as 0 .. n-1 and factors as n .., largest first; those too large for a helper are left out
        m = 0
        k = child_head[c]
        f = factor_head[c]
        while k >= 0 or f >= 0:
            size = 1.0
            if k >= 0:
                o = k
                for i in range(made.begin[k], made.begin[k] + made.n_separator[k]):
                    size *= card[order[pool[i]]]
                k = child_next[k]
            else:
                o = n + f
                for i in range(scope_start[f], scope_start[f + 1]):
                    size *= card[scope[i]]
                f = factor_next[f]
            if size > most:
                continue
            j = m
            while j > 0 and entries[j - 1] < size:
                entries[j] = entries[j - 1]
                listed[j] = listed[j - 1]
                j -= 1
            entries[j] = size
            listed[j] = o
            m += 1
        # each operand in turn begins a helper and takes in all that leave it small enough
        for a in range(m):
            if listed[a] < 0:
                continue
            stamp += 1
            n_members = 0
            span = 1.0
            joined = 0
            for b in range(a, m):
                o = listed[b]
                if o < 0:
                    continue
                # try to take it in: its slots are written behind the members, and stay there if all fit
                i = made.begin[o] if o < n else scope_start[o - n]
                stop = i + made.n_separator[o] if o < n else scope_start[o - n + 1]
                wider = span
                last = n_members
                while i < stop:
                    s = pool[i] if o < n else made.slot[scope[i]]
                    if mark[s] != stamp:
                        members[last] = s
                        last += 1
                        wider *= card[order[s]]
                    i += 1
                if wider > most:
                    continue
                while n_members < last:
                    mark[members[n_members]] = stamp
                    n_members += 1
                span = wider
                chosen[joined] = b
                joined += 1
            if joined < 2:
                continue
            # write the helper down as a child of the large clique, its operands below it
            made.begin[total] = end
            for i in range(n_members):  # later slots first
                s = members[i]
                j = end + i
                while j > end and pool[j - 1] < s:
                    pool[j] = pool[j - 1]
                    j -= 1
                pool[j] = s
            end += n_members
            made.stop[total] = end
            made.n_separator[total] = n_members
            made.parent[total] = c
            for i in range(joined):
                o = listed[chosen[i]]
                listed[chosen[i]] = -1
                if o < n:
                    made.parent[o] = total
                else:
                    made.factor_home[o - n] = total
            total += 1
    return total, end
