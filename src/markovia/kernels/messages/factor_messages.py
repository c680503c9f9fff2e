"""What one factor of a factor graph sends to its variables.

`n` holds the messages from variables to factors; the message of edge e lies at `at[e] : at[e + 1]`, the edges of a factor
one after the other. `kind` is 0 for sums of products, 1 for the same in logarithms and 2 for maxima in logarithms.

A table of any arity gives all its outgoing messages in one pass: its axes are cut into two halves, one pass contracts
either half with the product of its messages, and the two far smaller tables that result are treated alike. A sparse
factor runs over its listed entries, in logarithms.
"""

from math import exp, inf, log

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import pointers


@kernel(bare=True)
def room_needed(cards, scope_ptr, scope, n_dense, stack):
    """Return how many numbers of working room the largest contraction and the longest factor take."""
    n_factors = len(scope_ptr) - 1
    cards, scope_ptr, scope, stack = pointers((cards, scope_ptr, scope, stack))
    most = 0
    for f in range(n_factors):
        first, last = scope_ptr[f], scope_ptr[f + 1]
        states = 0
        for e in range(first, last):
            states += cards[scope[e]]
        need = 4 * states + last - first + 2
        if f < n_dense and last - first > 2:
            need = states
            depth = 1
            stack[0], stack[1] = first, last
            while depth > 0:
                depth -= 1
                a, b = stack[2 * depth], stack[2 * depth + 1]
                if b - a < 2:
                    continue
                middle = (a + b) // 2
                left, right = 1, 1
                for e in range(a, middle):
                    left *= cards[scope[e]]
                for e in range(middle, b):
                    right *= cards[scope[e]]
                need += 3 * (left + right)
                stack[2 * depth + 1] = middle
                stack[2 * depth + 2], stack[2 * depth + 3] = middle, b
                depth += 2
        most = max(most, need)
    return most


@inner(bare=True)
def _contract(kind, x, t, left, right, work, wl):
    """Contract a left-by-right table with a vector on either side, in one pass (two for sums of exponentials).

    In `work` lie from `wl` on the two vectors, the two results (by left and by right), and room for another by right.
    """
    wr = wl + left
    ol = wr + right
    orr = ol + left
    spare = orr + right
    if kind == 0:
        for r in range(right):
            work[orr + r] = 0.0
        for i in range(left):
            w = work[wl + i]
            row = t + i * right
            total = 0.0
            for r in range(right):
                total += x[row + r] * work[wr + r]
            work[ol + i] = total
            if w != 0.0:
                for r in range(right):
                    work[orr + r] += x[row + r] * w
        return
    for r in range(right):
        work[orr + r] = -inf
    for i in range(left):
        w = work[wl + i]
        row = t + i * right
        top = -inf
        for r in range(right):
            value = x[row + r]
            top = max(top, value + work[wr + r])
            work[orr + r] = max(work[orr + r], value + w)
        work[ol + i] = top
    if kind == 2:
        return
    for r in range(right):
        work[spare + r] = 0.0
    for i in range(left):
        w = work[wl + i]
        row = t + i * right
        top = work[ol + i]
        if top == -inf:
            total = 1.0
        else:
            total = 0.0
            for r in range(right):
                total += exp(x[row + r] + work[wr + r] - top)
        work[ol + i] = top + log(total)
        if w == -inf:
            continue
        for r in range(right):
            high = work[orr + r]
            if high > -inf:
                work[spare + r] += exp(x[row + r] + w - high)
    for r in range(right):
        if work[orr + r] > -inf:
            work[orr + r] += log(work[spare + r])


@inner(bare=True)
def _outer(kind, first, last, at, n, work, w):
    """Write the product of the messages of some edges as one vector over their joint states."""
    size = 1
    work[w] = 1.0 if kind == 0 else 0.0
    for e in range(first, last):
        o = at[e]
        k = at[e + 1] - o
        for i in range(size - 1, -1, -1):
            base = work[w + i]
            for s in range(k - 1, -1, -1):
                work[w + i * k + s] = base * n[o + s] if kind == 0 else base + n[o + s]
        size *= k
    return size


