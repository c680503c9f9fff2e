"""Reading a best configuration off max-product messages, and polishing it.

All numbers are logarithms. The arrays are those of `kernels/messages.py`; `strides` are the strides of each edge in its
factor's table. `codes` is the configuration, -1 where a variable has no state yet.
"""

import numpy as np

from markovia.kernels.kernel import inner, kernel


@inner
def _dense_scores(e, first, last, t, at, strides, scope, values, n, state, room, axes, count, score):
    """Add to score what a table gives each state of edge e, maximised over variables without a state."""
    k = at[e + 1] - at[e]
    base = t
    free = 0
    decided = False
    for j in range(first, last):
        if j == e:
            continue
        if state[scope[j]] >= 0:
            base += strides[j] * state[scope[j]]
            decided = True
        else:
            axes[free] = j
            count[free] = 0
            free += 1
    if not decided:
        return False
    for s in range(k):
        room[s] = -np.inf
    while True:
        where = base
        more = 0.0
        for i in range(free):
            where += strides[axes[i]] * count[i]
            more += n[at[axes[i]] + count[i]]
        for s in range(k):
            room[s] = max(room[s], values[where + s * strides[e]] + more)
        i = free - 1
        while i >= 0:
            count[i] += 1
            if count[i] < at[axes[i] + 1] - at[axes[i]]:
                break
            count[i] = 0
            i -= 1
        if i < 0:
            break
    for s in range(k):
        score[s] += room[s]
    return True


@inner
def _sparse_scores(e, first, last, begin, end, code, at, scope, codes, logs, n, state, room, score):
    """Add to score what a factor given by its entries gives each state of edge e."""
    k = at[e + 1] - at[e]
    for s in range(k):
        room[s] = -np.inf
    arity = last - first
    for t in range(begin, end):
        row = code + (t - begin) * arity
        value = logs[t]
        fits = True
        for j in range(arity):
            if first + j == e:
                continue
            now = state[scope[first + j]]
            if now < 0:
                value += n[at[first + j] + codes[row + j]]
            elif now != codes[row + j]:
                fits = False
                break
        if fits:
            s = codes[row + e - first]
            room[s] = max(room[s], value)
    for s in range(k):
        score[s] += room[s]


@kernel
def decode(order, n_dense, strides, ints, floats, m, n, state, room, score, axes, count):
    """Give the variables of `order` a state each, the best one given those before it and the messages of the rest."""
    (
        cards,
        starts,
        scope_ptr,
        scope,
        table_ptr,
        edge_ptr,
        edges,
        at,
        entry_ptr,
        code_ptr,
        codes,
        edge_factor,
    ) = ints
    unary, values, logs = floats
    for v in order:
        k = cards[v]
        for s in range(k):
            score[s] = unary[starts[v] + s]
        for p in range(edge_ptr[v], edge_ptr[v + 1]):
            e = edges[p]
            f = edge_factor[e]
            first = scope_ptr[f]
            last = scope_ptr[f + 1]
            if f >= n_dense:
                g = f - n_dense
                _sparse_scores(
                    e,
                    first,
                    last,
                    entry_ptr[g],
                    entry_ptr[g + 1],
                    code_ptr[g],
                    at,
                    scope,
                    codes,
                    logs,
                    n,
                    state,
                    room,
                    score,
                )
            elif not _dense_scores(
                e, first, last, table_ptr[f], at, strides, scope, values, n, state, room, axes, count, score
            ):
                for s in range(k):
                    score[s] += m[at[e] + s]
        best = 0
        for s in range(1, k):
            if score[s] > score[best]:
                best = s
        state[v] = best


@kernel
def polish(n_dense, strides, ints, floats, n, state, room, score, axes, count):
    """Go once through the variables and give each its best state, all others as they are; return the changes."""
    (
        cards,
        starts,
        scope_ptr,
        scope,
        table_ptr,
        edge_ptr,
        edges,
        at,
        entry_ptr,
        code_ptr,
        codes,
        edge_factor,
    ) = ints
    unary, values, logs = floats
    changes = 0
    for v in range(len(cards)):
        k = cards[v]
        for s in range(k):
            score[s] = unary[starts[v] + s]
        for p in range(edge_ptr[v], edge_ptr[v + 1]):
            e = edges[p]
            f = edge_factor[e]
            first = scope_ptr[f]
            last = scope_ptr[f + 1]
            if f >= n_dense:
                g = f - n_dense
                _sparse_scores(
                    e,
                    first,
                    last,
                    entry_ptr[g],
                    entry_ptr[g + 1],
                    code_ptr[g],
                    at,
                    scope,
                    codes,
                    logs,
                    n,
                    state,
                    room,
                    score,
                )
            else:
                _dense_scores(
                    e,
                    first,
                    last,
                    table_ptr[f],
                    at,
                    strides,
                    scope,
                    values,
                    n,
                    state,
                    room,
                    axes,
                    count,
                    score,
                )
        best = state[v]
        now = score[best]
        for s in range(k):
            if score[s] > score[best]:
                best = s
        if best != state[v] and (now == -np.inf or score[best] - now > 1e-12 * max(1.0, abs(now))):
            state[v] = best
            changes += 1
    return changes


@kernel
def log_weight(n_dense, strides, ints, floats, state):
    """Return the log weight of a configuration."""
    cards, starts, scope_ptr, scope, table_ptr, _, _, _, entry_ptr, code_ptr, codes, _ = ints
    unary, values, logs = floats
    total = 0.0
    for v in range(len(cards)):
        total += unary[starts[v] + state[v]]
    for f in range(len(scope_ptr) - 1):
        first = scope_ptr[f]
        last = scope_ptr[f + 1]
        if f < n_dense:
            where = table_ptr[f]
            for e in range(first, last):
                where += strides[e] * state[scope[e]]
            total += values[where]
            continue
        g = f - n_dense
        found = -np.inf
        for t in range(entry_ptr[g], entry_ptr[g + 1]):
            row = code_ptr[g] + (t - entry_ptr[g]) * (last - first)
            fits = True
            for j in range(last - first):
                if codes[row + j] != state[scope[first + j]]:
                    fits = False
                    break
            if fits:
                found = logs[t]
                break
        total += found
    return total
