"""From scopes and an elimination order to a clique tree on flat arrays.

Method: symbolic elimination. The clique of a variable is itself with all later variables that its factors and its
children's cliques mention; a clique that its child contains is merged into that child, so only maximal cliques
remain. Joining each clique to that of its earliest separator variable gives a tree with the running intersection
property, which is a maximum spanning tree of the clique graph. Variables are renamed to slots, their positions in the
order, and every scope lists its slots from last to first: then all tables agree on the order of their axes, and the
separator towards the parent is a leading block of every clique.
Cost: linear in the total length of the cliques.
"""

import numpy as np

from markovia.kernels.kernel import kernel


@kernel
def clique_tree(n, scope_start, scope, order):
    """Return the cliques of an elimination order as flat arrays.

    Variables that are not in `order` are left out of all scopes. The result is `(slot, clique_start, clique, n_separator,
    parent, home, factor_home)`: the slot of each variable (-1 if left out), cliques children first, how many leading
    slots each shares with its parent (-1 for a root), the clique that removes each slot, and the clique of each factor
    (-1 if it has no variable left).
    """
    k = len(order)
    n_factors = len(scope_start) - 1
    slot = np.full(n, -1, np.int64)
    for i in range(k):
        slot[order[i]] = i
    # factors by their earliest slot
    first = np.full(n_factors, -1, np.int64)
    factor_head = np.full(k, -1, np.int64)
    factor_next = np.full(n_factors, -1, np.int64)
    for f in range(n_factors - 1, -1, -1):
        low = k
        for i in range(scope_start[f], scope_start[f + 1]):
            s = slot[scope[i]]
            if s >= 0 and s < low:
                low = s
        if low < k:
            first[f] = low
            factor_next[f] = factor_head[low]
            factor_head[low] = f
    begin = np.zeros(k + 1, np.int64)
    pool = np.empty(4 * k + 64, np.int64)
    above = np.full(k, -1, np.int64)
    child_head = np.full(k, -1, np.int64)
    child_next = np.full(k, -1, np.int64)
    merged = np.full(k, -1, np.int64)  # the slot whose supernode this one joins
    mark = np.full(k, -1, np.int64)
    for v in range(k):
        at = begin[v]
        size = 0
        mark[v] = v
        need = 0
        f = factor_head[v]
        while f >= 0:
            need += scope_start[f + 1] - scope_start[f]
            f = factor_next[f]
        u = child_head[v]
        while u >= 0:
            need += begin[u + 1] - begin[u]
            u = child_next[u]
        if at + need > len(pool):
            grown = np.empty(2 * len(pool) + need, np.int64)
            grown[:at] = pool[:at]
            pool = grown
        f = factor_head[v]
        while f >= 0:
            for i in range(scope_start[f], scope_start[f + 1]):
                s = slot[scope[i]]
                if s >= 0 and mark[s] != v:
                    mark[s] = v
                    pool[at + size] = s
                    size += 1
            f = factor_next[f]
        u = child_head[v]
        while u >= 0:
            for i in range(begin[u], begin[u + 1]):
                s = pool[i]
                if mark[s] != v:
                    mark[s] = v
                    pool[at + size] = s
                    size += 1
            u = child_next[u]
        # later slots first
        if size > 64:
            ordered = np.sort(pool[at : at + size])
            for i in range(size):
                pool[at + i] = ordered[size - 1 - i]
        else:
            for i in range(1, size):
                s = pool[at + i]
                j = i - 1
                while j >= 0 and pool[at + j] < s:
                    pool[at + j + 1] = pool[at + j]
                    j -= 1
                pool[at + j + 1] = s
        begin[v + 1] = at + size
        u = child_head[v]
        while u >= 0:
            if begin[u + 1] - begin[u] == size + 1:
                merged[v] = u
                break
            u = child_next[u]
        if size > 0:
            p = pool[at + size - 1]
            above[v] = p
            child_next[v] = child_head[p]
            child_head[p] = v
    # supernodes: the first member names it, the last one places it
    base = np.empty(k, np.int64)
    top = np.full(k, -1, np.int64)
    for v in range(k):
        base[v] = v if merged[v] < 0 else base[merged[v]]
        top[base[v]] = v
    number = np.full(k, -1, np.int64)
    count = 0
    length = 0
    for v in range(k):
        if top[base[v]] == v:
            number[base[v]] = count
            count += 1
            length += begin[base[v] + 1] - begin[base[v]] + 1
    clique_start = np.zeros(count + 1, np.int64)
    clique = np.empty(length, np.int64)
    n_separator = np.empty(count, np.int64)
    parent = np.full(count, -1, np.int64)
    home = np.empty(k, np.int64)
    at = 0
    c = 0
    for v in range(k):
        home[v] = number[base[v]]
        b = base[v]
        if top[b] != v:
            continue
        for i in range(begin[b], begin[b + 1]):
            clique[at] = pool[i]
            at += 1
        clique[at] = b
        at += 1
        clique_start[c + 1] = at
        n_separator[c] = begin[v + 1] - begin[v]
        c += 1
    for v in range(k):
        if top[base[v]] == v and above[v] >= 0:
            parent[number[base[v]]] = home[above[v]]
    factor_home = np.full(n_factors, -1, np.int64)
    for f in range(n_factors):
        if first[f] >= 0:
            factor_home[f] = home[first[f]]
    return slot, clique_start, clique, n_separator, parent, home, factor_home


