"""Cutting observed variables out of the tables of a model, and multiplying tables inside others into those.

The tables lie in `values`, table f from `begins[f]` (in a flat graph `table_ptr[f]`) on, over the variables
`scope[scope_ptr[f] : scope_ptr[f + 1]]`, in C order. `code[v]` is the observed state of variable v, or -1.
"""

import numpy as np

from markovia.kernels.kernel import inner, kernel


@inner
def relevant(scope_ptr, scope, child, needed, kept):
    """Clear `kept` for conditionals that sum to one: the child (-1 for any other table) is neither needed nor mentioned."""
    mentions = np.zeros(len(needed), np.int64)
    owner = np.full(len(needed), -1, np.int64)
    for f in range(len(child)):
        for e in range(scope_ptr[f], scope_ptr[f + 1]):
            if scope[e] != child[f]:
                mentions[scope[e]] += 1
        if child[f] >= 0:
            if owner[child[f]] >= 0:
                mentions[child[f]] += 1
            else:
                owner[child[f]] = f
    barren = np.empty(len(needed), np.int64)
    n = 0
    for v in range(len(needed)):
        if owner[v] >= 0 and needed[v] == 0 and mentions[v] == 0:
            barren[n] = v
            n += 1
    while n > 0:
        n -= 1
        f = owner[barren[n]]
        kept[f] = 0
        for e in range(scope_ptr[f], scope_ptr[f + 1]):
            v = scope[e]
            if v != child[f]:
                mentions[v] -= 1
                if mentions[v] == 0 and needed[v] == 0 and owner[v] >= 0:
                    barren[n] = v
                    n += 1


@inner
def cut(cards, scope_ptr, scope, begins, values, code, kept, number, starts, logs):
    """Return what the observed states leave of the kept tables: pointers, scopes, pointers, entries, log of numbers.

    `number` gives each variable its new number. Tables over one variable are added to `logs`, at `starts` of it.
    """
    wide = 0
    edges = 0
    entries = 0
    for f in range(len(kept)):
        if kept[f] == 0:
            continue
        arity = 0
        size = 1
        for e in range(scope_ptr[f], scope_ptr[f + 1]):
            if code[scope[e]] < 0:
                arity += 1
                size *= cards[scope[e]]
        if arity > 1:
            wide += 1
            edges += arity
            entries += size
    new_ptr = np.zeros(wide + 1, np.int64)
    new_scope = np.empty(edges, np.int64)
    new_table = np.zeros(wide + 1, np.int64)
    found = np.empty(entries, np.float64)
    strides = np.empty(64, np.int64)
    states = np.empty(64, np.int64)
    counts = np.empty(64, np.int64)
    log_scale = 0.0
    wide = 0
    edges = 0
    entries = 0
    for f in range(len(kept)):
        if kept[f] == 0:
            continue
        base = begins[f]
        stride = 1
        arity = 0
        size = 1
        for e in range(scope_ptr[f + 1] - 1, scope_ptr[f] - 1, -1):
            v = scope[e]
            if code[v] < 0:
                strides[arity] = stride
                counts[arity] = cards[v]
                states[arity] = 0
                arity += 1
                size *= cards[v]
            else:
                base += stride * code[v]
            stride *= cards[v]
        if arity == 0:
            log_scale += np.log(values[base])
            continue
        if arity == 1:
            for e in range(scope_ptr[f], scope_ptr[f + 1]):
                v = scope[e]
                if code[v] < 0:
                    for s in range(cards[v]):
                        logs[starts[number[v]] + s] += np.log(values[base + s * strides[0]])
            continue
        at = base
        inner = counts[0]
        step = strides[0]
        for i in range(0, size, inner):
            for s in range(inner):
                found[entries + i + s] = values[at + s * step]
            for k in range(1, arity):
                at += strides[k]
                states[k] += 1
                if states[k] < counts[k]:
                    break
                at -= counts[k] * strides[k]
                states[k] = 0
        for e in range(scope_ptr[f], scope_ptr[f + 1]):
            if code[scope[e]] < 0:
                new_scope[edges] = number[scope[e]]
                edges += 1
        entries += size
        wide += 1
        new_ptr[wide] = edges
        new_table[wide] = entries
    return new_ptr, new_scope, new_table, found, log_scale


