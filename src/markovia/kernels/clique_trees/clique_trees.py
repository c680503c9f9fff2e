"""From scopes and an elimination order to a clique tree on flat arrays.

Method: symbolic elimination. The clique of a variable is itself with all later variables that its factors and its
children's cliques mention; a clique that its child contains is merged into that child, so only maximal cliques
remain. Joining each clique to that of its earliest separator variable gives a tree with the running intersection
property, which is a maximum spanning tree of the clique graph. Variables are renamed to slots, their positions in the
order, and every scope lists its slots from last to first: then all tables agree on the order of their axes, and the
separator towards the parent is a leading block of every clique.
Cost: linear in the total length of the cliques.
"""

from collections import namedtuple

import numpy as np

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import beyond, pointer

TRIES = 24
"""Children of a clique that are looked at for a better place, so that the cost stays linear."""
NO_ROOM = -1
NOBODY = np.int64(-1)

Cliques = namedtuple("Cliques", "slot home factor_home begin stop n_separator parent spare pool")
"""The parts of a tree in the making: the slot of each variable, the clique that removes each slot and holds each factor,
where each clique lies in `pool`, how many leading slots it shares with its parent, its parent (-1 for a root)."""


def workspace(n, n_factors, length):
    """Return an array that holds the parts of a tree whose cliques have so many slots in all, and scratch space."""
    return np.empty(9 * n + 3 * n_factors + 7 * (2 * n + n_factors) + length, np.int64)


@inner(bare=True)
def parts(work, n, n_factors):
    """Cut a workspace into its parts."""
    most = 2 * n + n_factors
    first = 2 * n + n_factors
    return Cliques(
        work,
        beyond(work, n),
        beyond(work, 2 * n),
        beyond(work, first),
        beyond(work, first + most),
        beyond(work, first + 2 * most),
        beyond(work, first + 3 * most),
        beyond(work, first + 4 * most),
        beyond(work, first + 7 * most + 7 * n + 2 * n_factors),
    )


@kernel(bare=True)
def find_cliques(scope_start, scope, card, order, work, sizes):
    """Write the cliques of an elimination order, children first, and their sizes.

    Returns `(how many, where the pool ends, total of their lengths, total of their sizes, the largest size)`, or `NO_ROOM`
    first.
    """
    n, n_factors = len(order), len(scope_start) - 1
    scope_start, scope, card, order = pointer(scope_start), pointer(scope), pointer(card), pointer(order)
    room = len(work) - (9 * n + 3 * n_factors + 7 * (2 * n + n_factors))
    made = parts(pointer(work), n, n_factors)
    sizes = pointer(sizes)
    slot, home, factor_home, pool = made.slot, made.home, made.factor_home, made.pool
    begin, mark, merged = made.spare, beyond(made.spare, n + 1), beyond(made.spare, 2 * n + 1)
    child_head, child_next, above = (
        beyond(made.spare, 3 * n + 1),
        beyond(made.spare, 4 * n + 1),
        beyond(made.spare, 5 * n + 1),
    )
    top, factor_head, factor_next = (
        beyond(made.spare, 6 * n + 1),
        beyond(made.spare, 7 * n + 1),
        beyond(made.spare, 8 * n + 1),
    )
    for i in range(n):
        slot[order[i]] = i
        mark[i] = -1
        merged[i] = -1
        child_head[i] = -1
        factor_head[i] = -1
        above[i] = -1
        top[i] = -1
    # factors by their earliest slot
    for f in range(n_factors - 1, -1, -1):
        low = n
        for i in range(scope_start[f], scope_start[f + 1]):
            if slot[scope[i]] < low:
                low = slot[scope[i]]
        factor_home[f] = low
        if low < n:
            factor_next[f] = factor_head[low]
            factor_head[low] = f
    # the clique of each slot: itself, the later slots of its factors, and those of the cliques below, without repetition
    at = 0
    for v in range(n):
        if at + n - v > room:
            return NO_ROOM, 0, 0, 0.0, 0.0
        begin[v] = at
        last = at
        mark[v] = v
        f = factor_head[v]
        while f >= 0:
            for i in range(scope_start[f], scope_start[f + 1]):
                s = slot[scope[i]]
                if mark[s] != v:
                    mark[s] = v
                    pool[last] = s
                    last += 1
            f = factor_next[f]
        u = child_head[v]
        while u >= 0:
            for i in range(begin[u], begin[u + 1] - 1):
                s = pool[i]
                if mark[s] != v:
                    mark[s] = v
                    pool[last] = s
                    last += 1
            u = child_next[u]
        for i in range(at + 1, last):  # later slots first
            s = pool[i]
            j = i
            while j > at and pool[j - 1] < s:
                pool[j] = pool[j - 1]
                j -= 1
            pool[j] = s
        pool[last] = v
        begin[v + 1] = last + 1
        # a child's clique may contain this one; its first member names a clique, its last one places it
        base = v
        u = child_head[v]
        while u >= 0:
            if begin[u + 1] - begin[u] == last + 2 - at:
                base = merged[u]
                break
            u = child_next[u]
        merged[v] = base
        top[base] = v
        # its parent is the clique of the first slot to go after it
        if last > at:
            p = pool[last - 1]
            above[v] = p
            child_next[v] = child_head[p]
            child_head[p] = v
        at = last + 1
    # number the cliques that are left, and let everything point to these numbers
    count = 0
    length = 0
    total = 0.0
    largest = 0.0
    for v in range(n):
        b = merged[v]
        if top[b] != v:
            continue
        home[b] = count
        made.begin[count] = begin[b]
        made.stop[count] = begin[b + 1]
        made.n_separator[count] = begin[v + 1] - begin[v] - 1
        made.parent[count] = above[v]
        size = 1.0
        for i in range(begin[b], begin[b + 1]):
            size *= card[order[pool[i]]]
        sizes[count] = size
        length += begin[b + 1] - begin[b]
        total += size
        if size > largest:
            largest = size
        count += 1
    for v in range(n):
        home[v] = home[merged[v]]
    for c in range(count):
        if made.parent[c] >= 0:
            made.parent[c] = home[made.parent[c]]
    for f in range(n_factors):
        factor_home[f] = home[factor_home[f]] if factor_home[f] < n else -1
    return count, at, length, total, largest