@kernel
def _contains(clique, low, high, inner, first, last):
    """Say whether `clique[low:high]` contains `inner[first:last]`, both from last slot to first."""
    for i in range(first, last):
        s = inner[i]
        while low < high and clique[low] > s:
            low += 1
        if low == high or clique[low] != s:
            return False
    return True


@kernel
def settle(scope_start, scope, slot, card, clique_start, clique, n_separator, parent, factor_home):
    """Hang every clique, and put every factor, below the smallest neighbouring clique that can hold it.

    A clique may hang on any other one that contains its separator. Moving it from a large parent to a smaller sister, again
    and again, spares the large clique a product and a sum over all its entries. Cliques are numbered anew, children first.
    Only the first few sisters are tried, so the cost stays linear.
    """
    tries = 24
    n = len(parent)
    size = np.empty(n)
    for c in range(n):
        size[c] = 1.0
        for i in range(clique_start[c], clique_start[c + 1]):
            size[c] *= card[clique[i]]
    head = np.full(n, -1, np.int64)
    following = np.full(n, -1, np.int64)
    roots = np.empty(n, np.int64)
    n_roots = 0
    for c in range(n):
        p = parent[c]
        if p < 0:
            roots[n_roots] = c
            n_roots += 1
        else:
            following[c] = head[p]
            head[p] = c
    stack = np.empty(n, np.int64)
    for r in range(n_roots):
        top = 1
        stack[0] = roots[r]
        while top > 0:
            top -= 1
            c = stack[top]
            before = -1
            k = head[c]
            while k >= 0:
                after = following[k]
                best = -1
                j = head[c]
                for _ in range(tries):
                    if j < 0:
                        break
                    if (
                        j != k
                        and size[j] < size[c]
                        and (best < 0 or size[j] < size[best])
                        and n_separator[k] <= clique_start[j + 1] - clique_start[j]
                        and _contains(
                            clique, clique_start[j], clique_start[j + 1],
                            clique, clique_start[k], clique_start[k] + n_separator[k],
                        )
                    ):  # fmt: skip
                        best = j
                    j = following[j]
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
    inner = np.empty(64, np.int64)
    for f in range(len(factor_home)):
        c = factor_home[f]
        if c < 0:
            continue
        m = 0
        if scope_start[f + 1] - scope_start[f] > len(inner):
            inner = np.empty(scope_start[f + 1] - scope_start[f], np.int64)
        for i in range(scope_start[f], scope_start[f + 1]):
            s = slot[scope[i]]
            if s < 0:
                continue
            j = m - 1
            while j >= 0 and inner[j] < s:
                inner[j + 1] = inner[j]
                j -= 1
            inner[j + 1] = s
            m += 1
        while True:
            best = -1
            j = head[c]
            for _ in range(tries):
                if j < 0:
                    break
                if (
                    size[j] < size[c]
                    and (best < 0 or size[j] < size[best])
                    and _contains(clique, clique_start[j], clique_start[j + 1], inner, 0, m)
                ):
                    best = j
                j = following[j]
            if best < 0:
                break
            c = best
        factor_home[f] = c


@kernel
def renumber(clique_start, clique, n_separator, parent, home, factor_home):
    """Give cliques numbers so that children come first and every subtree is a range that ends with its root."""
    n = len(parent)
    head = np.full(n, -1, np.int64)
    following = np.full(n, -1, np.int64)
    stack = np.empty(n, np.int64)
    sequence = np.empty(n, np.int64)
    top = 0
    for c in range(n):
        if parent[c] < 0:
            stack[top] = c
            top += 1
        else:
            following[c] = head[parent[c]]
            head[parent[c]] = c
    count = 0
    while top > 0:
        top -= 1
        c = stack[top]
        sequence[count] = c
        count += 1
        k = head[c]
        while k >= 0:
            stack[top] = k
            top += 1
            k = following[k]
    number = np.empty(n, np.int64)
    for i in range(n):
        number[sequence[i]] = n - 1 - i
    new_start = np.zeros(n + 1, np.int64)
    for c in range(n):
        new_start[number[c] + 1] = clique_start[c + 1] - clique_start[c]
    for c in range(n):
        new_start[c + 1] += new_start[c]
    new_clique = np.empty_like(clique)
    new_separator = np.empty_like(n_separator)
    new_parent = np.empty_like(parent)
    for c in range(n):
        to = number[c]
        for i in range(clique_start[c + 1] - clique_start[c]):
            new_clique[new_start[to] + i] = clique[clique_start[c] + i]
        new_separator[to] = n_separator[c]
        new_parent[to] = -1 if parent[c] < 0 else number[parent[c]]
    for v in range(len(home)):
        home[v] = number[home[v]]
    for f in range(len(factor_home)):
        if factor_home[f] >= 0:
            factor_home[f] = number[factor_home[f]]
    return new_start, new_clique, new_separator, new_parent


@kernel
def separators_are_contained(clique_start, clique, n_separator, parent):
    """Check the running intersection property: every separator lies inside the parent clique."""
    for c in range(len(parent)):
        p = parent[c]
        if p < 0:
            if n_separator[c] != 0:
                return False
            continue
        if p <= c:
            return False
        j = clique_start[p]
        for i in range(clique_start[c], clique_start[c] + n_separator[c]):
            while j < clique_start[p + 1] and clique[j] > clique[i]:
                j += 1
            if j == clique_start[p + 1] or clique[j] != clique[i]:
                return False
    return True