@inner
def absorb(cards, scope_ptr, scope, table_ptr, values):
    """Multiply every table whose variables all occur in another one into that one; return what is left.

    Tables come in order of decreasing arity; of the tables kept so far, those at the variable with the fewest are looked
    through, oldest first.
    """
    n = len(cards)
    count = len(scope_ptr) - 1
    most = 0
    for f in range(count):
        most = max(most, scope_ptr[f + 1] - scope_ptr[f])
    first = np.full(n, -1, np.int64)
    last = np.full(n, -1, np.int64)
    hosts = np.zeros(n, np.int64)
    following = np.full(len(scope), -1, np.int64)
    owner = np.empty(len(scope), np.int64)
    gone = np.zeros(count, np.bool_)
    stamp = np.full(n, -1, np.int64)
    steps = np.zeros(64, np.int64)
    states = np.zeros(64, np.int64)
    absorbed = 0
    for arity in range(most, 1, -1):
        for f in range(count):
            a = scope_ptr[f]
            b = scope_ptr[f + 1]
            if b - a != arity:
                continue
            for e in range(a, b):
                owner[e] = f
                stamp[scope[e]] = f
            fewest = scope[a]
            for e in range(a + 1, b):
                if hosts[scope[e]] < hosts[fewest]:
                    fewest = scope[e]
            host = -1
            at = first[fewest]
            while at >= 0 and host < 0:
                g = owner[at]
                inside = 0
                for e in range(scope_ptr[g], scope_ptr[g + 1]):
                    if stamp[scope[e]] == f:
                        inside += 1
                if inside == arity:
                    host = g
                at = following[at]
            if host < 0:
                for e in range(a, b):
                    v = scope[e]
                    if last[v] >= 0:
                        following[last[v]] = e
                    else:
                        first[v] = e
                    last[v] = e
                    hosts[v] += 1
                continue
            gone[f] = True
            absorbed += 1
            _multiply(cards, a, b, scope_ptr[host], scope_ptr[host + 1], scope, table_ptr[f], table_ptr[host],
                      table_ptr[host + 1], values, steps, states)  # fmt: skip
    if absorbed == 0:
        return scope_ptr, scope, table_ptr, values
    new_ptr = np.zeros(count - absorbed + 1, np.int64)
    new_table = np.zeros(count - absorbed + 1, np.int64)
    new_scope = np.empty(len(scope), np.int64)
    wide = 0
    edges = 0
    entries = 0
    for f in range(count):
        if gone[f]:
            continue
        for e in range(scope_ptr[f], scope_ptr[f + 1]):
            new_scope[edges] = scope[e]
            edges += 1
        for i in range(table_ptr[f], table_ptr[f + 1]):
            values[entries] = values[i]
            entries += 1
        wide += 1
        new_ptr[wide] = edges
        new_table[wide] = entries
    return new_ptr, new_scope[:edges].copy(), new_table, values[:entries].copy()


@inner
def _multiply(cards, a, b, c, d, scope, small, large, end, values, steps, states):
    """Multiply the table over scope[a:b] into the one over scope[c:d], which holds all its variables."""
    for e in range(c, d):
        states[e - c] = 0
        steps[e - c] = 0
    stride = 1
    for p in range(b - 1, a - 1, -1):
        for e in range(c, d):
            if scope[e] == scope[p]:
                steps[e - c] = stride
        stride *= cards[scope[p]]
    at = small
    for i in range(large, end):
        values[i] *= values[at]
        for k in range(d - c - 1, -1, -1):
            at += steps[k]
            states[k] += 1
            if states[k] < cards[scope[c + k]]:
                break
            at -= cards[scope[c + k]] * steps[k]
            states[k] = 0


