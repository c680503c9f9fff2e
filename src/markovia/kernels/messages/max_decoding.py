"""Reading a best configuration off max-product messages, and polishing it.

All numbers are logarithms; the graph is a `ListedGraph`, the configuration and messages are in a `DecodingRoom`.
"""

from math import inf

from markovia.kernels.kernel import inner, kernel
from markovia.kernels.pointers import pointer, pointers


@inner(bare=True)
def _dense_scores(g, e, f, d):
    """Add to score what table f gives each state of edge e, maximised over variables without a state."""
    n, state, room, score, axes, count = d
    k = g.at[e + 1] - g.at[e]
    base = g.table_ptr[f]
    free = 0
    decided = False
    for j in range(g.scope_ptr[f], g.scope_ptr[f + 1]):
        if j == e:
            continue
        if state[g.scope[j]] >= 0:
            base += g.strides[j] * state[g.scope[j]]
            decided = True
        else:
            axes[free] = j
            count[free] = 0
            free += 1
    if not decided:
        return False
    for s in range(k):
        room[s] = -inf
    while True:
        where = base
        more = 0.0
        for i in range(free):
            where += g.strides[axes[i]] * count[i]
            more += n[g.at[axes[i]] + count[i]]
        for s in range(k):
            room[s] = max(room[s], g.values[where + s * g.strides[e]] + more)
        i = free - 1
        while i >= 0:
            count[i] += 1
            if count[i] < g.at[axes[i] + 1] - g.at[axes[i]]:
                break
            count[i] = 0
            i -= 1
        if i < 0:
            break
    for s in range(k):
        score[s] += room[s]
    return True


@inner(bare=True)
def _sparse_scores(g, e, f, listed, d):
    """Add to score what factor f, given by its entries, gives each state of edge e."""
    n, state, room, score, _, _ = d
    k = g.at[e + 1] - g.at[e]
    first, last = g.scope_ptr[f], g.scope_ptr[f + 1]
    begin, end, code = g.entry_ptr[listed], g.entry_ptr[listed + 1], g.code_ptr[listed]
    for s in range(k):
        room[s] = -inf
    arity = last - first
    for t in range(begin, end):
        row = code + (t - begin) * arity
        value = g.logs[t]
        fits = True
        for j in range(arity):
            if first + j == e:
                continue
            now = state[g.scope[first + j]]
            if now < 0:
                value += n[g.at[first + j] + g.codes[row + j]]
            elif now != g.codes[row + j]:
                fits = False
                break
        if fits:
            s = g.codes[row + e - first]
            room[s] = max(room[s], value)
    for s in range(k):
        score[s] += room[s]


@kernel(bare=True)
def decode(graph, order, m, decoding):
    """Give the variables of `order` a state each, the best one given those before it and the messages of the rest."""
    variables, n_dense = len(order), len(graph.table_ptr) - 1
    g, order, m, d = pointers(graph), pointer(order), pointer(m), pointers(decoding)
    state, score = d.state, d.score
    for i in range(variables):
        v = order[i]
        k = g.cards[v]
        for s in range(k):
            score[s] = g.unary[g.starts[v] + s]
        for p in range(g.edge_ptr[v], g.edge_ptr[v + 1]):
            e = g.edges[p]
            f = g.edge_factor[e]
            if f >= n_dense:
                _sparse_scores(g, e, f, f - n_dense, d)
            elif not _dense_scores(g, e, f, d):
                for s in range(k):
                    score[s] += m[g.at[e] + s]
        best = 0
        for s in range(1, k):
            if score[s] > score[best]:
                best = s
        state[v] = best


@kernel(bare=True)
def polish(graph, decoding):
    """Go once through the variables and give each its best state, all others as they are; return the changes."""
    variables, n_dense = len(graph.cards), len(graph.table_ptr) - 1
    g, d = pointers(graph), pointers(decoding)
    state, score = d.state, d.score
    changes = 0
    for v in range(variables):
        k = g.cards[v]
        for s in range(k):
            score[s] = g.unary[g.starts[v] + s]
        for p in range(g.edge_ptr[v], g.edge_ptr[v + 1]):
            e = g.edges[p]
            f = g.edge_factor[e]
            if f >= n_dense:
                _sparse_scores(g, e, f, f - n_dense, d)
            else:
                _dense_scores(g, e, f, d)
        best = state[v]
        now = score[best]
        for s in range(k):
            if score[s] > score[best]:
                best = s
        if best != state[v] and (now == -inf or score[best] - now > 1e-12 * max(1.0, abs(now))):
            state[v] = best
            changes += 1
    return changes


@kernel(bare=True)
def log_weight(graph, state):
    """Return the log weight of a configuration."""
    variables, n_factors, n_dense = len(graph.cards), len(graph.scope_ptr) - 1, len(graph.table_ptr) - 1
    g, state = pointers(graph), pointer(state)
    total = 0.0
    for v in range(variables):
        total += g.unary[g.starts[v] + state[v]]
    for f in range(n_factors):
        first = g.scope_ptr[f]
        last = g.scope_ptr[f + 1]
        if f < n_dense:
            where = g.table_ptr[f]
            for e in range(first, last):
                where += g.strides[e] * state[g.scope[e]]
            total += g.values[where]
            continue
        listed = f - n_dense
        found = -inf
        for t in range(g.entry_ptr[listed], g.entry_ptr[listed + 1]):
            row = g.code_ptr[listed] + (t - g.entry_ptr[listed]) * (last - first)
            fits = True
            for j in range(last - first):
                if g.codes[row + j] != state[g.scope[first + j]]:
                    fits = False
                    break
            if fits:
                found = g.logs[t]
                break
        total += found
    return total