@inner(bare=True)
def _pair(kind, t, ka, kb, oa, ob, values, n, raw):
    """Compute both messages of a table over two variables into raw[: ka + kb]."""
    if kind == 0:
        for j in range(kb):
            raw[ka + j] = 0.0
        for i in range(ka):
            row = t + i * kb
            a = n[oa + i]
            total = 0.0
            for j in range(kb):
                x = values[row + j]
                total += x * n[ob + j]
                raw[ka + j] += x * a
            raw[i] = total
        return
    for j in range(kb):
        raw[ka + j] = -inf
    for i in range(ka):
        row = t + i * kb
        a = n[oa + i]
        top = -inf
        for j in range(kb):
            x = values[row + j]
            top = max(top, x + n[ob + j])
            raw[ka + j] = max(raw[ka + j], x + a)
        raw[i] = top
    if kind == 2:
        return
    for i in range(ka):
        top = raw[i]
        if top > -inf:
            total = 0.0
            for j in range(kb):
                total += exp(values[t + i * kb + j] + n[ob + j] - top)
            raw[i] = top + log(total)
    for j in range(kb):
        top = raw[ka + j]
        if top > -inf:
            total = 0.0
            for i in range(ka):
                total += exp(values[t + i * kb + j] + n[oa + i] - top)
            raw[ka + j] = top + log(total)


@inner(bare=True)
def _wide(at, kind, first, last, t, values, n, work, stack):
    """Compute all messages of a table over three or more variables into work[: states of its variables]."""
    base = at[first]
    free = at[last] - base
    depth = 1
    stack[0] = first
    stack[1] = last
    stack[2] = t
    while depth > 0:
        depth -= 1
        a = stack[3 * depth]
        b = stack[3 * depth + 1]
        where = stack[3 * depth + 2]
        if b - a == 1:
            for s in range(at[b] - at[a]):
                work[at[a] - base + s] = work[where + s]
            continue
        middle = (a + b) // 2
        left = 1
        right = 1
        for e in range(a, middle):
            left *= at[e + 1] - at[e]
        for e in range(middle, b):
            right *= at[e + 1] - at[e]
        _outer(kind, a, middle, at, n, work, free)
        _outer(kind, middle, b, at, n, work, free + left)
        if b - a == last - first:
            _contract(kind, values, where, left, right, work, free)
        else:
            _contract(kind, work, where, left, right, work, free)
        by_left = free + left + right
        free += 2 * left + 3 * right
        stack[3 * depth] = a
        stack[3 * depth + 1] = middle
        stack[3 * depth + 2] = by_left
        stack[3 * depth + 3] = middle
        stack[3 * depth + 4] = b
        stack[3 * depth + 5] = by_left + left
        depth += 2


@inner(bare=True)
def _sparse(g, kind, first, last, listed, n, work):
    """Compute all messages of a listed factor into work[: states]; return the log that was divided out of edge one."""
    at, codes, logs = g.at, g.codes, g.logs
    begin, end, code = g.entry_ptr[listed], g.entry_ptr[listed + 1], g.code_ptr[listed]
    base = at[first]
    states = at[last] - base
    arity = last - first
    mine = states
    top = mine + states
    ahead = top + states
    for s in range(states):
        value = n[base + s]
        if kind == 0:
            value = log(value) if value > 0.0 else -inf
        work[mine + s] = value
        work[top + s] = -inf
        work[s] = 0.0
    for t in range(begin, end):
        row = code + (t - begin) * arity
        work[ahead] = logs[t]
        for j in range(arity):
            work[ahead + j + 1] = work[ahead + j] + work[mine + at[first + j] - base + codes[row + j]]
        behind = 0.0
        for j in range(arity - 1, -1, -1):
            s = at[first + j] - base + codes[row + j]
            value = work[ahead + j] + behind
            behind += work[mine + s]
            if value == -inf:
                continue
            if value > work[top + s]:
                if kind < 2:
                    work[s] = work[s] * exp(work[top + s] - value) + 1.0
                work[top + s] = value
            elif kind < 2:
                work[s] += exp(value - work[top + s])
    shift = 0.0
    for e in range(first, last):
        a = at[e] - base
        b = at[e + 1] - base
        high = -inf
        for s in range(a, b):
            high = max(high, work[top + s])
        if e == first and kind == 0 and high > -inf:
            shift = high
        for s in range(a, b):
            if kind == 2:
                work[s] = work[top + s]
            elif kind == 1:
                work[s] = work[top + s] + log(work[s]) if work[top + s] > -inf else -inf
            else:
                work[s] = work[s] * exp(work[top + s] - high) if work[top + s] > -inf else 0.0
    return shift


@inner(bare=True)
def factor_messages(g, kind, f, n_dense, n, work, stack):
    """Compute the messages of one factor, not normalised, into work; return the log divided out of the first one."""
    first, last = g.scope_ptr[f], g.scope_ptr[f + 1]
    shift = 0.0
    if f >= n_dense:
        shift = _sparse(g, kind, first, last, f - n_dense, n, work)
    elif last - first == 2:
        a, b = g.at[first], g.at[first + 1]
        _pair(kind, g.table_ptr[f], b - a, g.at[last] - b, a, b, g.values, n, work)
    else:
        _wide(g.at, kind, first, last, g.table_ptr[f], g.values, n, work, stack)
    return shift