@inner
def finish(cards, starts, scope_ptr, scope, table_ptr, values, logs):
    """Divide the tables and, in `logs`, the variables by their largest entries, and index the edges.

    `logs` become numbers. Returns strides, the edges at each variable (pointers, edges), the factor of each edge, and the
    log of what was divided out.
    """
    n = len(cards)
    total = 0.0
    for v in range(n):
        top = -np.inf
        for s in range(starts[v], starts[v + 1]):
            top = max(top, logs[s])
        total += top
        if top == -np.inf:
            top = 0.0
        for s in range(starts[v], starts[v + 1]):
            logs[s] = np.exp(logs[s] - top)
    strides = np.empty(len(scope), np.int64)
    edge_factor = np.empty(len(scope), np.int64)
    edge_ptr = np.zeros(n + 1, np.int64)
    for f in range(len(table_ptr) - 1):
        top = 0.0
        for i in range(table_ptr[f], table_ptr[f + 1]):
            top = max(top, values[i])
        total += np.log(top)
        if top > 0.0:
            for i in range(table_ptr[f], table_ptr[f + 1]):
                values[i] /= top
        stride = 1
        for e in range(scope_ptr[f + 1] - 1, scope_ptr[f] - 1, -1):
            strides[e] = stride
            stride *= cards[scope[e]]
            edge_factor[e] = f
            edge_ptr[scope[e] + 1] += 1
    for v in range(n):
        edge_ptr[v + 1] += edge_ptr[v]
    edges = np.empty(len(scope), np.int64)
    place = edge_ptr.copy()
    for e in range(len(scope)):
        edges[place[scope[e]]] = e
        place[scope[e]] += 1
    return strides, edge_ptr, edges, edge_factor, total


@kernel
def cut_down(
    cards,
    scope_ptr,
    scope,
    begins,
    values,
    child,
    mentioned,
    code,
    needed,
    prune,
    soft,
    soft_ptr,
    soft_logs,
    inside,
):
    """Return all arrays of the flat graph that evidence leaves, with the variables chosen and the log divided out.

    `needed` marks what is observed or asked for; with `prune` what cannot matter to it is dropped. The variables `soft` have
    log likelihoods at `soft_ptr` of `soft_logs`. With `inside` tables inside others are multiplied into those.
    """
    n = len(cards)
    kept = np.ones(len(child), np.int8)
    seen = np.ones(n, np.int8)
    if prune:
        relevant(scope_ptr, scope, child, needed, kept)
        for v in range(n):
            seen[v] = 1 if needed[v] or not mentioned[v] else 0
        for f in range(len(child)):
            if kept[f]:
                for e in range(scope_ptr[f], scope_ptr[f + 1]):
                    seen[scope[e]] = 1
    count = 0
    for v in range(n):
        if code[v] < 0 and seen[v]:
            count += 1
    chosen = np.empty(count, np.int64)
    new_cards = np.empty(count, np.int64)
    starts = np.zeros(count + 1, np.int64)
    number = np.full(n, -1, np.int64)
    count = 0
    for v in range(n):
        if code[v] < 0 and seen[v]:
            chosen[count] = v
            number[v] = count
            new_cards[count] = cards[v]
            count += 1
            starts[count] = starts[count - 1] + cards[v]
    logs = np.zeros(starts[count], np.float64)
    for i in range(len(soft)):
        for s in range(cards[soft[i]]):
            logs[starts[number[soft[i]]] + s] += soft_logs[soft_ptr[i] + s]
    ptr, members, tables, found, log_scale = cut(
        cards, scope_ptr, scope, begins, values, code, kept, number, starts, logs
    )
    if inside:
        ptr, members, tables, found = absorb(new_cards, ptr, members, tables, found)
    strides, edge_ptr, edges, edge_factor, divided = finish(
        new_cards, starts, ptr, members, tables, found, logs
    )
    log_scale += divided
    return (
        chosen, new_cards, starts, logs, ptr, members, strides, tables, found, edge_ptr, edges, edge_factor, log_scale
    )  # fmt: skip