@inner(bare=True)
def _smaller_child(c, except_for, wanted, n_wanted, made, sizes, head, following):
    """Return the smallest child of a clique that is smaller than it and contains some slots, or -1."""
    best = -1
    j = head[c]
    for _ in range(TRIES):
        if j < 0:
            break
        if j != except_for and sizes[j] < (sizes[c] if best < 0 else sizes[best]):
            low, high = made.begin[j], made.stop[j]
            inside = 0
            while inside < n_wanted and low < high:
                if made.pool[low] == wanted[inside]:
                    inside += 1
                low += 1
            if inside == n_wanted:
                best = j
        j = following[j]
    return best


@kernel(bare=True)
def settle(n, scope_start, scope, work, sizes, count):
    """Hang every clique, and put every factor, below the smallest neighbouring clique that can hold it.

    A clique may hang on any other one that contains its separator. Moving it from a large parent to a smaller sister, again
    and again, spares the large clique a product and a sum over all its entries.
    """
    n_factors = len(scope_start) - 1
    scope_start, scope, sizes = pointer(scope_start), pointer(scope), pointer(sizes)
    made = parts(pointer(work), n, n_factors)
    parent = made.parent
    head, following, stack = made.spare, beyond(made.spare, n), beyond(made.spare, 2 * n)
    wanted = beyond(made.spare, 3 * n)
    n_roots = 0
    for c in range(count):
        head[c] = -1
    for c in range(count):
        p = parent[c]
        if p < 0:
            stack[n_roots] = c
            n_roots += 1
        else:
            following[c] = head[p]
            head[p] = c
    top = n_roots
    while top > 0:
        top -= 1
        c = stack[top]
        before = -1
        k = head[c]
        while k >= 0:
            after = following[k]
            best = _smaller_child(
                c, k, beyond(made.pool, made.begin[k]), made.n_separator[k], made, sizes, head, following
            )
            if best >= 0:
                if before < 0:
                    head[c] = after
                else:
                    following[before] = after
                parent[k] = best
                following[k] = head[best]
                head[best] = k
            else:
                before = k
            k = after
        k = head[c]
        while k >= 0:
            stack[top] = k
            top += 1
            k = following[k]
    # factors walk down as long as a smaller child clique holds them
    for f in range(n_factors):
        c = made.factor_home[f]
        if c < 0 or head[c] < 0:
            continue
        m = 0
        for i in range(scope_start[f], scope_start[f + 1]):
            s = made.slot[scope[i]]
            j = m
            while j > 0 and wanted[j - 1] < s:
                wanted[j] = wanted[j - 1]
                j -= 1
            wanted[j] = s
            m += 1
        while c >= 0:
            made.factor_home[f] = c
            c = _smaller_child(c, NOBODY, wanted, m, made, sizes, head, following)
